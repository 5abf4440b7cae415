# SPDX-License-Identifier: Apache-2.0
"""What `nacre prune`, `system df`, `system prune`, `export`, and `run --replace` do."""
import os
import tarfile
import tempfile

import nacre_test


class System(nacre_test.NodeTest):
    def setUp(self):
        self.addCleanup(self.node.clear)

    def names(self):
        return sorted(w["name"] for w in self.node.json("ps", "-a"))

    def ended(self, name, *words):
        self.node.cli("run", "--name", name, *words, "busybox", "sh", "-c", "dd if=/dev/zero of=/big bs=1M count=4 2>/dev/null")

    def test_prune(self):
        self.node.cli("run", "-d", "--name", "runs", "busybox", "sleep", "100000")
        self.node.cli("spawn", "--name", "inst")
        self.ended("a", "--label", "x=1")
        self.ended("b")
        self.node.cli("execute", "--keep", "--name", "exe", "true")
        everything = ["a", "b", "exe", "inst", "runs"]
        for words, text in ((["prune"], "give --force"), (["system", "prune"], "give --force"),
                            (["prune", "-f", "--filter", "nome=1"], "--filter nome=1: it is until=TIME"),
                            (["prune", "-f", "--filter", "until=x"], "--filter until"), (["prune", "-f", "--kind", "vm"], "--kind: \"vm\"")):
            done = self.node.cli(*words, check=False)
            self.assertEqual((125, ""), (done.returncode, done.stdout))
            self.assertIn(text, done.stderr)
        self.assertEqual("", self.node.cli("prune", "-f", "--filter", "until=1h").stdout)
        self.assertEqual(everything, self.names())
        digits = self.node.json("inspect", "a")["id"]
        self.assertEqual(f"Deleted Containers:\n{digits}\n", self.node.cli("prune", "-f", "--filter", "label=x").stdout)
        self.node.cli("prune", "-f", "--kind", "executable")
        self.assertEqual(["b", "inst", "runs"], self.names())
        self.node.cli("system", "prune", "-f")
        self.assertEqual(["inst", "runs"], self.names())
        self.assertEqual(1, len(self.node.json("image", "ls")))
        self.node.cli("system", "prune", "-f", "-a")
        self.assertEqual(1, len(self.node.json("image", "ls")), "an image that something runs of")

    def test_df(self):
        self.node.cli("run", "-d", "--name", "runs", "busybox", "sleep", "100000")
        self.ended("over")
        self.node.cli("run", "--name", "fills", "-v", "kept:/v", "busybox", "dd", "if=/dev/zero", "of=/v/file", "bs=1M", "count=3")
        self.node.cli("volume", "create", "empty")
        images, containers, volumes = self.node.json("system", "df")
        self.assertEqual((2, 1), (volumes["total"], volumes["active"]))
        self.assertLessEqual(3 << 20, volumes["bytes"])
        self.assertGreater(1 << 20, volumes["reclaimable"])
        self.node.cli("rm", "fills")
        images, containers, _ = self.node.json("system", "df")
        self.assertLessEqual(3 << 20, self.node.json("system", "df")[2]["reclaimable"])
        self.assertRegex(self.node.cli("system", "df").stdout, r"(?m)^Local Volumes +2 +0 +3\.")
        self.node.cli("volume", "rm", "kept", "empty")
        self.assertEqual(("images", 1, 1), (images["kind"], images["total"], images["active"]))
        self.assertLess(100000, images["bytes"])
        self.assertEqual(("containers", 2, 1), (containers["kind"], containers["total"], containers["active"]))
        self.assertLess(4 << 20, containers["reclaimable"])
        self.assertLessEqual(containers["reclaimable"], containers["bytes"])
        self.node.cli("prune", "-f")
        nacre_test.until(lambda: self.node.json("system", "df")[1]["reclaimable"] == 0, what="what a container took")

    def test_export(self):
        """The root as it is, without what is mounted there; of one that runs and one that has ended."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "secret"), "w", encoding="utf-8") as file:
                file.write("of a volume")
            self.node.cli("run", "-d", "--name", "runs", "-v", f"{folder}:/vol", "-v", f"{folder}/secret:/one", "--tmpfs", "/tmpfs", "busybox", "sh", "-c",
                          "echo made >/made; echo x >/tmpfs/x; rm -rf /root; exec sleep 100000")
            nacre_test.until(lambda: not self.node.cli("exec", "runs", "ls", "/root", check=False).returncode == 0, what="its act")
            out = os.path.join(folder, "out.tar")
            self.node.cli("export", "-O", out, "runs")
            with tarfile.open(out) as archive:
                files = {m.name.removeprefix("./"): m for m in archive.getmembers()}
                self.assertEqual(b"made\n", archive.extractfile(files["made"]).read())
            for name in ("vol", "tmpfs", "proc", "sys", "dev"):
                self.assertTrue(files[name].isdir(), name)
                self.assertEqual([], [n for n in files if n.startswith(name + "/")])
            self.assertEqual((True, 0), (files["one"].isfile(), files["one"].size))
            self.assertNotIn("root", files)
            self.assertIn("bin/busybox", files)
            self.node.cli("stop", "-t", "0", "runs")
            self.assertEqual({"secret", "out.tar"}, set(os.listdir(folder)))
            done = self.node.cli("export", "-O", os.path.join(folder, "no.tar"), "nobody", check=False)
            self.assertEqual((125, {"secret", "out.tar"}), (done.returncode, set(os.listdir(folder))))
            self.ended("over")
            self.node.cli("export", "-O", out, "over")
            with tarfile.open(out) as archive:
                self.assertEqual(4 << 20, archive.getmember("./big").size)

    def test_replace(self):
        first = self.node.cli("run", "-d", "--name", "web", "busybox", "sleep", "100000").stdout
        self.assertIn("is taken", self.node.cli("run", "-d", "--name", "web", "busybox", "true", check=False).stderr)
        second = self.node.cli("run", "-d", "--name", "web", "--replace", "busybox", "sleep", "100000").stdout
        self.assertNotEqual(first, second)
        self.assertEqual(["web"], self.names())
        self.assertEqual("new\n", self.node.cli("run", "--name", "other", "--replace", "busybox", "echo", "new").stdout)
        self.assertIn("--name gives", self.node.cli("run", "--replace", "busybox", check=False).stderr)

    def test_pull_newer(self):
        """The image that is there will do where its registry cannot be asked."""
        done = self.node.cli("run", "--rm", "--pull", "newer", "busybox", "echo", "x", check=False)
        self.assertEqual((0, "x\n"), (done.returncode, done.stdout), done.stderr)
        self.assertIn("warning: busybox is taken as it is here", done.stderr)
        done = self.node.cli("run", "--rm", "--pull", "sometimes", "busybox", check=False)
        self.assertIn("none of missing, always, newer, never", done.stderr)
