# SPDX-License-Identifier: Apache-2.0
"""Daemons and keepers are killed at the worst moment; workloads go on, and whatever is half done is finished or undone."""
import os
import signal
import time

import grpc

import host
import images
import nacre_test
import steps
from faults import SurvivalTest
from nacre_test import nacre_pb2, runtime_pb2
from steps import container

Code = grpc.StatusCode


def identity(pid):
    return pid, host.start_time(pid)


def containers_of(workload):
    return [c for c in workload.containers if c.pid]


class Numbered(SurvivalTest):
    """Workloads that count in lines, while their daemon comes and goes."""

    IMAGES = ("busybox", "probe")
    PODS = 20

    def counter(self, name):
        return container(image="probe", args=["lines", name, "1000000000", "10"])

    def begin(self):
        """20 pods, a cell and an executable: {name: identity}."""
        calls = [self.node.runtime.RunPod.future(runtime_pb2.RunPodRequest(
            meta=runtime_pb2.Meta(name=f"pod-{n}"), containers=[self.counter(f"pod-{n}")])) for n in range(self.PODS)]
        self.cell("cell", self.counter("cell"))
        # A call that nobody holds would be cancelled.
        self.executable = self.node.runtime.RunExecutable.future(runtime_pb2.RunExecutableRequest(
            meta=runtime_pb2.Meta(name="executable"), keep=True, executable=runtime_pb2.Executable(
                command=nacre_test.PROBE, args=["lines", "executable", "1000000000", "10"])))
        for c in calls:
            self.assertEqual("running", c.result().containers[0].state)
        shown = nacre_test.until(lambda: self.running(self.PODS + 2), what="all of them")
        return {name: identity(w.containers[0].pid) for name, w in shown.items()}

    def running(self, n):
        shown = {name: w for name, w in self.all().items() if w.state == "running" and w.containers and w.containers[0].pid}
        return shown if len(shown) >= n else None

    def count(self, name):
        """How far the log goes; every number must be there once, in order."""
        lines = self.logs(name).split(b"\n")
        # The last one may be cut where its writer was killed.
        numbers = lines[:-1]
        want = [f"{name} {n}".encode() for n in range(1, len(numbers) + 1)]
        if numbers != want:
            at = next(i for i, (a, b) in enumerate(zip(numbers, want)) if a != b)
            self.fail(f"{name}: line {at + 1} is {numbers[at - 1:at + 3]}")
        return len(numbers)

    def check_same(self, before, counts):
        now = {name: identity(w.containers[0].pid) for name, w in self.all().items() if w.state == "running"}
        self.assertEqual(before, {n: i for n, i in now.items() if n in before})
        more = {}
        for name in before:
            nacre_test.until(lambda n=name: more.update({n: self.count(n)}) or more[n] > counts[n], what=f"more lines of {name}")
        return more

    def test_killed_and_started_again(self):
        nothing = self.node.baseline()
        before = self.begin()
        self.pod("ends", container("sh", "-c", "sleep 1.5; exit 7"))
        self.pod("killed")
        counts = {name: self.count(name) for name in before}
        for round_ in range(3):
            killed = identity(self.inspect("killed").containers[0].pid) if round_ == 0 else None
            self.node.kill()
            if killed:
                os.kill(killed[0], signal.SIGKILL)
                time.sleep(1.7)
            self.node.start()
            counts = self.check_same(before, counts)
        ends, dead = self.wait("ends"), self.wait("killed")
        self.assertEqual((7, "exited", 0), (ends.exit_code, ends.workload.state, ends.workload.containers[0].signal))
        self.assertEqual((137, "exited", 9), (dead.exit_code, dead.workload.state, dead.workload.containers[0].signal))
        self.assertEqual((b"still\n", b"", 0), self.exec_in_busybox("still"))
        # Every one of them is stopped by the daemon that did not start it; not a line was lost until then.
        for name in before:
            self.assertEqual(137, self.stop(name).exit_code)
            self.assertGreaterEqual(self.count(name), counts[name])
        self.node.clear()
        self.node.info.Info(nacre_pb2.InfoRequest())
        self.assertNoTraces(nothing)

    def exec_in_busybox(self, word):
        self.pod("new")
        return self.exec("new", "echo", word)

    def test_told_to_end(self):
        before = self.begin()
        counts = {name: self.count(name) for name in before}
        self.assertEqual(0, self.node.stop())
        for pid, start in before.values():
            self.assertEqual(start, host.start_time(pid))
        time.sleep(0.3)
        self.node.start()
        self.check_same(before, counts)

    def test_follow_goes_on_after_a_restart(self):
        self.pod("f", self.counter("f"))
        self.node.restart()
        logs = self.node.workloads.Logs(nacre_pb2.LogsRequest(target="f", follow=True))
        text = b""
        while text.count(b"\n") < 100:
            text += next(logs).data
        logs.cancel()
        self.assertEqual([f"f {n}".encode() for n in range(1, 101)], text.split(b"\n")[:100])


class Restart(SurvivalTest):
    def test_wait_stdin_exec_and_network_after_a_restart(self):
        self.pod("a", container("cat", name="cat", stdin=True),
                 container("sh", "-c", "while :; do echo hi | nc -l -p 80; done", name="web"))
        self.node.restart()
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="a", container="cat", data=b"through\n"))
        nacre_test.until(lambda: self.logs("a", "cat") == b"through\n", what="the line")
        nacre_test.until(lambda: self.exec("a", "sh", "-c", "nc -w 2 127.0.0.1 80 </dev/null", container="web")[0] == b"hi\n",
                         what="the answer over localhost")
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="a", container="cat", close=True))
        self.assertEqual(0, self.wait("a", "cat").exit_code)

    def test_instances_at_depth_three(self):
        pids = [self.spawn(p).pid for p in ("a", "a/b", "a/b/c")]
        done = self.cell("a/b/c/deep")
        self.node.restart()
        shown = self.all()
        self.assertEqual(pids, [shown[p].pid for p in ("a", "a/b", "a/b/c")])
        self.assertEqual(done.containers[0].pid, shown["a/b/c/deep"].containers[0].pid)
        self.assertEqual((b"there\n", b"", 0), self.exec("a/b/c/deep", "echo", "there"))
        self.assertEqual(137, self.stop("a/b/c/deep").exit_code)
        self.spawn("a/b/c/d")
        self.stop("a")
        self.assertEqual(set(), {"a", "a/b", "a/b/c", "a/b/c/d"} & set(self.all()))

    def test_from_another_cgroup(self):
        """As from another login: what lives has its group, also behind a wall within a wall, and is stopped by it."""
        self.node.runtime.Spawn(runtime_pb2.SpawnRequest(meta={"name": "g"}))
        self.node.runtime.Spawn(runtime_pb2.SpawnRequest(meta={"name": "h"}, parent="g"))
        self.cell("g/h/far", container("sleep", "1000"))
        before = {t: self.inspect(t).cgroup for t in ("g", "g/h", "g/h/far")}
        self.assertTrue(all(before.values()))
        self.node.kill()
        own = host.own_cgroup()
        other = os.path.join(own, "another")
        os.mkdir(other)
        host.join_cgroup(other)
        try:
            self.node.start()
        finally:
            host.join_cgroup(own)
        self.assertEqual(before, {t: self.inspect(t).cgroup for t in before})
        self.assertEqual("running", self.inspect("g/h/far").state)
        self.assertEqual([], list(self.node.info.Check(nacre_pb2.CheckRequest()).findings))
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="g", force=True))
        self.node.restart()
        os.rmdir(other)

    def test_what_was_waited_for_is_auto_removed(self):
        before = self.node.baseline()
        self.pod("auto", container("sleep", "0.5"), auto_remove=True)
        self.node.kill()
        time.sleep(0.8)
        self.node.start()
        nacre_test.until(lambda: not self.all(), what="its removal")
        self.assertNoTraces(before)

    def test_everything_is_still_there(self):
        self.pod("ended", container("sh", "-c", "echo out; exit 5"))
        self.wait("ended")
        self.pod("failed", container("/no/such"))
        # What was made for it goes in the background.
        nacre_test.until(lambda: not any(w.instance for w in self.all().values()), what="the end of their instances")
        before = self.all()
        self.node.restart()
        after = self.all()
        self.assertEqual(list(before), list(after))
        for name, w in before.items():
            w.pid = after[name].pid
            self.assertEqual(w, after[name])
        self.assertEqual(b"out\n", self.logs("ended"))
        image, = self.node.images.List(nacre_pb2.ListImagesRequest()).images
        self.assertEqual(["docker.io/library/busybox:latest"], list(image.names))
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.pod("ended"), "ended")

    def test_calls_are_drained(self):
        self.pod("p")
        waiting = self.node.exec(nacre_pb2.ExecRequest(target="p", command=["sh", "-c", "echo begun; sleep 1; echo end"]))
        self.assertEqual(b"begun\n", next(waiting).stdout)
        self.node.send_signal(signal.SIGTERM)
        self.assertEqual(b"end\n", b"".join(a.stdout for a in waiting))
        self.assertEqual(0, self.node.wait())
        self.node.start()
        self.assertEqual("running", self.inspect("p").state)

    def test_ready_is_quick(self):
        for n in range(10):
            self.pod(f"p{n}")
        self.node.kill()
        began = time.monotonic()
        self.node.start()
        self.assertLess(time.monotonic() - began, 20 * nacre_test.SLOWNESS)


class Keepers(SurvivalTest):
    def test_keeper_of_a_pod_is_killed(self):
        before = self.node.baseline()
        done = self.pod("p", container("sleep", "100000", name="a"), container("sleep", "100000", name="b"))
        self.pod("other")
        top, keeper = self.cgroup_dir("p"), self.inspect("p").pid
        waiting = self.node.workloads.Wait.future(nacre_pb2.WaitRequest(target="p"))
        with nacre_test.Events(self.node) as events:
            os.kill(keeper, signal.SIGKILL)
            self.assertIn("signal 9", events.wait("p", "failed", object="workload").reason)
        shown = waiting.result(timeout=60).workload
        self.assertEqual("failed", shown.state)
        self.assertIn("keeper", shown.reason)
        self.assertIn("signal 9", shown.reason)
        for c in done.containers:
            self.assertIsNone(host.process(c.pid))
        for c in shown.containers:
            self.assertIn(c.state, ("exited", "failed"))
            self.assertNotEqual(0, c.exit_code)
        nacre_test.until(lambda: not os.path.exists(top), what="the end of its cgroup")
        self.assertEqual("running", self.inspect("other").state)
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.exec("p", "true", container="a"))
        self.remove("p")
        self.remove("other", force=True)
        self.assertNoTraces(before)

    def test_killed_while_the_daemon_is_away(self):
        before = self.node.baseline()
        self.pod("p")
        keeper = self.inspect("p").pid
        self.node.kill()
        os.kill(keeper, signal.SIGKILL)
        self.node.start()
        shown = self.inspect("p")
        self.assertEqual("failed", shown.state)
        self.assertIn("keeper", shown.reason)
        self.remove("p")
        self.assertNoTraces(before)

    def test_stopped_keeper_blocks_nobody_else(self):
        self.pod("stuck")
        self.pod("free")
        keeper = self.inspect("stuck").pid
        os.kill(keeper, signal.SIGSTOP)
        try:
            stuck = self.node.exec(nacre_pb2.ExecRequest(target="stuck", command=["true"]), timeout=1)
            self.assertEqual((b"free\n", b"", 0), self.exec("free", "echo", "free"))
            self.pod("new")
            with self.assertRaises(grpc.RpcError) as caught:
                list(stuck)
            self.assertEqual(Code.DEADLINE_EXCEEDED, caught.exception.code())
        finally:
            os.kill(keeper, signal.SIGCONT)
        self.assertEqual((b"again\n", b"", 0), self.exec("stuck", "echo", "again"))


class HalfDone(SurvivalTest):
    """What an earlier daemon had asked of a keeper that reads it only when that daemon is gone."""

    def test_nested_ones_that_the_keeper_above_had_not_made(self):
        """Nobody would know them: nothing is left of them, and their names are free."""
        above = self.spawn("a")
        before = self.node.keepers()
        os.kill(above.pid, signal.SIGSTOP)
        try:
            calls = [self.node.runtime.RunPod.future(runtime_pb2.RunPodRequest(
                         meta=runtime_pb2.Meta(name="p"), parent="a", containers=[container("sleep", "100000")])),
                     self.node.runtime.Spawn.future(runtime_pb2.SpawnRequest(meta=runtime_pb2.Meta(name="s"), parent="a"))]
            nacre_test.until(lambda: {"a/p", "a/s"} <= set(self.all()), 60, "their records")
            self.node.kill()
            said = len(self.node.log())
            self.node.launch()
            for name in ("a/p", "a/s"):
                nacre_test.until(lambda n=name: n in self.node.log()[said:], 60, f"what becomes of {name}")
        finally:
            os.kill(above.pid, signal.SIGCONT)
        self.node.wait_ready(60)
        self.assertEqual([Code.UNAVAILABLE] * 2, [c.code() for c in calls])
        self.assertEqual(["a"], list(self.all()))
        self.assertEqual(above.pid, self.inspect("a").pid)
        # What was half made, and what was a process for a moment only, may be on its way out.
        nacre_test.until(lambda: self.node.keepers() == before, what="the keepers as before")
        self.pod("a/p")
        self.assertEqual((b"again\n", b"", 0), self.exec("a/p", "echo", "again"))
        self.spawn("a/s")
        self.assertWhole()


class NodeKeeper(steps.StepsTest):
    """The keeper of the node is killed; each test has a node of its own for that."""

    def setUp(self):
        # In place of the node that the others share.
        self.node = nacre_test.Node()
        self.addCleanup(self.node.destroy)
        images.ensure(self.node, "busybox")

    def node_keeper(self):
        found = [p for p in self.node.keepers() if host.read(f"/proc/{p}/cmdline").startswith("nacre: keeper node")]
        self.assertLess(len(found), 2)
        return found[0] if found else None

    def works(self):
        try:
            return self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
                executable=runtime_pb2.Executable(command="true"))).exit_code == 0
        except grpc.RpcError as e:
            self.assertEqual(Code.UNAVAILABLE, e.code(), e.details())
            return False

    def test_its_workloads_end_and_others_go_on(self):
        self.cell("cell")
        pod = self.pod("pod")
        running = self.node.runtime.RunExecutable.future(runtime_pb2.RunExecutableRequest(
            meta=runtime_pb2.Meta(name="exe"), keep=True, executable=runtime_pb2.Executable(command="sleep 100000")))
        nacre_test.until(lambda: "exe" in self.all() and self.inspect("exe").state == "running", what="the executable")
        ours = [self.inspect(n).containers[0].pid for n in ("cell", "exe")]
        keeper = self.node_keeper()
        os.kill(keeper, signal.SIGKILL)
        for name in ("cell", "exe"):
            nacre_test.until(lambda n=name: self.inspect(n).state == "failed", what=f"the end of {name}")
            self.assertIn("signal 9", self.inspect(name).reason)
        nacre_test.until(running.done, what="the answer about the executable")
        # They were killed, by their group, before this was told; the kernel takes its time with each.
        nacre_test.until(lambda: [None, None] == [host.process(p) for p in ours], what="the end of its processes")
        nacre_test.until(lambda: self.node_keeper() not in (None, keeper), what="another keeper")
        nacre_test.until(self.works, what="a working node")
        self.assertEqual(pod.containers[0].pid, self.inspect("pod").containers[0].pid)
        self.assertEqual((b"on\n", b"", 0), self.exec("pod", "echo", "on"))

    def test_the_next_daemon_takes_up_the_new_one(self):
        os.kill(nacre_test.until(self.node_keeper, what="the keeper of the node"), signal.SIGKILL)
        nacre_test.until(self.works, what="a working node")
        cell, keeper = self.cell("cell"), self.node_keeper()
        self.node.restart()
        self.assertEqual(keeper, self.node_keeper())
        self.assertEqual(cell.containers[0].pid, self.inspect("cell").containers[0].pid)
        self.assertEqual((b"on\n", b"", 0), self.exec("cell", "echo", "on"))
        self.assertNotIn(" error ", self.node.log())

    def test_killed_while_the_daemon_is_away(self):
        self.cell("cell")
        pod, keeper = self.pod("pod"), self.node_keeper()
        self.node.kill()
        os.kill(keeper, signal.SIGKILL)
        self.node.start()
        self.assertEqual("failed", self.inspect("cell").state)
        self.assertEqual((b"on\n", b"", 0), self.exec("pod", "echo", "on"))
        self.assertEqual(pod.containers[0].pid, self.inspect("pod").containers[0].pid)
        self.assertTrue(self.works())
