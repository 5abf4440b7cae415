# SPDX-License-Identifier: Apache-2.0
"""Who reads slowly loses nothing of what was written before the end of a pod and its keeper."""
import os
import time

import grpc

import host
import nacre_test
from nacre_test import nacre_pb2, pb
import steps
from steps import container

# Far more than what is on its way while nobody reads.
LAST = 400000
NUMBERS = "".join(f"{n}\n" for n in range(1, LAST + 1)).encode()
# RPC_REST_PATIENCE
PATIENCE = 10
# More than a client and the daemon's side of its connection take by themselves.
LEFT = 140 << 10

# Until the program whose number is in /pid has ended.
AFTER = "while [ ! -e /pid ] || kill -0 $(cat /pid) 2>/dev/null; do sleep 0.05; done; "
BEFORE = "echo $$ >/own; mv /own /pid; "


class Reader:
    """A call of which nothing is read by itself."""

    def __init__(self, call):
        self.call, self.out, self.exit, self.error = call, b"", None, None

    def _take(self, message):
        self.out += message.stdout
        if message.HasField("exit"):
            self.exit = message.exit

    def first(self):
        self._take(next(self.call))
        return self

    def until(self, condition):
        """Reads as little as it takes: while a program can write more, it waits for us."""
        while not condition():
            message = next(self.call, None)
            if message is None:
                break
            self._take(message)
            time.sleep(0.01)
        return self

    def rest(self, pause=0.0):
        try:
            for message in self.call:
                self._take(message)
                time.sleep(pause)
        except grpc.RpcError as e:
            self.error = e
        return self.out, self.exit.exit_code if self.exit else self.error


class SlowEnd(steps.StepsTest):
    def attach(self, workloads, target):
        return Reader(workloads.Attach(iter([nacre_pb2.AttachRequest(target=target, replay=True)])))

    def exec_of(self, workloads, target, script):
        return Reader(workloads.Exec(iter([nacre_pb2.ExecRequest(target=target, command=["sh", "-c", BEFORE + script])])))

    def until_gone(self, target):
        """Until its keeper is no more."""
        nacre_test.until(lambda: self.inspect(target).state == "exited", 60, "the end of the pod")
        group = os.path.join(self.node.cgroup(), *(f"inst.{n}" for n in target.split("/")))
        nacre_test.until(lambda: not os.path.exists(group), 60, "the end of its keeper")

    def still(self):
        """A client whose window does not grow, so that it cannot take everything by itself."""
        channel = grpc.insecure_channel("unix:" + self.node.socket, options=[("grpc.http2.bdp_probe", 0)])
        self.addCleanup(channel.close)
        return pb["nacre_pb2_grpc"].WorkloadServiceStub(channel)

    def ended(self, target):
        return self.inspect(target).state == "exited"

    def check(self, target):
        workloads = self.still()
        self.pod(target, container("sh", "-c", f"echo ready; {AFTER} echo after >&2; seq {LAST}; exit 3"))
        attached = self.attach(workloads, target).first()
        ran = self.exec_of(workloads, target, f"seq {LAST}; exit 4").first()
        ran.until(lambda: self.logs(target, stream=2))
        attached.until(lambda: self.ended(target))
        self.until_gone(target)
        self.assertEqual((NUMBERS, 4), ran.rest())
        self.assertEqual((b"ready\n" + NUMBERS, 3), attached.rest())

    def test_the_rest_is_read_after_the_end(self):
        self.check("p")

    def test_of_a_nested_one(self):
        self.spawn("a")
        self.check("a/p")

    def test_slow_all_the_way(self):
        self.pod("p", container("sh", "-c", f"echo ready; read x; seq {LAST}; exit 3", stdin=True))
        attached = self.attach(self.node.workloads, "p").first()
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="p", data=b"go\n"))
        self.assertEqual((b"ready\n" + NUMBERS, 3), attached.rest(0.02))

    def test_a_killed_keeper_ends_its_streams(self):
        """With what it had said, and at once for who reads."""
        self.pod("p", container("sh", "-c", "echo ready; sleep 100000"))
        attached = self.attach(self.node.workloads, "p").first()
        keepers = [p for p in self.node.keepers() if "/inst.p/" in host.read(f"/proc/{p}/cgroup")]
        self.assertEqual(1, len(keepers))
        os.kill(keepers[0], 9)
        out, error = attached.rest()
        self.assertEqual((b"ready\n", grpc.StatusCode.UNAVAILABLE), (out, error.code()))
        nacre_test.until(lambda: self.inspect("p").state == "failed", what="its end")
        self.assertIn("killed by signal 9", self.inspect("p").reason)

    def begin_late(self, name):
        """An exec of a pod that is gone with its keeper, and that was read until then."""
        self.pod(name, container("sh", "-c", AFTER + "exit 3"))
        ran = self.exec_of(self.still(), name, f"seq {LAST}; exit 4").first()
        ran.until(lambda: self.ended(name))
        self.until_gone(name)
        return ran

    def who_comes_after(self, names, seconds):
        """How an exec ends for who takes nothing of its rest for so long."""
        for name in names:
            ran = self.begin_late(name)
            if len(NUMBERS) - len(ran.out) > LEFT:
                break
        time.sleep(seconds)
        return ran.rest()

    def test_who_takes_nothing_of_the_rest_is_put_off(self):
        """What is waited for is the patience of a daemon, which nothing shows from outside; it may be late."""
        for n, seconds in enumerate((PATIENCE + 3, 2 * PATIENCE, 4 * PATIENCE)):
            out, error = self.who_comes_after((f"{n}{c}" for c in "pqrst"), seconds)
            if isinstance(error, grpc.RpcError):
                break
        self.assertIsInstance(error, grpc.RpcError)
        self.assertEqual(grpc.StatusCode.RESOURCE_EXHAUSTED, error.code())
        self.assertIn("was taken for 10 seconds", error.details())
        # All of it may have been on its way to the client by then, but for the exit status.
        self.assertTrue(NUMBERS.startswith(out), f"{len(out)} of {len(NUMBERS)} bytes, and they are others")
