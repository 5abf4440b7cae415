#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of tests/guest in a virtual machine with cgroup v2 alone, and speaks TAP: guest.py [-k PATTERN]... BUILD

tests/guest/init.c is the other half, and tells what the guest is. The kernel is Debian's (tools/guest-kernel), the machine
QEMU's `microvm`: by KVM where a guest comes up with it, else emulated. Which of the two is tried once and kept in
BUILD/guest/accelerator. A guest that says nothing for SILENCE seconds is ended. The guest's console is shown when something
fails; nothing is left of a run.
"""
import argparse
import ctypes
import fnmatch
import glob
import os
import platform
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import guest_disks  # noqa: E402
import guest_kernel  # noqa: E402

QEMU = "qemu-system-x86_64"
MEMORY = "768"
PROCESSORS = "2"
# Programs that need a kernel with other words than the rest; each such kernel is a machine of its own.
WORDS = {"selinux": ("security=selinux",)}
# The same for validation programs of OCI runtime-tools that want more of a host than most give (AppArmor is Debian's default).
VALIDATION = {"linux_mount_label": WORDS["selinux"], "linux_process_apparmor_profile": (), "linux_rootfs_propagation": (),
              "process_capabilities": ()}
# Without a word from the guest, or from the way there.
SILENCE = 600
# A guest under KVM is up within a second or two, or never: where KVM is itself emulated, its kernel crawls and then dies.
KVM_UP = 20
CONSOLE_LINES = 60
TAP = re.compile(r"(not )?ok\b\s*\d*\s*-?\s*(.*)")
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


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
    def __init__(self, build, place, kernel, accelerator, more=()):
        self.console = os.path.join(place, f"console-{accelerator}.log")
        self.command = command(build, place, kernel, accelerator, self.console, more)
        self.process = None
        self.rest = b""

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def lines(self, silence):
        """What the guest says, line by line, until it ends; None once it has been silent for too long."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(timeout=silence):
                    yield None
                    return
                data = os.read(self.process.stdout.fileno(), 65536)
                if not data:
                    return
                *lines, self.rest = (self.rest + data).split(b"\n")
                for line in lines:
                    yield line.decode("utf-8", "replace").rstrip("\r")

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

    def show_console(self):
        try:
            with open(self.console, encoding="utf-8", errors="replace") as f:
                lines = f.read().splitlines()
        except OSError:
            lines = []
        for line in lines[-CONSOLE_LINES:]:
            print(f"# console: {line.rstrip()}")


def tsc_rate(build):
    done = subprocess.run([os.path.join(build, "tests", "guest", "tsc")], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def command(build, place, kernel, accelerator, console, more=()):
    words = ["console=ttyS0", "reboot=t", "panic=-1", "oops=panic", "quiet", "cgroup_no_v1=all", "hugepages=16", "audit=0", "norandmaps",
             "cryptomgr.notests", "no_timer_check", "mitigations=off", *more]
    line = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M", "microvm,acpi=on,rtc=on,x-option-roms=off",
            "-m", MEMORY, "-smp", PROCESSORS, "-global", "virtio-mmio.force-legacy=false", "-kernel", kernel.image,
            "-initrd", os.path.join(place, "initrd"), "-serial", f"file:{console}", "-chardev", "file,id=port,path=/dev/fd/1",
            "-device", "virtio-serial-device", "-device", "virtserialport,chardev=port", "-device", "virtio-rng-device"]
    for serial in ("root", "swap", "raw"):
        line += ["-drive", f"if=none,id={serial},format=raw,cache=unsafe,discard=unmap,file={place}/{serial}.img",
                 "-device", f"virtio-blk-device,drive={serial},serial={serial}"]
    if accelerator == "kvm":
        line += ["-accel", "kvm", "-cpu", "host"]
    else:
        line += ["-accel", "tcg,thread=multi", "-cpu", "max"]
        words += [f"tsc_early_khz={tsc_rate(build)}", "tsc=reliable"]
    return line + ["-append", " ".join(words)]


def remembered(build):
    """The file that says which accelerator works here, and what it says: None before it was tried on this kernel."""
    path = os.path.join(build, "guest", "accelerator")
    try:
        with open(path, encoding="ascii") as f:
            name, _, release = f.read().strip().partition(" ")
            return path, name if release == platform.release() else None
    except OSError:
        return path, None


def works(build, place, kernel, name):
    with Guest(build, place, kernel, name) as guest:
        try:
            guest.come_up(KVM_UP)
            return True
        except NotUp as e:
            print(f"# a guest under KVM does not come up here ({e}): it is emulated", flush=True)
            return False


def choose(build, place, kernel):
    path, name = remembered(build)
    if name:
        return name
    usable = os.access("/dev/kvm", os.R_OK | os.W_OK) and works(build, place, kernel, "kvm")
    name = "kvm" if usable else "tcg"
    with open(path, "w", encoding="ascii") as f:
        f.write(f"{name} {platform.release()}\n")
    return name


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
    return [n for n in names if not patterns or any(fnmatch.fnmatch(n, f"*{p}*") for p in patterns)]


def run(build, place, names, more, report, fill=None):
    """One machine for all these programs, its kernel with `more` words; `fill` puts more on its disk."""
    os.mkdir(place)
    kernel = guest_kernel.Kernel(os.path.join(build, "guest", "kernel"))
    tree = guest_disks.Tree(os.path.join(place, "tree"))
    guest_disks.fill(tree, build, names)
    if fill:
        fill(tree)
    guest_disks.make(place, tree)
    with open(os.path.join(place, "initrd"), "wb") as f:
        f.write(kernel.first_root(os.path.join(build, "tests", "guest", "init")))
    accelerator = choose(build, place, kernel)
    began = time.monotonic()
    with Guest(build, place, kernel, accelerator, more) as guest:
        try:
            guest.come_up(SILENCE)
            print(f"# up after {time.monotonic() - began:.1f} s, {accelerator}", flush=True)
            wrong = follow(guest, report)
        except NotUp as e:
            wrong = f"the guest does not come up: {e}"
        if wrong or report.failed:
            guest.show_console()
        if wrong:
            report.test(False, wrong)
        print(f"# ended after {time.monotonic() - began:.1f} s", flush=True)


def validate(build, place, programs_place, report):
    """A machine for each module that is in charge of labels."""
    script = os.path.join(guest_disks.GUEST, "validation.sh")
    for more in sorted(set(VALIDATION.values())):
        cases = [n for n in sorted(VALIDATION) if VALIDATION[n] == more]
        run(build, os.path.join(place, "-".join(more) or "plain"), [], more, report,
            lambda tree, cases=cases: guest_disks.fill_validation(tree, programs_place, cases, script))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", action="append", default=[], metavar="PATTERN", help="programs whose name matches *PATTERN*")
    parser.add_argument("--callers", metavar="SCRIPT", help="this script alone, and what it needs of other people's programs")
    parser.add_argument("--validation", metavar="PLACE", help="those programs of OCI runtime-tools, built there, that belong into the guest")
    parser.add_argument("build", metavar="BUILD")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="nacre-guest-") as place:
        try:
            if options.callers:
                run(build, os.path.join(place, "callers"), [], (), report, lambda tree: guest_disks.fill_callers(tree, options.callers))
            if options.validation:
                validate(build, place, options.validation, report)
            for more in [] if options.callers or options.validation else sorted(set(WORDS.values())) + [()]:
                names = [n for n in programs(build, options.k) if WORDS.get(n, ()) == more]
                if names:
                    run(build, os.path.join(place, "-".join(more) or "plain"), names, more, report)
        except (guest_kernel.Missing, OSError) as e:
            report.test(False, f"the guest could not be made: {e}")
    print(f"1..{report.n}", flush=True)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
