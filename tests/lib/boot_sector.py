# SPDX-License-Identifier: Apache-2.0
"""Disks that a BIOS boots, from tests/guest/boot_sector.S."""
import os
import shutil
import subprocess
import tempfile

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "guest", "boot_sector.S")
SIZE = 1 << 20


class Missing(Exception):
    """What is not there to make one."""


def make(path):
    """A raw disk of SIZE bytes."""
    if not shutil.which("as") or not shutil.which("ld"):
        raise Missing("as and ld are not installed")
    with tempfile.TemporaryDirectory(prefix="nacre-sector-") as top:
        subprocess.run(["as", "--32", "-o", top + "/o", SOURCE], check=True)
        subprocess.run(["ld", "-m", "elf_i386", "--oformat", "binary", "-Ttext", "0x7c00", "-e", "_start", "-o", top + "/sector", top + "/o"],
                       check=True)
        with open(top + "/sector", "rb") as sector, open(path, "wb") as disk:
            disk.write(sector.read() + b"0")
            disk.truncate(SIZE)
