# SPDX-License-Identifier: Apache-2.0
"""The checks of the reference of Aurae's API that a better implementation passes (5.3), and its reusable cases (4.2), each by its number
where it has one. Checks 9, 11, 15 and 19 are tests of test_aurae.py (the daemon's log, loopback, signals, an empty cell), 12 those
of tests/vm/test_aurae_vms.py, 14 those of pid 1 (tests/guest, src/init), 6 and 10 are seen there and here."""
import os
import signal
import subprocess
import threading
import time
import unittest

import grpc

import host
import nacre_test
import test_aurae
import test_remote
from nacre_test import nacre_pb2, until
from test_aurae import WRONG, cells, discovery, observe

Code = grpc.StatusCode


class Checks(test_aurae.AuraeTest):
    def limited(self, name, **fields):
        """A cell with limits, where this host has their controllers in version 2."""
        try:
            return self.cell(name, **fields)
        except grpc.RpcError as e:
            if "in version 1" in e.details():
                self.skipTest(e.details())
            raise

    def groups(self):
        return {path for path, _, _ in os.walk(os.path.join(host.cgroup_root(), self.node.cgroup().strip("/")))}

    def test_check_1_a_life_leaves_nothing(self):
        self.allocate("first")
        self.free("first")
        before = self.groups()
        self.allocate("one")
        self.start("one", "s", "sleep 1000")
        pid = self.host_pid("one")
        self.stop("one", "s")
        self.free("one")
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        until(lambda: not [g for g in self.groups() - before if "one" in g], what="the end of its groups")

    def test_check_2_a_name_is_free_after_an_exit(self):
        cell = self.cell("two")
        self.start(cell, "t", "true")
        until(lambda: self.node.workloads.List(nacre_pb2.ListRequest(kinds=["executable"], states=["exited"], below=cell)).workloads)
        self.stop(cell, "t")
        self.start(cell, "t", "sleep 100")
        self.stop(cell, "t")

    def test_check_3_a_pipeline_is_gone_as_a_whole(self):
        cell = self.cell("three")
        path = os.path.join(self.node.dir, "three")
        with open(path, "w", encoding="ascii"):
            pass
        self.start(cell, "pipe", f"tail -f {path} | cat")
        pid = self.host_pid(cell)
        group = os.path.join(host.cgroup_root(), next(l[3:].strip("/\n") for l in open(f"/proc/{pid}/cgroup", encoding="ascii") if l.startswith("0::")))
        until(lambda: len(open(os.path.join(group, "cgroup.procs"), encoding="ascii").read().split()) >= 3, what="the pipeline")
        pids = open(os.path.join(group, "cgroup.procs"), encoding="ascii").read().split()
        self.stop(cell, "pipe")
        self.assertEqual([], [p for p in pids if os.path.exists(f"/proc/{p}")])

    def test_check_4_a_wrong_name_touches_no_other(self):
        self.cell("four")
        self.cell("four/b")
        with self.assertRaises(grpc.RpcError) as caught:
            self.allocate("a_b")
        self.assertEqual(WRONG, caught.exception.code())
        self.assertIn("cell.name", caught.exception.details())
        for name in ("four/b_c", "four/_", "four//b", "four/.."):
            self.assertFails(WRONG, lambda n=name: self.cells.Free(cells.CellServiceFreeRequest(cell_name=n)), "cell_name")
        self.assertEqual([{"four": [{"four/b": []}]}], self.tree())

    def test_check_5_limits_read_back(self):
        memory = cells.MemoryController(min=1 << 20, low=2 << 20, high=200 << 20, max=300 << 20)
        self.limited("five", cpu=cells.CpuController(weight=100, max=50000), memory=memory)
        read = next(n.cell for n in self.cells.List(cells.CellServiceListRequest()).cells if n.cell.name == "five")
        self.assertEqual((100, 50000), (read.cpu.weight, read.cpu.max))
        self.assertEqual(memory, read.memory)

    def test_check_6_a_killed_daemon_has_its_cells(self):
        self.cell("six")
        self.start("six", "s", "sleep 1000")
        self.node.restart(signal.SIGKILL)
        self.setUp()
        self.assertEqual([{"six": []}], self.tree())
        self.free("six")
        self.assertEqual([], self.tree())
        self.node.info.Info(nacre_pb2.InfoRequest())

    def test_check_7_no_socket_is_open_to_others(self):
        self.cell("seven", isolate_process=True)
        for path, _, files in os.walk(self.node.dir):
            for f in files:
                full = os.path.join(path, f)
                # What systemd would have made, and the Workload API, which is for everybody who is attested.
                if not host_is_socket(full) or f == "notify" or os.path.basename(path) == "identity":
                    continue
                done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-c",
                                       "import socket, sys\ntry:\n socket.socket(socket.AF_UNIX).connect(sys.argv[1])\nexcept PermissionError:\n sys.exit(7)",
                                       full], capture_output=True, check=False)
                self.assertEqual(7, done.returncode, full)

    def test_check_10_propagation_of_the_host_is_as_it_was(self):
        before = host.read("/proc/self/mountinfo")
        self.cell("ten", isolate_process=True)
        self.assertEqual(before, host.read("/proc/self/mountinfo"))

    def test_check_13_the_cri_answers(self):
        done = {m: self.node.channel.unary_unary(f"/runtime.v1.RuntimeService/{m}")(b"") for m in ("Version", "Status")}
        self.assertIn(b"nacre", done["Version"])
        self.assertIn(b"RuntimeReady", done["Status"])

    def test_check_16_the_exit_status_of_the_command_says_it(self):
        self.assertNotEqual(0, self.node.cli("inspect", "nothing", check=False).returncode)
        self.assertIsInstance(self.node.json("ps"), list)

    def test_check_17_a_stream_does_not_hold_up_the_end(self):
        with nacre_test.Node() as node:
            stub = nacre_test.pb["observe_pb2_grpc"].ObserveServiceStub(node.channel)
            stream = stub.GetAuraeDaemonLogStream(observe.GetAuraeDaemonLogStreamRequest())
            lines = []
            reader = threading.Thread(target=lambda: drain(stream, lines), daemon=True)
            reader.start()
            until(lambda: lines, what="a line of the log")
            since = time.monotonic()
            node.send_signal(signal.SIGTERM)
            node.wait(30)
            # The drain is 10 s: an open stream is none that it waits for beyond that.
            self.assertLess(time.monotonic() - since, 15 * nacre_test.SLOWNESS)
            reader.join(10)

    def test_case_limits_of_cpusets_and_memory(self):
        for cpus in ("foo", "1:2", "1..3", "1,foo;5"):
            self.assertFails(WRONG, lambda c=cpus: self.allocate("set", cpuset=cells.CpusetController(cpus=c)), "cell.cpuset.cpus")
        self.assertFails(WRONG, lambda: self.allocate("m", memory=cells.MemoryController(low=-1)), "cell.memory.low")
        self.assertFails(WRONG, lambda: self.allocate("c", cpu=cells.CpuController(max=-1)), "cell.cpu.max")
        self.limited("weight", cpu=cells.CpuController(weight=1000))
        for number, cpus in enumerate(("0", "0-0", "0,0")):
            self.limited(f"set{number}", cpuset=cells.CpusetController(cpus=cpus))

    def test_case_a_name_twice_and_none(self):
        self.cell("twice")
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.allocate("twice"))
        self.start("twice", "s", "sleep 100")
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.start("twice", "s", "sleep 100"))
        self.stop("twice", "s")
        self.assertFails(Code.NOT_FOUND, lambda: self.stop("twice", "s"))
        self.assertFails(Code.NOT_FOUND, lambda: self.cells.Free(cells.CellServiceFreeRequest(cell_name="none")))

    def test_case_of_the_unmerged_branch(self):
        """At the root daemon first, and then in a cell."""
        self.start(None, "root", "sleep 100")
        self.stop(None, "root")
        self.cell("branch")
        self.start("branch", "in", "sleep 100")
        self.stop("branch", "in")
        self.free("branch")

    def test_case_health_of_an_unknown_service(self):
        check = self.node.channel.unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(b"\x08\x01", check(b""))
        self.assertFails(Code.NOT_FOUND, lambda: check(b"\x0a\x04nope"))

    def test_case_nothing_listens_unasked(self):
        for name in ("tcp", "tcp6"):
            table = open(f"/proc/{self.node.pid}/net/{name}", encoding="ascii").read().splitlines()[1:]
            ports = {int(l.split()[1].rpartition(":")[2], 16) for l in table if l.split()[3] == "0A"}
            self.assertNotIn(8080, ports)
        self.assertEqual(0o600, os.stat(self.node.socket).st_mode & 0o777)


def host_is_socket(path):
    try:
        return (os.stat(path, follow_symlinks=False).st_mode & 0o170000) == 0o140000
    except OSError:
        return False


def drain(stream, lines):
    try:
        for item in stream:
            lines.append(item)
    except grpc.RpcError:
        pass


class Elsewhere(test_remote.Remote):
    """As Aurae's clients come in over TCP."""

    def stubs(self, name):
        channel = self.channel(name)
        return nacre_test.pb["cells_pb2_grpc"].CellServiceStub(channel), nacre_test.pb["observe_pb2_grpc"].ObserveServiceStub(channel)

    def test_check_8_output_from_elsewhere_with_what_was_before(self):
        calls, outputs = self.stubs("alice")
        calls.Allocate(cells.CellServiceAllocateRequest(cell=cells.Cell(name="far", isolate_process=True)))
        try:
            pid = calls.Start(cells.CellServiceStartRequest(cell_name="far", executable=cells.Executable(
                name="t", command=r"echo before; printf 'a\377\000b\n'; sleep 0.5; echo after"))).pid
            until(lambda: self.node.workloads.List(nacre_pb2.ListRequest(states=["exited"], below="far")).workloads, what="its end")
            items = list(outputs.GetSubProcessStream(observe.GetSubProcessStreamRequest(process_id=pid, channel_type=test_aurae.STDOUT), timeout=60))
            self.assertEqual("before", items[0].item.line.strip())
            self.assertEqual("after", items[-1].item.line.strip())
            self.assertEqual(3, len(items))
        finally:
            calls.Free(cells.CellServiceFreeRequest(cell_name="far"))

    def test_check_18_each_identity_has_its_calls(self):
        for name, allowed in (("alice", True), ("bob", False)):
            calls, _ = self.stubs(name)
            calls.List(cells.CellServiceListRequest())
            if allowed:
                calls.Allocate(cells.CellServiceAllocateRequest(cell=cells.Cell(name="mine")))
                calls.Free(cells.CellServiceFreeRequest(cell_name="mine"))
            else:
                self.assertFails(Code.PERMISSION_DENIED, lambda c=calls: c.Allocate(cells.CellServiceAllocateRequest(cell=cells.Cell(name="x"))))

    def test_case_plain_text_is_refused_and_mutual_tls_is_not(self):
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            self.assertFails((Code.UNAVAILABLE), lambda: nacre_test.pb["discovery_pb2_grpc"].DiscoveryServiceStub(channel).Discover(
                discovery.DiscoverRequest(), timeout=10))
        answer = nacre_test.pb["discovery_pb2_grpc"].DiscoveryServiceStub(self.channel("alice")).Discover(discovery.DiscoverRequest())
        self.assertTrue(answer.healthy and answer.version)


if __name__ == "__main__":
    unittest.main()
