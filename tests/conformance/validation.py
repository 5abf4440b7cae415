#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The validation programs of OCI runtime-tools against a runtime: validation.py [--runtime PROGRAM] [-k PATTERN]... [-v] BUILD

Each program is one case. They are built from Go's module proxy (what from exactly: oci/go.mod), in BUILD, and run where they
can leave nothing: in pid, mount and cgroup namespaces, with cgroup v2 alone. A case passes if it ends well and says "not ok"
nowhere. EXPECTED lists those that do not, and why; one that is listed there and passes is a failure too (but for LUCKY). Those
that want more of a host than most give run in the guest (VALIDATION in tests/lib/guest.py), for BUILD's own runtime.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import in_guest  # noqa: E402
from guest import VALIDATION  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TOOLS = "github.com/opencontainers/runtime-tools"
# Most of the time of a case is a poll once a second.
AT_ONCE = 4
CASE_SECONDS = 400


def always():
    return True


CGROUP_V1 = "reads what it checks from cgroup v1, and gives up where there is only v2 (runtime-tools issue 807)"
# {case: (when it fails, what it says then, why)}. Why: it needs cgroup v1, or is wrong by the word of runtime-tools' own tracker or,
# where it fell behind, of the specification's.
EXPECTED = {
    **{f"linux_cgroups_{form}{kind}": (always, "", CGROUP_V1) for form in ("", "relative_")
       for kind in ("blkio", "cpus", "devices", "hugetlb", "memory", "network", "pids")},
    "delete_resources": (always, "", CGROUP_V1),
    "delete_only_create_resources": (always, "", CGROUP_V1),
    "hooks": (always, "Hooks MUST be called in the listed order",
              "reads what its hooks wrote when it has removed it, and wants other words than they write (runtime-tools issue 781)"),
    "misc_props": (always, "MUST NOT generate an error if they encounter an unknown annotation key",
                   "asks for /runtimetest in the bundle of that case, and has not put it there"),
    "pidfile": (always, "works", "signals a container whose program, true, has ended, and wants no error (runtime-tools pull request 813)"),
    "start": (always, "exit status|was not set", "wants no error where `process` is not set, where the specification wants one (runtime-tools pull request 813)"),
    "process_rlimits": (always, "RLIMIT_NOFILE", "looks from within a Go program, whose runtime has raised that limit by then (runtime-tools issue 806)"),
    "prestart": (always, "MUST be called after the `start` operation is called",
                 "wants prestart hooks in `start`; the specification has had them in `create` since 2020 (runtime-spec pull requests 1008, 1275)"),
    "hooks_stdin": (always, "in the stdin of prestart hook",
                    "wants `created` there; `creating` is what the specification says by now (runtime-spec pull request 1008)"),
    "poststart_fail": (always, "hook poststart.0.",
                       "wants a warning alone; the specification wants an error by now (runtime-spec pull request 1262)"),
    "process_capabilities_fail": (always, "Any value which cannot be mapped",
                                  "wants an error of an unknown capability; since 1.1 the specification wants a warning (runtime-spec pull request 1094)"),
}
# Those of them that pass where time wills it: the program may not have ended yet.
LUCKY = {"pidfile"}
# Cases that race against the container by what they do, and how often they may lose. `start` returns when the program is
# executed, and no runtime knows how far that has come: the programs would have to wait for it. Runc's own tests wait (runc pull
# request 5256). None of 24 lost at a load of 15.
RACES = {
    "killsig": 5,  # signals a shell that has not come to its `trap` yet; pid 1 of a namespace does not get what it does not handle
    "poststart": 5,  # wants the line of a program that is executed by then, and maybe no further, before that of the hook
}


class NoGo(Exception):
    pass


def find_go():
    return shutil.which("go") or next((p for p in ("/usr/local/go/bin/go", "/usr/lib/go/bin/go") if os.path.exists(p)), None)


def build_programs(place):
    """Builds all of them in `place`, once."""
    if os.path.exists(os.path.join(place, "complete")):
        return
    go = find_go()
    if not go:
        raise NoGo("Go is not installed")
    print(f"go build {TOOLS}/validation", flush=True)
    os.makedirs(place, exist_ok=True)
    # Where `go build` runs it may want to change go.mod: not the one in the tree.
    for name in ("go.mod", "go.sum"):
        shutil.copy(os.path.join(HERE, "oci", name), place)
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    subprocess.run([go, "build", "-ldflags=-s -w", "-o", "bin/", f"{TOOLS}/validation/...", f"{TOOLS}/cmd/runtimetest"],
                   cwd=place, env=env, check=True)
    source = subprocess.run([go, "list", "-m", "-f", "{{.Dir}}", TOOLS], cwd=place, env=env, check=True, capture_output=True, text=True)
    shutil.copy(os.path.join(source.stdout.strip(), "rootfs-amd64.tar.gz"), place)
    open(os.path.join(place, "complete"), "w", encoding="ascii").close()


def judge(text, status):
    """What is wrong with what a program said; None if nothing."""
    if status != 0:
        return f"ended with status {status}"
    found = re.search(r"^\s*not ok.*", text, re.M)
    if found:
        return found.group(0).strip()
    if not re.search(r"^\s*ok\b", text, re.M) and '"error":' in text:
        # Some tell of an error beside a plan of no tests.
        return re.search(r'"error":.*', text).group(0)
    return None


def run_case(name, place, runtime):
    """(what is wrong or None, all that it said)"""
    for _ in range(RACES.get(name, 0)):
        wrong, text = run_once(name, place, runtime)
        if not wrong:
            return wrong, text
    return run_once(name, place, runtime)


def run_once(name, place, runtime):
    try:
        done = subprocess.run([os.path.join(place, "bin", name)], cwd=os.environ["TMPDIR"], env={**os.environ, "RUNTIME": runtime},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=CASE_SECONDS, check=False)
    except subprocess.TimeoutExpired as e:
        return f"no end within {CASE_SECONDS} s", (e.stdout or b"").decode("utf-8", "replace")
    text = done.stdout.decode("utf-8", "replace")
    return judge(text, done.returncode), text


def verdict(name, wrong, text):
    """(passed, failed, skipped, a sentence for a failure)"""
    when, says, reason = EXPECTED.get(name, (None, "", ""))
    expected = when is not None and when()
    if wrong and expected and re.search(says, text):
        return 0, 0, 1, f"{name}: skipped: {reason}"
    if wrong:
        return 0, 1, 0, f"FAIL {name}: {wrong}\n" + "".join(f"    {line}\n" for line in text.splitlines()[-60:])
    if expected and name not in LUCKY:
        return 0, 1, 0, f"FAIL {name}: passes, though it should not, because it {reason}"
    return 1, 0, 0, f"{name}: passed"


def is_wanted(name, patterns):
    return not patterns or any(fnmatch.fnmatch(name, k) for k in patterns)


def run_inside(options):
    """In namespaces of its own: everything that is mounted or started ends with them."""
    scratch = tempfile.mkdtemp(prefix="nacre-validation-")
    for command in (["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"],
                    ["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", scratch],
                    ["mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup"], ["mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup"]):
        subprocess.run(command, check=True)
    os.environ["TMPDIR"] = scratch
    for name in ("rootfs-amd64.tar.gz", os.path.join("bin", "runtimetest")):
        shutil.copy(os.path.join(options.place, name), scratch)
    names = sorted(n for n in os.listdir(os.path.join(options.place, "bin")) if n != "runtimetest" and n not in VALIDATION)
    names = [n for n in names if is_wanted(n, options.k)]
    counts = [0, 0, 0]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = {n: pool.submit(run_case, n, options.place, options.runtime) for n in names}
        for name, job in jobs.items():
            *found, sentence = verdict(name, *job.result())
            counts = [a + b for a, b in zip(counts, found)]
            if found[1] or options.verbose:
                print(sentence, flush=True)
    with open(options.inside, "w", encoding="ascii") as f:
        json.dump(counts, f)


def own_runtime(build):
    """BUILD's nacre under the name by which it is a runtime."""
    link = os.path.join(build, "conformance", "nacre-oci")
    os.makedirs(os.path.dirname(link), exist_ok=True)
    if not os.path.islink(link):
        os.symlink(os.path.join(build, "nacre"), link)
    return link


def run(build, runtime, extra=(), guest=True):
    """(passed, failed, skipped); guest: also of what runs there"""
    place = os.path.join(build, "conformance", "oci")
    try:
        build_programs(place)
    except NoGo as e:
        print(f"OCI validation: {e}", flush=True)
        return 0, 0, 1
    with tempfile.NamedTemporaryFile(mode="r", prefix="nacre-validation-") as counts:
        done = subprocess.run(["unshare", "--pid", "--mount", "--cgroup", "--propagation", "private", "--fork", "--kill-child", "--mount-proc",
                               sys.executable, __file__, "--inside", counts.name, "--place", place, "--runtime", runtime, *extra, build],
                              check=False)
        if done.returncode != 0:
            return 0, 1, 0
        found = json.load(counts)
    there = (0, 0, 0)
    if guest:
        there = in_guest.run(build, "OCI validation", len(VALIDATION), "--validation", place, programs=("apparmor_parser", "checkpolicy"))
    return tuple(a + b for a, b in zip(found, there))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("--runtime", help="another one than BUILD's nacre-oci")
    parser.add_argument("-k", action="append", default=[], metavar="PATTERN", help="cases whose name matches")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for every case")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_inside(options)
        return 0
    build = os.path.abspath(options.build)
    runtime = options.runtime or own_runtime(build)
    extra = [word for k in options.k for word in ("-k", k)] + (["-v"] if options.verbose else [])
    passed, failed, skipped = run(build, runtime, extra, guest=not options.runtime and any(is_wanted(n, options.k) for n in VALIDATION))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
