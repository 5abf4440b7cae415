# SPDX-License-Identifier: Apache-2.0
"""aurae.cells.v0, aurae.discovery.v0 and aurae.observe.v0, as clients of Aurae's daemon use them."""
import os
import signal
import threading
import time
import unittest

import grpc

import host
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2

cells, observe, discovery = (nacre_test.pb[n + "_pb2"] for n in ("cells", "observe", "discovery"))
STDOUT, STDERR = observe.LOG_CHANNEL_TYPE_STDOUT, observe.LOG_CHANNEL_TYPE_STDERR
WRONG = grpc.StatusCode.FAILED_PRECONDITION


def namespace(pid, kind):
    return os.readlink(f"/proc/{pid}/ns/{kind}")


class AuraeTest(nacre_test.NodeTest):
    IMAGES = ()

    def setUp(self):
        self.cells = nacre_test.pb["cells_pb2_grpc"].CellServiceStub(self.node.channel)
        self.observe = nacre_test.pb["observe_pb2_grpc"].ObserveServiceStub(self.node.channel)

    def allocate(self, name, **fields):
        return self.cells.Allocate(cells.CellServiceAllocateRequest(cell=cells.Cell(name=name, **fields)))

    def cell(self, name, **fields):
        self.allocate(name, **fields)
        self.addCleanup(self.free, name)
        return name

    def free(self, name):
        try:
            self.cells.Free(cells.CellServiceFreeRequest(cell_name=name))
        except grpc.RpcError as e:
            self.assertEqual(e.code(), grpc.StatusCode.NOT_FOUND)

    def start(self, cell, name, command, **fields):
        request = cells.CellServiceStartRequest(executable=cells.Executable(name=name, command=command), **fields)
        if cell is not None:
            request.cell_name = cell
        return self.cells.Start(request)

    def stop(self, cell, name):
        request = cells.CellServiceStopRequest(executable_name=name)
        if cell is not None:
            request.cell_name = cell
        return self.cells.Stop(request)

    def host_pid(self, cell):
        """Of the only executable in a cell."""
        found = [w.containers[0].pid for w in self.node.workloads.List(nacre_pb2.ListRequest(kinds=["executable"], below=cell)).workloads
                 if w.name.count("/") == cell.count("/") + 1]
        self.assertEqual(1, len(found), found)
        return found[0]

    def output(self, pid, channel=STDOUT):
        stream = self.observe.GetSubProcessStream(observe.GetSubProcessStreamRequest(process_id=pid, channel_type=channel), timeout=60)
        return [r.item for r in stream]

    def tree(self):
        def names(node):
            return {node.cell.name: [names(c) for c in node.children]}
        return [names(n) for n in self.cells.List(cells.CellServiceListRequest()).cells]


class Cells(AuraeTest):
    def test_the_tree_of_cells(self):
        for name in ("a", "/a/b/", "a/b/c", "d"):
            self.assertEqual(name.strip("/"), self.cell(name, isolate_network=name == "d") and name.strip("/"))
        self.assertEqual([{"a": [{"a/b": [{"a/b/c": []}]}]}, {"d": []}], self.tree())
        node = self.cells.List(cells.CellServiceListRequest()).cells[1].cell
        self.assertTrue(node.isolate_network)
        self.assertFalse(node.isolate_process or node.HasField("cpu") or node.HasField("memory"))
        self.assertFails(grpc.StatusCode.ALREADY_EXISTS, lambda: self.allocate("a/b"))
        self.free("a")
        self.assertEqual([{"d": []}], self.tree())
        self.assertFails(grpc.StatusCode.NOT_FOUND, lambda: self.cells.Free(cells.CellServiceFreeRequest(cell_name="a")))
        self.assertEqual("a", self.allocate("a").cell_name)
        self.free("a")

    def test_wrong_names_are_refused_and_touch_nothing(self):
        self.cell("prod")
        for name in ("", "/", "prod/web_1", "_", "ae-no_underscore", "-a", "a-", "a//b", "../prod"):
            self.assertFails(WRONG, lambda n=name: self.allocate(n), "cell.name")
            self.assertFails(WRONG, lambda n=name: self.cells.Free(cells.CellServiceFreeRequest(cell_name=n)), "cell_name")
        self.assertFails(WRONG, lambda: self.cells.Allocate(cells.CellServiceAllocateRequest()), "cell: required")
        self.assertFails(grpc.StatusCode.NOT_FOUND, lambda: self.allocate("none/b/c"), "cell none")
        self.assertEqual([{"prod": []}], self.tree())

    def test_capital_letters_are_letters_of_their_own(self):
        self.cell("Web")
        self.cell("web")
        self.cell("Web/DB-1", isolate_process=True)
        self.assertEqual([{"Web": [{"Web/DB-1": []}]}, {"web": []}], self.tree())
        self.start("Web/DB-1", "one", "sleep 60")
        pid = self.host_pid("Web/DB-1")
        self.assertIn("Web/", host.read(f"/proc/{pid}/cgroup"))
        self.stop("Web/DB-1", "one")
        self.free("Web")
        self.assertEqual([{"web": []}], self.tree())
        # Pods keep to small letters.
        self.assertFails(grpc.StatusCode.INVALID_ARGUMENT, lambda: self.node.runtime.RunPod(runtime_pb2.RunPodRequest(
            meta=runtime_pb2.Meta(name="Web"))), "meta.name")

    def test_limits_out_of_range(self):
        for field, fields in (("cell.cpu.weight", {"cpu": cells.CpuController(weight=0)}),
                              ("cell.cpu.weight", {"cpu": cells.CpuController(weight=10001)}),
                              ("cell.cpu.max", {"cpu": cells.CpuController(max=-1)}),
                              ("cell.cpuset.cpus", {"cpuset": cells.CpusetController(cpus="1..3")}),
                              ("cell.memory.max", {"memory": cells.MemoryController(max=-1)})):
            self.assertFails(WRONG, lambda f=fields: self.allocate("limited", **f), field)
        self.assertEqual([], self.tree())

    def test_a_life_of_executables(self):
        cell = self.cell("life")
        answer = self.start(cell, "sleep 30", "sleep 30")
        self.assertEqual((0, 0), (answer.uid, answer.gid))
        pid = self.host_pid(cell)
        self.assertEqual(answer.pid, pid)
        self.assertFails(grpc.StatusCode.ALREADY_EXISTS, lambda: self.start(cell, "sleep 30", "true"), "executable.name")
        self.stop(cell, "sleep 30")
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.assertFails(grpc.StatusCode.NOT_FOUND, lambda: self.stop(cell, "sleep 30"), "executable_name")
        # One that ended by itself keeps its name until Stop.
        pid = self.start(cell, "once", "exit 3").pid
        nacre_test.until(lambda: not os.path.exists(f"/proc/{pid}"), what="its end")
        self.assertFails(grpc.StatusCode.ALREADY_EXISTS, lambda: self.start(cell, "once", "true"))
        self.stop(cell, "once")
        self.start(cell, "once", "true")
        self.stop(cell, "once")

    def test_stop_takes_what_was_started(self):
        cell = self.cell("pipes")
        self.start(cell, "pipe", "tail -f /dev/null | cat; :")
        group = host.read(f"/proc/{self.host_pid(cell)}/cgroup").rpartition("0::")[2].strip()
        nacre_test.until(lambda: len(host.cgroup_pids(os.path.join(host.cgroup_root(), group.strip("/")))) >= 3, what="the pipe")
        self.stop(cell, "pipe")
        self.assertFalse(os.path.exists(os.path.join(host.cgroup_root(), group.strip("/"))))

    def test_wrong_executables(self):
        cell = self.cell("wrong")
        self.assertFails(WRONG, lambda: self.cells.Start(cells.CellServiceStartRequest(cell_name=cell)), "executable: required")
        self.assertFails(WRONG, lambda: self.start(cell, "", "true"), "executable.name")
        self.assertFails(WRONG, lambda: self.start(cell, "x", ""), "executable.command")
        self.assertFails(WRONG, lambda: self.start("", "x", "true"), "cell_name")
        self.assertFails(WRONG, lambda: self.start(cell, "x", "true", uid=1 << 31), "uid")
        self.assertFails(grpc.StatusCode.NOT_FOUND, lambda: self.start("nowhere", "x", "true"), "cell_name")
        self.assertFails(WRONG, lambda: self.cells.Stop(cells.CellServiceStopRequest(cell_name=cell)), "executable_name")

    def test_without_a_cell(self):
        pid = self.start(None, "bare", "sleep 100", uid=65534, gid=65533).pid
        status = host.read(f"/proc/{pid}/status")
        self.assertIn("Uid:\t65534\t65534", status)
        self.assertIn("Gid:\t65533\t65533", status)
        self.assertLessEqual(set(status.partition("Groups:")[2].splitlines()[0].split()), {"65533"})
        self.assertEqual(namespace("self", "mnt"), namespace(pid, "mnt"))
        self.stop(None, "bare")

    def test_a_plain_cell_shares_with_the_host(self):
        cell = self.cell("plain")
        self.start(cell, "s", "sleep 100")
        pid = self.host_pid(cell)
        for kind in ("pid", "net", "ipc", "uts", "mnt"):
            self.assertEqual(namespace("self", kind), namespace(pid, kind), kind)
        self.assertNotEqual(namespace("self", "cgroup"), namespace(pid, "cgroup"))

    def test_an_isolated_cell(self):
        before = host.read("/proc/self/mountinfo")
        cell = self.cell("apart", isolate_process=True, isolate_network=True)
        inner = self.cell("apart/in")
        answer = self.start(cell, "s", "hostname; ls -d /proc/[0-9]*; cat /sys/class/net/*/operstate /proc/net/dev; sleep 100")
        pid = self.host_pid(cell)
        for kind in ("pid", "net", "ipc", "uts", "mnt"):
            self.assertNotEqual(namespace("self", kind), namespace(pid, kind), kind)
        self.assertIn(f"\t{answer.pid}\n", [l for l in host.read(f"/proc/{pid}/status").splitlines(True) if l.startswith("NSpid")][0])
        nacre_test.until(lambda: "sleep" in host.read(f"/proc/{pid}/task/{pid}/children") or
                         host.read(f"/proc/{pid}/task/{pid}/children").strip(), what="the sleep")
        # What is in it has its namespaces, and sees its processes.
        self.start(inner, "t", "sleep 100")
        below = self.host_pid(inner)
        for kind in ("pid", "net", "ipc", "uts"):
            self.assertEqual(namespace(pid, kind), namespace(below, kind), kind)
        self.stop(cell, "s")
        self.assertEqual(before, host.read("/proc/self/mountinfo"))

    def test_loopback_is_up_in_an_isolated_network(self):
        cell = self.cell("lo", isolate_network=True)
        pid = self.start(cell, "net", "cat /proc/net/dev | tail -n +3 | cut -d: -f1; cat /proc/net/route | wc -l; cat /proc/net/if_inet6; echo over").pid
        nacre_test.until(lambda: self.ended(cell), what="its end")
        lines = [i.line.strip() for i in self.output(pid)]
        self.assertEqual(["lo", "1"], lines[:2])
        self.assertIn("over", lines)
        self.assertTrue(any(l.endswith("lo") and l.startswith("0" * 31 + "1") for l in lines), lines)

    def ended(self, cell):
        return self.node.workloads.List(nacre_pb2.ListRequest(kinds=["executable"], states=["exited"], below=cell)).workloads

    def test_an_executable_of_the_core_in_a_cell(self):
        cell = self.cell("core", isolate_process=True)
        answer = self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
            cell=cell, executable=runtime_pb2.Executable(command="sh", args=["-c", "hostname; echo $$; test -d /proc/1 && ls /proc/1/exe"])))
        self.assertEqual(0, answer.exit_code, answer)
        self.assertEqual(b"core", answer.stdout.splitlines()[0])
        self.assertLess(int(answer.stdout.splitlines()[1]), 20)
        self.assertFails(grpc.StatusCode.NOT_FOUND, lambda: self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
            cell="nowhere", executable=runtime_pb2.Executable(command="true"))), "cell")

    def test_it_outlives_the_daemon(self):
        cell = self.cell("stays", isolate_process=True)
        self.start(cell, "s", "echo before; sleep 100")
        pid = self.host_pid(cell)
        self.node.restart()
        self.setUp()
        self.assertEqual([{"stays": []}], self.tree())
        self.assertTrue(os.path.exists(f"/proc/{pid}"))
        self.assertFails(grpc.StatusCode.ALREADY_EXISTS, lambda: self.start(cell, "s", "true"))
        self.start(cell, "after", "test $$ -lt 100 && ls -d /proc/self")
        self.stop(cell, "s")
        self.free(cell)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.node.info.Info(nacre_pb2.InfoRequest())

    def test_a_killed_keeper(self):
        cell = self.cell("lost", isolate_process=True)
        self.start(cell, "s", "sleep 100")
        pid = self.host_pid(cell)
        keeper = [w.pid for w in self.node.workloads.List(nacre_pb2.ListRequest(kinds=["instance"])).workloads if w.name == cell][0]
        os.kill(keeper, signal.SIGKILL)
        nacre_test.until(lambda: not os.path.exists(f"/proc/{pid}"), what="its end with the keeper")
        nacre_test.until(lambda: [w for w in self.node.workloads.List(nacre_pb2.ListRequest(all=True, kinds=["instance"])).workloads
                                  if w.state == "failed"], what="the failure")
        self.free(cell)
        self.assertEqual([], self.tree())
        self.assertEqual(cell, self.allocate(cell).cell_name)

    @unittest.skipIf(nacre_test.SLOWNESS > 1, "memory of a build with sanitizers is another one")
    def test_an_empty_cell_is_small(self):
        n = 8
        for i in range(n):
            self.cell(f"small{i}", isolate_process=i % 2 == 0)
        keepers = [w.pid for w in self.node.workloads.List(nacre_pb2.ListRequest(kinds=["instance"])).workloads if w.name.startswith("small")]
        self.assertEqual(n, len(keepers))
        pss = [int(l.split()[1]) for k in keepers for l in host.read(f"/proc/{k}/smaps_rollup").splitlines() if l.startswith("Pss:")]
        self.assertLessEqual(max(pss), 1024, pss)


class Observe(AuraeTest):
    def test_output_from_the_first_byte(self):
        cell = self.cell("talk", isolate_process=True)
        pid = self.start(cell, "t", r"echo hello; echo aurae; printf 'a\377b\n'; echo bye; echo oops >&2; printf end").pid
        nacre_test.until(lambda: self.node.workloads.List(nacre_pb2.ListRequest(states=["exited"], below=cell)).workloads, what="its end")
        items = self.output(pid)
        self.assertEqual(["hello", "aurae", "a\ufffdb", "bye", "end"], [i.line for i in items])
        self.assertEqual({"t::stdout"}, {i.channel for i in items})
        self.assertEqual([b"", b"", b"a\377b", b"", b""], [i.data for i in items])
        self.assertGreater(items[0].timestamp, 1700000000)
        self.assertEqual([("t::stderr", "oops")], [(i.channel, i.line) for i in self.output(pid, STDERR)])

    def test_output_as_it_comes(self):
        cell = self.cell("live")
        pid = self.start(cell, "t", "echo one; read x < /proc/self/fd/0; sleep 100").pid
        stream = self.observe.GetSubProcessStream(observe.GetSubProcessStreamRequest(process_id=pid, channel_type=STDOUT), timeout=60)
        self.assertEqual("one", next(stream).item.line)
        self.stop(cell, "t")
        with self.assertRaises((StopIteration, grpc.RpcError)):
            next(stream)

    def test_long_lines_come_in_pieces(self):
        cell = self.cell("long")
        pid = self.start(cell, "t", "head -c 200000 /dev/zero | tr '\\0' x; echo").pid
        nacre_test.until(lambda: self.node.workloads.List(nacre_pb2.ListRequest(states=["exited"], below=cell)).workloads, what="its end")
        lines = [i.line for i in self.output(pid)]
        self.assertEqual(200000, sum(map(len, lines)))
        self.assertLessEqual(max(map(len, lines)), 65536)

    def test_wrong_streams(self):
        cell = self.cell("none")
        pid = self.start(cell, "t", "sleep 100").pid
        self.assertFails(grpc.StatusCode.NOT_FOUND, lambda: self.output(1), "process_id")
        self.assertFails(grpc.StatusCode.NOT_FOUND, lambda: self.output(pid, 0), "channel_type")
        self.assertFails(grpc.StatusCode.INVALID_ARGUMENT, lambda: self.output(pid, 7), "channel_type")

    def test_the_daemons_log(self):
        stream = self.observe.GetAuraeDaemonLogStream(observe.GetAuraeDaemonLogStreamRequest(), timeout=60)
        first = next(stream).item
        self.assertEqual("nacre", first.channel)
        seen = []
        reader = threading.Thread(target=lambda: seen.extend(self.until_word(stream, "keeper has ended")))
        reader.start()
        self.allocate("noisy")
        self.free("noisy")
        reader.join(30)
        self.assertTrue(seen)
        stream.cancel()

    def until_word(self, stream, word):
        for r in stream:
            if word in r.item.line:
                return [r.item.line]
        return []

    def test_too_many_streams_of_the_log(self):
        streams = [self.observe.GetAuraeDaemonLogStream(observe.GetAuraeDaemonLogStreamRequest(), timeout=60) for _ in range(64)]
        for s in streams:
            next(s)
        self.assertFails(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: next(
            self.observe.GetAuraeDaemonLogStream(observe.GetAuraeDaemonLogStreamRequest(), timeout=60)))
        for s in streams:
            s.cancel()

    def signals(self, kind=0, name=""):
        """A stream of them, and what it has told: [(signal, pid)]."""
        request = observe.GetPosixSignalsStreamRequest(workload=observe.Workload(workload_type=kind, id=name)) if kind else \
            observe.GetPosixSignalsStreamRequest()
        stream, told = self.observe.GetPosixSignalsStream(request), []

        def read():
            try:
                for r in stream:
                    told.append((r.signal.signal, r.signal.process_id))
            except grpc.RpcError as e:
                told.append(e)
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)
        self.addCleanup(stream.cancel)
        return told

    def until_told(self, told, pid, number, seen):
        """Sends it until it is told: a stream is watched some time after it was asked for."""
        def again():
            if told and isinstance(told[-1], grpc.RpcError) and told[-1].code() == grpc.StatusCode.UNIMPLEMENTED:
                self.skipTest(told[-1].details())
            os.kill(pid, number)
            time.sleep(0.02)
            return (number, seen) in told
        nacre_test.until(again, what=f"signal {number} of {seen} in {told[:5]}")

    def test_signals_by_the_group_of_the_receiver(self):
        deaf = "trap '' USR1 USR2; exec sleep 60"
        pids = {}
        for name in ("sig", "sig/below", "other"):
            self.cell(name, isolate_process=name == "other")
            own = self.start(name, "deaf", deaf).pid
            pids[name] = (self.host_pid(name), own)
            nacre_test.until(lambda n=name: "sleep" in host.read(f"/proc/{pids[n][0]}/comm"), what="its program")
        whole, cell, isolated = self.signals(), self.signals(observe.WORKLOAD_TYPE_CELL, "sig"), self.signals(observe.WORKLOAD_TYPE_CELL, "other")
        self.until_told(cell, pids["sig"][0], signal.SIGUSR1, pids["sig"][1])
        # The number that the process has for itself.
        self.assertNotEqual(*pids["other"])
        self.until_told(isolated, pids["other"][0], signal.SIGUSR1, pids["other"][1])
        # The sender is in no cell. Others are told only to who has asked for all.
        for name in ("sig/below", "other"):
            self.until_told(whole, pids[name][0], signal.SIGUSR2, pids[name][1])
        self.until_told(whole, pids["sig"][0], signal.SIGUSR1, pids["sig"][1])
        self.assertEqual({(signal.SIGUSR1, pids["sig"][1])}, set(cell))
        self.stop("sig", "deaf")
        nacre_test.until(lambda: (signal.SIGKILL, pids["sig"][1]) in cell, what=f"its end in {cell[-3:]}")
        self.assertNotIn(pids["sig"][1], [p for _, p in isolated])

    def test_wrong_streams_of_signals(self):
        for code, kind, name, text in (
                (grpc.StatusCode.NOT_FOUND, observe.WORKLOAD_TYPE_CELL, "none", "workload.id: there is no cell none"),
                (WRONG, observe.WORKLOAD_TYPE_CELL, "a_b", "workload.id"),
                (grpc.StatusCode.NOT_FOUND, observe.WORKLOAD_TYPE_POD_SANDBOX, "none", "workload.id: no pod"),
                (grpc.StatusCode.UNIMPLEMENTED, observe.WORKLOAD_TYPE_VM, "v", "workload.workload_type"),
                (grpc.StatusCode.INVALID_ARGUMENT, 9, "v", "workload.workload_type: 9 is unknown")):
            self.assertFails(code, lambda k=kind, n=name: list(self.observe.GetPosixSignalsStream(observe.GetPosixSignalsStreamRequest(
                workload=observe.Workload(workload_type=k, id=n)), timeout=10)), text)

    def test_discovery_and_health(self):
        answer = nacre_test.pb["discovery_pb2_grpc"].DiscoveryServiceStub(self.node.channel).Discover(discovery.DiscoverRequest())
        self.assertTrue(answer.healthy)
        self.assertTrue(answer.version)


if __name__ == "__main__":
    unittest.main()
