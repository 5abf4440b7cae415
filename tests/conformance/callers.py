#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's podman and containerd with nacre-oci as their runtime: callers.py [BUILD [races]]

Each caller runs, enters, pauses, stops and removes containers, and its own words and exit statuses are what is checked. All
in pid, mount and cgroup namespaces of its own, with private /tmp and /run, and once with the cgroups of this host as they
are, once with version 2 alone. Where no controller of version 2 is to be had (a hybrid host keeps them in version 1)
nothing is limited: --pids-limit -1. What they do with limits, with the freezer and with criu is seen in the guest of
`make guest`, which has version 2 alone: tests/guest/callers.sh.

The case podman_races starts containers whose image has links into a volume, while another process exchanges directories there:
a tenth as often as the environment variable NACRE_RACES says (500), since podman takes its time. `races`: that case alone.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import in_guest  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = ("podman", "conmon", "containerd", "ctr", "busybox")
SECONDS = 400
RACES = int(os.environ.get("NACRE_RACES", "500"))
CONTAINERD = """version = 2
root = "/tmp/cd/root"
state = "/tmp/cd/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
address = "/tmp/cd/sock"
"""


class Failed(Exception):
    pass


def call(*words, status=0, said=None):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=SECONDS)
    text = done.stdout + done.stderr
    if done.returncode != status:
        raise Failed(f"{' '.join(words)}: exit status {done.returncode}, not {status}\n{text}")
    if said is not None and said not in text:
        raise Failed(f"{' '.join(words)}: does not say {said!r}\n{text}")
    return done.stdout


def rootfs():
    path = "/tmp/rootfs"
    for name in ("bin", "dev", "proc", "sys", "tmp", "etc", "run"):
        os.makedirs(os.path.join(path, name))
    shutil.copy(shutil.which("busybox"), os.path.join(path, "bin", "busybox"))
    for name in ("sh", "echo", "ps", "sleep", "tty", "id", "cat"):
        os.symlink("busybox", os.path.join(path, "bin", name))
    return path


def mounting_hooks():
    """Two hooks that each mount a directory below the root, in the container's mount namespace, as GPU hooks do; their directory."""
    path = "/tmp/hooks"
    script = """state=$(cat)
rootfs=$(echo "$state" | sed 's/.*"rootfs":[ ]*"\\([^"]*\\)".*/\\1/' | tr -d '\\n')
pid=$(echo "$state" | sed 's/.*"pid":[ ]*\\([0-9]*\\).*/\\1/' | tr -d '\\n')
exec $(test $1 = prestart && echo nsenter --mount=/proc/$pid/ns/mnt) sh -ec "mkdir -p $rootfs/run/$2; mount --bind /tmp/$1 $rootfs/run/$2"
"""
    os.mkdir(path)
    with open("/tmp/hook.sh", "w", encoding="ascii") as f:
        f.write(script)
    for stage, name in (("prestart", "a"), ("createContainer", "b")):
        os.mkdir(f"/tmp/{stage}")
        with open(f"/tmp/{stage}/seen", "w", encoding="ascii") as f:
            f.write(stage + "\n")
        with open(f"{path}/{stage}.json", "w", encoding="ascii") as f:
            json.dump({"version": "1.0.0", "when": {"always": True}, "stages": [stage],
                       "hook": {"path": "/bin/sh", "args": ["sh", "/tmp/hook.sh", stage, name],
                                "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}}, f)
    return path


def podman_words(runtime):
    return ["podman", "--root", "/tmp/pod/root", "--runroot", "/tmp/pod/run", "--tmpdir", "/tmp/pod/tmp", "--storage-driver",
            "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file", "--runtime", runtime]


def podman(runtime):
    base = podman_words(runtime)
    flags = ["--network", "none", "--pids-limit", "-1"]

    def pod(*words, **kwargs):
        return call(*base, *words, **kwargs)

    call("tar", "-C", rootfs(), "-cf", "/tmp/image.tar", ".")
    pod("import", "/tmp/image.tar", "image")
    pod("run", "--rm", *flags, "image", "echo", "hello", said="hello")
    pod("run", "--rm", *flags, "image", "sh", "-c", "exit 5", status=5)
    pod("run", "--rm", *flags, "image", "nosuch", status=127, said='executable file "nosuch" not found')
    pod("run", "--rm", "-t", *flags, "image", "tty", said="/dev/pts/0")
    hooks = ["--hooks-dir", mounting_hooks()]
    call(*base, *hooks, "run", "--rm", *flags, "image", "sh", "-c", "cat /run/*/seen", said="prestart\ncreateContainer\n")
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        if "/tmp/pod/root" in f.read():
            raise Failed("what a hook has mounted is left on the host")
    pod("run", "-d", "--name", "a", *flags, "image", "sleep", "1000")
    pod("exec", "a", "ps", said="sleep 1000")
    pod("exec", "a", "sh", "-c", "exit 4", status=4)
    pod("exec", "-t", "a", "tty", said="/dev/pts/0")
    pod("exec", "-u", "5", "a", "id", "-u", said="5")
    pod("exec", "a", "nosuch", status=127)
    pod("inspect", "-f", "{{.State.Status}}", "a", said="running")
    pod("top", "a", said="sleep 1000")
    pod("kill", "-s", "USR1", "a")
    pod("stop", "-t", "1", "a")
    pod("ps", "-a", said="Exited (137)")
    pod("start", "a")
    pod("rm", "-f", "-t", "0", "a")
    if pod("ps", "-aq").strip():
        raise Failed("podman still lists containers")


def podman_races(runtime):
    """Of each image with a link, and of no other, every start is refused. podman itself mounts the volume before /proc, and names
    what the link /dev leads to as the destination of the tmpfs that belongs on /dev."""
    base = podman_words(runtime)
    volume, root = "/tmp/volume", rootfs()
    for name in ("one", "two"):
        for part in ("proc/sys/kernel", "dev"):
            os.makedirs(os.path.join(volume, name, part))
    call("tar", "-C", root, "-cf", "/tmp/image.tar", ".")
    call(*base, "import", "/tmp/image.tar", "plain")
    for name in ("proc", "dev"):
        path = os.path.join(root, name)
        os.rmdir(path)
        os.symlink(f"/evil/one/{name}", path)
        call("tar", "-C", root, "-cf", "/tmp/image.tar", ".")
        call(*base, "import", "/tmp/image.tar", name)
        os.unlink(path)
        os.mkdir(path)
    racer = subprocess.Popen([os.path.join(os.path.dirname(runtime), "attack"), "swap", volume + "/one", volume + "/two"])
    words = ["run", "--rm", "--network", "none", "--pids-limit", "-1", "-v", volume + ":/evil"]
    try:
        call(*base, *words, "plain", "echo", "hello", said="hello")
        for _ in range(max(RACES // 20, 1)):
            for name, said in (("proc", "/proc: is a symbolic link, or lies behind one"), ("dev", "make the root file system: /")):
                call(*base, *words, name, "echo", "hello", status=126, said=said)
        if racer.poll() is not None:
            raise Failed("nothing was exchanged")
    finally:
        racer.kill()
        racer.wait()


def containerd(runtime):
    os.makedirs("/tmp/cd")
    with open("/tmp/cd/config.toml", "w", encoding="utf-8") as f:
        f.write(CONTAINERD)
    log = open("/tmp/cd/log", "w", encoding="utf-8")
    daemon = subprocess.Popen(["containerd", "-c", "/tmp/cd/config.toml"], stdout=log, stderr=log)
    base = ["ctr", "-a", "/tmp/cd/sock"]
    root = rootfs()

    def ctr(*words, **kwargs):
        return call(*base, *words, **kwargs)

    def run(*words, **kwargs):
        return ctr("run", "--runc-binary", runtime, *words, **kwargs)

    try:
        end = time.monotonic() + SECONDS
        while subprocess.run([*base, "version"], capture_output=True, check=False).returncode != 0:
            if time.monotonic() > end:
                raise Failed("containerd does not answer")
            time.sleep(0.1)
        run("--rm", "--rootfs", root, "c1", "echo", "hello", said="hello")
        run("--rm", "--rootfs", root, "c2", "sh", "-c", "exit 3", status=3)
        run("--rootfs", root, "c3", "nosuch", status=1, said='executable file "nosuch" not found')
        ctr("c", "rm", "c3")
        run("-d", "--rootfs", root, "c4", "sleep", "1000")
        ctr("task", "ls", said="RUNNING")
        ctr("task", "exec", "--exec-id", "e1", "c4", "ps", said="sleep 1000")
        ctr("task", "exec", "--exec-id", "e2", "c4", "sh", "-c", "exit 4", status=4)
        ctr("task", "exec", "--exec-id", "e3", "c4", "nosuch", status=1, said="No such file or directory")
        ctr("task", "kill", "-s", "KILL", "c4")
        end = time.monotonic() + SECONDS
        while "STOPPED" not in ctr("task", "ls"):
            if time.monotonic() > end:
                raise Failed("the task does not stop")
            time.sleep(0.1)
        ctr("task", "rm", "c4")
        ctr("c", "rm", "c4")
    finally:
        daemon.terminate()
        daemon.wait()
        log.close()


CASES = [(podman, False), (podman, True), (podman_races, False), (containerd, False), (containerd, True)]


def inside(build, name, unified):
    """In the namespaces: one case."""
    for command in (["mount", "--make-rprivate", "/"], ["mount", "-t", "tmpfs", "tmpfs", "/tmp"],
                    ["mount", "-t", "tmpfs", "tmpfs", "/run"]):
        subprocess.run(command, check=True)
    if unified:
        subprocess.run(["umount", "-l", "/sys/fs/cgroup"], check=True)
        subprocess.run(["mount", "-t", "cgroup2", "none", "/sys/fs/cgroup"], check=True)
    # Callers are told a path; the name makes it the runtime.
    runtime = shutil.copy(os.path.join(build, "nacre"), "/tmp/nacre-oci")
    shutil.copy(os.path.join(build, "tests", "probe", "attack"), "/tmp/attack")
    try:
        {case.__name__: case for case, _ in CASES}[name](runtime)
    except (Failed, subprocess.SubprocessError, OSError) as e:
        print(f"FAIL {name}: {e}", flush=True)
        return 1
    return 0


def podman_groups():
    """The groups, one in each hierarchy, in which podman makes those of its containers, and which it never removes."""
    return set(glob.glob("/sys/fs/cgroup/libpod_parent") + glob.glob("/sys/fs/cgroup/*/libpod_parent"))


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build"))
    cases = [c for c in CASES if c[0] is podman_races] if sys.argv[2:] == ["races"] else CASES
    if len(sys.argv) > 3:
        return inside(build, sys.argv[2], sys.argv[3] == "unified")
    missing = [p for p in PROGRAMS if not shutil.which(p)]
    if missing or os.geteuid() != 0:
        print(f"callers: skipped, for want of {', '.join(missing) or 'root'} (tools/install conformance)")
        print(f"0 passed, 0 failed, {len(cases)} skipped")
        return 0
    failed, before = 0, podman_groups()
    for case, unified in cases:
        words = [sys.executable, os.path.abspath(__file__), build, case.__name__, "unified" if unified else "as it is"]
        done = subprocess.run(["unshare", "-pmnC", "--fork", "--kill-child", "--mount-proc", *words], check=False)
        print(f"{'ok' if done.returncode == 0 else 'not ok'} {case.__name__}, cgroups {words[-1]}", flush=True)
        failed += done.returncode != 0
    for group in podman_groups() - before:
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)
    there = (0, 0, 0)
    if cases is CASES:
        there = in_guest.run(build, "callers", 1, "--callers", os.path.join(ROOT, "tests", "guest", "callers.sh"),
                             programs=("criu", "ip", "iptables-save"))
    print(f"{len(cases) - failed + there[0]} passed, {failed + there[1]} failed, {there[2]} skipped")
    return 1 if failed or there[1] else 0


if __name__ == "__main__":
    sys.exit(main())
