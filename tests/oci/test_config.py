# SPDX-License-Identifier: Apache-2.0
"""What config.json says, against what the kernel says of the process."""
import json
import os
import re
import resource
import stat
import subprocess
import time
import unittest

import host
import oci_test

NAMED = "/sys/fs/cgroup/systemd"


class Config(oci_test.OciTest):
    def sh(self, script, status=0):
        self.config["process"]["args"] = ["sh", "-c", script]
        self.save()
        return self.run_it(status=status).stdout

    def refused(self, text):
        self.save()
        self.assertIn(text, self.create(status=1))
        self.assertEqual(os.listdir(self.root), [])

    def mount_line(self, target):
        out = self.sh("cat /proc/self/mountinfo")
        return next(line for line in reversed(out.splitlines()) if line.split()[4] == target)

    def test_process(self):
        self.bundle("true")
        self.config["process"].update({"user": {"uid": 5, "gid": 6, "additionalGids": [7, 8], "umask": 0o27}, "cwd": "/a/b",
                                       "oomScoreAdj": 321, "env": ["PATH=/bin", "A=b c"]})
        out = self.sh("id -u; id -g; id -G; umask; pwd; cat /proc/self/oom_score_adj; echo $A; stat -c %u /a/b").splitlines()
        self.assertEqual(out, ["5", "6", "6 7 8", "0027", "/a/b", "321", "b c", "5"])

    def test_capabilities_of_each_set(self):
        self.bundle("true")
        self.config["process"]["capabilities"] = {
            "bounding": ["CAP_KILL", "CAP_CHOWN", "CAP_NOPE"], "permitted": ["CAP_KILL", "CAP_CHOWN"], "effective": ["CAP_KILL"],
            "inheritable": ["CAP_KILL"], "ambient": ["CAP_KILL"]}
        self.config["process"]["user"] = {"uid": 5, "gid": 5}
        self.config["process"]["args"] = ["grep", "Cap", "/proc/self/status"]
        self.save()
        done = self.run_it()
        caps = dict(line.split(":\t") for line in done.stdout.splitlines())
        self.assertEqual({k: int(v, 16) for k, v in caps.items()},
                         {"CapInh": 1 << 5, "CapPrm": 1 << 5, "CapEff": 1 << 5, "CapBnd": 1 << 5 | 1, "CapAmb": 1 << 5})
        self.assertIn('"CAP_NOPE" is not known', done.stderr)

    def test_no_new_privileges_and_rlimits(self):
        self.bundle("true")
        self.config["process"]["rlimits"] = [{"type": "RLIMIT_NOFILE", "soft": 77, "hard": 88},
                                             {"type": "RLIMIT_CORE", "soft": 0, "hard": 0}]
        out = self.sh("grep NoNewPrivs /proc/self/status; ulimit -n; ulimit -Hn; ulimit -c")
        self.assertEqual(out.splitlines(), ["NoNewPrivs:\t1", "77", "88", "0"])
        self.config["process"]["rlimits"] = [{"type": "RLIMIT_NOPE", "soft": 1, "hard": 1}]
        self.refused('process.rlimits[0].type: "RLIMIT_NOPE" is not known')

    def test_documents_of_16_mib(self):
        """Annotations, thousands of members that nobody knows, depth: by RLIMIT_AS within 192 MiB, where the build allows one."""
        self.bundle("true")
        self.config["ociVersion"] = "1.0.2-dev"
        self.config["annotations"] = {f"org.example.{i}": "x" * 2000 for i in range(4000)}
        self.config.update({f"unknown{i}": {"a": [i] * 10} for i in range(20000)})
        deep = 0
        for _ in range(60):
            deep = [deep]
        self.config["deep"] = deep
        limit = None if oci_test.SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_AS, (192 << 20, 192 << 20))
        self.config["process"].update({"rlimits": [], "args": ["echo", "well"]})
        self.config["fill"] = "x" * ((16 << 20) - len(json.dumps({**self.config, "fill": ""})))
        self.save()
        self.assertEqual(os.stat(os.path.join(self.path, "config.json")).st_size, 16 << 20)
        begin = time.monotonic()
        self.assertEqual(self.run_it(preexec_fn=limit).stdout, "well\n")
        self.assertLess(time.monotonic() - begin, 10 * oci_test.SLOWNESS)
        self.config["fill"] += "x"
        self.save()
        self.assertRegex(self.create(status=1), "config.json.*(16 MiB|too large)")

    def test_home_of_the_passwd_in_the_container(self):
        self.bundle("true")
        passwd = os.path.join(self.rootfs, "etc", "passwd")
        with open(passwd, "w", encoding="ascii") as f:
            f.write("root:x:0:0::/root:/bin/sh\nweb:x:1234:5::/srv/web:\nbad:x:9:9::relative:\n")
        for uid, env, home in ((0, [], "/root"), (1234, [], "/srv/web"), (77, [], "/"), (9, [], "/"), (1234, ["HOME=/x"], "/x"),
                               (1234, ["HOME="], "/srv/web")):
            self.config["process"]["user"] = {"uid": uid, "gid": 5}
            self.config["process"]["env"] = ["PATH=/bin", *env]
            self.assertEqual(self.sh("env | grep ^HOME="), f"HOME={home}\n", (uid, env))
        self.config["process"].update({"args": ["sleep", "1000"], "env": ["PATH=/bin"]})
        self.save()
        self.create()
        self.oci("start", self.name)
        self.assertEqual(self.oci("exec", "--user", "1234", self.name, "env").stdout.splitlines()[-1], "HOME=/srv/web")
        self.assertEqual(self.oci("exec", "--user", "1234", "--env", "HOME=/x", self.name, "env").stdout.count("HOME="), 1)
        self.oci("delete", "--force", self.name)

    def test_home_of_a_passwd_that_somebody_made_to_hurt(self):
        """A link to the host's, a fifo, a directory, a device, one without an end: "/", at once."""
        self.bundle("true")
        self.config["process"]["user"] = {"uid": 1234, "gid": 5}
        passwd = os.path.join(self.rootfs, "etc", "passwd")
        outside = os.path.join(self.dir, "outside")
        with open(outside, "w", encoding="ascii") as f:
            f.write("web:x:1234:5::/of-the-host:\n")
        for make in (lambda: os.symlink(outside, passwd), lambda: os.symlink("../../../outside", passwd),
                     lambda: os.mkfifo(passwd), lambda: os.mkdir(passwd), lambda: os.mknod(passwd, 0o666 | stat.S_IFCHR, os.makedev(1, 5)),
                     lambda: os.symlink("/proc/self/fd/0", passwd), lambda: os.symlink("passwd", passwd)):
            make()
            self.assertEqual(self.sh("env | grep ^HOME="), "HOME=/\n")
            (os.rmdir if os.path.isdir(passwd) and not os.path.islink(passwd) else os.unlink)(passwd)
        with open(passwd, "wb") as f:
            f.truncate(5 << 20)
        self.assertEqual(self.sh("env | grep ^HOME="), "HOME=/\n")

    def test_names_and_sysctls(self):
        self.bundle("true")
        self.config.update({"hostname": "a-host", "domainname": "a-domain"})
        self.config["linux"]["sysctl"] = {"net.ipv4.ip_forward": "1", "kernel.msgmax": "9999"}
        out = self.sh("hostname; cat /proc/sys/kernel/domainname /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/msgmax")
        self.assertEqual(out.split(), ["a-host", "a-domain", "1", "9999"])
        self.config["linux"]["sysctl"] = {"kernel.core_pattern": "x"}
        self.refused("sysctls")

    def test_root_is_read_only(self):
        self.bundle("true")
        self.config["root"]["readonly"] = True
        self.assertIn("Read-only", self.sh("touch /x 2>&1; true"))
        self.assertFalse(os.path.exists(os.path.join(self.rootfs, "x")))

    def test_options_of_mounts(self):
        source = os.path.join(self.dir, "source")
        os.mkdir(source)
        cases = [(["bind", "ro"], r"ro,"), (["rbind", "nosuid", "nodev", "noexec"], r"rw,nosuid,nodev,noexec,"),
                 (["bind", "noatime", "nodiratime"], r"rw,noatime,nodiratime"), (["bind", "ro", "rw"], r"rw,"),
                 (["rbind", "rro"], r"ro,"), (["bind", "nosymfollow"], r"nosymfollow")]
        for options, seen in cases:
            self.bundle("true")
            self.config["mounts"].append({"destination": "/mnt", "type": "none", "source": source, "options": options})
            self.assertRegex(self.mount_line("/mnt").split()[5] + ",", seen, options)
        for word, seen in (("rshared", "shared:"), ("rslave", None), ("rprivate", None)):
            self.bundle("true")
            self.config["mounts"].append({"destination": "/mnt", "source": source, "options": ["bind", word]})
            tag = self.mount_line("/mnt").split()[6]
            self.assertTrue(tag.startswith(seen) if seen else not tag.startswith("shared:"), (word, tag))

    def test_a_tmpfs_with_what_was_there(self):
        self.bundle("true")
        with open(os.path.join(self.rootfs, "mnt", "file"), "w", encoding="utf-8") as f:
            f.write("content")
        self.config["mounts"].append({"destination": "/mnt", "type": "tmpfs", "source": "tmpfs",
                                      "options": ["size=100k", "mode=700", "tmpcopyup"]})
        out = self.sh("cat /mnt/file; echo more >/mnt/file; df -k /mnt | tail -1")
        self.assertRegex(out, r"^content.*100 ")
        with open(os.path.join(self.rootfs, "mnt", "file"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "content")

    def test_sources_and_targets(self):
        self.bundle("true")
        with open(os.path.join(self.path, "file"), "w", encoding="utf-8") as f:
            f.write("relative to the bundle")
        self.config["mounts"].append({"destination": "new/dir/file", "source": "file", "options": ["bind"]})
        self.assertEqual(self.sh("cat /new/dir/file"), "relative to the bundle")
        self.config["mounts"][-1]["source"] = "nosuch"
        self.refused("mounts[7]: open the source")
        self.config["mounts"][-1] = {"destination": "/x", "type": "nosuchfs"}
        self.refused("nosuchfs")
        self.config["mounts"][-1] = {"destination": "/x"}
        self.refused("mounts[7]: has no type")

    def test_a_link_in_the_image_leads_nowhere_else(self):
        self.bundle("true")
        outside = os.path.join(self.dir, "outside")
        os.mkdir(outside)
        os.makedirs(self.rootfs + outside)
        os.symlink(outside, os.path.join(self.rootfs, "link"))
        self.config["mounts"].append({"destination": "/link/sub", "type": "tmpfs", "source": "tmpfs"})
        self.assertIn(f" {outside}/sub ", self.sh("cat /proc/self/mountinfo"))
        self.assertEqual(os.listdir(outside), [])

    def test_nothing_is_mounted_on_the_root(self):
        self.bundle("true")
        os.symlink("..", os.path.join(self.rootfs, "up"))
        for path in ("/", "//.", "."):
            self.config["mounts"].append({"destination": path, "source": self.dir, "options": ["bind"]})
            self.refused(f'mounts[7]: destination "{path}" is the root, and nothing can be mounted on that')
            self.config["mounts"].pop()
        for path in ("/up", "/up/", "/tmp/..", "/up/tmp/../up"):
            for kind in ({"source": self.dir, "options": ["bind"]}, {"type": "tmpfs", "source": "tmpfs"}):
                self.config["mounts"].append({"destination": path, **kind})
                self.refused(f"{path}: leads to the root, and nothing can be mounted on that")
                self.config["mounts"].pop()

    def test_system_mounts_go_on_directories_of_the_root(self):
        self.bundle("true")
        for name in ("proc", "dev", "sys"):
            path = os.path.join(self.rootfs, name)
            os.rmdir(path)
            os.symlink("tmp", path)
            self.refused(f"/{name}: is a symbolic link, or lies behind one (the root must have a directory there)")
            os.unlink(path)
            os.mkfifo(path)
            self.refused(f"/{name}: is not a directory (the root must have a directory there)")
            os.unlink(path)
            # What is missing is made.
            self.run_it()
        self.assertEqual([], os.listdir(os.path.join(self.rootfs, "tmp")))
        # Without a cgroup namespace it is a bind.
        os.symlink("tmp", os.path.join(self.rootfs, "groups"))
        self.config["linux"]["namespaces"] = [n for n in self.config["linux"]["namespaces"] if n["type"] != "cgroup"]
        self.config["mounts"].append({"destination": "/groups", "type": "cgroup", "source": "cgroup"})
        self.refused("/groups: is a symbolic link, or lies behind one (the root must have a directory there)")

    def test_nothing_is_made_in_a_dev_that_is_bound(self):
        self.bundle("true")
        source = os.path.join(self.dir, "devices")
        os.mkdir(source)
        self.config["mounts"] = [m for m in self.config["mounts"] if not m["destination"].startswith("/dev")]
        for path in ("/dev", "/dev/", "//dev/./", "dev"):
            self.config["mounts"].append({"destination": path, "source": source, "options": ["bind"]})
            self.save()
            self.run_it()
            self.config["mounts"].pop()
            self.assertEqual([], os.listdir(source), path)

    def test_masked_and_read_only_paths(self):
        self.bundle("true")
        os.mkdir(os.path.join(self.rootfs, "secret"))
        open(os.path.join(self.rootfs, "secret", "x"), "w", encoding="utf-8").close()
        self.config["linux"]["maskedPaths"] = ["/secret", "/proc/kcore", "/nosuch"]
        self.config["linux"]["readonlyPaths"] = ["/etc", "/proc/sys"]
        out = self.sh("ls /secret; cat /proc/kcore | wc -c; touch /etc/x 2>&1; echo 1 2>&1 >/proc/sys/kernel/msgmax; true")
        self.assertEqual(out.splitlines()[0], "0")
        self.assertIn("/etc/x: Read-only file system", out)

    def test_devices(self):
        self.bundle("true")
        self.config["linux"]["devices"] = [{"path": "/dev/own", "type": "c", "major": 1, "minor": 3, "fileMode": 0o640, "uid": 1,
                                            "gid": 2}, {"path": "/dev/pipe", "type": "p"}]
        out = self.sh("for d in null zero full random urandom tty own; do stat -c '%n %t:%T %a' /dev/$d; done;"
                      "stat -c '%u:%g' /dev/own; ls -l /dev/pipe | cut -c1; readlink /dev/ptmx; readlink /dev/fd")
        self.assertEqual(out.split("\n")[:11], [
            "/dev/null 1:3 666", "/dev/zero 1:5 666", "/dev/full 1:7 666", "/dev/random 1:8 666", "/dev/urandom 1:9 666",
            "/dev/tty 5:0 666", "/dev/own 1:3 640", "1:2", "p", "pts/ptmx", "/proc/self/fd"])
        self.caps("CAP_MKNOD")
        out = self.sh("mknod /tmp/kmem c 1 2 2>&1; mknod /tmp/null c 1 3 && echo made")
        self.assertIn("Operation not permitted", out)
        self.assertIn("made", out)
        # Naming a node allows to make it and no more; that of another number may not be made.
        self.config["linux"]["devices"] = [{"path": "/dev/far", "type": "c", "major": 10, "minor": 666},
                                           {"path": "/dev/disk", "type": "b", "major": 8, "minor": 666}]
        out = self.sh("stat -c '%F %t:%T' /dev/far /dev/disk; cat /dev/far 2>&1; mknod /tmp/x c 10 667 2>&1; mknod /tmp/y c 10 666 && echo made")
        self.assertEqual(out.splitlines(), ["character special file a:29a", "block special file 8:29a",
                                            "cat: can't open '/dev/far': Operation not permitted",
                                            "mknod: /tmp/x: Operation not permitted", "made"])
        self.config["linux"]["devices"] = [{"path": "/dev/x", "type": "q"}]
        self.refused("linux.devices[0]")

    def test_namespaces(self):
        self.bundle("true")
        out = self.sh("for n in mnt pid net ipc uts cgroup; do readlink /proc/self/ns/$n; done").split()
        for line in out:
            self.assertNotEqual(line, os.readlink("/proc/self/ns/" + line.split(":")[0]))
        self.config["linux"]["namespaces"] = [n for n in self.config["linux"]["namespaces"] if n["type"] != "network"]
        self.assertEqual(self.sh("readlink /proc/self/ns/net").strip(), os.readlink("/proc/self/ns/net"))
        self.config["linux"]["namespaces"].append({"type": "network", "path": "/proc/self/ns/uts"})
        self.refused(": /proc/self/ns/uts is no network namespace")
        self.config["linux"]["namespaces"][-1] = {"type": "nope"}
        self.refused('type "nope" is not known')

    def test_a_user_namespace(self):
        self.bundle("true")
        self.config["linux"]["namespaces"].append({"type": "user"})
        self.config["linux"]["uidMappings"] = [{"containerID": 0, "hostID": 100000, "size": 1000}]
        self.config["linux"]["gidMappings"] = [{"containerID": 0, "hostID": 200000, "size": 1000}]
        for top, dirs, files in os.walk(self.rootfs):
            for name in dirs + files:
                os.lchown(os.path.join(top, name), 100000, 200000)
        os.chown(self.rootfs, 100000, 200000)
        os.chmod(self.dir, 0o755)
        out = self.sh("id -u; cat /proc/self/uid_map /proc/self/gid_map; echo x >/dev/null; stat -c %t:%T /dev/null; touch /new")
        self.assertEqual(out.split()[:7], ["0", "0", "100000", "1000", "0", "200000", "1000"])
        self.assertEqual(os.stat(os.path.join(self.rootfs, "new")).st_uid, 100000)
        self.assertTrue(stat.S_ISREG(os.stat(os.path.join(self.rootfs, "new")).st_mode))

    def test_a_mount_with_other_ids(self):
        source = os.path.join(self.dir, "source")
        os.mkdir(source)
        open(os.path.join(source, "file"), "w", encoding="utf-8").close()
        self.bundle("true")
        ids = [{"containerID": 0, "hostID": 5000, "size": 10}]
        self.config["mounts"].append({"destination": "/mnt", "source": source, "options": ["bind", "idmap"],
                                      "uidMappings": ids, "gidMappings": ids})
        self.assertEqual(self.sh("stat -c %u:%g /mnt/file"), "5000:5000\n")
        self.config["mounts"][-1] = {"destination": "/mnt", "source": source, "options": ["bind", "idmap"]}
        self.refused("mounts[7]: idmap without ranges of ids")

    def test_clocks(self):
        self.bundle("true")
        self.config["linux"]["namespaces"].append({"type": "time"})
        self.config["linux"]["timeOffsets"] = {"boottime": {"secs": 1000000}}
        with open("/proc/uptime", encoding="ascii") as f:
            here = float(f.read().split()[0])
        there = float(self.sh("cat /proc/uptime").split()[0])
        self.assertGreaterEqual(there - here, 999999)
        self.config["linux"]["timeOffsets"] = {"realtime": {"secs": 1}}
        self.refused('"realtime" is no clock that can be set')

    def test_seccomp(self):
        self.bundle("true")
        self.config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
                                           "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO",
                                                         "errnoRet": 28}]}
        self.assertIn("No space left on device", self.sh("mkdir /tmp/x 2>&1; grep Seccomp: /proc/self/status"))
        self.config["linux"]["seccomp"]["syscalls"][0]["action"] = "SCMP_ACT_NOPE"
        self.refused("linux.seccomp")

    def test_what_is_not_supported(self):
        for member, value in (("intelRdt", {}), ("netDevices", {"eth0": {}})):
            self.bundle("true")
            self.config["linux"][member] = value
            self.refused(f"linux.{member}: is not supported")

    def test_resources_that_version_2_has_not(self):
        for resources, text in (({"memory": {"swappiness": 1}}, "memory.swappiness"), ({"network": {"classID": 1}}, "network"),
                                ({"memory": {"disableOOMKiller": True}}, "disableOOMKiller"),
                                ({"cpu": {"realtimeRuntime": 1}}, "realtimeRuntime"), ({"unified": {"a/b": "1"}}, "a/b"),
                                ({"devices": [{"allow": True, "type": "x"}]}, "devices[0]")):
            self.bundle("true")
            self.config["linux"]["resources"] = resources
            self.refused(text)

    def test_where_its_group_is(self):
        self.bundle("sleep", "1000")
        self.config["linux"]["cgroupsPath"] = self.name + "-named"
        self.save()
        self.create()
        self.oci("start", self.name)
        with open(f"/proc/{self.state()['pid']}/cgroup", encoding="ascii") as f:
            line = next(x for x in f.read().splitlines() if x.startswith("0::"))
        self.assertTrue(line.endswith(f"/{self.name}-named"), line)
        self.assertIn("processes are in the cgroup",
                      self.oci("create", "--bundle", self.path, self.name + "-b", status=1).stderr)
        self.assertEqual(self.status(), "running")
        self.delete()

    def test_groups_of_systemd(self):
        self.bundle("sleep", "1000")
        self.config["linux"]["cgroupsPath"] = f"t{os.getpid()}.slice:pre:{self.name}"
        self.save()
        subprocess.run([self.runtime, "--root", self.root, "--systemd-cgroup", "create", "--bundle", self.path, self.name],
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=oci_test.TIMEOUT)
        with open(f"/proc/{self.state()['pid']}/cgroup", encoding="ascii") as f:
            line = next(x for x in f.read().splitlines() if x.startswith("0::"))
        self.assertRegex(line, rf"pre-{re.escape(self.name)}\.scope$")
        self.delete()
        # The slices were made for it, and nobody else is in them.
        self.assertFalse(os.path.exists(os.path.join(host.cgroup_root(), os.path.dirname(line[3:]).lstrip("/").split("/")[0])))

    @unittest.skipUnless(os.path.exists(f"{NAMED}/tasks"), "this host has no hierarchy name=systemd of version 1")
    def test_a_group_where_systemd_looks_for_one(self):
        """What podman --systemd asks for on such a host, and what each process of the container is in."""
        self.bundle("sleep", "1000")
        path = f"/{self.name}-above/{self.name}"
        self.config["linux"]["cgroupsPath"] = path
        self.config["linux"]["namespaces"] = [n for n in self.config["linux"]["namespaces"] if n["type"] != "cgroup"]
        self.config["mounts"] = [m for m in self.config["mounts"] if not m["destination"].startswith("/sys/fs/cgroup")] + [
            {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["nosuid", "noexec", "nodev", "ro"]},
            {"destination": NAMED, "type": "bind", "source": NAMED, "options": ["bind", "rprivate"]}]
        self.save()
        own = host.read("/proc/self/cgroup")
        self.create()
        self.oci("start", self.name)
        line = f":name=systemd:{path}\n"
        self.assertIn(line, host.read(f"/proc/{self.state()['pid']}/cgroup"))
        self.assertIn(line, self.oci("exec", self.name, "cat", "/proc/self/cgroup").stdout)
        self.assertIn(" - cgroup ", next(m for m in host.read(f"/proc/{self.state()['pid']}/mountinfo").splitlines() if f" {NAMED} " in m))
        self.oci("exec", self.name, "mkdir", f"{NAMED}{path}/init.scope")
        self.assertEqual(own, host.read("/proc/self/cgroup"))
        self.delete()
        self.assertFalse(os.path.exists(f"{NAMED}/{self.name}-above"))


class About(oci_test.OciTest):
    def test_features(self):
        features = json.loads(self.oci("features").stdout)
        self.assertEqual(features["ociVersionMin"], "1.0.0")
        self.assertIn("tmpcopyup", features["mountOptions"])
        self.assertIn("time", features["linux"]["namespaces"])
        self.assertIn("SCMP_ACT_NOTIFY", features["linux"]["seccomp"]["actions"])
        self.assertEqual(features["hooks"][0], "prestart")

    def test_spec(self):
        directory = os.path.join(self.dir, "new")
        os.mkdir(directory)
        self.oci("spec", "--bundle", directory, "--rootless")
        with open(os.path.join(directory, "config.json"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["linux"]["uidMappings"][0]["containerID"], 0)
        self.assertIn("File exists", self.oci("spec", "--bundle", directory, status=1).stderr)

    def test_statistics(self):
        self.started("sleep", "1000")
        stats = json.loads(self.oci("events", "--stats", self.name).stdout)
        self.assertEqual((stats["type"], stats["id"]), ("stats", self.name))
        self.assertGreater(stats["data"]["cpu"]["usage"]["total"], 0)
        self.assertIn("--interval", self.oci("events", "--interval", "0", self.name, status=1).stderr)
        self.delete()

    def test_update_refuses_what_it_cannot_read(self):
        self.started("sleep", "1000")
        self.assertIn("--memory", self.oci("update", "--memory", "x", self.name, status=1).stderr)
        self.assertIn("--resources", self.oci("update", "-r", "/nonexistent", self.name, status=1).stderr)
        self.oci("update", "-r", "-", self.name, stdin=None, input="{}")
        self.assertIn("realtimeRuntime", self.oci("update", "--cpu-rt-runtime", "5", self.name, status=1).stderr)
        self.delete()

    def test_the_manual(self):
        manual = self.oci("man").stdout
        for word in ("create", "checkpoint", "restore"):
            self.assertIn(f".SS {word} ", manual)
        self.assertIn(".TH NACRE", manual)
