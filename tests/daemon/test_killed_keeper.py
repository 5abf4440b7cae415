# SPDX-License-Identifier: Apache-2.0
"""A keeper, or a process that is being started, is killed in front of each step of the table and behind it."""
import re

import faults
import nacre_test


@faults.spread
class Keeper(faults.FaultTest):
    def fail_keepers(self, plan):
        """Keepers that are made from now on fail; the daemon, and the keeper of the node, do not."""
        self.assertTrue(self.restart_with(NACRE_FAILPOINT="", NACRE_KEEPER_FAILPOINT=plan))
        self.flow()
        self.assertAlive()
        self.check_settled()
        self.clear_all()

    @faults.for_each(faults.places("keeper", "any"))
    def killed_at(self, place):
        said = self.log_from_here()
        self.fail_keepers(f"{place}=crash")
        nacre_test.until(lambda: re.search(rf"(?m)^failpoint {re.escape(place)} of \d+$", said()), what=f"the crash at {place}")
        self.check_whole()

    # A signal that got lost is sent again some seconds later, so that one does not fail each time.
    ONCE = ("keeper.signal",)

    @faults.for_each([p.name for p in faults.table() if p.who in ("keeper", "any")])
    def error_at(self, name):
        self.fail_keepers(f"{name}{'@1' if name in self.ONCE else ''}=error:28")
        self.check_whole()


@faults.spread
class Child(faults.FaultTest):
    """A process dies between clone and exec, at each of its steps."""

    STEPS = 24

    @faults.for_each([str(k) for k in faults.some(range(1, STEPS + 1), 8)])
    def killed_at_step(self, k):
        said = self.log_from_here()
        plan = f"spawn.step@{k}=crash"
        if self.restart_with(NACRE_FAILPOINT=plan):
            self.flow()
            self.assertAlive()
            self.check_settled()
        nacre_test.until(lambda: re.search(r"(?m)^failpoint spawn.step of \d+$", said()), what="the crash")
        self.check_whole()

    @faults.for_each(["1", "12"])
    def error_at_step(self, k):
        self.assertTrue(self.restart_with(NACRE_FAILPOINT=f"spawn.step@{k}=error:12"))
        self.flow()
        self.assertAlive()
        self.check_settled()
        self.check_whole()
