# SPDX-License-Identifier: Apache-2.0
"""Instances with a kernel of their own, through a whole node: made, reached, taken up again, and told why they ended."""
import json
import os
import signal
import unittest

import grpc

import images
import machines
import nacre_test
from machines import load_tests  # noqa: F401

Code = grpc.StatusCode


class Instances(machines.MachinesTest):
    @classmethod
    def first(cls):
        # A file of the node that a machine is given is watched for changes.
        cls.node.cli("run", "--kind", "vm", "--rm", "--init", "busybox", "true")

    def test_a_kernel_of_its_own(self):
        before = self.node.baseline()
        v = self.spawn("v", kind="vm")
        self.assertEqual(("v", "vm", "it was asked for by name"), (v.name, v.kind, v.kind_reason))
        shown = self.inspect("v")
        self.assertEqual(("ready", "vm", self.kernel.version, v.pid), (shown.state, shown.instance_kind, shown.kernel, shown.pid))
        self.assertIn(f"vm instance (Linux {self.kernel.version})", self.node.cli("tree").stdout)
        # Each has a user, a group and walls of its own, and the node's network has neither.
        machine, gate = self.leaf("v", "vmm"), self.leaf("v", "gate")
        self.assertIn(v.pid, machine)
        owners = {os.stat(f"/proc/{p}").st_uid for p in machine + gate}
        self.assertEqual(2, len(owners))
        self.assertNotIn(0, owners)
        self.assertNotIn(os.readlink("/proc/self/ns/net"), {os.readlink(f"/proc/{p}/ns/net") for p in machine + gate})
        # One below it is made by its keeper, of that kernel.
        a = self.spawn("v/a")
        self.assertEqual(("cell", 0), (a.kind, a.pid))
        self.assertEqual(("ready", ""), (self.inspect("v/a").state, self.inspect("v/a").cgroup))
        self.assertEqual([], json.loads(self.node.cli("-o", "json", "check").stdout))
        self.stop("v", grace_ms=20000)
        self.assertEqual({}, self.all())
        self.assertNoTraces(before)

    def test_its_end_is_told_with_the_cause(self):
        before = self.node.baseline()
        v = self.spawn("v", kind="vm")
        os.kill(v.pid, signal.SIGKILL)
        nacre_test.until(lambda: self.inspect("v").state == "failed", what="the end of v")
        self.assertRegex(self.inspect("v").reason, "signal 9.*; its console ends: .")
        self.remove("v")
        v = self.spawn("v", kind="vm")
        for p in self.leaf("v", "gate"):
            os.kill(p, signal.SIGKILL)
        nacre_test.until(lambda: self.inspect("v").state == "failed", what="the end of v")
        self.assertRegex(self.inspect("v").reason, "^its gate has ended")
        self.remove("v")
        self.assertNoTraces(before)

    def test_a_pod(self):
        before = self.node.baseline()
        done = self.node.cli("run", "--kind", "vm", "--name", "p", "busybox", "sh", "-c", "echo hello; uname -r; cat /etc/hosts; exit 3",
                             check=False)
        self.assertEqual((3, f"hello\n{self.kernel.version}\n"), (done.returncode, done.stdout[:done.stdout.find("127")]), done.stderr)
        self.assertIn("localhost p", done.stdout)
        self.assertEqual(done.stdout, self.node.cli("logs", "p").stdout)
        shown = self.inspect("p")
        self.assertEqual(("exited", "vm", 3), (shown.state, shown.instance_kind, shown.exit_code))
        self.remove("p")
        p = self.pod("p", kind="vm")
        self.assertEqual(("vm", "running", 0), (p.kind, p.containers[0].state, p.containers[0].pid))
        self.assertEqual(self.kernel.version, self.sh("p", "uname -r").strip())
        self.sh("p", "echo new > /x; test $(cat /x) = new")
        # No container comes to it later, and the error says what to do.
        done = self.node.cli("debug", "--image", "busybox", "p", "--", "true", check=False)
        self.assertRegex(done.stderr, "in a machine .kind vm., .*nacre exec")
        self.stop("p", grace_ms=1000)
        self.remove("p")
        self.assertNoTraces(before)

    def test_a_first_process(self):
        """The node's program is process 1 of the container: it reaps, and passes on what ends its program."""
        before = self.node.baseline()
        script = "sh -c 'sleep 0.1 & exec true'; trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done"
        self.node.cli("run", "-d", "--kind", "vm", "--name", "p", "--init", "busybox", "sh", "-c", script)
        nacre_test.until(lambda: "ready" in self.node.cli("logs", "p").stdout, what="its program")
        self.assertIn("/dev/init", self.sh("p", "cat /proc/1/cmdline"))
        nacre_test.until(lambda: "0" == self.sh("p", "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l").strip(), what="no zombies")
        self.stop("p", grace_ms=60000)
        self.assertEqual(5, self.inspect("p").exit_code)
        self.remove("p")
        v = self.spawn("v", kind="vm")
        done = self.node.cli("cell", "--in", "v", "--init", "busybox", "true", check=False)
        self.assertIn("only what a pod was made with", done.stderr)
        self.stop(v.name, grace_ms=20000)
        self.assertNoTraces(before)


def ended(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


class Restarted(unittest.TestCase):
    def test_it_outlives_the_daemon(self):
        machines.need()
        with nacre_test.Node() as node:
            machines.build_set(node)
            node.cli("image", "import", images.path("busybox"))
            node.cli("spawn", "--kind", "vm", "--name", "v")
            node.cli("spawn", "--in", "v", "--name", "a")
            # Behind walls of its own an instance of a guest has the machine's disks too.
            for within in ("v", "v/a"):
                self.assertEqual("here\n", node.cli("run", "--in", within, "--rm", "busybox", "echo", "here").stdout)
            before = json.loads(node.cli("-o", "json", "ps").stdout)
            node.restart()
            self.assertEqual(before, json.loads(node.cli("-o", "json", "ps").stdout))
            node.cli("spawn", "--in", "v", "--name", "b")
            node.cli("stop", "v/a")
            self.assertEqual(["v", "v/b"], node.cli("ps", "--format", "{name}").stdout.split())
            self.assertEqual([], json.loads(node.cli("-o", "json", "check").stdout))
            # One that ends while nobody looks is found so.
            node.kill()
            os.kill(before[0]["pid"], signal.SIGKILL)
            nacre_test.until(lambda: ended(before[0]["pid"]), what="the end of the VMM")
            node.start()
            self.assertEqual(["failed", "failed"], node.cli("ps", "-a", "--format", "{state}").stdout.split())
            # The last of its threads may end behind the daemon's first look.
            self.assertRegex(node.cli("inspect", "v").stdout,
                             "its machine ended while the daemon was away|the machine's monitor ended while nobody saw it")
            node.clear()
            self.assertEqual([], os.listdir(os.path.join(node.run, "i")))
            self.assertEqual([], [g for g in os.listdir(node.cgroup()) if g.startswith("inst.")])
