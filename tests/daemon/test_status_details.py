#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What stands beside a status: google.rpc.Status with the field to blame, decoded by hand."""
import unittest

import grpc

import nacre_test
import wire
from nacre_test import nacre_pb2, runtime_pb2

PREFIX = "type.googleapis.com/google.rpc."


def strings(fields, number):
    return [value.decode() for n, value in fields if n == number]


def details(error):
    """{"code", "message", "ErrorInfo": {...}, "BadRequest": [(field, description), ...]} of an RpcError."""
    raw = dict(error.trailing_metadata()).get("grpc-status-details-bin")
    if raw is None:
        return None
    status = wire.parse(raw)
    seen = {"code": dict(status)[1], "message": dict(status)[2].decode(), "BadRequest": []}
    for number, value in status:
        if number != 3:
            continue
        detail = wire.parse(value)
        kind, content = strings(detail, 1)[0], wire.parse(dict(detail)[2])
        if kind == PREFIX + "ErrorInfo":
            seen["ErrorInfo"] = {"reason": strings(content, 1)[0], "domain": strings(content, 2)[0],
                                 "metadata": {strings(wire.parse(e), 1)[0]: strings(wire.parse(e), 2)[0]
                                              for n, e in content if n == 3}}
        elif kind == PREFIX + "BadRequest":
            seen["BadRequest"] += [(strings(wire.parse(v), 1)[0], strings(wire.parse(v), 2)[0])
                                   for n, v in content if n == 1]
        else:
            raise AssertionError(f"a detail of type {kind}")
    return seen


class StatusDetails(nacre_test.NodeTest):
    def failure(self, call):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        seen = details(caught.exception)
        self.assertIsNotNone(seen, caught.exception)
        self.assertEqual(caught.exception.code().value[0], seen["code"])
        self.assertEqual(caught.exception.details(), seen["message"])
        self.assertEqual("nacre", seen["ErrorInfo"]["domain"])
        return seen

    def container(self, **kwargs):
        return runtime_pb2.Container(image=self.busybox(), **kwargs)

    def test_bad_input_names_the_field(self):
        pod = runtime_pb2.RunPodRequest
        cases = {
            "meta.name": lambda: self.node.runtime.RunPod(pod(meta={"name": "A"}, containers=[self.container()])),
            "containers": lambda: self.node.runtime.RunPod(pod()),
            "containers[1].image": lambda: self.node.runtime.RunPod(pod(containers=[
                self.container(name="a"), runtime_pb2.Container(name="b")])),
            "containers[1].name": lambda: self.node.runtime.RunPod(pod(containers=[
                self.container(name="a"), self.container(name="a")])),
            "containers[0].env[1]": lambda: self.node.runtime.RunPod(pod(containers=[self.container(env=["A=1", "B"])])),
            "executable.command": lambda: self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
                executable={"command": "'"})),
            "network": lambda: self.node.runtime.Spawn(runtime_pb2.SpawnRequest(network="x")),
            "target": lambda: self.node.workloads.Inspect(nacre_pb2.InspectRequest()),
            "grace_ms": lambda: self.node.workloads.Stop(nacre_pb2.StopRequest(target=self.sleeper, grace_ms=10**9)),
            "path": lambda: list(self.node.images.Import(nacre_pb2.ImportRequest(path="x"))),
            "image": lambda: self.node.images.Remove(nacre_pb2.RemoveImageRequest()),
            # Which a helper reads.
            "key": lambda: self.node.images.Verify(nacre_pb2.VerifyImageRequest(image=self.busybox(), key="x")),
        }
        for field, call in cases.items():
            with self.subTest(field):
                seen = self.failure(call)
                self.assertEqual(grpc.StatusCode.INVALID_ARGUMENT.value[0], seen["code"])
                self.assertEqual([field], [f for f, _ in seen["BadRequest"]])
                self.assertEqual(f"{field}: {seen['BadRequest'][0][1]}", seen["message"])
                self.assertEqual({"field": field}, seen["ErrorInfo"]["metadata"])
                self.assertEqual("INVALID", seen["ErrorInfo"]["reason"])

    def test_other_codes_have_a_reason_and_may_name_a_field(self):
        missing = self.failure(lambda: self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="nobody")))
        self.assertEqual(("NOT_FOUND", {"field": "target"}),
                         (missing["ErrorInfo"]["reason"], missing["ErrorInfo"]["metadata"]))
        self.assertEqual([], missing["BadRequest"])
        image = self.failure(lambda: self.node.runtime.RunPod(runtime_pb2.RunPodRequest(
            containers=[runtime_pb2.Container(image="nobody/has:this")])))
        self.assertEqual(("NOT_FOUND", {"field": "containers[0].image"}),
                         (image["ErrorInfo"]["reason"], image["ErrorInfo"]["metadata"]))
        taken = self.failure(lambda: self.node.runtime.RunCell(runtime_pb2.RunCellRequest(
            meta={"name": self.sleeper}, containers=[self.container(command=["sleep", "1"])])))
        self.assertEqual("EXISTS", taken["ErrorInfo"]["reason"])
        running = self.failure(lambda: self.node.workloads.Remove(nacre_pb2.RemoveRequest(target=self.sleeper)))
        self.assertEqual("PRECONDITION", running["ErrorInfo"]["reason"])
        unset = self.failure(lambda: self.node.runtime.RunPod(runtime_pb2.RunPodRequest(
            containers=[self.container()], ports=[80])))
        self.assertEqual(("UNSUPPORTED", {"field": "ports"}),
                         (unset["ErrorInfo"]["reason"], unset["ErrorInfo"]["metadata"]))

    def test_what_never_reached_a_handler_has_details_too(self):
        call = self.node.channel.unary_unary("/nacre.v1.WorkloadService/Nothing")
        self.assertEqual("UNSUPPORTED", self.failure(lambda: call(b""))["ErrorInfo"]["reason"])
        call = self.node.channel.unary_unary("/nacre.v1.WorkloadService/Inspect")
        seen = self.failure(lambda: call(b"\x0a\x02\xff\xff"))
        self.assertEqual([("target", "not valid UTF-8, or with a NUL in it")], seen["BadRequest"])

    def test_a_field_that_a_keeper_refuses_is_passed_on(self):
        """The answer comes from the keeper, through the daemon."""
        seen = self.failure(lambda: list(self.node.exec(nacre_pb2.ExecRequest(
            target=self.sleeper, command=["true"], timeout_ms=2**64 - 1))))
        self.assertEqual("timeout_ms", seen["BadRequest"][0][0])
        self.assertIn("is more than the limit of", seen["message"])

    def test_streams_name_the_field_too(self):
        """What is refused behind the first message, and what a thread of the daemon finds."""
        w, n = self.node.workloads, nacre_pb2
        first = n.ExecRequest(target=self.sleeper, command=["sleep", "1000"])
        first_copy = n.CopyToRequest(target=self.sleeper, path="/tmp/x")

        def typed(**fields):
            return lambda: list(self.node.exec(first, n.ExecRequest(input=n.StreamInput(**fields))))

        def copied(**fields):
            return lambda: w.CopyTo(iter([first_copy, n.CopyToRequest(entry=n.CopyEntry(**{"type": 1, "path": b"x", **fields}))]))

        def read(path):
            return lambda: list(w.CopyFrom(n.CopyFromRequest(target=self.sleeper, path=path)))

        cases = {
            "input": lambda: list(self.node.exec(first, n.ExecRequest())), "input.data": typed(data=b"x"),
            "input.signal": typed(signal=65), "input.terminal": typed(terminal=n.TerminalSize(width=1)),
            "terminal": lambda: list(self.node.exec(n.ExecRequest(
                target=self.sleeper, command=["true"], tty=True, terminal=n.TerminalSize(width=70000)))),
            "entry.type": copied(type=0), "entry.path": copied(path=b"/x"), "entry.mode": copied(mode=0o10000),
            "entry.uid": copied(uid=2**32 - 1), "entry.gid": copied(gid=2**32 - 1), "entry.link_target": copied(type=3),
            "data": lambda: w.CopyTo(iter([first_copy, n.CopyToRequest(data=b"x")])),
            "path": read("etc"), "container": lambda: w.Processes(n.ProcessesRequest(container="x")),
            "targets": lambda: w.Stats(n.StatsRequest(targets=["x"] * 4097)),
            "targets[1]": lambda: w.Stats(n.StatsRequest(targets=[self.sleeper, ""])),
        }
        for field, call in cases.items():
            with self.subTest(field):
                seen = self.failure(call)
                self.assertEqual(grpc.StatusCode.INVALID_ARGUMENT.value[0], seen["code"])
                self.assertEqual([field], [f for f, _ in seen["BadRequest"]])
                self.assertEqual(f"{field}: {seen['BadRequest'][0][1]}", seen["message"])
        for path, code in (("/none", "NOT_FOUND"), ("/" + "x" * 300, "INVALID")):
            seen = self.failure(read(path))
            self.assertEqual((code, {"field": "path"}), (seen["ErrorInfo"]["reason"], seen["ErrorInfo"]["metadata"]))
        seen = self.failure(lambda: w.Stats(n.StatsRequest(targets=[self.sleeper, "none"])))
        self.assertEqual(("NOT_FOUND", {"field": "targets[1]"}), (seen["ErrorInfo"]["reason"], seen["ErrorInfo"]["metadata"]))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sleeper = "sleeper"
        cls.node.runtime.RunCell(runtime_pb2.RunCellRequest(meta={"name": cls.sleeper}, containers=[
            runtime_pb2.Container(image=cls.busybox(), command=["sleep", "1000"])]))


if __name__ == "__main__":
    unittest.main()
