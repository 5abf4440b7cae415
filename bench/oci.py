# SPDX-License-Identifier: Apache-2.0
"""The rows of bench/run about `nacre oci`: against Debian's crun and runc, which run the same bundle."""
import contextlib
import json
import os
import shutil
import statistics
import subprocess

BURSTS = 20
AT_ONCE = 50
# The last bursts against the first ones: what this machine does to equal ones is less.
SLOPE = 1.3
ENDS = 5


class Runner:
    """One runtime, whose `run` is measured from a small program of ours. A context manager."""

    def __init__(self, build, program, bundle, scratch, hide=None):
        name = os.path.basename(program[0])
        root = os.path.join(scratch, f"oci-{name}")
        os.makedirs(root, exist_ok=True)
        hidden = ["--hide", hide] if hide else []
        self.command = [os.path.join(build, "bench", "burst"), *hidden, *program, "--root", root, "run", "--bundle", bundle, "%"]
        self.times, self.memory = [], 0

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def run(self, at_once=1):
        """Microseconds; and how many failed."""
        self.process.stdin.write(f"{at_once}\n")
        self.process.stdin.flush()
        us, kilobytes, failed = self.process.stdout.readline().split()
        self.memory = max(self.memory, int(kilobytes))
        return float(us), int(failed)

    def measure(self):
        us, failed = self.run()
        if failed:
            raise SystemExit(f"bench: this does not work: {' '.join(self.command)}")
        self.times.append(us)


def make_bundle(nacre, lower, scratch):
    """`spec` of ours with /bin/true and without a terminal: new namespaces of every kind but user and time."""
    bundle = os.path.join(scratch, "bundle")
    os.makedirs(bundle, exist_ok=True)
    subprocess.run([*nacre, "spec", "--bundle", bundle], check=True)
    path = os.path.join(bundle, "config.json")
    with open(path, encoding="utf-8") as f:
        config = json.load(f)
    # What Debian's crun knows of.
    config["ociVersion"] = "1.0.2"
    config["root"] = {"path": lower, "readonly": True}
    config["process"].update({"terminal": False, "args": ["/bin/true"]})
    # Those who may not raise limits shall measure too.
    config["process"].pop("rlimits", None)
    kinds = {n["type"] for n in config["linux"]["namespaces"]} | {"cgroup"}
    config["linux"]["namespaces"] = [{"type": kind} for kind in sorted(kinds - {"user", "time"})]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f)
    return bundle


def without_profile(bundle):
    """A copy of the bundle without a seccomp profile, which each runtime compiles in its own way and at a price of its own."""
    plain = bundle + "-plain"
    os.makedirs(plain, exist_ok=True)
    with open(os.path.join(bundle, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    config["linux"].pop("seccomp", None)
    with open(os.path.join(plain, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    return plain


def hybrid():
    """Where v2 is mounted beside v1: crun refuses that, and uses v1 where it does not see it."""
    mounted = {}
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            left, right = line.split(" - ", 1)
            mounted[right.split()[0]] = left.split()[4]
    return mounted["cgroup2"] if "cgroup" in mounted and "cgroup2" in mounted else None


def bench_bursts(table, runner):
    times, failed = [], 0
    for _ in range(BURSTS):
        us, bad = runner.run(AT_ONCE)
        times.append(us)
        failed += bad
    table.row(f"oci: {BURSTS * AT_ONCE} starts in bursts of {AT_ONCE}: failed", failed, "", 0)
    slope = statistics.median(times[-ENDS:]) / statistics.median(times[:ENDS])
    table.row("oci: the last bursts / the first ones", slope, "x", SLOPE, f"{statistics.median(times) / AT_ONCE:.0f} us each start")


def bench_bundle(table, build, bundle, scratch, rounds, note="", bursts=False):
    nacre = [os.path.join(build, "nacre"), "oci"]
    others = [(name, hybrid() if name == "crun" else None) for name in ("crun", "runc") if shutil.which(name)]
    ours = Runner(build, nacre, bundle, scratch)
    theirs = {name: Runner(build, [name], bundle, scratch, hide) for name, hide in others}
    with contextlib.ExitStack() as stack:
        runners = [stack.enter_context(r) for r in (ours, *theirs.values())]
        for _ in range(rounds):
            for runner in runners:
                runner.measure()
        if bursts:
            bench_bursts(table, ours)
    median = statistics.median(ours.times)
    for name, runner in theirs.items():
        other = statistics.median(runner.times)
        table.row(f"oci run of /bin/true{note} / {name} run", median / other, "x", 0.5,
                  f"{median:.0f} us against {other:.0f} us (medians)")
        table.row(f"oci run{note}: peak memory / {name}", ours.memory / runner.memory, "x", 1,
                  f"{ours.memory / 1024:.1f} MiB against {runner.memory / 1024:.1f} MiB")


def bench_oci(table, build, lower, scratch, rounds):
    bundle = make_bundle([os.path.join(build, "nacre"), "oci"], lower, scratch)
    bench_bundle(table, build, bundle, scratch, rounds, bursts=True)
    bench_bundle(table, build, without_profile(bundle), scratch, rounds, note=" without a profile")
