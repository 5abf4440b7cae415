#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each test of a unit test program again and again, each time with another allocation failing:
failmalloc.py [--seconds S] PROGRAM...

Of the allocations that come from the same call stack the first fails. With --seconds a part of them, until the time is up: first
one for each line of code that allocates, then the others, spread evenly. The test may miss its checks then
(tests/unit/failmalloc.h); to crash, to leak or to hang is a failure.
A program without AddressSanitizer, one that counts branches, is run in the same way and not judged.
Speaks TAP: one test.
"""
import argparse
import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import cover  # noqa: E402
import elf  # noqa: E402
import host  # noqa: E402

UNMET, LEAKED = 77, 78
# A frame of a sanitizer's report in a file of ours.
FRAME = re.compile(r"^ *#\d+ 0x\w+ in .* \S*/((?:src|tests)/\S+?:\d+)", re.M)
TEST_FILES = ("_test.c", "_test.h", "echo.c")
# What a sanitizer or a failed assert() says, also in a child of the program.
REPORT = re.compile(r"ERROR: \w+Sanitizer|: runtime error: |: Assertion `|Sanitizer:DEADLYSIGNAL")
# The sanitizer needs memory for its threads, and looks into /proc, where a test may have taken the descriptors away.
SANITIZER_FAILS = re.compile(r"LeakSanitizer has encountered a fatal error|Sanitizer: CHECK failed")
FAILURES_SHOWN = 10
PR_SET_CHILD_SUBREAPER = 36
ADDR_NO_RANDOMIZE = 0x40000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
CLONE_NEWNS = 0x00020000

libc = ctypes.CDLL(None, use_errno=True)


def own_tmp(program):
    """A mount namespace with a /tmp of its own."""
    if libc.unshare(CLONE_NEWNS):
        sys.exit(f"failmalloc: make a mount namespace: {os.strerror(ctypes.get_errno())}")
    try:
        cover.mount("none", "/", None, MS_REC | MS_PRIVATE)
        cover.cover("/tmp", cover.build_of(program))
    except OSError as e:
        sys.exit(f"failmalloc: {e.strerror}")


def end_children():
    """What the program left: its orphans come to this process."""
    while True:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as f:
            pids = [int(p) for p in f.read().split()]
        if not pids:
            return
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        # Whichever: the first process of a pid namespace ends after those that joined it were waited for.
        os.waitpid(-1, 0)


def remove_groups(pid):
    """What a program made below this process's own group, or at the top with its pid in the name."""
    own, top = host.own_cgroup(), host.cgroup_root()
    for group in sorted(host.cgroups(own)) if own else ():
        if "/" not in group:
            host.end_cgroup(os.path.join(own, group))
    for name in os.listdir(top) if top else ():
        if name.startswith("nacre-") and name.endswith(f"-{pid}"):
            host.end_cgroup(os.path.join(top, name))


def run(command, n, timeout):
    """What NACRE_FAILMALLOC=n makes of it: status (None: it hung) and output."""
    with tempfile.TemporaryFile() as to:
        process = subprocess.Popen(command, env={**os.environ, "NACRE_FAILMALLOC": n, "NACRE_RACES": "5"}, stdin=subprocess.DEVNULL,
                                   stdout=to, stderr=subprocess.STDOUT, cwd="/tmp", start_new_session=True)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            status = None
        end_children()
        remove_groups(process.pid)
        to.seek(0)
        return status, to.read().decode("utf-8", "replace")


def lines_of(program, addresses):
    """"FILE:LINE" of each address, FILE from the top of the tree."""
    lines = subprocess.run(["addr2line", "-e", program], input="\n".join(addresses), capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return [re.sub(r".*/((?:src|tests)/)", r"\1", line.split(" ")[0]) for line in lines]


def is_test(line):
    return line.split(":")[0].endswith(TEST_FILES)


def tripped(program, output):
    """
    Whether the test itself ran into what it did not get: the innermost function of ours in a sanitizer's report is the
    test's, or was called by the test (also through another) in a line other than the one in which the allocation failed.
    """
    frames = FRAME.findall(output.partition("previously allocated")[0].partition("freed by")[0])[:3]
    called = next((f for f in frames if is_test(f)), None)
    if not called or called == frames[0]:
        return called is not None
    failing = re.search(r"^# failing((?: \w+)+)$", output, re.M)
    return ("null pointer" in output or "zero page" in output) and failing is not None \
        and called not in lines_of(program, failing.group(1).split())


def verdict(program, status, output):
    """What is wrong with a run, or None."""
    if status is None:
        return "hangs"
    if SANITIZER_FAILS.search(output):
        return None
    if status == LEAKED:
        return "leaks"
    if REPORT.search(output):
        return None if tripped(program, output) else "breaks a rule of the sanitizer"
    if status in (0, UNMET):
        return None
    return f"ends with status {status}" if status > 0 else f"dies of signal {-status}"


def spread(items):
    """The items in an order whose every beginning is spread over all of them: by the index with its bits reversed."""
    bits = max(1, (len(items) - 1).bit_length())
    order = (int(format(i, f"0{bits}b")[::-1], 2) for i in range(1 << bits))
    return [items[i] for i in order if i < len(items)]


def by_line(stacks, lines):
    """The stacks that do not come from a test: first one of each line, each of the two parts spread over the program."""
    first, more, seen = [], [], set()
    for n, line in zip(stacks, lines):
        if is_test(line):
            continue
        (more if line in seen else first).append(n)
        seen.add(line)
    return spread(first) + spread(more)


def places(command, timeout):
    """
    (TEST:N of each allocation to fail, what is wrong without any): one for each call stack, in the first test that has it,
    without those that a test makes itself. First come as many as there are lines of code that allocate, one for each.
    """
    seen, found, tests, test = set(), [], 1, 0
    while test < tests:
        test += 1
        status, output = run(command, f"{test}:stacks", timeout)
        wrong = verdict(command[0], status, output)
        if status != 0:
            lines = [line for line in output.splitlines() if not line.startswith("# stack ")]
            return [], f"test {test} alone, with no allocation failing, {wrong or 'misses a check'}:\n" + "\n".join(lines[-60:])
        tests = int(re.search(r"^1\.\.(\d+)", output, re.M).group(1))
        stacks = re.findall(r"^# stack (\d+) (\w+) (\w+)$", output, re.M)
        found += [(f"{test}:{n}", address) for n, address, which in stacks if which not in seen]
        seen.update(which for _, _, which in stacks)
    lines = lines_of(command[0], [address for _, address in found])
    return by_line([n for n, _ in found], lines), None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="stop after so long with allocations that fail")
    parser.add_argument("--timeout", type=float, default=120, help="of one run: longer than a test waits in all")
    parser.add_argument("--at", action="append", metavar="TEST:N", help="only this allocation of this test, with all output")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The same stack then has the same addresses in each run.
    libc.personality(ADDR_NO_RANDOMIZE)
    # Called by hand, remove_groups() would end those of everybody else in this process's group.
    host.enter_cgroup()
    own_tmp(options.command[0])
    print("1..1", flush=True)
    stacks, wrong = (options.at, None) if options.at else places(options.command, options.timeout)
    if wrong:
        print("\n".join("# " + line for line in wrong.splitlines()) + "\nnot ok 1 - each test alone")
        return 1
    judged = elf.holds(options.command[0], b"__asan_init")
    done, began = 0, time.monotonic()
    seconds = None if options.at else options.seconds
    harm = []
    for n in stacks:
        if seconds and time.monotonic() > began + seconds:
            break
        status, output = run(options.command, n, options.timeout)
        done += 1
        wrong = verdict(options.command[0], status, output) if judged else None
        if not wrong and not options.at:
            continue
        harm += [n] if wrong else []
        if len(harm) <= FAILURES_SHOWN:
            print(f"# where allocation {n} fails, it {wrong or 'is fine'}:")
            print("\n".join("#   " + line for line in output.splitlines()[-60:]), flush=True)
    # For tests/run, which tries these again.
    for n in harm:
        print(f"# harm at {n}")
    print(f"{'not ' if harm else ''}ok 1 - {done} of {len(stacks)} places that allocate failing, one at a time"
          + (f": {len(harm)} do harm" if harm else ""))
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main())
