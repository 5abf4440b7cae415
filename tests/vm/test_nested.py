# SPDX-License-Identifier: Apache-2.0
"""A guest in a guest: made by the keeper of the outer one, reached through it, told why it ended, and gone without a trace."""
import json
import os

import grpc

import machines
import nacre_test
import steps
from machines import load_tests  # noqa: F401
from nacre_test import nacre_pb2, runtime_pb2

Code = grpc.StatusCode
MIB = 1 << 20
# For whom everything is emulated twice over, on a machine that has other things to do.
PATIENCE = 1500
ROOM, TIGHT = 700 * MIB, 100 * MIB


class Nested(machines.MachinesTest):
    SECONDS = PATIENCE + 900

    @classmethod
    def setUpClass(cls):
        machines.need("/usr/bin/mkfs.erofs")
        super().setUpClass()

    @classmethod
    def prepare(cls):
        # Both are there from the start, and are no leftovers; what was built last is taken.
        machines.build_set(cls.node, "--nested")
        super().prepare()

    def spawn_in(self, path, **fields):
        """Spawn of kind vm, however long that takes."""
        parent, meta = steps.parts(path)
        return self.node.runtime.Spawn(runtime_pb2.SpawnRequest(meta=meta, parent=parent, kind="vm", **fields), timeout=PATIENCE)

    def refused(self, sentence, path, **fields):
        with self.assertRaises(grpc.RpcError) as e:
            self.spawn_in(path, **fields)
        self.assertEqual(Code.FAILED_PRECONDITION, e.exception.code(), e.exception.details())
        self.assertRegex(e.exception.details(), sentence)
        self.assertNotIn(path, self.all())

    def tasks(self, target):
        """How many processes and threads there are in it, as its own kernel counts them."""
        stats = json.loads(self.node.cli("-o", "json", "stats", target).stdout)
        return stats["workloads"][0]["pids"]["current"]

    def tools(self, pid):
        """The descriptors by which its monitor has the disk for those in it."""
        names = [os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")]
        return [n for n in names if n.endswith("/tools")]

    def limit(self, target, memory):
        self.node.workloads.Update(nacre_pb2.UpdateRequest(target=target, resources=runtime_pb2.Resources(memory=memory)), timeout=60)

    def check_refusals(self):
        self.refused("kind: the guests of the set .* have no guests: nacre guest build --nested makes one", "v/w")
        machines.build_set(self.node, "--nested")
        self.refused(r"memory: a machine of \d+ MiB takes up to \d+ MiB of the one around it, and v has room for 700", "v/w",
                     resources=runtime_pb2.Resources(memory=600 * MIB))
        self.spawn("b")
        self.refused("kind: one of kind \"vm\" can be made below .*; b is a cell", "b/w")
        self.stop("b")

    def check_levels(self):
        there = self.kernel.version
        text = self.node.cli("tree", "--short").stdout
        for line in (f"v .* vm instance \\(Linux {there}\\)", f"w .* vm instance \\(Linux {there}\\)"):
            self.assertRegex(text, line)
        outer = next(e for e in json.loads(self.node.cli("-o", "json", "tree").stdout) if e["workload"]["name"] == "v")
        inner, = outer["children"]
        self.assertEqual(("v/w", "vm", there), (inner["workload"]["name"], inner["workload"]["instance_kind"], inner["kernel"]))
        self.refused("v/w is in another one", "v/w/x")

    def test_a_guest_in_a_guest(self):
        v = self.spawn_in("v", resources=runtime_pb2.Resources(memory=ROOM))
        self.check_refusals()
        before = self.tasks("v")
        w = self.spawn_in("v/w")
        self.assertEqual(("v/w", "vm", "it was asked for by name", 0), (w.name, w.kind, w.kind_reason, w.pid))
        self.assertTrue(self.tools(v.pid))
        self.check_levels()
        self.node.cli("run", "--in", "v/w", "--rm", "busybox", "true", seconds=PATIENCE)
        # The largest process of the outer guest is the monitor of the inner one: its kernel kills that when there is no more room.
        self.limit("v", TIGHT)
        nacre_test.until(lambda: self.inspect("v/w").state == "failed", what="the end of v/w", seconds=PATIENCE)
        self.assertRegex(self.inspect("v/w").reason, "signal 9")
        self.limit("v", ROOM)
        nacre_test.until(lambda: not self.tools(v.pid), what="the end of its disk", seconds=60)
        nacre_test.until(lambda: self.tasks("v") <= before, what="the end of its processes", seconds=60)
        self.remove("v/w")
        self.stop("v", grace_ms=20000)
        self.assertEqual({}, self.all())
        self.assertNoTraces(self.before)
