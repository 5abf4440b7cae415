# SPDX-License-Identifier: Apache-2.0
"""Pods of kind vm on the built-in network: judged by packets, by the guest's kernel and by the node's."""
import json
import os
import signal
import socket
import subprocess
import unittest

import grpc

import machines
import nacre_test
from machines import load_tests  # noqa: F401
from nacre_test import nacre_pb2, runtime_pb2, until
from steps import container

Code = grpc.StatusCode
Ask, Port = runtime_pb2.PodNetwork, runtime_pb2.PublishedPort
MAC, OUR_MAC, NODE_MAC = "02:00:00:00:00:05", "02:6e:0a:ab:00:4d", "02:6e:00:00:00:01"
HOST = "198.51.100.1"
SERVER = "while :; do nc -l -p 80 -e echo WORD; done"


def ip(*words, pid=None):
    there = ["nsenter", f"--net=/proc/{pid}/ns/net"] if pid else []
    out = subprocess.run([*there, "ip", "-d", "-j", *words], check=True, capture_output=True, text=True).stdout
    return json.loads(out or "[]")


def ports():
    """The node's ends that are there, by name."""
    return {link["ifname"]: link for link in ip("link") if link["ifname"].startswith("nacre")}


def rules():
    return subprocess.run(["nft", "list", "table", "inet", "nacre"], capture_output=True, text=True, check=False).stdout


def fetch(address, port):
    try:
        with socket.create_connection((address, port), timeout=5) as s:
            return s.makefile("rb").read().decode()
    except OSError:
        return None


class OnNetworks(machines.MachinesTest):
    CONFIG = "network:\n  default: default\nvm:\n  templates: yes\n"

    @classmethod
    def first(cls):
        """What follows goes on from the template."""
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "address", "add", f"{HOST}/32", "dev", "lo"], check=True)
        super().first()
        until(lambda: "a template of a guest is ready" in cls.node.log(), seconds=180, what="the template")

    @classmethod
    def share(cls):
        cls.addClassCleanup(subprocess.run, ["ip", "address", "del", f"{HOST}/32", "dev", "lo"], check=True)

    def serve(self, name, word, kind="vm", **ask):
        self.pod(name, container("sh", "-c", SERVER.replace("WORD", word)), kind=kind, pod_network=Ask(**ask))
        return self.inspect(name).attachment

    def hears(self, address, port, word):
        until(lambda: fetch(address, port) == word + "\n", what=f"{word} at {address} port {port}")

    def asks(self, name, address, port, word):
        until(lambda: self.exec(name, "nc", "-w", "5", address, str(port))[0].decode() == word + "\n", what=f"{word} by {name} at {address}")

    def datagrams(self, name):
        """How many its kernel has got, for ports at which nobody listens."""
        return int(self.sh(name, "grep Udp: /proc/net/snmp").splitlines()[1].split()[2])

    def web(self):
        return self.serve("web", "hello", ip="10.171.0.77", mac=MAC, rate_from_pod=80_000_000,
                          publish=[Port(host_port=8080, port=80), Port(host_port=5353, port=53, protocol="udp")])

    def of_the_kernels(self, a):
        """What the guest has, what the node has, and what is between them."""
        shown = self.sh("web", "ip address show eth0; ip route; ip -6 route")
        for text in (f"inet {a.ip}/32", f"inet6 {a.ip6}/128", MAC, "default via 10.171.0.1 dev eth0", "default via fe80::1 dev eth0"):
            self.assertIn(text, shown)
        self.assertIn("169.254.74.2/30 scope global nacre0", self.sh("web", "ip address"))
        self.assertIn(f"{a.ip}\tweb web.default\n{a.ip6}\tweb web.default\n", self.sh("web", "cat /etc/hosts"))
        link = ports()["nacre000aab004d"]
        self.assertEqual((NODE_MAC, True), (link["address"], "NOARP" in link["flags"]))
        for family, address in (("-4", a.ip), ("-6", a.ip6)):
            self.assertEqual([(MAC, ["PERMANENT"])], [(n["lladdr"], n["state"]) for n in ip(family, "neigh", "show", "to", address)])
        pid = self.leaf("web", "vmm")[0]
        there = {link["ifname"]: link for link in ip("address", pid=pid)}
        self.assertEqual((MAC, [], []), (there["eth0"]["address"], there["eth0"]["addr_info"], there["pod0"]["addr_info"]))
        self.assertEqual(("tbf", there["eth0"]["mtu"]), (there["eth0"]["qdisc"], there["pod0"]["mtu"]))
        # The machine itself has no other way out of that namespace.
        self.assertEqual({"169.254.74.0/30"}, {r["dst"] for r in ip("route", pid=pid)})

    def sends_as(self, pid, source):
        """A datagram for the pod `other`, as the guest of that process would send it in the name of `source`."""
        code = f"""
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0x0800))
body = struct.pack(">HHHH", 53, 53, 16, 0) + b"datagram"
head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, 64, 17, 0, socket.inet_aton("{source}"), socket.inet_aton("{self.other}"))
n = sum(struct.unpack(">10H", head))
n = (n & 0xffff) + (n >> 16)
head = head[:10] + struct.pack(">H", ~(n + (n >> 16)) & 0xffff) + head[12:]
s.send(bytes.fromhex("{(NODE_MAC + MAC).replace(':', '')}0800") + head + body)
"""
        subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "/usr/bin/python3", "-c", code], check=True)

    def test_a_pod(self):
        a = self.web()
        self.assertEqual(("default", "10.171.0.77", MAC), (a.name, a.ip, a.mac))
        self.of_the_kernels(a)
        self.assertTrue(self.is_warm("web"))
        self.assertIn("8080->80/tcp", self.node.cli("ps").stdout)
        self.assertIn("80/tcp -> 0.0.0.0:8080", self.node.cli("port", "web").stdout)
        for address in ("127.0.0.1", "::1", HOST):
            self.hears(address, 8080, "hello")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"by udp", ("127.0.0.1", 5353))
        until(lambda: self.datagrams("web") == 1, what="a datagram in the guest")
        # To and from a pod without a machine, and from itself by the node's address.
        other = self.serve("other", "other", kind="cell")
        self.other = other.ip
        for address in (other.ip, other.ip6):
            self.asks("web", address, 80, "other")
        for address in (a.ip, a.ip6):
            self.asks("other", address, 80, "hello")
        for name in ("web", "other"):
            self.asks(name, HOST, 8080, "hello")
        self.assertIn(f"{a.ip}\tweb", self.sh("other", "cat /etc/hosts"))
        until(lambda: f"{other.ip6}\tother" in self.sh("web", "cat /etc/hosts"), seconds=1.0, what="its name in the machine")
        # Services of the node itself are closed to it, and it speaks for nobody else.
        with socket.create_server((HOST, 8071)):
            self.assertEqual("refused\n", self.sh("web", f"nc -w 2 {HOST} 8071 </dev/null 2>/dev/null && echo open || echo refused"))
        pid = self.leaf("web", "vmm")[0]
        self.sends_as(pid, "10.171.0.99")
        self.sends_as(pid, a.ip)
        until(lambda: self.datagrams("other"), what="the datagram with its own address")
        self.assertEqual(1, self.datagrams("other"))
        self.survives(a)

    def survives(self, a):
        """The daemon is killed, then the machine: packets go on, and then nothing is left of it."""
        self.node.kill()
        self.hears("127.0.0.1", 8080, "hello")
        self.node.start()
        self.assertEqual(a, self.inspect("web").attachment)
        self.node.cli("rename", "other", "another")
        until(lambda: f"{self.other}\tanother" in self.sh("web", "cat /etc/hosts"), what="its new name in the machine")
        self.hears("127.0.0.1", 8080, "hello")
        self.assertEqual([], self.node.json("check"))
        os.kill(self.leaf("web", "vmm")[0], signal.SIGKILL)
        self.node.cli("wait", "web", check=False)
        until(lambda: not self.inspect("web").attachment.ip, what="it is on no network")
        self.assertNotIn("nacre000aab004d", ports())
        self.assertNotIn(a.ip, rules())
        self.assertIn(self.other, rules())
        # Its addresses and ports are free.
        b = self.serve("two", "second", kind="cell", ip=a.ip, publish=[Port(host_port=8080, port=80)])
        self.assertEqual((OUR_MAC, a.ip6), (b.mac, b.ip6))
        self.hears("::1", 8080, "second")
        self.node.clear()
        until(lambda: not ports(), what="no port is left")
        self.assertEqual([], self.node.json("check"))
        # This daemon has no template, and no process with its key yet.
        self.assertEqual([], nacre_test.traces(self.before, self.node, but=("process", "descriptor")))
        type(self).before = self.node.baseline()

    def is_warm(self, name):
        """Whether its machine goes on from the template."""
        pid = self.leaf(name, "vmm")[0]
        return any(os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/memfd:memory") for fd in os.listdir(f"/proc/{pid}/fd"))

    def test_a_network_without_a_way_out(self):
        def run(**fields):
            self.pod("p", kind="vm", **fields)

        self.node.cli("network", "create", "--internal", "closed")
        self.addCleanup(lambda: (self.node.clear(), self.node.cli("network", "rm", "closed")))
        self.assertFails(Code.FAILED_PRECONDITION, lambda: run(network="cni"), "network", "plugins")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: run(network="none", pod_network=Ask(ip="10.171.0.9")), "pod_network.ip")
        self.assertFails(Code.UNIMPLEMENTED, lambda: run(pod_network=Ask(metadata=runtime_pb2.Metadata())), "pod_network.metadata", "kernel of its own")
        self.pod("p", kind="vm", network="closed")
        self.assertNotIn("default", self.sh("p", "ip route"))
        self.node.networks.Connect(nacre_pb2.ConnectNetworkRequest(target="p", name="default"))
        self.assertIn("default via 10.171.0.1 dev eth1", self.sh("p", "ip route"))
        self.assertFails(Code.UNIMPLEMENTED, lambda: self.node.workloads.Debug(nacre_pb2.DebugRequest(target="p")), "target", "vm")


if __name__ == "__main__":
    unittest.main()
