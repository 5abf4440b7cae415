# SPDX-License-Identifier: Apache-2.0
"""aurae.vms.v0, as clients of Aurae's daemon use it: machines from a kernel and drives, allocated, started, stopped, freed."""
import json
import os
import signal
import unittest

import grpc

import boot_sector
import host
import nacre_test
from test_foreign import QEMU, Console

vms = nacre_test.pb["vms_pb2"]
Code = grpc.StatusCode
WRONG = Code.FAILED_PRECONDITION


class VmsTest(nacre_test.NodeTest):
    IMAGES = ()

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(QEMU):
            raise unittest.SkipTest(f"there is no {QEMU}")
        super().setUpClass()
        try:
            cls.kernel = os.path.join(cls.node.dir, "vmlinux")
            boot_sector.make_kernel(cls.kernel)
        except boot_sector.Missing as e:
            cls.node.destroy()
            raise unittest.SkipTest(str(e)) from e
        cls.disk, cls.second = cls.file("root.img"), cls.file("second.img")

    @classmethod
    def file(cls, name, size=1 << 20):
        path = os.path.join(cls.node.dir, name)
        with open(path, "wb") as f:
            f.truncate(size)
        return path

    def setUp(self):
        self.vms = nacre_test.pb["vms_pb2_grpc"].VmServiceStub(self.node.channel)

    def machine(self, name, **fields):
        """As aer sends it: with a drive of which nothing is said."""
        fields = {"mem_size_mb": 64, "vcpu_count": 1, "kernel_img_path": self.kernel, "root_drive": vms.RootDrive(image_path=self.disk),
                  "drive_mounts": [vms.DriveMount()], **fields}
        return vms.VirtualMachine(id=name, **fields)

    def allocate(self, name, **fields):
        answer = self.vms.Allocate(vms.VmServiceAllocateRequest(machine=self.machine(name, **fields)))
        self.addCleanup(self.free, name)
        return answer.vm_id

    def free(self, name):
        try:
            self.vms.Free(vms.VmServiceFreeRequest(vm_id=name))
        except grpc.RpcError as e:
            self.assertEqual(Code.NOT_FOUND, e.code())

    def start(self, name):
        return self.vms.Start(vms.VmServiceStartRequest(vm_id=name))

    def stop(self, name):
        return self.vms.Stop(vms.VmServiceStopRequest(vm_id=name))

    def list(self):
        return {m.id: m for m in self.vms.List(vms.VmServiceListRequest()).machines}

    def status(self):
        return {n: m.status for n, m in self.list().items()}

    def monitor(self, name):
        found = host.read(os.path.join(self.node.cgroup(), "vm." + name, "vmm", "cgroup.procs")).split()
        self.assertEqual(1, len(found))
        return int(found[0])

    def drives(self, pid):
        """What a monitor has open below the node's directory: {name: writable}."""
        found = {}
        for fd in os.listdir(f"/proc/{pid}/fd"):
            path = os.readlink(f"/proc/{pid}/fd/{fd}")
            if path.endswith(".img"):
                flags = int(host.read(f"/proc/{pid}/fdinfo/{fd}").split("flags:")[1].split()[0], 8)
                found[os.path.basename(path)] = flags & os.O_ACCMODE == os.O_RDWR
        return found


class Vms(VmsTest):
    def test_a_life(self):
        before = self.node.baseline()
        self.assertEqual("life", self.allocate("life", kernel_args=["console=hvc0 root=/dev/vda1", "rw"], drive_mounts=[
            vms.DriveMount(image_path=self.second, read_only=True)]))
        m = self.list()["life"]
        self.assertEqual(("Created", 64, 1, self.kernel, self.disk, ""),
                         (m.status, m.mem_size_mb, m.vcpu_count, m.kernel_img_path, m.root_dir_path, m.auraed_address))
        self.assertFails(WRONG, lambda: self.stop("life"), "vm_id: the machine life does not run")
        self.assertEqual("", self.start("life").auraed_address)
        self.assertEqual("Running", self.status()["life"])
        self.assertEqual({"root.img": True, "second.img": False}, self.drives(self.monitor("life")))
        with Console(self.node, "life") as console:
            console.expect(b"memory 64 MiB: ")
            console.expect(b"console=hvc0 root=/dev/vda1 rw\r\n")
        self.assertFails(WRONG, lambda: self.start("life"), "vm_id: the machine life runs already")
        # Its system is asked first.
        with Console(self.node, "life") as console:
            self.stop("life")
            nacre_test.until(lambda: console.exit or console.error, what="the end of the console")
            self.assertIn(b"button", console.seen)
        self.assertEqual("Shutdown", self.status()["life"])
        self.start("life")
        # An end of its own is noticed.
        with Console(self.node, "life") as console:
            console.expect(b"memory")
            console.type(b"P")
            nacre_test.until(lambda: self.status()["life"] == "Shutdown", what="its end")
        self.start("life")
        os.kill(self.monitor("life"), signal.SIGKILL)
        nacre_test.until(lambda: self.status()["life"] == "Shutdown", what="its end")
        # What runs is freed too.
        self.start("life")
        pid = self.monitor("life")
        self.free("life")
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.assertEqual({}, self.list())
        self.assertNoTraces(before)

    def test_four_gibibytes(self):
        self.allocate("large", mem_size_mb=4096, vcpu_count=2)
        self.start("large")
        with Console(self.node, "large") as console:
            console.expect(b"memory 4096 MiB: ")
        self.assertEqual((4096, 2), (self.list()["large"].mem_size_mb, self.list()["large"].vcpu_count))

    def test_one_that_never_started_is_freed(self):
        self.allocate("never")
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.allocate("never"), "machine.id")
        self.vms.Free(vms.VmServiceFreeRequest(vm_id="never"))
        self.assertEqual({}, self.list())
        for call in (lambda: self.vms.Free(vms.VmServiceFreeRequest(vm_id="never")), lambda: self.start("never"), lambda: self.stop("never")):
            self.assertFails(Code.NOT_FOUND, call, 'vm_id: no machine "never" is allocated')
        self.assertFails(WRONG, lambda: self.start(""), "vm_id: required")

    def test_what_is_wrong_is_named(self):
        own = os.path.join(self.node.root, "root.db")
        mount = vms.DriveMount
        for code, text, fields in (
                (WRONG, "machine.id: ", {"id": ""}), (WRONG, "machine.id: ", {"id": "../x"}),
                (WRONG, "machine.root_drive: required", {"root_drive": None}),
                (WRONG, "machine.root_drive.image_path: required", {"root_drive": vms.RootDrive()}),
                (WRONG, "machine.root_drive.image_path: \"x\" is not an absolute path", {"root_drive": vms.RootDrive(image_path="x")}),
                (WRONG, "machine.root_drive.image_path: /dev/null is no regular file", {"root_drive": vms.RootDrive(image_path="/dev/null")}),
                (WRONG, "machine.root_drive.image_path: ", {"root_drive": vms.RootDrive(image_path=self.file("odd.img", 700))}),
                (WRONG, f"machine.root_drive.image_path: {own} is, holds or lies", {"root_drive": vms.RootDrive(image_path=own)}),
                (Code.NOT_FOUND, "machine.root_drive.image_path: there is no /none", {"root_drive": vms.RootDrive(image_path="/none")}),
                (WRONG, "machine.kernel_img_path: required", {"kernel_img_path": ""}),
                (WRONG, "machine.kernel_img_path: this is neither", {"kernel_img_path": "/etc/passwd"}),
                (WRONG, "machine.mem_size_mb: 0 MiB", {"mem_size_mb": 0}), (WRONG, "machine.mem_size_mb: ", {"mem_size_mb": 2**32 - 1}),
                (WRONG, "machine.vcpu_count: 256", {"vcpu_count": 256}), (WRONG, "machine.vcpu_count: 0", {"vcpu_count": 0}),
                (WRONG, "machine.kernel_args[1]: ", {"kernel_args": ["a", "b\"c"]}),
                (WRONG, "machine.kernel_args[0]: ", {"kernel_args": ["x " * 65]}),
                (Code.UNIMPLEMENTED, "machine.drive_mounts[0].vm_path: ", {"drive_mounts": [mount(image_path=self.second, vm_path="/mnt")]}),
                (Code.UNIMPLEMENTED, "machine.drive_mounts[1].fs_type: ", {"drive_mounts": [mount(), mount(fs_type="ext4")]}),
                (WRONG, "machine.drive_mounts: more than", {"drive_mounts": [mount(image_path=self.second, read_only=True)] * 4})):
            with self.subTest(text=text):
                name = fields.pop("id", "wrong")
                self.assertFails(code, lambda n=name, f=fields: self.allocate(n, **f), text)
        self.assertFails(WRONG, lambda: self.vms.Allocate(vms.VmServiceAllocateRequest()), "machine: required")
        self.assertEqual({}, self.list())

    def test_a_drive_is_written_by_one(self):
        first, other, reader = (self.allocate(n, root_drive=vms.RootDrive(image_path=self.disk, read_only=n == "reader"))
                                for n in ("first", "other", "reader"))
        self.start(first)
        for name in (other, reader):
            self.assertFails(WRONG, lambda n=name: self.start(n), "machine.root_drive.image_path: another drive is")
        self.assertEqual({first: "Running", other: "Created", reader: "Created"}, self.status())
        self.free(first)
        self.start(reader)
        self.assertFails(WRONG, lambda: self.start(other), "another drive is")
        self.allocate("too", root_drive=vms.RootDrive(image_path=self.disk, read_only=True))
        self.start("too")

    def test_it_outlives_the_daemon(self):
        with nacre_test.Node() as node:
            stub = nacre_test.pb["vms_pb2_grpc"].VmServiceStub
            for name in ("runs", "waits"):
                stub(node.channel).Allocate(vms.VmServiceAllocateRequest(machine=self.machine(
                    name, root_drive=vms.RootDrive(image_path=self.second, read_only=True))))
            stub(node.channel).Start(vms.VmServiceStartRequest(vm_id="runs"))
            pid = int(host.read(os.path.join(node.cgroup(), "vm.runs", "vmm", "cgroup.procs")))
            for again in (node.restart, lambda: (node.kill(), node.start())):
                again()
                self.assertEqual({"runs": "Running", "waits": "Created"},
                                 {m.id: m.status for m in stub(node.channel).List(vms.VmServiceListRequest()).machines})
            self.assertEqual(pid, int(host.read(os.path.join(node.cgroup(), "vm.runs", "vmm", "cgroup.procs"))))
            for name in ("runs", "waits"):
                stub(node.channel).Free(vms.VmServiceFreeRequest(vm_id=name))
            self.assertEqual([], json.loads(node.cli("-o", "json", "ps", "-a").stdout))


if __name__ == "__main__":
    unittest.main()
