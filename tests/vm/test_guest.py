# SPDX-License-Identifier: Apache-2.0
"""nacre as pid 1 of a machine: it is told who it is on the boot port, and its keeper serves behind a gate."""
import contextlib
import os
import stat
import struct
import subprocess
import tempfile
import time
import unittest

import grpc

import api
import boot_port
import guest_kernel
import nacre_test

MODULES = ("virtio_mmio", "virtio_console", "virtio_net", "virtio_rng", "button", "evdev")
KERNEL = os.path.join(nacre_test.BUILD, "guest", "kernel")
PROTOCOL = 1


def load_tests(_loader, tests, _pattern):
    """A program that is not static is no pid 1 of an initramfs."""
    return unittest.TestSuite() if nacre_test.SANITIZED else tests


class GuestTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.kernel = guest_kernel.Kernel(KERNEL)
        except guest_kernel.Missing as e:
            raise unittest.SkipTest(str(e)) from e
        cls.place = tempfile.TemporaryDirectory(prefix="nacre-guest-set-")
        cls.addClassCleanup(cls.place.cleanup)
        cls.initrd = os.path.join(cls.place.name, "initrd")
        nacre, gate = os.path.join(cls.place.name, "nacre"), os.path.join(nacre_test.BUILD, "tests", "guest", "gate-stub")
        subprocess.run(["strip", "-o", nacre, nacre_test.BINARY], check=True)
        modules = cls.kernel.modules(MODULES)
        directory, program = stat.S_IFDIR | 0o755, stat.S_IFREG | 0o755
        entries = [("dev", directory, b""), ("modules", directory, b""), ("libexec", directory, b""), ("libexec/nacre", directory, b""),
                   ("init", program, cls.read(nacre)), ("libexec/nacre/nacre-gate", program, cls.read(gate)),
                   ("modules/list", program, "".join(f"{name}.ko\n" for name, _ in modules).encode())]
        entries += [(f"modules/{name}.ko", program, data) for name, data in modules]
        with open(cls.initrd, "wb") as f:
            f.write(b"".join(guest_kernel.cpio(*e) for e in entries) + guest_kernel.cpio("TRAILER!!!", 0, b""))

    @staticmethod
    def read(path):
        with open(path, "rb") as f:
            return f.read()

    @contextlib.contextmanager
    def machine(self, **more):
        with boot_port.Machine(self.kernel.image, self.initrd, nacre_test.BUILD, **more) as machine:
            try:
                yield machine
            finally:
                print("\n".join("# console: " + line for line in machine.console().splitlines()[-20:]))

    def ready(self, machine, **changes):
        machine.say(boot_port.boot(**changes))
        kind, members = machine.hear()
        self.assertEqual((boot_port.READY, self.kernel.version.encode() + b"\0"), (kind, members[1][1]), members)
        print(f"# ready after {time.monotonic() - machine.began:.2f} s")

    def assertFails(self, machine, sentence):
        kind, members = machine.hear()
        self.assertEqual(boot_port.FAILED, kind, members)
        self.assertRegex(members[0][1].rstrip(b"\0").decode(), sentence)
        self.assertEqual(0, machine.wait())

    def test_is_what_it_is_told_to_be(self):
        with self.machine() as machine:
            boot = boot_port.boot_members(clock=struct.pack("<Q", (1 << 31) * 10**9))
            self.ready(machine, **boot)
            seen = machine.ask()
            self.assertEqual(["web", "web"], [seen["hostname"], seen["etc-hostname"]])
            self.assertLess(int(seen["clock"]) - (1 << 31), boot_port.PATIENCE)
            self.assertRegex(seen["machine-id"], "^[0-9a-f]{32}$")
            self.assertEqual(boot_port.boot(**boot).hex(), seen["boot"])
            # The default route, and the network of the node.
            self.assertEqual({("00000000", "014AFEA9"), ("004AFEA9", "00000000")},
                             {tuple(line.split()[1:3]) for line in seen["routes"].split("|")[1:]})
            self.assertTrue(seen["init"].startswith("nacre: init"), seen["init"])
            self.assertEqual("0::/gate", seen["cgroup"])
            self.assertEqual(seen["controllers"], seen["handed-on"])
            self.assertLessEqual({"cpu", "memory", "pids", "io", "cpuset"}, set(seen["controllers"].split()))
            mounts = {m.split()[1]: m.split()[2] for m in seen["mounts"].split("|")}
            self.assertLessEqual({("/", "tmpfs"), ("/proc", "proc"), ("/sys", "sysfs"), ("/dev", "devtmpfs"), ("/dev/pts", "devpts"),
                                  ("/dev/shm", "tmpfs"), ("/run", "tmpfs"), ("/tmp", "tmpfs"), ("/sys/fs/cgroup", "cgroup2")},
                                 set(mounts.items()))
            self.assertIn("CapEff:\t0000000000000000|", seen["status"])
            again = machine.ask()
            self.assertNotEqual(seen["random"], again["random"])

    def test_its_keeper_serves_and_ends_it(self):
        with self.machine() as machine:
            self.ready(machine)
            instance = api.load(nacre_test.BUILD)["instance_pb2"]
            with grpc.insecure_channel(f"{boot_port.GUEST}:{boot_port.GATE_PORT}") as channel:
                def call(name, request, answer):
                    method = channel.unary_unary(f"/nacre.instance.v1.InstanceService/{name}",
                                                 request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString)
                    return method(request, timeout=boot_port.PATIENCE)

                hello = call("Hello", instance.HelloRequest(protocol=PROTOCOL), instance.HelloResponse)
                self.assertIn("spawn", hello.features)
                call("Shutdown", instance.ShutdownRequest(), instance.ShutdownResponse)
            self.assertEqual(0, machine.wait())

    def test_ends_when_the_node_says_so(self):
        with self.machine() as machine:
            self.ready(machine)
            machine.say(boot_port.frame(boot_port.STOP))
            self.assertEqual(0, machine.wait())
            self.assertIn("the guest ends", machine.console())
            self.assertNotIn("panic", machine.console())

    def test_ends_at_its_power_button(self):
        with self.machine() as machine:
            self.ready(machine)
            machine.qmp("system_powerdown")
            self.assertEqual(0, machine.wait())
            self.assertIn("the guest ends", machine.console())

    def test_tells_of_the_end_of_its_gate(self):
        with self.machine() as machine:
            self.ready(machine)
            with machine.connect() as s:
                s.sendall(b"!")
                self.assertFails(machine, "^the gate in the guest has ended with status 3$")

    def test_refuses_what_is_no_boot(self):
        for said, sentence in ((boot_port.boot(version=2), "spoken in version 2 there, in 1 here"),
                               (boot_port.boot(hostname=b"a.b\0"), "boot.hostname of a frame of the boot port"),
                               (b"\xff" * 64, "the length of a frame"),
                               (boot_port.boot(mac=bytes.fromhex("020000000001")), "find the interface 02:00:00:00:00:01")):
            with self.subTest(sentence):
                with self.machine() as machine:
                    machine.say(said)
                    self.assertFails(machine, sentence)


if __name__ == "__main__":
    unittest.main()
