# SPDX-License-Identifier: Apache-2.0
"""One process of tests/run: started in a cgroup and namespaces of its own, read as TAP, and judged by what it leaves behind."""
import contextlib
import os
import re
import selectors
import signal
import subprocess
import time

import host
import selection

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PYTHON = "/usr/bin/python3"
TAP = re.compile(r"(not )?ok\b\s*\d*\s*-?\s*(.*)")
OK, FAILED, SKIPPED = "passed", "failed", "skipped"
LINES_SHOWN = 120
# Seconds for the last processes of a job to end by themselves.
PATIENCE = 60
SANITIZER = {
    "ASAN_OPTIONS": "detect_leaks=1:exitcode=99:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=98:report_thread_leaks=0",
}


class Result:
    """One test: its name without the time that it took, one of OK, FAILED and SKIPPED, and what it said."""

    def __init__(self, name, verdict, output=()):
        self.name, self.verdict, self.output = name, verdict, list(output)[-LINES_SHOWN:]


class Job:
    """One process to run: a unit program, a module of whole-daemon tests, the guest.

    `results` has its tests in their order, `faults` what is wrong with the process as a whole, `began` the names of tests that have
    begun. `narrow` makes the command of a second run out of a job that has ended, see retry.py. A job that `is_one_test` has one
    result, whose name differs from run to run.
    """

    def __init__(self, build, name, command, timeout, env=None, narrow=None):
        self.build, self.name, self.command, self.timeout = build, name, command, timeout
        self.env = env or {}
        self.narrow = narrow or (lambda job: job.command)
        self.is_one_test = False
        self.stutter = None
        self.results, self.faults = [], []
        self.matched = set()
        self.pending = []
        self.began = []
        self.current = None
        self.planned = None
        self.seconds = self.processor = 0.0

    def count(self, verdict):
        return sum(r.verdict == verdict for r in self.results) + (len(self.faults) if verdict == FAILED else 0)

    @property
    def failures(self):
        return [r for r in self.results if r.verdict == FAILED] + self.faults

    def fault(self, what, output=()):
        self.faults.append(Result(what, FAILED, output))

    def take(self, line):
        """One line of the program's output."""
        found = TAP.match(line)
        plan = re.match(r"1\.\.(\d+)", line)
        if plan:
            self.planned = int(plan.group(1))
        elif line.startswith(selection.MATCHED):
            self.matched.add(line[len(selection.MATCHED):])
        elif not found:
            self.pending.append(line)
            begin = re.match(r"# begin (.*)", line)
            if begin:
                self.current = begin.group(1)
                self.began.append(self.current)
        else:
            self.judge(bool(found.group(1)), found.group(2))
            self.pending, self.current = [], None

    def judge(self, is_bad, name):
        skipped = re.search(r"\s*# SKIP", name, re.I)
        if is_bad:
            self.results.append(Result(re.sub(r" \(\d+\.\d s\)$", "", name), FAILED, self.pending))
        elif skipped:
            self.results.append(Result(name[:skipped.start()], SKIPPED))
        else:
            self.results.append(Result(re.sub(r" \(\d+\.\d s\)$", "", name), OK))

    def finish(self, code, overtime):
        said = len(self.results)
        if overtime:
            self.fault(f"no end within {self.timeout} s" + (f", in {self.current}" if self.current else ""), self.pending)
        elif self.planned is None:
            self.fault(f"ended with status {code} before it said how many tests it has", self.pending)
        elif said < self.planned:
            self.fault(f"ended with status {code} after {said} of {self.planned} tests", self.pending)
        elif code != 0 and not self.failures:
            self.fault(f"ended with status {code}", self.pending)


class Cage:
    """The cgroup that one job runs in; without cgroup v2 none."""

    def __init__(self, top, job):
        name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{job.build}.{job.name}")
        self.path = os.path.join(top, name) if top else None
        if self.path:
            os.mkdir(self.path)

    def processor(self):
        """Seconds that its processes have computed, in all."""
        found = re.search(r"^usage_usec (\d+)", host.read(os.path.join(self.path, "cpu.stat")), re.M) if self.path else None
        return int(found.group(1)) / 1e6 if found else 0.0

    def close(self, job):
        if not self.path:
            return
        end = time.monotonic() + PATIENCE
        while host.cgroup_pids(self.path) and time.monotonic() < end:
            time.sleep(0.02)
        left = sorted(filter(None, (host.process(p) for p in host.cgroup_pids(self.path))))
        groups = sorted(host.cgroups(self.path))
        if left and not job.failures:
            job.fault("left processes behind", left)
        elif groups and not job.failures:
            job.fault("left cgroups behind", groups)
        job.processor = self.processor()
        if not host.end_cgroup(self.path):
            job.fault("its cgroup could not be ended", [self.path])


def follow(process, job):
    """Feeds the job with lines until the program ends or its time is up; true for the latter."""
    end = time.monotonic() + job.timeout
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < end:
            if not selector.select(timeout=min(1.0, max(0.0, end - time.monotonic()))):
                # A daemon that was left behind may hold the pipe open.
                if process.poll() is not None:
                    return False
                continue
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                return False
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                job.take(line.decode("utf-8", "replace"))
    return True


@contextlib.contextmanager
def stuttering(job, cage):
    """While this lasts the job's processes are held up, where it is asked for and there is a cgroup to find them by."""
    if job.stutter is None or not cage.path:
        yield
        return
    command = [PYTHON, os.path.join(HERE, "stutter.py"), cage.path, f"{job.stutter} {job.name}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    try:
        # It says when it has begun: many a unit test is over before Python has.
        process.stdout.readline()
        yield
    finally:
        process.terminate()
        process.stdout.close()
        if process.wait() != 0:
            job.fault(f"stutter.py ended with status {process.returncode}")


def run_in(job, cage):
    began = time.monotonic()
    command = [PYTHON, os.path.join(HERE, "enclosure.py"), cage.path or "-"] + job.command
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               cwd=ROOT, env={**os.environ, **SANITIZER, **job.env}, start_new_session=True)
    overtime = follow(process, job)
    if overtime:
        process.send_signal(signal.SIGKILL)
    try:
        code = process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        code, overtime = process.wait(), True
    job.finish(code, overtime)
    cage.close(job)
    process.stdout.close()
    job.seconds = time.monotonic() - began
    return job


def run(job, top):
    """Runs it below the cgroup `top` (None where there is no cgroup v2), and returns it."""
    cage = Cage(top, job)
    with stuttering(job, cage):
        return run_in(job, cage)
