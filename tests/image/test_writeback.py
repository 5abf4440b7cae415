# SPDX-License-Identifier: Apache-2.0
"""The disk works while a layer is unpacked: of a long file hardly anything is left for the sync behind the last entry."""
import ctypes
import gzip
import hashlib
import io
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import fetcher  # noqa: E402

CACHESTAT = 451  # the same on all architectures; Linux 6.5
SIZE = 48 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


def dirty_pages(fd):
    """Of a file, those that wait for the disk to begin with them; None where the kernel does not tell."""
    everything, ret = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
    if ctypes.CDLL(None, use_errno=True).syscall(CACHESTAT, fd, everything, ret, 0) < 0:
        return None
    return ret[1]


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(size):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo("long")
        member.size = size
        tar.addfile(member, io.BytesIO(random.Random(1).randbytes(size)))
    return out.getvalue()


class Writeback(unittest.TestCase):
    def unpack(self, tar, folder):
        blob = gzip.compress(tar, 1)
        with open(folder + "/blob", "wb") as file:
            file.write(blob)
        os.mkdir(folder + "/layer")
        ours, process = fetcher.begin_unpack(folder + "/blob", (digest(blob), digest(tar), len(blob)), fetcher.GZIP, folder + "/layer")
        with ours, process:
            self.assertEqual(("UNPACKED", len(tar), 1, 0), fetcher.unpack(ours.recv(65536)))
        self.assertEqual(0, process.returncode)

    def test_a_long_file_goes_to_the_disk_meanwhile(self):
        with tempfile.TemporaryDirectory(prefix="nacre-writeback-") as folder:
            if subprocess.check_output(["stat", "-f", "-c", "%T", folder], text=True).strip() in ("tmpfs", "ramfs", "overlayfs"):
                self.skipTest("there is no disk below the directory for temporary files")
            self.unpack(layer(SIZE), folder)
            with open(folder + "/layer/long", "rb") as file:
                left = dirty_pages(file.fileno())
            if left is None:
                self.skipTest("this kernel has no cachestat()")
            self.assertLess(left, SIZE // PAGE // 4)


if __name__ == "__main__":
    unittest.main()
