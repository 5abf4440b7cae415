# SPDX-License-Identifier: Apache-2.0
"""The small kernel for guests: its configuration has what is asked of it, and, where `make guest-kernel` has built it (BUILD/guest-kernel),
a node's guests come up with it."""
import os
import re
import unittest

import machines
import nacre_test
import steps
from machines import load_tests  # noqa: F401

CONFIG = os.path.join(nacre_test.ROOT, "dist", "guest-kernel.config")
BUILT = os.path.join(nacre_test.BUILD, "guest-kernel")

# What for: options. A machine of ours without one of them misses what is said there.
NEEDED = {
    "found by QEMU, and its devices by the kernel": "PVH ACPI VIRTIO_MMIO VIRTIO_MMIO_CMDLINE_DEVICES SERIAL_8250_CONSOLE SERIAL_8250_PNP",
    "disks, network, ports, volumes, entropy": "VIRTIO_BLK VIRTIO_NET VIRTIO_CONSOLE VIRTIO_FS FUSE_FS HW_RANDOM_VIRTIO",
    "pid 1 and its initramfs": "BLK_DEV_INITRD DEVTMPFS TMPFS PROC_FS SYSFS UNIX98_PTYS",
    "walls of a keeper's own": "NAMESPACES UTS_NS IPC_NS USER_NS PID_NS NET_NS CGROUPS SECCOMP SECCOMP_FILTER SECURITY_LANDLOCK",
    "limits": "MEMCG BLK_CGROUP CGROUP_PIDS CGROUP_SCHED FAIR_GROUP_SCHED CFS_BANDWIDTH CPUSETS CGROUP_FREEZER CGROUP_DEVICE "
              "CGROUP_BPF BPF_SYSCALL SWAP PSI",
    "roots of containers": "EROFS_FS EROFS_FS_ZIP OVERLAY_FS",
    "what a keeper asks of a kernel": "EPOLL SIGNALFD TIMERFD EVENTFD FHANDLE POSIX_MQUEUE",
    "networks of cells, and instances below": "NET INET IPV6 UNIX PACKET TUN BRIDGE VETH NF_TABLES NF_TABLES_INET NFT_NAT NFT_MASQ NFT_CT",
    "an end that is told": "PANIC_TIMEOUT RANDOM_TRUST_CPU PRINTK",
}


def options(path):
    with open(path, encoding="ascii") as f:
        return dict(re.findall(r"^CONFIG_(\w+)=(.*)$", f.read(), re.M))


class Configuration(unittest.TestCase):
    def test_has_what_is_needed(self):
        there = options(CONFIG)
        self.assertEqual({}, {why: missing for why, names in NEEDED.items() if (missing := [n for n in names.split() if n not in there])})
        # All of it is built in: its sets have no modules.
        self.assertEqual([], [n for n, v in there.items() if v == "m"])

    def test_was_taken_whole(self):
        if not os.path.exists(os.path.join(BUILT, "config")):
            self.skipTest("make guest-kernel has not run")
        built = options(os.path.join(BUILT, "config"))
        self.assertEqual({}, {n: (v, built.get(n)) for n, v in options(CONFIG).items() if built.get(n) != v})


class Small(steps.StepsTest):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists(machines.QEMU) or not os.path.exists(os.path.join(BUILT, "vmlinux")):
            raise unittest.SkipTest("there is no QEMU, or make guest-kernel has not run")
        super().setUpClass()
        cls.node.cli("guest", "build", "--root", cls.node.root, "--kernel", os.path.join(BUILT, "vmlinux"))
        cls.node.cli("run", "--kind", "vm", "--rm", "busybox", "true")
        cls.before = cls.node.baseline()

    def test_runs_pods(self):
        p = self.pod("p", kind="vm")
        self.assertEqual(("vm", "running"), (p.kind, p.containers[0].state))
        self.assertIn("nacre", self.sh("p", "uname -r"))
        self.assertLessEqual({"eth0", "lo"}, set(self.sh("p", "ls /sys/class/net").split()))
        # A root that can be written, a limit of its own, and no disk of another's.
        self.sh("p", "echo new > /x; test $(cat /x) = new")
        self.assertLessEqual({"cpu", "memory", "pids", "io", "cpuset"}, set(self.sh("p", "cat /sys/fs/cgroup/cgroup.controllers").split()))
        self.assertIn("Seccomp:\t2", self.sh("p", "cat /proc/self/status"))

    def test_runs_cells_in_instances(self):
        self.spawn("v", kind="vm")
        self.assertEqual("cell", self.spawn("v/a").kind)
        self.stop("v", grace_ms=20000)


if __name__ == "__main__":
    unittest.main()
