# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed while it creates a workload or starts one again: that is there with its files, or was never there."""
import os

import faults
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2
from steps import container


@faults.spread
class Killed(faults.FaultTest):
    COUNT = container("sh", "-c", "echo run >> /runs; sleep 100000")

    def runs(self, name):
        return len(self.exec(name, "cat", "/runs")[0].split())

    def again(self, name):
        self.node.workloads.Start(nacre_pb2.StartRequest(target=name), timeout=60)

    def tried(self, call):
        try:
            call()
        except nacre_test.grpc.RpcError as e:
            self.assertNotIn(e.code(), (nacre_test.grpc.StatusCode.UNKNOWN, nacre_test.grpc.StatusCode.UNIMPLEMENTED))

    def do_both(self):
        self.tried(lambda: self.pod("new", self.COUNT, create_only=True))
        if self.node.alive:
            self.tried(lambda: self.again("old"))

    def begin(self, place, what):
        self.pod("old", self.COUNT)
        nacre_test.until(lambda: self.runs("old") == 1, what="its first run")
        self.stop("old")
        self.assertTrue(self.restart_with(NACRE_FAILPOINT=f"{place}={what}"))
        self.do_both()

    def check_both(self):
        states = {name: w.state for name, w in self.all().items()}
        self.assertIn(states["old"], ("exited", "failed", "running"))
        self.assertIn(states.get("new", "created"), ("created", "failed"))
        self.again("old")
        nacre_test.until(lambda: self.runs("old") >= 2, what="its files of before, and another run")
        if states.get("new") == "created":
            self.again("new")
        self.assertWhole()
        self.clear_all()

    @faults.for_each(faults.places("again") + ["container.rootfs", "container.start+"])
    def killed_at(self, place):
        self.begin(place, "crash")
        nacre_test.until(lambda: not self.node.alive, what=f"the crash at {place}")
        self.restart_plainly()
        nacre_test.until(lambda: self.all()["old"].state in ("exited", "failed", "running"), what="a settled state")
        self.check_both()

    @faults.for_each(["workload.again", "container.rootfs", "store.commit"])
    def error_at(self, place):
        self.begin(place, "error:28")
        self.assertAlive()
        self.restart_plainly()
        self.check_both()


@faults.spread
class Alone(faults.FaultTest):
    """The daemon is killed while it starts one container of a pod again, by hand or as its policy wants it."""

    def set_up(self, policy):
        parts = [container("sh", "-c", "echo run >> /runs; sleep 100000", name="one", restart=runtime_pb2.RestartPolicy(policy=policy)),
                 container("sleep", "100000", name="two")]
        self.pod("pair", *parts)
        nacre_test.until(lambda: self.runs() == 1, what="its first run")

    def runs(self):
        return len(self.exec("pair", "cat", "/runs", container="one")[0].split())

    def parts(self):
        return {c.name: c.state for c in self.all()["pair"].containers}

    def restarts(self):
        return self.all()["pair"].containers[0].restart_count

    def start_one(self):
        self.node.workloads.Start(nacre_pb2.StartRequest(target="pair", container="one"), timeout=60)

    def check_one(self):
        nacre_test.until(lambda: self.parts()["two"] == "running", what="the other runs on")
        self.start_one()
        nacre_test.until(lambda: self.parts()["one"] == "running" and self.runs() >= 2, what="its files of before, and another run")
        self.assertWhole()
        self.clear_all()

    @faults.for_each(faults.places("alone") + ["container.rootfs", "container.started"])
    def killed_at(self, place):
        self.set_up("no")
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="pair", container="one"))
        self.assertTrue(self.restart_with(NACRE_FAILPOINT=f"{place}=crash"))
        try:
            self.start_one()
        except nacre_test.grpc.RpcError as e:
            self.assertEqual(nacre_test.grpc.StatusCode.UNAVAILABLE, e.code())
        nacre_test.until(lambda: not self.node.alive, what=f"the crash at {place}")
        self.restart_plainly()
        self.check_one()

    @faults.for_each(["container.again", "container.rootfs"])
    def policy_at(self, place):
        self.set_up("always")
        self.assertTrue(self.restart_with(NACRE_FAILPOINT=f"{place}=error:28"))
        os.kill(self.all()["pair"].containers[0].pid, 9)
        nacre_test.until(lambda: self.restarts() >= 1, what="it is tried again")
        self.assertAlive()
        self.restart_plainly()
        self.check_one()
