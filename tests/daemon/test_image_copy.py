# SPDX-License-Identifier: Apache-2.0
"""Copying from registry to registry, through the daemon and the command; nothing of it is kept."""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import grpc

import fakeregistry
import host
import nacre_test
import schema
from fakeregistry import digest
from nacre_test import nacre_pb2

CODE = grpc.StatusCode


class CopyTest(nacre_test.NodeTest):
    IMAGES = ()

    def setUp(self):
        super().setUp()
        self.registry = self.enterContext(fakeregistry.FakeRegistry())
        self.there = self.enterContext(fakeregistry.FakeRegistry())
        self.layers = [fakeregistry.layer_tar({"big": os.urandom(3 << 20)}), fakeregistry.layer_tar({"small": b"x" * 1000})]
        self.root = self.registry.put_image("a/b", "1", layers=self.layers)
        self.big = digest(self.registry.last["layers"][0])
        self.name, self.dest = f"{self.registry.host}/a/b:1", f"{self.there.host}/c/d:2"
        self.addCleanup(self.clean)

    def clean(self):
        if not self.node.alive:
            self.node.start()
        self.left_nothing()
        self.node.cli("check")

    def left_nothing(self):
        self.node.await_empty_staging()
        self.assertEqual([], os.listdir(self.node.root + "/blobs/sha256"))
        self.assertEqual([], os.listdir(self.node.root + "/partial"))

    def copy(self, **request):
        return list(self.node.images.Copy(nacre_pb2.CopyImageRequest(**{"source": self.name, "destination": self.dest, **request})))

    def refused(self, code, words, **request):
        with self.assertRaises(grpc.RpcError) as caught:
            self.copy(**request)
        self.assertEqual(code, caught.exception.code(), caught.exception.details())
        self.assertRegex(caught.exception.details(), words)

    def put_index(self):
        """An index of two platforms, nested once; (its digest, those of the manifests)."""
        arm = self.registry.put_image("a/b", layers=[self.layers[0]], architecture="arm64")
        inner = {"schemaVersion": 2, "mediaType": fakeregistry.INDEX, "manifests": [
            self.registry.descriptor("a/b", arm, platform={"os": "linux", "architecture": "arm64"})]}
        nested = self.registry.put_manifest("a/b", inner, fakeregistry.INDEX)
        index = {"schemaVersion": 2, "mediaType": fakeregistry.INDEX, "manifests": [
            self.registry.descriptor("a/b", self.root, platform={"os": "linux", "architecture": "amd64"}),
            self.registry.descriptor("a/b", arm, platform={"os": "linux", "architecture": "arm64", "variant": "v8"}),
            self.registry.descriptor("a/b", nested)]}
        return self.registry.put_manifest("a/b", json.dumps(index, indent=3).encode(), fakeregistry.INDEX, "all"), arm, nested


class Copy(CopyTest):
    def test_byte_by_byte(self):
        done = self.node.cli("image", "copy", self.name, self.dest)
        self.assertEqual(self.root, done.stdout.strip())
        self.assertRegex(done.stderr, r"(?m)^  [1-3]/4 [0-9a-f]{12} [0-9.]+ MB copied$")
        self.assertEqual(self.registry.blobs, self.there.blobs)
        self.assertEqual(self.registry.manifests["a/b", "1"], self.there.manifests["c/d", "2"])
        self.assertIn("/manifests/2", self.there.requests[-1][1])
        self.left_nothing()
        self.assertEqual([], json.loads(self.node.cli("-o", "json", "image", "ls").stdout))
        n = len(self.registry.asked("GET", "/blobs/"))
        done = self.node.cli("-o", "json", "image", "copy", self.name, f"{self.there.host}/c/d:3")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        for event in events:
            schema.check(schema.load(), "image copy", event)
        self.assertEqual(["there"] * 3 + ["sent"], [e["state"] for e in events if e["event"] == "blob"])
        self.assertEqual({"event": "copied", "reference": f"{self.there.host}/c/d:3", "digest": self.root, "origin": self.there.url},
                         events[-1])
        # What is there is not even loaded.
        self.assertEqual(n, len(self.registry.asked("GET", "/blobs/")))

    def test_all_platforms_or_one(self):
        root, arm, nested = self.put_index()
        self.assertEqual(root, self.node.cli("image", "copy", f"{self.registry.host}/a/b:all", self.dest).stdout.strip())
        self.assertEqual(self.registry.blobs, self.there.blobs)
        self.assertEqual(self.registry.manifests["a/b", "all"], self.there.manifests["c/d", "2"])
        put = [r[1].rsplit("/", 1)[1] for r in self.there.asked("PUT", "/manifests/")]
        self.assertEqual([self.root, arm, nested, "2"], put)
        one = f"{self.there.host}/one:1"
        self.assertEqual(arm, self.node.cli("image", "copy", "--platform", "linux/arm64/v8", f"{self.registry.host}/a/b:all",
                                            one).stdout.strip())
        self.assertEqual({("one", arm), ("one", "1")}, {m for m in self.there.manifests if m[0] == "one"})
        self.refused(CODE.FAILED_PRECONDITION, "has no image for linux/riscv64", source=f"{self.registry.host}/a/b:all",
                     architecture="riscv64")

    def test_mounted_within_one_registry(self):
        self.registry.on("HEAD", "/v2/other/.*/blobs/", lambda a: a.reply(404))
        done = self.node.cli("image", "copy", self.name, f"{self.registry.host}/other/x")
        self.assertEqual(3, done.stderr.count("was in another repository"))
        self.assertIn("from=a%2Fb", self.registry.asked("POST", "mount=")[0][1])
        self.assertEqual([], self.registry.asked("GET", "/blobs/"))

    def test_that_will_not_mount(self):
        self.registry.on("HEAD", "/v2/other/.*/blobs/", lambda a: a.reply(404))

        def no(a):
            a.body()
            a.errors(405, "UNSUPPORTED", "no mounts here")

        def session(a):
            self.registry.uploads["mine"] = b""
            a.body()
            a.reply(202, b"", {"Location": f"/v2/other/x/blobs/uploads/mine{len(self.registry.asked('POST', 'mount='))}"})
        for how in (no, session):
            with self.subTest(how.__name__):
                self.registry.scripts = [s for s in self.registry.scripts if s[0] == "HEAD"]
                for n in range(10):
                    self.registry.uploads[f"mine{n}"] = b""
                self.registry.on("POST", "mount=", how)
                done = self.node.cli("image", "copy", self.name, f"{self.registry.host}/other/x:{how.__name__}")
                self.assertEqual(self.root, done.stdout.strip())
                self.assertEqual(4, done.stderr.count(" copied"), done.stderr)

    def test_what_fails_and_is_tried_again(self):
        data = self.registry.last["layers"][0]

        def cut(a):
            self.there.uploads[a.path.split("/uploads/")[1].split("?")[0]] += a.rfile.read(1 << 20)
            a.drop()
        self.there.once("PUT", "/uploads/.*" + self.big[7:], cut)
        self.there.once("POST", "/uploads/", lambda a: (a.body(), a.reply(503)))
        self.registry.once("GET", "/blobs/" + self.big, lambda a: a.part(data, 1 << 20), lambda a: a.reply(500))
        done = self.node.cli("image", "copy", self.name, self.dest)
        self.assertEqual(self.root, done.stdout.strip())
        self.assertIn("tried again", done.stderr)
        self.assertTrue([r for r in self.registry.asked("GET", "/blobs/" + self.big) if r[2].get("Range", "").startswith("bytes=")])
        self.assertEqual([f"{1 << 20}-{len(data) - 1}"],
                         [r[2]["Content-Range"] for r in self.there.asked("PATCH", "/uploads/")])
        self.assertEqual(self.registry.blobs, self.there.blobs)

    def test_a_lie(self):
        data = bytearray(self.registry.last["layers"][0])
        data[100] ^= 1
        self.registry.once("GET", "/blobs/" + self.big, lambda a: a.reply(200, bytes(data)))
        done = self.node.cli("image", "copy", self.name, self.dest)
        self.assertEqual(self.root, done.stdout.strip())
        self.assertIn(f"blob {self.big}: what came of it has the digest {digest(bytes(data))}; it is loaded anew", done.stderr)
        self.assertEqual(self.registry.blobs, self.there.blobs)
        self.there.blobs.clear()
        self.there.manifests.clear()
        self.registry.on("GET", "/blobs/" + self.big, lambda a: a.reply(200, bytes(data)))
        self.refused(CODE.INVALID_ARGUMENT, f"blob {self.big} has the digest sha256:")
        self.assertNotIn(digest(bytes(data)), self.there.blobs)
        self.assertEqual({}, self.there.manifests)
        self.there.on("PUT", "/manifests/", lambda a: (a.body(), a.reply(201, b"", {"Docker-Content-Digest": "sha256:" + "0" * 64})))
        self.registry.scripts.clear()
        self.refused(CODE.INVALID_ARGUMENT, "says that it has sha256:000")

    def test_what_it_refuses(self):
        other = "sha256:" + "0" * 64
        for code, words, request in (
                (CODE.INVALID_ARGUMENT, "^source: required", {"source": ""}),
                (CODE.INVALID_ARGUMENT, "^destination: required", {"destination": ""}),
                (CODE.INVALID_ARGUMENT, "^source: ", {"source": "A B"}),
                (CODE.INVALID_ARGUMENT, "^architecture: required with a variant", {"variant": "v7"}),
                (CODE.INVALID_ARGUMENT, "cannot be copied to " + other, {"destination": f"{self.there.host}/c/d@{other}"}),
                (CODE.NOT_FOUND, "manifest none", {"source": f"{self.registry.host}/a/b:none"}),
                (CODE.INVALID_ARGUMENT, r"^auths\[0\]", {"auths": [nacre_pb2.RegistryAuth(host="x")]})):
            with self.subTest(words):
                self.refused(code, words, **request)
        self.assertEqual({}, self.there.manifests)
        self.there.on("HEAD", "/blobs/", lambda a: a.reply(503))
        self.refused(CODE.UNAVAILABLE, f"^RegistryUnavailable: registry {self.there.host}")

    def test_who_asks(self):
        mine = nacre_pb2.RegistryAuth(host=self.registry.host, username="user", password="secret")
        yours = nacre_pb2.RegistryAuth(host=self.there.host, username="user", password="other")
        self.registry.auth, self.there.auth, self.there.password = "bearer", "basic", "other"
        self.refused(CODE.UNAUTHENTICATED, f"^Unauthenticated: registry {self.registry.host}", auths=[yours])
        self.refused(CODE.UNAUTHENTICATED, f"^Unauthenticated: registry {self.there.host}", auths=[mine])
        self.assertEqual(self.root, self.copy(auths=[yours, mine])[-1].pushed.digest)
        for registry, secret in ((self.registry, "other"), (self.there, "secret")):
            secret = base64.b64encode(f"user:{secret}".encode()).decode()
            self.assertFalse([r for r in registry.requests if secret in r[2].get("Authorization", "")])
        with tempfile.TemporaryDirectory() as folder:
            auths = {r.host: {"auth": base64.b64encode(f"user:{r.password}".encode()).decode()} for r in (self.registry, self.there)}
            with open(folder + "/auth.json", "w", encoding="utf-8") as f:
                json.dump({"auths": auths}, f)
            done = self.node.cli("image", "copy", self.name, self.dest, env={**os.environ, "REGISTRY_AUTH_FILE": folder + "/auth.json"})
        self.assertEqual(self.root, done.stdout.strip())

    def held(self, registry, method, pattern):
        """A copy of which the first such request waits: (the command, what lets it go on)."""
        came, go = threading.Event(), threading.Event()
        self.addCleanup(go.set)

        def script(_answer):
            came.set()
            go.wait()
            return False
        registry.once(method, pattern, script)
        command = self.node.spawn_cli("image", "copy", self.name, self.dest)
        if not came.wait(60 * nacre_test.SLOWNESS):
            raise AssertionError("nothing was asked")
        return command, go

    def test_killed_in_the_middle(self):
        for registry, method, pattern in ((self.registry, "GET", "/blobs/" + self.big), (self.there, "PUT", "/uploads/"),
                                          (self.there, "PUT", "/manifests/")):
            with self.subTest(pattern):
                self.there.blobs.clear()
                command, go = self.held(registry, method, pattern)
                self.node.kill()
                go.set()
                self.assertEqual(125, command.wait())
                command.communicate()
                self.node.start()
                self.left_nothing()
                self.assertEqual(self.root, self.node.cli("image", "copy", self.name, self.dest).stdout.strip())
                self.assertEqual(self.registry.blobs, self.there.blobs)

    def test_interrupted(self):
        command, go = self.held(self.there, "PUT", "/uploads/")
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=60 * nacre_test.SLOWNESS)
        self.left_nothing()
        go.set()
        self.assertFalse(self.there.asked("PUT", "/manifests/"))


    def test_a_helper_that_is_killed(self):
        """Alone: the daemon says so, nothing is left, and the next copy goes on."""
        for registry, method, pattern in ((self.registry, "GET", "/manifests/"), (self.registry, "GET", "/blobs/" + self.big),
                                          (self.there, "PUT", "/uploads/"), (self.there, "PUT", "/manifests/")):
            with self.subTest(pattern):
                self.there.blobs.clear()
                self.there.manifests.clear()
                command, go = self.held(registry, method, pattern)
                helpers = [p for p in host.cgroup_pids(host.own_cgroup()) if host.read(f"/proc/{p}/comm").strip() == "nacre-transfer"]
                self.assertEqual(1, len(helpers))
                os.kill(helpers[0], signal.SIGKILL)
                _, err = command.communicate(timeout=60 * nacre_test.SLOWNESS)
                go.set()
                self.assertEqual(125, command.returncode)
                self.assertRegex(err.decode(), "nacre-transfer.*signal 9")
                self.assertEqual({}, self.there.manifests)
                self.left_nothing()
                self.assertEqual(self.root, self.node.cli("image", "copy", self.name, self.dest).stdout.strip())
                self.assertEqual(self.registry.blobs, self.there.blobs)


class Referrers(CopyTest):
    """What refers to the image goes with it, where that is asked for."""

    def refer(self, subject, kind, data, **more):
        """An artifact that refers to that manifest, and the registry lists it; its descriptor."""
        blob = {"mediaType": kind, "digest": self.registry.put_blob(data), "size": len(data)}
        document = {"schemaVersion": 2, "mediaType": fakeregistry.MANIFEST, "artifactType": kind,
                    "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": self.registry.put_blob(b"{}"), "size": 2},
                    "layers": [blob], "subject": self.registry.descriptor("a/b", subject), **more}
        found = self.registry.descriptor("a/b", self.registry.put_manifest("a/b", document), artifactType=kind)
        self.registry.referring.setdefault(("a/b", subject), []).append(found)
        return found["digest"]

    def put_all(self):
        """An SBOM, what signs that, a signature of one platform, and one as cosign has it."""
        index, arm, _ = self.put_index()
        sbom = self.refer(index, "application/spdx+json", b"an SBOM", annotations={"org.opencontainers.image.created": "2026-01-02"})
        signs = self.refer(sbom, "application/vnd.signature", b"of the SBOM")
        one = self.refer(arm, "application/vnd.signature", b"of arm64")
        self.registry.put_image("a/b", f"sha256-{index[7:]}.sig", layers=[b"by cosign"])
        return index, arm, sbom, signs, one

    def copied(self, **more):
        self.copy(source=f"{self.registry.host}/a/b:all", referrers=True, **more)
        self.assertLessEqual(set(self.there.blobs), set(self.registry.blobs))

    def test_by_the_registry(self):
        index, _, sbom, signs, one = self.put_all()
        self.there.on("PUT", "/manifests/", self.knows_subjects)
        done = self.node.cli("image", "copy", "--referrers", f"{self.registry.host}/a/b:all", self.dest)
        self.assertEqual(index, done.stdout.strip())
        self.assertEqual(self.registry.blobs, self.there.blobs)
        names = {r for d, r in self.there.manifests if d == "c/d"}
        self.assertEqual({r for _, r in self.registry.manifests} - {"1", "all"}, names - {"2"})
        # All of it is there before the image has its name; no list was written by us.
        put = [r[1].rsplit("/", 1)[1] for r in self.there.asked("PUT", "/manifests/")]
        self.assertEqual("2", put[-1])
        self.assertLessEqual({sbom, signs, one, f"sha256-{index[7:]}.sig"}, set(put))
        self.assertFalse([p for p in put if p.startswith("sha256-") and not p.endswith(".sig")])
        # Without being asked for nothing of it goes.
        self.there.manifests.clear()
        self.node.cli("image", "copy", f"{self.registry.host}/a/b:all", self.dest)
        self.assertFalse({sbom, signs, one} & {r for _, r in self.there.manifests})

    @staticmethod
    def knows_subjects(a):
        """A registry with the API of distribution 1.1."""
        document = json.loads(a.body())
        if "subject" not in document:
            return False
        there = a.server.registry
        there.put_manifest("c/d", a.body(), a.headers["Content-Type"])
        return a.reply(201, b"", {"OCI-Subject": document["subject"]["digest"]})

    def test_by_tags(self):
        """Neither has the API: the lists are behind tags, here and there; what is listed there already stays."""
        index, arm, sbom, signs, one = self.put_all()
        for registry in (self.registry, self.there):
            registry.on("GET", "/referrers/", lambda a: a.errors(405, "UNSUPPORTED"))
        for (_, subject), entries in self.registry.referring.items():
            document = {"schemaVersion": 2, "mediaType": fakeregistry.INDEX, "manifests": entries}
            self.registry.put_manifest("a/b", document, fakeregistry.INDEX, f"sha256-{subject[7:]}")
        other = {"mediaType": fakeregistry.MANIFEST, "digest": digest(b"x"), "size": 1, "artifactType": "other/thing"}
        self.there.put_manifest("c/d", {"schemaVersion": 2, "mediaType": fakeregistry.INDEX, "manifests": [other]}, fakeregistry.INDEX,
                                f"sha256-{index[7:]}")
        for _ in range(2):
            self.copied()
            lists = {s: json.loads(self.there.manifests["c/d", f"sha256-{s[7:]}"][1])["manifests"] for s in (index, arm, sbom)}
            self.assertEqual({sbom: [signs], arm: [one]}, {s: [e["digest"] for e in lists[s]] for s in (sbom, arm)})
            self.assertEqual([other, self.registry.descriptor("a/b", sbom, artifactType="application/spdx+json", annotations={
                "org.opencontainers.image.created": "2026-01-02"})], lists[index])
        put = [r[1].rsplit("/", 1)[1] for r in self.there.asked("PUT", "/manifests/")]
        self.assertEqual((3, "2"), (sum(p.startswith("sha256-") and not p.endswith(".sig") for p in put), put[-1]))

    def test_lies(self):
        """What is listed and refers to something else; what has no form that is known; lists without end."""
        index, _, _, signs, _ = self.put_all()
        right = self.registry.referring["a/b", index]
        self.registry.referring["a/b", index] = [self.registry.descriptor("a/b", signs)]
        self.refused(CODE.INVALID_ARGUMENT, f"manifest {signs} is listed as one that refers to {index}, and does not",
                     source=f"{self.registry.host}/a/b:all", referrers=True)
        self.registry.referring["a/b", index] = [self.registry.descriptor("a/b", index)]
        self.refused(CODE.INVALID_ARGUMENT, "refers to", source=f"{self.registry.host}/a/b:all", referrers=True)
        self.registry.referring["a/b", index] = right * 1100
        self.refused(CODE.RESOURCE_EXHAUSTED, "256|1024", source=f"{self.registry.host}/a/b:all", referrers=True)
        self.assertEqual({}, self.there.manifests)
        self.registry.referring["a/b", index] = [{**right[0], "mediaType": "application/vnd.oci.artifact.manifest.v1+json"}]
        done = self.node.cli("image", "copy", "--referrers", f"{self.registry.host}/a/b:all", self.dest)
        self.assertIn("artifact.manifest.v1+json\", and not copied", done.stderr)
        self.registry.on("GET", "/referrers/", lambda a: a.errors(403, "DENIED", "not you"))
        self.refused(CODE.PERMISSION_DENIED, "referrers: .*not you", source=f"{self.registry.host}/a/b:all", referrers=True)

    def test_deep(self):
        """What refers to what refers, three times, and no further."""
        chain = [self.root]
        for n in range(5):
            chain.append(self.refer(chain[-1], "a/thing", b"%d" % n))
        self.copy(referrers=True)
        self.assertEqual(chain[:4], [d for d in chain if ("c/d", d) in self.there.manifests or d == self.root])


class SmallDisk(unittest.TestCase):
    """On which one blob of the image has room."""
    MIB = 40

    def test_one_after_the_other(self):
        registry, there = (self.enterContext(fakeregistry.FakeRegistry()) for _ in range(2))
        registry.put_image("a/b", "1", layers=[fakeregistry.layer_tar({f"x{n}": os.urandom(self.MIB << 20)}) for n in range(4)])
        with nacre_test.Node("images:\n  reserve: 1MiB\n", start=False) as node:
            os.makedirs(node.root)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.MIB * 3 // 2 + 8}m", "none", node.root], check=True)
            node.start()
            node.cli("image", "copy", f"{registry.host}/a/b:1", f"{there.host}/c/d:1")
            self.assertEqual(registry.blobs, there.blobs)


class Policy(CopyTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="policy-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        with open(cls.folder + "/policy.json", "w", encoding="utf-8") as f:
            json.dump({"default": [{"type": "reject"}]}, f)
        cls.CONFIG = f"images:\n  policy: {cls.folder}/policy.json\n"
        super().setUpClass()

    def test_of_the_source(self):
        self.refused(CODE.FAILED_PRECONDITION, "^SignatureValidationFailed: ")
        self.assertEqual([], self.there.requests)


class Room(CopyTest):
    CONFIG = "images:\n  reserve: 1000000GiB\n"

    def test_is_refused(self):
        self.refused(CODE.RESOURCE_EXHAUSTED, "images.reserve")
        self.assertEqual([], self.there.requests)


if __name__ == "__main__":
    unittest.main()
