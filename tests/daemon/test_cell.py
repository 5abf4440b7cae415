# SPDX-License-Identifier: Apache-2.0
"""Images from files, and RunCell: containers in a cell of the node."""
import io
import json
import os
import re
import shutil
import tarfile

import grpc

import host
import images
import nacre_test
import steps
from nacre_test import nacre_pb2
from steps import container, namespaces, pid_depth

Code = grpc.StatusCode


class Import(nacre_test.NodeTest):
    """Each form of image; what it was made of comes out again when it is run."""

    IMAGES = ()

    def setUp(self):
        self.dir = os.path.join(self.node.dir, self.id().rpartition(".")[2])
        os.mkdir(self.dir)
        self.addCleanup(shutil.rmtree, self.dir)
        self.addCleanup(self.clear)

    def clear(self):
        for image in self.list():
            self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=image.id))

    def list(self):
        return list(self.node.images.List(nacre_pb2.ListImagesRequest()).images)

    def run_words(self, image, *words):
        return self.node.cli("run", "--rm", image, *words).stdout

    def make(self, out, *words, form="oci"):
        with open(os.path.join(self.dir, "note"), "w", encoding="ascii") as f:
            f.write("from the image\n")
        return images.make(os.path.join(self.dir, out), "--busybox", "--file", f"{self.dir}/note:/srv/note:0640", "--cmd", "cat",
                           "/srv/note", "--env", "COLOR=pearl", *words, form=form)

    def check(self, path, name, shown=None):
        before = self.node.baseline()
        image = self.node.import_image(path, name)
        self.assertEqual([image], self.list())
        self.assertIn(shown or f"docker.io/library/{name}:latest", list(image.names))
        self.assertRegex(image.id, "^sha256:[0-9a-f]{64}$")
        self.assertGreater(image.size, 100000)
        self.assertEqual("from the image\n", self.run_words(name))
        self.assertEqual("pearl 640 root root\n", self.run_words(name, "sh", "-c", "echo $COLOR $(stat -c '%a %U %G' /srv/note)"))
        self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=name))
        self.assertEqual([], self.list())
        self.assertEqual([], nacre_test.traces(before, self.node))
        return image

    def test_oci_directory(self):
        self.check(self.make("layout"), "one")

    def test_oci_archive(self):
        self.check(self.make("image.tar", "--layers", "5"), "one")

    def test_oci_archive_without_compression(self):
        self.check(self.make("image.tar", "--compress", "none"), "one")

    def test_compressed_archive(self):
        self.check(self.make("image.tar.gz"), "one")

    def test_docker_archive(self):
        self.check(self.make("image.tar", "--layers", "3", form="docker"), "one")

    def test_the_same_image_in_every_form_is_one(self):
        ids = set()
        for n, (out, form) in enumerate((("layout", "oci"), ("a.tar", "oci"), ("b.tar", "docker"))):
            ids.add(self.node.import_image(self.make(out, form=form), f"n{n}").id)
        self.assertEqual(1, len(ids))
        image, = self.list()
        self.assertEqual(3, len(image.names))
        # A name at a time; the last one takes the image.
        for n in range(3):
            self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=f"n{n}"))
            self.assertEqual(2 - n, sum(len(i.names) for i in self.list()))
        self.assertEqual([], self.list())

    def test_names_of_the_archive(self):
        image = self.node.import_image(self.make("x.tar", "--name", "registry.example/team/app:v2"), "")
        self.assertEqual(["registry.example/team/app:v2"], list(image.names))
        self.assertEqual("from the image\n", self.run_words("registry.example/team/app:v2"))
        image = self.node.import_image(self.make("y.tar", "--name", "app:v3", form="docker"), "")
        self.assertIn("docker.io/library/app:v3", list(image.names))

    def test_found_by_id_and_digest(self):
        image = self.node.import_image(self.make("x.tar"), "one")
        for reference in (image.id, image.digest, image.id[7:], image.id[7:19], "docker.io/library/one", "one:latest",
                          "library/one"):
            self.assertEqual("from the image\n", self.run_words(reference), reference)

    def test_a_new_image_takes_the_name(self):
        old = self.node.import_image(self.make("x.tar"), "one")
        new = self.node.import_image(self.make("y.tar", "--env", "MORE=1"), "one")
        self.assertNotEqual(old.id, new.id)
        self.assertEqual({old.id: [], new.id: ["docker.io/library/one:latest"]}, {i.id: list(i.names) for i in self.list()})

    def test_progress_then_the_image(self):
        answers = list(self.node.images.Import(nacre_pb2.ImportRequest(path=self.make("x.tar", "--layers", "3"), name="one")))
        self.assertTrue(answers[-1].HasField("image"))
        self.assertFalse(any(a.HasField("image") for a in answers[:-1]))
        self.assertTrue(all(a.progress for a in answers[:-1]))

    def test_layers_whiteouts_and_links(self):
        mk = images.module()
        lower = mk.Layer(mk.build_tar(mk.busybox_entries() + [
            ("d/gone", tarfile.REGTYPE, 0o644, b"1", ""), ("d/kept", tarfile.REGTYPE, 0o644, b"2", ""),
            ("o/old", tarfile.REGTYPE, 0o644, b"3", ""), ("f", tarfile.REGTYPE, 0o644, b"lower", ""),
            ("s", tarfile.SYMTYPE, 0o777, b"", "/d")]))
        upper = mk.Layer(mk.build_tar([
            ("d/.wh.gone", tarfile.REGTYPE, 0o644, b"", ""), ("o/.wh..wh..opq", tarfile.REGTYPE, 0o644, b"", ""),
            ("o/new", tarfile.REGTYPE, 0o644, b"4", ""), ("f", tarfile.REGTYPE, 0o600, b"upper", ""),
            ("h", tarfile.LNKTYPE, 0o600, b"", "f")]))
        path = os.path.join(self.dir, "x.tar")
        mk.write_image(path, [lower, upper], {"Cmd": ["sh"]})
        self.node.import_image(path, "layers")
        out = self.run_words("layers", "sh", "-c", "ls /d /o /s; cat /f /h; stat -c ' %a %h' /f /h; ls /d/.wh* /o/.wh*; echo .")
        self.assertEqual("/d:\nkept\n\n/o:\nnew\n\n/s:\nkept\n", out.partition("upper")[0])
        self.assertEqual("upperupper 600 2\n 600 2\n.\n", "upper" + out.partition("upper")[2])

    def test_what_is_no_image(self):
        cases = {
            "empty.tar": b"", "text.tar": b"hello\n" * 1000, "zeros.tar": bytes(10240),
        }
        before = self.node.baseline()
        for name, data in cases.items():
            path = os.path.join(self.dir, name)
            with open(path, "wb") as f:
                f.write(data)
            with self.subTest(name), self.assertRaises(grpc.RpcError) as caught:
                self.node.import_image(path, "bad")
            self.assertIn(caught.exception.code(), (Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION), caught.exception.details())
            self.assertRegex(caught.exception.details(), r"\S+ .*\S+")
            os.unlink(path)
        self.assertEqual([], self.list())
        self.assertEqual([], nacre_test.traces(before, self.node))

    def damage(self, what):
        """An OCI directory with one thing wrong."""
        layout = self.make("layout")
        blobs = os.path.join(layout, "blobs", "sha256")
        with open(os.path.join(layout, "index.json"), encoding="ascii") as f:
            index = json.load(f)
        manifest = index["manifests"][0]["digest"][7:]
        with open(os.path.join(blobs, manifest), encoding="ascii") as f:
            layer = json.load(f)["layers"][0]["digest"][7:]
        if what == "no index":
            os.unlink(os.path.join(layout, "index.json"))
        elif what == "index is no JSON":
            self.write(os.path.join(layout, "index.json"), b"{")
        elif what == "manifest missing":
            os.unlink(os.path.join(blobs, manifest))
        elif what == "layer missing":
            os.unlink(os.path.join(blobs, layer))
        elif what == "layer changed":
            with open(os.path.join(blobs, layer), "r+b") as f:
                f.seek(1000)
                f.write(b"!")
        elif what == "layer cut":
            os.truncate(os.path.join(blobs, layer), 1000)
        elif what == "other platform":
            shutil.rmtree(layout)
            self.make("layout", "--arch", "s390x")
        return layout

    def write(self, path, data):
        with open(path, "wb") as f:
            f.write(data)

    def test_damaged_images(self):
        before = self.node.baseline()
        for what in ("no index", "index is no JSON", "manifest missing", "layer missing", "layer changed", "layer cut",
                     "other platform"):
            layout = self.damage(what)
            with self.subTest(what), self.assertRaises(grpc.RpcError) as caught:
                self.node.import_image(layout, "bad")
            self.assertIn(caught.exception.code(), (Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION, Code.NOT_FOUND),
                          caught.exception.details())
            shutil.rmtree(layout)
            self.assertEqual([], self.list())
        self.assertEqual([], nacre_test.traces(before, self.node))

    def test_cancelled_import(self):
        path = self.make("x.tar", "--layers", "5")
        before = self.node.baseline()
        for _ in range(5):
            call = self.node.images.Import(nacre_pb2.ImportRequest(path=path, name="one"))
            next(call)
            call.cancel()

        def nothing_is_left():
            """An import that was over before it was cancelled is an image, and nothing else."""
            self.clear()
            return before == self.node.baseline()

        nacre_test.until(nothing_is_left, what=f"the node as before, {before}")
        self.check(path, "one")

    def test_the_same_import_five_times_at_once(self):
        path = self.make("x.tar", "--layers", "3")
        calls = [self.node.images.Import(nacre_pb2.ImportRequest(path=path, name=f"n{i % 2}")) for i in range(5)]
        self.assertEqual(1, len({list(c)[-1].image.id for c in calls}))
        image, = self.list()
        self.assertEqual(2, len(image.names))
        self.assertEqual("from the image\n", self.run_words("n1"))

    def test_hostile_layers_stay_inside(self):
        mk = images.module()
        canary = os.path.join(self.node.dir, "canary")
        entries = [
            ("../" * 12 + canary.lstrip("/"), tarfile.REGTYPE, 0o666, b"escaped", ""),
            ("link", tarfile.SYMTYPE, 0o777, b"", self.node.dir), ("link/canary", tarfile.REGTYPE, 0o666, b"escaped", ""),
        ]
        for n, entry in enumerate(entries[:1] + [entries[1:]]):
            many = entry if isinstance(entry, list) else [entry]
            out = os.path.join(self.dir, f"{n}.tar")
            mk.write_image(out, [mk.Layer(raw_tar(many))], {"Cmd": ["sh"]})
            try:
                self.node.import_image(out, f"hostile-{n}")
            except grpc.RpcError as e:
                self.assertIn(e.code(), (Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION))
            self.assertFalse(os.path.exists(canary))


def raw_tar(entries):
    """A tar with these very names, in this order, and no directories of ours."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, mode, data, link in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.linkname, info.size = kind, mode, link, len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Cells(steps.StepsTest):
    def test_runs_and_is_described(self):
        done = self.cell("one", container("sleep", "100000", env=["A=1"]))
        status, = done.containers
        self.assertEqual(("one", "main", "running", "busybox"), (done.name, status.name, status.state, status.image))
        self.assertEqual((0, 0, "", 0), (status.exit_code, status.signal, status.reason, status.finished_at))
        self.assertEqual("sleep\x00100000\0", host.read(f"/proc/{status.pid}/cmdline"))
        shown = self.inspect("one")
        self.assertEqual((done.id, "cell", "running", "own", ""),
                         (shown.id, shown.kind, shown.state, shown.network, shown.instance))
        self.assertEqual(status.pid, shown.containers[0].pid)
        self.assertEqual("sleep 100000", shown.containers[0].command)
        self.assertRegex(shown.containers[0].image_id, "^sha256:")
        self.assertEqual(self.inspect(done.id), shown)

    def group_of(self, pid):
        """The names of the group that a process is in."""
        path, = re.findall("^0::(.*)$", host.read(f"/proc/{pid}/cgroup"), re.M)
        return host.named(path)

    def test_walls_of_a_cell(self):
        status, = self.cell("one").containers
        own, its = namespaces("self"), namespaces(status.pid)
        self.assertEqual([], [n for n in own if own[n] == its[n]])
        self.assertEqual(1, pid_depth(status.pid))
        self.assertTrue(self.group_of(status.pid).endswith("/cell.one/main"))
        self.assertEqual("one\n", self.sh("one", "hostname"))
        self.assertEqual("lo\n", self.sh("one", "ls /sys/class/net"))
        self.assertIn("LOOPBACK,UP", self.sh("one", "ip link show lo"))

    def test_containers_of_a_cell_share_network_and_ipc(self):
        done = self.cell("two", container("sh", "-c", "while :; do echo hello | nc -l -p 8000; done", name="a"),
                         container("sleep", "100000", name="b"))
        a, b = (c.pid for c in done.containers)
        same = {n for n in steps.SPACES if namespaces(a)[n] == namespaces(b)[n]}
        self.assertEqual({"net", "ipc", "uts"}, same)
        nacre_test.until(lambda: self.exec("two", "nc", "-w", "2", "127.0.0.1", "8000", container="b")[0] == b"hello\n",
                         what="the answer over localhost")
        self.sh("two", "echo shared > /dev/shm/note", container="a")
        self.assertEqual("shared\n", self.sh("two", "cat /dev/shm/note", container="b"))
        self.cell("other")
        self.assertEqual("", self.sh("other", "ls /dev/shm"))

    def test_network_of_the_host(self):
        status, = self.cell("h", network="host").containers
        self.assertEqual(namespaces("self")["net"], namespaces(status.pid)["net"])
        self.assertNotEqual(namespaces("self")["ipc"], namespaces(status.pid)["ipc"])

    def test_root_file_system_is_its_own(self):
        self.cell("a")
        self.cell("b")
        self.sh("a", "echo mine > /file; rm /etc/group")
        self.assertEqual("no\n", self.sh("b", "test -e /file && echo yes || echo no"))
        self.assertIn("root", self.sh("b", "cat /etc/group"))
        self.remove("a", force=True)
        self.cell("a")
        self.assertEqual("no\n", self.sh("a", "test -e /file && echo yes || echo no"))

    def test_image_in_use_is_kept(self):
        self.cell("user")
        text = self.assertFails(Code.FAILED_PRECONDITION,
                                lambda: self.node.images.Remove(nacre_pb2.RemoveImageRequest(image="busybox")), "busybox")
        self.assertIn("use", text)
        self.stop("user")
        # Its files are still those of the image.
        self.assertFails(Code.FAILED_PRECONDITION,
                         lambda: self.node.images.Remove(nacre_pb2.RemoveImageRequest(image="busybox")), "busybox")

    def test_leaves_nothing(self):
        before = self.node.baseline()
        self.cell("one", *[container("sleep", "100000", name=f"c{i}") for i in range(5)])
        self.remove("one", force=True)
        self.assertNoTraces(before)

    def test_failing_containers_leave_nothing(self):
        before = self.node.baseline()
        for command in (["/no/such"], ["/etc/passwd"]):
            for _ in range(3):
                self.assertEqual("failed", self.cell("bad", container(*command)).containers[0].state)
                self.remove("bad")
        self.assertNoTraces(before)
