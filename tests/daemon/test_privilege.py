# SPDX-License-Identifier: Apache-2.0
"""What a pod of the own API may have beside the default: devices, limits, namespaces of the node, an init, by the kernel's word."""
import json
import os
import shutil
import socket
import stat
import tempfile
import unittest

import grpc

import host
import steps
from nacre_test import runtime_pb2, until
from steps import container, namespaces

Code = grpc.StatusCode
LOOP = os.makedev(10, 237)
Security, PodSecurity = runtime_pb2.Security, runtime_pb2.PodSecurity


def limits(pid):
    """{"Max open files": ("10", "20"), ...} of a process."""
    lines = host.read(f"/proc/{pid}/limits").splitlines()
    return {l[:26].strip(): (l[26:47].strip(), l[47:68].strip()) for l in lines}


class Privilege(steps.StepsTest):
    def setUp(self):
        super().setUp()
        self.dir = tempfile.mkdtemp(prefix="nacre-priv-", dir="/dev")
        self.addCleanup(shutil.rmtree, self.dir)
        # A device that no container has: that of the loop devices.
        self.device = self.dir + "/loop"
        os.mknod(self.device, stat.S_IFCHR | 0o666, LOOP)
        os.chmod(self.device, 0o666)

    def run_pod(self, *options):
        """Runs in the background by the command line: the pid of its program."""
        self.node.cli("run", "-d", "--name", "p", *options, "busybox", "sleep", "1000")
        return self.inspect("p").containers[0].pid

    def sh(self, script):
        return self.node.cli("exec", "p", "sh", "-c", script, check=False).stdout.strip()

    def seen(self, pid):
        """What the kernel says of its walls."""
        status = [l for l in host.read(f"/proc/{pid}/status").splitlines() if l.split(":")[0] in ("CapBnd", "CapEff", "NoNewPrivs", "Seccomp")]
        return status, limits(pid)["Max open files"], self.sh("stat -c %t:%T /dev/extra; cat /proc/sys/net/ipv4/ip_default_ttl; readlink /proc/1/exe; "
                                                              "mkdir /refused; cat /proc/mounts | wc -l")

    def test_a_pod_that_starts_again_has_the_same_walls(self):
        profile = os.path.join(self.dir, "p.json")
        with open(profile, "w", encoding="ascii") as f:
            json.dump({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}, f)
        pid = self.run_pod("--device", f"{self.device}:/dev/extra", "--ulimit", "nofile=10:20", "--sysctl", "net.ipv4.ip_default_ttl=42", "--init",
                           "--cap-add", "NET_ADMIN", "--cap-drop", "CHOWN", "--security-opt", f"seccomp={profile}")
        before = self.seen(pid)
        self.node.cli("restart", "-t", "0", "p")
        again = self.inspect("p").containers[0].pid
        self.assertNotEqual(pid, again)
        self.assertEqual(before, self.seen(again))
        self.assertIn("42", before[2])

    def assertRefused(self, code, field, call):
        said = self.assertFails(code, call)
        self.assertTrue(said.startswith(field + ": "), said)

    # ---- devices ----

    def test_a_device_of_the_node(self):
        self.run_pod("--device", self.device + ":/dev/mine", "--device", f"{self.device}:/opt/mine:r", "--device", "/dev/zero:/opt/zero:r")
        opened = "exec 3<{0} && echo read; exec 4>>{0} && echo written"
        self.assertEqual(["read\nwritten", "4"], [self.sh(opened.format("/dev/mine")), self.sh("head -c 4 /opt/zero | wc -c")])
        shown = self.inspect("p").containers[0].devices
        self.assertEqual([(self.device, "/dev/mine", ""), (self.device, "/opt/mine", "r"), ("/dev/zero", "/opt/zero", "r")],
                         [(d.host_path, d.path, d.permissions) for d in shown])
        said = json.loads(self.node.cli("-o", "json", "inspect", "p").stdout)
        self.assertEqual("/dev/mine", said["containers"][0]["devices"][0]["path"])

    def test_a_device_for_reading_alone(self):
        self.run_pod("--device", self.device + ":r")
        self.assertEqual(("read", ""), (self.sh(f"exec 3<{self.device} && echo read"), self.sh(f"exec 4>>{self.device} && echo written")))

    def test_devices_that_cannot_be(self):
        Device = runtime_pb2.Device
        for code, field, fields in ((Code.INVALID_ARGUMENT, "host_path", {"host_path": "dev/zero", "path": "/dev/x"}),
                                    (Code.NOT_FOUND, "host_path", {"host_path": "/dev/nothing"}),
                                    (Code.FAILED_PRECONDITION, "host_path", {"host_path": "/etc/passwd", "path": "/dev/x"}),
                                    (Code.INVALID_ARGUMENT, "path", {"host_path": self.device, "path": "/proc/x"}),
                                    (Code.INVALID_ARGUMENT, "path", {"host_path": self.device, "path": "/dev/null"}),
                                    (Code.INVALID_ARGUMENT, "permissions", {"host_path": self.device, "permissions": "rx"})):
            self.assertRefused(code, f"containers[0].devices[0].{field}", lambda f=fields: self.pod("p", container("true", devices=[Device(**f)])))
        twice = [Device(host_path=self.device, path="/dev/x")] * 2
        self.assertRefused(Code.INVALID_ARGUMENT, "containers[0].devices[1].path", lambda: self.pod("p", container("true", devices=twice)))
        many = [Device(host_path=self.device, path=f"/dev/x{n}") for n in range(33)]
        self.assertRefused(Code.INVALID_ARGUMENT, "containers[0].devices", lambda: self.pod("p", container("true", devices=many)))
        done = self.node.cli("run", "--device", "loop0", "busybox", check=False)
        self.assertEqual((125, True), (done.returncode, "--device is HOST[:CONTAINER[:rwm]]" in done.stderr), done.stderr)

    # ---- privilege ----

    def test_privileged(self):
        pid = self.run_pod("--privileged", "--cap-drop", "SYS_TIME", "-v", self.dir + ":/host")
        keeper, of = (host.read(f"/proc/{p}/status") for p in (self.inspect("p").pid, pid))
        line = next(l for l in keeper.splitlines() if l.startswith("CapBnd"))
        has = next(l for l in of.splitlines() if l.startswith("CapEff"))
        self.assertEqual(int(line.split()[1], 16) & ~(1 << 25), int(has.split()[1], 16))
        self.assertIn("NoNewPrivs:\t0", of)
        self.assertEqual("", self.sh("mount -t tmpfs none /tmp && umount /tmp || echo no"))
        self.assertEqual("1", self.sh("echo 1 > /proc/sys/net/ipv4/ip_forward; cat /proc/sys/net/ipv4/ip_forward"))
        self.assertEqual("made", self.sh("mkdir /sys/fs/cgroup/x 2>/dev/null || touch /proc/sys/vm/swappiness && echo made"))
        self.assertNotEqual("0", self.sh("cat /proc/interrupts | wc -c"))
        self.assertTrue(self.inspect("p").containers[0].security.privileged)
        other = self.node.cli("run", "--rm", "--security-profile", "privileged", "busybox", "sh", "-c", "grep CapEff /proc/self/status; grep -c ' /proc/' /proc/self/mountinfo; true")
        self.assertEqual([f"CapEff:\t{int(line.split()[1], 16):016x}", "0"], other.stdout.splitlines())
        self.assertRefused(Code.INVALID_ARGUMENT, "containers[0].security.privileged",
                           lambda: self.pod("q", container("true", security=Security(privileged=True, profile="baseline"))))

    def test_writable_groups(self):
        """It makes groups below its own, and nothing else of /sys is its."""
        pid = self.run_pod("--security-opt", "writable-cgroups")
        self.assertEqual("moved", self.sh("mkdir /sys/fs/cgroup/own && echo 1 >/sys/fs/cgroup/own/cgroup.procs && echo moved"))
        self.assertTrue(host.read(f"/proc/{pid}/cgroup").rstrip().endswith("/own"))
        self.assertIn("/sys ro,", self.sh("awk '$2 == \"/sys\" {print $2, $4}' /proc/mounts"))
        self.assertTrue(self.inspect("p").containers[0].security.writable_cgroup)
        # Who comes in later belongs to it too, and all of them end with it.
        self.assertEqual("here", self.sh("echo here"))
        self.node.cli("rm", "-f", "p")
        pid = self.run_pod()
        self.assertEqual("no", self.sh("mkdir /sys/fs/cgroup/own 2>/dev/null || echo no"))

    def test_what_is_hidden(self):
        self.run_pod("--security-opt", "mask=/etc/passwd:/root", "--security-opt", "unmask=/proc/interrupts:/proc/sys")
        self.assertEqual(["0", "0"], [self.sh("cat /etc/passwd | wc -c"), self.sh("cat /proc/timer_list | wc -c")])
        self.assertNotEqual("0", self.sh("cat /proc/interrupts | wc -c"))
        self.assertEqual("written", self.sh("echo 33 > /proc/sys/net/ipv4/ip_default_ttl && echo written"))
        self.node.clear()
        self.run_pod("--security-opt", "unmask=all")
        self.assertNotEqual("0", self.sh("cat /proc/interrupts | wc -c"))
        for field, fields in (("mask[0]", {"mask": ["proc"]}), ("mask[0]", {"mask": ["ALL"]}), ("unmask[0]", {"unmask": ["/"]}),
                              ("mask", {"mask": ["/x"] * 65})):
            self.assertRefused(Code.INVALID_ARGUMENT, f"containers[0].security.{field}",
                               lambda f=fields: self.pod("q", container("true", security=Security(**f))))

    # ---- seccomp ----

    def test_a_profile_from_a_file(self):
        path = self.dir + "/profile.json"
        calls = [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
                 {"names": ["rmdir", "unlinkat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "excludes": {"caps": ["CAP_CHOWN"]}},
                 {"names": ["chdir"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "includes": {"caps": ["CAP_SYS_ADMIN"]}}]
        with open(path, "w", encoding="ascii") as f:
            json.dump({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": calls}, f)
        pid = self.run_pod("--security-opt", "seccomp=" + path)
        keeper, of = (host.read(f"/proc/{p}/status") for p in (self.inspect("p").pid, pid))
        filters = [int(next(l for l in t.splitlines() if l.startswith("Seccomp_filters")).split()[1]) for t in (keeper, of)]
        self.assertEqual(filters[0] + 1, filters[1])
        test = "mkdir /x 2>&1; cd /tmp && rmdir /home 2>/dev/null; ls -d /home /x 2>/dev/null"
        # What the container is executed with later has it too, also by the next daemon.
        for _ in range(2):
            said = self.sh(test)
            self.assertIn("not implemented", said)
            self.assertNotIn("/home", said)
            self.node.restart()
        self.assertEqual("profile", self.inspect("p").containers[0].security.seccomp)

    def test_profiles_that_cannot_be(self):
        def run(text, **fields):
            return self.pod("q", container("true", security=Security(seccomp_profile=text, **fields)))
        field = "containers[0].security.seccomp_profile"
        listener = b'{"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/x", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_NOTIFY"}]}'
        for code, text in ((Code.INVALID_ARGUMENT, b"{"), (Code.INVALID_ARGUMENT, b"\0" * 9), (Code.INVALID_ARGUMENT, b"[]" * 3),
                           (Code.INVALID_ARGUMENT, b'{"defaultAction": "SCMP_ACT_FLY"}'), (Code.INVALID_ARGUMENT, b"[" * 200000),
                           (Code.INVALID_ARGUMENT, b" " * (256 << 10) + b" "), (Code.UNIMPLEMENTED, listener)):
            self.assertRefused(code, field, lambda t=text: run(t))
        self.assertRefused(Code.INVALID_ARGUMENT, field, lambda: run(b"{}", seccomp="unconfined"))
        said = self.assertFails(Code.INVALID_ARGUMENT, lambda: run(b'{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read"]}]}'))
        self.assertIn("syscalls[0].action", said)
        self.assertEqual({}, self.all())

    # ---- limits of processes ----

    def test_limits_of_processes(self):
        pid = self.run_pod("--ulimit", "nofile=100:200", "--ulimit", "core=unlimited", "--ulimit", "nproc=77")
        of = limits(pid)
        self.assertEqual([("100", "200"), ("unlimited", "unlimited"), ("77", "77")],
                         [of[n] for n in ("Max open files", "Max core file size", "Max processes")])
        self.assertEqual("100\n200", self.sh("ulimit -Sn; ulimit -Hn"))
        # A daemon and a keeper that take over have them for what is executed later.
        self.node.restart()
        self.assertEqual("100", self.sh("ulimit -Sn"))
        shown = self.inspect("p").containers[0].security.ulimits
        self.assertEqual([("nofile", 100, 200), ("core", 2**64 - 1, 2**64 - 1), ("nproc", 77, 77)], [(u.name, u.soft, u.hard) for u in shown])
        Ulimit = runtime_pb2.Ulimit
        for n, wrong in ((0, [Ulimit(name="files")]), (0, [Ulimit(name="core", soft=2, hard=1)]), (1, [Ulimit(name="core")] * 2)):
            self.assertRefused(Code.INVALID_ARGUMENT, f"containers[0].security.ulimits[{n}]",
                               lambda w=wrong: self.pod("q", container("true", security=Security(ulimits=w))))
        self.assertIn("--ulimit is NAME=SOFT[:HARD]", self.node.cli("run", "--ulimit", "nofile", "busybox", check=False).stderr)

    # ---- namespaces ----

    def test_namespaces_of_the_node(self):
        own = namespaces("self")
        pid = self.run_pod("--pid", "host", "--ipc", "host", "--uts", "host")
        of = namespaces(pid)
        self.assertEqual([own[n] for n in ("pid", "ipc", "uts")], [of[n] for n in ("pid", "ipc", "uts")])
        self.assertNotEqual(own["mnt"], of["mnt"])
        name = f"nacre-test-{os.getpid()}"
        with open(f"/dev/shm/{name}", "w", encoding="ascii") as f:
            f.write("here")
        self.addCleanup(os.unlink, f"/dev/shm/{name}")
        self.assertEqual("here", self.sh(f"cat /dev/shm/{name}"))
        self.assertEqual([socket.gethostname()] * 2, self.sh("hostname; cat /etc/hostname").split())
        said = self.inspect("p").security
        self.assertEqual(("host", "host", "host"), (said.pid, said.ipc, said.uts))
        # It ends whole, though its processes are among all others.
        self.node.cli("rm", "-f", "p")
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_containers_that_share_their_processes(self):
        self.node.cli("pod", "--name", "p", "--pid", "pod", "a=busybox", "sleep", "888", "--", "b=busybox", "sleep", "777")
        a, b = (c.pid for c in self.inspect("p").containers)
        self.assertEqual(namespaces(a)["pid"], namespaces(b)["pid"])
        seen = self.node.cli("exec", "-c", "b", "p", "ps").stdout
        self.assertEqual((True, True), ("sleep 888" in seen, "sleep 777" in seen))
        ptrace = Security(cap_add=["SYS_PTRACE"])
        self.assertRefused(Code.FAILED_PRECONDITION, "containers[0].security.cap_add",
                           lambda: self.pod("q", container("true", security=ptrace), security=PodSecurity(pid="pod")))
        # Each has its own where nobody says.
        two = self.pod("q", container("sleep", "1", name="a"), container("sleep", "1", name="b"), security=PodSecurity(pid="private")).containers
        self.assertEqual(2, len({namespaces(c.pid)["pid"] for c in two}))

    def test_sysctls(self):
        self.run_pod("--sysctl", "net.ipv4.ip_forward=1", "--sysctl", "kernel.msgmax=9000", "--sysctl", "net.ipv4.ping_group_range=0 99")
        self.assertEqual("1 9000 0 99", " ".join(self.sh("cd /proc/sys; cat net/ipv4/ip_forward kernel/msgmax net/ipv4/ping_group_range").split()))
        self.assertEqual(["net.ipv4.ip_forward=1", "kernel.msgmax=9000", "net.ipv4.ping_group_range=0 99"], list(self.inspect("p").security.sysctls))
        for sysctls, fields in ((["kernel.core_pattern=x"], {}), (["vm.swappiness=1"], {}), (["net.ipv4.ip_forward"], {}), (["net/../kernel/x=1"], {}),
                                (["net.ipv4.ip_forward=1"], {"network": "host"}), (["kernel.msgmax=1"], {"ipc": "host"}),
                                (["kernel.domainname=x"], {"uts": "host"}), (["net.x=1"] * 257, {})):
            more = {"network": fields.pop("network")} if "network" in fields else {}
            self.assertRefused(Code.INVALID_ARGUMENT, "security.sysctls",
                               lambda s=sysctls, f=fields, m=more: self.pod("q", container("true"), security=PodSecurity(sysctls=s, **f), **m))
        self.assertIn("--sysctl is NAME=VALUE", self.node.cli("run", "--sysctl", "net.x", "busybox", check=False).stderr)

    def test_a_group_of_the_node(self):
        top = "/nacre-test-" + str(os.getpid())
        pid = self.run_pod("--cgroup-parent", top + "/deep")
        where = next(l.split("::", 1)[1] for l in host.read(f"/proc/{pid}/cgroup").splitlines() if l.startswith("0::"))
        self.assertIn(top + "/deep/inst.p/", where)
        self.assertEqual(top + "/deep", self.inspect("p").security.cgroup_parent)
        for wrong in ("x", "/a/../b", "/a//b", "/.."):
            self.assertRefused(Code.INVALID_ARGUMENT, "security.cgroup_parent",
                               lambda w=wrong: self.pod("q", container("true"), security=PodSecurity(cgroup_parent=w)))

    def test_namespaces_that_cannot_be(self):
        for code, field, fields, more in (
                (Code.UNIMPLEMENTED, "security.pid", {"pid": "container:p"}, {}), (Code.UNIMPLEMENTED, "security.ipc", {"ipc": "container:p"}, {}),
                (Code.INVALID_ARGUMENT, "security.pid", {"pid": "all"}, {}), (Code.INVALID_ARGUMENT, "security.ipc", {"ipc": "pod"}, {}),
                (Code.INVALID_ARGUMENT, "security.uts", {"uts": "x"}, {}),
                (Code.INVALID_ARGUMENT, "pod_network.hostname", {"uts": "host"}, {"pod_network": runtime_pb2.PodNetwork(hostname="x")})):
            self.assertRefused(code, field, lambda f=fields, m=more: self.pod("q", container("true"), security=PodSecurity(**f), **m))
        self.assertIn("no pod joins", self.node.cli("run", "--ipc", "shareable", "busybox", check=False).stderr)
        self.spawn("i")
        for fields in ({"pid": "host"}, {"ipc": "host"}, {"uts": "host"}, {"sysctls": ["net.ipv4.ip_forward=1"]}, {"cgroup_parent": "/x"}):
            self.assertRefused(Code.UNIMPLEMENTED, "security." + next(iter(fields)),
                               lambda f=fields: self.pod("i/q", container("true"), security=PodSecurity(**f)))

    # ---- an init ----

    def test_an_init(self):
        script = "trap 'echo term; exit 7' TERM; sleep 1000 & echo ready; while :; do wait; done"
        self.node.cli("run", "-d", "--name", "p", "--init", "--user", "1000", "busybox", "sh", "-c", script)
        until(lambda: "ready" in self.node.cli("logs", "p").stdout, what="its program")
        self.assertEqual("/dev/init -- sh", " ".join(self.sh("tr '\\0' ' ' < /proc/1/cmdline").split()[:3]))
        self.assertTrue(self.inspect("p").containers[0].init)
        # Nobody of it can write to the program, and it reaps what is left behind.
        self.assertEqual("1000", self.sh("stat -c %u /proc/1"))
        self.sh("(sleep 0 &)")
        until(lambda: "Z" not in [l.split()[3] if len(l.split()) > 3 else "" for l in self.sh("ps -o pid,ppid,user,stat").splitlines()], what="no zombie")
        self.node.cli("stop", "p")
        self.assertEqual((7, "ready\nterm\n"), (self.inspect("p").exit_code, self.node.cli("logs", "p").stdout))

    def test_the_end_under_an_init(self):
        for command, code, said in ((("sh", "-c", "exit 3"), 3, ""), (("sh", "-c", "kill -9 $$"), 137, ""), (("/nope",), 127, "init: execute /nope"),
                                    (("/etc/passwd",), 126, "init: execute /etc/passwd")):
            done = self.node.cli("run", "--rm", "--init", "--read-only", "busybox", *command, check=False)
            self.assertEqual((code, True), (done.returncode, said in done.stderr), done)
        # It is not the container's to change, and is there for one with another mount there alone.
        self.assertRefused(Code.INVALID_ARGUMENT, "containers[0].init", lambda: self.pod("q", container(
            "true", init=True, mounts=[runtime_pb2.Mount(source=self.dir, target="/dev/init")])))
        done = self.node.cli("run", "--rm", "--init", "--privileged", "busybox", "sh", "-c", "chmod 777 /dev/init", check=False)
        self.assertIn("Read-only", done.stderr + done.stdout)


class Configured(steps.StepsTest):
    """The profile of containers that name none."""
    CONFIG = "security:\n  profile: restricted\n"

    def status(self, *options, at=""):
        """(CapBnd, NoNewPrivs) of a container."""
        if not at:
            self.node.cli("run", "-d", "--name", "p", *options, "busybox", "sleep", "1000")
        pid = self.inspect(at or "p").containers[0].pid
        of = dict(l.split(":\t", 1) for l in host.read(f"/proc/{pid}/status").splitlines() if ":\t" in l)
        if not at:
            self.node.cli("rm", "-f", "p")
        return int(of["CapBnd"], 16), of["NoNewPrivs"].strip()

    def configure(self, text):
        self.node.kill()
        with open(self.node.config, "w", encoding="ascii") as f:
            f.write(text)
        self.node.start()

    def test_restricted_by_the_configuration(self):
        self.busybox()
        none, baseline = (0, "1"), (0xa80425fb, "0")
        self.assertEqual(none, self.status())
        self.assertEqual((1 << 13, "1"), self.status("--cap-add", "NET_RAW"))
        self.assertEqual(baseline, self.status("--security-profile", "baseline"))
        self.assertNotEqual(0, self.status("--privileged")[0])
        self.cell("c", container("sleep", "1000"))
        self.assertEqual(none, self.status(at="c"))
        self.assertEqual("restricted", self.inspect("c").containers[0].security.profile)

    def test_of_a_pod_for_its_containers(self):
        self.busybox()
        self.node.cli("pod", "--name", "two", "--security-profile", "baseline", "a=busybox", "sleep", "1000", "--", "--security-profile", "restricted",
                      "b=busybox", "sleep", "1000")
        self.assertEqual(["baseline", "restricted"], [c.security.profile for c in self.inspect("two").containers])
        self.assertEqual("baseline", self.inspect("two").security.profile)
        seen = [dict(l.split(":\t", 1) for l in host.read(f"/proc/{c.pid}/status").splitlines() if ":\t" in l) for c in self.inspect("two").containers]
        self.assertEqual([0xa80425fb, 0], [int(of["CapEff"], 16) for of in seen])
        done = self.node.cli("pod", "--security-profile", "open", "a=busybox", check=False)
        self.assertIn("\"open\" is none of \"baseline\", \"restricted\" and \"privileged\"", done.stderr)

    def test_it_is_kept(self):
        """What was made under one configuration has no more privilege under another one."""
        self.busybox()
        self.node.cli("run", "-d", "--name", "p", "busybox", "sleep", "1000")
        self.node.cli("stop", "-t", "0", "p")
        before = host.read(self.node.config)
        self.configure(before.replace("restricted", "baseline"))
        self.addCleanup(self.configure, before)
        self.node.cli("start", "p")
        self.assertEqual((0, "1"), self.status(at="p"))
        self.node.cli("run", "-d", "--name", "q", "busybox", "sleep", "1000")
        self.assertEqual((0xa80425fb, "0"), self.status(at="q"))


if __name__ == "__main__":
    unittest.main()
