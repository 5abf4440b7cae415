# SPDX-License-Identifier: Apache-2.0
"""No import takes more than 64 MiB, whatever the image: the helper that reads the archive, those that unpack, and the process with the
store, each of them and, where that is asked, all together."""
import contextlib
import os
import random
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver import BUILD, DRIVER, StoreTest, mkimage, small_file  # noqa: E402

LIMIT_KIB = 64 << 10
# The most that a process of a tree had, of those that were waited for; the interpreter's own is below the limit.
MEASURE = ("import resource, subprocess, sys; r = subprocess.run(sys.argv[1:]).returncode; "
           "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(r)")


def pss(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("Pss:")), 0)
    return 0


def children(pid):
    """Of a process with one thread that has any."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()
    return []


def zstd_frame(data, window_log):
    """Raw blocks in a frame that says it needs this window."""
    out = [b"\x28\xb5\x2f\xfd\0" + bytes([(window_log - 10) << 3])]
    size = 1 << 17
    for at in range(0, len(data), size):
        piece = data[at:at + size]
        out += [(len(piece) << 3 | (at + size >= len(data))).to_bytes(3, "little"), piece]
    return b"".join(out)


@unittest.skipUnless("asan" not in BUILD, "a sanitizer's shadow is memory too")
class Memory(StoreTest):

    def measure(self, path):
        done = subprocess.run([sys.executable, "-S", "-E", "-c", MEASURE, DRIVER, self.root, self.fetch, "import", path, "one"],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        peak = int(done.stderr.split()[-1])
        print(f"# {self._testMethodName}: {peak} KiB", flush=True)
        self.assertLess(peak, LIMIT_KIB)
        self.driver("rm", "one")
        return peak

    def measure_together(self, path):
        """KiB of all processes of the driver at once, as often as it is looked at, and how many of them there were."""
        peak, most = 0, 0
        with subprocess.Popen([DRIVER, self.root, self.fetch, "import", path, "one"], stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                helpers = children(process.pid)
                peak = max(peak, pss(process.pid) + sum(map(pss, helpers)))
                most = max(most, len(helpers))
                time.sleep(0.005)
        self.assertEqual(0, process.returncode)
        print(f"# {self._testMethodName}: {peak} KiB", flush=True)
        self.assertLess(peak, LIMIT_KIB)
        return peak, most

    def image(self, layers, config=None):
        files = mkimage.oci_files(layers, config or mkimage.make_config(layers, {}), "one")
        mkimage.write_files(self.path("a.tar"), files)
        return self.path("a.tar")

    def test_a_window_of_zstd(self):
        data = mkimage.build_tar([small_file("f", random.Random(1).randbytes(80 << 20))])
        layer = mkimage.Layer(data, "none", mkimage.LAYER + "+zstd")
        layer.blob = zstd_frame(data, 25)
        # The window is there, or this measures nothing.
        self.assertGreater(self.measure(self.image([layer])), 32 << 10)

    def windows(self, rng, log):
        """Four layers that want a window of so much at the same time."""
        found = []
        for n in range(4):
            data = mkimage.build_tar([small_file(f"f{n}", rng.randbytes(40 << 20))])
            found.append(mkimage.Layer(data, "none", mkimage.LAYER + "+zstd"))
            found[-1].blob = zstd_frame(data, log)
        return self.image(found)

    def test_windows_of_zstd_take_turns(self):
        for log, least in ((25, 32 << 10), (23, 24 << 10)):
            with self.subTest(log=log):
                peak, most = self.measure_together(self.windows(random.Random(log), log))
                self.assertGreater(peak, least)
                self.assertGreater(most, 3)

    def test_a_large_layer(self):
        """300 MB, mostly of nothing: as it is, and as gzip with so much in it that it is no bomb."""
        rng = random.Random(2)
        data = b"".join(rng.randbytes(64) + bytes(8128) for _ in range(37500))
        for compress in ("none", "gzip"):
            with self.subTest(compress=compress):
                self.measure(self.image([mkimage.Layer(mkimage.build_tar([small_file("f", data)]), compress)]))

    def test_a_sparse_file(self):
        with open(self.path("hole"), "wb") as file:
            file.write(b"x")
            os.truncate(file.fileno(), 300 << 20)
            file.seek(200 << 20)
            file.write(b"y" * 100000)
        subprocess.run(["tar", "-C", self.work, "-S", "--format=posix", "-cf", self.path("l.tar"), "hole"], check=True)
        with open(self.path("l.tar"), "rb") as file:
            self.measure(self.image([mkimage.Layer(file.read())]))

    def test_many_layers(self):
        self.measure(self.image([mkimage.Layer(mkimage.build_tar([small_file(f"f{n}", b"%d" % n * 1000)])) for n in range(200)]))

    def test_a_large_document(self):
        layers = [mkimage.Layer(mkimage.build_tar([small_file("f")]))]
        config = mkimage.make_config(layers, {})
        config["x"] = ["x" * 40] * 65000
        self.measure(self.image(layers, config))

    def test_many_small_files(self):
        self.measure(self.image([mkimage.Layer(mkimage.build_tar([small_file(f"d{n % 100}/f{n}", b"") for n in range(50000)]))]))


if __name__ == "__main__":
    unittest.main()
