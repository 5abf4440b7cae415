# SPDX-License-Identifier: Apache-2.0
"""A terminal in the foreground: its output goes into pipes that nobody reads, that are full, that do not block; its input comes from
such; and nobody is busy meanwhile."""
import fcntl
import os
import pty
import signal
import subprocess
import termios

import oci_test
from oci_test import until

# It ends by what is sent when a terminal hangs up, which the first process of a pid namespace must ask for.
SAYS_HUP = "trap 'echo hup >/tmp/said; exit 9' HUP; echo first; touch /tmp/ready; "
WAITS = SAYS_HUP + "while :; do sleep 1000 & wait; done"
WRITES = SAYS_HUP + "while :; do echo more; done"
# Enough to fill the pipe, the terminal and what lies between.
MUCH = 1 << 20


def ticks(pid):
    """What the process has used of a processor, in ticks."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def sleeps(pid):
    """Whether it waits in poll(): where the kernel does not say where, that it sleeps is enough."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "S"


def unblock(fd):
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)


class Terminal(oci_test.OciTest):
    def start(self, how, script, **streams):
        """The runtime in the foreground with a program at a terminal: `run`, or `exec` in a container that sleeps."""
        streams.setdefault("stdin", subprocess.DEVNULL)
        streams.setdefault("stderr", subprocess.DEVNULL)
        for name in ("said", "ready"):
            path = os.path.join(self.rootfs, "tmp", name)
            if os.path.exists(path):
                os.unlink(path)
        if how == "run":
            self.bundle("sh", "-c", script, terminal=True)
            words = ["run", "--bundle", self.path, self.name]
        else:
            self.started("sleep", "1000")
            words = ["exec", "--tty", self.name, "sh", "-c", script]
        child = subprocess.Popen([oci_test.RUNTIME, "--root", self.root, *words], **streams)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def file(self, name):
        path = os.path.join(self.rootfs, "tmp", name)
        return os.path.exists(path) and os.stat(path).st_size >= (name == "said")

    def finish(self, how, child, status):
        self.assertEqual(child.wait(oci_test.TIMEOUT), status)
        if how == "exec":
            self.delete()

    def assertIdle(self, child):
        """It waits, and does not look again and again: none of its time on the processor grows while others' does."""
        until(lambda: sleeps(child.pid), what="sleep")
        before, own = ticks(child.pid), os.times()
        while True:
            now = os.times()
            if now.user + now.system - own.user - own.system > 0.3:
                break
        self.assertLessEqual(ticks(child.pid) - before, 2)

    def test_the_reader_goes_after_a_line(self):
        """`head -1`: the program gets SIGHUP, whether it writes on or is silent."""
        for how in ("run", "exec"):
            for script in (WAITS, WRITES):
                with self.subTest(how=how, script=script):
                    read, write = os.pipe()
                    child = self.start(how, script, stdout=write)
                    os.close(write)
                    self.assertEqual(os.read(read, 7), b"first\r\n")
                    os.close(read)
                    self.finish(how, child, 9)
                    self.assertTrue(self.file("said"))

    def test_the_reader_never_reads_and_goes(self):
        for how in ("run", "exec"):
            for blocking in (True, False):
                with self.subTest(how=how, blocking=blocking):
                    read, write = os.pipe()
                    if not blocking:
                        unblock(write)
                    child = self.start(how, WRITES, stdout=write)
                    os.close(write)
                    until(lambda: self.file("ready"), what="the program")
                    self.assertIdle(child)
                    os.close(read)
                    self.finish(how, child, 9)

    def test_all_of_it_comes_through_a_pipe_that_does_not_block(self):
        for how in ("run", "exec"):
            with self.subTest(how=how):
                read, write = os.pipe()
                unblock(write)
                child = self.start(how, f"touch /tmp/ready; head -c {MUCH} /dev/zero | tr '\\0' x; exit 5", stdout=write)
                os.close(write)
                until(lambda: self.file("ready"), what="the program")
                self.assertIdle(child)
                with open(read, "rb") as f:
                    self.assertEqual(len(f.read()), MUCH)
                self.finish(how, child, 5)

    def test_the_program_has_ended_and_nobody_reads(self):
        """What it wrote last waits for its reader, without a busy loop; a signal ends the runtime, since there is no program more."""
        read, write = os.pipe()
        unblock(write)
        while True:
            try:
                os.write(write, b"x" * 4096)
            except BlockingIOError:
                break
        child = self.start("run", "touch /tmp/ready; echo last; exit 4", stdout=write)
        until(lambda: self.ended(child), what="the end of the program")
        self.assertIdle(child)
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(oci_test.TIMEOUT), 4)
        os.close(read)
        os.close(write)

    def ended(self, child):
        """Whether the program, a child of the runtime's, has ended; the runtime reaps it last of all."""
        with open(f"/proc/{child.pid}/task/{child.pid}/children", encoding="ascii") as f:
            pids = f.read().split()
        if not pids or not self.file("ready"):
            return False
        with open(f"/proc/{pids[0]}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"

    def test_input_from_a_pipe_that_does_not_block(self):
        for how in ("run", "exec"):
            with self.subTest(how=how):
                read, write = os.pipe()
                unblock(read)
                child = self.start(how, "stty -echo; touch /tmp/ready; while read line; do echo got $line; done", stdin=read,
                                   stdout=subprocess.PIPE)
                os.close(read)
                until(lambda: self.file("ready"), what="the program")
                self.assertIdle(child)
                for word in (b"one", b"two"):
                    os.write(write, word + b"\n")
                    self.assertEqual(child.stdout.readline(), b"got " + word + b"\r\n")
                # The end of the input is none of the program's terminal, nor of its output.
                os.write(write, b"three\n")
                os.close(write)
                self.assertEqual(child.stdout.readline(), b"got three\r\n")
                self.assertIdle(child)
                child.stdout.close()
                child.wait(oci_test.TIMEOUT)
                if how == "exec":
                    self.delete()

    def test_a_terminal_that_is_paused(self):
        """A program that fills a terminal that nobody reads, or that was paused: signals arrive, and it goes on where it was."""
        for paused in (True, False):
            with self.subTest(paused=paused):
                master, slave = pty.openpty()
                mode = termios.tcgetattr(slave)
                mode[1] &= ~termios.OPOST
                termios.tcsetattr(slave, termios.TCSANOW, mode)
                if paused:
                    termios.tcflow(slave, termios.TCOOFF)
                child = self.start("run", f"trap 'exit 7' TERM; touch /tmp/ready; head -c {MUCH} /dev/zero | tr '\\0' x; echo; "
                                          "echo all; while :; do sleep 1000 & wait; done", stdout=slave)
                until(lambda: self.file("ready"), what="the program")
                self.assertIdle(child)
                if paused:
                    termios.tcflow(slave, termios.TCOON)
                seen = b""
                while not seen.endswith(b"all\r\n"):
                    seen += os.read(master, 65536)
                self.assertEqual(len(seen), MUCH + len("\r\nall\r\n"))
                child.send_signal(signal.SIGTERM)
                self.assertEqual(child.wait(oci_test.TIMEOUT), 7)
                os.close(slave)
                os.close(master)

    def test_a_signal_while_a_terminal_is_not_read(self):
        master, slave = pty.openpty()
        child = self.start("run", "trap 'exit 7' TERM; (while :; do echo more; done) & touch /tmp/ready; wait", stdout=slave)
        until(lambda: self.file("ready"), what="the program")
        self.assertIdle(child)
        child.send_signal(signal.SIGTERM)
        until(lambda: self.ended(child), what="the end of the program")
        os.close(master)
        self.assertEqual(child.wait(oci_test.TIMEOUT), 7)
        os.close(slave)

    def test_the_reader_has_gone_before(self):
        """SIGHUP may come before a first process has asked for it, and does nothing then; its writes fail."""
        read, write = os.pipe()
        os.close(read)
        child = self.start("run", "while echo more; do :; done; exit 9", stdout=write)
        os.close(write)
        self.assertEqual(child.wait(oci_test.TIMEOUT), 9)
