# SPDX-License-Identifier: Apache-2.0
"""Volumes that change as a whole in a pod with a kernel of its own (src/pod/storage/mirror.h), through a whole node: directories as a kubelet
makes them, and small ones in memory."""
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import host
import machines
import nacre_test
import steps
from machines import load_tests  # noqa: F401

SECOND = 1.0
SECRET = "a-word-that-is-nowhere-else-"
NODES = "of-the-node-"
SWAPS = 200
FILES_MAX = 256
# Looks as fast as the guest can: both files of the generation that it has entered, and one by its name. A shell alone, no process.
READER = """
touch /tmp/begun
while [ ! -e /tmp/stop ]; do
  read x 2>/dev/null < /s/a || echo gone by name
  if cd -P /s/..data 2>/dev/null; then
    read a 2>/dev/null < a || echo gone a
    read b 2>/dev/null < b || echo gone b
    [ "$a" = "$b" ] || echo "torn: $a $b"
    [ "$a" = "$last" ] || seen=$((seen + 1))
    last=$a
    rounds=$((rounds + 1))
  else
    echo gone whole
  fi
done
echo "seen $seen of $rounds"
"""


def write(path, text, mode=0o644):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, mode)


class Kubelet:
    """A directory that changes by one rename, the old one being removed at once."""

    def __init__(self, path):
        self.path, self.n = path, 0
        os.mkdir(path)
        self.swap()
        for name in ("a", "b"):
            os.symlink(f"..data/{name}", os.path.join(path, name))

    def swap(self):
        old = os.path.join(self.path, f"..2026_{self.n}")
        self.n += 1
        new = os.path.join(self.path, f"..2026_{self.n}")
        os.mkdir(new)
        for name in ("a", "b"):
            write(os.path.join(new, name), self.text() + "\n", 0o440)
            os.chown(os.path.join(new, name), 12, 34)
        os.symlink(os.path.basename(new), os.path.join(self.path, "..tmp"))
        os.rename(os.path.join(self.path, "..tmp"), os.path.join(self.path, "..data"))
        shutil.rmtree(old, ignore_errors=True)

    def text(self):
        return f"{SECRET}{self.n}"


class Secrets(steps.StepsTest):
    """One pod that mounts three of them."""

    @classmethod
    def setUpClass(cls):
        machines.need()
        cls.place = tempfile.mkdtemp(prefix="ns-")
        cls.addClassCleanup(shutil.rmtree, cls.place)
        cls.memory = tempfile.mkdtemp(prefix="ns-", dir="/dev/shm")
        cls.addClassCleanup(shutil.rmtree, cls.memory)
        cls.kubelet = Kubelet(os.path.join(cls.place, "secret"))
        for name in ("plain", "full"):
            os.mkdir(os.path.join(cls.memory, name))
        os.mkdir(os.path.join(cls.memory, "plain", "in"), 0o700)
        write(os.path.join(cls.memory, "plain", "in", "x"), "first\n", 0o400)
        for i in range(FILES_MAX):
            write(os.path.join(cls.memory, "full", f"f{i}"), "")
        cls.node = nacre_test.Node()
        try:
            cls.image("busybox")
            machines.build_set(cls.node)
            cls.node.kill()
            subprocess.run(["mount", "-t", "tmpfs", "none", cls.node.run + "/secrets"], check=True)
            cls.addClassCleanup(subprocess.run, ["umount", "-l", cls.node.run + "/secrets"], check=False)
            cls.node.start()
            cls.node.cli("secret", "create", "key", "-", stdin=NODES + "key")
            cls.node.cli("run", "-d", "--kind", "vm", "--name", "p", "--secret", "key,mode=0400,uid=3", "--secret", "key,type=env,target=KEY", "--secret", "key,target=/etc/key",
                         "-v", f"{cls.place}/secret:/s:ro", "-v", f"{cls.memory}/plain:/plain:ro",
                         "-v", f"{cls.memory}/full:/full:ro", "busybox", "sleep", "100000", seconds=240)
        except BaseException:
            print(cls.node.log())
            cls.node.destroy()
            raise

    @classmethod
    def tearDownClass(cls):
        try:
            cls.node.clear()
        finally:
            said = cls.node.destroy()
        if said:
            raise AssertionError("\n".join(said))

    def setUp(self):
        """What is there stays for the next test."""

    def guest(self, script, check=True):
        return self.node.cli("exec", "p", "sh", "-c", script, check=check)

    def has(self, path):
        return self.guest(f"cat {path}", check=False).stdout.strip()

    def await_in_guest(self, path, text):
        nacre_test.until(lambda: self.has(path) == text, what=f"{text} in {path}")

    def kept(self, word):
        """The node has said that a volume keeps what it had."""
        nacre_test.until(lambda: any("keeps what it had" in line and word in line for line in self.node.log().splitlines()),
                         what=f"the word that a volume keeps what it had: {word}")

    def test_a_in_memory_and_read_only(self):
        self.assertEqual(self.kubelet.text(), self.has("/s/a"))
        for path in ("/s", "/plain", "/full"):
            self.assertRegex(self.guest(f"grep ' {path} ' /proc/mounts").stdout, rf" {path} tmpfs ro,nosuid,nodev,")
        self.assertEqual("12:34 440\n", self.guest("stat -L -c '%u:%g %a' /s/a").stdout)
        self.assertEqual("700 400\n", self.guest("echo $(stat -L -c %a /plain/in /plain/in/x)").stdout)
        for script in ("echo x > /s/a", "touch /s/new", "rm /plain/in/x", "ln -sf x /s/..data"):
            self.assertIn("Read-only file system", self.guest(script, check=False).stderr, script)
        self.assertEqual(f"{FILES_MAX}\n", self.guest("ls /full | wc -l").stdout)
        # None of them is a volume of the machine's file system.
        pid = int(host.read(os.path.join(self.cgroup_dir("p"), "share", "cgroup.procs")).split()[0])
        self.assertNotIn(self.place, host.read(f"/proc/{pid}/mountinfo"))
        self.assertNotIn(os.path.basename(self.memory), host.read(f"/proc/{pid}/mountinfo"))

    def test_a_secret_of_the_node(self):
        """In the same way, over a restart of the daemon as well; and as a variable."""
        self.assertRegex(self.guest("grep ' /run/secrets ' /proc/mounts").stdout, r" tmpfs ro,nosuid,nodev,")
        self.assertEqual("3:0 400\n", self.guest("stat -L -c '%u:%g %a' /run/secrets/key").stdout)
        self.assertEqual(f"{NODES}key {NODES}key {NODES}key\n", self.guest("echo $(cat /run/secrets/key) $(cat /etc/key) $KEY").stdout)
        for n in (1, 2):
            self.node.cli("secret", "create", "--replace", "key", "-", stdin=f"{NODES}{n}")
            self.await_in_guest("/run/secrets/key", f"{NODES}{n}")
            self.node.restart()

    def test_b_all_old_or_all_new(self):
        self.guest(f"setsid sh -c '{READER}' > /tmp/said 2>&1 < /dev/null & true")
        nacre_test.until(lambda: self.guest("test -e /tmp/begun", check=False).returncode == 0, what="the reader")
        for n in range(SWAPS):
            self.kubelet.swap()
            if n == SWAPS // 2:
                self.node.restart()
            time.sleep(0.03)
        time.sleep(SECOND)
        self.assertEqual(self.kubelet.text(), self.has("/s/a"))
        self.guest("touch /tmp/stop")
        nacre_test.until(lambda: "seen" in self.has("/tmp/said"), what="the end of the reader")
        said = self.has("/tmp/said")
        self.assertRegex(said, r"^seen \d+ of \d+$")
        seen, rounds = (int(w) for w in said.split() if w.isdigit())
        self.assertGreater(seen, 3)
        self.assertGreater(rounds, 50)
        # What is over is gone, some seconds later.
        nacre_test.until(lambda: self.guest("ls -a /s | grep -c '^..g'").stdout == "1\n", what="the end of older generations")

    def test_c_names_come_and_go(self):
        path = os.path.join(self.memory, "plain")
        write(os.path.join(path, "in", "x"), "second\n")
        self.await_in_guest("/plain/in/x", "second")
        write(os.path.join(path, "y"), "third\n")
        self.await_in_guest("/plain/y", "third")
        os.unlink(os.path.join(path, "y"))
        nacre_test.until(lambda: self.guest("ls /plain").stdout == "in\n", what="the end of y")

    def test_d_limits(self):
        """One more than there may be: what was there stays, and that is said; then it fits again."""
        path = os.path.join(self.memory, "full")
        write(os.path.join(path, "f0"), "new\n")
        self.await_in_guest("/full/f0", "new")
        with nacre_test.Events(self.node, "p") as events:
            write(os.path.join(path, "more"), "")
            self.kept("more than 257 files")
            nacre_test.until(lambda: any("keeps what it had" in e.reason for e in list(events.seen)), what="the event")
        self.assertEqual(f"{FILES_MAX}\n", self.guest("ls /full | wc -l").stdout)
        write(os.path.join(path, "f0"), "newer\n")
        os.unlink(os.path.join(path, "f1"))
        self.await_in_guest("/full/f0", "newer")

    def test_e_a_daemon_that_was_away(self):
        """What changed meanwhile is given by the next daemon, and what changes from then on."""
        self.node.kill()
        self.kubelet.swap()
        self.node.start()
        self.await_in_guest("/s/a", self.kubelet.text())
        self.kubelet.swap()
        self.await_in_guest("/s/b", self.kubelet.text())
        self.node.restart(signal.SIGTERM)
        self.kubelet.swap()
        self.await_in_guest("/s/b", self.kubelet.text())
        self.assertEqual("[]", self.node.cli("-o", "json", "check").stdout.strip())

    def test_f_nowhere_on_the_node(self):
        """Neither in its directories nor in its log, nor in what a process was started with."""
        self.assertEqual(self.kubelet.text(), self.has("/s/a"))
        word = SECRET.encode()
        for top in (self.node.run, self.node.root):
            for at, _, names in os.walk(top):
                for name in names:
                    path = os.path.join(at, name)
                    if stat.S_ISREG(os.lstat(path).st_mode):
                        with open(path, "rb") as f:
                            self.assertNotIn(word, f.read(), path)
        self.assertNotIn(SECRET, self.node.log())
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for name in ("cmdline", "environ"):
                self.assertNotIn(SECRET, host.read(f"/proc/{pid}/{name}", ""))
        # Not dumpable: what it is is root's alone.
        self.assertEqual(0, os.stat(f"/proc/{self.node.pid}/maps").st_uid)

    def test_z_gone(self):
        """A volume that is removed keeps what it had."""
        text = self.kubelet.text()
        shutil.rmtree(self.kubelet.path)
        self.kept("it was removed")
        self.assertEqual(text, self.has("/s/a"))
        self.remove("p", force=True)


if __name__ == "__main__":
    unittest.main()
