# SPDX-License-Identifier: Apache-2.0
"""Health checks: probes by command, TCP, HTTP and gRPC, what an image asks for, what follows, over a restart of the daemon too."""
import concurrent.futures
import ctypes
import json
import os
import re
import threading
import time

import grpc

import images
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2, until

Code = grpc.StatusCode
Health = runtime_pb2.HealthCheck
FAST = ("--health-interval", "100ms", "--health-retries", "2")
BY_FILE = "test -e /tmp/well || { echo sick; exit 3; }"


class HealthTest(nacre_test.NodeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    def setUp(self):
        self.addCleanup(self.node.clear)

    def run_pod(self, name, *options, script="exec sleep 1000"):
        self.node.cli("run", "-d", "--name", name, *options, "busybox", "sh", "-c", script)

    def show(self, name):
        return self.node.json("inspect", name)

    def health(self, name):
        return self.show(name)["containers"][0]["health"]

    def is_(self, name, status):
        until(lambda: (self.health(name) or {}).get("status") == status, what=f"{name} is {status}: {self.health(name)}")
        return self.health(name)

    def well(self, name, well):
        self.node.cli("exec", name, "sh", "-c", "touch /tmp/well" if well else "rm /tmp/well")


class Commands(HealthTest):
    def test_from_starting_to_unhealthy(self):
        with nacre_test.Events(self.node) as events:
            self.run_pod("web", "--health-cmd", BY_FILE, *FAST, "--health-start-period", "1h", "--health-start-interval", "100ms")
            h = until(lambda: self.health("web") if len(self.health("web")["results"]) == 5 else None, what="five results")
            self.assertEqual(("starting", 0, [3] * 5, "sick\n"),
                             (h["status"], h["failing_streak"], [r["exit_code"] for r in h["results"]], h["results"][0]["output"]))
            self.assertIn("running (starting)", self.node.cli("ps").stdout)
            self.well("web", True)
            self.node.cli("wait", "--condition", "healthy", "web")
            self.assertIn("running (healthy)", self.node.cli("ps").stdout)
            self.assertIn("web", self.node.cli("ps", "--filter", "health=healthy").stdout)
            self.assertNotIn("web", self.node.cli("ps", "--filter", "health=none").stdout)
            # Its start period is over once it was healthy.
            self.well("web", False)
            self.node.cli("wait", "--condition", "unhealthy", "web")
            h = self.is_("web", "unhealthy")
            self.assertGreaterEqual(h["failing_streak"], 2)
            for word in ("starting", "healthy", "unhealthy"):
                events.wait("web/main", "running", reason="health_status: " + word)
        told = json.loads(self.node.cli("inspect", "--docker", "web").stdout)[0]["State"]["Health"]
        self.assertEqual(("unhealthy", 3), (told["Status"], told["Log"][-1]["ExitCode"]))
        self.assertRegex(self.node.cli("ps", "--format", "{{.Status}}").stdout, r"^Up .* \(unhealthy\)$")

    def test_forms_of_a_command(self):
        self.run_pod("a", "--health-cmd", '["sh", "-c", "echo $0; exit 0", "a b"]', *FAST)
        self.assertEqual("a b\n", self.is_("a", "healthy")["results"][-1]["output"])
        self.run_pod("b", "--health-cmd", '["/nowhere"]', *FAST)
        h = self.is_("b", "unhealthy")
        self.assertEqual(127, h["results"][-1]["exit_code"])
        self.run_pod("c", "--no-healthcheck")
        self.assertIsNone(self.health("c"))
        for words, what in ((("--health-cmd", "[1]"), "no string"), (("--health-cmd", "[]"), "empty"),
                            (("--health-tcp", "1", "--health-http", "1"), "only one of"), (("--health-tcp", "0"), "1 to 65535"),
                            (("--health-interval", "1s"), "HEALTHCHECK"), (("--health-cmd", "none", "--health-retries", "3"), "not with"),
                            (("--health-cmd", "true", "--health-on-failure", "x"), "none of none, kill"),
                            (("--rm", "--health-cmd", "true", "--health-on-failure", "restart"), "exclude each other")):
            done = self.node.cli("run", "-d", *words, "busybox", "true", check=False)
            self.assertEqual(125, done.returncode, words)
            self.assertIn(what, done.stderr)

    def test_what_hangs_is_killed(self):
        self.run_pod("web", "--health-cmd", "echo begun; sleep 998 & setsid sh -c 'sleep 997; :'; sleep 999", *FAST, "--health-timeout", "300ms")
        h = self.is_("web", "unhealthy")
        self.assertEqual(-1, h["results"][-1]["exit_code"])
        self.assertIn("300 ms", h["results"][-1]["output"])
        # Each was killed with what it had started, in whatever session: at most those of one probe live.
        sleepers = re.compile(r"^ *\d+ +\S+ +(?:\S+ +)?sleep 99\d$", re.M)
        self.assertLessEqual(len(sleepers.findall(self.node.cli("exec", "web", "ps").stdout)), 2)
        until(lambda: len(self.health("web")["results"]) == 5, what="five results")
        self.assertLessEqual(len(sleepers.findall(self.node.cli("exec", "web", "ps").stdout)), 2)
        self.node.cli("stop", "-t", "0", "web")

    def test_output_is_bounded(self):
        self.run_pod("web", "--health-cmd", "yes | head -c 1000000", *FAST)
        self.assertEqual(4096, len(self.is_("web", "healthy")["results"][-1]["output"]))

    def test_run_by_hand(self):
        self.run_pod("web", "--health-cmd", BY_FILE, "--health-interval", "1h", "--health-retries", "1")
        self.assertEqual("starting", self.health("web")["status"])
        done = self.node.cli("healthcheck", "run", "web", check=False)
        self.assertEqual((1, "sick\n"), (done.returncode, done.stdout))
        self.assertEqual("unhealthy", self.health("web")["status"])
        self.well("web", True)
        told = self.node.json("healthcheck", "run", "web")
        self.assertEqual(("healthy", 0, ""), (told["status"], told["exit_code"], told["output"]))
        self.run_pod("none")
        self.assertEqual(125, self.node.cli("healthcheck", "run", "none", check=False).returncode)
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.node.workloads.Wait(
            nacre_pb2.WaitRequest(target="none", condition="healthy")), "no health check")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.node.workloads.Wait(
            nacre_pb2.WaitRequest(target="none", condition="x")), "condition")
        self.node.cli("pause", "web")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.node.workloads.HealthCheck(
            nacre_pb2.HealthCheckRequest(target="web")), "paused")
        self.node.cli("unpause", "web")

    def test_end_before_it_is_known(self):
        self.run_pod("web", "--health-cmd", "sleep 1000", "--health-interval", "100ms")
        waits = self.node.workloads.Wait.future(nacre_pb2.WaitRequest(target="web", condition="healthy"))
        by_hand = self.node.workloads.HealthCheck.future(nacre_pb2.HealthCheckRequest(target="web"))
        until(lambda: "sleep 1000" in self.node.cli("exec", "web", "ps").stdout.replace("exec sleep", ""), what="a probe")
        self.node.cli("stop", "-t", "0", "web")
        self.assertEqual(Code.ABORTED, waits.exception().code())
        # The probe ended first, or the container.
        if by_hand.exception():
            self.assertEqual(Code.ABORTED, by_hand.exception().code())
        else:
            self.assertNotEqual(0, by_hand.result().result.exit_code)


class Images(HealthTest):
    def make(self, name, **check):
        out = os.path.join(self.node.dir, name + ".tar")
        images.make(out, "--busybox", "--cmd", "sleep", "1000", "--name", name, "--healthcheck", json.dumps(check))
        self.node.import_image(out, name)
        self.addCleanup(self.node.cli, "image", "rm", name)

    def test_healthcheck_of_an_image(self):
        self.make("checked", Test=["CMD-SHELL", BY_FILE], Interval=100_000_000, Retries=2)
        self.make("none", Test=["NONE"])
        # It is there again for a daemon that reads its records.
        self.node.restart()
        for name, image, words in (("a", "checked", ()), ("b", "checked", ("--no-healthcheck",)), ("c", "none", ()),
                                   ("d", "checked", ("--health-retries", "7")), ("e", "checked", ("--health-cmd", "true"))):
            self.node.cli("run", "-d", "--name", name, *words, image)
        check = self.is_("a", "unhealthy")["check"]
        self.assertEqual((BY_FILE, 100, 30000, 2), (check["shell"], check["interval_ms"], check["timeout_ms"], check["retries"]))
        self.assertEqual([None, None], [self.health(n) for n in "bc"])
        self.assertEqual((BY_FILE, 100, 7), tuple(self.health("d")["check"][k] for k in ("shell", "interval_ms", "retries")))
        self.assertEqual("true", self.is_("e", "healthy")["check"]["shell"])
        self.node.clear()


class Ports(HealthTest):
    def test_tcp_and_http(self):
        self.run_pod("tcp", "--health-tcp", "81", *FAST, script="until [ -e /tmp/well ]; do sleep 0.1; done; nc -ll -p 81 -e true")
        self.assertRegex(self.is_("tcp", "unhealthy")["results"][-1]["output"], "port 81: .*refused")
        self.well("tcp", True)
        self.is_("tcp", "healthy")
        self.run_pod("http", "--health-http", "80/live", *FAST, script="mkdir /www; httpd -f -p 127.0.0.1:80 -h /www")
        self.assertEqual("HTTP status 404", self.is_("http", "unhealthy")["results"][-1]["output"])
        self.node.cli("exec", "http", "sh", "-c", "echo yes > /www/live")
        self.assertEqual("HTTP status 200", self.is_("http", "healthy")["results"][-1]["output"])

    def test_what_answers_with_something_else(self):
        self.run_pod("noise", "--health-http", "82", *FAST, script="nc -ll -p 82 -e yes")
        self.assertIn("no answer of HTTP", self.is_("noise", "unhealthy")["results"][-1]["output"])
        self.run_pod("dumb", "--health-grpc", "83", *FAST, "--health-timeout", "200ms", script="printf '#!/bin/sh\\nsleep 100' > /s; chmod 755 /s; nc -ll -p 83 -e /s")
        h = self.is_("dumb", "unhealthy")
        self.assertEqual(-1, h["results"][-1]["exit_code"])
        # No descriptor stays behind a probe.
        n = nacre_test.settled(lambda: len(self.node.fds()) // 4)
        time.sleep(0.5)
        self.assertLessEqual(len(self.node.fds()) // 4, n + 1)

    def serve(self, pid, statuses):
        """A server of grpc's own library in the network of that process."""
        class Handler(grpc.GenericRpcHandler):
            def service(self, details):
                def check(request, context):
                    if request[2:].decode() not in statuses:
                        context.abort(Code.NOT_FOUND, "no such service")
                    return bytes([8, statuses[request[2:].decode()]])

                return grpc.unary_unary_rpc_method_handler(check) if details.method == "/grpc.health.v1.Health/Check" else None

        server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=[Handler()])

        def listen():
            fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
            assert ctypes.CDLL(None).setns(fd, 0x40000000) == 0
            os.close(fd)
            assert server.add_insecure_port("127.0.0.1:50051") == 50051
            server.start()

        thread = threading.Thread(target=listen)
        thread.start()
        thread.join()
        self.addCleanup(server.stop, None)

    def test_grpc(self):
        self.run_pod("a", "--health-grpc", "50051/shop", *FAST)
        statuses = {"": 1, "shop": 2}
        self.serve(self.show("a")["containers"][0]["pid"], statuses)
        until(lambda: (self.is_("a", "unhealthy")["results"] or [{}])[-1].get("output") == "NOT_SERVING", what="NOT_SERVING")
        statuses["shop"] = 1
        self.assertEqual("SERVING", self.is_("a", "healthy")["results"][-1]["output"])
        del statuses["shop"]
        self.assertIn("no answer of grpc.health.v1", self.is_("a", "unhealthy")["results"][-1]["output"])

    def test_where_no_port_is_probed(self):
        cell = runtime_pb2.RunCellRequest(containers=[runtime_pb2.Container(image="busybox", health=Health(tcp_port=80))])
        self.assertFails(Code.UNIMPLEMENTED, lambda: self.node.runtime.RunCell(cell), "containers[0].health.tcp_port")
        self.node.cli("cell", "--name", "c", "--health-cmd", "true", *FAST, "busybox", "sleep", "1000")
        self.is_("c", "healthy")


class OwnAddresses(HealthTest):
    @classmethod
    def prepare(cls):
        # The first one on a network has the daemon open its sockets.
        cls.node.cli("run", "--rm", "--network", "default", "busybox", "true")

    def test_own_address(self):
        """A server that does not listen on loopback."""
        script = "mkdir /www; echo yes > /www/live; exec httpd -f -p $(hostname -i | cut -d' ' -f1):80 -h /www"
        for name, words in (("http", ("--health-http", "80/live")), ("tcp", ("--health-tcp", "80"))):
            self.run_pod(name, "--network", "default", *words, *FAST, script=script)
            self.is_(name, "healthy")
            self.assertNotIn("127.0.0.1:80", self.node.cli("exec", name, "netstat", "-ltn").stdout)


class Failures(HealthTest):
    def test_kill_and_policy(self):
        self.run_pod("web", "--health-cmd", "false", *FAST, "--health-on-failure", "kill", "--restart", "on-failure:1")
        w = until(lambda: next((w for w in [self.show("web")] if (w["state"], w["restart_count"]) == ("exited", 1)), None), what="killed twice")
        self.assertEqual((137, "unhealthy"), (w["exit_code"], w["containers"][0]["health"]["status"]))

    def test_stop(self):
        self.run_pod("web", "--health-cmd", "false", *FAST, "--health-on-failure", "stop", "--restart", "always",
                     script="trap 'exit 7' TERM; sleep 1000 & wait")
        until(lambda: self.show("web")["state"] == "exited", what="stopped")
        self.assertEqual((7, True, None), tuple(self.show("web")[k] for k in ("exit_code", "stopped", "restart_at")))

    def test_restart(self):
        self.run_pod("web", "--health-cmd", "test $(wc -l < /runs) -ge 3", *FAST, "--health-on-failure", "restart",
                     script="echo run >> /runs; trap 'exit 0' TERM; sleep 1000 & wait")
        self.is_("web", "healthy")
        self.assertEqual("running", self.show("web")["state"])
        self.assertEqual("3\n", self.node.cli("exec", "web", "sh", "-c", "wc -l < /runs").stdout)

    def test_over_a_restart_of_the_daemon(self):
        self.run_pod("web", "--health-cmd", BY_FILE, *FAST)
        self.run_pod("sick", "--health-cmd", "false", *FAST, "--health-on-failure", "stop", "--health-start-period", "1s",
                     "--health-start-interval", "200ms")
        self.well("web", True)
        self.is_("web", "healthy")
        self.run_pod("rare", "--health-cmd", "printf 'a\\0b\\377'; exit 4", "--health-interval", "1h")
        for _ in range(7):
            self.node.cli("healthcheck", "run", "rare", check=False)
        before = self.health("rare")["results"]
        self.assertEqual([4] * 5, [r["exit_code"] for r in before])
        self.node.kill()
        self.node.start()
        self.assertEqual("healthy", self.health("web")["status"])
        self.assertEqual(before, self.health("rare")["results"])
        # The next one goes to the end, and so again for the daemon after it.
        self.node.cli("healthcheck", "run", "rare", check=False)
        after = self.health("rare")["results"]
        self.assertEqual(before[1:], after[:4])
        self.node.kill()
        self.node.start()
        self.assertEqual(after, self.health("rare")["results"])
        # Another life has results of its own.
        self.node.cli("restart", "-t", "0", "rare")
        self.assertEqual([], self.health("rare")["results"])
        self.node.kill()
        self.node.start()
        self.assertEqual([], self.health("rare")["results"])
        until(lambda: self.health("web")["results"], what="a probe of the new daemon")
        self.well("web", False)
        self.is_("web", "unhealthy")
        until(lambda: self.show("sick")["state"] == "exited", what="stopped by the new daemon")


class BadChecks(HealthTest):
    CASES = (
        (dict(interval_ms=99, shell="x"), "interval_ms"), (dict(timeout_ms=86400001, shell="x"), "timeout_ms"),
        (dict(retries=1001, shell="x"), "retries"), (dict(disabled=True, retries=1), "disabled"), (dict(shell="x", tcp_port=1), ""),
        (dict(tcp_port=65536), "tcp_port"), (dict(http=runtime_pb2.HttpProbe()), "http.port"),
        (dict(http=runtime_pb2.HttpProbe(port=1, path="x")), "http.path"),
        (dict(http=runtime_pb2.HttpProbe(port=1, path="/a b")), "http.path"),
        (dict(http=runtime_pb2.HttpProbe(port=1, path="/\r\nX: y")), "http.path"),
        (dict(http=runtime_pb2.HttpProbe(port=1, path="/" + "a" * 1024)), "http.path"),
        (dict(grpc=runtime_pb2.GrpcProbe(port=1, service="a" * 101)), "grpc.service"),
        (dict(command=[""] * 5000), "command"), (dict(shell="true", on_failure="x"), "on_failure"), (dict(retries=2), ""),
    )

    def test_fields(self):
        for fields, name in self.CASES:
            field = "containers[0].health" + ("." + name if name else "")
            pod = runtime_pb2.RunPodRequest(containers=[runtime_pb2.Container(image="busybox", health=Health(**fields))])
            self.assertFails(Code.INVALID_ARGUMENT, lambda q=pod: self.node.runtime.RunPod(q), field)
