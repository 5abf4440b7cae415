# SPDX-License-Identifier: Apache-2.0
"""Instances in instances: what runs deep down is reached by its path, and ends with what is around it."""
import os
import signal
import time

import grpc

import host
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2
from steps import container, namespaces, pid_depth

Code = grpc.StatusCode


class RecursionTest(steps.StepsTest):
    def chain(self, path):
        names = path.split("/")
        return [self.spawn("/".join(names[:n + 1])) for n in range(len(names))]


class Deep(RecursionTest):
    def test_spawn_makes_a_layer_each(self):
        before = self.node.baseline()
        a, b, c = self.chain("a/b/c")
        self.assertEqual(["a", "a/b", "a/b/c"], [i.name for i in (a, b, c)])
        self.assertEqual({"cell"}, {i.kind for i in (a, b, c)})
        self.assertTrue(a.kind_reason)
        self.assertEqual([1, 2, 3], [pid_depth(i.pid) for i in (a, b, c)])
        spaces = [namespaces(p) for p in ("self", a.pid, b.pid, c.pid)]
        # A keeper makes cgroups for others, so it has the view of the node; its containers have their own.
        for space in set(spaces[0]) - {"cgroup"}:
            self.assertEqual(4, len({s[space] for s in spaces}), space)
        self.assertIn(f" {b.pid} ", f" {host.read(f'/proc/{a.pid}/task/{a.pid}/children')} ")
        shown = self.all()
        self.assertEqual(["a", "a/b", "a/b/c"], list(shown))
        self.assertEqual({"ready"}, {w.state for w in shown.values()})
        self.assertEqual([a.pid, b.pid, c.pid], [w.pid for w in shown.values()])
        self.assertEqual(["", "a", "a/b"], [w.instance for w in shown.values()])
        for w in shown.values():
            procs = os.path.join(host.cgroup_root(), w.cgroup.lstrip("/"), "keeper", "cgroup.procs")
            self.assertEqual([str(w.pid)], host.read(procs).split())
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="a"))
        self.assertEqual({}, self.all())
        self.assertNoTraces(before)

    def test_an_image_at_depth_three(self):
        before = self.node.baseline()
        self.chain("a/b/c")
        done = self.cell("a/b/c/deep", container("sh", "-c", "trap 'echo told; exit 9' TERM; echo started; echo error >&2;"
                                                 "while :; do sleep 0.1; done", env=["WHERE=deep"]))
        status = done.containers[0]
        self.assertEqual(("a/b/c/deep", "running", ""), (done.name, status.state, status.reason))
        self.assertEqual("sh\0-c", host.read(f"/proc/{status.pid}/cmdline")[:5])
        self.assertEqual(4, pid_depth(status.pid))
        self.assertTrue(host.read(f"/proc/{status.pid}/cgroup").strip().endswith("/inst.a/inst.b/inst.c/cell.deep/main"))
        # Two pipes: what was written last may be here first.
        nacre_test.until(lambda: all(w in self.logs("a/b/c/deep") for w in (b"started\n", b"error\n")), what="its output")
        self.assertEqual(b"started\nerror\n", b"".join(sorted(self.logs("a/b/c/deep").splitlines(True), reverse=True)))
        self.assertEqual((b"deep\n", b"no\n", 3),
                         self.exec("a/b/c/deep", "sh", "-c", "echo $WHERE; echo no >&2; exit 3"))
        self.assertEqual((b"1\n", b"", 0), self.exec("a/b/c/deep", "sh", "-c", "readlink /proc/1/exe >/dev/null; echo 1"))
        follow = self.node.workloads.Logs(nacre_pb2.LogsRequest(target="a/b/c/deep", follow=True))
        stopped = self.node.workloads.Stop(nacre_pb2.StopRequest(target="a/b/c/deep", grace_ms=100000)).workload
        self.assertEqual(("exited", 9), (stopped.state, stopped.exit_code))
        self.assertTrue(b"".join(a.data for a in follow).endswith(b"told\n"))
        self.assertEqual(9, self.node.workloads.Wait(nacre_pb2.WaitRequest(target="a/b/c/deep")).exit_code)
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="a/b/c/deep"))
        self.assertEqual(["a", "a/b", "a/b/c"], list(self.all()))
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="a", force=True))
        self.assertEqual({}, self.all())
        self.assertNoTraces(before)

    def test_stdin_and_large_output_at_depth_three(self):
        self.chain("a/b/c")
        self.cell("a/b/c/cat", container("cat", stdin=True))
        data = os.urandom(1 << 20)
        for at in range(0, len(data), 1 << 18):
            self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(
                target="a/b/c/cat", data=data[at:at + (1 << 18)], close=at + (1 << 18) == len(data)))
        self.assertEqual(0, self.node.workloads.Wait(nacre_pb2.WaitRequest(target="a/b/c/cat")).exit_code)
        self.assertEqual(data, self.logs("a/b/c/cat"))

    def test_command_line(self):
        for words in (("spawn", "--name", "a"), ("spawn", "--in", "a", "--name", "b"), ("spawn", "--in", "a/b", "--name", "c")):
            self.node.cli(*words)
        done = self.node.cli("cell", "--in", "a/b/c", "--name", "deep", "busybox", "sleep", "1000")
        self.assertEqual("a/b/c/deep\n", done.stdout)
        self.assertEqual(5, self.node.cli("exec", "a/b/c/deep", "sh", "-c", "exit 5", check=False).returncode)
        tree = self.node.cli("tree").stdout
        self.assertEqual(["a", "b", "c", "deep"], [w for w in tree.split() if w in ("a", "b", "c", "deep")])
        self.assertEqual(["a", "a/b", "a/b/c", "a/b/c/deep"], [w["name"] for w in self.node.json("ps")])
        self.node.cli("stop", "-t", "0", "a/b/c/deep")
        self.node.cli("rm", "a/b/c/deep")
        self.node.cli("stop", "a")
        self.assertEqual([], self.node.json("ps", "-a"))

    def test_pod_inside_an_instance(self):
        self.chain("a/b")
        done = self.pod("a/b/web")
        self.assertEqual(("a/b/web", "running"), (done.name, done.containers[0].state))
        self.assertEqual(4, pid_depth(done.containers[0].pid))
        self.assertEqual((b"web\n", b"", 0), self.exec("a/b/web", "hostname"))
        self.assertEqual(["a", "a/b", "a/b/web"], list(self.all()))

    def test_network_of_the_parent(self):
        a, host_net = self.spawn("a"), self.spawn("a/h", network="host")
        self.assertEqual(namespaces(a.pid)["net"], namespaces(host_net.pid)["net"])
        top = self.spawn("top", network="host")
        self.assertEqual(namespaces("self")["net"], namespaces(top.pid)["net"])
        self.assertNotEqual(namespaces("self")["ipc"], namespaces(top.pid)["ipc"])

    def test_names_are_of_their_parent(self):
        self.chain("a/b")
        self.spawn("b")
        self.cell("a/b/x")
        self.cell("a/x")
        for path in ("a/x", "a/b/x"):
            self.assertFails(Code.ALREADY_EXISTS, lambda p=path: self.cell(p), path)
            self.assertFails(Code.ALREADY_EXISTS, lambda p=path: self.spawn(p), path)
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.spawn("a/b"), "a/b")

    def test_depth_has_a_limit(self):
        self.chain("a/b/c/d/e/f/g/h")
        path = "a/b/c/d/e/f/g/h/i"
        for call in (self.spawn, self.cell, self.pod):
            text = self.assertFails(Code.INVALID_ARGUMENT, lambda c=call: c(path), "8")
            self.assertRegex(text, r"^(meta\.name|parent|instance): .* .*")
        self.cell("a/b/c/d/e/f/g/last")
        self.assertEqual(b"last\n", self.exec("a/b/c/d/e/f/g/last", "hostname")[0])


class Ends(RecursionTest):
    def test_killing_the_keeper_in_the_middle(self):
        before = self.node.baseline()
        a, b, c = self.chain("a/b/c")
        deep = self.cell("a/b/c/deep")
        beside = self.cell("a/beside")
        waiting = self.node.workloads.Wait.future(nacre_pb2.WaitRequest(target="a/b/c/deep"))
        with nacre_test.Events(self.node) as events:
            os.kill(b.pid, signal.SIGKILL)
            for path in ("a/b", "a/b/c"):
                event = events.wait(path, "failed")
                self.assertIn("signal 9", event.reason)
            self.assertIn("signal 9", events.wait("a/b/c/deep", "failed", object="workload").reason)
        self.assertEqual("failed", waiting.result(timeout=60).workload.state)
        for pid in (b.pid, c.pid, deep.containers[0].pid):
            self.assertIsNone(host.process(pid))
        shown = self.all()
        self.assertEqual({"a": "ready", "a/b": "failed", "a/b/c": "failed", "a/b/c/deep": "failed", "a/beside": "running"},
                         {n: w.state for n, w in shown.items()})
        self.assertEqual(beside.containers[0].pid, shown["a/beside"].containers[0].pid)
        for path in ("a/b", "a/b/c", "a/b/c/deep"):
            self.assertIn("signal 9", shown[path].reason)
        nacre_test.until(lambda: not os.path.exists(os.path.join(host.cgroup_root(), shown["a"].cgroup.lstrip("/"), "inst.b")),
                         what="the end of its cgroup")
        self.assertEqual((b"still\n", b"", 0), self.exec("a/beside", "echo", "still"))
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.cell("a/b/c/more"), "a/b/c")
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="a/b", force=True))
        self.assertEqual(["a", "a/beside"], sorted(self.all()))
        # The name is free again.
        self.spawn("a/b")
        self.node.clear()
        self.assertIsNone(host.process(a.pid))
        self.assertNoTraces(before)

    def test_killing_the_topmost(self):
        before = self.node.baseline()
        a, *_ = self.chain("a/b")
        self.cell("a/b/deep")
        os.kill(a.pid, signal.SIGKILL)
        shown = nacre_test.until(lambda: self.ended(3), what="the end of all")
        for path in ("a", "a/b", "a/b/deep"):
            self.assertIn("signal 9", shown[path].reason)
        self.node.clear()
        self.assertEqual({}, self.all())
        self.assertNoTraces(before)

    def ended(self, n):
        shown = self.all()
        return shown if len([w for w in shown.values() if w.state == "failed"]) == n else None

    def test_stopping_an_instance_stops_what_is_in_it(self):
        before = self.node.baseline()
        self.chain("a/b")
        deep = self.cell("a/b/deep")
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="a"))
        self.assertIsNone(host.process(deep.containers[0].pid))
        left = self.all()
        self.assertNotIn("a", left)
        self.assertNotIn("a/b", left)
        for w in left.values():
            self.assertIn("stopped", w.reason)
        self.node.clear()
        self.assertEqual({}, self.all())
        self.assertNoTraces(before)

    def test_stopping_an_instance_is_graceful_at_every_depth(self):
        before = self.node.baseline()
        self.chain("a/b")
        self.spawn("ab")
        heeds = container("sh", "-c", "trap 'echo told; exit 9' TERM; echo ready; while :; do sleep 0.05; done")
        deaf = container("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
        self.cell("a/top", heeds)
        self.cell("a/b/deep", heeds)
        self.pod("a/b/web", heeds)
        self.cell("a/b/deaf", deaf)
        beside = self.cell("ab/beside", heeds)
        for path in ("a/top", "a/b/deep", "a/b/web", "a/b/deaf"):
            nacre_test.until(lambda p=path: b"ready" in self.logs(p), what=f"the trap of {path}")
        # It is killed when a second stop gives it no time.
        slow = self.node.workloads.Stop.future(nacre_pb2.StopRequest(target="a", grace_ms=100000))
        nacre_test.until(lambda: [self.all()[p].state for p in ("a/top", "a/b/deep", "a/b/web", "a/b/deaf")] ==
                         ["exited"] * 3 + ["stopping"], what="the end of what heeds the signal")
        self.assertEqual("ready", self.all()["a"].state)
        self.assertFalse(slow.done())
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="a/b/deaf"))
        slow.result(timeout=60)
        left = self.all()
        self.assertEqual({"a/top": 9, "a/b/deep": 9, "a/b/web": 9, "a/b/deaf": 137},
                         {p: w.exit_code for p, w in left.items() if p.startswith("a/")})
        for path in ("a/top", "a/b/deep", "a/b/web"):
            self.assertEqual(b"ready\ntold\n", self.logs(path))
        self.assertNotIn("a", left)
        self.assertEqual(("running", beside.containers[0].pid), (left["ab/beside"].state, left["ab/beside"].containers[0].pid))
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="ab", grace_ms=100))
        self.node.clear()
        self.assertNoTraces(before)

    def test_stopping_an_instance_kills_after_the_grace_period(self):
        self.chain("a/b")
        self.cell("a/b/deaf", container("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"))
        nacre_test.until(lambda: b"ready" in self.logs("a/b/deaf"), what="its trap")
        began = time.monotonic()
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="a", grace_ms=400))
        self.assertTrue(0.35 < time.monotonic() - began < 60)
        self.assertEqual({"a/b/deaf": ("exited", 137)}, {p: (w.state, w.exit_code) for p, w in self.all().items()})

    def test_remove_needs_force_while_it_is_used(self):
        self.chain("a/b")
        self.cell("a/b/deep")
        for target in ("a", "a/b", "a/b/deep"):
            self.assertFails(Code.FAILED_PRECONDITION,
                             lambda t=target: self.node.workloads.Remove(nacre_pb2.RemoveRequest(target=t)), target)
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="a", force=True))
        self.assertEqual({}, self.all())

    def test_many_come_and_go(self):
        before = self.node.baseline()
        self.spawn("a")
        futures = [self.node.runtime.Spawn.future(runtime_pb2.SpawnRequest(meta=runtime_pb2.Meta(name=f"n{i}"), parent="a"))
                   for i in range(20)]
        self.assertEqual(20, len({f.result().pid for f in futures}))
        stops = [self.node.workloads.Stop.future(nacre_pb2.StopRequest(target=f"a/n{i}")) for i in range(20)]
        for f in stops:
            f.result()
        self.assertEqual(["a"], list(self.all()))
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="a"))
        self.assertNoTraces(before)
