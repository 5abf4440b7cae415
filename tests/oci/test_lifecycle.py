# SPDX-License-Identifier: Apache-2.0
"""create, start, state, kill, delete, run, list, ps: the life of a container, against the kernel's own word."""
import json
import os
import signal
import subprocess
import unittest

import faults
import host
import oci_test
from oci_test import until


class Lifecycle(oci_test.OciTest):
    def test_created_then_running_then_stopped(self):
        self.bundle("sleep", "1000")
        pid_file = os.path.join(self.dir, "pid")
        self.create("--pid-file", pid_file)
        state = self.state()
        self.assertEqual(state["status"], "created")
        self.assertEqual(state["id"], self.name)
        self.assertEqual(state["bundle"], os.path.realpath(self.path))
        self.assertEqual(state["annotations"], {})
        with open(pid_file, encoding="utf-8") as f:
            self.assertEqual(int(f.read()), state["pid"])
        with open(f"/proc/{state['pid']}/cmdline", encoding="utf-8") as f:
            self.assertNotIn("sleep\x001000", f.read())
        self.oci("start", self.name)
        self.assertEqual(self.status(), "running")
        with open(f"/proc/{state['pid']}/cmdline", encoding="utf-8") as f:
            self.assertEqual(f.read(), "sleep\x001000\x00")
        self.oci("kill", self.name, "KILL")
        self.wait_for("stopped")
        self.assertNotIn("pid", self.state())
        self.oci("delete", self.name)
        self.assertEqual(os.listdir(self.root), [])
        self.assertEqual(self.groups(), [])

    def test_start_is_for_what_is_created(self):
        self.started("sleep", "1000")
        self.assertIn("cannot start a container that is not created", self.oci("start", self.name, status=1).stderr)
        self.assertEqual(self.status(), "running")
        self.delete()

    def test_delete_is_for_what_is_stopped(self):
        self.started("sleep", "1000")
        self.assertIn("that is not stopped: running", self.oci("delete", self.name, status=1).stderr)
        self.assertEqual(self.status(), "running")
        self.delete()

    def test_an_id_is_used_once(self):
        self.started("sleep", "1000")
        self.assertIn(f"container with ID {self.name} already exists", self.create(status=1))
        self.assertEqual(self.status(), "running")
        self.delete()

    def test_what_does_not_exist(self):
        for command in (["state"], ["start"], ["kill"], ["delete"], ["ps"], ["pause"], ["resume"], ["update"], ["events"],
                        ["exec"]):
            more = ["true"] if command == ["exec"] else []
            self.assertIn('container "none" does not exist', self.oci(*command, "none", *more, status=1).stderr)
        self.oci("delete", "--force", "none")
        self.assertEqual(self.oci("list", "-q").stdout, "")

    def test_ids_that_are_no_names(self):
        self.bundle("true")
        for name in ("", ".", "..", ".x", "a/b", "a b", "é", "x" * 256):
            self.assertIn("container ID", self.oci("create", "--bundle", self.path, name, status=1).stderr)
        self.assertFalse(os.path.exists(self.root) and os.listdir(self.root))

    def test_no_program_before_the_rules_for_devices(self):
        """With `run` they are put on the group while the process is on its way."""
        marker = os.path.join(self.rootfs, "tmp", "ran")
        self.bundle("touch", "/tmp/ran")
        self.config["linux"]["resources"] = {"devices": [{"allow": True, "type": "x"}]}
        self.save()
        self.assertIn("devices[0]", self.run_it(status=1).stderr)
        self.assertFalse(os.path.exists(marker))
        self.assertEqual((os.listdir(self.root), self.groups()), ([], []))
        self.bundle("mknod", "/tmp/fuse", "c", "10", "229")
        self.caps("CAP_MKNOD")
        for _ in range(20):
            self.assertIn("Operation not permitted", self.run_it(status=1).stderr)

    @unittest.skipUnless(faults.has_faults(), "needs a build with test hooks")
    def test_no_program_where_the_runtime_was_killed(self):
        self.bundle("touch", "/tmp/ran")
        done = self.run_it(status=None, env={**os.environ, "NACRE_FAILPOINT": "spawn.clone+=crash"})
        self.assertEqual(done.returncode, -signal.SIGKILL)
        [group] = self.groups()
        until(lambda: oci_test.reap_orphans(0) or not host.cgroup_pids(group), what="the end of the process")
        self.assertFalse(os.path.exists(os.path.join(self.rootfs, "tmp", "ran")))
        self.delete()

    def test_run_gives_the_status_of_the_program(self):
        for code, status in (("exit 0", 0), ("exit 7", 7)):
            self.bundle("sh", "-c", code)
            self.run_it(status=status)
        self.bundle("probe", "exit", "255")
        self.run_it(status=255)
        self.assertEqual(os.listdir(self.root), [])

    def test_run_of_a_program_that_dies_of_a_signal(self):
        self.bundle("sleep", "1000")
        run = subprocess.Popen([oci_test.RUNTIME, "--root", self.root, "run", "--bundle", self.path, self.name],
                               stdin=subprocess.DEVNULL)
        until(lambda: os.path.exists(os.path.join(self.root, self.name, "state.json")) and self.status() == "running")
        self.oci("kill", self.name, "KILL")
        self.assertEqual(run.wait(oci_test.TIMEOUT), 128 + signal.SIGKILL)
        self.assertEqual(os.listdir(self.root), [])

    def test_run_passes_signals_on(self):
        self.bundle("sh", "-c", "trap 'exit 9' USR1; echo ready; while :; do sleep 0.1; done")
        run = subprocess.Popen([oci_test.RUNTIME, "--root", self.root, "run", "--bundle", self.path, self.name],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        with run.stdout:
            self.assertEqual(run.stdout.readline(), "ready\n")
            run.send_signal(signal.SIGUSR1)
            self.assertEqual(run.wait(oci_test.TIMEOUT), 9)

    def test_run_detached_and_kept(self):
        self.bundle("sleep", "1000")
        subprocess.run([oci_test.RUNTIME, "--root", self.root, "run", "-d", "--bundle", self.path, self.name], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=oci_test.TIMEOUT)
        self.assertEqual(self.status(), "running")
        self.delete()
        self.bundle("true")
        self.run_it("--keep")
        self.assertEqual(self.status(), "stopped")
        self.oci("delete", self.name)

    def test_a_program_that_is_not_there(self):
        self.bundle("nosuch")
        self.assertIn('executable file "nosuch" not found in $PATH: No such file or directory', self.create(status=1))
        self.assertIn("nosuch: No such file or directory", self.run_it(status=1).stderr)
        self.bundle("/etc")
        self.assertIn("Permission denied", self.create(status=1))
        self.assertEqual(os.listdir(self.root), [])
        self.assertEqual(self.groups(), [])

    def test_kill_by_name_and_number(self):
        for name in ("USR1", "SIGUSR1", "usr1", "10"):
            self.bundle("sh", "-c", "trap 'exit 9' USR1; touch /tmp/ready; while :; do sleep 0.1; done")
            ready = os.path.join(self.rootfs, "tmp", "ready")
            if os.path.exists(ready):
                os.unlink(ready)
            self.create()
            self.oci("start", self.name)
            until(lambda: os.path.exists(ready))
            # Signal 0 only asks whether it is there.
            self.oci("kill", self.name, "0")
            self.assertEqual("running", self.status())
            self.oci("kill", self.name, name)
            self.wait_for("stopped")
            for late in (name, "0"):
                self.assertIn("container not running", self.oci("kill", self.name, late, status=1).stderr)
            self.oci("delete", self.name)
        self.assertIn('signal: "RTMAX+1" is not known', self.oci("kill", "x", "RTMAX+1", status=1).stderr)
        self.assertIn('signal: "NOPE" is not known', self.oci("kill", "x", "NOPE", status=1).stderr)

    def test_kill_all(self):
        self.started("sh", "-c", "sleep 1000 & sleep 1000 & sleep 1000")
        until(lambda: len(json.loads(self.oci("ps", "-f", "json", self.name).stdout)) == 4 or
              len(json.loads(self.oci("ps", "-f", "json", self.name).stdout)) == 3)
        self.oci("kill", "--all", self.name, "KILL")
        self.wait_for("stopped")
        until(lambda: json.loads(self.oci("ps", "-f", "json", self.name).stdout) == [])
        self.oci("delete", self.name)

    def test_list_and_ps(self):
        pid = self.started("sleep", "1000")
        rows = self.oci("list").stdout.splitlines()
        self.assertEqual(rows[0].split(), ["ID", "PID", "STATUS", "CREATED", "BUNDLE"])
        self.assertEqual(rows[1].split()[:3], [self.name, str(pid), "running"])
        listed = json.loads(self.oci("list", "--format", "json").stdout)
        self.assertEqual([(c["id"], c["pid"], c["status"]) for c in listed], [(self.name, pid, "running")])
        self.assertEqual(self.oci("list", "-q").stdout, self.name + "\n")
        self.assertEqual(json.loads(self.oci("ps", "--format", "json", self.name).stdout), [pid])
        self.assertIn("sleep 1000", self.oci("ps", self.name).stdout)
        self.assertIn("--format is table or json", self.oci("list", "--format", "xml", status=1).stderr)
        self.delete()

    def test_annotations_are_in_the_state(self):
        self.bundle("true")
        self.config["annotations"] = {"a.b": "c\n"}
        self.save()
        self.create()
        self.assertEqual(self.state()["annotations"], {"a.b": "c\n"})
        self.delete()

    def test_a_changed_config_changes_nothing(self):
        self.bundle("sleep", "1000")
        self.create()
        self.config["process"]["args"] = ["false"]
        self.config["annotations"] = {"new": "1"}
        self.save()
        self.oci("start", self.name)
        self.assertEqual(self.state()["annotations"], {})
        self.assertEqual(self.status(), "running")
        self.delete()


class Errors(oci_test.OciTest):
    def test_the_log_file(self):
        log = os.path.join(self.dir, "log")
        self.oci("state", "none", status=1, flags=["--log", log, "--log-format", "json"])
        with open(log, encoding="utf-8") as f:
            line = json.loads(f.read().splitlines()[-1])
        self.assertEqual((line["level"], line["msg"]), ("error", 'container "none" does not exist'))
        self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
        self.oci("state", "none", status=1, flags=["--log", log])
        with open(log, encoding="utf-8") as f:
            self.assertRegex(f.read().splitlines()[-1],
                             r'^time="[^"]+" level=error msg="container \\"none\\" does not exist"$')

    def test_words_that_are_wrong(self):
        for words, text in ((["nope"], 'unknown command "nope"'), (["state"], "usage: nacre-oci state ID"),
                            (["kill", "--al", "x"], "did you mean --all?"), (["exec", "x"], "does not exist")):
            self.assertIn(text, self.oci(*words, status=1).stderr)
        self.assertIn("--log-format", self.oci("list", status=1, flags=["--log-format", "xml"]).stderr)
        self.assertIn("usage", self.oci().stdout)
        self.assertIn("exec", self.oci("--help").stdout)
        self.assertIn("--ignore-paused", self.oci("exec", "--help").stdout)
        self.assertIn("spec: 1.", self.oci("--version").stdout)

    def test_bundles_that_are_none(self):
        self.assertIn("No such file", self.oci("create", "--bundle", "/nonexistent", self.name, status=1).stderr)
        self.bundle("true")
        for change, text in (({"ociVersion": "2.0.0"}, "ociVersion"),
                             ({"ociVersion": "1.0"}, 'ociVersion: "1.0" is no semantic version'),
                             ({"ociVersion": "1.0.2.3"}, 'ociVersion: "1.0.2.3" is no semantic version'), ({"process": None}, "process: is missing"),
                             ({"root": None}, "root.path"), ({"mounts": [{}]}, "mounts[0].destination"),
                             ({"root": {"path": "nosuch"}}, "root.path")):
            before = dict(self.config)
            self.config.update(change)
            self.save()
            self.assertIn(text, self.create(status=1))
            self.config = before
        with open(os.path.join(self.path, "config.json"), "w", encoding="utf-8") as f:
            f.write("{")
        self.assertIn("config.json: a member without a name (line 1)", self.create(status=1))
        self.assertEqual(os.listdir(self.root), [])


class Crashes(oci_test.OciTest):
    """A `create` that is killed at any point leaves what `delete --force` clears."""

    def check_cleared(self):
        self.oci("list")
        self.oci("delete", "--force", self.name)
        self.assertEqual(os.listdir(self.root) if os.path.isdir(self.root) else [], [])
        self.assertEqual(self.groups(), [])

    def create_killed(self, command, env):
        return subprocess.run([*command, oci_test.RUNTIME, "--root", self.root, "create", "--bundle", self.path, self.name],
                              check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**os.environ, **env}, timeout=oci_test.TIMEOUT).returncode

    def test_killed_some_time(self):
        self.bundle("sleep", "1000")
        for tick in range(1, 40, 3):
            self.create_killed(["/usr/bin/timeout", "-s", "KILL", f"{tick / 2000:.4f}"], {})
            self.check_cleared()

    @unittest.skipUnless(oci_test.SANITIZED, "needs a build with test hooks")
    def test_killed_before_each_call(self):
        """The k-th call that changes the machine, of the runtime or of the first process."""
        self.bundle("sleep", "1000")
        for kth in range(1, 400):
            status = self.create_killed([], {"NACRE_SYSIO": f"*:{kth}:kill"})
            self.check_cleared()
            if status == 0:
                break
        self.assertGreater(kth, 30)
