#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The API that a daemon tells of itself is the one that doc/api.txt has: no number changes by accident.

Where a change is meant, `make api` renews the copy, and its diff shows what a client of an older release meets.
"""
import difflib
import os
import re
import unittest

import api
import apidump
import nacre_test

COPY = os.path.join(nacre_test.ROOT, "doc", "api.txt")


class ReflectionDump(nacre_test.NodeTest):
    IMAGES = ()

    def test_the_copy_is_the_api(self):
        with open(COPY, encoding="utf-8") as f:
            copy = f.read()
        told = apidump.dump(self.node.channel)
        diff = "".join(difflib.unified_diff(copy.splitlines(True), told.splitlines(True), "doc/api.txt", "the daemon"))
        self.assertEqual("", diff, "\nmake api renews the copy where the change is meant:\n" + diff)

    def test_what_is_told_is_registered(self):
        """Every method of the user's services is there: none is declared only."""
        for f in apidump.files(self.node.channel):
            for s in f.service:
                name = f"{f.package}.{s.name}"
                self.assertEqual(name != "nacre.instance.v1.InstanceService", name in apidump.services(self.node.channel))

    def test_every_method_is_documented(self):
        """A method of the user's services without a comment of its own is one that nobody can use."""
        bare = []
        for name in ("runtime", "nacre", "cri"):
            with open(os.path.join(api.PROTOS, name + ".proto"), encoding="utf-8") as f:
                lines = f.read().splitlines()
            bare += [line.strip() for before, line in zip(lines, lines[1:])
                     if re.match(r"\s*rpc \w+\(", line) and not before.strip().startswith("//")]
        self.assertEqual([], bare)


class CommandLine(unittest.TestCase):
    def test_it_uses_only_this_api(self):
        """No file of src/cli knows what a parent asks of a keeper, nor any file that the daemon keeps."""
        folder = os.path.join(nacre_test.ROOT, "src", "cli")
        wrong = re.compile(r"api/instance\.pb-c\.h|nacre[._]+instance|Nacre__Instance|nacre\.instance\.v1|run\.db|root\.db|\"store/|\"pod/"
                           r"|\"instance/|\"keeper/|\"image/")
        found = []
        files = sorted(os.path.join(top, name) for top, _, names in os.walk(folder) for name in names)
        for name in files:
            with open(name, encoding="utf-8") as f:
                found += [f"{name}:{n}: {line.strip()}" for n, line in enumerate(f, 1) if wrong.search(line)]
        self.assertEqual([], found)
        # The services that it calls are those of the user's socket.
        called = set()
        for name in files:
            with open(name, encoding="utf-8") as f:
                called |= set(re.findall(r'"/(\w+\.[\w.]+)/\w+"', f.read()))
        self.assertLessEqual(called, {"aurae.runtime.v0.RuntimeService", "nacre.v1.WorkloadService", "nacre.v1.EventService", "nacre.v1.CloudService",
                                      "nacre.v1.ImageService", "nacre.v1.DiskService", "nacre.v1.NodeService",
                                      "nacre.v1.NetworkService", "nacre.v1.VolumeService", "nacre.v1.SecretService", "nacre.v1.IdentityService"})
        self.assertIn("nacre.v1.WorkloadService", called)


if __name__ == "__main__":
    unittest.main()
