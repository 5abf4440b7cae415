# SPDX-License-Identifier: Apache-2.0
"""A Linux of somebody else's in a machine: Debian's kernel with busybox as its init, by a kernel that is given and by UEFI."""
import os
import re
import shutil
import stat
import subprocess
import unittest

import guest_kernel
import nacre_test
import steps
from nacre_test import runtime_pb2
from test_foreign import QEMU, Console

KERNEL = os.path.join(nacre_test.ROOT, "build", "guest", "kernel")
MODULES = ("virtio_mmio", "virtio_pci", "virtio_blk", "virtio_net", "virtio_console", "pvpanic-mmio", "button", "vfat", "nls_cp437", "nls_ascii")
OVMF = ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_CODE.fd")
LOADER = "/usr/lib/systemd/boot/efi/systemd-bootx64.efi"
AGENT = "/usr/sbin/qemu-ga"

INIT = r"""#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /seed /disk /run /var/run /sbin /tmp
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
/bin/busybox mount -t devtmpfs none /dev
/bin/busybox --install -s /bin
export PATH=/bin:/sbin
while read m; do insmod $m 2>/dev/null; done < /modules/list
sleep 1
echo "@cmdline $(cat /proc/cmdline)"
for d in /sys/block/vd*; do echo "@disk ${d##*/} $(cat $d/serial) $(cat $d/size)"; done
mount -t vfat -o ro $(findfs LABEL=CIDATA) /seed
for f in /seed/*; do echo "@file ${f##*/}"; sed 's/^/@| /' $f; done
if mount -t ext4 /dev/vda /disk 2>/dev/null; then
	echo "@was $(cat /disk/was 2>/dev/null) $(cat /disk/brought)"
	echo here > /disk/was
	umount /disk
fi
ifconfig lo up
if [ -e /sys/class/net/eth0 ]; then
	ifconfig eth0 $(sed -n 's/.*addresses: \[\(.*\)\/30\]/\1/p' /seed/network-config) netmask 255.255.255.252 up
	(while :; do echo "from the guest" | nc -l -p 7 >/dev/null; done) &
fi
printf '#!/bin/sh\necho "@agent was asked" > /dev/console\nsync\npoweroff -f\n' > /sbin/shutdown
chmod 755 /sbin/shutdown
for p in /sys/class/virtio-ports/*; do
	[ "$(cat $p/name)" = org.qemu.guest_agent.0 ] && [ -x /sbin/qemu-ga ] && qemu-ga -d -m virtio-serial -p /dev/${p##*/}
done
echo "@ready"
while read line; do eval "$line"; done < /dev/console
sleep 100000
"""


def with_libraries(program):
    """A dynamic program with all that it is linked with: [(path, bytes)]."""
    said = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    paths = [program] + re.findall(r"(/\S+) \(0x", said)
    found = []
    for path in paths:
        with open(path, "rb") as f:
            found.append((path.lstrip("/"), f.read()))
    return found


def first_root(kernel, agent):
    modules = kernel.modules(MODULES)
    with open(shutil.which("busybox"), "rb") as f:
        files = [("init", INIT.encode()), ("bin/busybox", f.read()),
                 ("modules/list", "".join(f"/modules/{n}.ko\n" for n, _ in modules).encode())]
    files += [(f"modules/{n}.ko", data) for n, data in modules]
    if agent:
        files += [("sbin/qemu-ga" if name == AGENT.lstrip("/") else name, data) for name, data in with_libraries(AGENT)]
    folders = {"dev"}
    for name, _ in files:
        while os.path.dirname(name):
            name = os.path.dirname(name)
            folders.add(name)
    out = b"".join(guest_kernel.cpio(n, stat.S_IFDIR | 0o755, b"") for n in sorted(folders))
    out += guest_kernel.cpio("dev/console", stat.S_IFCHR | 0o600, b"")
    out += b"".join(guest_kernel.cpio(n, stat.S_IFREG | 0o755, data) for n, data in files)
    return out + guest_kernel.cpio("TRAILER!!!", 0, b"")


class Linux(steps.StepsTest):
    @classmethod
    def setUpClass(cls):
        for needed in (QEMU, "/dev/net/tun"):
            if not os.path.exists(needed):
                raise unittest.SkipTest(f"there is no {needed}")
        try:
            cls.kernel = guest_kernel.Kernel(KERNEL)
        except guest_kernel.Missing as e:
            raise unittest.SkipTest(str(e)) from e
        super().setUpClass()
        cls.initrd = os.path.join(cls.node.dir, "initrd")
        cls.agent = os.path.exists(AGENT)
        with open(cls.initrd, "wb") as f:
            f.write(first_root(cls.kernel, cls.agent))

    def path(self, name):
        return os.path.join(self.node.dir, name)

    def vm(self, name, **fields):
        return self.node.runtime.RunVirtualMachine(
            runtime_pb2.RunVirtualMachineRequest(meta=runtime_pb2.Meta(name=name), memory=256 << 20, **fields), timeout=120)

    def disk(self):
        tree = self.path("tree")
        os.makedirs(tree, exist_ok=True)
        with open(os.path.join(tree, "brought"), "w", encoding="ascii") as f:
            f.write("by the image")
        disk = self.path("ext4")
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tree, disk, "16M"], check=True)
        return disk

    def lines(self, console):
        return [l for l in console.seen.decode(errors="replace").replace("\r", "").split("\n") if l.startswith("@")]

    def test_a_kernel_a_disk_a_seed_and_a_network(self):
        disk = self.disk()
        fields = {"image": disk, "kernel": self.kernel.image, "initrd": self.initrd, "args": ["quiet", "nacre.test=1"], "network": "own",
                  "disk": "data", "user_data": b"#cloud-config\nhostname: x\n"}
        v = self.vm("v", **fields)
        with Console(self.node, "v") as console:
            console.expect(b"@ready")
            lines = self.lines(console)
            self.assertIn("quiet nacre.test=1", next(l for l in lines if l.startswith("@cmdline")))
            self.assertEqual(["@disk vda disk0 32768", "@disk vdb disk1 2048"], [l for l in lines if l.startswith("@disk")])
            self.assertIn("@was  by the image", lines)
            text = "\n".join(lines)
            self.assertIn("@file user-data\n@| #cloud-config\n@| hostname: x", text)
            self.assertIn("@| instance-id: nacre-data\n@| local-hostname: v", text)
            self.assertIn("@|     addresses: [169.254.74.2/30]", text)
            # From the node's end of its network, and from nowhere else.
            said = subprocess.run(["nsenter", "-t", str(v.pid), "-n", "busybox", "nc", "-w", "20", v.address, "7"], check=True,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60).stdout
            self.assertEqual("from the guest\n", said)
            stopped = self.stop("v", grace_ms=60000)
            self.assertEqual(("exited", "the guest powered off"), (stopped.state, stopped.containers[0].reason), console.seen[-300:])
            # By its agent where it has one: the button is pressed where none answers.
            self.assertEqual(self.agent, b"@agent was asked" in console.seen)
        self.remove("v")
        self.vm("v", **fields)
        with Console(self.node, "v") as console:
            console.expect(b"@ready")
            self.assertIn("@was here by the image", self.lines(console))
            console.type(b"echo c > /proc/sysrq-trigger\n")
            nacre_test.until(lambda: self.inspect("v").state == "failed", what="its panic")
        self.assertRegex(self.inspect("v").reason, "the guest's kernel panicked; its console ends: ")
        self.remove("v")
        self.node.cli("vm", "rmdisk", "data")

    def test_uefi(self):
        for needed in (LOADER, shutil.which("mkfs.vfat") or "mkfs.vfat", shutil.which("mcopy") or "mcopy"):
            if not os.path.exists(needed):
                self.skipTest(f"there is no {needed}")
        if not any(map(os.path.exists, OVMF)):
            self.skipTest("OVMF is not installed")
        disk, entry = self.path("esp"), self.path("entry")
        with open(entry, "w", encoding="ascii") as f:
            f.write("title a\nlinux /linux\ninitrd /initrd\noptions console=ttyS0 quiet panic=-1 by=uefi\n")
        subprocess.run(["mkfs.vfat", "-C", "-n", "ESP", disk, "65536"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["mmd", "-i", disk, "::EFI", "::EFI/BOOT", "::loader", "::loader/entries"], check=True)
        for source, target in ((LOADER, "EFI/BOOT/BOOTX64.EFI"), (self.kernel.image, "linux"), (self.initrd, "initrd"),
                               (entry, "loader/entries/a.conf")):
            subprocess.run(["mcopy", "-i", disk, source, "::" + target], check=True)
        self.vm("u", image=disk, firmware="uefi")
        with Console(self.node, "u") as console:
            console.expect(b"@ready")
            self.assertIn("by=uefi", next(l for l in self.lines(console) if l.startswith("@cmdline")))
        self.assertEqual("exited", self.stop("u", grace_ms=60000).state)


if __name__ == "__main__":
    unittest.main()
