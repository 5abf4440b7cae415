# SPDX-License-Identifier: Apache-2.0
"""Images by Kubernetes' interface, from a registry that does as it is told and stands in for several by name."""
import base64
import concurrent.futures
import json
import os
import shutil
import tempfile
import threading

import grpc

import fakeregistry
import nacre_test
from nacre_test import nacre_pb2

cri_pb2, cri_pb2_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode
HOSTS = ("registry.test", "other.test")


def spec(name, **more):
    return cri_pb2.ImageSpec(image=name, **more)


class Images(nacre_test.NodeTest):
    IMAGES = ()

    @classmethod
    def setUpClass(cls):
        cls.registry = cls.enterClassContext(fakeregistry.FakeRegistry())
        cls.folder = tempfile.mkdtemp(prefix="nacre-cri-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for host in HOSTS:
            os.mkdir(f"{cls.folder}/{host}")
            with open(f"{cls.folder}/{host}/hosts.toml", "w", encoding="ascii") as f:
                f.write(f'server = "{cls.registry.url}"\n')
        cls.policy = f"{cls.folder}/policy.json"
        cls.CONFIG = f"images:\n  registry_dirs: {cls.folder}\n  policy: {cls.policy}\n  no_progress_timeout: 1s\n"
        super().setUpClass()
        cls.api = cri_pb2_grpc.ImageServiceStub(cls.node.channel)

    def setUp(self):
        self.registry.auth = None
        self.registry.scripts.clear()
        for image in self.list():
            self.remove(image.id)

    # ---- calls ----

    def list(self, name=""):
        return self.api.ListImages(cri_pb2.ListImagesRequest(filter=cri_pb2.ImageFilter(image=spec(name)))).images

    def stream(self, name=""):
        answers = list(self.api.StreamImages(cri_pb2.StreamImagesRequest(filter=cri_pb2.ImageFilter(image=spec(name)))))
        self.assertTrue(all(a.images for a in answers))
        return [i for a in answers for i in a.images]

    def status(self, name, **more):
        return self.api.ImageStatus(cri_pb2.ImageStatusRequest(image=spec(name), **more))

    def pull(self, name, timeout=None, auth=None, **more):
        return self.api.PullImage(cri_pb2.PullImageRequest(image=spec(name, **more), auth=auth), timeout=timeout).image_ref

    def remove(self, name):
        return self.api.RemoveImage(cri_pb2.RemoveImageRequest(image=spec(name)))

    def space(self):
        return self.api.ImageFsInfo(cri_pb2.ImageFsInfoRequest())

    def put(self, repository, tag, content=b"x", **config):
        """Returns the id of the image and the digest of its manifest."""
        manifest = self.registry.put_image(repository, tag, [fakeregistry.layer_tar({"file": content})], **config)
        return fakeregistry.digest(self.registry.last["config"]), manifest

    # ---- what is pulled ----

    def test_every_form_of_a_reference_is_the_same_image(self):
        ident, manifest = self.put("a/b", "1")
        self.assertEqual(ident, self.pull("registry.test/a/b:1"))
        image = self.status("registry.test/a/b:1").image
        self.assertEqual((ident, ["registry.test/a/b:1"], [f"registry.test/a/b@{manifest}"], ident, False),
                         (image.id, list(image.repo_tags), list(image.repo_digests), image.spec.image, image.pinned))
        self.assertGreater(image.size, 0)
        for name in (ident, ident[7:], ident[7:19], ident[:19], *image.repo_tags, *image.repo_digests):
            self.assertEqual(image, self.status(name).image, name)
            self.assertEqual([image], list(self.list(name)))
            self.assertEqual([image], self.stream(name))
        self.assertEqual([image], list(self.list()))

    def test_no_tag_is_latest_and_a_digest_no_name(self):
        ident, manifest = self.put("a/c", "latest")
        self.assertEqual(ident, self.pull("registry.test/a/c"))
        self.assertEqual(["registry.test/a/c:latest"], list(self.status(ident).image.repo_tags))
        self.remove(ident)
        self.assertEqual(ident, self.pull(f"registry.test/a/c@{manifest}"))
        image = self.status(f"registry.test/a/c@{manifest}").image
        self.assertEqual(([], [f"registry.test/a/c@{manifest}"]), (list(image.repo_tags), list(image.repo_digests)))

    def test_what_is_absent_is_an_empty_answer(self):
        self.assertEqual(cri_pb2.ImageStatusResponse(), self.status("registry.test/none:1", verbose=True))
        self.assertEqual(cri_pb2.ImageStatusResponse(), self.status("sha256:" + 64 * "0"))
        self.assertEqual([], list(self.list("registry.test/none:1")))
        self.assertEqual([], self.stream("registry.test/none:1"))
        self.assertEqual([], self.stream())
        self.remove("registry.test/none:1")
        self.remove("abcdef012345")

    def test_the_user_of_an_image(self):
        for n, (user, uid, name) in enumerate((("1002", 1002, ""), ("1003:1004", 1003, ""), ("0", 0, ""), ("www-data", None, "www-data"),
                                               ("www-data:100", None, "www-data"), ("", None, ""), ("4294967296", None, "4294967296"))):
            self.put("user/x", str(n), user.encode(), User=user)
            image = self.status(self.pull(f"registry.test/user/x:{n}")).image
            self.assertEqual((uid, name), (image.uid.value if image.HasField("uid") else None, image.username), user)

    def test_verbose_has_the_configuration(self):
        self.put("a/v", "1", User="7", Env=["A=b"])
        self.assertEqual({}, dict(self.status(self.pull("registry.test/a/v:1")).info))
        info = self.status("registry.test/a/v:1", verbose=True).info
        self.assertEqual(["info"], list(info))
        config = json.loads(info["info"])["imageSpec"]["config"]
        self.assertEqual(("7", ["A=b"]), (config["User"], config["Env"]))

    def test_a_pinned_image(self):
        self.put("a/pin", "1")
        ident = self.pull("registry.test/a/pin:1")
        self.node.images.Pin(nacre_pb2.PinImageRequest(image=ident, pinned=True))
        self.assertTrue(self.status(ident).image.pinned)
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.remove(ident), "is pinned")
        self.node.images.Pin(nacre_pb2.PinImageRequest(image=ident, pinned=False))
        self.assertFalse(self.status(ident).image.pinned)

    def test_lists_of_many(self):
        with tempfile.TemporaryDirectory() as folder:
            for n in range(70):
                tar = f"{folder}/{n}.tar"
                with open(tar, "wb") as f:
                    f.write(fakeregistry.layer_tar({"n": str(n).encode()}))
            def bring(n):
                list(self.node.images.Import(nacre_pb2.ImportRequest(path=f"{folder}/{n}.tar", name=f"many.test/x:{n}", config="{}")))
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(bring, range(70)))
        names = {f"many.test/x:{n}" for n in range(70)}
        self.assertEqual(names, {t for i in self.list() for t in i.repo_tags})
        # More than one piece, each image once, in the same order.
        self.assertEqual([i.id for i in self.list()], [i.id for i in self.stream()])

    # ---- what goes ----

    def test_a_removal_takes_all_names(self):
        ident, _ = self.put("tags/x", "1")
        for repository, tag in (("tags/x", "2"), ("tags/y", "1")):
            self.put(repository, tag)
        names = ["registry.test/tags/x:1", "registry.test/tags/x:2", "registry.test/tags/y:1", "other.test/tags/x:1"]
        self.assertEqual([ident] * 4, [self.pull(n) for n in names])
        self.assertEqual(sorted(names), sorted(self.list()[0].repo_tags))
        self.remove(names[3])
        for name in (*names, ident):
            self.assertFalse(self.status(name).HasField("image"), name)
        self.assertEqual([], list(self.list()))

    def test_removals_at_once(self):
        for _ in range(4):
            self.put("a/once", "1")
            ident = self.pull("registry.test/a/once:1")

            def remove(_, ident=ident):
                self.remove(ident)
                return self.status(ident).HasField("image")
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                self.assertEqual([False] * 8, list(pool.map(remove, range(8))))

    def test_the_room_on_the_disk(self):
        empty = self.space()
        self.put("a/large", "1", os.urandom(1 << 20))
        ident = self.pull("registry.test/a/large:1")
        full = self.space()
        for answer in (empty, full):
            for part in (answer.image_filesystems, answer.container_filesystems):
                self.assertEqual([self.node.root], [f.fs_id.mountpoint for f in part])
        before, after = empty.image_filesystems[0], full.image_filesystems[0]
        # The file, and its layer as it came.
        self.assertGreaterEqual(after.used_bytes.value - before.used_bytes.value, 2 << 20)
        self.assertGreaterEqual(after.inodes_used.value - before.inodes_used.value, 5)
        self.assertGreater(after.timestamp, before.timestamp)
        self.assertEqual(after.used_bytes, self.space().image_filesystems[0].used_bytes)
        self.remove(ident)
        gone = self.space().image_filesystems[0]
        self.assertEqual((before.used_bytes, before.inodes_used), (gone.used_bytes, gone.inodes_used))
        # Any number of them at once is counted one after the other, for all who ask.
        calls = [self.api.ImageFsInfo.future(cri_pb2.ImageFsInfoRequest()) for _ in range(100)]
        self.assertEqual({gone.used_bytes.value}, {c.result().image_filesystems[0].used_bytes.value for c in calls})

    # ---- pulls that fail ----

    def test_a_deadline_ends_a_pull(self):
        self.put("a/slow", "1")
        come = threading.Event()
        self.registry.on("GET", "/manifests/1$", lambda a: come.wait(30) and False)
        self.assertFails(Code.DEADLINE_EXCEEDED, lambda: self.pull("registry.test/a/slow:1", timeout=0.2))
        come.set()
        self.assertEqual([], list(self.list()))

    def test_words_that_a_kubelet_knows(self):
        """They are at the beginning of the message, and only with UNKNOWN has nothing in front for a kubelet."""
        self.put("a/w", "1")
        self.registry.on("GET", "/manifests/", lambda a: a.drop())
        self.registry.on("HEAD", "/manifests/", lambda a: a.drop())
        said = self.assertFails(Code.UNKNOWN, lambda: self.pull("registry.test/a/w:1"))
        self.assertRegex(said, "^RegistryUnavailable: ")
        self.registry.scripts.clear()
        with open(self.policy, "w", encoding="ascii") as f:
            f.write('{"default": [{"type": "reject"}]}')
        self.addCleanup(os.unlink, self.policy)
        said = self.assertFails(Code.UNKNOWN, lambda: self.pull("registry.test/a/w:1"))
        self.assertRegex(said, "^SignatureValidationFailed: ")

    def test_credentials(self):
        ident, _ = self.put("a/secret", "1")
        self.registry.auth = "basic"
        name, host = f"{self.registry.host}/a/secret:1", self.registry.host
        both = base64.b64encode(b"user:secret").decode()
        self.assertFails(Code.UNAUTHENTICATED, lambda: self.pull(name))
        wrong = cri_pb2.AuthConfig(username="user", password="wrong")
        self.assertFails(Code.UNAUTHENTICATED, lambda: self.pull(name, auth=wrong))
        for fields in ({"username": "user", "password": "secret"}, {"auth": both}, {"auth": both, "server_address": host},
                       {"auth": both.rstrip("="), "server_address": f"http://{host}/v2/"}):
            self.assertEqual(ident, self.pull(name, auth=cri_pb2.AuthConfig(**fields)), fields)
            self.remove(ident)
        self.registry.requests.clear()
        elsewhere = cri_pb2.AuthConfig(username="user", password="secret", server_address="elsewhere.test")
        self.assertFails(Code.UNAUTHENTICATED, lambda: self.pull(name, auth=elsewhere))
        self.assertEqual([], [r for r in self.registry.requests if "Authorization" in r[2]])
        self.registry.auth, self.registry.identity = "bearer", "identity"
        self.assertEqual(ident, self.pull(name, auth=cri_pb2.AuthConfig(identity_token="identity")))
        self.remove(ident)
        self.assertEqual(ident, self.pull(name, auth=cri_pb2.AuthConfig(registry_token=self.registry.new_token())))

    def test_what_is_wrong_is_named(self):
        auth = cri_pb2.AuthConfig
        for field, call in (
                ("image.image", lambda: self.pull("")),
                ("image.image", lambda: self.pull("a/UPPER")),
                ("image.image", lambda: self.pull("a:b:c")),
                ("image.image", lambda: self.status("")),
                ("image.image", lambda: self.status("UPPER")),
                ("image.image", lambda: self.remove("")),
                ("filter.image.image", lambda: self.list("a b")),
                ("filter.image.image", lambda: self.stream("a b")),
                ("image.runtime_handler", lambda: self.pull("registry.test/a:1", runtime_handler="gvisor")),
                ("auth.username", lambda: self.pull("registry.test/a:1", auth=auth(password="secret"))),
                ("auth.auth", lambda: self.pull("registry.test/a:1", auth=auth(auth="c2VjcmV0"))),
                ("auth.auth", lambda: self.pull("registry.test/a:1", auth=auth(auth="%secret%"))),
                ("auth.server_address", lambda: self.pull("registry.test/a:1", auth=auth(auth="YTpi", server_address="http:///x"))),
                ("auth.password", lambda: self.pull("registry.test/a:1", auth=auth(username="a", password="secret\n"))),
                ("auth.identity_token", lambda: self.pull("registry.test/a:1", auth=auth(identity_token="x" * 16385)))):
            said = self.assertFails(Code.INVALID_ARGUMENT, call)
            self.assertTrue(said.startswith(field + ": "), said)
            self.assertNotIn("secret", said)
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.api.PullImage(cri_pb2.PullImageRequest()), "image.image: required")


if __name__ == "__main__":
    nacre_test.unittest.main()
