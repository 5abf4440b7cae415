# SPDX-License-Identifier: Apache-2.0
"""Output that does not come to whom it is for: he is told, and nothing waits for it for ever."""
import os
import subprocess
import unittest

import nacre_test
from nacre_test import nacre_pb2, runtime_pb2
import steps
from steps import container

# Writes, once the file is there, until nobody has taken anything for half a second.
FILLS = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
os.set_blocking(1, False)
last = time.time()
while time.time() < last + 0.5:
    try:
        os.write(1, b"x" * 4096)
        last = time.time()
    except BlockingIOError:
        time.sleep(0.001)
"""


class OutputLost(steps.StepsTest):
    def full(self, *args):
        """The complaint of a command whose output goes where nothing has room."""
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([nacre_test.BINARY, "--socket", self.node.socket, *args], stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False, timeout=60)
        self.assertEqual((125, "nacre: cannot write the output: No space left on device\n"), (done.returncode, done.stderr), args)

    def test_a_disk_that_is_full(self):
        self.cell("w", container("sh", "-c", "echo said; sleep 1000"))
        nacre_test.until(lambda: self.logs("w") == b"said\n", what="the log")
        self.full("exec", "w", "sh", "-c", "echo 1; exit 3")
        self.full("exec", "w", "sh", "-c", "dd if=/dev/zero bs=1024 count=500 2>/dev/null")
        self.full("logs", "w")
        self.full("logs", "-f", "w")
        self.full("attach", "--replay", "--no-stdin", "w")
        self.full("execute", "--", "echo", "hi")
        self.full("run", "--rm", "busybox", "sh", "-c", "echo a; sleep 1000")

    def test_what_another_one_reads(self):
        """Somebody who has both ends of a program's pipe takes what was left in it, and keeps it open."""
        begin = os.path.join(self.node.dir, "begin")
        call = self.node.runtime.RunExecutable.future(runtime_pb2.RunExecutableRequest(
            meta=runtime_pb2.Meta(name="a"), keep=True, executable=runtime_pb2.Executable(command="python3", args=["-c", FILLS, begin])))
        pid = nacre_test.until(lambda: [c.pid for w in self.node.workloads.List(nacre_pb2.ListRequest()).workloads
                                        if w.name == "a" for c in w.containers if c.pid], what="the program")[0]
        # Who attaches and reads nothing holds the program's output up.
        attached = self.node.workloads.Attach(iter([nacre_pb2.AttachRequest(target="a")]))
        ends = [os.open(f"/proc/{pid}/fd/1", flags) for flags in (os.O_RDONLY | os.O_NONBLOCK, os.O_WRONLY)]
        with open(begin, "wb"):
            pass
        try:
            nacre_test.until(lambda: not os.path.exists(f"/proc/{pid}"), seconds=30, what="its end")
            taken = 0
            try:
                while True:
                    taken += len(os.read(ends[0], 65536))
            except BlockingIOError:
                pass
            self.assertGreater(taken, 0)
            self.assertEqual(0, call.result(60).exit_code)
        finally:
            for fd in ends:
                os.close(fd)
            attached.cancel()
        self.remove("a")


if __name__ == "__main__":
    unittest.main()
