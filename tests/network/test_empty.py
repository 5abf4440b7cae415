# SPDX-License-Identifier: Apache-2.0
"""What a node without pods leaves on its host."""
import subprocess
import unittest

import images
import nacre_test
from nacre_test import until


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def look():
    settings = []
    for link in ("all", "out"):
        with open(f"/proc/sys/net/ipv4/conf/{link}/forwarding", encoding="ascii") as f:
            settings.append(f.read())
    return run("ip", "route", "show", "type", "unreachable"), run("nft", "list", "ruleset"), settings


class EmptyNode(unittest.TestCase):
    def test_leaves_nothing(self):
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "out", "type", "veth", "peer", "name", "far")
        self.addCleanup(run, "ip", "link", "del", "out")
        run("ip", "address", "add", "192.0.2.1/24", "dev", "out")
        run("ip", "link", "set", "out", "up")
        run("ip", "link", "set", "far", "up")
        before = look()
        with nacre_test.Node("network:\n  default: default\n") as node:
            images.ensure(node, "busybox")
            node.cli("run", "-d", "--name", "web", "busybox", "sleep", "1000")
            until(lambda: look()[2] == ["0\n", "1\n"], what="the way out is open")
            node.cli("rm", "-f", "web")
            node.stop()
            self.assertEqual(before, look())
            # With a pod all of it stays while no daemon runs.
            node.start()
            node.cli("run", "-d", "--name", "web", "busybox", "sleep", "1000")
            until(lambda: look()[2] == ["0\n", "1\n"], what="the way out is open")
            node.stop()
            self.assertEqual(["0\n", "1\n"], look()[2])
            self.assertIn("table inet nacre", look()[1])
            node.start()
            node.clear()
            node.stop()
            self.assertEqual(before, look())
            node.start()



if __name__ == "__main__":
    unittest.main()
