# SPDX-License-Identifier: Apache-2.0
"""A volume whose directories another process exchanges while a container starts that has links into it.

As often as the environment variable NACRE_RACES says, 500 times otherwise; `make races`: 20,000. The same with podman as the caller
is in tests/conformance/callers.py, with the engine alone in src/isolate/spawn/spawn_race_test.c. Row A17 of the reference "security".
"""
import os
import subprocess

import oci_test

RACES = int(os.environ.get("NACRE_RACES", "500"))
ATTACK = os.path.join(oci_test.BUILD, "tests", "probe", "attack")
# Opened for writing, but not written to: it is the host's.
LOOK = "if (: >>/proc/sys/kernel/core_pattern) 2>/dev/null; then echo writable; fi; echo ran"


class MountRaces(oci_test.OciTest):
    def setUp(self):
        super().setUp()
        self.volume = os.path.join(self.dir, "volume")
        for name in ("one", "two"):
            os.makedirs(os.path.join(self.volume, name, "proc", "sys", "kernel"))
            os.makedirs(os.path.join(self.volume, name, "dev"))
        for name in ("sys/kernel/core_pattern", "keys"):
            with open(os.path.join(self.volume, "two", "proc", name), "w", encoding="ascii") as f:
                f.write("of the volume\n")
        self.bundle("sh", "-c", LOOK)
        self.config["mounts"].insert(0, {"destination": "/evil", "source": self.volume, "options": ["bind"]})
        self.save()
        self.racer = subprocess.Popen([ATTACK, "swap", self.volume + "/one", self.volume + "/two"])
        self.addCleanup(self.racer.wait)
        self.addCleanup(self.racer.kill)

    def lead(self, name, to):
        os.rmdir(os.path.join(self.rootfs, name))
        os.symlink(to, os.path.join(self.rootfs, name))

    def test_proc_and_dev_are_links_into_the_volume(self):
        for name in ("proc", "dev"):
            self.lead(name, f"/evil/one/{name}")
            for n in range(RACES // 2):
                done = self.oci("run", "--bundle", self.path, self.name, status=1)
                self.assertIn(f"/{name}: is a symbolic link, or lies behind one", done.stderr, n)
                self.assertEqual("", done.stdout, n)
            os.unlink(os.path.join(self.rootfs, name))
            os.mkdir(os.path.join(self.rootfs, name))
        self.assertIsNone(self.racer.poll())
        for name in ("one", "two"):
            self.assertEqual([], os.listdir(os.path.join(self.volume, name, "dev")))

    def test_masked_paths_in_the_volume(self):
        """They are on what was resolved, or nothing runs; those of /proc are on the procfs, whatever a link says."""
        self.config["linux"]["maskedPaths"] += ["/evil/one/proc/keys", "/link/keys"]
        self.save()
        os.symlink("/evil/one/proc", os.path.join(self.rootfs, "link"))
        seen = set()
        for _ in range(max(RACES // 10, 20)):
            done = self.oci("run", "--bundle", self.path, self.name, status=None)
            seen.add((done.returncode, done.stdout))
            if done.returncode:
                self.assertRegex(done.stderr, "changed under way|look at the mount")
        self.assertLessEqual(seen, {(0, "ran\n"), (1, "")})
        self.assertIsNone(self.racer.poll())
