#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Metrics for Prometheus: that the page says what the kernel says, and what a stranger who connects is told."""
import contextlib
import datetime
import functools
import glob
import http.client
import os
import signal
import socket
import unittest

import grpc

import exposition
import host
import nacre_test
from nacre_test import nacre_pb2 as pb
from nacre_test import until


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)


class Metrics(nacre_test.NodeTest):
    @classmethod
    def setUpClass(cls):
        cls.port = free_port()
        cls.CONFIG = f"metrics:\n  listen: 127.0.0.1:{cls.port}\nnetwork:\n  default: default\n"
        super().setUpClass()

    @classmethod
    def prepare(cls):
        # The first one on a network has the daemon open its sockets.
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()
        cls.page()

    @classmethod
    def ask(cls, method="GET", path="/metrics", **kwargs):
        c = http.client.HTTPConnection("127.0.0.1", cls.port, timeout=30 * nacre_test.SLOWNESS)
        try:
            c.request(method, path, **kwargs)
            answer = c.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            c.close()

    @classmethod
    def page(cls):
        """What is there now: a page of less than 250 ms ago may be told again, which is why the one that counts must be a later one."""
        last = until(lambda: (got := cls.scraped()) and got, what="a page")
        cpu = exposition.value(last, "process_cpu_seconds_total")
        return until(lambda: (got := cls.scraped()) and exposition.value(got, "process_cpu_seconds_total") != cpu and got, what="a new page")

    @classmethod
    def scraped(cls):
        try:
            code, headers, body = cls.ask()
        except ConnectionError:
            return None
        if code != 200:
            return None
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", headers
        return exposition.read(body.decode())

    def raw(self, data):
        """The answer to these bytes, up to its end."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30 * nacre_test.SLOWNESS) as s:
            s.sendall(data)
            got = b""
            while piece := s.recv(65536):
                got += piece
        return got

    @staticmethod
    def gate(node):
        """The pid of the process that reads requests."""
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            with contextlib.suppress(OSError), open(path, "rb") as f:
                if f.read().startswith(b"nacre: gate metrics") and status(path.split("/")[2])["PPid"] == str(node.pid):
                    return int(path.split("/")[2])
        return None

    def of_pod(self, name, what):
        return int(self.node.cli("exec", name, "cat", "/sys/class/net/eth0/statistics/" + what).stdout)

    def cpu(self, name):
        """Seconds, by the group of a pod."""
        with open(os.path.join(host.cgroup_root(), self.node.json("inspect", name)["cgroup"].lstrip("/"), "cpu.stat"), encoding="ascii") as f:
            return int(dict(line.split() for line in f)["usage_usec"]) / 1e6

    def test_says_what_the_kernel_says(self):
        self.node.cli("run", "-d", "--name", "busy", "busybox", "sh", "-c",
                      "ping -c 1 -W 1 198.51.100.1; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exec sleep 1000")
        self.node.cli("run", "--name", "short", "busybox", "sh", "-c", "exit 3", check=False)
        self.node.cli("cell", "--name", "a-cell", "busybox", "sleep", "1000")
        for _ in range(3):
            with self.assertRaises(grpc.RpcError):
                self.node.workloads.Inspect(pb.InspectRequest(target="no-such"))
        nacre_test.until(lambda: self.cpu("busy") > 0.05, what="its work")
        before = self.cpu("busy")
        sent = self.of_pod("busy", "tx_bytes")
        got = self.page()
        value = functools.partial(exposition.value, got)
        self.assertGreater(sent, 0)
        self.assertLessEqual(sent, value("nacre_workload_network_transmit_bytes_total", name="busy", interface="eth0"))
        self.assertGreaterEqual(self.of_pod("busy", "tx_bytes"), value("nacre_workload_network_transmit_bytes_total", name="busy"))
        # The kernel rounds each time that it is asked.
        self.assertLessEqual(before - 0.02, value("nacre_workload_cpu_usage_seconds_total", name="busy"))
        self.assertLessEqual(value("nacre_workload_cpu_usage_seconds_total", name="busy"), self.cpu("busy") + 0.02)
        self.assertGreater(before, 0.05)
        self.assertLessEqual(0, value("nacre_container_cpu_usage_seconds_total", workload="a-cell"))
        group = self.node.cgroup()
        for file, family in (("memory.current", "memory_usage_bytes"), ("pids.current", "pids"), ("io.stat", "io_read_bytes_total")):
            there = any(file in files for _, _, files in os.walk(group))
            self.assertEqual(there, value("nacre_workload_" + family, name="a-cell") is not None, family)
        self.assertEqual({"busy": "running", "short": "exited", "a-cell": "running"},
                         {of["name"]: of["state"] for _, of, _ in got["nacre_workload_state"][1]})
        self.assertEqual({"busy": "pod", "short": "pod", "a-cell": "cell"}, {of["name"]: of["kind"] for _, of, _ in got["nacre_workload_state"][1]})
        self.assertEqual(3, value("nacre_container_exit_code", workload="short"))
        self.assertEqual(0, value("nacre_workload_restarts_total", name="short"))
        self.assertIsNone(value("nacre_container_exit_code", workload="busy"))
        started = datetime.datetime.fromtimestamp(value("nacre_container_start_time_seconds", workload="busy"), datetime.timezone.utc)
        self.assertEqual(self.node.json("inspect", "busy")["containers"][0]["started_at"][:23], started.isoformat()[:23])
        self.assertEqual(3, value("grpc_server_handled_total", grpc_method="Inspect", grpc_code="NOT_FOUND"))
        self.assertEqual(value("grpc_server_started_total", grpc_method="RunPod"), value("grpc_server_handling_seconds", "_count", grpc_method="RunPod"))
        resident = int(status(self.node.pid)["VmRSS"].split()[0]) * 1024
        self.assertAlmostEqual(resident, value("process_resident_memory_bytes"), delta=resident / 4)
        self.assertAlmostEqual(len(os.listdir(f"/proc/{self.node.pid}/fd")), value("process_open_fds"), delta=8)
        for name in ("root.db", "run.db-wal"):
            path = os.path.join(self.node.root if name.startswith("root") else self.node.run, name)
            self.assertAlmostEqual(os.stat(path).st_size, value("nacre_store_size_bytes", file=name), delta=65536)
        self.assertEqual(1, value("nacre_images"))
        self.node.cli("rm", "-f", "busy", "short", "a-cell")
        self.assertNotIn("nacre_workload_state", self.page())

    def test_strangers(self):
        self.assertEqual(200, self.ask("HEAD")[0])
        self.assertEqual(b"", self.ask("HEAD")[2])
        self.assertEqual(200, self.ask(path="/metrics?x=1")[0])
        self.assertEqual(404, self.ask(path="/")[0])
        self.assertEqual(404, self.ask(path="/metrics/../metrics")[0])
        code, headers, _ = self.ask("PUT")
        self.assertEqual((405, "GET, HEAD"), (code, headers["Allow"]))
        for bad in (b"GET /metrics\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET /metrics HTTP/1.1\r\nA\0: b\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"GET /" + b"a" * 20000):
            self.assertIn(b"HTTP/1.1 400 ", self.raw(bad)[:13], bad[:40])
        # Whoever asks for nothing makes room.
        idle = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(80)]
        self.addCleanup(lambda: [s.close() for s in idle])
        self.assertEqual(200, self.ask()[0])

    def test_the_reader_has_no_privilege(self):
        first = self.gate(self.node)
        told = status(first)
        self.assertNotIn("0", told["Uid"].split())
        self.assertEqual({"0000000000000000"}, {told[k] for k in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")})
        self.assertEqual(("1", "2"), (told["NoNewPrivs"], told["Seccomp"]))
        # One that ends is started again: of another node, where it is no leftover.
        with nacre_test.Node(f"metrics:\n  listen: 127.0.0.1:{free_port()}\n") as node:
            first = until(lambda: self.gate(node), what="its gate")
            os.kill(first, signal.SIGKILL)
            until(lambda: self.gate(node) not in (None, first), what="another one")


if __name__ == "__main__":
    unittest.main()
