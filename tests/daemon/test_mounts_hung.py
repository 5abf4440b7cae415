# SPDX-License-Identifier: Apache-2.0
"""Volumes that lie on a file system that does not answer: only who asks for them waits, and not for ever."""
import collections
import ctypes
import os
import signal
import unittest

import grpc

import images
import nacre_test
import test_mounts
from nacre_test import runtime_pb2

Code = grpc.StatusCode
libc = ctypes.CDLL(None, use_errno=True)
MNT_DETACH = 2
# runtime/storage/volumes_call.h
CALLS_MAX = 64


class Hung(test_mounts.MountsTest):
    """A file system on the way to a volume does not answer: one of FUSE whose daemon, this program, takes no request."""

    def hang(self):
        """(what to close for it to answer, a path below it)"""
        path = os.path.join(self.dir, "hung")
        os.makedirs(path)
        try:
            fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        except OSError as e:
            self.skipTest(f"/dev/fuse: {e}")
        words = f"fd={fuse},rootmode=40000,user_id=0,group_id=0"
        if libc.mount(b"hung", path.encode(), b"fuse", 0, words.encode()) < 0:
            os.close(fuse)
            self.skipTest(f"mount FUSE: {os.strerror(ctypes.get_errno())}")
        self.addCleanup(libc.umount2, path.encode(), MNT_DETACH)
        held = os.fdopen(fuse, "rb", buffering=0)
        self.addCleanup(held.close)
        return held, os.path.join(path, "data")

    def ask(self, node, name, path):
        sleeper = test_mounts.sleeper(test_mounts.mount(path))
        return node.runtime.RunPod.future(runtime_pb2.RunPodRequest(meta={"name": name}, containers=[sleeper]), timeout=100)

    def assertTooLate(self, future):
        self.assertEqual(Code.UNAVAILABLE, future.code(), future.details())
        self.assertTrue(future.details().startswith("containers[0].mounts[0].source: "), future.details())

    def test_others_are_answered(self):
        held, path = self.hang()
        first = [self.ask(self.node, f"h{n}", path) for n in range(3)]
        self.assertEqual(Code.OK, self.ask(self.node, "other", self.dir).code())
        self.assertEqual("of the host\n", self.sh("other", "cat /mnt/file"))
        for future in first:
            self.assertTooLate(future)
        # A thread that does not come back has its place for as long.
        more = [self.ask(self.node, f"m{n}", path) for n in range(CALLS_MAX + 6)]
        codes = collections.Counter(future.code() for future in more)
        self.assertEqual({Code.RESOURCE_EXHAUSTED: 9, Code.UNAVAILABLE: CALLS_MAX - 3}, dict(codes))
        self.assertEqual({"other"}, set(self.all()))
        held.close()
        nacre_test.until(lambda: self.ask(self.node, "again", self.dir).code() == Code.OK, what="threads that are back")
        self.assertEqual({"other", "again"}, set(self.all()))

    @unittest.skipIf(nacre_test.SANITIZED, "the search for leaks stops every thread first, and waits for those")
    def test_the_daemon_ends_without_them(self):
        with nacre_test.Node() as node:
            images.ensure(node, "busybox")
            _, path = self.hang()
            future = self.ask(node, "h", path)
            self.assertTooLate(future)
            future = self.ask(node, "h", path)
            node.send_signal(signal.SIGTERM)
            node.wait()
            self.assertIn(future.code(), (Code.UNAVAILABLE, Code.CANCELLED))
            self.assertEqual("", node.sanitizer_reports())
