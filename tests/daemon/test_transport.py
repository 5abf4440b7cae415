# SPDX-License-Identifier: Apache-2.0
"""What every call stands on: the socket, gRPC itself, health and reflection."""
import contextlib
import errno
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
import unittest

import grpc
from google.protobuf import descriptor_pb2

import host
import nacre_test
import wire
from nacre_test import nacre_pb2, runtime_pb2

SERVICES = {"aurae.runtime.v0.RuntimeService", "nacre.v1.WorkloadService", "nacre.v1.EventService", "nacre.v1.ImageService",
            "nacre.v1.NodeService", "nacre.v1.DiskService", "nacre.v1.NetworkService", "nacre.v1.VolumeService", "nacre.v1.SecretService", "nacre.v1.IdentityService",
            "nacre.v1.CloudService", "aurae.cells.v0.CellService", "aurae.discovery.v0.DiscoveryService", "aurae.observe.v0.ObserveService", "aurae.vms.v0.VmService",
            "runtime.v1.RuntimeService", "runtime.v1.ImageService", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection"}
LIST, INFO = "/nacre.v1.WorkloadService/List", "/nacre.v1.NodeService/Info"
HEALTH = "/grpc.health.v1.Health/"
SERVING, NOT_SERVING = 1, 2
Code = grpc.StatusCode


def channel(node, **options):
    return grpc.insecure_channel("unix:" + node.socket, options=[
        ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0),
        ("grpc.max_send_message_length", 64 << 20), *options.items()])


# What a reader that stops may cost the server, beside the message that it is sent: its queue, and what each side of the
# socket holds. A reader of a log has the reader's own buffers beside that.
STOPPED_READERS = 1000
STOPPED_READER_MAX = 128 << 10
STOPPED_LOG_READER_MAX = 512 << 10


def resident(pid):
    """Bytes."""
    return next(int(line.split()[1]) for line in host.read(f"/proc/{pid}/status").splitlines()
                if line.startswith("VmRSS:")) << 10


def settled(pid):
    """Resident bytes, once they do not change any more."""
    seen = []

    def still():
        seen.append(resident(pid))
        time.sleep(0.2)
        return len(seen) > 10 and max(seen[-10:]) - min(seen[-10:]) < 1 << 20

    nacre_test.until(still, 60, "an end of the growth")
    return seen[-1]


def leave(channels, pid, each):
    """Closes them, and waits until the server has given back most of what `each` reader has cost."""
    # Some may have been given back since that was measured: a client reads on where it has room.
    top = max(resident(pid), each * STOPPED_READERS)
    for c in channels:
        c.close()
    # A client that reads on far enough leaves the server nothing to keep: less than settled() can tell apart.
    if nacre_test.SANITIZED or each * STOPPED_READERS < 2 << 20:
        return
    # More than free() alone gives back.
    enough = top - each * STOPPED_READERS / 2
    nacre_test.until(lambda: resident(pid) < enough, 60, f"less than {enough / 2**20:.0f} MiB, of {top / 2**20:.0f}")


def stop_reading(node, method, request, pid):
    """What each of STOPPED_READERS calls costs that take one message and no more; and the calls, to be cancelled."""
    before = resident(pid)
    channels = [channel(node) for _ in range(10)]
    calls = [c.unary_stream(method)(request) for c in channels for _ in range(STOPPED_READERS // 10)]
    for call in calls:
        next(call)
    return (settled(pid) - before) / STOPPED_READERS, channels


def health(where, service="", **kwargs):
    values = wire.get(wire.call(where, HEALTH + "Check", wire.field(1, service), **kwargs), 1)
    return values[0] if values else 0


class Files(nacre_test.NodeTest):
    IMAGES = ()

    def mode(self, path):
        return stat.S_IMODE(os.stat(path).st_mode)

    def test_modes(self):
        self.assertTrue(stat.S_ISSOCK(os.stat(self.node.socket).st_mode))
        self.assertEqual(0o600, self.mode(self.node.socket))
        self.assertEqual((0o700, 0o700), (self.mode(self.node.root), self.mode(self.node.run)))

    def test_databases_are_the_owners_alone(self):
        self.node.runtime.Spawn(nacre_test.runtime_pb2.SpawnRequest(meta={"name": "written"}))
        found = {os.path.relpath(os.path.join(top, name), self.node.dir): self.mode(os.path.join(top, name))
                 for top in (self.node.root, self.node.run) for name in os.listdir(top) if ".db" in name}
        self.assertLessEqual({"root/root.db", "run/run.db", "run/run.db-wal", "run/run.db-shm"}, set(found))
        self.assertEqual({0o600}, set(found.values()), found)

    def connect_as(self, uid):
        """What a process of another user gets: an errno of connect(), or what the socket says."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            try:
                with socket.socket(socket.AF_UNIX) as s:
                    s.settimeout(60)
                    s.connect(self.node.socket)
                    s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
                    os.write(writer, b"closed" if s.recv(1) == b"" else b"answered")
            except OSError as e:
                os.write(writer, errno.errorcode.get(e.errno, str(e)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as f:
            said = f.read()
        os.waitpid(child, 0)
        return said

    def test_another_user_is_refused(self):
        os.chmod(self.node.dir, 0o755)
        self.addCleanup(os.chmod, self.node.dir, 0o700)
        self.assertEqual("EACCES", self.connect_as(65534))
        # Even where somebody has opened the way to it, the kernel's word about the peer decides.
        os.chmod(self.node.socket, 0o666)
        self.addCleanup(os.chmod, self.node.socket, 0o600)
        self.assertIn(self.connect_as(65534), ("closed", "EPIPE", "ECONNRESET"))
        self.assertEqual("answered", self.connect_as(0))

    def test_socket_in_use_is_not_taken_over(self):
        with nacre_test.Node(start=False) as other:
            other.socket = self.node.socket
            other.launch()
            self.assertNotEqual(0, other.wait())
            self.assertIn(self.node.socket, other.log())
            other.socket = os.path.join(other.dir, "sock")
        self.assertEqual(self.node.pid, self.node.info.Info(nacre_pb2.InfoRequest()).pid)

    def test_directories_in_use_are_not_shared(self):
        with nacre_test.Node(start=False) as other:
            other.root, other.run = self.node.root, self.node.run
            other.launch()
            self.assertNotEqual(0, other.wait())
            self.assertIn("nacre daemon: ", other.log())
        self.assertEqual(self.node.pid, self.node.info.Info(nacre_pb2.InfoRequest()).pid)


class Calls(nacre_test.NodeTest):
    IMAGES = ()

    def assertAlive(self):
        self.assertEqual(self.node.pid, self.node.info.Info(nacre_pb2.InfoRequest(), timeout=60).pid)

    def test_info(self):
        info = self.node.info.Info(nacre_pb2.InfoRequest())
        self.assertEqual((self.node.pid, self.node.root, self.node.run), (info.pid, info.root, info.run))
        self.assertTrue(info.version and info.cgroup)
        self.assertLess(abs(time.time_ns() - info.started_at), 600e9)

    def test_what_is_not_there_is_unimplemented(self):
        for method in ("/aurae.runtime.v0.RuntimeService/RunNothing", "/nacre.v1.WorkloadService/Nothing",
                       "/no.such.Service/Call", "/nacre.instance.v1.InstanceService/Hello"):
            self.assertFails(Code.UNIMPLEMENTED, lambda m=method: wire.call(self.node.channel, m, b""))

    def test_unknown_compression_is_refused_in_words(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="x" * 200), compression=grpc.Compression.Deflate)
        self.assertEqual(Code.UNIMPLEMENTED, caught.exception.code())
        self.assertIn("encoding", caught.exception.details())

    def test_compressed_request(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="x" * 200), compression=grpc.Compression.Gzip)
        self.assertEqual(Code.NOT_FOUND, caught.exception.code())
        self.assertIn("x" * 50, caught.exception.details())

    def test_too_large_a_request(self):
        with channel(self.node) as c:
            self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: wire.call(c, LIST, wire.field(15, b"x" * (17 << 20))))
            # The connection goes on, and so does one below the limit.
            wire.call(c, LIST, wire.field(15, b"x" * (15 << 20)))

    def test_a_thousand_at_once(self):
        call = self.node.channel.unary_unary(INFO)
        answers = [f.result(timeout=60) for f in [call.future(b"") for _ in range(1000)]]
        self.assertEqual({self.node.pid}, {wire.get(a, 5)[0] for a in answers})

    def test_a_thousand_wait_for_one(self):
        self.assertAlive()
        before = self.node.baseline()
        running = self.node.runtime.RunExecutable.future(runtime_pb2.RunExecutableRequest(
            meta=runtime_pb2.Meta(name="one"), executable=runtime_pb2.Executable(command="sleep 1000"), keep=True))
        nacre_test.until(lambda: self.node.workloads.List(nacre_pb2.ListRequest(states=["running"])).workloads,
                         what="the executable")
        # A connection has room for a hundred streams at a time; the client keeps what is more.
        channels = [channel(self.node) for _ in range(20)]
        request = wire.field(1, "one")
        waiting = [c.unary_unary("/nacre.v1.WorkloadService/Wait").future(request) for c in channels for _ in range(50)]
        time.sleep(0.3)
        for f in waiting[::2]:
            f.cancel()
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="one"))
        self.assertEqual({137}, {wire.get(f.result(timeout=100), 1)[0] for f in waiting[1::2]})
        self.assertEqual(137, running.result().exit_code)
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="one"))
        for c in channels:
            c.close()
        self.assertNoTraces(before)

    def test_64_connections(self):
        self.assertAlive()
        before = self.node.baseline()
        channels = [channel(self.node) for _ in range(64)]
        futures = [c.unary_unary(INFO).future(b"") for c in channels for _ in range(4)]
        self.assertEqual({self.node.pid}, {wire.get(f.result(timeout=100), 5)[0] for f in futures})
        self.assertEqual(64, sum(self.node.fds().values()) - self.descriptors(before))
        for c in channels:
            c.close()
        self.assertNoTraces(before)

    def test_idle_connections_of_one_client_do_not_keep_others_waiting(self):
        """1,000 of them, of which some begin the preface, or end it: another process is served, this one is told at once."""
        self.assertAlive()
        before = self.node.baseline()
        was = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(was[0], 4096), was[1]))
        idle = []
        try:
            for i in range(1000):
                idle.append(socket.socket(socket.AF_UNIX))
                idle[-1].connect(self.node.socket)
                with contextlib.suppress(BrokenPipeError):
                    idle[-1].send((b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")[i % 2])
            began = time.monotonic()
            self.node.cli("ps", seconds=20)
            with channel(self.node) as late, self.assertRaises(grpc.RpcError) as caught:
                late.unary_unary(INFO)(b"", timeout=20)
            self.assertLess(time.monotonic() - began, 20)
            self.assertEqual(Code.RESOURCE_EXHAUSTED, caught.exception.code())
            self.assertRegex(caught.exception.details(), rf"^connections: process {os.getpid()} has \d+ of the \d+ ")
            self.assertAlive()
        finally:
            for s in idle:
                s.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, was)
        # Behind the ends of the others, which the daemon has read by then.
        self.assertAlive()
        with channel(self.node) as late:
            late.unary_unary(INFO)(b"", timeout=20)
        self.assertNoTraces(before)

    def descriptors(self, snapshot):
        return sum(int(l.rpartition(" x")[2]) for l in snapshot if l.startswith("descriptor "))

    def test_deadline(self):
        began = time.monotonic()
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.node.events.Events(nacre_pb2.EventsRequest(), timeout=0.3))
        self.assertEqual(Code.DEADLINE_EXCEEDED, caught.exception.code())
        self.assertLess(time.monotonic() - began, 20)

    def test_cancelled_streams(self):
        self.assertAlive()
        before = self.node.baseline()
        for _ in range(50):
            events = self.node.events.Events(nacre_pb2.EventsRequest())
            # gRPC's C core may reset a stream whose HEADERS it has not yet sent (grpc/grpc#19655), which ends the
            # connection (RFC 9113, section 5.1): what follows upon the stream is answered behind it.
            self.assertAlive()
            events.cancel()
            with self.assertRaises(grpc.RpcError) as caught:
                next(events)
            self.assertEqual(Code.CANCELLED, caught.exception.code())
        self.assertAlive()
        self.assertNoTraces(before)

    def test_connections_that_make_no_sense(self):
        self.assertAlive()
        before = self.node.baseline()
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        for words in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 1000, preface, preface + b"\xff" * 1000,
                      preface + b"\x00\x00\x08\x07" + bytes(13), os.urandom(5000)):
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(60)
                s.connect(self.node.socket)
                try:
                    s.sendall(words)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(65536):
                        pass
                except (BrokenPipeError, ConnectionResetError):
                    pass
        self.assertAlive()
        self.assertNoTraces(before)

    def test_client_that_does_not_read_events(self):
        self.assertAlive()
        stream = self.node.channel.unary_stream("/nacre.v1.EventService/Events")(b"")
        for _ in range(20):
            self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
                executable=runtime_pb2.Executable(command="true")))
        self.assertAlive()
        stream.cancel()


class Gone(nacre_test.NodeTest):
    """Clients that go away in the middle of what they asked for: runtime.proto says what becomes of it."""

    def requests(self, name):
        runtime, meta = self.node.runtime, runtime_pb2.Meta(name=name)
        box = runtime_pb2.Container(name="c", image=self.busybox(), command=["sleep", "1000"])
        return (lambda **kw: runtime.RunPod.future(runtime_pb2.RunPodRequest(meta=meta, containers=[box]), **kw),
                lambda **kw: runtime.RunCell.future(runtime_pb2.RunCellRequest(meta=meta, containers=[box]), **kw),
                lambda **kw: runtime.Spawn.future(runtime_pb2.SpawnRequest(meta=meta), **kw))

    def listed(self):
        return {w.name: w.state for w in self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads}

    def finished(self, name):
        """The state of what goes on without its client, once that is not one that passes; None where it never began."""
        # The answer to another call of the same connection: what came before it was heard.
        self.node.info.Info(nacre_pb2.InfoRequest())

        def find():
            state = self.listed().get(name)
            return (state,) if state in ("running", "ready", None) else None

        return nacre_test.until(find, 60, f"an end of the making of {name}")[0]

    def remove(self, name):
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target=name, force=True))
        nacre_test.until(lambda: name not in self.listed(), what=f"the end of {name}")

    def test_what_has_begun_is_finished(self):
        self.node.info.Info(nacre_pb2.InfoRequest())
        before = self.node.baseline()
        for kind in range(3):
            name = f"gone-{kind}"
            with nacre_test.Events(self.node) as events:
                call = self.requests(name)[kind]()
                nacre_test.until(lambda n=name, e=events: any(x.name == n for x in list(e.seen)), what=f"an event of {name}")
                call.cancel()
                self.assertIn(self.finished(name), ("running", "ready"))
                self.remove(name)
        self.assertNoTraces(before)

    def test_deadlines_of_every_length(self):
        self.node.info.Info(nacre_pb2.InfoRequest())
        before = self.node.baseline()
        for i in range(24):
            name = f"late-{i}"
            call = self.requests(name)[i % 3](timeout=0.0005 * 1.3 ** i)
            self.assertIn(call.code(), (Code.OK, Code.DEADLINE_EXCEEDED))
            # Where the deadline has passed before the call was sent, or had come, there is nothing.
            if self.finished(name):
                self.remove(name)
        self.assertNoTraces(before)

    def test_an_executable_is_killed(self):
        before = self.node.baseline()
        call = self.node.runtime.RunExecutable.future(runtime_pb2.RunExecutableRequest(
            meta=runtime_pb2.Meta(name="left"), keep=True, executable=runtime_pb2.Executable(command="sleep 1000")))
        nacre_test.until(lambda: self.listed().get("left") == "running", what="the executable")
        call.cancel()
        nacre_test.until(lambda: "left" not in self.listed(), what="its end")
        self.assertNoTraces(before)


class Readers(nacre_test.NodeTest):
    IMAGES = ()

    def test_readers_of_a_log_that_stop(self):
        self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
            meta=runtime_pb2.Meta(name="much"), keep=True, executable=runtime_pb2.Executable(
                command="sh", args=["-c", "head -c 4000000 /dev/zero | tr '\\0' x | fold -w 1000"])))
        each, channels = stop_reading(self.node, "/nacre.v1.WorkloadService/Logs", wire.field(1, "much"), self.node.pid)
        if not nacre_test.SANITIZED:
            self.assertLess(each, STOPPED_LOG_READER_MAX)
        self.node.info.Info(nacre_pb2.InfoRequest(), timeout=60)
        leave(channels, self.node.pid, each)
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="much"))


class Forms(unittest.TestCase):
    """The four forms of call, by a client that is not ours, against the server of src/rpc/rpc_test.proto."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="nt-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.socket = os.path.join(cls.dir, "sock")
        cls.server = subprocess.Popen([os.path.join(nacre_test.BUILD, "src", "rpc", "echo-server"), cls.socket])
        nacre_test.until(lambda: os.path.exists(cls.socket), what="the socket of echo-server")
        cls.channel = channel(cls)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.server.terminate()
        if cls.server.wait(60 * nacre_test.SLOWNESS) != 0:
            raise AssertionError(f"echo-server ended with {cls.server.returncode}")

    def method(self, form, name):
        return getattr(self.channel, form)("/nacre.test.v1.Test/" + name)

    def every_form(self, **kwargs):
        """(what a form should answer, what it does) for each."""
        kwargs.setdefault("timeout", 60)
        pieces = [wire.field(1, bytes([65 + i]) * 1000) for i in range(10)]
        yield pieces[0], self.method("unary_unary", "Echo")(pieces[0], **kwargs)
        counted = list(self.method("unary_stream", "Count")(wire.field(1, 5) + wire.field(2, 1000), **kwargs))
        yield [[i] if i else [] for i in range(5)], [wire.get(c, 1) for c in counted]
        gathered = self.method("stream_unary", "Gather")(iter(pieces), **kwargs)
        yield ([10], [10000]), (wire.get(gathered, 1), wire.get(gathered, 2))
        yield pieces, list(self.method("stream_stream", "Talk")(iter(pieces), **kwargs))

    def test_each(self):
        for want, have in self.every_form():
            self.assertEqual(want, have)

    def test_each_compressed(self):
        for compression in (grpc.Compression.Gzip, grpc.Compression.NoCompression):
            for want, have in self.every_form(compression=compression):
                self.assertEqual(want, have)

    def test_each_with_metadata(self):
        metadata = (("x-mine", "value"), ("x-mine", "again"), ("x-bytes-bin", bytes(range(256))), ("x-long", "y" * 8000))
        for want, have in self.every_form(metadata=metadata):
            self.assertEqual(want, have)

    def test_metadata_has_a_limit(self):
        echo = self.method("unary_unary", "Echo")
        for n, fine in ((7, True), (9, False)):
            def call(n=n):
                return echo(b"", metadata=[(f"x-{i}", "y" * 8000) for i in range(n)], timeout=60)

            if fine:
                self.assertEqual(b"", call())
                continue
            with self.assertRaises(grpc.RpcError) as caught:
                call()
            self.assertEqual(Code.RESOURCE_EXHAUSTED, caught.exception.code())

    def test_message_limit(self):
        limit = 16 << 20
        with channel(self, **{"grpc.max_receive_message_length": 64 << 20}) as c:
            for method, form in (("Echo", "unary_unary"), ("Talk", "stream_stream"), ("Gather", "stream_unary")):
                def call(size, method=method, form=form, c=c):
                    head = wire.field(1, b"x" * (size - 5))
                    self.assertEqual(size, len(head))
                    request = iter([head]) if form.startswith("stream") else head
                    answer = getattr(c, form)("/nacre.test.v1.Test/" + method)(request, timeout=100)
                    return list(answer)[0] if form.endswith("stream") else answer

                answer = call(limit)
                self.assertEqual(limit if method != "Gather" else [limit - 5],
                                 len(answer) if method != "Gather" else wire.get(answer, 2))
                with self.assertRaises(grpc.RpcError) as caught:
                    call(limit + 1)
                self.assertEqual(Code.RESOURCE_EXHAUSTED, caught.exception.code(), method)

    def test_a_bomb(self):
        # 64 MiB of one letter are 64 KiB of gzip.
        with self.assertRaises(grpc.RpcError) as caught:
            self.method("unary_unary", "Echo")(wire.field(1, b"x" * (63 << 20)), compression=grpc.Compression.Gzip, timeout=100)
        self.assertEqual(Code.RESOURCE_EXHAUSTED, caught.exception.code())

    def test_turns(self):
        """Each side speaks after the other has: nothing waits for more."""
        turn = threading.Semaphore(1)

        def questions():
            for i in range(100):
                turn.acquire()
                yield wire.field(1, b"%d" % i)

        for i, answer in enumerate(self.method("stream_stream", "Talk")(questions(), timeout=100)):
            self.assertEqual([b"%d" % i], wire.get(answer, 1))
            turn.release()
        self.assertEqual(99, i)

    def test_readers_that_stop(self):
        each, channels = stop_reading(self, "/nacre.test.v1.Test/Count", wire.field(1, 1 << 30) + wire.field(2, 1000),
                                      self.server.pid)
        if not nacre_test.SANITIZED:
            self.assertLess(each, STOPPED_READER_MAX)
        self.test_each()
        leave(channels, self.server.pid, each)

    def test_deadline_and_cancel(self):
        gate = threading.Event()
        self.addCleanup(gate.set)

        def never():
            yield wire.field(1, b"x")
            gate.wait(100)

        with self.assertRaises(grpc.RpcError) as caught:
            self.method("stream_unary", "Gather")(never(), timeout=0.3)
        self.assertEqual(Code.DEADLINE_EXCEEDED, caught.exception.code())
        talk = self.method("stream_stream", "Talk")(never())
        next(talk)
        talk.cancel()
        with self.assertRaises(grpc.RpcError) as caught:
            next(talk)
        self.assertEqual(Code.CANCELLED, caught.exception.code())
        self.test_each()


class Health(nacre_test.NodeTest):
    IMAGES = ()

    def test_check(self):
        self.assertEqual(SERVING, health(self.node.channel))
        for service in SERVICES - {"grpc.health.v1.Health"}:
            if not service.startswith("grpc."):
                self.assertEqual(SERVING, health(self.node.channel, service))
        self.assertFails(Code.NOT_FOUND, lambda: health(self.node.channel, "no.such.Service"))

    def test_watch_tells_the_end(self):
        with nacre_test.Node() as node:
            watch = wire.stream(node.channel, HEALTH + "Watch", b"")
            self.assertEqual([SERVING], wire.get(next(watch), 1))
            unknown = wire.stream(node.channel, HEALTH + "Watch", wire.field(1, "no.such.Service"))
            self.assertEqual([3], wire.get(next(unknown), 1))
            unknown.cancel()
            node.send_signal(signal.SIGTERM)
            self.assertEqual([NOT_SERVING], wire.get(next(watch), 1))
            self.assertEqual(0, node.wait())

    def test_drain_lets_calls_end(self):
        with nacre_test.Node() as node:
            call = node.runtime.RunExecutable.future(runtime_pb2.RunExecutableRequest(
                executable=runtime_pb2.Executable(command="sh", args=["-c", "sleep 1; echo late"])))
            nacre_test.until(lambda: node.workloads.List(nacre_pb2.ListRequest()).workloads, what="the executable")
            node.send_signal(signal.SIGTERM)
            self.assertEqual(b"late\n", call.result().stdout)
            self.assertEqual(0, node.wait())
            self.assertFalse(os.path.exists(node.socket))


class Reflection(nacre_test.NodeTest):
    IMAGES = ()

    def ask(self, request, version="v1"):
        """The one answer to the one request, as bytes."""
        method = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
        answers = list(wire.both(self.node.channel, method, [request], timeout=60))
        self.assertEqual(1, len(answers))
        return answers[0]

    def files(self, request):
        found = [descriptor_pb2.FileDescriptorProto.FromString(f) for f in wire.get(self.ask(request), 4, 1)]
        return {f.name: f for f in found}

    def test_services(self):
        for version in ("v1", "v1alpha"):
            names = wire.get(self.ask(wire.field(7, ""), version), 6, 1, 1)
            self.assertEqual(SERVICES, {n.decode() for n in names})

    def test_file_by_symbol(self):
        def names(file):
            return ({m.name: {f.name: f.number for f in m.field} for m in file.message_type},
                    {s.name: {m.name: (m.input_type, m.output_type, m.server_streaming) for m in s.method} for s in file.service})

        own = descriptor_pb2.FileDescriptorProto()
        runtime_pb2.DESCRIPTOR.CopyToProto(own)
        for symbol in ("aurae.runtime.v0.RuntimeService", "aurae.runtime.v0.RuntimeService.RunPod", "aurae.runtime.v0.Container",
                       "aurae.runtime.v0.Container.image"):
            files = self.files(wire.field(4, symbol))
            self.assertEqual([names(own)], [names(f) for f in files.values() if f.package == "aurae.runtime.v0"], symbol)

    def test_file_by_name(self):
        name = next(iter(self.files(wire.field(4, "nacre.v1.ImageService"))))
        self.assertEqual([name], list(self.files(wire.field(3, name))))

    def test_health_and_reflection_describe_themselves(self):
        for symbol in ("grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"):
            packages = {f.package for f in self.files(wire.field(4, symbol)).values()}
            self.assertIn(symbol.rpartition(".")[0], packages)

    def test_unknown_symbol_is_an_answer(self):
        self.assertEqual([5], wire.get(self.ask(wire.field(4, "no.such.Symbol")), 7, 1))
        self.assertEqual([5], wire.get(self.ask(wire.field(3, "no/such.proto")), 7, 1))

    def test_several_questions_on_one_stream(self):
        questions, gate = [wire.field(7, ""), wire.field(4, "nacre.v1.Image"), wire.field(4, "none")], threading.Event()

        def one_by_one():
            for q in questions:
                yield q
            gate.wait(100)

        answers = wire.both(self.node.channel, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", one_by_one())
        kinds = [{n for n, _ in wire.parse(next(answers))} - {1, 2} for _ in questions]
        gate.set()
        self.assertEqual([{6}, {4}, {7}], kinds)
        self.assertEqual([], list(answers))


class Ready(nacre_test.NodeTest):
    """sd_notify: what systemd is told."""

    IMAGES = ()

    def test_idle_daemon_sleeps(self):
        def ticks():
            fields = host.read(f"/proc/{self.node.pid}/stat").rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        self.node.info.Info(nacre_pb2.InfoRequest())

        def sleeps():
            """Whether it did next to nothing for a second; what came before has its aftermath."""
            before = ticks()
            time.sleep(1)
            return ticks() - before <= 2

        nacre_test.until(sleeps, what="an idle second")
