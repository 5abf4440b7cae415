# SPDX-License-Identifier: Apache-2.0
"""Users from elsewhere: certificates, mutual TLS, what a stranger is told, and what becomes of a connection."""
import contextlib
import json
import os
import pty
import re
import select
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

import grpc

import nacre_test
from nacre_test import nacre_pb2, until

Code = grpc.StatusCode
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
# What PKCS #8 has in front of the 32 bytes of an Ed25519 key.
PKCS8_ED25519 = bytes.fromhex("302e020100300506032b657004220420")
CA_MAGIC = b"nacre-ca-1\n"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(*args, **kwargs):
    return subprocess.run(args, check=True, capture_output=True, **kwargs).stdout


class Remote(nacre_test.NodeTest):
    """A node that listens, with an admin (alice) and a reader (bob)."""

    @classmethod
    def setUpClass(cls):
        cls.port = free_port()
        cls.CONFIG = (cls.settings() if "listen" in cls.settings() else
                      f'listen: [ "127.0.0.1:{cls.port}" ]\n' + cls.settings()) + "listen_names: [ node.example ]\n"
        super().setUpClass()

    @classmethod
    def settings(cls):
        """What else the configuration says."""
        return ""

    @classmethod
    def prepare(cls):
        cls.certs = os.path.join(cls.node.dir, "certs")
        cls.issue("alice", "--role", "admin")
        cls.issue("bob")

    @classmethod
    def issue(cls, name, *options):
        """The directory with ca.crt, NAME.crt and NAME.key."""
        out = os.path.join(cls.certs, name)
        os.makedirs(cls.certs, exist_ok=True)
        cls.node.cli("identity", "issue", name, "--out", out, *options)
        return out

    def files(self, name):
        base = os.path.join(self.certs, name)
        return [os.path.join(base, f) for f in ("ca.crt", f"{name}.crt", f"{name}.key")]

    def channel(self, name):
        ca, cert, key = (open(f, "rb").read() for f in self.files(name))
        credentials = grpc.ssl_channel_credentials(ca, key, cert)
        channel = grpc.secure_channel(f"127.0.0.1:{self.port}", credentials,
                                      options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)])
        self.addCleanup(channel.close)
        return channel

    def remote(self, name, *words, host=None, **kwargs):
        """The command line as a user elsewhere has it."""
        env = {k: v for k, v in os.environ.items() if k not in ("NACRE_SOCKET", "NACRE_HOST")}
        env["NACRE_CERT_PATH"] = os.path.join(self.certs, name)
        return subprocess.run([nacre_test.BINARY, "--host", host or f"localhost:{self.port}", *words], env=env,
                              capture_output=True, text=True, timeout=60 * nacre_test.SLOWNESS, **kwargs)

    def context(self, name=None, **changes):
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        c.load_verify_locations(self.files("alice")[0])
        c.set_alpn_protocols(["h2"])
        if name:
            _, cert, key = self.files(name)
            c.load_cert_chain(changes.get("cert", cert), changes.get("key", key))
        return c

    def tls(self, context):
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=10 * nacre_test.SLOWNESS)
        self.addCleanup(raw.close)
        s = context.wrap_socket(raw, server_hostname="node.example")
        self.addCleanup(s.close)
        return s

    def refusal(self, context):
        """How a connection ends that is not let in."""
        with self.assertRaises(OSError) as caught:
            s = self.tls(context)
            if not s.recv(1):
                raise ConnectionResetError("closed")
        return str(caught.exception)

    # -- certificates by hand, as the authority would never make them --

    LEAF = {"basicConstraints": "critical,CA:FALSE", "keyUsage": "critical,digitalSignature", "extendedKeyUsage": "serverAuth,clientAuth",
            "authorityKeyIdentifier": "keyid"}

    def sign(self, name, uri, days=1, **changes):
        """NAME.crt and NAME.key below certs/NAME, signed with the node's own key; changes: of its extensions, None: without."""
        base = os.path.join(self.certs, name)
        os.makedirs(base, exist_ok=True)
        with open(os.path.join(self.node.root, "identity", "ca"), "rb") as f:
            ca = f.read()
        self.assertTrue(ca.startswith(CA_MAGIC))
        paths = {k: os.path.join(base, k) for k in ("ca.der", "ca.key", "ca.crt", f"{name}.key", "csr", f"{name}.crt", "ext")}
        with open(paths["ca.der"], "wb") as f:
            f.write(ca[len(CA_MAGIC) + 32:])
        with open(paths["ca.key"], "wb") as f:
            f.write(PKCS8_ED25519 + ca[len(CA_MAGIC):len(CA_MAGIC) + 32])
        run("openssl", "x509", "-inform", "DER", "-in", paths["ca.der"], "-out", paths["ca.crt"])
        run("openssl", "pkey", "-inform", "DER", "-in", paths["ca.key"], "-out", paths["ca.key"] + ".pem")
        run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", paths[f"{name}.key"])
        os.chmod(paths[f"{name}.key"], 0o600)
        run("openssl", "req", "-new", "-key", paths[f"{name}.key"], "-subj", "/CN=x", "-out", paths["csr"])
        with open(paths["ext"], "w", encoding="ascii") as f:
            wanted = {**self.LEAF, "subjectAltName": uri, **changes}
            f.write("".join(f"{k}={v}\n" for k, v in wanted.items() if v))
        run("openssl", "x509", "-req", "-in", paths["csr"], "-CA", paths["ca.crt"], "-CAkey", paths["ca.key"] + ".pem",
            "-set_serial", "0x1234567890", "-extfile", paths["ext"], "-days", str(days), "-out", paths[f"{name}.crt"])


class Identities(Remote):
    def test_files_and_modes(self):
        ca, cert, key = self.files("alice")
        self.assertEqual(os.stat(key).st_mode & 0o777, 0o600)
        text = run("openssl", "x509", "-in", cert, "-noout", "-text").decode()
        self.assertIn("URI:spiffe://nacre.local/user/alice", text)
        self.assertIn("Subject: CN = alice", text)
        self.assertIn("Digital Signature", text)
        run("openssl", "verify", "-x509_strict", "-CAfile", ca, cert)
        self.assertEqual(run("openssl", "pkey", "-in", key, "-pubout"), run("openssl", "x509", "-in", cert, "-noout", "-pubkey"))
        self.assertEqual(self.node.cli("identity", "ca").stdout, open(ca, encoding="ascii").read())

    def test_a_life_in_days(self):
        out = self.issue("days", "--days", "3")
        end = run("openssl", "x509", "-in", os.path.join(out, "days.crt"), "-noout", "-enddate").decode().split("=")[1]
        left = ssl.cert_time_to_seconds(end.strip()) - time.time()
        self.assertTrue(3 * 86400 - 300 < left <= 3 * 86400, left)

    def test_does_not_overwrite(self):
        out = self.issue("twice")
        before = open(os.path.join(out, "twice.key"), encoding="ascii").read()
        with self.assertRaises(nacre_test.CliError) as caught:
            self.issue("twice")
        self.assertIn("is there already", str(caught.exception))
        self.assertEqual(open(os.path.join(out, "twice.key"), encoding="ascii").read(), before)
        self.issue("twice", "--force")
        self.assertNotEqual(open(os.path.join(out, "twice.key"), encoding="ascii").read(), before)

    def test_the_layout_of_aurae(self):
        out = self.issue("nova", "--role", "admin", "--layout", "aurae")
        self.assertEqual(sorted(os.listdir(out)), ["_signed.client.nova.crt", "ca.crt", "client.nova.key", "config"])
        self.assertEqual(os.stat(os.path.join(out, "client.nova.key")).st_mode & 0o777, 0o600)
        told = dict(re.findall(r'^(\w+) = "(.*)"$', open(os.path.join(out, "config"), encoding="ascii").read(), re.MULTILINE))
        self.assertEqual(told["socket"], f"127.0.0.1:{self.port}")
        # As its clients connect: the name is a constant of theirs.
        ca, cert, key = (open(told[k], "rb").read() for k in ("ca_crt", "client_crt", "client_key"))
        with grpc.secure_channel(told["socket"], grpc.ssl_channel_credentials(ca, key, cert),
                                 options=[("grpc.ssl_target_name_override", "server.unsafe.aurae.io")]) as channel:
            self.assertEqual(channel.unary_unary("/grpc.health.v1.Health/Check")(b""), b"\x08\x01")
        with self.assertRaises(nacre_test.CliError):
            self.issue("vega", "--layout", "docker")

    def test_lists(self):
        rows = json.loads(self.node.cli("identity", "ls", "-o", "json").stdout)
        alice = next(r for r in rows if r["name"] == "alice")
        self.assertEqual((alice["role"], alice["id"], alice["revoked"]), ("admin", "spiffe://nacre.local/user/alice", None))
        self.assertRegex(alice["serial"], "^[0-9a-f]{32}$")
        self.assertRegex(self.node.cli("identity", "ls").stdout, r"alice +admin +valid .* UTC +[0-9a-f]{32}\n")

    def test_bad_requests(self):
        stub = nacre_test.pb["nacre_pb2_grpc"].IdentityServiceStub(self.node.channel)
        key = run("openssl", "pkey", "-in", self.files("alice")[2], "-pubout", "-outform", "DER")
        rsa = run("openssl", "pkey", "-pubout", "-outform", "DER", input=run(
            "openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"))
        p384 = run("openssl", "pkey", "-pubout", "-outform", "DER", input=run(
            "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"))
        for field, request in {"name": dict(name="a/b", public_key=key), "days": dict(name="x", public_key=key, days=366),
                               "public_key": dict(name="x"), "role": dict(name="x", public_key=key, role="king")}.items():
            with self.subTest(field), self.assertRaises(grpc.RpcError) as caught:
                stub.Issue(nacre_pb2.IssueRequest(**request))
            self.assertEqual(caught.exception.code(), Code.INVALID_ARGUMENT)
            self.assertTrue(caught.exception.details().startswith(field), caught.exception.details())
        for other in (rsa[:128], p384, b"\0" * 44, key[:-1], key + b"\0"):
            with self.assertRaises(grpc.RpcError) as caught:
                stub.Issue(nacre_pb2.IssueRequest(name="x", public_key=other))
            self.assertIn(caught.exception.code(), (Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION))
        with self.assertRaises(grpc.RpcError) as caught:
            stub.Revoke(nacre_pb2.RevokeRequest(target="nobody"))
        self.assertEqual(caught.exception.code(), Code.NOT_FOUND)


class Calls(Remote):
    def test_grpcio(self):
        stub = nacre_test.pb["nacre_pb2_grpc"].WorkloadServiceStub(self.channel("alice"))
        self.assertEqual(list(stub.List(nacre_pb2.ListRequest()).workloads), [])
        health = self.channel("bob").unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(health(b""), b"\x08\x01")

    def test_a_reader_looks_and_does_nothing(self):
        channel = self.channel("bob")
        stub = nacre_test.pb["nacre_pb2_grpc"].WorkloadServiceStub(channel)
        stub.List(nacre_pb2.ListRequest())
        for method, request in ((stub.Remove, nacre_pb2.RemoveRequest(target="x")), (stub.Stop, nacre_pb2.StopRequest(target="x"))):
            with self.assertRaises(grpc.RpcError) as caught:
                method(request)
            self.assertEqual(caught.exception.code(), Code.PERMISSION_DENIED)
            self.assertIn("spiffe://nacre.local/user/bob", caught.exception.details())
        identity = nacre_test.pb["nacre_pb2_grpc"].IdentityServiceStub(channel)
        with self.assertRaises(grpc.RpcError) as caught:
            identity.Issue(nacre_pb2.IssueRequest(name="eve", role="admin"))
        self.assertEqual(caught.exception.code(), Code.PERMISSION_DENIED)
        copies = stub.CopyFrom(nacre_pb2.CopyFromRequest(target="x"))
        with self.assertRaises(grpc.RpcError) as caught:
            next(copies)
        self.assertEqual(caught.exception.code(), Code.PERMISSION_DENIED)

    def test_the_command_line(self):
        image = self.busybox()
        done = self.remote("alice", "run", "--name", "web", "-d", image, "sh", "-c", "echo hello; sleep 1000")
        self.assertEqual(done.returncode, 0, done.stderr)
        until(lambda: "hello\n" == self.remote("alice", "logs", "web").stdout)
        self.assertIn("web", self.remote("bob", "ps").stdout)
        self.assertEqual(self.remote("bob", "logs", "web").stdout, "hello\n")
        done = self.remote("alice", "exec", "-i", "web", "cat", input="x" * 300000)
        self.assertEqual((done.returncode, len(done.stdout)), (0, 300000), done.stderr)
        self.assertEqual(self.remote("alice", "exec", "web", "sh", "-c", "exit 7").returncode, 7)
        source = os.path.join(self.node.dir, "file")
        with open(source, "wb") as f:
            f.write(os.urandom(1 << 20))
        done = self.remote("alice", "cp", source, "web:/file")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.remote("alice", "cp", "web:/file", source + ".back")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(open(source, "rb").read(), open(source + ".back", "rb").read())
        done = self.remote("alice", "image", "import", source)
        self.assertIn("does not see the files of this host", done.stderr)
        self.assertEqual(self.remote("alice", "rm", "-f", "web").returncode, 0)

    def test_a_terminal(self):
        image = self.busybox()
        self.node.cli("run", "-d", "--name", "tty", image, "sleep", "1000")
        ours, theirs = pty.openpty()
        env = {**os.environ, "NACRE_CERT_PATH": os.path.join(self.certs, "alice")}
        env.pop("NACRE_SOCKET", None)
        p = subprocess.Popen([nacre_test.BINARY, "--host", f"127.0.0.1:{self.port}", "exec", "-it", "tty", "sh"], env=env,
                             stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        os.write(ours, b"echo $((40+2)); exit 5\n")
        told = b""
        with contextlib.suppress(OSError):
            while select.select([ours], [], [], 20)[0]:
                told += os.read(ours, 4096)
        os.close(ours)
        self.assertEqual(p.wait(20), 5, told)
        self.assertIn(b"42", told)
        self.node.cli("rm", "-f", "tty")

    def test_logs_that_follow_end_with_the_revocation(self):
        self.issue("carol", "--role", "admin")
        image = self.busybox()
        self.node.cli("run", "-d", "--name", "talks", image, "sh", "-c", "while sleep 0.1; do echo x; done")
        env = {**os.environ, "NACRE_CERT_PATH": os.path.join(self.certs, "carol")}
        env.pop("NACRE_SOCKET", None)
        p = subprocess.Popen([nacre_test.BINARY, "--host", f"127.0.0.1:{self.port}", "logs", "-f", "talks"], env=env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), b"x\n")
        since = time.monotonic()
        self.node.cli("identity", "revoke", "carol")
        p.stdout.read()
        p.wait(10)
        self.assertLess(time.monotonic() - since, 1.0 * nacre_test.SLOWNESS)
        self.assertNotEqual(p.returncode, 0)
        p.stderr.close()
        p.stdout.close()
        self.assertIn("is revoked", self.remote("carol", "ps").stderr)
        self.assertIn("revoked", self.node.cli("identity", "ls").stdout)
        self.node.cli("rm", "-f", "talks")


class Sentences(Remote):
    def test_names(self):
        self.assertIn("is not for the name other.example", self.remote("alice", "--tls-name", "other.example", "ps").stderr)
        for name in ("node.example", "127.0.0.1", "server.unsafe.aurae.io"):
            self.assertEqual(self.remote("alice", "--tls-name", name, "ps").returncode, 0, name)

    def test_nobody_there(self):
        self.assertIn("nobody listens there", self.remote("alice", "ps", host=f"127.0.0.1:{free_port()}").stderr)
        self.assertIn("is not found", self.remote("alice", "ps", host="nowhere.invalid:1").stderr)

    def test_no_certificates(self):
        self.assertIn("identity issue", self.remote("nobody", "ps").stderr)

    def test_bad_hosts(self):
        for host in ("", "a:b", "a:0", "a:65536", "[::1", "[::1]x", "a/b", "x@y"):
            done = self.remote("alice", "ps", host=host or "/")
            self.assertEqual(done.returncode, 125, host)

    def test_a_key_that_others_read(self):
        out = self.issue("loose")
        os.chmod(os.path.join(out, "loose.key"), 0o644)
        self.assertIn("chmod 600", self.remote("loose", "ps").stderr)

    def test_the_key_of_another(self):
        done = self.remote("alice", "--tls-cert", self.files("bob")[1], "--tls-key", self.files("alice")[2], "ps")
        self.assertIn("not that of the certificate", done.stderr)

    def test_not_a_certificate(self):
        done = self.remote("alice", "--tls-ca", self.files("alice")[2], "ps")
        self.assertIn("the CA certificate is not", done.stderr)

    def test_expired(self):
        self.sign("old", "URI:spiffe://nacre.local/user/old", days=-1)
        self.assertIn("has expired", self.remote("old", "ps").stderr)

    def test_no_record(self):
        self.sign("ghost", "URI:spiffe://nacre.local/user/ghost")
        done = self.remote("ghost", "ps")
        self.assertIn("has no record of certificate", done.stderr)

    def test_a_user_is_not_the_authority(self):
        done = self.node.cli("identity", "issue", "ca", "--out", os.path.join(self.certs, "alice"), check=False)
        self.assertIn('a user cannot be called "ca"', done.stderr)


class Contexts(Remote):
    def setUp(self):
        self.home = os.path.join(self.node.dir, "home-" + self.id().rsplit(".", 1)[1])
        os.mkdir(self.home)

    def at_home(self, *words, **variables):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NACRE_SOCKET", "NACRE_HOST", "XDG_"))}
        return subprocess.run([nacre_test.BINARY, *words], env={**env, "HOME": self.home, **variables}, capture_output=True,
                              text=True, timeout=60 * nacre_test.SLOWNESS)

    def create(self, name, user):
        ca, cert, key = self.files(user)
        done = self.at_home("context", "create", name, "--host", f"127.0.0.1:{self.port}", "--tls-ca", ca, "--tls-cert", cert,
                            "--tls-key", key, "--tls-name", "node.example")
        self.assertEqual((done.returncode, done.stdout), (0, name + "\n"), done.stderr)

    def test_a_life(self):
        self.create("prod", "alice")
        self.create("look", "bob")
        self.assertEqual(os.stat(os.path.join(self.home, ".config/nacre/contexts.json")).st_mode & 0o777, 0o600)
        self.assertEqual(self.at_home("--context", "prod", "rm", "nothing").stderr.count("nothing"), 1)
        self.assertIn("user/bob", self.at_home("rm", "nothing", NACRE_CONTEXT="look").stderr)
        self.assertEqual(self.at_home("context", "use", "look").returncode, 0)
        self.assertIn("user/bob", self.at_home("rm", "nothing").stderr)
        self.assertRegex(self.at_home("context", "ls").stdout, r"\*  look  127.0.0.1:\d+  ")
        told = json.loads(self.at_home("context", "show").stdout)
        self.assertEqual((told["name"], told["current"], told["tls-name"], told["socket"]), ("look", True, "node.example", None))
        # What is said at once counts more than what is in use.
        self.assertEqual(self.at_home("ps", "--socket", self.node.socket).returncode, 0)
        self.assertEqual(self.at_home("context", "rm", "look").returncode, 0)
        self.assertEqual([c["name"] for c in json.loads(self.at_home("context", "ls", "-o", "json").stdout)], ["prod"])
        self.assertIn("no context in use", self.at_home("context", "show").stderr)

    def test_refusals(self):
        self.create("prod", "alice")
        for words, why in {("context", "create", "prod", "--socket", "/x"): "already", ("context", "create", "x"): "--host",
                           ("context", "create", "a/b", "--socket", "/x"): "no name", ("context", "use", "y"): "no context y",
                           ("context", "rm", "y"): "no context y", ("--context", "y", "ps"): "no context y"}.items():
            done = self.at_home(*words)
            self.assertEqual(done.returncode, 125, words)
            self.assertIn(why, done.stderr)

    def test_a_broken_file(self):
        os.makedirs(os.path.join(self.home, ".config/nacre"))
        path = os.path.join(self.home, ".config/nacre/contexts.json")
        with open(path, "w", encoding="ascii") as f:
            f.write("{")
        self.assertIn(path, self.at_home("ps").stderr)
        self.assertEqual(self.at_home("help").returncode, 0)
        self.assertEqual(self.at_home("ps", "--socket", self.node.socket).returncode, 0)


class Strangers(Remote):
    def test_no_certificate(self):
        self.assertIn("certificate required", self.refusal(self.context()).lower().replace("_", " "))

    def test_tls_1_2(self):
        c = self.context("alice")
        c.maximum_version = ssl.TLSVersion.TLSv1_2
        self.assertIn("version", self.refusal(c).lower())

    def test_other_protocols(self):
        c = self.context("alice")
        c.set_alpn_protocols(["http/1.1"])
        self.refusal(c)

    def test_ids(self):
        uris = {"node": "URI:spiffe://nacre.local/node/n1", "guest": "URI:spiffe://nacre.local/node/n1/instance/0123",
                "elsewhere": "URI:spiffe://other.local/user/alice", "none": None, "dns": "DNS:alice",
                "two": "URI:spiffe://nacre.local/user/alice,URI:spiffe://nacre.local/user/bob",
                "web": "URI:https://nacre.local/user/alice", "deep": "URI:spiffe://nacre.local/user/alice/x"}
        for name, uri in uris.items():
            with self.subTest(name):
                self.sign(name, uri)
                self.refusal(self.context(name))

    def test_misused_certificates(self):
        """Security 3.12, 7 to 24: signed by the node's own key, and no certificate of a user; refused by the gate, before the daemon."""
        alice = "URI:spiffe://nacre.local/user/alice"
        ids = {"10": "URI:spiffe://nacre.local", "11": alice + "/", "12": "URI:spiffe://nacre.local//alice",
               "13": "URI:spiffe://nacre.local/user/../alice", "14": "URI:spiffe://nacre.local/user/%61lice", "15": "URI:spiffe://NACRE.local/user/alice",
               "16a": "URI:spiffe://x@nacre.local/user/alice", "16b": "URI:spiffe://nacre.local:1/user/alice", "16c": alice + "?x", "16d": alice + "\\#x",
               "17": "URI:spiffe://nacre.local/user/" + "a" * 2030, "18": "URI:spiffe://" + "a" * 256 + "/user/alice"}
        leaves = {"19": {"basicConstraints": "critical,CA:TRUE"}, "20": {"keyUsage": "critical,digitalSignature,keyCertSign"},
                  "21": {"keyUsage": "critical,digitalSignature,cRLSign"}, "22": {"keyUsage": "critical,keyAgreement"},
                  "23a": {"keyUsage": None}, "23b": {"keyUsage": "digitalSignature"}, "24": {"extendedKeyUsage": "serverAuth"}}
        # One that is right is let in, as far as the records, in which it is not.
        self.sign("right", alice)
        self.assertTrue(self.tls(self.context("right")).recv(1))
        for name, (uri, changes) in {**{n: (u, {}) for n, u in ids.items()}, **{n: (alice, c) for n, c in leaves.items()}}.items():
            with self.subTest(name):
                self.sign(name, uri, **changes)
                self.refusal(self.context(name))
        self.assertEqual(0, self.remote("alice", "ps").returncode)

    def test_a_foreign_authority(self):
        base = os.path.join(self.certs, "foreign")
        os.makedirs(base, exist_ok=True)
        key, cert = (os.path.join(base, f"foreign.{e}") for e in ("key", "crt"))
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
            "-subj", "/CN=nacre node CA", "-addext", "subjectAltName=URI:spiffe://nacre.local/user/alice", "-days", "1")
        self.assertRegex(self.refusal(self.context("foreign")).lower().replace("_", " "), "unknown ca|alert|reset|closed")

    def test_plain_text(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as s:
            s.sendall(PREFACE + SETTINGS)
            told = b""
            with contextlib.suppress(ConnectionResetError):
                while True:
                    piece = s.recv(4096)
                    if not piece:
                        break
                    told += piece
        self.assertNotIn(b"HTTP", told)

    def test_bad_frames(self):
        for what in (b"GET / HTTP/1.1\r\n\r\n", PREFACE + bytes([0, 0, 0, 0, 0, 0, 0, 0, 1]),
                     PREFACE + SETTINGS + bytes([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1])):
            s = self.tls(self.context("alice"))
            s.sendall(what)
            with contextlib.suppress(OSError):
                while s.recv(4096):
                    pass
        until(lambda: "was refused" in self.node.log())
        self.assertEqual(self.remote("alice", "ps").returncode, 0)

    def test_handshakes_are_bounded(self):
        """Of one address 16 at once; the others are sent away, and there is room again when they end."""
        silent = [socket.create_connection(("127.0.0.1", self.port), timeout=30) for _ in range(40)]
        try:
            def closed(s):
                s.setblocking(False)
                try:
                    return s.recv(1) == b""
                except BlockingIOError:
                    return False
                except ConnectionResetError:
                    return True
            until(lambda: sum(closed(s) for s in silent) == 24, 5)
            # The time for a handshake is 10 s.
            until(lambda: all(closed(s) for s in silent), 14)
        finally:
            for s in silent:
                s.close()
        self.assertEqual(self.remote("alice", "ps").returncode, 0)

    def test_a_first_request_is_waited_for(self):
        """Half a minute, then the connection ends; one that has asked stays."""
        idle, used = self.tls(self.context("alice")), self.channel("alice")
        stub = nacre_test.pb["nacre_pb2_grpc"].WorkloadServiceStub(used)
        stub.List(nacre_pb2.ListRequest())
        idle.sendall(PREFACE + SETTINGS)
        since = time.monotonic()
        idle.settimeout(50)
        with contextlib.suppress(OSError):
            while idle.recv(4096):
                pass
        self.assertTrue(25 < time.monotonic() - since < 45, time.monotonic() - since)
        stub.List(nacre_pb2.ListRequest())

    def test_many_idle_connections(self):
        """Each user's share is a half; all of it is held without a file descriptor or a process going missing."""
        channels = [self.channel("alice") for _ in range(100)]
        for c in channels:
            nacre_test.pb["nacre_pb2_grpc"].WorkloadServiceStub(c).List(nacre_pb2.ListRequest(), timeout=30)
        for c in channels:
            c.close()
        self.assertEqual(self.remote("bob", "ps").returncode, 0)


class OnThisHost(Remote):
    """A unix socket for users with certificates."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="nt-")
        super().setUpClass()

    @classmethod
    def settings(cls):
        return f'listen: [ "{cls.folder}/tls.sock" ]\n'

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        left = os.listdir(cls.folder)
        shutil.rmtree(cls.folder)
        if left:
            raise AssertionError(f"left behind: {left}")

    def test_calls_through_a_unix_socket(self):
        path = f"{self.folder}/tls.sock"
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o666)
        ca, cert, key = (open(f, "rb").read() for f in self.files("alice"))
        for mine in ((cert, key), (None, None)):
            with grpc.secure_channel(f"unix:{path}", grpc.ssl_channel_credentials(ca, mine[1], mine[0]),
                                     options=[("grpc.ssl_target_name_override", "server.unsafe.aurae.io")]) as channel:
                call = channel.unary_unary("/aurae.discovery.v0.DiscoveryService/Discover")
                if mine[0]:
                    self.assertTrue(call(b"").startswith(b"\x08\x01\x12"))
                else:
                    self.assertFails(grpc.StatusCode.UNAVAILABLE, lambda c=call: c(b"", timeout=20))
        # Without TLS nobody is heard.
        with grpc.insecure_channel(f"unix:{path}") as channel:
            self.assertFails(grpc.StatusCode.UNAVAILABLE, lambda: channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=20))


class Restarts(Remote):
    @classmethod
    def tearDownClass(cls):
        # Its keeper is made again with the daemon, while nothing runs; and the connection of the tests.
        cls.node.info.Info(nacre_pb2.InfoRequest())
        cls.before = cls.node.baseline()
        super().tearDownClass()

    def test_the_listener_comes_back(self):
        for _ in range(2):
            self.node.restart()
            until(lambda: self.remote("alice", "ps").returncode == 0, 20)
        self.assertEqual(self.node.cli("identity", "ls").stdout.count("alice"), 1)

    def test_the_gate_comes_back(self):
        pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and self.is_front(p)]
        self.assertEqual(len(pids), 1)
        os.kill(pids[0], 9)
        until(lambda: self.remote("alice", "ps").returncode == 0, 20)

    def is_front(self, pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return parent == self.node.pid and b"gate front" in f.read()
        except OSError:
            return False

    def test_a_revocation_outlives_the_daemon(self):
        self.issue("dave")
        self.assertEqual(self.remote("dave", "ps").returncode, 0)
        serial = next(r["serial"] for r in json.loads(self.node.cli("identity", "ls", "-o", "json").stdout) if r["name"] == "dave")
        self.node.cli("identity", "revoke", serial)
        self.node.restart()
        until(lambda: self.remote("alice", "ps").returncode == 0, 20)
        self.assertIn("is revoked", self.remote("dave", "ps").stderr)


class Configuration(unittest.TestCase):
    def test_is_refused(self):
        for text in ('listen: [ "localhost:1" ]', 'listen: [ "127.0.0.1" ]', 'listen: [ "127.0.0.1:0" ]', "listen: { a: b }",
                     'listen: [ [ "127.0.0.1:1" ] ]', 'listen: [ "127.0.0.1:1", "127.0.0.1:1" ]', 'listen_names: [ "A" ]',
                     'listen: [ "127.0.0.1:1" ]\nlisten: [ "127.0.0.1:2" ]', 'drain: [ "10s" ]'):
            with self.subTest(text), self.assertRaises(AssertionError) as caught:
                nacre_test.Node(config=text + "\n")
            self.assertRegex(str(caught.exception), r"config.yaml:\d+: ")

    def test_an_address_that_is_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with nacre_test.Node(config=f'listen: [ "127.0.0.1:{port}" ]\n') as node:
                until(lambda: "tried again" in node.log(), 5)
                taken.close()
                until(lambda: "listening for users" in node.log(), 5)


if __name__ == "__main__":
    unittest.main()
