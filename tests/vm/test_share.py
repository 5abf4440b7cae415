# SPDX-License-Identifier: Apache-2.0
"""Volumes of a microVM (src/vm/disk/share.h): virtiofsd in its jail, a real guest (tests/guest/share.c) in plain QEMU, and the node between."""
import contextlib
import errno
import fcntl
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import guest_kernel
import host
import nacre_test

DRIVER = os.path.join(nacre_test.BUILD, "src", "vm", "share-driver")
# What guests run is in the static build alone.
STATIC = os.path.join(nacre_test.ROOT, "build")
INIT = os.path.join(STATIC, "tests", "guest", "share")
QEMU = "qemu-system-x86_64"
KERNEL = os.path.join(nacre_test.ROOT, "build", "guest", "kernel")
VIRTIOFSD = "/usr/lib/qemu/virtiofsd"
MODULES = ("virtio_mmio", "virtio_console", "virtiofs")
# The guest's answers: it may be emulated, on a busy machine.
PATIENCE = 300 * nacre_test.SLOWNESS
MEMORY = "256M"
CAP_SYS_RESOURCE = 24
FILES_MAX = 1000000


def tsc_rate():
    """Of the host, which an emulated clock is told, so that it need not be measured."""
    done = subprocess.run([os.path.join(STATIC, "tests", "guest", "tsc")], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def missing():
    for path in (DRIVER, INIT, VIRTIOFSD):
        if not os.path.exists(path):
            return f"{path} is missing"
    if not shutil.which(QEMU):
        return f"{QEMU} is missing"
    return None if os.path.isdir(os.path.join(KERNEL, "boot")) else "no kernel: tools/guest-kernel fetches it"


class Driver:
    """src/vm/disk/share_test_driver.c."""

    def __init__(self, *args, **more):
        self.process = subprocess.Popen([DRIVER, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
        self.rest = b""
        _, self.pid, self.start = self.line().split()

    def line(self):
        while b"\n" not in self.rest:
            if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
                raise AssertionError(f"the driver has said nothing for {PATIENCE} s")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise AssertionError("the driver has ended")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()

    def say(self, *words):
        self.process.stdin.write((" ".join(words) + "\n").encode())
        self.process.stdin.flush()

    def ask(self, *words):
        self.say(*words)
        return self.line()

    def done(self, *words):
        """The number that a change ended with, and its text."""
        _, name, number, *text = self.ask(*words).split(" ", 3)
        assert name == words[1], name
        return int(number), "".join(text)

    def close(self):
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Guest:
    """One machine whose pid 1 does what it is told; with the virtiofsd of a driver."""

    def __init__(self, place):
        kernel = guest_kernel.Kernel(KERNEL)
        initrd = os.path.join(place, "initrd")
        with open(initrd, "wb") as f:
            f.write(kernel.first_root(INIT, MODULES))
        run = os.path.join(place, "run")
        os.mkdir(run, 0o700)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.driver = Driver(run, "start", str(theirs.fileno()), pass_fds=(theirs.fileno(),))
            _, (share,), _, _ = socket.recv_fds(ours, 1, 1)
        self.port, port = socket.socketpair()
        self.console = os.path.join(place, "console")
        # Not among the lines that the runner counts: it complains when virtiofsd ends.
        self.words_of_qemu = os.path.join(place, "qemu")
        with open(self.words_of_qemu, "w", encoding="utf-8") as words:
            self.qemu = subprocess.Popen(self.command(kernel, initrd, share, port.fileno()), stdin=subprocess.DEVNULL, stderr=words,
                                         pass_fds=(share, port.fileno()))
        os.close(share)
        port.close()
        self.port.settimeout(PATIENCE)
        self.words = self.port.makefile("r")
        self.expect("up")

    def command(self, kernel, initrd, share, port):
        return [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-m", MEMORY, "-smp", "1",
                "-M", "microvm,acpi=on,rtc=on,x-option-roms=off,memory-backend=mem", "-accel", "tcg", "-cpu", "max",
                "-object", f"memory-backend-memfd,id=mem,size={MEMORY},share=on", "-global", "virtio-mmio.force-legacy=false",
                "-kernel", kernel.image, "-initrd", initrd, "-serial", f"file:{self.console}",
                "-device", "virtio-serial-device", "-chardev", f"socket,id=port,fd={port}", "-device", "virtserialport,chardev=port",
                "-chardev", f"socket,id=share,fd={share}", "-device", "vhost-user-fs-device,queue-size=1024,chardev=share,tag=nacre",
                "-append", "console=ttyS0 reboot=t panic=-1 quiet norandmaps cryptomgr.notests no_timer_check mitigations=off audit=0 "
                f"tsc_early_khz={tsc_rate()} tsc=reliable"]

    def expect(self, what):
        line = self.words.readline()
        if not line:
            raise AssertionError("the guest has ended:\n" + host.read(self.console)[-4000:] + host.read(self.words_of_qemu))
        assert not what or line.split()[-1] == what, line
        return line.rstrip("\n")

    def ask(self, *words):
        """What the guest answers: "0 WHAT" or "-ERRNO". Without its virtiofsd it would not answer."""
        self.port.sendall((" ".join(str(w) for w in words) + "\n").encode())
        came, _, _ = select.select([self.port, self.driver.process.stdout], [], [], PATIENCE)
        if self.port not in came:
            raise AssertionError(f"{words}: {self.driver.line() if came else 'no answer'}")
        return self.expect("")

    def do(self, *words):
        answer = self.ask(*words)
        assert answer.startswith("0"), f"{words}: {answer}"
        return answer[2:]

    def close(self):
        self.qemu.kill()
        self.qemu.wait()
        self.words.close()
        self.port.close()


def host_mount(fs, where):
    subprocess.run(["mount", "-t", fs, "none", where], check=True)


def host_umount(where):
    subprocess.run(["umount", where], check=True)


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


@unittest.skipIf(missing(), missing())
class Shares(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.mkdtemp(prefix="ns-")
        cls.guest = Guest(cls.place)
        cls.driver = cls.guest.driver

    @classmethod
    def tearDownClass(cls):
        cls.guest.close()
        # QEMU is gone, so virtiofsd ends by itself.
        end = cls.driver.line()
        cls.driver.close()
        shutil.rmtree(cls.place)
        assert end == "end", end
        assert not os.path.exists(f"/proc/{cls.driver.pid}")

    def setUp(self):
        self.name = self.id().rpartition(".")[2].replace("test_", "")
        self.dir = os.path.join(self.place, self.name)
        os.mkdir(self.dir)

    def add(self, mode="rw", name=None, path=None):
        """A volume of this test's own, as the guest names it."""
        name = name or self.name
        self.assertEqual(self.driver.done("add", name, path or self.dir, mode), (0, ""))
        return f"/share/{name}"

    def file(self, name):
        return os.path.join(self.dir, name)

    def test_added_while_the_guest_runs(self):
        self.assertEqual(self.guest.ask("stat", f"/share/{self.name}"), "-ENOENT")
        at = self.add()
        write(self.file("hello"), "from-the-node")
        self.assertEqual(self.guest.do("read", f"{at}/hello"), "from-the-node")

    def test_both_ways_within_a_second(self):
        at, g = self.add(), self.guest
        write(self.file("seen"), "old")
        self.assertEqual(g.do("read", f"{at}/seen"), "old")
        threading.Timer(0.5, write, (self.file("seen"), "new")).start()
        self.assertLess(int(g.do("wait", f"{at}/seen", "new")), 1500)
        # Another file by the same name.
        write(self.file("other"), "newer")
        threading.Timer(0.5, os.replace, (self.file("other"), self.file("seen"))).start()
        self.assertLess(int(g.do("wait", f"{at}/seen", "newer")), 1500)
        # In a file that stays open.
        write(self.file("held"), "old")
        g.do("open", 1, f"{at}/held", "r")
        self.assertEqual(g.do("pread", 1), "old")
        write(self.file("held"), "new")
        time.sleep(1)
        self.assertEqual(g.do("pread", 1), "new")
        g.do("close", 1)
        # A name that was not there.
        threading.Timer(0.5, write, (self.file("made"), "x")).start()
        self.assertLess(int(g.do("wait", f"{at}/made", "x")), 1500)
        # And the other way there is nothing to wait for.
        g.do("write", f"{at}/back", "from-the-guest")
        self.assertEqual(read(self.file("back")), "from-the-guest")

    def test_mapped(self):
        at, g = self.add(), self.guest
        write(self.file("mapped"), "." * 4096)
        g.do("open", 1, f"{at}/mapped", "w")
        g.do("map", 1, "through-memory")
        self.assertTrue(read(self.file("mapped")).startswith("through-memory"))
        g.do("close", 1)

    def test_read_only(self):
        write(self.file("f"), "x")
        at, g = self.add("ro"), self.guest
        for words in (("write", f"{at}/f", "y"), ("write", f"{at}/new", "y"), ("unlink", f"{at}/f"), ("mkdir", f"{at}/d"),
                      ("chmod", f"{at}/f", "777"), ("chown", f"{at}/f", 1, 1), ("rename", f"{at}/f", f"{at}/g"),
                      ("symlink", "x", f"{at}/s"), ("link", f"{at}/f", f"{at}/l"), ("setxattr", f"{at}/f", "user.x", "y"),
                      # The directory that the volumes are in.
                      ("write", "/share/new", "x"), ("mkdir", "/share/new"), ("symlink", "/etc", "/share/new")):
            with self.subTest(words=words):
                self.assertEqual(g.ask(*words), "-EROFS")
        self.assertEqual(read(self.file("f")), "x")
        self.assertEqual(os.listdir(self.dir), ["f"])

    def test_one_file(self):
        write(self.file("f"), "one")
        at = self.add(path=self.file("f"))
        self.assertEqual(self.guest.do("read", at), "one")
        self.guest.do("write", at, "two")
        self.assertEqual(read(self.file("f")), "two")

    def test_links_end_in_the_guest(self):
        """While it is there (V04), whoever has made them."""
        outside = os.path.join(self.place, "outside-of-all")
        write(outside, "secret")
        at, g = self.add(), self.guest
        for i, target in enumerate(("../outside-of-all", outside, "/etc/passwd", "../../../../../../../etc/passwd",
                                    "../" * 20 + outside.lstrip("/"), "/proc/1/root" + outside, "/proc/self/cwd")):
            os.symlink(target, self.file(f"link{i}"))
            with self.subTest(target=target):
                self.assertEqual(g.do("readlink", f"{at}/link{i}"), target)
                self.assertIn(g.ask("read", f"{at}/link{i}"), ("-ENOENT", "-EISDIR"))
        # A link of the guest's own, to a name that is there on the node alone.
        g.do("symlink", outside, f"{at}/mine")
        self.assertEqual(g.ask("write", f"{at}/mine", "x"), "-ENOENT")
        self.assertEqual(read(outside), "secret")

    def test_nothing_above_a_volume(self):
        write(os.path.join(self.place, "canary"), "secret")
        # Names that nothing above it has.
        os.mkdir(self.file("in"))
        os.makedirs(self.file("in/first-in-it/second-in-it"))
        at, g = self.add(path=self.file("in")), self.guest
        g.do("ls", f"{at}/first-in-it/second-in-it")
        seen = set(g.do("handles", f"{at}/", 400).split())
        opened = next(w for w in seen if w.startswith("opened="))
        self.assertGreaterEqual(int(opened[7:]), 3, seen)
        self.assertIn("first-in-it", seen)
        self.assertIn(self.name, set(g.do("ls", "/share").split()))
        above = set(os.listdir("/")) | set(os.listdir(self.place)) - set(g.do("ls", "/share").split())
        self.assertFalse(seen & above, seen & above)

    def test_no_links_from_one_to_another(self):
        at, g = self.add(), self.guest
        other = self.add(name="other-volume", path=self.place)
        g.do("write", f"{at}/f", "x")
        self.assertEqual(g.ask("link", f"{at}/f", f"{other}/f"), "-EXDEV")
        self.assertEqual(g.ask("rename", f"{at}/f", f"{other}/f"), "-EXDEV")
        self.assertNotEqual(g.do("stat", f"{at}/").split()[5], g.do("stat", f"{other}/").split()[5])
        g.do("umount", other)
        self.assertGreaterEqual(self.driver.done("remove", "other-volume")[0], 0)

    def test_owners(self):
        at, g = self.add(), self.guest
        os.chmod(self.dir, 0o777)
        g.do("make_as", f"{at}/theirs", 1234)
        g.do("write", f"{at}/roots", "x")
        g.do("chown", f"{at}/roots", 77, 88)
        g.do("chmod", f"{at}/roots", "4755")
        self.assertEqual((os.stat(self.file("theirs")).st_uid, os.stat(self.file("theirs")).st_gid), (1234, 1234))
        st = os.stat(self.file("roots"))
        self.assertEqual((st.st_uid, st.st_gid, st.st_mode & 0o7777), (77, 88, 0o4755))
        # A file that is closed to everybody but its owner is not closed to the guest's root, and is to others.
        os.chmod(self.file("theirs"), 0o600)
        time.sleep(0.5)
        self.assertEqual(g.do("read", f"{at}/theirs"), "x")
        os.chmod(self.dir, 0o700)
        time.sleep(0.5)
        self.assertEqual(g.ask("make_as", f"{at}/no", 1234), "-EACCES")

    def test_devices(self):
        at, g = self.add(), self.guest
        self.assertEqual(g.ask("mknod", f"{at}/c", "c"), "-EPERM")
        self.assertEqual(g.ask("mknod", f"{at}/b", "b"), "-EPERM")
        g.do("mknod", f"{at}/p", "p")
        os.mknod(self.file("null"), 0o20666, os.makedev(1, 3))
        os.chmod(self.file("null"), 0o666)
        # A node of the node's: in the guest it is the guest's device, which its container's mount forbids.
        self.assertEqual(g.do("stat", f"{at}/null").split()[0], "20666")

    def test_attributes(self):
        at, g = self.add(), self.guest
        g.do("write", f"{at}/f", "x")
        g.do("setxattr", f"{at}/f", "user.color", "red")
        self.assertEqual(os.getxattr(self.file("f"), "user.color"), b"red")
        self.assertEqual(g.do("getxattr", f"{at}/f", "user.color"), "red")
        for name in ("security.capability", "trusted.x", "security.evil"):
            self.assertIn(g.ask("setxattr", f"{at}/f", name, "x"), ("-EPERM", "-EOPNOTSUPP", "-EINVAL"), name)

    def test_locks_hold_in_the_guest(self):
        at, g = self.add(), self.guest
        write(self.file("f"), "x")
        g.do("open", 1, f"{at}/f", "w")
        g.do("open", 2, f"{at}/f", "w")
        g.do("flock", 1)
        self.assertEqual(g.ask("flock", 2), "-EAGAIN")
        g.do("lock", 1)
        with open(self.file("f"), "r+", encoding="ascii") as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        g.do("close", 1)
        g.do("close", 2)

    def test_a_swap_is_seen_whole(self):
        def generation(i):
            os.mkdir(self.file(f"..{i}"))
            for name in "ab":
                write(self.file(f"..{i}/{name}"), f"{i}" * 100)
            os.symlink(f"..{i}", self.file("..new"))
            os.rename(self.file("..new"), self.file("..data"))
            # What was found through the old link a moment ago is still there (share.h).
            gone = [e for e in os.scandir(self.dir) if e.name[2:].isdigit() and int(e.name[2:]) < i
                    and os.stat(self.file(f"..{int(e.name[2:]) + 1}")).st_mtime < time.time() - 2]
            for e in gone:
                shutil.rmtree(e.path)

        generation(0)
        for name in "ab":
            os.symlink(f"..data/{name}", self.file(name))
        at = self.add("ro")
        stop = threading.Event()

        def swap():
            for i in range(1, 1000):
                if stop.wait(random.uniform(0.05, 0.6)):
                    return
                generation(i)

        thread = threading.Thread(target=swap)
        thread.start()
        n, torn, gone, values = map(int, self.guest.do("swap", at, 10).split())
        stop.set()
        thread.join()
        print(f"# {n} reads, {values} values, {gone} of nothing")
        self.assertEqual(torn, 0)
        self.assertGreater(values, 5)
        self.assertEqual(gone, 0)

    def held(self, mount_point):
        """What virtiofsd has open of a file system that was mounted there."""
        held = []
        for fd in os.listdir(f"/proc/{self.driver.pid}/fd"):
            # It may close one meanwhile.
            with contextlib.suppress(FileNotFoundError):
                if os.stat(f"/proc/{self.driver.pid}/fd/{fd}").st_dev == mount_point:
                    held.append(fd)
        return held

    def test_removed(self):
        host_mount("tmpfs", self.dir)
        self.addCleanup(host_umount, self.dir)
        device = os.stat(self.dir).st_dev
        write(self.file("f"), "x")
        at, g = self.add(), self.guest
        g.do("read", f"{at}/f")
        g.do("open", 1, f"{at}/f", "r")
        self.assertEqual(g.ask("umount", at), "-EBUSY")
        g.do("close", 1)
        self.assertTrue(self.held(device))
        g.do("umount", at)
        self.assertGreaterEqual(self.driver.done("remove", self.name)[0], 0)
        time.sleep(0.5)
        self.assertEqual(g.ask("stat", at), "-ENOENT")
        nacre_test.until(lambda: not self.held(device), what="virtiofsd lets go")
        self.assertEqual(self.driver.done("remove", self.name)[0], -errno.ENOENT)
        # The name is free again.
        self.add("ro")
        self.assertEqual(g.do("read", f"{at}/f"), "x")
        code, text = self.driver.done("add", self.name, self.dir, "rw")
        self.assertEqual(code, -errno.EEXIST)
        self.assertIn("there is a mount", text)

    def test_removed_with_links_in_it(self):
        """What a guest has put into a volume leads nobody anywhere when that is taken away (V02): no mount of the node's goes."""
        at, g = self.add(), self.guest
        before = host.mounts()
        g.do("symlink", "/", f"{at}/root")
        g.do("symlink", self.place, f"{at}/{self.name}")
        g.do("umount", at)
        self.assertGreaterEqual(self.driver.done("remove", self.name)[0], 0)
        self.assertEqual(before, host.mounts())
        self.assertEqual({"root", self.name}, set(os.listdir(self.dir)))

    def test_removed_while_open(self):
        write(self.file("f"), "x")
        at, g = self.add(), self.guest
        g.do("open", 1, f"{at}/f", "r")
        self.assertEqual(self.driver.done("remove", self.name), (1, ""))
        self.assertEqual(g.do("pread", 1), "x")
        self.assertEqual(g.ask("write", f"{at}/f", "y"), "-EROFS")
        self.assertEqual(read(self.file("f")), "x")
        g.do("close", 1)

    def test_names(self):
        for name in ("..", ".x", "a/b", "-x", "x" * 65):
            with self.subTest(name=name):
                self.assertEqual(self.driver.done("add", name, self.dir, "rw")[0], -1)
        self.add(name="x" * 64)

    def test_many_at_once(self):
        """More threads in virtiofsd than it has in peace; libc then asks for what its filter would kill it for."""
        at = self.add()
        self.guest.do("churn", at, 24, 4)
        self.assertEqual(os.listdir(self.dir), [])

    def test_jail(self):
        """What a virtiofsd that was taken over would have (V10)."""
        at = f"/proc/{self.driver.pid}"
        status = dict(re.findall(r"^(\w+):\t(.*)$", read(f"{at}/status"), re.M))
        # CHOWN DAC_OVERRIDE FOWNER FSETID SETGID SETUID
        kept = f"{0b11011011:016x}"
        self.assertEqual({k: status[k] for k in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp")},
                         {"CapPrm": kept, "CapEff": kept, "CapBnd": f"{0:016x}", "CapInh": f"{0:016x}", "CapAmb": f"{0:016x}",
                          "NoNewPrivs": "1", "Seccomp": "2"})
        for kind in ("mnt", "pid", "net", "ipc", "uts", "user"):
            self.assertNotEqual(os.readlink(f"{at}/ns/{kind}"), os.readlink(f"/proc/self/ns/{kind}"), kind)
        # What the daemon cannot raise is the daemon's own.
        may_raise = int(re.search(r"CapEff:\s(\w+)", read("/proc/self/status")).group(1), 16) >> CAP_SYS_RESOURCE & 1
        most = FILES_MAX if may_raise else min(FILES_MAX, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        self.assertEqual(resource.prlimit(int(self.driver.pid), resource.RLIMIT_NOFILE), (most, most))
        mounts = {line.split()[4]: line.split()[5] for line in read(f"{at}/mountinfo").splitlines()}
        self.assertIn("ro,", mounts["/"])

    def test_speed(self):
        at, g = self.add(), self.guest
        write(self.file("f"), "x")
        os.makedirs(self.file("a/b/c"))
        write(self.file("a/b/c/f"), "x")
        print("# write 32 MiB:", g.do("throughput", f"{at}/big", "w", 32))
        print("# read 32 MiB again:", g.do("throughput", f"{at}/big", "r", 32))
        write(self.file("node"), "x" * (32 << 20))
        print("# read 32 MiB of the node's:", g.do("throughput", f"{at}/node", "r", 32))
        print("# stat:", g.do("latency", f"{at}/f", "s", 500))
        print("# stat, deep:", g.do("latency", f"{at}/a/b/c/f", "s", 500))
        print("# open, read, close:", g.do("latency", f"{at}/f", "r", 500))


@unittest.skipIf(missing(), missing())
class Ends(unittest.TestCase):
    """A machine for each: how it ends, and who tells."""

    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="ns-")
        self.addCleanup(shutil.rmtree, self.place)
        self.guest = Guest(self.place)
        self.driver = self.guest.driver
        self.addCleanup(self.leaves_nothing)
        self.addCleanup(self.guest.close)

    def leaves_nothing(self):
        self.driver.close()
        # Who lost its parent waits for another one to take it away.
        self.assertRegex(host.read(f"/proc/{self.driver.pid}/stat", "none) Z"), r"\) Z")
        self.assertEqual(os.listdir(os.path.join(self.place, "run")), [])

    def test_killed(self):
        os.kill(int(self.driver.pid), signal.SIGKILL)
        self.assertEqual(self.driver.line(), "end virtiofsd was killed by signal 9")

    def test_stopped(self):
        self.assertEqual(self.driver.ask("stop"), "end")

    def test_adopted(self):
        """A driver that was killed, and another one that goes on."""
        run = os.path.join(self.place, "run")
        volume = os.path.join(self.place, "volume")
        os.mkdir(volume)
        self.assertEqual(self.driver.done("add", "before", volume, "rw"), (0, ""))
        self.driver.process.kill()
        self.driver.close()
        self.driver = self.guest.driver = Driver(run, "adopt", self.driver.pid, self.driver.start)
        self.assertEqual(self.driver.done("add", "after", volume, "rw"), (0, ""))
        self.guest.do("write", "/share/after/f", "after")
        self.assertEqual(read(os.path.join(volume, "f")), "after")
        self.assertEqual(self.guest.do("read", "/share/before/f"), "after")
        self.assertGreaterEqual(self.driver.done("remove", "before")[0], 0)
        wrong = subprocess.run([DRIVER, run, "adopt", self.driver.pid, "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               check=False)
        self.assertEqual((wrong.returncode, wrong.stderr), (1, "virtiofsd is gone\n"))
        self.assertEqual(self.driver.ask("stop"), "end")


if __name__ == "__main__":
    unittest.main()
