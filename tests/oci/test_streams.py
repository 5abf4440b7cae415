# SPDX-License-Identifier: Apache-2.0
"""The standard streams of a process: closed by the caller, owned by another user, read by a program that has gone."""
import itertools
import os
import subprocess

import oci_test
import test_exec
from oci_test import until

# The program prints its descriptors, and the device of each standard stream. Only 9 is the shell's own: a subshell
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


# The program opens its own streams again.
AGAIN = "echo out >/dev/stdout; echo err >/dev/stderr; cat /dev/stdin"
TTY = "echo out >/dev/stdout; echo err >/dev/stderr; echo tty >/dev/tty; test -r /dev/stdin"


class Owner(StreamsTest):
    """The program's user can open its streams again, whoever made them; files and devices keep their owner."""

    def user(self, uid, *args, terminal=False):
        self.bundle(*args, user={"uid": uid, "gid": uid}, terminal=terminal)
        self.config["process"]["capabilities"] = {}
        self.save()

    def map_ids(self):
        """A user namespace, in which no id of the runtime's is mapped."""
        self.config["linux"]["namespaces"].append({"type": "user"})
        self.config["linux"]["uidMappings"] = [{"containerID": 0, "hostID": 100000, "size": 2000}]
        self.config["linux"]["gidMappings"] = [{"containerID": 0, "hostID": 200000, "size": 2000}]
        for top, dirs, files in os.walk(self.rootfs):
            for name in dirs + files:
                os.lchown(os.path.join(top, name), 100000, 200000)
        os.chown(self.rootfs, 100000, 200000)
        os.chmod(self.dir, 0o755)
        self.save()

    def again(self, *args, owner=0):
        """Runs the runtime on three pipes of this owner, and compares what has come through them."""
        pipes = [os.pipe() for _ in range(3)]
        for ends in pipes:
            os.fchown(ends[0], owner, -1)
        os.write(pipes[0][1], b"in\n")
        os.close(pipes[0][1])
        done = subprocess.run([oci_test.RUNTIME, "--root", self.root, *args], check=False, timeout=oci_test.TIMEOUT,
                              stdin=pipes[0][0], stdout=pipes[1][1], stderr=pipes[2][1])
        for fd in (pipes[0][0], pipes[1][1], pipes[2][1]):
            os.close(fd)
        out = [open(ends[0], encoding="utf-8") for ends in pipes[1:]]
        texts = [f.read() for f in out]
        for f in out:
            f.close()
        self.assertEqual((done.returncode, *texts), (0, "out\nin\n", "err\n"), args)

    def test_run(self):
        for uid, owner in ((1234, 0), (0, 1234), (1234, 4321)):
            with self.subTest(uid=uid, owner=owner):
                self.user(uid, "sh", "-c", AGAIN)
                self.again("run", "--bundle", self.path, self.name, owner=owner)
        self.map_ids()
        self.again("run", "--bundle", self.path, self.name)

    def test_exec(self):
        for mapped in (False, True):
            with self.subTest(mapped=mapped):
                self.user(0, "sleep", "1000")
                if mapped:
                    self.map_ids()
                self.create()
                self.oci("start", self.name)
                self.again("exec", "--user", "1234", self.name, "sh", "-c", AGAIN)
                self.assertEqual(self.terminal("exec", "--tty", "--user", "1234", self.name, "sh", "-c", TTY), "out\nerr\ntty\n")
                self.delete()

    def test_a_user_namespace_by_its_path(self):
        """Of which config.json does not say the ids: neither the owner of the streams nor the runtime's own is mapped there."""
        holder = subprocess.Popen(["unshare", "--user", "sleep", "1000"], stdout=subprocess.DEVNULL)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        path = f"/proc/{holder.pid}/ns/user"
        until(lambda: os.readlink(path) != os.readlink("/proc/self/ns/user"), what="the user namespace")
        for name, start in (("uid_map", 100000), ("gid_map", 200000)):
            with open(f"/proc/{holder.pid}/{name}", "w", encoding="ascii") as f:
                f.write(f"0 {start} 1000\n1000 {start + 5000} 1000\n")
        for uid in (1234, 0):
            for terminal in (False, True):
                with self.subTest(uid=uid, terminal=terminal):
                    self.user(uid, "sh", "-c", TTY if terminal else AGAIN, terminal=terminal)
                    self.map_ids()
                    for name in ("uidMappings", "gidMappings"):
                        del self.config["linux"][name]
                    self.config["linux"]["namespaces"][-1]["path"] = path
                    self.save()
                    run = ("run", "--bundle", self.path, self.name)
                    if terminal:
                        self.assertEqual(self.terminal(*run), "out\nerr\ntty\n")
                    else:
                        self.again(*run)
        self.config["process"].update({"args": ["sleep", "1000"], "terminal": False})
        self.save()
        self.create()
        self.oci("start", self.name)
        self.again("exec", "--user", "1234", self.name, "sh", "-c", AGAIN)
        self.assertEqual(self.terminal("exec", "--tty", "--user", "1234", self.name, "sh", "-c", TTY), "out\nerr\ntty\n")
        self.delete()

    def terminal(self, *args):
        return self.oci(*args).stdout.replace("\r\n", "\n")

    def test_terminal(self):
        self.user(1234, "sh", "-c", TTY + "; echo console >/dev/console", terminal=True)
        run = ("run", "--bundle", self.path, self.name)
        self.assertEqual(self.terminal(*run), "out\nerr\ntty\nconsole\n")
        self.map_ids()
        self.assertEqual(self.terminal(*run), "out\nerr\ntty\nconsole\n")

    def test_console_socket(self):
        self.user(1234, "sh", "-c", TTY, terminal=True)
        console = test_exec.ConsoleSocket(self.dir)
        self.addCleanup(console.close)
        self.create("--console-socket", console.path)
        self.oci("start", self.name)
        self.assertEqual(console.read(), "out\nerr\ntty\n")
        self.delete()

    def test_named_pipe_file_and_device(self):
        fifo, path, device = (os.path.join(self.dir, name) for name in ("fifo", "file", "device"))
        os.mkfifo(fifo, 0o600)
        os.mknod(device, 0o600 | 0o020000, os.makedev(1, 7))
        with open(path, "w", encoding="utf-8") as f:
            f.write("text\n")
        self.user(1234, "sh", "-c", "echo again >/dev/stdout")
        reader = os.open(fifo, os.O_RDWR)
        with open(path, "rb") as stdin, open(device, "wb") as stderr:
            subprocess.run([oci_test.RUNTIME, "--root", self.root, "run", "--bundle", self.path, self.name], check=True,
                           timeout=oci_test.TIMEOUT, stdin=stdin, stdout=reader, stderr=stderr)
        self.assertEqual(os.read(reader, 100), b"again\n")
        os.close(reader)
        self.assertEqual([os.stat(name).st_uid for name in (fifo, path, device, "/dev/null")], [1234, 0, 0, 0])

    def test_null(self):
        """What reads and writes nothing has the container's /dev/null, whose mode root in there may change, and not the host's."""
        look = "stat -L -c %d:%i /dev/null /dev/stdin >&2"
        before = os.stat("/dev/null")
        self.bundle("sh", "-c", f"({look}); exec sleep 1000")
        lines = self.create_and_look()
        self.assertEqual(lines[0], lines[1])
        self.assertNotEqual(lines[0], f"{before.st_dev}:{before.st_ino}")
        done = self.oci("exec", self.name, "sh", "-c", look)
        self.assertEqual(done.stderr.split(), lines)
        # Where the container has another file there, it is not opened.
        self.oci("exec", self.name, "sh", "-c", "mv /dev/null /dev/away; echo secret >/dev/null")
        self.assertEqual(self.oci("exec", self.name, "cat").stdout, "")
        self.oci("exec", self.name, "sh", "-c", "rm /dev/null; ln -s away /dev/null")
        self.assertEqual(self.oci("exec", self.name, "cat").stdout, "")
        self.delete()

    def create_and_look(self):
        path = os.path.join(self.dir, "looked")
        with open(path, "w", encoding="utf-8") as f:
            subprocess.run([oci_test.RUNTIME, "--root", self.root, "create", "--bundle", self.path, self.name], check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=f, timeout=oci_test.TIMEOUT)
        self.oci("start", self.name)

        def lines():
            with open(path, encoding="utf-8") as f:
                return f.read().split()
        until(lambda: len(lines()) == 2, what="what the program has seen")
        return lines()
