#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the processes of a test stutter: stutter.py CGROUP SEED, until SIGTERM or until the cgroup is gone.

Processes in the cgroup and below it (client, daemon, keepers, helpers, containers) are held for 5 to 300 ms at random
moments, new ones more often than old ones, so that what happens on two sides of a socket, or in the kernel and in a daemon,
comes in any order. A test that takes one order for granted then fails here, and not on another machine.

A process is held by ptrace and not by SIGSTOP: nobody is told, a test's own SIGSTOP stays what it is, and all go on by
themselves should this process end. A pid is no danger: what is no child of the cgroup any more is merely held for a while.
"""
import ctypes
import os
import random
import signal
import sys
import time

import host

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000
EVENT_STOP = 128
# Seconds: of one look at who is there, and of what is held.
TICK, SHORTEST, LONGEST = 0.004, 0.005, 0.3
# Of these, one at each look: what is new, and what has been seen before, if it is ours, and if it is not.
NEW, OLD_OURS, OLD_OTHER = 0.4, 0.04, 0.01

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, tid, data=0):
    return libc.ptrace(request, tid, None, data) == 0


def is_ours(pid):
    """A program that is tested, and not one that is run by it."""
    return host.read(f"/proc/{pid}/comm").startswith(("nacre", "unit-"))


class Stutter:
    def __init__(self, cgroup, seed):
        self.cgroup = cgroup
        self.random = random.Random(seed)
        # tid: when it goes on; and of those that have stopped the signal that they are to be given then.
        self.held = {}
        self.stopped = {}
        self.known = {}

    def threads(self, pid):
        try:
            return [int(t) for t in os.listdir(f"/proc/{pid}/task")]
        except OSError:
            return []

    def hold(self, pid):
        """All threads, also those that come while this looks at them."""
        until = time.monotonic() + min(LONGEST, SHORTEST + self.random.expovariate(1 / 0.06))
        new = True
        while new:
            new = [t for t in self.threads(pid) if t not in self.held and ptrace(PTRACE_SEIZE, t)]
            for tid in new:
                self.held[tid] = until
                ptrace(PTRACE_INTERRUPT, tid)

    def take_word(self):
        """Everything that the kernel has to tell about what is held."""
        while self.held:
            try:
                tid, status = os.waitpid(-1, WALL | os.WNOHANG)
            except ChildProcessError:
                return
            if tid == 0:
                return
            if os.WIFSTOPPED(status):
                self.stopped[tid] = 0 if status >> 16 == EVENT_STOP else os.WSTOPSIG(status)
            else:
                self.held.pop(tid, None)
                self.stopped.pop(tid, None)

    def let_go(self, now):
        """One that cannot stop yet, as it waits in the kernel, goes on as soon as it has."""
        for tid in [t for t in self.stopped if self.held.get(t, 0) <= now]:
            ptrace(PTRACE_DETACH, tid, self.stopped.pop(tid))
            self.held.pop(tid, None)

    def look(self):
        pids = host.cgroup_pids(self.cgroup)
        for pid in sorted(pids):
            age = self.known.get(pid, 0)
            self.known[pid] = age + 1
            # A child before its execve is as new as one after it.
            chance = NEW if age < 2 else OLD_OURS if is_ours(pid) else OLD_OTHER
            if pid not in self.held and self.random.random() < chance:
                self.hold(pid)
        self.known = {p: n for p, n in self.known.items() if p in pids}

    def run(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
        print("ready", flush=True)
        looked = 0.0
        while os.path.isdir(self.cgroup):
            told = signal.sigtimedwait({signal.SIGCHLD, signal.SIGTERM}, TICK)
            if told and told.si_signo == signal.SIGTERM:
                return
            now = time.monotonic()
            self.take_word()
            self.let_go(now)
            if now >= looked + TICK:
                looked = now
                self.look()


def main():
    Stutter(sys.argv[1], sys.argv[2]).run()


if __name__ == "__main__":
    main()
