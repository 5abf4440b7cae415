# SPDX-License-Identifier: Apache-2.0
"""An appliance: a machine whose disk has nacre, a configuration and a node's state, and whose pid 1 is `nacre daemon`.

The image is made as doc/appliance.md has it: a daemon of this host fills the directory that becomes /var/lib/nacre, with an image, a
user's certificate and a pod that is always restarted. Everything is then asked of the machine from outside: its console, its network,
its API over mutual TLS, and its disk once it is off.
"""
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import unittest

import boot_port
import guest_disks
import guest_kernel
import host
import images
import machines
import nacre_test
from nacre_test import until

load_tests = machines.load_tests
NODE, LEASE, FIXED = "192.0.2.1", "192.0.2.77", "192.0.2.9"
MODULES = ("virtio_mmio", "virtio_blk", "virtio_net", "virtio-rng", "ext4", "overlay", "button", "evdev", "virtio_input", "af_packet", "loop",
           "nf_tables", "veth")
DISK = 512 << 20
PATIENCE = 180
LEASED = """#!/bin/sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip addr replace "$ip/$mask" dev "$interface"
"""
CONFIG = """listen: [ "0.0.0.0:7443" ]
spare: no
network:
  default: none
vm:
  hardware: no
  templates: no
system:
  hostname: appliance
  interfaces: [ "eth0 %s" ]
  dhcp_client: [ /bin/busybox, udhcpc, -f, -i, "%%i", -s, /etc/lease ]
  stop_within: 20s
"""
# What an initramfs of a distribution does: modules, the disk, and on.
FIRST = """#!/bin/busybox sh
while read m; do /bin/busybox insmod $m 2>/dev/null; done < /modules/list
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t ext4 /dev/vda /disk || exec /bin/busybox sh
/bin/busybox umount /dev
exec /bin/busybox switch_root /disk /bin/nacre daemon
"""
WEB = "echo run >> /data/log; trap 'echo end >> /data/log; exit 0' TERM; while :; do sleep 0.2; done"


def first_root(kernel):
    modules = kernel.modules([m for m in MODULES if guest_kernel.plain(m) in kernel.files])
    with open(shutil.which("busybox"), "rb") as f:
        files = [("init", FIRST.encode()), ("bin/busybox", f.read())]
    files.append(("modules/list", "".join(f"/modules/{n}.ko\n" for n, _ in modules).encode()))
    files += [(f"modules/{n}.ko", data) for n, data in modules]
    out = b"".join(guest_kernel.cpio(n, stat.S_IFDIR | 0o755, b"") for n in ("bin", "dev", "disk", "modules"))
    out += guest_kernel.cpio("dev/console", stat.S_IFCHR | 0o600, b"")
    out += b"".join(guest_kernel.cpio(n, stat.S_IFREG | 0o755, data) for n, data in files)
    return out + guest_kernel.cpio("TRAILER!!!", 0, b"")


class Appliance(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernel = machines.need()
        cls.place = tempfile.mkdtemp(prefix="na-")
        cls.addClassCleanup(shutil.rmtree, cls.place, ignore_errors=True)
        cls.certs, cls.state = os.path.join(cls.place, "certs"), os.path.join(cls.place, "state")
        with nacre_test.Node() as node:
            images.ensure(node, "busybox")
            node.cli("identity", "issue", "alice", "--role", "admin", "--out", cls.certs)
            node.cli("run", "-d", "--name", "web", "--restart", "always", "-v", "data:/data", "busybox", "sh", "-c", WEB)
            until(lambda: node.json("inspect", "web")["state"] == "running", what="it runs")
            # The end of a host: what runs is stopped, and is to begin again with the next boot.
            node.send_signal(signal.SIGPWR)
            node.wait()
            subprocess.run(["cp", "-a", node.root, cls.state], check=True)
        cls.initrd = os.path.join(cls.place, "initrd")
        with open(cls.initrd, "wb") as f:
            f.write(first_root(cls.kernel))

    def disk(self, config):
        tree = guest_disks.Tree(os.path.join(self.place, f"tree-{self.id().rpartition('.')[2]}"))
        self.addCleanup(shutil.rmtree, tree.top, ignore_errors=True)
        tree.put(nacre_test.BINARY, "bin/nacre")
        for helper in glob.glob(os.path.join(nacre_test.BUILD, "libexec", "nacre", "nacre-*")):
            if os.path.isfile(helper):
                tree.put_program(helper, f"libexec/nacre/{os.path.basename(helper)}")
        tree.put("/bin/busybox", "bin/busybox")
        for applet in ("sh", "ip", "cat", "kill", "ls"):
            tree.link("busybox", f"bin/{applet}")
        tree.write("etc/nacre/config.yaml", config)
        tree.write("etc/lease", LEASED)
        os.chmod(os.path.join(tree.top, "etc/lease"), 0o755)
        subprocess.run(["cp", "-a", self.state, os.path.join(tree.top, "var/lib/nacre")], check=True)
        disk = guest_disks.sparse(tree.top + ".img", DISK)
        self.addCleanup(os.unlink, disk)
        guest_disks.quietly("/sbin/mke2fs", "-q", "-t", "ext4", "-d", tree.top, disk)
        return disk

    @contextlib.contextmanager
    def machine(self, disk):
        machine = boot_port.Machine(self.kernel.image, self.initrd, nacre_test.BUILD, memory=512, words=["random.trust_cpu=on"])
        machine.command += ["-drive", f"file={disk},format=raw,if=none,id=d0", "-device", "virtio-blk-device,drive=d0",
                            "-device", "virtio-keyboard-device"]
        subprocess.run(["ip", "addr", "add", f"{NODE}/24", "dev", "tap0"], check=True)
        with machine:
            try:
                yield machine
            finally:
                print("\n".join("# console: " + line for line in self.console(machine).splitlines()[-60:]))

    def console(self, machine):
        return host.read(machine.console_path)

    def serve_leases(self):
        conf = os.path.join(self.place, "udhcpd.conf")
        with open(conf, "w", encoding="ascii") as f:
            f.write(f"start {LEASE}\nend {LEASE}\ninterface tap0\nlease_file {self.place}/leases\npidfile {self.place}/pid\n"
                    "option subnet 255.255.255.0\noption lease 600\n")
        with open(os.path.join(self.place, "leases"), "w", encoding="ascii"):
            pass
        server = subprocess.Popen(["busybox", "udhcpd", "-f", conf], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

    def ask(self, address, *words, check=True):
        env = {k: v for k, v in os.environ.items() if k not in ("NACRE_SOCKET", "NACRE_HOST")}
        done = subprocess.run([nacre_test.BINARY, "--host", f"{address}:7443", "--tls-name", "server.unsafe.aurae.io", *words],
                              env={**env, "NACRE_CERT_PATH": self.certs}, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=120)
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: {done.stderr}")
        return done

    def serves(self, machine, address):
        self.assertIsNone(machine.process.poll(), self.console(machine))
        return self.ask(address, "info", check=False).returncode == 0

    def up(self, machine, address):
        until(lambda: self.serves(machine, address), seconds=PATIENCE, what="it answers over mutual TLS")
        until(lambda: json.loads(self.ask(address, "inspect", "web", "-o", "json").stdout)["state"] == "running", what="web runs")

    def execute(self, address, *words):
        return self.ask(address, "execute", *words).stdout

    def after(self, disk, *log):
        """What the disk says once the machine is off: nothing is to be repaired, and the pod has written this."""
        checked = subprocess.run(["/sbin/e2fsck", "-f", "-n", disk], capture_output=True, text=True, check=False)
        self.assertEqual(0, checked.returncode, checked.stdout)
        said = subprocess.run(["/sbin/dumpe2fs", "-h", disk], capture_output=True, text=True, check=True).stdout
        self.assertRegex(said, r"Filesystem state: +clean\n")
        self.assertNotIn("needs_recovery", said)
        if not log:
            return
        name = subprocess.run(["/sbin/debugfs", "-R", "ls -p /var/lib/nacre/volumes", disk], capture_output=True, text=True, check=True).stdout
        found = re.findall(r"/\d+/\d+/\d+/\d+/([^/]+)/", name)
        texts = [subprocess.run(["/sbin/debugfs", "-R", f"cat /var/lib/nacre/volumes/{n}/{sub}log", disk], capture_output=True, text=True,
                                check=True).stdout.split() for n in found if n not in (".", "..") for sub in ("", "data/", "_data/")]
        self.assertIn(list(log), texts, name)

    def test_from_boot_to_power_off(self):
        disk = self.disk(CONFIG % "dhcp auto")
        with self.machine(disk) as machine:
            self.serve_leases()
            self.up(machine, LEASE)
            self.assertFalse(json.loads(self.ask(LEASE, "info", "-o", "json").stdout).get("lacks"))
            self.assertEqual("nacre\n", self.execute(LEASE, "cat", "/proc/1/comm"))
            self.assertEqual("appliance\n", self.execute(LEASE, "cat", "/proc/sys/kernel/hostname"))
            kinds = dict(line.split()[1:3] for line in self.execute(LEASE, "cat", "/proc/1/mounts").splitlines())
            self.assertEqual({"/": "ext4", "/proc": "proc", "/sys": "sysfs", "/dev": "devtmpfs", "/dev/pts": "devpts", "/dev/shm": "tmpfs",
                              "/run": "tmpfs", "/sys/fs/cgroup": "cgroup2"},
                             {p: kinds.get(p) for p in ("/", "/proc", "/sys", "/dev", "/dev/pts", "/dev/shm", "/run", "/sys/fs/cgroup")})
            self.assertIn(f"inet {LEASE}/24", self.execute(LEASE, "ip", "addr", "show", "eth0"))
            self.assertEqual("2\n", self.execute(LEASE, "cat", "/proc/sys/net/ipv6/conf/eth0/accept_ra"))
            machine.qmp("system_powerdown")
            self.assertEqual(0, machine.wait())
            self.assertIn("the machine is switched off", self.console(machine))
        self.after(disk, "run", "end", "run", "end")

    def test_control_alternate_delete(self):
        disk = self.disk(CONFIG % f"{FIXED}/24")
        with self.machine(disk) as machine:
            self.up(machine, FIXED)
            keys = [{"type": "qcode", "data": k} for k in ("ctrl", "alt", "delete")]
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(machine.qmp_path)
                with s.makefile("rw") as f:
                    f.readline()
                    for command in ({"execute": "qmp_capabilities"}, {"execute": "send-key", "arguments": {"keys": keys}}):
                        f.write(json.dumps(command) + "\n")
                        f.flush()
                        self.assertIn("return", f.readline())
            self.assertEqual(0, machine.wait())
            self.assertIn("the machine starts again", self.console(machine))
        self.after(disk, "run", "end", "run", "end")

    def test_a_broken_configuration(self):
        disk = self.disk("listen: nonsense\n")
        with self.machine(disk) as machine:
            until(lambda: "ready version" in self.console(machine), seconds=PATIENCE, what="it serves")
            self.assertRegex(self.console(machine), r"the configuration is broken.*config.yaml:1: listen")
            self.assertIsNone(machine.process.poll())
            machine.qmp("system_powerdown")
            self.assertEqual(0, machine.wait())
        self.after(disk)
