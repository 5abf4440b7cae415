# SPDX-License-Identifier: Apache-2.0
"""Properties that the host takes only in part, or not: an error, or a warning with the value that is set."""
import json
import os
import subprocess

import oci_test


class Refused(oci_test.OciTest):
    def limited(self, *args, drop="sys_resource", status=0):
        """Runs the runtime without a capability; (stdout, stderr, the lines of the log)."""
        log = os.path.join(self.dir, "log")
        with open(log, "w", encoding="utf-8"):
            pass
        drops = ["setpriv", f"--bounding-set=-{drop}"] if drop else []
        done = subprocess.run([*drops, self.runtime, "--root", self.root, "--log", log, "--log-format", "json", *args],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=oci_test.TIMEOUT)
        self.assertEqual(done.returncode, status, done.stderr)
        with open(log, encoding="utf-8") as f:
            return done.stdout, done.stderr, [json.loads(line) for line in f]

    def run_limited(self, **kwargs):
        return self.limited("run", "--bundle", self.path, self.name, **kwargs)

    def assert_warned(self, text, stderr, log):
        self.assertIn(f"warning: {text}", stderr)
        self.assertIn(text, [line["msg"] for line in log if line["level"] == "warning"])

    def own_score(self):
        with open("/proc/self/oom_score_adj", encoding="ascii") as f:
            return int(f.read())

    def test_oom_score(self):
        own = self.own_score()
        text = f"process.oomScoreAdj: -900 is lower than the kernel allows without CAP_SYS_RESOURCE, {min(own, 0)} is set"
        self.bundle("cat", "/proc/self/oom_score_adj", oomScoreAdj=-900)
        out, err, log = self.run_limited()
        self.assertEqual(int(out), min(own, 0))
        self.assert_warned(text, err, log)
        # What can be set is, without a word.
        self.bundle("cat", "/proc/self/oom_score_adj", oomScoreAdj=900)
        out, err, log = self.run_limited()
        self.assertEqual((int(out), err, log), (900, "", []))

    def test_oom_score_of_create_and_exec(self):
        self.bundle("sleep", "1000", oomScoreAdj=-900)
        log = os.path.join(self.dir, "log")
        with open(os.path.join(self.dir, "err"), "w+", encoding="utf-8") as err:
            subprocess.run(["setpriv", "--bounding-set=-sys_resource", self.runtime, "--root", self.root, "--log", log, "create",
                            "--bundle", self.path, self.name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
                           check=True, timeout=oci_test.TIMEOUT)
            err.seek(0)
            self.assertEqual(err.read().count("warning: process.oomScoreAdj: -900 is lower"), 1)
        with open(log, encoding="utf-8") as f:
            self.assertIn("process.oomScoreAdj", f.read())
        self.oci("start", self.name)
        out, err, lines = self.limited("exec", self.name, "cat", "/proc/self/oom_score_adj")
        self.assertEqual(int(out), min(self.own_score(), 0))
        self.assertEqual(["warning"], [line["level"] for line in lines])
        self.assertIn("process.oomScoreAdj: -900", err)
        self.delete()

    def test_oom_score_in_a_user_namespace(self):
        self.bundle("cat", "/proc/self/oom_score_adj", oomScoreAdj=-900)
        self.config["linux"]["namespaces"].append({"type": "user"})
        self.config["linux"].update({k: [{"containerID": 0, "hostID": 0, "size": 65536}] for k in ("uidMappings", "gidMappings")})
        self.save()
        out, err, log = self.run_limited()
        self.assertEqual(int(out), min(self.own_score(), 0))
        self.assert_warned(log[0]["msg"], err, log)
        self.assertIn("process.oomScoreAdj: -900", err)

    def test_processors_of_an_exec(self):
        have = sorted(os.sched_getaffinity(0))
        self.started("sleep", "1000")
        path = os.path.join(self.dir, "process.json")
        script = ["grep", "Cpus_allowed_list", "/proc/self/status"]
        process = {"cwd": "/", "args": script, "env": ["PATH=/bin"]}
        for asked, seen, warned in ((f"{have[0]}", f"{have[0]}", False), (f"{have[0]},900-901", f"{have[0]}", True)):
            with open(path, "w", encoding="utf-8") as f:
                json.dump({**process, "execCPUAffinity": {"final": asked}}, f)
            out, err, log = self.limited("exec", "--process", path, self.name, drop=None)
            self.assertEqual(out.split()[1], seen)
            self.assertEqual(bool(log), warned)
            if warned:
                self.assert_warned(f"process.execCPUAffinity: of {asked} only {seen} are here", err, log)
        with open(path, "w", encoding="utf-8") as f:
            json.dump({**process, "execCPUAffinity": {"initial": "900"}}, f)
        _, err, log = self.limited("exec", "--process", path, self.name, drop=None, status=1)
        self.assertIn("cpus: this host has none of these processors here", err)
        self.assertEqual(log[-1]["level"], "error")
        self.delete()

    def test_nodes_of_the_memory_policy(self):
        self.bundle("true")
        self.config["linux"]["memoryPolicy"] = {"mode": "MPOL_INTERLEAVE", "nodes": "0,1000"}
        self.save()
        _, err, log = self.run_limited(drop=None)
        self.assertIn("linux.memoryPolicy.nodes: of 0,1000 only 0", err)
        self.assertEqual(["warning"], [line["level"] for line in log])
        self.config["linux"]["memoryPolicy"]["nodes"] = "0"
        self.save()
        self.assertEqual(self.run_limited(drop=None)[1:], ("", []))

    def test_the_bounding_set(self):
        self.bundle("grep", "CapBnd", "/proc/self/status")
        for name, caps in self.config["process"]["capabilities"].items():
            self.config["process"]["capabilities"][name] = [*caps, "CAP_SYS_NICE"] if name == "bounding" else []
        self.save()
        out, err, log = self.run_limited(drop="sys_nice")
        self.assertFalse(int(out.split()[1], 16) & 1 << 23)
        self.assert_warned("process.capabilities.bounding: CAP_SYS_NICE is not in the bounding set of the caller, and not set", err, log)
        self.assertEqual(self.run_limited(drop=None)[1:], ("", []))

    def test_names_without_a_namespace(self):
        self.bundle("uname", "-n")
        self.config["hostname"] = "another-name"
        self.config["linux"]["namespaces"] = [n for n in self.config["linux"]["namespaces"] if n["type"] != "uts"]
        self.save()
        out, err, log = self.run_limited(drop=None)
        self.assertEqual(out.strip(), os.uname().nodename)
        self.assert_warned('hostname: "another-name" is not set without a new uts namespace', err, log)
        self.config["hostname"] = os.uname().nodename
        self.save()
        self.assertEqual(self.run_limited(drop=None)[1:], ("", []))

    def test_what_a_policy_has_no_use_for(self):
        for member, policy in (("nice", "SCHED_FIFO"), ("priority", "SCHED_OTHER"), ("runtime", "SCHED_OTHER"),
                               ("deadline", "SCHED_RR"), ("period", "SCHED_BATCH"), ("nice", "SCHED_DEADLINE")):
            self.bundle("true", scheduler={"policy": policy, member: 5})
            self.assertIn(f"process.scheduler.{member}: has no effect with policy {policy}",
                          self.run_limited(drop=None, status=1)[1])
        self.bundle("true", scheduler={"policy": "SCHED_OTHER", "nice": 5, "priority": 0, "runtime": 0})
        self.assertEqual(self.run_limited(drop=None)[1:], ("", []))

    def test_what_needs_a_capability(self):
        """Nothing of these can be had in part."""
        for process, text in (({"rlimits": [{"type": "RLIMIT_CORE", "soft": 0, "hard": 2**63}]}, "rlimits"),
                              ({"scheduler": {"policy": "SCHED_FIFO", "priority": 1}}, "sched"),
                              ({"scheduler": {"policy": "SCHED_OTHER", "nice": -5}}, "sched"),
                              ({"apparmorProfile": "no-such-profile"}, "apparmor"), ({"selinuxLabel": "a:b:c:d"}, "selinux")):
            self.bundle("true", **process)
            command = ["prlimit", "--core=0:0", "setpriv", "--bounding-set=-sys_resource,-sys_nice", self.runtime, "--root",
                       self.root, "run", "--bundle", self.path, self.name]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                  timeout=oci_test.TIMEOUT)
            self.assertNotEqual(done.returncode, 0, process)
            self.assertIn(text, done.stderr)
