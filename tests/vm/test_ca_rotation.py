# SPDX-License-Identifier: Apache-2.0
"""The authority of the node is replaced under pods in machines: no call to one fails, and both ends have new certificates behind."""
import threading
import unittest

import nacre_test
from machines import MachinesTest, load_tests  # noqa: F401


class Rotation(MachinesTest):
    IMAGES = ("busybox",)

    @classmethod
    def tearDownClass(cls):
        # The process that holds the key is another one by now, and so is the daemon.
        cls.node.clear()
        cls.before = cls.node.baseline()
        super().tearDownClass()

    def test_a_pod_in_a_machine_goes_on(self):
        self.node.cli("run", "-d", "--kind", "vm", "--name", "p", "busybox", "sleep", "100000", seconds=240)
        over, calls, failed = threading.Event(), [0], []

        def call():
            while not over.is_set():
                done = self.node.cli("exec", "p", "echo", "here", check=False)
                calls[0] += 1
                if (done.returncode, done.stdout) != (0, "here\n"):
                    failed.append(done.stderr)

        caller = threading.Thread(target=call, daemon=True)
        caller.start()

        def some():
            """Calls, one after the other: before each step, and behind."""
            n = calls[0]
            nacre_test.until(lambda: calls[0] > n + 3, what="calls")

        for step in ("rotate", "retire"):
            some()
            self.node.cli("identity", "ca", step)
            some()
        # The next daemon finds the gate, and what it finds it believes.
        over.set()
        caller.join(60)
        self.node.restart()
        self.assertEqual("here\n", self.node.cli("exec", "p", "echo", "here", seconds=120).stdout)
        self.assertEqual([], failed)
        self.assertNotIn("was refused", self.node.log())


if __name__ == "__main__":
    unittest.main()
