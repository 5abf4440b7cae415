# SPDX-License-Identifier: Apache-2.0
"""`nacre daemon` as pid 1 of a pid namespace, in a root of its own.

    with pid1.Box("spare: no\n") as box:
        box.up()
        box.cli("run", "-d", "--name", "web", "busybox", "sleep", "1000")
        box.signal(signal.SIGTERM)
        box.wait()
"""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import host
import images
import nacre_test
from nacre_test import until

# Of the host, so that a build with sanitizers finds its libraries and a client of DHCP its shell.
SHARED = ("usr", "bin", "sbin", "lib", "lib64")
EMPTY = ("proc", "sys", "dev", "run", "tmp", "etc", "var", "srv")
QUIET = "spare: no\nnetwork:\n  default: none\nvm:\n  hardware: no\n  templates: no\n"
SOCKET = "/srv/nacre.sock"


def run(*words, check=True, **kwargs):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60 * nacre_test.SLOWNESS, **kwargs)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


class Box:
    """A root with nothing mounted in it but the host's programs, and a network with lo alone that is down."""

    def __init__(self, config="", empty=EMPTY):
        self.dir = tempfile.mkdtemp(prefix="np-")
        self.root, self.log_path = os.path.join(self.dir, "root"), os.path.join(self.dir, "log")
        self.socket = self.root + SOCKET
        self.process = self.pid = None
        # What an earlier one has left must not be taken for what this one has.
        self.group = os.path.join(host.own_cgroup(), os.path.basename(self.dir))
        os.mkdir(self.group)
        self.mounted = []
        for name in empty:
            os.makedirs(os.path.join(self.root, name))
        self.mount("--bind", self.root, self.root)
        for name in SHARED:
            if os.path.islink("/" + name):
                os.symlink(os.readlink("/" + name), os.path.join(self.root, name))
            elif os.path.isdir("/" + name):
                self.bind("/" + name)
        self.bind(nacre_test.BUILD)
        self.configure(config)

    def path(self, name):
        return self.root + name

    def mount(self, *words):
        run("mount", *words)
        self.mounted.append(words[-1])

    def bind(self, path):
        os.makedirs(self.path(path), exist_ok=True)
        self.mount("--rbind", path, self.path(path))

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.path(name), mode)

    def configure(self, text):
        self.write("/etc/nacre/config.yaml", QUIET + text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    def start(self, shell="", log=None):
        """shell: what is done in its namespaces and its root before it. log: the descriptor of its output, in place of the file."""
        words = [nacre_test.BINARY, "daemon", "--socket", SOCKET]
        with open(self.log_path, "ab") as file:
            log = file if log is None else log
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", 'echo 0 > "$0" && exec "$@"', os.path.join(self.group, "cgroup.procs"), "unshare", "--net", "--pid", "--fork", "--kill-child", "chroot", self.root, "/bin/sh", "-c",
                 f'{shell}\nexec "$@"', "sh", *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        until(self.children_of_unshare, what="it is cloned")
        self.pid = self.children_of_unshare()[0]

    def children_of_unshare(self):
        return [int(p) for p in host.read(f"/proc/{self.process.pid}/task/{self.process.pid}/children").split()]

    def up(self, **kwargs):
        if self.process is None:
            self.start(**kwargs)
        until(self.serves, what=f"it serves: {self.log()}")

    def serves(self):
        if self.process.poll() is not None:
            raise AssertionError(f"pid 1 has ended with status {self.process.returncode}:\n{self.log()}")
        return self.cli("info", check=False).returncode == 0

    def cli(self, *words, check=True, **kwargs):
        done = subprocess.run([nacre_test.BINARY, "--socket", self.socket, *words], capture_output=True, text=True, check=False,
                              timeout=60 * nacre_test.SLOWNESS, stdin=subprocess.DEVNULL, **kwargs)
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: {done.stderr}\n{self.log()}")
        return done

    def json(self, *words):
        return json.loads(self.cli(*words, "-o", "json").stdout)

    def busybox(self):
        self.cli("image", "import", "--name", "busybox", images.path("busybox"))

    def log(self):
        return host.read(self.log_path)

    def inside(self, *words, **kwargs):
        """A command in its namespaces and its root, as whoever comes with nsenter."""
        return run("nsenter", "-t", str(self.pid), "-m", "-n", "-p", "-r", "-w", "--", *words, **kwargs)

    def process_ids(self):
        """{pid inside: pid outside} of all that is in its pid namespace."""
        own = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = {}
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.readlink(f"/proc/{name}/ns/pid") == own:
                    status = host.read(f"/proc/{name}/status")
                    found[int(status.split("NSpid:")[1].split("\n")[0].split()[-1])] = int(name)
            except (OSError, IndexError):
                pass
        return found

    def children(self):
        return [int(p) for p in host.read(f"/proc/{self.pid}/task/{self.pid}/children").split()]

    def daemon(self):
        """The pid outside of the daemon that serves; None where there is none."""
        found = [p for p in self.children() if b"daemon" in open(f"/proc/{p}/cmdline", "rb").read()]
        return found[0] if found else None

    def mounts(self):
        """{mount point: (mount id, file system)} as pid 1 has them."""
        found = {}
        for line in host.read(f"/proc/{self.pid}/mountinfo").splitlines():
            words, _, rest = line.partition(" - ")
            found[words.split()[4]] = (int(words.split()[0]), rest.split()[0])
        return found

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, seconds=60.0):
        """The exit status, as whoever has started it sees it."""
        began = time.monotonic()
        try:
            status = self.process.wait(seconds * nacre_test.SLOWNESS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end:\n{self.log()}") from None
        print(f"# ended after {time.monotonic() - began:.1f} s")
        return status

    def destroy(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            until(lambda: not os.path.exists(f"/proc/{self.pid}") or "Z" in host.read(f"/proc/{self.pid}/stat"), what="it is gone")
        host.end_cgroup(self.group)
        for path in reversed(self.mounted):
            run("umount", "-l", path, check=False)
        self.mounted = []
        # Never through a mount that is still there into the host's own directories.
        left = [m for m in host.read("/proc/self/mountinfo").splitlines() if m.split()[4].startswith(self.dir + "/")]
        if left:
            raise AssertionError(f"still mounted: {left}")
        shutil.rmtree(self.dir, ignore_errors=True)


def stop(box, number=signal.SIGTERM, **kwargs):
    box.signal(number)
    return box.wait(**kwargs)
