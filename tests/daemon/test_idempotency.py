#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that are made again: by name, by request id, at the same moment, and after the daemon was killed."""
import concurrent.futures
import ctypes
import os
import socket
import subprocess
import unittest

import grpc

import nacre_test
from nacre_test import nacre_pb2, runtime_pb2

Code = grpc.StatusCode


class Repeat(nacre_test.NodeTest):
    def container(self, *command, **kwargs):
        return runtime_pb2.Container(image=self.busybox(), command=command or ["sleep", "100000"], **kwargs)

    def pod(self, **kwargs):
        return runtime_pb2.RunPodRequest(containers=[self.container()], **kwargs)

    def names(self):
        return sorted(w.name for w in self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads)

    def remove(self, target):
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target=target, force=True))

    def requests(self, key):
        """One of each method, unnamed: only the id makes them the same."""
        box = self.container()
        return {
            self.node.runtime.RunPod: runtime_pb2.RunPodRequest(containers=[box], request_id=key + "-pod"),
            self.node.runtime.RunCell: runtime_pb2.RunCellRequest(containers=[box], request_id=key + "-cell"),
            self.node.runtime.Spawn: runtime_pb2.SpawnRequest(request_id=key + "-spawn"),
            self.node.runtime.RunExecutable: runtime_pb2.RunExecutableRequest(
                executable={"command": "sh", "args": ["-c", "echo out; exit 3"]}, request_id=key + "-exe"),
        }

    def test_one_after_the_other(self):
        before = self.names()
        for call, request in self.requests("after").items():
            first = call(request)
            self.assertEqual(first, call(request))
            self.assertEqual(first, call(request))
            self.assertEqual(1, len(self.names()) - len(before))
            self.remove(first.id)
            # With the record the id is free.
            again = call(request)
            self.assertNotEqual(first.id, again.id)
            self.remove(again.id)

    def test_at_the_same_moment(self):
        for call, request in self.requests("same").items():
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda _: call(request), range(8)))
            self.assertEqual([answers[0]] * 8, answers)
            self.remove(answers[0].id)

    def test_another_request_of_the_same_id(self):
        made = self.node.runtime.RunPod(self.pod(meta={"name": "one"}, request_id="taken"))
        others = [lambda: self.node.runtime.RunPod(self.pod(meta={"name": "two"}, request_id="taken")),
                  lambda: self.node.runtime.RunCell(runtime_pb2.RunCellRequest(containers=[self.container()],
                                                                               request_id="taken")),
                  lambda: self.node.runtime.Spawn(runtime_pb2.SpawnRequest(request_id="taken")),
                  lambda: self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
                      executable={"command": "true"}, request_id="taken"))]
        for call in others:
            self.assertFails(Code.ALREADY_EXISTS, call, "request_id: ", "one")
        self.assertEqual(["one"], self.names())
        self.remove(made.id)

    def test_what_is_no_id(self):
        for bad in ("a b", "a/b", "\u00e4", "x" * 65, " "):
            self.assertFails(Code.INVALID_ARGUMENT, lambda: self.node.runtime.Spawn(runtime_pb2.SpawnRequest(request_id=bad)),
                             "request_id: ")
        self.remove(self.node.runtime.Spawn(runtime_pb2.SpawnRequest(request_id="A-z.0_" + "9" * 58)).id)

    def test_by_name(self):
        """Without an id a name can be had once: nothing is made twice, and nothing is changed."""
        request = self.pod(meta={"name": "named"})
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(self.node.runtime.RunPod, request) for _ in range(4)]
            ended = [c.exception() for c in calls]
        self.assertEqual(1, ended.count(None))
        self.assertEqual({Code.ALREADY_EXISTS}, {e.code() for e in ended if e})
        self.assertEqual(["named"], self.names())
        self.remove("named")

    def test_a_process_that_others_wait_for_outlives_one_caller(self):
        request = runtime_pb2.RunExecutableRequest(meta={"name": "shared"}, request_id="shared",
                                                   executable={"command": "cat", "stdin": b"x" * 200000})
        slow = runtime_pb2.RunExecutableRequest(meta={"name": "slow"}, request_id="slow",
                                                executable={"command": "sh", "args": ["-c", "sleep 2; echo done"]})
        first, second = self.node.runtime.RunExecutable.future(slow), self.node.runtime.RunExecutable.future(slow)
        nacre_test.until(lambda: "slow" in self.names(), what="the process")
        self.node.info.Info(nacre_pb2.InfoRequest())
        first.cancel()
        self.assertEqual(b"done\n", second.result().stdout)
        self.assertEqual(200000, len(self.node.runtime.RunExecutable(request).stdout))
        self.assertEqual(200000, len(self.node.runtime.RunExecutable(request).stdout))
        self.remove("shared")
        self.remove("slow")
        # The last one to leave takes it along, and the id with it.
        alone = self.node.runtime.RunExecutable.future(runtime_pb2.RunExecutableRequest(
            meta={"name": "alone"}, request_id="alone", executable={"command": "sleep 100000"}))
        nacre_test.until(lambda: "alone" in self.names(), what="the process")
        alone.cancel()
        nacre_test.until(lambda: "alone" not in self.names(), what="the end of the record")

    def test_a_timeout_is_told_to_all(self):
        request = runtime_pb2.RunExecutableRequest(executable={"command": "sleep 100000", "timeout_ms": 300},
                                                   request_id="timeout")
        first = self.node.runtime.RunExecutable(request)
        self.assertEqual((137, "it was killed: its timeout has passed"), (first.exit_code, first.reason))
        self.assertEqual(first, self.node.runtime.RunExecutable(request))
        self.remove(first.id)


class Killed(unittest.TestCase):
    """SIGKILL of the daemon, with the calls under way or answered."""

    def test_a_child_holds_its_descriptors(self):
        """As one does from the clone to its exec: the killed daemon's socket and lock are no living one's."""
        libc = ctypes.CDLL(None, use_errno=True)
        with nacre_test.Node() as node:
            pidfd, copies = os.pidfd_open(node.pid), []
            try:
                for name in os.listdir(f"/proc/{node.pid}/fd"):
                    fd = libc.syscall(438, pidfd, int(name), 0)  # pidfd_getfd
                    if fd >= 0:
                        copies.append(fd)
                self.assertIn(os.path.join(node.dir, "run/lock"), [os.readlink(f"/proc/self/fd/{fd}") for fd in copies])
                second = subprocess.run(node.command(), capture_output=True, text=True, check=False, timeout=60)
                self.assertIn("another daemon serves at ", second.stderr)
                node.kill()
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(node.socket)
                node.start()
                node.info.Info(nacre_pb2.InfoRequest())
            finally:
                for fd in [pidfd, *copies]:
                    os.close(fd)

    def test_answered_before(self):
        with nacre_test.Node() as node:
            import images
            box = runtime_pb2.Container(image=images.ensure(node, "busybox"), command=["sleep", "100000"])
            requests = [("RunPod", runtime_pb2.RunPodRequest(containers=[box], request_id="p")),
                        ("RunCell", runtime_pb2.RunCellRequest(containers=[box], request_id="c")),
                        ("Spawn", runtime_pb2.SpawnRequest(request_id="s")),
                        ("RunExecutable", runtime_pb2.RunExecutableRequest(request_id="x", executable={"command": "echo once"}))]
            before = [getattr(node.runtime, name)(request) for name, request in requests]
            node.restart()
            after = [getattr(node.runtime, name)(request) for name, request in requests]
            self.assertEqual(before, after)
            self.assertEqual(4, len(node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads))
            other = runtime_pb2.SpawnRequest(meta={"name": "other"}, request_id="p")
            with self.assertRaises(grpc.RpcError) as caught:
                node.runtime.Spawn(other)
            self.assertEqual(Code.ALREADY_EXISTS, caught.exception.code())

    def test_an_executable_goes_on(self):
        with nacre_test.Node() as node:
            marks = os.path.join(node.dir, "marks")
            request = runtime_pb2.RunExecutableRequest(request_id="long", executable={
                "command": "sh", "args": ["-c", f"echo begun >>{marks}; while ! test -e {marks}.end; do sleep 0.05; done; echo end"]})
            first = node.runtime.RunExecutable.future(request)
            nacre_test.until(lambda: os.path.exists(marks), what="the process")
            node.restart()
            # CANCELLED: our own channel was closed before it heard of the end.
            self.assertIn(first.exception().code(), (Code.UNAVAILABLE, Code.CANCELLED))
            again = node.runtime.RunExecutable.future(request)
            node.info.Info(nacre_pb2.InfoRequest())
            with open(marks + ".end", "w", encoding="ascii"):
                pass
            done = again.result()
            self.assertEqual((0, b"end\n"), (done.exit_code, done.stdout))
            with open(marks, encoding="ascii") as f:
                self.assertEqual("begun\n", f.read(), "it was run more than once")

    def test_fed_while_it_was_killed(self):
        with nacre_test.Node() as node:
            request = runtime_pb2.RunExecutableRequest(request_id="fed", executable={
                "command": "sh", "args": ["-c", "sleep 100000; cat"], "stdin": b"x" * (1 << 20)})
            first = node.runtime.RunExecutable.future(request)
            nacre_test.until(lambda: [w for w in node.workloads.List(nacre_pb2.ListRequest()).workloads
                                      if w.state == "running"], what="the process")
            node.restart()
            # CANCELLED: our own channel was closed before it heard of the end.
            self.assertIn(first.exception().code(), (Code.UNAVAILABLE, Code.CANCELLED))
            with self.assertRaises(grpc.RpcError) as caught:
                node.runtime.RunExecutable(request)
            self.assertEqual(Code.ABORTED, caught.exception.code())
            self.assertIn("executable.stdin", caught.exception.details())
            self.assertEqual([], list(node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads))

    def test_calls_under_way(self):
        """Whatever the daemon had come to when it was killed: the repeated call succeeds, and there is one object."""
        with nacre_test.Node() as node:
            import images
            image = images.ensure(node, "busybox")
            for n in range(6):
                box = runtime_pb2.Container(image=image, command=["sleep", "100000"])
                requests = [("RunPod", runtime_pb2.RunPodRequest(meta={"name": f"p{n}"}, containers=[box], request_id=f"p{n}")),
                            ("RunCell", runtime_pb2.RunCellRequest(meta={"name": f"c{n}"}, containers=[box], request_id=f"c{n}")),
                            ("Spawn", runtime_pb2.SpawnRequest(meta={"name": f"s{n}"}, request_id=f"s{n}"))]
                calls = [getattr(node.runtime, name).future(request) for name, request in requests]
                if n % 2:
                    calls[0].done()
                    node.info.Info(nacre_pb2.InfoRequest())
                node.restart()
                for call in calls:
                    call.exception()
                again = [getattr(node.runtime, name)(request) for name, request in requests]
                self.assertEqual([f"p{n}", f"c{n}", f"s{n}"], [a.name for a in again])
                seen = node.workloads.List(nacre_pb2.ListRequest()).workloads
                self.assertEqual(sorted(a.id for a in again), sorted(w.id for w in seen))
                self.assertEqual({"running", "ready"}, {w.state for w in seen})
                node.clear()


if __name__ == "__main__":
    unittest.main()
