# SPDX-License-Identifier: Apache-2.0
"""The command line as a user types it."""
import concurrent.futures
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import time
import unittest

import grpc

import host
import images
import nacre_test
from nacre_test import nacre_pb2

FAILED, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
ID = r"[0-9a-f]{16}"


class CliTest(nacre_test.NodeTest):
    def setUp(self):
        self.addCleanup(self.node.clear)

    def status(self, *words, **kwargs):
        return self.node.cli(*words, check=False, **kwargs).returncode

    def out(self, *words, **kwargs):
        return self.node.cli(*words, **kwargs).stdout

    def fails(self, *words, status=FAILED, **kwargs):
        """The one line of complaint of a command that fails."""
        done = self.node.cli(*words, check=False, **kwargs)
        self.assertEqual(status, done.returncode, done.stderr)
        self.assertRegex(done.stderr, r"\Anacre: [^\n]+\n\Z")
        return done.stderr

    def listed(self):
        return {w["name"]: w for w in self.node.json("ps", "-a")}


class Run(CliTest):
    def test_output_and_status(self):
        done = self.node.cli("run", "--rm", "busybox", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
        self.assertEqual((7, "out\n", "err\n"), (done.returncode, done.stdout, done.stderr))

    def test_statuses(self):
        for command, status in ((["true"], 0), (["false"], 1), (["sh", "-c", "exit 255"], 255), (["/no/such"], NOT_FOUND),
                                (["no-such"], NOT_FOUND), (["/etc/passwd"], NOT_EXECUTABLE)):
            self.assertEqual(status, self.status("run", "--rm", "busybox", *command), command)
        self.assertIn("no-such-image", self.fails("run", "--pull", "never", "no-such-image"))
        self.assertEqual(FAILED, self.status("run", "--rm", "--user", "nobody-there", "busybox", "true"))
        self.assertEqual({}, self.listed())

    def test_program_that_is_not_there_is_named(self):
        done = self.node.cli("run", "--rm", "busybox", "/no/such", check=False)
        self.assertRegex(done.stderr, r"\Anacre: .*/no/such.*\n\Z")

    def test_stop_signal_that_is_none_is_told(self):
        """Once, on stderr, with what is done instead; and nothing of one that is a signal."""
        for word, told in (("SIGNONSENSE", r"\Anacre: warning: container main: its image's StopSignal \"SIGNONSENSE\" is no signal; "
                                           r"it is stopped with SIGTERM\n\Z"), ("SIGRTMIN+3", r"\A\Z"), ("", r"\A\Z")):
            archive = images.make(os.path.join(self.node.dir, "stops.tar"), "--busybox", "--cmd", "true", "--stop-signal", word,
                                  "--name", "stops")
            self.node.import_image(archive, "stops")
            self.addCleanup(self.node.cli, "image", "rm", "stops", check=False)
            for words in (["run", "--rm", "stops"], ["run", "--rm", "-d", "stops"], ["cell", "stops"]):
                done = self.node.cli(*words, check=False)
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertRegex(done.stderr, told)
            self.node.clear()
            self.node.cli("image", "rm", "stops")

    def test_signal_is_128_and_its_number(self):
        client = self.node.spawn_cli("run", "--name", "killed", "busybox", "sleep", "100000")
        pid = nacre_test.until(lambda: self.pid_of("killed"), what="the pod")
        os.kill(pid, signal.SIGKILL)
        client.communicate(timeout=60)
        self.assertEqual(137, client.returncode)

    def pid_of(self, name):
        pod = self.listed().get(name)
        return pod and pod["state"] == "running" and pod["containers"][0]["pid"]

    def test_signal_to_the_client_stops_the_pod(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            client = self.node.spawn_cli("run", "--rm", "--name", "told", "busybox", "sh", "-c",
                                         "trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
            self.assertEqual(b"ready\n", client.stdout.readline())
            client.send_signal(number)
            self.assertEqual(b"told\n", client.stdout.readline())
            client.communicate(timeout=60)
            self.assertEqual(3, client.returncode)

    def test_second_signal_kills(self):
        client = self.node.spawn_cli("run", "--rm", "--name", "deaf", "busybox", "sh", "-c",
                                     "trap '' TERM INT; echo ready; while :; do sleep 0.05; done")
        self.assertEqual(b"ready\n", client.stdout.readline())
        client.send_signal(signal.SIGINT)
        nacre_test.until(lambda: self.listed()["deaf"]["state"] == "stopping", what="the stop")
        client.send_signal(signal.SIGINT)
        client.communicate(timeout=60)
        self.assertEqual(137, client.returncode)

    def test_detached_prints_the_id_alone(self):
        done = self.node.cli("run", "-d", "--name", "web", "busybox", "sleep", "100000")
        self.assertRegex(done.stdout, rf"\A{ID}\n\Z")
        self.assertEqual("", done.stderr)
        self.assertEqual("web", self.node.json("inspect", done.stdout.strip())["name"])

    def test_detached_and_failed(self):
        done = self.node.cli("run", "-d", "busybox", "/no/such", check=False)
        self.assertEqual(NOT_FOUND, done.returncode)
        self.assertIn("/no/such", done.stderr)
        # There is a record, so there is an id.
        self.assertEqual("failed", self.node.json("inspect", done.stdout.strip())["state"])

    def test_rm_leaves_nothing(self):
        self.node.cli("run", "--rm", "busybox", "true")
        before = self.node.baseline()
        for command in (["true"], ["false"], ["/no/such"], ["sh", "-c", "sleep 1000 & exit 2"]):
            self.status("run", "--rm", "busybox", *command)
        self.assertEqual({}, self.listed())
        self.assertNoTraces(before)

    def test_record_stays_without_rm(self):
        self.status("run", "--name", "kept", "busybox", "sh", "-c", "echo hello; exit 4")
        self.assertEqual((4, "exited"), (self.listed()["kept"]["exit_code"], self.listed()["kept"]["state"]))
        self.assertEqual("hello\n", self.out("logs", "kept"))
        self.node.cli("rm", "kept")
        self.assertEqual({}, self.listed())

    def test_interactive(self):
        self.assertEqual("2\n", self.out("run", "--rm", "-i", "busybox", "bc", stdin="1+1\n"))
        self.assertEqual("", self.out("run", "--rm", "busybox", "cat", stdin="not passed on"))

    def raw(self, *words, data):
        """The same in bytes."""
        return subprocess.run([nacre_test.BINARY, "--socket", self.node.socket, *words], input=data, capture_output=True,
                              check=False, timeout=60 * nacre_test.SLOWNESS)

    def test_interactive_with_binary(self):
        data = os.urandom(3 << 20)
        done = self.raw("run", "--rm", "-i", "busybox", "cat", data=data)
        self.assertEqual(data, done.stdout)

    def test_interactive_where_nobody_reads(self):
        data = b"x" * (8 << 20)
        done = self.raw("run", "--rm", "-i", "busybox", "true", data=data)
        self.assertEqual((0, b""), (done.returncode, done.stderr))

    def test_settings(self):
        out = self.out("run", "--rm", "--user", "nobody", "--env", "A=1", "--env", "FROM_HERE", "--cwd", "/tmp", "busybox",
                       "sh", "-c", "id -u; echo $A $FROM_HERE; pwd", env={"FROM_HERE": "here"})
        self.assertEqual("65534\n1 here\n/tmp\n", out)
        self.assertEqual("a b\n", self.out("run", "--rm", "--entrypoint", "echo", "busybox", "a", "b"))
        self.assertEqual("a b\n", self.out("run", "--rm", "--entrypoint", "", "busybox", "echo", "a", "b"))
        self.assertIn("required, since the image", self.fails("run", "--rm", "--entrypoint", "", "busybox"))
        own = os.readlink("/proc/self/ns/net")
        self.assertEqual(own + "\n", self.out("run", "--rm", "--network", "host", "busybox", "readlink", "/proc/self/ns/net"))
        self.assertNotEqual(own + "\n", self.out("run", "--rm", "--network", "none", "busybox", "readlink", "/proc/self/ns/net"))
        self.assertIn("network", self.fails("run", "--network", "bridge", "busybox", "true"))

    def test_options_behind_the_image_are_the_commands(self):
        self.assertEqual("--rm -d\n", self.out("run", "--rm", "busybox", "echo", "--rm", "-d"))

    def test_name_is_taken(self):
        self.node.cli("run", "-d", "--name", "web", "busybox", "sleep", "100000")
        self.assertIn("web", self.fails("run", "-d", "--name", "web", "busybox", "true"))

    def test_large_output_to_a_slow_reader(self):
        client = self.node.spawn_cli("run", "--rm", "busybox", "seq", "1", "300000")
        time.sleep(0.3)
        out, _ = client.communicate(timeout=60)
        self.assertEqual("".join(f"{n}\n" for n in range(1, 300001)).encode(), out)

    def test_reader_that_goes_away(self):
        client = self.node.spawn_cli("run", "--rm", "busybox", "yes")
        client.stdout.read(10)
        client.stdout.close()
        self.assertNotEqual(None, client.wait(timeout=60))
        client.stderr.close()
        client.stdin.close()
        nacre_test.until(lambda: not self.listed(), what="the end of the pod")


class Others(CliTest):
    def start(self, name="web", *command):
        return self.out("run", "-d", "--name", name, "busybox", *(command or ("sleep", "100000"))).strip()

    def test_ps_json(self):
        self.assertEqual([], self.node.json("ps", "-a"))
        id_ = self.start()
        self.status("run", "--name", "ended", "busybox", "sh", "-c", "exit 9")
        self.node.cli("spawn", "--name", "inst")
        self.node.cli("execute", "--keep", "--name", "exe", "true")
        rows = self.listed()
        self.assertEqual({"web", "ended", "inst", "exe"}, set(rows))
        for row in rows.values():
            self.assertEqual(set(), {"id", "name", "kind", "state", "image", "exit_code"} - set(row))
            self.assertRegex(row["id"], f"^{ID}$")
        self.assertEqual((id_, "pod", "running", "busybox", None),
                         tuple(rows["web"][k] for k in ("id", "kind", "state", "image", "exit_code")))
        self.assertEqual(("exited", 9), (rows["ended"]["state"], rows["ended"]["exit_code"]))
        self.assertEqual(("instance", "ready", None), tuple(rows["inst"][k] for k in ("kind", "state", "exit_code")))
        self.assertEqual(("executable", "exited", 0), tuple(rows["exe"][k] for k in ("kind", "state", "exit_code")))
        self.assertEqual({"web", "inst"}, {w["name"] for w in self.node.json("ps")})

    def test_ps_for_people(self):
        id_ = self.start()
        lines = self.out("ps").splitlines()
        self.assertEqual(["ID", "NAME", "KIND", "STATE", "CREATED", "IMAGE"], lines[0].split())
        self.assertEqual([id_, "web", "pod", "running"], lines[1].split()[:4])
        self.assertNotIn("\x1b", "".join(lines))
        self.assertEqual(id_ + "\n", self.out("ps", "-q"))

    def test_exec(self):
        self.start()
        done = self.node.cli("exec", "web", "sh", "-c", "echo out; echo err >&2; exit 5", check=False)
        self.assertEqual((5, "out\n", "err\n"), (done.returncode, done.stdout, done.stderr))
        self.assertEqual(137, self.status("exec", "web", "sh", "-c", "kill -9 $$"))
        self.assertEqual(NOT_FOUND, self.status("exec", "web", "/no/such"))
        self.assertEqual(NOT_EXECUTABLE, self.status("exec", "web", "/etc/passwd"))
        self.assertEqual("65534 x /tmp\n", self.out("exec", "--user", "nobody", "-e", "A=x", "-w", "/tmp", "web", "sh", "-c",
                                                    "echo $(id -u) $A $(pwd)"))
        # A variable that is not set here is not set there.
        self.assertEqual("unset\n", self.out("exec", "-e", "NACRE_TEST_UNSET", "web", "sh", "-c", "echo ${NACRE_TEST_UNSET-unset}"))
        self.assertEqual(137, self.status("exec", "--timeout", "300ms", "web", "sleep", "1000"))
        self.assertIn("nobody", self.fails("exec", "nobody", "true"))

    def test_ending_the_client_ends_the_exec(self):
        self.start()
        client = self.node.spawn_cli("exec", "web", "sh", "-c", "echo ready; exec sleep 4001")
        self.assertEqual(b"ready\n", client.stdout.readline())
        sleepers = lambda: [p for p in host.cgroup_pids(self.node.cgroup())  # noqa: E731
                            if host.read(f"/proc/{p}/cmdline") == "sleep\x004001\0"]
        nacre_test.until(sleepers, what="the program")
        client.kill()
        client.communicate()
        nacre_test.until(lambda: not sleepers(), what="the end of the program")

    def test_several_containers(self):
        self.node.cli("pod", "--name", "shop", "web=busybox", "sh", "-c", "while :; do echo hi | nc -l -p 80; done", "--",
                      "probe=busybox", "sleep", "100000")
        ask = ("exec", "--container", "probe", "shop", "sh", "-c", "nc -w 2 127.0.0.1 80 </dev/null")
        nacre_test.until(lambda: self.node.cli(*ask, check=False).stdout == "hi\n", what="the answer")
        self.assertIn("container", self.fails("exec", "shop", "true"))
        self.assertIn("container", self.fails("logs", "shop"))

    def test_logs(self):
        self.start("noisy", "sh", "-c", "echo out; echo err >&2")
        self.node.cli("wait", "noisy")
        done = self.node.cli("logs", "noisy")
        self.assertEqual(("out\n", "err\n"), (done.stdout, done.stderr))
        self.assertRegex(self.out("logs", "-t", "noisy"), r"\A\d{4}-\d\d-\d\dT\S+Z? out\n\Z")

    def test_logs_followed(self):
        self.start("slow", "sh", "-c", "echo 1; sleep 0.5; echo 2")
        self.assertEqual("1\n2\n", self.out("logs", "-f", "slow"))

    def test_wait_prints_the_exit_code(self):
        self.start("w", "sh", "-c", "sleep 0.3; exit 6")
        done = self.node.cli("wait", "w")
        self.assertEqual((0, "6\n"), (done.returncode, done.stdout))

    def test_stop_and_rm(self):
        for grace in (3, 12, 48):
            self.start("a", "sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done")
            self.start("b")
            nacre_test.until(lambda: self.out("logs", "a") == "ready\n", what="its trap")
            self.assertIn("a", self.fails("rm", "a"))
            # Long enough for the one, if not on this machine then the next; the other is deaf.
            self.node.cli("stop", "-t", f"{grace}s", "a", "b")
            codes = {n: w["exit_code"] for n, w in self.listed().items()}
            self.node.cli("rm", "a", "b")
            self.assertEqual(137, codes["b"])
            if codes["a"] == 3:
                break
        self.assertEqual({"a": 3, "b": 137}, codes)
        self.start("c")
        self.node.cli("rm", "-f", "c")
        self.assertEqual({}, self.listed())
        self.assertIn("c", self.fails("rm", "c"))

    def test_several_are_stopped_at_the_same_time(self):
        names = [f"deaf{n}" for n in range(12)]
        for name in names:
            self.start(name)
        began = time.monotonic()
        done = self.node.cli("stop", "-t", "2", "nobody", *names, "none", check=False)
        took = time.monotonic() - began
        self.assertEqual((FAILED, ["nobody", "none"]),
                         (done.returncode, [w for line in done.stderr.splitlines() for w in ("nobody", "none") if w in line]))
        self.assertEqual({137}, {w["exit_code"] for w in self.listed().values()})
        # One after the other takes 24 seconds at least.
        self.assertTrue(1.9 < took < 16, took)
        # A name that is given twice is asked twice, in order.
        self.assertIn(names[0], self.fails("rm", "-f", *names, names[0]))
        self.assertEqual({}, self.listed())

    def test_rm_goes_on_after_a_failure(self):
        self.start("a", "true")
        self.node.cli("wait", "a")
        self.assertIn("nobody", self.fails("rm", "nobody", "a"))
        self.assertEqual({}, self.listed())

    def test_inspect(self):
        id_ = self.start()
        seen = json.loads(self.out("inspect", "web"))
        self.assertEqual((id_, "web", "running"), (seen["id"], seen["name"], seen["state"]))
        self.assertEqual("sleep 100000", seen["containers"][0]["command"])
        self.assertEqual("sleep\x00100000\0", host.read(f"/proc/{seen['containers'][0]['pid']}/cmdline"))

    def test_execute(self):
        done = self.node.cli("execute", "sh", "-c", "echo out; echo err >&2; exit 8", check=False)
        self.assertEqual((8, "out\n", "err\n"), (done.returncode, done.stdout, done.stderr))
        self.assertEqual("a b\n", self.out("execute", "echo 'a b'"))
        self.assertEqual("through\n", self.out("execute", "-i", "cat", stdin="through\n"))
        self.assertEqual(137, self.status("execute", "sh", "-c", "kill -9 $$"))
        self.assertEqual(143, self.status("execute", "sh", "-c", "kill $$"))
        self.assertEqual(NOT_FOUND, self.status("execute", "/no/such"))
        self.assertEqual(NOT_EXECUTABLE, self.status("execute", "/etc/passwd"))
        self.assertEqual(137, self.status("execute", "--timeout", "300ms", "sleep", "1000"))
        self.assertEqual("65534\n", self.out("execute", "--user", "65534:65534", "id", "-u"))
        self.assertEqual({}, self.listed())

    def test_images(self):
        archive = images.make(os.path.join(self.node.dir, "x.tar"), "--busybox", "--cmd", "true")
        self.assertIn("docker.io/library/second", self.out("image", "import", archive, "--name", "second"))
        names = {n for i in self.node.json("image", "ls") for n in i["names"]}
        self.assertEqual({"docker.io/library/busybox:latest", "docker.io/library/second:latest"}, names)
        self.assertIn("second", self.out("image", "ls"))
        self.node.cli("image", "rm", "second")
        self.assertIn("second", self.fails("image", "rm", "second"))
        self.assertIn("/no/such", self.fails("image", "import", "/no/such.tar"))

    def test_import_of_a_relative_path(self):
        images.make(os.path.join(self.node.dir, "y.tar"), "--busybox", "--cmd", "true")
        done = subprocess.run([nacre_test.BINARY, "--socket", self.node.socket, "image", "import", "y.tar", "--name", "third"],
                              cwd=self.node.dir, capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        self.node.cli("image", "rm", "third")

    def test_events(self):
        client = self.node.spawn_cli("-o", "json", "events")

        def tells():
            """Events from before it has begun are not told."""
            self.node.cli("run", "--rm", "busybox", "true")
            return select.select([client.stdout], [], [], 0)[0]

        nacre_test.until(tells, what="the first event")
        self.node.cli("run", "--rm", "--name", "e", "busybox", "true")
        seen = []
        while not seen or (seen[-1]["name"], seen[-1]["state"]) != ("e", "removed"):
            seen.append(json.loads(client.stdout.readline()))
        client.send_signal(signal.SIGINT)
        client.communicate(timeout=60)
        self.assertIn("running", [e["state"] for e in seen if e["name"] == "e"])

    def test_info_version_doctor(self):
        info = self.node.json("info")
        self.assertEqual((self.node.pid, self.node.root), (info["pid"], info["root"]))
        self.assertRegex(self.out("version"), r"\d+\.\d+\.\d+")
        before = self.node.baseline()
        done = self.node.cli("doctor", check=False)
        self.assertIn(done.returncode, (0, 125, 1))
        self.assertGreater(len(done.stdout.splitlines()), 3)
        rows = [json.loads(self.node.cli("doctor", *words, "-o", "json", check=False).stdout) for words in ((), ("--kubernetes",))]
        more = {row["check"]: row for row in rows[1][len(rows[0]):]}
        self.assertEqual((True, False), (more["CRI"]["ok"], more["network of pods"]["ok"]), more)
        self.assertIn("cri.network", more["network of pods"]["cause"])
        self.assertEqual(len(host.read("/proc/swaps").splitlines()) > 1, not more["swap"]["ok"])
        self.assertNoTraces(before)


class Complaints(unittest.TestCase):
    """Without a daemon."""

    def nacre(self, *words, env=None, **kwargs):
        return subprocess.run([nacre_test.BINARY, *words], capture_output=True, text=True, check=False, timeout=100,
                              stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, **kwargs)

    def test_no_daemon(self):
        for words in (["ps"], ["run", "busybox"], ["events"], ["stop", "x"], ["image", "ls"]):
            done = self.nacre("--socket", "/no/such/socket", *words)
            self.assertEqual((FAILED, ""), (done.returncode, done.stdout))
            self.assertRegex(done.stderr, r"\Anacre: .*/no/such/socket.*nacre daemon.*\n\Z")

    def test_socket_from_the_environment(self):
        self.assertIn("/from/env", self.nacre("ps", env={"NACRE_SOCKET": "/from/env"}).stderr)
        self.assertIn("/from/option", self.nacre("--socket", "/from/option", "ps", env={"NACRE_SOCKET": "/from/env"}).stderr)

    def test_wrong_words(self):
        for words, word in ((["no-such"], "no-such"), (["run"], "run"), (["ps", "--no-such"], "--no-such"),
                            (["-o", "xml", "ps"], "xml"), (["image", "no-such"], "image"), (["stop", "-t", "soon", "x"], "soon"),
                            (["exec", "x"], "exec"), (["run", "--env"], "env")):
            done = self.nacre("--socket", "/no/such", *words)
            self.assertEqual((FAILED, ""), (done.returncode, done.stdout), words)
            self.assertRegex(done.stderr, r"\Anacre: [^\n]+\n\Z")
            self.assertIn(word, done.stderr)

    def test_help(self):
        overview = self.nacre("help")
        self.assertEqual(0, overview.returncode)
        self.assertEqual(FAILED, self.nacre().returncode)
        commands = ("run", "pod", "cell", "spawn", "execute", "exec", "ps", "tree", "inspect", "logs", "events", "wait", "stop",
                    "rm", "image import", "image export", "image ls", "image rm", "guest build", "guest ls", "guest default",
                    "guest rm", "daemon", "doctor", "info", "version", "help", "completion", "man")
        for command in commands:
            self.assertIn(command.split()[0], overview.stdout)
            told = self.nacre("help", *command.split())
            self.assertEqual((0, ""), (told.returncode, told.stderr), command)
            self.assertIn(f"nacre {command}", told.stdout)
            self.assertEqual(told.stdout, self.nacre(*command.split(), "--help").stdout, command)

    def test_doctor_asks_for_networks(self):
        names = ("TAP devices", "bridge and veth")

        def rows(prepare):
            done = subprocess.run(["unshare", "-m", "sh", "-c", f"{prepare}; exec \"$0\" doctor -o json", nacre_test.BINARY],
                                  capture_output=True, text=True, check=False, timeout=100 * nacre_test.SLOWNESS)
            return [next(row for row in json.loads(done.stdout) if row["check"] == name) for name in names]
        # Before and after a look, the links of this namespace are the same.
        links = os.listdir("/sys/class/net")
        self.assertEqual([(True, "can be made")] * 2, [(row["ok"], row["detail"]) for row in rows("true")])
        tap, bridge = rows("mount -t tmpfs none /dev/net")
        self.assertEqual((False, False, "open /dev/net/tun: No such file or directory"), (tap["ok"], tap["essential"], tap["cause"]))
        self.assertIn("CONFIG_TUN", tap["cure"])
        self.assertTrue(bridge["ok"])
        tap, bridge = rows("mount -t tmpfs none /dev/net; : >/dev/net/tun")
        self.assertEqual((False, "/dev/net/tun is something else: No such device"), (tap["ok"], tap["cause"]))
        self.assertEqual(links, os.listdir("/sys/class/net"))

    def test_doctor_sees_who_drops_what_is_forwarded(self):
        def rows(prepare):
            done = subprocess.run(["unshare", "-n", "sh", "-c", f"{prepare}; exec \"$0\" doctor -o json", nacre_test.BINARY],
                                  capture_output=True, text=True, check=False, timeout=100 * nacre_test.SLOWNESS)
            return {row["check"]: row for row in json.loads(done.stdout)}
        self.assertTrue(rows("true")["forwarding"]["ok"])
        seen = rows("nft 'add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }'")
        self.assertTrue(seen["packet filter"]["ok"])
        self.assertEqual((False, False), (seen["forwarding"]["ok"], seen["forwarding"]["essential"]))
        self.assertIn("the chain FORWARD of the table ip filter", seen["forwarding"]["cause"])
        self.assertIn("nacre+", seen["forwarding"]["cure"])

    def test_doctor_sees_drivers_and_ipv6(self):
        def rows(prepare):
            done = subprocess.run(["unshare", "-n", "sh", "-c", f"{prepare}; exec \"$0\" doctor -o json", nacre_test.BINARY],
                                  capture_output=True, text=True, check=False, timeout=100 * nacre_test.SLOWNESS)
            return {row["check"]: row for row in json.loads(done.stdout)}
        seen = rows("sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0")
        self.assertTrue(seen["IPv6"]["ok"])
        self.assertFalse(rows("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")["IPv6"]["ok"])
        for kind in ("macvlan", "ipvlan"):
            made = subprocess.run(["unshare", "-n", "sh", "-c", f"ip link add up0 type veth peer name far0 && ip link add link up0 name low0 type {kind}"],
                                  capture_output=True, check=False).returncode == 0
            self.assertEqual((made, False), (seen[kind]["ok"], seen[kind]["essential"]), seen[kind])
            self.assertEqual(not made, f"modprobe {kind}" in (seen[kind]["cure"] or ""))
        made = subprocess.run(["unshare", "-n", "nft", "add table bridge t; add chain bridge t c { type filter hook forward priority 0; }"],
                              capture_output=True, check=False).returncode == 0
        self.assertEqual(made, seen["bridge filter"]["ok"])

    def test_doctor_advises_a_kernel_for_machines(self):
        """The kernel's own word counts: distributions carry the mitigation back to older versions."""
        folder = "/sys/devices/system/cpu/vulnerabilities"

        def row(prepare):
            done = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t tmpfs none {folder}; {prepare}; exec \"$0\" doctor -o json",
                                   nacre_test.BINARY], capture_output=True, text=True, check=False, timeout=100 * nacre_test.SLOWNESS)
            return next(row for row in json.loads(done.stdout) if row["check"] == "kernel for machines")
        self.assertTrue(row(f"echo 'Mitigation: IBPB before exit to userspace' >{folder}/vmscape")["ok"])
        for prepare, word in ((f"echo Vulnerable >{folder}/vmscape", "Vulnerable"), ("true", "not known to it")):
            told = row(prepare)
            self.assertEqual((False, False), (told["ok"], told["essential"]), prepare)
            self.assertIn(word, told["cause"])
            self.assertIn("6.1.152", told["cure"])

    def test_completion_and_manual(self):
        done = self.nacre("completion", "bash")
        checked = subprocess.run(["bash", "-n"], input=done.stdout, text=True, capture_output=True, check=False)
        self.assertEqual((0, ""), (checked.returncode, checked.stderr))
        self.assertTrue(all(self.nacre("completion", s).stdout for s in ("zsh", "fish")))
        self.assertIn(".TH", self.nacre("man").stdout)

    def test_names_of_all_pages(self):
        """What a shell chooses from comes in as many pages as it takes, and not in more than anybody chooses from."""
        pages = 4

        def images_page(request, _context):
            n = int(request.page_token or 0)
            return nacre_pb2.ListImagesResponse(images=[nacre_pb2.Image(names=[f"i{n}a", f"i{n}b"])],
                                                next_page_token=str(n + 1) if n + 1 < pages else "")

        def workloads_page(request, _context):
            n = int(request.page_token or 0)
            return nacre_pb2.ListResponse(workloads=[nacre_pb2.Workload(name=f"w{n * 3000 + k}") for k in range(3000)],
                                          next_page_token=str(n + 1))

        server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        for service, answer, request, response in (
                ("ImageService", images_page, nacre_pb2.ListImagesRequest, nacre_pb2.ListImagesResponse),
                ("WorkloadService", workloads_page, nacre_pb2.ListRequest, nacre_pb2.ListResponse)):
            handler = grpc.unary_unary_rpc_method_handler(answer, request.FromString, response.SerializeToString)
            server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(f"nacre.v1.{service}", {"List": handler})])
        with tempfile.TemporaryDirectory() as folder:
            server.add_insecure_port(f"unix:{folder}/s")
            server.start()
            try:
                asked = ["--socket", f"{folder}/s", "completion", "--names"]
                # On a slow machine the time is up before the list is whole; the other one has no end.
                nacre_test.until(lambda: [f"i{n}{c}" for n in range(pages) for c in "ab"] ==
                                 self.nacre(*asked, "images").stdout.split(), what="all names")
                told = self.nacre(*asked, "workloads").stdout.split()
                self.assertEqual([f"w{n}" for n in range(len(told))], told)
                self.assertLessEqual(len(told), 20000)
            finally:
                server.stop(None).wait()

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([nacre_test.BINARY, "help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(FAILED, done.returncode)
        self.assertIn("No space left", done.stderr)


class Configuration(unittest.TestCase):
    def complaint(self, text, name="config.yaml"):
        with nacre_test.Node(config=text, start=False) as node:
            done = subprocess.run(node.command(), capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertFalse(os.path.exists(node.root), "it made something before it had read its configuration")
            self.assertRegex(done.stderr, r"\Anacre daemon: [^\n]+\n\Z")
            return done.stderr.replace(node.dir + "/", "")

    def test_errors_name_file_line_and_key(self):
        for text, want in (
                ("drain: 5s\nno-such: 1\n", r"config.yaml:2: no-such: "),
                ("log:\n  level: info\n  colour: red\n", r"config.yaml:3: log\.colour: "),
                ("\n\nlog:\n  level: loud\n", r"config.yaml:4: log\.level: .*loud.*debug"),
                ("drain: soon\n", r"config.yaml:1: drain: .*soon"),
                ("drain: 1s\ndrain: 2s\n", r"config.yaml:2: drain: .*twice"), ("log: info\n", r"config.yaml:1: log: "),
                ("drain:\n  x: 1\n", r"config.yaml:2?1?: drain"), ("cgroup: relative\n", r"config.yaml:1: cgroup: "),
                ("cgroup: /a/../b\n", r"config.yaml:1: cgroup: "), ("- a\n- b\n", r"config.yaml:1: "),
                ("{", r"config.yaml:\d+: "), ("drain: [1, 2]\n", r"config.yaml:1: drain"), ("just words\n", r"config.yaml:1: "),
                ("a: &x 1\nb: *x\n", r"config.yaml:1: a: "),
                ("\tdrain: 1s\n", r"config.yaml:1: "), ("drain: \"\xff\n", r"config.yaml:\d+: ")):
            with self.subTest(text):
                self.assertTrue(re.match("nacre daemon: " + want, self.complaint(text)), self.complaint(text))

    def test_missing_file(self):
        with nacre_test.Node(start=False) as node:
            node.config = os.path.join(node.dir, "missing.yaml")
            done = subprocess.run(node.command(), capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(1, done.returncode)
            self.assertIn("missing.yaml", done.stderr)

    def test_what_is_set_is_honoured(self):
        with nacre_test.Node(config="# a comment\nlog:\n  form: json\n  level: debug\ndrain: 1s\n") as node:
            lines = [json.loads(l) for l in node.log().splitlines()]
            self.assertTrue(any(l.get("socket") == node.socket for l in lines), lines)

    def test_usage(self):
        for words in (["--no-such"], ["word"]):
            done = subprocess.run([nacre_test.BINARY, "daemon", *words], capture_output=True, text=True, check=False, timeout=60)
            self.assertNotEqual(0, done.returncode)
            self.assertIn("nacre daemon", done.stderr)
