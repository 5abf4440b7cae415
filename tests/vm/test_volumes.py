# SPDX-License-Identifier: Apache-2.0
"""Volumes of pods with a kernel of their own (src/pod/storage/shares.h, src/vm/disk/share.h), through a whole node and its command line."""
import json
import os
import re
import resource
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


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


class Volumes(steps.StepsTest):
    """One pod, with one container that can write to what the other one only reads."""

    @classmethod
    def setUpClass(cls):
        machines.need()
        cls.place = tempfile.mkdtemp(prefix="nv-")
        cls.addClassCleanup(shutil.rmtree, cls.place)
        for name in ("both", "ro"):
            os.mkdir(os.path.join(cls.place, name))
        for name, text in (("outside", "secret"), ("ro/f", "ours"), ("one", "first"), ("oneRO", "first")):
            write(os.path.join(cls.place, name), text)
        # More than what is given as files (test_secrets.py), wherever it lies.
        write(os.path.join(cls.place, "ro/big"), "x" * 1_100_000)
        cls.node = nacre_test.Node()
        try:
            cls.image("busybox")
            machines.build_set(cls.node)
            cls.run_pod("-v", f"{cls.place}/both:/both", "-v", f"{cls.place}/ro:/ro:ro", "-v", f"{cls.place}/one:/etc/one",
                        "-v", f"{cls.place}/oneRO:/etc/two:ro", "--tmpfs", "/mem", "--tmpfs", "/deep/sub", "--tmpfs", "/deep")
        except BaseException:
            print(cls.node.log())
            cls.node.destroy()
            raise

    @classmethod
    def run_pod(cls, *options):
        cls.node.cli("run", "-d", "--kind", "vm", "--name", "p", *options, "busybox", "sleep", "100000", seconds=240)

    @classmethod
    def tearDownClass(cls):
        try:
            cls.node.clear()
            left = cls.left()
        finally:
            said = cls.node.destroy()
        if left or said:
            raise AssertionError("\n".join(["left behind:", *left, said]))

    @classmethod
    def left(cls):
        """Of machines: directories, groups, processes."""
        groups = [g for g in os.listdir(cls.node.cgroup()) if g.startswith("inst.")]
        stats = [host.read(f"/proc/{p}/stat", "") for p in host.cgroup_pids(host.own_cgroup())]
        # Those that lost their parent wait for another one to take them away.
        alive = [s for s in stats if re.search(r"\((virtiofsd|qemu-system).*\) [^Z]", s)]
        return os.listdir(os.path.join(cls.node.run, "i")) + groups + alive

    def setUp(self):
        """What is there stays for the next test."""

    def at(self, *names):
        return os.path.join(self.place, *names)

    def guest(self, script, check=True):
        return self.node.cli("exec", "p", "sh", "-c", script, check=check)

    def test_deeper_targets_are_mounted_later(self):
        self.assertEqual("/deep\n/deep/sub\n", self.guest("grep -o ' /deep[^ ]*' /proc/self/mountinfo | tr -d ' '").stdout)

    def test_both_ways_within_a_second(self):
        self.guest("echo theirs > /both/a")
        self.assertEqual("theirs\n", read(self.at("both", "a")))
        write(self.at("both", "b"), "old")
        self.assertEqual("old", self.guest("cat /both/b").stdout)
        write(self.at("both", "b"), "new")
        changed = time.monotonic()
        time.sleep(max(0, SECOND - 0.3))
        self.assertEqual("new", self.guest("cat /both/b").stdout)
        self.assertLess(time.monotonic() - changed, 60)
        # Names that were not there, and owners.
        self.guest("test ! -e /both/c && mkdir /both/d && chown 12:34 /both/d && chmod 2750 /both/d")
        st = os.stat(self.at("both", "d"))
        self.assertEqual((12, 34, 0o2750), (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)))
        write(self.at("both", "c"), "x")
        time.sleep(SECOND - 0.3)
        self.assertEqual("x", self.guest("cat /both/c").stdout)

    def test_read_only_is_the_nodes_word(self):
        for script in ("echo x > /ro/f", "touch /ro/new", "rm /ro/f", "echo x > /etc/two"):
            done = self.guest(script, check=False)
            self.assertIn("Read-only file system", done.stderr, script)
        # A guest that lifts its own restriction, as a kernel that was taken over would: the node's remains.
        mounts = self.mounts_of_virtiofsd()
        self.assertTrue({"ro", "nosuid", "nodev"} <= mounts["/ro"], mounts)
        self.assertTrue({"rw", "nosuid", "nodev"} <= mounts["/both"], mounts)
        self.assertTrue({"ro", "nosuid", "nodev"} <= mounts["/oneRO"], mounts)
        self.assertEqual("ours", read(self.at("ro", "f")))

    def virtiofsd(self):
        pids = host.read(os.path.join(self.cgroup_dir("p"), "share", "cgroup.procs")).split()
        self.assertEqual(1, len(pids))
        return int(pids[0])

    def mounts_of_virtiofsd(self):
        """By the end of what of the node is mounted there: the options."""
        found = {}
        for line in host.read(f"/proc/{self.virtiofsd()}/mountinfo").splitlines():
            words = line.split()
            if words[4].startswith("/v"):
                found["/" + words[3].rsplit("/", 1)[1]] = set(words[5].split(","))
        return found

    def test_one_file(self):
        self.assertEqual("first", self.guest("cat /etc/one").stdout)
        self.guest("echo second > /etc/one")
        self.assertEqual("second\n", read(self.at("one")))
        self.assertEqual("first", self.guest("cat /etc/two").stdout)

    def test_links_end_in_the_guest(self):
        os.symlink(self.at("outside"), self.at("both", "absolute"))
        os.symlink("../outside", self.at("both", "relative"))
        for name in ("absolute", "relative"):
            done = self.guest(f"cat /both/{name}", check=False)
            self.assertIn("No such file", done.stderr)
        self.guest(f"ln -s {self.at('outside')} /both/own; ln -s ../../../../etc/passwd /both/up")
        self.assertIn("No such file", self.guest("cat /both/own", check=False).stderr)
        self.guest("ls /both/..; cat /both/../outside; true")
        self.assertNotIn("secret", self.guest("cat /both/*/../../outside /both/../../outside 2>&1; true").stdout)
        self.assertNotEqual(0, self.guest("mknod /both/null c 1 3", check=False).returncode)

    def test_copies(self):
        tree = self.at("tree")
        os.makedirs(os.path.join(tree, "d/e"))
        write(os.path.join(tree, "d/f"), "x" * 3_000_000)
        os.chmod(os.path.join(tree, "d/f"), 0o640)
        os.symlink("f", os.path.join(tree, "d/link"))
        self.node.cli("cp", tree, "p:/srv")
        self.assertEqual("3000000 640 f\n", self.guest("cd /srv/d && echo $(stat -c '%s %a' f) $(readlink link)").stdout)
        self.guest("echo more >> /srv/d/f; mkfifo /srv/pipe")
        back = self.at("back")
        self.assertIn("srv/pipe is left out: it is a FIFO", self.node.cli("cp", "p:/srv", back, check=False).stderr)
        self.assertEqual("x" * 3_000_000 + "more\n", read(os.path.join(back, "d/f")))
        self.assertEqual("f", os.readlink(os.path.join(back, "d/link")))
        self.assertEqual(["d"], os.listdir(back))
        # What is mounted there is what is copied; what is above its root is not.
        self.node.cli("cp", self.at("outside"), "p:/both/../etc/put")
        self.assertEqual("secret", self.guest("cat /etc/put").stdout)
        for words in (("p:/nowhere", back), (self.at("outside"), "p:/nowhere/x"), (self.at("outside"), "p:/ro/x")):
            done = self.node.cli("cp", *words, check=False)
            self.assertNotEqual((0, ""), (done.returncode, done.stderr), words)

    def test_files_are_its_servers_affair(self):
        """A guest that opens files without end comes to the limit of the process that serves its own volumes, and no other's (V11)."""
        pid = self.virtiofsd()
        usual = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        self.addCleanup(resource.prlimit, pid, resource.RLIMIT_NOFILE, usual)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")) + 64, usual[1]))
        before = len(os.listdir(f"/proc/{self.node.pid}/fd"))
        done = self.guest("mkdir /both/many; for i in $(seq 200); do echo x > /both/many/$i || exit 3; done", check=False)
        self.assertEqual(3, done.returncode)
        self.assertRegex(done.stderr, "(Too many open files|No file descriptors available)")
        self.assertLess(len(os.listdir(f"/proc/{self.node.pid}/fd")) - before, 16)
        # Nor was that its end: with room again it goes on.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, usual)
        self.guest("rm -r /both/many && echo well > /both/well")
        self.assertEqual("well\n", read(self.at("both", "well")))

    def test_memory_of_the_guest(self):
        self.guest("echo x > /mem/x && grep -q ' /mem tmpfs ' /proc/mounts")

    def test_the_node_finds_nothing_wrong(self):
        self.assertEqual([], json.loads(self.node.cli("-o", "json", "check").stdout))

    def test_none_for_an_instance_that_is_there(self):
        done = self.node.cli("run", "--in", "p", "--name", "c", "-v", f"{self.place}/both:/x", "busybox", "true", check=False)
        self.assertRegex(done.stderr, r"nacre: --volume: .*only what a pod was made with")

    def test_zz_restart_and_end(self):
        """The daemon is killed; another one knows who serves the volumes, and what its end means."""
        # Whom somebody has put beside them is neither the machine nor its server, and in nobody's way.
        strangers = [subprocess.Popen(["sleep", "1000"]) for _ in range(2)]
        for leaf, stranger in zip(("vmm", "share"), strangers):
            write(os.path.join(self.cgroup_dir("p"), leaf, "cgroup.procs"), str(stranger.pid))
        self.node.restart()
        for stranger in strangers:
            stranger.kill()
            stranger.wait()
        self.guest("echo again > /both/again")
        self.assertEqual("again\n", read(self.at("both", "again")))
        self.assertEqual([], json.loads(self.node.cli("-o", "json", "check").stdout))
        os.kill(self.virtiofsd(), signal.SIGKILL)
        nacre_test.until(lambda: self.inspect("p").state == "failed", what="the end of p")
        self.assertIn("what serves its volumes has ended: virtiofsd", self.inspect("p").reason)
        self.remove("p")
        nacre_test.until(lambda: not self.left(), what="nothing left")

    def test_zzz_its_end_has_a_cause(self):
        """Also under the daemon that started it; and one that ended while nobody looked."""
        self.run_pod("-v", f"{self.place}/both:/both")
        os.kill(self.virtiofsd(), signal.SIGKILL)
        nacre_test.until(lambda: self.inspect("p").state == "failed", what="the end of p")
        self.assertIn("virtiofsd was killed by signal 9", self.inspect("p").reason)
        self.remove("p")
        self.run_pod("-v", f"{self.place}/both:/both")
        pid = self.virtiofsd()
        self.node.kill()
        os.kill(pid, signal.SIGKILL)
        self.node.start()
        nacre_test.until(lambda: self.inspect("p").state == "failed", what="the end of p")
        self.assertIn("what serves its volumes ended while the daemon was away", self.inspect("p").reason)
        self.remove("p")
        nacre_test.until(lambda: not self.left(), what="nothing left")


if __name__ == "__main__":
    unittest.main()
