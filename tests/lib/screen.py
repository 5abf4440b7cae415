# SPDX-License-Identifier: Apache-2.0
"""Somebody who sits at a terminal: a pty with a program as its foreground program."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import nacre_test


class Screen:
    """A person's terminal. A context manager: it looks at the end whether the terminal is as it was before."""

    def __init__(self, *words, rows=24, columns=80, env=None):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.seen = b""
        self.before = termios.tcgetattr(self.slave)
        self.child = subprocess.Popen(words, stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True,
                                      env={**os.environ, **(env or {})},
                                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, data):
        os.write(self.master, data)

    def take(self, seconds=0.05):
        if select.select([self.master], [], [], seconds)[0]:
            self.seen += os.read(self.master, 65536)
        return self.seen

    def until(self, pattern, seconds=60):
        """Reads until the pattern (bytes, or a compiled one) is there, and forgets what was up to its end."""
        end = time.monotonic() + seconds * nacre_test.SLOWNESS
        wanted = pattern if isinstance(pattern, re.Pattern) else re.compile(re.escape(pattern))
        while True:
            found = wanted.search(self.take())
            if found:
                self.seen = self.seen[found.end():]
                return found
            if time.monotonic() > end:
                raise AssertionError(f"{pattern} did not come; there is {self.seen!r}, status {self.child.poll()}")

    def end(self):
        """Its exit status; reads meanwhile, as a terminal does."""
        end = time.monotonic() + 60 * nacre_test.SLOWNESS
        while self.child.poll() is None:
            self.take()
            if time.monotonic() > end:
                raise AssertionError(f"it did not end; there is {self.seen!r}")
        self.take()
        return self.child.returncode

    def keys(self, data):
        """Types once the keys are the program's; before, our own terminal would show them too."""
        nacre_test.until(self.is_raw, what="the raw terminal")
        self.type(data)

    def interrupt(self, pattern):
        """The interrupt character, until something comes of it: the program in front may not be there yet."""
        for _ in range(50):
            self.type(b"\x03")
            try:
                return self.until(pattern, 0.4)
            except AssertionError:
                pass
        return self.until(pattern)

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def is_as_before(self):
        return termios.tcgetattr(self.slave) == self.before

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if self.child.poll() is None:
                self.child.kill()
                self.child.wait()
            elif kind is None and not self.is_as_before():
                raise AssertionError("the terminal is not as it was before")
        finally:
            os.close(self.master)
            os.close(self.slave)
