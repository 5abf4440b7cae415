# SPDX-License-Identifier: Apache-2.0
"""The store on file systems of its own: what is pulled runs, sizes are the kernel's, a full disk refuses in words, a killed
daemon and a killed helper go on where they were, and nothing is left."""
import os
import shutil
import signal
import subprocess
import threading
import unittest

import grpc

import fakeregistry
import host
import images
import nacre_test
from nacre_test import nacre_pb2

MKIMAGE = images.module()
SIZE = 400 << 20
MAKERS = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"], "btrfs": ["mkfs.btrfs", "-q", "-f"]}


class Disk(unittest.TestCase):
    """One node on one file system, for each of them."""

    def setUp(self):
        self.registry = self.enterContext(fakeregistry.FakeRegistry())

    def node_on(self, kind):
        """A node whose root is a file system of this kind, in a file."""
        maker = MAKERS[kind]
        if not shutil.which(maker[0]):
            self.skipTest(maker[0] + " is not installed")
        with open("/proc/filesystems", encoding="ascii") as f:
            if kind not in f.read().split():
                self.skipTest(f"this kernel has no {kind}")
        node = nacre_test.Node("images:\n  reserve: 0\n  no_progress_timeout: 10s\n", start=False)
        self.addCleanup(node.destroy)
        disk = os.path.join(node.dir, "disk")
        with open(disk, "wb") as f:
            f.truncate(SIZE)
        subprocess.run(maker + [disk], check=True, capture_output=True)
        os.makedirs(node.root)
        done = subprocess.run(["mount", "-o", "loop", disk, node.root], capture_output=True, text=True, check=False)
        if done.returncode:
            self.skipTest(f"no loop device: {done.stderr.strip()}")
        # The cleanup of the node's directory ends the mount, and with it the loop device.
        node.start()
        return node

    def image(self, repository, entries):
        self.registry.put_image(repository, "1", layers=[MKIMAGE.build_tar(e) for e in entries], Cmd=["sh"])
        return f"{self.registry.host}/{repository}:1"

    @staticmethod
    def noise(name, size):
        return [(name, b"0", 0o644, os.urandom(size), "")]

    def pull(self, node, name):
        for answer in node.images.Pull(nacre_pb2.PullRequest(image=name), timeout=120 * nacre_test.SLOWNESS):
            if answer.HasField("image"):
                return answer.image
        raise AssertionError("no image came")

    def blocks(self, node, *folders):
        """What du says of them: each inode once."""
        seen = {}
        for top in folders:
            for folder, names, files in os.walk(os.path.join(node.root, top)):
                for name in names + files:
                    st = os.lstat(os.path.join(folder, name))
                    seen[st.st_dev, st.st_ino] = st.st_blocks * 512
        return sum(seen.values())

    def check(self, node):
        self.assertEqual([], list(node.info.Check(nacre_pb2.CheckRequest()).findings))
        # What is let go is deleted behind the answer.
        node.await_empty_staging()

    def runs_and_is_counted(self, node):
        name = self.image("run", [MKIMAGE.busybox_entries(), self.noise("noise", 3 << 20)])
        found = self.pull(node, name)
        self.assertEqual(node.cli("run", "--rm", name, "sh", "-c", "wc -c < /noise; echo x > /new; cat /new").stdout.split(), [str(3 << 20), "x"])
        usage = node.images.DiskUsage(nacre_pb2.DiskUsageRequest())
        self.assertFalse(usage.incomplete)
        self.assertEqual((usage.blob_bytes, usage.layer_bytes), (self.blocks(node, "blobs/sha256"), self.blocks(node, "layers")))
        node.images.Remove(nacre_pb2.RemoveImageRequest(image=found.id))

    def refuses_when_full(self, node):
        """More comes out of it than the disk has, which nobody can know before."""
        name = self.image("full", [[("more", b"0", 0o644, b"more" * (20 << 20), "")]])
        space = os.statvfs(node.root)
        filler = os.open(node.root, os.O_TMPFILE | os.O_RDWR)
        os.posix_fallocate(filler, 0, space.f_bavail * space.f_bsize - (50 << 20))
        with self.assertRaises(grpc.RpcError) as caught:
            self.pull(node, name)
        self.assertEqual(grpc.StatusCode.RESOURCE_EXHAUSTED, caught.exception.code(), caught.exception.details())
        self.assertRegex(caught.exception.details(), "No space left")
        os.close(filler)
        node.images.Prune(nacre_pb2.PruneImagesRequest(all=True))
        self.check(node)

    def resumes(self, node):
        """Behind SIGKILL of the helper, and of the daemon."""
        name = self.image("big", [self.noise("big", 8 << 20)])
        data = self.registry.last["layers"][0]
        for victim in ("helper", "daemon"):
            there, over = threading.Event(), threading.Event()

            def half(a, there=there, over=over):
                a.send_response(200)
                a.send_header("Content-Length", str(len(data)))
                a.end_headers()
                a.wfile.write(data[:5 << 20])
                a.wfile.flush()
                there.set()
                over.wait(60)
                a.drop()
            self.registry.scripts.clear()
            self.registry.requests.clear()
            self.registry.once("GET", fakeregistry.digest(data), half)
            ends = []
            call = threading.Thread(target=lambda ends=ends: ends.append(self.ends(node, name)))
            call.start()
            self.assertTrue(there.wait(60 * nacre_test.SLOWNESS))
            partial = f"{node.root}/partial/{fakeregistry.digest(data)[7:]}"
            nacre_test.until(lambda p=partial: os.path.exists(p) and os.path.getsize(p) > 1 << 20, what="a part")
            if victim == "daemon":
                node.restart()
            else:
                for pid in self.helpers(node):
                    os.kill(pid, signal.SIGKILL)
            call.join()
            over.set()
            self.assertIsInstance(ends[0], grpc.RpcError)
            # One that is killed first ends the write that it is in.
            nacre_test.until(lambda: not self.helpers(node), what="the end of all helpers")
            kept = os.path.getsize(partial)
            found = self.pull(node, name)
            ranges = [r[2].get("Range") for r in self.registry.asked("GET", fakeregistry.digest(data))]
            self.assertEqual(ranges, [None, f"bytes={kept}-"])
            self.assertEqual([], os.listdir(node.root + "/partial"))
            self.check(node)
            node.images.Remove(nacre_pb2.RemoveImageRequest(image=found.id))

    def ends(self, node, name):
        try:
            return self.pull(node, name)
        except grpc.RpcError as e:
            return e

    @staticmethod
    def helpers(node):
        own = host.cgroup_pids(host.own_cgroup())
        return [p for p in own if host.read(f"/proc/{p}/comm").strip() in ("nacre-fetch", "nacre-transfer")]

    def leaves_nothing(self, node):
        node.images.Prune(nacre_pb2.PruneImagesRequest(all=True))
        self.check(node)
        self.assertEqual([], os.listdir(node.root + "/blobs/sha256"))
        self.assertEqual(["0"], os.listdir(node.root + "/layers"))

    def on(self, kind):
        node = self.node_on(kind)
        self.runs_and_is_counted(node)
        self.refuses_when_full(node)
        self.resumes(node)
        self.leaves_nothing(node)
        self.assertEqual("", node.sanitizer_reports())

    def test_ext4(self):
        self.on("ext4")

    def test_xfs(self):
        self.on("xfs")

    def test_btrfs(self):
        self.on("btrfs")
