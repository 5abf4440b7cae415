# SPDX-License-Identifier: Apache-2.0
"""The rows of bench/run about the transport: against gRPC's own C++ library, and what clients cost that only wait."""
import json
import os
import shutil
import socket
import statistics
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
# One below what a server takes at once (RPC_CONNECTIONS_MAX), for what measures.
IDLE = 990
WATCHERS = 1000
WATCHERS_EACH = 100
ROUNDS = 7
SECONDS = "1"
LOADS = (
    ("unary calls/s, 1 connection, 64 in flight", ("unary", "1", "64")),
    ("unary calls/s, 64 connections", ("unary", "64", "1")),
    ("bytes/s of a stream of 64 KiB messages", ("stream", "65536")),
)


def build_peer(build):
    """The server to compare with; None where its packages are missing."""
    out = os.path.join(build, "bench", "peer")
    program, source = os.path.join(out, "rpc-peer"), os.path.join(ROOT, "bench", "rpc_peer.cc")
    if os.path.exists(program) and os.path.getmtime(program) > os.path.getmtime(source):
        return program
    plugin = shutil.which("grpc_cpp_plugin")
    if not plugin or subprocess.run(["pkg-config", "--exists", "grpc++", "protobuf"], check=False).returncode != 0:
        return None
    os.makedirs(out, exist_ok=True)
    subprocess.run(["protoc", "-I", os.path.join(ROOT, "src", "rpc"), f"--cpp_out={out}", f"--grpc_out={out}",
                    f"--plugin=protoc-gen-grpc={plugin}", "rpc_test.proto"], check=True)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "grpc++", "protobuf"], check=True, stdout=subprocess.PIPE,
                           text=True).stdout.split()
    subprocess.run(["g++", "-O2", "-DNDEBUG", "-std=c++17", "-I", out, "-o", program, source,
                    os.path.join(out, "rpc_test.pb.cc"), os.path.join(out, "rpc_test.grpc.pb.cc"), *flags], check=True)
    return program


class Server:
    """One of the two, alone on the first of our processors. A context manager."""

    def __init__(self, program, path):
        self.program, self.socket = program, path

    def __enter__(self):
        cpu = {min(os.sched_getaffinity(0))}
        self.process = subprocess.Popen([self.program, self.socket], preexec_fn=lambda: os.sched_setaffinity(0, cpu))
        end = time.monotonic() + 20
        while not os.path.exists(self.socket) and time.monotonic() < end:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def cpu(self):
        """Seconds that it has run, by the clock of clock_getcpuclockid(3): ticks of 10 ms tell little of such loads."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def load(self, client, words):
        """What was done in a second of the clock, and in one of the processor."""
        others = os.sched_getaffinity(0)
        if len(others) > 1:
            others -= {min(others)}
        began, at = self.cpu(), time.monotonic()
        done = subprocess.run([client, self.socket, *words, SECONDS], check=True, stdout=subprocess.PIPE, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, others))
        rate = json.loads(done.stdout)["per_s"]
        return rate, rate * (time.monotonic() - at) / max(self.cpu() - began, 0.01)


def bench_peer(table, build, scratch):
    peer = build_peer(build)
    if not peer:
        print("against gRPC in C++: skipped, tools/install bench has its packages")
        return
    client = os.path.join(build, "bench", "rpc-load")
    ours = Server(os.path.join(build, "src", "rpc", "echo-server"), os.path.join(scratch, "ours.sock"))
    with ours, Server(peer, os.path.join(scratch, "theirs.sock")) as theirs:
        for what, words in LOADS:
            # In turns, so that a busy machine is busy for both.
            pairs = [(ours.load(client, words), theirs.load(client, words)) for _ in range(ROUNDS)]
            for i, per in enumerate(("", ", per CPU second")):
                ours_each, theirs_each = (statistics.median(pair[side][i] for pair in pairs) for side in (0, 1))
                table.row(f"{what}{per} / gRPC in C++", statistics.median(a[i] / b[i] for a, b in pairs), "x", 1,
                          f"{ours_each:.4g} against {theirs_each:.4g} (medians)", least=True)


def open_idle(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.sendall(PREFACE)
    return s


def bench_waiting(table, daemon, pss):
    before = pss(daemon.process.pid)
    idle = [open_idle(daemon.socket) for _ in range(IDLE)]
    for s in idle:
        s.recv(1)
    table.row(f"each of {IDLE} idle connections: PSS of the daemon", (pss(daemon.process.pid) - before) / IDLE, " KiB")
    for s in idle:
        s.close()
    try:
        import grpc
    except ImportError:
        print("watchers: skipped, python3-grpcio is missing")
        return
    daemon.cli("info")
    before = pss(daemon.process.pid)
    channels = [grpc.insecure_channel("unix:" + daemon.socket, options=[("grpc.use_local_subchannel_pool", 1)])
                for _ in range(WATCHERS // WATCHERS_EACH)]
    streams = [c.unary_stream("/nacre.v1.EventService/Watch")(b"") for c in channels for _ in range(WATCHERS_EACH)]
    for c in channels:
        c.unary_unary("/nacre.v1.NodeService/Info")(b"")
    table.row(f"each of {WATCHERS} watchers: PSS of the daemon", (pss(daemon.process.pid) - before) / WATCHERS, " KiB")
    for s in streams:
        s.cancel()
    for c in channels:
        c.close()


def spawn_times(rounds, *words):
    times = []
    null = os.open(os.devnull, os.O_RDWR)
    for _ in range(rounds):
        began = time.monotonic()
        pid = os.posix_spawn(words[0], words, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
        os.waitpid(pid, 0)
        times.append(time.monotonic() - began)
    os.close(null)
    return statistics.median(times) * 1e6


def bench_start(table, build, daemon, rounds):
    """The command that asks the daemon for its version, beside a program that does nothing and a question on a connection
    that is open."""
    true = spawn_times(rounds, "/bin/true")
    version = spawn_times(rounds, daemon.nacre, "--socket", daemon.socket, "version")
    asked = subprocess.run([os.path.join(build, "bench", "client"), daemon.socket, "info", "-", str(rounds)], check=True,
                           stdout=subprocess.PIPE, text=True)
    trip = json.loads(asked.stdout)["median_us"]
    table.row("start-up of nacre version / true + one round trip", version / (true + trip), "x", None,
              f"{version:.0f} us against {true:.0f} us + {trip:.0f} us (medians)")
