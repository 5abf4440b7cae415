# SPDX-License-Identifier: Apache-2.0
"""Pods on several networks, and networks that they get and leave while they run; judged by the kernel's own lists and by packets."""
import json
import subprocess
import sys
import time
import unittest

import grpc

import faults
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2, until
from test_pods import fetch, ip, ports, rules

Code = grpc.StatusCode
Ask, Port, Further = runtime_pb2.PodNetwork, runtime_pb2.PublishedPort, runtime_pb2.FurtherNetwork


class OnSeveral(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\n"
    NETWORKS = (("back", "10.98.1.0/24"), ("front", "10.98.2.0/24"), ("quiet", "10.98.3.0/24", "--internal"))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    @classmethod
    def prepare(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        for name, subnet, *more in cls.NETWORKS:
            cls.node.cli("network", "create", "--subnet", subnet, *more, name)
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    def setUp(self):
        self.addCleanup(self.leave_nothing)

    def leave_nothing(self):
        self.node.clear()
        until(lambda: not ports(), what="no port is left")
        until(lambda: " : 10." not in rules() and " . 10.98." not in rules(), what="no rule is left")
        for name, _, *_ in self.NETWORKS:
            self.assertEqual(0, self.node.json("network", "inspect", name)["pods"])

    def run_pod(self, name, *networks, command=("sleep", "1000"), further=(), **ask):
        """networks: names; further: whole messages behind them."""
        container = runtime_pb2.Container(image="busybox", args=command)
        self.node.runtime.RunPod(runtime_pb2.RunPodRequest(
            meta=runtime_pb2.Meta(name=name), containers=[container], network=networks[0] if networks else "",
            pod_network=Ask(**ask) if ask else None, further_networks=[Further(network=n) for n in networks[1:]] + list(further)))
        return self.on(name)

    def serve(self, name, words, *networks, **ask):
        return self.run_pod(name, *networks, command=("sh", "-c", f"while :; do nc -l -p 80 -e echo {words}; done"), **ask)

    def workload(self, name):
        return self.node.workloads.Inspect(nacre_pb2.InspectRequest(target=name)).workload

    def on(self, name):
        """Its networks, by name, in order."""
        w = self.workload(name)
        live = [w.attachment] if w.attachment.ip else []
        return {a.name: a for a in live + list(w.further_attachments)}

    def connect(self, network, target, **fields):
        return self.node.networks.Connect(nacre_pb2.ConnectNetworkRequest(name=network, target=target, **fields)).attachment

    def disconnect(self, network, target, force=False):
        self.node.networks.Disconnect(nacre_pb2.DisconnectNetworkRequest(name=network, target=target, force=force))

    def inside(self, name, *words, check=True):
        return self.node.cli("exec", name, *words, check=check).stdout

    def netns(self, name, *args):
        """What the kernel has in the pod's network namespace, asked from outside."""
        pid = self.workload(name).containers[0].pid
        out = subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", "-j", *args], check=True, capture_output=True, text=True).stdout
        return json.loads(out or "[]")

    def devices(self, name):
        """Devices of a pod but loopback: name, MAC and addresses."""
        return {link["ifname"]: (link["address"], sorted(a["local"] for a in link["addr_info"]))
                for link in self.netns(name, "address") if link["ifname"] != "lo"}

    def hosts(self, name):
        with open(f"/proc/{self.workload(name).containers[0].pid}/root/etc/hosts", encoding="ascii") as f:
            return f.read()

    def gateway(self, name, family="-4"):
        return [r["dev"] for r in self.netns(name, family, "route", "show", "default")]

    def agrees(self, name):
        """The kernel has what is shown, and no more."""
        shown = self.on(name)
        self.assertEqual({a.device: (a.mac, sorted([a.ip, a.ip6])) for a in shown.values()}, self.devices(name))
        self.assertEqual([], self.node.json("check"))
        return shown

    def hears(self, name, address, words):
        until(lambda: self.inside(name, "nc", "-w", "5", address, "80", check=False) == words + "\n", what=f"{name} hears {words} at {address}")

    def silent(self, name, address, *options):
        self.assertEqual("", self.inside(name, "nc", "-w", "1", *options, address, "80", check=False))


class Several(OnSeveral):
    def test_addresses_and_routes(self):
        shown = self.run_pod("web", "back", "front", further=[Further(network="quiet", ip="10.98.3.7", mac="02:00:00:00:00:07")])
        self.assertEqual(["back", "front", "quiet"], list(shown))
        self.assertEqual(["eth0", "eth1", "eth2"], [a.device for a in shown.values()])
        self.assertEqual(("10.98.3.7", "02:00:00:00:00:07"), (shown["quiet"].ip, shown["quiet"].mac))
        self.agrees("web")
        self.assertEqual((["eth0"], ["eth0"]), (self.gateway("web"), self.gateway("web", "-6")))
        self.assertEqual({"10.98.2.0/24": "eth1", "10.98.3.0/24": "eth2"},
                         {r["dst"]: r["dev"] for r in self.netns("web", "route") if r["dst"].endswith("/24")})
        for network in shown:
            self.assertEqual(["web"], [p["name"] for p in self.node.json("network", "inspect", network)["attached"]])
        listed = self.node.json("ps")[0]
        self.assertEqual(["front", "quiet"], [a["name"] for a in listed["further_attachments"]])

    def test_one_that_starts_again_is_on_the_same(self):
        self.run_pod("web", "back", "front", further=[Further(network="quiet", ip="10.98.3.7")])
        self.disconnect("front", "web")
        self.node.cli("restart", "-t", "0", "web")
        shown = self.agrees("web")
        self.assertEqual((["back", "quiet"], "10.98.3.7"), (list(shown), shown["quiet"].ip))
        self.connect("front", "web")
        self.node.cli("restart", "-t", "0", "web")
        self.assertEqual(["back", "quiet", "front"], list(self.agrees("web")))
        for network in ("quiet", "front", "back"):
            self.disconnect(network, "web", force=True)
        self.node.cli("restart", "-t", "0", "web")
        self.assertEqual({}, self.agrees("web"))
        self.connect("front", "web")
        self.node.cli("restart", "-t", "0", "web")
        self.assertEqual(["front"], list(self.agrees("web")))

    def test_the_way_out_is_no_internal_one(self):
        self.run_pod("web", "quiet", "back")
        self.assertEqual((["eth1"], ["eth1"]), (self.gateway("web"), self.gateway("web", "-6")))

    def test_the_command_line(self):
        self.node.cli("run", "-d", "--name", "web", "--network", "back:ip=10.98.1.9", "--network", "front:mac=02:00:00:00:00:09",
                      "-p", "8080:80", "busybox", "sleep", "1000")
        shown = self.agrees("web")
        self.assertEqual(("10.98.1.9", "02:00:00:00:00:09", 8080), (shown["back"].ip, shown["front"].mac, shown["back"].publish[0].host_port))
        for words, said in ((("--network", "back:ip"), "NAME[:ip="), (("--network", "back:ip=10.98.1.8", "--ip", "10.98.1.8"), "--ip: given twice")):
            self.assertIn(said, self.node.cli("run", "-d", *words, "busybox", "true", check=False).stderr)

    def test_published_by_the_first(self):
        self.serve("web", "hello", "back", "front", publish=[Port(host_port=8080, port=80)])
        for address in ("127.0.0.1", "::1"):
            until(lambda: fetch(address, 8080) == "hello\n", what=address)

    def test_names_of_each_network(self):
        self.run_pod("one", "back")
        self.run_pod("two", "front")
        both = self.run_pod("both", "back", "front")
        lines = lambda name: self.inside(name, "cat", "/etc/hosts")  # noqa: E731
        until(lambda: all(f"{both[n].ip}\tboth both.{n}\n{both[n].ip6}\tboth both.{n}\n" in lines(w) for n, w in (("back", "one"), ("front", "two"))),
              seconds=2, what="both are known")
        for other, network in (("one", "back"), ("two", "front")):
            self.assertIn(f"\t{other} {other}.{network}\n", lines("both"))
        self.assertNotIn("\ttwo ", lines("one"))
        self.assertNotIn("\tone ", lines("two"))
        self.assertNotIn(both["front"].ip, lines("one"))

    def test_a_port_that_is_missing(self):
        shown = self.run_pod("web", "back", "front")
        port = "nacre" + "".join(f"{int(n):02x}" for n in shown["front"].ip.split(".")).rjust(10, "0")
        self.assertEqual([], self.node.json("check"))
        subprocess.run(["ip", "link", "del", port], check=True)
        found, = json.loads(self.node.cli("-o", "json", "check", check=False).stdout)
        self.assertEqual(("port", "web", f"ports/{port} is missing"), (found["object"], found["name"], found["what"]))

    def test_a_daemon_that_is_killed(self):
        before = self.run_pod("web", "back", "front", publish=[Port(host_port=8080, port=80)])
        self.node.kill()
        self.node.start()
        self.assertEqual(before, self.agrees("web"))
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.run_pod("other", "front", ip=before["front"].ip), "web")
        self.assertEqual(2, len(ports()))

    def test_refused_whole(self):
        """None of the networks is taken where one cannot be had."""
        for code, field, further in ((Code.NOT_FOUND, "further_networks[1].network", Further(network="nobody")),
                                     (Code.ALREADY_EXISTS, "further_networks[1].network", Further(network="back")),
                                     (Code.INVALID_ARGUMENT, "further_networks[1].ip", Further(network="quiet", ip="10.1.1.1")),
                                     (Code.INVALID_ARGUMENT, "further_networks[1].ip", Further(network="quiet", ip="x")),
                                     (Code.INVALID_ARGUMENT, "further_networks[1].mac", Further(network="quiet", mac="x")),
                                     (Code.INVALID_ARGUMENT, "further_networks[1].network", Further()),
                                     (Code.INVALID_ARGUMENT, "further_networks[1].network", Further(network="host"))):
            with self.subTest(further=further):
                self.assertFails(code, lambda: self.run_pod("web", "back", "front", further=[further]), field)
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_pod("web", "none", "front"), "further_networks")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_pod("web", "back", *["front"] * 16), "further_networks")
        self.assertFalse(ports())


class Walls(OnSeveral):
    """What a pod on two networks must not make of them."""

    def test_isolation_holds_for_each_port(self):
        self.serve("one", "first", "back")
        self.serve("two", "second", "front")
        self.serve("hidden", "third", "quiet")
        both = self.run_pod("both", "back", "front")
        self.hears("both", self.on("one")["back"].ip, "first")
        self.hears("both", self.on("two")["front"].ip, "second")
        self.silent("both", self.on("hidden")["quiet"].ip)
        # Neither the other network, nor the address that the pod has there.
        self.silent("one", self.on("two")["front"].ip)
        self.silent("one", both["front"].ip)
        self.assertNotIn("bytes from", self.inside("one", "ping", "-c", "1", "-W", "1", both["front"].ip, check=False))

    def test_an_internal_one_leads_nowhere(self):
        subprocess.run(["ip", "address", "add", "198.51.100.1/32", "dev", "lo"], check=True)
        self.addCleanup(subprocess.run, ["ip", "address", "del", "198.51.100.1/32", "dev", "lo"], check=True)
        shown = self.run_pod("web", "quiet", "back")
        pid = self.workload("web").containers[0].pid
        # Its own root may lead packets there, and nothing comes of it.
        subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", "route", "add", "192.0.2.0/24", "via", "10.98.3.1", "dev", "eth0", "onlink"], check=True)
        self.assertNotIn("bytes from", self.inside("web", "ping", "-c", "1", "-W", "1", "-I", shown["quiet"].ip, "192.0.2.1", check=False))

    def test_an_address_holds_on_its_own_link_alone(self):
        """Packets with the address of one network are dropped at the port of the other."""
        two = self.run_pod("two", "front")["front"]
        both = self.run_pod("both", "back", "front")
        for family in ("ip", "ip6"):
            for network, arrives in (("front", True), ("back", False), ("front", True)):
                with self.subTest(family=family, source=network):
                    got = self.datagram("both", getattr(both[network], family), "eth1", "two", getattr(two, family))
                    self.assertEqual(arrives, got)

    def datagram(self, sender, source, device, receiver, to):
        """Whether what a pod sends from that address, by that device, is received by another one."""
        at = lambda name: ["nsenter", "-t", str(self.workload(name).containers[0].pid), "-n", sys.executable, "-c"]  # noqa: E731
        socket = f"import socket as k; s = k.socket(k.{'AF_INET6' if ':' in to else 'AF_INET'}, k.SOCK_DGRAM); "
        heard = subprocess.Popen(at(receiver) + [socket + f"s.bind(('{to}', 90)); print('', flush=True); s.settimeout(1); print(s.recv(9))"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        heard.stdout.readline()
        subprocess.run(at(sender) + [socket + f"s.setsockopt(k.SOL_SOCKET, k.SO_BINDTODEVICE, b'{device}'); s.bind(('{source}', 0)); "
                                     f"s.sendto(b'x', ('{to}', 90))"], check=True)
        return heard.communicate()[0] == "b'x'\n"

    def test_it_does_not_route_between_them(self):
        """Even where the pod forwards, with an open mind: the node takes no source but its own from it."""
        self.run_pod("one", "back")
        two = self.serve("two", "second", "front")
        both = self.run_pod("both", "back", "front")
        pid = self.workload("both").containers[0].pid
        subprocess.run(["nsenter", "-t", str(pid), "-n", "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True)
        one = self.workload("one").containers[0].pid
        subprocess.run(["nsenter", "-t", str(one), "-n", "ip", "route", "add", two["front"].ip, "via", both["back"].ip, "dev", "eth0", "onlink"],
                       check=False)
        self.silent("one", two["front"].ip)


class WhileItRuns(OnSeveral):
    def test_connect_and_disconnect(self):
        self.serve("db", "data", "back")
        self.run_pod("web")
        got = self.connect("back", "web", ip="10.98.1.77", mac="02:00:00:00:00:77")
        # Names are there when the call returns.
        db, web = self.hosts("db"), self.hosts("web")
        self.assertIn("10.98.1.77\tweb web.back\n", db)
        self.assertIn("\tdb db.back\n", web)
        self.assertEqual(("back", "10.98.1.77", "02:00:00:00:00:77", "eth1"), (got.name, got.ip, got.mac, got.device))
        self.assertEqual(["default", "back"], list(self.agrees("web")))
        self.assertEqual(["eth0"], self.gateway("web"))
        self.hears("web", "db", "data")
        self.disconnect("back", "web")
        db, web = self.hosts("db"), self.hosts("web")
        self.assertEqual((False, False), ("web" in db, "\tdb" in web))
        self.assertEqual(["default"], list(self.agrees("web")))
        self.assertNotIn("10.98.1.77", rules())
        # The name of the device is free again, and the address is.
        self.assertEqual("eth1", self.connect("front", "web").device)
        self.run_pod("other", "back", ip="10.98.1.77")

    @unittest.skipUnless(faults.has_faults(), "a build with faults")
    def test_names_that_take_long(self):
        """One container whose files are in the way does not hold up callers who change networks of others."""
        self.run_pod("db", "back")
        self.run_pod("web")
        self.node.kill()
        self.node.start(env={"NACRE_FAILPOINT": "names.write=sleep:7000"})
        started = time.monotonic()
        got = self.connect("back", "web")
        self.assertLess(time.monotonic() - started, 6)
        self.assertEqual(["default", "back"], list(self.agrees("web")))
        self.assertNotIn("\tweb ", self.hosts("db"))
        until(lambda: f"{got.ip}\tweb web.back\n" in self.hosts("db"), seconds=30, what="the name")
        self.node.kill()
        self.node.start()
        self.run_pod("next", "back")

    def test_the_way_out_is_handed_on(self):
        self.run_pod("web", "back", "quiet", "front")
        self.disconnect("back", "web")
        self.assertEqual((["eth2"], ["eth2"]), (self.gateway("web"), self.gateway("web", "-6")))
        self.assertEqual(["quiet", "front"], list(self.agrees("web")))
        self.disconnect("front", "web")
        self.assertEqual([], self.gateway("web"))
        self.connect("back", "web")
        self.assertEqual(["eth0"], self.gateway("web"))
        self.agrees("web")

    def test_off_the_last_one(self):
        self.run_pod("web", "back")
        self.disconnect("back", "web")
        self.assertEqual(({}, {}), (self.agrees("web"), self.devices("web")))
        self.assertEqual(["lo"], [link["ifname"] for link in self.netns("web", "link", "show", "up")])
        self.node.kill()
        self.node.start()
        self.connect("back", "web")
        self.assertEqual(["back"], list(self.agrees("web")))
        self.assertEqual("back", self.workload("web").network)
        until(lambda: "\tweb web.back\n" in self.inside("web", "cat", "/etc/hosts"), seconds=2, what="web sees itself")

    def test_published_ports_go_with_it(self):
        self.serve("web", "hello", "back", "front", publish=[Port(host_port=8080, port=80), Port(host_port=5353, port=53, protocol="udp")])
        until(lambda: fetch("127.0.0.1", 8080) == "hello\n", what="hello")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.disconnect("back", "web"), "--force")
        self.disconnect("back", "web", force=True)
        self.assertIsNone(fetch("127.0.0.1", 8080))
        self.assertNotIn("8080", rules())
        self.assertFalse(self.workload("web").attachment.publish)
        self.assertFalse(self.workload("web").attachment.asked.publish)
        self.run_pod("other", "back", publish=[Port(host_port=8080, port=80)])

    def test_what_cannot_be(self):
        self.run_pod("web", "back")
        for network in ("none", "host", "pod"):
            self.run_pod(network + "-pod", network)
            for call in (self.connect, self.disconnect):
                self.assertFails(Code.FAILED_PRECONDITION, lambda: call("back", network + "-pod"), f'"{network}"')
        self.node.cli("cell", "--name", "cell", "busybox", "sleep", "1000")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.connect("back", "cell"), '"own"')
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.connect("back", "web"), "name: ")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.disconnect("front", "web"), "not on the network front")
        self.assertFails(Code.NOT_FOUND, lambda: self.connect("nobody", "web"), "name: ")
        self.assertFails(Code.NOT_FOUND, lambda: self.connect("cni", "web"), "name: ")
        self.assertFails(Code.NOT_FOUND, lambda: self.connect("back", "nobody"), "target: ")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.connect("back", ""), "target: ")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.connect("", "web"), "name: ")
        for field, value in (("ip", "10.1.1.1"), ("ip6", "10.1.1.1"), ("mac", "x")):
            self.assertFails(Code.INVALID_ARGUMENT, lambda: self.connect("front", "web", **{field: value}), field + ": ")
        self.agrees("web")
        self.node.cli("stop", "-t", "0", "web")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.connect("front", "web"), "exited")

    def test_a_device_of_its_own_is_in_the_way(self):
        """What cannot be made is undone, and told."""
        self.run_pod("web", "back")
        pid = self.workload("web").containers[0].pid
        subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", "link", "add", "eth1", "type", "veth", "peer", "name", "mine"], check=True)
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.connect("front", "web"), "eth1")
        self.assertEqual((["back"], 1), (list(self.on("web")), len(ports())))
        self.assertEqual([], self.node.json("check"))

    def test_the_command_line(self):
        self.run_pod("web", "back")
        self.assertEqual("10.98.2.44\n", self.node.cli("network", "connect", "--ip", "10.98.2.44", "front", "web").stdout)
        self.assertEqual("eth2", self.node.json("network", "connect", "quiet", "web")["device"])
        self.node.cli("network", "disconnect", "-f", "front", "web")
        self.assertEqual(["back", "quiet"], list(self.agrees("web")))

    def test_it_ends_at_the_same_time(self):
        for i in range(4):
            self.run_pod(f"p{i}", "back")
            calls = [self.node.networks.Connect.future(nacre_pb2.ConnectNetworkRequest(name="front", target=f"p{i}")),
                     self.node.networks.Connect.future(nacre_pb2.ConnectNetworkRequest(name="quiet", target=f"p{i}"))]
            self.node.cli("rm", "-f", f"p{i}")
            for call in calls:
                self.assertIn(call.code(), (Code.OK, Code.ABORTED, Code.NOT_FOUND, Code.FAILED_PRECONDITION, Code.UNAVAILABLE))


@faults.spread
class Killed(OnSeveral):
    """The daemon dies in the middle: the next one has what the kernel has."""

    PLACES = ("connect.begin", "connect.begin+", "network.plug", "network.plug+", "connect.record", "connect.record+",
              "disconnect.begin", "disconnect.begin+", "network.unplug", "network.unplug+") if faults.has_faults() else ()

    @faults.for_each(PLACES)
    def killed_at(self, place):
        self.run_pod("web", "back", "front")
        self.node.kill()
        self.node.start(env={"NACRE_FAILPOINT": f"{place}=crash"})
        leaves = "dis" in place or "unplug" in place
        with self.assertRaises(grpc.RpcError):
            if leaves:
                self.disconnect("back", "web")
            else:
                self.connect("quiet", "web")
        until(lambda: not self.node.alive, what=f"the crash at {place}")
        self.node.start()
        gone = leaves and place != "disconnect.begin"
        want = {"back": 1, "front": 1}
        if gone:
            del want["back"]
        elif place == "connect.record+":
            want["quiet"] = 1
        until(lambda: list(want) == list(self.on("web")) and len(ports()) == len(want), what=f"{list(want)}")
        self.agrees("web")
        until(lambda: self.gateway("web") == ["eth1" if gone else "eth0"], what="the way out")
        self.run_pod("next", "back")

    @unittest.skipUnless(faults.has_faults(), "a build with faults")
    def test_a_record_that_cannot_be_written(self):
        self.run_pod("web", "back", "front")
        for place in ("connect.begin", "network.plug", "connect.record"):
            self.node.kill()
            self.node.start(env={"NACRE_FAILPOINT": f"{place}=error:28"})
            self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.connect("quiet", "web"))
            until(lambda: len(ports()) == 2, what="undone")
            self.assertEqual(["back", "front"], list(self.agrees("web")))
        self.node.kill()
        self.node.start(env={"NACRE_FAILPOINT": "disconnect.begin=error:28"})
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.disconnect("front", "web"))
        self.assertEqual(["back", "front"], list(self.agrees("web")))
        self.node.kill()
        self.node.start()
        self.run_pod("next", "back")


if __name__ == "__main__":
    unittest.main()
