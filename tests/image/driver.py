# SPDX-License-Identifier: Apache-2.0
"""The store of images without the daemon: a scratch root, image-driver and nacre-fetch of $NACRE_BUILD."""
import ctypes
import importlib.machinery
import importlib.util
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.normpath(os.path.join(ROOT, os.environ.get("NACRE_BUILD", "build")))
DRIVER = os.path.join(BUILD, "src/image/image-driver")
FETCH = os.path.join(BUILD, "libexec/nacre/nacre-fetch")  # nacre-transfer is beside it
CLONE_NEWNS = 0x00020000


def load_mkimage():
    loader = importlib.machinery.SourceFileLoader("mkimage", os.path.join(ROOT, "tests/mkimage"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mkimage", loader))
    loader.exec_module(module)
    return module


mkimage = load_mkimage()


def private_mounts():
    """Mounts of this process and its children stay their own from here on."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


class StoreTest(unittest.TestCase):
    """A scratch directory `work` with a root in it, for each test."""

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root")
        if not os.path.exists(DRIVER):
            raise unittest.SkipTest(DRIVER + " is not built")
        private_mounts()

    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="nacre-image-")
        self.root = os.path.join(self.work, "root")
        os.mkdir(self.root)
        self.fetch = FETCH
        # Not shutil.rmtree(): some trees are deeper than Python goes.
        self.addCleanup(subprocess.run, ["rm", "-rf", self.work], check=True)

    def path(self, name):
        return os.path.join(self.work, name)

    def driver(self, *args, env=None, check=True, text=None, timeout=120):
        """Runs the driver; with check it must succeed."""
        done = subprocess.run([DRIVER, self.root, self.fetch, *args], input=text, capture_output=True, text=True,
                              timeout=timeout, env={**os.environ, **(env or {})}, check=False)
        if check:
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def refused(self, kind, words, *args, env=None):
        done = self.driver(*args, env=env, check=False)
        last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertTrue(last.startswith(kind + ": "), last)
        self.assertRegex(last, words)
        return last

    def images(self):
        """The lines of `list`, as lists of words."""
        return [line.split() for line in self.driver("list").stdout.splitlines()]

    def leftovers(self):
        """What the root holds beside the databases and the empty layer."""
        found = []
        for top in ("blobs/sha256", "layers", "staging", "containers"):
            found += [top + "/" + name for name in os.listdir(os.path.join(self.root, top))]
        return sorted(name for name in found if name != "layers/0")

    def assert_empty(self):
        """Nothing of an import is there. A start cleans too, so this looks first."""
        self.assertEqual(self.leftovers(), [])
        self.assertEqual(self.images(), [])

    def make(self, name, layers=None, form="oci", settings=None, image_name="", **options):
        """An image of Layer objects or of lists of build_tar() entries. Returns its path and id."""
        path = self.path(name)
        layers = [l if isinstance(l, mkimage.Layer) else mkimage.Layer(mkimage.build_tar(l)) for l in layers or []]
        return path, mkimage.write_image(path, layers, settings, image_name, form, **options)


def small_file(name, data=b"x\n", mode=0o644):
    return (name, b"0", mode, data, "")
