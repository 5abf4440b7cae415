# SPDX-License-Identifier: Apache-2.0
"""Disks that lie over others, without the daemon: what vm/disk/qcow2.h writes, as qemu-img and a machine that boots from it see it."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import boot_sector
import host
from test_machine import ASKED, DRIVER, POWERED_OFF, USER, Machine, file_of

MIB = 1 << 20


def image(*command):
    return subprocess.run(["qemu-img", *command], check=True, capture_output=True, text=True).stdout


class DiskTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in ("qemu-system-x86_64", "qemu-img"):
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")
        cls.top = tempfile.mkdtemp(prefix="nacre-disk-")
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.raw = os.path.join(cls.top, "raw")
        try:
            boot_sector.make(cls.raw)
        except boot_sector.Missing as e:
            raise unittest.SkipTest(str(e)) from e

    def setUp(self):
        self.place = tempfile.mkdtemp(dir=self.top)

    def over(self, backing, form, size):
        path = os.path.join(self.place, "over")
        with open(path, "wb"):
            pass
        subprocess.run([DRIVER, "qcow2", path, str(size), backing, form], check=True)
        return path


class Format(DiskTest):
    def test_is_what_qemu_img_reads(self):
        for size in (512, MIB, 512 * MIB, 512 * MIB + 512, 3 << 40, 16 << 40):
            path = self.over("", "raw", size)
            found = json.loads(image("info", "--output=json", path))
            self.assertEqual(("qcow2", size, 65536), (found["format"], found["virtual-size"], found["cluster-size"]))
            self.assertFalse(found["format-specific"]["data"]["corrupt"])
            self.assertIn("No errors", image("check", path))

    def test_shows_what_is_below(self):
        path = self.over(self.raw, "raw", 2 * MIB)
        found = json.loads(image("info", "--output=json", path))
        self.assertEqual((self.raw, "raw"), (found["backing-filename"], found["backing-filename-format"]))
        image("convert", "-O", "raw", path, path + ".raw")
        self.assertEqual(file_of(self.raw) + bytes(MIB), file_of(path + ".raw"))


class Boot(DiskTest):
    """A sector of our own counts its boots on its disk."""

    def setUp(self):
        super().setUp()
        self.group = os.path.join(host.own_cgroup(), "vmm-" + os.path.basename(self.place))
        os.mkdir(self.group)
        self.addCleanup(host.end_cgroup, self.group)

    def boot(self, form, base, over):
        machine = Machine(self.place, self.group, "boot", str(USER), "bios", "-", form, base, over)
        self.addCleanup(machine.close)
        return machine

    def check(self, form, base, before):
        over = self.over(base, form, MIB)
        machine = self.boot(form, base, over)
        machine.expect(r"\| boot 1")
        # A reset is no end: the same machine boots again.
        machine.say("type R")
        machine.expect(r"\| boot 2")
        machine.say("stop")
        self.assertEqual((POWERED_OFF, "the guest powered off"), machine.end(), machine.seen)
        machine = self.boot(form, base, over)
        machine.expect(r"\| boot 3")
        machine.say("kill")
        self.assertEqual((ASKED, "the machine was ended"), machine.end())
        self.assertIn("No errors", image("check", over))
        # What is below was never written to.
        self.assertEqual(before, file_of(base))

    def test_over_raw(self):
        self.check("raw", self.raw, file_of(self.raw))

    def test_over_qcow2(self):
        base = os.path.join(self.place, "base")
        image("convert", "-O", "qcow2", self.raw, base)
        self.check("qcow2", base, file_of(base))

    def test_a_name_in_it_is_not_followed(self):
        """The jail has no such file, and the command line names what is below; what the head says counts for nobody."""
        over = self.over("/dev/null", "qcow2", MIB)
        machine = self.boot("raw", self.raw, over)
        machine.expect(r"\| boot 1")
        machine.say("type P")
        self.assertEqual((POWERED_OFF, "the guest powered off"), machine.end())


if __name__ == "__main__":
    unittest.main()
