# SPDX-License-Identifier: Apache-2.0
"""Limits of pods, cells, containers and instances, as far as a host without controllers of cgroup version 2 can show them: what it
cannot enforce is refused, by name, before anything is made. That they hold is for tests/guest to show; where this host has the
controllers, the files of the groups are looked at here too."""
import json
import os
import signal

import grpc

import host
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2
from steps import container

Code = grpc.StatusCode
BAD, NONE, STATE = Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.FAILED_PRECONDITION
MIB = 1 << 20
NO_LIMIT = 2 ** 64 - 1
# A field, a value that is fine, the file of it, and what that holds then.
FIELDS = (("memory", 64 * MIB, "memory.max", "67108864"), ("memory_low", MIB, "memory.low", "1048576"),
          ("memory_high", 32 * MIB, "memory.high", "33554432"), ("pids", 100, "pids.max", "100"),
          ("cpu_weight", 50, "cpu.weight", "50"), ("cpu_quota", 50000, "cpu.max", "50000 100000"),
          ("cpuset_cpus", "0", "cpuset.cpus", "0"), ("cpuset_mems", "0", "cpuset.mems", "0"))


def resources(**fields):
    return runtime_pb2.Resources(**fields)


def sleeper(**fields):
    return container("sleep", "100000", **fields)


class LimitsTest(steps.StepsTest):
    def setUp(self):
        super().setUp()
        group = self.node.info.Info(nacre_pb2.InfoRequest()).cgroup
        # What the groups of workloads get.
        self.controllers = host.read(os.path.join(host.cgroup_root(), group.lstrip("/"), "cgroup.subtree_control")).split()

    def has(self, file):
        return file.partition(".")[0] in self.controllers

    def update(self, target, name="", whole=False, **fields):
        self.node.workloads.Update(nacre_pb2.UpdateRequest(target=target, container=name, whole=whole,
                                                           resources=resources(**fields)))


class Asked(LimitsTest):
    def everywhere(self, limits):
        """Each call that takes them: (the field, the call, the group that has them)."""
        return (("containers[0].resources", lambda: self.pod("x", sleeper(resources=limits)), "cell.x/{name}"),
                ("containers[0].resources", lambda: self.cell("x", sleeper(resources=limits)), "cell.x/{name}"),
                ("resources", lambda: self.pod("x", resources=limits), ""),
                ("resources", lambda: self.cell("x", resources=limits), "cell.x"),
                ("resources", lambda: self.spawn("x", resources=limits), ""))

    def test_each_is_there_or_refused_by_name(self):
        for field, value, file, text in FIELDS:
            for at, call, group in self.everywhere(resources(**{field: value})):
                if self.has(file):
                    call()
                    where = os.path.join(self.cgroup_dir("x"), group.format(name="main"))
                    self.assertEqual(text, host.read(os.path.join(where, file)).strip(), file)
                    self.remove("x", force=True)
                    continue
                said = self.assertFails(STATE, call, file.partition(".")[0])
                self.assertTrue(said.startswith(f"{at}.{field}: "), said)
                self.assertEqual({}, self.all())

    def test_none_is_none(self):
        for _, call, _ in self.everywhere(resources()):
            call()
            self.assertFalse(self.inspect("x").HasField("resources") and self.inspect("x").resources != resources())
            self.remove("x", force=True)

    def test_wrong_values(self):
        for field, values in {"memory": (2 ** 63,), "pids": (2 ** 31,), "cpu_weight": (10001, NO_LIMIT), "cpu_quota": (999, -2, 1),
                              "cpu_period": (1, 999, 1000001, 50000), "cpuset_cpus": ("a", "1-", "0,,1", "-1", "3-1"),
                              "cpuset_mems": (" ",)}.items():
            for value in values:
                for at, call, _ in self.everywhere(resources(**{field: value})):
                    said = self.assertFails(BAD, call)
                    self.assertTrue(said.startswith(f"{at}.{field}: "), said)
        for at, call, _ in self.everywhere(resources(no_swap=True, memory_swap=1)):
            self.assertTrue(self.assertFails(BAD, call).startswith(f"{at}.no_swap: "))
        self.assertEqual({}, self.all())


class Updated(LimitsTest):
    def refused(self, code, field, target, *words, **fields):
        said = self.assertFails(code, lambda: self.update(target, **fields), *words)
        self.assertTrue(said.startswith(field + ": "), said)

    def test_bad_requests(self):
        self.pod("p", sleeper(name="a"), sleeper(name="b"))
        self.spawn("i")
        self.refused(BAD, "target", "", pids=1)
        self.refused(NONE, "target", "nobody", pids=1)
        self.refused(BAD, "container", "p", pids=1)
        self.refused(NONE, "container", "p", name="c", pids=1)
        self.refused(BAD, "whole", "p", name="a", whole=True, pids=1)
        for target, fields in (("p", {"name": "a"}), ("p", {"whole": True}), ("i", {})):
            self.refused(BAD, "resources", target, **fields)
            self.refused(BAD, "resources.cpu_weight", target, cpu_weight=10001, **fields)
        self.assertFails(BAD, lambda: self.node.workloads.Update(nacre_pb2.UpdateRequest(target="i")), "resources")

    def test_what_has_ended(self):
        self.pod("e", container("true"))
        self.wait("e")
        for fields in ({}, {"whole": True}):
            self.refused(STATE, "target", "e", pids=1, **fields)

    def test_each_is_changed_or_refused(self):
        self.pod("p")
        self.cell("c")
        self.spawn("i")
        for field, value, file, text in FIELDS:
            for target, fields, group in (("p", {}, "cell.p/main"), ("p", {"whole": True}, ""), ("c", {}, "cell.c/main"),
                                          ("c", {"whole": True}, "cell.c"), ("i", {}, "")):
                if not self.has(file):
                    self.refused(STATE, f"resources.{field}", target, file.partition(".")[0], **{field: value}, **fields)
                    continue
                self.update(target, **{field: value}, **fields)
                self.assertEqual(text, host.read(os.path.join(self.cgroup_dir(target), group, file)).strip(), file)

    def test_shown_and_kept(self):
        if not self.has("pids.max"):
            self.skipTest("this host has no controller pids in version 2")
        self.pod("p", sleeper(resources=resources(pids=100)), resources=resources(pids=1000))
        self.update("p", pids=50)
        self.update("p", whole=True, pids=NO_LIMIT)
        for _ in range(2):
            seen = self.inspect("p")
            self.assertEqual((50, NO_LIMIT), (seen.containers[0].resources.pids, seen.resources.pids))
            self.node.restart(signal.SIGKILL)


class Watched(LimitsTest):
    def test_a_change_is_told_with_the_new_limits(self):
        if not self.has("pids.max"):
            self.skipTest("this host has no controller pids in version 2")
        self.pod("p")
        self.spawn("i")
        watch = self.node.events.Watch(nacre_pb2.WatchRequest())
        for m in watch:
            if m.synced:
                break
        self.update("p", pids=50)
        self.update("p", whole=True, pids=60)
        self.update("i", pids=70)
        first, second, third = (next(watch) for _ in range(3))
        watch.cancel()
        self.assertEqual(50, first.workload.containers[0].resources.pids)
        self.assertEqual((50, 60), (second.workload.containers[0].resources.pids, second.workload.resources.pids))
        self.assertEqual(("i", 70), (third.workload.name, third.workload.resources.pids))
        events = self.node.events.Events(nacre_pb2.EventsRequest(resume_token=first.resume_token))
        told = [next(events) for _ in range(2)]
        events.cancel()
        self.assertEqual([("workload", "p", "updated"), ("instance", "i", "updated")], [(e.object, e.name, e.state) for e in told])
        self.assertEqual([m.resume_token for m in (second, third)], [e.resume_token for e in told])


class Cli(LimitsTest):
    FLAGS = (("--memory", "64m"), ("--memory-low", "1M"), ("--memory-high", "none"), ("--cpus", "0.5"), ("--cpu-weight", "50"),
             ("--cpuset-cpus", "0"), ("--cpuset-mems", "0"), ("--pids-limit", "100"), ("--swap", "0"), ("--swap", "64m"))

    def test_flags_come_to_the_field(self):
        self.spawn("i")
        for flag, value in self.FLAGS:
            for words in (("run", "-d", "--name", "x", flag, value, "busybox", "true"), ("pod", "--name", "x", flag, value, "a=busybox"),
                          ("cell", "--name", "x", flag, value, "busybox", "true"), ("spawn", "--name", "x", flag, value),
                          ("update", flag, value, "i")):
                done = self.node.cli(*words, check=False)
                if done.returncode:
                    # A field has the name of the option that sets it, and no other.
                    self.assertIn(f"nacre: {flag}: ", done.stderr)
                elif words[0] != "update":
                    self.remove("x", force=True)

    def test_wrong_ones(self):
        for flag, value in (("--memory", "lots"), ("--memory", "-1"), ("--memory", "99999999999g"), ("--cpus", "0.001"), ("--cpus", "x"),
                            ("--cpus", "1.2345"), ("--cpus", "1."), ("--cpu-weight", "0"), ("--pids-limit", "0"),
                            ("--pids-limit", "many"), ("--swap", "x")):
            done = self.node.cli("run", flag, value, "busybox", "true", check=False)
            self.assertNotEqual(0, done.returncode)
            self.assertIn(f"{flag} is ", done.stderr)

    def test_json(self):
        self.pod("p")
        seen = json.loads(self.node.cli("-o", "json", "inspect", "p").stdout)
        self.assertEqual([None, None], [seen["resources"], seen["containers"][0]["resources"]])
