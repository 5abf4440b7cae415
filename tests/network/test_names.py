# SPDX-License-Identifier: Apache-2.0
"""Pods of one network find each other by name; what they see is asked of their own libc and of their own files."""
import time
import unittest

import nacre_test
from nacre_test import nacre_pb2, runtime_pb2, until


class Names(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    @classmethod
    def prepare(cls):
        # The first one on a network has the daemon open its sockets.
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    def setUp(self):
        self.addCleanup(self.node.clear)

    def run_pod(self, name, network="", image="busybox", **more):
        container = runtime_pb2.Container(image=image, args=["sleep", "1000"], **more)
        self.node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name=name), containers=[container], network=network))
        return self.attachment(name)

    def attachment(self, name):
        return self.node.workloads.Inspect(nacre_pb2.InspectRequest(target=name)).workload.attachment

    def inside(self, name, *words, check=True):
        return self.node.cli("exec", name, *words, check=check).stdout

    def hosts(self, name):
        return self.inside(name, "cat", "/etc/hosts")

    def sees(self, name, other, a):
        """Within a second, by both families and both names. (`nacre exec` counts, too.)"""
        until(lambda: all(line in self.hosts(name) for line in self.lines(other, a)), seconds=2, what=f"{name} sees {other}")

    @staticmethod
    def lines(name, a):
        return [f"{address}\t{name} {name}.{a.name}\n" for address in (a.ip, a.ip6) if address]

    def misses(self, name, other):
        until(lambda: f"\t{other} " not in self.hosts(name), seconds=2, what=f"{name} does not see {other} any more")

    def test_come_and_go(self):
        web = self.run_pod("web")
        db = self.run_pod("db")
        self.sees("web", "db", db)
        # The later one knows the others from its first moment on.
        self.assertIn("".join(self.lines("web", web)), self.hosts("db"))
        self.assertIn(f"({db.ip})", self.inside("web", "ping", "-4", "-c", "1", "db", check=False))
        self.assertIn(f"({db.ip6})", self.inside("web", "ping", "-6", "-c", "1", "db.default", check=False))
        self.node.cli("rename", "db", "store")
        self.sees("web", "store", db)
        self.misses("web", "db")
        self.node.cli("rename", "store", "db")
        self.sees("web", "db", db)
        self.node.cli("rm", "-f", "db")
        self.misses("web", "db")
        again = self.run_pod("db")
        self.sees("web", "db", again)

    def test_what_it_wrote_itself_stays(self):
        self.run_pod("web")
        self.inside("web", "sh", "-c", "echo 192.0.2.7 own >> /etc/hosts; chmod 600 /etc/hosts")
        db = self.run_pod("db")
        self.sees("web", "db", db)
        self.assertTrue(self.hosts("web").endswith("\n192.0.2.7 own\n"))
        self.assertEqual("600\n", self.inside("web", "stat", "-c", "%a", "/etc/hosts"))
        self.assertEqual("hostname\nhosts\n", self.inside("web", "sh", "-c", "ls -A /etc | grep host"))
        # A file of its own is its own.
        self.inside("web", "sh", "-c", "echo 192.0.2.7 own > /etc/hosts")
        self.run_pod("more")
        self.sees("db", "more", self.attachment("more"))
        self.assertEqual("192.0.2.7 own\n", self.hosts("web"))

    def test_a_volume_upon_it_is_never_written(self):
        with open(f"{self.node.dir}/hosts", "w", encoding="utf-8") as f:
            f.write("# Pods of the network default; nacre keeps these lines\n# End of the pods\n")
        self.node.cli("run", "-d", "--name", "web", "-v", f"{self.node.dir}/hosts:/etc/hosts", "busybox", "sleep", "1000")
        self.node.cli("run", "-d", "--name", "other", "busybox", "sleep", "1000")
        db = self.run_pod("db")
        self.sees("other", "db", db)
        self.assertNotIn("db", self.hosts("web"))

    def test_a_root_that_is_read_only(self):
        self.run_pod("web", read_only_root=True)
        db = self.run_pod("db")
        self.sees("web", "db", db)
        self.assertIn("Read-only", self.node.cli("exec", "web", "touch", "/etc/hosts", check=False).stderr)
        # Nothing of that is left mounted.
        self.assertEqual(1, self.inside("web", "cat", "/proc/self/mountinfo").count(" / / "))

    def test_networks_do_not_see_each_other(self):
        self.node.cli("network", "create", "blue")
        self.addCleanup(lambda: (self.node.clear(), self.node.cli("network", "rm", "blue")))
        self.run_pod("web")
        inner = self.run_pod("inner", network="blue")
        friend = self.run_pod("friend", network="blue")
        self.sees("inner", "friend", friend)
        self.assertIn("".join(self.lines("inner", inner)), self.hosts("friend"))
        self.assertNotIn("web", self.hosts("inner"))
        self.assertNotIn("friend", self.hosts("web"))

    def test_restart(self):
        self.run_pod("web")
        self.run_pod("db")
        self.node.kill()
        self.node.start()
        self.run_pod("more")
        for name in ("web", "db"):
            self.sees(name, "more", self.attachment("more"))
        self.node.cli("rm", "-f", "db")
        self.misses("web", "db")

    def test_the_daemon_ends_while_it_writes(self):
        self.run_pod("web")
        for i, delay in enumerate((0.03, 0.045, 0.05, 0.055, 0.06)):
            self.node.cli("run", "-d", "--name", f"p{i}", "busybox", "sleep", "1000")
            time.sleep(delay)
            self.assertEqual(0, self.node.stop())
            self.node.start()
        self.sees("web", "p4", self.attachment("p4"))

    def test_a_directory_of_its_own_is_in_nobodys_way(self):
        self.run_pod("web")
        self.run_pod("other")
        self.inside("web", "mkdir", "-p", "/etc/.hosts.nacre/x")
        db = self.run_pod("db")
        self.sees("other", "db", db)
        self.assertNotIn("\tdb ", self.hosts("web"))

    def test_a_hundred_changes_are_few_writes(self):
        self.run_pod("web")
        for i in range(20):
            self.node.cli("run", "-d", "--rm", "--name", f"p{i}", "busybox", "true")
        self.run_pod("last")
        self.sees("web", "last", self.attachment("last"))
        # Those that have ended are removed behind the answer of their call.
        until(lambda: sum("." in line.split("\t")[0] or ":" in line.split("\t")[0]
                          for line in self.hosts("web").splitlines() if ".default" in line) == 4, what="two pods, with two addresses each")


if __name__ == "__main__":
    unittest.main()
