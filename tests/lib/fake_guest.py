# SPDX-License-Identifier: Apache-2.0
"""A machine of a fake cloud that boots: a QEMU of the test, emulated, with a network of its own, in which DHCP and the metadata service answer,
and which is reached at an address of loopback. Each cloud brings its own metadata service (a subclass of Metadata), its word for the
agent (`cloud.word`) and what is booted (`cloud.guest`: kernel, initrd, words of the command line)."""
import http.server
import os
import signal
import subprocess
import sys
import tempfile
import threading

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


class Guest:
    """A machine that boots. Its address is one of loopback, where only the port of the agent is forwarded."""

    def __init__(self, cloud, number, user_data, metadata):
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
        self.process = None
        self.start()

    def start(self):
        """Also again: with the same user-data, as a machine that is rebooted has them."""
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL)

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

    def close(self):
        self.end()
        self.metadata.shutdown()
        self.metadata.server_close()
        self.place.cleanup()


