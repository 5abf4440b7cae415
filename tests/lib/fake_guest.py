# SPDX-License-Identifier: Apache-2.0
"""A machine of a fake cloud that boots: a QEMU of the test, emulated, with a network of its own, in which DHCP and the metadata service answer,
and which is reached at an address of loopback. Each cloud brings its own metadata service (a subclass of Metadata), its word for the
agent (`cloud.word`) and what is booted (`cloud.guest`: kernel, initrd, words of the command line). Where the cloud has a host to ask in place of
that service, `host` answers its questions (class Backdoor)."""
import http.server
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

import nacre_test

# What QEMU starts for each connection to the metadata service: it copies between its standard streams and that.
RELAY = """import os, select, socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
while True:
    for f in select.select([0, s], [], [])[0]:
        data = os.read(0, 65536) if f == 0 else s.recv(65536)
        if not data:
            sys.exit()
        s.sendall(data) if f == 0 else os.write(1, data)
"""
LINK = "169.254.169"


class Metadata(http.server.BaseHTTPRequestHandler):
    guest = None

    def log_message(self, *_):
        pass

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


BACKDOOR = bytes.fromhex("b868584d56ed")                 # the magic number into eax, and the IN
HIGHEST = 0x7ffff7fff000                                 # below which a kernel without randomization maps the first program


class Backdoor:
    """VMware's backdoor for a machine of QEMU, which has none: the debugger's port of QEMU stops the machine in front of the one instruction
    of the agent that asks the host, and this answers in the registers. `host`: what is told for a question, "1 ANSWER" or "0 REASON"."""

    def __init__(self, path, program, host):
        self.host, self.channels, self.asked = host, {}, []
        with open(program, "rb") as f:
            elf = f.read()
        (at,) = [i for i in range(len(elf)) if elf.startswith(BACKDOOR, i)] if elf.count(BACKDOOR) == 1 else [None]
        loads = []
        table, size, count = struct.unpack_from("<Q", elf, 32)[0], *struct.unpack_from("<HH", elf, 54)
        for i in range(count):
            kind, _, offset, address, _, in_file, in_memory, _ = struct.unpack_from("<IIQQQQQQ", elf, table + i * size)
            if kind == 1:
                loads.append((offset, address, in_file, in_memory))
        end = (loads[-1][1] + loads[-1][3] + 0xfff) & ~0xfff
        (own,) = [a + at - o for o, a, n, _ in loads if o <= at < o + n]
        self.place = HIGHEST - end + own + len(BACKDOOR) - 1
        self.connection = socket.socket(socket.AF_UNIX)
        nacre_test.until(lambda: self.connection.connect_ex(path) == 0, what="the debugger's port")
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def say(self, text):
        self.connection.sendall(f"${text}#{sum(text.encode()) % 256:02x}".encode())

    def hear(self):
        data = b""
        while not (len(data) > 3 and data[-3:-2] == b"#"):
            more = self.connection.recv(1)
            if not more:
                raise EOFError
            data = b"" if more == b"$" else data + more
            if data == b"+":
                data = b""
        self.connection.sendall(b"+")
        return data[:-3].decode()

    def ask(self, text):
        self.say(text)
        return self.hear()

    def serve(self):
        try:
            if self.ask(f"Z1,{self.place:x},1") != "OK":
                raise EOFError
            while True:
                self.ask("c")
                r = bytearray.fromhex(self.ask("g"))
                # rax, rbx, rcx, rdx, rsi, rdi, and behind eight others rip
                values = list(struct.unpack_from("<17Q", r))
                if values[16] == self.place and values[0] & 0xffffffff == 0x564d5868:
                    self.step(values)
                values[16] += 1
                struct.pack_into("<17Q", r, 0, *values)
                self.ask("G" + r.hex())
        except (EOFError, OSError):
            pass

    def step(self, v):
        channel, step, value = v[3] >> 16 & 0xffff, v[2] >> 16 & 0xffff, v[1] & 0xffffffff
        c = self.channels.get(channel)
        if step == 0 and value == 0xc9435052:
            channel = len(self.asked) + 1
            self.channels[channel] = c = {"cookies": [0x1234 + channel, 0x5678 + channel], "size": 0, "said": b"", "answer": b""}
            self.asked.append("")
            v[3], (v[4], v[5]), status = channel << 16 | 0x5658, c["cookies"], 1
        elif not c or [v[4] & 0xffffffff, v[5] & 0xffffffff] != c["cookies"]:
            status = 0
        else:
            status = self.message(c, step, value, v)
        v[2] = status << 16 | 30

    def message(self, c, step, value, v):
        if step == 1:
            c["size"] = value
        elif step == 2:
            c["said"] += struct.pack("<I", value)
            if len(c["said"]) >= c["size"]:
                self.asked[-1] = c["said"][:c["size"]].decode()
                c["answer"] = self.host(self.asked[-1]).encode()
        elif step == 3:
            v[1] = len(c["answer"])
            return 3
        elif step == 4:
            v[1] = struct.unpack("<I", c["answer"][:4].ljust(4, b"\0"))[0]
            c["answer"] = c["answer"][4:]
        return 1

    def close(self):
        self.connection.close()
        self.thread.join(10)


class Guest:
    """A machine that boots. Its address is one of loopback, where only the port of the agent is forwarded."""

    def __init__(self, cloud, number, user_data, metadata, host=None):
        self.address, self.asked, self.token = f"127.{number // 250}.77.{number % 250 + 1}", 0, ""
        self.user_data = user_data
        self.place = tempfile.TemporaryDirectory(prefix="nacre-cloud-")
        relay = os.path.join(self.place.name, "relay.py")
        with open(relay, "w", encoding="utf-8") as f:
            f.write(RELAY)
        self.metadata = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (metadata,), {"guest": self}))
        self.metadata.daemon_threads = True
        threading.Thread(target=self.metadata.serve_forever, args=(0.05,), daemon=True).start()
        self.console_path = os.path.join(self.place.name, "console")
        kernel, initrd, words = cloud.guest
        network = (f"user,id=n0,net={LINK}.0/24,host={LINK}.2,dhcpstart={LINK}.15,hostfwd=tcp:{self.address}:7474-{LINK}.15:7474,"
                   f"guestfwd=tcp:{LINK}.254:80-cmd:{sys.executable} {relay} {self.metadata.server_port}")
        self.command = [
            "/usr/bin/qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-m", "320", "-smp", "1",
            "-M", "microvm,acpi=on,rtc=on,x-option-roms=off", "-accel", "tcg,thread=multi", "-cpu", "max",
            "-global", "virtio-mmio.force-legacy=false", "-kernel", kernel, "-initrd", initrd, "-serial", f"file:{self.console_path}",
            "-device", "virtio-rng-device", "-netdev", network, "-device", "virtio-net-device,netdev=n0",
            "-append", " ".join(["console=ttyS0", "reboot=t", "panic=-1", "no_timer_check", "mitigations=off", "audit=0", "norandmaps",
                                 "tsc=reliable", f"NACRE_CLOUD={cloud.word}", *words])]
        self.host, self.backdoor, self.door_path = host, None, os.path.join(self.place.name, "door")
        self.process = None
        self.start()

    def start(self):
        """Also again: with the same user-data, as a machine that is rebooted has them."""
        door = ["-S", "-gdb", f"unix:{self.door_path},server=on,wait=off"] if self.host else []
        self.process = subprocess.Popen(self.command + door, stdin=subprocess.DEVNULL)
        if self.host:
            self.backdoor = Backdoor(self.door_path, os.path.join(nacre_test.BUILD, "nacre"), self.host)

    @property
    def alive(self):
        return self.process.poll() is None

    def console(self):
        with open(self.console_path, "rb") as f:
            return f.read()

    def end(self):
        if self.alive:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self.backdoor:
            self.backdoor.close()

    def close(self):
        self.end()
        self.metadata.shutdown()
        self.metadata.server_close()
        self.place.cleanup()


