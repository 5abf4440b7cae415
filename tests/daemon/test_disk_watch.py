# SPDX-License-Identifier: Apache-2.0
"""Containers leave the reserve of the node's disk alone though nobody has set a limit, and on a full disk the node goes on."""
import os
import shutil
import subprocess
import unittest

import images
import nacre_test
import steps
from nacre_test import nacre_pb2

MIB = 1 << 20
SIZE = 640 * MIB
RESERVE = 96 * MIB


class SmallDisk(unittest.TestCase):
    """A node whose root directory is a small file system: Debian's default ext4, without quotas."""

    pod, inspect = steps.StepsTest.pod, steps.StepsTest.inspect

    def setUp(self):
        if not shutil.which("mkfs.ext4"):
            self.skipTest("mkfs.ext4 is not installed")
        self.node = nacre_test.Node(f"images:\n  reserve: {RESERVE}\n", start=False)
        self.addCleanup(self.node.destroy)
        disk = os.path.join(self.node.dir, "disk")
        with open(disk, "wb") as f:
            f.truncate(SIZE)
        subprocess.run(["mkfs.ext4", "-q", "-F", disk], check=True, capture_output=True)
        top = os.path.join(self.node.dir, "small")
        os.makedirs(top)
        done = subprocess.run(["mount", "-o", "loop", disk, top], capture_output=True, text=True, check=False)
        if done.returncode:
            self.skipTest(f"no loop device: {done.stderr.strip()}")
        # What the daemon has to write for its own use lies there too.
        self.node.root, self.node.run = os.path.join(top, "root"), os.path.join(top, "run")
        self.node.start()
        images.ensure(self.node, "busybox")

    def free(self):
        st = os.statvfs(self.node.root)
        return st.f_bavail * st.f_frsize

    def fill(self, left):
        """Somebody who is not the node's takes the disk, but for so many bytes. Closing it gives them back."""
        fd = os.open(self.node.root, os.O_TMPFILE | os.O_RDWR)
        os.posix_fallocate(fd, 0, self.free() - left)
        return fd

    def killed(self, name):
        """Waits until it was, and has its reason."""
        self.node.workloads.Wait(nacre_pb2.WaitRequest(target=name), timeout=60 * nacre_test.SLOWNESS)
        reason = self.inspect(name).reason
        self.assertIn("images.reserve", reason)
        return reason

    def assertClean(self):
        self.node.clear()
        self.assertEqual("", self.node.cli("check").stdout)


class Writers(SmallDisk):
    def test_who_writes_without_end_is_killed_alone(self):
        self.pod("other", steps.container("sh", "-c", "while sleep 0.05; do echo x >>/mine; done"))
        self.pod("writer", steps.container("sh", "-c", "while :; do cat /bin/busybox; done >/fill"))
        self.assertIn("MB lately", self.killed("writer"))
        self.assertGreaterEqual(self.free(), RESERVE)
        self.assertEqual("running", self.inspect("other").state)
        self.node.cli("rm", "writer")
        nacre_test.until(lambda: self.free() > 2 * RESERVE, what="the room that it took")
        self.pod("next", steps.container("sh", "-c", "dd if=/dev/zero of=/some bs=1M count=20 && sleep 100000"))
        self.assertEqual("running", self.inspect("next").state)
        self.assertClean()

    def test_what_is_taken_at_one_blow(self):
        self.pod("writer", steps.container("sh", "-c", "fallocate -l 2000m /fill; fallocate -l 400m /fill; sleep 100000"))
        self.killed("writer")
        self.assertClean()

    def test_nobody_is_killed_for_somebody_else(self):
        self.pod("p", steps.container("sh", "-c", "while sleep 0.01; do echo x >>/mine; done"))
        fd = self.fill(RESERVE // 2)
        nacre_test.until(lambda: "no container has written so much" in self.node.log(), what="a warning")
        self.assertEqual("running", self.inspect("p").state)
        os.close(fd)
        self.assertClean()

    def test_what_is_written_is_shown(self):
        self.pod("p", steps.container("sh", "-c", "dd if=/dev/zero of=/some bs=1M count=5; yes | head -n 100000; exec sleep 100000"))

        def shown():
            pod, = self.node.json("stats", "p")["workloads"]
            return pod.get("files", {"bytes": 0, "logs": 0}), pod["containers"][0].get("files", {"bytes": 0})

        nacre_test.until(lambda: shown()[0]["bytes"] >= 5 * MIB and shown()[0]["logs"] >= 200000, what="its size")
        pod, container = shown()
        self.assertLess(pod["bytes"], 6 * MIB)
        self.assertEqual(pod["bytes"], container["bytes"])
        self.assertRegex(self.node.cli("stats", "p").stdout.splitlines()[1], r"\d\.\d MB$")
        self.assertClean()

    def test_copies_into_a_container(self):
        self.pod("p")
        source = os.path.join(self.node.dir, "source")
        with open(source, "wb") as f:
            f.write(b"x" * (8 * MIB))
        self.addCleanup(os.unlink, source)
        self.node.cli("cp", source, "p:/some")
        fd = self.fill(RESERVE + RESERVE // 4 + 4 * MIB)
        done = self.node.cli("cp", source, "p:/more", check=False)
        self.assertEqual((True, "images.reserve" in done.stderr), (done.returncode != 0, True), done.stderr)
        self.assertEqual("running", self.inspect("p").state)
        os.close(fd)
        self.node.cli("cp", source, "p:/more")
        self.assertClean()


class Full(SmallDisk):
    """Not a byte is left, and it is not the node that could change that."""

    def setUp(self):
        super().setUp()
        self.pod("before")

    def take_all(self):
        fd = self.fill(0)
        self.take_rest()
        return fd

    def take_rest(self):
        with open(os.path.join(self.node.root, "..", "rest"), "ab", buffering=0) as f:
            for size in (1 << 16, 1 << 12):
                try:
                    while True:
                        f.write(bytes(size))
                except OSError:
                    pass
        self.assertEqual(0, self.free())

    def works(self):
        self.assertEqual("running", self.inspect("before").state)
        self.assertIn("before", self.node.cli("exec", "before", "hostname").stdout)
        for i in range(20):
            self.pod(f"p{i}")
        self.node.cli("run", "--rm", "busybox", "true")
        for i in range(20):
            self.node.cli("stop", "-t", "0", f"p{i}")
            self.node.cli("rm", f"p{i}")

    def test_pods_start_stop_and_go(self):
        self.take_all()
        self.works()
        self.assertClean()

    def test_a_daemon_that_is_killed(self):
        self.take_all()
        self.node.kill()
        self.node.start()
        self.works()
        self.assertClean()

    def test_a_daemon_that_ends(self):
        self.take_all()
        self.node.stop()
        # It has given back the log of its database, which somebody else takes.
        self.take_rest()
        self.node.start()
        self.works()
        self.assertClean()

    def test_what_is_put_aside_comes_back(self):
        ballast = os.path.join(self.node.root, "ballast")
        size = os.stat(ballast).st_size
        fd = self.take_all()
        self.pod("p")
        self.assertLess(os.stat(ballast).st_size, size)
        os.close(fd)
        nacre_test.until(lambda: os.stat(ballast).st_size == size, what="the ballast again")
        self.assertClean()


if __name__ == "__main__":
    unittest.main()
