# SPDX-License-Identifier: Apache-2.0
"""Calls of the kernel fail: for want of memory, descriptors or room, or because the disk is broken."""
import os
import subprocess

import grpc

import faults
import host
import images
import nacre_test
import steps

Code = grpc.StatusCode
# Each kind of call of base/file/sysio.h, with what it fails with, how often the flow makes it, and how many of those ./check tries.
CALLS = (
    ("clone3", "EAGAIN", 12, 3), ("mkdirat", "ENOSPC", 60, 4), ("openat", "EMFILE", 500, 8), ("fsopen", "ENOMEM", 8, 2),
    ("fsconfig", "EPERM", 60, 3), ("fsmount", "ENOSPC", 8, 2), ("move_mount", "EPERM", 1, 1), ("open_tree", "ENOSPC", 1, 1),
    ("mount_setattr", "EPERM", 1, 1), ("socket", "EMFILE", 24, 3), ("write", "EIO", 120, 5), ("read", "EIO", 300, 6),
    ("renameat", "ENOSPC", 10, 3), ("fsync", "EIO", 7, 2), ("syncfs", "EIO", 2, 2), ("unlinkat", "EIO", 80, 3), ("*", "ENOMEM", 900, 8))
PLANS = [f"{call}:{k}:{error}" for call, error, n, tried in CALLS for k in faults.some(range(1, n + 1), tried)]


@faults.spread
class Calls(faults.FaultTest):
    """The k-th call of a kind fails, in the daemon, or in each keeper."""

    def descriptors(self):
        """How many the daemon has."""
        return len(os.listdir(f"/proc/{self.node.pid}/fd"))

    @faults.for_each(PLANS)
    def fails(self, plan):
        if self.restart_with(NACRE_SYSIO=plan, NACRE_KEEPER_SYSIO=""):
            self.flow()
            self.assertAlive()
            self.clear_all()
            self.check_descriptors()
        else:
            self.assertEqual(1, self.node.process.returncode)
            self.assertRegex(self.node.log().splitlines()[-1], r"\S+ \S+")
        self.check_whole()

    def check_descriptors(self):
        """Another round of everything costs not one descriptor, also where the fault comes only then."""
        for _ in range(2):
            before = self.descriptors()
            self.flow()
            self.clear_all()
        nacre_test.until(lambda: self.descriptors() <= before, what=f"no more than {before} descriptors")
        self.interrupted = []

    @faults.for_each([f"{call}:{k}:{error}" for call, error, n, tried in CALLS for k in faults.some(range(1, 1 + n // 4), tried / 3)])
    def fails_in_keepers(self, plan):
        self.assertTrue(self.restart_with(NACRE_SYSIO="", NACRE_KEEPER_SYSIO=plan))
        self.flow()
        self.assertAlive()
        self.clear_all()
        self.check_whole()

    @faults.for_each(["openat:EMFILE", "read:EIO", "socket:EMFILE", "mkdirat:ENOSPC", "write:EIO", "fsync:EIO", "clone3:EAGAIN"])
    def start_that_loses_nothing(self, plan):
        """Whatever fails while a daemon starts: what lives is there for the next one."""
        call, error = plan.split(":")
        pids = [self.pod("pod").containers[0].pid, self.cell("cell").containers[0].pid]
        for k in range(1, 14):
            self.restart_with(0.5, NACRE_SYSIO=f"{call}:{k}:{error}")
        self.restart_plainly()
        self.assertEqual(["cell", "pod"], sorted(self.all()))
        self.assertEqual(pids, [self.inspect(n).containers[0].pid for n in ("pod", "cell")])
        for name in ("pod", "cell"):
            self.assertEqual((b"there\n", b"", 0), self.exec(name, "echo", "there"))
        self.check_whole()


@faults.spread
class Sticky(faults.FaultTest):
    """Nothing of a kind works any more: what runs can still be stopped and removed."""

    @faults.for_each(["mkdirat:1:ENOSPC:sticky", "clone3:1:EAGAIN:sticky", "fsopen:1:ENOMEM:sticky", "fsync:1:EIO:sticky",
                      "renameat:1:EROFS:sticky", "socket:1:EMFILE:sticky", "openat:60:EMFILE:sticky", "write:20:ENOSPC:sticky"])
    def stop_and_remove_work_with(self, plan):
        pids = [self.pod("pod").containers[0].pid, self.cell("cell").containers[0].pid]
        if not self.restart_with(NACRE_SYSIO=plan, NACRE_KEEPER_SYSIO=""):
            self.assertEqual(1, self.node.process.returncode)
            self.restart_plainly()
        self.assertEqual(["exited", "exited"], [self.stop(n).state for n in ("pod", "cell")])
        self.assertEqual([None, None], [host.process(p) for p in pids])
        self.remove("pod")
        self.remove("cell")
        self.assertEqual({}, self.all())
        self.check_whole()

    @faults.for_each(["mkdirat:1:ENOSPC:sticky", "fsopen:1:ENOMEM:sticky", "openat:120:EMFILE:sticky", "write:60:ENOSPC:sticky"])
    def keepers_end_with(self, plan):
        self.assertTrue(self.restart_with(NACRE_SYSIO="", NACRE_KEEPER_SYSIO=plan))
        self.flow()
        self.assertAlive()
        self.clear_all()
        self.check_whole()


class FullDisk(steps.StepsTest):
    def test_full_disk_is_told(self):
        """Not by a hook: the root directory is a small file system that is really full."""
        top = os.path.join(self.node.dir, "small")
        archive = images.make(os.path.join(self.node.dir, "second.tar"), "--busybox", "--cmd", "true", "--label", "n=2")
        os.mkdir(top)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", top], check=True)
        self.addCleanup(os.rmdir, top)
        self.addCleanup(subprocess.run, ["umount", "-l", top], check=True)
        with nacre_test.Node("images:\n  reserve: 0\n", start=False) as small:
            small.root = os.path.join(top, "root")
            small.start()
            small.import_image(images.path("busybox"), "busybox")
            with open(os.path.join(top, "filler"), "wb") as f, self.assertRaises(OSError):
                while True:
                    f.write(bytes(1 << 16))
                    f.flush()
            with self.assertRaises(grpc.RpcError) as caught:
                small.import_image(archive, "second")
            self.assertIn(caught.exception.code(), (Code.RESOURCE_EXHAUSTED, Code.FAILED_PRECONDITION, Code.INTERNAL),
                          caught.exception.details())
            self.assertIn("No space left", caught.exception.details())
            os.unlink(os.path.join(top, "filler"))
            small.import_image(archive, "second")
