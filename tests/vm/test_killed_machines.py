# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed, or fails, at each step on the way of a machine: nothing is left of it, and the next one works.

Only a build with test hooks can be made to fail, and that is not static where it has sanitizers: the guest's nacre is that of the plain
build then, as it is of another build whenever a node was upgraded (test_renewed.py)."""
import os
import signal
import subprocess
import time
import unittest

import faults
import host
import machines
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2
from steps import container

PLAIN = os.path.join(nacre_test.ROOT, "build")
KERNEL = os.path.join(PLAIN, "guest", "kernel")
# Of an instance of any kind, on the way of a machine too.
SHARED = [f"instance.{step}" for step in ("record", "spawned", "connect", "ready", "stop", "ended", "clean", "forget")]
NAMES = [p.name for p in faults.table() if p.who == "vm"]
AHEAD = [p.name for p in faults.table() if p.who == "ahead"]


class MachinesTest(faults.FaultTest):
    dies = False

    @classmethod
    def setUpClass(cls):
        machines.need("/usr/lib/qemu/virtiofsd", os.path.join(PLAIN, "nacre"), os.path.join(PLAIN, "libexec", "nacre", "nacre-gate"),
                      kernel=KERNEL)
        super().setUpClass()
        try:
            subprocess.run([os.path.join(PLAIN, "nacre"), "guest", "build", "--root", cls.node.root, "--from", KERNEL], check=True,
                           stdout=subprocess.DEVNULL)
            cls.volume = os.path.join(cls.node.dir, "volume")
            os.mkdir(cls.volume)
            # What a node has from its first microVM on; the key of its identity is in a process that ends with its daemon.
            cls.node.cli("run", "--kind", "vm", "--rm", "busybox", "true", seconds=120)
            cls.node.restart()
            cls.node.info.Info(nacre_pb2.InfoRequest())
            cls.before = cls.node.baseline()
        except BaseException:
            print(cls.node.log())
            cls.node.destroy()
            raise

    def is_dying(self, error):
        """Where only a call fails nobody's death is waited for."""
        return super().is_dying(error) if self.dies else not self.node.alive


@faults.spread
class Machines(MachinesTest):
    place = ""

    def machine(self, name):
        """A pod in one, with a volume, of an image that is no disk yet."""
        request = runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name=name), kind="vm")
        one = request.containers.add(image="second", command=["sleep", "100000"])
        one.mounts.add(source=self.volume, target="/volume")
        return self.node.runtime.RunPod(request, timeout=240)

    def steps(self):
        make = ("make", "import", lambda: self.node.import_image(self.archive, "second"))
        if self.place.startswith("vm.disk_out"):
            return (make, ("make", "v", lambda: self.spawn("v", kind="vm")),
                    ("make", "v/a", lambda: self.cell("v/a", container("sleep", "100000", image="second"))),
                    ("end", "remove v/a", lambda: self.remove("v/a", force=True)),
                    ("use", "spawn again", lambda: self.cell("v/b")),
                    ("end", "remove v", lambda: self.remove("v", force=True)))
        return (make, ("make", "p", lambda: self.machine("p")),
                ("use", "exec", lambda: self.exec("p", "true")),
                ("end", "remove p", lambda: self.remove("p", force=True)))

    def populate(self, place, dies=False):
        self.place, self.dies = place, dies
        if place.startswith("vm.adopt"):
            self.pod("old", kind="vm")

    @faults.for_each(faults.some([f"{n}{side}" for n in NAMES for side in ("", "+")], 2) +
                     (faults.some([f"{n}{side}" for n in SHARED for side in ("", "+")], 16) if faults.EVERYTHING else []))
    def killed_at(self, place):
        self.populate(place, dies=True)
        if self.restart_with(NACRE_FAILPOINT=f"{place}=crash", NACRE_KEEPER_FAILPOINT=""):
            self.flow()
        nacre_test.until(lambda: not self.node.alive, 60, f"the crash at {place}")
        self.assertEqual(-signal.SIGKILL, self.node.process.returncode)
        self.assertIn(f"failpoint {place} of {self.node.pid}\n", self.node.log())
        self.check_whole()

    @faults.for_each(faults.some([n for n in NAMES if n != "vm.adopt"], 1) if faults.has_faults() else [])
    def error_at(self, name):
        self.populate(name)
        self.assertTrue(self.restart_with(NACRE_FAILPOINT=f"{name}=error:28", NACRE_KEEPER_FAILPOINT=""))
        self.flow()
        self.assertAlive()
        self.check_whole()

    def test_every_place_is_reached(self):
        """Without a single fault: what is not come to is no part of the sweep."""
        said = self.log_from_here()
        self.populate("vm.adopt")
        self.assertTrue(self.restart_with(NACRE_FAILPOINT="*=trace,*+=trace", NACRE_KEEPER_FAILPOINT=""))
        for self.place in ("vm.start", "vm.disk_out"):
            self.flow()
        self.assertEqual([], self.interrupted[1:])
        wanted = {f"{n}{side}" for n in NAMES for side in ("", "+")}
        nacre_test.until(lambda: not {w for w in wanted if f"failpoint {w} of {self.node.pid}\n" not in said()}, what="every place")
        self.check_whole()


@faults.spread
class Ahead(MachinesTest):
    """The same for what is made before anybody asks for it. What is left is looked for with a daemon that makes nothing ahead."""

    def make_ahead(self, wanted):
        words = ("templates: no\n", "templates: yes\n  pool: 1\n")
        text = host.read(self.node.config)
        with open(self.node.config, "w", encoding="utf-8") as f:
            f.write(text.replace(words[not wanted], words[wanted]))

    def full(self):
        """Or there will be none: then nothing tells so but the time that it takes."""
        end = time.monotonic() + 12 * nacre_test.SLOWNESS
        while time.monotonic() < end:
            pool = self.node.info.Info(nacre_pb2.InfoRequest(), timeout=60).pool
            if pool.waiting == 1 or (pool.reason and not pool.reason.endswith(" yet")):
                return
            time.sleep(0.1)

    def steps(self):
        return (("use", "wait for the pool", self.full),
                ("make", "p", lambda: self.pod("p", kind="vm")),
                ("use", "exec", lambda: self.exec("p", "true")),
                ("end", "remove p", lambda: self.remove("p", force=True)))

    def begin(self, dies=False, **env):
        self.dies = dies
        self.make_ahead(True)
        return self.restart_with(NACRE_KEEPER_FAILPOINT="", **env)

    def assertNoTraces(self, before, **fields):
        self.make_ahead(False)
        self.restart_plainly()
        self.node.info.Info(nacre_pb2.InfoRequest())
        super().assertNoTraces(before, **fields)

    @faults.for_each(faults.some([f"{n}{side}" for n in AHEAD for side in ("", "+")], 2))
    def killed_at(self, place):
        if self.begin(dies=True, NACRE_FAILPOINT=f"{place}=crash"):
            self.flow()
        nacre_test.until(lambda: not self.node.alive, 60, f"the crash at {place}")
        self.assertIn(f"failpoint {place} of {self.node.pid}\n", self.node.log())
        self.check_whole()

    @faults.for_each(faults.some(AHEAD, 1) if faults.has_faults() else [])
    def error_at(self, name):
        """Whoever wants a machine has one: it boots, where none can be made ahead."""
        self.assertTrue(self.begin(NACRE_FAILPOINT=f"{name}=error:28"))
        self.flow()
        self.assertAlive()
        self.assertEqual([], self.interrupted)
        self.check_whole()

    def test_every_place_is_reached(self):
        said = self.log_from_here()
        self.assertTrue(self.begin(NACRE_FAILPOINT="*=trace,*+=trace"))
        self.flow()
        self.assertEqual([], self.interrupted)
        wanted = {f"{n}{side}" for n in AHEAD for side in ("", "+")}
        nacre_test.until(lambda: not {w for w in wanted if f"failpoint {w} of {self.node.pid}\n" not in said()}, what="every place")
        self.check_whole()


if __name__ == "__main__":
    unittest.main()
