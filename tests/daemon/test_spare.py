# SPDX-License-Identifier: Apache-2.0
"""The keeper that is made ahead of need, and waits for the next pod."""
import os
import re
import signal
import unittest

import host
import images
import nacre_test
from nacre_test import nacre_pb2, until


def title(pid):
    return host.read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()


class Spare(unittest.TestCase):
    def setUp(self):
        self.node = nacre_test.Node(config="spare: yes\n")
        self.addCleanup(self.node.destroy)
        self.node.cli("image", "import", images.path("busybox"))

    def waiting(self, other_than=0):
        """The pid of the one that waits."""
        def find():
            return next((p for p in self.node.keepers() if title(p) == "nacre: keeper spare" and p != other_than), 0)
        return until(find, what="a spare keeper")

    def inspect(self, target):
        return self.node.workloads.Inspect(nacre_pb2.InspectRequest(target=target)).workload

    def test_a_pod_takes_it_and_gives_it_a_name(self):
        first = self.waiting()
        self.node.cli("run", "-d", "--name", "web", "busybox", "sleep", "1000")
        self.assertEqual(first, self.inspect("web").pid)
        self.assertEqual("nacre: keeper web", title(first))
        self.assertEqual("web\n", self.node.cli("exec", "web", "hostname").stdout)
        second = self.waiting(first)
        self.assertTrue(os.path.isdir(host.cgroup_root() + self.inspect("web").cgroup))
        # It lives on without its daemon, and is known to the next one.
        self.node.restart(signal.SIGKILL)
        self.assertEqual(first, self.inspect("web").pid)
        self.assertEqual("web\n", self.node.cli("exec", "web", "hostname").stdout)
        # The one that waited had no record: the next daemon ended it.
        until(lambda: not os.path.exists(f"/proc/{second}") or not title(second), what="the end of the old spare")
        self.waiting(second)

    def test_it_knows_all_that_a_new_one_knows(self):
        """Before it has said so: what it is asked for comes right behind its name."""
        for options in (("--cap-add", "NET_RAW"), ("--ulimit", "nofile=99"), ("--device", "/dev/full:/dev/mine"),
                        ("--tmpfs", "/x:uid=12")):
            waits = self.waiting()
            self.node.cli("run", "-d", "--name", "web", *options, "busybox", "sleep", "1000")
            self.assertEqual(waits, self.inspect("web").pid)
            self.node.cli("rm", "-f", "web")

    def test_one_that_dies_takes_nothing_along(self):
        os.kill(self.waiting(), signal.SIGKILL)
        until(lambda: "a spare keeper has ended" in self.node.log(), what="a word about it")
        gone, = re.findall(r"a spare keeper has ended id=(\S+)", self.node.log())
        until(lambda: not os.path.exists(os.path.join(self.node.run, "i", gone)), what="the end of its directory")
        until(lambda: not os.path.exists(os.path.join(self.node.cgroup(), f"inst._{gone}")), what="the end of its group")
        self.assertEqual("hello\n", self.node.cli("run", "--rm", "busybox", "echo", "hello").stdout)

    def test_host_network_does_not_take_it(self):
        spare = self.waiting()
        self.node.cli("run", "-d", "--network", "host", "--name", "h", "busybox", "sleep", "1000")
        self.assertNotEqual(spare, self.inspect("h").pid)
        self.assertEqual(os.readlink("/proc/self/ns/net"), os.readlink(f"/proc/{self.inspect('h').pid}/ns/net"))

    def test_nothing_is_left(self):
        for i in range(5):
            self.node.cli("run", "-d", "--name", f"p{i}", "busybox", "sleep", "1000")
        group = self.node.cgroup()
        self.node.cli("rm", "-f", *[f"p{i}" for i in range(5)])
        self.waiting()
        self.assertEqual(0, self.node.stop())
        self.assertEqual(set(), self.node.keepers())
        self.assertFalse(os.path.exists(group), os.listdir(group) if os.path.exists(group) else "")
        self.assertEqual([], os.listdir(os.path.join(self.node.run, "i")))


if __name__ == "__main__":
    unittest.main()
