# SPDX-License-Identifier: Apache-2.0
"""nacre as pid 1 of a machine: it is told who it is on the boot port, and its keeper serves behind a gate."""
import contextlib
import fcntl
import json
import os
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
import schema

KERNEL = os.path.join(nacre_test.BUILD, "guest", "kernel")
WITNESS = os.path.join(nacre_test.BUILD, "tests", "guest", "gate-witness")
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
        cls.root = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="nacre-root-"))
        made = json.loads(cls.guest("build", "--from", KERNEL, "--gate", WITNESS).stdout)
        schema.check(schema.load(), "guest build", made)
        cls.set = os.path.join(cls.root, "guest", made["name"])
        cls.described = made

    @classmethod
    def guest(cls, command, *words, check=True):
        done = subprocess.run([nacre_test.BINARY, "-o", "json", "guest", command, "--root", cls.root, *words], capture_output=True,
                              text=True, check=False)
        if check and done.returncode != 0:
            raise AssertionError(done.stderr)
        return done

    @contextlib.contextmanager
    def machine(self, **more):
        with boot_port.Machine(os.path.join(self.set, "kernel"), os.path.join(self.set, "initrd"), nacre_test.BUILD, **more) as machine:
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

    def test_is_made_of_what_is_needed(self):
        self.assertEqual((self.kernel.version, "vmlinux", "acpi", True),
                         tuple(self.described[k] for k in ("kernel", "form", "devices", "default")))
        self.assertLess(self.described["initrd_size"], 12 << 20)
        with open(os.path.join(self.set, "kernel"), "rb") as f:
            self.assertEqual(b"\x7fELF", f.read(4))
        for file in ("kernel", "initrd", "set"):
            self.assertEqual(0o644, os.stat(os.path.join(self.set, file)).st_mode & 0o7777)
        again = self.guest("build", "--from", KERNEL, "--gate", WITNESS)
        self.assertEqual(self.described, json.loads(again.stdout))
        self.assertIn("there already", again.stderr)

    def test_sets_are_listed_and_removed(self):
        self.guest("build", "--from", KERNEL, "--gate", WITNESS, "--name", "other", "--keep-default")
        listed = json.loads(self.guest("ls").stdout)
        schema.check(schema.load(), "guest ls", listed)
        self.assertEqual([(self.described["name"], True, False), ("other", False, False)],
                         [(s["name"], s["default"], s["in_use"]) for s in listed])
        with open(os.path.join(self.root, "guest", "other", "kernel"), "rb") as held:
            fcntl.lockf(held, fcntl.LOCK_SH)
            self.assertTrue(json.loads(self.guest("ls").stdout)[1]["in_use"])
            refused = self.guest("rm", "other", check=False)
            self.assertEqual((125, "nacre: the guest set other is in use by a virtual machine\n"), (refused.returncode, refused.stderr))
        self.guest("default", "other")
        self.guest("default", self.described["name"])
        self.guest("rm", "other")
        self.assertEqual({self.described["name"], "default"}, set(os.listdir(os.path.join(self.root, "guest"))))

    def test_what_cannot_be_made_leaves_nothing(self):
        before = os.listdir(os.path.join(self.root, "guest"))
        image = self.kernel.image
        for words, sentence in ((("--from", self.root), "no kernel in .*linux-image-cloud-amd64"),
                                (("--kernel", image, "--modules", self.root, "--gate", WITNESS), "this kernel has no module virtio_mmio"),
                                (("--kernel", WITNESS, "--gate", WITNESS), "CONFIG_PVH"),
                                (("--from", KERNEL, "--gate", "/bin/cat"), "nacre-gate is not static"),
                                (("--from", KERNEL, "--gate", image), "nacre-gate is not static"),
                                (("--from", KERNEL, "--kernel", image), "exclude each other"),
                                (("--modules", self.root), "--kernel, which is missing")):
            done = self.guest("build", "--name", "bad", *words, check=False)
            self.assertEqual((125, ""), (done.returncode, done.stdout), words)
            self.assertRegex(done.stderr, sentence)
            self.assertEqual(before, os.listdir(os.path.join(self.root, "guest")))

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
            self.assertTrue(seen["init"].startswith("nacre"), seen["init"])
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
            # A boot waits for none of these; the kernel was quiet, and says again what it has to say.
            nacre_test.until(lambda: {"tun", "bridge", "veth", "virtiofs"} <= {m.split()[0] for m in machine.ask()["modules"].split("|") if m},
                             what="the modules for later")
            self.assertNotIn("Linux version", machine.console())
            self.assertIn("the guest serves", machine.console())

    def test_takes_another_address_of_hardware(self):
        """As a copy of a template does, whose device has that of all its copies."""
        with self.machine() as machine:
            self.ready(machine, mac=bytes.fromhex("020000000001"))
            self.assertEqual("web", machine.ask()["hostname"])

    def test_its_keeper_serves_and_ends_it(self):
        with self.machine() as machine:
            self.ready(machine)
            machine.connect().close()
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
                               (boot_port.boot(gateway=bytes((10, 0, 0, 1))), "default route|[Gg]ateway")):
            with self.subTest(sentence):
                with self.machine() as machine:
                    machine.say(said)
                    self.assertFails(machine, sentence)


if __name__ == "__main__":
    unittest.main()
