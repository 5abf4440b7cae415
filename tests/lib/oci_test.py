# SPDX-License-Identifier: Apache-2.0
"""Bundles and containers of `nacre-oci` to test.

    class Runs(oci_test.OciTest):
        def test_runs(self):
            self.bundle("echo", "hello")
            self.assertEqual(self.oci("run", self.name).stdout, "hello\\n")

Each test has a --root, a bundle and an ID of its own; what it leaves behind is removed, and is a failure where the test did
not say keep().
"""
import ctypes
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

import host

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.normpath(os.path.join(ROOT, os.environ.get("NACRE_BUILD", "build")))
RUNTIME = os.path.join(BUILD, "nacre-oci")
PROBE = os.path.join(BUILD, "tests", "probe", "probe")
BUSYBOX = "/bin/busybox"
SANITIZED = os.path.basename(BUILD).endswith(("asan", "tsan"))
SLOWNESS = 4 if SANITIZED else 1
TIMEOUT = 60 * SLOWNESS
# CAP_NET_ADMIN and the like are added where a test needs them.
CAPS = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP",
        "CAP_NET_BIND_SERVICE", "CAP_KILL"]


def until(condition, seconds=60.0, what="it"):
    end = time.monotonic() + seconds * SLOWNESS
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true within {seconds * SLOWNESS:.0f} s")
        time.sleep(0.02)


def reap_orphans(but):
    """Takes in what has ended of the children that nobody waits for; never true."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as f:
        children = [int(word) for word in f.read().split()]
    for pid in children:
        if pid != but:
            os.waitpid(pid, os.WNOHANG)
    return False


def become_subreaper():
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)


def make_rootfs(path):
    for name in ("bin", "dev", "proc", "sys", "tmp", "etc", "mnt"):
        os.makedirs(os.path.join(path, name))
    shutil.copy(BUSYBOX, os.path.join(path, "bin", "busybox"))
    shutil.copy(PROBE, os.path.join(path, "bin", "probe"))
    for name in subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split():
        link = os.path.join(path, "bin", name)
        if not os.path.lexists(link):
            os.symlink("busybox", link)
    return path


class OciTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        become_subreaper()
        self.runtime = RUNTIME
        self.dir = tempfile.mkdtemp(prefix="oci-")
        self.root = os.path.join(self.dir, "state")
        self.path = os.path.join(self.dir, "bundle")
        self.rootfs = os.path.join(self.path, "rootfs")
        os.mkdir(self.path)
        make_rootfs(self.rootfs)
        self.name = "c" + os.path.basename(self.dir)[4:].replace("_", "-")
        self.addCleanup(self.clean)
        self.config = None

    def clean(self):
        left = os.listdir(self.root) if os.path.isdir(self.root) else []
        for name in left:
            subprocess.run([RUNTIME, "--root", self.root, "delete", "--force", name], check=False, timeout=TIMEOUT)
        groups = [g for g in self.groups() if os.path.isdir(g)]
        shutil.rmtree(self.dir, ignore_errors=True)
        self.assertEqual(groups, [], "groups are left")

    def groups(self):
        """The cgroups named after the container."""
        own = host.own_cgroup()
        near = [own, os.path.dirname(own)] if own else []
        return [os.path.join(d, n) for d in near for n in os.listdir(d) if self.name in n]

    def bundle(self, *args, **process):
        """A config.json as `spec` writes it, without a terminal, for this command."""
        path = os.path.join(self.path, "config.json")
        if os.path.exists(path):
            os.unlink(path)
        subprocess.run([RUNTIME, "spec", "--bundle", self.path], check=True, timeout=TIMEOUT)
        with open(path, encoding="utf-8") as f:
            self.config = json.load(f)
        self.config["process"].update({"terminal": False, "args": list(args), **process})
        self.config["root"]["readonly"] = False
        self.config["process"]["env"] = ["PATH=/bin"]
        self.save()
        return self.config

    def save(self):
        with open(os.path.join(self.path, "config.json"), "w", encoding="utf-8") as f:
            json.dump(self.config, f)

    def caps(self, *more):
        for name in ("bounding", "effective", "permitted"):
            self.config["process"]["capabilities"][name] = CAPS + list(more)
        self.save()

    def oci(self, *args, status=0, flags=(), **kwargs):
        """Runs the runtime; status None: any."""
        command = [self.runtime, "--root", self.root, *flags, *args]
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=TIMEOUT, **kwargs)
        if status is not None:
            self.assertEqual(done.returncode, status, f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done

    def run_it(self, *flags, status=0, **kwargs):
        return self.oci("run", "--bundle", self.path, *flags, self.name, status=status, **kwargs)

    def create(self, *flags, status=0, **kwargs):
        """`create` with the streams of the container nowhere; the error text, if there is one."""
        path = os.path.join(self.dir, "stderr")
        with open(path, "w+", encoding="utf-8") as err:
            done = subprocess.run([self.runtime, "--root", self.root, "create", "--bundle", self.path, *flags, self.name],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err, check=False,
                                  timeout=TIMEOUT, **kwargs)
            err.seek(0)
            text = err.read()
        self.assertEqual(done.returncode, status, text)
        return text

    def state(self):
        return json.loads(self.oci("state", self.name).stdout)

    def status(self):
        return self.state()["status"]

    def wait_for(self, status):
        until(lambda: self.status() == status, what=f"the status {status}")

    def started(self, *args, **process):
        """A running container; its pid."""
        self.bundle(*args, **process)
        self.create()
        self.oci("start", self.name)
        return self.state().get("pid")

    def delete(self):
        """By force. What has been detached is an orphan of this process: it must be reaped, or its namespace stays."""
        done = subprocess.Popen([RUNTIME, "--root", self.root, "delete", "--force", self.name], stdin=subprocess.DEVNULL)
        until(lambda: reap_orphans(done.pid) or done.poll() is not None, what="the end of delete")
        self.assertEqual(done.returncode, 0)
        self.assertFalse(os.path.exists(os.path.join(self.root, self.name)))
