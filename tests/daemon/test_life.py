# SPDX-License-Identifier: Apache-2.0
"""create, start, restart: what has ended runs again with its files; judged by its files, the kernel's processes and its log."""
import os

import grpc

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
