# SPDX-License-Identifier: Apache-2.0
"""A machine without the daemon: vm-driver starts real QEMU, jailed, with Debian's kernel and a pid 1 of tests/guest/slots.c."""
import fcntl
import hashlib
import os
import queue
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
import unittest

import guest_kernel
import host
import nacre_test

DRIVER = os.path.join(nacre_test.BUILD, "src", "vm", "vm-driver")
INIT = os.path.join(nacre_test.ROOT, "build", "tests", "guest", "slots")
KERNEL = os.path.join(nacre_test.ROOT, "build", "guest", "kernel")
MODULES = ("virtio_mmio", "virtio_blk", "virtio_net", "virtio_rng", "pvpanic-mmio", "button", "vfat", "nls_cp437", "nls_ascii")
USER = 64001
PATIENCE = 120
POWERED_OFF, RESET, PANIC, ASKED, NOT_STARTED, BROKEN, CRASHED, UNSEEN = range(8)


def file_of(path):
    with open(path, "rb") as f:
        return f.read()


class Machine:
    """A vm-driver and what it says. Ends with its machine."""

    def __init__(self, place, group, *command):
        self.place, self.group, self.lines, self.seen = place, group, queue.Queue(), []
        self.process = subprocess.Popen([DRIVER, place, group, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.pid = int(self.expect(r"pid (\d+)").group(1))

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\r\n"))
        self.lines.put(None)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def expect(self, pattern):
        """The first line from here on that is like this."""
        end = time.monotonic() + PATIENCE * nacre_test.SLOWNESS
        while time.monotonic() < end:
            try:
                line = self.lines.get(timeout=1)
            except queue.Empty:
                continue
            if line is None:
                break
            self.seen.append(line)
            found = re.fullmatch(pattern, line)
            if found:
                return found
        raise AssertionError(f"no {pattern!r} came, but\n" + "\n".join(self.seen[-40:]))

    def type(self, line, pattern):
        self.say("type " + line)
        return self.expect(r"\| .*" + pattern)

    def end(self):
        """(cause, text) of its end."""
        found = self.expect(r"end (\d+) (.*)")
        self.process.wait(PATIENCE)
        return int(found.group(1)), found.group(2)

    def leave(self):
        """Only the driver ends."""
        self.process.kill()
        self.process.wait()

    def close(self):
        self.leave()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()


class MachineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("qemu-system-x86_64"):
            raise unittest.SkipTest("qemu-system-x86_64 is not installed")
        if not os.path.exists(INIT):
            raise unittest.SkipTest(INIT + " is not built")
        try:
            cls.kernel = guest_kernel.Kernel(KERNEL)
        except guest_kernel.Missing as e:
            raise unittest.SkipTest(str(e)) from e
        cls.top = tempfile.mkdtemp(prefix="nacre-machine-")
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.initrd = os.path.join(cls.top, "initrd")
        modules = cls.kernel.modules(MODULES)
        entries = [("init", stat.S_IFREG | 0o755, file_of(INIT)), ("modules", stat.S_IFDIR | 0o755, b""),
                   ("modules/list", stat.S_IFREG | 0o644, "".join(f"/modules/{n}.ko\n" for n, _ in modules).encode())]
        entries += [(f"modules/{n}.ko", stat.S_IFREG | 0o644, data) for n, data in modules]
        with open(cls.initrd, "wb") as f:
            f.write(b"".join(guest_kernel.cpio(*e) for e in entries) + guest_kernel.cpio("TRAILER!!!", 0, b""))

    def setUp(self):
        self.enter_place()

    def enter_place(self):
        """A directory and a group for one machine more."""
        self.place = tempfile.mkdtemp(dir=self.top)
        self.group = os.path.join(host.own_cgroup(), "vmm-" + os.path.basename(self.place))
        os.mkdir(self.group)
        self.addCleanup(host.end_cgroup, self.group)

    def start(self, slots=2, writable=0, tap=("-",), template=()):
        machine = Machine(self.place, self.group, "start", self.kernel.image, self.initrd, str(USER), str(slots), str(writable), *tap, *template)
        self.addCleanup(machine.close)
        return machine

    def up(self, **kwargs):
        machine = self.start(**kwargs)
        machine.expect(r"up 1")
        machine.expect(r"\| @up")
        return machine

    def adopt(self):
        machine = Machine(self.place, self.group, "adopt")
        self.addCleanup(machine.close)
        machine.expect(r"up 1")
        return machine

    def assertEnds(self, machine, cause, sentence):
        self.assertEqual((cause, sentence), machine.end(), machine.seen)
        self.assertEqual(set(), host.cgroup_pids(self.group))

    def disk(self, name, text):
        path = os.path.join(self.place, name)
        with open(path, "wb") as f:
            f.write(text.encode() + b"\n" + bytes(1 << 20))
        return path


class Jail(MachineTest):
    """What the jail promises (vm/driver/jail.h), as the kernel shows it."""

    def setUp(self):
        super().setUp()
        self.machine = self.up(tap=("tap0",))
        self.proc = f"/proc/{self.machine.pid}"
        with open(self.proc + "/status", encoding="ascii") as f:
            self.status = {name: value.split() for name, _, value in (line.partition(":") for line in f)}

    def tearDown(self):
        self.machine.say("kill")
        self.assertEnds(self.machine, ASKED, "the machine was ended")

    def test_holds(self):
        self.user()
        self.namespaces()
        self.files()
        self.descriptors()
        self.limits()

    def user(self):
        self.assertEqual([str(USER)] * 4, self.status["Uid"])
        self.assertEqual([str(USER)] * 4, self.status["Gid"])
        self.assertLessEqual(set(self.status["Groups"]), {str(USER)})
        for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(0, int(self.status[kind][0], 16), kind)
        self.assertEqual(["1"], self.status["NoNewPrivs"])
        self.assertEqual(["2"], self.status["Seccomp"])
        # The container's, and those of -sandbox.
        self.assertGreater(int(self.status["Seccomp_filters"][0]), 1)
        for task in os.listdir(self.proc + "/task"):
            status = file_of(f"{self.proc}/task/{task}/status").decode()
            self.assertRegex(status, r"Seccomp:\t2\n")

    def namespaces(self):
        for name in ("pid", "mnt", "ipc", "uts", "cgroup", "net"):
            self.assertNotEqual(os.readlink(f"/proc/self/ns/{name}"), os.readlink(f"{self.proc}/ns/{name}"), name)
        self.assertEqual("1", self.status["NSpid"][-1])
        with open(self.proc + "/net/dev", encoding="ascii") as f:
            devices = [line.partition(":")[0].strip() for line in f if ":" in line]
        # Its device came by descriptor, and stands where it was made.
        self.assertEqual(["lo"], devices)
        self.assertTrue(os.path.exists("/proc/self/net/dev") and "tap0" in file_of("/proc/self/net/dev").decode())
        with open(self.proc + "/cgroup", encoding="ascii") as f:
            self.assertIn(os.path.basename(self.group), f.read())

    def files(self):
        with open(self.proc + "/mountinfo", encoding="utf-8") as f:
            mounts = {line.split()[4]: line.split()[5] for line in f}
        self.assertLessEqual({"/", "/proc", "/usr/bin/qemu-system-x86_64"}, set(mounts))
        self.assertLessEqual(set(mounts), {"/", "/proc", "/usr/bin/qemu-system-x86_64", "/etc/ld.so.cache", "/lib64", "/usr/lib64",
                                           "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"})
        for target, options in mounts.items():
            self.assertTrue({"ro", "nosuid", "nodev"} <= set(options.split(",")), (target, options))
        self.assertEqual({"etc", "lib", "lib64", "proc", "usr"}, set(os.listdir(self.proc + "/root")))
        self.assertEqual({"bin", "lib", "lib64"}, set(os.listdir(self.proc + "/root/usr")))
        self.assertEqual(["qemu-system-x86_64"], os.listdir(self.proc + "/root/usr/bin"))
        self.assertEqual({"1", "self", "thread-self"}, set(os.listdir(self.proc + "/root/proc")))

    def descriptors(self):
        firmware = r".*/(bios-microvm\.bin|qboot\.rom)"
        known = (r"/dev/null", re.escape(self.place) + r"/vmm\.err", re.escape(self.kernel.image), re.escape(self.initrd), firmware,
                 r"/dev/net/tun", r"socket:\[\d+\]", r"pipe:\[\d+\]", r"anon_inode:(\[eventfd\]|\[eventpoll\]|\[signalfd\]|\[timerfd\])",
                 r"/memfd:.*")
        for fd in os.listdir(self.proc + "/fd"):
            target = os.readlink(f"{self.proc}/fd/{fd}")
            self.assertTrue(any(re.fullmatch(k, target) for k in known), (fd, target))

    def limits(self):
        with open(self.proc + "/limits", encoding="ascii") as f:
            limits = {line[:26].strip(): line[26:].split()[:2] for line in f}
        self.assertEqual((["0", "0"], ["1024", "1024"], ["256", "256"]),
                         tuple(limits[name] for name in ("Max core file size", "Max open files", "Max processes")))
        with open(self.proc + "/smaps_rollup", encoding="ascii") as f:
            pss = re.search(r"^Pss: +(\d+) kB", f.read(), re.M).group(1)
        print(f"# PSS of the monitor of a machine with 160 MiB: {int(pss) // 1024} MiB")


class Disks(MachineTest):
    def test_come_and_go_while_it_runs(self):
        machine = self.up(slots=3, writable=4)
        machine.type("slots", "@slot slot2 vdc")
        machine.type("read 1", "@read ")
        machine.say(f"put 1 raw ro {self.disk('one', 'first')}")
        machine.expect("done 1")
        machine.type("read 1", "@read first")
        machine.say(f"put 1 raw ro {self.disk('two', 'second')}")
        machine.expect("done 1")
        machine.type("read 1", "@read second")
        machine.type("write 1 evil", "@failed .*")
        machine.say("remove 1")
        machine.expect("done 1")
        machine.type("read 1", "@read ")
        machine.say("remove 1")
        machine.expect("done 1")
        self.assertEqual(b"second\n", file_of(os.path.join(self.place, "two"))[:7])
        # Nothing of it is held.
        self.assertFalse({self.place + "/one", self.place + "/two"} & set(self.files(machine)))
        self.writable(machine)
        self.formats(machine)
        machine.say("type off")
        self.assertEnds(machine, POWERED_OFF, "the guest powered off")

    @staticmethod
    def files(machine):
        return [os.readlink(f"/proc/{machine.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{machine.pid}/fd")]

    def writable(self, machine):
        path = self.disk("own", "before")
        machine.say(f"put 2 raw ro {path}")
        machine.expect("refused slot 2 is for writable disks")
        machine.say(f"put 0 raw rw {path}")
        machine.expect("refused slot 0 is for read-only disks")
        machine.say(f"put 3 raw ro {path}")
        machine.expect("refused a machine with 3 slots has no slot 3")
        machine.say(f"put 2 raw rw {path}")
        machine.expect("done 2")
        machine.type("read 2", "@read before")
        machine.type("write 2 after", "@written")
        nacre_test.until(lambda: file_of(path)[:6] == b"after\n", what="the disk's new content")

    def formats(self, machine):
        """A format is told, and names no other file."""
        path = self.disk("three", "third")
        machine.say(f"put 0 qcow2 ro {path}")
        machine.expect("failed 0 change slot 0: .*qcow2.*")
        self.assertNotIn(path, self.files(machine))
        machine.type("read 0", "@read ")
        image, backed = os.path.join(self.place, "image"), os.path.join(self.place, "backed")
        if not shutil.which("qemu-img"):
            return
        subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", path, image], check=True)
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", path, backed], check=True)
        machine.say(f"put 0 qcow2 ro {image}")
        machine.expect("done 0")
        machine.type("read 0", "@read third")
        machine.say(f"put 0 qcow2 ro {backed}")
        machine.expect("done 0")
        machine.type("read 0", "@read ")


    def test_of_a_seed(self):
        """The kernel reads what vm/disk/seed.h writes."""
        path, long = self.disk("seed", ""), "instance-id: a\n" + "x" * 70000
        subprocess.run([DRIVER, "seed", path, "meta-data", long, "user-data", "#cloud-config\n", "network-config", "version: 2\n",
                        "a-name-of-three-parts-no-less-than-it", ""], check=True)
        machine = self.up(slots=1)
        machine.say(f"put 0 raw ro {path}")
        machine.expect("done 0")
        machine.type("files 0", "@listed")
        files = sorted(line.partition("@file ")[2] for line in machine.seen if "@file " in line)
        self.assertEqual(["a-name-of-three-parts-no-less-than-it  0", f"meta-data instance-id: a {len(long)}",
                          "network-config version: 2 11", "user-data #cloud-config 14"], files, machine.seen)
        machine.say("kill")
        self.assertEnds(machine, ASKED, "the machine was ended")


class Planted(MachineTest):
    def test_links_in_its_place(self):
        """What is there by the names of its own files is refused or taken away, and not followed (V13)."""
        canary = os.path.join(self.top, "canary")
        with open(canary, "wb") as f:
            f.write(b"untouched")
        os.chmod(canary, 0o600)
        before = os.stat(canary)
        words, control = (os.path.join(self.place, name) for name in ("vmm.err", "qmp.sock"))
        os.symlink(canary, control)
        driver = subprocess.run([DRIVER, self.place, self.group, "start", self.kernel.image, self.initrd, str(USER), "0", "0"],
                                capture_output=True, text=True, check=False)
        self.assertEqual("refused start a machine: replace the socket qmp.sock: File exists\n", driver.stdout)
        os.unlink(control)
        if os.path.lexists(words):
            os.unlink(words)
        os.symlink(canary, words)
        machine = self.up()
        self.assertEqual([stat.S_IFIFO, stat.S_IFSOCK], [stat.S_IFMT(os.lstat(path).st_mode) for path in (words, control)])
        after = os.stat(canary)
        self.assertEqual((b"untouched", before.st_uid, before.st_mode, before.st_nlink),
                         (file_of(canary), after.st_uid, after.st_mode, after.st_nlink))
        machine.say("kill")
        self.assertEnds(machine, ASKED, "the machine was ended")


class Ends(MachineTest):
    """Each end has its cause; one that dies is nothing to the node but that (V14)."""

    def test_of_the_guest(self):
        for word, cause, text in (("panic", PANIC, "the guest's kernel panicked"), ("reset", RESET, "the guest asked for a reset"),
                                  ("off", POWERED_OFF, "the guest powered off")):
            with self.subTest(word):
                machine = self.up()
                machine.say("type " + word)
                self.assertEnds(machine, cause, text)
                self.assertEqual(word == "panic", "panic" in machine.seen)

    def test_of_the_monitor(self):
        machine = self.up()
        os.kill(machine.pid, signal.SIGKILL)
        self.assertEnds(machine, CRASHED, "the machine's monitor died: it was killed by signal 9")
        machine = self.start()
        machine.expect("up 1")
        os.kill(machine.pid, signal.SIGTERM)
        cause, text = machine.end()
        self.assertEqual(CRASHED, cause, text)
        self.assertRegex(text, r"the machine's monitor died: it ended for \"host-signal\" \(\".*terminating on signal 15.*\"\)")

    def test_of_one_that_cannot_start(self):
        """What QEMU says of it is in the error."""
        self.initrd = "/dev/null"
        driver = subprocess.run([DRIVER, self.place, self.group, "start", self.kernel.image, "/dev/null", str(USER), "0", "0"],
                                capture_output=True, text=True, check=False)
        self.assertEqual("refused the first root of a machine is no file that everybody may read\n", driver.stdout)
        empty = self.disk("empty", "")
        os.truncate(empty, 0)
        machine = Machine(self.place, self.group, "start", empty, empty, str(USER), "0", "0")
        self.addCleanup(machine.close)
        cause, text = machine.end()
        self.assertEqual(NOT_STARTED, cause, text)
        self.assertRegex(text, r"the machine could not be started: it ended with status 1 \(\".*\"\)")

    def test_power_button(self):
        machine = self.up()
        machine.say("stop")
        # This guest has nobody who looks at the button; the kernel's part of it is there.
        machine.type("slots", "@listed")
        machine.say("kill")
        self.assertEnds(machine, ASKED, "the machine was ended")


class Survives(MachineTest):
    def test_is_taken_up_again(self):
        machine = self.up(slots=2)
        machine.say(f"put 1 raw ro {self.disk('one', 'first')}")
        machine.expect("done 1")
        machine.leave()
        time.sleep(0.5)
        self.assertEqual({machine.pid}, host.cgroup_pids(self.group))
        again = self.adopt()
        self.assertEqual(machine.pid, again.pid)
        again.say("remove 1")
        again.expect("done 1")
        self.assertNotIn(os.path.join(self.place, "one"), Disks.files(again))
        again.say(f"put 0 raw ro {self.disk('two', 'second')}")
        again.expect("done 0")
        again.leave()
        third = self.adopt()
        third.say("kill")
        self.assertEnds(third, ASKED, "the machine was ended")

    def test_its_end_is_seen(self):
        machine = self.up()
        machine.leave()
        again = self.adopt()
        os.kill(machine.pid, signal.SIGKILL)
        self.assertEnds(again, UNSEEN, "the machine's monitor ended while nobody saw it")
        gone = subprocess.run([DRIVER, self.place, self.group, "adopt"], capture_output=True, text=True, check=False)
        self.assertEqual("refused take up a machine: find the machine's monitor: No such process\n", gone.stdout)


class Templates(MachineTest):
    """One machine is booted, and others begin where it stood."""

    def files(self):
        """Memory and state of a machine that has said "first"."""
        memory, state = (os.memfd_create(name, os.MFD_ALLOW_SEALING) for name in ("memory", "state"))
        self.addCleanup(os.close, memory)
        self.addCleanup(os.close, state)
        os.truncate(memory, 160 << 20)
        self.memory, self.state = (f"/proc/{os.getpid()}/fd/{fd}" for fd in (memory, state))
        machine = self.up(tap=("tap0",), template=(self.memory,))
        machine.type("keep first", "@keeps")
        machine.say("save " + self.state)
        machine.expect("done 99")
        machine.say("save " + self.state)
        machine.expect("refused the machine was saved already")
        machine.say("kill")
        self.assertEnds(machine, ASKED, "the machine was ended")
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        return memory, state

    def clone(self, *held, tap="tap0", up="up 1"):
        self.enter_place()
        began = time.monotonic()
        machine = self.start(tap=(tap,), template=(self.memory, self.state, *held))
        machine.expect(up)
        print(f"# up after {time.monotonic() - began:.2f} s")
        return machine

    def test_are_gone_on_from(self):
        memory, state = self.files()
        before = self.sum_of(memory)
        one, two = self.clone(), self.clone(tap="tap1")
        self.assertEqual("first", one.type("kept", r"@kept (\S+) \d+").group(1))
        one.type("keep one", "@keeps")
        # Each has its memory, and the template stays as it was.
        self.assertEqual("first", two.type("kept", r"@kept (\S+) \d+").group(1))
        two.type("keep two", "@keeps")
        self.assertEqual("one", one.type("kept", r"@kept (\S+) \d+").group(1))
        one.say(f"put 1 raw ro {self.disk('one', 'a disk')}")
        one.expect("done 1")
        one.type("read 1", "@read a disk")
        self.assertEqual(before, self.sum_of(memory))
        self.assertIn("memfd:memory", "".join(os.readlink(f"/proc/{two.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{two.pid}/fd")))
        for machine in (two, one):
            machine.say("type off")
            self.assertEqual((POWERED_OFF, "the guest powered off"), machine.end())
        self.assertEqual(before, self.sum_of(memory))
        self.held()
        self.broken(state)

    @staticmethod
    def sum_of(fd):
        return hashlib.sha256(os.pread(fd, os.fstat(fd).st_size, 0)).digest()

    def held(self):
        """Nothing of it runs until it is told to."""
        machine = self.clone("held", up="up 2")
        machine.say("type kept")
        time.sleep(0.5)
        self.assertFalse([line for line in machine.seen if "@kept" in line])
        machine.say("resume")
        machine.expect("state 1")
        machine.expect(r"\| .*@kept first \d+")
        machine.leave()
        again = self.adopt()
        again.say("kill")
        self.assertEnds(again, ASKED, "the machine was ended")

    def broken(self, state):
        """What is no whole state is no machine."""
        os.truncate(state, os.fstat(state).st_size // 2)
        self.enter_place()
        machine = self.start(tap=("tap0",), template=(self.memory, self.state))
        cause, text = machine.end()
        self.assertIn(cause, (NOT_STARTED, BROKEN), text)
        self.assertFalse([line for line in machine.seen if line.startswith("up")])
        self.assertEqual(set(), host.cgroup_pids(self.group))


class Trial(MachineTest):
    """Whether a guest comes up here at all (vm/probe/probe.h)."""
    WORKS, NO_DEVICE, NO_GUEST = 1, 2, 3

    def tried(self, accelerator, marker="@up"):
        """(verdict, text), and the same as it is remembered."""
        done = subprocess.run([DRIVER, self.place, self.group, "try", self.kernel.image, self.initrd, str(USER), marker, accelerator],
                              capture_output=True, text=True, check=True, timeout=PATIENCE)
        self.assertEqual(set(), host.cgroup_pids(self.group))
        seen, known = ((int(v), t) for v, _, t in (line.partition(" ") for line in done.stdout.splitlines()))
        return seen, known

    def test_sees_one_come_up(self):
        (verdict, text), known = self.tried("tcg")
        self.assertEqual(self.WORKS, verdict)
        self.assertRegex(text, r"a guest came up within \d+ ms")
        self.assertIn(known[0], (self.WORKS, self.NO_DEVICE))

    def test_sees_none(self):
        (verdict, text), _ = self.tried("tcg", "never said")
        self.assertEqual((self.NO_GUEST, "KVM opens but no guest comes up: it said nothing for 20 s"), (verdict, text))

    def test_of_this_host(self):
        if not os.path.exists("/dev/kvm"):
            self.skipTest("there is no /dev/kvm")
        began = time.monotonic()
        seen, known = self.tried("kvm")
        print(f"# KVM here: {seen[1]}")
        self.assertIn(seen[0], (self.WORKS, self.NO_GUEST))
        self.assertEqual(seen, known)
        self.assertLess(time.monotonic() - began, 60)
