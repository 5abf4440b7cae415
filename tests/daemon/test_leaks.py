# SPDX-License-Identifier: Apache-2.0
"""Two hundred pods come and go; afterwards the node is as it was."""
import os
import resource

import host
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2
from steps import container

BATCH, BATCHES = 20, 10


class Leaks(steps.StepsTest):
    def batch(self, request_of, n=BATCH):
        calls = [self.node.runtime.RunPod.future(request_of(i)) for i in range(n)]
        return [c.result(timeout=120).name for c in calls]

    def remove_all(self, names):
        calls = [self.node.workloads.Remove.future(nacre_pb2.RemoveRequest(target=n, force=True)) for n in names]
        for c in calls:
            c.result(timeout=120)

    def sleeper(self, i):
        return runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name=f"p{i}"), containers=[
            container("sleep", "100000", name="a"), container("sh", "-c", "echo a line", name="b")][:1 + i % 2])

    def memory(self):
        """KiB of the daemon that are its own."""
        line, = [l for l in host.read(f"/proc/{self.node.pid}/status").splitlines() if l.startswith("RssAnon")]
        return int(line.split()[1])

    def test_two_hundred_pods(self):
        # What is made once, at the first use, is no leak.
        self.remove_all(self.batch(self.sleeper))
        before, memory = self.node.baseline(), self.memory()
        for _ in range(BATCHES):
            names = self.batch(self.sleeper)
            self.assertEqual(BATCH, len(names))
            self.remove_all(names)
        self.assertEqual({}, self.all())
        self.assertNoTraces(before)
        if not nacre_test.SANITIZED:
            self.assertLess(self.memory() - memory, 512, "KiB more after 200 pods")

    def test_failing_and_short_ones(self):
        def request(i):
            command = (["true"], ["/no/such"], ["sh", "-c", "kill -9 -1; exit 3"], ["sh", "-c", "sleep 100000 & exit 1"])[i % 4]
            return runtime_pb2.RunPodRequest(auto_remove=i % 2 == 0, containers=[container(*command)])

        self.remove_all(n for n in self.batch(self.sleeper, 2))
        before = self.node.baseline()
        for _ in range(3):
            self.batch(request)
            self.node.clear()
        self.assertNoTraces(before)

    def test_execs_and_logs(self):
        self.pod("p", container("sh", "-c", "echo out; sleep 100000"))
        self.exec("p", "true")
        self.logs("p")
        before = self.node.baseline()
        keeper = self.inspect("p").pid
        fds = nacre_test.settled(lambda: len(os.listdir(f"/proc/{keeper}/fd")))
        for _ in range(10):
            calls = [self.node.exec(nacre_pb2.ExecRequest(target="p", command=["true"])) for _ in range(20)]
            self.assertEqual({0}, {list(c)[-1].exit.exit_code for c in calls})
            self.logs("p")
        self.assertNoTraces(before)
        nacre_test.until(lambda: len(os.listdir(f"/proc/{keeper}/fd")) == fds, what="the keeper's descriptors as before")

    def test_keeper_after_many_containers(self):
        """An instance in which cells come and go."""
        self.spawn("inst")
        keeper = self.inspect("inst").pid
        self.cell("inst/c")
        self.remove("inst/c", force=True)
        before = self.node.baseline()

        def state():
            """Its mounts, and what its descriptors may be without those of what it has made ahead of need: a process that waits
            has nine, a prepared set seven. Which of them are there is a matter of time."""
            waits = len(host.read(f"/proc/{keeper}/task/{keeper}/children").split())
            own = len(os.listdir(f"/proc/{keeper}/fd")) - 9 * waits
            self.assertLessEqual(waits, 1)
            return len(host.mounts(keeper)), {own, own - 7}

        had = nacre_test.settled(state)

        def is_as_it_was():
            mounts, descriptors = state()
            return mounts == had[0] and descriptors & had[1]

        for i in range(30):
            self.cell("inst/c", *[container("true", name=f"c{n}") for n in range(3)])
            self.remove("inst/c", force=True)
            if i % 10 == 0:
                self.spawn("inst/nested")
                self.stop("inst/nested")
        try:
            nacre_test.until(is_as_it_was)
        except AssertionError:
            self.fail(f"the keeper is {state()} and was {had}")
        self.assertNoTraces(before)

    def test_daemon_has_a_high_limit_of_descriptors(self):
        soft, hard = resource.prlimit(self.node.pid, resource.RLIMIT_NOFILE)
        self.assertEqual(hard, soft)
