# SPDX-License-Identifier: Apache-2.0
"""Machines with somebody's own system (RunVirtualMachine), through a whole node: booted, attached to, stopped, kept, taken up again."""
import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
import unittest

import grpc

import boot_sector
import host
import nacre_test
import schema
import steps
from nacre_test import nacre_pb2, runtime_pb2

QEMU = "/usr/bin/qemu-system-x86_64"
Code = grpc.StatusCode
PIDFD_GETFD = 438  # the same on all architectures


def read(path):
    with open(path, "rb") as f:
        return f.read()


def end_monitor(pid):
    """Shuts the connection to a QEMU's monitor from its side; the process goes on."""
    libc, process = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid)
    n = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        fd = libc.syscall(PIDFD_GETFD, process, int(name), 0)
        if fd < 0:
            continue
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            os.close(fd)
            continue
        with socket.socket(fileno=fd) as s:
            if s.family == socket.AF_UNIX and "qmp" in str(s.getsockname()) and not s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                s.shutdown(socket.SHUT_RDWR)
                n += 1
    os.close(process)
    assert n == 1, n


class Console:
    """Attached to a console: what it says, and what is typed."""

    def __init__(self, node, target, replay=True):
        self.inputs, self.more, self.over = [], threading.Condition(), False
        self.seen, self.exit, self.error = b"", None, None
        first = nacre_pb2.AttachRequest(target=target, stdin=True, replay=replay)
        self.call = node.workloads.Attach(self._requests(first))
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _requests(self, first):
        yield first
        while True:
            with self.more:
                while not self.inputs and not self.over:
                    self.more.wait()
                if not self.inputs:
                    return
                data = self.inputs.pop(0)
            yield nacre_pb2.AttachRequest(input=nacre_pb2.StreamInput(data=data))

    def _read(self):
        try:
            for m in self.call:
                self.seen += m.stdout
                if m.HasField("exit"):
                    self.exit = m.exit
        except grpc.RpcError as e:
            self.error = e

    def type(self, data):
        with self.more:
            self.inputs.append(data)
            self.more.notify()

    def expect(self, data, n=1):
        nacre_test.until(lambda: self.seen.count(data) >= n, seconds=120, what=f"{data} on the console, which says {self.seen[-400:]}")

    def close(self):
        with self.more:
            self.over = True
            self.more.notify()
        self.call.cancel()
        self.thread.join(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def run(node, path, name, **fields):
    fields.setdefault("image", path)
    fields.setdefault("memory", 64 << 20)
    return node.runtime.RunVirtualMachine(runtime_pb2.RunVirtualMachineRequest(meta=runtime_pb2.Meta(name=name), **fields), timeout=120)


def disks(node):
    shown = json.loads(node.cli("-o", "json", "vm", "disks").stdout)
    schema.check(schema.load(), "vm disks", shown)
    return shown


class ForeignTest(steps.StepsTest):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists(QEMU):
            raise unittest.SkipTest(f"there is no {QEMU}")
        super().setUpClass()
        try:
            cls.disk = os.path.join(cls.node.dir, "disk.raw")
            boot_sector.make(cls.disk)
        except boot_sector.Missing as e:
            cls.node.destroy()
            raise unittest.SkipTest(str(e)) from e

    def vm(self, name, **fields):
        return run(self.node, self.disk, name, **fields)

    def leaf(self, name, leaf):
        return [int(p) for p in host.read(os.path.join(self.node.cgroup(), "vm." + name, leaf, "cgroup.procs")).split()]

    def disks(self):
        return disks(self.node)


class Pods(ForeignTest):
    """RunPod with the image of a machine: that is the pod."""

    def run_pod(self, image, **fields):
        return self.pod("v", steps.container(image=image, resources=runtime_pb2.Resources(memory=64 << 20)), **fields)

    def test_a_disk_image(self):
        image = read(self.disk)
        made = self.run_pod("disk://" + self.disk)
        self.assertEqual(("v", "vm", "its image is that of a machine"), (made.name, made.kind, made.kind_reason))
        shown = self.inspect("v")
        self.assertEqual(("vm", "running", self.disk), (shown.kind, shown.state, shown.containers[0].image))
        with Console(self.node, "v") as console:
            console.expect(b"boot 1")
            console.type(b"P")
            self.wait("v")
        self.assertEqual("exited", self.inspect("v").state)
        self.remove("v")
        self.assertEqual((image, []), (read(self.disk), self.disks()))

    def test_a_kept_disk(self):
        self.assertFails(Code.NOT_FOUND, lambda: self.run_pod("disk://data"), "image: there is no disk data", "nacre vm disks")
        self.vm("v", disk="data")
        with Console(self.node, "v") as console:
            console.expect(b"boot 1")
        self.stop("v")
        self.remove("v")
        try:
            self.run_pod("disk://data", kind="vm")
            with Console(self.node, "v") as console:
                console.expect(b"boot 2")
            self.remove("v", force=True)
        finally:
            self.node.cli("vm", "rmdisk", "data")

    def test_what_is_refused(self):
        image = "disk://" + self.disk
        for code, call, field in (
                (Code.UNIMPLEMENTED, lambda: self.pod("v", steps.container("sh", image=image)), "containers[0].command: "),
                (Code.INVALID_ARGUMENT, lambda: self.run_pod(image, kind="cell"), "kind: "),
                (Code.INVALID_ARGUMENT, lambda: self.run_pod(image, network="default"), "network: "),
                (Code.NOT_FOUND, lambda: self.run_pod("disk:///nonexistent"), "image: "),
                (Code.INVALID_ARGUMENT, lambda: self.run_pod("disk://../x"), "disk: ")):
            self.assertFails(code, call, field)
        self.assertEqual({}, self.all())


class Machines(ForeignTest):
    def test_boots_and_is_a_workload_like_any_other(self):
        before, image = self.node.baseline(), read(self.disk)
        with nacre_test.Events(self.node) as events:
            v = self.vm("v")
            self.assertEqual(("v", "running", ""), (v.name, v.state, v.address))
            events.wait("v", "running", kind="vm")
            shown = self.inspect("v")
            self.assertEqual(("vm", "running", "none", v.pid), (shown.kind, shown.state, shown.network, shown.pid))
            self.assertEqual([("machine", self.disk, "bios", True)],
                             [(c.name, c.image, c.command, c.tty) for c in shown.containers])
            # Each process has a user of its own, and what reads the console is not the daemon.
            machine, relay = self.leaf("v", "vmm"), self.leaf("v", "relay")
            self.assertEqual([v.pid], machine)
            owners = {os.stat(f"/proc/{p}").st_uid for p in machine + relay}
            self.assertEqual((2, False), (len(owners), 0 in owners))
            self.assertEqual([], json.loads(self.node.cli("-o", "json", "check").stdout))
            with Console(self.node, "v") as console:
                console.expect(b"boot 1")
                console.type(b"hello")
                console.expect(b"hello")
                # A second one sees what was before, and what comes.
                with Console(self.node, "v") as other:
                    other.expect(b"hello")
                    with Console(self.node, "v", replay=False) as late:
                        console.type(b"all")
                        other.expect(b"all")
                        late.expect(b"all")
                        self.assertNotIn(b"boot", late.seen)
                console.type(b"P")
                self.wait("v")
                nacre_test.until(lambda: console.exit, what="the end of the call")
                self.assertEqual(0, console.exit.exit_code)
            events.wait("v", "exited")
        shown = self.inspect("v")
        self.assertEqual(("exited", 0, "the guest powered off"), (shown.state, shown.exit_code, shown.containers[0].reason))
        self.assertEqual(image, read(self.disk))
        self.remove("v")
        self.assertNoTraces(before)

    def test_who_leaves_a_quiet_console_gives_his_place_back(self):
        """More than may be there at once, while the guest writes nothing."""
        self.vm("v")
        with Console(self.node, "v") as console:
            console.expect(b"boot 1")
        for _ in range(12):
            with Console(self.node, "v") as console:
                console.expect(b"boot 1")
        self.stop("v")

    def test_a_reset_is_no_end(self):
        self.vm("v")
        with Console(self.node, "v") as console:
            console.expect(b"boot 1")
            console.type(b"R")
            console.expect(b"boot 2")
        self.stop("v")

    def test_stop_presses_the_button(self):
        self.vm("v")
        with Console(self.node, "v") as console:
            console.expect(b"boot 1")
            stopped = self.stop("v", grace_ms=60000)
            self.assertIn(b"button", console.seen)
        self.assertEqual(("exited", 0, "the guest powered off"), (stopped.state, stopped.exit_code, stopped.containers[0].reason))
        # Without patience it is ended.
        self.vm("w")
        stopped = self.stop("w")
        self.assertEqual(("exited", 137, "the machine was ended"), (stopped.state, stopped.exit_code, stopped.containers[0].reason))

    def test_stop_behind_the_end_of_its_monitor(self):
        """Its button comes two seconds after the question to an agent; the machine is killed two seconds after its monitor ended."""
        v = self.vm("v")
        with Console(self.node, "v") as console:
            console.expect(b"boot 1")
        call = self.node.workloads.Stop.future(nacre_pb2.StopRequest(target="v", grace_ms=60000))
        time.sleep(1)
        end_monitor(v.pid)
        self.assertEqual("v", call.result(60 * nacre_test.SLOWNESS).workload.name)
        self.assertIn(self.inspect("v").state, ("exited", "failed"))

    def test_what_it_writes_is_kept_by_a_name(self):
        before, image = self.node.baseline(files=False), read(self.disk)
        for n in (b"1", b"2", b"3"):
            self.vm("v", disk="data")
            with Console(self.node, "v") as console:
                console.expect(b"boot " + n)
            shown, = self.disks()
            self.assertEqual(("data", self.disk, boot_sector.SIZE, True), tuple(shown[k] for k in ("name", "image", "size", "in_use")))
            self.assertFails(Code.FAILED_PRECONDITION, lambda: self.vm("w", disk="data"), "disk: another machine has the disk data")
            done = self.node.cli("vm", "rmdisk", "data", check=False)
            self.assertRegex(done.stderr, "another machine has the disk data")
            self.stop("v")
            self.remove("v")
        self.assertFalse(self.disks()[0]["in_use"])
        # Another image, or this one once it has changed, does not show through.
        other = self.disk + ".other"
        boot_sector.make(other)
        self.addCleanup(os.unlink, other)
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.vm("v", disk="data", image=other), "disk: the disk data lies over another")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.vm("v", disk="data", disk_size=2 << 20), "disk: the disk data is there, and of another size")
        self.node.cli("vm", "rmdisk", "data")
        self.assertEqual([], self.disks())
        self.assertEqual(image, read(self.disk))
        self.assertNoTraces(before, files=False)

    def test_an_image_in_qcow2(self):
        if not shutil.which("qemu-img"):
            self.skipTest("qemu-img is not installed")
        path = os.path.join(self.node.dir, "disk.qcow2")
        subprocess.run(["qemu-img", "convert", "-O", "qcow2", self.disk, path], check=True)
        image = read(path)
        self.vm("v", image="file://" + path, disk_size=3 << 20)
        with Console(self.node, "v") as console:
            console.expect(b"boot 1")
        self.stop("v")
        self.assertEqual(image, read(path))
        # One that names another file is nobody's.
        over = path + ".over"
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", "/etc/shadow", "-F", "raw", over, "1M"], check=True)
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.vm("w", image=over), "image: the qcow2 has a backing file, which is not followed")
        self.assertEqual({"v"}, set(self.all()))

    def test_what_is_wrong_is_named(self):
        before = self.node.baseline(files=False)
        damaged = os.path.join(self.node.dir, "damaged.qcow2")
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", damaged, "1M"], check=True)
        os.truncate(damaged, 100000)
        # Files of the node's own are no disks, also behind a link.
        own, link = os.path.join(self.node.dir, "root", "own.img"), os.path.join(self.node.dir, "link.img")
        with open(own, "wb") as f:
            f.truncate(1 << 20)
        os.symlink(own, link)
        self.addCleanup(os.unlink, own)
        for code, words, fields in (
                (Code.INVALID_ARGUMENT, "lies in a directory of the node's own", {"image": own}),
                (Code.INVALID_ARGUMENT, f"image: {link} is, holds or lies in a directory of the node's own", {"image": link}),
                (Code.INVALID_ARGUMENT, "lies in a directory of the node's own", {"image": "file://" + own}),
                (Code.INVALID_ARGUMENT, f"kernel: {own} is, holds or lies", {"image": "", "kernel": own}),
                (Code.NOT_FOUND, "image: there is no /none", {"image": "/none"}),
                (Code.FAILED_PRECONDITION, "image: /etc is no regular file", {"image": "/etc"}),
                (Code.INVALID_ARGUMENT, "image: \"x\" is not an absolute path", {"image": "x"}),
                (Code.UNIMPLEMENTED, "image: nothing is fetched over a network", {"image": "https://example.org/x.qcow2"}),
                (Code.INVALID_ARGUMENT, "image: required", {"image": ""}),
                (Code.INVALID_ARGUMENT, "image: it does not begin as a qcow2", {"format": "qcow2"}),
                (Code.INVALID_ARGUMENT, "image: the format \"vmdk\"", {"format": "vmdk"}),
                (Code.INVALID_ARGUMENT, "firmware", {"firmware": "coreboot"}),
                (Code.INVALID_ARGUMENT, "firmware: not with a kernel", {"firmware": "bios", "kernel": "/x"}),
                (Code.INVALID_ARGUMENT, "image: the qcow2 is damaged or cut off", {"image": damaged}),
                (Code.NOT_FOUND, "kernel: there is no /none", {"kernel": "/none"}),
                (Code.INVALID_ARGUMENT, "kernel: this is neither a bzImage nor a vmlinux", {"kernel": "/etc/passwd"}),
                (Code.INVALID_ARGUMENT, "initrd: only with a kernel", {"initrd": "/x"}),
                (Code.INVALID_ARGUMENT, "args: only with a kernel", {"args": ["x"]}),
                (Code.INVALID_ARGUMENT, "args[1]: a word is", {"kernel": "/x", "args": ["a", "b c"]}),
                (Code.INVALID_ARGUMENT, "memory", {"memory": 1 << 20}),
                (Code.INVALID_ARGUMENT, "vcpus", {"vcpus": 65}),
                (Code.INVALID_ARGUMENT, "disk_size: a disk is of whole sectors", {"disk_size": 513}),
                (Code.INVALID_ARGUMENT, "disk: \"A\" is not a name", {"disk": "A"}),
                (Code.INVALID_ARGUMENT, "user_data", {"user_data": bytes(1 << 20)}),
                (Code.INVALID_ARGUMENT, "network", {"network": "host"})):
            with self.subTest(words):
                self.assertFails(code, lambda f=fields: self.vm("v", **f), words)
        self.assertEqual({}, self.all())
        self.assertNoTraces(before, files=False)

    @unittest.skipIf(host.read("/proc/sys/vm/overcommit_memory").strip() == "1", "this host promises whatever it is asked for")
    def test_memory_that_the_node_has_not_is_named(self):
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.vm("v", memory=1 << 40), "memory: this node has no 1048576 MiB of memory")
        self.assertEqual({}, self.all())

    def test_nothing_is_done_in_it(self):
        self.vm("v")
        for words in (("exec", "v", "true"), ("cp", "v:/x", self.node.dir), ("logs", "v"), ("update", "v", "--memory", "1g")):
            done = self.node.cli(*words, check=False)
            self.assertRegex(done.stderr, "target: v is a machine with a system of its own", words)
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.vm("v"), "the name v is taken by a vm")
        self.assertIn("vm", self.node.cli("ps").stdout)
        self.stop("v")

    def test_its_end_is_told_with_the_cause(self):
        before = self.node.baseline()
        v = self.vm("v")
        with Console(self.node, "v") as console:
            console.expect(b"boot 1")
        os.kill(v.pid, signal.SIGKILL)
        nacre_test.until(lambda: self.inspect("v").state == "failed", what="the end of v")
        self.assertRegex(self.inspect("v").reason, r"monitor died: it was killed by signal 9.*; its console ends: .*boot 1")
        self.remove("v")
        self.assertNoTraces(before)

    def test_a_network_of_its_own(self):
        v = self.vm("v", network="own")
        self.assertEqual("169.254.74.2", v.address)
        devices = subprocess.run(["nsenter", "-t", str(v.pid), "-n", "cat", "/proc/net/dev"], check=True, capture_output=True, text=True).stdout
        self.assertIn("nacre0:", devices)
        self.assertNotEqual(os.readlink("/proc/self/ns/net"), os.readlink(f"/proc/{v.pid}/ns/net"))
        self.stop("v")

    def test_the_command_line(self):
        os.chdir(self.node.dir)
        self.addCleanup(os.chdir, nacre_test.ROOT)
        done = self.node.cli("vm", "run", "--name", "v", "--memory", "64m", "--rm", "disk.raw")
        self.assertEqual(self.inspect("v").id, done.stdout.strip())
        schema.check(schema.load(), "ps", self.node.json("ps"))
        self.node.cli("stop", "v", "--time", "0")
        nacre_test.until(lambda: not self.all(), what="its removal")
        done = self.node.cli("vm", "run", "none.raw", check=False)
        self.assertEqual((125, "nacre: find none.raw: No such file or directory\n"), (done.returncode, done.stderr))


class Restarted(unittest.TestCase):
    def test_it_outlives_the_daemon(self):
        if not os.path.exists(QEMU):
            self.skipTest(f"there is no {QEMU}")
        with nacre_test.Node() as node:
            disk = os.path.join(node.dir, "disk.raw")
            boot_sector.make(disk)
            self.check(node, disk)

    def check(self, node, disk):
        def inspect():
            return node.workloads.Inspect(nacre_pb2.InspectRequest(target="v")).workload

        v = run(node, disk, "v", disk="data")
        with Console(node, "v") as console:
            console.expect(b"boot 1")
        node.restart()
        self.assertEqual(("running", v.pid), (inspect().state, inspect().pid))
        self.assertEqual([], json.loads(node.cli("-o", "json", "check").stdout))
        # What came before is still there, the disk is in use, and the button works.
        with Console(node, "v") as console:
            console.expect(b"boot 1")
            console.type(b"x")
            console.expect(b"x")
        self.assertTrue(disks(node)[0]["in_use"])
        stopped = node.workloads.Stop(nacre_pb2.StopRequest(target="v", grace_ms=60000)).workload
        self.assertEqual(("exited", "the guest powered off"), (stopped.state, stopped.containers[0].reason))
        node.cli("rm", "v")
        # One that ends while nobody looks is found so.
        v = run(node, disk, "v")
        node.kill()
        os.kill(v.pid, signal.SIGKILL)
        node.start()
        nacre_test.until(lambda: inspect().state == "failed", what="the end of v")
        self.assertRegex(inspect().reason, "its machine ended while the daemon was away|ended while nobody saw it")
        node.cli("rm", "v")
        node.cli("vm", "rmdisk", "data")
        self.assertEqual([], os.listdir(os.path.join(node.run, "machines")))
        self.assertEqual([], [g for g in os.listdir(node.cgroup()) if g.startswith("vm.")])


if __name__ == "__main__":
    unittest.main()
