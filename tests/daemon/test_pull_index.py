# SPDX-License-Identifier: Apache-2.0
"""What registries have an image as: the digest of the index that it was pulled by is a name of it from then on."""
import json

import fakeregistry
import images
import nacre_test

MKIMAGE = images.module()


class Index(nacre_test.NodeTest):
    IMAGES = ()

    def setUp(self):
        super().setUp()
        self.registry = self.enterContext(fakeregistry.FakeRegistry())
        self.addCleanup(self.forget)
        self.tar = MKIMAGE.build_tar(MKIMAGE.busybox_entries())

    def forget(self):
        self.node.clear()
        for image in self.node.json("image", "ls"):
            self.node.cli("image", "rm", image["id"])

    def put(self, repository, tag, word):
        """An index of two platforms; its digest, and that of the manifest for this machine."""
        entries, made = [], {}
        for architecture in ("arm64", "amd64"):
            made[architecture] = self.registry.put_image(repository, layers=[self.tar], architecture=architecture, Cmd=["echo", word])
            entries.append(self.registry.descriptor(repository, made[architecture],
                                                    platform={"os": "linux", "architecture": architecture}))
        index = {"schemaVersion": 2, "mediaType": fakeregistry.INDEX, "manifests": entries}
        return self.registry.put_manifest(repository, index, fakeregistry.INDEX, tag=tag), made["amd64"]

    def test_by_the_digest_of_an_index(self):
        index, manifest = self.put("a/b", "1", "one")
        name = f"{self.registry.host}/a/b"
        self.node.cli("image", "pull", name + ":1")
        image = self.node.json("image", "ls")[0]
        self.assertEqual(([f"{name}@{index}"], manifest), (image["repo_digests"], image["digest"]))
        self.assertEqual([f"{name}@{index}"], json.loads(self.node.cli("image", "inspect", index).stdout)["image"]["repo_digests"])
        self.assertIn(index, self.node.cli("image", "ls", "--digests").stdout)
        asked = len(self.registry.requests)
        for reference in (f"{name}@{index}", f"{name}:1@{index}", f"{name}@{manifest}"):
            self.assertEqual("one\n", self.node.cli("run", "--rm", reference).stdout)
        self.assertEqual(asked, len(self.registry.requests))
        # It is in the database; a pull by it reads documents and no layer.
        self.node.restart()
        self.node.cli("image", "pull", f"{name}@{index}")
        self.assertEqual(1, len(self.registry.asked("GET", "/blobs/" + fakeregistry.digest(self.registry.last["layers"][0]))))
        self.assertEqual([f"{name}@{index}"], self.node.json("image", "ls")[0]["repo_digests"])
        self.node.cli("image", "rm", index)
        self.assertEqual([], self.node.json("image", "ls"))

    def test_one_image_in_several_places(self):
        """Another repository, and another index, with the same manifest: one image, and all that it was pulled as."""
        index, manifest = self.put("a/b", "1", "one")
        other, same = self.put("c/d", "1", "one")
        self.assertEqual((index, manifest), (other, same))
        self.registry.put_image("e/f", "1", layers=[self.tar], Cmd=["echo", "one"])
        for name in ("a/b", "c/d", "e/f", "a/b"):
            self.node.cli("image", "pull", f"{self.registry.host}/{name}:1")
        found = self.node.json("image", "ls")
        self.assertEqual(1, len(found))
        self.assertEqual([f"{self.registry.host}/{name}@{digest}" for name, digest in (("a/b", index), ("c/d", index), ("e/f", manifest))],
                         found[0]["repo_digests"])
        lines = self.node.cli("image", "ls", "--digests").stdout.splitlines()
        for name, digest in (("a/b", index), ("c/d", index), ("e/f", manifest)):
            self.assertEqual(1, sum(line.startswith(f"{self.registry.host}/{name}:1 ") and digest in line for line in lines), lines)
