# SPDX-License-Identifier: Apache-2.0
"""Cells on networks, of the node and of nested instances, judged by the kernel's own lists and by packets."""
import os
import time
import unittest

import grpc

from nacre_test import nacre_pb2, runtime_pb2, until
from test_further import OnSeveral
from test_pods import fetch, ports, rules

Code = grpc.StatusCode
Ask, Port, Further = runtime_pb2.PodNetwork, runtime_pb2.PublishedPort, runtime_pb2.FurtherNetwork
SERVE = ("sh", "-c", "while :; do nc -l -p 80 -e echo $SAYS; done")


class Cells(OnSeveral):
    def run_cell(self, name, *networks, instance="", commands=(("sleep", "1000"),), says="", further=(), **ask):
        containers = [runtime_pb2.Container(name=f"c{n}", image="busybox", args=c, env=[f"SAYS={says}"]) for n, c in enumerate(commands)]
        self.node.runtime.RunCell(runtime_pb2.RunCellRequest(
            meta=runtime_pb2.Meta(name=name), instance=instance, containers=containers, network=networks[0] if networks else "",
            pod_network=Ask(**ask) if ask else None, further_networks=[Further(network=n) for n in networks[1:]] + list(further)))
        return self.on(f"{instance}/{name}" if instance else name)

    def spawn(self, path):
        parent, _, name = path.rpartition("/")
        self.node.runtime.Spawn(runtime_pb2.SpawnRequest(meta=runtime_pb2.Meta(name=name), parent=parent, kind="cell"))
        return path

    def networks_of(self, name):
        """The network namespaces that its containers are in."""
        return {os.readlink(f"/proc/{c.pid}/ns/net") for c in self.workload(name).containers}

    def test_addresses_and_routes(self):
        shown = self.run_cell("web", "back", "front", commands=[("sleep", "1000")] * 2,
                              further=[Further(network="quiet", ip="10.98.3.7", mac="02:00:00:00:00:07")], hostname="www.example",
                              dns=["192.0.2.53"], hosts=[runtime_pb2.HostName(name="db", address="192.0.2.7")])
        self.assertEqual(["back", "front", "quiet"], list(shown))
        self.assertEqual(("10.98.3.7", "02:00:00:00:00:07"), (shown["quiet"].ip, shown["quiet"].mac))
        self.agrees("web")
        self.assertEqual((["eth0"], ["eth0"]), (self.gateway("web"), self.gateway("web", "-6")))
        self.assertEqual(1, len(self.networks_of("web")))
        self.assertNotIn(os.readlink("/proc/self/ns/net"), self.networks_of("web"))
        for container in self.workload("web").containers:
            said = self.inside("--container", container.name, "web", "sh", "-c", "hostname; cat /etc/hostname /etc/resolv.conf /etc/hosts; ls /sys/class/net")
            for line in ("www.example\nwww.example\n", "nameserver 192.0.2.53\n", "192.0.2.7\tdb\n", "eth0\neth1\neth2\nlo\n"):
                self.assertIn(line, said)
        listed = self.node.json("ps")[0]
        self.assertEqual(("back", shown["back"].ip), (listed["attachment"]["name"], listed["attachment"]["ip"]))
        self.assertEqual(["web"], [p["name"] for p in self.node.json("network", "inspect", "front")["attached"]])

    def test_at_any_depth(self):
        """Cells of nested instances, of the node, and pods: packets, names and published ports between all of them."""
        for path in ("a", "a/b", "a/b/c"):
            self.spawn(path)
        self.run_cell("deep", "back", instance="a/b/c", commands=[SERVE], says="from-below", publish=[Port(host_port=8080, port=80)])
        self.run_cell("top", "back", "front", commands=[SERVE], says="from-the-node")
        self.run_cell("alone", "front", instance="a")
        self.run_pod("pod", "back")
        self.agrees("a/b/c/deep")
        deep, top = self.on("a/b/c/deep")["back"], self.on("top")["back"]
        for name, other, words in (("pod", "deep", "from-below"), ("top", "deep", "from-below"), ("a/b/c/deep", "top", "from-the-node")):
            until(lambda: f"\t{other} {other}.back\n" in self.inside(name, "cat", "/etc/hosts"), seconds=2, what=f"{name} sees {other}")
            self.hears(name, other, words)
        self.hears("pod", deep.ip6, "from-below")
        for address in ("127.0.0.1", "::1"):
            until(lambda: fetch(address, 8080) == "from-below\n", what=address)
        # Not on that network.
        self.silent("a/alone", deep.ip)
        self.silent("a/alone", top.ip)
        self.assertNotIn("\tdeep ", self.inside("a/alone", "cat", "/etc/hosts"))
        # A pod in an instance has an instance of its own, in that one.
        self.node.cli("run", "-d", "--name", "low", "--in", "a/b", "--network", "back", "-p", "8082:80", "-e", "SAYS=lower", "busybox", *SERVE)
        low = self.agrees("a/b/low")["back"]
        self.hears("pod", low.ip, "lower")
        until(lambda: fetch("127.0.0.1", 8082) == "lower\n", what="its port")
        self.assertEqual("eth1", self.connect("front", "a/b/low").device)
        self.agrees("a/b/low")
        self.node.kill()
        self.node.start()
        self.assertEqual(["back", "front"], list(self.agrees("a/b/low")))
        self.hears("a/b/low", deep.ip, "from-below")
        # Its instances end, and all of it with them.
        self.node.cli("stop", "-t", "0", "a/b")
        until(lambda: low.ip not in rules() and "8082" not in rules(), what="the rules of the pod are gone")
        until(lambda: deep.ip not in rules() and "8080" not in rules(), what="its rules are gone")
        until(lambda: "\tdeep" not in self.inside("pod", "cat", "/etc/hosts"), seconds=2, what="its name is gone")
        self.hears("pod", "top", "from-the-node")
        self.run_pod("next", "back")

    def test_connect_and_disconnect(self):
        self.spawn("a")
        self.serve("db", "data", "back")
        for name, instance in (("node", ""), ("nested", "a")):
            with self.subTest(instance=instance):
                path = f"{instance}/{name}".strip("/")
                self.run_cell(name, "front", instance=instance)
                self.assertEqual("eth1", self.connect("back", path).device)
                self.assertEqual(["front", "back"], list(self.agrees(path)))
                until(lambda: "\tdb db.back\n" in self.inside(path, "cat", "/etc/hosts"), seconds=2, what="it sees db")
                self.hears(path, "db", "data")
                self.disconnect("front", path)
                self.assertEqual((["back"], ["eth1"]), (list(self.agrees(path)), self.gateway(path)))
                self.assertFails(Code.FAILED_PRECONDITION, lambda: self.disconnect("front", path), "not on the network")

    def test_daemon_and_keepers_that_are_killed(self):
        self.spawn("a")
        self.run_cell("top", "back", commands=[SERVE], says="hello", publish=[Port(host_port=8080, port=80)])
        self.run_cell("in", "back", instance="a", commands=[SERVE], says="inside")
        before = [self.on(n) for n in ("top", "a/in")]
        self.node.kill()
        until(lambda: fetch("127.0.0.1", 8080) == "hello\n", what="it goes on")
        self.node.start()
        self.assertEqual(before, [self.agrees(n) for n in ("top", "a/in")])
        self.hears("top", before[1]["back"].ip, "inside")
        self.connect("front", "a/in")
        self.assertEqual(["back", "front"], list(self.agrees("a/in")))
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.run_cell("other", "back", ip=before[0]["back"].ip), "top")
        # The keeper of the instance: what was in it is gone, with its ports and rules.
        with open(f"/proc/{self.workload('a/in').containers[0].pid}/stat", encoding="ascii") as f:
            os.kill(int(f.read().rpartition(")")[2].split()[1]), 9)
        until(lambda: before[1]["back"].ip not in rules() and len(ports()) == 1, what="nothing of it is left")
        self.assertEqual("hello\n", fetch("127.0.0.1", 8080))
        self.run_pod("pod", "back")
        self.hears("pod", before[0]["back"].ip, "hello")

    def test_a_daemon_that_is_killed_while_it_starts(self):
        """At whatever moment: the cell runs and has what the kernel has, or nothing of it is left."""
        for milliseconds in (0, 1, 2, 4, 8, 16, 32):
            with self.subTest(milliseconds=milliseconds):
                call = self.node.runtime.RunCell.future(runtime_pb2.RunCellRequest(
                    meta=runtime_pb2.Meta(name="web"), network="back", pod_network=Ask(publish=[Port(host_port=8080, port=80)]),
                    containers=[runtime_pb2.Container(image="busybox", args=["sleep", "1000"])]))
                time.sleep(milliseconds / 1000)
                self.node.kill()
                call.cancel()
                self.node.start()
                until(lambda: [w.state for w in self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads] in ([], ["running"]),
                      what="it runs, or is gone")
                if self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads:
                    self.agrees("web")
                    self.node.cli("rm", "-f", "web")
                until(lambda: not ports() and "8080" not in rules(), what="nothing of it is left")
                self.assertEqual([], self.node.json("check"))
        self.run_pod("next", "back", publish=[Port(host_port=8080, port=80)])

    def test_one_that_starts_again_is_on_the_same(self):
        self.run_cell("web", "back", "quiet", commands=[SERVE], says="again", publish=[Port(host_port=8080, port=80)], ip="10.98.1.9")
        first = self.networks_of("web")
        self.node.cli("restart", "-t", "0", "web")
        shown = self.agrees("web")
        self.assertEqual((["back", "quiet"], "10.98.1.9"), (list(shown), shown["back"].ip))
        self.assertTrue(first.isdisjoint(self.networks_of("web")))
        until(lambda: fetch("127.0.0.1", 8080) == "again\n", what="its port")

    def test_a_program_that_cannot_be_started(self):
        for command in (("/nowhere",), ("sh", "-c", "exit 3")):
            with self.subTest(command=command):
                self.node.cli("cell", "--name", "web", "--network", "back", "-p", "8080:80", "busybox", *command, check=False)
                self.node.cli("wait", "web", check=False)
                until(lambda: not ports() and "8080" not in rules(), what="nothing of it is left")
                self.node.cli("rm", "web")

    def test_the_command_line(self):
        self.node.cli("cell", "--name", "web", "--network", "back:ip=10.98.1.9", "--network", "front:mac=02:00:00:00:00:09", "-p", "8080:80",
                      "--hostname", "www", "--add-host", "db:192.0.2.7", "busybox", "sleep", "1000")
        shown = self.agrees("web")
        self.assertEqual(("10.98.1.9", "02:00:00:00:00:09", 8080), (shown["back"].ip, shown["front"].mac, shown["back"].publish[0].host_port))
        self.assertIn("8080", self.node.cli("port", "web").stdout)
        self.node.cli("network", "connect", "quiet", "web")
        self.assertEqual(["back", "front", "quiet"], list(self.agrees("web")))
        self.node.cli("cell", "--name", "none", "--network", "none", "busybox", "sleep", "1000")
        self.assertEqual({}, self.devices("none"))

    def test_what_cannot_be(self):
        for code, field, networks, more in (
                (Code.NOT_FOUND, "network", ["nobody"], {}), (Code.INVALID_ARGUMENT, "network", ["cni"], {}), (Code.INVALID_ARGUMENT, "network", ["pod"], {}),
                (Code.INVALID_ARGUMENT, "network", ["Not a name"], {}), (Code.INVALID_ARGUMENT, "pod_network.ip", ["back"], {"ip": "10.1.1.1"}),
                (Code.INVALID_ARGUMENT, "pod_network.publish", ["own"], {"publish": [Port(port=80)]}),
                (Code.INVALID_ARGUMENT, "pod_network.ip", ["host"], {"ip": "10.98.1.3"}),
                (Code.FAILED_PRECONDITION, "pod_network.publish", ["quiet"], {"publish": [Port(port=80)]}),
                (Code.NOT_FOUND, "further_networks[0].network", ["back", "nobody"], {}),
                (Code.INVALID_ARGUMENT, "further_networks", ["own", "back"], {})):
            with self.subTest(networks=networks, **more):
                self.assertFails(code, lambda: self.run_cell("web", *networks, **more), field)
        self.run_cell("own")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.connect("back", "own"), '"own"')
        self.assertEqual(["own"], [w.name for w in self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads])
        self.assertFalse(ports())


if __name__ == "__main__":
    unittest.main()
