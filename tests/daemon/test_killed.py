# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed in front of each step of the table and behind it, and at each change of its store."""
import re
import signal

import faults
import host
import nacre_test
from nacre_test import nacre_pb2
from steps import container


@faults.spread
class Daemon(faults.FaultTest):
    def populate(self):
        """What a daemon finds that starts."""
        self.pod("old", container("sleep", "100000"))
        self.cell("old-cell")
        self.spawn("old-inst")
        self.cell("old-inst/cell")

    @faults.for_each(faults.places("daemon", "any"))
    def killed_at(self, place):
        if place.startswith("boot."):
            self.populate()
        if self.restart_with(NACRE_FAILPOINT=f"{place}=crash", NACRE_KEEPER_FAILPOINT=""):
            self.flow()
        nacre_test.until(lambda: not self.node.alive, 60, f"the crash at {place}")
        self.assertEqual(-signal.SIGKILL, self.node.process.returncode)
        self.assertIn(f"failpoint {place} of {self.node.pid}\n", self.node.log())
        self.check_whole()

    @faults.for_each([p.name for p in faults.table() if p.who in ("daemon", "any")])
    def error_at(self, name):
        if self.restart_with(NACRE_FAILPOINT=f"{name}=error:28", NACRE_KEEPER_FAILPOINT=""):
            self.flow()
            self.assertAlive()
        else:
            self.assertIn("nacre daemon: ", self.node.log())
        self.check_whole()


@faults.spread
class Writes(faults.FaultTest):
    """Each change of the store in the life of a bit of everything, by its number."""

    PARTS = 16
    n = 0

    def count(self):
        """How many there are, from the start of a daemon on; the last ones may come in another order, and are left out."""
        if not Writes.n:
            said = self.log_from_here()
            self.assertTrue(self.restart_with(NACRE_FAILPOINT="store.write=trace", NACRE_KEEPER_FAILPOINT=""))
            self.flow()
            self.assertEqual([], self.interrupted)
            Writes.n = len(re.findall(r"(?m)^failpoint store.write of ", said())) - 3
            self.assertGreater(Writes.n, 50)
        return Writes.n

    @faults.for_each([f"{i}{side}" for i in range(PARTS) for side in ("", "+")])
    def killed_at_writes_of_part(self, part):
        side, part = part.lstrip("0123456789"), int(part.rstrip("+"))
        n = self.count()
        all_ = range(part * n // self.PARTS + 1, (part + 1) * n // self.PARTS + 1)
        for k in all_ if faults.EVERYTHING else all_[:1]:
            self.interrupted = []
            if self.restart_with(NACRE_FAILPOINT=f"store.write{side}@{k}=crash", NACRE_KEEPER_FAILPOINT=""):
                self.flow()
            nacre_test.until(lambda: not self.node.alive, 60, f"the crash at write {k} of {n}")
            self.check_whole()


class Table(faults.FaultTest):
    def test_every_place_is_reached(self):
        """Without a single fault: what the flow does not come to is no part of any sweep."""
        said = self.log_from_here()
        self.pod("old")
        self.cell("old-cell")
        plan = "*=trace,*+=trace"
        self.assertTrue(self.restart_with(NACRE_FAILPOINT=plan))
        self.flow()
        self.assertEqual([], self.interrupted)
        self.node.clear()
        wanted = set(faults.places("daemon", "keeper", "any", "child"))
        # A keeper that ends comes to its last ones by itself.
        came = lambda: set(re.findall(r"(?m)^failpoint (\S+) of \d+$", said()))  # noqa: E731
        try:
            nacre_test.until(lambda: wanted <= came(), what="every place")
        except AssertionError:
            self.assertEqual(set(), wanted - came())
        by = {pid for pid in re.findall(r"(?m)^failpoint store.write of (\d+)$", said())}
        self.assertEqual({str(self.node.pid)}, by)
        self.assertIsNotNone(host.process(self.node.pid))
        self.node.info.Info(nacre_pb2.InfoRequest())
        self.check_whole()
