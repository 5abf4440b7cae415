# SPDX-License-Identifier: Apache-2.0
"""Limits of what runs in a machine: set by the keeper in there, told by its kernel, changed while it runs."""
import json
import os

import grpc

import host
import machines
import steps
from machines import load_tests  # noqa: F401
from nacre_test import nacre_pb2, runtime_pb2

MIB = 1 << 20
Code = grpc.StatusCode


def limits(**fields):
    return runtime_pb2.Resources(**fields)


class Limits(steps.StepsTest):
    """One machine: a pod of 192 MiB with three containers. What a test does to one of them shows in no other."""

    @classmethod
    def setUpClass(cls):
        machines.need()
        super().setUpClass()

    @classmethod
    def prepare(cls):
        machines.build_set(cls.node)
        sleeper = ("sleep", "100000")
        cls.start = steps.StepsTest.pod(
            cls, "p",
            steps.container(*sleeper, name="hog", resources=limits(memory=32 * MIB)),
            steps.container(*sleeper, name="small", resources=limits(memory=48 * MIB, pids=12, cpu_quota=10000, cpu_period=100000)),
            steps.container(*sleeper, name="free"),
            kind="vm", resources=limits(memory=192 * MIB, cpu_quota=150000))

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

    def stats(self):
        pod, = self.node.workloads.Stats(nacre_pb2.StatsRequest(targets=["p"])).workloads
        return pod

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

    def test_memory_that_no_machine_can_have_is_refused_by_name(self):
        """As any other limit past what there is, and not as something to be tried again."""
        said = dict(line.split(":") for line in host.read("/proc/meminfo").splitlines())
        there = sum(int(said[name].split()[0]) << 10 for name in ("MemTotal", "SwapTotal"))
        cases = [(2048 << 30, Code.FAILED_PRECONDITION, r"resources\.memory: 2097152 MiB and what its guest needs are more than")]
        # Unless the host promises whatever it is asked for.
        if host.read("/proc/sys/vm/overcommit_memory").strip() != "1":
            cases += [(there + (1 << 30), Code.RESOURCE_EXHAUSTED, r"this node has no \d+ MiB of memory for a machine")]
        for memory, code, words in cases:
            fields = {"kind": "vm", "resources": limits(memory=memory)}
            for make in (lambda f=fields: self.spawn("big", **f), lambda f=fields: self.pod("big", **f)):
                with self.subTest(memory=memory), self.assertRaises(grpc.RpcError) as e:
                    make()
                self.assertEqual(code, e.exception.code(), e.exception.details())
                self.assertRegex(e.exception.details(), words)
                if "big" in self.all():
                    self.remove("big", force=True)

    def test_stats_are_those_of_its_kernel(self):
        def of_kernel(name):
            values = dict(line.split() for line in self.file("small", "cpu.stat").splitlines())
            return int(values[name])

        self.exec("p", "timeout", "1", "sh", "-c", "while :; do :; done", container="small")
        before = of_kernel("usage_usec"), of_kernel("nr_throttled")
        pod = self.stats()
        after = of_kernel("usage_usec")
        self.assertEqual(("p", "pod"), (pod.name, pod.kind))
        small = {c.name: c.usage for c in pod.containers}["small"]
        self.assertTrue(before[0] <= small.cpu.total_us <= after, (before, small.cpu.total_us, after))
        self.assertGreater(before[1], 0)
        self.assertGreater(small.cpu.throttled_us, 0)
        self.assertEqual((int(self.file("small", "memory.max")), int(self.file("small", "pids.max"))), (small.memory.limit, small.pids.limit))
        # Those of other tests that nobody reaps, it is `sleep` that is pid 1, and whoever reads the file.
        self.assertTrue(0 < int(self.file("small", "pids.current")) - small.pids.current <= 2, small.pids)
        # Each counts what is in it; what is in the machine is not what the machine is.
        self.assertGreaterEqual(pod.usage.cpu.total_us, small.cpu.total_us)
        self.assertEqual(192 * MIB, pod.usage.memory.limit)
        total = int(self.sh("p", "cat /proc/meminfo", container="free").split()[1]) << 10
        self.assertTrue(total < pod.machine.memory < total + 96 * MIB, (total, pod.machine))
        self.assertGreater(pod.machine.cpu.total_us, pod.usage.cpu.total_us // 2)
        self.assertTrue(32 * MIB < pod.machine.host_memory <= pod.machine.memory, pod.machine)
        # What was promised to be the most (VM_OVERHEAD_MIB).
        self.assertTrue(MIB < pod.machine.overhead < pod.machine.memory // 128 + 256 * MIB, pod.machine)
        shown = json.loads(self.node.cli("-o", "json", "stats", "p").stdout)["workloads"][0]
        self.assertEqual((pod.machine.memory, pod.machine.cpus), (shown["machine"]["memory"], shown["machine"]["cpus"]))
        self.assertRegex(self.node.cli("stats", "p").stdout, r"(?s)p .*its machine +vm .*small")

    def test_processes_are_told_with_their_containers(self):
        told = self.node.workloads.Processes(nacre_pb2.ProcessesRequest(target="p")).processes
        self.assertEqual({("free", "sleep 100000"), ("small", "sleep 100000"), ("hog", "sleep 100000")},
                         {(p.container, p.command) for p in told if p.container})
        self.assertEqual({0}, {p.pid for p in told if p.container})
        self.assertEqual({1}, {p.inner_pid for p in told if p.container})
        # Its keeper, and what the machine is made of on this node.
        rest = [p for p in told if not p.container]
        self.assertEqual(1, sum(p.pid == 0 and "keeper" in p.command for p in rest), rest)
        here = {p.pid: p for p in rest if p.pid}
        self.assertEqual(2, len(here), rest)
        for pid, p in here.items():
            self.assertEqual(os.stat(f"/proc/{pid}").st_uid, p.uid)
        one = self.node.workloads.Processes(nacre_pb2.ProcessesRequest(target="p", container="free")).processes
        self.assertEqual(["free"], [p.container for p in one])

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
