# SPDX-License-Identifier: Apache-2.0
"""What every command prints with -o json, against doc/output.schema.json."""
import json
import os
import signal
import subprocess
import tempfile
import unittest

import nacre_test
import schema


class Validator(unittest.TestCase):
    """The validator finds what is wrong."""

    def test_mismatches(self):
        document = {"$defs": {"n": {"type": ["integer", "null"], "minimum": 0}}, "commands": {"x": {
            "type": "object", "required": ["a"], "additionalProperties": False, "properties": {
                "a": {"$ref": "#/$defs/n"}, "b": {"type": "array", "items": {"enum": ["p", "q"]}},
                "c": {"type": "string", "pattern": "^[0-9]+$"}}}}}
        for value in ({"a": 1}, {"a": None, "b": [], "c": "7"}, {"a": 0, "b": ["p", "q"]}):
            schema.check(document, "x", value)
        for value in ({}, [], {"a": -1}, {"a": True}, {"a": 1, "d": 1}, {"a": 1, "b": ["r"]}, {"a": 1, "c": "7x"}, {"a": "1"}):
            with self.assertRaises(schema.Mismatch, msg=value):
                schema.check(document, "x", value)
        with self.assertRaises(ValueError):
            schema.match(document, {"maximum": 1}, 1)


class Output(nacre_test.NodeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()
        cls.document = schema.load()

    @classmethod
    def prepare(cls):
        # The first network has the daemon open its sockets.
        cls.node.cli("network", "create", "first")
        cls.node.cli("network", "rm", "first")

    def tearDown(self):
        self.node.clear()
        super().tearDown()

    def check(self, command, *words, status=0):
        done = self.node.cli("-o", "json", *command.split()[:2 if command.startswith(("image", "system", "health", "network")) else 1], *words, check=False)
        self.assertEqual(status, done.returncode, done.stderr)
        value = json.loads(done.stdout)
        schema.check(self.document, command, value)
        return value

    def test_every_command(self):
        self.check("run -d", "-d", "--name", "one", "-v", "/etc/hosts:/h:ro", "--tmpfs", "/t:size=1m", "--read-only", "busybox",
                   "sleep", "1000")
        self.check("create", "--name", "later", "--restart", "on-failure:3", "busybox", "true")
        self.assertEqual(("created", 3), tuple(self.check("inspect", "later")[k] for k in ("state", "restart_max")))
        self.node.cli("rm", "later")
        self.check("pod", "--name", "shop", "web=busybox", "sleep", "1000", "--", "db=busybox", "sh", "-c", "exit 3")
        self.check("spawn", "--name", "a")
        self.check("cell", "--in", "a", "--name", "deep", "busybox", "sleep", "1000")
        self.node.cli("run", "--name", "failed", "busybox", "/no/such", check=False)
        self.node.cli("execute", "--keep", "--name", "here", "true")
        self.node.cli("run", "-d", "--name", "named", "--hostname", "x", "--dns", "10.0.0.1", "--add-host", "db:10.0.0.2", "busybox", "sleep",
                      "1000")
        self.assertEqual(7, len(self.check("ps", "-a")))
        self.assertEqual("x", self.check("inspect", "named")["attachment"]["asked"]["hostname"])
        self.assertEqual([], self.check("port", "named"))
        tree = self.check("tree")
        self.assertEqual(["deep"], [b["workload"]["name"].rpartition("/")[2] for e in tree if e["workload"]["name"] == "a"
                                    for b in e["children"]])
        for name in ("one", "shop", "a", "a/deep", "failed", "here"):
            self.check("inspect", name)
        self.assertEqual({"a", "a/deep", "named", "one", "shop"}, {w["name"] for w in self.check("stats")["workloads"]})
        self.check("run -d", "-d", "--name", "probed", "--health-http", "80/live", "--health-retries", "1", "busybox", "sleep", "1000")
        self.check("healthcheck run", "probed", status=1)
        self.assertEqual("unhealthy", self.check("inspect", "probed")["containers"][0]["health"]["status"])
        self.check("wait", "--condition", "unhealthy", "probed")
        self.node.cli("rm", "--force", "probed")
        self.node.cli("stop", "-t", "0", "one")
        self.assertEqual(137, self.check("wait", "one")["exit_code"])
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(1, self.check("cp", "shop:web:/etc/passwd", folder)["entries"])
            self.assertLess(10, self.check("export", "-O", os.path.join(folder, "x.tar"), "-c", "web", "shop")["entries"])
        self.assertEqual("debug-1", self.check("debug", "-d", "-c", "web", "shop", "--", "sleep", "1000")["name"])
        self.assertEqual([False, False, True], [c["debug"] for c in self.check("inspect", "shop")["containers"]])
        self.node.cli("stop", "-t", "0", "-c", "debug-1", "shop")
        self.node.cli("exec", "-c", "web", "shop", "touch", "/made")
        self.assertEqual([{"change": "A", "path": "/made"}], self.check("diff", "-c", "web", "shop"))
        self.assertIn("sleep 1000", {p["command"] for p in self.check("processes", "shop")})
        self.assertEqual(["images", "containers", "volumes"], [row["kind"] for row in self.check("system df")])
        self.assertEqual(1, len(self.check("image ls")))
        self.assertEqual({"pod", "executable"}, {i["kind"] for i in self.check("prune", "--force")["items"]})
        self.node.cli("network", "create", "spare")
        self.assertEqual([{"kind": "network", "name": "spare"}], self.check("network prune", "--force")["items"])
        self.check("system prune", "--force", "--volumes")
        self.check("check")
        self.check("info")
        self.check("version")
        self.assertIsNone(json.loads(self.node.cli("--socket", "/no/such", "-o", "json", "version").stdout)["server"])

    def test_image_import(self):
        with tempfile.TemporaryDirectory() as folder:
            archive = os.path.join(folder, "busybox.tar")
            subprocess.run([nacre_test.MKIMAGE, "--busybox", "--format", "oci", "--name", "x", "--out", archive], check=True)
            self.assertEqual(["docker.io/library/second:latest"], self.check("image import", archive, "--name", "second")["names"])
        self.node.cli("image", "rm", "second")

    def test_doctor(self):
        def asked():
            """It waits for an answer of the daemon no longer than a person would."""
            done = self.node.cli("-o", "json", "doctor", check=False)
            return "no daemon to look at" not in done.stdout and done

        done = nacre_test.until(asked, what="a daemon that answers in time")
        found = json.loads(done.stdout)
        schema.check(self.document, "doctor", found)
        missing = [f for f in found if not f["ok"] and f["essential"]]
        self.assertEqual(1 if missing else 0, done.returncode)
        for f in found:
            if f["check"] == "confinement":
                self.assertTrue(f["ok"], f)
            self.assertEqual((f["ok"],) * 3, (f["cause"] is None, f["consequence"] is None, f["cure"] is None), f)

    def lines(self, command, *words, n):
        client = self.node.spawn_cli("-o", "json", command, *words)
        os.set_blocking(client.stdout.fileno(), False)
        text = b""

        def heard():
            nonlocal text
            # It may not listen yet: so something happens until it has been heard.
            if command in ("events", "tree"):
                self.node.cli("run", "--rm", "busybox", "true")
            text += client.stdout.read() or b""
            return text.count(b"\n") >= n

        nacre_test.until(heard, seconds=60, what="the lines")
        lines = text.splitlines()
        client.send_signal(signal.SIGTERM)
        client.communicate(timeout=60)
        for line in lines[:n]:
            schema.check(self.document, command, json.loads(line))

    def test_streams(self):
        self.node.cli("run", "-d", "--name", "one", "busybox", "sleep", "1000")
        self.lines("events", n=3)
        self.lines("tree", "--watch", n=2)
        self.lines("top", n=2)
        self.lines("stats", "--watch", n=2)

    def test_every_command_is_described(self):
        """Of all commands those without a schema are known, so that a new one is thought of."""
        without = {"cloud logs", "cloud stop", "cloud rm", "execute", "exec", "logs", "attach", "start", "stop", "restart", "rename", "rm", "image rm", "image pin", "image unpin", "guest default", "guest rm", "vm rmdisk", "network rm", "network disconnect", "volume rm", "secret rm", "login", "logout", "daemon", "help", "completion", "man", "signal", "kill", "pause", "unpause",
                   "update", "context create", "context use", "context rm", "identity revoke"}
        man = self.node.cli("help").stdout.split("commands:\n")[1].split("\n\n")[0]
        names = {line[2:].split("  ")[0].strip() for line in man.splitlines()}
        self.assertEqual(set(), {n.replace("run", "run -d") if n == "run" else n for n in names} - set(self.document["commands"]) - without)
