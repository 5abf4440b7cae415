# SPDX-License-Identifier: Apache-2.0
"""Metadata services of pods, asked by curl in their network namespaces and by programs in their containers."""
import json
import os
import signal
import subprocess
import unittest

import grpc

import faults
import host
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2, until

Code = grpc.StatusCode
Ask, Metadata = runtime_pb2.PodNetwork, runtime_pb2.Metadata
IP4, IP6 = "http://169.254.169.254/", "http://[fd00:ec2::254]/"
TTL, TOKEN = "X-aws-ec2-metadata-token-ttl-seconds: ", "X-aws-ec2-metadata-token: "
# As whom the process runs that serves (src/daemon/metadata.c).
GATE_UID = 1879113721
SVID = "latest/dynamic/identity/svid"


class OfPods(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\nidentity:\n  svid_life: 1h\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    @classmethod
    def prepare(cls):
        # The first one on a network has the daemon open its sockets, and the first with an identity has the authority made.
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        cls.node.cli("run", "-d", "--name", "first", "--metadata-identity", "busybox", "sleep", "1000")
        cls.get("first", cls.token("first"), SVID)
        cls.node.clear()

    def setUp(self):
        self.addCleanup(self.node.clear)

    def pod(self, name, labels=None, containers=None, network="", parent="", ask=None, **metadata):
        self.node.runtime.RunPod(runtime_pb2.RunPodRequest(
            meta=runtime_pb2.Meta(name=name, labels=labels), network=network, parent=parent,
            containers=containers or [runtime_pb2.Container(image="busybox", args=["sleep", "1000"])],
            pod_network=Ask(metadata=Metadata(**metadata), **(ask or {}))))

    @classmethod
    def inspect(cls, name):
        return cls.node.workloads.Inspect(nacre_pb2.InspectRequest(target=name)).workload

    @classmethod
    def curl(cls, name, *words, check=True):
        """(status, body)"""
        pid = cls.inspect(name).containers[0].pid
        done = subprocess.run(["nsenter", "-t", str(pid), "-n", "curl", "-gsS", "-m", "20", "-w", "\n%{http_code}", *words],
                              capture_output=True, check=check)
        body, _, status = done.stdout.rpartition(b"\n")
        return int(status or 0), body

    @classmethod
    def token(cls, name, base=IP4, ttl="600"):
        status, body = cls.curl(name, "-X", "PUT", "-H", TTL + ttl, base + "latest/api/token")
        assert status == 200, (status, body)
        return body.decode()

    @classmethod
    def get(cls, name, token, path, base=IP4, headers=()):
        return cls.curl(name, "-H", TOKEN + token, *(w for h in headers for w in ("-H", h)), base + path)

    def gates(self):
        """The processes of this daemon that serve."""
        told = {int(p): host.read(f"/proc/{p}/status") for p in os.listdir("/proc") if p.isdigit()}
        return [p for p, text in told.items() if f"\nPPid:\t{self.node.pid}\n" in text and f"\nUid:\t{GATE_UID}\t" in text]

    def tells(self, name, path, base=IP4):
        status, body = self.get(name, self.token(name, base), path, base)
        self.assertEqual(200, status, (path, body))
        return body.decode()

    def leaves(self, name, path="latest/meta-data/"):
        """All of a directory as cloud-init crawls it: {path: value}."""
        out = {}
        for entry in self.tells(name, path).splitlines():
            if entry.endswith("/"):
                out.update(self.leaves(name, path + entry))
            else:
                out[(path + entry).partition("meta-data/")[2]] = self.tells(name, path + entry)
        return out


class Told(OfPods):
    def test_what_is_told(self):
        data = bytes(range(256)) * 64
        self.pod("web", labels={"team": "a", "example.org/tier": "front"}, ask={"hostname": "www.example"}, user_data=data)
        w = self.inspect("web")
        mac = w.attachment.mac
        device = f"network/interfaces/macs/{mac}/"
        self.assertEqual({"instance-id": w.id, "hostname": "www.example", "local-hostname": "www.example", "local-ipv4": w.attachment.ip,
                          "ipv6": w.attachment.ip6, "mac": mac, "tags/instance/team": "a", "tags/instance/example.org/tier": "front",
                          device + "mac": mac, device + "device-number": "0", device + "local-ipv4s": w.attachment.ip,
                          device + "ipv6s": w.attachment.ip6}, self.leaves("web"))
        # The dates that cloud-init asks by, and both families.
        for base, version in ((IP4, "2009-04-04"), (IP4, "2021-03-23"), (IP6, "latest")):
            self.assertEqual(w.id, self.tells("web", version + "/meta-data/instance-id", base))
        status, body = self.get("web", self.token("web"), "latest/user-data")
        self.assertEqual((200, data), (status, body))
        document = json.loads(self.tells("web", "latest/dynamic/instance-identity/document"))
        self.assertEqual((w.id, w.attachment.ip), (document["instanceId"], document["privateIp"]))
        self.assertEqual(404, self.get("web", self.token("web"), "latest/meta-data/iam/")[0])
        # It was not allowed its identity.
        self.assertEqual(404, self.get("web", self.token("web"), SVID)[0])
        shown = self.node.json("inspect", "web")["attachment"]["asked"]["metadata"]
        self.assertEqual({"user_data_bytes": len(data), "identity": False}, shown)

    def test_a_program_of_the_container(self):
        """By its own tools, beside its own server on port 80 of all addresses."""
        server = runtime_pb2.Container(name="server", image="busybox", args=["sh", "-c", "while :; do nc -l -p 80 -e echo own; done"])
        asks = runtime_pb2.Container(name="asks", image="busybox", user="1000", args=["sleep", "1000"])
        self.pod("web", containers=[server, asks])
        token = self.token("web")
        said = self.node.cli("exec", "--container", "asks", "web", "wget", "-q", "-O", "-", "--header", TOKEN + token, IP4 + "latest/meta-data/hostname")
        self.assertEqual("web", said.stdout)
        until(lambda: self.node.cli("exec", "--container", "asks", "web", "nc", "127.0.0.1", "80", check=False).stdout == "own\n",
              what="the server of the pod")

    def test_who_is_refused(self):
        self.pod("web", user_data=b"secret")
        self.pod("other")
        token = self.token("web")
        url = IP4 + "latest/user-data"
        ttl = IP4 + "latest/api/token"
        forged = ("Host: evil.example", "Host: 169.254.169.254.evil.example", "Host: 169.254.169.254:8080")
        passed_on = ("X-Forwarded-For: 203.0.113.7", "X-Forwarded-Host: x", "Forwarded: for=203.0.113.7", "Via: 1.1 proxy")
        for status, words in (
                (401, [url]), (401, [url, "-H", TOKEN + "0" * len(token)]), (401, [url, "-H", TOKEN + self.token("other")]),
                (401, [url, "-H", TOKEN + token[:-1]]), (401, [url, "-H", TOKEN + token, "-H", TOKEN + token]),
                (400, [url, "-d", "x", "-H", TOKEN + token]), (405, [url, "-X", "POST", "-H", TOKEN + token]), (405, [url, "-X", "DELETE", "-H", TOKEN + token]),
                *((403, [url, "-H", TOKEN + token, "-H", h]) for h in forged + passed_on),
                *((403, ["-X", "PUT", "-H", TTL + "60", "-H", h, ttl]) for h in forged + passed_on),
                *((400, ["-X", "PUT", "-H", TTL + n, ttl]) for n in ("0", "21601", "-1", "1h")), (400, ["-X", "PUT", ttl])):
            got, body = self.curl("web", *words)
            self.assertEqual(status, got, words)
            self.assertNotIn(b"secret", body, words)
        self.assertEqual((200, b"secret"), self.get("web", token, "latest/user-data"))
        # A token has its end.
        short = self.token("web", ttl="1")
        until(lambda: self.get("web", short, "latest/user-data")[0] == 401, what="the end of a token")

    def test_it_is_off(self):
        """By default; and nobody beside the pod reaches it, the node least of all."""
        self.node.cli("run", "-d", "--name", "plain", "busybox", "sleep", "1000")
        self.assertEqual(0, self.curl("plain", "-m", "2", IP4, check=False)[0])
        self.pod("web", user_data=b"secret")
        address = self.inspect("web").attachment.ip
        for words in ((IP4,), ("--connect-to", f"169.254.169.254:80:{address}:80", IP4)):
            self.assertEqual(0, self.curl("plain", "-m", "2", *words, check=False)[0], words)
        done = subprocess.run(["curl", "-sS", "-m", "2", IP4], capture_output=True, check=False)
        self.assertNotEqual(0, done.returncode)

    def test_identity(self):
        self.pod("web", identity=True)
        told = json.loads(self.tells("web", SVID))
        files = {}
        for name in ("x509_svid", "x509_svid_key", "bundle"):
            files[name] = os.path.join(self.node.dir, name)
            with open(files[name], "w", encoding="ascii") as f:
                f.write(told[name])

        def openssl(*words):
            return subprocess.run(["openssl", *words], capture_output=True, check=True, text=True).stdout

        openssl("verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", files["bundle"], files["x509_svid"])
        self.assertEqual(openssl("x509", "-in", files["x509_svid"], "-noout", "-pubkey"), openssl("pkey", "-in", files["x509_svid_key"], "-pubout"))
        uri = openssl("x509", "-in", files["x509_svid"], "-noout", "-ext", "subjectAltName").split("URI:")[1].strip()
        self.assertRegex(uri, r"^spiffe://nacre\.local/node/[^/]+/workload/web$")
        # The same for a while: a pod cannot have the daemon sign all the time.
        self.assertEqual(told, json.loads(self.tells("web", SVID)))
        self.assertEqual(401, self.curl("web", IP4 + SVID)[0])


class Lives(OfPods):
    def test_changes(self):
        self.pod("web")
        token = self.token("web")
        self.node.cli("network", "create", "--subnet", "10.98.7.0/24", "side")
        self.addCleanup(self.node.cli, "network", "rm", "side")
        self.addCleanup(self.node.clear)
        self.node.cli("rename", "web", "shop")
        until(lambda: self.get("shop", token, "latest/meta-data/hostname")[1] == b"shop", what="its new name")
        self.node.cli("network", "connect", "side", "shop")
        until(lambda: len(self.get("shop", token, "latest/meta-data/network/interfaces/macs/")[1].split()) == 2, what="its second device")
        self.node.cli("network", "disconnect", "side", "shop")
        until(lambda: len(self.get("shop", token, "latest/meta-data/network/interfaces/macs/")[1].split()) == 1, what="its one device")

    def test_the_next_daemon(self):
        """A pod keeps its service: when the process that serves is killed, or the daemon is, and when it is started again."""
        self.pod("web", user_data=b"x" * 16384)
        self.pod("quiet", network="none")
        self.node.restart()
        until(lambda: len(self.get("web", self.token("web"), "latest/user-data")[1]) == 16384, what="the service of the next daemon")
        self.assertEqual("quiet", self.tells("quiet", "latest/meta-data/hostname"))
        served, = self.gates()
        os.kill(served, signal.SIGKILL)
        until(lambda: self.gates() not in ([], [served]), what="another process")
        self.assertEqual("web", self.tells("web", "latest/meta-data/hostname"))
        self.node.cli("restart", "-t", "0", "web")
        self.assertEqual("web", self.tells("web", "latest/meta-data/hostname"))
        self.node.clear()
        # Those who serve are others now, which are no leftover.
        type(self).before = self.node.baseline()

    def test_where_it_works(self):
        """In any depth, in a user namespace, and for a cell on a network."""
        self.node.runtime.Spawn(runtime_pb2.SpawnRequest(meta=runtime_pb2.Meta(name="a"), kind="cell"))
        self.pod("deep", parent="a")
        self.node.cli("run", "-d", "--name", "mapped", "--metadata", "--userns", "auto", "busybox", "sleep", "1000")
        self.node.cli("cell", "--name", "cell", "--network", "default", "--metadata", "busybox", "sleep", "1000")
        for name in ("a/deep", "mapped", "cell"):
            self.assertEqual(name.rpartition("/")[2], self.tells(name, "latest/meta-data/hostname"), name)

    def test_where_it_does_not(self):
        def run(code, field, *words, **fields):
            self.assertFails(code, lambda: self.pod("bad", **fields), field, *words)

        run(Code.INVALID_ARGUMENT, "pod_network.metadata", "host", network="host")
        run(Code.INVALID_ARGUMENT, "pod_network.metadata.user_data", "16384", user_data=b"x" * 16385)
        run(Code.INVALID_ARGUMENT, "pod_network.metadata", "49152", user_data=b"x" * 16384, labels={f"l{i}": "x" * 4096 for i in range(9)})
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.node.runtime.RunCell(runtime_pb2.RunCellRequest(
            meta=runtime_pb2.Meta(name="bad"), containers=[runtime_pb2.Container(image="busybox", args=["true"])],
            pod_network=Ask(metadata=Metadata()))), "pod_network.metadata", "network")
        self.assertEqual([], self.node.json("ps"))


@faults.spread
class Killed(OfPods):
    """The daemon dies while it makes the sockets: the next one has a pod with its service, or none."""

    @faults.for_each([p for p in faults.places("network") if p.startswith("network.metadata")])
    def killed_at(self, place):
        self.node.kill()
        self.node.start(env={"NACRE_FAILPOINT": f"{place}=crash"})
        with self.assertRaises(grpc.RpcError):
            self.pod("web")
        until(lambda: not self.node.alive, what=f"the crash at {place}")
        self.node.start()
        until(lambda: all(w["state"] in ("running", "failed", "exited") for w in self.node.json("ps", "-a")), what="settled states")
        for w in self.node.json("ps"):
            self.assertEqual("web", self.tells(w["name"], "latest/meta-data/hostname"))
        self.node.clear()
        self.pod("web")
        self.assertEqual("web", self.tells("web", "latest/meta-data/hostname"))
        self.node.clear()
        type(self).before = self.node.baseline()

    @unittest.skipUnless(faults.has_faults(), "a build with faults")
    def test_sockets_that_cannot_be_made(self):
        self.node.kill()
        self.node.start(env={"NACRE_FAILPOINT": "network.metadata=error:24"})
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.pod("web"), "metadata service")
        self.node.clear()
        self.node.kill()
        self.node.start()
        self.pod("web")
        self.assertEqual("web", self.tells("web", "latest/meta-data/hostname"))
        self.node.clear()
        type(self).before = self.node.baseline()


if __name__ == "__main__":
    unittest.main()
