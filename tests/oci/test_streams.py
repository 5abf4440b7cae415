# SPDX-License-Identifier: Apache-2.0
"""The standard streams of a process: closed by the caller, owned by another user, read by a program that has gone."""
import itertools
import os
import subprocess

import oci_test
from oci_test import until

# What the program finds: its descriptors, and the device of each standard stream. Only 9 is the shell's own: a subshell
# redirects for itself, while a command substitution leaves one or two ends of a pipe open in the shell.
LOOK = ("exec 9>/tmp/found; (ls /proc/$$/fd; stat -L -c %F,%t,%T /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2) >&9;"
        "exec 9>&-; mv /tmp/found /tmp/seen")
NULL = "character special file,1,3"


class StreamsTest(oci_test.OciTest):
    def closed(self, closed, *args, status=0):
        """Runs the runtime with these of 0, 1 and 2 closed, and the others on a file."""
        with open(os.path.join(self.dir, "stream"), "w", encoding="utf-8") as f:
            f.write("not empty\n")
        redirect = " ".join(f"{fd}>&-" if fd in closed else f"{fd}<>{self.dir}/stream" for fd in range(3))
        done = subprocess.run(["sh", "-c", f'exec "$@" {redirect}', "sh", oci_test.RUNTIME, "--root", self.root, *args],
                              check=False, timeout=oci_test.TIMEOUT)
        self.assertEqual(done.returncode, status, (closed, args))

    def assertSeen(self, closed, more=()):
        path = os.path.join(self.rootfs, "tmp", "seen")
        until(lambda: os.path.exists(path), what="what the program has seen")
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")[:-1]
        os.unlink(path)
        self.assertEqual(lines[:-3], ["0", "1", "2", *more, "9"], closed)
        for fd, line in enumerate(lines[-3:]):
            self.assertEqual(line, NULL if fd in closed else "regular file,0,0", (closed, fd))


class Closed(StreamsTest):
    """A stream that the caller has closed is /dev/null, and no descriptor of the runtime."""

    def sets(self):
        return [set(some) for n in (1, 2, 3) for some in itertools.combinations(range(3), n)]

    def test_run(self):
        self.bundle("sh", "-c", LOOK)
        for closed in self.sets():
            with self.subTest(closed=closed):
                self.closed(closed, "run", "--bundle", self.path, self.name)
                self.assertSeen(closed)

    def test_create_and_exec(self):
        self.bundle("sh", "-c", LOOK + "; exec sleep 1000")
        self.closed({0, 2}, "create", "--bundle", self.path, self.name)
        self.closed({0, 1, 2}, "start", self.name)
        self.assertSeen({0, 2})
        self.closed({0, 1, 2}, "exec", self.name, "sh", "-c", LOOK)
        self.assertSeen({0, 1, 2})
        self.closed({0, 1}, "exec", "-d", self.name, "sh", "-c", LOOK)
        self.assertSeen({0, 1})
        self.delete()

    def test_run_detached(self):
        self.bundle("sh", "-c", LOOK + "; exec sleep 1000")
        self.closed({0}, "run", "-d", "--bundle", self.path, self.name)
        self.assertSeen({0})
        self.delete()

    def test_hooks(self):
        """A hook reads the state, and has no other descriptor of the runtime."""
        self.bundle("true")
        found = os.path.join(self.dir, "hook")
        script = f"cat >/dev/null; (ls /proc/$$/fd; stat -L -c %F /proc/$$/fd/1 /proc/$$/fd/2) >{found}; true"
        self.config["hooks"] = {"createRuntime": [{"path": oci_test.BUSYBOX, "args": ["sh", "-c", script]}]}
        self.save()
        self.closed({0, 1, 2}, "run", "--bundle", self.path, self.name)
        with open(found, encoding="utf-8") as f:
            self.assertEqual(f.read().split("\n")[:-1], ["0", "1", "2"] + 2 * ["character special file"])

    def test_passed_on(self):
        """--preserve-fds and LISTEN_FDS pass on what the caller opened, also beside a stream that it closed."""
        self.bundle("sh", "-c", LOOK)
        run = ["run", "--bundle", self.path, "--preserve-fds", "1", self.name]
        command = [oci_test.RUNTIME, "--root", self.root, "--log", os.path.join(self.dir, "log")]
        subprocess.run(["sh", "-c", 'exec "$@" 0<&- 3</etc/passwd 4</etc/passwd 5</etc/passwd', "sh", *command, *run], check=True,
                       env={**os.environ, "LISTEN_FDS": "1"}, timeout=oci_test.TIMEOUT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertSeen({0, 1, 2}, more=("3", "4"))
        # The log is number 3 by then.
        done = subprocess.run(["sh", "-c", 'exec "$@" 3<&-', "sh", *command, *run], check=False, timeout=oci_test.TIMEOUT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("descriptor 3 is not open", done.stderr)
