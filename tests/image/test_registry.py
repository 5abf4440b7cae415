# SPDX-License-Identifier: Apache-2.0
"""nacre-fetch and registries that behave: what is asked, in which order, and what comes out of it."""
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import cosign  # noqa: E402
import fetcher  # noqa: E402
from fakeregistry import CONFIG, INDEX, MANIFEST, FakeRegistry, digest, layer_tar  # noqa: E402

BIG = layer_tar({"big": os.urandom(3 << 20)})
SMALL = layer_tar({"small": b"x" * 1000})

NO_POLICY, ACCEPTED, SIGNED, REFUSED = range(4)


class Registry(unittest.TestCase):
    def setUp(self):
        self.registry = self.enterContext(FakeRegistry())

    def name(self, rest="a/b:1"):
        return f"{self.registry.host}/{rest}"

    def check(self, f, layers=None):
        """Each layer is in its file, and the helper was nobody while it wrote documents."""
        for data in self.registry.last["layers"] if layers is None else layers:
            with open(f.blob_path(digest(data)), "rb") as file:
                self.assertEqual(file.read(), data)
        for name in os.listdir(f.staging):
            path = os.path.join(f.staging, name)
            self.assertEqual(os.stat(path).st_uid, 65534)
            with open(path, "rb") as file:
                self.assertEqual(digest(file.read()), "sha256:" + name)
        return f

    def fails(self, kind, *words, reference=None, **more):
        with self.assertRaises(fetcher.Failed) as caught:
            fetcher.pull(reference or self.name(), **more)
        self.assertEqual(caught.exception.kind, kind, caught.exception)
        for word in words:
            self.assertIn(word, caught.exception.text)
        return caught.exception


class Pull(Registry):
    def test_by_tag(self):
        root = self.registry.put_image("a/b", "1", layers=[BIG, SMALL], User="1:2", Env=["A=b"])
        with fetcher.pull(self.name()) as f:
            self.check(f)
            self.assertEqual(f.all("RESOLVED"), [(root, len(self.registry.manifests["a/b", "1"][1]), MANIFEST, self.registry.url)])
            self.assertEqual(f.all("IMAGE"), [(digest(self.registry.last["config"]), root, "1:2", "", "")])
            self.assertEqual(f.all("WORD"), [(0, self.name()), (1, "A=b"), (3, "/x")])
            self.assertEqual([m[2] for m in f.all("LAYER")], [len(d) for d in self.registry.last["layers"]])
            self.assertEqual(f.all("DONE"), [(1,)])
            self.assertEqual(f.notes(), "")
            # Documents first, and each blob is told when it is whole.
            kinds = [m[0] for m in f.heard]
            self.assertEqual(kinds[:4], ["RESOLVED", "VERDICT", "BLOB", "BLOB"])
            self.assertEqual(kinds.count("BLOB"), 4)
        self.assertEqual(len(self.registry.asked("GET", "/blobs/")), 3)

    def test_by_digest_and_by_both(self):
        root = self.registry.put_image("a/b", "1", layers=[SMALL])
        with fetcher.pull(self.name("a/b@" + root)) as f:
            self.check(f)
            self.assertEqual([w for n, w in f.all("WORD") if n == 0], [])
        self.registry.put_image("a/b", "1", layers=[BIG])
        with fetcher.pull(self.name("a/b:1@" + root)) as f:
            self.check(f, [d for n, d in self.registry.blobs.items() if n == f.all("LAYER")[0][0]])
            self.assertEqual([w for n, w in f.all("WORD") if n == 0], [self.name()])
        self.assertEqual(self.registry.asked("GET", "/manifests/1"), [])

    def test_platforms(self):
        entries = []
        for architecture, variant in (("arm", "v6"), ("arm", "v7"), ("arm64", "v8"), ("amd64", ""), ("amd64", "v3"), ("unknown", "")):
            made = self.registry.put_image("a/b", layers=[layer_tar({architecture + variant: b""})], architecture=architecture)
            entries.append(self.registry.descriptor("a/b", made, platform={"os": "linux", "architecture": architecture,
                                                                            **({"variant": variant} if variant else {})}))
        index = self.registry.put_manifest("a/b", {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}, INDEX, tag="1")
        for architecture, variant, chosen in (("arm", "", 1), ("arm", "v6", 0), ("arm64", "", 2), ("amd64", "", 3), ("amd64", "v2", 3),
                                              ("amd64", "v4", 4)):
            with self.subTest(architecture, variant=variant), fetcher.pull(self.name(), architecture=architecture, variant=variant) as f:
                self.assertEqual(f.all("IMAGE")[0][1], entries[chosen]["digest"])
                self.assertEqual(f.all("RESOLVED")[0][0], index)
                self.assertEqual(len(os.listdir(f.staging)), 3)
        self.fails("PRECONDITION", "no image for linux/riscv64", architecture="riscv64")

    def test_skips_and_repeated_layers(self):
        self.registry.put_image("a/b", "1", layers=[SMALL, BIG, SMALL])
        with fetcher.pull(self.name(), answer=lambda f, d: f.say("SKIP", d)) as f:
            self.assertEqual(len(f.all("LAYER")), 3)
            self.assertEqual(len(f.offered), 2)
        self.assertEqual(len(self.registry.asked("GET", "/blobs/")), 1)

    def test_goes_on_with_what_is_there(self):
        self.registry.put_image("a/b", "1", layers=[BIG])
        data = self.registry.last["layers"][0]

        def half(f):
            with open(f.blob_path(digest(data)), "wb") as file:
                file.write(data[:1 << 20])
        with fetcher.pull(self.name(), before=half) as f:
            self.check(f)
        asked = self.registry.asked("GET", digest(data))
        self.assertEqual([r[2].get("Range") for r in asked], [f"bytes={1 << 20}-"])

    def test_what_is_there_is_something_else(self):
        self.registry.put_image("a/b", "1", layers=[BIG])
        data = self.registry.last["layers"][0]

        def half(f):
            with open(f.blob_path(digest(data)), "wb") as file:
                file.write(bytes(1 << 20))
        with fetcher.pull(self.name(), before=half) as f:
            self.check(f)
            self.assertEqual(len(f.all("RESTART")), 1)
            self.assertIn("what was kept", f.all("RESTART")[0][1])

    def test_follows(self):
        self.registry.put_image("a/b", "1", layers=[BIG, b""], plain=True)
        pipes = {}

        def half(f):
            with open(f.blob_path(digest(BIG)), "wb") as file:
                file.write(BIG[:1 << 20])
        with fetcher.pull(self.name(), before=half, answer=lambda f, d: pipes.update({d: f.fetch(d, follow=True)})) as f:
            self.check(f)
        told = os.read(pipes[digest(BIG)], 1 << 16)
        numbers = [int.from_bytes(told[i:i + 8], sys.byteorder) for i in range(0, len(told), 8)]
        self.assertEqual(numbers, sorted(numbers))
        self.assertEqual((numbers[0], numbers[-1]), (1 << 20, len(BIG)))
        self.assertTrue(all(b - a >= 65536 for a, b in zip(numbers, numbers[1:-1])))
        self.assertEqual([os.read(p, 8) for p in pipes.values()], [b"", b""])
        for p in pipes.values():
            os.close(p)

    def test_copy(self):
        one = self.registry.put_image("a/b", layers=[SMALL])
        two = self.registry.put_image("a/b", layers=[BIG, SMALL], architecture="arm64")
        blob = self.registry.put_blob(b"a bill of materials")
        artifact = self.registry.put_manifest("a/b", {
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": "application/spdx+json",
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": self.registry.put_blob(b"{}"), "size": 2},
            "layers": [{"mediaType": "application/spdx+json", "digest": blob, "size": 19}]})
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [
            self.registry.descriptor("a/b", one, platform={"os": "linux", "architecture": "amd64"}),
            self.registry.descriptor("a/b", two, platform={"os": "linux", "architecture": "arm64"}),
            self.registry.descriptor("a/b", artifact)]}
        self.registry.put_manifest("a/b", index, INDEX, tag="1")
        with fetcher.pull(self.name(), flags=fetcher.COPY) as f:
            self.assertEqual({m[0] for m in f.all("CONTENT")}, set(self.registry.blobs))
            self.assertEqual(f.all("CONTENT_END"), [(6,)])
            self.assertEqual(f.all("DONE"), [(0,)])
            self.check(f, self.registry.blobs.values())
            self.assertEqual(len(os.listdir(f.staging)), 4)

    def test_artifact_is_no_image(self):
        self.registry.put_manifest("a/b", {
            "schemaVersion": 2, "mediaType": MANIFEST, "layers": [],
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": self.registry.put_blob(b"{}"), "size": 2}}, tag="1")
        self.fails("UNSUPPORTED", "no image", "application/vnd.oci.empty.v1+json")

    def test_referrers(self):
        root = self.registry.put_image("a/b", "1", layers=[SMALL])
        entry = {"mediaType": MANIFEST, "digest": digest(b"sbom"), "size": 4, "artifactType": "application/spdx+json"}
        self.registry.referring["a/b", root] = [entry]
        with fetcher.pull(self.name(), flags=fetcher.REFERRERS) as f:
            self.assertEqual(f.all("REFERRER"), [(entry["digest"], 4, MANIFEST, "application/spdx+json")])
        # A registry without that API, where a tag holds the list.
        self.registry.on("GET", "/referrers/", lambda a: a.reply(404))
        with fetcher.pull(self.name(), flags=fetcher.REFERRERS) as f:
            self.assertEqual(f.all("REFERRER"), [])
        self.registry.put_manifest("a/b", {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}, INDEX, tag=root.replace(":", "-"))
        with fetcher.pull(self.name(), flags=fetcher.REFERRERS) as f:
            self.assertEqual(len(f.all("REFERRER")), 1)
            self.assertEqual(f.notes(), "")


@unittest.skipUnless(shutil.which("openssl"), "no openssl, who signs")
class Trust(Registry):
    """Signatures as cosign makes them, by openssl; the policy as containers-policy.json has it."""

    def setUp(self):
        super().setUp()
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="trust-"))
        self.keys = cosign.Keys(self.folder, "ours", "theirs")
        self.root = self.registry.put_image("a/b", "1", layers=[SMALL])

    def path(self, name):
        return os.path.join(self.folder, name)

    def sign(self, key, name=None, **more):
        cosign.sign(self.registry, "a/b", self.root, self.keys, key, name=name or self.name(), **more)

    def policy(self, *rules, scope=""):
        with open(self.path("policy.json"), "w", encoding="utf-8") as f:
            json.dump({"default": [{"type": "insecureAcceptAnything"}], "transports": {"docker": {scope: list(rules)}}}, f)
        return ("POLICY", self.path("policy.json"))

    def signed(self, **more):
        return self.policy({"type": "sigstoreSigned", "keyPath": self.keys.public("ours"), **more})

    def test_no_policy(self):
        with fetcher.pull(self.name(), ("POLICY", self.path("none"))) as f:
            self.check(f)
            self.assertEqual(f.all("VERDICT"), [(self.root, NO_POLICY, "", "", 0)])

    def test_takes_what_is_signed(self):
        self.sign("theirs")
        self.sign("ours")
        with fetcher.pull(self.name(), self.signed()) as f:
            self.check(f)
            self.assertIn(self.keys.public("ours"), f.notes())
            # Told before any document is.
            self.assertEqual([m[0] for m in f.heard if m[0] != "NOTE"][:4], ["RESOLVED", "SIGNER", "VERDICT", "BLOB"])
            self.assertEqual(f.all("SIGNER"), [(self.keys.public("ours"), self.keys.fingerprint("ours"), self.name())])
            self.assertEqual(f.all("VERDICT"), [(self.root, SIGNED, "", "", 1)])
        with fetcher.pull(self.name("a/b@" + self.root), self.signed()) as f:
            self.check(f)

    def refuses(self, policy, *words):
        with self.assertRaises(fetcher.Failed) as caught:
            fetcher.pull(self.name(), policy)
        self.assertEqual(caught.exception.kind, "PRECONDITION", caught.exception)
        for word in ("SignatureValidationFailed: ", *words):
            self.assertIn(word, caught.exception.text)
        # Nothing of what it lies over was asked for.
        layers = [digest(d) for d in self.registry.last["layers"]]
        self.assertEqual([r for r in self.registry.asked("GET", "/blobs/") if any(d in r[1] for d in layers)], [])

    def test_refuses_the_rest(self):
        self.refuses(self.signed(), "it has none")
        self.sign("theirs")
        self.refuses(self.signed(), "none of the keys")
        self.sign("ours", spoil=b" ")
        self.refuses(self.signed(), "none of the keys")
        self.sign("ours", of=digest(b"another"))
        self.refuses(self.signed(), "for another image")
        self.sign("ours", name=self.registry.host + "/a/b")
        self.refuses(self.signed(), "matchRepository")
        with fetcher.pull(self.name(), self.signed(signedIdentity={"type": "matchRepository"})) as f:
            self.check(f)

    def test_rejects_by_scope(self):
        self.refuses(self.policy({"type": "reject"}, scope=self.registry.host + "/a"), f'scope "{self.registry.host}/a"')
        with fetcher.pull(self.name(), self.policy({"type": "reject"}, scope=self.registry.host + "/other")) as f:
            self.check(f)
            self.assertEqual(f.all("VERDICT"), [(self.root, ACCEPTED, "default", "", 0)])

    def test_what_cannot_be_read_refuses_all(self):
        self.refuses(self.policy({"type": "reject", "more": 1}, scope="q.io"), "policy.json", '"more" is not known here')
        self.refuses(self.policy({"type": "sigstoreSigned", "keyPath": self.path("nope")}), "nope", "No such file")
        self.assertEqual(self.registry.requests, [])

    def test_signatures_that_break_their_rules(self):
        tag = cosign.tag(self.root)
        for data, words in ((b"{", "the manifest of signatures"), (b"[" * 100000, "the manifest of signatures"),
                            (b"{" + b" " * (5 << 20), "more than"), ({"layers": {}}, "layers"), ({"layers": [7]}, ""),
                            ({"layers": [{"mediaType": cosign.LAYER, "digest": digest(b"nowhere"), "size": 1,
                                          "annotations": {cosign.SIGNATURE: "AAAA"}}]}, "payload")):
            self.registry.put_manifest("a/b", data, tag=tag)
            self.refuses(self.signed(), "cannot be read: ", words)
            self.assertEqual(self.verify()[-1][1], REFUSED)
        # What is no answer is none of these.
        self.registry.on("GET", tag, lambda a: a.errors(401, "UNAUTHORIZED"))
        with self.assertRaisesRegex(fetcher.Failed, "UNAUTHENTICATED"):
            fetcher.pull(self.name(), self.signed())

    # ---- the job `verify` ----

    def verify(self, policy=None, name=None, digest="", key=""):  # pylint: disable=redefined-outer-name
        """What was heard but for notes and DONE."""
        with fetcher.Fetcher("verify") as f:
            # A text, also where it is a digest.
            f.say("VERIFY", name or self.name(), fetcher.Text(digest), key, 0)
            f.run(*([] if key else [policy or self.signed()]), retry_ms=1)
            self.assertEqual(f.heard[-1], ("DONE", 0))
            return [m[1:] if m[0] == "VERDICT" else m for m in f.heard[:-1] if m[0] != "NOTE"]

    def pem(self, name):
        with open(self.keys.public(name), encoding="ascii") as f:
            return f.read()

    def test_verify_tells_who_signed(self):
        self.sign("theirs", optional={"by": "them"})
        self.sign("ours", optional={"by": "us\n", "n": 1, "list": [1, "x"], "": "no name", "long": "x" * 5000, "bad\nname": "x"})
        heard = self.verify()
        self.assertEqual([m[0] for m in heard[:-1]], ["RESOLVED", "SIGNER", "ANNOTATION", "ANNOTATION", "ANNOTATION"])
        self.assertEqual({m[1:] for m in heard[2:-1]}, {("by", "us\n"), ("n", "1"), ("list", '[1,"x"]')})
        self.assertEqual(heard[-1], (self.root, SIGNED, "", "", 1))
        # A digest that is given is not asked for.
        self.registry.requests.clear()
        self.assertEqual(self.verify(digest=self.root)[-1], (self.root, SIGNED, "", "", 1))
        self.assertEqual(self.registry.asked("GET", "/manifests/1$"), [])

    def test_verify_asks_each_rule(self):
        both = self.policy({"type": "sigstoreSigned", "keyPath": self.keys.public("ours")},
                           {"type": "sigstoreSigned", "keyPath": self.keys.public("theirs")})
        self.sign("ours")
        self.assertEqual(self.verify(both)[-1][1], REFUSED)
        self.sign("theirs")
        heard = self.verify(both)
        self.assertEqual([m[1] for m in heard if m[0] == "SIGNER"], [self.keys.public("ours"), self.keys.public("theirs")])
        either = self.policy({"type": "sigstoreSigned", "keyPaths": [self.keys.public("theirs"), self.keys.public("ours")]})
        self.assertEqual(self.verify(either)[-1][4], 1)

    def test_verify_by_a_key(self):
        def heard(key, **more):
            return self.verify(key=self.pem(key), **more)[-1]
        self.assertEqual(heard("ours")[1], REFUSED)
        self.sign("theirs", name=self.registry.host + "/a/b")
        self.assertIn("SignatureValidationFailed: " + self.registry.host + "/a/b has no signature by the given key", heard("ours")[3])
        self.assertEqual(heard("theirs"), (self.root, SIGNED, "", "", 1))
        self.assertEqual(heard("theirs", digest=self.root)[1], SIGNED)
        self.assertEqual(heard("theirs", digest="sha256:" + "0" * 64)[1], REFUSED)
        # Of another repository, with the same digest.
        other = self.registry.put_image("a/c", "1", layers=[SMALL])
        self.assertEqual(other, self.root)
        self.registry.manifests["a/c", cosign.tag(other)] = self.registry.manifests["a/b", cosign.tag(other)]
        self.assertIn("for the name", heard("theirs", name=self.name("a/c:1"))[3])
        with self.assertRaisesRegex(fetcher.Failed, "INVALID: key: "):
            self.verify(key="-----BEGIN PUBLIC KEY-----\n")

    def test_verify_refuses_without_a_question(self):
        reject = self.policy({"type": "reject"})
        verdict = self.verify(reject, digest=self.root)[-1]
        self.assertEqual(verdict[1], REFUSED)
        self.assertIn("rejects", verdict[3])
        self.assertEqual(self.verify(("POLICY", self.path("none")), digest=self.root), [(self.root, NO_POLICY, "", "", 0)])
        self.assertEqual(self.registry.requests, [])
        with self.assertRaisesRegex(fetcher.Failed, "NOT_FOUND"):
            self.verify(reject, name=self.name("a/none:1"))


class List(Registry):
    def list(self, what, most=100):
        f = self.enterContext(fetcher.Fetcher("list"))
        f.say("LIST", self.name(), what, most, 0)
        return f.run()

    def test_tags(self):
        for tag in ("1", "2", "3", "latest", "x"):
            self.registry.put_image("a/b", tag, layers=[])
        self.assertEqual(self.list(1).all("TAG"), [("1",), ("2",), ("3",), ("latest",), ("x",)])
        with self.assertRaisesRegex(fetcher.Failed, "EXHAUSTED.*more than 4 tags"):
            self.list(1, 4)

    def test_resolve(self):
        root = self.registry.put_image("a/b", "1", layers=[])
        self.registry.referring["a/b", root] = [{"mediaType": MANIFEST, "digest": root, "size": 1}]
        self.assertEqual([m[0] for m in self.list(0).heard], ["RESOLVED", "DONE"])
        self.assertEqual([m[0] for m in self.list(2).heard], ["RESOLVED", "REFERRER", "DONE"])


if __name__ == "__main__":
    unittest.main()
