# SPDX-License-Identifier: Apache-2.0
"""What a person sees of what runs: tree, ps, top, stats, inspect --format; compared with the kernel."""
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import unittest

from grpc import StatusCode

import host
import nacre_test
import nacre_pb2 as pb

IMAGE_COMMANDS = ["import", "export", "pull", "push", "copy", "tags", "verify", "ls", "rm", "inspect", "history", "df", "prune", "tag", "pin", "unpin"]


class Terminal:
    """nacre on a terminal of its own, so many columns wide."""

    def __init__(self, node, *words, columns=80, lines=24, env=None):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen([nacre_test.BINARY, "--socket", node.socket, *words], stdin=slave, stdout=slave,
                                        stderr=slave, start_new_session=True,
                                        env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})})
        os.close(slave)
        os.set_blocking(self.master, False)
        self.text = ""

    def read(self):
        try:
            while True:
                data = os.read(self.master, 65536)
                if not data:
                    break
                self.text += data.decode(errors="replace")
        except (BlockingIOError, OSError):
            pass
        return self.text

    def wait_for(self, pattern):
        nacre_test.until(lambda: re.search(pattern, self.read(), re.S), seconds=60, what=pattern)

    def end(self, number=None):
        if number:
            self.process.send_signal(number)
        nacre_test.until(lambda: self.read() is not None and self.process.poll() is not None, seconds=60, what="its end")
        self.read()
        os.close(self.master)
        return self.process.returncode


def plain(text):
    return re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


class LookTest(nacre_test.NodeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.busybox()

    def tearDown(self):
        self.node.clear()
        super().tearDown()

    def out(self, *words, **kwargs):
        return self.node.cli(*words, **kwargs).stdout

    def deep(self):
        """An instance, one in it, a cell in there with two processes; and a pod of two containers."""
        self.out("spawn", "--name", "a")
        self.out("spawn", "--in", "a", "--name", "b")
        self.out("cell", "--in", "a/b", "--name", "deep", "busybox", "sh", "-c", "sleep 1111 & exec sleep 2222")
        self.out("pod", "--name", "shop", "web=busybox", "sleep", "3333", "--", "db=busybox", "sleep", "4444")

    def group_of(self, name, container=None):
        """Directory of the cgroup of a cell (and its container)."""
        w = self.node.json("inspect", name)
        return host.group_below(os.path.join(host.cgroup_root(), w["cgroup"].lstrip("/")), *([] if w["kind"] in ("pod", "instance") else
                                ["cell." + name.rpartition("/")[2]]), *([container] if container else []))


class Tree(LookTest):
    def test_recursion_is_drawn(self):
        self.deep()

        def drawn():
            """Once all four sleep: a process that has just begun runs, or waits for a disk."""
            text = self.out("tree", env={"LC_ALL": "C.UTF-8"})
            return len(re.findall(r"sleep \d+ +process +sleeps", text)) == 4 and text.splitlines()

        lines = [re.sub(r"\s+\d+$", "", line) for line in nacre_test.until(drawn, what="four that sleep")]
        columns = [re.split(r"\s{2,}(?=[a-z])", line) for line in lines]
        kernel = f"(Linux {os.uname().release})"
        self.assertEqual([
            [f"node {kernel}"],
            ["├─ a", f"cell instance {kernel}", "ready"],
            ["│  └─ b", f"cell instance {kernel}", "ready"],
            ["│     └─ deep", "cell", "running"],
            ["│        └─ main", "container", "running"],
            ["│           └─ sleep 2222", "process", "sleeps"],
            ["│              └─ sleep 1111", "process", "sleeps"],
            ["└─ shop", f"cell pod {kernel}", "running"],
            ["   ├─ web", "container", "running"],
            ["   │  └─ sleep 3333", "process", "sleeps"],
            ["   └─ db", "container", "running"],
            ["      └─ sleep 4444", "process", "sleeps"]], columns)
        self.assertNotIn("sleep", self.out("tree", "--short"))
        self.assertIn("`- shop", self.out("tree", "--short", env={"LC_ALL": "C"}))

    def test_processes_are_the_kernels(self):
        self.deep()
        nacre_test.until(lambda: "sleep 1111" in self.out("tree"), what="the second process")
        tree = {e["workload"]["name"]: e for e in self.node.json("tree")}
        deep = tree["a"]["children"][0]["children"][0]
        self.assertEqual({os.uname().release}, {tree["a"]["kernel"], tree["shop"]["kernel"], deep["kernel"]})
        group = self.group_of("a/b/deep", "main")
        self.assertEqual(set(host.cgroup_pids(group)), {p["pid"] for p in deep["processes"]})
        for p in deep["processes"]:
            with open(f"/proc/{p['pid']}/cmdline", encoding="ascii") as cmdline:
                self.assertEqual(cmdline.read().replace("\0", " ").strip(), p["command"])
            with open(f"/proc/{p['pid']}/status", encoding="ascii") as text:
                status = dict(line.split(":\t", 1) for line in text.read().splitlines() if ":\t" in line)
            self.assertEqual(status["NSpid"].split()[-1], str(p["inner_pid"]))
            self.assertEqual((int(status["PPid"]), int(status["Uid"].split()[1])), (p["parent"], p["uid"]))

    def test_watch_draws_at_events(self):
        terminal = Terminal(self.node, "tree", "--watch", "--short")
        terminal.wait_for("node")
        self.out("cell", "--name", "seen", "busybox", "sleep", "1000")
        terminal.wait_for("seen.*running")
        self.node.cli("stop", "-t", "0", "seen")
        terminal.wait_for(r"seen.*\033\[Hnode(?:(?!seen).)*\033\[J")
        self.assertEqual(0, terminal.end(signal.SIGINT))
        # The screen and the cursor are given back.
        self.assertTrue(terminal.text.endswith("\033[?25h\033[?1049l"), terminal.text[-40:])

    def test_watch_does_not_poll(self):
        client = self.node.spawn_cli("tree", "--watch", "-s", "-o", "json")
        first = client.stdout.readline()
        self.assertEqual(b"[]\n", first)
        self.out("cell", "--name", "seen", "busybox", "sleep", "1000")
        nacre_test.until(lambda: b"running" in client.stdout.readline(), what="the cell")
        client.send_signal(signal.SIGTERM)
        client.communicate(timeout=60)
        self.assertEqual(0, client.returncode)


class Stats(LookTest):
    def test_cpu_is_the_kernels(self):
        self.out("cell", "--name", "busy", "busybox", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exec sleep 1000")
        # The words of the shell name it too.
        nacre_test.until(lambda: "sleep 1000" in (tree := self.out("tree")) and "while" not in tree, what="the end of its work")
        stats = self.node.json("stats", "busy")["workloads"]
        self.assertEqual(["busy"], [w["name"] for w in stats])
        with open(os.path.join(self.group_of("busy"), "cpu.stat"), encoding="ascii") as text:
            truth = dict(line.split() for line in text)
        self.assertGreater(stats[0]["cpu"]["total_us"], 1000)
        # It sleeps: nothing is added any more, but the kernel rounds user and system each time that it is asked.
        self.assertAlmostEqual(int(truth["usage_usec"]), stats[0]["cpu"]["total_us"], delta=20000)
        self.assertEqual(["main"], [c["name"] for c in stats[0]["containers"]])
        for key, name in (("memory", "memory.current"), ("pids", "pids.current"), ("io", "io.stat")):
            self.assertEqual(os.path.exists(os.path.join(self.group_of("busy"), name)), key in stats[0], key)

    def test_table(self):
        self.deep()
        lines = self.out("stats").splitlines()
        self.assertEqual(["NAME", "KIND", "TIME", "MEMORY", "LIMIT", "PIDS", "READ", "WRITTEN", "FILES"], lines[0].split())
        self.assertEqual(["a", "a/b", "a/b/deep", "shop", "web", "db"], [line.split()[0] for line in lines[1:]])
        self.assertEqual(2, len(self.out("stats", "a/b").splitlines()))
        self.assertIn("no-such", self.node.cli("stats", "no-such", check=False).stderr)

    def test_what_has_ended_has_none(self):
        self.out("cell", "--name", "short", "busybox", "true")
        self.out("wait", "short")
        self.assertEqual([], self.node.json("stats")["workloads"])
        self.assertEqual([], self.node.json("stats", "short")["workloads"])

    def test_too_many_targets(self):
        self.assertFails(StatusCode.INVALID_ARGUMENT, lambda: self.node.workloads.Stats(pb.StatsRequest(targets=["x"] * 4097)), "targets")

    def test_processes_of_one_container(self):
        self.deep()
        answer = self.node.workloads.Processes(pb.ProcessesRequest(target="shop", container="db"))
        self.assertEqual(["sleep 4444"], [p.command for p in answer.processes])
        answer = self.node.workloads.Processes(pb.ProcessesRequest(target="a"))
        self.assertEqual({("a", ""), ("a/b", ""), ("a/b/deep", "main")}, {(p.workload, p.container) for p in answer.processes})
        self.assertFails(StatusCode.INVALID_ARGUMENT, lambda: self.node.workloads.Processes(pb.ProcessesRequest(container="db")), "container")
        self.assertFails(StatusCode.NOT_FOUND, lambda: self.node.workloads.Processes(pb.ProcessesRequest(target="shop", container="x")))

    def test_command_that_is_no_text(self):
        script = """exec sh -c 'while :; do sleep 1; done' "$(printf '\\377\\033[1m')" """
        self.out("cell", "--name", "odd", "busybox", "sh", "-c", script)
        nacre_test.until(lambda: re.search(r"done \?\?\[1m", self.out("tree")), what="the process")
        self.assertNotIn("\033", self.out("tree"))


class Top(LookTest):
    def test_once_without_a_terminal(self):
        self.out("cell", "--name", "busy", "busybox", "sh", "-c", "while :; do :; done")
        self.out("cell", "--name", "idle", "busybox", "sleep", "1000")

        def idle():
            """That of the idle one, which has work to do only while it begins."""
            lines = self.out("top").splitlines()
            self.assertEqual(["NAME", "KIND", "CPU", "TIME"], lines[0].split()[:4])
            rows = {line.split()[0]: line.split()[2] for line in lines[1:]}
            self.assertEqual({"busy", "idle"}, set(rows))
            for cpu in rows.values():
                self.assertRegex(cpu, r"\d+\.\d%")
            used = [float(cpu[:-1]) for cpu in rows.values()]
            self.assertEqual(sorted(used, reverse=True), used)
            return rows["busy"] != "0.0%" and rows["idle"] == "0.0%" and list(rows) == ["busy", "idle"]

        nacre_test.until(idle, what="one that works above one that does not")

    def test_live(self):
        self.out("cell", "--name", "idle", "busybox", "sleep", "1000")
        terminal = Terminal(self.node, "top")
        terminal.wait_for(r"idle.*\033\[J.*idle.*0\.0%")
        self.assertEqual(0, terminal.end(signal.SIGTERM))
        self.assertTrue(terminal.text.endswith("\033[?25h\033[?1049l"))


class Form(LookTest):
    def test_format(self):
        self.out("pod", "--name", "shop", "web=busybox", "sleep", "1000", "--", "db=busybox", "sleep", "1000")
        shop = self.node.json("inspect", "shop")
        pids = [c["pid"] for c in shop["containers"]]
        self.assertEqual(f"shop {pids[0]} {pids[0]},{pids[1]}\n",
                         self.out("inspect", "--format", "{name} {containers[0].pid} {containers[*].pid}", "shop"))
        self.assertEqual("shop\trunning\n", self.out("ps", "--format", "{name}\\t{state}"))
        done = self.node.cli("inspect", "--format", "{name} {nam}", "shop", check=False)
        self.assertEqual((125, "", "nacre: --format: position 9: nam: there is no such name\n"),
                         (done.returncode, done.stdout, done.stderr))

    def test_rows_fit_the_terminal(self):
        self.out("cell", "--name", "a-name-that-is-rather-long-for-a-terminal", "busybox", "sleep", "1000")
        for columns in (60, 80, 200):
            for words in (["ps"], ["tree"], ["stats"], ["doctor"], ["image", "ls"]):
                terminal = Terminal(self.node, *words, columns=columns)
                terminal.end()
                self.assertLessEqual(max(len(line) for line in plain(terminal.text).splitlines()), columns, words)
        self.assertIn("a-name-that-is-rather-long-for-a-terminal", self.out("ps"))

    def test_colors_on_a_terminal_only(self):
        self.out("cell", "--name", "green", "busybox", "sleep", "1000")
        self.assertNotIn("\033", self.out("ps"))
        for env, expected in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
            terminal = Terminal(self.node, "ps", env=env)
            terminal.end()
            self.assertEqual(expected, "\033[32mrunning\033[0m" in terminal.text, env)


class Names(LookTest):
    def run_shell(self, shell, script, line):
        done = subprocess.run([*shell, script, line], capture_output=True, text=True, check=True,
                              timeout=60 * nacre_test.SLOWNESS,
                              env={**os.environ, "NACRE_SOCKET": self.node.socket, "HOME": self.node.dir,
                                   "PATH": nacre_test.BUILD + ":" + os.environ["PATH"]}, cwd=self.node.dir)
        self.assertEqual("", done.stderr)
        return [l.split("\t")[0] for l in done.stdout.splitlines() if l]

    def complete(self, line):
        """What bash offers behind the line, as it is put in the place of the word behind the last colon."""
        return self.run_shell(("bash", "-c"), """source <(nacre completion bash); COMP_LINE=$0; COMP_POINT=${#0}; compopt() { :; }
                              _nacre; printf '%s\\n' "${COMPREPLY[@]}" """, line)

    def offers(self, wanted, offered):
        """Names that the daemon knows are offered all or, where it takes longer than a person waits, not at all."""
        def whole():
            names = offered()
            self.assertIn(names, (wanted, type(wanted)()))
            return names == wanted

        nacre_test.until(whole, what=f"{wanted} as what is offered")

    def complete_fish(self, line):
        return self.run_shell(("fish", "-c"), "nacre completion fish | source; complete -C $argv[1]", line)

    def test_bash(self):
        self.deep()
        self.assertEqual(["execute", "exec"], self.complete("nacre exec"))
        self.offers(["a", "a/b", "a/b/deep", "shop"], lambda: sorted(self.complete("nacre exec ")))
        self.offers(["a", "a/b", "a/b/deep"], lambda: sorted(self.complete("nacre exec --container deep a")))
        # Behind the target stands somebody else's command.
        self.assertEqual([], self.complete("nacre exec shop a"))
        self.offers(["shop"], lambda: self.complete("nacre stop a/b s"))
        self.offers(["shop:/"], lambda: self.complete("nacre cp s"))
        self.assertEqual(["--kind"], self.complete("nacre ps --k"))
        self.assertEqual(IMAGE_COMMANDS, self.complete("nacre image "))
        nacre_test.until(lambda: "docker.io/library/busybox:latest" in self.complete("nacre run -d --name x "), what="docker.io/library/busybox:latest")
        self.offers(["shop"], lambda: self.complete(f"nacre --socket {self.node.socket} inspect s"))
        self.assertEqual(["--socket"], self.complete("nacre --so"))
        self.assertEqual(["--tail"], self.complete("nacre logs shop --ta"))
        self.assertEqual(["fish"], self.complete("nacre completion f"))
        self.offers(["latest"], lambda: self.complete("nacre run docker.io/library/busybox:la"))

    @unittest.skipUnless(shutil.which("fish"), "no fish here")
    def test_fish(self):
        self.deep()
        self.assertEqual({"execute", "exec"}, set(self.complete_fish("nacre exec")))
        names = {"a", "a/b", "a/b/deep", "shop"}
        for line in ("exec ", "exec -it -c deep ", f"--socket {self.node.socket} exec ", "-o json inspect ", "stop shop "):
            self.offers(names, lambda: set(self.complete_fish("nacre " + line)))
        # Behind the target stands somebody else's command, behind one that takes one there is nothing.
        for line in ("exec shop a/b", "exec shop ls --co", "logs shop a/", "image ls "):
            self.assertEqual(set(), {w for w in self.complete_fish("nacre " + line) if w in names or w[0] == "-"}, line)
        self.assertEqual(set(IMAGE_COMMANDS), set(self.complete_fish("nacre image ")))
        nacre_test.until(lambda: "docker.io/library/busybox:latest" in self.complete_fish("nacre image rm "), what="docker.io/library/busybox:latest")
        nacre_test.until(lambda: "config.yaml" in self.complete_fish("nacre image import con"), what="config.yaml")
        nacre_test.until(lambda: "shop:/" in self.complete_fish("nacre cp s"), what="shop:/")
        self.assertEqual(["--tail"], self.complete_fish("nacre logs shop --ta"))
        self.assertEqual(["--socket"], self.complete_fish("nacre --so"))

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh_reads_it(self):
        self.assertEqual([], self.run_shell(("zsh", "-f", "-c"), "compdef() { :; }; source <(nacre completion zsh)", ""))

    def test_names(self):
        self.deep()
        nacre_test.until(lambda: {"a", "a/b", "a/b/deep", "shop"} == set(self.out("completion", "--names", "workloads").split()),
                         what="all names")
        self.assertIn("nacre: completion: ", self.node.cli("completion", check=False).stderr)
        self.assertIn("--names", self.node.cli("completion", "--names", "x", check=False).stderr)


class Lists(LookTest):
    def test_filters(self):
        self.deep()
        self.node.cli("run", "busybox", "false", check=False)
        names = lambda *words: {w["name"] for w in self.node.json("ps", *words)}
        self.assertEqual({"a/b", "a/b/deep"}, names("a"))
        self.assertEqual({"a", "a/b", "shop"}, names("--kind", "pod", "-k", "instance"))
        self.assertEqual(1, len(names("--state", "exited")))
        self.assertEqual(set(), names("--state", "failed"))
        self.assertIn("kinds", self.node.cli("ps", "--kind", "x", check=False).stderr)

    def test_events_from_a_token(self):
        client = self.node.spawn_cli("events", "-o", "json", "--object", "workload")
        os.set_blocking(client.stdout.fileno(), False)
        text = b""

        def heard():
            nonlocal text
            self.node.cli("run", "--rm", "busybox", "true")
            text += client.stdout.read() or b""
            return text.count(b"removed") >= 2

        nacre_test.until(heard, seconds=60, what="events")
        client.send_signal(signal.SIGTERM)
        client.communicate(timeout=60)
        events = [json.loads(line) for line in text.splitlines() if line.endswith(b"}")]
        self.assertEqual({"workload"}, {e["object"] for e in events})
        client = self.node.spawn_cli("events", "-o", "json", "--object", "workload", "--since-token", events[0]["resume_token"])
        self.assertEqual(events[1], json.loads(client.stdout.readline()))
        client.send_signal(signal.SIGTERM)
        client.communicate(timeout=60)
        self.assertIn("resume_token", self.node.cli("events", "--since-token", "x", check=False).stderr)
