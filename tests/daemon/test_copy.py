# SPDX-License-Identifier: Apache-2.0
"""CopyFrom and CopyTo over the API, and `nacre cp`: bytes, modes, links, limits, and containers that mean no good."""
import hashlib
import os
import shutil
import stat
import tempfile

from grpc import StatusCode

import nacre_test
import nacre_pb2 as pb

Entry = pb.CopyEntry


class CopyTest(nacre_test.NodeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    def setUp(self):
        super().setUp()
        self.dir = tempfile.mkdtemp(prefix="copy.")
        self.addCleanup(shutil.rmtree, self.dir)
        self.node.cli("cell", "--name", "box", "busybox", "sleep", "100000")

    def tearDown(self):
        self.node.clear()
        super().tearDown()

    def sh(self, script):
        return self.node.cli("exec", "box", "sh", "-c", script).stdout

    def copy_from(self, path, target="box", **kwargs):
        """Entries with their data: [(entry, bytes)]."""
        entries = []
        for m in self.node.workloads.CopyFrom(pb.CopyFromRequest(target=target, path=path, **kwargs), timeout=60):
            if m.HasField("entry"):
                entries.append((m.entry, b""))
            else:
                entries[-1] = (entries[-1][0], entries[-1][1] + m.data)
        return entries

    def copy_to(self, path, *messages, target="box"):
        first = [pb.CopyToRequest(target=target, path=path)]
        return self.node.workloads.CopyTo(iter(first + list(messages)), timeout=60)

    @staticmethod
    def file(path, data=b"", mode=0o644, **kwargs):
        return pb.CopyToRequest(entry=Entry(type=Entry.TYPE_FILE, path=path, mode=mode, size=len(data), **kwargs), data=data)


class From(CopyTest):
    def test_tree(self):
        self.sh("mkdir -p /t/inner; cd /t; printf hello >a; chown 12:34 a; chmod 4711 a; ln -s /etc/passwd link; mkfifo fifo;"
                "printf x >inner/b; chmod 700 inner; touch -d @1000000000 a")
        found = {e.path: (e, data) for e, data in self.copy_from("/t")}
        self.assertEqual({b"t", b"t/a", b"t/link", b"t/fifo", b"t/inner", b"t/inner/b"}, set(found))
        a, data = found[b"t/a"]
        self.assertEqual((Entry.TYPE_FILE, 0o4711, 12, 34, 5, 10**18, b"hello"), (a.type, a.mode, a.uid, a.gid, a.size, a.mtime, data))
        self.assertEqual((Entry.TYPE_LINK, b"/etc/passwd"), (found[b"t/link"][0].type, found[b"t/link"][0].link_target))
        self.assertEqual((Entry.TYPE_OTHER, "it is a FIFO"), (found[b"t/fifo"][0].type, found[b"t/fifo"][0].reason))
        self.assertEqual((Entry.TYPE_DIRECTORY, 0o700), (found[b"t/inner"][0].type, found[b"t/inner"][0].mode))

    def test_absolute_link_begins_at_the_containers_root(self):
        self.sh("ln -s / /t; ln -s /../../../etc /up; echo mine >/etc/secret")
        self.assertEqual(b"mine\n", self.copy_from("/t/etc/secret")[0][1])
        self.assertEqual(b"mine\n", self.copy_from("/up/secret")[0][1])
        self.assertEqual(b"mine\n", self.copy_from("/../../../etc/secret")[0][1])
        self.sh("ln -s /proc/1/root /r; ln -s /proc/self/cwd /c")
        for path in ("/r/etc/secret", "/c/etc/secret", "/proc/1/root/etc/secret"):
            with self.assertRaises(Exception, msg=path):
                self.copy_from(path)

    def test_files_of_the_kernel_are_told_of_only(self):
        self.assertEqual([(Entry.TYPE_OTHER, "it is on a file system of the kernel")],
                         [(e.type, e.reason) for e, _ in self.copy_from("/proc")])

    def test_refusals(self):
        for code, request, word in (
                (StatusCode.NOT_FOUND, {"path": "/no/such"}, "/no/such"), (StatusCode.INVALID_ARGUMENT, {"path": "etc"}, "path"),
                (StatusCode.INVALID_ARGUMENT, {"path": ""}, "path"), (StatusCode.INVALID_ARGUMENT, {"path": "/" + "x" * 4095}, "path"),
                (StatusCode.NOT_FOUND, {"path": "/", "container": "x"}, "x"), (StatusCode.NOT_FOUND, {"path": "/", "target": "x"}, "x")):
            self.assertFails(code, lambda r=request: list(self.node.workloads.CopyFrom(pb.CopyFromRequest(**{"target": "box", **r}))), word)
        self.node.cli("stop", "-t", "0", "box")
        self.assertFails(StatusCode.FAILED_PRECONDITION, lambda: self.copy_from("/etc"))

    def test_what_never_ends(self):
        """A file that grows for ever is copied as it was; a directory deeper than the limit is refused."""
        self.sh("(while :; do echo more; done) >/grows 2>/dev/null & until [ -s /grows ]; do sleep 0.05; done; cd /; for i in $(seq 80); do mkdir d; cd d; done")
        entry, data = self.copy_from("/grows")[0]
        self.assertEqual(entry.size, len(data))
        self.assertFails(StatusCode.RESOURCE_EXHAUSTED, lambda: self.copy_from("/d"), "64")

    def test_reader_that_stops_costs_little(self):
        self.sh("dd if=/dev/zero of=/big bs=1M count=256 2>/dev/null")
        calls = [self.node.workloads.CopyFrom(pb.CopyFromRequest(target="box", path="/big")) for _ in range(16)]
        for call in calls:
            next(call)
        self.assertFails(StatusCode.RESOURCE_EXHAUSTED, lambda: self.copy_from("/big"), "16")
        with open(f"/proc/{self.node.pid}/status", encoding="ascii") as status:
            resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        if not nacre_test.SANITIZED:
            self.assertLess(resident, 64 << 10)
        for call in calls:
            call.cancel()
        nacre_test.until(lambda: self.copy_is_possible(), what="the end of the copies")

    def copy_is_possible(self):
        try:
            return self.copy_from("/etc/hostname") is not None
        except Exception as e:  # pylint: disable=broad-except
            return "16 copies" not in str(e)

    def test_cancelled_leaves_nothing(self):
        self.sh("dd if=/dev/zero of=/big bs=1M count=64 2>/dev/null")
        before = self.node.fds()
        for _ in range(8):
            call = self.node.workloads.CopyFrom(pb.CopyFromRequest(target="box", path="/big"))
            next(call)
            call.cancel()
        nacre_test.until(lambda: len(self.node.fds()) <= len(before), what="the end of its descriptors")


class To(CopyTest):
    def test_tree(self):
        answer = self.copy_to(
            "/etc", pb.CopyToRequest(entry=Entry(type=Entry.TYPE_DIRECTORY, path=b"t", mode=0o750, uid=1, gid=2)),
            self.file(b"t/\xff", b"hello ", 0o4755, uid=3, gid=4, mtime=10**18), pb.CopyToRequest(data=b"world"),
            pb.CopyToRequest(entry=Entry(type=Entry.TYPE_LINK, path=b"t/l", link_target=b"../passwd")))
        self.assertEqual((3, 11), (answer.entries, answer.bytes))
        self.assertEqual("hello world\n4755 3 4 1000000000\n750 1 2\n../passwd\n",
                         self.sh("cat /etc/t/*[!l]; echo; stat -c '%a %u %g %Y' /etc/t/*[!l]; stat -c '%a %u %g' /etc/t; readlink /etc/t/l"))

    def test_becomes_the_path(self):
        self.copy_to("/new", self.file(b"x", b"1"))
        self.copy_to("/new", self.file(b"y", b"2"))
        self.assertEqual("2", self.sh("cat /new"))
        self.assertFails(StatusCode.NOT_FOUND, lambda: self.copy_to("/no/such", self.file(b"x")), "/no")
        self.assertFails(StatusCode.NOT_FOUND, lambda: self.copy_to("/other/", self.file(b"x")), "/other")

    def test_links_do_not_lead_out(self):
        self.sh("ln -s /../../../../tmp /l; ln -s /etc /e")
        name = os.path.basename(self.dir)
        self.copy_to("/l", self.file(name.encode(), b"1"))
        self.assertTrue(os.path.isdir(self.dir))
        self.assertEqual("1", self.sh(f"cat /tmp/{name}"))
        for path in (b"../x", b"/x", b"a/../../x", b"", b".", b"x\0y", b"e/x/..", b"x" * 256):
            self.assertFails(StatusCode.INVALID_ARGUMENT, lambda p=path: self.copy_to("/", self.file(p)), "entry")
        # An entry goes through no link, also not one that stands there.
        with self.assertRaises(Exception):
            self.copy_to("/", self.file(b"e/x", b"1"))
        self.assertEqual("no\n", self.sh("test -e /etc/x && echo yes || echo no"))

    def test_kernel_and_odd_entries(self):
        self.assertFails(StatusCode.FAILED_PRECONDITION, lambda: self.copy_to("/proc/sys/kernel/hostname", self.file(b"x", b"1")), "kernel")
        for entry, word in ((Entry(type=Entry.TYPE_OTHER, path=b"x"), "type"), (Entry(path=b"x"), "type"), (Entry(type=9, path=b"x"), "type"),
                            (Entry(type=Entry.TYPE_FILE, path=b"x", mode=0o10000), "mode"),
                            (Entry(type=Entry.TYPE_LINK, path=b"x"), "link_target")):
            self.assertFails(StatusCode.INVALID_ARGUMENT, lambda e=entry: self.copy_to("/", pb.CopyToRequest(entry=e)), word)
        self.assertFails(StatusCode.INVALID_ARGUMENT, lambda: self.copy_to("/", pb.CopyToRequest(data=b"x")), "data")
        self.assertFails(StatusCode.INVALID_ARGUMENT, lambda: self.copy_to("/", self.file(b"x"), pb.CopyToRequest(path="/y")), "first")
        self.assertFails(StatusCode.INVALID_ARGUMENT, lambda: self.node.workloads.CopyTo(iter([])), "target")

    def test_fifo_in_the_way_is_replaced(self):
        self.sh("mkfifo /f")
        self.copy_to("/f", self.file(b"x", b"1"))
        self.assertEqual("1", self.sh("cat /f"))

    def test_what_is_not_complete_is_not_there(self):
        before = self.node.fds()

        def messages():
            yield pb.CopyToRequest(target="box", path="/", entry=Entry(type=Entry.TYPE_FILE, path=b"half", mode=0o644), data=b"x")
            nacre_test.until(lambda: self.sh("ls -A / | grep nacre- || true"), what="the file in hand")
            call.cancel()

        call = self.node.workloads.CopyTo.future(messages())
        with self.assertRaises(Exception):
            call.result()
        nacre_test.until(lambda: not self.sh("ls -A / | grep -E 'nacre-|half' || true"), what="nothing")
        nacre_test.until(lambda: len(self.node.fds()) <= len(before), what="the end of its descriptors")

    def test_container_that_ends_meanwhile(self):
        def messages():
            yield pb.CopyToRequest(target="box", path="/", entry=Entry(type=Entry.TYPE_FILE, path=b"half", mode=0o644), data=b"x")
            nacre_test.until(lambda: self.sh("ls -A / | grep nacre- || true"), what="the file in hand")
            self.node.cli("rm", "-f", "box")
            yield pb.CopyToRequest(data=b"y")

        try:
            self.node.workloads.CopyTo(messages(), timeout=60)
        except Exception as e:  # pylint: disable=broad-except
            self.assertIn(e.code(), (StatusCode.FAILED_PRECONDITION, StatusCode.INTERNAL))
        self.assertEqual([], self.node.json("ps", "-a"))


class CommandLine(CopyTest):
    def cp(self, *words, status=0):
        done = self.node.cli("cp", *words, check=False)
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stderr

    def local(self, name):
        return os.path.join(self.dir, name)

    def digest(self, path):
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def test_there_and_back(self):
        os.makedirs(self.local("tree/inner"), 0o750)
        with open(self.local("tree/inner/random"), "wb") as file:
            file.write(os.urandom(5 << 20))
        with open(self.local("tree/empty"), "wb"):
            pass
        os.chmod(self.local("tree/empty"), 0o6640)
        os.symlink("/etc/passwd", self.local("tree/link"))
        self.assertEqual("", self.cp(self.local("tree"), "box:/new"))
        self.assertEqual("", self.cp("box:/new", self.local("back")))
        self.assertEqual(self.digest(self.local("tree/inner/random")), self.digest(self.local("back/inner/random")))
        self.assertEqual("/etc/passwd", os.readlink(self.local("back/link")))
        self.assertEqual(0o640, stat.S_IMODE(os.stat(self.local("back/empty")).st_mode))
        self.assertEqual(os.stat(self.local("tree/inner/random")).st_mtime_ns, os.stat(self.local("back/inner/random")).st_mtime_ns)
        # Into a directory that is there; with --archive owners and all bits.
        os.mkdir(self.local("dir"))
        os.chown(self.local("tree/empty"), 7, 8)
        os.chmod(self.local("tree/empty"), 0o6640)
        self.cp("-a", self.local("tree/empty"), "box:/new")
        self.cp("--archive", "box:/new/empty", self.local("dir"))
        found = os.stat(self.local("dir/empty"))
        self.assertEqual((0o6640, 7, 8), (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid))

    def test_container_of_a_pod(self):
        self.node.cli("pod", "--name", "shop", "web=busybox", "sleep", "1000", "--", "db=busybox", "sleep", "1000")
        self.cp("/etc/hostname", "shop:db:/here")
        self.assertIn("container", self.cp("shop:/here", self.dir, status=125))
        self.assertIn("/here", self.cp("shop:web:/here", self.dir, status=125))
        self.cp("shop:db:/here", self.dir)
        self.assertEqual(self.digest("/etc/hostname"), self.digest(self.local("here")))

    def test_what_is_left_out(self):
        self.sh("mkdir /t; mkfifo /t/fifo; echo x >/t/x")
        self.assertEqual("nacre: cp: t/fifo is left out: it is a FIFO\n", self.cp("box:/t", self.dir, status=1))
        self.assertEqual(["x"], os.listdir(self.local("t")))
        os.mkfifo(self.local("t/mine"))
        self.assertEqual("nacre: cp: t/mine is left out: it is a FIFO\n", self.cp(self.local("t"), "box:/u", status=1))

    def test_mistakes(self):
        for words, text in ((["a", "b"], "one of the two"), (["x:/a", "y:/b"], "one of the two"), (["box:etc", "."], "begins with '/'"),
                            ([":/a", "b"], "TARGET:PATH"), (["box::/a", "b"], "TARGET:PATH"), (["box:/no", "/tmp"], "/no"),
                            (["/no/such", "box:/"], "/no/such"), (["box:/etc", "/no/such/dir"], "/no/such"), (["x:/a", "."], "x")):
            error = self.cp(*words, status=125)
            self.assertIn(text, error)
            self.assertRegex(error, r"\Anacre: [^\n]+\n\Z")
