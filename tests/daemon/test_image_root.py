# SPDX-License-Identifier: Apache-2.0
"""Images made of the tar of a root file system, from the command line: from a file and from standard input."""
import io
import json
import os
import subprocess
import tarfile

import grpc

import nacre_test
from nacre_test import nacre_pb2


def busybox_root():
    """A file system with a shell in it, as a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add("/bin/busybox", "bin/busybox")
        for name in ("sh", "cat", "echo", "id", "pwd"):
            link = tarfile.TarInfo("bin/" + name)
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        place = tarfile.TarInfo("work")
        place.type, place.mode = tarfile.DIRTYPE, 0o777
        tar.addfile(place)
    return out.getvalue()


class ImageRoot(nacre_test.NodeTest):
    IMAGES = ()

    def nacre(self, *args, data):
        """The command with bytes as its standard input."""
        return subprocess.run([nacre_test.BINARY, "--socket", self.node.socket, "image", "import", *args], input=data, capture_output=True,
                              timeout=60 * nacre_test.SLOWNESS, check=False)

    def remove(self, name):
        self.node.cli("image", "rm", name, check=False)

    def test_from_standard_input_and_as_it_was_told(self):
        self.addCleanup(self.remove, "made")
        done = self.nacre("--root", "--name", "made", "--entrypoint", '["/bin/sh", "-c"]', "--cmd", '["echo $A; pwd; id -u"]', "--env", "A=one two",
                          "--workdir", "/work", "--user", "1000:1000", "--label", "org.example=yes", "-", data=busybox_root())
        self.assertEqual((0, b"docker.io/library/made:latest\n"), (done.returncode, done.stdout), done.stderr)
        shown = json.loads(self.node.cli("image", "inspect", "made").stdout)
        self.assertEqual("stdin", shown["image"]["source"])
        self.assertEqual({"org.example": "yes"}, shown["config"]["config"]["Labels"])
        self.assertIn("import --root", self.node.cli("image", "history", "made").stdout)
        self.assertEqual(["one two", "/work", "1000"], self.node.cli("run", "--rm", "made").stdout.split("\n")[:3])
        # As a file, packed, with a line for the shell; without a name it is its id.
        path = os.path.join(self.node.dir, "root.tar")
        with open(path, "wb") as file:
            file.write(busybox_root())
        ident = self.node.cli("image", "import", "--root", "--cmd", "echo from the shell", path).stdout.strip()
        self.addCleanup(self.remove, ident)
        self.assertRegex(ident, "^sha256:[0-9a-f]{64}$")
        self.assertEqual("from the shell\n", self.node.cli("run", "--rm", ident).stdout)
        self.assertEqual("file:" + path, json.loads(self.node.cli("image", "inspect", ident).stdout)["image"]["source"])

    def test_for_another_machine(self):
        done = self.nacre("--root", "--name", "other", "--platform", "linux/arm64/v8", "-", data=busybox_root())
        self.addCleanup(self.remove, "other")
        self.assertEqual(0, done.returncode, done.stderr)
        config = json.loads(self.node.cli("image", "inspect", "other").stdout)["config"]
        self.assertEqual(("arm64", "v8", "linux"), (config["architecture"], config["variant"], config["os"]))

    def test_what_cannot_be(self):
        for args, words in ((["--cmd", "sh"], "--cmd is for a root file system"), (["--root", "--env", "x"], "no NAME=VALUE"),
                            (["--root", "--cmd", '["a", 1]'], "no list of strings"), (["--root", "--cmd", '["a"'], "--cmd: "),
                            (["--root", "--label", "=x"], "no NAME=VALUE"), (["--root", "--platform", "a/b/c"], "wants an architecture"),
                            (["--root"], "the tar is empty"), ([], "the archive is empty")):
            with self.subTest(args=args):
                done = self.nacre(*args, "-", data=b"")
                self.assertNotEqual(0, done.returncode)
                self.assertIn(words, done.stderr.decode())
        self.assertEqual([], [name for name in os.listdir("/var/tmp") if name.startswith("nacre-import.")])

    def test_errors_name_the_field(self):
        for field, value in (("config", "x" * 200000), ("source", "x" * 5000), ("source", "a\nb"), ("name", "UPPER"), ("path", "/there-is-none")):
            with self.subTest(field=field):
                request = nacre_pb2.ImportRequest(**{"path": "/dev/null", "config": "{}", field: value})
                with self.assertRaises(grpc.RpcError) as caught:
                    list(self.node.images.Import(request))
                self.assertRegex(caught.exception.details(), f"^{field}: ")
