# SPDX-License-Identifier: Apache-2.0
"""`nacre image verify`, and the verdicts that are kept: a policy, and signatures as cosign makes them."""
import json
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import unittest

import grpc

import cosign
import fakeregistry
import images
import nacre_test
import schema
from nacre_test import nacre_pb2

ACCEPT, REJECT = {"type": "insecureAcceptAnything"}, {"type": "reject"}
REPOSITORY = {"type": "matchRepository"}
CODE = grpc.StatusCode


@unittest.skipUnless(shutil.which("openssl"), "no openssl, who signs")
class Verify(nacre_test.NodeTest):
    IMAGES = ()

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="nacre-verify-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.CONFIG = f"images:\n  policy: {cls.dir}/policy.json\n"
        cls.keys = cosign.Keys(cls.dir, "ours", "theirs")
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.registry = self.enterContext(fakeregistry.FakeRegistry())
        self.repository = f"{self.registry.host}/a/b"
        self.name = self.repository + ":1"
        self.root = self.put()
        self.addCleanup(self.clear)

    def clear(self):
        for image in self.node.json("image", "ls"):
            self.node.cli("image", "rm", image["id"])
        self.node.cli("check")

    def put(self, tag="1", content=b"x"):
        return self.registry.put_image("a/b", tag, layers=[fakeregistry.layer_tar({"a": content * 1000})])

    def policy(self, *rules, scope=None, default=ACCEPT):
        document = {"default": [default]}
        if rules:
            document["transports"] = {"docker": {self.repository if scope is None else scope: list(rules)}}
        self.policy_text(json.dumps(document))

    def policy_text(self, text):
        with open(self.dir + "/policy.json", "w", encoding="utf-8") as file:
            file.write(text)

    def wants(self, *names):
        self.policy({"type": "sigstoreSigned", "keyPaths": [self.keys.public(n) for n in names], "signedIdentity": REPOSITORY})

    def sign(self, key, root=None, **more):
        cosign.sign(self.registry, "a/b", root or self.root, self.keys, key, **more)

    def verify(self, status, *words, name=None):
        """What is said in JSON; the exit status is the same without."""
        name = name or self.name
        plain = self.node.cli("image", "verify", *words, name, check=False)
        self.assertEqual(status, plain.returncode, plain.stderr)
        done = self.node.cli("-o", "json", "image", "verify", *words, name, check=False)
        self.assertEqual(status, done.returncode, done.stderr)
        self.plain, self.error = plain.stdout, done.stderr
        if status == 125:
            self.assertEqual(("", ""), (plain.stdout, done.stdout))
            return None
        answer = json.loads(done.stdout)
        schema.check(schema.load(), "image verify", answer)
        self.stored = answer["stored"]
        return answer["verdict"]

    def refused(self, *words, **more):
        options = more.pop("options", ())
        verdict = self.verify(1, *options, **more)
        self.assertEqual("refused", verdict["verdict"])
        self.assertEqual(f"nacre: {verdict['reason']}\n", self.error)
        for word in ("SignatureValidationFailed: ", *words):
            self.assertIn(word, verdict["reason"])
        self.assertEqual([], verdict["signers"])
        return verdict

    def kept(self, reference):
        found = self.node.json("image", "inspect", reference)
        schema.check(schema.load(), "image inspect", found)
        return {v["reference"]: v for v in found["image"]["verdicts"]}

    def signer(self, name):
        return {"key": self.keys.public(name), "fingerprint": self.keys.fingerprint(name), "identity": self.repository}

    # ---- verdicts ----

    def test_without_a_policy(self):
        if os.path.exists(self.dir + "/policy.json"):
            os.unlink(self.dir + "/policy.json")
        verdict = self.verify(0)
        self.assertEqual(["no-policy", "", None, self.root, self.name], [verdict[k] for k in ("verdict", "scope", "reason", "digest", "reference")])
        self.assertFalse(self.stored)
        self.assertEqual([], self.registry.asked("GET", "/blobs/"))

    def test_accepted_by_a_rule(self):
        self.policy(ACCEPT, scope=self.registry.host, default=REJECT)
        verdict = self.verify(0)
        self.assertEqual(["accepted", self.registry.host, []], [verdict[k] for k in ("verdict", "scope", "signers")])
        self.policy(REJECT, scope="q.io")
        self.assertEqual(["accepted", "default"], [self.verify(0)[k] for k in ("verdict", "scope")])

    def test_rejected(self):
        self.policy(REJECT, scope=self.registry.host + "/a")
        verdict = self.refused("the policy of this node rejects " + self.repository)
        self.assertEqual([self.registry.host + "/a", self.root], [verdict["scope"], verdict["digest"]])
        self.assertIn("refused", self.plain)

    def test_signed_and_by_whom(self):
        self.wants("theirs", "ours")
        self.refused("it has none")
        self.sign("ours", optional={"builder": "ci", "run": 7})
        verdict = self.verify(0)
        self.assertEqual(["signed", self.repository, [{**self.signer("ours"), "annotations": {"builder": "ci", "run": "7"}}]],
                         [verdict[k] for k in ("verdict", "scope", "signers")])
        for word in (self.root, "signed", self.keys.public("ours"), self.keys.fingerprint("ours"), "builder=ci", "the registry"):
            self.assertIn(word, self.plain)

    def test_wrong_keys_and_payloads(self):
        self.wants("ours")
        self.sign("theirs")
        self.refused("none of the keys")
        self.sign("ours", spoil=b" ")
        self.refused("none of the keys")
        self.sign("ours", of="sha256:" + "0" * 64)
        self.refused("for another image")
        self.sign("ours", name="q.io/other")
        self.refused("for the name q.io/other")
        self.sign("ours")
        self.assertEqual("signed", self.verify(0)["verdict"])

    def test_each_rule_counts(self):
        one, two = ({"type": "sigstoreSigned", "keyPath": self.keys.public(n), "signedIdentity": REPOSITORY} for n in ("ours", "theirs"))
        self.policy(one, two)
        self.sign("ours")
        self.refused("none of the keys")
        self.sign("theirs")
        self.assertEqual([self.signer("ours"), self.signer("theirs")], self.verify(0)["signers"])
        self.policy(one, REJECT)
        self.refused("rejects")

    def test_by_digest(self):
        self.wants("ours")
        name = f"{self.repository}@{self.root}"
        self.refused("it has none", name=name)
        self.sign("ours")
        self.assertEqual([name, self.root], [self.verify(0, name=name)[k] for k in ("reference", "digest")])
        self.node.cli("image", "pull", name)
        self.assertEqual([name], list(self.kept(name)))
        self.registry.manifests.pop(("a/b", cosign.tag(self.root)))
        self.refused("it has none", name=name)
        self.assertTrue(self.stored)
        self.verify(125, name=f"{self.repository}@sha256:{'1' * 64}")

    def test_by_a_key(self):
        key = ("--key", self.keys.public("ours"))
        self.policy(REJECT)
        self.refused("has no signature by the given key", "it has none", options=key)
        self.sign("theirs")
        self.refused("none of the keys", options=key)
        self.sign("ours", optional={"a": "b"})
        verdict = self.verify(0, *key)
        self.assertEqual(["signed", "", [{**self.signer("ours"), "key": "the given key", "annotations": {"a": "b"}}]],
                         [verdict[k] for k in ("verdict", "scope", "signers")])
        self.assertIn(self.keys.public("ours"), self.plain)
        # Neither a policy that accepts nor one that is broken counts.
        self.policy(ACCEPT)
        self.refused("given key", options=("--key", self.keys.public("ours")), name=self.other_name())
        self.policy_text("{")
        self.assertEqual("signed", self.verify(0, *key)["verdict"])

    def other_name(self):
        self.put(tag="2", content=b"y")
        return self.repository + ":2"

    def test_keys_that_are_none(self):
        self.policy(ACCEPT)
        for name, data, words in (("empty", b"", "empty"), ("zero", b"\0", "Invalid"), ("words", b"x\n", "no public key in PEM"),
                                  ("private", open(self.keys.path("ours"), "rb").read(), "no public key in PEM"),
                                  ("big", b"x" * 20000, "File too large")):
            path = f"{self.dir}/{name}"
            with open(path, "wb") as file:
                file.write(data)
            self.verify(125, "--key", path)
            self.assertIn(words, self.error)
        self.verify(125, "--key", self.dir + "/nope")
        with self.assertRaises(grpc.RpcError) as caught:
            self.node.images.Verify(nacre_pb2.VerifyImageRequest(image=self.name, key="x" * 16385))
        self.assertEqual(CODE.INVALID_ARGUMENT, caught.exception.code())
        self.assertIn("key", caught.exception.details())

    # ---- what is kept ----

    def test_the_verdict_of_the_pull_is_kept(self):
        self.wants("ours")
        self.sign("ours", optional={"a": "b"})
        before = time.time_ns()
        self.node.cli("image", "pull", self.name)
        listed = next(i for i in self.node.images.List(nacre_pb2.ListImagesRequest()).images if self.name in i.names)
        self.assertTrue(before <= listed.verdicts[0].at <= time.time_ns())
        for _ in range(2):
            verdict = self.kept(self.name)[self.name]
            self.assertEqual(["signed", self.repository, self.root, [self.signer("ours")]],
                             [verdict[k] for k in ("verdict", "scope", "digest", "signers")])
            self.node.restart()
        # The policy of today is another one, and so is what it says.
        self.wants("theirs")
        self.refused("none of the keys")
        self.assertTrue(self.stored)
        self.assertEqual("signed", self.kept(self.name)[self.name]["verdict"])
        done = self.node.cli("image", "pull", self.name, check=False)
        self.assertEqual(125, done.returncode)
        self.assertEqual("signed", self.kept(self.name)[self.name]["verdict"])
        self.policy(ACCEPT)
        self.node.cli("image", "pull", self.name)
        self.assertEqual("accepted", self.kept(self.name)[self.name]["verdict"])

    def test_a_tag_that_moved(self):
        self.wants("ours")
        self.sign("ours")
        self.node.cli("image", "pull", self.name)
        moved = self.put(content=b"z")
        # It is the node's image that is asked about.
        self.assertEqual(self.root, self.verify(0)["digest"])
        self.node.cli("image", "rm", self.name)
        self.assertEqual(moved, self.refused("it has none")["digest"])

    def test_the_index_is_what_was_judged(self):
        self.wants("ours")
        one = self.registry.descriptor("a/b", self.root, platform={"os": "linux", "architecture": "amd64"})
        index = self.registry.put_manifest("a/b", {"schemaVersion": 2, "mediaType": fakeregistry.INDEX, "manifests": [one]},
                                           fakeregistry.INDEX, tag="many")
        name = self.repository + ":many"
        self.sign("ours", root=index)
        self.node.cli("image", "pull", name)
        self.assertEqual(index, self.kept(name)[name]["digest"])
        self.assertEqual([index, True], [self.verify(0, name=name)["digest"], self.stored])
        # Given by hand, a name has no verdict; what it is known by in that repository is asked about.
        self.node.cli("image", "tag", name, self.repository + ":mine")
        self.assertEqual([name], list(self.kept(name)))
        self.assertEqual(index, self.verify(0, name=self.repository + ":mine")["digest"])

    def test_a_name_takes_no_verdict_along(self):
        self.policy(ACCEPT)
        self.node.cli("image", "pull", self.name)
        other = self.other_name()
        self.node.cli("image", "pull", other)
        self.assertEqual([self.name], list(self.kept(self.name)))
        self.node.cli("image", "tag", other, self.name)
        # Back again it has lost it.
        self.node.cli("image", "tag", f"{self.repository}@{self.root}", self.name)
        self.assertEqual([], list(self.kept(self.name)))
        self.node.cli("image", "pull", self.name)
        self.assertEqual([self.name], list(self.kept(self.name)))
        self.node.cli("image", "tag", other, self.name)
        for _ in range(2):
            self.assertEqual([other], list(self.kept(self.name)))
            self.assertEqual([], list(self.kept(f"{self.repository}@{self.root}")))
            self.node.restart()
        self.node.cli("image", "tag", f"{self.repository}@{self.root}", self.name)
        self.assertEqual([], list(self.kept(self.name)))

    def test_one_image_with_two_names(self):
        self.policy(ACCEPT, scope=self.repository, default=REJECT)
        self.registry.manifests["a/b", "two"] = self.registry.manifests["a/b", "1"]
        second = self.repository + ":two"
        started = [self.node.spawn_cli("image", "pull", n) for n in (self.name, second)]
        for one in started:
            one.communicate(timeout=60)
            self.assertEqual(0, one.returncode)
        for _ in range(2):
            self.assertEqual({self.name, second}, set(self.kept(self.name)))
            self.node.restart()
        self.node.cli("image", "rm", second)
        self.assertEqual([self.name], list(self.kept(self.name)))

    def test_a_record_of_before(self):
        """An image without verdicts, and one with what is none, as another nacre may have written them."""
        self.policy(ACCEPT)
        self.node.cli("image", "pull", self.name)
        ident = self.node.json("image", "inspect", self.name)["image"]["id"]
        for lines in ((), ("", "x", f"{self.name}\nno digest\nsigned\n1\n\n", f"q.io/a:1\n{self.root}\nsigned\n1\n\n")):
            self.node.kill()
            with sqlite3.connect(self.node.root + "/root.db") as db:
                db.execute("DELETE FROM image_word WHERE list='verdict'")
                db.executemany("INSERT INTO image_word(image, list, position, word) VALUES(?, 'verdict', ?, ?)",
                               [(ident, i, line) for i, line in enumerate(lines)])
            db.close()
            self.node.start()
            self.assertEqual({}, self.kept(self.name))
            self.assertEqual([self.root, "accepted"], [self.verify(0)[k] for k in ("digest", "verdict")])

    def test_what_was_imported_has_none(self):
        self.policy(REJECT, scope="")
        self.node.import_image(images.path("busybox"), "localhost:1/imported:1")
        self.assertEqual({}, self.kept("localhost:1/imported:1"))
        self.refused("rejects", name="localhost:1/imported:1")
        self.assertTrue(self.stored)

    # ---- what cannot be asked ----

    def test_what_is_not_there(self):
        self.policy(ACCEPT)
        self.verify(125, name=self.repository + ":none")
        self.assertIn("manifest none", self.error)
        with self.assertRaises(grpc.RpcError) as caught:
            self.node.images.Verify(nacre_pb2.VerifyImageRequest(image=self.repository + ":none"))
        self.assertEqual(CODE.NOT_FOUND, caught.exception.code())

    def test_a_registry_that_is_down(self):
        self.wants("ours")
        self.sign("ours")
        self.node.cli("image", "pull", self.name)
        self.registry.on("GET", "", lambda a: a.reply(503))
        self.verify(125)
        self.assertIn("RegistryUnavailable: ", self.error)
        # What needs no registry is known without.
        self.policy(REJECT)
        self.refused("rejects")
        self.policy(ACCEPT)
        self.assertEqual("accepted", self.verify(0)["verdict"])

    def test_a_policy_that_cannot_be_read(self):
        self.policy_text("{")
        self.verify(125)
        self.assertIn("SignatureValidationFailed: ", self.error)
        with self.assertRaises(grpc.RpcError) as caught:
            self.node.images.Verify(nacre_pb2.VerifyImageRequest(image=self.name))
        self.assertEqual(CODE.FAILED_PRECONDITION, caught.exception.code())

    def test_signatures_of_the_hostile(self):
        self.wants("ours")
        for data in (b"{", b"[" * 100000, b"{" + b" " * (5 << 20), {"layers": 7}):
            self.registry.put_manifest("a/b", data, tag=cosign.tag(self.root))
            self.refused("cannot be read")
            with self.assertRaises(grpc.RpcError) as caught:
                list(self.node.images.Pull(nacre_pb2.PullRequest(image=self.name)))
            self.assertEqual(CODE.FAILED_PRECONDITION, caught.exception.code(), caught.exception.details())
        # A payload that is no JSON, and one that is too long: signed by the key all the same.
        for payload in (b"x", b'{"critical": ' + b" " * 70000 + b"}"):
            self.registry.manifests.pop(("a/b", cosign.tag(self.root)))
            cosign.put(self.registry, "a/b", self.root, payload, self.keys.proof("ours", payload))
            self.refused("")
        self.registry.on("GET", cosign.tag(self.root), lambda a: a.errors(403, "DENIED"))
        self.verify(125)

    def test_fifty_signatures_count(self):
        """The fiftieth is looked at, the next one is not, and that is told."""
        self.wants("ours")
        for _ in range(49):
            cosign.sign(self.registry, "a/b", self.root, self.keys, "theirs")
        cosign.sign(self.registry, "a/b", self.root, self.keys, "ours")
        self.verify(0)
        before = json.loads(self.registry.manifests["a/b", cosign.tag(self.root)][1])
        before["layers"].insert(0, before["layers"][0])
        self.registry.put_manifest("a/b", before, tag=cosign.tag(self.root))
        self.refused("it has 1 more, and the first 50 of an image count")
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.node.images.Pull(nacre_pb2.PullRequest(image=self.name)))
        self.assertEqual(CODE.FAILED_PRECONDITION, caught.exception.code(), caught.exception.details())

    def test_signatures_come_in_ten_seconds(self):
        """A registry that is slow with the signatures ends the question, of a pull too, at the same time."""
        self.wants("ours")
        hold = threading.Event()
        self.addCleanup(hold.set)
        self.registry.on("GET", cosign.tag(self.root), lambda a: hold.wait(60) and False)
        verify = self.node.images.Verify.future(nacre_pb2.VerifyImageRequest(image=self.name))
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.node.images.Pull(nacre_pb2.PullRequest(image=self.name)))
        for said in (caught.exception, verify.exception(60)):
            self.assertEqual(CODE.DEADLINE_EXCEEDED, said.code(), said.details())
            self.assertIn("did not come within 10 seconds: registry ", said.details())

    def test_names_that_are_none(self):
        self.policy(ACCEPT)
        self.node.cli("image", "pull", self.name)
        ident = self.node.json("image", "inspect", self.name)["image"]["id"]
        for name in ("", "UPPER", ident, ident[7:19], ident[7:]):
            with self.assertRaises(grpc.RpcError) as caught:
                self.node.images.Verify(nacre_pb2.VerifyImageRequest(image=name))
            self.assertEqual(CODE.INVALID_ARGUMENT, caught.exception.code(), caught.exception.details())
            self.assertIn("image", caught.exception.details())
            if name in (ident, ident[7:19], ident[7:]):
                self.assertIn(self.name, caught.exception.details())

    def test_many_at_once_and_none_that_stays(self):
        self.wants("ours")
        before = self.node.fds()
        hold = threading.Event()
        self.registry.on("GET", cosign.tag(self.root), lambda a: hold.wait(60) and False)
        calls = [self.node.images.Verify.future(nacre_pb2.VerifyImageRequest(image=self.name)) for _ in range(16)]
        nacre_test.until(lambda: len(self.registry.asked("GET", cosign.tag(self.root))) == 16, what="16 questions")
        with self.assertRaises(grpc.RpcError) as caught:
            self.node.images.Verify(nacre_pb2.VerifyImageRequest(image=self.name))
        self.assertEqual(CODE.RESOURCE_EXHAUSTED, caught.exception.code())
        for call in calls[:8]:
            call.cancel()
        hold.set()
        for call in calls[8:]:
            self.assertEqual("refused", call.result(60).verdict.verdict)
        nacre_test.until(lambda: self.node.fds() == before, what="all to be closed")
        self.node.await_empty_staging()


if __name__ == "__main__":
    unittest.main()
