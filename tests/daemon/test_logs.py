# SPDX-License-Identifier: Apache-2.0
"""Logs of containers: from a beginning that the client chooses, over rotation, on a full disk, and whoever is killed."""
import glob
import hashlib
import os
import subprocess
import time

import grpc

import images
import nacre_test
import steps
from nacre_test import nacre_pb2
from steps import container

Code = grpc.StatusCode
STDOUT, STDERR = 1, 2
SMALL = "log:\n  max_size: 64KiB\n  max_files: 3\n"


def read(path):
    with open(path, "rb") as f:
        return f.read()


class LogsTest(steps.StepsTest):
    def ask(self, target, tail=None, **fields):
        """Every message of an answer."""
        if tail is not None:
            fields["tail"] = nacre_pb2.LogsTail(lines=tail)
        return list(self.node.workloads.Logs(nacre_pb2.LogsRequest(target=target, **fields), timeout=60))

    def text(self, *args, stream=STDOUT, **kwargs):
        return b"".join(m.data for m in self.ask(*args, **kwargs) if m.stream == stream)

    def files(self, target):
        """The names in its directory, and what is in each."""
        folder = os.path.join(self.node.root, "logs", self.inspect(target).id)
        return {n: read(os.path.join(folder, n)) for n in os.listdir(folder)}

    def ended(self, name, script, *more, **fields):
        self.pod(name, container("sh", "-c", script, name="a", **fields), *more)
        self.wait(name)


class Beginning(LogsTest):
    def test_tail(self):
        self.ended("t", "seq 1000; printf last")
        self.assertEqual(b"last", self.text("t", tail=1))
        everything = b"".join(b"%d\n" % n for n in range(1, 1001)) + b"last"
        for n in (0, 2, 500, 1000, 1001, 5000):
            out = self.text("t", tail=n)
            self.assertTrue(everything.endswith(out))
            self.assertEqual(min(n, 1001), out.count(b"\n") + out.endswith(b"last"), n)

    def test_since(self):
        self.pod("s", container("sh", "-c", "echo old; read x; echo new; echo oops >&2", stdin=True, name="a"))
        nacre_test.until(lambda: self.text("s") == b"old\n", what="the first line")
        first = self.ask("s")[0].time
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="s", data=b"x\n"))
        self.wait("s")
        self.assertEqual(b"old\nnew\n", self.text("s", since=first))
        self.assertEqual(b"new\n", self.text("s", since=first + 1))
        self.assertEqual(b"oops\n", self.text("s", since=first + 1, stream=STDERR))
        self.assertEqual(b"", self.text("s", since=first + 10 ** 18))

    def test_until(self):
        # Each line waits until the one before is in the log: two streams have no order between them.
        self.pod("u", container("sh", "-c", "echo one; read x; echo two >&2; read x; echo three", stdin=True, name="a"))
        for stream, line in ((STDOUT, b"one\n"), (STDERR, b"two\n")):
            nacre_test.until(lambda s=stream, text=line: self.text("u", stream=s) == text, what=str(line))
            self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="u", data=b"x\n"))
        self.wait("u")
        three = next(m.time for m in self.ask("u") if m.data == b"three\n")
        self.assertEqual(b"one\n", self.text("u", until=three))
        self.assertEqual(b"two\n", self.text("u", until=three, stream=STDERR))
        self.assertEqual(b"one\nthree\n", self.text("u", until=three + 1))
        # A tail counts what is before the moment.
        self.assertEqual((b"", b"two\n"), (self.text("u", until=three, tail=1), self.text("u", until=three, tail=1, stream=STDERR)))
        self.assertEqual(b"one\n", self.text("u", until=three, tail=2))
        self.assertEqual(b"", self.text("u", until=1))

    def test_follow_ends_at_until(self):
        self.pod("f", container("sh", "-c", "echo now; sleep 1000", name="a"))
        nacre_test.until(lambda: self.text("f") == b"now\n", what="the first line")
        now = time.time_ns()
        self.assertEqual(b"now\n", self.text("f", follow=True, until=now))
        self.assertEqual(b"now\n", self.text("f", follow=True, until=now + 300_000_000))
        self.assertGreaterEqual(time.time_ns(), now + 300_000_000)

    def test_moments_of_the_command_line(self):
        self.ended("m", "echo one")
        for option, value, shown in (("--since", "1h30m", "one\n"), ("--until", "1h30m", ""), ("--since", "1136073845.5", "one\n"),
                                     ("--until", "1136073845", ""), ("--since", "2020-01-01", "one\n"),
                                     ("--until", "2020-01-01T10:00Z", "")):
            self.assertEqual(shown, self.node.cli("logs", option, value, "m").stdout, (option, value))
        done = self.node.cli("logs", "--until", "soon", "m", check=False)
        self.assertEqual(125, done.returncode)
        self.assertIn("--until: \"soon\" is neither a duration such as 1h30m", done.stderr)

    def test_each_container(self):
        self.ended("c", "echo one", container("sh", "-c", "echo two", name="b"))
        self.assertEqual((b"one\n", b"two\n"), (self.text("c", container="a"), self.text("c", container="b", tail=1)))
        self.assertEqual({"a.log", "b.log"}, set(self.files("c")))

    def test_command_line(self):
        self.ended("l", "printf 'one\\ntwo\\n'; sleep 0.2; printf thr; sleep 0.2; echo ee")
        stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z "
        self.assertEqual("three\n", self.node.cli("logs", "--tail", "1", "l").stdout)
        self.assertEqual("two\nthree\n", self.node.cli("logs", "-n2", "l", "-c", "a").stdout)
        self.assertEqual("one\ntwo\nthree\n", self.node.cli("logs", "--since", "1h", "l").stdout)
        self.assertEqual("", self.node.cli("logs", "--since", "2500-01-01T00:00:00+01:00", "l").stdout)
        self.assertRegex(self.node.cli("logs", "-t", "l").stdout, rf"\A{stamp}one\n{stamp}two\n{stamp}three\n\Z")
        for option in ("--since=yesterday", "--since=", "--tail=-1", "--tail=x"):
            done = self.node.cli("logs", option, "l", check=False)
            self.assertNotEqual(0, done.returncode)
            self.assertIn(option.split("=")[0], done.stderr)

    def test_lines_of_every_length(self):
        """Around the size of a read, of a piece, and a mebibyte; NUL bytes, no line feed."""
        script = "".join(f"head -c {n} /dev/zero; echo; " for n in (0, 1, 16383, 16384, 16385, (1 << 20) - 1, 1 << 20))
        self.ended("z", script + "printf '\\000\\377end'")
        want = b"".join(bytes(n) + b"\n" for n in (0, 1, 16383, 16384, 16385, (1 << 20) - 1, 1 << 20)) + b"\0\xffend"
        self.assertEqual(want, self.text("z"))
        self.assertEqual(b"\0\xffend", self.text("z", tail=1))
        # A line of 1 MiB with its line feed is whole; of a longer one the beginning may lack.
        self.assertEqual(want[-(2 << 20) - 6:], self.text("z", tail=3))
        for content in self.files("z").values():
            for line in content.splitlines(True):
                self.assertLessEqual(len(line), 16384 + 41)

    def test_no_log(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.ask("nobody")
        self.assertEqual(Code.NOT_FOUND, caught.exception.code())


class Rotation(LogsTest):
    CONFIG = SMALL

    def test_limits(self):
        self.ended("r", "seq 100000")
        files = self.files("r")
        self.assertEqual({"a.log", "a.log.1", "a.log.2"}, set(files))
        self.assertTrue(all(len(f) <= 65536 for f in files.values()))
        answers = self.ask("r")
        everything = b"".join(b"%d\n" % n for n in range(1, 100001))
        kept = b"".join(m.data for m in answers)
        self.assertTrue(everything.endswith(kept))
        self.assertGreater(len(kept), 10000)
        # What is gone is told, to the byte.
        self.assertEqual(len(everything) - len(kept), sum(m.skipped for m in answers))
        self.assertIn("are not kept", self.node.cli("logs", "r").stderr)
        self.assertEqual(b"".join(b"%d\n" % n for n in range(97001, 100001)), self.text("r", tail=3000))
        # Nothing of it stays.
        gone = self.inspect("r").id
        self.remove("r")
        self.assertFalse(os.path.exists(os.path.join(self.node.root, "logs", gone)))

    def test_followed(self):
        """Some hundred files come and go; a follower that takes everything either gets a byte or is told of it."""
        self.pod("f", container("sh", "-c", "read x; seq 300000; printf end", stdin=True, name="a"))
        stream = self.node.workloads.Logs(nacre_pb2.LogsRequest(target="f", follow=True))
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="f", data=b"x\n"))
        everything = b"".join(b"%d\n" % n for n in range(1, 300001)) + b"end"
        at = 0
        for m in stream:
            at += m.skipped
            self.assertEqual(everything[at:at + len(m.data)], m.data)
            at += len(m.data)
        self.assertEqual(len(everything), at)

    def test_slow_output_is_followed_without_a_gap(self):
        """Never ahead of the reader by more than a file: then nothing may be missing."""
        script = ("i=0; while read n; do while [ $i -lt $n ]; do head -c 2000 /dev/zero | tr '\\000' x; echo $i; i=$((i+1)); done;"
                  "done")
        self.pod("g", container("sh", "-c", script, name="a", stdin=True))
        stream = self.node.workloads.Logs(nacre_pb2.LogsRequest(target="g", follow=True), timeout=250)
        want = got = b""
        for n in range(0, 200, 10):
            want += "".join("x" * 2000 + f"{i}\n" for i in range(n, n + 10)).encode()
            self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="g", data=b"%d\n" % (n + 10), close=n == 190))
            while len(got) < len(want):
                m = next(stream)
                self.assertEqual(0, m.skipped)
                got += m.data
            self.assertEqual(want, got)
        self.assertEqual([], [m for m in stream if m.data or m.skipped])
        self.assertEqual(3, len(self.files("g")))

    def test_in_an_instance(self):
        self.spawn("deep")
        self.cell("deep/c", container("seq", "20000", name="a"))
        self.wait("deep/c")
        self.assertEqual({"a.log", "a.log.1", "a.log.2"}, set(self.files("deep/c")))


class Killed(LogsTest):
    CONFIG = "log:\n  max_size: 256KiB\n  max_files: 100\n"

    @classmethod
    def tearDownClass(cls):
        """A daemon that was started again has other descriptors than the first."""
        said = cls.node.destroy()
        assert not said, said

    def test_daemon_killed_under_output(self):
        """Killed again and again while files are changed: each number is there once, in order."""
        self.pod("k", container("sh", "-c", "seq 400000", name="a"))
        for _ in range(3):
            self.node.restart()
        self.wait("k")
        self.assertGreater(len(self.files("k")), 3)
        answers = self.ask("k")
        self.assertEqual(0, sum(m.skipped for m in answers))
        want = b"".join(b"%d\n" % n for n in range(1, 400001))
        got = b"".join(m.data for m in answers)
        self.assertEqual(hashlib.sha256(want).digest(), hashlib.sha256(got).digest())
        self.assertEqual(len(want), len(got))


class Full(steps.StepsTest):
    """ROOT/logs on a file system of one mebibyte."""
    POLICY = "block"
    BLOCK_FOR = "forever"

    def setUp(self):
        self.node = nacre_test.Node(f"log:\n  when_full: {self.POLICY}\n  block_for: {self.BLOCK_FOR}\n", start=False)
        self.addCleanup(self.node.destroy)
        self.logs_dir = os.path.join(self.node.root, "logs")
        os.makedirs(self.logs_dir)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", self.logs_dir], check=True)
        self.node.start()
        images.ensure(self.node, "busybox")
        self.filler = os.path.join(self.logs_dir, "filler")

    @classmethod
    def setUpClass(cls):
        """Each test has a node of its own."""

    @classmethod
    def tearDownClass(cls):
        """So has none that is left."""

    def status(self):
        return self.inspect("p").containers[0]

    def fill(self):
        with open(self.filler, "wb", buffering=0) as f:
            try:
                while f.write(bytes(4096)) == 4096:
                    pass
            except OSError:
                pass

    def begin(self, script):
        self.pod("p", container("sh", "-c", "read x; " + script, stdin=True, name="a"))
        self.fill()
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="p", data=b"x\n"))

    def account(self, want):
        """What is in the log is what was written but for what it says is missing; returns how much that is."""
        answers = list(self.node.workloads.Logs(nacre_pb2.LogsRequest(target="p"), timeout=60))
        at = 0
        for m in answers:
            at += m.skipped
            self.assertEqual(want[at:at + len(m.data)], m.data)
            at += len(m.data)
        return sum(m.skipped for m in answers), at


class Blocks(Full):
    def test_waits_and_goes_on(self):
        self.begin("seq 300000; echo done >&2")
        nacre_test.until(lambda: "its output waits" in self.status().reason, what="the reason")
        self.assertEqual("running", self.status().state)
        os.unlink(self.filler)
        subprocess.run(["mount", "-o", "remount,size=64m", self.logs_dir], check=True)
        self.node.workloads.Wait(nacre_pb2.WaitRequest(target="p"), timeout=100)
        want = b"".join(b"%d\n" % n for n in range(1, 300001))
        got = list(self.node.workloads.Logs(nacre_pb2.LogsRequest(target="p"), timeout=60))
        self.assertEqual(0, sum(m.skipped for m in got))
        self.assertEqual(want, b"".join(m.data for m in got if m.stream == STDOUT))
        self.assertEqual((0, ""), (self.status().log_lost, self.status().reason))

    def test_stop_and_remove_work(self):
        self.begin("seq 300000; sleep 1000")
        nacre_test.until(lambda: "its output waits" in self.status().reason, what="the reason")
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="p", force=True), timeout=60)
        self.assertEqual(["filler"], os.listdir(self.logs_dir))


class BlocksForAWhile(Full):
    BLOCK_FOR = "300ms"
    N = 100000

    def test_then_drops_and_tells(self):
        """It ends though the disk stays full, and says how much is missing."""
        self.begin(f"seq {self.N}")
        answer = self.node.workloads.Wait(nacre_pb2.WaitRequest(target="p"), timeout=100)
        self.assertEqual(0, answer.exit_code)
        size = sum(len(b"%d\n" % n) for n in range(1, self.N + 1))
        lost = self.status().log_lost
        self.assertIn(f"{lost} bytes of its output are lost", self.status().reason)
        _, kept = self.account(b"".join(b"%d\n" % n for n in range(1, self.N + 1)))
        self.assertEqual(size, kept + lost)
        self.assertEqual(lost, self.node.json("inspect", "p")["containers"][0]["log_lost"])

    def test_a_line_that_is_half_on_the_disk_counts(self):
        """The disk becomes full in the middle of one, and stays so."""
        self.pod("p", container("sh", "-c", f"read x; seq {self.N}", stdin=True, name="a"))
        self.fill()
        os.truncate(self.filler, os.path.getsize(self.filler) - 5 * 4096)
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="p", data=b"x\n"))
        self.node.workloads.Wait(nacre_pb2.WaitRequest(target="p"), timeout=100)
        want = b"".join(b"%d\n" % n for n in range(1, self.N + 1))
        _, kept = self.account(want)
        self.assertGreater(kept, 0)
        self.assertEqual(len(want), kept + self.status().log_lost)

    def test_the_loss_is_known_after_a_restart(self):
        """Of one whose keeper has gone, so that nobody but the store knows it."""
        self.begin(f"seq {self.N}")
        self.node.workloads.Wait(nacre_pb2.WaitRequest(target="p"), timeout=100)
        lost = self.status().log_lost
        self.assertGreater(lost, 0)
        # That of the node stays.
        nacre_test.until(lambda: len(self.node.keepers()) == 1, 60, "the end of its keeper")
        self.node.restart()
        self.assertEqual(lost, self.status().log_lost)
        self.assertIn(f"{lost} bytes of its output are lost", self.status().reason)

    def test_marks_where_it_goes_on(self):
        self.begin(f"seq {self.N}; read x; echo after")
        nacre_test.until(lambda: self.status().log_lost > 0 and "is dropped" in self.status().reason, what="the loss")
        os.unlink(self.filler)
        subprocess.run(["mount", "-o", "remount,size=64m", self.logs_dir], check=True)
        nacre_test.until(lambda: self.status().reason == "", seconds=60, what="the recovery")
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="p", data=b"x\n"))
        self.node.workloads.Wait(nacre_pb2.WaitRequest(target="p"), timeout=100)
        want = b"".join(b"%d\n" % n for n in range(1, self.N + 1)) + b"after\n"
        skipped, end = self.account(want)
        self.assertEqual((len(want), self.status().log_lost), (end, skipped))
        self.assertGreater(skipped, 0)
        marks = [line for line in read(glob.glob(self.logs_dir + "/*/a.log")[0]).splitlines() if b" P:lost=" in line]
        self.assertTrue(marks)


class Drops(Full):
    POLICY = "drop"

    def test_never_waits(self):
        BlocksForAWhile.test_then_drops_and_tells(self)

    N = BlocksForAWhile.N
