# SPDX-License-Identifier: Apache-2.0
"""Roots that lie on one EROFS file of an image's layers (`images.root: erofs`): as on directories, name by name; made once for
all who wait; given up, failed and killed in the making; kept by what runs while the daemon is away; gone with the last of them."""
import functools
import importlib.util
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tarfile
import tempfile
import unittest

import grpc

import host
import images
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2

MKIMAGE = images.module()
Code = grpc.StatusCode
CONFIG = "images:\n  reserve: 0\n  root: erofs\n"


def corpus():
    """The builders of tars, field by field."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "image", "corpus.py")
    spec = importlib.util.spec_from_file_location("corpus", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


C = corpus()
ACL = {"SCHILY.acl.access": b"user::rwx,user:1:r-x:1,group::r--,mask::r-x,other::---"}
DEFAULT_ACL = {"SCHILY.acl.default": b"user::rwx,user:1:rwx:1,group::r--,mask::rwx,other::---"}
CAPABILITY = {"SCHILY.xattr.security.capability": b"\x01\0\0\x02" + b"\x20\0\0\0" + b"\0" * 12}


def lower_layer():
    """What the next layer hides, and what it does not. A device is nowhere, since nothing unpacks it."""
    return C.tar(
        C.entry(b"n/", C.DIR, mode=b"0000751\0"),
        C.entry(b"n/gone", data=b"1"), C.entry(b"n/gone-dir/x", data=b"1"), C.entry(b"n/again/old", data=b"1"),
        C.entry(b"n/opaque/hidden", data=b"1"), C.entry(b"n/opaque/deeper/hidden", data=b"1"),
        C.entry(b"n/merged/low", data=b"1"), C.entry(b"n/file-then-dir", data=b"1"), C.entry(b"n/dir-then-file/x", data=b"1"),
        C.entry(b"n/hard", data=b"linked" * 1000), C.entry(b"n/hard-2", C.LINK, link=b"n/hard"),
        C.entry(b"n/hard-gone", data=b"2"), C.entry(b"n/hard-left", C.LINK, link=b"n/hard-gone"),
        C.pax({"mtime": b"1234567890.123456789"}), C.entry(b"n/when", data=b"1"),
        C.pax({"mtime": b"0.000000001"}), C.entry(b"n/when-link", C.SYMLINK, link=b"/nowhere"),
        C.pax({"uid": b"4294967293", "gid": b"70000"}), C.entry(b"n/far", data=b"1"),
        C.entry(b"n/setuid", data=b"1", mode=b"0006755\0", uid=b"0000144\0"), C.entry(b"n/sticky/", C.DIR, mode=b"0001777\0"),
        C.entry(b"n/fifo", C.FIFO, mode=b"0000640\0"), C.entry(b"n/device", C.CHAR, major=1, minor=3),
        C.pax(CAPABILITY), C.entry(b"n/capable", data=b"1", mode=b"0000755\0"),
        C.pax(ACL), C.entry(b"n/acl", data=b"1"), C.pax(DEFAULT_ACL), C.entry(b"n/acl-dir/", C.DIR, mode=b"0000755\0"),
        C.pax({"SCHILY.xattr.user.short": b"v", "SCHILY.xattr.user.empty": b"", "SCHILY.xattr.user.long": b"x" * 3000}),
        C.entry(b"n/attributes", data=b"1"),
        *(C.pax({"SCHILY.xattr.user.shared": b"by many"}) + C.entry(b"n/shared-%d" % n, data=b"1") for n in range(8)),
        C.gnu_sparse(b"n/sparse", [(0, 512), (5 << 20, 512)], 10 << 20, b"a" * 1024),
        C.entry(b"n/" + b"l" * name_max(), data=b"1"), C.entry(b"n/" + "é".encode() * 127 + b"/" + b"m" * name_max(), data=b"1"),
        C.entry(b"n/raw-\xff\xfe", data=b"1"), C.entry(b"n/space and\ttab\nand line", data=b"1"),
        C.entry(b"n/link", C.SYMLINK, link=b"t" * 3000), C.entry(b"n/empty"), C.entry(b"n/block", data=b"b" * 4096),
        C.entry(b"n/block-and", data=b"b" * 4097), C.entry(b"n/large", data=bytes(range(256)) * 8192),
        *(C.entry(b"n/many/%05d" % n, data=b"%d" % n) for n in range(3000)))


def upper_layer():
    return C.tar(
        C.entry(b"n/.wh.gone"), C.entry(b"n/.wh.gone-dir"), C.entry(b"n/.wh.hard-gone"), C.entry(b"n/.wh.again"),
        C.entry(b"n/again/", C.DIR, mode=b"0000755\0"), C.entry(b"n/again/new", data=b"2"), C.entry(b"n/opaque/", C.DIR, mode=b"0000700\0"), C.entry(b"n/opaque/.wh..wh..opq"),
        C.entry(b"n/opaque/deeper/seen", data=b"2"), C.entry(b"n/merged/", C.DIR, mode=b"0000711\0"), C.entry(b"n/merged/high", data=b"2"),
        C.entry(b"n/file-then-dir/x", data=b"2"), C.entry(b"n/dir-then-file", data=b"2"),
        C.entry(b"n/" + b"w" * 251, data=b"2"))


def describe(path):
    """All that can be seen of one name but times of access and change, and where it is kept."""
    st = os.lstat(path)
    told = {"mode": oct(st.st_mode), "owner": (st.st_uid, st.st_gid), "device": st.st_rdev, "modified": st.st_mtime_ns,
            "attributes": {name: os.getxattr(path, name, follow_symlinks=False) for name in os.listxattr(path, follow_symlinks=False)}}
    if stat.S_ISLNK(st.st_mode):
        told["link"] = os.readlink(path)
    if stat.S_ISREG(st.st_mode):
        with open(path, "rb") as file:
            told["content"] = file.read()
    if not stat.S_ISDIR(st.st_mode):
        told["size"] = st.st_size
    return told


def tree(top):
    """{path: what it is}, without what is mounted and what each container has of its own; and the sets of hard links."""
    top = os.fsencode(top)
    found, links = {}, {}
    for folder, names, files in os.walk(top):
        if folder == top:
            for own in (b"proc", b"dev", b"sys"):
                names.remove(own)
        for name in names + files:
            path = os.path.join(folder, name)
            short = os.path.relpath(path, top)
            if short in (b"etc", b"etc/hosts", b"etc/hostname", b"etc/resolv.conf"):
                continue
            found[short] = describe(path)
            st = os.lstat(path)
            if not stat.S_ISDIR(st.st_mode):
                links.setdefault((st.st_dev, st.st_ino), set()).add(short)
    return found, {frozenset(paths) for paths in links.values()}


def superblocks():
    """File systems of the kind EROFS that this kernel has, mounted anywhere or nowhere."""
    return {name for name in os.listdir("/sys/fs/erofs") if name != "features"} if os.path.isdir("/sys/fs/erofs") else set()


def makers():
    """Processes of this test's cgroup that make a file, by pid; not those that nobody has reaped, nor those of a test beside it."""
    found = []
    own = host.own_cgroup()
    for pid in host.cgroup_pids(own) if own else filter(str.isdigit, os.listdir("/proc")):
        stat_line = host.read(f"/proc/{pid}/stat")
        if "(mkfs.erofs) " in stat_line and ") Z " not in stat_line:
            found.append(int(pid))
    return found


@functools.cache
def name_max():
    """How long a name mkfs.erofs takes: erofs-utils 1.5 does not know one of 255 bytes again."""
    with tempfile.TemporaryDirectory() as place:
        os.makedirs(place + "/tree/" + "x" * 255)
        done = subprocess.run(["mkfs.erofs", "--quiet", place + "/image", place + "/tree"], capture_output=True, check=False)
    return 254 if done.returncode else 255


def can():
    """Whether the kernel mounts files, by the doctor's word."""
    done = subprocess.run([nacre_test.BINARY, "doctor", "-o", "json"], capture_output=True, check=False, timeout=100 * nacre_test.SLOWNESS)
    return all(row["ok"] for row in json.loads(done.stdout) if row["check"] in ("EROFS files", "mkfs.erofs"))


class Base(unittest.TestCase):
    CONFIG = CONFIG

    def setUp(self):
        if not can():
            self.skipTest("the kernel mounts no file, or there is no mkfs.erofs")
        self.superblocks = superblocks()
        self.node = nacre_test.Node(self.CONFIG)
        self.addCleanup(self.node.destroy)
        self.addCleanup(self.leaves_nothing)
        # Those of busybox and what else the tests hand in.
        self.name = self.put("busybox", [MKIMAGE.build_tar(MKIMAGE.busybox_entries())])

    def leaves_nothing(self):
        if self.node.alive:
            self.node.clear()
            nacre_test.until(lambda: not superblocks() - self.superblocks, what="the end of all mounts of files")
            self.node.await_empty_staging()
            self.assertEqual([], list(self.node.info.Check(nacre_pb2.CheckRequest()).findings))
        self.assertEqual([], makers())

    def put(self, name, tars, node=None):
        node = node or self.node
        path = os.path.join(node.dir, name + ".tar")
        MKIMAGE.write_image(path, [MKIMAGE.Layer(t) for t in tars], {"Cmd": ["sh"]}, name)
        node.import_image(path, name)
        return name

    def big(self, name="big", size=1 << 30):
        """An image of which a file is some time in the making: a hole is nothing on the way, but a file of zeros behind it."""
        return self.put(name, [MKIMAGE.build_tar(MKIMAGE.busybox_entries()), C.tar(C.gnu_sparse(b"hole", [(0, 512)], size, b"a" * 512))])

    def restart_with(self, key, value):
        """What runs goes on, and lies on what it lay on."""
        with open(self.node.config, encoding="utf-8") as file:
            config = file.read()
        with open(self.node.config, "w", encoding="utf-8") as file:
            file.write(re.sub(rf"  {key}: \w+", f"  {key}: {value}", config))
        self.node.restart(signal.SIGTERM)

    def run_cell(self, name, image=None, *args, node=None, wait=True):
        request = runtime_pb2.RunCellRequest(meta=runtime_pb2.Meta(name=name), containers=[
            steps.container(*(args or ("sleep", "100000")), image=image or self.name)])
        call = (node or self.node).runtime.RunCell
        return call(request, timeout=200 * nacre_test.SLOWNESS) if wait else call.future(request)

    def pid(self, name):
        shown = {w.name: w for w in self.node.workloads.List(nacre_pb2.ListRequest()).workloads}
        return shown[name].containers[0].pid

    def root(self, name):
        return f"/proc/{self.pid(name)}/root"

    def on_a_file(self, name):
        """By the highest bits of an inode's number, which is how the overlay tells file systems apart."""
        return os.stat(self.root(name) + "/bin/busybox").st_ino >> 62 != 0

    def out(self, name, *args):
        return self.node.cli("exec", name, *args).stdout

    def remove(self, name):
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target=name, force=True))

    def files(self):
        return os.listdir(self.node.root + "/erofs")



class Users(Base):
    def test_a_pod_in_a_user_namespace(self):
        """The file is mounted with mapped ids then, once more for each root."""
        for name in ("p", "q"):
            self.node.cli("run", "-d", "--name", name, "--userns", "auto", self.name, "sleep", "1000")
            self.assertEqual("0:0 0:0", self.node.cli("exec", name, "sh", "-c", "touch /new; stat -c %u:%g /bin/busybox /new | xargs").stdout.strip())
            with open(f"/proc/{self.pid(name)}/uid_map", encoding="ascii") as maps:
                self.assertNotEqual("0", maps.read().split()[1])
        self.assertTrue(self.on_a_file("p"))

class Same(Base):
    def test_each_name_is_as_on_directories(self):
        tars = [MKIMAGE.build_tar(MKIMAGE.busybox_entries()), lower_layer(), upper_layer()]
        self.put("nasty", tars)
        self.run_cell("file", "nasty")
        self.restart_with("root", "overlay")
        self.run_cell("directories", "nasty")
        self.assertEqual([True, False], [self.on_a_file("file"), self.on_a_file("directories")])
        a, a_links = tree(self.root("file"))
        b, b_links = tree(self.root("directories"))
        self.assertGreater(len(a), 3300)
        self.assertEqual(sorted(a), sorted(b))
        for name, what in a.items():
            self.assertEqual(what, b[name], name)
        self.assertEqual(a_links, b_links)
        self.assertIn(frozenset((b"n/hard", b"n/hard-2")), a_links)
        for name in (b"n/gone", b"n/gone-dir", b"n/again/old", b"n/opaque/hidden", b"n/opaque/deeper/hidden", b"n/hard-gone", b"n/device"):
            self.assertNotIn(name, a)
        self.assertEqual(1234567890123456789, a[b"n/when"]["modified"])
        self.assertIn("system.posix_acl_access", a[b"n/acl"]["attributes"])
        self.assertIn("security.capability", a[b"n/capable"]["attributes"])

    def test_what_is_done_with_it(self):
        self.run_cell("a")
        self.run_cell("b")
        self.assertEqual("hello\n", self.out("a", "sh", "-c", "echo hello > /etc/new; cat /etc/new"))
        # What is written to is copied up, keeps its number, and is each one's own.
        before = os.stat(self.root("a") + "/etc/passwd")
        self.assertEqual(before.st_dev, os.stat(self.root("a")).st_dev)
        self.out("a", "sh", "-c", "echo x:x:7:7::/:/bin/sh >> /etc/passwd; rm /bin/ls; mv /etc/group /etc/moved; chmod 700 /tmp")
        after = os.stat(self.root("a") + "/etc/passwd")
        self.assertEqual((before.st_dev, before.st_ino), (after.st_dev, after.st_ino))
        self.assertIn("x:x:7", self.out("a", "cat", "/etc/passwd"))
        self.assertNotIn("x:x:7", self.out("b", "cat", "/etc/passwd"))
        self.assertIn("group", self.out("b", "ls", "/etc"))
        self.assertEqual("/etc/moved\n", self.out("a", "sh", "-c", "echo /etc/moved"))
        # Directories of the image can be moved or refuse it as they do on directories: cp and rm behind it always work.
        self.out("a", "sh", "-c", "cp -a /bin /bin2 && rm -r /bin2")
        path = os.path.join(self.node.dir, "copied")
        self.node.cli("cp", "b:/bin/busybox", path)
        with open(path, "rb") as copied, open("/bin/busybox", "rb") as own:
            self.assertEqual(own.read(), copied.read())
        self.node.cli("cp", path, "b:/bin/busybox2")
        self.assertEqual("there\n", self.out("b", "/bin/busybox2", "echo", "there"))
        # Nothing of it is seen by the image, whose blobs are what is exported.
        archive = os.path.join(self.node.dir, "exported.tar")
        self.node.cli("image", "export", self.name, archive)
        self.assertGreater(os.path.getsize(archive), 0)


class Many(Base):
    N = 20

    def test_one_mount_for_all_of_them(self):
        calls = [self.run_cell(f"c{n}", wait=False) for n in range(self.N)]
        for call in calls:
            self.assertEqual("running", call.result().containers[0].state)
        self.assertEqual(1, len(self.files()))
        self.assertEqual(1, len(superblocks() - self.superblocks))
        for n in range(self.N):
            self.assertTrue(self.on_a_file(f"c{n}"))
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            self.assertNotIn("erofs", mounts.read())
        for n in range(self.N - 1):
            self.remove(f"c{n}")
        self.assertEqual(1, len(superblocks() - self.superblocks))
        self.remove(f"c{self.N - 1}")
        nacre_test.until(lambda: not superblocks() - self.superblocks, what="the end of the mount")
        self.assertEqual(1, len(self.files()))

    def test_pods_and_a_read_only_root(self):
        self.assertEqual("one\n", self.node.cli("run", "--rm", self.name, "sh", "-c", "echo one").stdout)
        done = self.node.cli("run", "--rm", "--read-only", self.name, "sh", "-c", "echo > /x", check=False)
        self.assertIn("Read-only file system", done.stderr)

    def test_image_is_held_counted_and_pruned(self):
        self.run_cell("c")
        self.assertFails("is used", lambda: self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=self.name)))
        size = os.stat(os.path.join(self.node.root, "erofs", self.files()[0])).st_blocks * 512
        self.assertEqual(size, self.node.images.DiskUsage(nacre_pb2.DiskUsageRequest()).erofs_bytes)
        self.node.images.Prune(nacre_pb2.PruneImagesRequest(all=True))
        self.assertEqual(1, len(self.files()))
        self.assertEqual("1\n", self.out("c", "echo", "1"))
        self.remove("c")
        self.node.images.Prune(nacre_pb2.PruneImagesRequest(all=True))
        self.assertEqual([], self.files())

    def test_name_that_the_maker_does_not_take(self):
        if name_max() > 254:
            self.skipTest("this mkfs.erofs takes all names")
        self.put("long", [MKIMAGE.build_tar([*MKIMAGE.busybox_entries(), ("x" * 255, tarfile.REGTYPE, 0o644, b"", "")])])
        with self.assertRaises(grpc.RpcError) as caught:
            self.run_cell("c", "long")
        for word in ("make a file of image docker.io/library/long:latest: mkfs.erofs ended", "a name of 255 bytes"):
            self.assertIn(word, caught.exception.details())

    def assertFails(self, words, call):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        self.assertEqual(Code.FAILED_PRECONDITION, caught.exception.code())
        return words


class Away(Base):
    def test_daemon_is_killed_and_comes_again(self):
        self.run_cell("a")
        before = self.pid("a")
        self.node.restart()
        self.assertEqual(before, self.pid("a"))
        self.assertEqual("1\n", self.out("a", "sh", "-c", "echo 1 > /etc/x; cat /etc/x"))
        self.run_cell("b")
        self.assertTrue(self.on_a_file("a") and self.on_a_file("b"))
        with self.assertRaises(grpc.RpcError):
            self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=self.name))
        # What it lies on was decided when it was made.
        self.restart_with("root", "overlay")
        self.run_cell("c")
        self.assertEqual([True, True, False], [self.on_a_file(n) for n in "abc"])
        for name in "abc":
            self.remove(name)
        nacre_test.until(lambda: not superblocks() - self.superblocks, what="the end of all mounts")

    def test_daemon_is_killed_while_it_makes_one(self):
        name = self.big()
        call = self.run_cell("c", name, wait=False)
        nacre_test.until(makers, what="a file in the making")
        self.node.kill()
        nacre_test.until(lambda: not makers(), what="the end of its maker")
        self.assertIsInstance(call.exception(), grpc.RpcError)
        self.node.start()
        self.assertEqual([], self.files())
        nacre_test.until(lambda: not self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads, what="the end of what had not started")


class Making(Base):
    def hold(self, name):
        """A cell that waits for a file whose maker stands still: the call and the maker."""
        call = self.run_cell("c", name, wait=False)
        (pid,) = nacre_test.until(makers, what="a file in the making")
        os.kill(pid, signal.SIGSTOP)
        return call, pid

    def test_nothing_else_waits(self):
        call, pid = self.hold(self.big(size=500 << 20))
        self.run_cell("other")
        self.assertEqual("1\n", self.out("other", "echo", "1"))
        self.assertFalse(call.done())
        second = self.run_cell("d", "big", wait=False)
        os.kill(pid, signal.SIGCONT)
        for done in (call, second):
            self.assertEqual("running", done.result(timeout=200 * nacre_test.SLOWNESS).containers[0].state)
        self.assertEqual(str(500 << 20), self.out("c", "stat", "-c", "%s", "/hole").strip())

    def test_is_given_up_by_whoever_waits(self):
        name = self.big()
        call, pid = self.hold(name)
        second = self.run_cell("d", name, wait=False)
        nacre_test.until(lambda: len(self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads) == 2, what="both")
        # The first goes, the second waits on.
        self.remove("c")
        self.assertIsInstance(call.exception(), grpc.RpcError)
        self.assertEqual([pid], makers())
        self.remove("d")
        self.assertIsInstance(second.exception(), grpc.RpcError)
        nacre_test.until(lambda: not makers(), what="the end of the maker")
        self.assertEqual([], self.files())
        self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=name))

    def test_maker_is_killed(self):
        call, pid = self.hold(self.big())
        os.kill(pid, signal.SIGKILL)
        self.assertIn("mkfs.erofs was killed by signal 9", call.exception().details())
        self.remove("c")
        # The next one begins anew.
        call, pid = self.hold("big")
        self.remove("c")
        self.assertIsInstance(call.exception(), grpc.RpcError)

    def test_disk_is_nearly_full(self):
        self.restart_with("reserve", "1000000GiB")
        with self.assertRaises(grpc.RpcError) as caught:
            self.run_cell("c")
        self.assertEqual(Code.RESOURCE_EXHAUSTED, caught.exception.code())
        self.assertIn("(images.reserve)", caught.exception.details())
        self.assertEqual([], self.files())

    def test_disk_is_full(self):
        if not shutil.which("mkfs.ext4"):
            self.skipTest("mkfs.ext4 is not installed")
        with nacre_test.Node(CONFIG, start=False) as node:
            disk = os.path.join(node.dir, "disk")
            with open(disk, "wb") as file:
                file.truncate(100 << 20)
            subprocess.run(["mkfs.ext4", "-q", "-F", disk], check=True, capture_output=True)
            os.makedirs(node.root)
            done = subprocess.run(["mount", "-o", "loop", disk, node.root], capture_output=True, text=True, check=False)
            if done.returncode:
                self.skipTest(f"no loop device: {done.stderr.strip()}")
            node.start()
            self.put("big", [MKIMAGE.build_tar(MKIMAGE.busybox_entries()), C.tar(C.gnu_sparse(b"hole", [(0, 512)], 1 << 30, b"a" * 512))], node=node)
            with self.assertRaises(grpc.RpcError) as caught:
                self.run_cell("c", "big", node=node)
            self.assertIn("mkfs.erofs ended with status", caught.exception.details())
            node.await_empty_staging()
            self.assertEqual([], os.listdir(node.root + "/erofs"))
            node.clear()


class Refused(unittest.TestCase):
    """On a tmpfs, where no kernel can."""

    def node_on_tmpfs(self, root):
        node = nacre_test.Node(f"images:\n  root: {root}\n", start=False)
        self.addCleanup(node.destroy)
        os.makedirs(node.root)
        subprocess.run(["mount", "-t", "tmpfs", "none", node.root], check=True)
        node.start()
        images.ensure(node, "busybox")
        return node

    def test_erofs_says_why(self):
        node = self.node_on_tmpfs("erofs")
        with self.assertRaises(grpc.RpcError) as caught:
            node.runtime.RunCell(runtime_pb2.RunCellRequest(meta=runtime_pb2.Meta(name="c"), containers=[steps.container("true")]))
        self.assertEqual(Code.FAILED_PRECONDITION, caught.exception.code())
        self.assertRegex(caught.exception.details(), r"^images\.root is erofs: the kernel .*Linux 6\.")
        self.assertEqual([], list(node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads))
        done = node.cli("run", "--rm", "busybox", "true", check=False)
        self.assertNotEqual(0, done.returncode)
        self.assertIn("images.root is erofs: the kernel ", done.stderr)
        rows = {row["check"]: row for row in json.loads(node.cli("doctor", "-o", "json", check=False).stdout)}
        self.assertFalse(rows["EROFS files"]["ok"] or rows["EROFS files"]["essential"])
        self.assertIn("the kernel", rows["EROFS files"]["cause"])
        node.clear()

    def test_auto_does_without(self):
        node = self.node_on_tmpfs("auto")
        self.assertEqual("1\n", node.cli("run", "--rm", "busybox", "echo", "1").stdout)
        node.clear()


class Auto(Base):
    CONFIG = "images:\n  reserve: 0\n  root: auto\n"

    def test_takes_a_file_that_is_there(self):
        self.run_cell("a")
        self.assertEqual(([], False), (self.files(), self.on_a_file("a")))
        # Of another daemon's life, or of a microVM: here the former.
        for root in ("erofs", "auto"):
            self.restart_with("root", root)
            self.run_cell("on-" + root)
        self.assertEqual([False, True, True], [self.on_a_file(n) for n in ("a", "on-erofs", "on-auto")])
