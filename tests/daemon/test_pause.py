# SPDX-License-Identifier: Apache-2.0
"""pause, unpause, kill, and --all; judged by the kernel's word in cgroup.events and by what a program writes."""
import os
import signal
import time
import unittest

import grpc

import nacre_test
from nacre_test import nacre_pb2, until

Code = grpc.StatusCode
COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done"


class Pause(nacre_test.NodeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    def setUp(self):
        self.addCleanup(self.node.clear)

    def count(self, name="web", *options):
        self.node.cli("run", "-d", "--name", name, *options, "busybox", "sh", "-c", COUNT)
        until(lambda: self.lines(name) > 2, what="it counts")

    def lines(self, name="web"):
        return len(self.node.cli("logs", name).stdout.splitlines())

    def paused(self, name="web"):
        return self.node.json("inspect", name)["paused"]

    def goes_on(self, name="web"):
        before = self.lines(name)
        until(lambda: self.lines(name) > before, what="it goes on")

    def refused(self, method, code, words, **fields):
        with self.assertRaises(grpc.RpcError) as caught:
            method(nacre_pb2.PauseRequest(**fields) if method == self.node.workloads.Pause else nacre_pb2.UnpauseRequest(**fields))
        self.assertEqual(code, caught.exception.code())
        self.assertIn(words, caught.exception.details())

    def test_pause(self):
        for how in ((), ("--network", "host")):
            with self.subTest(how=how):
                self.count("web", *how)
                self.node.cli("pause", "web")
                before = self.lines()
                time.sleep(0.3)
                self.assertEqual(before, self.lines())
                self.assertTrue(self.paused())
                self.assertIn(" paused ", self.node.cli("ps").stdout)
                # Idempotent, both.
                self.node.cli("pause", "web")
                self.assertIn("web/main is paused", self.node.cli("exec", "web", "true", check=False).stderr)
                self.node.cli("cp", "web:/etc/hosts", "-")
                self.node.cli("unpause", "web")
                self.node.cli("unpause", "web")
                self.assertFalse(self.paused())
                self.goes_on()
                self.node.cli("exec", "web", "true")
                self.node.cli("rm", "-f", "web")

    def test_all_containers_of_a_pod_and_a_cell(self):
        self.node.cli("pod", "--name", "two", "a=busybox", "sh", "-c", COUNT, "--", "b=busybox", "sh", "-c", COUNT)
        self.node.cli("cell", "--name", "cell", "busybox", "sh", "-c", COUNT)
        self.node.cli("pause", "--all")
        self.assertEqual([True, True], [w["paused"] for w in self.node.json("ps")])
        self.assertEqual(3, len(self.frozen_groups()))
        self.node.cli("unpause", "two", "cell")
        self.assertEqual([False, False], [w["paused"] for w in self.node.json("ps")])
        self.assertEqual([], self.frozen_groups())

    def frozen_groups(self):
        found = []
        for folder, _, _ in os.walk(self.node.cgroup()):
            with open(f"{folder}/cgroup.freeze", encoding="ascii") as f:
                found += [folder] if f.read() == "1\n" else []
        return found

    def test_it_stays_over_a_restart_of_the_daemon(self):
        self.count()
        self.node.cli("pause", "web")
        self.node.restart()
        self.assertTrue(self.paused())
        self.assertIn("is paused", self.node.cli("exec", "web", "true", check=False).stderr)
        self.node.cli("unpause", "web")
        self.goes_on()

    def test_the_end_of_what_is_paused(self):
        """A stop asks it, and it hears that; a kill does not wait for it; neither does the end of its pod."""
        self.node.cli("run", "-d", "--name", "polite", "busybox", "sh", "-c", "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.02; done")
        until(lambda: self.lines("polite"), what="it is up")
        self.node.cli("pause", "polite")
        self.node.cli("stop", "-t", "30", "polite")
        self.assertEqual(7, self.node.json("inspect", "polite")["exit_code"])
        self.assertIn("bye", self.node.cli("logs", "polite").stdout)
        self.count("rude")
        self.node.cli("pause", "rude")
        self.node.cli("kill", "rude")
        self.assertEqual((137, False), tuple(self.node.json("inspect", "rude")[k] for k in ("exit_code", "paused")))
        self.count("gone")
        self.node.cli("pause", "gone")
        self.node.cli("rm", "-f", "gone")

    def test_refused(self):
        both = (self.node.workloads.Pause, self.node.workloads.Unpause)
        for method in both:
            self.refused(method, Code.NOT_FOUND, "nobody", target="nobody")
            self.refused(method, Code.INVALID_ARGUMENT, "target", target="")
        self.node.cli("run", "--name", "over", "busybox", "true")
        self.node.cli("spawn", "--name", "inner")
        for method in both:
            self.refused(method, Code.FAILED_PRECONDITION, "over is exited, not running", target="over")
            self.refused(method, Code.INVALID_ARGUMENT, "inner is an instance: pause the workloads in it", target="inner")

    def test_kill(self):
        self.node.cli("run", "-d", "--name", "web", "busybox", "sh", "-c", "trap 'echo hup' HUP; echo up; while :; do sleep 0.02; done")
        until(lambda: self.lines(), what="it is up")
        for word in ("HUP", "SIGHUP", "1"):
            self.node.cli("kill", "--signal", word, "web")
        until(lambda: "hup" in self.node.cli("logs", "web").stdout, what="it heard that")
        self.assertIn("not \"NEVER\"", self.node.cli("kill", "-s", "NEVER", "web", check=False).stderr)
        self.node.cli("kill", "web")
        w = self.node.json("inspect", "web")
        self.assertEqual(("exited", 137, signal.SIGKILL), (w["state"], w["exit_code"], w["containers"][0]["signal"]))

    def test_all(self):
        for name in ("a", "b"):
            self.node.cli("run", "-d", "--name", name, "busybox", "sleep", "1000")
        self.node.cli("run", "--name", "over", "busybox", "true")
        self.assertIn("either name the targets", self.node.cli("stop", "--all", "a", check=False).stderr)
        self.assertIn("name a TARGET", self.node.cli("stop", check=False).stderr)
        self.node.cli("rm", "--all")
        self.assertEqual(["a", "b"], [w["name"] for w in self.node.json("ps", "-a")])
        self.node.cli("stop", "--all", "-t", "0")
        self.assertEqual([], self.node.json("ps"))
        self.node.cli("run", "-d", "--name", "c", "busybox", "sleep", "1000")
        self.node.cli("rm", "--all", "--force")
        self.assertEqual([], self.node.json("ps", "-a"))
        self.node.cli("rm", "--all")

    def test_files_of_a_run(self):
        path = f"{self.node.dir}/env"
        with open(path, "w", encoding="utf-8") as f:
            f.write("# comment\nA=1\n  B=two words\r\nHERE\nNOT_HERE\nC=\nA_QUOTE=\"x\"\n\n")
        said = self.node.cli("run", "--rm", "--env-file", path, "-e", "A=3", "busybox", "env", env={"HERE": "yes"}).stdout.splitlines()
        for line in ("A=3", "B=two words", "HERE=yes", "C=", 'A_QUOTE="x"'):
            self.assertIn(line, said)
        self.assertFalse([line for line in said if line.startswith("NOT_HERE")])
        with open(path, "w", encoding="utf-8") as f:
            f.write("A=1\nno name\n")
        self.assertIn(f"{path}:2: a line is NAME=VALUE", self.node.cli("run", "--env-file", path, "busybox", check=False).stderr)
        cid = f"{self.node.dir}/cid"
        said = self.node.cli("run", "-d", "--name", "web", "--cidfile", cid, "--shm-size", "3m", "busybox", "sleep", "1000").stdout
        with open(cid, encoding="ascii") as f:
            self.assertEqual(said.strip(), f.read())
        self.assertIn(" size=3072k", self.node.cli("exec", "web", "grep", "/dev/shm", "/proc/mounts").stdout.replace(",", " "))
        self.assertIn("is there already", self.node.cli("run", "--cidfile", cid, "busybox", check=False).stderr)
        os.unlink(cid)
        self.assertNotEqual(0, self.node.cli("run", "--pull", "never", "--cidfile", cid, "nothing", check=False).returncode)
        self.assertFalse(os.path.exists(cid))


if __name__ == "__main__":
    unittest.main()
