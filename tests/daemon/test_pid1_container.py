# SPDX-License-Identifier: Apache-2.0
"""`nacre daemon` as pid 1 of a container that somebody else has made: crun, runc, nacre's own runtime, podman."""
import json
import os
import shutil
import signal
import subprocess
import unittest

import host
import nacre_test
import pid1
from nacre_test import until

DEVICES = ("null", "zero", "random")
# In the order of their numbers.
CAPS = ("CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN "
        "NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME "
        "SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND "
        "AUDIT_READ").split()
# crun and podman do not do with a host that has version 1 of the control groups beside version 2.
ONLY_V2 = ("unshare", "--mount", "sh", "-c", 'umount -l /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"', "sh")


class ContainerBox(pid1.Box):
    """A box whose namespaces, and what is mounted in it, are a runtime's."""

    def __init__(self, runtime, config=""):
        super().__init__(config)
        self.runtime, self.bundle = runtime, os.path.join(self.dir, "bundle")
        self.name = os.path.basename(self.dir)
        os.mkdir(self.bundle)

    def words(self):
        return [nacre_test.BINARY, "daemon", "--socket", pid1.SOCKET]

    def command(self):
        bounding = int(host.read("/proc/self/status").split("CapBnd:")[1].split()[0], 16)
        caps = [f"CAP_{n}" for i, n in enumerate(CAPS) if bounding >> i & 1]
        config = {
            "ociVersion": "1.0.2", "root": {"path": self.root, "readonly": False}, "hostname": "box",
            "process": {"terminal": False, "cwd": "/", "args": self.words(), "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
                        "user": {"uid": 0, "gid": 0},
                        "capabilities": {s: caps for s in ("bounding", "effective", "permitted")}},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                       {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                       {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "nodev", "noexec"]}]
            + [{"destination": p, "type": "bind", "source": p, "options": ["rbind"]}
               for p in [f"/{n}" for n in pid1.SHARED if os.path.isdir(f"/{n}") and not os.path.islink(f"/{n}")] + [nacre_test.BUILD]],
            "linux": {"namespaces": [{"type": t} for t in ("pid", "mount", "ipc", "uts", "network", "cgroup")],
                      "cgroupsPath": "/" + os.path.relpath(os.path.join(self.group, "box"), host.cgroup_root()),
                      "rootfsPropagation": "private",
                      "resources": {"devices": [{"allow": True, "access": "rwm"}]}},
        }
        with open(os.path.join(self.bundle, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f)
        program = {"nacre": [nacre_test.BINARY, "oci"], "crun": [*ONLY_V2, "crun"]}.get(self.runtime, [self.runtime])
        return [*program, "--root", os.path.join(self.dir, "state"), "run", "--bundle", self.bundle, self.name]

    def start(self, shell=""):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(["/bin/sh", "-c", 'echo 0 > "$0" && exec "$@"', os.path.join(self.group, "cgroup.procs"),
                                             *self.command()], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        until(self.find, what=f"the container runs: {self.log()}")

    def find(self):
        """Its pid 1: of the program that a shell's child or a daemon's became."""
        if self.process.poll() is not None:
            raise AssertionError(f"{self.runtime} has ended with status {self.process.returncode}:\n{self.log()}")
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            status = host.read(f"/proc/{pid}/status")
            try:
                if os.path.exists(f"/proc/{pid}/root/etc/{self.name}") and status.split("NSpid:")[1].split("\n")[0].split()[-1] == "1" and \
                        len(status.split("NSpid:")[1].split("\n")[0].split()) > 1 and "Name:\tnacre\n" in status:
                    self.pid = pid
                    return True
            except IndexError:
                pass
        return False


class PodmanBox(ContainerBox):
    def podman(self):
        runtime = os.path.join(self.dir, "runtime")
        if not os.path.exists(runtime):
            with open(runtime, "w", encoding="ascii") as f:
                f.write(self.RUNTIME)
            os.chmod(runtime, 0o755)
        return [*ONLY_V2, "podman", "--root", os.path.join(self.dir, "pod"), "--runroot", os.path.join(self.dir, "podrun"), "--tmpdir",
                os.path.join(self.dir, "podtmp"), "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file",
                "--runtime", runtime]

    def command(self):
        volumes = [w for p in pid1.SHARED if os.path.isdir(f"/{p}") and not os.path.islink(f"/{p}") for w in ("-v", f"/{p}:/{p}")]
        return [*self.podman(), "run", "--rm", "--name", self.name, "--privileged", "--cgroup-parent",
                "/" + os.path.relpath(self.group, host.cgroup_root()), "--pids-limit", "-1", "--network", "none", *volumes,
                "-v", f"{nacre_test.BUILD}:{nacre_test.BUILD}", "--rootfs", self.root, *self.words()]

    # podman asks for higher limits than a host without CAP_SYS_RESOURCE can give.
    RUNTIME = """#!/usr/bin/python3
import json, os, sys
if "--bundle" in sys.argv or "-b" in sys.argv:
    at = sys.argv.index("--bundle" if "--bundle" in sys.argv else "-b")
    path = os.path.join(sys.argv[at + 1], "config.json")
    config = json.load(open(path))
    config["process"].pop("rlimits", None)
    json.dump(config, open(path, "w"))
os.execvp("crun", ["crun", *sys.argv[1:]])
"""


class Containers(unittest.TestCase):
    def box(self, kind, runtime, program):
        if not shutil.which(program):
            self.skipTest(f"there is no {program}")
        box = kind(runtime)
        self.addCleanup(box.destroy)
        self.addCleanup(lambda: print("".join(f"# {line}\n" for line in box.log().splitlines()[-40:])))
        box.write(f"/etc/{box.name}", "")
        box.up()
        return box

    def check(self, box):
        mounts = box.mounts()
        self.assertEqual({"/proc": "proc", "/sys": "sysfs", "/dev": "tmpfs", "/dev/pts": "devpts"},
                         {p: mounts[p][1] for p in ("/proc", "/sys", "/dev", "/dev/pts")})
        self.assertIn("cgroup2", {fs for _, fs in mounts.values()})
        for name in DEVICES:
            self.assertEqual(os.stat(f"/dev/{name}").st_rdev, os.stat(f"/proc/{box.pid}/root/dev/{name}").st_rdev)
        # It is pid 1 and has a daemon, and pods run.
        self.assertIsNotNone(box.daemon())
        box.busybox()
        os.makedirs(box.path("/srv/out"))
        box.cli("run", "-d", "--name", "web", "-v", "/srv/out:/out", "busybox", "sh", "-c",
                "trap 'echo end >> /out/log; exit 0' TERM; echo up >> /out/log; while :; do sleep 0.05; done")
        until(lambda: host.read(box.path("/srv/out/log")) == "up\n", what="the pod runs")
        first = box.daemon()
        os.kill(first, signal.SIGKILL)
        until(lambda: box.daemon() not in (None, first), what="there is another daemon")
        box.up()
        self.assertEqual("running", box.json("inspect", "web")["state"])

    def ended(self, box):
        self.assertEqual("up\nend\n", host.read(box.path("/srv/out/log")))
        self.assertFalse(os.path.exists(f"/proc/{box.pid}"))

    def of(self, runtime, program):
        box = self.box(ContainerBox, runtime, program)
        self.check(box)
        self.assertEqual(0, pid1.stop(box))
        self.ended(box)

    def test_crun(self):
        self.of("crun", "crun")

    def test_runc(self):
        self.of("runc", "runc")

    def test_nacre(self):
        self.of("nacre", "true")

    def test_podman(self):
        box = self.box(PodmanBox, "podman", "podman")
        self.check(box)
        done = subprocess.run([*box.podman(), "stop", "-t", "60", box.name], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(0, box.wait())
        self.ended(box)
