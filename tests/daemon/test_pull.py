# SPDX-License-Identifier: Apache-2.0
"""Pulling through the daemon and the command, from a stand-in for nacre-transfer."""
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import grpc

import fakeregistry
import host
import images
import nacre_test
import schema
from nacre_test import nacre_pb2

MKIMAGE = images.module()


class Pull(nacre_test.NodeTest):
    IMAGES = ()

    @classmethod
    def setUpClass(cls):
        # The helpers beside the stand-in are the real ones.
        cls.libexec = tempfile.mkdtemp(prefix="nacre-pull-")
        cls.addClassCleanup(shutil.rmtree, cls.libexec)
        real = os.path.join(nacre_test.BUILD, "libexec/nacre")
        for name in os.listdir(real):
            if name != "nacre-transfer":
                os.symlink(os.path.join(real, name), os.path.join(cls.libexec, name))
        shutil.copy(os.path.join(nacre_test.ROOT, "tests/lib/fake_transfer.py"), cls.libexec + "/nacre-transfer")
        cls.registry = cls.libexec + "/fake-registry"
        os.makedirs(cls.registry + "/blobs")
        cls.CONFIG = f"libexec: {cls.libexec}\nimages:\n  parallel_downloads: 3\n  parallel_unpacks: 2\n"
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.script()

    def script(self, **what):
        with open(self.registry + "/script.json", "w", encoding="utf-8") as file:
            json.dump(what, file)
        if os.path.exists(self.registry + "/log"):
            os.unlink(self.registry + "/log")

    def log(self):
        with open(self.registry + "/log", encoding="utf-8") as file:
            return file.read().splitlines()

    def serve(self, name, entries):
        layers = [MKIMAGE.Layer(MKIMAGE.build_tar(e)) for e in entries]
        config = MKIMAGE.dump(MKIMAGE.make_config(layers, {}))
        manifest = MKIMAGE.dump({"name": name, "layers": [l.descriptor() for l in layers]})
        for data in (config, manifest, *(l.blob for l in layers)):
            with open(f"{self.registry}/blobs/{hashlib.sha256(data).hexdigest()}", "wb") as file:
                file.write(data)
        with open(f"{self.registry}/{name}.json", "w", encoding="utf-8") as file:
            json.dump({"manifest": MKIMAGE.digest(manifest), "config": MKIMAGE.digest(config),
                       "layers": [[MKIMAGE.digest(l.blob), l.diff_id, len(l.blob), 1] for l in layers]}, file)
        return MKIMAGE.digest(config)

    def noise(self, seed, size):
        return [(f"noise-{seed}", b"0", 0o644, random.Random(seed).randbytes(size), "")]

    def test_what_is_pulled_runs(self):
        ident = self.serve("busybox", [MKIMAGE.busybox_entries(), self.noise(1, 100000)])
        done = self.node.cli("image", "pull", "localhost:5000/busybox:1")
        self.assertEqual(done.stdout.strip(), ident)
        lines = done.stderr.splitlines()
        self.assertRegex(lines[0], "^found sha256:[0-9a-f]{64} at http://fake$")
        self.assertRegex(lines[1], r"^  1/2 [0-9a-f]{12} [0-9.]+ [kM]?B pulled$")
        self.assertRegex(lines[2], r"^  2/2 [0-9a-f]{12} [0-9.]+ kB pulled$")
        self.assertEqual(self.node.cli("run", "localhost:5000/busybox:1", "wc", "-c", "/noise-1").stdout.split()[0], "100000")
        done = self.node.cli("-o", "json", "image", "pull", "localhost:5000/busybox:1")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        for event in events:
            schema.check(schema.load(), "image pull", event)
        self.assertEqual(["unpacked", True], [events[-2]["state"], events[-2]["there"]])
        self.assertEqual(ident, events[-1]["image"]["id"])
        self.node.clear()
        self.node.cli("image", "rm", ident)

    def test_credentials_reach_the_helper_and_nobody_else(self):
        self.serve("app", [self.noise(2, 1000)])
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/config.json", "w", encoding="utf-8") as file:
                # me:pass-word-1
                json.dump({"auths": {"localhost:5000": {"auth": "bWU6cGFzcy13b3JkLTE="}, "quay.io": {"auth": "eDp5"}}}, file)
            done = subprocess.run([nacre_test.BINARY, "--socket", self.node.socket, "image", "pull", "localhost:5000/app"],
                                  env={**os.environ, "DOCKER_CONFIG": folder}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("auth localhost:5000 0 me pass-word-1", self.log())
        self.assertEqual(1, len([line for line in self.log() if line.startswith("auth ")]))
        self.assertNotIn("pass-word-1", self.node.log())
        self.node.cli("image", "rm", "localhost:5000/app")

    def test_errors(self):
        for image, status, words in (("UPPER", "INVALID_ARGUMENT", "image"), ("", "INVALID_ARGUMENT", "image")):
            done = self.node.cli("image", "pull", image, check=False)
            self.assertEqual(125, done.returncode)
            self.assertRegex(done.stderr, words)
        for kind, words in ((5, "RegistryUnavailable: localhost:5000: get the manifest: 503"), (3, "localhost:5000: no such image"),
                            (8, "Unauthenticated: localhost:5000 wants credentials")):
            self.script(error=[kind, 11, words])
            done = self.node.cli("image", "pull", "localhost:5000/app", check=False)
            self.assertEqual(125, done.returncode)
            self.assertEqual(f"nacre: {words}\n", done.stderr)

    def test_a_killed_daemon_goes_on_where_it_was(self):
        ident = self.serve("big", [self.noise(3, 3000000), self.noise(4, 1000)])
        self.script(rate=2000000)
        with subprocess.Popen([nacre_test.BINARY, "--socket", self.node.socket, "image", "pull", "localhost:5000/big"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
            time.sleep(1.2)
            self.node.kill()
            command.wait()
        self.node.start()
        self.script()
        self.assertEqual(self.node.cli("image", "pull", "localhost:5000/big").stdout.strip(), ident)
        starts = sorted(int(line.split()[2]) for line in self.log() if line.startswith("fetch "))
        self.assertGreater(starts[-1], 0, self.log())
        self.assertEqual([], os.listdir(self.node.root + "/partial"))
        self.node.await_empty_staging()
        self.node.cli("check")
        self.node.cli("image", "rm", ident)

    def caged(self):
        """The helpers that unpack and have closed their sandboxes: under a filter more than the daemon, which has one itself."""
        def filters(process):
            return int((re.findall("Seccomp_filters:\t([0-9]+)", host.read(f"/proc/{process}/status")) or [0])[0])

        own = host.cgroup_pids(host.own_cgroup())
        least = filters(self.node.process.pid) + 1
        return [p for p in own if host.read(f"/proc/{p}/comm").strip() == "nacre-fetch" and filters(p) >= least]

    def test_those_who_unpack_see_nothing_and_have_no_way_out(self):
        self.serve("walls", [self.noise(31, 3000000), self.noise(32, 3000000)])
        self.script(rate=100000)
        with subprocess.Popen([nacre_test.BINARY, "--socket", self.node.socket, "image", "pull", "localhost:5000/walls"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
            nacre_test.until(lambda: len(self.caged()) == 2, what="two helpers that unpack")
            pids = self.caged()
            spaces = {kind: {os.readlink(f"/proc/{p}/ns/{kind}") for p in pids} for kind in ("mnt", "net", "pid", "ipc", "uts")}
            seen = [os.listdir(f"/proc/{p}/root") for p in pids]
            mounts = [host.read(f"/proc/{p}/mountinfo").split("\n")[:-1] for p in pids]
            files = {os.readlink(f"/proc/{p}/fd/{n}") for p in pids for n in os.listdir(f"/proc/{p}/fd")}
            caps = [int(re.search("CapPrm:\t(.*)", host.read(f"/proc/{p}/status"))[1], 16) for p in pids]
            dirs = {os.stat(f"/proc/{p}/fd/5").st_ino for p in pids}
            command.send_signal(signal.SIGINT)
            command.wait()
        # One of the network and one of mounts for both; a process, a message queue or a name of the other's is out of sight.
        self.assertEqual([1, 1, 2, 2, 2], [len(found) for found in spaces.values()])
        for kind, found in spaces.items():
            self.assertNotIn(os.readlink(f"/proc/self/ns/{kind}"), found)
        self.assertEqual([[], []], seen)
        for lines in mounts:
            self.assertEqual(1, len(lines), lines)
            self.assertEqual(["/", "ro,nosuid,nodev,noexec,relatime"], lines[0].split()[4:6])
        self.assertEqual([], [name for name in files if name.startswith(("mnt:", "net:", "/proc"))])
        self.assertEqual(2, len(dirs))
        # CAP_SYS_CHROOT, CAP_SYS_ADMIN, CAP_SETPCAP
        self.assertEqual([0, 0], [c & (1 << 18 | 1 << 21 | 1 << 8) for c in caps])
        nacre_test.until(lambda: not self.caged(), what="the end of the helpers")

    def test_interrupted_and_pulled_again(self):
        ident = self.serve("big", [self.noise(5, 3000000)])
        self.script(rate=2000000)
        with subprocess.Popen([nacre_test.BINARY, "--socket", self.node.socket, "image", "pull", "localhost:5000/big"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
            time.sleep(1)
            command.send_signal(signal.SIGINT)
            command.wait()
        self.script()
        self.assertEqual(self.node.cli("image", "pull", "localhost:5000/big").stdout.strip(), ident)
        self.assertEqual([], os.listdir(self.node.root + "/partial"))
        self.node.cli("check")
        self.node.cli("image", "rm", ident)

    def test_a_download_is_pruned_when_nobody_wants_it(self):
        ident = self.serve("big", [self.noise(6, 3000000)])
        self.script(rate=1000000)
        partial = self.node.root + "/partial/"
        with subprocess.Popen([nacre_test.BINARY, "--socket", self.node.socket, "image", "pull", "localhost:5000/big"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
            nacre_test.until(lambda: any(os.path.getsize(partial + n) for n in os.listdir(partial)), what="a first part")
            name, = os.listdir(partial)
            usage = self.node.images.DiskUsage(nacre_pb2.DiskUsageRequest())
            self.assertEqual([name], [p.name for p in usage.partials])
            self.assertEqual([], list(self.node.images.Prune(nacre_pb2.PruneImagesRequest(all=True)).items))
            self.assertEqual([name], os.listdir(partial))
            self.assertIsNone(command.poll())
            command.send_signal(signal.SIGINT)
            command.wait()
        # It is let go when its helpers are gone, a moment behind the command.
        gone = []
        nacre_test.until(lambda: gone.extend(self.node.images.Prune(nacre_pb2.PruneImagesRequest(all=True)).items) or gone,
                         what="a download that is pruned")
        self.assertEqual([("partial", name)], [(i.kind, i.id) for i in gone])
        self.assertEqual([], os.listdir(partial))
        self.script()
        self.assertEqual(self.node.cli("image", "pull", "localhost:5000/big").stdout.strip(), ident)
        self.assertEqual(["0"], [line.split()[2] for line in self.log() if line.startswith("fetch ")])
        self.node.cli("check")
        self.node.cli("image", "rm", ident)


class FromARegistry(nacre_test.NodeTest):
    """With the real helper, from a registry on loopback."""
    IMAGES = ()

    def test_pulled_once_and_unpacked(self):
        big, small = fakeregistry.layer_tar({"big": os.urandom(3 << 20)}), fakeregistry.layer_tar({"small": b"x" * 1000})
        with fakeregistry.FakeRegistry() as registry:
            root = registry.put_image("a/b", "1", layers=[big, small])
            calls = [self.node.spawn_cli("image", "pull", f"{registry.host}/a/b:1") for _ in range(5)]
            for call in calls:
                out, err = call.communicate(timeout=60 * nacre_test.SLOWNESS)
                self.assertEqual(call.returncode, 0, err)
                self.assertRegex(out.decode(), "^sha256:[0-9a-f]{64}$")
            for data in registry.last["layers"]:
                self.assertEqual(1, len(registry.asked("GET", "/blobs/" + fakeregistry.digest(data))))
            again = self.node.cli("image", "pull", f"{registry.host}/a/b@{root}")
            self.assertIn("was there", again.stderr)
            self.assertEqual([], os.listdir(self.node.root + "/partial"))
            done = self.node.cli("image", "pull", f"{registry.host}/a/none:1", check=False)
            self.assertEqual(125, done.returncode)
            self.node.cli("check")
            self.node.cli("image", "rm", again.stdout.strip())

    def test_a_slow_registry_holds_up_nobody_else(self):
        """A digest is no secret: who sends a layer byte by byte must not be waited for by those who have it from elsewhere."""
        layers = [fakeregistry.layer_tar({name: os.urandom(1 << 20)}) for name in ("low", "high")]
        go_on = threading.Event()
        self.addCleanup(go_on.set)

        def trickle(answer):
            body = slow.blobs[answer.path.split("/")[-1]]
            if len(body) < 1 << 20:
                return False
            answer.send_response(200)
            answer.send_header("Content-Length", str(len(body)))
            answer.end_headers()
            for at in range(0, len(body), 100000):
                answer.wfile.write(body[at:at + 100000])
                answer.wfile.flush()
                if not at:
                    go_on.wait(60 * nacre_test.SLOWNESS)
            return True

        with fakeregistry.FakeRegistry() as slow, fakeregistry.FakeRegistry() as fast, fakeregistry.FakeRegistry() as other:
            slow.put_image("a/b", "1", layers=layers, Labels={"of": "slow"})
            slow.on("GET", "/blobs/", trickle)
            fast.put_image("a/b", "1", layers=layers)
            # The same layers, as other blobs.
            other.put_image("a/b", "1", layers=layers, plain=True, Labels={"of": "other"})
            first = self.node.spawn_cli("image", "pull", f"{slow.host}/a/b:1")
            partial = self.node.root + "/partial/"
            nacre_test.until(lambda: sum(os.path.getsize(partial + n) > 0 for n in os.listdir(partial)) == 2, what="a part of both")
            idents = [self.node.cli("image", "pull", f"{r.host}/a/b:1", seconds=30).stdout.strip() for r in (other, fast)]
            self.assertIsNone(first.poll())
            go_on.set()
            out, err = first.communicate(timeout=60 * nacre_test.SLOWNESS)
            self.assertEqual(0, first.returncode, err)
        self.assertEqual([], os.listdir(partial))
        self.node.cli("check")
        for ident in (*idents, out.decode().strip()):
            self.node.cli("image", "rm", ident)

    def test_platform_words(self):
        with fakeregistry.FakeRegistry() as registry:
            registry.put_image("a/b", "1", layers=[fakeregistry.layer_tar({"x": b"x"})])
            name = f"{registry.host}/a/b:1"
            for word in ("amd64", "linux/amd64", "x86_64", "linux/x86_64"):
                ident = self.node.cli("image", "pull", "--platform", word, name).stdout.strip()
            self.node.cli("image", "rm", ident)
            for word, words in (("windows/amd64", "not for windows"), ("amd64/v1/x", '"amd64/v1/x" is none'), ("amd64/", "is none"), ("", "is none"),
                                ("arm64", "the image is for linux/amd64, not for linux/arm64")):
                done = self.node.cli("image", "pull", "--platform", word, name, check=False)
                self.assertEqual((125, ""), (done.returncode, done.stdout))
                self.assertIn(words, done.stderr)
            done = self.node.cli("image", "copy", "--platform", "windows/amd64", name, f"{registry.host}/c/d:1", check=False)
            self.assertIn("not for windows", done.stderr)
            self.assertEqual([], registry.asked("PUT", ""))

    def test_ends_with_its_last_blob(self):
        """Not at the end of a wait for more of the network; that wait was a second, which was added to each pull."""
        seconds = []
        with fakeregistry.FakeRegistry() as registry:
            registry.put_image("a/quick", "1", layers=[fakeregistry.layer_tar({"quick": b"x" * 1000})])
            for _ in range(5):
                begin = time.monotonic()
                done = self.node.cli("image", "pull", f"{registry.host}/a/quick:1")
                seconds.append(time.monotonic() - begin)
                self.node.cli("image", "rm", done.stdout.strip())
        self.assertLess(min(seconds), 1)


class ByAPolicy(nacre_test.NodeTest):
    IMAGES = ()

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="nacre-policy-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.CONFIG = f"images:\n  policy: {cls.dir}/policy.json\n"
        super().setUpClass()

    def policy(self, text):
        with open(self.dir + "/policy.json", "w", encoding="utf-8") as file:
            file.write(text)

    def test_a_policy_is_asked_at_each_pull(self):
        layer = fakeregistry.layer_tar({"a": b"x" * 1000})
        accept, reject = [{"type": "insecureAcceptAnything"}], [{"type": "reject"}]
        with fakeregistry.FakeRegistry() as registry:
            root = registry.put_image("a/b", "1", layers=[layer])
            for text, words in ((json.dumps({"default": reject}), f"SignatureValidationFailed: .*{registry.host}/a/b"), ("{", "policy.json"),
                                (json.dumps({"default": accept, "transports": {"docker": {registry.host + "/a": reject}}}),
                                 "SignatureValidationFailed: ")):
                self.policy(text)
                with self.assertRaises(grpc.RpcError) as caught:
                    list(self.node.images.Pull(nacre_pb2.PullRequest(image=f"{registry.host}/a/b:1")))
                self.assertEqual(grpc.StatusCode.FAILED_PRECONDITION, caught.exception.code(), caught.exception.details())
                self.assertRegex(caught.exception.details(), words)
            self.assertEqual([], registry.asked("GET", "/blobs/" + fakeregistry.digest(layer)))
            self.policy(json.dumps({"default": reject, "transports": {"docker": {registry.host: accept}}}))
            self.node.cli("image", "pull", f"{registry.host}/a/b:1")
            os.unlink(self.dir + "/policy.json")
            again = self.node.cli("image", "pull", f"{registry.host}/a/b@{root}")
            self.node.cli("image", "rm", again.stdout.strip())
        self.assertEqual([], os.listdir(self.node.root + "/partial"))
        self.node.cli("check")
