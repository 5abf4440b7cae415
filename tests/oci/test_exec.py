# SPDX-License-Identifier: Apache-2.0
"""exec: each option against what the program sees; consoles; descriptors that are passed on."""
import array
import hashlib
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import threading

import oci_test
from oci_test import until


class ConsoleSocket:
    """Takes one terminal's master, as conmon does."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "console")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.fd = -1
        self.thread = threading.Thread(target=self.take, daemon=True)
        self.thread.start()

    def take(self):
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return
        fds = array.array("i")
        _, ancillary, _, _ = connection.recvmsg(64, socket.CMSG_LEN(4))
        for _, _, data in ancillary:
            fds.frombytes(data[:4])
        self.fd = fds[0]

    def read(self):
        self.thread.join(oci_test.TIMEOUT)
        text = b""
        while True:
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                break
            if not data:
                break
            text += data
        return text.decode().replace("\r\n", "\n")

    def close(self):
        # A thread that still accepts would go on with whatever has the number of the descriptor next.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        if self.fd >= 0:
            os.close(self.fd)


class Exec(oci_test.OciTest):
    def run_exec(self, *args, **kwargs):
        return self.oci("exec", *args, **kwargs)

    def test_status_and_output(self):
        self.started("sleep", "1000")
        self.assertEqual(self.run_exec(self.name, "sh", "-c", "echo out; echo err >&2; exit 5", status=5).stdout, "out\n")
        self.assertEqual(self.run_exec(self.name, "sh", "-c", "kill -9 $$", status=137).stderr, "")
        self.assertIn("nosuch: No such file or directory", self.run_exec(self.name, "nosuch", status=1).stderr)
        self.assertEqual(self.run_exec(self.name, "cat", input="in", stdin=None).stdout, "in")
        self.delete()

    def test_it_is_in_the_container(self):
        pid = self.started("sleep", "1000")
        for kind in ("mnt", "pid", "net", "ipc", "uts", "cgroup"):
            self.assertEqual(self.run_exec(self.name, "readlink", f"/proc/self/ns/{kind}").stdout.strip(),
                             os.readlink(f"/proc/{pid}/ns/{kind}"))
        self.assertEqual(self.run_exec(self.name, "cat", "/proc/self/cgroup").stdout.splitlines()[-1], "0::/")
        self.delete()

    def test_options(self):
        self.started("sleep", "1000")
        out = self.run_exec("-u", "5:6", "-g", "7", "-g", "8", "-e", "A=1", "-e", "PATH=/bin:/x", "--cwd", "/tmp",
                            self.name, "sh", "-c", "id -u; id -g; id -G; pwd; echo $A $PATH").stdout
        self.assertEqual(out.split("\n")[:5], ["5", "6", "6 7 8", "/tmp", "1 /bin:/x"])
        caps = self.run_exec("-c", "CAP_SYS_PTRACE", self.name, "grep", "Cap", "/proc/self/status").stdout
        for name in ("CapBnd", "CapEff", "CapPrm"):
            value = next(int(line.split()[1], 16) for line in caps.splitlines() if line.startswith(name))
            self.assertTrue(value & 1 << 19, name)
            self.assertFalse(value & 1 << 21, name)
        self.assertIn("NoNewPrivs:\t1", self.run_exec("--no-new-privs", self.name, "cat", "/proc/self/status").stdout)
        self.delete()

    def test_supplementary_groups(self):
        """They are additionalGids in this order, each once; the primary group is among them only where it is listed."""
        script = ["sh", "-c", "id -u; id -g; grep ^Groups: /proc/self/status; true"]
        path = os.path.join(self.dir, "process.json")

        def seen(done):
            uid, gid, groups = done.stdout.splitlines()
            return int(uid), int(gid), [int(g) for g in groups.split()[1:]]

        # The kernel sorts the groups by number.
        for listed, want in ((None, []), ([], []), ([8, 7, 8], [7, 8]), ([7, 6], [6, 7]), ([0, 0], [0]), ([6], [6])):
            user = {"uid": 5, "gid": 6, **({} if listed is None else {"additionalGids": listed})}
            self.bundle(*script, user=user)
            self.assertEqual(seen(self.run_it()), (5, 6, want), listed)
            self.started("sleep", "1000", user=user)
            self.assertEqual(seen(self.run_exec(self.name, *script)), (5, 6, want), listed)
            self.assertEqual(seen(self.run_exec("-u", "9:10", self.name, *script)), (9, 10, want), listed)
            self.assertEqual(seen(self.run_exec("-g", "12", "-g", "7", "-g", "12", self.name, *script)),
                             (5, 6, sorted({*want, 7, 12})), listed)
            with open(path, "w", encoding="utf-8") as f:
                json.dump({"cwd": "/", "args": script, "env": ["PATH=/bin"], "user": user}, f)
            self.assertEqual(seen(self.run_exec("--process", path, self.name)), (5, 6, want), listed)
            self.delete()

    def test_users_are_numbers(self):
        self.started("sleep", "1000")
        with open(os.path.join(self.rootfs, "etc", "passwd"), "w", encoding="utf-8") as f:
            f.write("root:x:0:0::/:/bin/sh\n1000:x:0:0::/:/bin/sh\n")
        self.assertEqual(self.run_exec("-u", "1000", self.name, "id", "-u").stdout, "1000\n")
        for user in ("root", "", "1:", ":1", "1:x", " 1", "1 ", "-1", "+0", "0x0", "4294967295", "4294967296", "1:4294967295"):
            self.assertIn("--user", self.run_exec("-u", user, self.name, "id", status=1).stderr, user)
        self.delete()

    def test_a_process_document(self):
        self.started("sleep", "1000")
        path = os.path.join(self.dir, "process.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"cwd": "/tmp", "args": ["sh", "-c", "pwd; id -u; exit 6"], "env": ["PATH=/bin"], "user": {"uid": 9}}, f)
        self.assertEqual(self.run_exec("--process", path, self.name, status=6).stdout, "/tmp\n9\n")
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"cwd": "x", "args": ["true"]}')
        self.assertIn('cwd: "x" is not absolute', self.run_exec("-p", path, self.name, status=1).stderr)
        self.assertIn("not both", self.run_exec("-p", path, self.name, "true", status=1).stderr)
        self.delete()

    def test_detached_with_pid_file(self):
        self.started("sleep", "1000")
        pid_file = os.path.join(self.dir, "pid")
        subprocess.run([oci_test.RUNTIME, "--root", self.root, "exec", "-d", "--pid-file", pid_file, self.name, "sleep", "999"],
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=oci_test.TIMEOUT)
        with open(pid_file, encoding="utf-8") as f:
            pid = int(f.read())
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
            self.assertEqual(f.read(), "sleep\x00999\x00")
        self.assertIn(pid, json.loads(self.oci("ps", "-f", "json", self.name).stdout))
        self.delete()

    def test_not_where_nothing_runs(self):
        self.started("true")
        self.wait_for("stopped")
        self.assertIn("container not running", self.run_exec(self.name, "true", status=1).stderr)
        self.oci("delete", self.name)

    def test_paused(self):
        self.started("sleep", "1000")
        self.oci("pause", self.name)
        self.assertEqual(self.status(), "paused")
        self.assertIn("cannot exec in a paused container", self.run_exec(self.name, "true", status=1).stderr)
        self.assertIn("cannot pause", self.oci("pause", self.name, status=1).stderr)
        self.oci("resume", self.name)
        self.assertEqual(self.status(), "running")
        self.assertIn("cannot resume", self.oci("resume", self.name, status=1).stderr)
        self.run_exec(self.name, "true")
        self.delete()

    def test_console_sockets(self):
        self.bundle("tty")
        self.config["process"].update({"terminal": True, "consoleSize": {"height": 33, "width": 44}})
        self.config["process"]["args"] = ["sh", "-c", "tty; stty size; ls -l /dev/console | cut -c1"]
        self.save()
        self.assertIn("needs --console-socket", self.create(status=1))
        console = ConsoleSocket(self.dir)
        self.addCleanup(console.close)
        self.create("--console-socket", console.path)
        self.oci("start", self.name)
        self.assertEqual(console.read(), "/dev/pts/0\n33 44\nc\n")
        self.wait_for("stopped")
        self.oci("delete", self.name)

    def test_console_of_exec(self):
        self.started("sleep", "1000")
        console = ConsoleSocket(self.dir)
        self.addCleanup(console.close)
        self.run_exec("-t", "-d", "--console-socket", console.path, self.name, "tty")
        self.assertEqual(console.read(), "/dev/pts/0\n")
        self.assertIn("a terminal needs --console-socket", self.run_exec("-t", "-d", self.name, "tty", status=1).stderr)
        self.delete()

    def test_a_terminal_that_something_was_mounted_over(self):
        """Whoever has the privilege in there could have the runtime open anything of his as a terminal."""
        self.bundle("sh", "-c", "mkfifo /tmp/fifo && mount -o bind /tmp/fifo /dev/pts/ptmx && touch /tmp/ready && sleep 1000")
        for name in ("bounding", "effective", "permitted"):
            self.config["process"]["capabilities"][name].append("CAP_SYS_ADMIN")
        self.save()
        self.create()
        self.oci("start", self.name)
        until(lambda: os.path.exists(os.path.join(self.rootfs, "tmp", "ready")), what="the mount")
        console = ConsoleSocket(self.dir)
        self.addCleanup(console.close)
        self.assertIn("make a terminal: Invalid cross-device link",
                      self.run_exec("-t", "-d", "--console-socket", console.path, self.name, "tty", status=1).stderr)
        self.delete()

    def test_terminal_in_the_foreground(self):
        self.bundle("sh", "-c", "tty; read x; echo got $x; exit 3")
        self.config["process"]["terminal"] = True
        self.save()
        pid, master = pty.fork()
        if pid == 0:
            os.execv(oci_test.RUNTIME, [oci_test.RUNTIME, "--root", self.root, "run", "--bundle", self.path, self.name])
        os.write(master, b"word\r")
        text = b""
        while b"got word" not in text:
            text += os.read(master, 4096)
        self.assertIn(b"/dev/pts/0", text)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 3)
        os.close(master)

    def test_descriptors_that_are_passed_on(self):
        self.bundle("sh", "-c", "cat <&3; cat <&4; ls /proc/self/fd | wc -l; echo $LISTEN_FDS $LISTEN_PID")
        files = []
        for text in ("three", "four"):
            fd = os.memfd_create(text)
            os.write(fd, text.encode() + b"\n")
            os.lseek(fd, 0, os.SEEK_SET)
            files.append(fd)

        def place():
            high = [os.dup(fd) for fd in files]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)

        done = subprocess.run([oci_test.RUNTIME, "--root", self.root, "run", "--bundle", self.path, "--preserve-fds", "1",
                               self.name], preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL, text=True, check=True,
                              stdout=subprocess.PIPE, env={**os.environ, "LISTEN_FDS": "1"}, timeout=oci_test.TIMEOUT)
        # 0, 1, 2, 3, 4, and that of the directory.
        self.assertEqual(done.stdout, "three\nfour\n6\n1 1\n")
        for fd in files:
            os.close(fd)
        self.assertIn("descriptor 3 is not open", self.run_it("--preserve-fds", "1", status=1).stderr)
        self.assertIn("--preserve-fds", self.run_it("--preserve-fds", "x", status=1).stderr)

    def test_the_program_cannot_be_written_to(self):
        """security.md A01: what a process of ours shows of itself in a container stays read-only when it has ended."""
        self.runtime = shutil.copy(oci_test.RUNTIME, os.path.join(self.dir, "nacre-oci"))
        with open(self.runtime, "rb") as f:
            before = hashlib.sha256(f.read()).digest()
        first = self.started("sleep", "1000")
        for ns in self.config["linux"]["namespaces"]:
            if ns["type"] == "pid":
                ns["path"] = f"/proc/{first}/ns/pid"
        self.save()
        name, self.name = self.name, self.name + "-b"
        self.create()
        self.name = name
        script = ("for p in /proc/[0-9]*; do case $(readlink $p/exe) in /bin/*) ;; *) exec 9< $p/exe; echo found;; esac; done;"
                  "touch /tmp/open; while ! test -e /tmp/go; do sleep 0.1; done;"
                  "while (echo x >> /proc/self/fd/9) 2>&1 | tee /tmp/said | grep -q busy; do sleep 0.1; done; touch /tmp/done")
        process = os.path.join(self.dir, "process.json")
        for name in ("bounding", "effective", "permitted"):
            self.config["process"]["capabilities"][name].append("CAP_SYS_PTRACE")
        with open(process, "w", encoding="utf-8") as f:
            json.dump({**self.config["process"], "args": ["sh", "-c", script]}, f)
        with open(os.path.join(self.dir, "out"), "w", encoding="utf-8") as out:
            subprocess.run([self.runtime, "--root", self.root, "exec", "-d", "--process", process, self.name], check=True,
                           stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=oci_test.TIMEOUT)
        inside = os.path.join(self.rootfs, "tmp")
        until(lambda: os.path.exists(os.path.join(inside, "open")), what="the program of the runtime, opened")
        with open(os.path.join(self.dir, "out"), encoding="utf-8") as out:
            self.assertEqual(out.read(), "found\n")
        self.oci("delete", "--force", self.name + "-b")
        open(os.path.join(inside, "go"), "w", encoding="utf-8").close()
        until(lambda: os.path.exists(os.path.join(inside, "done")), what="an answer other than busy")
        with open(os.path.join(inside, "said"), encoding="utf-8") as f:
            self.assertIn("Read-only file system", f.read())
        with open(self.runtime, "rb") as f:
            self.assertEqual(hashlib.sha256(f.read()).digest(), before)
        self.delete()

    def test_signals_go_to_the_program(self):
        self.started("sleep", "1000")
        run = subprocess.Popen([oci_test.RUNTIME, "--root", self.root, "exec", self.name, "sh", "-c",
                                "trap 'exit 8' USR2; echo ready; while :; do sleep 0.1; done"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        with run.stdout:
            self.assertEqual(run.stdout.readline(), "ready\n")
            run.send_signal(signal.SIGUSR2)
            self.assertEqual(run.wait(oci_test.TIMEOUT), 8)
        until(lambda: len(json.loads(self.oci("ps", "-f", "json", self.name).stdout)) == 1)
        self.delete()
