# SPDX-License-Identifier: Apache-2.0
"""The node's end of the boot port, and a machine to have it on: written from src/wire/message/bootmsg.h, not from its code.

    with boot_port.Machine(kernel, initrd, build) as machine:
        machine.say(boot_port.boot())
        kind, members = machine.hear()
"""
import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time

BOOT, READY, FAILED, STOP = range(4)
VERSION = 1
PORT = "org.nacre.boot"
MAC = "02:6e:61:63:72:02"
NODE, GUEST = "169.254.74.1", "169.254.74.2"
GATE_PORT = 7474
QEMU = "qemu-system-x86_64"
# A guest that is up within two seconds on a machine at rest.
PATIENCE = 120
TUNSETIFF, IFF_TAP, IFF_NO_PI, IFF_UP = 0x400454CA, 2, 0x1000, 1
SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFFLAGS = 0x8916, 0x891C, 0x8914
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


def text(word):
    return word.encode() + b"\0"


def frame(kind, *members, version=VERSION):
    body = struct.pack("<4sHH", b"ncb\0", version, kind)
    body += b"".join(struct.pack("<HH", tag, len(value)) + value for tag, value in members)
    return struct.pack("<I", len(body)) + body


def parse(data):
    """(kind, [(tag, value)]) of a whole frame without its length."""
    magic, version, kind = struct.unpack_from("<4sHH", data)
    if (magic, version) != (b"ncb\0", VERSION):
        raise ValueError(f"no frame of the boot port: {data[:32]!r}")
    members, at = [], 8
    while at < len(data):
        tag, size = struct.unpack_from("<HH", data, at)
        members.append((tag, data[at + 4:at + 4 + size]))
        at += 4 + size
    return kind, members


def boot_members(**changes):
    """The members of BOOT, by name, in their order."""
    members = {"entropy": os.urandom(64), "clock": struct.pack("<Q", time.time_ns()), "hostname": text("web"), "title": text("pod/web"),
               "id": text("0123456789abcdef"), "address": socket.inet_aton(GUEST), "prefix": struct.pack("<I", 30),
               "gateway": socket.inet_aton(NODE), "mac": bytes.fromhex(MAC.replace(":", "")), "mtu": struct.pack("<I", 1500),
               "token": os.urandom(32), "bundle": b"0\1", "parent": text("spiffe://nacre.local/node/n1"),
               "own": text("spiffe://nacre.local/node/n1/instance/0123456789abcdef")}
    members.update(changes)
    return members


def boot(version=VERSION, **changes):
    return frame(BOOT, *enumerate(boot_members(**changes).values(), 1), version=version)


def make_tap(name, flags=0):
    """A TAP device with the node's address, in this network namespace; gone with the descriptor."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | flags))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for call, address in ((SIOCSIFADDR, NODE), (SIOCSIFNETMASK, "255.255.255.252")):
            fcntl.ioctl(s, call, struct.pack("16sHH4s16x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address)))
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH22x", name.encode(), IFF_UP))
    return fd


class Machine:
    """QEMU with this kernel and initramfs, emulated; `acpi` as the kernel needs it. The network is this process's own."""

    def __init__(self, kernel, initrd, build, acpi=True, words=(), memory=256):
        self.place = tempfile.TemporaryDirectory(prefix="nacre-machine-")
        self.console_path = os.path.join(self.place.name, "console")
        self.qmp_path = os.path.join(self.place.name, "qmp")
        self.port, self.far = socket.socketpair()
        self.port.settimeout(PATIENCE)
        self.tap = make_tap("tap0")
        self.rest = b""
        self.events = []
        tsc = subprocess.run([os.path.join(build, "tests", "guest", "tsc")], capture_output=True, text=True, check=True).stdout.strip()
        words = ["console=ttyS0", "reboot=t", "panic=-1", "quiet", "no_timer_check", "mitigations=off", "audit=0", "cryptomgr.notests",
                 "norandmaps", f"tsc_early_khz={tsc}", "tsc=reliable", *([] if acpi else ["nolapic_timer"]), *words]
        self.command = [
            QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-m", str(memory), "-smp", "1",
            "-M", f"microvm,acpi={'on' if acpi else 'off'},rtc=on,x-option-roms=off", "-accel", "tcg,thread=multi", "-cpu", "max",
            "-global", "virtio-mmio.force-legacy=false", "-kernel", kernel, "-initrd", initrd, "-serial", f"file:{self.console_path}",
            "-qmp", f"unix:{self.qmp_path},server=on,wait=off", "-chardev", f"socket,id=boot,fd={self.far.fileno()}",
            "-device", "virtio-serial-device", "-device", f"virtserialport,chardev=boot,name={PORT}", "-device", "virtio-rng-device",
            "-netdev", f"tap,id=n0,fd={self.tap}", "-device", f"virtio-net-device,netdev=n0,mac={MAC}", "-append", " ".join(words)]
        self.process = None

    def __enter__(self):
        self.began = time.monotonic()
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, pass_fds=(self.far.fileno(), self.tap),
                                        preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        self.far.close()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.port.close()
        os.close(self.tap)
        self.place.cleanup()

    def say(self, data):
        self.port.sendall(data)

    def hear(self):
        """The next frame: (kind, [(tag, value)])."""
        while len(self.rest) < 4 or len(self.rest) < 4 + struct.unpack_from("<I", self.rest)[0]:
            more = self.port.recv(65536)
            if not more:
                raise EOFError("the machine has ended; its console:\n" + self.console())
            self.rest += more
        size = 4 + struct.unpack_from("<I", self.rest)[0]
        found, self.rest = self.rest[4:size], self.rest[size:]
        return parse(found)

    def qmp(self, command):
        """Gives the machine a command, and returns at once."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.qmp_path)
            with s.makefile("rw") as f:
                f.readline()
                for name in ("qmp_capabilities", command):
                    f.write(json.dumps({"execute": name}) + "\n")
                    f.flush()
                    f.readline()

    def wait(self):
        """The exit status of the machine, which ends by itself."""
        return self.process.wait(PATIENCE)

    def console(self):
        with open(self.console_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def connect(self):
        """What is left of a connection to the machine before this one may have asked for its address too early, in vain."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return socket.create_connection((GUEST, GATE_PORT), timeout=PATIENCE)
            except OSError as e:
                if e.errno != errno.EHOSTUNREACH or time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def ask(self):
        """What tests/guest/gate_witness.c sees: {name: value}."""
        with self.connect() as s, s.makefile("r") as f:
            s.sendall(b"?")
            return dict(line.rstrip("\n").partition(" ")[::2] for line in f)
