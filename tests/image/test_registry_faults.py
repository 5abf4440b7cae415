# SPDX-License-Identifier: Apache-2.0
"""nacre-fetch and registries that fail, lie, or want to know who asks."""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fetcher  # noqa: E402
from fakeregistry import CONFIG, INDEX, MANIFEST, FakeRegistry, digest  # noqa: E402
from test_registry import BIG, SMALL, Registry  # noqa: E402


class Faults(Registry):
    def setUp(self):
        super().setUp()
        self.registry.put_image("a/b", "1", layers=[BIG])
        self.layer = self.registry.last["layers"][0]
        self.blob = digest(self.layer)

    def test_passing_errors_are_waited_for(self):
        self.registry.once("GET", "/manifests/", lambda a: a.reply(503), lambda a: a.reply(500), lambda a: a.drop())
        with fetcher.pull(self.name()) as f:
            self.check(f)
            self.assertIn("status 503; tried again in", f.notes())
            # A connection that was kept and is closed curl makes anew by itself.
            self.assertIn(len(f.all("NOTE")), (2, 3))

    def test_lasting_errors_end(self):
        self.registry.on("GET", "/manifests/", lambda a: a.errors(503, "UNAVAILABLE", "no\x1bway"))
        e = self.fails("UNAVAILABLE", "RegistryUnavailable: ", self.registry.host, "manifest 1", "status 503", "no?way")
        self.assertTrue(e.text.startswith("RegistryUnavailable: "))
        self.assertEqual(len(self.registry.asked("GET", "/manifests/")), 6)

    def test_answers_that_end_at_once(self):
        for status, kind in ((404, "NOT_FOUND"), (403, "DENIED"), (405, "PRECONDITION"), (418, "PRECONDITION")):
            with self.subTest(status):
                self.registry.scripts.clear()
                self.registry.requests.clear()
                self.registry.on("GET", "/manifests/", lambda a, status=status: a.reply(status))
                self.fails(kind, f"status {status}", self.registry.host)
                self.assertEqual(len(self.registry.requests), 1)

    def test_retry_after(self):
        for value, least, most in (("1", 1.0, 3), ("1000000000", 0.7, 3), ("nonsense", 0, 1)):
            with self.subTest(value):
                self.registry.scripts.clear()
                self.registry.once("GET", "/manifests/", lambda a, value=value: a.reply(429, b"", {"Retry-After": value}))
                since = time.monotonic()
                with fetcher.pull(self.name(), retry_max_ms=1000):
                    self.assertGreaterEqual(time.monotonic() - since, least)

    def test_cut_and_resumed(self):
        for step in (1, 65536, 1 << 20):
            with self.subTest(step):
                self.registry.scripts.clear()
                self.registry.requests.clear()
                self.registry.once("GET", self.blob, lambda a, step=step: a.part(self.layer, step))
                with fetcher.pull(self.name()) as f:
                    self.check(f)
                    self.assertIn("tried again", f.notes())
                self.assertEqual([r[2].get("Range") for r in self.registry.asked("GET", self.blob)], [None, f"bytes={step}-"])

    def test_no_ranges(self):
        self.registry.once("GET", self.blob, lambda a: a.part(self.layer, 1 << 20), lambda a: a.reply(200, self.layer))
        with fetcher.pull(self.name()) as f:
            self.check(f)
        self.registry.scripts.clear()
        self.registry.requests.clear()
        self.registry.once("GET", self.blob, lambda a: a.part(self.layer, 1 << 20), lambda a: a.reply(416),
                           lambda a: a.reply(200, self.layer))
        with fetcher.pull(self.name()) as f:
            self.check(f)
        self.assertEqual([r[2].get("Range") for r in self.registry.asked("GET", self.blob)], [None, "bytes=1048576-", None])

    def test_another_range_than_was_asked_for(self):
        self.registry.once("GET", self.blob, lambda a: a.part(self.layer, 1 << 20),
                           lambda a: a.reply(206, self.layer[5:], {"Content-Range": f"bytes 5-{len(self.layer) - 1}/{len(self.layer)}"}))
        self.fails("INVALID", "another part")

    def test_wrong_lengths(self):
        self.registry.once("GET", self.blob, lambda a: a.reply(200, self.layer[:-1]))
        self.fails("INVALID", f"{len(self.layer) - 1} bytes to send")
        self.registry.once("GET", self.blob, lambda a: a.reply(200, self.layer + b"x", length=False))
        self.fails("INVALID", "more than")
        # Without a length an early end is a cut.
        self.registry.once("GET", self.blob, lambda a: a.reply(200, self.layer[:-1], length=False))
        with fetcher.pull(self.name()) as f:
            self.check(f)
            self.assertIn(f"ended at byte {len(self.layer) - 1}", f.notes())

    def test_wrong_digest(self):
        other = bytes([self.layer[0] ^ 1]) + self.layer[1:]
        self.registry.once("GET", self.blob, lambda a: a.reply(200, other))
        with fetcher.pull(self.name()) as f:
            self.check(f)
            self.assertEqual([m[0] for m in f.all("RESTART")], [self.blob])
        self.registry.on("GET", self.blob, lambda a: a.reply(200, other))
        self.fails("INVALID", self.blob, digest(other))

    def test_stalls(self):
        def nothing(a):
            a.send_response(200)
            a.send_header("Content-Length", str(len(self.layer)))
            a.end_headers()
            time.sleep(4)
        since = time.monotonic()
        self.registry.on("GET", self.blob, nothing)
        self.fails("UNAVAILABLE", "no progress", stall_ms=1000, n_retries=1)
        self.assertLess(time.monotonic() - since, 20)
        self.registry.scripts.clear()
        self.registry.once("GET", self.blob, lambda a: a.part(self.layer, 50, pause=0.2, step=1))
        with fetcher.pull(self.name(), stall_ms=2000, min_rate=1024) as f:
            self.check(f)

    def test_documents_that_break_rules(self):
        good = json.dumps(self.registry.last["manifest"]).encode()
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": []}
        config = self.registry.last["manifest"]["config"]
        cases = (
            (b"{", MANIFEST, "INVALID", "no valid JSON"),
            (good, "", "INVALID", "which type"),
            (good, INDEX, "INVALID", "the document says it is"),
            (good, "application/json", "UNSUPPORTED", "application/json"),
            ({**self.registry.last["manifest"], "manifests": []}, MANIFEST, "INVALID", "mixes"),
            ({**index, "layers": []}, INDEX, "INVALID", "mixes"),
            (index, INDEX, "PRECONDITION", "no image for linux/amd64"),
            ({"schemaVersion": 1, "fsLayers": []}, "application/vnd.docker.distribution.manifest.v1+prettyjws", "UNSUPPORTED", "schema 1"),
            ({**self.registry.last["manifest"], "layers": [{"mediaType": CONFIG, "digest": self.blob, "size": 1}]}, MANIFEST, "UNSUPPORTED",
             "cannot be unpacked"),
            ({**self.registry.last["manifest"], "layers": [{"mediaType": MANIFEST, "digest": self.blob, "size": 1, "urls": ["http://x/"]}]},
             MANIFEST, "UNSUPPORTED", "urls"),
            (b" " * (4 << 20) + good, MANIFEST, "EXHAUSTED", "more than"),
            ({**self.registry.last["manifest"], "config": {**config, "size": config["size"] + 1}}, MANIFEST, "INVALID", "bytes, not"),
        )
        for bad in ("sha256:../../x", "sha256:" + "A" * 64, "sha256:" + "0" * 63, "sha256:" + "0" * 65, "md5:" + "0" * 32, "", "sha256::x"):
            cases += (({**self.registry.last["manifest"], "config": {**config, "digest": bad}}, MANIFEST, "INVALID", "digest"),)
        for body, media_type, kind, words in cases:
            with self.subTest(words, kind=kind):
                self.registry.scripts.clear()
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.registry.on("GET", "/manifests/", lambda a, b=body, t=media_type: a.reply(200, b, {"Content-Type": t} if t else {}))
                self.fails(kind, words, f"registry {self.registry.host}")

    def test_other_digest_than_named(self):
        body = json.dumps(self.registry.last["manifest"]).encode()
        self.registry.on("GET", "/manifests/", lambda a: a.reply(200, body, {"Content-Type": MANIFEST, "Docker-Content-Digest": self.blob}))
        self.fails("INVALID", "names the digest")
        self.registry.scripts.clear()
        self.registry.on("GET", "/manifests/", lambda a: a.reply(200, body, {"Content-Type": MANIFEST}))
        self.fails("INVALID", reference=self.name("a/b@" + self.blob))

    def test_headers_without_end(self):
        self.registry.on("GET", "/manifests/", lambda a: a.reply(200, b"", {f"X-{i}": "x" * 1000 for i in range(80)}))
        self.fails("EXHAUSTED", "headers")

    def test_nobody_there(self):
        self.registry.server.server_close()
        self.fails("UNAVAILABLE", "RegistryUnavailable", self.registry.host, n_retries=1)
        self.fails("UNAVAILABLE", "RegistryUnavailable", "no-such-host.invalid", reference="no-such-host.invalid/a:1", n_retries=1)

    def test_mirrors(self):
        with FakeRegistry() as mirror:
            mirror.put_image("a/b", "1", layers=[BIG])
            with fetcher.pull("docker.io/a/b:1", ("ENDPOINT", "docker.io", "http://127.0.0.1:1", 7, 0),
                              ("ENDPOINT", "docker.io", self.registry.url, 1, 0), ("ENDPOINT", "docker.io", mirror.url, 7, 0)) as f:
                self.assertEqual(f.all("RESOLVED")[0][3], mirror.url)
                self.assertIn("http://127.0.0.1:1", f.notes())
                self.check(f)
            # The second may not say what a tag is, and is asked for the rest.
            self.assertEqual([r[1] for r in mirror.requests], ["/v2/a/b/manifests/1?ns=docker.io"])
            self.assertEqual(len(self.registry.requests), 2)


class Redirects(Registry):
    def setUp(self):
        super().setUp()
        self.registry.put_image("a/b", "1", layers=[BIG])
        self.blob = digest(self.registry.last["layers"][0])
        self.store = self.enterContext(FakeRegistry())
        self.store.put_blob(self.registry.last["layers"][0])

    def test_known_and_not_allowed(self):
        self.registry.auth = "basic"
        self.registry.on("GET", "/manifests/", lambda a: a.errors(403, "DENIED", "not for you") if a.headers.get("Authorization") else False)
        with self.assertRaisesRegex(fetcher.Failed, "^DENIED: registry .*not for you"):
            fetcher.pull(self.name(), ("AUTH", self.registry.host, 0, "user", "secret"))

    def test_credentials_stay(self):
        self.registry.auth = "basic"
        self.registry.on("GET", self.blob, lambda a: a.reply(307, b"", {"Location": f"{self.store.url}/v2/x/blobs/{self.blob}"}))
        with fetcher.pull(self.name(), ("AUTH", self.registry.host, 0, "user", "secret")) as f:
            self.check(f)
        self.assertEqual(len(self.store.requests), 1)
        self.assertNotIn("Authorization", self.store.requests[0][2])
        # Nor are they asked for there.
        self.store.auth = "basic"
        with self.assertRaisesRegex(fetcher.Failed, "UNAUTHENTICATED"):
            fetcher.pull(self.name(), ("AUTH", self.registry.host, 0, "user", "secret"))
        self.assertFalse([r for r in self.store.requests if "Authorization" in r[2]])

    def test_bounds(self):
        self.registry.on("GET", self.blob, lambda a: a.reply(302, b"", {"Location": a.path + "?x=1"}))
        self.fails("UNAVAILABLE", "more than 10 redirects")
        self.assertEqual(len(self.registry.asked("GET", self.blob)), 11)
        for location, words in (("http://169.254.169.254/latest", "169.254.169.254"), ("file:///etc/passwd", "file:"), ("", "empty"),
                                ("http://[::ffff:169.254.169.254]/", "this machine or link"), ("http://u@h/", "u@h")):
            with self.subTest(location):
                self.registry.scripts.clear()
                self.registry.on("GET", self.blob, lambda a, to=location: a.reply(302, b"", {"Location": to}))
                with self.assertRaises(fetcher.Failed) as caught:
                    fetcher.pull(self.name())
                self.assertIn(caught.exception.kind, ("DENIED", "INVALID"))
                self.assertIn(words, caught.exception.text)


class Credentials(Registry):
    def setUp(self):
        super().setUp()
        self.registry.put_image("a/b", "1", layers=[BIG, SMALL])

    def auth(self, kind=0, user="user", secret="secret", host=None):
        return ("AUTH", host or self.registry.host, kind, user, secret)

    def test_basic(self):
        self.registry.auth = "basic"
        with fetcher.pull(self.name(), self.auth()) as f:
            self.check(f)
        self.fails("UNAUTHENTICATED", "Unauthenticated: ", "none were given", "authentication required")
        with self.assertRaisesRegex(fetcher.Failed, "UNAUTHENTICATED.*does not accept the credentials"):
            fetcher.pull(self.name(), self.auth(secret="wrong"))

    def test_tokens(self):
        self.registry.auth = "bearer"
        with fetcher.pull(self.name(), self.auth()) as f:
            self.check(f)
        asked = self.registry.asked("GET", "^/token")
        self.assertEqual(len(asked), 1)
        self.assertIn("service=fake&scope=repository%3Aa%2Fb%3Apull&account=user", asked[0][1])
        self.registry.user = None  # everybody
        with fetcher.pull(self.name()) as f:
            self.check(f)
        self.registry.user, self.registry.identity = "user", "refresh+me"
        with fetcher.pull(self.name(), self.auth(1, "", "refresh+me")) as f:
            self.check(f)
        self.assertEqual(len(self.registry.asked("POST", "^/token")), 1)
        with fetcher.pull(self.name(), self.auth(2, "", self.registry.new_token())) as f:
            self.check(f)
        self.fails("UNAUTHENTICATED", "Unauthenticated: ", "token server")

    def test_token_ends_meanwhile(self):
        self.registry.auth = "bearer"

        def forget(a):
            self.registry.tokens.clear()
            a.part(self.registry.last["layers"][0], 1 << 20)
        self.registry.once("GET", digest(self.registry.last["layers"][0]), forget)
        with fetcher.pull(self.name(), self.auth(), connections=1) as f:
            self.check(f)
        self.assertEqual(len(self.registry.asked("GET", "^/token")), 2)

    def test_other_realms_see_nothing(self):
        self.registry.auth = "bearer"
        for realm in ("http://169.254.169.254/", "http://token.invalid/", "file:///x", "ftp://x/"):
            with self.subTest(realm):
                self.registry.realm = realm
                with self.assertRaises(fetcher.Failed) as caught:
                    fetcher.pull(self.name(), self.auth())
                self.assertIn(caught.exception.kind, ("DENIED", "INVALID"))
        with FakeRegistry(address="127.0.0.2") as other:
            other.user = None
            other.tokens = self.registry.tokens
            self.registry.realm = other.url + "/token"
            with fetcher.pull(self.name(), self.auth()) as f:
                self.assertIn("asked without credentials", f.notes())
            self.assertEqual(len(other.requests), 1)
            self.assertNotIn("Authorization", other.requests[0][2])
            self.assertNotIn("account", other.requests[0][1])
            # Who has credentials there may show those.
            with fetcher.pull(self.name(), self.auth(), self.auth(user="there", secret="own", host=other.host)) as f:
                self.assertEqual(f.notes(), "")
            self.assertIn("account=there", other.requests[1][1])

    def test_loops(self):
        self.registry.auth = "bearer"
        self.registry.tokens = {}
        self.registry.new_token = lambda: "never"
        with self.assertRaisesRegex(fetcher.Failed, "UNAUTHENTICATED"):
            fetcher.pull(self.name(), self.auth())
        self.assertLessEqual(len(self.registry.requests), 6)

    def test_no_secret_in_errors(self):
        self.registry.auth = "basic"
        with self.assertRaises(fetcher.Failed) as caught:
            fetcher.pull(self.name(), self.auth(secret="hush-hush"))
        self.assertNotIn("hush", str(caught.exception) + str(caught.exception.heard))


class Tls(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.key, self.cert = os.path.join(self.folder, "key"), os.path.join(self.folder, "cert")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-keyout", self.key, "-out", self.cert, "-subj", "/CN=fake", "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True)
        self.registry = self.enterContext(FakeRegistry(tls=(self.cert, self.key)))
        self.registry.put_image("a/b", "1", layers=[BIG])
        self.name = f"{self.registry.host}/a/b:1"
        self.certs = os.path.join(self.folder, "certs.d")
        self.own = os.path.join(self.certs, self.registry.host)
        os.makedirs(self.own)

    def pull(self, **more):
        return fetcher.pull(self.name, ("REGISTRY_DIR", os.path.join(self.folder, "none")), ("REGISTRY_DIR", self.certs), **more)

    def write(self, name, text):
        with open(os.path.join(self.own, name), "w", encoding="utf-8") as f:
            f.write(text)

    def test_certificates(self):
        with self.assertRaisesRegex(fetcher.Failed, "RegistryUnavailable.*certificate"):
            self.pull()
        self.assertEqual(self.registry.requests, [])
        os.symlink(self.cert, os.path.join(self.own, "any.crt"))
        with self.pull() as f:
            self.assertEqual(f.all("DONE"), [(1,)])
        self.write("hosts.toml", 'ca = "any.crt"\n')
        with self.pull() as f:
            self.assertEqual(f.all("RESOLVED")[0][3], self.registry.url)
        self.write("hosts.toml", "skip_verify = true\n")
        self.pull().__exit__()
        self.write("hosts.toml", "skip_verfy = true\n")
        with self.assertRaisesRegex(fetcher.Failed, "INVALID.*hosts.toml, line 1"):
            self.pull()

    def test_hosts(self):
        with FakeRegistry() as mirror:
            mirror.put_image("a/b", "1", layers=[BIG])
            self.write("hosts.toml", f'ca = "{self.cert}"\n[host."{mirror.url}"]\ncapabilities = ["pull"]\n'
                                     f'[host."{mirror.url}".header]\nx-who = "me"\n')
            with self.pull() as f:
                self.assertEqual(f.all("DONE"), [(1,)])
            self.assertEqual(len(self.registry.requests), 1)
            self.assertEqual({r[2].get("x-who") for r in mirror.requests}, {"me"})
            self.assertTrue(all(f"ns=127.0.0.1%3A{self.registry.port}" in r[1] for r in mirror.requests))


if __name__ == "__main__":
    unittest.main()
