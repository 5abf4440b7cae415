# SPDX-License-Identifier: Apache-2.0
"""nacre under the names docker and podman: the command lines of tests/data/command-lines.tsv."""
import os
import re
import shlex
import subprocess
import tempfile

import nacre_test

LINES = os.path.join(nacre_test.ROOT, "tests", "data", "command-lines.tsv")
# Of lines with limits, where the host has no controllers of cgroup v2 to enforce them.
NO_CONTROLLER = "cgroup controller"


def lines():
    with open(LINES, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                yield line.rstrip("\n").split("\t")


class Named(nacre_test.NodeTest):
    @classmethod
    def prepare(cls):
        # The first network has the daemon open its sockets.
        cls.node.cli("network", "create", "first")
        cls.node.cli("network", "rm", "first")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        for name in ("docker", "podman"):
            os.symlink(nacre_test.BINARY, os.path.join(cls.folder.name, name))

    def setUp(self):
        self.addCleanup(self.node.clear)

    def type(self, line, **kwargs):
        """As a user would, but that the socket is told."""
        program, *words = shlex.split(line)
        words = [os.path.join(self.folder.name, "archive.tar") if w == "FILE" else w for w in words]
        return subprocess.run([os.path.join(self.folder.name, program), "--socket", self.node.socket, *words], capture_output=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, timeout=20 * nacre_test.SLOWNESS, check=False, env=self.env(), **kwargs)

    def env(self):
        """Nothing of whoever runs the tests."""
        return {**{k: v for k, v in os.environ.items() if not k.startswith("DOCKER_")}, "HOME": self.folder.name,
                "XDG_RUNTIME_DIR": self.folder.name, "TZ": "UTC"}

    def wrong(self, line, result, pattern):
        """What a line does that it should not; None: nothing."""
        try:
            done = self.type(line)
        except subprocess.TimeoutExpired:
            return f"{line} does not end"
        said = f"{line}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
        kind, _, rest = result.partition(" ")
        if kind == "waits":
            return f"{line} works now: it need not wait for {rest} (change {os.path.basename(LINES)})" if done.returncode == 0 else None
        if done.returncode == 125 and NO_CONTROLLER in done.stderr:
            return None
        status, text = {"runs": (0, done.stdout), "exits": (int(rest or 0), done.stdout), "refuses": (125, done.stderr)}[kind]
        return None if done.returncode == status and re.search(pattern, text) else f"{said}(wanted: {result}, {pattern})"

    def test_command_lines(self):
        found = [self.wrong(*entry) for entry in lines()]
        self.assertGreaterEqual(len(found), 60)
        self.assertEqual([], [w for w in found if w])

    def test_truths_of_flags(self):
        self.assertEqual("x\n", self.type("docker run --rm=true --detach=false busybox echo x").stdout)
        self.assertIn("--rm is true or false", self.type("docker run --rm=perhaps busybox echo x").stderr)

    def test_words_behind_the_image_are_its_own(self):
        done = self.type("docker run --rm busybox echo -w /x --gpus -- -h")
        self.assertEqual("-w /x --gpus -- -h\n", done.stdout, done.stderr)
        done = self.type("docker run --rm -- busybox echo -h")
        self.assertEqual("-h\n", done.stdout, done.stderr)

    def test_another_name_changes_nothing(self):
        done = self.node.cli("save", check=False)
        self.assertEqual(125, done.returncode)
        self.assertIn("use `nacre image export`", done.stderr)

    def test_synonyms(self):
        self.assertEqual(self.node.cli("image", "ls").stdout, self.node.cli("images").stdout)
        self.assertEqual("/tmp\n", self.node.cli("run", "--rm", "--workdir=/tmp", "--net", "none", "busybox", "pwd").stdout)
        done = self.node.cli("run", "--rm", "--net", "none", "busybox", "echo", "--net", "x")
        self.assertEqual("--net x\n", done.stdout)

    def test_fields_have_the_names_of_options(self):
        done = self.node.cli("run", "--rm", "--mount", "type=bind,source=/no-such,target=/x", "busybox", "true", check=False)
        self.assertEqual("nacre: --mount: there is no /no-such on the node\n", done.stderr)

    def test_what_it_cannot_it_names(self):
        for line, words in (("docker frobnicate", "unknown command `frobnicate`"), ("docker run -P busybox", "docker run: --publish-all: name each port"),
                            ("podman kube play x", "podman kube: nacre plays no manifests"), ("docker run --no-such busybox", "unknown option --no-such"),
                            ("docker run -Z busybox", "docker run: unknown option -Z"), ("docker exec -w", "docker exec: option --workdir needs a value"),
                            ("docker -H tcp://x:1 ps", "unknown option -H")):
            done = self.type(line)
            self.assertEqual((125, ""), (done.returncode, done.stdout), line)
            self.assertIn(words, done.stderr)
            self.assertEqual(1, done.stderr.count("\n"), done.stderr)
        done = self.type(f"docker -H unix://{self.node.socket} ps -q")
        self.assertEqual((0, ""), (done.returncode, done.stdout), done.stderr)
