# SPDX-License-Identifier: Apache-2.0
"""What lies around and below an instance with a kernel of its own: a network device of the node, and the levels of a tree."""
import json
import os
import socket
import subprocess
import threading

import grpc

import machines
import nacre_test
from machines import load_tests  # noqa: F401

BRIDGE, NODE, GUEST, MAC = "br0", "192.0.2.1", "192.0.2.5", "02:00:00:00:00:05"
Code = grpc.StatusCode
Nic = nacre_test.runtime_pb2.Nic


def busybox(*words):
    subprocess.run(["busybox", *words], check=True)


def devices():
    return sorted(name for _, name in socket.if_nameindex())


class Levels(machines.MachinesTest):
    @classmethod
    def prepare(cls):
        busybox("brctl", "addbr", BRIDGE)
        busybox("ip", "link", "set", BRIDGE, "mtu", "1400")
        busybox("ip", "addr", "add", f"{NODE}/24", "dev", BRIDGE)
        busybox("ip", "link", "set", BRIDGE, "up")
        cls.devices = devices()
        super().prepare()

    def hear(self, target, word):
        """Who says the word to the node by the bridge."""
        with socket.create_server((NODE, 0)) as server:
            server.settimeout(60 * nacre_test.SLOWNESS)
            said = threading.Thread(target=self.sh, args=(target, f"echo {word} | nc {NODE} {server.getsockname()[1]}"))
            said.start()
            peer, address = server.accept()
            with peer:
                self.assertEqual(word + "\n", peer.makefile().readline())
            said.join()
        return address[0]

    def check_levels(self):
        self.spawn("v/a")
        self.spawn("b")
        here, there = os.uname().release, self.kernel.version
        text = self.node.cli("tree", "--short").stdout
        for line in (f"node (Linux {here})", f"v .* vm instance (Linux {there})", f"a .* cell instance (Linux {there})",
                     f"b .* cell instance (Linux {here})"):
            self.assertRegex(text, line.replace("(", r"\(").replace(")", r"\)"))
        tree = {e["workload"]["name"]: e for e in json.loads(self.node.cli("-o", "json", "tree").stdout)}
        self.assertEqual((here, there, there), (tree["b"]["kernel"], tree["v"]["kernel"], tree["v"]["children"][0]["kernel"]))
        self.assertEqual(there, next(e for e in tree["v"]["children"] if e["workload"]["name"] == "v/c")["kernel"])
        self.stop("b")

    def test_cells_and_levels(self):
        v = self.spawn("v", kind="vm", nics=[Nic(bridge=BRIDGE, address=f"{GUEST}/24", gateway=NODE, mac=MAC)])
        self.assertEqual(1, len(set(devices()) - set(self.devices)))
        self.cell("v/c", network="host")
        shown = self.sh("v/c", "ip -o link show dev eth1; ip -o addr show dev eth1; ip route")
        for word in (f"mtu 1400 .*{MAC}", f"inet {GUEST}/24", f"default via {NODE} dev eth1", "169.254.74.0/30 dev eth0"):
            self.assertRegex(shown, word)
        self.assertEqual(GUEST, self.hear("v/c", "hello"))
        # The process of the machine is not in the node's network, and one that has a network of its own in the guest has not got it.
        self.assertNotEqual(os.readlink("/proc/self/ns/net"), os.readlink(f"/proc/{v.pid}/ns/net"))
        self.cell("v/d")
        self.assertNotIn("eth1", self.sh("v/d", "ip link"))
        self.check_levels()
        self.stop("v", grace_ms=20000)
        nacre_test.until(lambda: devices() == self.devices, what="the end of its device", seconds=15)

    def test_a_pod_has_one_without_an_address(self):
        self.node.cli("run", "-d", "--kind", "vm", "--name", "p", "--nic", f"bridge={BRIDGE}", "busybox", "sleep", "1000")
        self.assertEqual(1, len(set(devices()) - set(self.devices)))
        shown = self.sh("p", "ip -o link show dev eth1; ip -o addr show dev eth1; ip route")
        self.assertRegex(shown, r"eth1: <\S*UP\S*> mtu 1400")
        self.assertNotIn("inet ", shown)
        self.assertRegex(shown, "default via 169.254.74.1 dev eth0")
        self.stop("p")
        self.remove("p")
        nacre_test.until(lambda: devices() == self.devices, what="the end of its device", seconds=15)

    def test_what_cannot_be_had_is_refused_by_name(self):
        def refused(code, field, **fields):
            with self.assertRaises(grpc.RpcError) as e:
                self.spawn("x", **fields)
            self.assertEqual(code, e.exception.code())
            self.assertIn(field, e.exception.details())

        refused(Code.FAILED_PRECONDITION, "nics[0].bridge: this node has no bridge br9", kind="vm", nics=[Nic(bridge="br9")])
        refused(Code.FAILED_PRECONDITION, "network: an instance of kind \"vm\" has a kernel of its own", kind="vm", network="host")
        with self.assertRaisesRegex(grpc.RpcError, "network: an instance of kind"):
            self.pod("x", kind="vm", network="host")
        refused(Code.FAILED_PRECONDITION, "nics: only an instance of kind \"vm\"", nics=[Nic(bridge=BRIDGE)])
        refused(Code.INVALID_ARGUMENT, "nics[0].address", kind="vm", nics=[Nic(bridge=BRIDGE, address="192.0.2.5")])
        done = self.node.cli("spawn", "--kind", "vm", "--nic", "br0", check=False)
        self.assertRegex(done.stderr, "--nic: \"br0\" is none of bridge=NAME")
