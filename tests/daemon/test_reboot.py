# SPDX-License-Identifier: Apache-2.0
"""Workloads over a reboot: everything that runs is gone, and the run directory says that it is of another boot."""
import contextlib
import os
import sqlite3
import unittest

import host
import images
import nacre_test
from nacre_test import until

STAY = "echo run >> /runs; wc -l < /runs; trap 'exit 0' TERM; sleep 1000 & wait"


class Reboot(unittest.TestCase):
    def setUp(self):
        self.node = nacre_test.Node()
        self.addCleanup(self.destroy)
        images.ensure(self.node, "busybox")

    def destroy(self):
        self.assertEqual("", self.node.destroy())

    def run_pod(self, name, *options, command="run"):
        self.node.cli(command, *(("-d",) if command == "run" else ()), "--name", name, *options, "busybox", "sh", "-c", STAY)

    def logs(self, name):
        return self.node.cli("logs", name).stdout.split()

    def logged(self, name, *lines):
        until(lambda: self.logs(name) == list(lines), what=f"{name} has logged {lines}")

    def all(self):
        return {w["name"]: w for w in self.node.json("ps", "-a")}

    def kept(self):
        """The ids that root.db has."""
        with contextlib.closing(sqlite3.connect(f"file:{self.node.root}/root.db?mode=ro", uri=True)) as db:
            return {row[0] for row in db.execute("SELECT id FROM kept")}

    def reboot(self, stop=True):
        """stop: as a host that shuts down; else as one that loses power, with what lies on its disk."""
        (self.node.stop if stop else self.node.kill)()
        host.end_cgroup(self.node.cgroup())
        with open(os.path.join(self.node.run, "boot"), "w", encoding="ascii") as f:
            f.write("00000000-0000-0000-0000-000000000000\n")
        self.node.start()

    def test_reboot(self):
        self.run_pod("always", "--restart", "always", "--env", "A=b")
        self.run_pod("stopped", "--restart", "unless-stopped")
        self.run_pod("fails", "--restart", "on-failure")
        self.run_pod("plain")
        self.run_pod("gone", "--rm")
        self.run_pod("made", command="create")
        self.node.cli("spawn", "--name", "i")
        self.node.cli("cell", "--in", "i", "--name", "c", "busybox", "sleep", "1000")
        self.node.cli("cell", "--name", "cell", "--restart", "always", "busybox", "sh", "-c", STAY)
        for name in ("always", "stopped", "fails", "plain", "cell"):
            self.logged(name, "1")
        self.node.cli("stop", "stopped")
        before = self.all()
        self.reboot()
        self.logged("always", "1", "2")
        self.logged("cell", "1", "2")
        until(lambda: {self.all()[n]["state"] for n in ("always", "cell")} == {"running"}, what="they run again")
        after = self.all()
        self.assertEqual({"always", "stopped", "fails", "plain", "made", "cell"}, set(after))
        self.assertEqual({n: before[n]["id"] for n in after}, {n: w["id"] for n, w in after.items()})
        self.assertEqual({"stopped": "exited", "fails": "exited", "plain": "exited", "made": "created"},
                         {n: after[n]["state"] for n in ("stopped", "fails", "plain", "made")})
        self.assertEqual(("the host was restarted", 137), (after["plain"]["reason"], after["plain"]["exit_code"]))
        self.assertIsNone(after["stopped"]["reason"])
        self.node.cli("start", "plain", "made", "fails", "stopped")
        for name in ("plain", "stopped", "fails"):
            self.logged(name, "1", "2")
        self.logged("made", "1")
        self.assertEqual("b\n", self.node.cli("exec", "always", "sh", "-c", "echo $A").stdout)
        self.assertEqual("", self.node.cli("check").stdout)
        # Not a second time for the same boot.
        self.node.cli("rm", "-f", "plain")
        self.node.restart()
        self.assertNotIn("plain", self.all())

    def test_power_loss_and_removal(self):
        self.run_pod("web")
        w = self.all()["web"]
        until(lambda: w["id"] in self.kept(), what="it is copied behind its start")
        self.reboot(stop=False)
        self.assertEqual("exited", self.all()["web"]["state"])
        self.node.cli("rm", "web")
        until(lambda: not self.kept(), what="nothing is kept of it")
        until(lambda: not os.listdir(os.path.join(self.node.root, "containers")), what="no container's files")
        # What an end of the daemon left behind goes with the next one.
        self.run_pod("web")
        w = self.all()["web"]
        until(lambda: w["id"] in self.kept(), what="it is copied")
        self.node.stop()
        with contextlib.closing(sqlite3.connect(f"{self.node.root}/root.db")) as db:
            db.execute("INSERT INTO kept SELECT '0123456789abcdef', text FROM kept")
            db.commit()
        self.node.start()
        until(lambda: self.kept() == {w["id"]}, what="what nobody has goes")
        self.assertEqual({"web"}, set(self.all()))
