# SPDX-License-Identifier: Apache-2.0
"""What a container sees and may do: the probe's word from within against the kernel's from without.

Rows of the reference "security": A01, A04, A10, A11, A20, A22, A23, A32, A34, A35, A37, A38.
"""
import collections
import hashlib
import os
import subprocess
import tarfile
import unittest

import grpc

import elf
import host
import images
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2
from steps import container, namespaces

Code = grpc.StatusCode
BASELINE = 0xa80425fb  # the fourteen of docker and podman: Kubernetes' baseline
REG, DIR, LNK, FIFO = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE


class Report(collections.defaultdict):
    """What the probe printed: {key: [values]}."""

    def __init__(self, text):
        super().__init__(list)
        for line in text.decode().splitlines():
            key, _, value = line.partition(" ")
            self[key].append(value)

    def one(self, key):
        value, = self[key]
        return value

    def pairs(self, key):
        """Values of two words: {first: rest}."""
        return dict(v.split(" ", 1) for v in self[key])


class WallsTest(steps.StepsTest):
    IMAGES = ("busybox", "probe")

    def report(self, run=None, name="p", **fields):
        """Runs the probe to its end."""
        (run or self.pod)(name, container(image="probe", **fields))
        done = self.wait(name)
        self.assertEqual(0, done.exit_code, done.workload)
        text = self.logs(name)
        self.remove(name)
        return Report(text)


class Namespaces(WallsTest):
    def inside(self, target, name=""):
        out, _, code = self.exec(target, "/probe", container=name)
        self.assertEqual(0, code)
        return {k[3:]: int(v[0]) for k, v in Report(out).items() if k.startswith("ns.")}

    def outside(self, pid):
        return {n: int(link.partition("[")[2].rstrip("]")) for n, link in namespaces(pid).items()}

    def test_none_is_the_hosts(self):
        own = self.outside("self")
        for run in (self.pod, self.cell):
            status, = run("n", container(image="probe", args=["sleep", "100000"])).containers
            inside = self.inside("n")
            self.assertEqual(self.outside(status.pid), {n: inside[n] for n in own})
            self.assertEqual([], [n for n in own if own[n] == inside[n]])
            self.remove("n", force=True)

    def test_none_is_the_keepers_but_what_a_pod_shares(self):
        status, = self.pod("n").containers
        keeper, its = self.outside(self.inspect("n").pid), self.outside(status.pid)
        self.assertEqual({"net", "ipc", "uts"}, {n for n in keeper if keeper[n] == its[n]})

    def test_two_containers_of_a_pod(self):
        one, two = self.pod("n", container(image="probe", args=["sleep", "100000"], name="one"),
                            container(image="probe", args=["sleep", "100000"], name="two")).containers
        first, second = self.inside("n", "one"), self.inside("n", "two")
        self.assertEqual({"net", "ipc", "uts"}, {n for n in steps.SPACES if first[n] == second[n]})
        self.assertNotEqual(one.pid, two.pid)

    def test_host_network_shares_that_alone(self):
        own = self.outside("self")
        for run in (self.pod, self.cell):
            self.assertEqual({"net"}, self.shared(run, own))

    def shared(self, run, own):
        run("h", container(image="probe", args=["sleep", "100000"]), network="host")
        inside = self.inside("h")
        self.remove("h", force=True)
        return {n for n in own if own[n] == inside[n]}

    def test_links(self):
        self.assertEqual("lo", self.report().one("links"))
        self.pod("none", container(image="probe"), network="none")
        self.wait("none")
        self.assertEqual("lo", Report(self.logs("none")).one("links"))

    def test_own_cgroup_is_the_root(self):
        for line in self.report()["cgroup"]:
            self.assertTrue(line.endswith(":/"), line)

    def test_pid_one(self):
        seen = self.report()
        self.assertEqual(("1", "0", "1"), (seen.one("pid"), seen.one("ppid"), seen.one("sid")))


class Files(WallsTest):
    def setUp(self):
        super().setUp()
        self.seen = self.report(user="0")
        self.mounts = {}
        for line in self.seen["mount"]:
            point, options, tag, fs = line.split()
            self.mounts[point] = (set(options.split(",")), tag, fs)

    def test_root_is_an_overlay_and_holds_the_image_alone(self):
        self.assertEqual("overlay", self.mounts["/"][2])
        # /etc is there for /etc/hosts, which is ours.
        self.assertEqual({"probe", "data", "tmp", "dev", "proc", "sys", "etc"}, {l.split()[0] for l in self.seen["root"]})

    def test_hosts_file_knows_localhost_and_the_own_name(self):
        self.pod("named")
        names = {}
        for line in self.sh("named", "cat /etc/hosts").splitlines():
            address, *words = line.split()
            names.update({w: address for w in words if w not in names})
        self.assertEqual("127.0.0.1", names["localhost"])
        self.assertIn("named", names)

    def own_files(self, target):
        return [self.sh(target, f"cat /etc/{name}") for name in ("hosts", "hostname", "resolv.conf")]

    def test_files_of_the_network_are_the_nodes(self):
        own = ["127.0.0.1\tlocalhost {0}\n::1\tlocalhost ip6-localhost ip6-loopback\n", "{0}\n",
               "# There is no network but loopback here, and no name server.\noptions timeout:1 attempts:1\n"]
        self.pod("p", container("sleep", "1000", read_only_root=True))
        self.pod("n", network="none")
        self.cell("c")
        self.spawn("i")
        self.cell("i/in", network="host")
        for target in ("p", "n", "c", "i/in"):
            self.assertEqual([t.format(target.rpartition("/")[2]) for t in own], self.own_files(target), target)
        # A program that puts another file there can.
        self.sh("c", "echo mine >/etc/new; mv /etc/new /etc/hosts; test \"$(cat /etc/hosts)\" = mine")

    def test_files_of_the_hosts_network_are_the_hosts(self):
        def of_host(path):
            return host.read(path) if os.path.exists(path) else ""
        self.spawn("i", network="host")
        for run, target in ((self.pod, "p"), (self.cell, "c"), (self.cell, "i/in")):
            run(target, network="host")
            name = target.rpartition("/")[2]
            hosts, hostname, resolv = self.own_files(target)
            self.assertTrue(hosts.startswith(of_host("/etc/hosts")), hosts)
            self.assertIn(name, hosts.split())
            self.assertEqual((name + "\n", of_host("/etc/resolv.conf")), (hostname, resolv))

    def test_a_volume_covers_files_of_the_network(self):
        path = os.path.join(self.node.dir, "own-hosts")
        with open(path, "w", encoding="ascii") as f:
            f.write("of the user\n")
        self.addCleanup(os.unlink, path)
        self.pod("p", container("sleep", "1000", mounts=[runtime_pb2.Mount(source=path, target="/etc/hosts")]))
        self.assertEqual(["of the user\n", "p\n"], self.own_files("p")[:2])
        self.assertEqual("of the user\n", host.read(path))

    def test_no_path_of_the_host(self):
        pid = self.pod("p").containers[0].pid
        for line in host.read(f"/proc/{pid}/mountinfo").splitlines():
            point = line.split()[4]
            self.assertFalse(point.startswith(("/tmp", "/work", "/home", "/var/", "/run", "/mnt", "/etc")), line)
        mine = {host.read("/proc/self/mountinfo").splitlines()[0].split()[0]}
        self.assertEqual(set(), mine & {l.split()[0] for l in host.read(f"/proc/{pid}/mountinfo").splitlines()})

    def test_mounts(self):
        basic = {"/", "/proc", "/dev", "/dev/pts", "/dev/shm", "/sys", "/sys/fs/cgroup"}
        self.assertEqual(set(), basic - set(self.mounts))
        # Devices of the house: a container that makes nodes (CAP_MKNOD) makes none that can be opened.
        devices = {"/dev/" + n for n in ("null", "zero", "full", "random", "urandom", "tty")}
        self.assertEqual(set(), devices - set(self.mounts))
        extra = {p for p in self.mounts if p not in basic | devices | {"/dev/mqueue"} and not p.startswith(("/proc/", "/sys/"))}
        self.assertEqual(set(), extra)
        flags = {"nosuid", "nodev", "noexec"}
        for point in ("/proc", "/sys", "/sys/fs/cgroup", "/dev/shm"):
            self.assertEqual(set(), flags - self.mounts[point][0], point)
        for point in ("/dev", "/dev/pts"):
            self.assertEqual(set(), {"nosuid", "noexec"} - self.mounts[point][0], point)
        for point in ("/sys", "/sys/fs/cgroup"):
            self.assertIn("ro", self.mounts[point][0])
        self.assertEqual(("proc", "tmpfs", "sysfs", "cgroup2"),
                         tuple(self.mounts[p][2] for p in ("/proc", "/dev", "/sys", "/sys/fs/cgroup")))

    def test_propagation_is_private(self):
        self.assertEqual({"-"}, {tag for _, tag, _ in self.mounts.values()})

    def test_mount_of_the_host_does_not_come_in(self):
        pid = self.pod("p").containers[0].pid
        before = host.read(f"/proc/{pid}/mountinfo")
        point = os.path.join(self.node.dir, "point")
        os.mkdir(point)
        self.addCleanup(os.rmdir, point)
        subprocess.run(["mount", "-t", "tmpfs", "none", point], check=True)
        self.addCleanup(subprocess.run, ["umount", point], check=True)
        self.assertEqual(before, host.read(f"/proc/{pid}/mountinfo"))

    def test_devices(self):
        nodes = {"null": "1:3", "zero": "1:5", "full": "1:7", "random": "1:8", "urandom": "1:9", "tty": "5:0"}
        links = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
                 "ptmx": "pts/ptmx"}
        seen = self.seen.pairs("dev")
        self.assertEqual({*nodes, *links, "shm", "pts", "mqueue"} - ({"mqueue"} - set(seen)), set(seen))
        for name, number in nodes.items():
            self.assertEqual(f"20666 0:0 {number} -", seen[name], name)
        for name, target in links.items():
            self.assertTrue(seen[name].startswith("120777 ") and seen[name].endswith(f" {target}"), seen[name])
        self.assertTrue(seen["shm"].startswith("41777 "), seen["shm"])

    def test_masked_paths(self):
        words = self.seen.pairs("masked")
        self.assertEqual(13, len(words))
        for path, word in words.items():
            there = os.path.exists(path)
            want = "absent" if not there else "empty" if os.path.isdir(path) else "hidden"
            self.assertEqual(want, word, path)

    def test_read_only_paths(self):
        for line in self.seen["write"] + [l for l in self.seen["mkdir"] if l.startswith("/sys")]:
            path, word = line.split()
            self.assertIn(word, ("EROFS", "ENOENT") if not os.path.exists(path) else ("EROFS",), path)
        self.assertIn("/probe-dir ok", self.seen["mkdir"])

    def test_descriptors(self):
        fds = self.seen.pairs("fd")
        self.assertEqual({"0", "1", "2"}, set(fds))
        self.assertEqual("/dev/null", fds["0"])

    def test_limits(self):
        self.assertEqual("0 0", self.seen.one("rlimit.CORE"))
        self.assertEqual("1024", self.seen.one("rlimit.NOFILE").split()[0])


class Privilege(WallsTest):
    def test_fourteen_capabilities(self):
        seen = self.report(user="0")
        for key in ("CapBnd", "CapEff", "CapPrm"):
            self.assertEqual(BASELINE, int(seen.one(f"status.{key}"), 16), key)
        for key in ("CapInh", "CapAmb"):
            self.assertEqual(0, int(seen.one(f"status.{key}"), 16), key)
        self.assertEqual(("0", "2"), (seen.one("status.NoNewPrivs"), seen.one("status.Seccomp")))
        self.assertEqual((0, 0), (int(seen.one("status.SigBlk"), 16), int(seen.one("status.SigIgn"), 16)))

    def test_another_user_has_none(self):
        seen = self.report()
        for key in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            self.assertEqual(0, int(seen.one(f"status.{key}"), 16), key)
        self.assertEqual(BASELINE, int(seen.one("status.CapBnd"), 16))

    def test_the_kernels_word_is_the_same(self):
        pid = self.pod("p").containers[0].pid
        status = dict(l.split(":\t", 1) for l in host.read(f"/proc/{pid}/status").splitlines() if ":\t" in l)
        self.assertEqual([BASELINE, BASELINE, BASELINE, 0, 0],
                         [int(status[k], 16) for k in ("CapBnd", "CapEff", "CapPrm", "CapInh", "CapAmb")])
        self.assertEqual(("0", "2"), (status["NoNewPrivs"].strip(), status["Seccomp"].strip()))

    def test_forbidden_calls(self):
        for run in (self.pod, self.cell):
            seen = self.report(run, user="0")
            calls = {k[5:]: v[0] for k, v in seen.items() if k.startswith("call.")}
            want = {"mount": "EPERM", "umount2": "EPERM", "ptrace": "ESRCH", "keyctl": "EPERM", "bpf": "EPERM",
                    "clone3": "ENOSYS", "open_by_handle_at": "EPERM", "perf_event_open": "EPERM", "io_uring_setup": "EPERM",
                    "userfaultfd": "EPERM",
                    "setns": "EPERM", "pivot_root": "EPERM", "reboot": "EPERM", "init_module": "EPERM", "mknod": "EPERM",
                    "chroot": "ok", "unknown": "ENOSYS", "socket_alg": "EPERM", "socket_vsock": "EPERM",
                    "socket_packet": "ok", "socket_inet": "ok", "unshare_user": "EPERM", "unshare_mount": "EPERM"}
            self.assertIn(calls.pop("x32"), ("ENOSYS", "EPERM"))
            self.assertEqual(want, calls)

    def test_forbidden_calls_in_an_exec(self):
        self.pod("p", container(image="probe", args=["sleep", "100000"]))
        out, _, _ = self.exec("p", "/probe", user="0")
        seen = Report(out)
        self.assertEqual("EPERM", seen.one("call.mount"))
        self.assertEqual(BASELINE, int(seen.one("status.CapEff"), 16))
        self.assertEqual(("0", "2"), (seen.one("status.NoNewPrivs"), seen.one("status.Seccomp")))
        self.assertEqual({"0", "1", "2"}, set(seen.pairs("fd")))

    def test_host_is_not_changed(self):
        canaries = ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/modprobe")
        before = [host.read(c) for c in canaries]
        self.pod("p")
        self.sh("p", "for f in %s; do echo x > $f; done 2>/dev/null; hostname evil 2>/dev/null; true"
                % " ".join(canaries))
        self.assertEqual(before, [host.read(c) for c in canaries])

    @unittest.skipIf(elf.is_dynamic(nacre_test.BINARY), "a dynamic program cannot run in there")
    def test_our_program_cannot_be_overwritten(self):
        with open(nacre_test.BINARY, "rb") as f:
            digest = hashlib.sha256(f.read()).digest()
        # /proc/self/exe is our own program at the moment of the exec; it then waits for its standard input.
        self.pod("self", container("/proc/self/exe", "execute", "-i", "true", stdin=True))
        for path in ("/proc/1/exe", "/proc/self/exe"):
            _, err, code = self.exec("self", "sh", "-c", f"echo x >> {path}")
            self.assertNotEqual((0, b""), (code, err))
        # That refusal may be the kernel's for a program that runs (ETXTBSY), which ends with it; this one does not.
        workload = self.inspect("self")
        for pid in (workload.pid, workload.containers[0].pid):
            self.assertTrue(os.statvfs(f"/proc/{pid}/exe").f_flag & os.ST_RDONLY, pid)
        with open(nacre_test.BINARY, "rb") as f:
            self.assertEqual(digest, hashlib.sha256(f.read()).digest())


class Settings(WallsTest):
    def test_image_is_honoured(self):
        seen = self.report()
        self.assertEqual(["1000"] * 5, [seen.one(k) for k in ("uid", "euid", "gid", "egid", "groups")])
        self.assertEqual("/data", seen.one("cwd"))
        # A build that counts branches has a word of its own in every environment.
        env = dict(v.split("=", 1) for v in seen["env"] if not v.startswith("__LLVM_PROFILE"))
        self.assertEqual("image", env["PROBE"])
        self.assertEqual({"PROBE", "PATH", "HOME", "HOSTNAME"}, set(env))

    def test_request_goes_over_it(self):
        seen = self.report(user="65534:65533", env=["PROBE=request", "MORE=1"], working_dir="/tmp")
        self.assertEqual(("65534", "65533", "65533"), (seen.one("uid"), seen.one("gid"), seen.one("groups")))
        self.assertEqual("/tmp", seen.one("cwd"))
        self.assertEqual(1, len([v for v in seen["env"] if v.startswith("PROBE=")]))
        self.assertIn("PROBE=request", seen["env"])
        self.assertIn("MORE=1", seen["env"])

    def test_missing_directory_is_made_inside(self):
        self.assertEqual("/new/dir", self.report(user="0", working_dir="/new/dir").one("cwd"))
        self.assertFalse(os.path.exists("/new"))

    def test_hostname(self):
        self.assertEqual("p", self.report().one("hostname"))
        self.assertEqual("c", self.report(self.cell, "c").one("hostname"))


class Users(steps.StepsTest):
    """Who a container runs as, from an image whose passwd and group are full of traps."""

    PASSWD = ("root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n"
              # Names that look like numbers, all of them root.
              + "".join(f"{n}:x:0:0::/:/bin/sh\n" for n in (
                  "1234", "2147483648", "4294967294", "4294967295", "4294967296", "9223372036854775808", "18446744073709551616",
                  "-1", "0x0", "+0", "00", "1:", "bad-ids")) + "broken:x:x:y::/:/bin/sh\nshort:x\n")
    GROUP = "root:x:0:\nwheel:x:10:root\napp:x:1000:\nmore:x:2000:other,app\n4321:x:0:\n4294967296:x:0:\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        mk, archive = images.module(), os.path.join(cls.node.dir, "users.tar")
        with open(nacre_test.PROBE, "rb") as f:
            probe = f.read()
        layer = mk.Layer(mk.build_tar([("etc/passwd", REG, 0o644, cls.PASSWD.encode(), ""), ("probe", REG, 0o755, probe, ""),
                                       ("etc/group", REG, 0o644, cls.GROUP.encode(), "")]))
        mk.write_image(archive, [layer], {"Entrypoint": ["/probe"]})
        cls.node.import_image(archive, "users")
        cls.before = cls.node.baseline()

    def run_as(self, user, name="u"):
        """What the probe says as the user of a container."""
        self.pod(name, container(image="users", user=user))
        self.assertEqual(0, self.wait(name).exit_code)
        text = self.logs(name)
        self.remove(name)
        return Report(text)

    def exec_as(self, user):
        """The same as the user of an exec in the pod "base"."""
        out, _, code = self.exec("base", "/probe", user=user)
        self.assertEqual(0, code)
        return Report(out)

    def base(self):
        self.pod("base", container(image="users", args=["sleep", "100000"]))

    def test_table(self):
        table = {"": (0, 0, [0, 10]), "root": (0, 0, [0, 10]), "0": (0, 0, [0, 10]), "app": (1000, 1000, [1000, 2000]),
                 "1000": (1000, 1000, [1000, 2000]), "app:wheel": (1000, 10, [10, 2000]), "app:10": (1000, 10, [10, 2000]),
                 "5": (5, 0, [0]), "5:6": (5, 6, [6]), "1234": (1234, 0, [0]), "1234:1234": (1234, 1234, [1234]),
                 "2147483647": (2147483647, 0, [0]), "5:2147483647": (5, 2147483647, [2147483647]), "5:4321": (5, 4321, [4321]),
                 "5:wheel": (5, 10, [10])}
        self.base()
        for user, (uid, gid, groups) in table.items():
            want = [str(uid), str(uid), str(gid), str(gid), " ".join(map(str, groups))]
            for by in (self.run_as, self.exec_as):
                with self.subTest(user=user, by=by.__name__):
                    seen = by(user)
                    self.assertEqual(want, [seen.one(k) for k in ("uid", "euid", "gid", "egid", "groups")])

    def test_home(self):
        for user, home in (("root", "/root"), ("app", "/home/app"), ("5", "/")):
            self.assertIn(f"HOME={home}", self.run_as(user)["env"])

    BAD = ("2147483648", "4294967294", "4294967295", "4294967296", "9223372036854775808", "18446744073709551616", "-1", "0x0",
           "+0", "1:", "1:x", ":1", " 1", "1 ", "1:2:3", "1000:4294967295", "1000:4294967296", "65536:-1", "nobody-there",
           "broken",
           "short", "root:nothing", "a" * 300, "root\n", "../root")

    def test_what_is_no_user_runs_nothing(self):
        self.base()
        for user in self.BAD:
            with self.subTest(user=user, by="container"):
                try:
                    status, = self.pod("u", container(image="users", user=user)).containers
                    self.assertEqual(("failed", 125, 0), (status.state, status.exit_code, status.pid))
                    self.assertRegex(status.reason, "^user: (?!user:)")
                    self.assertEqual(b"", self.logs("u"))
                    self.remove("u")
                except grpc.RpcError as e:
                    self.assertEqual(Code.INVALID_ARGUMENT, e.code(), e.details())
                    self.assertIn("containers[0].user: ", e.details())
            with self.subTest(user=user, by="exec"):
                try:
                    answers = self.exec_all("base", "/probe", user=user)
                    self.assertEqual(b"", b"".join(a.stdout for a in answers))
                    self.assertIn("user", answers[-1].exit.reason)
                except grpc.RpcError as e:
                    self.assertIn(e.code(), (Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION), e.details())
                    self.assertIn("user", e.details())

    def test_zeros_in_front_change_nothing(self):
        self.base()
        for user, uid in (("00", "0"), ("01", "1")):
            for by in (self.run_as, self.exec_as):
                try:
                    self.assertEqual(uid, by(user).one("uid"))
                except grpc.RpcError as e:
                    self.assertEqual(Code.INVALID_ARGUMENT, e.code())


class HostileImages(steps.StepsTest):
    """Images whose very tree is the attack; nothing outside of their roots may change, and the node goes on."""

    def setUp(self):
        super().setUp()
        self.canary = os.path.join(self.node.dir, "canary")
        os.mkdir(self.canary)
        with open(os.path.join(self.canary, "ptmx"), "w", encoding="ascii") as f:
            f.write("marker")
        self.addCleanup(self.clean)

    def clean(self):
        self.node.clear()
        for image in self.node.images.List(nacre_pb2.ListImagesRequest()).images:
            if "docker.io/library/hostile:latest" in image.names:
                self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=image.id))
        self.assertEqual(["ptmx"], os.listdir(self.canary))
        with open(os.path.join(self.canary, "ptmx"), encoding="ascii") as f:
            self.assertEqual("marker", f.read())
        os.unlink(os.path.join(self.canary, "ptmx"))
        os.rmdir(self.canary)

    def run_hostile(self, entries, without=(), **settings):
        """The status of a container from an image with these entries before busybox's; None where it was refused."""
        mk = images.module()
        base = [e for e in mk.busybox_entries() if e[0] not in without]
        path = os.path.join(self.node.dir, "hostile.tar")
        mk.write_image(path, [mk.Layer(mk.build_tar(entries + base))], {"Cmd": ["sh", "-c", "pwd; echo ran"], **settings})
        try:
            self.node.import_image(path, "hostile")
            status, = self.pod("h", container(image="hostile")).containers
            return status
        except grpc.RpcError as e:
            self.assertIn(e.code(), (Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION), e.details())
            return None
        finally:
            os.unlink(path)

    def test_dev_is_a_link(self):
        for target in (self.canary, "/proc", "/", "../../../../.." + self.canary):
            status = self.run_hostile([("dev", LNK, 0o777, b"", target)])
            if status is not None:
                self.assertEqual("failed", status.state)
                self.assertIn("dev", status.reason)
                self.remove("h")
            self.node.images.Remove(nacre_pb2.RemoveImageRequest(image="hostile"))

    def test_proc_and_sys_are_links_or_files(self):
        for entry in (("proc", LNK, 0o777, b"", self.canary), ("sys", LNK, 0o777, b"", self.canary),
                      ("proc", REG, 0o644, b"x", ""), ("sys", FIFO, 0o644, b"", "")):
            status = self.run_hostile([entry])
            if status is not None:
                self.assertEqual("failed", status.state, entry)
                self.remove("h")
            self.node.images.Remove(nacre_pb2.RemoveImageRequest(image="hostile"))

    def test_etc_is_a_link(self):
        for entry, without in ((("etc", LNK, 0o777, b"", self.canary), ("etc/passwd", "etc/group")),
                               (("etc/hosts", LNK, 0o777, b"", self.canary + "/hosts"), ()),
                               (("etc/hosts", LNK, 0o777, b"", "/proc/self/environ"), ()),
                               (("etc/hosts", FIFO, 0o644, b"", ""), ()), (("etc/hosts", DIR, 0o755, b"", ""), ())):
            status = self.run_hostile([entry], without=without)
            if status is not None:
                self.assertIn(status.state, ("running", "failed", "exited"), entry)
                self.remove("h", force=True)
            self.assertEqual(["ptmx"], os.listdir(self.canary))
            self.node.images.Remove(nacre_pb2.RemoveImageRequest(image="hostile"))

    def test_files_of_the_network_whatever_the_image_has(self):
        names = ("hosts", "hostname", "resolv.conf")
        for kind, data, target in ((REG, b"of the image\n", ""), (LNK, b"", self.canary + "/ptmx"), (LNK, b"", "/run/none"),
                                   (LNK, b"", "passwd"), (LNK, b"", "/proc/1/environ"), (FIFO, b"", ""), (DIR, b"", "")):
            entries = [(f"etc/{name}", kind, 0o755, data, target) for name in names]
            status = self.run_hostile(entries, Cmd=["/bin/sleep", "100000"])
            self.assertEqual("running", status.state, (kind, target))
            self.assertEqual(["127.0.0.1\tlocalhost h", "h"], self.sh("h", "head -n 1 /etc/hosts /etc/hostname -q").splitlines())
            self.assertEqual("regular file 644\n" * 3, self.sh("h", "cd /etc; stat -c '%F %a' hosts hostname resolv.conf"))
            self.assertIn("root:", self.sh("h", "cat /etc/passwd"))
            self.remove("h", force=True)
            self.node.images.Remove(nacre_pb2.RemoveImageRequest(image="hostile"))

    def test_a_directory_with_files_has_the_name_of_one_of_ours(self):
        before = self.node.baseline()
        for name in ("hosts", "hostname", "resolv.conf"):
            mk = images.module()
            path = os.path.join(self.node.dir, "hostile.tar")
            entries = [(f"etc/{name}", DIR, 0o755, b"", ""), (f"etc/{name}/x", REG, 0o644, b"kept", "")]
            mk.write_image(path, [mk.Layer(mk.build_tar(entries + mk.busybox_entries()))], {"Cmd": ["true"]})
            self.node.import_image(path, "hostile")
            os.unlink(path)
            with self.assertRaises(grpc.RpcError) as caught:
                self.pod("h", container(image="hostile"))
            self.assertEqual(Code.FAILED_PRECONDITION, caught.exception.code())
            self.assertIn(f"/etc/{name}", caught.exception.details())
            self.node.clear()
            self.node.images.Remove(nacre_pb2.RemoveImageRequest(image="hostile"))
        self.assertNoTraces(before)

    def test_working_directory_is_a_link(self):
        self.run_hostile([("w", LNK, 0o777, b"", self.canary)], WorkingDir="/w/new/one")
        self.assertEqual(["ptmx"], os.listdir(self.canary))

    def test_passwd_is_no_file(self):
        for entry in (("etc/passwd", FIFO, 0o644, b"", ""), ("etc/passwd", DIR, 0o755, b"", ""),
                      ("etc/passwd", LNK, 0o777, b"", "/dev/zero"), ("etc/passwd", LNK, 0o777, b"", "passwd"),
                      ("etc/passwd", LNK, 0o777, b"", "/proc/self/environ"), ("etc/group", FIFO, 0o644, b"", "")):
            status = self.run_hostile([entry], without=(entry[0],), User="app")
            if status is not None:
                self.assertEqual("failed", status.state, entry)
                self.assertIn("user", status.reason)
                self.remove("h")
            self.node.images.Remove(nacre_pb2.RemoveImageRequest(image="hostile"))

    def test_set_uid_gives_nothing(self):
        with open("/bin/busybox", "rb") as f:
            data = f.read()
        status = self.run_hostile([("bin/sid", REG, 0o6755, data, "")], User="1000", Cmd=["/bin/sleep", "100000"])
        self.assertEqual("running", status.state)
        self.assertEqual(b"6755\n", self.exec("h", "stat", "-c", "%a", "/bin/sid")[0])
        out, _, _ = self.exec("h", "sh", "-c", "ln -s /bin/sid /tmp/cat; exec /tmp/cat /proc/self/status", user="1000")
        uids = [l for l in out.decode().splitlines() if l.startswith("Uid:")]
        self.assertEqual([["Uid:", "1000", "1000", "1000", "1000"]], [l.split() for l in uids])

    def test_a_tree_of_traps_is_removed(self):
        before = self.node.baseline()
        self.pod("h", container("sh", "-c", "mkdir -p /d && ln -s %s /d/link && mkfifo /d/fifo && chmod 000 /d; mkdir -p /deep;"
                                "cd /deep; i=0; while [ $i -lt 300 ]; do mkdir dddddddd; cd dddddddd; i=$((i+1)); done; echo done"
                                % self.canary))
        self.assertEqual(0, self.wait("h").exit_code)
        self.assertEqual(b"done\n", self.logs("h"))
        self.remove("h")
        self.assertNoTraces(before)
