# SPDX-License-Identifier: Apache-2.0
"""Keepers that are asked to go on as another build at a bad moment, and one whose next program cannot take its state up."""
import threading
import unittest

import grpc

import elf
import host
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2
from steps import container
from test_upgrade import Stream, UpgradeTest, begin

FAULTS = elf.holds(nacre_test.BINARY, b"NACRE_FAILPOINT")


class Resume(UpgradeTest):
    IMAGES = ("busybox",)

    @unittest.skipUnless(FAULTS, "needs a build with -Dfaults=true")
    def test_a_state_that_cannot_be_taken_up(self):
        """The program has changed, so its layer is over: the end is told with its cause, and nothing of it stays."""
        node = self.begin(env={"NACRE_KEEPER_FAILPOINT": "upgrade.resume=error:5"})
        before = node.baseline()
        self.spawn("a")
        self.spawn("a/b")
        names = ["p", "a/b/x", "c"]
        self.pod("p")
        self.cell("a/b/x")
        self.cell("c")
        was = self.identities()
        self.replace()
        for name in names + ["a", "a/b"]:
            nacre_test.until(lambda n=name: self.inspect(n).state == "failed", 60, f"the end of {name}")
        for name in names + ["a"]:
            self.assertIn("go on as a new program: Input/output error", self.inspect(name).reason, name)
        # Whoever reaps those that have lost their keeper is not ours.
        was = {pid for pid, _ in was.values()}
        nacre_test.until(lambda: not was & host.cgroup_pids(node.cgroup()), 60, "the end of their processes")
        # The node makes new ones, and they are of no build but its own.
        self.assertEqual("running", self.pod("q").containers[0].state)
        self.assertEqual("running", self.cell("d").containers[0].state)
        self.assertEqual({False}, {node.runs(p, nacre_test.BINARY) for p in node.all_keepers()})
        for name in ("p", "q", "a", "c", "d"):
            self.remove(name, force=True)
        self.assertEqual({}, self.all())
        others = lambda: host.cgroup_pids(node.cgroup()) - {node.process.pid} - node.ahead()  # noqa: E731
        nacre_test.until(lambda: others() == set(node.all_keepers()), 60, "nobody else")
        self.assertEqual(1, len(node.all_keepers()))
        # Its keepers are other processes, with other descriptors.
        self.assertEqual([], nacre_test.traces(before, node, but=("descriptor", "process")))


class Moments(UpgradeTest):
    PODS = 5 if nacre_test.SANITIZED else 20

    def sound(self):
        answer = self.node.info.Check(nacre_pb2.CheckRequest(), timeout=60)
        self.assertEqual([], list(answer.findings))

    def test_while_nested_ones_are_spawned(self):
        """Each is there or it is not; those that are there can be used, and take their names."""
        node = self.begin()
        self.spawn("a")
        self.cell("a/x", self.counter("x"))
        before = self.identities()
        calls = {f"n{i}": node.runtime.Spawn.future(runtime_pb2.SpawnRequest(meta=runtime_pb2.Meta(name=f"n{i}"), parent="a"))
                 for i in range(8)}
        nacre_test.until(lambda: len(node.all_keepers()) > 2, 60, "the first")
        self.replace()
        # Those that were half made go away meanwhile.
        nacre_test.until(lambda: all(node.runs(p, node.binary) for p in node.all_keepers()), 60, "keepers of the new build")
        done = {n for n, c in calls.items() if c.exception() is None}
        for name in calls:
            path = f"a/{name}"
            if path not in self.all():
                self.assertNotIn(name, done)
                self.spawn(path)
            elif self.inspect(path).state != "ready":
                self.assertNotIn(name, done)
                self.remove(path, force=True)
                self.spawn(path)
            self.cell(path + "/y")
            self.assertEqual(b"deep\n", self.exec(path + "/y", "echo", "deep")[0])
        self.assertEqual(before["a/x"], self.identities()["a/x"])
        self.check_counting(["a/x"])
        self.sound()

    def stops(self, names, grace_ms):
        """The keepers, before the exchange that their two stops outlive; None where the stops were over first."""
        node = self.node
        args = container("sh", "-c", "trap 'echo told' TERM; echo here; while :; do sleep 0.1; done")
        self.pod(names[0], args)
        self.cell(names[1], args)
        for name in names:
            nacre_test.until(lambda n=name: self.logs(n) == b"here\n", what="its trap")
        calls = [node.workloads.Stop.future(nacre_pb2.StopRequest(target=n, grace_ms=grace_ms)) for n in names]
        for name in names:
            nacre_test.until(lambda n=name: b"told" in self.logs(n), what="the signal")
        keepers = node.all_keepers()
        self.replace()
        return keepers if all(c.exception() is not None for c in calls) else None

    def test_while_it_stops(self):
        node = self.begin()
        # The grace must last until the daemon is killed, and is waited for: so no longer than this machine needs.
        for grace_ms in (4000, 16000, 64000):
            names = [f"p{grace_ms}", f"c{grace_ms}"]
            keepers = self.stops(names, grace_ms)
            if keepers:
                break
            node.binary = nacre_test.BINARY
            node.restart()
        self.assertTrue(keepers, "no stop outlived the exchange")
        # That of the pod may have ended with it before its turn came.
        nacre_test.until(lambda: all(node.runs(p, node.binary) or host.start_time(p) != start for p, start in keepers.items()), 60,
                         "keepers of the new build")
        for name in names:
            self.assertEqual(137, self.wait(name).exit_code)
            self.assertEqual("exited", self.inspect(name).state)
            self.assertEqual(b"here\ntold\n", self.logs(name)[:10])
        self.sound()

    def test_daemons_that_are_killed_in_the_middle(self):
        """Each asks for its own build, and is killed while it does; the last one gets what it wants."""
        node = self.begin()
        names = [f"k-{n}" for n in range(self.PODS)]
        for name in names:
            self.pod(name, self.counter(name))
        before, keepers = self.identities(), node.all_keepers()
        for n in range(4):
            self.replace(binary=(node.other, nacre_test.BINARY)[n % 2])
            wanted = n * len(keepers) // 4
            nacre_test.until(lambda w=wanted: sum(node.runs(p, node.binary) for p in keepers) > w, 60, "some of them")
        self.replace(binary=node.other)
        node.until_upgraded(keepers)
        self.assertEqual(before, self.identities())
        self.check_counting(names)
        self.sound()

    def test_while_executables_are_fed(self):
        """What they are fed in several pieces comes whole, also when the keeper is exchanged between two of them."""
        node = self.begin(env={"NACRE_KEEPER_FAILPOINT": "upgrade.resume=sleep:100"})
        data = bytes(range(256)) * 16384
        over = threading.Event()
        answers = []

        def feed():
            while not over.is_set():
                e = runtime_pb2.Executable(command="cat", stdin=data)
                call = node.runtime.RunExecutable.future(runtime_pb2.RunExecutableRequest(executable=e), timeout=100)
                answers.append(call.exception() or call.result())

        for n in range(3):
            over.clear()
            keepers = node.all_keepers()
            self.replace(binary=(node.other, nacre_test.BINARY)[n % 2])
            feeder = threading.Thread(target=feed, daemon=True)
            feeder.start()
            node.until_upgraded(keepers)
            over.set()
            feeder.join(120)
            self.assertFalse(feeder.is_alive())
        self.assertTrue(answers)
        for a in answers:
            self.assertIsInstance(a, runtime_pb2.RunExecutableResponse)
            self.assertEqual((0, "", True), (a.exit_code, a.reason, a.stdout == data))
        self.sound()

    def test_replaced_under_open_streams(self):
        node = self.begin()
        names = [f"r-{n}" for n in range(self.PODS)]
        for name in names:
            self.pod(name, self.counter(name))
        before, keepers = self.identities(), node.all_keepers()
        streams = []
        for name in names:
            streams.append(Stream(node.workloads.Logs(nacre_pb2.LogsRequest(target=name, follow=True)), lambda m: m.data))
            streams.append(Stream(begin(node.workloads.Exec, nacre_pb2.ExecRequest(
                target=name, command=["/probe", "lines", "x", "1000000000", "10"])), lambda m: m.stdout))
        nacre_test.until(lambda: all(s.text for s in streams), 60, "open streams")
        old = node.process
        node.binary = node.other
        # A connection of its own, so that the streams are ended by the daemon.
        channel, node._channel = node._channel, None
        node.launch("--replace")
        node.wait_ready(60)
        self.assertEqual(0, old.wait(60))
        for stream in streams:
            stream.join(60)
            self.assertIn(stream.code, (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED))
        channel.close()
        node.until_upgraded(keepers)
        self.assertEqual(before, self.identities())
        self.check_counting(names)
        self.sound()


if __name__ == "__main__":
    unittest.main()
