# SPDX-License-Identifier: Apache-2.0
"""Mixed calls over mutual TLS while certificates of users and listeners, and the authority itself, are replaced: no call and no
handshake fails. NACRE_LOAD=SECONDS says for how long, `make load` for a quarter of an hour, and then 1,000 calls a second are the
least. And what 1,000 connections that do nothing cost."""
import os
import resource
import socket
import threading
import time
import unittest

import grpc

import host
import nacre_test
import test_remote
from nacre_test import nacre_pb2, until

SECONDS = float(os.environ.get("NACRE_LOAD", "10"))
RATE = 1000
THREADS = 4
# Between the steps of a rotation.
PAUSE = 2.0
OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
# Bytes of memory for each connection, of gate and daemon together.
IDLE_MAX = 64 << 10


class Callers:
    """Threads that call at a rate, each on a channel of its own, which it makes anew with the files that are there now when it is told
    to, and one that makes a connection for each call."""

    def __init__(self, port, files):
        self.port, self.files = port, files
        self.generation, self.over = 0, threading.Event()
        self.seen, self.calls, self.failed = [0] * (THREADS + 1), [0] * (THREADS + 1), []
        self.threads = [threading.Thread(target=self.steady, args=(i,), daemon=True) for i in range(THREADS)]
        self.threads.append(threading.Thread(target=self.anew, args=(THREADS,), daemon=True))
        for t in self.threads:
            t.start()

    def connect(self):
        ca, cert, key = (host.read(f).encode() for f in self.files)
        return grpc.secure_channel(f"127.0.0.1:{self.port}", grpc.ssl_channel_credentials(ca, key, cert), options=OPTIONS)

    @staticmethod
    def mix(channel):
        """Calls with what they are to end with."""
        stub = {n: nacre_test.pb["nacre_pb2_grpc"].__dict__[n + "Stub"](channel) for n in ("WorkloadService", "NodeService", "IdentityService",
                                                                                         "VolumeService")}
        health = channel.unary_unary("/grpc.health.v1.Health/Check")
        return [(lambda: health(b"", timeout=30), None),
                (lambda: stub["WorkloadService"].List(nacre_pb2.ListRequest(), timeout=30), None),
                (lambda: stub["NodeService"].Info(nacre_pb2.InfoRequest(), timeout=30), None),
                (lambda: stub["IdentityService"].Authority(nacre_pb2.AuthorityRequest(), timeout=30), None),
                (lambda: stub["VolumeService"].ListVolumes(nacre_pb2.ListVolumesRequest(), timeout=30), None),
                (lambda: stub["WorkloadService"].Inspect(nacre_pb2.InspectRequest(target="nothing"), timeout=30), grpc.StatusCode.NOT_FOUND)]

    def call(self, i, method, expected):
        try:
            method()
            got = None
        except grpc.RpcError as e:
            got = e.code()
            if got != expected:
                self.failed.append((time.monotonic(), got, e.details()))
        self.calls[i] += 1

    def steady(self, i):
        begin, n = time.monotonic(), 0
        while not self.over.is_set():
            self.seen[i] = self.generation
            with self.connect() as channel:
                mix = self.mix(channel)
                while self.seen[i] == self.generation and not self.over.is_set():
                    self.call(i, *mix[n % len(mix)])
                    n += 1
                    # What could not be done in time is not made up for at once.
                    late = time.monotonic() - begin - n * THREADS / RATE
                    if late < 0:
                        time.sleep(-late)
                    elif late > 1:
                        begin += late

    def anew(self, i):
        while not self.over.is_set():
            self.seen[i] = self.generation
            with self.connect() as channel:
                self.call(i, *self.mix(channel)[0])
            time.sleep(0.05)

    def renew(self):
        """Waits until each has gone over to the files that are there now."""
        self.generation += 1
        until(lambda: min(self.seen) == self.generation, what="all callers with their new certificate")

    def stop(self):
        self.over.set()
        for t in self.threads:
            t.join(60)


class Load(test_remote.Remote):
    @classmethod
    def tearDownClass(cls):
        # The process that holds the key is another one by now.
        cls.node.clear()
        cls.before = cls.node.baseline()
        super().tearDownClass()

    def test_no_call_fails_while_all_is_replaced(self):
        self.issue("load", "--role", "admin")
        callers = Callers(self.port, self.files("load"))
        begin, rotations = time.monotonic(), 0
        until(lambda: min(callers.calls) > 0, what="the first calls")
        while time.monotonic() - begin < SECONDS:
            self.node.cli("identity", "ca", "rotate")
            time.sleep(PAUSE)
            # A new certificate of the user, and with it both roots.
            self.issue("load", "--role", "admin", "--force")
            callers.renew()
            time.sleep(PAUSE)
            self.node.cli("identity", "ca", "retire")
            rotations += 1
            time.sleep(PAUSE)
            self.issue("load", "--role", "admin", "--force")
            callers.renew()
        callers.stop()
        took, calls = time.monotonic() - begin, sum(callers.calls)
        print(f"# {calls} calls in {took:.0f} s, {calls / took:.0f} a second, {callers.calls[-1]} connections made for one, "
              f"{rotations} rotations of the authority, {len(callers.failed)} failed")
        self.assertEqual([], callers.failed[:5])
        self.assertGreaterEqual(rotations, 1)
        if "NACRE_LOAD" in os.environ:
            self.assertGreaterEqual(calls / took, 0.98 * RATE)
        self.issue("alice", "--role", "admin", "--force")
        self.issue("bob", "--force")

    def pss(self, pid):
        return next(int(line.split()[1]) * 1024 for line in host.read(f"/proc/{pid}/smaps_rollup").splitlines() if line.startswith("Pss:"))

    def front(self):
        for pid in (p for p in os.listdir("/proc") if p.isdigit()):
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                    parent = int(f.read().rsplit(")", 1)[1].split()[1])
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if parent == self.node.pid and b"gate front" in f.read():
                        return int(pid)
            except OSError:
                pass
        raise AssertionError("there is no gate")

    @unittest.skipIf(nacre_test.SANITIZED, "memory of a build with sanitizers is another one")
    def test_memory_of_1000_idle_connections(self):
        """Of 49 users: one alone gets no more than half of the places. A few of 1,000 are left to the test."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        users = [f"u{i}" for i in range(49)]
        for u in users:
            self.issue(u)
        self.assertEqual(0, self.remote("bob", "ps").returncode)
        pids = (self.front(), self.node.pid)
        before = [self.pss(p) for p in pids]
        held = []
        try:
            for u in users:
                context = self.context(u)
                for _ in range(20):
                    raw = socket.create_connection(("127.0.0.1", self.port), timeout=30 * nacre_test.SLOWNESS)
                    held.append(context.wrap_socket(raw, server_hostname="node.example"))
                    held[-1].sendall(test_remote.PREFACE + test_remote.SETTINGS)
                    self.assertTrue(held[-1].recv(9))
            grown = [self.pss(p) - b for p, b in zip(pids, before)]
            each = [g // len(held) for g in grown]
            print(f"# {len(held)} idle connections: gate {grown[0] >> 10} KiB, daemon {grown[1] >> 10} KiB; each {each[0]} and {each[1]} bytes")
            self.assertLess(sum(each), IDLE_MAX)
        finally:
            for s in held:
                s.close()
        until(lambda: self.remote("bob", "ps").returncode == 0, 30)


if __name__ == "__main__":
    unittest.main()
