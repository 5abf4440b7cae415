# SPDX-License-Identifier: Apache-2.0
"""What a run can leave behind on a Linux host, read from the kernel: mounts, cgroups, links, processes."""
import atexit
import os
import re
import signal
import socket
import subprocess
import tempfile
import time


def read(path, default=""):
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as f:
            return f.read()
    except OSError:
        return default


def cgroup_root():
    """Where the cgroup v2 hierarchy is mounted, or None."""
    for line in read("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        if right.startswith("cgroup2 "):
            return left.split()[4]
    return None


def own_cgroup():
    """The directory of this process's cgroup v2, or None."""
    root = cgroup_root()
    for line in read("/proc/self/cgroup").splitlines():
        if root and line.startswith("0::"):
            return os.path.normpath(root + line[3:])
    return None


def join_cgroup(path):
    with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as f:
        f.write("0")


def enter_cgroup():
    """Outside of tests/run: a cgroup of our own, so that what is ours can be told from what is not. Ended at exit."""
    before = own_cgroup()
    if before is None or "nacre-tests-" in before:
        return
    own = os.path.join(before, f"nacre-tests-{os.getpid()}")
    os.mkdir(own)
    join_cgroup(own)

    def leave():
        join_cgroup(before)
        end_cgroup(own)

    atexit.register(leave)


def mounts(pid="self"):
    """Mount points with type and source; the numbers that differ at every look are left out."""
    found = set()
    for line in read(f"/proc/{pid}/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        found.add(" ".join([fields[4], fields[3]] + right.split()[:2]))
    return found


def cgroups(top):
    """Directories below `top`, as paths from it."""
    found = set()
    if top:
        for folder, names, _ in os.walk(top):
            found.update(os.path.relpath(os.path.join(folder, n), top) for n in names)
    return found


NUMBERED = "+"


def group_name(folder):
    """What a group is called: one that was made ahead of need has a number, and its name as an attribute. None before it has one."""
    base = os.path.basename(folder)
    if NUMBERED not in base:
        return base
    try:
        return os.getxattr(folder, "trusted.nacre.name").decode()
    except OSError:
        return None


def named(path):
    """A path of a group from the root of the hierarchy, with names."""
    parts = path.strip("/").split("/")
    return "/" + "/".join(group_name(os.path.join(cgroup_root(), *parts[:i + 1])) or p for i, p in enumerate(parts))


def group_below(folder, *names):
    """The directory of the group with these names, one in the other, as far as there is one."""
    for name in names:
        found = [e for e in (os.listdir(folder) if os.path.isdir(folder) else ())
                 if NUMBERED in e and group_name(os.path.join(folder, e)) == name]
        folder = os.path.join(folder, *(found or [name]))
    return folder


def nameless(top):
    """The groups that were made ahead of need and are nobody's yet, with those below them, as paths from top."""
    all_of_them = cgroups(top)
    ahead = {c for c in all_of_them if os.path.basename(c).startswith("cell.") and not group_name(os.path.join(top, c))}
    return {c for c in all_of_them if any(c == a or c.startswith(a + "/") for a in ahead)}


def cgroup_pids(top):
    pids = set()
    for folder in [top] + [os.path.join(top, c) for c in cgroups(top)]:
        # A process of an outer pid namespace reads as 0, which kill() would take for "all of my group".
        pids.update(int(p) for p in read(os.path.join(folder, "cgroup.procs")).split() if int(p) > 1)
    return pids


def leads_its_group(pid):
    """Whether a process did not come from another one in its cgroup: a child before its exec looks like its parent."""
    group = read(f"/proc/{pid}/cgroup")
    parent = re.search(r"^PPid:\s*(\d+)", read(f"/proc/{pid}/status"), re.M)
    return bool(group and parent) and read(f"/proc/{parent.group(1)}/cgroup") != group


def show_own_devices():
    """Has /sys tell of the network devices of this network namespace, in the place of the host's, and for the rest of what it did."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "sysfs", "sysfs", folder], check=True)
        for name in ("class", "devices"):
            subprocess.run(["mount", "--bind", f"{folder}/{name}", f"/sys/{name}"], check=True)
        subprocess.run(["umount", folder], check=True)


def links():
    return {name for _, name in socket.if_nameindex()}


def process(pid):
    """"PID name" of a process that is not a zombie, or None."""
    stat = read(f"/proc/{pid}/stat")
    found = re.match(r"\d+ \((.*)\) (\S)", stat, re.S)
    if not found or found.group(2) in "ZX":
        return None
    return f"{pid} {found.group(1)}"


def authority(process_line):
    """What to add to the line of the process that signs for a daemon, and begins with the first certificate that it is asked for."""
    return ", the authority" if read(f"/proc/{process_line.split()[0]}/cmdline").startswith("nacre: gate ca") else ""


def at_rest(pids):
    """{(process, thread): how often it has been put on a processor}, where all that live sleep; else None."""
    found = {}
    for pid in pids:
        for tid in os.listdir(f"/proc/{pid}/task") if os.path.isdir(f"/proc/{pid}/task") else ():
            text = read(f"/proc/{pid}/task/{tid}/status")
            state = re.search(r"^State:\s+(\S)", text, re.M)
            if state and state.group(1) in "ZX":
                continue
            if not state or state.group(1) != "S":
                return None
            found[pid, tid] = re.findall(r"ctxt_switches:\s+(\d+)", text)
    return found


def start_time(pid):
    """In clock ticks since boot: with the pid it names a process for good."""
    stat = read(f"/proc/{pid}/stat")
    return int(stat.rpartition(")")[2].split()[19]) if stat else None


def processes_of(binary):
    """Processes that run the very file `binary`, or a copy whose name begins with nacre and says so in its command line."""
    try:
        want = os.stat(binary)
    except OSError:
        return set()
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            exe = os.stat(f"/proc/{pid}/exe")
        except OSError:
            continue
        if (exe.st_dev, exe.st_ino) == (want.st_dev, want.st_ino):
            found.add(process(pid) or "")
    return found - {""}


def processes_here(binary):
    """The ids of those that are in the network of this test: other modules run the same programs meanwhile."""
    def network(pid):
        try:
            return os.readlink(f"/proc/{pid}/ns/net")
        except OSError:
            return None
    here = network("self")
    return [pid for pid in (int(line.split()[0]) for line in processes_of(binary)) if network(pid) == here]


def end_cgroup(top, seconds=30.0):
    """Kills everything in a cgroup and below it, and removes it. True where nothing was left of it."""
    end = time.monotonic() + seconds
    while os.path.isdir(top):
        for pid in cgroup_pids(top):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for name in sorted(cgroups(top), key=len, reverse=True) + [""]:
            try:
                os.rmdir(os.path.join(top, name) if name else top)
            except OSError:
                pass
        if time.monotonic() > end:
            return False
        if os.path.isdir(top):
            time.sleep(0.02)
    return True
