# SPDX-License-Identifier: Apache-2.0
"""nacre-fetch pushes, to the fake registry and to Debian's docker-registry, from which it pulls again."""
import crypt  # pylint: disable=deprecated-module
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fetcher  # noqa: E402
from fakeregistry import FakeRegistry, digest  # noqa: E402
from test_registry import BIG, SMALL, Registry  # noqa: E402

UPLOADED, EXISTED, MOUNTED = range(3)


def push(reference, source, *messages, **network):
    """What source.last holds."""
    manifest = source.manifests["a/b", "1"][1]
    f = fetcher.Fetcher("push")
    f.say("PUSH", reference, 0)
    f.setup(*messages, **network)
    for data, is_manifest in [(d, 0) for d in (source.last["config"], *source.last["layers"])] + [(manifest, 1)]:
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            f.say("PUSH_BLOB", digest(data), len(data), is_manifest, fds=[file.fileno()])
    return f.run()


class Push(Registry):
    def setUp(self):
        super().setUp()
        self.source = FakeRegistry()
        self.root = self.source.put_image("a/b", "1", layers=[BIG, SMALL])
        self.addCleanup(self.source.server.server_close)

    def how(self, f):
        return [m[1] for m in f.all("PUSHED")]

    def test_uploads_and_finds_again(self):
        with push(self.name("c/d:2"), self.source) as f:
            self.assertEqual(self.how(f), [UPLOADED] * 4)
            self.assertEqual(f.all("RESOLVED")[0][0], self.root)
            self.assertIn((digest(self.source.last["layers"][0]), len(self.source.last["layers"][0])), f.all("PROGRESS"))
        self.assertEqual(self.registry.blobs, self.source.blobs)
        self.assertEqual(self.registry.manifests["c/d", "2"], self.source.manifests["a/b", "1"])
        # The manifest comes last.
        self.assertIn("/manifests/2", self.registry.requests[-1][1])
        with push(self.name("c/d:3"), self.source) as f:
            self.assertEqual(self.how(f), [EXISTED] * 3 + [UPLOADED])

    def test_mounts(self):
        self.registry.blobs.update(self.source.blobs)
        self.registry.on("HEAD", "/blobs/", lambda a: a.reply(404))
        with push(self.name("c/d:2"), self.source, ("MOUNT", "elsewhere.example/x"), ("MOUNT", self.name("a/b"))) as f:
            self.assertEqual(self.how(f), [MOUNTED] * 3 + [UPLOADED])
        self.assertIn("from=a%2Fb", self.registry.asked("POST", "mount=")[0][1])

    def test_begins_a_cut_upload_anew(self):
        self.registry.once("PUT", "/uploads/", lambda a: a.drop(), lambda a: a.reply(503))
        with push(self.name("c/d:2"), self.source, retry_ms=1) as f:
            self.assertEqual(self.how(f), [UPLOADED] * 4)
        self.assertEqual(self.registry.blobs, self.source.blobs)

    def cut(self, a, n):
        """Takes n bytes of what is sent, and hangs up."""
        name = re.search(r"/uploads/(\w+)", a.path).group(1)
        self.registry.uploads[name] += a.rfile.read(n)
        a.drop()

    def test_goes_on_with_a_cut_upload(self):
        data = self.source.last["layers"][0]
        self.registry.once("PUT", "/uploads/.*" + digest(data)[7:], lambda a: self.cut(a, 200000))
        self.registry.once("PATCH", "/uploads/", lambda a: self.cut(a, 300000))
        with push(self.name("c/d:2"), self.source, retry_ms=1) as f:
            self.assertEqual(self.how(f), [UPLOADED] * 4)
            self.assertIn("tried again", f.notes())
        self.assertEqual(self.registry.blobs, self.source.blobs)
        ranges = [r[2]["Content-Range"] for r in self.registry.asked("PATCH", "/uploads/")]
        self.assertEqual(ranges, [f"200000-{len(data) - 1}", f"500000-{len(data) - 1}"])
        # The blob was begun once.
        self.assertEqual(len(self.registry.asked("POST", "/uploads/")), 3)

    def test_pieces_that_are_not_taken(self):
        data = self.source.last["layers"][0]
        self.registry.once("PUT", "/uploads/.*" + digest(data)[7:], lambda a: self.cut(a, 200000))
        self.registry.on("PATCH", "/uploads/", lambda a: (a.body(), a.reply(416)))
        with push(self.name("c/d:2"), self.source, retry_ms=1) as f:
            self.assertEqual(self.how(f), [UPLOADED] * 4)
        self.assertEqual(self.registry.blobs, self.source.blobs)

    def test_uploads_that_never_end(self):
        self.registry.on("PUT", "/uploads/", lambda a: a.drop())
        with self.assertRaisesRegex(fetcher.Failed, "UNAVAILABLE: RegistryUnavailable: .*blob sha256"):
            push(self.name("c/d:2"), self.source, retry_ms=1, n_retries=2)
        self.assertFalse(self.registry.asked("PUT", "/manifests/"))

    def test_what_the_registry_says_that_it_has(self):
        other = "sha256:" + "0" * 64
        for method, pattern in (("PUT", "/uploads/"), ("PUT", "/manifests/")):
            with self.subTest(pattern):
                self.registry.scripts.clear()
                self.registry.blobs.clear()
                self.registry.on(method, pattern, lambda a: (a.body(), a.reply(201, b"", {"Docker-Content-Digest": other})))
                with self.assertRaisesRegex(fetcher.Failed, f"INVALID: registry .*says that it has {other}"):
                    push(self.name("c/d:2"), self.source)

    def test_refused_for_good(self):
        self.registry.on("PUT", "/uploads/", lambda a: (a.body(), a.errors(400, "DIGEST_INVALID", "no such sum")))
        with self.assertRaisesRegex(fetcher.Failed, "blob sha256.*status 400 .*no such sum"):
            push(self.name("c/d:2"), self.source, retry_ms=1, connections=1)
        self.assertEqual(len(self.registry.asked("PUT", "/uploads/")), 1)

    def test_many_at_once_within_the_bound(self):
        source = FakeRegistry()
        self.addCleanup(source.server.server_close)
        source.put_image("a/b", "1", layers=[bytes([i]) * 5000 for i in range(20)])
        now, most, lock = [0], [0], threading.Lock()

        def count(a):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.05)
            with lock:
                now[0] -= 1
            return False
        self.registry.on("PUT", "/uploads/", count)
        self.registry.auth = "basic"
        with push(self.name("c/d:2"), source, ("AUTH", self.registry.host, 0, "user", "secret"), connections=4) as f:
            self.assertEqual(len(self.how(f)), 22)
        self.assertGreater(most[0], 1)
        self.assertLessEqual(most[0], 4)
        self.assertEqual(self.registry.blobs, source.blobs)

    def test_a_token_that_ends_in_the_middle(self):
        self.registry.auth = "bearer"

        def forget(a):
            with self.registry.lock:
                self.registry.tokens.clear()
            a.body()
            self.registry.admit(a, a.path)
        self.registry.once("PUT", "/uploads/", forget)
        with push(self.name("c/d:2"), self.source, ("AUTH", self.registry.host, 0, "user", "secret")) as f:
            self.assertEqual(self.how(f), [UPLOADED] * 4)
        self.assertEqual(self.registry.blobs, self.source.blobs)
        self.assertGreater(len(self.registry.asked("GET", "^/token")), 1)

    def test_location_elsewhere_sees_no_credentials(self):
        self.registry.auth = "basic"
        with FakeRegistry() as other:
            self.registry.on("POST", "/uploads/", lambda a: a.headers.get("Authorization") and a.reply(
                202, b"", {"Location": other.url + "/v2/x/blobs/uploads/u0"}))
            with self.assertRaisesRegex(fetcher.Failed, "NOT_FOUND|UNAVAILABLE"):
                push(self.name("c/d:2"), self.source, ("AUTH", self.registry.host, 0, "user", "secret"), n_retries=1, retry_ms=1)
            self.assertTrue(other.requests)
            self.assertFalse([r for r in other.requests if "Authorization" in r[2]])

    def test_refused(self):
        self.registry.on("POST", "/uploads/", lambda a: a.errors(403, "DENIED", "read only"))
        with self.assertRaisesRegex(fetcher.Failed, "^DENIED: registry .*blob sha256.*read only"):
            push(self.name("c/d:2"), self.source)


@unittest.skipUnless(shutil.which("docker-registry"), "docker-registry is not installed")
class Real(unittest.TestCase):
    """Debian's registry on loopback."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.source = FakeRegistry()
        self.root = self.source.put_image("a/b", "1", layers=[BIG, SMALL])
        self.addCleanup(self.source.server.server_close)

    def path(self, name):
        return os.path.join(self.folder, name)

    def serve(self, tls=False, auth=False):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        config = f"version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {self.path('data')}\nhttp:\n  addr: 127.0.0.1:{port}\n"
        if tls:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                            "-keyout", self.path("key"), "-out", self.path("cert"), "-subj", "/CN=x", "-addext",
                            "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            config += f"  tls:\n    certificate: {self.path('cert')}\n    key: {self.path('key')}\n"
            os.makedirs(self.path(f"certs/127.0.0.1:{port}"))
            shutil.copy(self.path("cert"), self.path(f"certs/127.0.0.1:{port}/ca.crt"))
        if auth:
            with open(self.path("htpasswd"), "w", encoding="ascii") as f:
                f.write("user:" + crypt.crypt("secret", crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)) + "\n")
            config += f"auth:\n  htpasswd:\n    realm: here\n    path: {self.path('htpasswd')}\n"
        with open(self.path("config.yml"), "w", encoding="ascii") as f:
            f.write(config)
        process = subprocess.Popen(["docker-registry", "serve", self.path("config.yml")], stdout=subprocess.DEVNULL,  # pylint: disable=all
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for _ in range(600):
            try:
                with socket.create_connection(("127.0.0.1", port)):
                    return f"127.0.0.1:{port}"
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("docker-registry does not listen")

    def there_and_back(self, host, *messages):
        with push(f"{host}/c/d:2", self.source, *messages) as f:
            self.assertEqual([m[1] for m in f.all("PUSHED")], [UPLOADED] * 4)
        with push(f"{host}/c/e:2", self.source, ("MOUNT", f"{host}/c/d"), *messages) as f:
            self.assertEqual([m[1] for m in f.all("PUSHED")], [MOUNTED] * 3 + [UPLOADED])
        with fetcher.pull(f"{host}/c/d:2", *messages) as f:
            self.assertEqual(f.all("RESOLVED")[0][0], self.root)
            for data in self.source.last["layers"]:
                with open(f.blob_path(digest(data)), "rb") as file:
                    self.assertEqual(file.read(), data)
        with fetcher.Fetcher("list") as f:
            f.say("LIST", f"{host}/c/d:2", 1, 9, 0)
            self.assertEqual(f.run(*messages).all("TAG"), [("2",)])

    def test_plain(self):
        host = self.serve()
        self.there_and_back(host)
        with self.assertRaisesRegex(fetcher.Failed, "NOT_FOUND.*manifest unknown"):
            fetcher.pull(f"{host}/c/d:3")

    def test_tls_and_passwords(self):
        host = self.serve(tls=True, auth=True)
        certs = ("REGISTRY_DIR", self.path("certs"))
        with self.assertRaisesRegex(fetcher.Failed, "UNAUTHENTICATED.*Unauthenticated: .*none were given"):
            fetcher.pull(f"{host}/c/d:2", certs)
        self.there_and_back(host, certs, ("AUTH", host, 0, "user", "secret"))


if __name__ == "__main__":
    unittest.main()
