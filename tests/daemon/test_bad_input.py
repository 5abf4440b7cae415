# SPDX-License-Identifier: Apache-2.0
"""Bad input: the exact status, and a text that begins with the name of the field."""
import os
import re

import grpc

import nacre_test
import wire
from nacre_test import nacre_pb2, runtime_pb2

Code = grpc.StatusCode
BAD, NONE, TAKEN, STATE, LATER = (Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.ALREADY_EXISTS, Code.FAILED_PRECONDITION,
                                  Code.UNIMPLEMENTED)
MIB = 1 << 20
LABEL_63 = "a" * 63
BAD_NAMES = ("A", "-a", "a-", "a_b", "a.b", "a/b", " a", "a ", "a\n", "é", "..", "a" * 64)
BAD_PATHS = ("/a", "a/", "a//b", "a/../b", "A_/b", ".", "/".join("abcdefghi"), "/" * 10000)


def executable(command="true", **fields):
    outer = {k: fields.pop(k) for k in ("cell", "keep") if k in fields}
    return runtime_pb2.RunExecutableRequest(meta=runtime_pb2.Meta(name=fields.pop("name", "")),
                                            executable=runtime_pb2.Executable(command=command, **fields), **outer)


def container(**fields):
    return runtime_pb2.Container(**{"image": "busybox", **fields})


def cell(*containers, name="", **fields):
    return runtime_pb2.RunCellRequest(meta=runtime_pb2.Meta(name=name), containers=containers or [container()], **fields)


def pod(*containers, name="", **fields):
    return runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name=name), containers=containers or [container()], **fields)


def spawn(name="", **fields):
    return runtime_pb2.SpawnRequest(meta=runtime_pb2.Meta(name=name), **fields)


EXECUTABLES = [
    (BAD, "executable", runtime_pb2.RunExecutableRequest()),
    (BAD, "executable.command", executable("")),
    (BAD, "executable.command", executable("  \t ")),
    (BAD, "executable.command", executable("echo 'not closed")),
    (BAD, "executable.command", executable('echo "not closed')),
    (BAD, "executable.command", executable("echo \\")),
    (NONE, "cell", executable(cell="x")),
    (BAD, "cell", executable(cell="X_y")),
    (BAD, "executable.args", executable(args=["x"] * 5000)),
    (BAD, "executable.args", executable(args=["x" * (2 * MIB)])),
    (BAD, "executable.env[1]", executable(env=["A=1", "NOVALUE"])),
    (BAD, "executable.env[0]", executable(env=["=x"])),
    (BAD, "executable.env[0]", executable(env=[""])),
    (BAD, "executable.env[0]", executable(env=["A B=x"])),
    (BAD, "executable.env[0]", executable(env=["A\n=x"])),
    (BAD, "executable.env", executable(env=["A=" + "x" * (2 * MIB)])),
    (BAD, "executable.command", executable("x" * (MIB + 1))),
    (BAD, "executable.comment", executable(comment="x" * 4097)),
    (BAD, "executable.cwd", executable(cwd="relative")),
    (BAD, "executable.cwd", executable(cwd="/" + "x" * 5000)),
    (BAD, "executable.stdin", executable(stdin=b"x" * (4 * MIB + 1))),
] + [(BAD, "executable.user", executable(user=u)) for u in (
    "root", "0x0", "+0", "-1", " 1", "1 ", ":1", "1:", "1:x", "1:2:3", "2147483648", "4294967295", "4294967296",
    "18446744073709551616", "0:4294967296", "1.5", "/")
] + [(BAD, "meta.name", executable(name=n)) for n in BAD_NAMES]

CELLS = [
    (BAD, "containers", runtime_pb2.RunCellRequest()),
    (BAD, "containers", runtime_pb2.RunCellRequest(containers=[container(name=f"c{i}") for i in range(65)])),
    (BAD, "containers[0].image", cell(runtime_pb2.Container())),
    (BAD, "containers[0].image", cell(container(image="UPPER"))),
    (BAD, "containers[0].image", cell(container(image="a b"))),
    (NONE, "containers[0].image", cell(container(image="no-such-image"))),
    (NONE, "containers[0].image", cell(container(image="sha256:" + "0" * 64))),
    (BAD, "containers[0].name", cell(container(), container())),
    (BAD, "containers[1].name", cell(container(name="a"), container(name="a"))),
    (BAD, "containers[1].name", cell(container(name="a"), container(name="A"))),
    (BAD, "containers[0].command", cell(container(command=[""]))),
    (BAD, "containers[0].command", cell(container(command=["x"] * 5000))),
    (BAD, "containers[0].args", cell(container(args=["x" * (2 * MIB)]))),
    (BAD, "containers[0].env[0]", cell(container(env=["A"]))),
    (BAD, "containers[0].working_dir", cell(container(working_dir="tmp"))),
    (BAD, "containers[0].mounts[0].target", cell(container(mounts=[runtime_pb2.Mount(source="/", target="/")]))),
    (BAD, "containers[0].resources.cpu_weight", cell(container(resources=runtime_pb2.Resources(cpu_weight=10001)))),
    (BAD, "resources.cpu_period", cell(resources=runtime_pb2.Resources(cpu_period=5))),
    (BAD, "containers[1].mounts[0].target", cell(container(name="a"), container(name="b", mounts=[runtime_pb2.Mount()]))),
    (BAD, "containers[0].mounts[0].source", cell(container(mounts=[runtime_pb2.Mount(source="/", target="/x")]))),
    (NONE, "containers[0].mounts[0].source", cell(container(mounts=[runtime_pb2.Mount(source="/no/such", target="/x")]))),
    (BAD, "volumes[0].name", cell(volumes=[runtime_pb2.Volume(name="A", host_path="/etc")])),
    (BAD, "network", cell(network="Bridge")),
    (BAD, "network", cell(network="pod")),
    (NONE, "instance", cell(instance="no/such/one")),
] + [(BAD, "containers[0].user", cell(container(user=u))) for u in (" 1", "1 ", ":1", "a b", "a:b:c", "u" * 300, "../etc")
] + [(BAD, "instance", cell(instance=p)) for p in BAD_PATHS
] + [(BAD, "meta.name", cell(name=n)) for n in BAD_NAMES]

PODS = [
    (BAD, "containers", runtime_pb2.RunPodRequest()),
    (LATER, "ports", pod(ports=[80])),
    (BAD, "kind", pod(kind="banana")),
    (STATE, "kind", pod(kind="vm")),
    (STATE, "kind", pod(kind="ec2")),
    (STATE, "kind", pod(kind="gce")),
    (STATE, "kind", pod(kind="vsphere")),
    (BAD, "network", pod(network="own")),
    (NONE, "parent", pod(parent="nobody")),
    (BAD, "parent", pod(parent="a//b")),
    (BAD, "meta.name", pod(name="Web")),
    (BAD, "containers[0].mounts[0].source", pod(container(mounts=[runtime_pb2.Mount(target="/x")]))),
    (BAD, "containers[0].resources.cpuset_cpus", pod(container(resources=runtime_pb2.Resources(cpuset_cpus="x")))),
    (BAD, "resources.no_swap", pod(resources=runtime_pb2.Resources(memory_swap=1, no_swap=True))),
    (NONE, "containers[1].image", pod(container(name="a"), container(name="b", image="no-such-image"))),
]

SPAWNS = [
    (LATER, "image", spawn(image="busybox")),
    (BAD, "resources.cpu_quota", spawn(resources=runtime_pb2.Resources(cpu_quota=999))),
    (LATER, "devices", spawn(devices=["/dev/kvm"])),
    (BAD, "kind", spawn(kind="CELL")),
    (STATE, "kind", spawn(kind="vm")),
    (BAD, "network", spawn(network="none")),
    (NONE, "parent", spawn(parent="nobody")),
    (BAD, "parent", spawn(parent="/")),
    (BAD, "meta.name", spawn(name=LABEL_63 + "a")),
]

EXECS = [
    (BAD, "command", nacre_pb2.ExecRequest()),
    (BAD, "command", nacre_pb2.ExecRequest(command=[""])),
    (BAD, "env[0]", nacre_pb2.ExecRequest(command=["true"], env=["A"])),
    (BAD, "working_dir", nacre_pb2.ExecRequest(command=["true"], working_dir="a")),
    (BAD, "user", nacre_pb2.ExecRequest(command=["true"], user=":1")),
    (BAD, "user", nacre_pb2.ExecRequest(command=["true"], user=" 1")),
    (NONE, "container", nacre_pb2.ExecRequest(command=["true"], container="other")),
]


class Table(nacre_test.NodeTest):
    def check(self, table, call):
        before = self.node.baseline()
        for code, field, request in table:
            with self.subTest(field=field, request=str(request)[:200]):
                text = self.assertFails(code, lambda r=request: call(r))
                # "field: why"; or "field[2]: why" where a list was meant as a whole.
                self.assertRegex(text, "^" + re.escape(field) + r"(\[\d+\])?: \S")
                self.assertNotIn("\n", text)
                self.assertLess(len(text), 600)
        self.assertNoTraces(before)

    def test_executables(self):
        self.check(EXECUTABLES, self.node.runtime.RunExecutable)

    def test_cells(self):
        self.check(CELLS, self.node.runtime.RunCell)

    def test_pods(self):
        self.check(PODS, self.node.runtime.RunPod)

    def test_spawns(self):
        self.check(SPAWNS, self.node.runtime.Spawn)

    def test_targets(self):
        w = self.node.workloads
        calls = [
            lambda t: w.Inspect(nacre_pb2.InspectRequest(target=t)), lambda t: w.Stop(nacre_pb2.StopRequest(target=t)),
            lambda t: w.Remove(nacre_pb2.RemoveRequest(target=t, force=True)), lambda t: w.Wait(nacre_pb2.WaitRequest(target=t)),
            lambda t: list(w.Logs(nacre_pb2.LogsRequest(target=t))),
            lambda t: list(self.node.exec(nacre_pb2.ExecRequest(target=t, command=["true"]))),
            lambda t: w.WriteStdin(nacre_pb2.WriteStdinRequest(target=t, data=b"x")),
        ]
        table = [(BAD, "target", ""), (NONE, "target", "nobody"), (NONE, "target", "a/b/c"), (NONE, "target", "../../etc"),
                 (NONE, "target", "0" * 16), (NONE, "target", "x" * 100000)]
        for call in calls:
            self.check(table, call)
        self.check(table[1:], lambda t: list(self.node.events.Events(nacre_pb2.EventsRequest(target=t))))

    def test_what_does_not_fit_its_target(self):
        w = self.node.workloads
        self.node.runtime.Spawn(spawn("inst"))
        self.addCleanup(w.Remove, nacre_pb2.RemoveRequest(target="inst", force=True))
        self.node.runtime.RunCell(cell(container(name="a", command=["sleep", "1000"]),
                                       container(name="b", command=["sleep", "1000"]), name="two"))
        self.addCleanup(w.Remove, nacre_pb2.RemoveRequest(target="two", force=True))
        self.check([(BAD, "target", t) for t in ("inst",)], lambda t: w.Wait(nacre_pb2.WaitRequest(target=t)))
        self.check([(BAD, "target", t) for t in ("inst",)], lambda t: list(w.Logs(nacre_pb2.LogsRequest(target=t))))
        self.check([(BAD, "grace_ms", g) for g in (3600001, 1 << 63)],
                   lambda g: w.Stop(nacre_pb2.StopRequest(target="two", grace_ms=g)))
        self.check([(BAD, "container", ""), (NONE, "container", "c"), (NONE, "container", "A")],
                   lambda c: list(w.Logs(nacre_pb2.LogsRequest(target="two", container=c))))
        self.check([(NONE, "container", "c")], lambda c: w.Wait(nacre_pb2.WaitRequest(target="two", container=c)))
        self.assertFails(STATE, lambda: w.WriteStdin(nacre_pb2.WriteStdinRequest(target="two", container="a", data=b"x")),
                         "stdin")
        self.assertFails(STATE, lambda: w.Remove(nacre_pb2.RemoveRequest(target="two")), "two")
        self.assertFails(STATE, lambda: w.Remove(nacre_pb2.RemoveRequest(target="inst")), "inst")
        for name in ("two", "inst"):
            self.assertFails(TAKEN, lambda n=name: self.node.runtime.RunCell(cell(name=n)), name)
            self.assertFails(TAKEN, lambda n=name: self.node.runtime.RunPod(pod(name=n)), name)
            self.assertFails(TAKEN, lambda n=name: self.node.runtime.Spawn(spawn(n)), name)
            self.assertFails(TAKEN, lambda n=name: self.node.runtime.RunExecutable(executable(name=n)), name)

    def test_execs(self):
        self.node.runtime.RunCell(cell(container(command=["sleep", "1000"]), name="target"))
        self.addCleanup(self.node.workloads.Remove, nacre_pb2.RemoveRequest(target="target", force=True))

        def call(request):
            request.target = "target"
            list(self.node.exec(request))

        self.check(EXECS, call)

    def loop(self):
        path = os.path.join(self.node.dir, "loop")
        if not os.path.islink(path):
            os.symlink("loop", path)
        return path

    def test_images(self):
        def imports(**fields):
            return lambda: list(self.node.images.Import(nacre_pb2.ImportRequest(**fields)))

        archive = self.node.config
        table = [(BAD, "path", imports(path="")), (BAD, "path", imports(path="relative.tar")),
                 (NONE, "path", imports(path="/no/such/file.tar")), (BAD, "name", imports(path=archive, name="UPPER CASE")),
                 (BAD, "name", imports(path=archive, name="a@sha256:00")),
                 (BAD, "name", imports(path=archive, name="a@sha256:" + "0" * 64)),
                 # It would be taken for an id ever after.
                 (BAD, "name", imports(path=archive, name="sha256:" + "0" * 64)),
                 (BAD, "path", imports(path="/dev/null")), (BAD, "path", imports(path=self.node.socket)),
                 (BAD, "path", imports(path="/" + "x" * 300)), (BAD, "path", imports(path=self.loop()))]
        self.check(table, lambda call: call())
        removals = [(BAD, "image", ""), (NONE, "image", "no-such-image"), (BAD, "image", "UPPER"),
                    (NONE, "image", "sha256:" + "0" * 64), (NONE, "image", "sha256:" + "0" * 12)]
        self.check(removals, lambda i: self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=i)))


INSPECT = "/nacre.v1.WorkloadService/Inspect"
RUN_POD = "/aurae.runtime.v0.RuntimeService/RunPod"


def nested(depth):
    """An unknown field, a group in a group in a group."""
    return wire.tag(99, wire.GROUP) * depth + wire.tag(99, wire.END_GROUP) * depth


class Wire(nacre_test.NodeTest):
    IMAGES = ()

    # Each as (what, method, bytes, a word of the text).
    GARBAGE = [
        ("bad UTF-8", INSPECT, wire.field(1, b"a\xff"), "target"),
        ("overlong UTF-8", INSPECT, wire.field(1, b"\xc0\x80"), "target"),
        ("a surrogate", INSPECT, wire.field(1, b"\xed\xa0\x80"), "target"),
        ("NUL in a string", INSPECT, wire.field(1, b"web\0x"), "target"),
        ("NUL in a nested string", RUN_POD, wire.field(1, wire.field(1, b"a\0")), "meta.name"),
        ("bad UTF-8 in a list", RUN_POD, wire.field(4, wire.field(3, b"\xfe")), "containers.command"),
        ("cut within a length", INSPECT, wire.tag(1, wire.LEN) + b"\xff", ""),
        ("cut within a string", INSPECT, wire.tag(1, wire.LEN) + b"\x05ab", ""),
        ("a length of 2^63", INSPECT, wire.tag(1, wire.LEN) + wire.varint(1 << 63), ""),
        ("cut within a tag", INSPECT, b"\x80", ""),
        ("a varint without an end", INSPECT, b"\x08" + b"\xff" * 11, ""),
        ("field number zero", INSPECT, b"\x00\x00", ""),
        ("wire type 7", INSPECT, b"\x0f", ""),
        ("a string as a number", INSPECT, wire.field(1, 5), "target"),
        ("a message as a number", RUN_POD, wire.field(1, 5), "meta"),
        ("a message twice", RUN_POD, wire.field(1, b"") * 2, "meta"),
        ("a group", INSPECT, nested(1), ""),
        ("a thousand groups in one another", INSPECT, nested(1000), ""),
        ("fixed64 cut", INSPECT, wire.tag(50, wire.FIXED64) + b"123", ""),
    ]

    def test_garbage(self):
        before = self.node.baseline()
        for what, method, data, word in self.GARBAGE:
            with self.subTest(what):
                self.assertFails(BAD, lambda m=method, d=data: wire.call(self.node.channel, m, d), word)
        self.assertNoTraces(before)

    def test_unknown_fields_are_fine(self):
        self.assertFails(NONE, lambda: wire.call(self.node.channel, INSPECT, wire.field(1, "nobody") + wire.field(999, "new")),
                         "target")

    def test_too_many_fields(self):
        many = wire.field(4, b"") * (2 << 20)
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: wire.call(self.node.channel, RUN_POD, many))
        self.assertEqual(self.node.pid, self.node.info.Info(nacre_pb2.InfoRequest()).pid)

    def test_two_messages_in_a_unary_call(self):
        call = self.node.channel.stream_unary(INSPECT)
        with self.assertRaises(grpc.RpcError) as caught:
            call(iter([wire.field(1, "a"), wire.field(1, "b")]), timeout=60)
        self.assertIn(caught.exception.code(), (BAD, LATER, NONE, Code.INTERNAL))

    def test_no_message_in_a_unary_call(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.node.channel.stream_unary(INSPECT)(iter([]), timeout=60)
        self.assertIn(caught.exception.code(), (BAD, LATER, Code.INTERNAL))
