# SPDX-License-Identifier: Apache-2.0
"""A daemon of another build takes over, with another guest set: what runs in machines of the old one goes on, in the old set; what is
made from then on is of the new one."""
import json
import os
import subprocess
import sys
import unittest

import machines
import nacre_test
import steps
from machines import load_tests  # noqa: F401
from steps import container

sys.path.insert(0, os.path.join(nacre_test.ROOT, "tests", "daemon"))
import test_upgrade  # noqa: E402


class Upgrade(steps.StepsTest):
    @classmethod
    def setUpClass(cls):
        machines.need()
        cls.node = None

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        self.node = test_upgrade.UpgradeNode()
        self.addCleanup(self.end)

    def end(self):
        said = self.node.destroy()
        self.assertEqual("", said)

    def build_set(self):
        """Of the build that the node has; its name."""
        done = subprocess.run([self.node.binary, "guest", "build", "--root", self.node.root, "--from", machines.KERNEL, "--gate",
                               os.path.join(nacre_test.BUILD, "libexec", "nacre", "nacre-gate")], check=True,
                              stdout=subprocess.PIPE, text=True)
        return done.stdout.strip()

    def sets(self):
        """{name: its row}"""
        done = subprocess.run([self.node.binary, "-o", "json", "guest", "ls", "--root", self.node.root], check=True,
                              stdout=subprocess.PIPE, text=True)
        return {s["name"]: s for s in json.loads(done.stdout)}

    def drop_set(self, name):
        return subprocess.run([self.node.binary, "guest", "rm", "--root", self.node.root, name], capture_output=True, text=True,
                              check=False)


    def numbers(self):
        """What the pod has said: each number once, in order."""
        lines = self.logs("p").decode().split("\n")[:-1]
        self.assertEqual([str(n) for n in range(1, len(lines) + 1)], lines)
        return len(lines)

    def test_a_guest_goes_on(self):
        test_upgrade.images.ensure(self.node, "busybox")
        old = self.build_set()
        self.spawn("v", kind="vm")
        self.cell("v/a")
        self.pod("p", container("sh", "-c", "n=0; while :; do n=$((n+1)); echo $n; sleep 0.1; done"), kind="vm")
        nacre_test.until(lambda: self.numbers() > 3, what="some lines")
        before = {t: (self.inspect(t).pid, self.sh(t if t == "p" else "v/a", "cat /proc/sys/kernel/random/boot_id")) for t in ("v", "p")}
        # Another build, and its set, which is the default from then on.
        self.node.stop()
        self.node.binary = self.node.other
        new = self.build_set()
        self.assertNotEqual(old, new)
        self.node.start()
        shown = self.sets()
        self.assertEqual({old: False, new: True}, {n: s["default"] for n, s in shown.items()})
        self.assertNotEqual(shown[old]["build"], shown[new]["build"])
        self.assertTrue(shown[old]["in_use"])
        # The same machines, the same containers, and all of it in use.
        for target, (pid, boot_id) in before.items():
            self.assertEqual(pid, self.inspect(target).pid)
            self.assertEqual(boot_id, self.sh(target if target == "p" else "v/a", "cat /proc/sys/kernel/random/boot_id"))
        seen = self.numbers()
        nacre_test.until(lambda: self.numbers() > seen, what="a further line")
        self.cell("v/b", container("sh", "-c", "echo begun; sleep 100000"))
        nacre_test.until(lambda: self.logs("v/b") == b"begun\n", what="the log of what a daemon of another build has begun")
        self.assertEqual("well\n", self.sh("v/b", "echo well"))
        self.assertEqual([], self.node.json("check"))
        # That its keeper is of another build is told, and why it stays that.
        self.assertRegex(self.inspect("v").keeper_note, "goes on as build .*it has a kernel of its own")
        # What is new is of the new set.
        self.spawn("w", kind="vm")
        self.assertEqual("", self.inspect("w").keeper_note)
        self.cell("w/a")
        self.assertTrue(self.sets()[new]["in_use"])
        # The old one is kept while any of its machines runs, and no longer.
        for target in ("p", "v"):
            refused = self.drop_set(old)
            self.assertEqual((125, f"nacre: the guest set {old} is in use by a virtual machine\n"), (refused.returncode, refused.stderr))
            self.remove(target, force=True)
        nacre_test.until(lambda: not self.sets()[old]["in_use"], what="the end of the last machine of the old set")
        done = self.drop_set(old)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual({new}, set(self.sets()))
        self.assertEqual("well\n", self.sh("w/a", "echo well"))
        self.spawn("x", kind="vm")
        self.node.clear()
        self.assertEqual([], self.node.json("check"))
        self.assertEqual([], os.listdir(os.path.join(self.node.run, "i")))


if __name__ == "__main__":
    unittest.main()
