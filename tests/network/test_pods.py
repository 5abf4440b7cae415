# SPDX-License-Identifier: Apache-2.0
"""Pods on networks, judged by packets and by the kernel's own lists."""
import json
import os
import re
import socket
import subprocess
import unittest

import grpc

import nacre_test
from nacre_test import nacre_pb2, runtime_pb2, until

Code = grpc.StatusCode
Ask, Port = runtime_pb2.PodNetwork, runtime_pb2.PublishedPort


def ip(*args):
    out = subprocess.run(["ip", "-j", *args], check=True, capture_output=True, text=True).stdout
    return json.loads(out or "[]")


def ports():
    """The node's ends that are there, by name."""
    return {link["ifname"] for link in ip("link") if link["ifname"].startswith("nacre")}


def rules():
    """The table, but for the counts of connections, which packets fill and the kernel forgets in its own time."""
    done = subprocess.run(["nft", "list", "table", "inet", "nacre"], capture_output=True, text=True, check=False)
    return re.sub(r"\tset connections[46] \{.*?\n\t\}\n", "", done.stdout, flags=re.S)


def fetch(address, port, seconds=5.0):
    """What a server says to whoever connects, or None where nobody answers."""
    try:
        with socket.create_connection((address, port), timeout=seconds) as s:
            return s.makefile("rb").read().decode()
    except OSError:
        return None


class OnNetworks(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    @classmethod
    def prepare(cls):
        # The first one on a network has the daemon open its sockets.
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    def setUp(self):
        self.addCleanup(self.leave_nothing)

    def leave_nothing(self):
        self.node.clear()
        until(lambda: not ports(), what="no port is left")
        self.assertNotIn(" : 10.171.", rules())

    def run_pod(self, name, *command, network="", **ask):
        container = runtime_pb2.Container(image="busybox", args=command or ["sleep", "1000"])
        self.node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name=name), containers=[container], network=network,
                                                          pod_network=Ask(**ask) if ask else None))
        return self.attachment(name)

    def serve(self, name, words, **ask):
        """A server on port 80 of both families, one connection after the other."""
        loop = f"while :; do nc -l -p 80 -e echo {words}; done"
        return self.run_pod(name, "sh", "-c", loop, **ask)

    def attachment(self, name):
        return self.node.workloads.Inspect(nacre_pb2.InspectRequest(target=name)).workload.attachment

    def inside(self, name, *words, check=True):
        return self.node.cli("exec", name, *words, check=check).stdout

    def hears(self, address, port, words):
        until(lambda: fetch(address, port) == words + "\n", what=f"{words} at {address} port {port}")

    def test_addresses(self):
        a = self.run_pod("web")
        self.assertEqual("default", a.name)
        shown = self.inside("web", "ip", "address", "show", "eth0")
        for text in (f"inet {a.ip}/32", f"inet6 {a.ip6}/128", a.mac):
            self.assertIn(text, shown)
        self.assertIn("default via 10.171.0.1 dev eth0", self.inside("web", "ip", "route"))
        self.assertIn(f"{a.ip}\tweb", self.inside("web", "cat", "/etc/hosts"))
        self.assertIn(f"{a.ip}", rules())
        # Another one is not given at once.
        self.node.cli("rm", "-f", "web")
        self.assertNotEqual(a.ip, self.run_pod("web").ip)

    def test_two_pods_talk(self):
        a = self.serve("one", "first")
        self.run_pod("two")
        for address in (a.ip, a.ip6):
            until(lambda: self.inside("two", "nc", "-w", "5", address, "80", check=False) == "first\n", what=address)

    def test_published(self):
        a = self.serve("web", "hello", publish=[Port(host_port=8080, port=80)])
        self.assertEqual(8080, a.publish[0].host_port)
        for address in ("127.0.0.1", "::1", a.ip):
            self.hears(address, 80 if address == a.ip else 8080, "hello")
        # From the pod itself, and from another one, by the node's address.
        subprocess.run(["ip", "address", "add", "198.51.100.1/32", "dev", "lo"], check=True)
        self.addCleanup(subprocess.run, ["ip", "address", "del", "198.51.100.1/32", "dev", "lo"], check=True)
        self.run_pod("other")
        for name in ("web", "other"):
            until(lambda: self.inside(name, "nc", "-w", "5", "198.51.100.1", "8080", check=False) == "hello\n", what=f"hello from {name}")
        self.node.cli("rm", "-f", "web")
        self.assertIsNone(fetch("127.0.0.1", 8080))

    def test_started_again(self):
        a = self.serve("web", "hello", publish=[Port(host_port=8080, port=80)])
        self.hears("127.0.0.1", 8080, "hello")
        self.run_pod("fixed", ip="10.171.0.77")
        self.node.cli("restart", "-t", "0", "web", "fixed")
        self.hears("127.0.0.1", 8080, "hello")
        self.assertNotEqual(a.ip, self.attachment("web").ip)
        self.assertEqual("10.171.0.77", self.attachment("fixed").ip)
        self.assertIn(f"{self.attachment('web').ip}\tweb", self.inside("web", "cat", "/etc/hosts"))
        # Its port is taken meanwhile.
        self.node.cli("stop", "-t", "0", "web")
        until(lambda: not self.attachment("web").ip, what="it is on no network")
        self.run_pod("other", publish=[Port(host_port=8080, port=80)])
        with self.assertRaises(grpc.RpcError) as caught:
            self.node.workloads.Start(nacre_pb2.StartRequest(target="web"))
        self.assertEqual(Code.ALREADY_EXISTS, caught.exception.code(), caught.exception.details())
        self.assertIn("other", caught.exception.details())
        self.node.cli("rm", "-f", "other")
        self.node.cli("start", "web")
        self.hears("127.0.0.1", 8080, "hello")

    def test_a_taken_port(self):
        self.run_pod("web", publish=[Port(host_port=8080, port=80)])
        with self.assertRaises(grpc.RpcError) as caught:
            self.run_pod("other", publish=[Port(host_port=8079, port=79, count=3)])
        self.assertEqual(Code.ALREADY_EXISTS, caught.exception.code(), caught.exception.details())
        self.assertIn("web", caught.exception.details())
        with socket.create_server(("127.0.0.1", 8070)):
            with self.assertRaises(grpc.RpcError) as caught:
                self.run_pod("other", publish=[Port(host_port=8070, port=80)])
        self.assertEqual(Code.ALREADY_EXISTS, caught.exception.code())
        self.assertIn(f"(pid {os.getpid()})", caught.exception.details())
        # None of the range stayed taken.
        with socket.create_server(("127.0.0.1", 8079)):
            pass
        self.assertEqual(1, len(ports()))

    def test_a_network_of_its_own(self):
        self.node.cli("network", "create", "--subnet", "10.99.0.0/29", "shop")
        a = self.serve("db", "data", network="shop")
        self.assertEqual("10.99.0.2", a.ip)
        self.run_pod("web", network="shop")
        self.run_pod("stranger")
        until(lambda: self.inside("web", "nc", "-w", "5", a.ip, "80", check=False) == "data\n", what="data")
        self.assertEqual("", self.inside("stranger", "nc", "-w", "1", a.ip, "80", check=False))
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.node.networks.RemoveNetwork(nacre_pb2.RemoveNetworkRequest(name="shop")), "db")
        for name in ("a", "b", "c"):
            self.run_pod(name, network="shop")
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.run_pod("d", network="shop"))
        self.node.clear()
        self.node.cli("network", "rm", "shop")
        until(lambda: not any(r.get("dst") == "10.99.0.0/29" for r in ip("route", "show", "type", "unreachable")), what="the route is gone")

    def test_restart(self):
        """The daemon dies: packets go on, and the next one has everything."""
        a = self.serve("web", "hello", publish=[Port(host_port=8080, port=80)])
        self.hears("127.0.0.1", 8080, "hello")
        self.node.kill()
        self.hears("127.0.0.1", 8080, "hello")
        self.node.start()
        self.assertEqual(a, self.attachment("web"))
        self.hears("127.0.0.1", 8080, "hello")
        with self.assertRaises(grpc.RpcError) as caught:
            self.run_pod("other", publish=[Port(host_port=8080, port=80)])
        self.assertEqual(Code.ALREADY_EXISTS, caught.exception.code())
        self.assertNotEqual(a.ip, self.run_pod("other").ip)
        self.assertEqual([], self.node.json("check"))

    def test_its_keeper_is_killed(self):
        a = self.run_pod("web", publish=[Port(host_port=8080, port=80)])
        container = self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="web")).workload.containers[0]
        with open(f"/proc/{container.pid}/stat", encoding="ascii") as f:
            os.kill(int(f.read().rpartition(")")[2].split()[1]), 9)
        self.node.cli("wait", "web", check=False)
        until(lambda: a.ip not in rules(), what="its rules are gone")
        with socket.create_server(("127.0.0.1", 8080)):
            pass

    def test_nobody_else_changes_the_rules(self):
        self.run_pod("web")
        before = rules()
        flushed = subprocess.run(["nft", "flush", "ruleset"], capture_output=True, check=False)
        self.assertEqual((before, 0), (rules(), flushed.returncode))

    def test_the_rules_can_be_saved_and_loaded(self):
        """`nft list ruleset` is what administrators save: nft takes it again, in another network namespace."""
        self.run_pod("web")
        flags = re.compile(r"^\tflags (owner|persist)[a-z, ]*\n", re.M)
        listed = subprocess.run(["nft", "list", "table", "inet", "nacre"], check=True, capture_output=True, text=True).stdout
        links = "".join(f"ip link add {name} type bridge; " for name in ports())
        subprocess.run(["unshare", "--net", "sh", "-ec", links + "nft -f -"], input=flags.sub("", listed), text=True, check=True)

    def test_walls(self):
        """What a pod cannot reach."""
        self.run_pod("web")
        subprocess.run(["ip", "address", "add", "198.51.100.1/32", "dev", "lo"], check=True)
        self.addCleanup(subprocess.run, ["ip", "address", "del", "198.51.100.1/32", "dev", "lo"], check=True)
        with socket.create_server(("198.51.100.1", 8071)):
            self.assertEqual("refused\n", self.inside("web", "sh", "-c", "nc -w 2 198.51.100.1 8071 </dev/null && echo open || echo refused"))


if __name__ == "__main__":
    unittest.main()
