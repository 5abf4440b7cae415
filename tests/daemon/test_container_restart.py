# SPDX-License-Identifier: Apache-2.0
"""Single containers of a pod: stopped, started and restarted alone, by hand and by a policy of their own; sidecars and their order."""
import os
import sqlite3
import time
import unittest

import grpc

import images
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2, until

Code = grpc.StatusCode
Policy, Container = runtime_pb2.RestartPolicy, runtime_pb2.Container
# Ends with the number of its run as exit code, until that is 3; then it stays.
THRICE = "echo run >> /runs; n=$(wc -l < /runs); echo $n; [ $n -ge 3 ] || exit $n; trap 'exit 0' TERM; sleep 1000 & wait"
STAYS = "echo up >> /d/log; trap 'echo down >> /d/log; exit 0' TERM; sleep 1000 & wait"


class ContainerRestart(nacre_test.NodeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    def setUp(self):
        self.addCleanup(self.node.cli, "volume", "rm", "shared", check=False)
        self.addCleanup(self.node.clear)

    def pod(self, *sections, name="shop", options=(), check=True):
        words = ["pod", "--name", name, *options]
        for section in sections:
            words += ["--", *section]
        return self.node.cli(*words, check=check)

    def part(self, name, script="exec sleep 1000", *options):
        return [*options, "-v", "shared:/d", name + "=busybox", "sh", "-c", script]

    def sidecar(self, name, *options):
        script = f"echo {name} up >> /d/log; trap 'sleep 0.2; echo {name} down >> /d/log; exit 0' TERM; sleep 1000 & wait"
        return self.part(name, script, "--init-ctr", "always", "--restart", "always", *options)

    def parts(self, name="shop"):
        return {c["name"]: c for c in self.node.json("inspect", name)["containers"]}

    def states(self, name="shop"):
        return {n: c["state"] for n, c in self.parts(name).items()}

    def logged(self, *lines, container):
        def logs():
            return self.node.cli("logs", "--container", container, "shop").stdout.split()

        until(lambda: logs() == list(lines), what=f"{container} has logged {lines}: {logs()}")

    def shared(self):
        """What the containers have written to their volume."""
        return self.node.cli("run", "--rm", "-v", "shared:/d", "busybox", "cat", "/d/log").stdout.split("\n")[:-1]

    def test_by_hand(self):
        self.pod(self.part("web", "echo run >> /runs; wc -l < /runs; trap 'exit 0' TERM; sleep 1000 & wait"), self.part("db"))
        self.logged("1", container="web")
        before = self.parts()
        self.node.cli("restart", "shop", "--container", "web")
        # Its files and its log stay, in the namespaces of the pod; the other is not touched.
        self.logged("1", "2", container="web")
        after = self.parts()
        self.assertEqual(before["db"]["pid"], after["db"]["pid"])
        self.assertEqual(before["web"]["id"], after["web"]["id"])
        self.assertNotEqual(before["web"]["pid"], after["web"]["pid"])
        for kind in ("net", "ipc", "uts"):
            self.assertEqual(*(os.readlink(f"/proc/{c['pid']}/ns/{kind}") for c in after.values()))
        self.assertEqual("1000\n", self.node.cli("exec", "-c", "web", "shop", "sh", "-c", "tr '\\0' ' ' < /proc/1/cmdline | wc -w > /d/n; echo 1000").stdout)
        self.node.cli("stop", "shop", "--container", "web")
        self.assertEqual({"web": "exited", "db": "running"}, self.states())
        self.assertEqual(0, self.parts()["web"]["exit_code"])
        self.node.restart()
        self.assertEqual({"web": "exited", "db": "running"}, self.states())
        self.node.cli("start", "shop", "--container", "web")
        self.node.cli("start", "shop", "--container", "web")
        self.logged("1", "2", "3", container="web")
        self.node.cli("kill", "shop", "--container", "web")
        self.assertEqual(137, self.parts()["web"]["exit_code"])
        # The last one ends the pod, but for a restart of it.
        self.node.cli("restart", "-t", "0", "shop", "--container", "db")
        self.assertEqual({"web": "exited", "db": "running"}, self.states())
        self.node.cli("stop", "-t", "0", "shop", "--container", "db")
        until(lambda: self.node.json("inspect", "shop")["state"] == "exited", what="the pod has ended")
        done = self.node.cli("start", "shop", "--container", "db", check=False)
        self.assertIn("shop is exited: start all of it", done.stderr)
        self.node.cli("start", "shop")
        self.assertEqual({"web": "running", "db": "running"}, self.states())

    def test_policies(self):
        self.pod(self.part("web", THRICE, "--restart", "always"), self.part("job", THRICE, "--restart", "on-failure:1"),
                 self.part("well", "exit 0", "--restart", "on-failure"), self.part("plain", "exit 5"), self.part("db"))
        pid = self.parts()["db"]["pid"]
        self.logged("1", "2", "3", container="web")
        self.logged("1", "2", container="job")
        until(lambda: self.states() == {"web": "running", "job": "exited", "well": "exited", "plain": "exited", "db": "running"}, what=str(self.states()))
        parts = self.parts()
        self.assertEqual(pid, parts["db"]["pid"])
        self.assertEqual([("always", 0, 2), ("on-failure", 1, 1), ("on-failure", 0, 0), ("no", 0, 0)],
                         [(parts[n]["restart"], parts[n]["restart_max"], parts[n]["restart_count"]) for n in ("web", "job", "well", "plain")])
        # Who stops it ends that, over a restart of the daemon too, until somebody starts it.
        self.node.cli("stop", "shop", "--container", "web")
        self.node.restart()
        self.assertEqual(("exited", True), (self.parts()["web"]["state"], self.parts()["web"]["stopped"]))
        self.node.cli("start", "shop", "--container", "web")
        self.assertEqual(("running", False, 0), tuple(self.parts()["web"][k] for k in ("state", "stopped", "restart_count")))
        # Not who is nobody, and whatever daemon there is by then.
        os.kill(self.parts()["web"]["pid"], 9)
        self.node.restart()
        self.logged("1", "2", "3", "4", "5", container="web")
        until(lambda: self.states()["web"] == "running", what="it runs again")

    def test_a_pod_does_not_end_before_its_restarts(self):
        self.pod(self.part("web", THRICE, "--restart", "on-failure"))
        self.logged("1", "2", "3", container="web")
        self.assertEqual("running", self.node.json("inspect", "shop")["state"])
        self.node.cli("exec", "shop", "kill", "-TERM", "1", check=False)
        until(lambda: self.node.json("inspect", "shop")["state"] == "exited", what="the pod has ended")
        self.assertEqual(0, self.node.json("inspect", "shop")["exit_code"])
        # A stop of the pod waits for no restart.
        self.pod(self.part("a", "exit 1", "--restart", "always"), name="loop")
        until(lambda: self.parts("loop")["a"]["restart_count"] >= 2, what="restarts")
        self.node.cli("stop", "loop")
        self.assertEqual("exited", self.node.json("inspect", "loop")["state"])
        count = self.parts("loop")["a"]["restart_count"]
        self.node.cli("run", "--rm", "busybox", "sleep", "1")
        self.assertEqual(count, self.parts("loop")["a"]["restart_count"])

    def test_what_cannot_be_started_is_tried_again(self):
        source = os.path.join(self.node.dir, "source")
        os.mkdir(source)
        self.pod(["--restart", "always", "-v", f"{source}:/v", *self.part("web", "[ -e /v/stay ] && exec sleep 1000; sleep 0.3")], self.part("db"))
        os.rename(source, source + ".away")
        until(lambda: source in (self.parts()["web"]["reason"] or ""), what="its reason")
        os.rename(source + ".away", source)
        open(os.path.join(source, "stay"), "w").close()
        until(lambda: self.states() == {"web": "running", "db": "running"}, what="it runs again")

    def test_sidecars(self):
        self.pod(self.sidecar("one"), self.part("init", "echo init >> /d/log", "--init-ctr", "always"), self.sidecar("two"),
                 self.part("main", "echo main >> /d/log; trap 'echo main down >> /d/log; exit 7' TERM; sleep 1000 & wait"))
        self.assertEqual({"one": "running", "init": "exited", "two": "running", "main": "running"}, self.states())
        until(lambda: len(self.shared()) == 4, what="all are up")
        parts = self.parts()
        self.assertLessEqual(parts["one"]["started_at"], parts["init"]["started_at"])
        self.assertLessEqual(parts["init"]["finished_at"], parts["two"]["started_at"])
        self.assertLessEqual(parts["two"]["started_at"], parts["main"]["started_at"])
        # One that ends is started again.
        os.kill(parts["one"]["pid"], 9)
        until(lambda: self.parts()["one"]["restart_count"] == 1 and self.states()["one"] == "running", what="it runs again")
        until(lambda: self.shared().count("one up") == 2, what="it is up again")
        self.node.restart()
        self.node.cli("stop", "shop")
        self.assertEqual(["main down", "two down", "one down"], self.shared()[-3:])
        # Theirs is not the pod's exit code.
        self.assertEqual(7, self.node.json("inspect", "shop")["exit_code"])

    def test_sidecars_keep_no_pod_from_ending(self):
        self.pod(self.sidecar("one"), self.sidecar("two"), self.part("main", "until [ $(wc -l < /d/log) = 2 ]; do sleep 0.1; done; exit 3"))
        self.assertEqual("3", self.node.cli("wait", "shop", check=False).stdout.strip())
        self.assertEqual(["two down", "one down"], self.shared()[-2:])
        self.assertEqual({"one": 0, "two": 0, "main": 3}, {n: c["exit_code"] for n, c in self.parts().items()})

    def test_a_sidecar_with_a_check(self):
        begun = time.monotonic()
        check = ("--health-cmd", "test -e /d/ready", "--health-interval", "100ms", "--health-start-period", "1m", "--health-start-interval", "100ms")
        self.pod(self.part("one", "sleep 0.5; touch /d/ready; exec sleep 1000", "--init-ctr", "always", "--restart", "always", *check),
                 self.part("main", "test -e /d/ready || exit 9; exec sleep 1000"))
        self.assertGreater(time.monotonic() - begun, 0.5)
        self.assertEqual({"one": "running", "main": "running"}, self.states())
        self.node.cli("stop", "-t", "0", "shop")

    def test_what_is_refused(self):
        def container(name, **fields):
            return Container(name=name, image="busybox", args=["sleep", "1000"], **fields)

        for containers, field in (([container("a", restart=Policy(policy="often"))], "containers[0].restart.policy"),
                                  ([container("a", restart=Policy(policy="always", max_retries=1))], "containers[0].restart.max_retries"),
                                  ([container("a"), container("b", init_container=True, restart=Policy(policy="on-failure"))], "containers[1].restart"),
                                  ([container("a", init_container=True, restart=Policy(policy="always"))], "containers[0].init_container")):
            self.assertFails(Code.INVALID_ARGUMENT, lambda q=runtime_pb2.RunPodRequest(containers=containers): self.node.runtime.RunPod(q), field)
        self.pod(self.part("init", "true", "--init-ctr", "always"), self.part("main"))
        start = lambda name: self.node.workloads.Start(nacre_pb2.StartRequest(target="shop", container=name))
        self.assertFails(Code.INVALID_ARGUMENT, lambda: start("init"), "container")
        self.assertFails(Code.NOT_FOUND, lambda: start("none"), "container")
        self.assertIn("--attach", self.node.cli("start", "-a", "--container", "main", "shop", check=False).stderr)


class Records(unittest.TestCase):
    def test_an_unknown_policy_or_role(self):
        """A daemon that finds one does not guess: it says which record, and does not start."""
        with nacre_test.Node() as node:
            node.cli("run", "-d", "--name", "p", images.ensure(node, "busybox"), "sleep", "1000")
            for column, bad, good in (("restart", "maybe", "no"), ("role", "first", "")):
                with self.subTest(column):
                    node.kill()
                    self.write(node, column, bad)
                    node.launch()
                    self.assertEqual(1, node.wait())
                    self.assertIn("the record of container", node.log())
                    self.write(node, column, good)
                    node.start()
                    self.assertEqual("p\n", node.cli("ps", "--format", "{name}").stdout)
            node.cli("rm", "--force", "p")

    @staticmethod
    def write(node, column, value):
        with sqlite3.connect(os.path.join(node.run, "run.db")) as db:
            db.execute(f"UPDATE container SET {column}=?", (value,))
        db.close()
