# SPDX-License-Identifier: Apache-2.0
"""The network that `nacre daemon` as pid 1 brings up, and its API on it: addresses, DHCP, router advertisements, mutual TLS."""
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import unittest

import host
import nacre_test
import pid1
from nacre_test import until

SERVER, LEASE = "192.0.2.1", "192.0.2.77"
CLIENT = 'system:\n  network_within: 300ms\n  interfaces: [ "eth0 dhcp" ]\n  dhcp_client: [ %s ]\n'
BUSYBOX = '/bin/busybox, udhcpc, -f, -i, "%i", -s, /etc/lease'
# What Debian's package udhcpc has in some hundred lines.
LEASED = """#!/bin/sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip addr replace "$ip/$mask" dev "$interface"
[ -z "$router" ] || ip route replace default via "$router" dev "$interface"
"""
ROUTER_ADVERTISEMENT, PREFIX_INFORMATION = 134, 3
IPPROTO_ICMPV6 = 58


def advertise(device, prefix):
    """One router advertisement of a /64 to all nodes behind the device."""
    body = struct.pack("!BBHBBHII", ROUTER_ADVERTISEMENT, 0, 0, 64, 0, 1800, 0, 0)
    body += struct.pack("!BBBBIII16s", PREFIX_INFORMATION, 4, 64, 0xC0, 3600, 3600, 0, socket.inet_pton(socket.AF_INET6, prefix))
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, IPPROTO_ICMPV6) as s:
        index = socket.if_nametoindex(device)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        try:
            s.sendto(body, ("ff02::1", 0, 0, index))
        except OSError:
            # The link-local address is not there yet.
            pass


class NetworkTest(unittest.TestCase):
    def setUp(self):
        self.far = f"v{os.getpid() % 100000}"

    def box(self, config):
        box = pid1.Box(config)
        self.addCleanup(box.destroy)
        self.addCleanup(lambda: print("".join(f"# {line}\n" for line in box.log().splitlines()[-40:])))
        return box

    def plug(self, box, address=f"{SERVER}/24"):
        """eth0 of the box, whose other end is here."""
        pid1.run("ip", "link", "add", self.far, "type", "veth", "peer", "name", "eth0", "netns", str(box.pid))
        self.addCleanup(pid1.run, "ip", "link", "del", self.far, check=False)
        pid1.run("ip", "addr", "add", address, "dev", self.far)
        pid1.run("ip", "link", "set", self.far, "up")

    def addresses(self, box, family=4):
        said = json.loads(box.inside("ip", "-j", f"-{family}", "addr", "show", "dev", "eth0", check=False) or "[]")
        return {f"{a['local']}/{a['prefixlen']}": a for i in said for a in i.get("addr_info", ()) if a["scope"] == "global"}

    def routes(self, box, family=4):
        return {(r["dst"], r.get("gateway")) for r in json.loads(box.inside("ip", "-j", f"-{family}", "route"))}

    def serve_leases(self):
        place = os.path.join("/tmp", self.far)
        os.makedirs(place)
        self.addCleanup(shutil.rmtree, place, ignore_errors=True)
        conf = os.path.join(place, "conf")
        with open(conf, "w", encoding="ascii") as f:
            f.write(f"start {LEASE}\nend {LEASE}\ninterface {self.far}\nlease_file {place}/leases\npidfile {place}/pid\n"
                    f"option subnet 255.255.255.0\noption router {SERVER}\noption lease 600\n")
        with open(os.path.join(place, "leases"), "w", encoding="ascii"):
            pass
        server = subprocess.Popen(["busybox", "udhcpd", "-f", conf], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

    def client(self, box, word):
        found = [p for p in box.children() if word.encode() in open(f"/proc/{p}/cmdline", "rb").read()]
        return found[0] if found else None


class Static(NetworkTest):
    def test_addresses_of_a_device_that_comes_later(self):
        box = self.box('system:\n  hostname: node-7\n  network_within: 1m\n  interfaces: '
                       f'[ "eth0 192.0.2.9/24 via {SERVER} fd00:7::9/64 via fd00:7::1 mtu 1400" ]\n')
        box.start()
        until(lambda: "a network device is not there" in box.log(), what="it looks for its device")
        self.assertIsNone(box.daemon())
        self.plug(box)
        box.up()
        self.assertEqual({"192.0.2.9/24"}, set(self.addresses(box)))
        self.assertEqual({"fd00:7::9/64"}, set(self.addresses(box, 6)))
        self.assertIn(("default", SERVER), self.routes(box))
        self.assertIn(("default", "fd00:7::1"), self.routes(box, 6))
        self.assertEqual("1400", box.inside("cat", "/sys/class/net/eth0/mtu").strip())
        self.assertEqual("node-7", box.inside("hostname").strip())
        # Routers are not listened to where nobody asked for that.
        advertise(self.far, "2001:db8:7::")
        self.assertEqual("0", box.inside("cat", "/proc/sys/net/ipv6/conf/eth0/accept_ra").strip())
        self.assertEqual({"fd00:7::9/64"}, set(self.addresses(box, 6)))

    def test_no_device_at_all(self):
        box = self.box('system:\n  network_within: 500ms\n  interfaces: [ "eth0 dhcp", "eth1 192.0.2.2/24" ]\n')
        box.up()
        self.assertIn("the network is not complete", box.log())
        self.assertEqual(["lo"], [i["ifname"] for i in json.loads(box.inside("ip", "-j", "link"))])
        self.assertEqual(0, pid1.stop(box))

    def test_mutual_tls(self):
        box = self.box('listen: [ "0.0.0.0:7443" ]\nlisten_names: [ node.example ]\nsystem:\n  interfaces: [ "eth0 192.0.2.9/24" ]\n')
        box.start()
        self.plug(box)
        box.up()
        certs = os.path.join(box.dir, "certs")
        box.cli("identity", "issue", "alice", "--role", "admin", "--out", certs)
        env = {k: v for k, v in os.environ.items() if k not in ("NACRE_SOCKET", "NACRE_HOST")}
        words = [nacre_test.BINARY, "--host", "192.0.2.9:7443", "info", "-o", "json"]

        def ask(**more):
            return subprocess.run(words, env={**env, **more}, capture_output=True, text=True, check=False, timeout=60)

        until(lambda: ask(NACRE_CERT_PATH=certs).returncode == 0, what="it answers over TLS")
        self.assertEqual(box.json("info")["pid"], json.loads(ask(NACRE_CERT_PATH=certs).stdout)["pid"])
        os.unlink(os.path.join(certs, "alice.key"))
        self.assertNotEqual(0, ask(NACRE_CERT_PATH=certs).returncode)


class Dhcp(NetworkTest):
    def leased(self, config):
        box = self.box(config)
        box.write("/etc/lease", LEASED, 0o755)
        box.start()
        self.plug(box)
        self.serve_leases()
        until(lambda: f"{LEASE}/24" in self.addresses(box), what="it has its address")
        self.assertIn(("default", SERVER), self.routes(box))
        return box

    def test_a_client_of_the_configuration(self):
        box = self.leased(CLIENT % BUSYBOX)
        box.up()
        client = self.client(box, "udhcpc")
        status = dict(line.split(":\t", 1) for line in host.read(f"/proc/{client}/status").splitlines() if ":\t" in line)
        # Nothing of a host's but its network, and no signal that it does not hear.
        self.assertEqual(0, int(status["CapEff"], 16) & 1 << 21, "CAP_SYS_ADMIN")
        self.assertTrue(int(status["CapEff"], 16) & 1 << 12, "CAP_NET_ADMIN")
        self.assertEqual("1", status["NoNewPrivs"])
        self.assertEqual(0, int(status["SigBlk"], 16))
        os.kill(client, signal.SIGKILL)
        until(lambda: self.client(box, "udhcpc") not in (None, client), what="there is another client")
        self.assertEqual(0, pid1.stop(box))

    def debian(self, program):
        if not os.path.exists(program):
            self.skipTest(f"there is no {program}")
        box = self.leased(f'system:\n  interfaces: [ "eth0 dhcp" ]\n  dhcp_client: [ {program}, -4, {"-d" if "dhclient" in program else "-B"}, "%i" ]\n')
        self.assertEqual(0, pid1.stop(box))

    def test_dhclient(self):
        self.debian("/usr/sbin/dhclient" if os.path.exists("/usr/sbin/dhclient") else "/sbin/dhclient")

    def test_dhcpcd(self):
        self.debian("/usr/sbin/dhcpcd" if os.path.exists("/usr/sbin/dhcpcd") else "/sbin/dhcpcd")

    def test_a_client_that_hangs(self):
        box = self.box((CLIENT % "/bin/sleep, 1000") + "  dhcp_patience: 1s\n")
        box.start()
        self.plug(box)
        box.up()
        until(lambda: self.client(box, "sleep"), what="it runs")
        first = self.client(box, "sleep")
        until(lambda: self.client(box, "sleep") not in (None, first), what="there is another one")
        self.assertIn("has brought no address", box.log())

    def test_clients_that_die_or_are_not_there(self):
        for client in ("/bin/false", "/no/such/client"):
            box = self.box(CLIENT % client)
            box.start()
            self.plug(box)
            box.up()
            until(lambda box=box: box.log().count("the client of DHCP has ended") >= 2, what="it is tried again")
            self.assertEqual(0, pid1.stop(box))
            pid1.run("ip", "link", "del", self.far, check=False)


class Autoconf(NetworkTest):
    def test_router_advertisements(self):
        box = self.box('system:\n  interfaces: [ "eth0 auto" ]\n')
        box.start()
        self.plug(box)
        box.up()
        self.assertEqual("2", box.inside("cat", "/proc/sys/net/ipv6/conf/eth0/accept_ra").strip())

        def heard():
            advertise(self.far, "2001:db8:7::")
            return [a for a in self.addresses(box, 6) if a.startswith("2001:db8:7:")]

        until(heard, what="it has an address of the router's network")
        self.assertTrue(self.addresses(box, 6)[heard()[0]]["dynamic"])
        self.assertIn("default", {dst for dst, _ in self.routes(box, 6)})
