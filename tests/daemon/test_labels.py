# SPDX-License-Identifier: Apache-2.0
"""Labels of workloads and instances: what is kept of them, what asks for them, and `nacre ps --filter`."""
import os
import tempfile

import grpc

import nacre_test
from nacre_test import nacre_pb2, runtime_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT


class Labels(nacre_test.NodeTest):
    def setUp(self):
        self.addCleanup(self.node.clear)

    def meta(self, name, labels):
        return runtime_pb2.Meta(name=name, labels=labels)

    def run_pod(self, name, labels, **kwargs):
        container = runtime_pb2.Container(name="main", image="busybox", args=["sleep", "100000"])
        return self.node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=self.meta(name, labels), containers=[container], **kwargs))

    def listed(self, *labels):
        return {w.name: dict(w.labels) for w in self.node.workloads.List(nacre_pb2.ListRequest(labels=labels)).workloads}

    def test_kept_and_asked_for(self):
        """Of each kind, over a restart of the daemon and a change of limits; with the fields that a client chooses."""
        self.run_pod("pod", {"env": "test", "tier": "web"})
        self.node.runtime.RunCell(runtime_pb2.RunCellRequest(meta=self.meta("cell", {"env": "test"}), containers=[
            runtime_pb2.Container(name="main", image="busybox", args=["sleep", "100000"])]))
        self.node.runtime.Spawn(runtime_pb2.SpawnRequest(meta=self.meta("inst", {"env": "prod", "empty": ""})))
        self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
            meta=self.meta("exe", {"env": "exe"}), executable=runtime_pb2.Executable(command="true"), keep=True))
        self.run_pod("none", {})
        everything = {"pod": {"env": "test", "tier": "web"}, "cell": {"env": "test"}, "inst": {"env": "prod", "empty": ""}, "none": {}}

        def look():
            self.assertEqual(everything, self.listed())
            self.assertEqual({"pod", "cell", "inst"}, set(self.listed("env")))
            self.assertEqual({"pod", "cell"}, set(self.listed("env=test")))
            self.assertEqual({"pod"}, set(self.listed("env=test", "tier=web")))
            self.assertEqual({"inst"}, set(self.listed("empty=")))
            self.assertEqual({}, self.listed("env=test", "tier=db"))
            self.assertEqual({}, self.listed("en"))
            self.assertEqual({"env": "exe"}, dict(self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="exe")).workload.labels))

        look()
        # Not every host has the controllers; where it has, the record is written anew.
        self.node.cli("update", "pod", "--whole", "--pids-limit", "500", check=False)
        self.node.cli("update", "inst", "--whole", "--pids-limit", "5000", check=False)
        look()
        self.node.restart()
        look()
        answer = self.node.workloads.List(nacre_pb2.ListRequest(labels=["env=test"], fields=["name", "labels"]))
        self.assertEqual([("pod", "", {"env": "test", "tier": "web"}), ("cell", "", {"env": "test"})],
                         [(w.name, w.id, dict(w.labels)) for w in answer.workloads])
        answer = self.node.workloads.List(nacre_pb2.ListRequest(labels=["env=test"], fields=["name"]))
        self.assertEqual([{}, {}], [dict(w.labels) for w in answer.workloads])

    def test_limits(self):
        most = {f"{n:02}" + "k" * 254: "v" * 700 for n in range(64)}
        self.run_pod("most", most)
        self.run_pod("long", {"k": "v" * 4096})
        self.assertEqual({"most": most, "long": {"k": "v" * 4096}}, self.listed())
        for labels, words in (({"": "x"}, "a label has no name"), ({"k" * 257: ""}, "257 bytes; at most 256"), ({"a=b": ""}, "has a '='"),
                              ({"k": "v" * 4097}, "4097 bytes; at most 4096"),
                              ({str(n): "" for n in range(65)}, "65 are more than the limit of 64"),
                              ({str(n): "v" * 4096 for n in range(17)}, "at most 65536")):
            self.assertFails(INVALID, lambda labels=labels: self.run_pod("no", labels), "meta.labels", words)
            self.assertFails(INVALID, lambda labels=labels: self.node.runtime.Spawn(
                runtime_pb2.SpawnRequest(meta=self.meta("no", labels))), "meta.labels", words)
            self.assertFails(INVALID, lambda labels=labels: self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
                meta=self.meta("no", labels), executable=runtime_pb2.Executable(command="true"))), "meta.labels", words)
        for label in ("", "=x"):
            self.assertFails(INVALID, lambda label=label: self.listed("a", label), "labels[1]", "NAME=VALUE")
        self.assertFails(INVALID, lambda: self.listed(*["a"] * 65), "labels", "64")

    def test_repeated_request(self):
        """The order in which a client writes a map does not make it another request."""
        first = self.run_pod("again", {"a": "1", "b": "2"}, request_id="r1")
        self.assertEqual(first.id, self.run_pod("again", {"b": "2", "a": "1"}, request_id="r1").id)
        self.assertFails(grpc.StatusCode.ALREADY_EXISTS, lambda: self.run_pod("again", {"b": "3", "a": "1"}, request_id="r1"))

    def test_page_token_is_of_its_question(self):
        for name in "abc":
            self.run_pod(name, {"k": "1"})
        page = self.node.workloads.List(nacre_pb2.ListRequest(labels=["k=1"], page_size=2))
        rest = self.node.workloads.List(nacre_pb2.ListRequest(labels=["k=1"], page_size=2, page_token=page.next_page_token))
        self.assertEqual(["c"], [w.name for w in rest.workloads])
        self.assertFails(INVALID, lambda: self.node.workloads.List(nacre_pb2.ListRequest(labels=["k"], page_token=page.next_page_token)),
                         "page_token")

    def test_command_line(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# a comment\n\nfrom=file\nboth=file\n  alone\r\n")
            file.flush()
            self.node.cli("run", "-d", "--name", "a", "--label-file", file.name, "--label", "both=option", "-l", "x=1=2", "busybox", "sleep", "1000")
        self.assertEqual({"from": "file", "both": "option", "alone": "", "x": "1=2"}, self.node.json("inspect", "a")["labels"])
        for words, text in ((["--label", "=x"], "--label is NAME=VALUE"), (["--label-file", "/no/such"], "--label-file: read /no/such")):
            done = self.node.cli("run", *words, "busybox", check=False)
            self.assertEqual(125, done.returncode)
            self.assertIn(text, done.stderr)


class Filters(nacre_test.NodeTest):
    @classmethod
    def share(cls):
        cls.node.cli("run", "-d", "--name", "web", "--label", "env=test", "-v", "/etc/hosts:/h:ro", "busybox", "sleep", "100000")
        cls.node.cli("run", "-d", "--name", "webber", "--label", "env=test", "--label", "tier=1", "--network", "none", "busybox", "sleep", "100000")
        cls.node.cli("run", "--name", "three", "busybox", "sh", "-c", "exit 3", check=False)
        cls.node.cli("run", "--name", "zero", "busybox", "true")
        cls.node.cli("pause", "webber")

    def names(self, *words):
        return self.node.cli("ps", "--format", "{{.Names}}", *words).stdout.split()

    def test_filters(self):
        digits = self.node.json("inspect", "web")["id"]
        image = self.node.json("inspect", "web")["containers"][0]["image_id"]
        network = self.node.json("inspect", "web")["network"]
        for filters, expected in (
                ([], ["web", "webber"]), (["name=web"], ["web", "webber"]), (["name=^web$"], ["web"]), (["name=/web$"], ["web"]),
                (["name=^web$", "name=^webber$"], ["web", "webber"]), ([f"id={digits[:8]}"], ["web"]),
                (["label=env"], ["web", "webber"]), (["label=env=test", "label=tier=1"], ["webber"]), (["label=env=no"], []),
                (["status=exited"], ["three", "zero"]), (["status=paused"], ["webber"]), (["status=paused", "status=exited"], ["webber", "three", "zero"]),
                (["exited=3"], ["three"]), (["exited=0", "exited=3"], ["three", "zero"]), (["exited=0", "name=three"], []),
                (["ancestor=busybox"], ["web", "webber"]), (["ancestor=busybox:latest"], ["web", "webber"]), (["ancestor=busybox:1"], []),
                (["ancestor=" + image.split(":")[-1][:12]], ["web", "webber"]), (["ancestor=docker.io/library/busybox"], ["web", "webber"]),
                ([f"network={network}", "name=^web$"], ["web"]), (["network=none"], ["webber"]), (["volume=/h"], ["web"]),
                (["volume=/etc/hosts"], ["web"]), (["pod=webber"], ["webber"])):
            words = [w for f in filters for w in ("--filter", f)]
            self.assertEqual(expected, self.names(*words), filters)
        self.assertEqual(["zero"], self.names("-l"))
        self.assertEqual(["three", "zero"], self.names("-n", "2"))
        self.assertEqual(["webber"], self.names("-l", "-f", "label=env"))
        self.assertEqual(digits + "\n", self.node.cli("ps", "-q", "-f", "name=^web$").stdout)

    def test_refused(self):
        for words, text in ((["--filter", "nome=x"], "--filter nome=x: it is one of name=REGEX"), (["--filter", "name"], "--filter name: "),
                            (["--filter", "status=gone"], "--filter status=gone: it is one of created"),
                            (["--filter", "exited=x"], "--filter exited=x: an exit code is"),
                            (["--filter", "name=("], "--filter name=(: no regular expression"), (["-n", "0"], "--last is a number"),
                            (["--format", "{{.NoSuch}}"], "--format: position 4: NoSuch: there is no such name"),
                            (["--format", "{{.Names | upper}}"], "pipes are not known"),
                            (["--filter", "label==x"], "labels[0]")):
            done = self.node.cli("ps", *words, check=False)
            self.assertEqual((125, ""), (done.returncode, done.stdout), words)
            self.assertIn(text, done.stderr)

    def test_templates(self):
        out = self.node.cli("ps", "-a", "--format", "table {{.ID}}\\t{{.Names}}\\t{{.Image}}\\t{{.Status}}\\t{{.Label \"env\"}}").stdout.splitlines()
        self.assertRegex(out[0], r"^CONTAINER ID +NAMES +IMAGE +STATUS +env")
        self.assertRegex(out[1], r"^[0-9a-f]{16} +web +busybox +Up .* test$")
        self.assertRegex(out[2], r"^[0-9a-f]{16} +webber +busybox +Up .*\(Paused\) +test$")
        self.assertRegex(out[3], r"^[0-9a-f]{16} +three +busybox +Exited \(3\) .* ago")
        out = self.node.cli("ps", "-f", "name=^web$", "--format", "{{.State}} {{.Labels}} {{.Networks}} {{.Command}} {{.CreatedAt}}").stdout
        self.assertRegex(out, r'\Arunning env=test \S+ "sleep 100000" \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC\n\Z')

    def test_inspect(self):
        pid = self.node.json("inspect", "web")["containers"][0]["pid"]
        out = self.node.cli("inspect", "--format", "{{.State.Status}} {{.State.Pid}} {{.Name}} {{.Config.Image}} {{json .Config.Labels}}", "web").stdout
        self.assertEqual(f'running {pid} /web busybox {{"env":"test"}}\n', out)
        self.assertTrue(os.path.isdir(f"/proc/{pid}"))
        out = self.node.cli("inspect", "-F", "{{.State.ExitCode}} {{.State.Running}}", "three", "zero").stdout
        self.assertEqual("3 false\n0 false\n", out)
        self.assertEqual(["web", "zero"], [w["name"] for w in self.node.json("inspect", "web", "zero")])
        document = self.node.json("inspect", "--docker", "web")
        self.assertEqual(("/h", "bind", False), tuple(document[0]["Mounts"][0][k] for k in ("Destination", "Type", "RW")))
        # What scripts of docker's users look at.
        self.addCleanup(self.node.cli, "volume", "rm", "kept")
        self.addCleanup(self.node.cli, "rm", "--force", "asked")
        self.node.cli("run", "-d", "--name", "asked", "--restart", "on-failure:3", "-v", "kept:/v", "--cap-add", "NET_RAW", "--cap-drop", "KILL",
                      "busybox", "sleep", "100000")
        document = self.node.json("inspect", "--docker", "asked")[0]
        self.assertEqual([{"Type": "volume", "Name": "kept", "Destination": "/v", "RW": True}], document["Mounts"])
        self.assertEqual(({"Name": "on-failure", "MaximumRetryCount": 3}, False, ["NET_RAW"], ["KILL"]),
                         tuple(document["HostConfig"][k] for k in ("RestartPolicy", "Privileged", "CapAdd", "CapDrop")))
        self.assertEqual((0, "linux", False), (document["RestartCount"], document["Platform"], document["State"]["OOMKilled"]))
        done = self.node.cli("inspect", "-F", "{{.Name}}", "nobody", "web", check=False)
        self.assertEqual((125, "/web\n"), (done.returncode, done.stdout))

    def test_images(self):
        out = self.node.cli("image", "ls", "--format", "table {{.Repository}}\\t{{.Tag}}\\t{{.ID}}").stdout
        self.assertRegex(out, r"\AREPOSITORY +TAG +IMAGE ID\nbusybox +latest +[0-9a-f]{12}\n\Z")
        image = self.node.json("image", "ls")[0]["id"]
        self.assertEqual(f"{image}\n", self.node.cli("image", "ls", "--no-trunc", "--format", "{{.ID}}").stdout)
        self.assertRegex(self.node.cli("image", "ls", "-q", "--short").stdout, r"\A[0-9a-f]{12}\n\Z")
        self.assertEqual("linux\n", self.node.cli("image", "inspect", "-F", "{{.Os}}", "busybox").stdout)
