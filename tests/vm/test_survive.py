# SPDX-License-Identifier: Apache-2.0
"""What becomes of instances with a kernel of their own when something goes wrong, and of what a node knows of its host."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import grpc

import host
import machines
import nacre_test
from machines import load_tests  # noqa: F401

def strangers(node):
    """Machines and gates that run in the node's cgroup, the one that holds the key of its identity aside."""
    found = set()
    for pid in host.cgroup_pids(node.cgroup()):
        command = host.read(f"/proc/{pid}/cmdline")
        if "qemu" in command or "gate " in command and "gate ca" not in command:
            found.add(command)
    return found


class FaultsTest(machines.MachinesTest):
    CONFIG = "vm:\n  hardware: no\n  heartbeat: 9s\n"

    def failed(self, name, seconds=60):
        nacre_test.until(lambda: self.inspect(name).state == "failed", seconds, f"the end of {name}")
        return self.inspect(name).reason

    def disks(self, target):
        """What files of the node its monitor has open for disks: the kernel's truth about its slots."""
        pid, = self.leaf(target, "vmm")
        found = set()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                name = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue
            if "erofs" in name or "/image" in name:
                found.add(name)
        return found

    def write(self, path, data):
        with open(path, "r+b") as f:
            f.write(data)


class Faults(FaultsTest):
    """One node; what its machines do when something breaks. The first of two breaks at once, so that they break at once."""

    def test_a_stuck_guest_is_ended_with_the_cause(self):
        """Its processors stand still behind the back of its monitor's protocol; one that is merely paused is left alone."""
        before = self.node.baseline()
        v = self.spawn("v", kind="vm")
        self.spawn("w", kind="vm")
        os.kill(v.pid, signal.SIGSTOP)
        reason = self.failed("v")
        self.assertRegex(reason, "^its guest is stuck: it has not answered for 9 s .heartbeat.; its console ends: .")
        self.assertFalse(os.path.exists(f"/proc/{v.pid}"))
        # The other has answered all the time.
        self.assertEqual("ready", self.inspect("w").state)
        self.remove("v")
        # And is ended in order where its keeper hears nothing: the way there is closed, its button is not.
        gate, = self.leaf("w", "gate")
        os.kill(gate, signal.SIGSTOP)
        began = time.monotonic()
        self.stop("w", grace_ms=20000)
        self.assertLess(time.monotonic() - began, 60)
        ended = [l for l in self.node.log().splitlines() if "a machine has ended" in l and "instance=w" in l]
        self.assertIn("the guest powered off", ended[-1])
        self.assertNoTraces(before)

    def test_an_image_that_vanishes_is_told_as_the_cause(self):
        before = self.node.baseline()
        self.pod("p", kind="vm")
        self.sh("p", "true")
        disk, = self.disks("p")
        with open(disk, "rb") as f:
            whole = f.read()
        self.addCleanup(lambda: os.path.getsize(disk) or self.write(disk, whole))
        os.truncate(disk, 0)
        reason = self.failed("p")
        self.assertRegex(reason, f"the disk of the image sha256:[0-9a-f]+ was cut from {len(whole)} to 0 bytes while it was used")
        self.write(disk, whole)
        self.remove("p")
        self.assertNoTraces(before)

    def test_disks_go_with_their_last_user_also_behind_a_restart(self):
        before = self.node.baseline()
        self.spawn("v", kind="vm")
        self.assertEqual(set(), self.disks("v"))
        self.cell("v/a")
        self.cell("v/b")
        one = self.disks("v")
        self.assertEqual(1, len(one))
        self.node.cli("rm", "-f", "v/a")
        self.assertEqual(one, self.disks("v"))
        # A set that is in use stays; another one beside it changes nothing for who runs; nor does another daemon in the place of this one.
        used = os.readlink(os.path.join(self.node.root, "guest", "default"))
        machines.build_set(self.node, "--name", "other")
        refused = subprocess.run([nacre_test.BINARY, "guest", "rm", "--root", self.node.root, used], capture_output=True,
                                 text=True, check=False)
        self.assertEqual((125, f"nacre: the guest set {used} is in use by a virtual machine\n"),
                         (refused.returncode, refused.stderr))
        self.node.restart()
        # One image, one disk, also now; and the last of its users takes it along.
        self.cell("v/c")
        self.assertEqual(one, self.disks("v"))
        self.node.cli("rm", "-f", "v/b")
        self.assertEqual("0", self.sh("v/c", "echo 0").strip())
        self.assertEqual(one, self.disks("v"))
        self.node.cli("rm", "-f", "v/c")
        nacre_test.until(lambda: not self.disks("v"), what="the disk's end")
        # It comes again.
        self.cell("v/d")
        self.assertEqual(1, len(self.disks("v")))
        # A machine that was taken up tells its end with the console, too.
        os.kill(self.inspect("v").pid, signal.SIGKILL)
        self.assertRegex(self.failed("v"), "; its console ends: .")
        self.node.clear()
        self.assertEqual([], os.listdir(os.path.join(self.node.run, "i")))
        self.assertEqual([], json.loads(self.node.cli("-o", "json", "check").stdout))
        self.assertNotIn("cannot take a cell down", self.node.log())
        subprocess.run([nacre_test.BINARY, "guest", "rm", "--root", self.node.root, used], check=True)
        # The daemon of the tests is another one now.
        type(self).before = self.node.baseline()


class Unreadable(FaultsTest):
    """A disk of the node that fails."""

    def on_a_disk_of_its_own(self, path):
        """That file, from the node's next daemon on: on a file system in the file that is returned."""
        place = tempfile.mkdtemp(prefix="ns-")
        self.addCleanup(shutil.rmtree, place)
        os.mkdir(os.path.join(place, "in"))
        shutil.copy(path, os.path.join(place, "in", "disk"))
        image, at = os.path.join(place, "image"), os.path.join(place, "at")
        os.mkdir(at)
        megabytes = os.path.getsize(path) // (1 << 20) + 8
        subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-d", os.path.join(place, "in"), image, f"{megabytes}M"], check=True)
        subprocess.run(["mount", "-o", "loop,ro", image, at], check=True)
        self.addCleanup(subprocess.run, ["umount", at], check=True)
        self.node.stop()
        subprocess.run(["mount", "--bind", os.path.join(at, "disk"), path], check=True)
        self.node.start()
        return image

    def test_a_disk_that_cannot_be_read_is_told_as_the_cause(self):
        # The node is started anew, and has other processes then; this runs last.
        self.addCleanup(lambda: setattr(type(self), "before", self.node.baseline()))
        self.pod("p", kind="vm")
        path, = self.disks("p")
        self.remove("p", force=True)
        image = self.on_a_disk_of_its_own(path)
        try:
            self.pod("p", kind="vm")
            os.truncate(image, 0)
            # What the node has in memory of it is to be read again, and cannot be.
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
            with contextlib.suppress(grpc.RpcError, AssertionError):
                self.sh("p", "cat /bin/* > /dev/null")
            self.assertRegex(self.failed("p"), "the disk of the image sha256:[0-9a-f]+ cannot be read: Input/output error")
        finally:
            self.remove("p", force=True)
            self.node.stop()
            subprocess.run(["umount", path], check=True)
            self.node.start()
        self.pod("p", kind="vm")
        self.assertEqual("well\n", self.sh("p", "echo well"))
        self.remove("p", force=True)
        self.assertEqual([], self.node.json("check"))
        self.assertEqual(set(), strangers(self.node))


class Killed(unittest.TestCase):
    """The daemon is killed while it makes a machine, a little later each time: the next one takes up what is whole, and nothing else is
    left."""

    # Seconds after the call: before the gate, between gate and machine, while the guest boots, while it enrols.
    MOMENTS = (0.0, 0.004, 0.01, 0.02, 0.04, 0.08, 0.3, 1.2)

    def test_nothing_is_left_wherever_the_daemon_is_killed(self):
        machines.need()
        with nacre_test.Node("vm:\n  hardware: no\n") as node:
            machines.build_set(node)
            node.cli("spawn", "--kind", "vm", "--name", "v")
            self.assertEqual(2, len(strangers(node)))
            node.cli("stop", "v")
            for moment in self.MOMENTS:
                with self.subTest(moment=moment):
                    call = subprocess.Popen([nacre_test.BINARY, "--socket", node.socket, "spawn", "--kind", "vm", "--name", "v"],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    self.addCleanup(call.wait)
                    # It has begun where anything of it is seen.
                    nacre_test.until(lambda: os.listdir(os.path.join(node.run, "i")) or call.poll() is not None, what="the call's begin")
                    time.sleep(moment)
                    node.kill()
                    call.wait()
                    node.start()
                    for state in node.cli("ps", "-a", "--format", "{state}").stdout.split():
                        self.assertIn(state, ("ready", "failed"))
                    self.assertEqual([], json.loads(node.cli("-o", "json", "check").stdout))
                    node.clear()
                    nacre_test.until(lambda: not os.listdir(os.path.join(node.run, "i")), what="the directories' end")
                    nacre_test.until(lambda: not [g for g in os.listdir(node.cgroup()) if g.startswith("inst.")], what="the groups' end")
                    self.assertEqual(set(), strangers(node))


class Auto(unittest.TestCase):
    """Here KVM may be missing, open and boot nothing, or work: what is recorded decides, and is told."""

    def record(self, node):
        try:
            with open(os.path.join(node.root, "virtualization"), encoding="utf-8") as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return None

    def spawned(self, node):
        made = node.runtime.Spawn(nacre_test.runtime_pb2.SpawnRequest(meta=nacre_test.runtime_pb2.Meta(name="a")))
        node.cli("stop", "a")
        return made

    def test_auto_is_what_a_trial_has_shown(self):
        kernel = machines.need()
        with nacre_test.Node("vm:\n  hardware: auto\n") as node:
            if not os.path.exists("/dev/kvm"):
                self.assertIn("/dev/kvm", self.spawned(node).kind_reason)
                return
            self.assertIn("no guest can be tried", self.spawned(node).kind_reason)
            machines.build_set(node)
            node.restart()
            nacre_test.until(lambda: self.record(node), seconds=90, what="the record of the trial")
            _, guest, verdict, seen = self.record(node)
            self.assertTrue(guest.startswith(kernel.version), guest)
            told = next(c for c in json.loads(node.cli("-o", "json", "doctor", check=False).stdout) if c["check"] == "KVM")
            made = self.spawned(node)
            self.assertIn(seen, f"{told['detail']}{told['cause']}")
            self.assertEqual((verdict == "works", "vm" if verdict == "works" else "cell"), (told["ok"], made.kind))
            self.assertIn(seen[:60], made.kind_reason)
            # The next daemon knows it; another set is tried anew, and nothing of that is left.
            written = os.stat(os.path.join(node.root, "virtualization"))
            node.restart()
            self.assertIn(seen[:60], self.spawned(node).kind_reason)
            self.assertEqual(written, os.stat(os.path.join(node.root, "virtualization")))
            machines.build_set(node, "--name", "other")
            node.restart()
            nacre_test.until(lambda: self.record(node)[1].startswith("other, "), seconds=90, what="the record of the other set")
            self.assertFalse(os.path.exists(os.path.join(node.run, "trial")))
            self.assertEqual([], json.loads(node.cli("-o", "json", "check").stdout))
