# SPDX-License-Identifier: Apache-2.0
"""Pods on networks that plugins of CNI make: Debian's own plugins, and some that misbehave."""
import glob
import json
import os
import shutil
import subprocess
import tempfile
import grpc

import nacre_test
from nacre_test import nacre_pb2, runtime_pb2, until

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode
Ask, Port = runtime_pb2.PodNetwork, runtime_pb2.PublishedPort
PLUGINS = "/usr/lib/cni"


class Bed:
    """Directories of configurations, plugins and their states."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="nacre-cni-")
        self.conf, self.bin, self.state = (os.path.join(self.dir, name) for name in ("net.d", "bin", "state"))
        os.mkdir(self.conf)
        os.mkdir(self.bin)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

    def config(self, more=""):
        return f"network:\n  default: none\n  cni:\n    conf_dir: {self.conf}\n    bin_dirs: {self.bin}:{PLUGINS}\n{more}"

    def put(self, name, text):
        """By another name first, as an installer does."""
        path = os.path.join(self.conf, name)
        with open(path + ".tmp", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(path + ".tmp", path)

    def network(self, file, name, *plugins, version="1.0.0", **more):
        self.put(file, json.dumps({"cniVersion": version, "name": name, "plugins": list(plugins), **more}))

    def ipam(self, subnet):
        return {"type": "host-local", "subnet": subnet, "dataDir": self.state, "routes": [{"dst": "0.0.0.0/0"}]}

    def bridge(self, subnet="10.88.0.0/16", name="cnitest0"):
        return {"type": "bridge", "bridge": name, "isGateway": True, "ipMasq": True, "capabilities": {"ips": True, "mac": True},
                "ipam": self.ipam(subnet)}

    def plugin(self, name, script):
        path = os.path.join(self.bin, name)
        with open(path + ".tmp", "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nlog=" + self.dir + "/log\n" + script)
        os.chmod(path + ".tmp", 0o755)
        os.rename(path + ".tmp", path)

    def log(self):
        try:
            with open(os.path.join(self.dir, "log"), encoding="utf-8") as f:
                return f.read().split()
        except FileNotFoundError:
            return []

    def reserved(self):
        return sorted(os.path.basename(p) for p in glob.glob(os.path.join(self.state, "*", "*.*.*.*")))

    def remove(self):
        shutil.rmtree(self.dir)


VERSIONS = """case $CNI_COMMAND in VERSION) cat >/dev/null
echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0"]}'; exit 0;; esac
"""
ANSWER = """cat >/dev/null; echo $CNI_COMMAND >>$log
case $CNI_COMMAND in ADD) echo '{"cniVersion":"1.0.0","ips":[{"address":"10.99.0.7/24"}]}';; esac
"""


class OnPlugins(nacre_test.NodeTest):
    """One daemon with a directory of configurations, which each test fills."""

    MORE = ""

    @classmethod
    def setUpClass(cls):
        cls.bed = Bed()
        cls.addClassCleanup(cls.bed.remove)
        cls.CONFIG = cls.bed.config(cls.MORE)
        super().setUpClass()

    @classmethod
    def prepare(cls):
        # The first one on a network has the kernel and the plugins keep what they keep for all of them.
        cls.bed.network("10.conflist", "first", cls.bed.bridge(), {"type": "portmap", "capabilities": {"portMappings": True}})
        cls.ready()
        cls.node.cli("run", "-d", "--name", "first", "--network", "cni", "busybox", "sleep", "1000")
        cls.node.clear()

    @classmethod
    def ready(cls, network=""):
        until(lambda: "pods can have the network of plugins" in cls.node.log() and f"network={network}" in cls.node.log(), what="a network of plugins")

    def setUp(self):
        self.addCleanup(self.leave_nothing)

    def leave_nothing(self):
        self.node.clear()
        until(lambda: not self.names() and not self.records() and not self.bed.reserved(), what="nothing is left of networks of plugins")

    def another_daemon(self):
        """What is left is compared with what the daemon that runs now has."""
        # The first pod has it open what it keeps.
        self.run_pod("again", "cni:first")
        self.leave_nothing()
        type(self).before = self.node.baseline()

    def names(self):
        return glob.glob(os.path.join(self.node.dir, "netns", "cni-*"))

    def records(self):
        return glob.glob(os.path.join(self.node.root, "cni", "*"))

    def run_pod(self, name, network="cni", command=("sleep", "1000"), **ask):
        container = runtime_pb2.Container(image="busybox", args=command)
        self.node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name=name), containers=[container], network=network,
                                                           pod_network=Ask(**ask) if ask else None))
        return self.attachment(name)

    def attachment(self, name):
        return self.node.workloads.Inspect(nacre_pb2.InspectRequest(target=name)).workload.attachment

    def inside(self, name, *words, check=True):
        return self.node.cli("exec", name, *words, check=check).stdout


class Plugins(OnPlugins):
    def test_addresses(self):
        a, b = self.run_pod("one"), self.run_pod("two", "cni", ["sh", "-c", "while :; do nc -l -p 80 -e echo hello; done"])
        self.assertEqual("cni:first", a.name)
        shown = self.inside("one", "ip", "address", "show", "eth0")
        self.assertIn(f"inet {a.ip}/16", shown)
        self.assertIn(a.mac, shown)
        self.assertIn("default via 10.88.0.1 dev eth0", self.inside("one", "ip", "route"))
        self.assertIn(f"{a.ip}\tone", self.inside("one", "cat", "/etc/hosts"))
        until(lambda: self.inside("one", "nc", "-w", "5", b.ip, "80", check=False) == "hello\n", what="the other one answers")
        self.assertEqual(sorted([a.ip, b.ip]), self.bed.reserved())
        self.assertEqual(2, len(self.names()))
        self.node.cli("rm", "-f", "one")
        until(lambda: self.bed.reserved() == [b.ip], what="the address is given back")

    def test_asked_for(self):
        a = self.run_pod("web", ip="10.88.7.7", mac="02:00:00:00:00:07", publish=[Port(host_port=8088, port=80)])
        self.assertEqual(("10.88.7.7", "02:00:00:00:00:07"), (a.ip, a.mac))
        self.assertIn("link/ether 02:00:00:00:00:07", self.inside("web", "ip", "link", "show", "eth0"))
        self.assertEqual(8088, a.publish[0].host_port)
        rules = subprocess.run(["iptables", "-t", "nat", "-S"], check=True, capture_output=True, text=True).stdout
        self.assertIn("--to-destination 10.88.7.7:80", rules)
        self.node.cli("rm", "-f", "web")
        rules = subprocess.run(["iptables", "-t", "nat", "-S"], check=True, capture_output=True, text=True).stdout
        self.assertNotIn("10.88.7.7", rules)

    def test_versions_and_kinds(self):
        subprocess.run(["ip", "link", "add", "up0", "type", "veth", "peer", "name", "down0"], check=True)
        self.addCleanup(subprocess.run, ["ip", "link", "del", "up0"], check=True)
        self.addCleanup(self.node.clear)
        subprocess.run(["ip", "link", "set", "up0", "up"], check=True)
        ptp = {"type": "ptp", "ipMasq": True, "ipam": self.bed.ipam("10.90.0.0/24")}
        macvlan = {"type": "macvlan", "master": "up0", "ipam": self.bed.ipam("10.91.0.0/24")}
        tuned = {"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.arp_ignore": "1"}}
        for n, (version, chain, part) in enumerate((("0.3.1", [ptp], "10.90.0."), ("0.4.0", [ptp, tuned], "10.90.0."),
                                                    ("1.0.0", [macvlan], "10.91.0."), ("1.0.0", [ptp, {"type": "firewall"}], "10.90.0."))):
            with self.subTest(version=version, chain=[p["type"] for p in chain]):
                self.bed.network(f"2{n}.conflist", f"net{n}", *chain, version=version)
                self.assertIn(part, self.run_pod(f"pod{n}", f"cni:net{n}").ip)
        self.assertEqual("1\n", self.inside("pod1", "cat", "/proc/sys/net/ipv4/conf/eth0/arp_ignore"))
        self.bed.put("30.conf", json.dumps({"cniVersion": "0.3.1", "name": "single", **ptp}))
        self.assertIn("10.90.0.", self.run_pod("single", "cni:single").ip)

    def test_refused(self):
        self.assertFails(Code.NOT_FOUND, lambda: self.run_pod("a", "cni:nothing"), "network", "no CNI configuration", "nothing")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_pod("a", "cni:../x"), "cni:NAME")
        self.assertFails(Code.UNIMPLEMENTED, lambda: self.run_pod("a", publish=[Port(port=80)]), "port 80")
        self.bed.network("40.conflist", "none", {"type": "missing"})
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.run_pod("a", "cni:none"), "the plugin missing is in none of the directories")

    def test_a_plugin_that_fails(self):
        self.bed.plugin("bad", "cat >/dev/null; echo $CNI_COMMAND >>$log\n"
                        "[ $CNI_COMMAND = DEL ] || { echo '{\"code\":100,\"msg\":\"no luck\"}'; exit 1; }\n")
        self.bed.network("50.conflist", "bad", {**self.bed.bridge("10.89.0.0/24", "cnitest1"), "isGateway": False}, {"type": "bad"})
        self.addCleanup(subprocess.run, ["ip", "link", "del", "cnitest1"], check=True)
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.run_pod("a", "cni:bad"), "the plugin bad failed in ADD: code 100: no luck")
        # What the ones before it did is undone.
        self.assertEqual(["ADD", "DEL"], self.bed.log())
        self.assertEqual([], self.bed.reserved())

    def test_a_daemon_that_starts_again(self):
        a = self.run_pod("one")
        self.node.restart()
        again = self.attachment("one")
        self.assertEqual((a.name, a.ip, a.mac), (again.name, again.ip, again.mac))
        self.assertEqual(1, len(self.names()))
        self.assertIn(a.ip, self.inside("one", "ip", "address", "show", "eth0"))
        # DEL uses the configuration as it was.
        self.bed.network("10.conflist", "first", {"type": "missing"})
        self.node.cli("rm", "-f", "one")
        until(lambda: not self.bed.reserved(), what="the address is given back")
        self.bed.network("10.conflist", "first", self.bed.bridge(), {"type": "portmap", "capabilities": {"portMappings": True}})
        self.another_daemon()

    def test_a_plugin_that_hangs(self):
        # Another pod does not wait for it, nor does the daemon.
        self.bed.plugin("slow", VERSIONS + ANSWER + "[ $CNI_COMMAND != ADD ] || while [ ! -e $log.go ]; do sleep 0.1; done\n")
        self.bed.network("70.conflist", "slow", {"type": "slow"})
        container = runtime_pb2.Container(image="busybox", args=["sleep", "1000"])
        call = self.node.runtime.RunPod.future(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name="slow"), network="cni:slow", containers=[container]))
        until(lambda: "ADD" in self.bed.log(), what="the plugin is at it")
        self.assertIn("10.88.", self.run_pod("quick").ip)
        self.assertFalse(call.done())
        with open(os.path.join(self.bed.dir, "log.go"), "w", encoding="utf-8"):
            pass
        call.result(timeout=60)
        self.assertEqual("10.99.0.7", self.attachment("slow").ip)


class Kubernetes(OnPlugins):
    MORE = "cri:\n  network: cni\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.api = cri_grpc.RuntimeServiceStub(cls.node.channel)

    def network_ready(self):
        conditions = {c.type: c for c in self.api.Status(cri.StatusRequest()).status.conditions}
        return conditions["NetworkReady"]

    def sandbox(self, name, **more):
        metadata = cri.PodSandboxMetadata(name=name, uid="uid-" + name, namespace="tests")
        return self.api.RunPodSandbox(cri.RunPodSandboxRequest(config=cri.PodSandboxConfig(metadata=metadata, **more))).pod_sandbox_id

    def test_a_sandbox(self):
        self.assertTrue(self.network_ready().status)
        self.bed.plugin("note", VERSIONS + "cat >$log.$CNI_COMMAND; echo $CNI_ARGS >>$log; cat <<E\n"
                        '{"cniVersion":"1.0.0","ips":[{"address":"10.88.3.3/16"},{"address":"fd00::3/64"}]}\nE\n')
        self.bed.network("00.conflist", "noted", {"type": "note", "capabilities": {"portMappings": True, "dns": True}})
        self.ready("noted")
        port = cri.PortMapping(protocol=cri.UDP, host_port=8053, container_port=53)
        pod = self.sandbox("web", port_mappings=[port], dns_config=cri.DNSConfig(servers=["10.96.0.10"], searches=["svc"], options=["ndots:5"]))
        network = self.api.PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=pod)).status.network
        self.assertEqual(("10.88.3.3", ["fd00::3"]), (network.ip, [i.ip for i in network.additional_ips]))
        self.assertEqual([f"IgnoreUnknown=1;K8S_POD_NAMESPACE=tests;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID={pod};K8S_POD_UID=uid-web"],
                         self.bed.log())
        with open(os.path.join(self.bed.dir, "log.ADD"), encoding="utf-8") as f:
            asked = json.load(f)
        self.assertEqual({"portMappings": [{"hostPort": 8053, "containerPort": 53, "protocol": "udp"}],
                          "dns": {"servers": ["10.96.0.10"], "searches": ["svc"], "options": ["ndots:5"]}}, asked["runtimeConfig"])
        self.api.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=pod))
        until(lambda: len(self.bed.log()) == 2, what="DEL")
        self.api.RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=pod))
        # The network goes, and comes back.
        os.unlink(os.path.join(self.bed.conf, "00.conflist"))
        os.rename(os.path.join(self.bed.conf, "10.conflist"), os.path.join(self.bed.dir, "aside"))
        until(lambda: not self.network_ready().status, what="no network")
        self.assertEqual("NetworkPluginNotReady", self.network_ready().reason)
        self.assertIn("no CNI configuration file in", self.network_ready().message)
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.sandbox("other"), "no CNI configuration file in")
        os.rename(os.path.join(self.bed.dir, "aside"), os.path.join(self.bed.conf, "10.conflist"))
        until(lambda: self.network_ready().status, what="a network")


class Killed(OnPlugins):
    """A daemon that is killed while plugins are at work."""

    def test_between_add_and_its_record(self):
        slow = VERSIONS + "cat >/dev/null; echo $CNI_COMMAND >>$log\n[ $CNI_COMMAND != ADD ] || sleep 300\n"
        self.bed.plugin("slow", slow)
        self.bed.network("60.conflist", "slow", {**self.bed.bridge("10.92.0.0/24", "cnitest2"), "isGateway": False}, {"type": "slow"})
        call = self.node.runtime.RunPod.future(runtime_pb2.RunPodRequest(
            meta=runtime_pb2.Meta(name="a"), network="cni:slow", containers=[runtime_pb2.Container(image="busybox", args=["sleep", "1000"])]))
        until(lambda: "ADD" in self.bed.log(), what="the plugin is at it")
        self.assertEqual(1, len(self.bed.reserved()))
        self.node.kill()
        call.cancel()
        self.bed.plugin("slow", VERSIONS + ANSWER)
        self.node.start()
        self.node.cli("rm", "-f", "a", check=False)
        until(lambda: "DEL" in self.bed.log() and not self.bed.reserved() and not self.names(), what="DEL was called")
        self.assertNotIn("sleep 300", subprocess.run(["ps", "ax"], check=True, capture_output=True, text=True).stdout)
        subprocess.run(["ip", "link", "del", "cnitest2"], check=True)
        self.another_daemon()
