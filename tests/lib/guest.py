#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of tests/guest in a virtual machine with cgroup v2 alone, and speaks TAP: guest.py [-k PATTERN]... BUILD

tests/guest/init.c is the other half, and tells what the guest is. The kernel is Debian's (tools/guest-kernel), the machine one of a
node of the build under test (`nacre vm run --kernel`): what its guest says comes by its console (`nacre attach`). By KVM where the
node has booted a guest with it, else emulated; which of the two is kept in BUILD/guest/accelerator. A guest that says nothing for
SILENCE seconds is ended; nothing is left of a run.
"""
import argparse
import contextlib
import glob
import importlib
import os
import platform
import re
import selectors
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import guest_disks  # noqa: E402
import guest_kernel  # noqa: E402
import selection  # noqa: E402

# Of all of it, for -k.
NAME = "guest"
MEMORY = 768 << 20
PROCESSORS = 2
# Its own words are few, and nothing of the kernel's but its last ones is to come between them.
BOOT = ("quiet", "loglevel=3", "oops=panic", "cgroup_no_v1=all", "hugepages=16", "audit=0", "norandmaps", "cryptomgr.notests", "mitigations=off")
# Programs that need a kernel with other words than the rest; each such kernel is a machine of its own.
WORDS = {"selinux": ("security=selinux",)}
# The same for validation programs of OCI runtime-tools that want more of a host than most give (AppArmor is Debian's default).
VALIDATION = {"linux_mount_label": WORDS["selinux"], "linux_process_apparmor_profile": (), "linux_rootfs_propagation": (),
              "process_capabilities": ()}
# Without a word from the guest, or from the way there.
SILENCE = 600
# A node knows by then what KVM is worth, where it tries that at all.
KVM_TRIED = 60
TAP = re.compile(r"(not )?ok\b\s*\d*\s*-?\s*(.*)")


def in_namespaces():
    """Of our own: whatever the node and its machines are and mount ends with this process."""
    if os.environ.get("NACRE_GUEST_INSIDE"):
        return
    os.environ["NACRE_GUEST_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv])


class NotUp(Exception):
    pass


class Report:
    """TAP of several programs as one: each test is called "PROGRAM: TEST"."""

    def __init__(self):
        self.n = 0
        self.program = None
        self.planned = None
        self.said = 0
        self.failed = False

    def where(self):
        return f"in {self.program}" if self.program else "between programs"

    def test(self, ok, name):
        self.n += 1
        self.failed |= not ok
        print(f"{'ok' if ok else 'not ok'} {self.n} - {name}", flush=True)

    def begin(self, program):
        self.program, self.planned, self.said = program, None, 0
        print(f"# begin {program}", flush=True)

    def take(self, line):
        found = TAP.match(line)
        plan = re.match(r"1\.\.(\d+)", line)
        if found and self.program:
            self.said += 1
            self.test(not found.group(1), f"{self.program}: {found.group(2)}")
        elif plan:
            self.planned = int(plan.group(1))
        else:
            print(line if line.startswith("#") else f"# {line}", flush=True)

    def end(self, status):
        if self.planned is None:
            self.test(False, f"{self.program}: ended with status {status} before it said how many tests it has")
        elif self.said < self.planned:
            self.test(False, f"{self.program}: ended with status {status} after {self.said} of {self.planned} tests")
        elif status != "0" and not self.failed:
            self.test(False, f"{self.program}: ended with status {status}")
        self.program = None


class Guest:
    def __init__(self, node, disk, kernel, initrd, more=()):
        self.node, self.name = node, re.sub("[^a-z0-9]", "-", f"guest-{os.path.basename(os.path.dirname(disk))}")
        self.fields = {"image": disk, "format": "raw", "kernel": kernel.image, "initrd": initrd, "args": [*BOOT, *more],
                       "vcpus": PROCESSORS, "memory": MEMORY}
        self.process = None
        self.rest = b""

    def __enter__(self):
        nacre_test = importlib.import_module("nacre_test")
        pb = nacre_test.runtime_pb2
        self.node.runtime.RunVirtualMachine(pb.RunVirtualMachineRequest(meta=pb.Meta(name=self.name), **self.fields))
        self.process = subprocess.Popen([nacre_test.BINARY, "--socket", self.node.socket, "attach", self.name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.node.workloads.Remove(importlib.import_module("nacre_test").nacre_pb2.RemoveRequest(target=self.name, force=True))

    def lines(self, silence):
        """What the guest says, line by line, until it ends; None once it has been silent for too long.

        Who stops asking loses nothing: what came with the last line is there for the next one who asks.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while True:
                while b"\n" in self.rest:
                    line, _, self.rest = self.rest.partition(b"\n")
                    yield line.decode("utf-8", "replace").rstrip("\r")
                if not selector.select(timeout=silence):
                    yield None
                    return
                data = os.read(self.process.stdout.fileno(), 65536)
                if not data:
                    return
                self.rest += data

    def come_up(self, silence):
        """Waits for the guest's first word of its own."""
        end = time.monotonic() + silence
        for line in self.lines(silence):
            if line == "@up":
                return
            if line is None or line.startswith("@broken") or time.monotonic() > end:
                raise NotUp(line or f"not up within {silence} s")
            print(f"# {line}", flush=True)
        raise NotUp("the machine ended before the guest was up")


def remembered(build):
    """The file that says which accelerator works here, and what it says: None before it was tried on this kernel."""
    path = os.path.join(build, "guest", "accelerator")
    try:
        with open(path, encoding="ascii") as f:
            name, _, release = f.read().strip().partition(" ")
            return path, name if release == platform.release() else None
    except OSError:
        return path, None


@contextlib.contextmanager
def a_node(build):
    """A node of the build, which uses KVM where one was seen to boot a guest with it."""
    os.environ["NACRE_BUILD"] = build
    nacre_test = importlib.import_module("nacre_test")
    path, known = remembered(build)
    tries = known != "tcg" and os.access("/dev/kvm", os.R_OK | os.W_OK)
    with nacre_test.Node(f"vm:\n  hardware: {'auto' if tries else 'no'}\n", start=False) as node:
        os.makedirs(node.root)
        if tries:
            # What it is tried with.
            node.cli("guest", "build", "--root", node.root, "--from", os.path.join(build, "guest", "kernel"))
        node.start()
        if tries:
            nacre_test.until(lambda: "hardware virtualization was tried" in node.log(), seconds=KVM_TRIED, what="a verdict on KVM")
        name = "kvm" if re.search("hardware virtualization was tried works=.?yes", node.log()) else "tcg"
        with open(path, "w", encoding="ascii") as f:
            f.write(f"{name} {platform.release()}\n")
        print(f"# {name}", flush=True)
        yield node


def follow(guest, report):
    """Feeds the report with what the guest says; a sentence if that ended badly."""
    for line in guest.lines(SILENCE):
        if line is None:
            return f"no word from the guest for {SILENCE} s, {report.where()}"
        word, _, rest = line.partition(" ")
        if word == "@begin":
            report.begin(rest)
        elif word == "@end":
            report.end(rest.rpartition(" ")[2])
        elif word == "@left":
            report.test(False, f"{rest.partition(' ')[0]}: left {rest.partition(' ')[2]} behind")
        elif word == "@broken":
            return f"the guest does not work: {rest}"
        elif word == "@done":
            return None
        else:
            report.take(line)
    return f"the guest ended {report.where()}"


def programs(build, patterns):
    prefix = os.path.join(build, "tests", "guest", "guest-")
    names = sorted(p[len(prefix):] for p in glob.glob(prefix + "*") if os.path.isfile(p))
    return [n for n in names if selection.wanted(patterns, n) or selection.wanted(patterns, NAME)]


def run(node, build, place, names, more, report, fill=None):
    """One machine for all these programs, its kernel with `more` words; `fill` puts more on its disk."""
    os.mkdir(place)
    kernel = guest_kernel.Kernel(os.path.join(build, "guest", "kernel"))
    tree = guest_disks.Tree(os.path.join(place, "tree"))
    guest_disks.fill(tree, build, names)
    if fill:
        fill(tree)
    disk, initrd = guest_disks.make(place, tree), os.path.join(place, "initrd")
    with open(initrd, "wb") as f:
        f.write(kernel.first_root(os.path.join(build, "tests", "guest", "init")))
    began = time.monotonic()
    with Guest(node, disk, kernel, initrd, more) as guest:
        try:
            guest.come_up(SILENCE)
            print(f"# up after {time.monotonic() - began:.1f} s", flush=True)
            wrong = follow(guest, report)
        except NotUp as e:
            wrong = f"the guest does not come up: {e}"
        if wrong:
            report.test(False, wrong)
        print(f"# ended after {time.monotonic() - began:.1f} s", flush=True)


def validate(node, build, place, programs_place, report):
    """A machine for each module that is in charge of labels."""
    script = os.path.join(guest_disks.GUEST, "validation.sh")
    for more in sorted(set(VALIDATION.values())):
        cases = [n for n in sorted(VALIDATION) if VALIDATION[n] == more]
        run(node, build, os.path.join(place, "-".join(more) or "plain"), [], more, report,
            lambda tree, cases=cases: guest_disks.fill_validation(tree, programs_place, cases, script))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", action="append", default=[], metavar="PATTERN", help="programs whose name matches *PATTERN*")
    parser.add_argument("--callers", metavar="SCRIPT", help="this script alone, and what it needs of other people's programs")
    parser.add_argument("--validation", metavar="PLACE", help="those programs of OCI runtime-tools, built there, that belong into the guest")
    parser.add_argument("build", metavar="BUILD")
    options = parser.parse_args()
    in_namespaces()
    build = os.path.abspath(options.build)
    selection.tell(options.k, [*programs(build, []), NAME])
    report = Report()
    with tempfile.TemporaryDirectory(prefix="nacre-guest-") as place, a_node(build) as node:
        try:
            if options.callers:
                run(node, build, os.path.join(place, "callers"), [], (), report, lambda tree: guest_disks.fill_callers(tree, options.callers))
            if options.validation:
                validate(node, build, place, options.validation, report)
            for more in [] if options.callers or options.validation else sorted(set(WORDS.values())) + [()]:
                names = [n for n in programs(build, options.k) if WORDS.get(n, ()) == more]
                if names:
                    run(node, build, os.path.join(place, "-".join(more) or "plain"), names, more, report)
        except (guest_kernel.Missing, OSError) as e:
            report.test(False, f"the guest could not be made: {e}")
    print(f"1..{report.n}", flush=True)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
