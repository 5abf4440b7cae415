#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Identities of workloads, by SPIFFE's Workload API: who gets which, who gets none, and that they are renewed."""
import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import unittest

import grpc

import host
import nacre_test
import workload_api
from nacre_test import runtime_pb2 as rt
from nacre_test import until

CLIENT = os.path.join(os.path.dirname(os.path.abspath(nacre_test.__file__)), "workload_api.py")
INVALID = "INVALID_ARGUMENT"


def openssl(*words, data=None):
    return subprocess.run(["openssl", *words], input=data, capture_output=True, check=True).stdout


class Svid(nacre_test.NodeTest):
    CONFIG = "identity:\n  svid_life: 2s\n"

    @classmethod
    def prepare(cls):
        # The first who asks has the process that answers made, and the authority.
        cls.node.cli("run", "-d", "--name", "first", "--identity", "busybox", "sleep", "1000")
        cls.ask("first", "svids")
        cls.node.clear()

    @classmethod
    def inspect(cls, name):
        w = cls.node.json("inspect", name)
        return w, w["containers"][0]

    @classmethod
    def group(cls, pid):
        with open(f"/proc/{pid}/cgroup", encoding="ascii") as f:
            path = next(line[4:].strip() for line in f if line.startswith("0::"))
        return os.path.join(host.cgroup_root(), path)

    @classmethod
    def client(cls, name, *steps, **kwargs):
        """As a process of the container, by the socket that is mounted in it."""
        pid = cls.inspect(name)[1]["pid"]
        return subprocess.Popen([sys.executable, CLIENT, f"/proc/{pid}/root/run/spiffe/workload.sock", cls.group(pid), *steps],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)

    @classmethod
    def ask(cls, name, *steps):
        out, err = (done := cls.client(name, *steps)).communicate(timeout=60 * nacre_test.SLOWNESS)
        assert done.returncode == 0, err.decode()
        return json.loads(out)

    def check(self, svid):
        """The certificate is signed by the bundle's authority, is for the key, and says what SPIFFE asks of it. It may be over by now."""
        files = {}
        for name in ("cert", "bundle", "key"):
            files[name] = os.path.join(self.node.dir, name)
            kind = ("pkey",) if name == "key" else ("x509",)
            openssl(*kind, "-inform", "DER", "-out", files[name], data=base64.b64decode(svid[name]))
        openssl("verify", "-x509_strict", "-no_check_time", "-purpose", "sslclient", "-CAfile", files["bundle"], files["cert"])
        self.assertEqual(openssl("x509", "-in", files["cert"], "-noout", "-pubkey"), openssl("pkey", "-in", files["key"], "-pubout"))
        text = openssl("x509", "-in", files["cert"], "-noout", "-text").decode()
        self.assertIn(f"X509v3 Subject Alternative Name: critical\n                URI:{svid['id']}\n", text)
        for words in ("CA:FALSE", "X509v3 Key Usage: critical\n                Digital Signature\n"):
            self.assertIn(words, text)

    def test_who_gets_what(self):
        self.node.cli("secret", "create", "key", os.path.join(self.node.dir, "config.yaml"))
        self.addCleanup(self.node.cli, "secret", "rm", "key")
        secrets = [w for name in "ABC" for w in ("--secret", f"key,type=env,target={name}")]
        self.node.cli("run", "-d", "--name", "web", "--identity", *secrets, "busybox", "sleep", "1000")
        self.assertEqual("unix:///run/spiffe/workload.sock yes\n",
                         self.node.cli("exec", "web", "sh", "-c", 'echo $SPIFFE_ENDPOINT_SOCKET ${C:+yes}').stdout)
        self.assertNotEqual(0, self.node.cli("exec", "web", "touch", "/run/spiffe/x", check=False).returncode)
        renewed, bundles, none, twice, capital, jwt = self.ask("web", "svids2", "bundles", "none", "twice", "True", "jwt")
        self.assertEqual([INVALID] * 3, [none[0], twice[0], capital[0]])
        self.assertIn("workload.spiffe.io", none[1])
        self.assertEqual("UNIMPLEMENTED", jwt[0])
        w, c = self.inspect("web")
        (first, instance), (second, _) = renewed
        domain, _, rest = first["id"].partition("/node/")
        node = domain + "/node/" + rest.split("/")[0]
        self.assertEqual(f"{node}/workload/web/ctr/main", first["id"])
        self.assertEqual((f"{node}/pod/{w['id']}/ctr/main/inst/{c['id']}", "instance"), (instance["id"], instance["hint"]))
        self.assertEqual([{domain: first["bundle"]}], bundles)
        self.assertEqual(first["id"], second["id"])
        self.assertNotEqual((first["cert"], first["key"]), (second["cert"], second["key"]))
        for svid in (first, instance, second):
            self.check(svid)

    def test_who_gets_none(self):
        self.node.cli("run", "-d", "--name", "has", "--identity", "busybox", "sleep", "1000")
        self.node.cli("cell", "--name", "has-not", "busybox", "sleep", "1000")
        path = f"/proc/{self.inspect('has')[1]['pid']}/root/run/spiffe/workload.sock"

        # A process of the node, and another container that got hold of the socket.
        with grpc.insecure_channel("unix:" + path) as channel:
            self.assertEqual(["PERMISSION_DENIED"] * 2, [workload_api.step(channel, word)[0] for word in ("svids", "bundles")])
        out = subprocess.run([sys.executable, CLIENT, path, self.group(self.inspect("has-not")[1]["pid"]), "svids", "bundles"],
                             capture_output=True, check=True).stdout
        self.assertEqual(["PERMISSION_DENIED"] * 2, [t[0] for t in json.loads(out)])
        # One container takes at most 64 connections.
        self.assertEqual(64, self.ask("has", "many", "80"))
        # A connection that was handed on ends with the process that has made it: its id may be another one's then.
        ours, theirs = socket.socketpair()
        with ours, theirs:
            client = self.client("has", "pass", stdin=theirs)
            _, fds, _, _ = socket.recv_fds(ours, 1, 1)
            with socket.socket(fileno=fds[0]) as passed:
                passed.settimeout(30 * nacre_test.SLOWNESS)
                passed.sendall(workload_api.PREFACE)
                self.assertTrue(passed.recv(9))
                ours.send(b"x")
                client.communicate(timeout=60)
                until(lambda: not passed.recv(4096), what="the end of the connection")

    def test_a_pid_that_was_used_again(self):
        """A stranger connects and ends before the daemon looks; its pid is by then one of a container that has an identity."""
        self.node.cli("run", "-d", "--name", "victim", "--identity", "busybox", "sleep", "1000")
        pid = self.inspect("victim")[1]["pid"]
        group, path = self.group(pid), f"/proc/{pid}/root/run/spiffe/workload.sock"
        again = 0
        for _ in range(20):
            s = socket.socket(socket.AF_UNIX)
            self.addCleanup(s.close)
            os.kill(self.node.pid, signal.SIGSTOP)
            try:
                stranger = os.fork()
                if stranger == 0:
                    s.connect(path)
                    os._exit(0)
                os.waitpid(stranger, 0)
                with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as f:
                    f.write(str(stranger - 1))
                heir = os.fork()
                if heir == 0:
                    with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as f:
                        f.write(str(os.getpid()))
                    time.sleep(1000)
                    os._exit(0)
                if heir == stranger:
                    until(lambda h=heir: str(h) in open(os.path.join(group, "cgroup.procs"), encoding="ascii").read().split())
            finally:
                os.kill(self.node.pid, signal.SIGCONT)
            try:
                # It is nobody's, and ends: the pid that it came from is not looked at.
                s.settimeout(20 * nacre_test.SLOWNESS)
                with contextlib.suppress(ConnectionError):
                    s.sendall(workload_api.PREFACE)
                    while s.recv(4096):
                        pass
            finally:
                os.kill(heir, signal.SIGKILL)
                os.waitpid(heir, 0)
            again += heir == stranger
            if again == 3:
                return
        self.skipTest("the kernel gave no pid twice")

    def test_after_a_restart(self):
        self.node.cli("run", "-d", "--name", "stays", "--identity", "busybox", "sleep", "1000")
        before = self.ask("stays", "svids")[0][0]
        self.node.restart()
        # The container has the socket of the new daemon; started again it has it as well, and is the same workload.
        with grpc.insecure_channel(f"unix:/proc/{self.inspect('stays')[1]['pid']}/root/run/spiffe/workload.sock") as channel:
            self.assertEqual("PERMISSION_DENIED", workload_api.step(channel, "svids")[0])
        self.node.cli("restart", "-t", "0", "stays")
        again = self.ask("stays", "svids")[0][0]
        self.assertEqual(before[0]["id"], again[0]["id"])
        # Those who answer are others now, which are no leftover.
        self.node.clear()
        type(self).before = self.node.baseline()

    def test_mounts_that_are_refused(self):
        def run(*mounts):
            return lambda: self.node.runtime.RunPod(rt.RunPodRequest(meta={"name": "bad"}, containers=[
                rt.Container(image=self.busybox(), command=["true"], mounts=mounts)]))

        self.assertFails(grpc.StatusCode.INVALID_ARGUMENT, run(rt.Mount(identity=True, source="/tmp", target="/a")), "identity")
        self.assertFails(grpc.StatusCode.INVALID_ARGUMENT, run(rt.Mount(identity=True, target="/a"), rt.Mount(identity=True, target="/b")), "only one")


if __name__ == "__main__":
    unittest.main()
