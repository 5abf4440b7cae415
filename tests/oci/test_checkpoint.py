# SPDX-License-Identifier: Apache-2.0
"""checkpoint and restore: what criu is asked (tests/lib/fake_criu.py), and what is left where it fails.

What a real criu makes of it is seen in the guest (tests/guest/callers.sh).
"""
import json
import os
import signal
import subprocess
import unittest

import host
import oci_test
import test_sockets_and_groups as sockets

FAKE = os.path.join(oci_test.ROOT, "tests", "lib", "fake_criu.py")
ABSENT = "nacre-oci: checkpoint and restore need the program criu, which is not in PATH\n"


class CriuTest(oci_test.OciTest):
    def setUp(self):
        super().setUp()
        self.criu = os.path.join(self.dir, "criu")
        self.image = os.path.join(self.dir, "image")
        os.mkdir(self.criu)
        os.symlink(FAKE, os.path.join(self.criu, "criu"))
        self.env = {**os.environ, "PATH": f"{self.criu}:{os.environ['PATH']}", "FAKE_CRIU": self.criu}
        self.plan()

    def tearDown(self):
        path = os.path.join(self.criu, "wrong")
        self.assertFalse(os.path.exists(path), host.read(path))

    def plan(self, **words):
        with open(os.path.join(self.criu, "plan.json"), "w", encoding="utf-8") as f:
            json.dump(words, f)

    def requests(self):
        return [json.loads(line) for line in host.read(os.path.join(self.criu, "requests")).splitlines()]

    def running(self, *args):
        """A container in the background; its pid."""
        self.bundle(*args or ("sleep", "1000"))
        self.create()
        self.oci("start", self.name)
        return self.state()["pid"]

    def checkpoint(self, *flags, **kwargs):
        return self.oci("checkpoint", "--image-path", self.image, *flags, self.name, env=self.env, **kwargs)

    def restore(self, *flags, detach=True, status=0):
        """In the background: standard output of what is restored goes nowhere; the error text."""
        path = os.path.join(self.dir, "restore-stderr")
        with open(path, "w+", encoding="utf-8") as err:
            done = subprocess.run([self.runtime, "--root", self.root, "restore", "--bundle", self.path, "--image-path", self.image,
                                   *(["--detach"] if detach else []), *flags, self.name], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=err, check=False, timeout=oci_test.TIMEOUT, env=self.env)
            err.seek(0)
            text = err.read()
        self.assertEqual(done.returncode, status, text)
        return text

    def checkpointed(self, *flags):
        """A container that was, and of which there is an image alone."""
        self.running()
        self.checkpoint(*flags)
        self.delete()
        os.unlink(os.path.join(self.criu, "requests"))

    def assert_nothing_left(self, children):
        self.assertEqual(os.listdir(self.root), [])
        self.assertEqual([g for g in self.groups() if os.path.isdir(g)], [])
        left = [p for p in self.sleepers() if p not in children]
        self.assertEqual(left, [])

    def sleepers(self):
        """Processes that run what the fake restores, or are about to."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            env = host.read(f"/proc/{pid}/environ")
            if f"FAKE_CRIU={self.criu}\0" in env and host.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] != ["Z"]:
                found.append(int(pid))
        return found


class Checkpoint(CriuTest):
    def test_what_criu_is_asked(self):
        pid = self.running()
        self.checkpoint()
        version, dump = self.requests()
        self.assertEqual((version["kind"], version["opts"]), ("version", {}))
        self.assertEqual((dump["kind"], dump["images"], dump["work"]), ("dump", self.image, self.image))
        opts = dump["opts"]
        masked = opts.pop("mounts")
        self.assertIn({"key": "/proc/keys", "value": "nacre-mask"}, masked)
        self.assertEqual({m["value"] for m in masked}, {"nacre-mask"})
        # The standard error is a file of the host. Input and output are the container's own /dev/null, which criu saves with it.
        external = opts.pop("external")
        for text in external:
            self.assertRegex(text, r"^file\[[0-9a-f]+:[0-9a-f]+\]$")
        with open(os.path.join(self.image, "descriptors.json"), encoding="utf-8") as f:
            self.assertEqual(json.load(f), ["", "", *external])
        self.assertEqual(len(external), 1)
        for name in ("images_fd", "work_fd"):
            self.assertGreater(opts.pop(name), 2)
        self.assertEqual(opts, {"pid": pid, "root": os.path.realpath(self.rootfs), "log_file": "dump.log", "log_level": 4,
                                "notify_scripts": True, "orphan_pts_master": True, "manage_cgroups": True, "groups": 3})
        self.assertEqual(os.stat(self.image).st_mode & 0o7777, 0o700)

    def test_stopped_then_deleted(self):
        self.running()
        self.checkpoint()
        self.assertEqual(self.status(), "stopped")
        self.assertIn("which is stopped", self.checkpoint(status=1).stderr)
        self.oci("delete", self.name)
        self.assertEqual(os.listdir(self.root), [])

    def test_left_running(self):
        pid = self.running()
        self.checkpoint("--leave-running")
        self.assertTrue(self.requests()[1]["opts"]["leave_running"])
        self.assertEqual((self.status(), self.state()["pid"]), ("running", pid))
        self.delete()

    def test_flags(self):
        self.running()
        work = os.path.join(self.dir, "work")
        self.checkpoint("--leave-running", "--work-path", work, "--tcp-established", "--ext-unix-sk", "--shell-job", "--file-locks",
                        "--auto-dedup", "--empty-ns", "network", "--manage-cgroups-mode", "ignore")
        dump = self.requests()[1]
        self.assertEqual(dump["work"], work)
        for name in ("leave_running", "tcp_established", "ext_unix_sk", "shell_job", "file_locks", "auto_dedup"):
            self.assertIs(dump["opts"][name], True)
        self.assertEqual((dump["opts"]["empty_ns"], dump["opts"]["groups"]), (0x40000000, 0))
        self.assertEqual(os.stat(work).st_mode & 0o7777, 0o700)
        for word, mode in (("soft", 3), ("full", 4), ("strict", 5)):
            self.checkpoint("--leave-running", "--manage-cgroups-mode", word)
            self.assertEqual(self.requests()[-1]["opts"]["groups"], mode)
        self.delete()

    def test_memory_ahead(self):
        self.running()
        self.checkpoint("--pre-dump")
        self.assertEqual([r["kind"] for r in self.requests()], ["version", "features", "pre-dump"])
        self.assertTrue(self.requests()[2]["opts"]["track_mem"])
        self.assertEqual(self.status(), "running")
        parent, self.image = self.image, self.image + "2"
        self.checkpoint("--parent-path", "../image")
        self.assertEqual(self.requests()[-1]["opts"]["parent_img"], "../image")
        self.assertTrue(self.requests()[-1]["opts"]["track_mem"])
        self.assertEqual(self.status(), "stopped")
        self.assertTrue(os.path.isdir(parent))
        self.delete()

    def test_memory_that_cannot_be_tracked(self):
        self.running()
        self.plan(mem_track=False)
        self.assertIn("criu cannot tell here which pages of memory have changed", self.checkpoint("--pre-dump", status=1).stderr)
        self.assertEqual(self.status(), "running")
        self.delete()

    def test_what_is_not_done_is_refused_by_name(self):
        self.running()
        os.mkdir(self.image, 0o700)
        for flags, said in ((["--lazy-pages"], "--lazy-pages: memory cannot be left behind"),
                            (["--page-server", "a:1"], "--page-server: memory cannot be sent to another host"),
                            (["--empty-ns", "pid"], "--empty-ns: only network can be left empty, not pid"),
                            (["--manage-cgroups-mode", "x"], "--manage-cgroups-mode is soft, full, strict or ignore, not x"),
                            (["--parent-path", "/a"], "--parent-path: /a does not begin in --image-path"),
                            (["--parent-path", "../none"], f"--parent-path: open {self.image}/../none: No such file")):
            self.assertIn(said, self.checkpoint(*flags, status=1).stderr)
        self.assertEqual({r["kind"] for r in self.requests()}, {"version"})
        self.assertEqual(self.status(), "running")
        self.delete()

    def test_directories_that_others_can_write_to(self):
        self.running()
        for flag in ("--image-path", "--work-path"):
            path = os.path.join(self.dir, flag)
            os.mkdir(path)
            os.chmod(path, 0o777)
            self.assertIn(f"{flag}: others can write to {path}", self.checkpoint(flag, path, status=1).stderr)
        self.assertEqual(self.status(), "running")
        self.delete()

    def test_only_what_runs(self):
        self.bundle("sleep", "1000")
        self.create()
        self.assertIn("which is created", self.checkpoint(status=1).stderr)
        self.delete()
        self.assertIn("does not exist", self.checkpoint(status=1).stderr)
        self.assertEqual(self.requests(), [])

    def test_without_criu(self):
        self.running()
        done = self.oci("checkpoint", self.name, status=1, env={"PATH": "/nonexistent"})
        self.assertEqual(done.stderr, ABSENT)
        self.assertEqual(self.status(), "running")
        features = json.loads(self.oci("features", env={"PATH": "/nonexistent"}).stdout)
        self.assertEqual(features["annotations"]["org.opencontainers.runc.checkpoint.enabled"], "false")
        features = json.loads(self.oci("features", env=self.env).stdout)
        self.assertEqual(features["annotations"]["org.opencontainers.runc.checkpoint.enabled"], "true")
        self.delete()

    def test_one_that_is_too_old(self):
        self.running()
        self.plan(version=[3, 14, 2])
        self.assertEqual(self.checkpoint(status=1).stderr,
                         f"nacre-oci: {self.criu}/criu has version 3.14.2: at least 3.15 is needed\n")
        self.assertFalse(os.path.exists(self.image))
        self.delete()

    def test_criu_fails(self):
        pid = self.running()
        head = f"nacre-oci: criu could not write the container down, see {self.image}/dump.log: "
        for plan, said in (({"then": "refuse", "message": "no such luck"}, "no such luck"),
                           ({"then": "refuse", "message": ""}, "it gives no reason: Input/output error"),
                           ({"then": "kill"}, "it was killed by signal 9"),
                           ({"then": "exit"}, "it ended with status 3 and did not say why"),
                           ({"then": "garbage"}, "criu says something that is none of its messages"),
                           ({"then": "other"}, "it answers another question")):
            self.plan(**plan)
            self.assertEqual(self.checkpoint(status=1).stderr, head + said + "\n")
            self.assertEqual((self.status(), self.state()["pid"]), ("running", pid))
        self.delete()

    def test_binds_by_where_they_are(self):
        self.bundle("sleep", "1000")
        os.symlink("mnt", os.path.join(self.rootfs, "link"))
        self.config["mounts"] += [{"destination": "/link/a b", "source": self.dir, "options": ["rbind"]},
                                  {"destination": "/etc/name", "source": "config.json", "type": "bind", "options": ["bind"]}]
        self.save()
        self.create()
        self.oci("start", self.name)
        self.checkpoint()
        mounts = [(m["key"], m["value"]) for m in self.requests()[1]["opts"]["mounts"] if m["value"] != "nacre-mask"]
        self.assertEqual(sorted(mounts), [("/etc/name", "/etc/name"), ("/mnt/a b", "/link/a b")])
        self.delete()
        self.restore()
        mounts = [(m["key"], m["value"]) for m in self.requests()[-1]["opts"]["mounts"]]
        self.assertEqual(sorted(mounts), [("/etc/name", os.path.join(os.path.realpath(self.path), "config.json")),
                                          ("/link/a b", self.dir), ("nacre-mask", "/dev/null")])
        self.delete()


class Restore(CriuTest):
    def test_what_criu_is_asked(self):
        self.checkpointed()
        self.restore("--lsm-profile", "apparmor:x", "--lsm-mount-context", "y")
        restore = self.requests()[1]
        opts = restore["opts"]
        for name in ("images_fd", "work_fd"):
            self.assertGreater(opts.pop(name), 2)
        with open(os.path.join(self.image, "descriptors.json"), encoding="utf-8") as f:
            streams = json.load(f)
        wanted = [{"key": text, "fd": fd} for fd, text in enumerate(streams) if text and text not in streams[:fd]]
        self.assertEqual(opts.pop("inherit_fd"), wanted)
        root = opts.pop("root")
        group = opts.pop("cg_root")[0]
        self.assertTrue(group["path"].endswith(self.name))
        self.assertEqual(opts, {"log_file": "restore.log", "log_level": 4, "notify_scripts": True, "orphan_pts_master": True,
                                "manage_cgroups": True, "groups": 3, "rst_sibling": True, "evasive_devices": True,
                                "lsm_profile": "apparmor:x", "lsm_mount_context": "y",
                                "mounts": [{"key": "nacre-mask", "value": "/dev/null"}]})
        # The root is mounted for criu alone, from where nothing comes back.
        self.assertEqual((restore["mounted"], restore["shared"]), (True, []))
        self.assertEqual(restore["root"], sorted(os.listdir(self.rootfs)))
        self.assertNotIn(root, host.read("/proc/self/mountinfo"))
        self.assertNotIn("root", os.listdir(os.path.join(self.root, self.name)))
        self.delete()

    def test_a_container_as_others(self):
        self.checkpointed()
        pid_file = os.path.join(self.dir, "pid")
        self.restore("--pid-file", pid_file)
        state = self.state()
        self.assertEqual(state["status"], "running")
        self.assertEqual(int(host.read(pid_file)), state["pid"])
        self.assertEqual(json.loads(self.oci("ps", "--format", "json", self.name).stdout), [state["pid"]])
        self.assertTrue(sockets.group_of(state["pid"]).endswith(self.name))
        self.assertIn("already exists", self.restore(status=1))
        self.oci("kill", self.name, "KILL")
        self.wait_for("stopped")
        self.oci("delete", self.name)
        self.assert_nothing_left([])

    def test_in_the_foreground(self):
        self.checkpointed()
        self.plan(runs=["/bin/sh", "-c", "exit 7"])
        self.restore(detach=False, status=7)
        self.assert_nothing_left([])
        self.plan(runs=["/bin/sh", "-c", "kill -9 $$"])
        self.restore(detach=False, status=128 + signal.SIGKILL)
        self.assert_nothing_left([])

    def test_limits(self):
        self.checkpointed()
        self.config["linux"]["resources"] = {"pids": {"limit": 33}}
        self.save()
        own = host.own_cgroup()
        if "pids" not in host.read(os.path.join(own, "cgroup.controllers")).split():
            self.assertIn("pids", self.restore(status=1))
            self.assert_nothing_left([])
            return
        self.restore()
        self.assertEqual(host.read(os.path.join(sockets.group_of(self.state()["pid"]), "pids.max")), "33\n")
        self.delete()

    def test_namespaces_that_were_joined(self):
        self.running()
        self.config["linux"]["namespaces"] = [{"type": "mount"}, {"type": "network", "path": "/proc/self/ns/net"},
                                              {"type": "uts", "path": "/proc/self/ns/uts"}]
        with open(os.path.join(self.root, self.name, "config.json"), "w", encoding="utf-8") as f:
            json.dump(self.config, f)
        inode = os.stat(f"/proc/{self.state()['pid']}/ns/net").st_ino
        self.checkpoint()
        self.assertIn(f"net[{inode}]:extRootNetNS", self.requests()[1]["opts"]["external"])
        self.delete()
        self.save()
        self.restore()
        restore = self.requests()[-1]
        self.assertIn({"key": "extRootNetNS", "fd": 4}, restore["opts"]["inherit_fd"])
        self.assertEqual(restore["fds"]["4"], os.readlink("/proc/self/ns/net"))
        self.assertEqual(restore["opts"]["joins"], [{"key": "uts", "value": "/proc/self/ns/uts"}])
        self.delete()
        self.config["linux"]["namespaces"][2] = {"type": "cgroup", "path": "/proc/self/ns/cgroup"}
        self.save()
        self.assertIn("linux.namespaces: criu cannot join a cgroup namespace", self.restore(status=1))
        self.config["linux"]["namespaces"] = []
        self.save()
        self.assertIn("without a mount namespace", self.restore(status=1))
        self.assert_nothing_left([])

    def test_a_terminal(self):
        self.checkpointed()
        self.config["process"]["terminal"] = True
        self.save()
        self.assertIn("process.terminal: needs --console-socket", self.restore(status=1))
        self.plan(terminal=True)
        listener = sockets.Listener(os.path.join(self.dir, "console"))
        self.restore("--console-socket", listener.path)
        text, fds = listener.receive()
        listener.socket.close()
        self.assertEqual(text, "/dev/ptmx")
        self.assertEqual(os.read(fds[0], 100), b"hello\r\n")
        os.close(fds[0])
        self.delete()
        self.config["process"]["terminal"] = False
        self.save()
        self.assertIn("--console-socket: process.terminal is not set", self.restore("--console-socket", "/x", status=1))
        self.assertIn("it sends a terminal that nobody wants", self.restore(status=1))
        self.assert_nothing_left([])

    def test_hooks(self):
        self.checkpointed()
        note = os.path.join(self.dir, "note")
        hook = {"path": "/bin/sh", "args": ["sh", "-c", f"cat >>{note}"]}
        self.config["hooks"] = {"prestart": [hook], "createRuntime": [hook]}
        self.save()
        self.restore()
        states = [json.loads(s) for s in host.read(note).replace("}{", "}\n{").splitlines()]
        self.assertEqual([s["pid"] for s in states], [self.state()["pid"]] * 2)
        self.delete()
        self.config["hooks"] = {"createRuntime": [{"path": "/bin/false"}], "poststop": [hook]}
        self.save()
        os.unlink(note)
        self.assertIn("exit status 1", self.restore(status=1))
        self.assertEqual(json.loads(host.read(note))["status"], "stopped")
        self.assert_nothing_left([])

    def test_criu_fails(self):
        self.checkpointed()
        before = self.sleepers()
        head = f"nacre-oci: criu could not restore the container, see {self.image}/restore.log: "
        for plan, said in (({"then": "refuse", "message": "no such luck"}, "no such luck"),
                           ({"then": "kill"}, "it was killed by signal 9"),
                           ({"then": "exit"}, "it ended with status 3 and did not say why"),
                           ({"then": "garbage"}, "criu says something that is none of its messages"),
                           ({"then": "other"}, "it answers another question")):
            for joins in (True, False):
                self.plan(joins=joins, **plan)
                self.assertEqual(self.restore(status=1), head + said + "\n")
                self.assert_nothing_left(before)
        self.plan(joins=False)
        self.assertRegex(self.restore(status=1), "criu has not put process [0-9]+ into the cgroup ")
        self.assert_nothing_left(before)

    def test_images_that_are_none(self):
        self.checkpointed()
        path = os.path.join(self.image, "descriptors.json")
        for text, said in (("{}", "is no list of 3 streams"), ('["", "", "", ""]', "is no list of 3 streams"), ("[", "line 1")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            self.assertIn(said, self.restore(status=1))
        os.unlink(path)
        os.symlink("/proc/self/environ", path)
        self.assertIn("--image-path: read descriptors.json", self.restore(status=1))
        os.chmod(self.image, 0o770)
        self.assertIn(f"--image-path: others can write to {self.image}", self.restore(status=1))
        self.image += "-none"
        self.assertIn(f"--image-path: open {self.image}: No such file", self.restore(status=1))
        self.assertEqual({r["kind"] for r in self.requests()}, {"version"})
        self.assert_nothing_left([])

    def test_without_criu(self):
        self.checkpointed()
        self.env["PATH"] = "/nonexistent"
        self.assertEqual(self.restore(status=1), ABSENT)
        self.assert_nothing_left([])

    def test_one_that_is_too_old_for_labels(self):
        self.checkpointed()
        self.plan(version=[3, 15, 0])
        self.assertIn("--lsm-profile and --lsm-mount-context need criu 3.16", self.restore("--lsm-profile", "apparmor:x", status=1))
        self.assertIn("--lazy-pages: memory cannot be left behind", self.restore("--lazy-pages", status=1))
        self.assert_nothing_left([])


if __name__ == "__main__":
    unittest.main()
