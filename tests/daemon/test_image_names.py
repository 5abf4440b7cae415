# SPDX-License-Identifier: Apache-2.0
"""Names of images that several say at once: each belongs to whom the last one gave it, in memory and in the database."""
import json
import threading
import unittest

import fakeregistry
import nacre_test
from nacre_test import nacre_pb2

ROUNDS = 30


def layer(text):
    return [fakeregistry.layer_tar({"x": text.encode()})]


class ImageNames(unittest.TestCase):
    SECONDS = 200

    def setUp(self):
        self.registry = self.enterContext(fakeregistry.FakeRegistry())
        self.node = nacre_test.Node("images:\n  reserve: 0\n", start=False)
        self.addCleanup(self.node.destroy)
        self.node.start()

    def pull(self, name):
        return list(self.node.images.Pull(nacre_pb2.PullRequest(image=name)))[-1].image.id

    def names(self):
        return {n: i["id"] for i in json.loads(self.node.cli("-o", "json", "image", "ls").stdout) for n in i.get("names", [])}

    def check_database(self):
        before = self.names()
        self.node.kill()
        self.node.start()
        self.assertEqual(before, self.names())

    def test_two_tags_of_which_one_has_moved(self):
        for n in range(ROUNDS):
            name = f"{self.registry.host}/a/b{n}"
            for tag in ("1.0", "latest"):
                self.registry.put_image(f"a/b{n}", tag, layers=layer("same"), Env=[f"N={n}"])
                self.pull(f"{name}:{tag}")
            self.registry.put_image(f"a/b{n}", "latest", layers=layer("same"), Env=[f"N={n}", "new=1"])
            got = {}
            pulls = [threading.Thread(target=lambda t=tag, n=name, to=got: to.update({t: self.pull(f"{n}:{t}")})) for tag in ("latest", "1.0")]
            for p in pulls:
                p.start()
            for p in pulls:
                p.join()
            names = self.names()
            self.assertEqual(got, {t: names[f"{name}:{t}"] for t in got}, n)
        self.check_database()

    def test_tagged_while_it_is_pulled(self):
        self.registry.put_image("a/y", "1", layers=layer("y"))
        other = self.pull(f"{self.registry.host}/a/y:1")
        for n in range(ROUNDS):
            self.registry.put_image(f"a/x{n}", "1", layers=layer(f"{n}"))
            name, over = f"{self.registry.host}/a/x{n}:1", threading.Event()

            def tag(name=name, over=over):
                while not over.is_set():
                    self.node.images.Tag(nacre_pb2.TagImageRequest(image=other, name=name))
            thread = threading.Thread(target=tag)
            thread.start()
            try:
                self.pull(name)
            finally:
                over.set()
                thread.join()
        self.check_database()

    def test_as_many_accounts_as_a_request_holds(self):
        """All of them are told to the helper before it reads anything."""
        self.registry.put_image("a/b", "1", layers=layer("b"))
        accounts = [nacre_pb2.RegistryAuth(host=f"h{n}.example", username="u", password="p" * 16000) for n in range(16)]
        request = nacre_pb2.PullRequest(image=f"{self.registry.host}/a/b:1", auths=accounts)
        self.assertTrue(list(self.node.images.Pull(request))[-1].image.id)


if __name__ == "__main__":
    unittest.main()
