# SPDX-License-Identifier: Apache-2.0
"""The node's certificate authority: one that is given, and its rotation, in which nobody loses a call."""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import grpc

import host
import nacre_test
import test_remote
import workload_api
from nacre_test import nacre_pb2, until
from test_remote import run

Code = grpc.StatusCode


def roots(pem):
    """The certificates of a text, each as its own."""
    return [block + "-----END CERTIFICATE-----\n" for block in pem.split("-----END CERTIFICATE-----\n")[:-1]]


class Caller(threading.Thread):
    """A user who calls on a new connection each time, until it is stopped, and notes what fails."""

    def __init__(self, test, name):
        super().__init__(daemon=True)
        self.files, self.port = test.files(name), test.port
        self.n, self.failed, self.over = 0, [], threading.Event()
        self.start()

    def run(self):
        ca, cert, key = (open(f, "rb").read() for f in self.files)
        while not self.over.is_set():
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
            with grpc.secure_channel(f"127.0.0.1:{self.port}", grpc.ssl_channel_credentials(ca, key, cert), options=options) as channel:
                try:
                    for _ in range(3):
                        channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=30)
                        self.n += 1
                except grpc.RpcError as e:
                    self.failed.append(e.details())

    def stop(self):
        self.over.set()
        self.join(60 * nacre_test.SLOWNESS)
        return self.failed


class Rotation(test_remote.Remote):
    @classmethod
    def settings(cls):
        return "identity:\n  svid_life: 3s\n"

    def setUp(self):
        self.assertEqual(1, len(roots(self.ca()["certificate"])))

    @classmethod
    def tearDownClass(cls):
        # The daemon was another one meanwhile, and those who answer workloads are started by the first who asks.
        cls.node.clear()
        cls.node.info.Info(nacre_pb2.InfoRequest())
        cls.before = cls.node.baseline()
        super().tearDownClass()

    def renew(self):
        """Certificates of the new authority, for the tests that come behind."""
        self.issue("alice", "--role", "admin", "--force")
        self.issue("bob", "--force")

    def ca(self, *words):
        return json.loads(self.node.cli("identity", "ca", *words, "-o", "json").stdout)

    def listener(self):
        """The root that has signed the listener's certificate, of a bundle."""
        s = self.tls(self.context("alice"))
        path = os.path.join(self.node.dir, "listener.pem")
        with open(path, "wb") as f:
            f.write(run("openssl", "x509", "-inform", "DER", input=s.getpeercert(True)))
        return path

    def signed_by(self, cert, root):
        path = os.path.join(self.node.dir, "root.pem")
        with open(path, "w", encoding="ascii") as f:
            f.write(root)
        return subprocess.run(["openssl", "verify", "-CAfile", path, cert], capture_output=True, check=False).returncode == 0

    def test_no_call_fails_and_the_old_root_goes_last(self):
        name = "rotates"
        before = roots(self.ca()["certificate"])[0]
        self.issue("carol")
        held = self.channel("carol")
        held.unary_unary("/grpc.health.v1.Health/Check")(b"")
        caller = Caller(self, "carol")
        until(lambda: caller.n > 3)
        told = self.ca("rotate")
        both = roots(told["certificate"])
        self.assertEqual((2, before), (len(both), both[0]))
        self.assertEqual(both, roots(self.ca()["certificate"]))
        # Who comes now is the new authority's, and knows both.
        self.issue(name)
        ca, cert, _ = self.files(name)
        self.assertEqual(both, roots(open(ca, encoding="ascii").read()))
        self.assertTrue(self.signed_by(cert, both[1]))
        self.assertFalse(self.signed_by(cert, both[0]))
        later = Caller(self, name)
        n = caller.n
        until(lambda: caller.n > n + 6 and later.n > 6)
        # The listener is the old one's as long as there is one who knows that alone.
        self.assertTrue(self.signed_by(self.listener(), both[0]))
        held.unary_unary("/grpc.health.v1.Health/Check")(b"")
        self.assertEqual([], caller.stop())
        # A second one would leave three in use.
        done = self.node.cli("identity", "ca", "rotate", check=False)
        self.assertIn("a rotation is in progress", done.stderr)
        self.node.restart()
        self.assertEqual(both, roots(self.ca()["certificate"]))
        until(lambda: self.remote("carol", "ps").returncode == 0, 20)
        later.stop()
        later = Caller(self, name)
        until(lambda: later.n > 3)
        channel = self.channel("carol")
        held = channel.unary_unary("/grpc.health.v1.Health/Check")
        held(b"")
        since = time.monotonic()
        told = self.ca("retire")
        self.assertEqual([both[1]], roots(told["certificate"]))
        self.assertIsNone(told["retires"])
        with self.assertRaises(grpc.RpcError):
            held(b"", timeout=20)
        channel.close()
        self.assertLess(time.monotonic() - since, 5 * nacre_test.SLOWNESS)
        self.assertRegex(self.remote("carol", "ps").stderr, "does not know the authority|not signed by the authority that is trusted here")
        n = later.n
        until(lambda: later.n > n + 6)
        self.assertEqual([], later.stop())
        self.assertIn("there is one authority", self.node.cli("identity", "ca", "retire", check=False).stderr)
        # For those that come behind.
        self.renew()

    def test_workloads_are_told_before_the_new_one_signs(self):
        self.node.cli("run", "-d", "--name", "w", "--identity", self.busybox(), "sleep", "1000")
        pid = self.node.json("inspect", "w")["containers"][0]["pid"]
        with open(f"/proc/{pid}/cgroup", encoding="ascii") as f:
            group = os.path.join(host.cgroup_root(), next(line[4:].strip() for line in f if line.startswith("0::")))
        client = subprocess.Popen([sys.executable, os.path.abspath(workload_api.__file__), f"/proc/{pid}/root/run/spiffe/workload.sock",
                                   group, "follow"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        self.addCleanup(client.stdout.close)
        self.assertTrue(client.stdout.readline())
        old, new = (run("openssl", "x509", "-outform", "DER", input=r.encode()) for r in roots(self.ca("rotate")["certificate"]))
        state = "old"
        while state != "active":
            svid = json.loads(client.stdout.readline())[0]
            bundle = base64.b64decode(svid["bundle"])
            path = os.path.join(self.node.dir, "leaf.pem")
            with open(path, "wb") as f:
                f.write(run("openssl", "x509", "-inform", "DER", input=base64.b64decode(svid["cert"])))
            by_new = self.signed_by(path, run("openssl", "x509", "-inform", "DER", input=new).decode())
            if bundle == old:
                self.assertFalse(by_new)
            else:
                self.assertEqual(old + new, bundle)
                # One message at least has both roots and the old leaf.
                if by_new:
                    self.assertEqual("told", state)
                state = "active" if by_new else "told"
        self.ca("retire")
        while base64.b64decode(json.loads(client.stdout.readline())[0]["bundle"]) != new:
            pass
        self.renew()

    def test_what_cannot_be_written_changes_nothing(self):
        before = self.ca()
        folder = os.path.join(self.node.root, "identity")
        blocker = os.path.join(folder, "ca.new")
        os.mkdir(blocker)
        try:
            self.assertIn("ca.new", self.node.cli("identity", "ca", "rotate", check=False).stderr)
        finally:
            os.rmdir(blocker)
        self.assertEqual(before, self.ca())
        self.assertEqual(0, self.remote("alice", "ps").returncode)


class Given(unittest.TestCase):
    """An authority of two files: each thing that can be wrong with it has its sentence, and the node makes none of its own."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="ca-")
        cls.key, cls.cert = os.path.join(cls.dir, "ca.key"), os.path.join(cls.dir, "ca.crt")
        cls.node = nacre_test.Node(config=f"identity:\n  ca_key: {cls.key}\n  ca_certificate: {cls.cert}\n")

    @classmethod
    def tearDownClass(cls):
        cls.node.destroy()
        shutil.rmtree(cls.dir)

    def make(self, *extensions, days="30", algorithm=("ed25519",), path=None):
        """A key and a root of it; the extensions of a CA where none are named."""
        key, cert = path or (self.key, self.cert)
        for p in (key, cert):
            if os.path.exists(p):
                os.unlink(p)
        run("openssl", "genpkey", "-algorithm", *algorithm, "-out", key)
        os.chmod(key, 0o600)
        config = os.path.join(self.dir, "config")
        with open(config, "w", encoding="ascii") as f:
            f.write("[req]\ndistinguished_name=dn\nprompt=no\n[dn]\nCN=example root\n[e]\nsubjectKeyIdentifier=hash\n" +
                    "".join(e + "\n" for e in extensions or ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign")))
        csr = run("openssl", "req", "-new", "-key", key, "-config", config)
        run("openssl", "x509", "-req", "-signkey", key, "-extfile", config, "-extensions", "e", "-days", days, "-out", cert, input=csr)

    def refused(self, *words):
        done = self.node.cli("identity", "ca", check=False)
        self.assertNotEqual(0, done.returncode)
        for w in words:
            self.assertIn(w, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.node.root, "identity", "ca")))

    def test_is_refused(self):
        key_usage, ca = "keyUsage=critical,keyCertSign,cRLSign", "basicConstraints=critical,CA:TRUE"
        self.refused("open " + self.key, "identity.ca_key")
        self.make()
        for mode in (0o640, 0o604, 0o620):
            with self.subTest(mode):
                os.chmod(self.key, mode)
                self.refused("identity.ca_key", f"its mode is {mode:04o}", "set 0600")
        os.chmod(self.key, 0o600)
        os.chown(self.key, 12345, 12345)
        self.refused("identity.ca_key", "it belongs to user 12345")
        with self.subTest("wrong key"):
            self.make()
            run("openssl", "genpkey", "-algorithm", "ed25519", "-out", self.key)
            self.refused("the private key (identity.ca_key) is not that of the certificate (identity.ca_certificate)")
        for name, how, words in (
                ("expired", {"days": "-1"}, ("identity.ca_certificate", "it has expired")),
                ("no CA:TRUE", {"e": ("basicConstraints=critical,CA:FALSE", key_usage)}, ("no basicConstraints with CA:TRUE",)),
                ("no keyCertSign", {"e": (ca, "keyUsage=critical,digitalSignature")}, ("has no keyCertSign",)),
                ("constraints of other names", {"e": (ca, key_usage, "nameConstraints=critical,permitted;URI:other.example")},
                 ("identity.ca_certificate", "permitted subtree violation")),
                ("names of another domain", {"e": (ca, key_usage, "subjectAltName=URI:spiffe://other.local")},
                 ("it is spiffe://other.local and not spiffe://nacre.local",)),
                ("RSA", {"algorithm": ("RSA", "-pkeyopt", "rsa_keygen_bits:2048")}, ("is not of Ed25519",))):
            with self.subTest(name):
                self.make(*how.pop("e", ()), **how)
                self.refused(*words)
        with self.subTest("an intermediate"):
            self.make()
            root = (os.path.join(self.dir, "root.key"), os.path.join(self.dir, "root.crt"))
            self.make(path=root)
            with open(os.path.join(self.dir, "ext"), "w", encoding="ascii") as f:
                f.write(f"{ca}\n{key_usage}\nsubjectKeyIdentifier=hash\n")
            csr = run("openssl", "req", "-new", "-key", self.key, "-subj", "/CN=below")
            run("openssl", "x509", "-req", "-CA", root[1], "-CAkey", root[0], "-set_serial", "7", "-extfile", os.path.join(self.dir, "ext"),
                "-out", self.cert, input=csr)
            self.refused("is not signed by its own key")
        for path, words in ((self.key, "is none in PEM, or is encrypted"), (self.cert, "is none in PEM")):
            with self.subTest(path):
                self.make()
                with open(path, "w", encoding="ascii") as f:
                    f.write("nothing")
                self.refused(words)
        # All of it right: it is the node's, without another start.
        self.make()
        given = open(self.cert, encoding="ascii").read()
        self.assertEqual(given, self.node.cli("identity", "ca").stdout)
        out = os.path.join(self.dir, "alice")
        self.node.cli("identity", "issue", "alice", "--days", "7", "--out", out)
        run("openssl", "verify", "-x509_strict", "-CAfile", self.cert, os.path.join(out, "alice.crt"))
        self.assertIn("put the new pair there first", self.node.cli("identity", "ca", "rotate", check=False).stderr)
        self.make()
        both = roots(self.node.cli("identity", "ca", "rotate").stdout)
        self.assertEqual([given, open(self.cert, encoding="ascii").read()], both)
        self.node.restart()
        self.assertEqual(both, roots(self.node.cli("identity", "ca").stdout))

    def test_one_file_alone_is_no_configuration(self):
        with self.assertRaises(AssertionError) as caught:
            nacre_test.Node(config=f"identity:\n  ca_key: {self.key}\n")
        self.assertIn("are given together, or neither", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
