# SPDX-License-Identifier: Apache-2.0
"""What a hostile workload of a guest, or a guest that is taken over, finds shut: what tests/gate, tests/vm/test_machine.py (jail),
tests/vm/test_share.py and fuzz/ do not show piece by piece, at a whole pod."""
import json
import os
import re
import subprocess
import unittest

import machines
import nacre_test
from machines import load_tests  # noqa: F401

# What QEMU may be given to emulate; no SCSI, no graphics, no USB, no passing through of anything.
DEVICES = {"pvpanic", "virtio-rng-device", "virtio-serial-device", "virtserialport", "virtio-blk-device", "virtio-net-device",
           "vhost-user-fs-device"}
SHUT = "(Operation not permitted|Permission denied|No such device or address|No such file or directory)"


class Hostile(machines.MachinesTest):
    @classmethod
    def share(cls):
        cls.node.cli("run", "--kind", "vm", "-d", "--name", "p", "busybox", "sleep", "100000")

    def setUp(self):
        """The pod is for all tests."""

    def fails(self, script, **fields):
        """What a script says that must not succeed."""
        out, err, code = self.exec("p", "sh", "-c", script, **fields)
        self.assertNotEqual(0, code, (script, out))
        return (out + err).decode()

    def test_disks_of_the_machine_are_not_reached(self):
        """Neither by a node that is there, nor by one that is made: the root of a container is such a disk (V01)."""
        self.assertEqual("", self.sh("p", "find /dev -type b").strip())
        # No container of the API has CAP_MKNOD; what it has is shown by name below.
        self.assertEqual(0, int(self.sh("p", "sed -n 's/^CapBnd:.//p' /proc/self/status"), 16) & 1 << 27)
        self.assertIn("erofs", self.sh("p", "cat /proc/filesystems"))
        majors = re.findall(r"(\d+) virtblk", self.sh("p", "cat /proc/devices"))
        self.assertEqual(1, len(majors))
        for minor in (0, 16):
            for flag in ("<", ">"):
                self.assertRegex(self.fails(f"mknod /tmp/d{minor} b {majors[0]} {minor} && : {flag} /tmp/d{minor}; s=$?; rm -f /tmp/d{minor}; exit $s"),
                                 SHUT)
        # Not by the kernel's memory, or by the bus either.
        self.assertRegex(self.fails("mknod /tmp/m c 1 1 && : < /tmp/m; s=$?; rm -f /tmp/m; exit $s"), SHUT)
        self.assertRegex(self.fails(": > /sys/bus/virtio/drivers/virtio_blk/unbind"), SHUT + "|Read-only file system")

    def test_what_the_node_speaks_to_is_not_reached(self):
        """The port of the guest's gate is for the node's address alone; nothing else of it is in sight (V16)."""
        for user in ("0", "1000"):
            self.assertIn("timed out", self.fails("echo PRI | nc -w 1 169.254.74.2 7474", user=user))
        self.assertEqual("", self.sh("p", "find / -xdev -name '*.sock' -o -xdev -name 'vport*' -o -xdev -name 'hvc*'").strip())
        majors = re.findall(r"(\d+) virtio-portsdev", self.sh("p", "cat /proc/devices"))
        for major in majors:
            self.assertRegex(self.fails(f"mknod /tmp/v c {major} 1 && : < /tmp/v; s=$?; rm -f /tmp/v; exit $s"), SHUT)
        # The node's end of the network has its gate there, and that listens to nobody.
        for port in (22, 80, 7474):
            self.assertNotEqual("", self.fails(f"nc -w 5 169.254.74.1 {port} < /dev/null"))

    def test_no_module_comes_from_a_container(self):
        self.assertRegex(self.fails("echo x > /tmp/m.ko; insmod /tmp/m.ko"), SHUT)
        self.assertRegex(self.fails("echo /tmp/m > /proc/sys/kernel/modprobe"), SHUT + "|Read-only file system")

    def test_the_monitor_emulates_what_is_needed(self):
        """No device with a history (V17), and no word that whoever asked for the pod has chosen (V05)."""
        with open(f"/proc/{self.inspect('p').containers[0].pid or self.monitor()}/cmdline", "rb") as f:
            words = f.read().decode().split("\0")
        given = {words[i + 1].partition(",")[0] for i, w in enumerate(words) if w == "-device"}
        self.assertEqual(set(), given - DEVICES)
        self.assertIn("-nodefaults", words)
        self.assertIn("-no-user-config", words)
        self.assertEqual(set(), {"-vnc", "-spice", "-vga", "-usb", "-drive", "-net", "-nic", "-virtfs", "-fsdev"} & set(words))

    def monitor(self):
        group = json.loads(self.node.cli("-o", "json", "inspect", "p").stdout)["cgroup"]
        import host

        with open(os.path.join(host.cgroup_root(), group.lstrip("/"), "vmm", "cgroup.procs"), encoding="ascii") as f:
            return int(f.read().split()[0])

    def test_an_image_without_layers_is_no_disk_of_the_host(self):
        """It is refused, or an empty root: never something else (V08)."""
        place = os.path.join(self.node.dir, "empty")
        subprocess.run([nacre_test.MKIMAGE, "--out", place, "--format", "oci", "--name", "empty", "--cmd", "/nothing"], check=True,
                       stdout=subprocess.DEVNULL)
        imported = self.node.cli("image", "import", place, check=False)
        if imported.returncode == 0:
            done = self.node.cli("run", "--kind", "vm", "--rm", "empty", "/nothing", check=False)
            self.assertIn(done.returncode, (125, 127), done.stderr)
            self.assertEqual("", done.stdout)
            self.node.cli("image", "rm", "empty")


if __name__ == "__main__":
    unittest.main()
