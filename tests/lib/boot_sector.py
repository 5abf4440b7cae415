# SPDX-License-Identifier: Apache-2.0
"""Disks that a BIOS boots, from tests/guest/boot_sector.S, and a kernel, from tests/guest/small_kernel.S."""
import os
import shutil
import subprocess
import tempfile

GUEST = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "guest")
SOURCE = os.path.join(GUEST, "boot_sector.S")
KERNEL_SOURCE = os.path.join(GUEST, "small_kernel.S")
SIZE = 1 << 20


class Missing(Exception):
    """What is not there to make one."""


def check():
    if not shutil.which("as") or not shutil.which("ld"):
        raise Missing("as and ld are not installed")


def make_kernel(path):
    """A vmlinux for QEMU's microvm, that everybody may read."""
    check()
    with tempfile.TemporaryDirectory(prefix="nacre-kernel-") as top:
        subprocess.run(["as", "--64", "-o", top + "/o", KERNEL_SOURCE], check=True)
        subprocess.run(["ld", "-m", "elf_x86_64", "-static", "-z", "noexecstack", "-Ttext", "0x100000", "-e", "_start", "-o", path, top + "/o"], check=True)
    os.chmod(path, 0o644)


def make(path):
    """A raw disk of SIZE bytes."""
    check()
    with tempfile.TemporaryDirectory(prefix="nacre-sector-") as top:
        subprocess.run(["as", "--32", "-o", top + "/o", SOURCE], check=True)
        subprocess.run(["ld", "-m", "elf_i386", "--oformat", "binary", "-Ttext", "0x7c00", "-e", "_start", "-o", top + "/sector", top + "/o"],
                       check=True)
        with open(top + "/sector", "rb") as sector, open(path, "wb") as disk:
            disk.write(sector.read() + b"0")
            disk.truncate(SIZE)
