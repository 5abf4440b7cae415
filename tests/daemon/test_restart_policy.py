# SPDX-License-Identifier: Apache-2.0
"""--restart: what ends is started again by itself, with back-off, until somebody stops it; over a restart of the daemon too."""
import os

import grpc

import nacre_test
from nacre_test import nacre_pb2, runtime_pb2, until

Code = grpc.StatusCode
Policy, Pod = runtime_pb2.RestartPolicy, runtime_pb2.RunPodRequest
# Ends at once, with the number of its run as exit code, until that is 3; then it stays.
THRICE = "echo run >> /runs; n=$(wc -l < /runs); echo $n; [ $n -ge 3 ] || exit $n; trap 'exit 0' TERM; sleep 1000 & wait"


class RestartPolicy(nacre_test.NodeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    def setUp(self):
        self.addCleanup(self.node.clear)

    def run_pod(self, name, policy, script=THRICE):
        self.node.cli("run", "-d", "--name", name, "--restart", policy, "busybox", "sh", "-c", script)

    def show(self, name):
        return self.node.json("inspect", name)

    def logs(self, name):
        return self.node.cli("logs", name).stdout.split()

    def logged(self, name, *lines):
        until(lambda: self.logs(name) == list(lines), what=f"{name} has logged {lines}: {self.logs(name)}")

    def has(self, name, **what):
        def same():
            w = self.show(name)
            return all(w[k] == v for k, v in what.items())

        until(same, what=f"{name} has {what}: {self.show(name)}")

    def test_always(self):
        with nacre_test.Events(self.node) as events:
            self.run_pod("web", "always")
            self.logged("web", "1", "2", "3")
            events.wait("web", "exited", reason="restart 2, as its policy always wants it")
        w = self.show("web")
        self.assertEqual(("running", "always", 2, False), (w["state"], w["restart"], w["restart_count"], w["stopped"]))
        # The second one waits twice as long as the first.
        self.assertIn("(2 restarts)", self.node.cli("ps").stdout)
        self.node.cli("stop", "web")
        self.has("web", state="exited", stopped=True, restart_at=None)
        self.node.restart()
        self.has("web", state="exited", stopped=True, restart_at=None)
        self.node.cli("start", "web")
        self.has("web", state="running", restart_count=0, stopped=False)

    def test_on_failure(self):
        self.run_pod("fails", "on-failure:1")
        self.run_pod("well", "on-failure", script="exit 0")
        self.has("fails", state="exited", exit_code=2, restart_count=1, restart_at=None)
        self.has("well", state="exited", exit_code=0, restart_count=0, restart_at=None)
        self.assertEqual(["1", "2"], self.logs("fails"))

    def test_who_kills_it_ends_it(self):
        for name, words in (("a", ["kill", "a"]), ("b", ["kill", "-s", "TERM", "b"])):
            self.run_pod(name, "unless-stopped", script="trap 'exit 0' TERM; echo up; sleep 1000 & wait")
            self.logged(name, "up")
            self.node.cli(*words)
            self.has(name, state="exited", stopped=True, restart_at=None)
        # Not who is nobody.
        self.run_pod("c", "unless-stopped", script="echo up; sleep 1000")
        self.logged("c", "up")
        os.kill(self.show("c")["containers"][0]["pid"], 9)
        self.logged("c", "up", "up")

    def test_a_daemon_that_takes_over(self):
        self.run_pod("web", "always", script="echo run >> /runs; wc -l < /runs; [ $(wc -l < /runs) -ge 5 ] || exit 1; sleep 1000")
        until(lambda: self.show("web")["restart_count"] >= 1, what="a restart")
        self.node.restart()
        self.logged("web", "1", "2", "3", "4", "5")
        # One more where the daemon was killed in the middle of one.
        self.assertIn(self.show("web")["restart_count"], (4, 5))

    def test_a_volume_that_comes_back(self):
        source = os.path.join(self.node.dir, "volume")
        os.mkdir(source)
        self.node.cli("run", "-d", "--name", "web", "-v", f"{source}:/v", "--restart", "always", "busybox", "sh", "-c",
                      "echo up; while [ ! -e /v/end ]; do sleep 0.05; done; rm /v/end")
        self.logged("web", "up")
        os.rename(source, source + ".away")
        with open(source + ".away/end", "wb"):
            pass
        until(lambda: source in (self.show("web")["reason"] or ""), what="it says what is missing")
        self.assertEqual("exited", self.show("web")["state"])
        os.rename(source + ".away", source)
        self.logged("web", "up", "up")
        self.node.cli("rm", "-f", "web")

    def test_what_cannot_be(self):
        refused = {
            "restart.policy": Pod(restart=Policy(policy="sometimes")),
            "restart.max_retries": Pod(restart=Policy(policy="always", max_retries=3)),
            "auto_remove": Pod(restart=Policy(policy="always"), auto_remove=True),
        }
        for words, request in refused.items():
            request.containers.add(image="busybox")
            with self.assertRaises(grpc.RpcError) as caught:
                self.node.runtime.RunPod(request)
            self.assertEqual(Code.INVALID_ARGUMENT, caught.exception.code())
            self.assertIn(words, caught.exception.details())
        for words in (["--restart", "sometimes"], ["--restart", "always:3"], ["--restart", "on-failure:x"], ["--rm", "--restart", "always"]):
            self.assertIn("--restart", self.node.cli("run", *words, "busybox", check=False).stderr)
        self.node.cli("run", "--rm", "--restart", "no", "busybox", "true")
        # What never came to run is told, and not tried again.
        self.assertEqual(127, self.node.cli("run", "-d", "--name", "bad", "--restart", "always", "busybox", "/no/such", check=False).returncode)
        self.has("bad", state="failed", restart_count=0, restart_at=None)

    def test_a_cell(self):
        self.node.cli("cell", "--name", "c", "--restart", "always", "busybox", "sh", "-c", THRICE)
        self.logged("c", "1", "2", "3")
        shown = self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="c")).workload
        self.assertEqual(("always", 2), (shown.restart.policy, shown.restart_count))
