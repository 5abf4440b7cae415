#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a unit test program again and again, each time with another allocation failing: failmalloc.py [--seconds S] PROGRAM...

Of the allocations that come from the same call stack the first fails. With --seconds a part of them, spread evenly, until
the time is up. The program may miss its checks then (tests/unit/failmalloc.h); to crash, to leak or to hang is a failure.
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

import elf  # noqa: E402
import host  # noqa: E402

UNMET, LEAKED = 77, 78
# A frame of a sanitizer's report in a file of ours.
FRAME = re.compile(r"^ *#\d+ 0x\w+ in .* \S*/((?:src|tests)/\S+?:\d+)", re.M)
TEST_FILES = ("_test.c", "_test.h", "echo.c")
FAILURES_SHOWN = 10
PR_SET_CHILD_SUBREAPER = 36
MS_NODEV = 4

libc = ctypes.CDLL(None, use_errno=True)


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
    """Status (None: it hung) and output."""
    with tempfile.TemporaryFile() as to:
        process = subprocess.Popen(command, env={**os.environ, "NACRE_FAILMALLOC": str(n)}, stdin=subprocess.DEVNULL,
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


def places(program, output):
    """The numbers of the allocations to fail: one for each call stack, without those that a test makes itself."""
    found = re.findall(r"^# stack (\d+) (\w+)$", output, re.M)
    return [int(n) for (n, _), line in zip(found, lines_of(program, [a for _, a in found])) if not is_test(line)]


def spread(items):
    """The items in an order whose every beginning is spread over all of them: by the index with its bits reversed."""
    bits = max(1, (len(items) - 1).bit_length())
    order = (int(format(i, f"0{bits}b")[::-1], 2) for i in range(1 << bits))
    return [items[i] for i in order if i < len(items)]


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
    if status in (0, UNMET):
        return None
    if status is None:
        return "hangs"
    if status == LEAKED:
        return "leaks"
    # The sanitizer needs memory for its threads, and looks into /proc, where a test may have taken the descriptors away.
    if re.search("LeakSanitizer has encountered a fatal error|AddressSanitizer: CHECK failed", output) or tripped(program, output):
        return None
    return f"ends with status {status}" if status > 0 else f"dies of signal {-status}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--timeout", type=float, default=120, help="of one run")
    parser.add_argument("--at", type=int, action="append", help="only this allocation, with all output")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    began = time.monotonic()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.mount(b"tmpfs", b"/tmp", b"tmpfs", MS_NODEV, b"mode=1777")
    print("1..1", flush=True)
    status, output = run(options.command, "stacks", options.timeout)
    if status != 0:
        print("\n".join("# " + line for line in output.splitlines() if not line.startswith("# stack ")))
        print(f"not ok 1 - with no allocation failing: {verdict(options.command[0], status, output)}")
        return 1
    stacks = places(options.command[0], output)
    judged = elf.holds(options.command[0], b"__asan_init")
    done, failures = 0, 0
    for n in options.at or (spread(stacks) if options.seconds else stacks):
        if options.seconds and time.monotonic() > began + options.seconds:
            break
        status, output = run(options.command, n, options.timeout)
        done += 1
        wrong = verdict(options.command[0], status, output) if judged else None
        if not wrong and not options.at:
            continue
        failures += 1 if wrong else 0
        if failures <= FAILURES_SHOWN:
            print(f"# where allocation {n} fails, it {wrong or 'is fine'}:")
            print("\n".join("#   " + line for line in output.splitlines()[-60:]), flush=True)
    print(f"{'not ' if failures else ''}ok 1 - {done} of {len(stacks)} places that allocate failing, one at a time"
          + (f": {failures} do harm" if failures else ""))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
