# SPDX-License-Identifier: Apache-2.0
"""Pods of kind vm on several networks, of each driver and of plugins of CNI, and their networks while they run."""
import json
import os
import socket
import subprocess
import tempfile
import unittest

import grpc

import machines
from machines import load_tests  # noqa: F401
from nacre_test import nacre_pb2, runtime_pb2, until
from steps import container

Code = grpc.StatusCode
Ask, Further = runtime_pb2.PodNetwork, runtime_pb2.FurtherNetwork
SERVER = "while :; do nc -l -p 80 -e echo WORD; done"
PLUGINS = "/usr/lib/cni"


def sh(*words):
    subprocess.run(words, check=True)


def fetch(address, port=80):
    try:
        with socket.create_connection((address, port), timeout=5) as s:
            return s.makefile("rb").read().decode()
    except OSError:
        return None


class Networks(machines.MachinesTest):
    """A device `far0` of the node leads to a namespace `far` with the address 192.0.2.1, which is the world of macvlan."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="nacre-cni-")
        cls.addClassCleanup(subprocess.run, ["rm", "-rf", cls.dir], check=True)
        cls.CONFIG = f"network:\n  default: none\n  cni:\n    conf_dir: {cls.dir}\n    bin_dirs: {PLUGINS}\n"
        plugins = [{"type": "bridge", "bridge": "cnitest0", "isGateway": True, "ipMasq": True, "mtu": 1400,
                    "ipam": {"type": "host-local", "dataDir": cls.dir + "/state",
                             "ranges": [[{"subnet": "10.88.0.0/16"}], [{"subnet": "fd88::/64"}]],
                             "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}}]
        with open(cls.dir + "/10.conflist", "w", encoding="utf-8") as f:
            json.dump({"cniVersion": "1.0.0", "name": "first", "plugins": plugins}, f)
        super().setUpClass()

    @classmethod
    def first(cls):
        sh("ip", "link", "set", "lo", "up")
        for name, *options in (("one",), ("closed", "--internal"), ("two", "--driver", "bridge")):
            cls.node.cli("network", "create", *options, name)
        super().first()
        # The plugins keep their bridge, and the daemon what it has open for the first on each network.
        until(lambda: "pods can have the network of plugins" in cls.node.log(), what="a network of plugins")
        for network in ("cni", "one"):
            cls.node.cli("run", "--rm", "--network", network, "busybox", "true")

    def tearDown(self):
        self.node.clear()

    def another_daemon(self):
        """What is left is compared with what the daemon that runs now has."""
        self.node.clear()
        type(self).before = self.node.baseline()

    def serve(self, name, word, kind="vm", **ask):
        self.pod(name, container("sh", "-c", SERVER.replace("WORD", word)), kind=kind, **ask)
        return [self.inspect(name).attachment, *self.inspect(name).further_attachments]

    def hears(self, address, word):
        until(lambda: fetch(address) == word + "\n", what=f"{word} at {address}")

    def asks(self, name, address, word):
        until(lambda: self.exec(name, "nc", "-w", "5", address, "80")[0].decode() == word + "\n", what=f"{word} by {name} at {address}")

    def connect(self, target, name):
        self.node.networks.Connect(nacre_pb2.ConnectNetworkRequest(target=target, name=name))

    def disconnect(self, target, name):
        self.node.networks.Disconnect(nacre_pb2.DisconnectNetworkRequest(target=target, name=name))

    def devices(self, name):
        return {line.split(":")[0].strip() for line in self.sh(name, "cat /proc/net/dev").splitlines()[2:]}

    def test_on_several(self):
        first, second, third = self.serve("web", "hello", network="one",
                                          further_networks=[Further(network="two"), Further(network="closed")])
        shown = self.sh("web", "ip address; ip route; ip -6 route")
        for a, device in ((first, "eth0"), (second, "eth1"), (third, "eth2")):
            self.assertIn(f"inet {a.ip}/", shown)
            self.assertIn(f"inet6 {a.ip6}/", shown)
            self.assertIn(a.mac, shown)
            self.assertIn(device, self.devices("web"))
            self.hears(a.ip, "hello")
        self.hears(first.ip6, "hello")
        self.assertEqual(1, shown.count("default via 10."))
        # By each of its networks to who is on it.
        for network in ("one", "two", "closed"):
            other = self.serve("other-" + network, network, kind="cell", network=network)[0]
            self.asks("web", other.ip, network)
            self.asks("web", other.ip6, network)
            a = {"one": first, "two": second, "closed": third}[network]
            self.asks("other-" + network, a.ip, "hello")

    def test_while_it_runs(self):
        first = self.serve("web", "hello", network="one")[0]
        other = self.serve("other", "other", kind="cell", network="two")[0]
        for _ in range(2):
            self.connect("web", "two")
            second = self.inspect("web").further_attachments[0]
            self.asks("web", other.ip, "other")
            self.asks("other", second.ip, "hello")
            self.assertIn("default via 10.", self.sh("web", "ip route show dev eth0"))
            self.disconnect("web", "two")
            self.assertNotIn(second.ip, self.sh("web", "ip address; ip route"))
            self.hears(first.ip, "hello")
        # Its default routes are handed on, also by a later daemon.
        self.connect("web", "two")
        self.node.kill()
        self.node.start()
        self.disconnect("web", "one")
        a = self.inspect("web").attachment
        self.assertEqual("two", a.name)
        self.assertIn("dev eth1", self.sh("web", "ip route show default"))
        self.assertNotIn(first.ip, self.sh("web", "ip address"))
        self.asks("web", other.ip, "other")
        self.hears(a.ip, "hello")
        self.connect("web", "one")
        self.connect("web", "closed")
        self.assertEqual([], self.node.json("check"))
        self.another_daemon()

    def test_the_default_routes_go_from_bridge_to_bridge(self):
        self.node.cli("network", "create", "--driver", "bridge", "three")
        first = self.serve("web", "hello", network="two")[0]
        self.connect("web", "three")
        self.disconnect("web", "two")
        a = self.inspect("web").attachment
        self.assertEqual("three", a.name)
        for family in ("", "-6 "):
            self.assertIn("dev eth1", self.sh("web", f"ip {family}route show default"))
        self.assertNotIn(first.ip, self.sh("web", "ip address"))
        self.hears(a.ip, "hello")
        self.node.clear()
        self.node.cli("network", "rm", "three")
        self.another_daemon()

    def test_no_more_than_it_has_devices(self):
        names = [f"n{i}" for i in range(4)]
        for name in names:
            self.node.cli("network", "create", name)
        self.pod("p", kind="vm", network="one", further_networks=[Further(network=n) for n in names[:3]])
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.connect("p", "n3"), "devices")
        self.disconnect("p", "n1")
        self.connect("p", "n3")
        self.node.clear()
        for name in names:
            self.node.cli("network", "rm", name)

    def outside(self):
        """The process of that namespace."""
        far = subprocess.Popen(["unshare", "-n", "/usr/bin/python3", "-c", """
import socket
input()
s = socket.create_server(("192.0.2.1", 80))
while True:
    c = s.accept()[0]
    c.sendall(b"far\\n")
    c.close()
"""], stdin=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (sh("ip", "link", "del", "far0"), far.kill(), far.communicate()))
        own = os.readlink("/proc/self/ns/net")
        until(lambda: os.readlink(f"/proc/{far.pid}/ns/net") != own, what="a namespace")
        sh("ip", "link", "add", "far0", "type", "veth", "peer", "name", "eth0", "netns", str(far.pid))
        sh("ip", "link", "set", "far0", "up")
        for words in ("link set eth0 up", "link set lo up", "address add 192.0.2.1/24 dev eth0"):
            sh("nsenter", f"--net=/proc/{far.pid}/ns/net", "ip", *words.split())
        far.stdin.write("go\n")
        far.stdin.flush()
        return far.pid

    def test_macvlan(self):
        pid = self.outside()
        self.node.cli("network", "create", "--driver", "macvlan", "--parent", "far0", "--subnet", "192.0.2.0/24", "--gateway", "192.0.2.1", "lan")
        a = self.serve("web", "hello", network="lan")[0]
        self.asks("web", "192.0.2.1", "far")
        self.assertIn(a.mac, self.sh("web", "ip link show eth0"))
        code = f"import socket; print(socket.create_connection(('{a.ip}', 80), timeout=5).recv(99).decode())"
        until(lambda: "hello" in subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "/usr/bin/python3", "-c", code],
                                                capture_output=True, text=True, check=False).stdout, what="hello from outside")
        self.node.clear()
        self.node.cli("network", "rm", "lan")

    def test_one_device_without_and_then_with_ipv6(self):
        """What one network turned off in the guest, the next one on that device has."""
        self.node.cli("network", "create", "--ipv6", "false", "four")
        self.serve("web", "hello", network="one")
        other = self.serve("other", "other", kind="cell", network="two")[0]
        self.connect("web", "four")
        self.disconnect("web", "four")
        self.connect("web", "two")
        self.asks("web", other.ip6, "other")
        self.node.clear()
        self.node.cli("network", "rm", "four")
        self.another_daemon()

    def test_a_device_of_the_node(self):
        self.outside()
        self.node.cli("network", "create", "--driver", "device", "--parent", "far0", "--subnet", "192.0.2.0/24", "--gateway", "192.0.2.1", "dev")
        self.serve("web", "hello", network="dev")
        self.asks("web", "192.0.2.1", "far")
        self.assertNotEqual(0, subprocess.run(["ip", "link", "show", "far0"], capture_output=True, check=False).returncode)
        self.node.clear()
        until(lambda: subprocess.run(["ip", "link", "show", "far0"], capture_output=True, check=False).returncode == 0, what="the device is back")
        self.node.cli("network", "rm", "dev")

    @unittest.skipUnless(os.path.exists(PLUGINS + "/bridge"), "no plugins of CNI here")
    def test_on_a_network_of_plugins(self):
        a = self.serve("web", "hello", network="cni")[0]
        shown = self.sh("web", "ip address show eth0; ip route; ip -6 route")
        for text in (f"inet {a.ip}/16", f"inet6 {a.ip6}/64", a.mac, "mtu 1400", "default via 10.88.0.1 dev eth0", "default via fd88::1 dev eth0"):
            self.assertIn(text, shown)
        self.assertIn(a.ip, self.sh("web", "cat /etc/hosts"))
        self.hears(a.ip, "hello")
        self.hears(a.ip6, "hello")
        other = self.serve("other", "other", kind="cell", network="cni")[0]
        self.asks("web", other.ip, "other")
        self.asks("web", other.ip6, "other")
        self.asks("other", a.ip, "hello")
        # The plugins' namespace is that of the machine, as long as the pod lives, and what CHECK looks for is there.
        [path] = [p for p in os.listdir(os.path.join(self.node.dir, "netns"))
                  if a.mac in subprocess.run(["nsenter", "--net=" + os.path.join(self.node.dir, "netns", p), "ip", "link"],
                                             capture_output=True, text=True, check=True).stdout]
        there = subprocess.run(["nsenter", "--net=" + os.path.join(self.node.dir, "netns", path), "ip", "address", "show", "eth0"],
                               capture_output=True, text=True, check=True).stdout
        self.assertIn(f"inet {a.ip}/16", there)
        self.node.kill()
        self.node.start()
        self.assertEqual(a, self.inspect("web").attachment)
        self.hears(a.ip, "hello")
        self.node.clear()
        until(lambda: not os.listdir(os.path.join(self.node.dir, "netns")), what="no namespace of plugins is left")
        self.another_daemon()
        self.assertEqual([], [n for n in os.listdir(self.dir + "/state/first") if n.startswith("10.") or n.startswith("fd88")])


if __name__ == "__main__":
    unittest.main()
