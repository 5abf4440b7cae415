# SPDX-License-Identifier: Apache-2.0
"""Images out of the store: what others read of an archive, what comes back from it, and what is left of one that was cut."""
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import unittest

import grpc

import images
import nacre_test
import schema
from nacre_test import nacre_pb2

MKIMAGE = images.module()
DOCKER = "application/vnd.docker."


def small(name, size=10):
    return (name, tarfile.REGTYPE, 0o644, hashlib.shake_128(name.encode()).digest(size), "")


def docker_form(files):
    """A layout whose manifest is the one that Docker's registry gives."""
    index = json.loads(files["index.json"])
    entry = index["manifests"][0]
    manifest = json.loads(files.pop("blobs/sha256/" + entry["digest"][7:]))
    manifest["mediaType"] = entry["mediaType"] = DOCKER + "distribution.manifest.v2+json"
    manifest["config"]["mediaType"] = DOCKER + "container.image.v1+json"
    for layer in manifest["layers"]:
        layer["mediaType"] = DOCKER + "image.rootfs.diff.tar.gzip"
    data = MKIMAGE.dump(manifest)
    entry["digest"], entry["size"] = MKIMAGE.digest(data), len(data)
    files["blobs/sha256/" + entry["digest"][7:]] = data
    files["index.json"] = MKIMAGE.dump(index)
    return files


class Export(nacre_test.NodeTest):
    IMAGES = ()

    def setUp(self):
        super().setUp()
        self.dir = tempfile.mkdtemp(prefix="nacre-export-")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def put(self, name, *entries, docker=False, compress="gzip"):
        """An image with a layer of each list of entries; its id."""
        layers = [MKIMAGE.Layer(MKIMAGE.build_tar(e), compress) for e in entries]
        files = MKIMAGE.oci_files(layers, MKIMAGE.make_config(layers, {"Cmd": ["sh"], "Env": ["A=1"]}), name)
        MKIMAGE.write_files(self.path("in.tar"), docker_form(files) if docker else files)
        image = self.node.import_image(self.path("in.tar"), "")
        self.addCleanup(self.node.cli, "image", "rm", image.id, check=False)
        return image.id

    def export(self, *names, form="docker"):
        """The archive and the images, over the API."""
        data, told = b"", []
        for m in self.node.images.Export(nacre_pb2.ExportRequest(images=names, format=form)):
            data += m.data
            if m.HasField("image"):
                told.append(m.image)
        return data, told

    def tool(self, *command):
        if not shutil.which(command[0]):
            self.skipTest(f"{command[0]} is not here")
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.dir)
        self.assertEqual(0, done.returncode, f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def manifest(self, name):
        return json.loads(self.node.images.Inspect(nacre_pb2.InspectImageRequest(image=name)).manifest)

    def test_import_prints_every_name(self):
        """Of all images of the archive; and --ref takes one of them."""
        one, two = self.put("x/one:1", [small("a")]), self.put("x/two:2", [small("b")])
        self.node.cli("image", "export", "x/one:1", "x/two:2", self.path("both.tar"))
        done = self.node.cli("image", "import", self.path("both.tar"))
        self.assertEqual(["docker.io/x/one:1", "docker.io/x/two:2"], done.stdout.split())
        lines = self.node.cli("-o", "json", "image", "import", self.path("both.tar")).stdout
        self.assertEqual(2, lines.count('"id"'))
        self.assertEqual([one, two], re.findall('"id": ?"(sha256:[0-9a-f]{64})"', lines))
        done = self.node.cli("image", "import", "--ref", "x/two:2", "--name", "mine:3", self.path("both.tar"))
        self.assertEqual(["docker.io/x/two:2", "docker.io/library/mine:3"], done.stdout.split())
        done = self.node.cli("image", "import", "--ref", "x/three", self.path("both.tar"), check=False)
        self.assertEqual((125, True), (done.returncode, 'no image "x/three"; it has: ' in done.stderr), done.stderr)
        done = self.node.cli("image", "import", "--root", "--ref", "x", self.path("both.tar"), check=False)
        self.assertIn("--ref is for archives with images", done.stderr)

    def test_skopeo_reads_every_form(self):
        ident = self.put("x/y:1", [small("a"), small("b", 300000)], [small("c")])
        manifest = self.manifest("x/y:1")
        for form, out, transport in (("oci-dir", "d", "oci:%s:1"), ("oci-archive", "o.tar", "oci-archive:%s:1"),
                                     ("docker-archive", "k.tar", "docker-archive:%s"), ("docker-archive", "l.tar", "oci-archive:%s")):
            with self.subTest(form=form, transport=transport):
                self.node.cli("image", "export", "--format", form, "x/y:1", self.path(out))
                reference = transport % self.path(out)
                self.assertEqual(ident, "sha256:" + hashlib.sha256(self.tool("skopeo", "inspect", "--raw", "--config", reference)
                                                                   .encode()).hexdigest())
                said = json.loads(self.tool("skopeo", "inspect", reference))
                self.assertEqual(["A=1"], said["Env"])
                if not transport.startswith("docker"):
                    self.assertEqual([l["digest"] for l in manifest["layers"]], said["Layers"])
                self.tool("skopeo", "copy", "-q", "--insecure-policy", reference, "dir:" + self.path("copy"))
                shutil.rmtree(self.path("copy"))

    def test_umoci_unpacks_it(self):
        self.put("x/y:1", [small("a"), small("deep/er/b", 300000)], [small("c")])
        self.node.cli("image", "export", "x/y:1", self.path("layout") + "/")
        self.tool("umoci", "unpack", "--image", self.path("layout") + ":1", self.path("bundle"))
        found = sorted(os.path.relpath(os.path.join(f, n), self.path("bundle/rootfs"))
                       for f, _, names in os.walk(self.path("bundle/rootfs")) for n in names)
        self.assertEqual(["a", "c", "deep/er/b"], found)

    def test_podman_loads_it(self):
        """Both of one archive: what podman has then is what went in, by its id."""
        one, two = self.put("x/one:1", [small("a")], [small("c")]), self.put("x/two:1", [small("b")], compress="none")
        self.node.cli("image", "export", "x/one:1", "x/two:1", self.path("both.tar"))
        podman = ("podman", "--root", self.path("graph"), "--runroot", self.path("run"), "--storage-driver", "vfs",
                  "--cgroup-manager", "cgroupfs", "--events-backend", "none")
        self.tool(*podman, "load", "-q", "-i", self.path("both.tar"))
        found = {(line.split()[0], line.split()[1]) for line in
                 self.tool(*podman, "images", "--no-trunc", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}").splitlines()}
        self.assertEqual({("docker.io/x/one:1", one), ("docker.io/x/two:1", two)}, found)

    def test_comes_back_the_same(self):
        """Removed and imported from its own archive, in each form: same id, digest, names and layers; the archive is the same, too."""
        self.put("x/one:1", [small("a")], [small("b")])
        self.node.cli("image", "tag", "x/one:1", "x/other:2")
        before = self.node.json("image", "inspect", "x/one:1")
        self.node.cli("image", "rm", before["image"]["id"], check=False)
        self.put("x/one:1", [small("a")], [small("b")])
        self.node.cli("image", "tag", "x/one:1", "x/other:2")
        for form, out in (("oci-dir", "d"), ("oci-archive", "o.tar"), ("docker-archive", "k.tar")):
            with self.subTest(form=form):
                self.node.cli("image", "export", "--format", form, before["image"]["id"], self.path(out))
                self.node.cli("image", "rm", before["image"]["id"])
                self.assertFalse(os.listdir(self.node.root + "/blobs/sha256"))
                self.node.cli("image", "import", self.path(out))
                after = self.node.json("image", "inspect", "x/other:2")
                for key in ("manifest", "config"):
                    self.assertEqual(before[key], after[key])
                for key in ("id", "digest", "names"):
                    self.assertEqual(before["image"][key], after["image"][key])
                if form == "docker-archive":
                    self.assertEqual(self.export(before["image"]["id"])[0], open(self.path(out), "rb").read())

    def test_the_docker_side_of_an_archive(self):
        """What an older `docker load` reads, which knows no layout: by names of files and nothing else."""
        ident = self.put("quay.io/x/one:1", [small("a")], [small("b")])
        data, told = self.export("quay.io/x/one:1")
        with open(self.path("k.tar"), "wb") as file:
            file.write(data)
        with tarfile.open(self.path("k.tar")) as tar:
            entries = json.load(tar.extractfile("manifest.json"))
            self.assertEqual([["quay.io/x/one:1"]], [e["RepoTags"] for e in entries])
            config = tar.extractfile(entries[0]["Config"]).read()
            self.assertEqual(ident, MKIMAGE.digest(config))
            self.assertEqual(json.loads(config)["rootfs"]["diff_ids"],
                             [MKIMAGE.digest(gzip.decompress(tar.extractfile(n).read())) for n in entries[0]["Layers"]])
            self.assertEqual({(0, 0, 0)}, {(m.uid, m.gid, m.mtime) for m in tar.getmembers()})
            for m in tar.getmembers():
                if m.name.startswith("blobs/sha256/"):
                    self.assertEqual(m.name[13:], hashlib.sha256(tar.extractfile(m).read()).hexdigest())
        self.assertEqual([(ident, ["quay.io/x/one:1"])], [(i.id, list(i.names)) for i in told])
        # The layout alone has no such table.
        with open(self.path("o.tar"), "wb") as file:
            file.write(self.export("quay.io/x/one:1", form="oci")[0])
        with tarfile.open(self.path("o.tar")) as tar:
            self.assertNotIn("manifest.json", tar.getnames())

    def test_a_manifest_of_docker_becomes_one_of_oci(self):
        ident = self.put("x/one:1", [small("a")], docker=True)
        digest = self.node.json("image", "inspect", "x/one:1")["image"]["digest"]
        _, told = self.export("x/one:1")
        self.assertNotEqual(digest, told[0].digest)
        self.node.cli("image", "export", "x/one:1", self.path("d/"))
        self.tool("umoci", "unpack", "--image", self.path("d") + ":1", self.path("bundle"))
        self.assertEqual(["a"], os.listdir(self.path("bundle/rootfs")))
        self.assertEqual(told[0].digest, json.loads(self.tool("skopeo", "inspect", "oci:" + self.path("d") + ":1"))["Digest"])
        self.node.cli("image", "rm", "x/one:1")
        self.node.cli("image", "import", self.path("d"))
        again = self.node.json("image", "inspect", "x/one:1")["image"]
        self.assertEqual((ident, told[0].digest), (again["id"], again["digest"]))

    def test_names(self):
        """By name it has that name, by id all of them; the same tag twice is told apart for those who look for a tag."""
        one = self.put("x/one:1", [small("a")])
        self.put("x/two:1", [small("b")])
        self.node.cli("image", "tag", "x/one:1", "z:9")
        for words, names in ((("x/one:1",), [["docker.io/x/one:1"]]),
                             ((one,), [["docker.io/library/z:9", "docker.io/x/one:1"]]),
                             (("z:9", one[7:19], "x/two:1"), [["docker.io/library/z:9", "docker.io/x/one:1"], ["docker.io/x/two:1"]])):
            _, told = self.export(*words)
            self.assertEqual(names, [sorted(i.names) for i in told])
        with open(self.path("o.tar"), "wb") as file:
            file.write(self.export("x/one:1", "x/two:1", form="oci")[0])
        with tarfile.open(self.path("o.tar")) as tar:
            index = json.load(tar.extractfile("index.json"))
        self.assertEqual(["1", "docker.io/x/two:1"],
                         [m["annotations"]["org.opencontainers.image.ref.name"] for m in index["manifests"]])

    def test_command(self):
        document = schema.load()
        self.put("x/one:1", [small("a")])
        shown = self.node.json("image", "export", "x/one:1", self.path("k.tar"))
        schema.check(document, "image export", shown)
        self.assertEqual(os.path.getsize(self.path("k.tar")), shown["bytes"])
        self.assertEqual(["in.tar", "k.tar"], sorted(os.listdir(self.dir)))
        with open(self.path("k.tar"), "rb") as file:
            whole = file.read()
        # Standard output and a pipe by name get the same; a file that is there is replaced.
        done = subprocess.run([nacre_test.BINARY, "--socket", self.node.socket, "image", "export", "x/one:1", "-"],
                              capture_output=True, check=True)
        self.assertEqual(whole, done.stdout)
        with open(self.path("k.tar"), "wb") as file:
            file.write(b"old")
        self.node.cli("image", "export", "x/one:1", self.path("k.tar"))
        with open(self.path("k.tar"), "rb") as file:
            self.assertEqual(whole, file.read())
        for words, text in ((("x/none", "k.tar"), "there is no image"), (("--format", "zip", "x/one:1", "k.tar"), "oci-archive"),
                            (("--format", "oci-dir", "x/one:1", "-"), "needs a directory"),
                            (("x/one:1", self.dir), "is not empty"), (("x/one:1", self.path("no/such/k.tar")), "No such file")):
            done = self.node.cli("image", "export", *words, check=False)
            self.assertEqual(125, done.returncode)
            self.assertIn(text, done.stderr)
        self.assertEqual(["in.tar", "k.tar"], sorted(os.listdir(self.dir)))

    def test_errors(self):
        def fails(code, text, **request):
            with self.assertRaises(grpc.RpcError) as caught:
                list(self.node.images.Export(nacre_pb2.ExportRequest(**request)))
            self.assertEqual(code, caught.exception.code(), caught.exception.details())
            self.assertIn(text, caught.exception.details())

        self.put("x/one:1", [small("a")])
        fails(grpc.StatusCode.INVALID_ARGUMENT, "images", images=[])
        fails(grpc.StatusCode.INVALID_ARGUMENT, "format", images=["x/one:1"], format="zip")
        fails(grpc.StatusCode.NOT_FOUND, "images[1]: there is no image", images=["x/one:1", "x/none"])
        fails(grpc.StatusCode.INVALID_ARGUMENT, "images[0]", images=[""])
        fails(grpc.StatusCode.RESOURCE_EXHAUSTED, "64", images=["x/one:1"] * 65)

    def test_damage_is_seen(self):
        """A byte of a layer, its length, a missing one, the documents: told with its name, and no archive is made.

        Inspect, which reads the documents, tells the same of these."""
        ident = self.put("x/one:1", [small("a", 600000)])
        manifest = self.node.json("image", "inspect", ident)["image"]["digest"]
        layer = self.manifest(ident)["layers"][0]["digest"]

        def breaks(digest, change, how):
            path = self.node.root + "/blobs/sha256/" + digest[7:]
            with open(path, "rb") as file:
                good = file.read()
            change(path, good)
            for out in ("k.tar", "d/"):
                done = self.node.cli("image", "export", ident, self.path(out), check=False)
                self.assertEqual(125, done.returncode)
                self.assertIn(f"blob {digest} {how}", done.stderr)
                self.assertEqual(["in.tar"], os.listdir(self.dir))
            with self.assertRaises(grpc.RpcError) as caught:
                self.export(ident)
            self.assertEqual(grpc.StatusCode.INTERNAL, caught.exception.code())
            if digest != layer:
                with self.assertRaises(grpc.RpcError) as caught:
                    self.node.images.Inspect(nacre_pb2.InspectImageRequest(image=ident))
                self.assertEqual(grpc.StatusCode.INTERNAL, caught.exception.code())
                self.assertIn(f"the store is damaged, blob {digest} {how}", caught.exception.details())
                for command in ("inspect", "history"):
                    done = self.node.cli("image", command, ident, check=False)
                    self.assertEqual((125, "", True), (done.returncode, done.stdout, digest in done.stderr), done.stderr)
            with open(path, "wb") as file:
                file.write(good)

        def flip(path, good):
            with open(path, "r+b") as file:
                file.seek(len(good) // 2)
                file.write(bytes([good[len(good) // 2] ^ 1]))

        breaks(layer, flip, "has another digest")
        breaks(layer, lambda path, good: os.truncate(path, len(good) - 1), "has another length")
        breaks(layer, lambda path, good: os.unlink(path), "is missing")
        for document in (manifest, ident):
            breaks(document, flip, "has another digest")
            breaks(document, lambda path, good: os.unlink(path), "is missing")
        breaks(ident, lambda path, good: os.truncate(path, 0), "has another")
        self.export(ident)
        self.assertEqual(ident, self.node.json("image", "inspect", ident)["image"]["id"])

    def test_removed_under_way(self):
        """What is exported can be removed: its content stays for the archive, and goes behind it."""
        ident = self.put("x/one:1", [small("a", 8 << 20)])
        call = self.node.images.Export(nacre_pb2.ExportRequest(images=[ident]))
        data = next(m.data for m in call if m.data)
        self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=ident))
        self.assertTrue(os.listdir(self.node.root + "/blobs/sha256"))
        data += b"".join(m.data for m in call)
        with open(self.path("k.tar"), "wb") as file:
            file.write(data)
        nacre_test.until(lambda: not os.listdir(self.node.root + "/blobs/sha256"), what="the content to go")
        self.assertEqual(ident, self.node.import_image(self.path("k.tar"), "").id)

    def test_cut(self):
        """A client that is killed, or leaves on a signal, while much is still to come: no helper stays, and of the file nothing."""
        self.put("x/one:1", [small("a", 64 << 20)])
        before = self.node.baseline()
        os.mkfifo(self.path("pipe"))
        for number in (signal.SIGKILL, signal.SIGINT):
            client = self.node.spawn_cli("image", "export", "x/one:1", self.path("pipe"))
            with open(self.path("pipe"), "rb", buffering=0) as pipe:
                self.assertTrue(pipe.read(1000))
                client.send_signal(number)
                while pipe.read(1 << 20):
                    pass
            client.communicate()
            nacre_test.until(lambda: self.node.baseline() == before, what="nothing left of an export")
        for out in ("k.tar", "d/"):
            client = self.node.spawn_cli("image", "export", "x/one:1", self.path(out))
            nacre_test.until(lambda: len(os.listdir(self.dir)) > 2 or client.poll() is not None, what="something written")
            client.send_signal(signal.SIGINT)
            client.communicate()
            self.assertIn(client.returncode, (0, 130))
            left = set(os.listdir(self.dir)) - {"in.tar", "pipe"}
            self.assertEqual({out.strip("/")} if client.returncode == 0 else set(), left)
            self.node.cli("image", "export", "x/one:1", self.path("again.tar"))
            os.unlink(self.path("again.tar"))

    def test_at_once(self):
        """As many as are allowed, held up by readers that do not read; one more is refused, and room is made by an end."""
        self.put("x/one:1", [small("a", 64 << 20)])
        calls = []
        for _ in range(8):
            calls.append(self.node.images.Export(nacre_pb2.ExportRequest(images=["x/one:1"])))
            self.assertTrue(next(calls[-1]))
        with self.assertRaises(grpc.RpcError) as caught:
            self.export("x/one:1")
        self.assertEqual(grpc.StatusCode.RESOURCE_EXHAUSTED, caught.exception.code())
        # Nobody reads: what the daemon has taken of the pipes is bounded.
        with open(f"/proc/{self.node.pid}/smaps_rollup", encoding="ascii") as file:
            pss = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        self.assertLess(pss, (48 << 10) * (4 if nacre_test.SANITIZED else 1))
        for call in calls:
            call.cancel()

        def goes():
            try:
                return self.export("x/one:1", form="oci")
            except grpc.RpcError:
                return None

        nacre_test.until(goes, what="an export after the others")


if __name__ == "__main__":
    unittest.main()
