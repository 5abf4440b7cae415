# SPDX-License-Identifier: Apache-2.0
"""The power goes while images come and go. What was answered is there afterwards, whole; what was not is there whole or not at
all, and comes when it is asked for again; nothing else is left.

The store's file system lies in a file on an XFS of our own. That file is cloned at many moments (FICLONE, which is one moment):
a clone has what the file system had written to its disk, and nothing of what was only in memory. And the XFS is shut down under
it without a word to its log (XFS_IOC_GOINGDOWN): then what the disk was told, but not told to flush, is lost too.
"""
import fcntl
import hashlib
import io
import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import tarfile
import tempfile
import threading
import time
import unittest

import grpc

import fakeregistry
import faults
import nacre_test
from fakeregistry import digest, layer_tar
from nacre_test import nacre_pb2

FICLONE = 0x40049409
GOING_DOWN, NO_LOG_FLUSH = 0x8004587D, 2
SIZE = 320 << 20
MAKERS = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"], "btrfs": ["mkfs.btrfs", "-q", "-f"]}
CONFIG = "images:\n  reserve: 0\n"
SEED = int(os.environ.get("NACRE_SEED", "1"))


def mounted(what, where):
    done = subprocess.run(["mount", "-o", "loop", what, where], capture_output=True, text=True, check=False)
    if done.returncode:
        raise unittest.SkipTest(f"no loop device: {done.stderr.strip()}")


def unmount(where):
    """Whoever had it has ended, but loop devices and name spaces go a moment later."""
    def gone():
        return subprocess.run(["umount", where], capture_output=True, check=False).returncode == 0

    nacre_test.until(gone, what=f"the end of the mount {where}")


class Images:
    """What the images are, by id: the files of each layer, and how to get it."""

    def __init__(self, registry, folder):
        self.registry, self.layers, self.sources = registry, {}, {}
        noise = random.Random(SEED)
        base = {f"base/{n}": noise.randbytes(700) for n in range(400)}
        base["large"] = noise.randbytes(3 << 20)
        one, two, three = ({f"{w}/{n}": noise.randbytes(5000) for n in range(60)} for w in ("one", "two", "three"))
        self.a = self.put("a", base, one)
        self.b = self.put("b", base, two)
        self.c = self.put("c", {"big": noise.randbytes(9 << 20)}, base, three)
        self.d = self.archive(folder, "d", base, {"d": noise.randbytes(2 << 20)})

    def name(self, what):
        return f"{self.registry.host}/p/{what}:1"

    def put(self, what, *layers):
        self.registry.put_image("p/" + what, "1", layers=[layer_tar(l) for l in layers])
        return self.know(what, digest(self.registry.last["config"]), layers)

    def know(self, what, ident, layers):
        self.layers[ident] = [{name: digest(data) for name, data in l.items()} for l in layers]
        self.sources[what] = ident
        return ident

    def archive(self, folder, what, *layers):
        """As `docker save` writes it."""
        tars = [layer_tar(l) for l in layers]
        config = json.dumps({"os": "linux", "architecture": "amd64", "config": {"Cmd": ["/x"]},
                             "rootfs": {"type": "layers", "diff_ids": [digest(t) for t in tars]}}).encode()
        manifest = [{"Config": "config.json", "RepoTags": [self.name(what)], "Layers": [f"{n}.tar" for n in range(len(tars))]}]
        files = {"manifest.json": json.dumps(manifest).encode(), "config.json": config}
        files.update({f"{n}.tar": t for n, t in enumerate(tars)})
        self.path = os.path.join(folder, what + ".tar")
        with tarfile.open(self.path, "w") as out:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                out.addfile(info, io.BytesIO(data))
        return self.know(what, digest(config), layers)


class Work:
    """Images come and go on a node, and what was answered is written down: {name: id}."""

    def __init__(self, node, images):
        self.node, self.images = node, images
        self.lock = threading.Lock()
        self.there, self.begun, self.open = {}, [], []
        self.failed = []
        self.answered = lambda: None

    def state(self):
        """What is there, what may be there too, and a mark for now."""
        with self.lock:
            return dict(self.there), list(self.open), len(self.begun)

    def since(self, mark):
        with self.lock:
            return self.begun[mark:]

    def do(self, call, effects):
        effects = list(effects.items())
        with self.lock:
            self.begun += effects
            self.open += effects
        try:
            call()
        except grpc.RpcError as e:
            self.failed.append(e)
            raise
        with self.lock:
            for effect in effects:
                self.open.remove(effect)
                self.there[effect[0]] = effect[1]
        self.answered()

    def pull(self, what):
        name = self.images.name(what)
        request = nacre_pb2.PullRequest(image=name)
        self.do(lambda: list(self.node.images.Pull(request, timeout=120)), {name: self.images.sources[what]})

    def load(self):
        self.do(lambda: self.node.import_image(self.images.path, ""), {self.images.name("d"): self.images.d})

    def tag(self, what, name):
        request = nacre_pb2.TagImageRequest(image=self.images.name(what), name=self.images.name(name))
        self.do(lambda: self.node.images.Tag(request, timeout=60), {self.images.name(name): self.there[self.images.name(what)]})

    def remove(self, name):
        request = nacre_pb2.RemoveImageRequest(image=self.images.name(name))
        self.do(lambda: self.node.images.Remove(request, timeout=60), {self.images.name(name): None})

    def prune(self, everything):
        request = nacre_pb2.PruneImagesRequest(all=everything)
        self.do(lambda: self.node.images.Prune(request, timeout=60), {n: None for n in self.there} if everything else {})

    def at_once(self, *calls):
        threads = [threading.Thread(target=self.quietly, args=(c,)) for c in calls]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if self.failed:
            raise self.failed[0]

    @staticmethod
    def quietly(call):
        try:
            call()
        except grpc.RpcError:
            pass

    def once(self):
        self.at_once(lambda: self.pull("a"), lambda: self.pull("b"))
        self.tag("a", "further")
        self.load()
        self.at_once(lambda: self.pull("c"), lambda: self.remove("b"))
        self.remove("further")
        # Takes the name away from another one, which has none then.
        self.tag("c", "a")
        self.prune(False)
        self.at_once(lambda: self.pull("a"), self.load, lambda: self.pull("b"))
        self.prune(True)
        self.pull("b")


class PowerLoss(unittest.TestCase):
    SECONDS = 400

    def setUp(self):
        for program in ("mkfs.xfs",):
            if not shutil.which(program):
                self.skipTest(program + " is not installed")
        self.registry = self.enterContext(fakeregistry.FakeRegistry())
        self.slow = True
        self.registry.on("GET", "/blobs/", self.drip)
        self.dir = tempfile.mkdtemp(prefix="power-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.images = Images(self.registry, self.dir)
        self.outer, self.under = os.path.join(self.dir, "outer"), os.path.join(self.dir, "under")
        os.mkdir(self.outer)
        with open(self.under, "wb") as f:
            f.truncate(8 << 30)
        subprocess.run(MAKERS["xfs"] + [self.under], check=True, capture_output=True)
        mounted(self.under, self.outer)
        self.addCleanup(subprocess.run, ["umount", "-l", self.outer], check=False, capture_output=True)
        self.disk = os.path.join(self.outer, "disk")

    def drip(self, a):
        """Slowly, so that there is a middle."""
        data = self.registry.blobs.get(a.path.rsplit("/", 1)[1])
        if not self.slow or not data or a.headers.get("Range") or len(data) < 1 << 20:
            return False
        a.send_response(200)
        a.send_header("Content-Length", str(len(data)))
        a.end_headers()
        for at in range(0, len(data), 256 << 10):
            a.wfile.write(data[at:at + (256 << 10)])
            time.sleep(0.01)
        return True

    def make_disk(self, kind, whole=False):
        """whole: each block of the file is there, so that a write to it changes nothing else of the XFS."""
        if not shutil.which(MAKERS[kind][0]):
            self.skipTest(MAKERS[kind][0] + " is not installed")
        with open("/proc/filesystems", encoding="ascii") as f:
            if kind not in f.read().split():
                self.skipTest(f"this kernel has no {kind}")
        with open(self.disk, "wb") as f:
            if whole:
                for _ in range(SIZE >> 20):
                    f.write(bytes(1 << 20))
            f.truncate(SIZE)
        subprocess.run(MAKERS[kind] + [self.disk], check=True, capture_output=True)
        with open(self.disk, "rb") as f:
            os.fsync(f.fileno())

    def node_on(self, disk):
        node = nacre_test.Node(CONFIG, start=False)
        self.addCleanup(node.destroy)
        os.makedirs(node.root)
        mounted(disk, node.root)
        node.start()
        return node

    # -- what is there afterwards --

    def judge(self, disk, where, there, maybe):
        """there: what was answered; maybe: [(name, id)] of what was under way."""
        self.slow = False
        node = self.node_on(disk)
        try:
            with self.subTest(where, there=there, maybe=maybe):
                self.check_start(node, there, maybe)
                self.check_again(node)
                self.assertEqual("", node.sanitizer_reports())
        finally:
            node.stop()
            node.destroy()

    def check_start(self, node, there, maybe):
        self.check_node(node)
        found = {n: i.id for i in node.images.List(nacre_pb2.ListImagesRequest()).images for n in i.names}
        for name in set(there) | {n for n, _ in maybe} | set(found):
            allowed = {there.get(name)} | {i for n, i in maybe if n == name}
            self.assertIn(found.get(name), allowed, name)
        known = {d[7:] for d in self.registry.blobs}
        self.assertLessEqual(set(os.listdir(node.root + "/partial")), known)
        self.check_contents(node)

    def check_node(self, node):
        node.await_empty_staging()
        self.assertEqual([], [f"{f.object} {f.name}: {f.what}" for f in node.info.Check(nacre_pb2.CheckRequest()).findings])

    def check_contents(self, node):
        """Each byte of it, whatever the records say."""
        for name in os.listdir(node.root + "/blobs/sha256"):
            self.assertEqual(name, self.hash(node.root + "/blobs/sha256/" + name))
        db = sqlite3.connect(f"file:{node.root}/root.db?mode=ro", uri=True)
        try:
            rows = db.execute("SELECT image, layer FROM image_layer ORDER BY image, position").fetchall()
        finally:
            db.close()
        for image in node.images.List(nacre_pb2.ListImagesRequest()).images:
            numbers = [n for i, n in rows if i == image.id]
            self.assertEqual(self.images.layers[image.id], [self.files(f"{node.root}/layers/{n}") for n in numbers], image.names)
        self.assertEqual({"0"} | {str(n) for _, n in rows}, set(os.listdir(node.root + "/layers")))

    @staticmethod
    def hash(path):
        with open(path, "rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest()

    def files(self, top):
        return {os.path.relpath(os.path.join(folder, name), top): "sha256:" + self.hash(os.path.join(folder, name))
                for folder, _, names in os.walk(top) for name in names}

    def check_again(self, node):
        """All of it comes when it is asked for, from where it was; and it goes."""
        work = Work(node, self.images)
        for what in "abc":
            work.pull(what)
        work.load()
        self.assertEqual([], os.listdir(node.root + "/partial"))
        self.check_contents(node)
        self.check_node(node)
        node.images.Prune(nacre_pb2.PruneImagesRequest(all=True))
        self.check_node(node)
        self.assertEqual([], os.listdir(node.root + "/blobs/sha256"))
        self.assertEqual(["0"], os.listdir(node.root + "/layers"))

    # -- moments --

    def clone(self, work, moments):
        there, maybe, mark = work.state()
        path = os.path.join(self.outer, f"clone-{len(moments)}")
        with open(self.disk, "rb") as source, open(path, "wb") as to:
            fcntl.ioctl(to.fileno(), FICLONE, source.fileno())
        moments.append((path, there, maybe + work.since(mark)))

    def moments_of(self, kind):
        """(behind each answer, in the middle of something)"""
        self.make_disk(kind)
        work = Work(self.node_on(self.disk), self.images)
        lock, over, answers, others = threading.Lock(), threading.Event(), [], []
        every = []

        def take(of):
            with lock:
                self.clone(work, every)
                of.append(every[-1])

        def watch():
            dice = random.Random(SEED)
            while not over.wait(dice.uniform(0.005, 0.08)):
                take(others)
        work.answered = lambda: take(answers)
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            work.once()
        finally:
            over.set()
            watcher.join()
        self.assertEqual("", work.node.destroy())
        return answers, [m for m in others if m[2]]

    def at_many_moments(self, kind):
        answers, others = self.moments_of(kind)
        self.assertEqual(14, len(answers))
        self.assertGreater(len(others), 10)
        for n, (path, there, maybe) in enumerate(faults.some(answers, 5) + faults.some(others, 5)):
            self.judge(path, f"moment {n}", there, maybe)

    def test_moments_ext4(self):
        self.at_many_moments("ext4")

    def test_moments_xfs(self):
        self.at_many_moments("xfs")

    def test_moments_btrfs(self):
        self.at_many_moments("btrfs")

    # -- a disk that loses what it was not told to flush --

    def cut(self):
        folder = os.open(self.outer, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, GOING_DOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(folder)

    def lose_power(self, kind, after):
        """after: seconds."""
        self.slow = True
        self.make_disk(kind, whole=True)
        node = self.node_on(self.disk)
        work = Work(node, self.images)
        worker = threading.Thread(target=work.quietly, args=(work.once,))
        worker.start()
        worker.join(after * nacre_test.SLOWNESS)
        there, maybe, mark = work.state()
        self.cut()
        maybe += work.since(mark)
        # It may say that the disk is broken. It does not say that something is done, nor does it die.
        worker.join()
        self.assertTrue(node.alive, node.log()[-3000:])
        for error in work.failed:
            self.assertNotIn(error.code(), (grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED), error.details())
        node.kill()
        node.destroy()
        unmount(self.outer)
        mounted(self.under, self.outer)
        self.judge(self.disk, f"after {after} s", there, maybe)
        os.unlink(self.disk)

    def without_power(self, kind):
        for after in faults.some([0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.8, 2.1], 2):
            self.lose_power(kind, after)

    def test_cut_ext4(self):
        self.without_power("ext4")

    def test_cut_xfs(self):
        self.without_power("xfs")

    def test_cut_btrfs(self):
        self.without_power("btrfs")


if __name__ == "__main__":
    unittest.main()
