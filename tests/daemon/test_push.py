# SPDX-License-Identifier: Apache-2.0
"""Pushing and listing through the daemon and the command, to registries on loopback."""
import base64
import crypt  # pylint: disable=deprecated-module
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import grpc

import fakeregistry
import host
import images
import nacre_test
import schema
import screen
from nacre_test import nacre_pb2


def wait_for(event):
    if not event.wait(60 * nacre_test.SLOWNESS):
        raise AssertionError("nothing was asked")


class PushTest(nacre_test.NodeTest):
    IMAGES = ()

    def setUp(self):
        super().setUp()
        self.registry = self.enterContext(fakeregistry.FakeRegistry())
        self.there = self.enterContext(fakeregistry.FakeRegistry())
        self.layers = [fakeregistry.layer_tar({"big": os.urandom(3 << 20)}), fakeregistry.layer_tar({"small": b"x" * 1000})]
        self.root = self.registry.put_image("a/b", "1", layers=self.layers)
        self.name, self.dest = f"{self.registry.host}/a/b:1", f"{self.there.host}/c/d:2"
        self.addCleanup(self.clean)
        self.ident = self.node.cli("image", "pull", self.name).stdout.strip()

    def clean(self):
        if not self.node.alive:
            self.node.start()
        self.node.cli("image", "rm", self.ident, check=False)
        self.node.await_empty_staging()
        self.node.cli("check")

    def push(self, **request):
        return list(self.node.images.Push(nacre_pb2.PushRequest(image=self.ident, destination=self.dest, **request)))

    def refused(self, code, words, call):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        self.assertEqual(code, caught.exception.code(), caught.exception.details())
        self.assertRegex(caught.exception.details(), words)

    def hold(self, registry, method, pattern):
        """The first such request waits: (it has come, let it go on)."""
        came, go = threading.Event(), threading.Event()
        self.addCleanup(go.set)

        def script(_answer):
            came.set()
            go.wait()
            return False
        registry.once(method, pattern, script)
        return came, go


class Push(PushTest):
    def test_as_it_came(self):
        done = self.node.cli("image", "push", self.name, self.dest)
        self.assertEqual(self.root, done.stdout.strip())
        self.assertRegex(done.stderr, r"(?m)^  [12]/4 [0-9a-f]{12} [0-9.]+ MB pushed$")
        self.assertEqual(self.registry.blobs, self.there.blobs)
        self.assertEqual(self.registry.manifests["a/b", "1"], self.there.manifests["c/d", "2"])
        self.assertIn("/manifests/2", self.there.requests[-1][1])
        done = self.node.cli("-o", "json", "image", "push", self.name, f"{self.there.host}/c/d:3")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        for event in events:
            schema.check(schema.load(), "image push", event)
        self.assertEqual(["there"] * 3 + ["sent"], [e["state"] for e in events if e["event"] == "blob"])
        self.assertEqual({"event": "pushed", "reference": f"{self.there.host}/c/d:3", "digest": self.root, "origin": self.there.url},
                         events[-1])
        # What comes back is what it was.
        self.node.cli("image", "rm", self.ident)
        self.assertEqual(self.ident, self.node.cli("image", "pull", self.dest).stdout.strip())

    def test_where_its_name_says(self):
        self.node.cli("image", "tag", self.name, self.dest)
        self.assertEqual(self.root, self.node.cli("image", "push", self.dest).stdout.strip())
        self.assertIn(("c/d", "2"), self.there.manifests)
        done = self.node.cli("image", "push", self.ident, check=False)
        self.assertEqual(125, done.returncode)
        self.assertIn("destination: required", done.stderr)

    def test_mounted_from_another_repository(self):
        self.registry.on("HEAD", "/v2/other/.*/blobs/", lambda a: a.reply(404))
        done = self.node.cli("image", "push", self.name, f"{self.registry.host}/other/x")
        self.assertEqual(3, done.stderr.count("was in another repository"))
        self.assertIn("from=a%2Fb", self.registry.asked("POST", "mount=")[0][1])
        self.assertEqual([], self.registry.asked("PUT", "/uploads/"))

    def test_an_upload_that_was_cut(self):
        data = self.registry.last["layers"][0]

        def cut(a):
            self.there.uploads[a.path.split("/uploads/")[1].split("?")[0]] += a.rfile.read(1 << 20)
            a.drop()
        self.there.once("PUT", "/uploads/.*" + fakeregistry.digest(data)[7:], cut)
        done = self.node.cli("image", "push", self.name, self.dest)
        self.assertIn("tried again", done.stderr)
        self.assertEqual([f"{1 << 20}-{len(data) - 1}"],
                         [r[2]["Content-Range"] for r in self.there.asked("PATCH", "/uploads/")])
        self.assertEqual(self.registry.blobs, self.there.blobs)

    def test_a_daemon_killed_in_the_middle(self):
        came, go = self.hold(self.there, "PUT", "/uploads/")
        command = self.node.spawn_cli("image", "push", self.name, self.dest)
        wait_for(came)
        self.node.kill()
        go.set()
        self.assertEqual(125, command.wait())
        command.communicate()
        self.assertNotIn(("c/d", "2"), self.there.manifests)
        self.node.start()
        self.node.await_empty_staging()
        self.assertEqual(self.root, self.node.cli("image", "push", self.name, self.dest).stdout.strip())
        self.assertEqual(self.registry.blobs, self.there.blobs)

    def test_interrupted(self):
        came, go = self.hold(self.there, "PUT", "/uploads/")
        command = self.node.spawn_cli("image", "push", self.name, self.dest)
        wait_for(came)
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=60 * nacre_test.SLOWNESS)
        go.set()
        self.node.await_empty_staging()
        self.assertFalse(self.there.asked("PUT", "/manifests/"))

    def test_removed_meanwhile(self):
        came, go = self.hold(self.there, "PUT", "/uploads/")
        command = self.node.spawn_cli("image", "push", self.name, self.dest)
        wait_for(came)
        self.node.cli("image", "rm", self.ident)
        go.set()
        out, err = command.communicate(timeout=60 * nacre_test.SLOWNESS)
        self.assertEqual(self.root, out.decode().strip(), err)
        self.assertEqual(self.registry.blobs, self.there.blobs)
        nacre_test.until(lambda: not os.listdir(self.node.root + "/blobs/sha256"), what="a store without blobs")

    def test_of_many_layers(self):
        registry = self.enterContext(fakeregistry.FakeRegistry())
        root = registry.put_image("a/many", "1", layers=[fakeregistry.layer_tar({f"f{n}": b"%d" % n}) for n in range(250)])
        name = f"{registry.host}/a/many:1"
        ident = self.node.cli("image", "pull", name).stdout.strip()
        self.assertEqual(root, self.node.cli("image", "push", name, self.dest).stdout.strip())
        self.assertEqual(registry.blobs, self.there.blobs)
        self.node.cli("image", "rm", ident)

    def test_a_damaged_manifest_stays_here(self):
        """Behind a tag a registry takes what it gets: a flipped byte of the stored manifest is seen before."""
        path = f"{self.node.root}/blobs/sha256/{self.root[7:]}"
        with open(path, "r+b") as file:
            data = file.read()
            file.seek(0)
            file.write(data.replace(b"schemaVersion", b"schemaversion"))
        self.refused(grpc.StatusCode.INTERNAL, f"the store is damaged, blob {self.root} has another digest", self.push)
        self.assertEqual({}, self.there.manifests)

    def test_errors(self):
        code, other = grpc.StatusCode, "sha256:" + "0" * 64
        images = self.node.images
        for status, words, request in ((code.INVALID_ARGUMENT, "^image: required", {}),
                                       (code.NOT_FOUND, "^image: there is no image", {"image": "none"}),
                                       (code.INVALID_ARGUMENT, "^destination: ", {"image": self.ident, "destination": "A B"}),
                                       (code.INVALID_ARGUMENT, "^destination: the image has the digest " + self.root,
                                        {"image": self.ident, "destination": f"{self.there.host}/c/d@{other}"})):
            with self.subTest(words):
                self.refused(status, words, lambda r=request: list(images.Push(nacre_pb2.PushRequest(**r))))
        self.there.on("PUT", "/manifests/", lambda a: (a.body(), a.reply(201, b"", {"Docker-Content-Digest": other})))
        self.refused(code.INVALID_ARGUMENT, f"says that it has {other}", self.push)
        self.there.on("HEAD", "/blobs/", lambda a: a.reply(503))
        self.refused(code.UNAVAILABLE, f"^RegistryUnavailable: registry {self.there.host}", self.push)

    def test_that_the_registry_will_not_take(self):
        """Whoever it is that refuses, it is not tried again, and it is told what, where and why."""
        code, url = grpc.StatusCode, self.there.url
        big = fakeregistry.digest(self.registry.last["layers"][0])
        for method, pattern, status, means, words in (
                ("PUT", "/manifests/", 405, code.FAILED_PRECONDITION, "manifest 2: it answers with status 405"),
                ("PUT", "/manifests/", 400, code.INVALID_ARGUMENT, "manifest 2: it answers with status 400"),
                ("POST", "/uploads/", 405, code.FAILED_PRECONDITION, "blob sha256:.*: it answers with status 405"),
                ("PUT", "/uploads/.*" + big[7:], 413, code.FAILED_PRECONDITION, f"blob {big}: it answers with status 413"),
                ("HEAD", "/blobs/", 400, code.INVALID_ARGUMENT, "blob sha256:.*: it answers with status 400")):
            with self.subTest(words):
                self.there.scripts.clear()
                self.there.blobs.clear()
                self.there.requests.clear()
                self.there.on(method, pattern, lambda a, s=status: (a.body(), a.errors(s, "TAG_INVALID", "the tag is immutable")))
                why = "" if method == "HEAD" else r" \(TAG_INVALID: the tag is immutable\)$"
                self.refused(means, rf"^registry {self.there.host} \({url}\): {words}{why}", self.push)
                if method == "PUT":
                    self.assertEqual(1, len(self.there.asked(method, pattern)))

    def test_who_asks(self):
        code = grpc.StatusCode
        self.there.auth = "bearer"
        self.refused(code.UNAUTHENTICATED, "^Unauthenticated: ", self.push)
        auth = {"host": self.there.host, "username": "user", "password": "wrong"}
        self.refused(code.UNAUTHENTICATED, "^Unauthenticated: .*does not accept the credentials",
                     lambda: self.push(auths=[nacre_pb2.RegistryAuth(**auth)]))
        self.refused(code.UNAUTHENTICATED, "^Unauthenticated: ", lambda: list(self.node.images.Pull(
            nacre_pb2.PullRequest(image=self.dest))))
        auth["password"] = "secret"
        self.refused(code.INVALID_ARGUMENT, "auths.0.: username: required with a password",
                     lambda: self.push(auths=[nacre_pb2.RegistryAuth(host=self.there.host, password="secret")]))

        def forget(a):
            self.there.tokens.clear()
            a.body()
            self.there.admit(a, a.path)
        self.there.once("PUT", "/uploads/", forget)
        self.assertEqual(self.root, self.push(auths=[nacre_pb2.RegistryAuth(**auth)])[-1].pushed.digest)
        self.there.on("PUT", "/manifests/", lambda a: (a.body(), a.errors(403, "DENIED", "read only")))
        self.refused(code.PERMISSION_DENIED, "read only", lambda: self.push(auths=[nacre_pb2.RegistryAuth(**auth)]))

    def test_tags(self):
        for n in range(5):
            self.registry.put_image("a/b", f"v{n}", layers=[])
        want = ["1", "v0", "v1", "v2", "v3", "v4"]
        self.assertEqual(want, self.node.cli("image", "tags", f"{self.registry.host}/a/b").stdout.split())
        found = self.node.json("image", "tags", f"{self.registry.host}/a/b")
        schema.check(schema.load(), "image tags", found)
        self.assertEqual(want, found)
        self.assertEqual(6, len(self.registry.asked("GET", "/tags/list")))
        tags = lambda name: lambda: list(self.node.images.Tags(nacre_pb2.TagsRequest(repository=name)))  # noqa: E731
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "^repository: .*is an image of a repository", tags(self.name))
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "^repository: required", tags(""))
        self.refused(grpc.StatusCode.NOT_FOUND, "repository name not known", tags(f"{self.registry.host}/none"))
        document = json.dumps({"name": "a/b", "tags": [f"t{n}" for n in range(7000)]}).encode()
        self.registry.on("GET", "/tags/list", lambda a: a.reply(200, document, {
            "Content-Type": "application/json", "Link": '</v2/a/b/tags/list?last=t>; rel="next"'}))
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "more than 20000 tags", tags(f"{self.registry.host}/a/b"))

    def test_pull_all_tags(self):
        made = {tag: self.registry.put_image("a/all", tag, layers=[fakeregistry.layer_tar({"f": tag.encode()})]) for tag in ("1", "2", "latest")}
        self.assertEqual(3, len(set(made.values())))
        name = f"{self.registry.host}/a/all"
        said = self.node.cli("image", "pull", "-q", "--all-tags", name).stdout.split()
        self.assertEqual(3, len(said))
        self.assertEqual({f"{name}:{tag}" for tag in made}, {n for i in self.node.json("image", "ls") for n in i["names"] if n.startswith(name)})
        self.node.cli("image", "rm", f"{name}:2")
        # What one of them fails with is told, and the others come.
        self.registry.on("GET", "/manifests/1$", lambda a: a.reply(404))
        done = self.node.cli("image", "pull", "-a", name, check=False)
        self.assertEqual((125, 2), (done.returncode, len(done.stdout.split())), done.stderr)
        self.assertIn(f"{name}:1", done.stderr)
        for words, said in (((f"{name}:2",), "is an image of a repository"), ((f"{self.registry.host}/none",), "not known")):
            done = self.node.cli("image", "pull", "--all-tags", *words, check=False)
            self.assertEqual(125, done.returncode)
            self.assertIn(said, done.stderr)
        for i in self.node.json("image", "ls"):
            if any(n.startswith(name) for n in i["names"]):
                self.node.cli("image", "rm", i["id"])

    def test_referrers(self):
        image = lambda name: lambda: list(self.node.images.Referrers(nacre_pb2.ReferrersRequest(image=name)))  # noqa: E731
        subject = self.node.json("image", "inspect", self.name)["image"]["repo_digests"][0].partition("@")[2]
        nothing = self.node.json("image", "inspect", "--referrers", self.name)
        schema.check(schema.load(), "image inspect", nothing)
        self.assertEqual({"subject": subject, "list": []}, nothing["referrers"])
        entries = [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": fakeregistry.digest(b"%d" % n), "size": n,
                    "artifactType": "application/spdx+json" if n % 2 else ""} for n in range(70)]
        for e in entries[::2]:
            del e["artifactType"]
        self.registry.referring["a/b", subject] = entries
        found = self.node.json("image", "inspect", "--referrers", self.name)
        schema.check(schema.load(), "image inspect", found)
        want = [{"digest": e["digest"], "artifact_type": e.get("artifactType", ""), "media_type": e["mediaType"], "size": e["size"],
                 "annotations": {}} for e in entries]
        self.assertEqual({"subject": subject, "list": want}, found["referrers"])
        self.assertEqual({**nothing, "referrers": found["referrers"]}, found)
        # What its list says of them, in bounds.
        some = {"org.opencontainers.image.created": "2026-01-02T03:04:05Z", "a": "1\n\u00e4"}
        most = {f"{n:02}": "x" for n in range(40)}
        room = {"long": "x" * 5000, "fits": "y" * 4000, "more": "z" * 84, "no": 5, "": "x", "a\nb": "c"}
        for entry, annotations in zip(entries[30:], (some, most, room, {})):
            entry["annotations"] = annotations
        found = self.node.json("image", "inspect", "--referrers", self.name)
        schema.check(schema.load(), "image inspect", found)
        shown = [(e["annotations"], e.get("annotations_left_out", 0)) for e in found["referrers"]["list"]]
        self.assertEqual([({}, 0)] * 30, shown[:30])
        kept = ({"fits": "y" * 4000, "more": "z" * 84}, 4)
        self.assertEqual([(some, 0), (dict(list(most.items())[:32]), 8), kept, ({}, 0)], shown[30:34])
        entries[0]["annotations"] = [1]
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "annotations", image(self.name))
        del entries[0]["annotations"]
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "^image: required", image(""))
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "^image: ", image("a b"))
        self.refused(grpc.StatusCode.NOT_FOUND, "manifest", image(f"{self.registry.host}/a/b:none"))
        self.registry.referring["a/b", subject] = entries * 20
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "1024", image(self.name))
        self.node.cli("image", "import", images.path("busybox"))
        done = self.node.cli("image", "inspect", "--referrers", "busybox", check=False)
        self.assertEqual((125, True), (done.returncode, "came from no registry" in done.stderr), done.stderr)
        self.node.cli("image", "rm", "busybox")


class Helpers(PushTest):
    """Programs that keep the user's credentials, run by the command."""

    def setUp(self):
        super().setUp()
        self.dir = self.enterContext(tempfile.TemporaryDirectory())
        self.there.auth = "basic"

    def helper(self, script, name="test", **config):
        with open(f"{self.dir}/docker-credential-{name}", "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\necho \"$@\" > {self.dir}/args\ncat > {self.dir}/stdin\n{script}\n")
        os.chmod(f"{self.dir}/docker-credential-{name}", 0o755)
        self.config(**(config or {"credsStore": name}))

    def config(self, **config):
        with open(self.dir + "/config.json", "w", encoding="ascii") as f:
            json.dump(config, f)

    def env(self, **more):
        return {**os.environ, "DOCKER_CONFIG": self.dir, "PATH": f"{self.dir}:{os.environ['PATH']}", **more}

    def run_push(self, check=True, **env):
        return self.node.cli("image", "push", self.name, self.dest, check=check, env=self.env(**env))

    def read(self, name):
        with open(f"{self.dir}/{name}", encoding="ascii") as f:
            return f.read()

    def fails(self, words, **env):
        done = self.run_push(check=False, **env)
        self.assertEqual(125, done.returncode)
        self.assertRegex(done.stderr, words)
        self.assertNotIn("secret", done.stdout + done.stderr)
        self.assertNotIn("secret", self.node.log())

    def test_a_password(self):
        self.helper("""echo '{"ServerURL":"x","Username":"user","Secret":"secret"}'""")
        self.assertEqual(self.root, self.run_push().stdout.strip())
        self.assertEqual(("get\n", self.there.host), (self.read("args"), self.read("stdin")))
        self.assertNotIn("secret", self.node.log())

    def test_an_empty_password(self):
        self.there.password = ""
        self.config(auths={self.there.host: {"auth": base64.b64encode(b"user:").decode()}})
        self.assertEqual(self.root, self.run_push().stdout.strip())

    def test_named_on_the_command_line(self):
        """--creds and --authfile, of a push and of a pull, go before what is kept; -q is silent."""
        entry = {"auth": base64.b64encode(b"user:wrong").decode()}
        self.config(auths={self.there.host: entry})
        mine = self.dir + "/mine.json"
        with open(mine, "w", encoding="utf-8") as f:
            json.dump({"auths": {self.there.host: {"auth": base64.b64encode(b"user:secret").decode()}}}, f)
        for options in (("--creds", "user:secret"), ("--authfile", mine)):
            for words in (("push", self.name, self.dest), ("pull", self.dest)):
                done = self.node.cli("image", *words, "-q", *options, env=self.env())
                self.assertEqual("", done.stderr)
            self.fails("Unauthenticated")
        done = self.node.cli("image", "pull", "--authfile", self.dir + "/none", self.dest, check=False, env=self.env())
        self.assertRegex(done.stderr, "--authfile .*/none: No such file")
        for word in ("user", ":secret", "user:"):
            done = self.node.cli("image", "push", "--creds", word, self.name, self.dest, check=False, env=self.env())
            self.assertRegex(done.stderr, "^nacre: --creds is USER:PASSWORD")
        done = self.node.cli("image", "push", "--creds", "a:b", "--authfile", mine, self.name, self.dest, check=False, env=self.env())
        self.assertIn("one of the two", done.stderr)

    def test_a_token(self):
        self.there.auth, self.there.identity = "bearer", "refresh-me"
        self.helper("""echo '{"Username":"<token>","Secret":"refresh-me"}'""", credHelpers={self.there.host: "test"}, credsStore="none")
        self.assertEqual(self.root, self.run_push().stdout.strip())
        self.assertTrue(self.there.asked("POST", "^/token"))

    def test_nothing_for_this_registry(self):
        self.helper("echo 'credentials not found in native keychain'; exit 1")
        self.fails("^nacre: Unauthenticated: .*none were given")
        entry = {"auth": base64.b64encode(b"user:secret").decode()}
        self.config(credsStore="test", auths={self.there.host: entry})
        self.assertEqual(self.root, self.run_push().stdout.strip())

    def test_what_it_started_ends_with_it(self):
        """Where it takes too long, says too much, fails, or we are told to end; where it has answered it stays."""
        starts = f"sleep 1000 > /dev/null 2>&1 & echo $! > {self.dir}/pid; mv {self.dir}/pid {self.dir}/child"
        child = lambda: host.process(int(self.read("child")))  # noqa: E731
        for script in ("exec sleep 1000", "head -c 70000 /dev/zero; exec sleep 1000", "exit 3", "kill -9 $$"):
            self.helper(f"{starts}\n{script}")
            self.fails("docker-credential-test", NACRE_CREDENTIAL_HELPER_SECONDS="1")
            nacre_test.until(lambda: child() is None, what="the end of what it started")
        self.helper(f"{starts}\nexec sleep 1000")
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            os.unlink(f"{self.dir}/child")
            command = self.node.spawn_cli("image", "push", self.name, self.dest, env=self.env())
            nacre_test.until(lambda: os.path.exists(f"{self.dir}/child"), what="the helper")
            command.send_signal(number)
            command.communicate(timeout=60 * nacre_test.SLOWNESS)
            self.assertEqual(-number, command.returncode)
            nacre_test.until(lambda: child() is None, what="the end of what it started")
        self.helper(starts + """\necho '{"ServerURL":"x","Username":"user","Secret":"secret"}'""")
        self.assertEqual(self.root, self.run_push().stdout.strip())
        os.kill(int(self.read("child")), signal.SIGKILL)

    def test_at_a_terminal(self):
        """It asks there; and the interrupt character ends it, what it started, and us."""
        self.helper("""printf 'who? ' > /dev/tty; read x < /dev/tty; echo '{"Username":"user","Secret":"'$x'"}'""")
        words = nacre_test.BINARY, "--socket", self.node.socket, "image", "push", self.name, self.dest
        with screen.Screen(*words, env=self.env()) as s:
            s.until(b"who? ")
            s.type(b"secret\n")
            s.until(self.root.encode())
            self.assertEqual(0, s.end())
        self.helper(f"sleep 1000 & echo $! > {self.dir}/child; printf 'who? ' > /dev/tty; exec sleep 1000")
        with screen.Screen(*words, env=self.env()) as s:
            s.until(b"who? ")
            s.type(b"\x03")
            self.assertEqual(-signal.SIGINT, s.end())
        nacre_test.until(lambda: host.process(int(self.read("child"))) is None, what="the end of what it started")

    def test_what_goes_wrong(self):
        self.helper("echo 'secret'; exit 3")
        self.fails("docker-credential-test ended with status 3")
        self.helper("echo '{secret'")
        self.fails("docker-credential-test is no JSON object")
        self.helper("kill -9 $$")
        self.fails("docker-credential-test was ended by signal 9")
        self.helper("head -c 70000 /dev/zero; exec sleep 1000")
        self.fails("docker-credential-test answers with more than 65536 bytes")
        self.helper("exec sleep 1000")
        self.fails("docker-credential-test has not answered within 1 s", NACRE_CREDENTIAL_HELPER_SECONDS="1")
        self.helper("exec sleep 1000 > /dev/null")
        self.fails("docker-credential-test has not answered within 1 s", NACRE_CREDENTIAL_HELPER_SECONDS="1")
        self.config(credsStore="missing")
        self.fails("docker-credential-missing is not in PATH")
        self.config(credsStore="../test")
        self.fails("is no name of a credential helper")
        self.assertFalse(self.there.asked("PUT", "/"))


class Login(nacre_test.NodeTest):
    IMAGES = ()

    def setUp(self):
        super().setUp()
        self.registry = self.enterContext(fakeregistry.FakeRegistry())
        self.registry.on("GET", "^/v2/$", lambda a: a.reply(200, b"{}") if self.registry.admit(a, a.path) else None)
        self.dir = self.enterContext(tempfile.TemporaryDirectory())
        self.file = self.dir + "/.docker/config.json"
        self.env = {k: v for k, v in os.environ.items() if k not in ("REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "XDG_RUNTIME_DIR")}
        self.env.update(HOME=self.dir, PATH=f"{self.dir}:{os.environ['PATH']}")

    def cli(self, *words, check=True, password="secret", **env):
        done = self.node.cli(*words, check=check, env={**self.env, "XDG_RUNTIME_DIR": "", **env}, stdin=password + "\n")
        self.assertNotIn("secret", done.stdout + done.stderr + self.node.log())
        return done

    def login(self, *words, **more):
        return self.cli("login", "-u", "user", "--password-stdin", *words, self.registry.host, **more)

    def kept(self, path=None):
        with open(path or self.file, encoding="utf-8") as f:
            return json.load(f)

    def test_in_and_out(self):
        """As a registry takes them, with a token and without; other entries and members stay, and a link does."""
        entry = {"auth": base64.b64encode(b"user:secret").decode()}
        other = {"auths": {"other.example": {"auth": "bWU6", "more": [1.50, {}]}}, "detachKeys": "ctrl-\u00e9,\"", "n": 18446744073709551615}
        os.mkdir(self.dir + "/.docker")
        with open(self.dir + "/real", "w", encoding="utf-8") as f:
            json.dump(other, f)
        os.symlink("../real", self.file)
        for auth in ("basic", "bearer"):
            self.registry.auth = auth
            wrong = self.login(password="wrong", check=False)
            self.assertEqual(125, wrong.returncode)
            self.assertRegex(wrong.stderr, f"^nacre: Unauthenticated: registry {self.registry.host} .*login: .*not accept the credentials")
            self.assertEqual(other, self.kept())
            self.assertEqual("Login Succeeded\n", self.login().stdout)
            self.assertEqual({**other, "auths": {**other["auths"], self.registry.host: entry}}, self.kept())
            self.assertEqual((True, 0o600), (os.path.islink(self.file), os.stat(self.file).st_mode & 0o777))
            self.assertEqual("user\n", self.cli("login", "--get-login", self.registry.host).stdout)
            self.assertRegex(self.cli("login", self.registry.host).stdout, "kept already")
            self.assertRegex(self.cli("logout", f"http://{self.registry.host}/").stdout, "^Removed login credentials for 127")
            self.assertEqual(other, self.kept())
        self.assertFalse([p for _, p, _ in self.registry.requests if "repository%3Adocker" in p])
        self.assertEqual(125, self.cli("logout", self.registry.host, check=False).returncode)
        self.assertEqual(["config.json"], os.listdir(self.dir + "/.docker"))
        self.cli("logout", "--all")
        self.assertEqual({**other, "auths": {}}, self.kept())
        self.assertEqual(125, self.cli("login", "-u", "user", "--password-stdin", "no-host", check=False).returncode)

    def test_elsewhere(self):
        """Into the file of --authfile, or that which has the host; at the terminal; to a helper."""
        self.registry.auth = "basic"
        mine, words = self.dir + "/mine.json", (nacre_test.BINARY, "--socket", self.node.socket, "login", self.registry.host)
        self.login("--authfile", mine)
        self.assertEqual([self.registry.host], list(self.kept(mine)["auths"]))
        self.assertFalse(os.path.exists(self.file))
        self.cli("logout", "--authfile", mine, self.registry.host)
        self.assertEqual({}, self.kept(mine)["auths"])
        with screen.Screen(*words, env=self.env) as s:
            s.until(b"username: ")
            s.type(b"usx\x7fer\r")
            s.until(b"password: ")
            s.type(b"secret\r")
            s.until(re.compile(rb"\A\r+\nLogin Succeeded"))
            self.assertEqual(0, s.end())
        self.assertEqual([self.registry.host], list(self.kept()["auths"]))
        with screen.Screen(*words, "-u", "me", env=self.env) as s:
            s.until(b"password: ")
            s.type(b"\x03")
            self.assertEqual(125, s.end())
        with open(self.dir + "/docker-credential-keep", "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\ncase $1 in\nstore) cat > {self.dir}/store;;\nerase) rm {self.dir}/store;;\n"
                    f"*) cat {self.dir}/store 2>&- && exit; echo 'credentials not found in native keychain'; exit 1;;\nesac\n")
        os.chmod(self.dir + "/docker-credential-keep", 0o755)
        with open(mine, "w", encoding="ascii") as f:
            json.dump({"credsStore": "keep"}, f)
        self.login(REGISTRY_AUTH_FILE=mine, HOME="")
        self.assertEqual({"ServerURL": self.registry.host, "Username": "user", "Secret": "secret"}, self.kept(self.dir + "/store"))
        self.assertEqual({"credsStore": "keep"}, self.kept(mine))
        self.cli("logout", self.registry.host, REGISTRY_AUTH_FILE=mine)
        self.assertEqual((False, {}), (os.path.exists(self.dir + "/store"), self.kept()["auths"]))


@unittest.skipUnless(shutil.which("docker-registry"), "docker-registry is not installed")
class ToARegistry(nacre_test.NodeTest):
    """Debian's, with TLS and passwords."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="nacre-push-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.CONFIG = f"images:\n  registry_dirs: {cls.dir}/certs\n"
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            cls.host = f"127.0.0.1:{s.getsockname()[1]}"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-keyout", cls.dir + "/key", "-out", cls.dir + "/cert", "-subj", "/CN=x", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        os.makedirs(f"{cls.dir}/certs/{cls.host}")
        shutil.copy(cls.dir + "/cert", f"{cls.dir}/certs/{cls.host}/ca.crt")
        with open(cls.dir + "/htpasswd", "w", encoding="ascii") as f:
            f.write("user:" + crypt.crypt("secret", crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)) + "\n")
        with open(cls.dir + "/config.yml", "w", encoding="ascii") as f:
            f.write(f"version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {cls.dir}/data\n"
                    f"http:\n  addr: {cls.host}\n  tls:\n    certificate: {cls.dir}/cert\n    key: {cls.dir}/key\n"
                    f"auth:\n  htpasswd:\n    realm: here\n    path: {cls.dir}/htpasswd\n")
        super().setUpClass()

    def listens(self):
        try:
            with socket.create_connection(("127.0.0.1", int(self.host.split(":")[1]))):
                return True
        except OSError:
            return False

    def test_there_and_back(self):
        registry = subprocess.Popen(["docker-registry", "serve", self.dir + "/config.yml"],  # pylint: disable=consider-using-with
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(registry.wait)
        self.addCleanup(registry.kill)
        nacre_test.until(self.listens, what="docker-registry")
        dest = f"{self.host}/tools/busybox:1"
        done = self.node.cli("image", "push", "busybox", dest, check=False, env={"DOCKER_CONFIG": self.dir})
        self.assertEqual(125, done.returncode)
        self.assertIn("nacre: Unauthenticated: ", done.stderr)
        with open(self.dir + "/config.json", "w", encoding="ascii") as f:
            json.dump({"auths": {self.host: {"auth": base64.b64encode(b"user:secret").decode()}}}, f)
        env = {"DOCKER_CONFIG": self.dir}
        digest = self.node.cli("image", "push", "busybox", dest, env=env).stdout.strip()
        self.assertEqual(self.node.json("image", "inspect", "busybox")["image"]["digest"], digest)
        done = self.node.cli("image", "push", "busybox", f"{self.host}/tools/busybox:2", env=env)
        self.assertIn("was there", done.stderr)
        self.assertEqual(["1", "2"], sorted(self.node.cli("image", "tags", f"{self.host}/tools/busybox", env=env).stdout.split()))
        # From one repository into the other.
        self.node.cli("image", "tag", "busybox", f"{self.host}/tools/busybox:1")
        done = self.node.cli("image", "push", "busybox", f"{self.host}/elsewhere", env=env)
        self.assertIn("was in another repository", done.stderr)
        pulled = self.node.cli("image", "pull", f"{self.host}/elsewhere@{digest}", env=env).stdout.strip()
        self.assertEqual("in\n", self.node.cli("run", pulled, "echo", "in").stdout)
        self.node.clear()
        self.node.cli("image", "rm", f"{self.host}/tools/busybox:1")


if __name__ == "__main__":
    unittest.main()
