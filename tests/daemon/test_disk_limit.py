# SPDX-License-Identifier: Apache-2.0
"""A container's writable layer has a limit: a write beyond it fails with ENOSPC, and nothing of it is left behind."""
import glob
import os
import subprocess

import grpc

import host
import nacre_test
import steps
from steps import container

CODE = grpc.StatusCode
MIB = 1 << 20
FILL = "dd if=/dev/zero of=/fill bs=1M count=100 2>&1 | grep -c 'No space'"


class DiskLimitTest(steps.StepsTest):
    def setUp(self):
        super().setUp()
        self.busybox()
        self.containers = os.path.join(self.node.root, "containers")

    def loops(self):
        return [f for f in map(host.read, glob.glob("/sys/block/loop*/loop/backing_file")) if f.startswith(self.node.root)]

    def assertNothingLeft(self):
        nacre_test.until(lambda: not self.loops(), what="no loop device")
        nacre_test.until(lambda: not os.listdir(self.containers), what="no container's files")
        self.assertNotIn(self.containers, host.read("/proc/self/mountinfo"))
        self.assertEqual("", self.node.cli("check").stdout)

    def taken(self):
        """Of the disk, by the files of containers. (What the whole disk has free is changed by others meanwhile.)"""
        done = subprocess.run(["du", "-s", "-B1", self.containers], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return int(done.stdout.split()[0])

    def test_write_beyond_the_limit(self):
        done = self.node.cli("run", "--rm", "--disk", "32m", "busybox", "sh", "-c",
                             FILL + "; wc -c </fill; touch /etc/mine; grep -c localhost /etc/hosts")
        no_space, size, hosts = map(int, done.stdout.split())
        self.assertEqual((1, True, True), (no_space, 24 * MIB < size < 32 * MIB, hosts > 0), done.stdout)
        self.assertNothingLeft()

    def test_its_size_is_taken_from_the_disk_at_once(self):
        self.pod("p", container("sleep", "100000", disk=512 * MIB))
        self.assertGreater(self.taken(), 400 * MIB)
        self.assertEqual(512 * MIB, self.inspect("p").containers[0].disk)
        # Its file system is held by the container alone: it is mounted nowhere on the node.
        self.assertNotIn(self.containers, host.read("/proc/self/mountinfo"))
        self.node.clear()
        self.assertNothingLeft()

    def test_more_than_the_disk_has(self):
        self.assertFails(CODE.RESOURCE_EXHAUSTED, lambda: self.pod("p", container("true", disk=1 << 40)), "images.reserve")
        self.assertLess(self.taken(), MIB)
        self.node.clear()
        self.assertNothingLeft()
        done = self.node.cli("run", "--rm", "--disk", "1t", "busybox", "true", check=False)
        self.assertEqual(125, done.returncode)
        self.assertEqual([], self.node.json("ps", "-a"))
        self.assertNothingLeft()

    def test_sizes_that_are_refused(self):
        for size in (1, 16 * MIB - 1, (1 << 40) + 1):
            self.assertFails(CODE.INVALID_ARGUMENT, lambda n=size: self.pod("p", container("true", disk=n)), "containers[0].disk")
        for word in ("none", "0", "x", "-1", "15m", "2t"):
            done = self.node.cli("run", "--disk", word, "busybox", check=False)
            self.assertEqual((True, ""), (done.returncode != 0, done.stdout))
            self.assertIn("--disk", done.stderr)

    def test_copies_of_one_that_has_ended(self):
        self.node.cli("run", "--name", "p", "--disk", "32m", "busybox", "sh", "-c", "echo kept >/kept")
        nacre_test.until(lambda: not self.loops(), what="no loop device")
        for _ in range(2):
            self.node.cli("cp", "p:/kept", self.node.dir + "/kept")
            self.assertEqual("kept\n", host.read(self.node.dir + "/kept"))
        os.unlink(self.node.dir + "/kept")
        self.node.clear()
        self.assertNothingLeft()

    def test_a_daemon_that_is_killed(self):
        self.pod("p", container("sh", "-c", "while sleep 0.01; do :; done", disk=32 * MIB))
        self.node.kill()
        # What one leaves that is killed between the mount and the overlay.
        stale = os.path.join(self.containers, "stale", "fs")
        os.makedirs(stale)
        subprocess.run(["mount", "-t", "tmpfs", "none", stale], check=True)
        self.node.start()
        nacre_test.until(lambda: not os.path.exists(os.path.dirname(stale)), what="the stale container gone")
        self.assertEqual(b"1\n", b"".join(a.stdout for a in self.exec_all("p", "sh", "-c", FILL)))
        self.node.clear()
        self.assertNothingLeft()


class ConfiguredTest(steps.StepsTest):
    CONFIG = "storage:\n  container_limit: 16MiB\n"

    def test_limit_of_the_configuration(self):
        self.busybox()
        for options, least, most in ((), 8, 16), (("--disk", "32m"), 24, 32):
            done = self.node.cli("run", "--rm", *options, "busybox", "df", "-k", "/")
            size = int(done.stdout.splitlines()[-1].split()[-5]) >> 10
            self.assertTrue(least <= size <= most, done.stdout)
