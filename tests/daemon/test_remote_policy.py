# SPDX-License-Identifier: Apache-2.0
"""The policy of users from elsewhere, and the audit log: what each may call, and what is written of it."""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

import grpc

import nacre_test
import test_remote
from nacre_test import nacre_pb2, until

Code = grpc.StatusCode
USER = "spiffe://nacre.local/user/"


class Policy(test_remote.Remote):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.mkdtemp(prefix="policy-")
        cls.policy, cls.audit = os.path.join(cls.place, "access.yaml"), os.path.join(cls.place, "audit.log")
        cls.write(f"{USER}alice: admin\n{USER}ci-*: [ reader, /nacre.v1.WorkloadService/Remove ]\n")
        super().setUpClass()

    @classmethod
    def settings(cls):
        return f"policy: {cls.policy}\naudit: {cls.audit}\n"

    @classmethod
    def write(cls, text):
        with open(cls.policy + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(cls.policy + ".new", cls.policy)

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.issue("ci-1")
        cls.issue("eve", "--role", "admin")

    def reload(self, word):
        n = self.node.log().count(word)
        self.node.send_signal(signal.SIGHUP)
        until(lambda: self.node.log().count(word) > n, 10)

    def workloads(self, name):
        return nacre_test.pb["nacre_pb2_grpc"].WorkloadServiceStub(self.channel(name))

    def lines(self):
        with open(self.audit, encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def test_rules(self):
        self.workloads("alice").List(nacre_pb2.ListRequest())
        ci = self.workloads("ci-1")
        ci.List(nacre_pb2.ListRequest())
        for method, request, code in ((ci.Remove, nacre_pb2.RemoveRequest(target="x"), Code.NOT_FOUND),
                                      (ci.Stop, nacre_pb2.StopRequest(target="x"), Code.PERMISSION_DENIED)):
            with self.assertRaises(grpc.RpcError) as caught:
                method(request)
            self.assertEqual(caught.exception.code(), code)

    def test_no_rule_is_a_refusal_whatever_the_certificate_says(self):
        for name in ("eve", "bob"):
            with self.assertRaises(grpc.RpcError) as caught:
                self.workloads(name).List(nacre_pb2.ListRequest())
            self.assertEqual(caught.exception.code(), Code.PERMISSION_DENIED)
            for part in (self.policy, USER + name, "/nacre.v1.WorkloadService/List"):
                self.assertIn(part, caught.exception.details())

    def test_reload(self):
        text = open(self.policy, encoding="utf-8").read()
        self.addCleanup(self.reload, "was read again")
        self.addCleanup(self.write, text)
        eve = self.workloads("eve")
        self.write(text + f"{USER}eve: reader\n")
        self.reload("was read again")
        eve.List(nacre_pb2.ListRequest())
        for broken in (f"{USER}eve: king\n", "{", f"{USER}eve: [\n"):
            self.write(broken)
            self.reload("the one before stays")
            eve.List(nacre_pb2.ListRequest())
            self.assertIn(f"{self.policy}:", self.node.log().splitlines()[-1])
        os.unlink(self.policy)
        self.reload("the one before stays")
        eve.List(nacre_pb2.ListRequest())
        self.write("")
        self.reload("was read again")
        with self.assertRaises(grpc.RpcError) as caught:
            self.workloads("alice").List(nacre_pb2.ListRequest())
        self.assertEqual(caught.exception.code(), Code.PERMISSION_DENIED)
        # Who is root here needs no rule.
        self.node.cli("ps")

    def test_a_rule_does_not_replace_a_record(self):
        self.sign("ci-ghost", "URI:spiffe://nacre.local/user/ci-ghost")
        self.assertIn("has no record of certificate", self.remote("ci-ghost", "ps").stderr)

    def test_a_reload_ends_what_it_does_not_allow(self):
        text = open(self.policy, encoding="utf-8").read()
        self.addCleanup(self.reload, "was read again")
        self.addCleanup(self.write, text)
        self.write(text + f"{USER}eve: reader\n")
        self.reload("was read again")
        stubs, calls = nacre_test.pb["nacre_pb2_grpc"], []
        for name in ("eve", "alice"):
            channel = self.channel(name)
            calls.append(stubs.EventServiceStub(channel).Events(nacre_pb2.EventsRequest()))
            # The answer to another call shows that this one has begun.
            stubs.WorkloadServiceStub(channel).List(nacre_pb2.ListRequest())
        events, stays = calls
        self.write(text)
        self.reload("was read again")
        until(lambda: events.done(), what="the stream of eve ends")
        self.assertFalse(stays.done())
        stays.cancel()

    def test_nobody_forges_a_line(self):
        """A call that is reset before it is looked at is no call."""
        before = len(self.lines())
        with self.tls(self.context("ci-1")) as s:
            method = b"/nacre.v1.WorkloadService/Remove"
            head = (b"\x83\x87" + b"\x04" + bytes([len(method)]) + method + b"\x01\x01x"
                    + b"\x0f\x10\x10application/grpc")
            s.sendall(test_remote.PREFACE + test_remote.SETTINGS + len(head).to_bytes(3, "big") + b"\x01\x04\x00\x00\x00\x01" + head
                      + b"\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x08")
            time.sleep(0.3)
        self.assertEqual([], [line for line in self.lines()[before:] if line["method"].endswith("/Remove") and line["status"] == "OK"])

    def test_audit(self):
        since = len(self.lines())
        alice, bob = self.workloads("alice"), self.workloads("bob")
        alice.List(nacre_pb2.ListRequest())
        for call in (lambda: alice.Remove(nacre_pb2.RemoveRequest(target="nothing")), lambda: bob.List(nacre_pb2.ListRequest())):
            with self.assertRaises(grpc.RpcError):
                call()
        with self.assertRaises(nacre_test.CliError):
            self.node.cli("stop", "nothing")
        told = self.lines()[since:]
        self.assertEqual([(t.get("who"), t["method"], t["status"]) for t in told],
                         [(USER + "alice", "/nacre.v1.WorkloadService/Remove", "NOT_FOUND"),
                          (USER + "bob", "/nacre.v1.WorkloadService/List", "PERMISSION_DENIED"),
                          (None, "/nacre.v1.WorkloadService/Stop", "NOT_FOUND")])
        self.assertEqual(told[2]["uid"], 0)
        self.assertRegex(told[0]["serial"], "^[0-9a-f]{32}$")
        self.assertTrue(told[0]["from"].startswith("127.0.0.1:"))
        self.assertTrue(told[0]["time"].startswith(time.strftime("%Y-", time.gmtime())))
        self.assertEqual(os.stat(self.audit).st_mode & 0o777, 0o600)

    def test_audit_is_rotated(self):
        os.rename(self.audit, self.audit + ".1")
        self.reload("was read again")
        with self.assertRaises(nacre_test.CliError):
            self.node.cli("stop", "nothing")
        self.assertEqual(len(self.lines()), 1)


class FullDisk(nacre_test.NodeTest):
    """The file system of the audit log is full: by the configuration no state is changed, whoever asks."""

    IMAGES = ()
    REFUSES = True

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.mkdtemp(prefix="audit-")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "audit", cls.place], check=True)
        cls.audit = os.path.join(cls.place, "audit.log")
        cls.CONFIG = f"audit: {cls.audit}\n" + ("audit_full: refuse\n" if cls.REFUSES else "")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        try:
            super().tearDownClass()
        finally:
            subprocess.run(["umount", cls.place], check=True)
            os.rmdir(cls.place)

    def fill(self):
        with open(os.path.join(self.place, "filler"), "wb", buffering=0) as f:
            self.addCleanup(lambda: os.path.exists(f.name) and os.unlink(f.name))
            with self.assertRaises(OSError):
                while True:
                    f.write(bytes(4096))
        return f.name

    def test_what_becomes_of_a_change(self):
        self.node.cli("volume", "create", "before")
        filler = self.fill()
        if not self.REFUSES:
            # As many as the page that the log has begun takes, and some more.
            for i in range(40):
                self.node.cli("volume", "create", f"full{i}")
                self.node.cli("volume", "rm", f"full{i}")
            self.assertRegex(self.node.log(), "the audit log cannot be written .*VolumeService/.*No space left on device")
        else:
            done = self.node.cli("volume", "create", "full", check=False)
            self.assertNotEqual(0, done.returncode)
            self.assertIn(f"the audit log {self.audit} cannot be written: No space left on device", done.stderr)
            self.assertIn("audit_full: refuse", done.stderr)
            # What only looks goes on.
            self.assertEqual(["before"], [v["name"] for v in self.node.json("volume", "ls")])
            # Nor does a reload of the policy end what has begun.
            self.node.send_signal(signal.SIGHUP)
        os.unlink(filler)
        self.node.cli("volume", "rm", "before")
        with open(self.audit, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        self.assertTrue(lines[-1]["method"].startswith("/nacre.v1.VolumeService/Remove"))
        self.assertTrue(all(line["status"] for line in lines))


class FullDiskTold(FullDisk):
    """The other configuration, which is the usual one: it is changed, and the line is in the daemon's log."""

    REFUSES = False


class Start(unittest.TestCase):
    def test_an_empty_policy_lets_nobody_do_anything(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "p")
            with open(path, "w", encoding="utf-8"):
                pass
            port = test_remote.free_port()
            with nacre_test.Node(config=f'policy: {path}\nlisten: [ "127.0.0.1:{port}" ]\n') as node:
                out = os.path.join(place, "alice")
                node.cli("identity", "issue", "alice", "--role", "admin", "--out", out)
                env = {**{k: v for k, v in os.environ.items() if k not in ("NACRE_SOCKET", "NACRE_HOST")}, "NACRE_CERT_PATH": out}
                ask = lambda: subprocess.run([nacre_test.BINARY, "--host", f"localhost:{port}", "ps"], env=env, capture_output=True,  # noqa: E731
                                             text=True, check=False)
                until(lambda: "no rule of" in ask().stderr, 20)
                self.assertEqual(0, node.cli("ps").returncode)

    def test_a_broken_policy_is_no_policy(self):
        for text in (None, "alice: admin\n"):
            with tempfile.TemporaryDirectory() as place, self.subTest(text), self.assertRaises(AssertionError) as caught:
                if text:
                    with open(os.path.join(place, "p"), "w", encoding="utf-8") as f:
                        f.write(text)
                nacre_test.Node(config=f"policy: {place}/p\n")
            self.assertIn(f"{place}/p", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
