# SPDX-License-Identifier: Apache-2.0
"""Limits of what runs in a machine: set by the keeper in there, told by its kernel, changed while it runs."""
import os

import grpc

import steps
import test_instance
from nacre_test import nacre_pb2, runtime_pb2
from test_instance import load_tests  # noqa: F401

MIB = 1 << 20
Code = grpc.StatusCode


def limits(**fields):
    return runtime_pb2.Resources(**fields)


class Limits(steps.StepsTest):
    """One machine: a pod of 192 MiB with three containers. What a test does to one of them shows in no other."""

    @classmethod
    def setUpClass(cls):
        test_instance.need()
        super().setUpClass()
        try:
            test_instance.build_set(cls.node)
            sleeper = ("sleep", "100000")
            cls.start = steps.StepsTest.pod(
                cls, "p",
                steps.container(*sleeper, name="hog", resources=limits(memory=32 * MIB)),
                steps.container(*sleeper, name="small", resources=limits(memory=48 * MIB, pids=12, cpu_quota=10000, cpu_period=100000)),
                steps.container(*sleeper, name="free"),
                kind="vm", resources=limits(memory=192 * MIB, cpu_quota=150000))
        except BaseException:
            print(cls.node.log())
            cls.node.destroy()
            raise

    def setUp(self):
        """The pod stays."""

    @classmethod
    def tearDownClass(cls):
        """What a machine leaves behind is for test_instance.py: that would be another one here."""
        cls.node.clear()
        cls.before = cls.node.baseline()
        super().tearDownClass()

    def file(self, container, name):
        return self.sh("p", f"cat /sys/fs/cgroup/{name}", container=container).strip()

    def update(self, target, **fields):
        whole = fields.pop("whole", False)
        container = fields.pop("container", "")
        self.node.workloads.Update(nacre_pb2.UpdateRequest(target=target, container=container, whole=whole, resources=limits(**fields)))

    def test_the_machine_is_as_large_as_its_limit_needs(self):
        total = int(self.sh("p", "cat /proc/meminfo", container="free").split()[1]) << 10
        self.assertGreater(total, 192 * MIB)
        self.assertLess(total, 192 * 17 // 16 * MIB + 160 * MIB)
        self.assertEqual(str(min(2, os.cpu_count())), self.sh("p", "nproc", container="free").strip())

    def test_each_has_its_own(self):
        self.assertEqual(str(32 * MIB), self.file("hog", "memory.max"))
        self.assertEqual((str(48 * MIB), "12", "10000 100000"), tuple(self.file("small", f"{f}.max") for f in ("memory", "pids", "cpu")))
        self.assertEqual(("max", "max 100000"), tuple(self.file("free", f"{f}.max") for f in ("memory", "cpu")))
        shown = self.inspect("p")
        self.assertEqual((192 * MIB, 32 * MIB), (shown.resources.memory, shown.containers[0].resources.memory))

    def test_cpu_is_held_back(self):
        self.exec("p", "timeout", "2", "sh", "-c", "while :; do :; done", container="small")
        stat = dict(line.split() for line in self.file("small", "cpu.stat").splitlines())
        self.assertGreater(int(stat["nr_throttled"]), 5)
        self.assertGreater(int(stat["throttled_usec"]), 500000)
        free = dict(line.split() for line in self.file("free", "cpu.stat").splitlines())
        self.assertEqual("0", free["nr_throttled"])

    def test_pids_and_what_is_raised_while_it_runs(self):
        many = "for i in $(seq 20); do sleep 3 & done; wait"
        out, err, code = self.exec("p", "sh", "-c", many, container="small")
        self.assertIn(b"Resource temporarily unavailable", err + out)
        self.assertNotEqual(0, code)
        self.update("p", container="small", pids=60, memory=64 * MIB)
        self.assertEqual((b"", b"", 0), self.exec("p", "sh", "-c", many, container="small"))
        self.assertEqual(("60", str(64 * MIB)), (self.file("small", "pids.max"), self.file("small", "memory.max")))
        self.assertEqual("10000 100000", self.file("small", "cpu.max"))
        shown = {c.name: c for c in self.inspect("p").containers}
        self.assertEqual((60, 64 * MIB, 10000), (shown["small"].resources.pids, shown["small"].resources.memory,
                                                 shown["small"].resources.cpu_quota))

    def test_beyond_the_machine_nothing_is_promised(self):
        for fields in ({"container": "free"}, {"whole": True}):
            with self.assertRaises(grpc.RpcError) as e:
                self.update("p", memory=4096 * MIB, **fields)
            self.assertEqual(Code.FAILED_PRECONDITION, e.exception.code())
            self.assertRegex(e.exception.details(), r"resources\.memory: 4294967296 bytes are more than the \d+ that fit into p: its machine has \d+ MiB")
        self.assertEqual("max", self.file("free", "memory.max"))
        done = self.node.cli("update", "p", "--whole", "--memory", "4g", check=False)
        self.assertIn("its machine has", done.stderr)
        # The whole may be made smaller, and as large as it was again.
        self.update("p", whole=True, memory=160 * MIB)
        self.update("p", whole=True, memory=192 * MIB)

    def test_want_of_memory_ends_one_alone(self):
        out, err, code = self.exec("p", "dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1", container="hog")
        self.assertEqual((b"", 137), (out, code), err)
        self.wait("p", "hog")
        shown = {c.name: c for c in self.inspect("p").containers}
        self.assertEqual(("exited", 137, 9), (shown["hog"].state, shown["hog"].exit_code, shown["hog"].signal))
        self.assertTrue(shown["hog"].reason.startswith("OOMKilled"), shown["hog"].reason)
        self.assertEqual(("running", "running"), (shown["small"].state, shown["free"].state))
        self.assertEqual("here\n", self.sh("p", "echo here", container="free"))

    def test_z_the_next_daemon_knows_them(self):
        """Nothing of it is in the daemon: the limits are the kernel's in there, the size of the machine is in the record."""
        self.node.kill()
        self.node.start()
        self.assertEqual("60", self.file("small", "pids.max"))
        self.update("p", container="small", pids=61)
        self.assertEqual("61", self.file("small", "pids.max"))
        with self.assertRaises(grpc.RpcError) as e:
            self.update("p", whole=True, memory=4096 * MIB)
        self.assertEqual(Code.FAILED_PRECONDITION, e.exception.code())
        self.assertRegex(e.exception.details(), r"its machine has \d+ MiB")
        self.update("p", whole=True, memory=192 * MIB)
        # What is made in there later is within it too.
        with self.assertRaises(grpc.RpcError) as e:
            self.spawn("p/a", resources=limits(memory=4096 * MIB))
        self.assertEqual(Code.FAILED_PRECONDITION, e.exception.code())
