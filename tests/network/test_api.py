# SPDX-License-Identifier: Apache-2.0
"""Networks as the API has them: bad input of each field, what is shown, and the networks themselves."""
import grpc

import nacre_test
from nacre_test import nacre_pb2, runtime_pb2

Code = grpc.StatusCode
BAD, NONE, TAKEN, STATE, LATER = (Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.ALREADY_EXISTS, Code.FAILED_PRECONDITION,
                                  Code.UNIMPLEMENTED)
Ask, Port, Host = runtime_pb2.PodNetwork, runtime_pb2.PublishedPort, runtime_pb2.HostName


def pod(network="default", ask=None, name="", **fields):
    container = runtime_pb2.Container(image="busybox", args=["sleep", "1000"])
    return runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name=name), containers=[container], network=network, pod_network=ask, **fields)


def publish(**fields):
    return Ask(publish=[Port(**{"port": 80, **fields})])


WRONG = [
    ("ip", Ask(ip="10.0.0")), ("ip", Ask(ip="10.0.0.1/24")), ("ip", Ask(ip="fd00::1")), ("ip", Ask(ip="web")),
    ("ip6", Ask(ip6="10.0.0.1")), ("ip6", Ask(ip6="fe80::1%eth0")), ("ip6", Ask(ip6="fd00::1/64")),
    ("mac", Ask(mac="02:00")), ("mac", Ask(mac="01:00:00:00:00:05")), ("mac", Ask(mac="00:00:00:00:00:00")),
    ("publish[0].port", publish(port=0)), ("publish[0].port", publish(port=65536)), ("publish[0].port", publish(port=65535, count=2)),
    ("publish[0].port", publish(port=2**32 - 1, count=1024)),
    ("publish[0].host_port", publish(host_port=65536)), ("publish[0].host_port", publish(host_port=65000, count=1000)),
    ("publish[0].count", publish(count=1025)), ("publish[0].count", publish(count=2**32 - 1)),
    ("publish[0].protocol", publish(protocol="TCP")), ("publish[0].protocol", publish(protocol="icmp")),
    ("publish[0].host_ip", publish(host_ip="localhost")), ("publish[0].host_ip", publish(host_ip="0.0.0.0")),
    ("publish[0].host_ip", publish(host_ip="::")), ("publish[0].host_ip", publish(host_ip="10.0.0.0/8")),
    ("publish", Ask(publish=[Port(port=1, count=1000), Port(port=1, count=25)])),
    ("publish[1].host_port", Ask(publish=[Port(host_port=80, port=1, count=3), Port(host_port=82, port=9)])),
    ("publish[1].host_port", Ask(publish=[Port(host_port=80, port=1, host_ip="127.0.0.1"), Port(host_port=80, port=1)])),
    ("dns", Ask(dns=["10.0.0.1"] * 4)), ("dns[1]", Ask(dns=["10.0.0.1", "dns.example"])), ("dns[0]", Ask(dns=[""])),
    ("dns[0]", Ask(dns=["10.0.0.1\nsearch x"])),
    ("dns_search", Ask(dns_search=["a"] * 33)), ("dns_search[0]", Ask(dns_search=["a b"])), ("dns_search[0]", Ask(dns_search=["a\n"])),
    ("dns_search[1]", Ask(dns_search=["a", "."])), ("dns_search[10]", Ask(dns_search=["x" * 200] * 11)),
    ("dns_option", Ask(dns_option=["rotate"] * 33)), ("dns_option[0]", Ask(dns_option=["a b"])), ("dns_option[0]", Ask(dns_option=[""])),
    ("dns_option[0]", Ask(dns_option=["x" * 65])),
    ("hosts", Ask(hosts=[Host(name="a", address="10.0.0.1")] * 257)), ("hosts[0].name", Ask(hosts=[Host(address="10.0.0.1")])),
    ("hosts[0].name", Ask(hosts=[Host(name="a\tb", address="10.0.0.1")])), ("hosts[0].address", Ask(hosts=[Host(name="a")])),
    ("hosts[0].address", Ask(hosts=[Host(name="a", address="b")])),
    ("hostname", Ask(hostname="-a")), ("hostname", Ask(hostname="a" * 65)), ("hostname", Ask(hostname="a\n")), ("hostname", Ask(hostname="a..b")),
    ("rate_to_pod", Ask(rate_to_pod=7999)), ("rate_from_pod", Ask(rate_from_pod=10**12 + 1)),
]
ONLY_ON_ONE = [("ip", Ask(ip="10.0.0.1")), ("ip6", Ask(ip6="fd00::1")), ("mac", Ask(mac="02:00:00:00:00:05")), ("publish", publish()),
               ("rate_to_pod", Ask(rate_to_pod=8000)), ("rate_from_pod", Ask(rate_from_pod=8000))]

CREATES = [
    (BAD, "name", {}), (BAD, "name", {"name": "A"}), (BAD, "name", {"name": "x" * 64}), (BAD, "name", {"name": "host"}),
    (BAD, "name", {"name": "none"}), (BAD, "name", {"name": "pod"}), (BAD, "name", {"name": "own"}),
    (BAD, "subnets[0]", {"name": "a", "subnets": ["10.0.0.0"]}), (BAD, "subnets[0]", {"name": "a", "subnets": ["10.0.0.1/24"]}),
    (BAD, "subnets[0]", {"name": "a", "subnets": ["x"]}), (BAD, "subnets[1]", {"name": "a", "subnets": ["10.0.0.0/24", "10.0.1.0/24"]}),
    (BAD, "subnets[0]", {"name": "a", "subnets": ["fd00::/64"], "no_ipv6": True}),
    (BAD, "gateway", {"name": "a", "gateway": "10.0.0.1"}), (BAD, "gateway", {"name": "a", "subnets": ["10.0.0.0/24"], "gateway": "10.0.1.1"}),
    (BAD, "gateway", {"name": "a", "subnets": ["10.0.0.0/24"], "gateway": "x"}),
]


class BadInput(nacre_test.NodeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    def refused(self, code, field, call):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        self.assertEqual((code, field), (caught.exception.code(), caught.exception.details().split(": ")[0]), caught.exception.details())
        return caught.exception.details()

    def run_pod(self, *args, **fields):
        return self.node.runtime.RunPod(pod(*args, **fields))

    def test_each_field(self):
        for field, ask in WRONG:
            for network in ("default", "none", ""):
                with self.subTest(field=field, ask=str(ask)[:200], network=network):
                    self.refused(BAD, "pod_network." + field, lambda: self.run_pod(network, ask))
        self.assertFalse(self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads)

    def test_without_a_network(self):
        for field, ask in ONLY_ON_ONE:
            with self.subTest(field=field):
                for network in ("none", "pod", "host"):
                    self.assertIn(f'"{network}"', self.refused(BAD, "pod_network." + field, lambda: self.run_pod(network, ask)))
                # tests/lib's nodes are configured so.
                self.assertIn("network.default", self.refused(STATE, "pod_network." + field, lambda: self.run_pod("", ask)))

    def test_where_there_is_none_yet(self):
        self.node.cli("spawn", "--name", "a")
        self.run_pod("", Ask(hostname="deep"), name="in", parent="a")
        self.assertEqual("deep\n", self.node.cli("exec", "a/in", "hostname").stdout)
        self.node.clear()

    def test_names_without_a_network(self):
        """Files and name are a pod's whatever its network."""
        ask = Ask(hostname="www.example", dns=["192.0.2.53", "2001:DB8::53"], dns_search=["a.example"], dns_option=["ndots:2"],
                  hosts=[Host(name="db", address="192.0.2.7")])
        for network in ("", "none", "host"):
            with self.subTest(network=network):
                self.run_pod(network, ask, name="web")
                read = self.node.cli("exec", "web", "sh", "-c", "hostname; cat /etc/hostname; grep -v ^search /etc/resolv.conf; cat /etc/hosts")
                for line in ("www.example\nwww.example\n", "nameserver 192.0.2.53\nnameserver 2001:db8::53\n", "\noptions ndots:2\n",
                             "192.0.2.7\tdb\n"):
                    self.assertIn(line, read.stdout)
                shown = self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="web")).workload
                self.assertEqual(ask, shown.attachment.asked)
                self.assertEqual(("", network or "pod"), (shown.attachment.name, shown.network))
                self.node.clear()

    def test_networks(self):
        service = self.node.networks
        for code, field, fields in CREATES:
            with self.subTest(fields=fields):
                self.refused(code, field, lambda: service.CreateNetwork(nacre_pb2.CreateNetworkRequest(**fields)))
        for name, code in (("", BAD), ("A", BAD)):
            self.refused(code, "name", lambda: service.InspectNetwork(nacre_pb2.InspectNetworkRequest(name=name)))
            self.refused(code, "name", lambda: service.RemoveNetwork(nacre_pb2.RemoveNetworkRequest(name=name)))
        self.refused(NONE, "name", lambda: service.InspectNetwork(nacre_pb2.InspectNetworkRequest(name="nobody")))
