# SPDX-License-Identifier: Apache-2.0
"""Images that are pulled since somebody runs them: --pull missing, always and never of run, pod and cell."""
import tarfile
import unittest

import grpc

import fakeregistry
import images
import nacre_test

MKIMAGE = images.module()


def runnable(word):
    """A layer with busybox and a file that says which one it is."""
    return MKIMAGE.build_tar([*MKIMAGE.busybox_entries(), ("word", tarfile.REGTYPE, 0o644, word.encode(), "")])


class When(nacre_test.NodeTest):
    IMAGES = ()

    def setUp(self):
        super().setUp()
        self.registry = fakeregistry.FakeRegistry()
        self.registry.__enter__()
        self.addCleanup(self.registry.__exit__, None, None, None)
        self.put("one")
        self.image = f"{self.registry.host}/a/b:1"
        self.addCleanup(self.forget)

    def put(self, word):
        self.registry.put_image("a/b", "1", layers=[runnable(word)], Cmd=["cat", "/word"])

    def forget(self):
        self.node.clear()
        for image in self.node.json("image", "ls"):
            self.node.cli("image", "rm", image["id"])

    def pulls(self):
        return len(self.registry.asked("GET", "/manifests/1$"))

    def test_run(self):
        self.assertEqual("one", self.node.cli("run", "--rm", self.image).stdout)
        self.assertEqual(1, self.pulls())
        # It is there now: no registry is asked, also where it has a newer one, or is away.
        self.put("two")
        self.assertEqual("one", self.node.cli("run", "--rm", self.image).stdout)
        self.assertEqual("one", self.node.cli("run", "--rm", "--pull", "never", self.image).stdout)
        self.assertEqual(1, self.pulls())
        done = self.node.cli("run", "--rm", "--pull=always", self.image)
        self.assertEqual(("two", 2), (done.stdout, self.pulls()))
        self.assertIn("found sha256:", done.stderr)
        self.forget()
        # Its standard output is the container's alone, or one id.
        done = self.node.cli("run", "-d", self.image)
        self.assertRegex(done.stdout, r"\A[0-9a-f]{16}\n\Z")

    def test_never(self):
        for words in (("run", self.image), ("pod", "a=" + self.image), ("cell", self.image, "true")):
            done = self.node.cli(words[0], "--pull", "never", *words[1:], check=False)
            self.assertEqual((125, ""), (done.returncode, done.stdout))
            self.assertIn(f'there is no image "{self.image}"', done.stderr)
            self.assertIn(f"`nacre image pull {self.image}`", done.stderr)
        self.assertEqual(0, self.pulls())
        # Over the API it is never pulled unless that is asked for, and the status is exact.
        with self.assertRaises(grpc.RpcError) as caught:
            self.node.runtime.RunPod(nacre_test.runtime_pb2.RunPodRequest(
                containers=[nacre_test.runtime_pb2.Container(image=self.image)]))
        self.assertEqual(grpc.StatusCode.NOT_FOUND, caught.exception.code())
        self.assertIn("containers[0].image", caught.exception.details())

    def test_pod_and_cell(self):
        self.node.cli("pod", "--name", "both", "a=" + self.image, "sleep", "100", "--", f"b={self.image}", "sleep", "100")
        self.assertEqual(1, self.pulls())
        self.forget()
        self.assertEqual("here\n", self.node.cli("cell", "--name", "here", self.image, "sleep", "100").stdout)
        self.assertEqual(2, self.pulls())
        self.node.cli("cell", "--name", "again", "--pull", "always", self.image, "sleep", "100")
        self.assertEqual(3, self.pulls())

    def test_others_say_how(self):
        """Whatever is asked of an image that is not there, the sentence says how it comes; of an id it does not."""
        for words in (("inspect", self.image), ("history", self.image), ("tag", self.image, "x"), ("push", self.image, "x/y"),
                      ("export", self.image, "-")):
            done = self.node.cli("image", *words, check=False)
            self.assertEqual((125, ""), (done.returncode, done.stdout))
            self.assertRegex(done.stderr, rf'^nacre: images?(\[0\])?: there is no image "{self.image}"; '
                                          rf'`nacre image pull {self.image}` loads it$')
            for name in ("sha256:" + "0" * 64, "0123456789ab"):
                done = self.node.cli("image", words[0], name, *words[2:], check=False)
                self.assertRegex(done.stderr, f'there is no image "{name}"$')
        self.assertEqual([], self.registry.requests)
        # What a registry has not no pull brings.
        self.node.cli("image", "pull", self.image)
        self.registry.on("POST", "/uploads/", lambda a: (a.body(), a.errors(404, "NAME_UNKNOWN")))
        self.registry.on("HEAD", "/blobs/", lambda a: a.reply(404))
        done = self.node.cli("image", "push", self.image, f"{self.registry.host}/else/where", check=False)
        self.assertNotIn("image pull", done.stderr)
        self.assertIn("status 404", done.stderr)

    def test_what_cannot_be_pulled(self):
        """A wrong word; an image that no registry has, told as a pull tells it; an id, which is no name of any registry."""
        done = self.node.cli("run", "--pull", "soon", self.image, check=False)
        self.assertIn("none of missing, always, newer, never", done.stderr)
        self.assertEqual(0, self.pulls())
        done = self.node.cli("run", f"{self.registry.host}/a/none:1", check=False)
        self.assertEqual((125, ""), (done.returncode, done.stdout))
        self.assertIn("manifest 1: it answers with status 404", done.stderr)
        n = len(self.registry.requests)
        for name in ("sha256:" + "0" * 64, "0123456789ab"):
            done = self.node.cli("run", name, check=False)
            self.assertEqual(125, done.returncode)
            self.assertIn("there is no image", done.stderr)
        self.assertEqual(n, len(self.registry.requests))
        # Not found for another reason: the image is there, and nothing is pulled.
        self.node.cli("image", "pull", self.image)
        n = self.pulls()
        done = self.node.cli("run", "--in", "no-such", self.image, check=False)
        self.assertIn("no-such", done.stderr)
        self.assertEqual(n, self.pulls())


if __name__ == "__main__":
    unittest.main()
