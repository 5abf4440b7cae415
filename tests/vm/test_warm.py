# SPDX-License-Identifier: Apache-2.0
"""Machines that go on from a template: that two of them share nothing but pages, and what becomes of a template."""
import os
import re
import shutil
import subprocess
import time
import unittest

import host
import machines
import nacre_test
from machines import load_tests  # noqa: F401
from steps import container

READY = "a template of a guest is ready"
WORD = "NACRE_TEMPLATE"
SEALED = ("memory", "state")


def is_ready(node, times=1):
    nacre_test.until(lambda: node.log().count(READY) >= times, seconds=180, what="the template")


def memfds(pid):
    """{name: path} of its files in memory."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        target = os.readlink(f"/proc/{pid}/fd/{fd}")
        if target.startswith("/memfd:"):
            found[target.removeprefix("/memfd:").partition(" ")[0]] = f"/proc/{pid}/fd/{fd}"
    return found


class Drawing(machines.MachinesTest):
    """A node with a template, and what its guests have drawn."""
    IMAGES = ("busybox", "probe")

    @classmethod
    def first(cls):
        """The first one boots, and what all take from is made behind it."""
        for image in cls.IMAGES:
            cls.node.cli("run", "--kind", "vm", "--rm", image, *(("true",) if image == "busybox" else ("random",)))
        is_ready(cls.node)

    def timed(self, name, **fields):
        self.took = getattr(self, "took", {})
        began = time.monotonic()
        self.pod(name, container("sleep", "100000", name="sleep"), container(image="probe", name="probe", args=["sleep", "100000"]), kind="vm", **fields)
        self.took[name] = time.monotonic() - began
        return self.took[name]

    def random(self, name):
        """{what: bytes} that a guest has drawn."""
        out, err, code = self.exec(name, "/probe", "random", container="probe")
        self.assertEqual((b"", 0), (err, code))
        drawn = {k: bytes.fromhex(v) for k, v in (line.split() for line in out.decode().splitlines())}
        drawn["urandom"] = bytes.fromhex("".join(self.sh(name, "od -An -v -tx1 -N4096 /dev/urandom", container="sleep").split()))
        for what in ("boot_id", "uuid"):
            drawn[what] = bytes.fromhex(self.sh(name, f"cat /proc/sys/kernel/random/{what}", container="sleep").strip().replace("-", ""))
        drawn["key"] = self.key(name)
        self.assertEqual((4096, 4096, 16, 16), tuple(len(drawn[k]) for k in ("getrandom", "urandom", "auxv", "boot_id")))
        return drawn

    def key(self, name):
        """The public key of its certificate, as somebody sees it who comes to its port."""
        gate = self.leaf(name, "gate")[0]
        said = subprocess.run(["nsenter", f"--net=/proc/{gate}/ns/net", "openssl", "s_client", "-tls1_3", "-showcerts", "-connect",
                               "169.254.74.2:7474"], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60).stdout
        leaf = re.search(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", said, re.S)
        self.assertIsNotNone(leaf, said)
        return subprocess.run(["openssl", "x509", "-noout", "-pubkey", "-outform", "DER"], input=leaf.group(0), capture_output=True,
                              check=True).stdout

    def have_drawn_for_themselves(self):
        """Pods p and q, from one template."""
        p, q = self.random("p"), self.random("q")
        for what, mine in p.items():
            self.assertNotEqual(mine, q[what], what)
        words = [{d[k][i:i + 8] for k in ("getrandom", "urandom", "auxv", "boot_id", "uuid") for i in range(0, len(d[k]) - 7)} for d in (p, q)]
        self.assertEqual(set(), words[0] & words[1])
        self.assertEqual(["p\n", "q\n"], [self.sh(name, "hostname", container="sleep") for name in ("p", "q")])

    def have_the_time(self, *names):
        for name in names:
            # Right within a second; what it tells is whole ones, and it tells them somewhen between the two. Where the
            # processors are others', what it is told at its start waits for them too.
            asked = time.time() - self.took[name]
            said = int(self.sh(name, "date +%s", container="sleep"))
            self.assertTrue(asked - 2 < said <= time.time() + 0.1, (name, asked, said))

    def are_clones(self, *names):
        return [WORD in self.sh(name, "cat /proc/cmdline", container="sleep") for name in names]


class Warm(Drawing):
    CONFIG = "vm:\n  templates: yes\n"

    def test_two_share_no_byte_no_key_no_name(self):
        self.assertIsNone(self.node.json("info")["pool"])
        took = [self.timed("p"), self.timed("q")]
        cold = self.timed("c", cold=True)
        print(f"# cold {cold:.2f} s, from the template {took[0]:.2f} and {took[1]:.2f} s")
        self.assertEqual([True, True, False], self.are_clones("p", "q", "c"))
        self.have_drawn_for_themselves()
        self.have_the_time("p", "q", "c")
        self.pages()
        for name in ("p", "q", "c"):
            self.stop(name, grace_ms=1000)
            self.remove(name)
        self.assertNoTraces(self.before)

    def pages(self):
        """What they share they cannot change; what they change is theirs."""
        machine = self.inspect("p").pid
        mine, theirs = memfds(self.node.process.pid), memfds(machine)
        self.assertEqual(os.stat(mine["memory"]).st_ino, os.stat(theirs["memory"]).st_ino)
        for path in (mine["memory"], mine["state"], theirs["memory"]):
            with self.assertRaises(PermissionError):
                fd = os.open(path, os.O_RDWR)
                try:
                    os.write(fd, b"x")
                finally:
                    os.close(fd)
        rollup = host.read(f"/proc/{machine}/smaps_rollup")
        print("# of a clone:", ", ".join(" ".join(line.split()) for line in rollup.splitlines()[1:] if line.startswith(("Rss", "Pss:", "Shared", "Private"))))

    def test_when_the_monitor_is_another_so_is_the_template(self):
        """What one QEMU has saved no other one is told to load."""
        times = self.node.log().count(READY)
        copy = os.path.join(self.node.dir, "qemu")
        shutil.copy(machines.QEMU, copy)
        subprocess.run(["mount", "--bind", copy, machines.QEMU], check=True)
        try:
            self.timed("p")
            self.assertNotIn(WORD, self.sh("p", "cat /proc/cmdline", container="sleep"))
            is_ready(self.node, times + 1)
            self.assertIn("is out of date", self.node.log())
            self.timed("q")
            self.assertIn(WORD, self.sh("q", "cat /proc/cmdline", container="sleep"))
        finally:
            subprocess.run(["umount", "-l", machines.QEMU], check=True)
            os.unlink(copy)
        for name in ("p", "q"):
            self.remove(name, force=True)
        self.assertNoTraces(self.before)


class Killed(unittest.TestCase):
    """Nothing of a template, or of a machine that begins from one, is left by a daemon that dies."""

    def left(self, node):
        groups = [g for g in os.listdir(node.cgroup()) if g.startswith("inst.")]
        return groups + os.listdir(os.path.join(node.run, "i"))

    def monitors(self, node):
        """Of this node: by its groups."""
        return {p for g in os.listdir(node.cgroup()) if g.startswith("inst._") for p in host.cgroup_pids(os.path.join(node.cgroup(), g))}

    def test_amid(self):
        machines.need()
        with nacre_test.Node("vm:\n  templates: yes\n") as node:
            machines.build_set(node)
            node.cli("spawn", "--kind", "vm", "--name", "a")
            nacre_test.until(lambda: self.monitors(node), seconds=60, what="the template's machine")
            time.sleep(0.5)
            node.kill()
            # It dies with the daemon, what else there is goes when the next one starts.
            nacre_test.until(lambda: not self.monitors(node), what="the end of the template's machine")
            node.start()
            self.assertEqual(["inst.a"], [g for g in self.left(node) if g.startswith("inst")])
            # The next one makes it behind a machine of its own.
            node.cli("spawn", "--kind", "vm", "--name", "b")
            is_ready(node)
            clone = subprocess.Popen([nacre_test.BINARY, "--socket", node.socket, "spawn", "--kind", "vm", "--name", "c"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            nacre_test.until(lambda: os.path.exists(os.path.join(node.cgroup(), "inst.c", "vmm")), what="the clone")
            node.kill()
            clone.wait()
            node.start()
            nacre_test.until(lambda: "spawning" not in node.cli("ps", "-a", "--format", "{state}").stdout, seconds=120, what="the end of c")
            node.clear()
            nacre_test.until(lambda: not self.left(node), what=f"the end of {self.left(node)}")
