# SPDX-License-Identifier: Apache-2.0
"""The wall clock is set forward and back by a day, many times a second, in the daemon and in every keeper: no timeout changes.

The clock is that of base/time/clock_shift.h. Whatever would wait by it would wait for a day, or not at all.
"""
import os
import re
import signal
import time

import grpc

import faults
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2
from steps import container

Code = grpc.StatusCode
SWING_MS = 20
HALF_A_DAY = 43200 * 10 ** 9


class Clock(faults.FaultTest):
    """Durations are compared with the least that they may be; one that is a day too long is a test that does not end."""

    def setUp(self):
        super().setUp()
        self.assertTrue(self.restart_with(NACRE_CLOCK_SWING=str(SWING_MS)))

    @classmethod
    def tearDownClass(cls):
        # What is left behind is compared with a daemon of a true clock.
        cls.node.restart()
        super().tearDownClass()

    def assertSwings(self, times):
        now = time.time_ns()
        self.assertGreater(max(times), now + HALF_A_DAY)
        self.assertLess(min(times), now - HALF_A_DAY)

    def lasts(self, seconds, call):
        """What it returned; it took no less than that."""
        began = time.monotonic()
        result = call()
        self.assertGreaterEqual(time.monotonic() - began, seconds)
        return result

    def test_log_is_followed_in_order(self):
        self.pod("p", container("sh", "-c", "for i in $(seq 100 199); do echo $i; usleep 10000; done; echo end"))
        request = nacre_pb2.LogsRequest(target="p", follow=True)
        answers = list(self.node.workloads.Logs(request, timeout=60 * nacre_test.SLOWNESS))
        self.assertEqual("".join(f"{i}\n" for i in range(100, 200)) + "end\n", b"".join(a.data for a in answers).decode())
        # A keeper told these times.
        self.assertSwings([a.time for a in answers])

    def test_events_are_in_order(self):
        with nacre_test.Events(self.node) as events:
            for i in range(8):
                self.pod(f"p{i}", container("true"), auto_remove=True)
            for i in range(8):
                events.wait(f"p{i}", "removed")
            seen = list(events.seen)
        numbers = [e.sequence for e in seen]
        self.assertEqual(sorted(set(numbers)), numbers)
        for i in range(8):
            states = [e.state for e in seen if (e.object, e.name) == ("workload", f"p{i}")]
            self.assertEqual(["starting", "running", "exited", "removing", "removed"], states)
        self.assertSwings([e.time for e in seen])

    def test_grace_of_a_stop(self):
        self.pod("p", container("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 100000; done"))
        nacre_test.until(lambda: self.logs("p") == b"ready\n", what="its trap")
        self.assertEqual("exited", self.lasts(1, lambda: self.stop("p", 1000)).state)
        self.assertEqual(128 + signal.SIGKILL, self.inspect("p").containers[0].exit_code)

    def test_timeout_of_an_exec(self):
        self.pod("p")
        answers = self.lasts(1, lambda: self.exec_all("p", "sleep", "100000", timeout_ms=1000))
        self.assertEqual(128 + signal.SIGKILL, answers[-1].exit.exit_code)
        # One that ends before its time.
        self.assertEqual(0, self.lasts(0.5, lambda: self.exec_all("p", "sleep", "0.5", timeout_ms=60000))[-1].exit.exit_code)

    def test_deadlines_of_calls(self):
        self.pod("long")
        self.pod("short", container("sleep", "1"))
        self.assertEqual("exited", self.wait("short").workload.state)

        def waits():
            with self.assertRaises(grpc.RpcError) as caught:
                self.node.workloads.Wait(nacre_pb2.WaitRequest(target="long"), timeout=1)
            self.assertEqual(Code.DEADLINE_EXCEEDED, caught.exception.code())

        self.lasts(0.9, waits)
        self.assertEqual(0, self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
            executable=runtime_pb2.Executable(command="sleep 0.5")), timeout=60).exit_code)

    def test_what_is_tried_again(self):
        """The keeper of the node is made anew, and what a dead keeper leaves is removed."""
        self.pod("p")
        self.cell("c")
        for pid in self.node.keepers():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for name in ("p", "c"):
            nacre_test.until(lambda n=name: self.inspect(n).state == "failed", what=f"the end of {name}")
        self.clear_all()

        def works():
            try:
                self.cell("again")
                return True
            except grpc.RpcError as e:
                self.assertEqual(Code.UNAVAILABLE, e.code(), e.details())
                return False

        nacre_test.until(works, what="another keeper of the node")

    def test_a_bit_of_everything(self):
        self.flow()
        self.assertEqual([], self.interrupted)
        self.restart_with(NACRE_CLOCK_SWING=str(SWING_MS))
        self.flow()
        self.assertEqual([], self.interrupted)
        self.clear_all()
        self.assertFalse(re.search(r" error ", self.node.log()), self.node.log()[-3000:])
