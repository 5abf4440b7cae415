# SPDX-License-Identifier: Apache-2.0
"""Exec, Attach and Signal as streams: input with back-pressure, half-close, signals, what is refused, after a restart, and at
depth three."""
import hashlib
import os
import signal
import subprocess
import threading
import time

import grpc

import images
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2
import steps

Input = nacre_pb2.StreamInput
BAD, GONE, CANCELLED = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.CANCELLED)


class Talk:
    """A call whose messages are sent one at a time; `out`, `err`, `exit`, `code` are what came."""

    def __init__(self, method, first, **kwargs):
        self.ready = threading.Condition()
        self.queue, self.open = [first], True
        self.out, self.err, self.exit, self.code, self.details, self.skipped = b"", b"", None, None, "", 0
        self.method = type(first)
        self.call = method(self._sent(), **kwargs)
        self.thread = threading.Thread(target=self._take, daemon=True)
        self.thread.start()

    def _sent(self):
        while True:
            with self.ready:
                self.ready.wait_for(lambda: self.queue or not self.open)
                if not self.queue:
                    return
                message = self.queue.pop(0)
            yield message

    def _take(self):
        try:
            for m in self.call:
                self.out += m.stdout
                self.err += m.stderr
                self.skipped += getattr(m, "skipped", 0)
                if m.HasField("exit"):
                    self.exit = m.exit
            self.code = grpc.StatusCode.OK
        except grpc.RpcError as e:
            self.code, self.details = e.code(), e.details()
        self.half_close()

    def send(self, **fields):
        self.send_message(input=Input(**fields))

    def send_message(self, **fields):
        with self.ready:
            self.queue.append(self.method(**fields))
            self.ready.notify()

    def half_close(self):
        with self.ready:
            self.open = False
            self.ready.notify()

    def until(self, words):
        nacre_test.until(lambda: words in self.out + self.err or self.code, what=f"{words} in {self.out[-200:]}")
        return self

    def end(self):
        """Waits for it; (stdout, stderr, exit code or status)."""
        self.thread.join(60 * nacre_test.SLOWNESS)
        assert self.code is not None, "the call did not end"
        return self.out, self.err, self.exit.exit_code if self.exit else self.code

    def cancel(self):
        self.call.cancel()
        self.end()


class StreamTest(steps.StepsTest):
    def talk(self, target, *command, **fields):
        first = nacre_pb2.ExecRequest(target=target, command=command, **{"stdin": True, **fields})
        return Talk(self.node.workloads.Exec, first)

    def attach(self, target, **fields):
        return Talk(self.node.workloads.Attach, nacre_pb2.AttachRequest(target=target, **fields))

    def run_pod(self, name, *command, **fields):
        container = runtime_pb2.Container(image="busybox", command=command, **fields)
        self.node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name=name), containers=[container]))

    def pid(self, name):
        return self.node.workloads.Inspect(nacre_pb2.InspectRequest(target=name)).workload.containers[0].pid


class Exec(StreamTest):
    def setUp(self):
        super().setUp()
        self.run_pod("x", "sleep", "100000")

    def test_input_and_half_close(self):
        t = self.talk("x", "sh", "-c", "cat; echo end >&2; exit 3")
        t.send(data=b"one ")
        t.until(b"one ")
        t.send(data=b"two")
        t.half_close()
        self.assertEqual((b"one two", b"end\n", 3), t.end())

    def test_close_by_message(self):
        t = self.talk("x", "cat")
        t.send(data=b"all", close=True)
        self.assertEqual((b"all", b"", 0), t.end())

    def test_without_stdin(self):
        self.assertEqual((b"0\n", b"", 0), self.talk("x", "wc", "-c", stdin=False).end())
        t = self.talk("x", "sleep", "1000", stdin=False)
        t.send(data=b"x")
        self.assertEqual(BAD, t.end()[2])
        self.assertIn("input.data", t.details)

    def test_program_that_reads_nothing(self):
        t = self.talk("x", "sh", "-c", "exec <&-; echo closed; read -t 1 x </proc/1/fd/nope; exit 4")
        t.until(b"closed")
        for _ in range(20):
            t.send(data=b"x" * 100000)
        self.assertEqual(4, t.end()[2])

    def test_signals(self):
        t = self.talk("x", "sh", "-c", "trap 'echo got; exit 5' USR1; echo up; while :; do sleep 0.05; done")
        t.until(b"up")
        t.send(signal=signal.SIGUSR1)
        self.assertEqual((b"up\ngot\n", b"", 5), t.end())
        t = self.talk("x", "sleep", "1000")
        t.send(signal=signal.SIGKILL)
        self.assertEqual(137, t.end()[2])
        self.assertEqual(9, t.exit.signal)

    def test_terminal(self):
        t = self.talk("x", "sh", "-c", "stty size; tty; echo err >&2; read x; stty size; echo $TERM; exit 6", tty=True,
                      terminal=nacre_pb2.TerminalSize(width=111, height=44))
        t.until(b"err")
        t.send(terminal=nacre_pb2.TerminalSize(width=200, height=9))
        t.send(data=b"x\n")
        self.assertEqual((b"44 111\r\n/dev/pts/0\r\nerr\r\nx\r\n9 200\r\nxterm\r\n", b"", 6), t.end())

    def test_terminal_of_a_user(self):
        t = self.talk("x", "sh", "-c", "echo >$(tty) && id -u", tty=True, user="nobody")
        self.assertEqual((b"\r\n65534\r\n", b"", 0), t.end())
        t = self.talk("x", "sh", "-c", "for f in stdout stderr tty; do echo $f >/dev/$f; done; test -r /dev/stdin", tty=True,
                      user="nobody")
        self.assertEqual((b"stdout\r\nstderr\r\ntty\r\n", b"", 0), t.end())

    def test_streams_of_a_user(self):
        """The user of an exec can open its streams again, and /dev/null there is the container's."""
        t = self.talk("x", "sh", "-c", "echo out >/dev/stdout; echo err >/dev/stderr; cat /dev/stdin", user="nobody")
        t.send(data=b"in")
        t.half_close()
        self.assertEqual((b"out\nin", b"err\n", 0), t.end())
        t = self.talk("x", "sh", "-c", "test $(stat -L -c %d:%i /dev/stdin) = $(stat -L -c %d:%i /dev/null)", stdin=False)
        self.assertEqual(0, t.end()[2])

    def test_end_of_file_typed(self):
        t = self.talk("x", "cat", tty=True)
        t.send(data=b"line\nrest")
        t.half_close()
        self.assertEqual((b"line\r\nrestline\r\nrest", b"", 0), t.end())

    def test_refused(self):
        for field, kwargs in (("input.signal", {"signal": 65}), ("terminal", {"terminal": {"width": 65536}}),
                              ("input.data", {"data": b"x" * ((1 << 20) + 1)}), ("input.terminal", {"terminal": {"width": 1}})):
            t = self.talk("x", "sleep", "1000")
            t.send(**kwargs)
            self.assertIn(t.end()[2], (BAD, grpc.StatusCode.RESOURCE_EXHAUSTED))
            self.assertIn(field, t.details)
        t = self.talk("x", "sleep", "1000", input=Input(data=b"x"))
        self.assertEqual(BAD, t.end()[2])
        t = self.talk("x", "sleep", "1000", terminal={"height": 65536})
        self.assertEqual(BAD, t.end()[2])
        self.assertFails(BAD, lambda: list(self.node.workloads.Exec(iter([]))), "target")
        nacre_test.until(lambda: len(self.processes()) == 1, what="the end of all that was refused")

    def test_the_first_message_alone_says_what_runs(self):
        for field, value in (("target", "x"), ("container", "main"), ("command", ["true"]), ("env", ["A=b"]), ("working_dir", "/"),
                             ("user", "0"), ("timeout_ms", 1), ("stdin", True), ("tty", True), ("terminal", {"width": 1})):
            t = self.talk("x", "sh", "-c", "echo up; sleep 1000")
            t.until(b"up")
            t.send(data=b"fine")
            t.send_message(**{field: value, "input": Input(data=b"x")})
            self.assertEqual(BAD, t.end()[2])
            self.assertTrue(t.details.startswith(field + ": "), t.details)
        nacre_test.until(lambda: len(self.processes()) == 1, what="the end of all that was refused")
        self.run_pod("y", "sh", "-c", "cat; sleep 1000", stdin=True)
        t = self.attach("y", stdin=True)
        t.send(data=b"up")
        t.until(b"up")
        t.send_message(replay=True)
        self.assertEqual(BAD, t.end()[2])
        self.assertTrue(t.details.startswith("replay: "), t.details)
        # What was attached to does not notice.
        t = self.attach("y", stdin=True)
        t.send(data=b"more")
        t.until(b"more")
        t.cancel()

    def processes(self):
        """Of the pod's container, by the kernel."""
        with open(f"/proc/{self.pid('x')}/cgroup", encoding="ascii") as f:
            path = next(line.split(":", 2)[2].strip() for line in f if line.startswith("0:"))
        import host

        return host.cgroup_pids(os.path.join(host.cgroup_root(), path.lstrip("/")))

    def test_a_cancelled_call_kills_the_session(self):
        t = self.talk("x", "sh", "-c", "sleep 4003 & echo up; sleep 4003; true", tty=True)
        t.until(b"up")
        nacre_test.until(lambda: len(self.processes()) == 4, what="the second sleep, which is forked behind the echo")
        t.cancel()
        nacre_test.until(lambda: len(self.processes()) == 1, what="the end of its session")

    def test_detached(self):
        """The call ends when the program runs; it goes on without a client, and over a restart of the daemon, with its output dropped."""
        t = self.talk("x", "sh", "-c", "while [ ! -e /go ]; do head -c 100000 /dev/zero; echo >>/lines; sleep 0.05; done; echo done >/done", stdin=False, detach=True)
        self.assertEqual((b"", b"", grpc.StatusCode.OK), t.end())
        self.node.restart()
        self.assertEqual(0, self.talk("x", "sh", "-c", "n=$(wc -l </lines); while [ $(wc -l </lines) -le $((n + 2)) ]; do sleep 0.05; done; touch /go; "
                                      "while [ ! -e /done ]; do sleep 0.05; done", stdin=False).end()[2])
        t = self.talk("x", "/no/such", stdin=False, detach=True)
        self.assertEqual((b"", b"", 127), t.end())
        self.assertIn("/no/such", t.exit.reason)
        t = self.talk("x", "true", detach=True)
        self.assertEqual(BAD, t.end()[2])
        self.assertIn("stdin: not with detach", t.details)
        for _ in range(20):
            self.assertEqual(grpc.StatusCode.OK, self.talk("x", "true", stdin=False, detach=True).end()[2])
        done = self.node.cli("exec", "-d", "x", "/no/such", check=False)
        self.assertEqual((127, ""), (done.returncode, done.stdout))
        self.assertIn("/no/such", done.stderr)
        self.assertEqual(0, self.node.cli("exec", "-dt", "x", "sleep", "100000").returncode)
        self.node.cli("stop", "-t", "0", "x")
        # What a daemon opens for its first pod is no leftover, but is missed in one that was restarted.
        self.node.cli("run", "--rm", "busybox", "true")

    def test_64_mib_through_cat(self):
        size, piece = 64 << 20, os.urandom(1 << 16)
        wanted = hashlib.sha256(piece * (size // len(piece))).hexdigest()
        client = subprocess.Popen([nacre_test.BINARY, "--socket", self.node.socket, "exec", "-i", "x", "cat"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def feed():
            for _ in range(size // len(piece)):
                client.stdin.write(piece)
            client.stdin.close()

        threading.Thread(target=feed, daemon=True).start()
        seen = hashlib.sha256()
        for data in iter(lambda: client.stdout.read(1 << 16), b""):
            seen.update(data)
        client.stdout.close()
        self.assertEqual(0, client.wait(60 * nacre_test.SLOWNESS))
        self.assertEqual(wanted, seen.hexdigest())

    def test_input_that_nobody_reads_is_not_stored(self):
        """The client is made to wait: it cannot get rid of much more than pipes and windows hold."""
        client = subprocess.Popen([nacre_test.BINARY, "--socket", self.node.socket, "exec", "-i", "x", "sleep", "1000"],
                                  stdin=subprocess.PIPE)
        os.set_blocking(client.stdin.fileno(), False)
        sent, quiet = 0, 0
        # More than the pipe holds: so it has begun to read, and to listen to signals.
        while (quiet < 20 or sent <= 65536) and sent < 64 << 20:
            try:
                sent += os.write(client.stdin.fileno(), b"x" * 65536)
                quiet = 0
            except BlockingIOError:
                quiet += 1
                time.sleep(0.02)
        self.assertLess(sent, 32 << 20)
        # The program's end is not held up by what it did not read; nor is ours.
        client.send_signal(signal.SIGINT)
        self.assertEqual(130, client.wait(60 * nacre_test.SLOWNESS))
        client.stdin.close()


class Deep(StreamTest):
    def test_depth_three_and_a_restart(self):
        # A daemon that is killed is not the one that the class has looked at.
        with nacre_test.Node() as node:
            self.node = node
            images.ensure(node, "busybox")
            self.depth_three_and_a_restart(node)
            self.assertEqual("", node.sanitizer_reports())

    def depth_three_and_a_restart(self, node):
        for parent, name in (("", "a"), ("a", "b")):
            node.runtime.Spawn(runtime_pb2.SpawnRequest(meta=runtime_pb2.Meta(name=name), parent=parent))
        container = runtime_pb2.Container(image="busybox", command=["sh", "-c", "echo up; while read x; do echo got $x; done"],
                                          stdin=True, tty=True)
        node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name="c"), parent="a/b", containers=[container]))
        for again in (False, True):
            t = self.talk("a/b/c", "sh", "-c", "stty size; read x; echo $x; exit 7", tty=True,
                          terminal=nacre_pb2.TerminalSize(width=70, height=30))
            t.until(b"30 70")
            t.send(data=b"deep\n")
            self.assertEqual((b"30 70\r\ndeep\r\ndeep\r\n", b"", 7), t.end())
            a = self.attach("a/b/c", stdin=True, replay=True).until(b"up\r\n")
            a.send(data=b"word\n")
            a.until(b"got word\r\n")
            if again:
                a.cancel()
                break
            node.send_signal(signal.SIGKILL)
            self.assertEqual(grpc.StatusCode.UNAVAILABLE, a.end()[2])
            node.wait()
            node.start()
        self.assertEqual("running", node.workloads.Inspect(nacre_pb2.InspectRequest(target="a/b/c")).workload.state)


class Signal(StreamTest):
    def test_signal(self):
        self.run_pod("s", "sh", "-c", "trap 'exit 9' USR2; echo ready; while :; do sleep 0.05; done")
        request = nacre_pb2.SignalRequest(target="s", signal=signal.SIGUSR2)
        self.assertFails(BAD, lambda: self.node.workloads.Signal(nacre_pb2.SignalRequest(target="s", signal=65)), "signal")
        self.assertFails(BAD, lambda: self.node.workloads.Signal(nacre_pb2.SignalRequest(target="s")), "signal")
        self.node.workloads.Signal(nacre_pb2.SignalRequest(target="s", probe=True))
        self.assertFails(BAD, lambda: self.node.workloads.Signal(nacre_pb2.SignalRequest(target="s", probe=True, signal=9)), "signal")
        # Before it has its trap the kernel drops the signal: it is the first process of its namespace.
        nacre_test.until(lambda: self.logs("s") == b"ready\n", what="its trap")
        self.node.workloads.Signal(request)
        self.assertEqual(9, self.node.workloads.Wait(nacre_pb2.WaitRequest(target="s"), timeout=100).exit_code)
        self.assertFails(GONE, lambda: self.node.workloads.Signal(request), "exited")


