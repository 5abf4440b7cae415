# SPDX-License-Identifier: Apache-2.0
"""create, start, restart: what has ended runs again with its files; judged by its files, the kernel's processes and its log."""
import os
import unittest

import grpc

import faults
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2, until

Code = grpc.StatusCode
# Each run adds a line to a file and tells how many there are.
COUNT = "echo run >> /runs; wc -l < /runs"
STAY = COUNT + "; trap 'exit 0' TERM; sleep 1000 & wait"


class LifeTest(nacre_test.NodeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    def setUp(self):
        self.addCleanup(self.node.clear)

    def run_pod(self, name, *options, script=STAY, command="run"):
        self.node.cli(command, *(("-d",) if command == "run" else ()), "--name", name, *options, "busybox", "sh", "-c", script)

    def show(self, name):
        return self.node.json("inspect", name)

    def logs(self, name):
        return self.node.cli("logs", name).stdout.split()

    def logged(self, name, *lines):
        until(lambda: self.logs(name) == list(lines), what=f"{name} has logged {lines}: {self.logs(name)}")

    def nothing_left(self):
        until(lambda: not os.listdir(os.path.join(self.node.root, "containers")), what="no container's files")
        self.assertEqual("", self.node.cli("check").stdout)

    def refused(self, code, words, call, **fields):
        with self.assertRaises(grpc.RpcError) as caught:
            call(**fields)
        self.assertEqual(code, caught.exception.code(), caught.exception.details())
        self.assertIn(words, caught.exception.details())

    def start(self, target):
        return self.node.workloads.Start(nacre_pb2.StartRequest(target=target)).workload


class Start(LifeTest):
    def test_a_pod_runs_again_with_its_files(self):
        self.run_pod("web", "--env", "A=b", "--oom-score-adj", "500", "--hostname", "h")
        self.logged("web", "1")
        before = self.show("web")
        self.node.cli("stop", "web")
        self.assertEqual("exited", self.show("web")["state"])
        self.node.cli("start", "web")
        after = self.show("web")
        self.assertEqual((before["id"], before["containers"][0]["id"], "running"),
                         (after["id"], after["containers"][0]["id"], after["state"]))
        self.assertGreater(after["containers"][0]["started_at"], before["containers"][0]["started_at"])
        self.assertNotEqual(before["pid"], after["pid"])
        self.logged("web", "1", "2")
        with open(f"/proc/{after['containers'][0]['pid']}/environ", encoding="ascii") as f:
            self.assertIn("A=b", f.read().split("\0"))
        self.assertEqual("h\n", self.node.cli("exec", "web", "hostname").stdout)
        self.assertEqual("500", nacre_test.host.read(f"/proc/{after['containers'][0]['pid']}/oom_score_adj").strip())
        # What runs is left as it is.
        self.node.cli("start", "web")
        self.assertEqual(after["pid"], self.show("web")["pid"])
        self.node.cli("restart", "web")
        self.logged("web", "1", "2", "3")
        self.node.cli("rm", "-f", "web")
        self.nothing_left()

    def test_cells_and_pods_of_several(self):
        self.node.cli("cell", "--name", "c", "busybox", "sh", "-c", COUNT)
        self.node.cli("pod", "--name", "p", "a=busybox", "sh", "-c", COUNT, "--", "b=busybox", "sh", "-c", COUNT + "; exit 3")
        self.node.cli("wait", "c")
        self.node.cli("wait", "p")
        self.node.cli("start", "c", "p")
        self.assertEqual("0\n", self.node.cli("wait", "c").stdout)
        self.assertEqual("3\n", self.node.cli("wait", "p").stdout)
        self.assertEqual(["1", "2"], self.logs("c"))
        self.assertEqual("1\n2\n", self.node.cli("logs", "-c", "b", "p").stdout)

    def test_a_root_with_a_limit(self):
        self.run_pod("web", "--disk", "32m")
        self.logged("web", "1")
        for n in (2, 3):
            self.node.cli("restart", "-t", "0", "web")
            self.logged("web", *map(str, range(1, n + 1)))

    def test_a_volume_that_is_gone(self):
        source = os.path.join(self.node.dir, "volume")
        os.mkdir(source)
        self.addCleanup(lambda: os.path.exists(source) and os.rmdir(source))
        self.run_pod("web", "-v", f"{source}:/v")
        self.node.cli("stop", "-t", "0", "web")
        os.rmdir(source)
        self.refused(Code.NOT_FOUND, source, lambda: self.start("web"))
        self.assertEqual("exited", self.show("web")["state"])
        os.mkdir(source)
        self.start("web")
        self.assertEqual("running", self.show("web")["state"])

    def test_one_that_cannot_be_executed_any_more(self):
        self.run_pod("web", script="rm /bin/sh; echo gone; sleep 1000")
        self.logged("web", "gone")
        self.node.cli("stop", "-t", "0", "web")
        for _ in range(2):
            self.refused(Code.ABORTED, "No such file or directory", lambda: self.start("web"))
            self.assertEqual("failed", self.show("web")["state"])

    def test_attach(self):
        self.node.cli("run", "--name", "job", "busybox", "sh", "-c", COUNT + "; cat; exit 4", check=False)
        done = self.node.cli("start", "-a", "job", check=False)
        self.assertEqual((4, "2\n"), (done.returncode, done.stdout))

    def test_what_cannot_be_started(self):
        self.node.cli("execute", "--keep", "--name", "x", "true")
        self.node.cli("spawn", "--name", "i")
        self.run_pod("gone", "--rm")
        self.refused(Code.UNIMPLEMENTED, "an executable", lambda: self.start("x"))
        self.refused(Code.UNIMPLEMENTED, "an instance", lambda: self.start("i"))
        self.refused(Code.NOT_FOUND, "nothing", lambda: self.start("nothing"))
        self.assertEqual("running", self.start("gone").state)
        restart = self.node.workloads.Restart
        self.refused(Code.INVALID_ARGUMENT, "grace_ms", lambda: restart(nacre_pb2.RestartRequest(target="gone", grace_ms=1 << 40)))

    def test_a_daemon_that_takes_over(self):
        self.run_pod("web", "--env", "A=b")
        self.logged("web", "1")
        self.node.cli("stop", "web")
        self.node.restart()
        self.start("web")
        self.logged("web", "1", "2")
        self.node.restart()
        self.assertEqual("running", self.show("web")["state"])
        self.node.cli("restart", "web")
        self.logged("web", "1", "2", "3")


class Create(LifeTest):
    def test_create_start(self):
        self.run_pod("web", "--env", "A=b", command="create")
        w = self.show("web")
        self.assertEqual(("created", "created", 0), (w["state"], w["containers"][0]["state"], w["containers"][0]["pid"] or 0))
        self.assertEqual("", self.node.cli("ps", "-q").stdout)
        self.assertEqual(["web"], [w["name"] for w in self.node.json("ps", "-a")])
        self.node.cli("cp", "/etc/hostname", "web:/given")
        self.node.restart()
        self.assertEqual("created", self.show("web")["state"])
        self.node.cli("stop", "web")
        with self.node.spawn_cli("wait", "web") as waits:
            self.node.cli("start", "web")
            self.logged("web", "1")
            self.node.cli("exec", "web", "test", "-s", "/given")
            self.node.cli("stop", "web")
            self.assertEqual(b"0\n", waits.communicate()[0])
        self.assertEqual("exited", self.show("web")["state"])

    def test_created_ones_are_removed(self):
        self.run_pod("web", command="create")
        self.node.cli("create", "--rm", "--name", "job", "busybox", "true")
        self.node.cli("rm", "web")
        self.node.cli("start", "job")
        until(lambda: self.node.json("ps", "-a") == [], what="it is removed once it has ended")
        self.nothing_left()

    def test_a_cell_in_an_instance(self):
        self.node.cli("spawn", "--name", "i")
        container = runtime_pb2.Container(image="busybox", args=["sh", "-c", STAY])
        request = runtime_pb2.RunCellRequest(meta=runtime_pb2.Meta(name="c"), instance="i", containers=[container], create_only=True)
        self.assertEqual("created", self.node.runtime.RunCell(request).containers[0].state)
        self.start("i/c")
        self.logged("i/c", "1")
        self.node.cli("restart", "i/c")
        self.logged("i/c", "1", "2")


class Rename(LifeTest):
    def rename(self, target, name):
        return self.node.workloads.Rename(nacre_pb2.RenameRequest(target=target, name=name)).workload

    def test_pods_cells_and_executables_go_on(self):
        self.run_pod("pod")
        self.node.cli("cell", "--name", "cell", "busybox", "sh", "-c", STAY)
        execute = self.node.spawn_cli("execute", "--keep", "--name", "exe", "--", "sleep", "1000")
        self.addCleanup(execute.communicate)
        until(lambda: self.node.cli("inspect", "exe", check=False).returncode == 0 and self.show("exe")["state"] == "running", what="it runs")
        before = {name: self.show(name) for name in ("pod", "cell", "exe")}
        groups = {name: nacre_test.host.read(f"/proc/{before[name]['containers'][0]['pid']}/cgroup") for name in before}
        with nacre_test.Events(self.node) as events:
            for name in before:
                self.node.cli("rename", name, name + "-2")
                events.wait(name + "-2", "renamed", object="workload")
        self.assertEqual(sorted(n + "-2" for n in before), sorted(w["name"] for w in self.node.json("ps")))
        # Others take the names while these live; nobody's group is another's.
        for again in range(2):
            for name, w in before.items():
                now = self.show(name + "-2")
                self.assertEqual((w["id"], w["containers"][0]["pid"], "running"), (now["id"], now["containers"][0]["pid"], now["state"]))
                self.refused(Code.NOT_FOUND, "", self.node.workloads.Inspect, request=nacre_pb2.InspectRequest(target=name))
            if not again:
                self.node.restart()
        self.run_pod("pod")
        self.node.cli("cell", "--name", "cell", "busybox", "sh", "-c", STAY)
        for name in ("pod", "cell"):
            pid = self.show(name)["containers"][0]["pid"]
            self.assertNotEqual(groups[name], nacre_test.host.read(f"/proc/{pid}/cgroup"))
            self.logged(name + "-2", "1")
            self.assertEqual("hi\n", self.node.cli("exec", name + "-2", "echo", "hi").stdout)
            self.assertIn("sleep", self.node.cli("processes", name + "-2").stdout)
        self.node.restart()
        self.assertEqual("", self.node.cli("check").stdout)
        # The end of one is not the end of the other.
        self.node.cli("stop", "cell-2", "pod-2", "exe-2")
        self.assertEqual(["running", "running"], [self.show(name)["state"] for name in ("pod", "cell")])
        self.node.cli("start", "cell-2", "pod-2")
        self.logged("cell-2", "1", "2")
        self.logged("pod-2", "1", "2")
        self.assertEqual("pod-2\n", self.node.cli("exec", "pod-2", "hostname").stdout)
        self.node.cli("rm", "-f", "--all")
        self.nothing_left()

    def test_in_an_instance_and_by_policy(self):
        self.node.cli("spawn", "--name", "inner")
        self.node.cli("run", "-d", "--in", "inner", "--name", "p", "busybox", "sh", "-c", STAY)
        self.node.cli("run", "-d", "--name", "again", "--restart", "on-failure", "busybox", "sh", "-c", COUNT + "; [ $(wc -l < /runs) -ge 2 ] || { sleep 0.5; exit 1; }")
        self.node.cli("rename", "again", "named")
        self.assertEqual("inner/q", self.rename("inner/p", "q").name)
        self.node.cli("run", "-d", "--in", "inner", "--name", "p", "busybox", "sh", "-c", STAY)
        self.node.cli("stop", "inner/p")
        self.assertEqual(("running", "exited"), (self.show("inner/q")["state"], self.show("inner/p")["state"]))
        self.node.restart()
        self.assertEqual("hi\n", self.node.cli("exec", "inner/q", "echo", "hi").stdout)
        self.node.cli("stop", "inner/q")
        until(lambda: self.show("named")["state"] == "exited", what="its policy has started it again")
        self.logged("named", "1", "2")

    def test_what_has_ended(self):
        self.run_pod("over", script=COUNT)
        self.node.cli("wait", "over")
        self.rename("over", "done")
        self.node.restart()
        self.node.cli("start", "done")
        self.logged("done", "1", "2")
        self.node.cli("rename", "done", "done")

    def test_refused(self):
        self.node.cli("spawn", "--name", "inner")
        self.run_pod("web")
        self.run_pod("db")
        self.node.cli("run", "-d", "--in", "web", "--name", "below", "busybox", "sleep", "1000")
        for target, name, code, words in (
                ("db", "web", Code.ALREADY_EXISTS, "name: web is taken by a pod"), ("db", "inner", Code.ALREADY_EXISTS, "name: inner is taken by an instance"),
                ("db", "", Code.INVALID_ARGUMENT, "name: required"), ("db", "A_b", Code.INVALID_ARGUMENT, "name: \"A_b\" is no name"),
                ("db", "a/b", Code.INVALID_ARGUMENT, "name: "), ("db", "x" * 64, Code.INVALID_ARGUMENT, "name: "),
                ("nobody", "x", Code.NOT_FOUND, "target: there is no workload"), ("", "x", Code.INVALID_ARGUMENT, "target: required"),
                ("inner", "x", Code.UNIMPLEMENTED, "target: inner is an instance"),
                ("web", "x", Code.FAILED_PRECONDITION, "web is around web/below")):
            with self.subTest(target=target, name=name):
                self.refused(code, words, self.node.workloads.Rename, request=nacre_pb2.RenameRequest(target=target, name=name))

    @unittest.skipUnless(faults.has_faults(), "this build has no failpoints")
    def test_what_cannot_be_recorded_has_its_name(self):
        self.run_pod("web")
        for place, name in (("workload.rename=error:28", "web"), ("workload.rename+=crash", "db")):
            self.node.stop()
            self.node.start(env={"NACRE_FAILPOINT": place})
            with self.assertRaises(grpc.RpcError):
                self.rename("web", "db")
            if "crash" in place:
                self.node.wait()
                self.node.start()
            self.assertEqual([name], [w["name"] for w in self.node.json("ps")])
            self.assertEqual("hi\n", self.node.cli("exec", name, "echo", "hi").stdout)
