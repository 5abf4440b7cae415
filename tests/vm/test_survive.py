# SPDX-License-Identifier: Apache-2.0
"""What becomes of instances with a kernel of their own when something goes wrong, and of what a node knows of its host."""
import json
import os
import subprocess
import unittest

import guest_kernel
import nacre_test

KERNEL = os.path.join(nacre_test.BUILD, "guest", "kernel")
QEMU = "/usr/bin/qemu-system-x86_64"


def load_tests(_loader, tests, _pattern):
    """A program that is not static is no pid 1 of an initramfs."""
    return unittest.TestSuite() if nacre_test.SANITIZED else tests


def need():
    """The kernel, where this machine has all that a guest needs."""
    for needed in (QEMU, "/dev/net/tun"):
        if not os.path.exists(needed):
            raise unittest.SkipTest(f"there is no {needed}")
    try:
        return guest_kernel.Kernel(KERNEL)
    except guest_kernel.Missing as e:
        raise unittest.SkipTest(str(e)) from e


def build_set(node, *words):
    subprocess.run([nacre_test.BINARY, "guest", "build", "--root", node.root, "--from", KERNEL, *words], check=True,
                   stdout=subprocess.DEVNULL)


class Auto(unittest.TestCase):
    """Here KVM may be missing, open and boot nothing, or work: what is recorded decides, and is told."""

    def record(self, node):
        try:
            with open(os.path.join(node.root, "virtualization"), encoding="utf-8") as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return None

    def spawned(self, node):
        made = node.runtime.Spawn(nacre_test.runtime_pb2.SpawnRequest(meta=nacre_test.runtime_pb2.Meta(name="a")))
        node.cli("stop", "a")
        return made

    def test_auto_is_what_a_trial_has_shown(self):
        kernel = need()
        with nacre_test.Node("vm:\n  hardware: auto\n") as node:
            if not os.path.exists("/dev/kvm"):
                self.assertIn("/dev/kvm", self.spawned(node).kind_reason)
                return
            self.assertIn("no guest can be tried", self.spawned(node).kind_reason)
            build_set(node)
            node.restart()
            nacre_test.until(lambda: self.record(node), seconds=90, what="the record of the trial")
            _, guest, verdict, seen = self.record(node)
            self.assertTrue(guest.startswith(kernel.version), guest)
            told = next(c for c in json.loads(node.cli("-o", "json", "doctor", check=False).stdout) if c["check"] == "KVM")
            made = self.spawned(node)
            self.assertIn(seen, f"{told['detail']}{told['cause']}")
            self.assertEqual((verdict == "works", "vm" if verdict == "works" else "cell"), (told["ok"], made.kind))
            self.assertIn(seen[:60], made.kind_reason)
            # The next daemon knows it; another set is tried anew, and nothing of that is left.
            written = os.stat(os.path.join(node.root, "virtualization"))
            node.restart()
            self.assertIn(seen[:60], self.spawned(node).kind_reason)
            self.assertEqual(written, os.stat(os.path.join(node.root, "virtualization")))
            build_set(node, "--name", "other")
            node.restart()
            nacre_test.until(lambda: self.record(node)[1].startswith("other, "), seconds=90, what="the record of the other set")
            self.assertFalse(os.path.exists(os.path.join(node.run, "trial")))
            self.assertEqual([], json.loads(node.cli("-o", "json", "check").stdout))
