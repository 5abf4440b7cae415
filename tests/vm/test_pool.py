# SPDX-License-Identifier: Apache-2.0
"""Machines that wait for a pod: who gets them, that they share nothing, and what becomes of those that nobody has taken."""
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import tempfile
import unittest

import host
import machines
import nacre_test
import test_warm
from machines import load_tests  # noqa: F401

SIZE = 2
REPLACED = "a machine of the pool has died before it was of use"
CONFIG = f"vm:\n  templates: yes\n  pool: {SIZE}\n"


def pool(node):
    return node.json("info")["pool"]


def is_full(node):
    nacre_test.until(lambda: pool(node)["waiting"] == SIZE, seconds=180, what="the pool")


def freeze(node, group, frozen):
    try:
        with open(os.path.join(node.cgroup(), group, "cgroup.freeze"), "w", encoding="ascii") as f:
            f.write(str(int(frozen)))
    except FileNotFoundError:
        assert not frozen


def groups(node):
    """Of what was made ahead."""
    return sorted(g for g in os.listdir(node.cgroup()) if g.startswith("inst._"))


@contextlib.contextmanager
def short_of_memory():
    """For whoever reads what the kernel says of it; the test stands in a mount namespace of its own."""
    # Always the same name: what is mounted is compared with what was.
    short = os.path.join(tempfile.gettempdir(), f"meminfo-{os.getpid()}")
    with open(short, "w", encoding="ascii") as f:
        f.write("MemAvailable: 400000 kB\n")
    subprocess.run(["mount", "--bind", short, "/proc/meminfo"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", "/proc/meminfo"], check=True)
        os.unlink(short)


def monitors(node):
    return {g: [int(p) for p in host.read(os.path.join(node.cgroup(), g, "vmm", "cgroup.procs")).split()] for g in groups(node)}


class Pool(test_warm.Drawing):
    CONFIG = CONFIG

    @classmethod
    def setUpClass(cls):
        # What was there before has none in the pool.
        with short_of_memory():
            super().setUpClass()
        try:
            is_full(cls.node)
        except BaseException:
            print(cls.node.log())
            cls.node.destroy()
            raise

    @classmethod
    def tearDownClass(cls):
        with short_of_memory():
            if cls.node.alive:
                for pids in monitors(cls.node).values():
                    os.kill(pids[0], signal.SIGKILL)
                nacre_test.until(lambda: not groups(cls.node), what="the end of the pool")
            super().tearDownClass()

    def all_is_as_before(self):
        """Nothing is left but as many machines as before."""
        for w in self.node.json("ps", "-a"):
            self.remove(w["name"], force=True)
        is_full(self.node)
        nacre_test.until(lambda: len(groups(self.node)) == SIZE, what="the end of those that were taken")
        self.assertEqual(SIZE, len(os.listdir(os.path.join(self.node.run, "i"))))
        self.assertEqual([], self.node.json("check"))

    def test_they_are_taken_and_share_nothing(self):
        waiting = groups(self.node)
        told = pool(self.node)
        self.assertEqual((SIZE, SIZE, None), (told["size"], told["waiting"], told["reason"]))
        # They have not run: what each takes is what its monitor and its gate need.
        self.assertTrue(SIZE * (4 << 20) < told["memory"] < SIZE * (128 << 20), told)
        self.assertIn(f"{SIZE} of {SIZE} machines wait", self.node.cli("info").stdout)
        self.assertEqual([], self.node.json("ps", "-a"))
        self.assertEqual([], self.node.json("check"))
        for g in waiting:
            self.assertNotIn(g.removeprefix("inst._"), self.node.cli("tree").stdout)
        took = [self.timed("p"), self.timed("q")]
        print(f"# from the pool {took[0]:.2f} and {took[1]:.2f} s")
        self.assertEqual(waiting, sorted(os.path.basename(self.cgroup_dir(name)) for name in ("p", "q")))
        self.assertEqual([True, True], self.are_clones("p", "q"))
        self.have_drawn_for_themselves()
        self.have_the_time("p", "q")
        self.all_is_as_before()

    def test_one_that_dies_is_nobodys_loss(self):
        waiting = monitors(self.node)
        victim = min(waiting)
        os.kill(waiting[victim][0], signal.SIGKILL)
        # At once, and whether that was noticed or not: SIGKILL has been sent, and does not wait for the end.
        self.timed("p")
        taken = os.path.basename(self.cgroup_dir("p"))
        self.assertIn(taken, waiting)
        if taken == victim:
            self.assertIn(REPLACED, self.node.log())
        else:
            nacre_test.until(lambda: victim not in groups(self.node), what="the end of its group")
            self.assertIn("a machine of the pool is lost", self.node.log())
        is_full(self.node)
        self.all_is_as_before()

    def dies_behind_the_take(self, leaf):
        """Whatever it does of that leaf, when a pod has it and waits for its guest."""
        waiting = groups(self.node)
        for group in waiting:
            freeze(self.node, group, True)
        before = self.node.log().count(REPLACED)
        with concurrent.futures.ThreadPoolExecutor(1) as waits:
            pod = waits.submit(self.timed, "p")
            try:
                nacre_test.until(lambda: pool(self.node)["waiting"] < SIZE, what="a machine that is taken")
                taken = os.path.basename(next(w["cgroup"] for w in self.node.json("ps", "-a") if w["name"] == "p"))
                was = [int(p) for p in host.read(os.path.join(self.node.cgroup(), taken, leaf, "cgroup.procs")).split()]
                self.assertFalse(pod.done())
                for pid in was:
                    os.kill(pid, signal.SIGKILL)
            finally:
                for group in waiting:
                    freeze(self.node, group, False)
            took = pod.result()
        print(f"# instead of one whose {leaf} has died: {took:.2f} s")
        self.assertIn(taken, waiting)
        self.assertEqual(before + 1, self.node.log().count(REPLACED))
        # The same instance, in its group, and nothing of the first.
        self.assertEqual(taken, os.path.basename(self.cgroup_dir("p")))
        for name in ("vmm", "gate"):
            self.assertEqual(1, len(self.leaf("p", name)))
        self.assertEqual(set(), set(was) & set(self.leaf("p", leaf)))
        self.assertEqual("running", self.node.json("inspect", "p")["state"])
        self.assertEqual("p\n", self.sh("p", "hostname", container="sleep"))
        is_full(self.node)
        self.all_is_as_before()

    def test_one_that_dies_behind_the_take_is_nobodys_loss(self):
        for leaf in ("vmm", "gate"):
            with self.subTest(leaf=leaf):
                self.dies_behind_the_take(leaf)

    def test_where_memory_is_short_none_is_made(self):
        with short_of_memory():
            for name in ("p", "q"):
                self.timed(name)
            nacre_test.until(lambda: pool(self.node)["reason"], what="the reason")
            self.assertEqual(0, pool(self.node)["waiting"])
            self.assertIn("390 MiB of memory left, and a machine may take 512", pool(self.node)["reason"])
            # Those who want a machine have one all the same.
            self.timed("r")
            self.assertEqual("inst.r", os.path.basename(self.cgroup_dir("r")))
        self.all_is_as_before()


class Daemons(unittest.TestCase):
    """What waits goes with its daemon, or with the next one; what was taken does not."""

    def test_without_a_trace(self):
        machines.need()
        with nacre_test.Node(CONFIG, start=False) as node:
            os.makedirs(node.root)
            machines.build_set(node)
            # Nobody has to want a machine first.
            node.start()
            is_full(node)
            node.cli("spawn", "--kind", "vm", "--name", "a")
            taken = os.path.basename(node.json("inspect", "a")["cgroup"])
            is_full(node)
            before = monitors(node)
            self.assertIn(taken, before)
            self.assertEqual(SIZE + 1, len(before))
            node.kill()
            node.start()
            self.assertEqual([taken], groups(node))
            self.assertEqual("ready", node.json("inspect", "a")["state"])
            is_full(node)
            self.assertEqual({taken}, set(before) & set(monitors(node)))
            node.stop()
            nacre_test.until(lambda: [taken] == groups(node), what="their end")
            self.assertEqual([taken.removeprefix("inst._")], os.listdir(os.path.join(node.run, "i")))
            node.start()
            self.assertEqual([], node.json("check"))
            node.cli("rm", "-f", "a")
            nacre_test.until(lambda: taken not in groups(node), what="the end of a")
