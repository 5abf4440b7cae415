# SPDX-License-Identifier: Apache-2.0
"""CopyFrom and CopyTo over the API, and `nacre cp`: bytes, modes, links, limits, and containers that mean no good."""
import hashlib
import io
import os
import shutil
import socket
import stat
import subprocess
import tarfile
import tempfile
import unittest

from grpc import StatusCode

import images
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
        self.assertEqual((Entry.TYPE_FIFO, 0o644, ""), (found[b"t/fifo"][0].type, found[b"t/fifo"][0].mode, found[b"t/fifo"][0].reason))
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

    def test_what_never_ends(self):
        """A file that grows for ever is copied as it was; a directory deeper than the limit is refused."""
        self.sh("(while :; do echo more; done) >/grows 2>/dev/null & until [ -s /grows ]; do sleep 0.05; done; cd /; for i in $(seq 260); do mkdir d; cd d; done")
        entry, data = self.copy_from("/grows")[0]
        self.assertEqual(entry.size, len(data))
        self.assertFails(StatusCode.RESOURCE_EXHAUSTED, lambda: self.copy_from("/d"), "256")

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
        self.sh("mkdir /t; echo x >/t/x")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(f"/proc/{self.node.json('inspect', 'box')['containers'][0]['pid']}/root/t/sock")
        self.assertEqual("nacre: cp: t/sock is left out: it is a socket\n", self.cp("box:/t", self.dir, status=1))
        self.assertEqual(["x"], os.listdir(self.local("t")))
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.local("t/mine"))
        self.assertEqual("nacre: cp: t/mine is left out: it is a socket\n", self.cp(self.local("t"), "box:/u", status=1))

    def test_fifos_old_times_and_deep_directories(self):
        """As files and in archives; one that stands in the place of a file is not opened."""
        deep = "/".join(["d"] * 200)
        self.sh(f"mkdir -p /t/{deep}; cd /t; mkfifo -m 620 fifo; chown 12:34 fifo; touch -d @1000000000 fifo; echo x >old; echo end >{deep}/end;"
                "touch -d @-1000 old")
        self.cp("-a", "box:/t", self.dir)
        st = os.lstat(self.local("t/fifo"))
        self.assertEqual((stat.S_IFIFO | 0o620, 12, 34, 10**9), (st.st_mode, st.st_uid, st.st_gid, int(st.st_mtime)))
        self.assertEqual(0, os.stat(self.local("t/old")).st_mtime_ns)
        with open(self.local(f"t/{deep}/end"), encoding="ascii") as f:
            self.assertEqual("end\n", f.read())
        archive = subprocess.run([nacre_test.BINARY, "--socket", self.node.socket, "cp", "box:/t", "-"], check=True, stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            self.assertTrue(tar.getmember("t/fifo").isfifo())
            self.assertEqual((0, 0o620), (tar.getmember("t/old").mtime, tar.getmember("t/fifo").mode))
        self.sh("mkdir /u; echo file >/u/fifo")
        subprocess.run([nacre_test.BINARY, "--socket", self.node.socket, "cp", "-", "box:/u"], check=True, input=archive)
        self.assertEqual("prw--w----", self.sh("ls -l /u/t/fifo")[:10])
        self.cp(self.local("t/fifo"), "box:/u/fifo")
        self.assertEqual("p", self.sh("ls -l /u/fifo")[:1])

    def test_mistakes(self):
        for words, text in ((["a", "b"], "one of the two"), (["x:/a", "y:/b"], "one of the two"), (["box:no/etc", "."], "/no/etc"), (["-", "-"], "one of the two"),
                            (["box:", "."], "TARGET:PATH"), (["box:/etc", "-", "-o", "json"], "JSON"), ([":/a", "b"], "TARGET:PATH"), (["box::/a", "b"], "TARGET:PATH"), (["box:/no", "/tmp"], "/no"),
                            (["/no/such", "box:/"], "/no/such"), (["box:/etc", "/no/such/dir"], "/no/such"), (["x:/a", "."], "x")):
            error = self.cp(*words, status=125)
            self.assertIn(text, error)
            self.assertRegex(error, r"\Anacre: [^\n]+\n\Z")

    def argv(self, *words):
        return [nacre_test.BINARY, "--socket", self.node.socket, "cp", *words]

    def put(self, name, text="", mode=0o644):
        os.makedirs(os.path.dirname(self.local(name)), exist_ok=True)
        with open(self.local(name), "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(self.local(name), mode)

    def tree(self, name):
        """Paths below a local directory, with the text of files."""
        found = {}
        for top, dirs, files in os.walk(self.local(name)):
            for each in dirs + files:
                path = os.path.join(top, each)
                key = os.path.relpath(path, self.local(name))
                found[key] = None if os.path.isdir(path) else open(path, encoding="ascii").read()  # pylint: disable=consider-using-with
        return found

    def box(self, path):
        """The same of the container."""
        out = self.sh(f"cd {path} && find . -mindepth 1 | while read p; do p=${{p#./}}; [ -d $p ] && echo $p || echo $p=$(cat $p); done")
        return {line.partition("=")[0]: line.partition("=")[2] if "=" in line else None for line in out.splitlines()}

    def test_rules_of_docker_into_a_container(self):
        """SRC a file or a directory, DEST a file, a directory, absent, with and without '/' behind it."""
        self.put("f", "F")
        self.put("d/x", "X")
        os.symlink("d", self.local("l"))
        for source, dest, expected in (
                ("f", "file", {"file": "F", "dir": None}), ("f", "dir", {"dir": None, "dir/f": "F", "file": "old"}),
                ("f", "dir/", {"dir": None, "dir/f": "F", "file": "old"}), ("f", "new", {"dir": None, "new": "F", "file": "old"}),
                ("f", "new/", "there is no directory /m/new/"), ("f", "no/new", "there is no directory /m/no"), ("f", "file/", "/m/file is not a directory"),
                ("d", "dir", {"dir": None, "dir/d": None, "dir/d/x": "X", "file": "old"}), ("d/", "dir/", {"dir": None, "dir/d": None, "dir/d/x": "X", "file": "old"}),
                ("d", "new", {"dir": None, "new": None, "new/x": "X", "file": "old"}), ("d", "new/", {"dir": None, "new": None, "new/x": "X", "file": "old"}),
                ("d/.", "dir", {"dir": None, "dir/x": "X", "file": "old"}), ("d/.", "new", {"dir": None, "new": None, "new/x": "X", "file": "old"}),
                ("d/x/..", "dir", {"dir": None, "dir/d": None, "dir/d/x": "X", "file": "old"}),
                ("d", "file", "cannot copy a directory to /m/file, which is not a directory"), ("d/.", "file", "cannot copy a directory to /m/file"),
                ("f/.", "dir", "there is no directory"), ("f/", "dir", "there is no directory"),
                ("l/", "dir", {"dir": None, "dir/l": None, "dir/l/x": "X", "file": "old"})):
            with self.subTest(source=source, dest=dest):
                self.sh("rm -rf /m; mkdir -p /m/dir; printf old >/m/file")
                error = self.cp(self.local(source), f"box:/m/{dest}", status=125 if isinstance(expected, str) else 0)
                if isinstance(expected, str):
                    self.assertIn(expected, error)
                    expected = {"dir": None, "file": "old"}
                self.assertEqual(expected, self.box("/m"))

    def test_rules_of_docker_out_of_a_container(self):
        self.sh("mkdir -p /m/d; printf F >/m/f; printf X >/m/d/x; ln -s d /m/l; ln -s f /m/k")
        for source, dest, expected in (
                ("f", "file", {"file": "F", "dir": None}), ("f", "dir", {"dir": None, "dir/f": "F", "file": "old"}),
                ("f", "new", {"dir": None, "new": "F", "file": "old"}), ("f", "new/", "there is no directory"), ("f", "file/", "is not a directory"),
                ("d", "dir", {"dir": None, "dir/d": None, "dir/d/x": "X", "file": "old"}), ("d", "new", {"dir": None, "new": None, "new/x": "X", "file": "old"}),
                ("d/.", "dir", {"dir": None, "dir/x": "X", "file": "old"}), ("d/.", "new/", {"dir": None, "new": None, "new/x": "X", "file": "old"}),
                ("d", "file", "cannot copy a directory to"), ("f/.", "dir", "there is no directory /m/f/."),
                ("l/.", "dir", {"dir": None, "dir/x": "X", "file": "old"})):
            with self.subTest(source=source, dest=dest):
                shutil.rmtree(self.local("m"), ignore_errors=True)
                os.makedirs(self.local("m/dir"))
                self.put("m/file", "old")
                error = self.cp(f"box:/m/{source}", self.local(f"m/{dest}"), status=125 if isinstance(expected, str) else 0)
                if isinstance(expected, str):
                    self.assertIn(expected, error)
                    expected = {"dir": None, "file": "old"}
                self.assertEqual(expected, self.tree("m"))
        self.cp("box:/m/k", self.local("m/k"))
        self.assertEqual("f", os.readlink(self.local("m/k")))
        os.unlink(self.local("m/k"))
        self.cp("-L", "box:m/k", self.local("m/K"))
        self.assertEqual("F", self.tree("m")["K"])

    def test_root_and_working_directory(self):
        os.mkdir(self.local("all"))
        self.cp("box:/", self.local("all"), status=1)
        self.assertTrue(os.path.exists(self.local("all/bin/busybox")))
        self.put("w/x", "X")
        self.sh("mkdir /w")
        subprocess.run(self.argv(".", "box:/w"), cwd=self.local("w"), check=True)
        self.assertEqual({"x": "X"}, self.box("/w"))
        subprocess.run(self.argv("box:/w", "."), cwd=self.local("w"), check=True)
        self.assertEqual({"x": "X", "w": None, "w/x": "X"}, self.tree("w"))

    def test_link_at_the_destination(self):
        """It is followed, within the root of the container: also where what it names is missing yet."""
        self.put("f", "F")
        self.put("d/x", "X")
        self.sh("mkdir -p /m/real; printf old >/m/file; ln -s real /m/ld; ln -s file /m/lf; ln -s ../../../../m/new /m/ln; ln -s /m/loop /m/loop;"
                "ln -s /m/newdir /m/lnd")
        for source, dest in (("f", "ld"), ("f", "lf"), ("f", "ln"), ("d", "lnd"), ("d", "ld/")):
            self.assertEqual("", self.cp(self.local(source), f"box:/m/{dest}"))
        self.assertEqual("real file ../../../../m/new /m/newdir", self.sh("cd /m; for l in ld lf ln lnd; do readlink $l; done | xargs echo").strip())
        self.assertEqual("F F F X X", self.sh("cd /m; for f in real/f file new newdir/x real/d/x; do cat $f; echo; done | xargs echo").strip())
        self.assertIn("/m/loop", self.cp(self.local("f"), "box:/m/loop", status=125))
        self.assertIn("is a device", self.cp(self.local("f"), "box:/dev/null", status=125))
        # Here as well: but what is below the destination is never reached through one.
        os.symlink("elsewhere", self.local("link"))
        os.mkdir(self.local("elsewhere"))
        os.mkdir(self.local("out"))
        os.symlink("../elsewhere", self.local("out/real"))
        self.cp("box:/m/file", self.local("link"))
        self.assertEqual({"file": "F"}, self.tree("elsewhere"))
        self.assertIn("in the place of what is not a directory", self.cp("box:/m/real", self.local("out"), status=125))
        self.assertEqual({"file": "F"}, self.tree("elsewhere"))
        self.assertIn("is a device", self.cp("box:/m/file", "/dev/null", status=125))

    def test_file_and_directory_in_each_others_place(self):
        self.put("d/x", "X")
        self.sh("mkdir -p /m/d/x; mkdir /n; printf old >/n/d")
        self.assertIn("cannot put d/x in the place of a directory", self.cp(self.local("d"), "box:/m", status=125))
        self.assertIn("cannot put the directory d in the place", self.cp(self.local("d"), "box:/n", status=125))
        self.assertEqual("", self.sh("ls -A /m/d /n | grep nacre || true"))

    def test_hard_links_and_holes(self):
        self.put("t/a", "A")
        os.mkdir(self.local("t/in"))
        os.link(self.local("t/a"), self.local("t/in/b"))
        with open(self.local("t/sparse"), "wb") as file:
            file.truncate(1 << 40)
            file.seek(1 << 30)
            file.write(b"here")
        with open(self.local("t/empty"), "wb") as file:
            file.truncate(1 << 30)
        self.assertEqual("", self.cp(self.local("t"), "box:/t"))
        self.assertEqual("1", self.sh("stat -c %i /t/a /t/in/b | sort -u | wc -l").strip())
        self.assertEqual(f"{1 << 40} {1 << 30} here", self.sh("stat -c %s /t/sparse /t/empty | xargs printf '%s '; "
                                                                "dd if=/t/sparse bs=1M skip=1024 count=1 2>/dev/null | head -c 4"))
        self.assertEqual("", self.cp("box:/t", self.local("back")))
        self.assertEqual(os.stat(self.local("back/a")).st_ino, os.stat(self.local("back/in/b")).st_ino)
        found = os.stat(self.local("back/sparse"))
        self.assertEqual(1 << 40, found.st_size)
        self.assertLess(found.st_blocks, 4096)
        with open(self.local("back/sparse"), "rb") as file:
            file.seek(1 << 30)
            self.assertEqual(b"here\0", file.read(5))
        # Once more, over what is there.
        self.assertEqual("", self.cp("box:/t/.", self.local("back")))
        self.assertEqual({"a", "in", "sparse", "empty"}, set(os.listdir(self.local("back"))))

    def tar_of(self, path):
        done = subprocess.run(self.argv(f"box:{path}", "-"), capture_output=True, check=True)
        return tarfile.open(fileobj=io.BytesIO(done.stdout))

    def test_archive_out(self):
        self.sh("mkdir /t; cd /t; printf hello >a; chown 12:34 a; chmod 4711 a; ln a b; ln -s /etc/passwd l; mkdir -m 700 d; touch -d @1000000000 a;"
                "printf x | dd of=s bs=1 seek=1048576 2>/dev/null; truncate -s 1099511627776 s; touch $(printf n%.0s $(seq 200))")
        with self.tar_of("/t") as tar:
            found = {m.name: m for m in tar}
            self.assertEqual({"t", "t/a", "t/b", "t/l", "t/d", "t/s", "t/" + "n" * 200}, set(found))
            one, other = ("t/a", "t/b") if found["t/a"].isreg() else ("t/b", "t/a")
            a = found[one]
            self.assertEqual((0o4711, 12, 34, 5, 10**9, b"hello"), (a.mode, a.uid, a.gid, a.size, a.mtime, tar.extractfile(a).read()))
            self.assertTrue(found[other].islnk())
            self.assertEqual((one, "/etc/passwd", 0o700), (found[other].linkname, found["t/l"].linkname, found["t/d"].mode))
            self.assertEqual(1 << 40, found["t/s"].size)
        with self.tar_of("/t/.") as tar:
            self.assertIn("./a", tar.getnames())
        # GNU's tar reads it too.
        done = subprocess.run(f"{' '.join(self.argv('box:/t', '-'))} | tar -x -C {self.dir}", shell=True, capture_output=True, check=True)
        self.assertEqual(b"", done.stderr)
        self.assertEqual((1 << 40, True), (os.stat(self.local("t/s")).st_size, os.stat(self.local("t/s")).st_blocks < 4096))

    def test_archive_in(self):
        self.put("t/a", "A", 0o4755)
        os.chown(self.local("t/a"), 12, 34)
        os.chmod(self.local("t/a"), 0o4755)
        os.link(self.local("t/a"), self.local("t/b"))
        os.symlink("/etc/passwd", self.local("t/l"))
        self.put("t/" + "n" * 90 + "/" + "m" * 90, "long")
        with open(self.local("t/s"), "wb") as file:
            file.truncate(1 << 34)
            file.seek(1 << 33)
            file.write(b"here")
        for form in ("gnu", "posix", "ustar"):
            with self.subTest(form=form):
                self.sh("rm -rf /t; mkdir /t")
                holes = [] if form == "ustar" else ["-S"]
                exclude = ["--exclude=./s"] if form == "ustar" else []
                with subprocess.Popen(["tar", "-C", self.local("t"), f"--format={form}", *holes, *exclude, "-c", "."], stdout=subprocess.PIPE) as tar:
                    done = subprocess.run(self.argv("-", "box:/t"), stdin=tar.stdout, capture_output=True, check=False)
                self.assertEqual((0, b""), (done.returncode, done.stderr))
                self.assertEqual("4755 12 34 2\n/etc/passwd\nlong\n", self.sh("cd /t; stat -c '%a %u %g %h' a; readlink l; cat n*/m*; echo"))
                if holes:
                    self.assertEqual(f"{1 << 34} here", self.sh("cd /t; printf '%s ' $(stat -c %s s); dd if=s bs=1M skip=8192 count=1 2>/dev/null | head -c 4"))

    def archive(self, *members):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as tar:
            for name, kind, more in members:
                m = tarfile.TarInfo(name)
                m.type = kind
                if kind == tarfile.REGTYPE:
                    m.size = len(more)
                elif more:
                    m.linkname = more
                tar.addfile(m, io.BytesIO(more) if kind == tarfile.REGTYPE else None)
        return data.getvalue()

    def cp_in(self, data, dest="/t"):
        done = subprocess.run(self.argv("-", f"box:{dest}"), input=data, capture_output=True, check=False)
        return done.returncode, done.stderr.decode()

    def test_hostile_archives(self):
        self.sh("mkdir /t /out; echo old >/out/x; ln -s /out /t/l")
        reg, sym, hard = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
        for members, text in (
                ([("../out/x", reg, b"new")], '".."'), ([("a/../../out/x", reg, b"new")], '".."'), ([("l/x", reg, b"new")], "directory"),
                ([("k", sym, "/out"), ("k/x", reg, b"new")], "directory"), ([("h", hard, "../out/x")], '".."'), ([("h", hard, "l/x")], "hard link"),
                ([("h", hard, "no")], "hard link"), ([("/".join("d" * 300), reg, b"")], "deeper")):
            with self.subTest(members=members):
                status, error = self.cp_in(self.archive(*members))
                self.assertEqual(125, status)
                self.assertIn(text, error)
        self.assertEqual("old\n", self.sh("cat /out/x"))
        # An absolute name is one below the directory; directories that it does not tell of are made.
        self.assertEqual((0, ""), self.cp_in(self.archive(("/abs/x", reg, b"1"), ("./abs/y/z", reg, b"2"))))
        self.assertEqual("12", self.sh("cat /t/abs/x /t/abs/y/z"))
        self.assertEqual((1, "nacre: cp: dev is left out: it is a device\n"), self.cp_in(self.archive(("dev", tarfile.CHRTYPE, None), ("q", reg, b""))))
        whole = self.archive(("cut", reg, b"x" * 5000))
        self.assertIn("too early", self.cp_in(whole[:3000])[1])
        self.assertEqual((0, ""), self.cp_in(whole[:512 + 5000]))
        self.assertIn("gunzip", self.cp_in(b"\x1f\x8b\x08\0")[1])
        self.assertIn("not a tar archive", self.cp_in(b"hello" * 1000)[1])
        for dest, text in (("/no", "there is no directory /no"), ("/t/abs/x", "/t/abs/x is not a directory")):
            self.assertIn(text, self.cp_in(whole, dest)[1])

    def test_reader_of_archives_has_no_privilege(self):
        """It can read and write, and nothing else."""
        with subprocess.Popen([nacre_test.BINARY, "untar"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
            def filtered():
                with open(f"/proc/{reader.pid}/status", encoding="ascii") as status:
                    return dict(line.split(":\t", 1) for line in status.read().splitlines() if ":\t" in line)
            nacre_test.until(lambda: filtered()["Seccomp"] == "2", what="its filter")
            self.assertEqual("1", filtered()["NoNewPrivs"])
            self.assertEqual({"0", "1", "2"}, set(os.listdir(f"/proc/{reader.pid}/fd")))
            reader.stdin.close()
            reader.stdout.read()

    def test_stopped(self):
        self.sh("mkdir /t; echo 1 >/t/x; rm /bin/cat")
        self.node.cli("run", "--name", "gone", "-v", f"{self.dir}:/vol", "busybox", "sh", "-c", "echo 2 >/y; exit 3", check=False)
        self.node.cli("stop", "-t", "0", "box")
        before = self.node.fds()
        self.assertEqual("", self.cp("box:/t/x", self.local("x")))
        self.assertEqual("", self.cp("gone:/y", self.local("y")))
        self.assertEqual({"x": "1\n", "y": "2\n"}, self.tree("."))
        self.assertEqual(125, self.node.cli("cp", "box:/bin/cat", self.local("cat"), check=False).returncode)
        self.put("in/z", "3")
        for _ in range(2):
            self.assertEqual("", self.cp(self.local("in/."), "box:/t"))
        self.cp("box:/t", self.local("t"))
        self.assertEqual({"x": "1\n", "z": "3"}, self.tree("t"))
        self.assertIn("/vol", self.cp("gone:/vol/x", self.local("v"), status=125))
        self.assertIn("not mounted", self.cp(self.local("x"), "gone:/./vol/", status=125))
        nacre_test.until(lambda: len(self.node.fds()) <= len(before), what="the end of its descriptors")
        # Two at a time share what they need of it.
        calls = [self.node.workloads.CopyFrom(pb.CopyFromRequest(target="box", path="/bin/busybox")) for _ in range(3)]
        for call in calls:
            next(call)
        self.assertEqual("", self.cp(self.local("x"), "box:/t/w"))
        self.assertEqual(1, len({sum(len(m.data) for m in call) for call in calls}))
        self.assertEqual("1\n", self.copy_from("/t/w")[0][1].decode())
        self.node.cli("rm", "box")
        self.assertIn("box", self.cp("box:/t/x", self.local("q"), status=125))


class Messages(CopyTest):
    def test_sparse_and_hard_links(self):
        sparse = Entry(type=Entry.TYPE_SPARSE, path=b"s", mode=0o644, size=10, extents=[2, 3, 7, 1])
        self.copy_to("/tmp", pb.CopyToRequest(entry=sparse, data=b"ab"), pb.CopyToRequest(data=b"cd"),
                     pb.CopyToRequest(entry=Entry(type=Entry.TYPE_HARD_LINK, path=b"h", link_target=b"s")))
        self.assertEqual("00006162 63000064 0000 2", self.sh("cd /tmp; xxd -p s | sed 's/......../& /g' | xargs echo -n; stat -c ' %h' h").strip().replace("  ", " "))
        for extents, size in (([1], 9), ([3, 3, 2, 1], 9), ([0, 3, 2, 1], 9), ([0, 10], 9), ([10, 0], 9), ([0, 2**64 - 1], 9), ([5, 2**64 - 2], 2**64 - 1)):
            self.assertFails(StatusCode.INVALID_ARGUMENT, lambda e=extents, s=size: self.copy_to(
                "/tmp", pb.CopyToRequest(entry=Entry(type=Entry.TYPE_SPARSE, path=b"s", size=s, extents=e))), "entry")
        self.assertFails(StatusCode.INVALID_ARGUMENT, lambda: self.copy_to("/tmp", pb.CopyToRequest(entry=sparse, data=b"abcde")), "data")
        self.assertFails(StatusCode.INVALID_ARGUMENT, lambda: self.copy_to("/tmp", pb.CopyToRequest(
            entry=Entry(type=Entry.TYPE_FILE, path=b"s", extents=[0, 0]))), "extents")
        for target in (b"", b"../s", b"/tmp/s", b"."):
            self.assertFails(StatusCode.INVALID_ARGUMENT, lambda t=target: self.copy_to("/tmp", pb.CopyToRequest(
                entry=Entry(type=Entry.TYPE_HARD_LINK, path=b"q", link_target=t))), "entry")
        self.assertEqual("h s", self.sh("ls -A /tmp | xargs echo").strip())

    def test_without_exact_they_are_files(self):
        self.sh("mkdir /t; cd /t; echo 1 >a; ln a b; truncate -s 100000 s")
        self.assertEqual({Entry.TYPE_DIRECTORY: 1, Entry.TYPE_FILE: 3}, self.kinds(self.copy_from("/t")))
        self.assertEqual({Entry.TYPE_DIRECTORY: 1, Entry.TYPE_FILE: 1, Entry.TYPE_HARD_LINK: 1, Entry.TYPE_SPARSE: 1}, self.kinds(self.copy_from("/t", exact=True)))

    @staticmethod
    def kinds(entries):
        found = {}
        for e, _ in entries:
            found[e.type] = found.get(e.type, 0) + 1
        return found


CHANGE = """
set -e
echo x >/new; mkdir -p /d/e; echo x >/d/e/f; ln -s /etc /link
rm /etc/group; echo x >>/etc/passwd; chmod 711 /tmp
rm -r /var; mkdir /var; echo x >/var/own
mv /bin/true /bin/was-true
printf x >"$(printf '/od\\nd')"
"""
CHANGED = """A /d
A /d/e
A /d/e/f
A /link
A /new
A /od\\012d
C /bin
A /bin/was-true
D /bin/true
C /etc
C /etc/passwd
D /etc/group
C /tmp
C /var
A /var/own
D /var/log""".split("\n")


class Diff(nacre_test.NodeTest):
    OPTIONS = ((), ("--disk", "16m"), ("-v", "vol:/mnt/vol"))
    IMAGES = ()

    @classmethod
    def prepare(cls):
        path = images.make(os.path.join(cls.node.dir, "diff.tar"), "--busybox", "--cmd", "sh", "--dir", "/var/log", "--layers", "3")
        cls.node.import_image(path, "busybox")
        # What its roots lie upon is made with the first.
        cls.node.cli("run", "--rm", "busybox", "true")

    def setUp(self):
        self.addCleanup(self.node.clear)

    def diff(self, *words):
        return self.node.cli("diff", *words).stdout.splitlines()

    def test_what_a_container_changes(self):
        for options in self.OPTIONS:
            with self.subTest(options=options):
                self.node.cli("create", "--name", "web", *options, "busybox", "sh", "-c", CHANGE + "sleep 1000")
                self.assertEqual([], self.diff("web"))
                self.node.cli("start", "web")
                nacre_test.until(lambda: self.node.cli("exec", "web", "ls", "/", check=False).stdout.count("od"), what="it has written")
                if "--disk" in options:
                    self.assertIn("runs with a limit of its disk", self.node.cli("diff", "web", check=False).stderr)
                else:
                    self.assertEqual(sorted(CHANGED), sorted(l for l in self.diff("web") if "/mnt" not in l))
                self.node.restart()
                self.node.cli("stop", "-t", "0", "web")
                self.assertEqual(sorted(CHANGED), sorted(l for l in self.diff("web") if "/mnt" not in l))
                self.node.cli("start", "web")
                self.node.cli("rm", "-f", "web")
                if "-v" in options:
                    self.node.cli("volume", "rm", "vol")

    def test_refused(self):
        self.node.cli("execute", "--keep", "--name", "exe", "true")
        self.node.cli("spawn", "--name", "inner")
        self.node.cli("pod", "--name", "two", "a=busybox", "sleep", "1000", "--", "b=busybox", "sleep", "1000")
        for target, code, words in (("exe", StatusCode.INVALID_ARGUMENT, "target: exe is an executable"),
                                    ("inner", StatusCode.INVALID_ARGUMENT, "target: inner is an instance"),
                                    ("two", StatusCode.INVALID_ARGUMENT, "container: required"),
                                    ("nobody", StatusCode.NOT_FOUND, "nobody"), ("", StatusCode.INVALID_ARGUMENT, "target: required")):
            with self.subTest(target=target):
                self.assertFails(code, lambda t=target: list(self.node.workloads.Diff(pb.DiffRequest(target=t))), words)


@unittest.skipUnless(shutil.which("mkfs.erofs"), "mkfs.erofs is missing")
class DiffOnErofs(Diff):
    CONFIG = "images:\n  root: erofs\n"
    OPTIONS = ((),)
    test_refused = None
