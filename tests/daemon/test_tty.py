# SPDX-License-Identifier: Apache-2.0
"""`nacre run -it`, `exec -it` and `attach` by somebody who sits at a terminal: a pty with nacre as its foreground program."""
import os
import re
import signal

import images
import nacre_test
import screen
import steps
from nacre_test import nacre_pb2
from steps import container

DETACH = b"\x10\x11"
# The shell asks where the cursor is once it has shown its prompt; that nobody answers does it no harm.
PROMPT = re.compile(rb"# (\x1b\[6n)?$")


class TtyTest(steps.StepsTest):
    def screen(self, *words, **kwargs):
        return screen.Screen(nacre_test.BINARY, "--socket", self.node.socket, *words, **kwargs)

    def state(self, name):
        return self.all()[name].state if name in self.all() else None


class Run(TtyTest):
    def test_a_shell(self):
        with self.screen("run", "--rm", "-it", "--name", "s", "busybox", "sh", rows=33, columns=99) as s:
            s.until(PROMPT)
            self.assertTrue(s.is_raw())
            s.type(b"stty size; tty; echo $TERM\n")
            s.until(b"33 99\r\n/dev/pts/0\r\nxterm\r\n")
            # Job control: an interrupt ends the foreground program, not the shell.
            s.type(b"sleep 1000\n")
            s.until(b"sleep 1000\r\n")
            s.interrupt(PROMPT)
            s.resize(50, 140)
            s.type(b"while test \"$(stty size)\" != '50 140'; do sleep 0.1; done; stty size; exit 7\n")
            s.until(b"\r\n50 140\r\n")
            self.assertEqual(7, s.end())
        self.assertEqual({}, self.all())

    def test_size_from_the_first_byte(self):
        with self.screen("run", "--rm", "-it", "busybox", "stty", "size", rows=11, columns=222) as s:
            s.until(b"11 222\r\n")
            self.assertEqual(0, s.end())

    def test_output_alone(self):
        with self.screen("run", "--rm", "-t", "busybox", "sh", "-c", "test -t 1 && echo terminal") as s:
            s.until(b"terminal\r\n")
            self.assertEqual(0, s.end())

    def test_end_of_file(self):
        with self.screen("run", "--rm", "-it", "busybox", "cat") as s:
            s.keys(b"words\n")
            s.until(b"words\r\nwords\r\n")
            s.type(b"\x04")
            self.assertEqual(0, s.end())

    def test_detach_and_come_back(self):
        with self.screen("run", "-it", "--name", "d", "busybox", "sh") as s:
            s.until(PROMPT)
            s.type(b"A=kept\n")
            s.until(PROMPT)
            s.type(DETACH)
            s.until(b"left d")
            self.assertEqual(0, s.end())
        self.assertEqual("running", self.state("d"))
        with self.screen("attach", "--detach-keys", "ctrl-a,x", "d", rows=20, columns=60) as s:
            s.keys(b"echo $A; stty size\n")
            s.until(b"kept\r\n20 60\r\n")
            s.until(PROMPT)
            # Neither the keys that are not meant, nor half of those that are.
            s.type(b"cat -v\n")
            s.until(b"cat -v\r\n")
            s.type(b"\n\x10b\x01c\n")
            s.until(b"^Pb^Ac\r\n")
            s.type(b"\x04")
            s.until(PROMPT)
            s.type(b"\x01x")
            s.until(b"left d")
            self.assertEqual(0, s.end())
        with self.screen("attach", "d") as s:
            s.keys(b"exit 3\n")
            self.assertEqual(3, s.end())

    def test_signals_from_outside(self):
        for number, running in ((signal.SIGHUP, True), (signal.SIGQUIT, True), (signal.SIGTERM, False)):
            with self.screen("run", "-it", "--name", "s", "busybox", "sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done") as s:
                s.until(b"up\r\n")
                s.child.send_signal(number)
                self.assertEqual(128 + number if running else 0, s.end())
            self.assertEqual("running" if running else "exited", self.state("s"))
            self.node.clear()

    def test_stop_and_continue(self):
        with self.screen("run", "--rm", "-it", "busybox", "cat") as s:
            s.keys(b"one\n")
            s.until(b"one\r\none\r\n")
            s.child.send_signal(signal.SIGTSTP)
            nacre_test.until(s.is_as_before, what="the terminal while it is stopped")
            s.child.send_signal(signal.SIGCONT)
            nacre_test.until(s.is_raw, what="the terminal afterwards")
            s.type(b"two\n")
            s.until(b"two\r\ntwo\r\n")
            s.type(b"\x04")
            self.assertEqual(0, s.end())

    def test_what_cannot_start(self):
        with self.screen("run", "--rm", "-it", "busybox", "/no/such") as s:
            self.assertEqual(127, s.end())
            self.assertIn(b"/no/such", s.seen)


class Exec(TtyTest):
    def setUp(self):
        super().setUp()
        self.pod("x")

    def test_a_shell(self):
        with self.screen("exec", "-it", "x", "sh", rows=30, columns=90) as s:
            s.until(PROMPT)
            s.type(b"stty size; echo err >&2; exit 5\n")
            s.until(b"30 90\r\nerr\r\n")
            self.assertEqual(5, s.end())

    def test_the_reader_of_the_output_goes(self):
        """Also while the program is silent: `| head -1`."""
        nacre = f"{nacre_test.BINARY} --socket {self.node.socket}"
        for script in ("echo one; exec sleep 1000", "while echo one; do :; done"):
            with self.subTest(script=script):
                line = f"{{ {nacre} exec -it x sh -c '{script}'; echo ended $? >&2; }} | head -1"
                with screen.Screen("sh", "-c", line) as s:
                    s.until(b"one\r\n")
                    s.until(b"ended 141\r\n")
                    self.assertEqual(0, s.end())

    def test_vi(self):
        with self.screen("exec", "-it", "x", "vi", "/tmp/file") as s:
            s.until(b"/tmp/file")
            s.type(b"ihello from vi\x1b")
            s.until(b"hello from vi")
            s.type(b":wq\r")
            self.assertEqual(0, s.end())
        self.assertEqual("hello from vi\n", self.sh("x", "cat /tmp/file"))

    def test_top(self):
        with self.screen("exec", "-it", "x", "top", "-d", "1", rows=25, columns=100) as s:
            s.until(b"sleep 100000")
            s.until(b"CPU:")
            s.type(b"q")
            self.assertEqual(0, s.end())

    def test_more_than_a_screen(self):
        with self.screen("exec", "-it", "x", "seq", "20000") as s:
            s.until(b"\r\n19999\r\n20000\r\n")
            self.assertEqual(0, s.end())

    def test_detach_ends_it(self):
        with self.screen("exec", "-it", "x", "sleep", "4004") as s:
            nacre_test.until(s.is_raw, what="raw mode")
            s.type(DETACH)
            self.assertEqual(0, s.end())


class Daemon(TtyTest):
    def test_killed_beneath(self):
        """The terminal comes back with a clear message, and the workload does not notice."""
        with nacre_test.Node() as node:
            self.node = node
            images.ensure(node, "busybox")
            with self.screen("run", "--rm", "-it", "--name", "s", "busybox", "sh") as s:
                s.until(PROMPT)
                s.type(b"A=kept\n")
                s.until(PROMPT)
                node.send_signal(signal.SIGKILL)
                s.until(b"s goes on without us")
                self.assertEqual(125, s.end())
            node.wait()
            node.start()
            pod = node.workloads.Inspect(nacre_pb2.InspectRequest(target="s")).workload
            self.assertEqual(("running", True, True), (pod.state, pod.containers[0].tty, pod.containers[0].stdin))
            with self.screen("attach", "s") as s:
                s.keys(b"echo $A\n")
                s.until(b"kept\r\n")
                s.type(b"exit 4\n")
                self.assertEqual(4, s.end())
            self.assertEqual("", node.sanitizer_reports())

    def test_keeper_killed_beneath(self):
        """Then the pod does not go on, and it is said why."""
        with nacre_test.Node() as node:
            self.node = node
            images.ensure(node, "busybox")
            reason = b"its keeper was killed by signal 9"
            for words, status in ((("run", "--rm", "-it", "--name", "r", "busybox", "sh"), 137),
                                  (("attach", "a"), 137), (("exec", "-it", "e", "sh"), 125)):
                name = words[-3] if words[0] == "run" else words[-1] if words[0] == "attach" else words[2]
                if words[0] != "run":
                    node.cli("run", "-dit", "--name", name, "busybox", "sh")
                with self.subTest(words[0]), self.screen(*words) as s:
                    s.type(b"\n")
                    s.until(PROMPT)
                    os.kill(node.workloads.Inspect(nacre_pb2.InspectRequest(target=name)).workload.pid, signal.SIGKILL)
                    s.until(reason)
                    self.assertEqual(status, s.end())
            nacre_test.until(lambda: "r" not in [w.name for w in node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads],
                             what="its removal")
            self.assertEqual("", node.sanitizer_reports())
