# SPDX-License-Identifier: Apache-2.0
"""Volumes, file systems in memory, read-only roots and limits while the keepers around them go on as another build."""
import os

import host
import nacre_test
import steps
import test_mounts
import test_upgrade
from nacre_test import nacre_pb2, runtime_pb2

MIB = 1 << 20
# What is asked for, and where the kernel has it then.
LIMITS = (("pids", 100, "pids.max", "100"), ("memory", 64 * MIB, "memory.max", str(64 * MIB)), ("cpu_weight", 50, "cpu.weight", "50"))


class Mounts(test_upgrade.UpgradeTest):
    IMAGES = ("busybox",)

    def begin(self, prepare=None, **kwargs):
        super().begin(prepare, **kwargs)
        self.dir = os.path.join(self.node.dir, "shared")
        os.makedirs(os.path.join(self.dir, "ro"))
        self.put("file", "of the host\n")
        group = self.node.info.Info(nacre_pb2.InfoRequest()).cgroup
        controllers = host.read(os.path.join(host.cgroup_root(), group.lstrip("/"), "cgroup.subtree_control")).split()
        # None on a host whose controllers are all in version 1: there they are refused.
        self.limits = [limit for limit in LIMITS if limit[2].partition(".")[0] in controllers]

    def put(self, name, text):
        with open(os.path.join(self.dir, name), "w", encoding="ascii") as f:
            f.write(text)

    def resources(self):
        return runtime_pb2.Resources(**{field: value for field, value, _, _ in self.limits})

    def everything(self):
        """A container that has one of each, and the volumes that it names."""
        mount, tmpfs = test_mounts.mount, test_mounts.tmpfs
        sleeper = test_mounts.sleeper(mount("data", "/data"), mount("ro", "/ro"), tmpfs("/scratch", size=MIB, mode=0o700),
                                      mount(os.path.join(self.dir, "file"), "/new/file", read_only=True),
                                      read_only_root=True, resources=self.resources())
        return sleeper, [test_mounts.volume("data", self.dir), test_mounts.volume("ro", os.path.join(self.dir, "ro"), read_only=True)]

    def check(self, name, words):
        """What its processes see and may, now."""
        self.put("ro/word", words)
        self.assertEqual(words + "of the host\n" * 2, self.sh(name, "cat /ro/word /new/file /data/file"))
        self.sh(name, f"echo {words.strip()} >/data/out && echo {words.strip()} >>/scratch/log")
        self.assertEqual(words, host.read(os.path.join(self.dir, "out")))
        for path in ("/ro/x", "/x", "/new/file"):
            self.assertIn(b"Read-only file system", self.exec(name, "touch", path)[1] + self.exec(name, "sh", "-c", f"echo >{path}")[1])
        self.assertIn(b"No space left", self.exec(name, "dd", "if=/dev/zero", "of=/scratch/big", "bs=64k", "count=32")[1])
        self.sh(name, "rm /scratch/big")
        pid = self.inspect(name).containers[0].pid
        group = next(line.split(":", 2)[2] for line in host.read(f"/proc/{pid}/cgroup").splitlines() if line.startswith("0:"))
        for _, _, file, text in self.limits:
            self.assertEqual(text, host.read(os.path.join(host.cgroup_root(), group.lstrip("/"), file)).strip(), file)
        return test_mounts.mounts_of(pid)

    def test_all_goes_on(self):
        self.begin()
        node, around = self.node, host.mounts()
        sleeper, volumes = self.everything()
        self.pod("p", sleeper, volumes=volumes, resources=self.resources())
        self.spawn("i")
        self.cell("i/c", sleeper, volumes=volumes)
        names = ["p", "i/c"]
        before = {name: self.check(name, "before\n") for name in names}
        shown, keepers = self.all(), node.all_keepers()
        node.binary = node.other
        node.launch("--replace")
        node.wait_ready(60)
        node.until_upgraded(keepers)
        self.assertEqual(shown, self.all())
        self.assertEqual(before, {name: self.check(name, "after\n") for name in names})
        for name in names:
            self.assertEqual("before\nafter\n", self.sh(name, "cat /scratch/log"))
        # The same of the new program: in that pod, and in that instance.
        for name in ("p/new", "i/new"):
            self.cell(name, sleeper, volumes=volumes)
            self.assertEqual(set(before["p"]), set(self.check(name, "new\n")))
        self.stop("i/c")
        for name in ("i/new", "p/new", "i/c", "p", "i"):
            self.remove(name, force=True)
        self.assertEqual([], list(node.info.Check(nacre_pb2.CheckRequest()).findings))
        nacre_test.until(lambda: host.mounts() == around, what="no mount that was not there")
        nacre_test.until(lambda: len(node.all_keepers()) == 1, what="the end of the keepers")
        self.assertEqual(["file", "out", "ro", "ro/word"], sorted(os.path.relpath(os.path.join(at, n), self.dir)
                                                                  for at, dirs, files in os.walk(self.dir) for n in dirs + files))
