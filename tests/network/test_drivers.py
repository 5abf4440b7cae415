# SPDX-License-Identifier: Apache-2.0
"""Networks of other drivers than the routed one: bridges, children of a device of the host, and the device itself."""
import ctypes
import os
import socket
import struct
import subprocess
import threading
import unittest

import grpc

from nacre_test import nacre_pb2, runtime_pb2, until
from test_further import OnSeveral
from test_pods import fetch, ip, rules

Code = grpc.StatusCode
Ask, Port = runtime_pb2.PodNetwork, runtime_pb2.PublishedPort
SERVE = "while :; do nc -l -p 80 -e echo {}; done"
WORLD, NODE = "192.0.2.1", "192.0.2.2"


def sh(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def of_links():
    return {link["ifname"] for link in ip("link")}


def inside(pid, fn):
    """fn() on a thread that stands in the network namespace of that process."""
    result = []

    def run():
        with open(f"/proc/{pid}/ns/net", "rb") as f:
            assert ctypes.CDLL(None).setns(f.fileno(), 0x40000000) == 0
        result.append(fn())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


def raw_socket():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind(("eth0", 0))
    s.settimeout(10)
    return s


class Drivers(OnSeveral):
    """With a host behind the device up0, which is of this node."""

    @classmethod
    def prepare(cls):
        cls.world = subprocess.Popen(["unshare", "-n", "sleep", "1000"])
        until(lambda: os.readlink(f"/proc/{cls.world.pid}/ns/net") != os.readlink("/proc/self/ns/net"), what="the world")
        sh("ip", "link", "set", "lo", "up")
        cls.plug_world()
        server = inside(cls.world.pid, lambda: socket.create_server(("", 80)))
        threading.Thread(target=cls.say_who_comes, args=(server,), daemon=True).start()
        super().prepare()

    @staticmethod
    def say_who_comes(server):
        while True:
            try:
                with server.accept()[0] as s:
                    s.sendall(f"you are {s.getpeername()[0]}\n".encode())
            except OSError:
                return

    @classmethod
    def plug_world(cls):
        sh("ip", "link", "add", "up0", "address", "02:00:00:00:00:aa", "type", "veth", "peer", "name", "eth0", "netns", str(cls.world.pid))
        sh("ip", "link", "set", "up0", "up")
        for words in ("link set lo up", "link set eth0 up", f"address add {WORLD}/24 dev eth0", "address add 2001:db8::1/64 dev eth0 nodad"):
            sh("nsenter", "-t", str(cls.world.pid), "-n", "ip", *words.split())

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        subprocess.run(["ip", "link", "del", "up0"], check=False, capture_output=True)
        cls.world.kill()
        cls.world.wait()

    def leave_nothing(self):
        self.node.clear()
        until(lambda: not [n for n in of_links() if n.startswith("nacre0")], what="no port is left")
        until(lambda: " . 10.98." not in rules(), what="no rule is left")
        self.assertEqual([], [r for r in ip("route") + ip("-6", "route") if str(r.get("dev")).startswith("nacrebr") and r["dst"] != "fe80::/64"])
        self.assertEqual([], [n for n in ip("neigh") if str(n.get("dev")).startswith("nacrebr")])
        self.assertEqual([], self.node.json("check"))

    def create(self, name, *words, **fields):
        self.node.cli("network", "create", name, *words)
        self.addCleanup(self.remove, name)

    def remove(self, name):
        self.node.clear()
        self.node.cli("network", "rm", name)

    def pid(self, name):
        return self.workload(name).containers[0].pid

    def agrees(self, name):
        shown = self.on(name)
        self.assertEqual({a.device: (a.mac, sorted(filter(None, [a.ip, a.ip6]))) for a in shown.values()}, self.devices(name))
        self.assertEqual([], self.node.json("check"))
        return shown


class Bridges(Drivers):
    NETWORKS = (("lan", "10.98.1.0/24", "--driver", "bridge", "--opt", "mtu=1400"), ("other", "10.98.2.0/24"),
                ("quiet", "10.98.3.0/24", "-d", "bridge", "--internal"))

    def test_pods_on_one(self):
        """Addresses, names, published ports as with routed ports, whatever br_netfilter does, and over a restart of the daemon."""
        told = self.node.json("network", "inspect", "lan")
        self.assertEqual(("bridge", None, 1400), (told["driver"], told["parent"], told["mtu"]))
        web = self.serve("web", "hello", "lan", publish=[Port(host_port=8080, port=80)])["lan"]
        self.run_pod("pod", "lan")
        self.run_pod("stranger", "other")
        self.agrees("web")
        self.assertEqual([24, 64], [a["prefixlen"] for link in self.netns("pod", "address") if link["ifname"] == "eth0" for a in link["addr_info"]])
        port, = [n for n in of_links() if n.startswith("nacre0") and told["bridge"] in (link.get("master") for link in ip("link", "show", n))][:1]
        self.assertIn("learning off flood off mcast_flood on bcast_flood on", sh("bridge", "-d", "link", "show", "dev", port))
        self.assertIn("locked on", sh("bridge", "-d", "link", "show", "dev", port))
        for family in (web.ip, web.ip6):
            self.hears("pod", family, "hello")
        self.hears("pod", "web.lan", "hello")
        self.silent("stranger", web.ip)
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.run_pod("no", "lan", publish=[Port(host_ip="::1", host_port=8081, port=80)]), "publish[0]", "::1")
        for nf_call in ("0", "1"):
            self.br_netfilter(nf_call)
            with self.subTest(nf_call=nf_call):
                self.published()
        self.node.kill()
        until(lambda: fetch("127.0.0.1", 8080) == "hello\n", seconds=10, what="a port without a daemon")
        self.node.start()
        self.agrees("web")
        self.published()
        self.silent("stranger", web.ip)

    @staticmethod
    def br_netfilter(whether):
        """Whether what is bridged passes the tables of IP too, where this kernel has that."""
        for family in ("iptables", "ip6tables"):
            path = f"/proc/sys/net/bridge/bridge-nf-call-{family}"
            if os.path.exists(path):
                with open(path, "w", encoding="ascii") as f:
                    f.write(whether)

    def published(self):
        until(lambda: fetch("127.0.0.1", 8080) == "hello\n", seconds=10, what="127.0.0.1")
        # Refused at once, so that whoever asks for localhost goes on to 127.0.0.1.
        self.assertRaises(ConnectionRefusedError, socket.create_connection, ("::1", 8080), 5)
        for name in ("pod", "web", "stranger"):
            until(lambda n=name: self.inside(n, "nc", "-w", "5", "10.98.1.1", "8080", check=False) == "hello\n", seconds=20, what=f"{name} at a published port")

    def test_what_an_internal_one_and_the_node_are_closed_to(self):
        sh("ip", "address", "add", NODE + "/24", "dev", "up0")
        self.addCleanup(sh, "ip", "address", "flush", "dev", "up0")
        self.run_pod("pod", "lan")
        self.run_pod("hidden", "quiet")
        with socket.create_server((NODE, 8071)):
            for name, address, port, want in (("pod", WORLD, 80, "open"), ("pod", NODE, 8071, "refused"), ("pod", "10.98.1.1", 8071, "refused"),
                                              ("hidden", WORLD, 80, "refused"), ("hidden", NODE, 8071, "refused")):
                said = self.inside(name, "sh", "-c", f"nc -w 2 {address} {port} </dev/null >&2 && echo open || echo refused")
                self.assertEqual(want + "\n", said, f"{name} to {address}:{port}")
        self.silent("hidden", self.on("pod")["lan"].ip)

    def test_a_cell_that_comes_and_goes(self):
        self.run_pod("pod", "other")
        self.node.cli("cell", "--name", "cell", "--network", "lan", "busybox", "sh", "-c", SERVE.format("cell"))
        self.assertEqual("eth1", self.connect("lan", "pod").device)
        self.agrees("pod")
        self.hears("pod", "cell", "cell")
        self.disconnect("other", "pod")
        self.assertEqual((["lan"], ["eth1"], ["eth1"]), (list(self.agrees("pod")), self.gateway("pod"), self.gateway("pod", "-6")))
        done = self.node.cli("network", "rm", "lan", check=False)
        self.assertIn("is used by", done.stderr)
        # Somebody removes the bridge: that is seen, and with the next pod all have it again.
        sh("ip", "link", "del", self.node.json("network", "inspect", "lan")["bridge"])
        self.assertIn("nacrebr", self.node.cli("check", check=False).stdout)
        self.serve("web", "again", "lan", publish=[Port(host_port=8080, port=80)])
        self.hears("pod", "cell", "cell")
        self.hears("pod", "web", "again")
        until(lambda: fetch("127.0.0.1", 8080) == "again\n", seconds=10, what="127.0.0.1")
        self.agrees("pod")

    def test_one_that_cannot_be_had(self):
        """Its pods are told why and have it when that is over; pods of other networks come and go."""
        self.serve("web", "hello", "lan")
        bridge = self.node.json("network", "inspect", "lan")["bridge"]
        self.node.kill()
        sh("ip", "link", "del", bridge)
        sh("ip", "link", "add", bridge, "type", "veth", "peer", "name", "far1")
        self.node.start()
        self.serve("pod", "again", "other", publish=[Port(host_port=8080, port=80)])
        until(lambda: fetch("127.0.0.1", 8080) == "again\n", seconds=10, what="127.0.0.1")
        self.run_pod("hidden", "quiet")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.run_pod("late", "lan"), "the network lan cannot be had", bridge, "no bridge of ours")
        self.assertEqual(1, self.node.log().count("a network cannot be had"))
        self.node.cli("rm", "-f", "hidden")
        sh("ip", "link", "del", bridge)
        until(lambda: self.node.cli("run", "-d", "--name", "late", "--network", "lan", "busybox", "sleep", "1000", check=False).returncode == 0,
              what="the network again")
        self.hears("late", "web", "hello")
        self.agrees("web")

    def test_what_a_pod_forges(self):
        """Frames with the MAC or addresses of others, and those of routers, bridges and DHCP servers, reach nobody."""
        # They would stop some of it.
        self.br_netfilter("0")
        self.addCleanup(self.br_netfilter, "1")
        self.run_pod("liar", "lan")
        self.run_pod("victim", "lan")
        a, b = self.on("liar")["lan"], self.on("victim")["lan"]
        liar, victim = (inside(self.pid(n), raw_socket) for n in ("liar", "victim"))
        # On one processor frames stay in order.
        self.addCleanup(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        with liar, victim:
            for what, frame, arrives in Frames(a, b).rows():
                with self.subTest(what=what):
                    liar.send(frame)
                    liar.send(Frames(a, b).ip4(a.ip, b"the end"))
                    got = []
                    while not got or not (got[-1].endswith(b"the end") and got[-1][6:12] == liar.getsockname()[4]):
                        got.append(victim.recv(2048).rstrip(b"\0"))
                    # Whoever receives it finds the tag of a VLAN taken off.
                    tail = frame.rstrip(b"\0")[18 if what == "a VLAN" else 12:]
                    self.assertEqual(arrives, any(g.endswith(tail) for g in got[:-1]), [g.hex() for g in got])


class Frames:
    """What a liar sends to a victim, each with both attachments."""

    OTHER = bytes.fromhex("02000000bad0")

    def __init__(self, liar, victim):
        self.liar, self.victim = liar, victim
        self.mac, self.to = (bytes.fromhex(x.mac.replace(":", "")) for x in (liar, victim))

    def frame(self, kind, payload, mac=None, to=None):
        return (to or self.to) + (mac or self.mac) + struct.pack("!H", kind) + payload.ljust(46, b"\0")

    def ip4(self, source, data, ports=(9, 9), **where):
        udp = struct.pack("!HHHH", *ports, 8 + len(data), 0) + data
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + socket.inet_aton(source) + socket.inet_aton(self.victim.ip)
        total = sum(struct.unpack("!10H", head))
        total = (total & 0xffff) + (total >> 16)
        head = head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xffff) + head[12:]
        frame = self.frame(0x800, head + udp, **where)
        return frame[:14 + len(head + udp)] if data == b"the end" else frame

    def arp(self, mac, address):
        return self.frame(0x806, struct.pack("!HHBBH", 1, 0x800, 6, 4, 2) + mac + socket.inet_aton(address) + self.to + socket.inet_aton(self.victim.ip))

    def ip6(self, source, protocol, payload, check):
        """check: where the payload has its checksum."""
        source, to = (socket.inet_pton(socket.AF_INET6, x) for x in (source, self.victim.ip6))
        words = source + to + struct.pack("!II", len(payload), protocol) + payload
        total = sum(struct.unpack(f"!{len(words) // 2}H", words))
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        payload = payload[:check] + struct.pack("!H", ~total & 0xffff) + payload[check + 2:]
        return self.frame(0x86dd, struct.pack("!IHBB", 6 << 28, len(payload), protocol, 255) + source + to + payload)

    def icmp6(self, source, kind, body):
        return self.ip6(source, 58, struct.pack("!BBH", kind, 0, 0) + body, 2)

    def advertisement(self, source, target):
        return self.icmp6(source, 136, struct.pack("!I", 0x20000000) + socket.inet_pton(socket.AF_INET6, target) + b"\2\1" + self.mac)

    def rows(self):
        a, b = self.liar, self.victim
        return [
            ("its own", self.ip4(a.ip, b"hello"), True),
            ("its own ARP", self.arp(self.mac, a.ip), True),
            ("its own neighbour advertisement", self.advertisement(a.ip6, a.ip6), True),
            ("a MAC of nobody", self.ip4(a.ip, b"mac", mac=self.OTHER), False),
            ("an address of IPv4", self.ip4("10.98.1.1", b"ip"), False),
            ("no address, as DHCP has it", self.ip4("0.0.0.0", b"none", ports=(68, 67)), False),
            ("an address of IPv6", self.icmp6("2001:db8::bad", 128, b"ping"), False),
            ("ARP for the gateway", self.arp(self.mac, "10.98.1.1"), False),
            ("ARP with a MAC of nobody", self.arp(self.OTHER, a.ip), False),
            ("a neighbour advertisement for the gateway", self.advertisement(a.ip6, "fe80::1"), False),
            ("a neighbour advertisement for the victim", self.advertisement(a.ip6, b.ip6), False),
            ("a router advertisement", self.icmp6(a.ip6, 134, struct.pack("!BBHII", 64, 0, 1800, 0, 0)), False),
            ("a router solicitation", self.icmp6(a.ip6, 133, bytes(4)), False),
            ("a redirect", self.icmp6(a.ip6, 137, bytes(36)), False),
            ("a DHCP offer", self.ip4(a.ip, b"offer", ports=(67, 68)), False),
            ("an offer of DHCPv6", self.ip6(a.ip6, 17, struct.pack("!HHHHI", 547, 546, 12, 0, 2 << 24), 6), False),
            ("a BPDU of STP", self.frame(38, b"\x42\x42\x03" + bytes(35), to=bytes.fromhex("0180c2000000")), False),
            ("LLDP", self.frame(0x88cc, b"\x02\x07\x04" + bytes(40)), False),
            ("a VLAN", self.frame(0x8100, struct.pack("!HH", 7, 0x800) + self.ip4(a.ip, b"vlan")[14:]), False),
        ]


class Outside(Drivers):
    """Networks that the node's packet filter sees nothing of."""

    NETWORKS = (("inner", "10.98.1.0/24", "--internal"),)

    def hears_world(self, name, address):
        until(lambda: self.inside(name, "nc", "-w", "5", WORLD, "80", check=False) == f"you are {address}\n", what=f"{name} hears the world")

    def test_macvlan(self):
        self.create("mac", "-d", "macvlan", "--opt", "parent=up0", "--subnet", "192.0.2.0/24", "--ip-range", "192.0.2.128/25", "--gateway", WORLD,
                    "--subnet", "2001:db8::/64", "--gateway", "2001:db8::1")
        told = self.node.json("network", "inspect", "mac")
        self.assertEqual(("macvlan", "up0", "bridge", "192.0.2.128/25"), tuple(told[k] for k in ("driver", "parent", "mode", "ip_range")))
        self.assertNotIn("192.0.2.0", rules() + sh("ip", "route", "show", "type", "unreachable"))
        web = self.serve("web", "hello", "mac", mac="02:00:00:00:00:01")["mac"]
        self.assertEqual(("192.0.2.129", "02:00:00:00:00:01"), (web.ip, web.mac))
        pod = self.run_pod("pod", "mac")["mac"]
        self.agrees("web")
        self.assertEqual("macvlan", self.netns("web", "-d", "link", "show", "eth0")[0]["linkinfo"]["info_kind"])
        self.assertEqual((["eth0"], ["eth0"]), (self.gateway("web"), self.gateway("web", "-6")))
        self.hears_world("pod", pod.ip)
        for address in (web.ip, web.ip6):
            until(lambda a=address: inside(self.world.pid, lambda: fetch(a, 80)) == "hello\n", seconds=10, what=f"the world hears {address}")
        self.hears("pod", "web", "hello")
        # While it runs, and over a restart of the daemon.
        self.run_pod("late", "inner")
        self.assertEqual("eth1", self.connect("mac", "late").device)
        self.assertEqual(["eth1"], self.gateway("late"))
        self.node.kill()
        self.node.start()
        self.agrees("late")
        self.hears_world("late", self.on("late")["mac"].ip)
        self.disconnect("mac", "late")
        self.assertEqual((["inner"], []), (list(self.agrees("late")), self.gateway("late")))
        self.assertIn("is used by", self.node.cli("network", "rm", "mac", check=False).stderr)
        for field, words, fields in (("publish[0]", "driver macvlan", {"publish": [Port(host_port=8080, port=80)]}),
                                     ("rate_to_pod", "rate_from_pod", {"rate_to_pod": 10**6}), ("ip", "192.0.2.128/25", {"ip": "192.0.2.7"})):
            self.assertFails(Code.INVALID_ARGUMENT if field == "ip" else Code.FAILED_PRECONDITION, lambda f=fields: self.run_pod("no", "mac", **f), field, words)
        # The parent goes: so do the devices, and the next one is told.
        self.node.cli("rm", "-f", "pod")
        sh("ip", "link", "del", "up0")
        self.addCleanup(self.plug_world)
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.run_pod("pod", "mac"), "the device up0, the parent of the network mac, is not there")

    def test_macvlan_private(self):
        self.create("mac", "-d", "macvlan", "--opt", "macvlan_mode=private", "--parent", "up0", "--subnet", "192.0.2.0/24", "--gateway", WORLD)
        web = self.serve("web", "hello", "mac")["mac"]
        pod = self.run_pod("pod", "mac")["mac"]
        self.hears_world("pod", pod.ip)
        self.silent("pod", web.ip)

    def test_ipvlan(self):
        """Where the kernel has it; where it has not, that is said."""
        self.create("ipv", "-d", "ipvlan", "--opt", "ipvlan_mode=l2", "--parent", "up0", "--subnet", "192.0.2.0/24", "--gateway", WORLD)
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.run_pod("no", "ipv", mac="02:00:00:00:00:01"), "mac", "the MAC of up0")
        has_it = subprocess.run(["ip", "link", "add", "try0", "link", "up0", "type", "ipvlan"], check=False, capture_output=True).returncode == 0
        if not has_it:
            self.assertFails(Code.FAILED_PRECONDITION, lambda: self.run_pod("pod", "ipv"), "this kernel has no ipvlan")
            return
        sh("ip", "link", "del", "try0")
        pod = self.run_pod("pod", "ipv")["ipv"]
        self.assertEqual("02:00:00:00:00:aa", pod.mac)
        self.agrees("pod")
        self.hears_world("pod", pod.ip)

    def test_what_cannot_be(self):
        create = ["network", "create", "bad"]
        for words, said in ((["-d", "overlay"], "is none of routed, bridge"), (["-d", "macvlan", "--parent", "up0"], "needs a subnet"),
                            (["-d", "macvlan", "--parent", "none0", "--subnet", "192.0.2.0/24"], "no device none0"),
                            (["-d", "macvlan", "--subnet", "192.0.2.0/24"], "no default route"),
                            (["-d", "macvlan", "--parent", "lo", "--subnet", "192.0.2.0/24"], "leads anywhere"),
                            (["-d", "macvlan", "--opt", "mode=l2", "--parent", "up0", "--subnet", "192.0.2.0/24"], "bridge or private"),
                            (["-d", "ipvlan", "--internal", "--parent", "up0", "--subnet", "192.0.2.0/24"], "cannot close it"),
                            (["-d", "device", "--subnet", "192.0.2.0/24"], "parent"), (["-d", "bridge", "--parent", "up0"], "has no parent"),
                            (["--ip-range", "10.9.0.0/25"], "ip_range"), (["--opt", "foo=bar"], "none of mtu=BYTES")):
            done = self.node.cli(*create, *words, check=False)
            self.assertIn(said, done.stderr, words)
        self.assertNotIn("bad", [n["name"] for n in self.node.json("network", "ls")])

    def device(self):
        """MAC, MTU and whether it is up, of up0 on the node; None: it is not there."""
        found = [link for link in ip("link") if link["ifname"] == "up0"]
        return (found[0]["address"], found[0]["mtu"], "UP" in found[0]["flags"]) if found else None

    def keeper(self, name):
        with open(f"/proc/{self.pid(name)}/stat", encoding="ascii") as f:
            return int(f.read().rpartition(")")[2].split()[1])

    def test_a_device(self):
        """One pod has it, and it comes back, whoever is killed."""
        self.create("out", "-d", "device", "--parent", "up0", "--subnet", "192.0.2.0/24", "--gateway", WORLD)
        before = self.device()
        self.assertEqual(("02:00:00:00:00:aa", 1500, True), before)
        pod = self.run_pod("pod", "out")["out"]
        self.agrees("pod")
        self.assertIsNone(self.device())
        self.hears_world("pod", pod.ip)
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.run_pod("other", "out"), "is lent to pod")
        self.node.cli("rm", "-f", "pod")
        until(lambda: self.device() == before, what="it is back")
        done = self.node.cli("network", "create", "x", "-d", "macvlan", "--parent", "up0", "--subnet", "198.51.100.0/24", check=False)
        self.assertIn("up0 is the parent of the network out", done.stderr)
        # On and off while it runs; with another daemon in between.
        self.run_pod("pod", "inner")
        self.connect("out", "pod")
        sh("nsenter", "-t", str(self.pid("pod")), "-n", "ip", "link", "set", "eth1", "address", "02:00:00:00:00:ab", "mtu", "1300")
        self.node.kill()
        self.node.start()
        self.disconnect("out", "pod")
        self.assertEqual(before, self.device())
        self.node.clear()
        # Its keeper is killed: what holds the device is the daemon.
        for restarts in (False, True):
            self.run_pod("pod", "out")
            if restarts:
                self.node.kill()
                self.node.start()
                self.agrees("pod")
            os.kill(self.keeper("pod"), 9)
            until(lambda: self.device() == before, what=f"it is back, {restarts}")
            self.node.clear()
        # Both: the kernel destroys what is virtual, and the next pod is told; hardware comes back under another name, down.
        for comes_back in (True, False):
            self.run_pod("pod", "out")
            keeper = self.keeper("pod")
            self.node.kill()
            os.kill(keeper, 9)
            until(lambda: sh("nsenter", "-t", str(self.world.pid), "-n", "ip", "-br", "link", "show").count("eth0") == 0, what="the other end is gone")
            if comes_back:
                sh("ip", "link", "add", "dev0", "address", before[0], "mtu", "1300", "type", "veth", "peer", "name", "eth0", "netns", str(self.world.pid))
            self.node.start()
            if comes_back:
                until(lambda: self.device() == before, what="it is as it was")
                self.assertNotIn("dev0", of_links())
            self.node.clear()
        self.addCleanup(self.plug_world)
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.run_pod("pod", "out"), "up0", "is not there")

    def test_a_proxy_that_has_the_device(self):
        """A cell reaches the world only through another one, which holds the device."""
        self.create("out", "-d", "device", "--parent", "up0", "--subnet", "192.0.2.0/24", "--gateway", WORLD)
        self.node.cli("cell", "--name", "proxy", "--network", "out", "--network", "inner", "busybox", "sh", "-c",
                      f"while :; do nc -l -p 3128 -e nc {WORLD} 80; done")
        self.node.cli("cell", "--name", "app", "--network", "inner", "busybox", "sleep", "1000")
        self.agrees("proxy")
        self.assertEqual([], self.gateway("app"))
        through = f"you are {self.on('proxy')['out'].ip}\n"
        until(lambda: self.inside("app", "nc", "-w", "5", "proxy", "3128", check=False) == through, what="by the proxy")
        self.silent("app", WORLD)
        self.disconnect("inner", "app")
        self.assertEqual("", self.inside("app", "nc", "-w", "1", "proxy", "3128", check=False))


if __name__ == "__main__":
    unittest.main()
