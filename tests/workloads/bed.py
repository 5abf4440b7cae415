# SPDX-License-Identifier: Apache-2.0
"""One case of the matrix on a daemon: its pod, its clients, its end.

    class Redis(Case):
        def show(self): ...      # its work, by a client of the field; raises AssertionError
        def kept(self): ...      # what must be there again, in a new pod on the same volume (`renew`) or after a start

Case.go() is the whole course: start, show, stop gracefully within STOP_TIME, and once more if there is something to keep.
"""
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

import nacre_test
from nacre_test import until

# Between asking and killing: what ends by itself does so earlier.
STOP_TIME = 30


class Case:
    # What is kept is in a volume, and seen in a new pod; else `nacre start` begins the same pod again.
    renew = True
    start_seconds = 60
    # Of its microVM: programs, and what they write beside volumes, have no more.
    vm_memory = "512m"
    # Images of other rows that it needs too.
    OTHERS = ()

    def __init__(self, node, row, kind="cell"):
        self.node, self.row, self.name, self.kind = node, row, row.name, kind
        self.dir = tempfile.mkdtemp(prefix="workload-")

    # -- the pod --

    def kind_options(self):
        return ("--kind", "vm", "-m", self.vm_memory) if self.kind == "vm" else ()

    def run(self, *options, image="", name="", command=()):
        self.node.cli("run", "-d", "--name", name or self.name, *self.kind_options(), *options, image or self.name, *command, seconds=240)

    def beside(self, name, *options, image="", command=()):
        """A pod that only helps: never in a microVM."""
        self.node.cli("run", "-d", "--name", name, *options, image or self.name, *command, seconds=120)

    def start(self):
        self.run(*self.row.options)

    def cli(self, *args, **kwargs):
        return self.node.cli(*args, **kwargs).stdout

    def exec(self, *words, user="", check=True, stdin=None):
        user = ("--user", user) if user else ()
        interactive = ("-i",) if stdin is not None else ()
        return self.cli("exec", *user, *interactive, self.name, *words, check=check, stdin=stdin)

    def client(self, *words, image="", env=(), check=True, stdin=None):
        """What a program in another pod prints; its image is that of the case."""
        interactive = ("-i",) if stdin is not None else ()
        return self.cli("run", "--rm", *interactive, *(f"--env={e}" for e in env), "--user", "0", image or self.name, *words,
                        check=check, stdin=stdin)

    def log(self):
        done = self.node.cli("logs", self.name, check=False)
        return done.stdout + done.stderr

    def alive(self):
        running = [w["name"] for w in self.node.json("ps") if w["state"] == "running"]
        if self.name not in running:
            raise AssertionError(f"{self.name} has ended:\n{self.log()[-3000:]}")

    def until(self, read, what, seconds=0):
        """Waits until read() returns something true and raises nothing; the server is alive meanwhile."""
        last = None

        def tried():
            nonlocal last
            try:
                return read()
            except (OSError, AssertionError, subprocess.SubprocessError) as e:
                last = e
                self.alive()
                time.sleep(0.1)
                return None

        try:
            return until(tried, (seconds or self.start_seconds) * (4 if self.kind == "vm" else 1), what)
        except AssertionError as e:
            raise AssertionError(f"{e}; {last}\n{self.log()[-3000:]}") from None

    def stop(self):
        before = time.monotonic()
        self.cli("stop", "-t", str(STOP_TIME), self.name, seconds=STOP_TIME + 60)
        took = time.monotonic() - before
        status = int(self.cli("wait", self.name).split()[-1])
        log = self.log()
        if status not in self.row.status or took >= STOP_TIME:
            raise AssertionError(f"stop: status {status} after {took:.1f} s, not {self.row.status}\n{log[-3000:]}")
        if self.row.log and not re.search(self.row.log, log):
            raise AssertionError(f"stop: no {self.row.log!r} in its log:\n{log[-3000:]}")
        return took

    def show(self):
        raise NotImplementedError

    def kept(self):
        """Nothing, unless a case has it."""

    def again(self):
        if self.renew:
            self.cli("rm", self.name)
            self.start()
        else:
            self.cli("start", self.name)
        self.kept()
        self.stop()

    def go(self):
        """Returns the seconds that its graceful end took."""
        try:
            self.start()
            self.show()
            took = self.stop()
            # What a microVM wrote beside its volumes goes with it: it is not started again.
            if type(self).kept is not Case.kept and (self.renew or self.kind != "vm"):
                self.again()
            return took
        finally:
            self.clear()

    def clear(self):
        self.node.clear()
        for volume in self.node.json("volume", "ls"):
            self.node.cli("volume", "rm", volume["name"], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)

    # -- clients --

    def equal(self, wanted, found):
        if wanted != found:
            raise AssertionError(f"{wanted!r} was expected, not {found!r}\n{self.log()[-3000:]}")

    def has(self, wanted, found):
        if wanted not in found:
            raise AssertionError(f"{wanted!r} is not in {found!r}\n{self.log()[-3000:]}")

    def page(self, port, path="/"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.read().decode()

    def shows_page(self, port, text, path="/"):
        self.until(lambda: text in self.page(port, path), f"{text} at port {port}")

    def talk(self, port, *lines, end=b""):
        """Sends each line and collects an answer until `end` of it, over the published port."""
        with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
            answers = []
            for line in lines:
                s.sendall(line.encode())
                got = b""
                while not got.endswith(end or b"\n"):
                    data = s.recv(65536)
                    if not data:
                        raise AssertionError(f"closed behind {got!r}")
                    got += data
                answers.append(got.decode())
            return answers

    def host(self, *words, check=True, **kwargs):
        """A program of the host."""
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False, timeout=120,
                              stdin=kwargs.pop("stdin", subprocess.DEVNULL), **kwargs)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}\n{self.log()[-3000:]}")
        return done.stdout

    def key(self, home, user):
        """A key of ssh for a user of the pod; the options with which ssh uses it."""
        key = os.path.join(self.dir, "key")
        if not os.path.exists(key):
            self.host("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        with open(key + ".pub", encoding="utf-8") as f:
            self.exec("sh", "-c", f"mkdir -p {home}/.ssh && cat >{home}/.ssh/authorized_keys && chown -R {user}:{user} {home}/.ssh && "
                      f"chmod 700 {home}/.ssh", stdin=f.read())
        return ["-i", key, "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={self.dir}/known", "-o",
                "StrictHostKeyChecking=accept-new", "-F", "/dev/null"]
