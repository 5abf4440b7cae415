# SPDX-License-Identifier: Apache-2.0
"""Of what kind an instance is: what was asked for, what was chosen, and why; over a restart too."""
import json
import os
import sqlite3
import unittest

import grpc

import images
import nacre_test
import steps

Code = grpc.StatusCode


class Kinds(steps.StepsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    def shown(self):
        return {w.name: (w.instance_kind, w.kind_reason, w.kernel) for w in self.all().values()}

    def test_the_choice_is_told_and_recorded(self):
        made = {"a": self.spawn("a"), "a/b": self.spawn("a/b"), "c": self.spawn("c", kind="cell"), "d": self.spawn("d", kind="auto"),
                "p": self.pod("p"), "a/q": self.pod("a/q", kind="cell")}
        self.assertEqual({"cell"}, {m.kind for m in made.values()})
        self.assertEqual("it was asked for by name", made["c"].kind_reason)
        self.assertEqual(made["c"].kind_reason, made["a/q"].kind_reason)
        self.assertRegex(made["a"].kind_reason, "so auto is an isolated cell$")
        self.assertEqual([made["a"].kind_reason] * 2, [made[n].kind_reason for n in "dp"])
        self.assertRegex(made["a/b"].kind_reason, "^below another instance")
        expected = {name: (m.kind, m.kind_reason, "") for name, m in made.items()}
        self.assertEqual(expected, self.shown())
        self.cell("a/x")
        self.assertEqual(("", "", ""), self.shown()["a/x"])
        self.remove("a/x", force=True)
        self.node.restart()
        self.assertEqual(expected, self.shown())
        self.stop("p")
        self.assertEqual(expected["p"], self.shown()["p"])
        listed = json.loads(self.node.cli("-o", "json", "inspect", "a").stdout)
        self.assertEqual(("cell", made["a"].kind_reason, None), tuple(listed[k] for k in ("instance_kind", "kind_reason", "kernel")))

    def refused(self, code, call, *words, **fields):
        with self.assertRaises(grpc.RpcError) as caught:
            call(*words, **fields)
        self.assertEqual(code, caught.exception.code(), caught.exception.details())
        return caught.exception.details()

    def test_what_cannot_be_made_is_refused_by_name(self):
        # What a daemon opens once, for the first instance that it makes.
        self.spawn("a")
        self.stop("a")
        before = self.node.baseline()
        self.spawn("a")
        for call in (self.spawn, self.pod):
            self.assertRegex(self.refused(Code.FAILED_PRECONDITION, call, "v", kind="vm"), "^kind: .")
            self.assertRegex(self.refused(Code.FAILED_PRECONDITION, call, "a/v", kind="vm"), "^kind: .")
            for kind in ("ec2", "gce", "vsphere"):
                self.assertRegex(self.refused(Code.FAILED_PRECONDITION, call, "v", kind=kind), "kind: no cloud is configured")
            self.assertRegex(self.refused(Code.INVALID_ARGUMENT, call, "v", kind="box"), "\"auto\", \"cell\", \"vm\"")
        for words in (("spawn", "--name", "v"), ("run", "--name", "v", "busybox", "true"), ("pod", "--name", "v", "m=busybox")):
            done = self.node.cli(words[0], "--kind", "vm", *words[1:], check=False)
            self.assertNotEqual(0, done.returncode)
            self.assertIn("kind: ", done.stderr)
        self.assertEqual(["a"], list(self.all()))
        self.stop("a")
        self.assertNoTraces(before)


class Configured(unittest.TestCase):
    def test_pods_are_of_the_kind_that_the_configuration_says(self):
        with nacre_test.Node(config="vm:\n  pods: vm\n") as node:
            images.ensure(node, "busybox")
            done = node.cli("run", "--name", "v", "busybox", "true", check=False)
            self.assertIn("kind: ", done.stderr)
            self.assertEqual("", node.cli("run", "--rm", "--kind", "cell", "busybox", "true").stderr)
            node.cli("spawn", "--name", "a")

    def test_a_record_of_no_kind_is_no_record(self):
        with nacre_test.Node() as node:
            node.cli("spawn", "--name", "a")
            node.kill()
            with sqlite3.connect(os.path.join(node.run, "run.db")) as db:
                db.execute("UPDATE instance SET kind='box' WHERE path='a'")
            db.close()
            node.launch()
            self.assertEqual(1, node.wait())
            self.assertIn("the record of instance \"a\"", node.log())
            with sqlite3.connect(os.path.join(node.run, "run.db")) as db:
                db.execute("UPDATE instance SET kind='cell' WHERE path='a'")
            db.close()
            node.start()
            self.assertEqual("a\n", node.cli("ps", "--format", "{name}").stdout)
