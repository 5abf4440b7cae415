# SPDX-License-Identifier: Apache-2.0
"""The daemon's end of a gate (src/vm/driver/gate.h, issuer.h), by a driver: with the real nacre-gate, and a real one as the guest."""
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gatebed  # noqa: E402
import host  # noqa: E402
import nacre_test  # noqa: E402
from gatebed import FAILED, GONE, UP, h2  # noqa: E402

DRIVER = os.path.join(nacre_test.BUILD, "src", "vm", "vm-gate-driver")


class Driver:
    def __init__(self, folder, word, boot, console, life="60s", program=gatebed.GATE):
        self.lines, self.seen = queue.Queue(), []
        fds = [boot.fileno(), console.fileno(), os.open("/proc/self/ns/net", os.O_RDONLY)]
        kept = [os.dup(fd) for fd in fds]

        def place():
            for number, fd in enumerate(kept):
                os.dup2(fd, 200 + number)
            for number in range(len(kept)):
                os.dup2(200 + number, 3 + number)
                os.close(200 + number)

        self.process = subprocess.Popen([DRIVER, program, folder, life, word], preexec_fn=place, close_fds=False, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for fd in kept + fds[2:]:
            os.close(fd)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def say(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def wait(self, start):
        """The next line that begins so."""
        while True:
            line = self.lines.get(timeout=60 * nacre_test.SLOWNESS)
            assert line is not None, (start, self.seen)
            self.seen.append(line)
            if line.startswith(start):
                return line[len(start):].strip()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.thread.join(10)
        self.process.stdin.close()
        self.process.stdout.close()


class ClientTest(unittest.TestCase):
    def setUp(self):
        gatebed.loopback_up()
        self.folder = tempfile.mkdtemp(prefix="gate-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)
        for name in ("identity", "i"):
            os.mkdir(os.path.join(self.folder, name), 0o700)
        self.keeper = gatebed.Keeper(self.folder)
        self.addCleanup(self.keeper.sock.close)
        self.boot, self.boot_far = socket.socketpair()
        self.console, self.console_far = socket.socketpair()
        for sock in (self.boot, self.boot_far, self.console, self.console_far):
            self.addCleanup(sock.close)

    def drive(self, word, **more):
        driver = Driver(self.folder, word, self.boot_far, self.console_far, **more)
        self.addCleanup(driver.close)
        return driver

    def boot_guest(self, bundle):
        guest = gatebed.Guest(self.folder, self.keeper, b"\7" * 32, bundle)
        self.addCleanup(guest.close)
        self.boot.sendall((4).to_bytes(4, "little") + b"abcd")
        return guest

    def up(self, **more):
        driver = self.drive("start", **more)
        self.boot_guest(bytes.fromhex(driver.wait("bundle")))
        driver.wait(f"state {UP}")
        return driver

    def call(self):
        sock = socket.socket(socket.AF_UNIX)
        self.addCleanup(sock.close)
        sock.connect(os.path.join(self.folder, "i", "rpc.sock"))
        far = self.keeper.accept()
        self.addCleanup(far.close)
        far.sendall(h2(4, 0, 0))
        self.assertEqual(sock.recv(100), h2(4, 0, 0))

    def read_console(self, driver, text):
        def reads():
            driver.say("console")
            return driver.wait("console") == text

        nacre_test.until(reads, what="the console")

    def gates(self):
        return self.titled("nacre: gate pod/web")

    @staticmethod
    def titled(title):
        """In the cgroup of this test: there may be others on the machine."""
        return sorted(p for p in host.cgroup_pids(host.own_cgroup()) if title in host.read(f"/proc/{p}/cmdline"))


class Client(ClientTest):
    def test_starts_serves_and_ends(self):
        driver = self.up()
        self.call()
        self.assertIn("frame 8", driver.seen)
        driver.say("boot 0400000041424344")
        self.assertEqual(driver.wait("sent"), "0")
        self.assertEqual(self.boot.recv(100), b"\4\0\0\0ABCD")
        self.console.sendall(b"hello from the console")
        self.read_console(driver, "22 hello from the console")
        driver.say("end")
        self.assertIn("status 0", driver.wait("end"))
        self.assertEqual(self.gates(), [])

    def test_outlives_the_daemon_and_is_found_again(self):
        """Killed with SIGKILL while certificates are due; the next daemon starts the authority anew and issues."""
        driver = self.up(life="4s")
        gate = self.gates()
        self.assertEqual(len(gate), 1)
        driver.process.send_signal(signal.SIGKILL)
        driver.process.wait()
        self.call()
        # The authority has ended with its daemon.
        nacre_test.until(lambda: not self.titled("nacre: gate ca"), what="the end of the authority")
        for _ in range(2):
            again = self.drive("connect", life="4s")
            again.wait(f"state {UP}")
            again.wait("frame 8")
            time.sleep(5)
            self.call()
            again.process.send_signal(signal.SIGKILL)
            again.process.wait()
        self.assertEqual(self.gates(), gate)
        last = self.drive("connect")
        last.wait("state")
        last.say("end")
        last.wait("end")

    def test_no_gate_to_connect_to(self):
        self.assertIn("gone", self.drive("connect").wait("failed"))

    def test_says_that_the_machine_is_gone(self):
        driver = self.up()
        self.console.sendall(b"last words")
        self.boot.close()
        self.boot_far.close()
        driver.wait(f"state {GONE}")
        self.read_console(driver, "10 last words")
        driver.say("end")
        driver.wait("end")

    def test_a_gate_that_is_killed_is_an_end(self):
        driver = self.up()
        os.kill(self.gates()[0], signal.SIGKILL)
        self.assertIn("signal 9", driver.wait("end"))

    def test_no_program(self):
        driver = self.drive("start", program="/nowhere/nacre-gate")
        self.assertIn("No such file", driver.wait("end"))

    def test_an_authority_that_cannot_be_used(self):
        """Half of its file: no machine comes up, and the sentence says which file."""
        path = os.path.join(self.folder, "identity", "ca")
        with open(path, "wb") as f:
            f.write(b"nacre-ca-1\n")
        os.chmod(path, 0o600)
        driver = self.drive("start")
        self.assertIn('the file "ca"', driver.wait("bundle none"))
        self.assertIn("cut short", driver.wait("end"))

    def test_an_authority_whose_key_others_can_read(self):
        """A whole file that the node itself made, with one bit of its mode changed."""
        driver = self.drive("start")
        driver.wait("bundle")
        driver.say("end")
        driver.wait("end")
        path = os.path.join(self.folder, "identity", "ca")
        os.chmod(path, 0o604)
        with open(path, "rb") as f:
            before = f.read()
        driver = self.drive("start")
        self.assertIn("its mode is 0604", driver.wait("bundle none"))
        self.assertIn("set 0600", driver.wait("end"))
        with open(path, "rb") as f:
            self.assertEqual(before, f.read())

    def test_a_guest_with_another_token_fails(self):
        driver = self.drive("start")
        bundle = bytes.fromhex(driver.wait("bundle"))
        guest = gatebed.Guest(self.folder, self.keeper, b"\6" * 32, bundle)
        self.addCleanup(guest.close)
        self.boot.sendall((4).to_bytes(4, "little") + b"abcd")
        self.assertIn("could not be enrolled", driver.wait(f"state {FAILED}"))
        driver.say("end")
        driver.wait("end")
