# SPDX-License-Identifier: Apache-2.0
"""What tests of guests have in common: what they need of this machine, a guest set, and a node that has had a microVM."""
import os
import subprocess
import unittest

import guest_kernel
import host
import nacre_test
import steps

KERNEL = os.path.join(nacre_test.BUILD, "guest", "kernel")
QEMU = "/usr/bin/qemu-system-x86_64"


def load_tests(_loader, tests, _pattern):
    """For a module of such tests to import: a program that is not static is no pid 1 of an initramfs."""
    return unittest.TestSuite() if nacre_test.SANITIZED else tests


def need(*more, kernel=KERNEL):
    """The kernel, where this machine has all that a guest needs, and these files."""
    for needed in (QEMU, "/dev/net/tun", *more):
        if not os.path.exists(needed):
            raise unittest.SkipTest(f"there is no {needed}")
    try:
        return guest_kernel.Kernel(kernel)
    except guest_kernel.Missing as e:
        raise unittest.SkipTest(str(e)) from e


def build_set(node, *options):
    subprocess.run([nacre_test.BINARY, "guest", "build", "--root", node.root, "--from", KERNEL, *options], check=True,
                   stdout=subprocess.DEVNULL)


class MachinesTest(steps.StepsTest):
    """A node with a guest set. What the first pod in a microVM leaves behind is there from the start: the process with the key of
    the node's identity, and the image as a disk."""

    @classmethod
    def setUpClass(cls):
        cls.kernel = need()
        super().setUpClass()

    @classmethod
    def prepare(cls):
        build_set(cls.node)
        cls.first()

    @classmethod
    def first(cls):
        cls.node.cli("run", "--kind", "vm", "--rm", "busybox", "true")

    def leaf(self, target, name):
        """The processes of a leaf of its group."""
        return [int(p) for p in host.read(os.path.join(self.cgroup_dir(target), name, "cgroup.procs")).split()]
