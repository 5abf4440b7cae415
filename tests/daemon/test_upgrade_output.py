# SPDX-License-Identifier: Apache-2.0
"""Terminals, logs and the output that is kept for who attaches, while keepers go on as another build."""
import os
import subprocess
import unittest

import nacre_test
from nacre_test import nacre_pb2
from steps import container
from test_exec_stream import Talk
from test_upgrade import UpgradeTest


class Output(UpgradeTest):
    IMAGES = ("busybox",)

    def attach(self, target, **fields):
        return Talk(self.node.workloads.Attach, nacre_pb2.AttachRequest(target=target, **fields))

    def type(self, target, data):
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target=target, data=data))

    def exchange(self):
        """All keepers become the build that they are not."""
        keepers = self.node.all_keepers()
        binary = nacre_test.BINARY if self.node.binary == self.node.other else self.node.other
        self.replace(binary=binary)
        self.node.until_upgraded(keepers)


class Terminal(Output):
    def test_goes_on(self):
        self.begin()
        self.pod("t", container("sh", "-c", "while read x; do eval $x; done; exit 5", tty=True, stdin=True,
                                terminal={"width": 91, "height": 31}))
        t = self.attach("t", stdin=True)
        t.send(data=b"stty size\n")
        t.until(b"31 91\r\n").send(terminal={"width": 92, "height": 32})
        t.send(data=b"echo half a line; read y; echo got $y; stty size; echo _first\n")
        t.until(b"half a line\r\n").cancel()
        for n in range(2):
            self.exchange()
            # What was written before the exchange is still told, once, and in its place.
            t = self.attach("t", stdin=True, replay=True).until(b"half a line\r\n")
            self.assertEqual((1, 0), (t.out.count(b"31 91\r\n"), t.skipped))
            if n == 0:
                t.send(data=b"word\n")
            t.until(b"got word\r\n32 92\r\n_first\r\n")
            t.send(data=b"echo again%d\n" % n)
            t.until(b"\nagain%d\r\n" % n).cancel()
        t = self.attach("t", stdin=True)
        t.send(terminal={"width": 93, "height": 33})
        t.send(data=b"stty size\n")
        t.until(b"33 93\r\n").send(data=b"\x04")
        self.assertEqual(5, t.end()[2])
        log = self.logs("t")
        for words in (b"31 91", b"got word", b"32 92", b"\nagain0", b"\nagain1", b"33 93"):
            self.assertEqual(1, log.count(words + b"\r\n"), words)

    def test_replay_of_a_full_ring(self):
        """Each byte of the output is either told or counted as gone; both streams, over two exchanges."""
        self.begin()
        self.pod("r", container("sh", "-c", "seq 30000; read x; echo oops >&2; read x; exit 6", stdin=True))
        want = b"".join(b"%d\n" % n for n in range(1, 30001))
        nacre_test.until(lambda: self.logs("r") == want, what="its output")
        before = self.attach("r", replay=True).until(b"\n30000\n")
        before.cancel()
        self.exchange()
        self.type("r", b"x\n")
        nacre_test.until(lambda: self.logs("r", stream=2) == b"oops\n", what="its other output")
        self.exchange()
        t = self.attach("r", replay=True, stdin=True).until(b"oops\n")
        self.assertTrue(want.endswith(t.out))
        self.assertEqual(len(want), t.skipped + len(t.out))
        # Only one small piece came: at most one large one had to go for it.
        self.assertGreaterEqual(len(t.out), len(before.out) - 16384)
        t.send(data=b"x\n")
        self.assertEqual((b"oops\n", 6), t.end()[1:])


class Logs(Output):
    PHASES, CHUNKS = 4, 40

    def test_rotation_under_heavy_output(self):
        """Exchanged while files are changed: each line is there once, in order."""
        node = self.begin(config="log:\n  max_size: 64KiB\n  max_files: 200\n")
        chunk = "seq $at $((at + 999)); at=$((at + 1000)); usleep 20000"
        script = f"at=1; while read x; do for i in $(seq {self.CHUNKS}); do {chunk}; done; done"
        self.pod("h", container("sh", "-c", script, name="a", stdin=True))
        lines = 0
        for _ in range(self.PHASES):
            self.type("h", b"x\n")
            lines += self.CHUNKS * 1000
            self.exchange()
            nacre_test.until(lambda n=lines: self.tail("h") == b"%d\n" % n, 60, "the last line")
        answers = list(node.workloads.Logs(nacre_pb2.LogsRequest(target="h"), timeout=60))
        self.assertEqual(0, sum(m.skipped for m in answers))
        got = b"".join(m.data for m in answers).split(b"\n")
        want = [b"%d" % n for n in range(1, lines + 1)] + [b""]
        if got != want:
            at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
            self.fail(f"line {at + 1} is {got[max(at - 1, 0):at + 3]}")
        folder = os.path.join(node.root, "logs", self.inspect("h").id)
        self.assertGreater(len(os.listdir(folder)), 20)

    def tail(self, name):
        request = nacre_pb2.LogsRequest(target=name, tail=nacre_pb2.LogsTail(lines=1))
        return b"".join(m.data for m in self.node.workloads.Logs(request, timeout=60))

    def test_full_disk(self):
        """What waits for room in the log is not lost, however often the keeper is exchanged meanwhile."""
        def mount(node):
            os.makedirs(os.path.join(node.root, "logs"))
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", os.path.join(node.root, "logs")], check=True)
        node = self.begin(mount, config="log:\n  when_full: block\n  block_for: forever\n")
        logs = os.path.join(node.root, "logs")
        self.pod("f", container("sh", "-c", "seq 100000; echo done >&2; exit 4", name="a"))
        nacre_test.until(lambda: "its output waits" in self.inspect("f").containers[0].reason, what="the reason")
        for _ in range(2):
            self.exchange()
            shown = self.inspect("f").containers[0]
            self.assertEqual(("running", 0), (shown.state, shown.log_lost))
            nacre_test.until(lambda: "its output waits" in self.inspect("f").containers[0].reason, what="the reason")
        subprocess.run(["mount", "-o", "remount,size=64m", logs], check=True)
        self.assertEqual(4, self.wait("f").exit_code)
        got = list(node.workloads.Logs(nacre_pb2.LogsRequest(target="f"), timeout=60))
        self.assertEqual(0, sum(m.skipped for m in got))
        self.assertEqual(b"".join(b"%d\n" % n for n in range(1, 100001)), b"".join(m.data for m in got if m.stream == 1))
        self.assertEqual(b"done\n", b"".join(m.data for m in got if m.stream == 2))
        shown = self.inspect("f").containers[0]
        self.assertEqual((0, ""), (shown.log_lost, shown.reason))


if __name__ == "__main__":
    unittest.main()
