# SPDX-License-Identifier: Apache-2.0
"""The network and the name of another pod: `--network container:NAME`, `--uts container:NAME`, by the kernel's word, over starts and ends of both."""
import subprocess
import unittest

import grpc

import steps
from nacre_test import runtime_pb2, until
from steps import container, namespaces

Code = grpc.StatusCode
PodSecurity, PodNetwork = runtime_pb2.PodSecurity, runtime_pb2.PodNetwork


class Shared(steps.StepsTest):
    CONFIG = "network:\n  default: default\n"

    @classmethod
    def prepare(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        # The network is made with the first pod on it.
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    def start(self, name, *options, command=("sleep", "1000")):
        return self.node.cli("run", "-d", "--name", name, *options, "busybox", *command)

    def spaces(self, name):
        return namespaces(self.inspect(name).containers[0].pid)

    def same(self, one, other):
        a, b = self.spaces(one), self.spaces(other)
        return {kind for kind in a if a[kind] == b[kind]} - {"cgroup"}

    def sh(self, name, script):
        return self.node.cli("exec", name, "sh", "-c", script).stdout.strip()

    def refused(self, code, field, **fields):
        said = self.assertFails(code, lambda: self.pod("two", container("sleep", "1000"), **fields))
        self.assertTrue(said.startswith(field + ": "), said)
        self.assertNotIn("two", self.all())
        return said

    def test_the_network(self):
        self.start("web", command=("sh", "-c", "mkdir /w; echo here > /w/x; exec httpd -f -p 127.0.0.1:8080 -h /w"))
        self.start("two", "--network", "container:web")
        self.assertEqual({"net"}, self.same("web", "two"))
        address = self.inspect("web").attachment.ip
        self.assertIn(address, self.sh("two", "ip addr show eth0"))
        until(lambda: self.node.cli("exec", "two", "wget", "-qO-", "http://127.0.0.1:8080/x", check=False).stdout == "here\n", what="the server answers")
        self.assertIn(address, self.sh("two", "cat /etc/hosts"))
        self.assertEqual(self.sh("web", "cat /etc/resolv.conf"), self.sh("two", "cat /etc/resolv.conf"))
        # By its id, and one that shares what is shared.
        self.start("three", "--network", "container:" + self.inspect("two").id)
        self.assertEqual({"net"}, self.same("web", "three"))
        self.assertIn(address, self.sh("three", "cat /etc/hosts"))

    def test_the_name(self):
        self.start("web", "--hostname", "box")
        self.start("two", "--uts", "container:web")
        self.assertEqual({"uts"}, self.same("web", "two"))
        self.assertEqual("box box", self.sh("two", "echo $(hostname) $(cat /etc/hostname)"))
        self.start("both", "--uts", "container:web", "--network", "container:web")
        self.assertEqual({"uts", "net"}, self.same("web", "both"))

    def test_that_of_the_node(self):
        self.start("web", "--network", "host")
        self.start("two", "--network", "container:web")
        self.assertEqual({"net"}, self.same("web", "two"))

    def test_starts_and_ends_of_both(self):
        self.start("web")
        self.start("two", "--network", "container:web")
        self.node.cli("restart", "-t", "0", "two")
        self.assertEqual({"net"}, self.same("web", "two"))
        self.node.cli("restart", "-t", "0", "-c", "main", "two")
        self.assertEqual({"net"}, self.same("web", "two"))
        # The other one has a new network; this one follows at its next start.
        self.node.cli("restart", "-t", "0", "web")
        self.assertEqual(set(), self.same("web", "two"))
        self.node.cli("restart", "-t", "0", "two")
        self.assertEqual({"net"}, self.same("web", "two"))
        pid = self.inspect("two").containers[0].pid
        self.node.restart()
        self.assertEqual(pid, self.inspect("two").containers[0].pid)
        self.assertEqual({"net"}, self.same("web", "two"))
        # It goes on with what is left: the loopback.
        self.node.cli("stop", "-t", "0", "web")
        self.assertEqual(("running", pid), (self.inspect("two").state, self.inspect("two").containers[0].pid))
        until(lambda: self.sh("two", "ip link | grep -c eth0; true") == "0", what="the device is gone")
        # What begins in it has its namespaces, whatever became of the other one.
        self.node.cli("debug", "-d", "--image", "busybox", "two", "--", "sleep", "1000")
        self.node.cli("restart", "-t", "0", "-c", "main", "two")
        self.node.cli("stop", "-t", "0", "two")
        done = self.node.cli("start", "two", check=False)
        self.assertIn("network: web is exited: only one that runs has namespaces to share", done.stderr)
        self.node.cli("start", "web")
        self.node.cli("start", "two")
        self.assertEqual({"net"}, self.same("web", "two"))
        self.node.cli("rm", "-f", "web")
        self.node.cli("rm", "-f", "two")

    def test_one_that_is_created_before(self):
        self.node.cli("create", "--name", "two", "--network", "container:web", "--uts", "container:web", "busybox", "sleep", "1000")
        self.assertIn('network: there is no pod "web"', self.node.cli("start", "two", check=False).stderr)
        self.start("web")
        self.node.cli("start", "two")
        self.assertEqual({"net", "uts"}, self.same("web", "two"))

    def test_what_cannot_be(self):
        self.start("web")
        self.start("users", "--userns", "auto")
        self.node.cli("run", "--name", "ended", "busybox", "true")
        self.node.cli("cell", "--name", "cell", "busybox", "sleep", "1000")
        self.spawn("in")
        for name, code, words in (("nobody", Code.NOT_FOUND, 'there is no pod "nobody"'), ("", Code.NOT_FOUND, "there is no pod"),
                                  ("ended", Code.FAILED_PRECONDITION, "ended is exited: only one that runs"),
                                  ("cell", Code.UNIMPLEMENTED, "cell is no pod"), ("users", Code.UNIMPLEMENTED, "users has a user namespace")):
            self.assertIn(words, self.refused(code, "network", network="container:" + name))
            self.assertIn(words, self.refused(code, "security.uts", security=PodSecurity(uts="container:" + name)))
        self.refused(Code.INVALID_ARGUMENT, "network", network="container:web", security=PodSecurity(userns="auto"))
        self.refused(Code.INVALID_ARGUMENT, "security.sysctls", network="container:web", security=PodSecurity(sysctls=["net.ipv4.ip_default_ttl=9"]))
        self.refused(Code.INVALID_ARGUMENT, "security.sysctls", security=PodSecurity(uts="container:web", sysctls=["kernel.domainname=x"]))
        self.refused(Code.INVALID_ARGUMENT, "pod_network.publish", network="container:web",
                     pod_network=PodNetwork(publish=[runtime_pb2.PublishedPort(port=80)]))
        self.refused(Code.INVALID_ARGUMENT, "pod_network.hostname", security=PodSecurity(uts="container:web"), pod_network=PodNetwork(hostname="x"))
        for field in ("pid", "ipc"):
            said = self.refused(Code.UNIMPLEMENTED, "security." + field, security=PodSecurity(**{field: "container:web"}))
            self.assertIn("of another pod only the network and the name (uts) can be shared", said)
        said = self.assertFails(Code.UNIMPLEMENTED, lambda: self.pod("in/two", container("true"), network="container:web"))
        self.assertIn("network: only for a pod of the node itself", said)
        said = self.assertFails(Code.INVALID_ARGUMENT, lambda: self.cell("two", container("true"), network="container:web"))
        self.assertTrue(said.startswith("network: "), said)
        self.assertIn("--network: there is no pod", self.node.cli("run", "--network", "container:nobody", "busybox", check=False).stderr)


if __name__ == "__main__":
    unittest.main()
