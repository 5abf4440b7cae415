# SPDX-License-Identifier: Apache-2.0
"""Attach and hold_output: replay, several clients, who takes nothing, the end of quick containers, and the command line."""
import os
import select
import signal
import time

import grpc

import nacre_test
import steps
from nacre_test import nacre_pb2
from steps import container
from test_exec_stream import BAD, GONE, Talk

NUMBERS = "".join(f"{n}\n" for n in range(1, 30001)).encode()


class Attach(steps.StepsTest):
    def attach(self, target, **fields):
        return Talk(self.node.workloads.Attach, nacre_pb2.AttachRequest(target=target, **fields))

    def test_follows_and_types(self):
        self.pod("p", container("sh", "-c", "echo before; while read x; do echo got $x; done; echo end >&2; exit 3", stdin=True))
        nacre_test.until(lambda: b"before" in self.logs("p"), what="its first words")
        first, second = self.attach("p", stdin=True), self.attach("p", stdin=True, replay=True)
        second.until(b"before\n")
        first.send(data=b"one\n")
        second.until(b"got one\n").send(data=b"two\n")
        first.until(b"got two\n").half_close()
        self.assertEqual((b"got one\ngot two\n", b"end\n", 3), first.end())
        self.assertEqual((b"before\ngot one\ngot two\n", b"end\n", 3), second.end())

    def test_leaving_touches_nothing(self):
        self.pod("p", container("sh", "-c", "while read x; do echo got $x; done; sleep 1000", stdin=True))
        t = self.attach("p", stdin=True)
        t.send(data=b"one\n")
        t.until(b"got one").cancel()
        t = self.attach("p", stdin=True, replay=True).until(b"got one")
        t.send(data=b"two\n")
        t.until(b"got two").cancel()
        self.assertEqual("running", self.inspect("p").state)

    def test_held_output_waits_for_the_first(self):
        """More than the ring holds, from a program that has nothing else to do: not a byte is missing."""
        self.pod("p", container("seq", "30000", hold_output=True))
        # It has filled what there is room for, and waits.
        nacre_test.until(lambda: len(self.logs("p")) > 32768, what="what it writes at first")
        self.assertEqual("running", self.inspect("p").state)
        self.assertEqual((NUMBERS, b"", 0), self.attach("p", replay=True).end())
        nacre_test.until(lambda: self.inspect("p").state == "exited", what="its end")
        self.assertEqual(NUMBERS, self.logs("p"))

    def test_held_end(self):
        """One that ends at once is still there for who asked to be waited for."""
        self.pod("p", container("sh", "-c", "echo hi; exit 4", hold_output=True))
        self.assertEqual((b"hi\n", b"", 4), self.attach("p", replay=True).end())
        self.assertEqual(4, self.node.workloads.Wait(nacre_pb2.WaitRequest(target="p"), timeout=100).exit_code)

    def test_nobody_comes(self):
        self.pod("p", container("seq", "30000", hold_output=True))
        nacre_test.until(lambda: self.inspect("p").state == "exited", what="the end of the patience")
        self.assertEqual(NUMBERS, self.logs("p"))

    def test_who_takes_nothing_is_put_off(self):
        self.pod("p", container("sh", "-c", "head -c 20000000 /dev/zero; echo done >&2; sleep 1000"))
        call = self.node.workloads.Attach(iter([nacre_pb2.AttachRequest(target="p", replay=True)]))
        next(call)
        # Python's client goes on to take what its window has room for, then nothing.
        nacre_test.until(lambda: b"done" in self.logs("p", stream=2), what="the rest without the client")
        with self.assertRaises(grpc.RpcError) as caught:
            for _ in call:
                pass
        self.assertEqual(grpc.StatusCode.RESOURCE_EXHAUSTED, caught.exception.code())
        self.assertEqual("running", self.inspect("p").state)

    def test_a_slow_reader_loses_nothing(self):
        self.pod("p", container("seq", "30000", hold_output=True))
        out = b""
        for m in self.node.workloads.Attach(iter([nacre_pb2.AttachRequest(target="p", replay=True)])):
            out += m.stdout
            time.sleep(0.01)
        self.assertEqual(NUMBERS, out)

    def test_replay_tells_what_is_gone(self):
        self.pod("p", container("sh", "-c", "seq 30000; sleep 1000"))
        nacre_test.until(lambda: self.logs("p") == NUMBERS, what="its output")
        t = self.attach("p", replay=True).until(b"30000\n")
        self.assertEqual(len(NUMBERS), t.skipped + len(t.out))
        self.assertTrue(NUMBERS.endswith(t.out))
        self.assertLessEqual(len(t.out), 65536)
        t.cancel()

    def test_refused(self):
        self.pod("p")
        for code, field, fields in ((GONE, "stdin", {"stdin": True}), (BAD, "terminal", {"terminal": {"width": 65536}}),
                                    (BAD, "input", {"input": {"data": b"x"}}), (grpc.StatusCode.NOT_FOUND, "container",
                                                                                 {"container": "nobody"})):
            t = self.attach("p", **fields)
            self.assertEqual(code, t.end()[2])
            self.assertIn(field, t.details)
        t = self.attach("p")
        t.send(terminal={"width": 1})
        self.assertEqual(BAD, t.end()[2])
        self.assertEqual("running", self.inspect("p").state)

    def test_an_ended_one(self):
        self.pod("p", container("true"))
        self.node.workloads.Wait(nacre_pb2.WaitRequest(target="p"), timeout=100)
        nacre_test.until(lambda: self.attach("p").end()[2] in (GONE, grpc.StatusCode.UNAVAILABLE), what="the end of its keeper")

    def test_many(self):
        self.pod("p", container("sh", "-c", "echo ready; read x; seq 30000", stdin=True))
        nacre_test.until(lambda: b"ready" in self.logs("p"), what="its first words")
        talks = [self.attach("p", stdin=True, replay=True) for _ in range(20)]
        for t in talks:
            t.until(b"ready\n")
        talks[3].send(data=b"go\n")
        for t in talks:
            self.assertEqual((b"ready\n" + NUMBERS, b"", 0), t.end())

    def test_terminal_in_the_log(self):
        self.pod("p", container("sh", "-c", "echo out; echo err >&2", tty=True))
        self.node.workloads.Wait(nacre_pb2.WaitRequest(target="p"), timeout=100)
        self.assertEqual(b"out\r\nerr\r\n", self.logs("p", stream=1))
        self.assertTrue(self.inspect("p").containers[0].tty)


class CommandLine(steps.StepsTest):
    def test_attach_and_the_end(self):
        self.pod("p", container("sh", "-c", "read x; echo got $x; exit 5", stdin=True))
        done = self.node.cli("attach", "p", check=False, stdin="word\n")
        self.assertEqual((5, "got word\n", ""), (done.returncode, done.stdout, done.stderr))

    def test_signals_go_to_the_program(self):
        self.pod("p", container("sh", "-c", "trap 'echo usr1' USR1; trap 'echo int' INT; echo up; while :; do sleep 0.05; done"))
        client = self.node.spawn_cli("attach", "--no-stdin", "--replay", "p")
        # It listens to signals before it attaches.
        self.assertEqual(b"up\n", client.stdout.readline())
        client.send_signal(signal.SIGUSR1)
        self.assertEqual(b"usr1\n", client.stdout.readline())
        for _ in range(2):
            client.send_signal(signal.SIGINT)
            self.assertEqual(b"int\n", client.stdout.readline())
        client.send_signal(signal.SIGINT)
        client.communicate(timeout=60 * nacre_test.SLOWNESS)
        self.assertEqual(130, client.returncode)
        self.assertEqual("running", self.inspect("p").state)

    def test_tty_without_a_terminal(self):
        self.pod("p")
        for words in (("run", "-it", "busybox", "true"), ("run", "-t", "busybox", "true"), ("exec", "-it", "p", "true"),
                      ("exec", "-t", "p", "true")):
            done = self.node.cli(*words, check=False)
            self.assertEqual(125, done.returncode)
            self.assertIn("--tty needs a terminal", done.stderr)

    def test_exec_signals(self):
        self.pod("p")
        client = self.node.spawn_cli("exec", "p", "sh", "-c", "trap 'exit 8' TERM; echo up; while :; do sleep 0.05; done")
        self.assertEqual(b"up\n", client.stdout.readline())
        client.send_signal(signal.SIGTERM)
        client.communicate(timeout=60 * nacre_test.SLOWNESS)
        self.assertEqual(8, client.returncode)

    def test_sigterm_ends_an_exec_that_ignores_it(self):
        self.pod("p")
        for script in ("trap '' TERM; echo up; sleep 1000", "trap '' TERM; yes"):
            client = self.node.spawn_cli("exec", "p", "sh", "-c", script)
            client.stdout.read(1)
            if "yes" in script:
                self.fill(client)
            client.send_signal(signal.SIGTERM)
            self.assertEqual(143, client.wait(20 * nacre_test.SLOWNESS))
            client.communicate()

    def fill(self, client):
        """Until the pipe is full. The test reads no more then: the client waits to write. How many bytes that are depends on how they
        were written: a page of the pipe may be used in part."""
        writer = os.open(f"/proc/{client.pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
        try:
            nacre_test.until(lambda: not select.select([], [writer], [], 0)[1], what="a full pipe")
        finally:
            os.close(writer)

    def test_sigterm_stops_a_run_that_nobody_reads(self):
        client = self.node.spawn_cli("run", "--rm", "busybox", "sh", "-c",
                                     "trap 'exit 8' TERM; while :; do echo aaaaaaaaaaaaaaaa; done")
        client.stdout.read(1)
        self.fill(client)
        client.send_signal(signal.SIGTERM)
        self.assertEqual(8, client.wait(20 * nacre_test.SLOWNESS))
        client.communicate()

    def test_exec_without_a_reader_has_a_broken_pipe(self):
        self.pod("p")
        for script in ("yes", "while :; do echo x; sleep 0.01; done"):
            client = self.node.spawn_cli("exec", "p", "sh", "-c", script)
            client.stdout.read(1)
            client.stdout.close()
            self.assertEqual(141, client.wait(20 * nacre_test.SLOWNESS))
            client.stdin.close()
            client.stderr.close()

    def test_exec_ends_although_a_child_keeps_the_pipe(self):
        self.pod("p")
        done = self.node.cli("exec", "p", "sh", "-c", "sleep 1000 & echo out; exit 6", check=False)
        self.assertEqual((6, "out\n", ""), (done.returncode, done.stdout, done.stderr))

    def test_run_falls_back_to_the_log(self):
        """Who reads nothing of a run for longer than it is waited for still gets all of it."""
        client = self.node.spawn_cli("run", "--name", "slow", "busybox", "sh", "-c", "seq 300000; seq 30000 >&2")
        nacre_test.until(lambda: self.all().get("slow") and self.all()["slow"].state == "exited", what="its end")
        out, err = client.communicate(timeout=60 * nacre_test.SLOWNESS)
        self.assertEqual("".join(f"{n}\n" for n in range(1, 300001)).encode(), out)
        self.assertEqual(NUMBERS, err)
        self.assertEqual(0, client.returncode)
