# SPDX-License-Identifier: Apache-2.0
"""RunPod, and everything that users do with a pod while it lives and afterwards."""
import os
import signal
import threading
import time

import grpc

import host
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2
from steps import container, namespaces

Code = grpc.StatusCode
STDOUT, STDERR = 1, 2
# A shell as pid 1 of its namespace: without a trap, signals from inside the namespace do nothing to it.
TRAP = "trap 'echo told; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
IGNORE = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


class PodTest(steps.StepsTest):
    def ready(self, target, container="", line=b"ready\n"):
        nacre_test.until(lambda: line in self.logs(target, container), what=f"{line} of {target}")

    def listening(self, target, name, port):
        """Waits until something in the pod listens on a port."""
        wanted = f":{port:04X} "
        nacre_test.until(lambda: wanted in self.sh(target, "cat /proc/net/tcp", container=name), what=f"port {port}")


class Sharing(PodTest):
    IMAGES = ("busybox", "probe")

    def test_two_containers_talk_over_localhost(self):
        done = self.pod("shop", container(image="probe", name="web", args=["listen", "8080", "hello from web"]),
                        container("sleep", "100000", name="client"))
        self.assertEqual(["running", "running"], [c.state for c in done.containers])
        self.listening("shop", "client", 8080)
        self.assertEqual("hello from web\n", self.sh("shop", "nc -w 60 127.0.0.1 8080 </dev/null", container="client"))

    def test_probe_image_is_run_as_it_says(self):
        self.pod("p", container(image="probe", args=["exit", "42"]))
        self.assertEqual(42, self.wait("p").exit_code)

    def test_localhost_of_another_pod_is_another(self):
        web = [container(image="probe", name="web", args=["listen", "8080", "web"]), container("sleep", "100000", name="client")]
        self.pod("a", *web)
        self.pod("b")
        self.listening("a", "client", 8080)
        self.assertNotEqual(0, self.exec("b", "nc", "-w", "1", "127.0.0.1", "8080")[2])
        # Each can take the port.
        self.pod("c", *web)
        self.listening("c", "client", 8080)
        self.assertEqual("web\n", self.sh("c", "nc -w 60 127.0.0.1 8080 </dev/null", container="client"))

    def test_system_v_memory_is_shared_in_the_pod_alone(self):
        before = host.read("/proc/sysvipc/shm")
        self.pod("a", container("sleep", "100000", name="one"), container("sleep", "100000", name="two"))
        self.pod("s", container(image="probe", name="p", args=["sleep", "100000"]),
                 container(image="probe", name="set", args=["sysv-set", "4711"]))
        self.assertEqual(0, self.wait("s", "set").exit_code)
        self.assertEqual((b"sysv set\n", b"", 0), self.exec("s", "/probe", "sysv-get", "4711", container="p"))
        self.pod("t", container(image="probe", args=["sleep", "100000"]))
        out, _, code = self.exec("t", "/probe", "sysv-get", "4711")
        self.assertEqual((b"shmget ENOENT\n", 1), (out, code))
        self.assertEqual(before, host.read("/proc/sysvipc/shm"))
        self.assertEqual(1, len(self.sh("a", "cat /proc/sysvipc/shm", container="one").splitlines()))

    def test_posix_memory_is_shared_in_the_pod_alone(self):
        before = set(os.listdir("/dev/shm"))
        self.pod("a", container("sleep", "100000", name="one"), container("sleep", "100000", name="two"))
        self.pod("b")
        self.sh("a", "echo shared > /dev/shm/note", container="one")
        self.assertEqual("shared\n", self.sh("a", "cat /dev/shm/note", container="two"))
        self.assertEqual("", self.sh("b", "ls /dev/shm"))
        self.assertEqual(before, set(os.listdir("/dev/shm")))

    def test_abstract_sockets_are_of_the_pod(self):
        self.pod("a", container("sleep", "100000", name="one"), container("sleep", "100000", name="two"))
        self.assertEqual(self.sh("a", "cat /proc/net/unix", container="one"), self.sh("a", "cat /proc/net/unix", container="two"))
        self.assertNotIn(self.node.dir, self.sh("a", "cat /proc/net/unix", container="one"))

    def test_processes_are_seen_by_their_container_alone(self):
        self.pod("a", container("sleep", "100000", name="one"), container("sleep", "100001", name="two"))
        seen = self.sh("a", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", container="one")
        self.assertIn("sleep 100000", seen)
        self.assertNotIn("100001", seen)
        self.assertNotIn("keeper", seen)

    def test_hostname_is_the_pods(self):
        self.pod("named", container("sleep", "100000", name="one"), container("sleep", "100000", name="two"))
        self.assertEqual({"named\n"}, {self.sh("named", "hostname", container=c) for c in ("one", "two")})

    def test_network_host_and_none(self):
        h, n, p = (self.pod(name, network=net) for name, net in (("h", "host"), ("n", "none"), ("p", "pod")))
        own = namespaces("self")
        self.assertEqual(own["net"], namespaces(h.containers[0].pid)["net"])
        for done in (n, p):
            self.assertNotEqual(own["net"], namespaces(done.containers[0].pid)["net"])
        for space in ("pid", "mnt", "ipc", "uts", "cgroup"):
            self.assertNotEqual(own[space], namespaces(h.containers[0].pid)[space])
        self.assertEqual("lo\n", self.sh("n", "ls /sys/class/net"))
        self.assertEqual(["host", "none", "pod"], [self.inspect(t).network for t in ("h", "n", "p")])


class Starting(PodTest):
    def test_statuses_and_record(self):
        before = time.time_ns()
        done = self.pod("web", container("sleep", "100000", name="a"), container("sleep", "100000", name="b"))
        self.assertEqual(("web", "cell", ["a", "b"]), (done.name, done.kind, [c.name for c in done.containers]))
        self.assertTrue(done.kind_reason)
        shown = self.inspect("web")
        self.assertEqual((done.id, "pod", "running", "web"), (shown.id, shown.kind, shown.state, shown.instance))
        self.assertTrue(before <= shown.created_at <= shown.containers[0].started_at <= time.time_ns())
        self.assertIn("keeper", host.read(f"/proc/{shown.pid}/cmdline"))
        self.assertEqual([c.pid for c in done.containers], [c.pid for c in shown.containers])
        for c in shown.containers:
            inside = host.cgroup_pids(os.path.join(self.cgroup_dir("web"), "cell.web", c.name))
            self.assertEqual({c.pid}, inside)

    def test_no_such_program(self):
        self.failing(["/no/such/program"], 127)

    def test_not_executable(self):
        self.failing(["/etc/passwd"], 126)

    def test_name_that_is_not_in_path(self):
        self.failing(["no-such-program"], 127)

    def failing(self, command, code):
        before = self.node.baseline()
        done = self.pod("bad", container("sleep", "100000", name="good"), container(*command, name="bad"),
                        container("sleep", "100000", name="also-good"))
        good, bad, also = done.containers
        self.assertEqual(("failed", code, 0), (bad.state, bad.exit_code, bad.pid))
        self.assertIn(command[0], bad.reason)
        for other in (good, also):
            self.assertIn(other.state, ("running", "exited", "failed"))
        shown = nacre_test.until(lambda: self.settled("bad"), what="the end of the others")
        self.assertEqual("failed", shown.state)
        self.assertIn("bad", shown.reason)
        self.assertIn(command[0], shown.reason)
        self.assertEqual(code, shown.exit_code)
        self.assertEqual(code, self.wait("bad").exit_code)
        self.remove("bad")
        self.assertNoTraces(before)

    def settled(self, target):
        shown = self.inspect(target)
        ended = all(c.state in ("exited", "failed") for c in shown.containers)
        return shown if ended and shown.state in ("exited", "failed") else None

    def test_no_such_user_and_directory(self):
        for fields, word in (({"user": "nobody-knows"}, "nobody-knows"), ({"user": "0:no-such-group"}, "no-such-group")):
            done = self.pod("bad", container("true", **fields))
            self.assertEqual(("failed", 125), (done.containers[0].state, done.containers[0].exit_code))
            self.assertIn(word, done.containers[0].reason)
            self.remove("bad")

    def test_names_are_taken(self):
        self.pod("web")
        for call in (self.pod, self.cell, self.spawn):
            self.assertFails(Code.ALREADY_EXISTS, lambda c=call: c("web"), "web")
        self.stop("web")
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.pod("web"), "web")
        self.remove("web")
        self.pod("web")

    def test_the_same_name_ten_times_at_once(self):
        request = runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name="web"), containers=[container("sleep", "100000")])
        calls = [self.node.runtime.RunPod.future(request) for _ in range(10)]
        self.assertEqual([Code.ALREADY_EXISTS] * 9 + [Code.OK], sorted((c.code() for c in calls), key=lambda c: c == Code.OK))
        self.assertEqual(["web"], list(self.all()))

    def test_made_up_names(self):
        names = {self.pod("").name for _ in range(3)}
        self.assertEqual(3, len(names))
        for name in names:
            self.assertRegex(name, "^[a-z0-9-]{1,63}$")

    def test_commands_and_arguments(self):
        # busybox: no entrypoint, command "sh".
        for fields, out in (({"command": ["echo", "a"]}, "a\n"), ({"args": ["echo", "b"]}, "b\n"),
                            ({"command": ["echo", "a"], "args": ["b"]}, "a b\n"), ({}, "")):
            self.pod("c", container(*fields.get("command", []), args=fields.get("args", [])))
            self.assertEqual((0, out.encode()), (self.wait("c").exit_code, self.logs("c")))
            self.remove("c")

    def test_options_of_each_container(self):
        """Behind a "--" stand options of one container; those in front are the pod's."""
        self.node.cli("pod", "--name", "shop", "--hostname", "h", "--", "-e", "A=1", "--user", "65534", "--tmpfs", "/t", "one=busybox", "sh",
                      "-c", "echo $A $(id -u) $(hostname); exec sleep 1000", "--", "--read-only", "--cap-drop", "ALL",
                      "--health-cmd", "true", "--health-interval", "100ms", "two=busybox", "sh", "-c", "echo x > /x || exec sleep 1000")
        self.assertEqual("1 65534 h\n", nacre_test.until(lambda: self.node.cli("logs", "-c", "one", "shop").stdout, what="its log"))
        one, two = self.node.json("inspect", "shop")["containers"]
        self.assertEqual((["/t"], False, None), ([m["target"] for m in one["mounts"]], one["read_only_root"], one["health"]))
        self.assertEqual(([], True, ["ALL"], "running"), (two["mounts"], two["read_only_root"], two["security"]["cap_drop"], two["state"]))
        self.node.cli("wait", "--condition", "healthy", "shop")
        with open(f"/proc/{two['pid']}/status", encoding="ascii") as status:
            self.assertIn("CapEff:\t0000000000000000", status.read())
        for words, what in ((["--", "--no-such", "a=busybox"], "unknown option --no-such"), (["--", "-e", "A=1"], "NAME=IMAGE"),
                            (["a=busybox", "--", "--name", "x", "b=busybox"], "unknown option --name")):
            done = self.node.cli("pod", *words, check=False)
            self.assertEqual(125, done.returncode)
            self.assertIn(what, done.stderr)


    def test_in_the_place_of_another(self):
        """--replace, --pod-id-file and --quiet of `nacre pod`, as `nacre run` has them."""
        cli, path = self.node.cli, os.path.join(self.node.dir, "pod.id")
        words = "pod", "--replace", "-q", "--pod-id-file", path, "--name", "shop", "web=busybox", "sleep", "1000"
        first = cli(*words).stdout.strip()
        with open(path, encoding="ascii") as f:
            self.assertEqual(first, f.read())
        self.assertIn("pod.id is there already", cli(*words, check=False).stderr)
        self.assertEqual(first, self.inspect("shop").id)
        os.unlink(path)
        self.assertNotEqual(first, cli(*words).stdout.strip())
        os.unlink(path)
        self.assertEqual(125, cli("pod", "--pod-id-file", path, "--name", "shop", "web=busybox", check=False).returncode)
        self.assertFalse(os.path.exists(path))
        self.assertIn("--name gives", cli("pod", "--replace", "web=busybox", check=False).stderr)
        cli("rm", "-f", "shop")


class Ending(PodTest):
    def test_wait_gives_exit_codes(self):
        self.pod("w", container("sh", "-c", "exit 0", name="a"), container("sh", "-c", "sleep 0.2; exit 5", name="b"),
                 container("sh", "-c", "exit 6", name="c"))
        self.assertEqual(5, self.wait("w", "b").exit_code)
        self.assertEqual(0, self.wait("w", "a").exit_code)
        # The first that failed.
        done = self.wait("w")
        self.assertEqual(("exited", 5), (done.workload.state, done.exit_code))
        self.assertEqual([0, 5, 6], [c.exit_code for c in done.workload.containers])

    def test_wait_is_answered_at_the_end(self):
        self.pod("w", container("sh", "-c", "read x; exit 4", stdin=True))
        calls = [self.node.workloads.Wait.future(nacre_pb2.WaitRequest(target="w")) for _ in range(20)]
        time.sleep(0.2)
        self.assertFalse(any(c.done() for c in calls))
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="w", data=b"\n"))
        self.assertEqual({4}, {c.result(timeout=60).exit_code for c in calls})

    def test_signal_that_ended_it(self):
        done = self.pod("w")
        os.kill(done.containers[0].pid, signal.SIGKILL)
        shown = self.wait("w").workload.containers[0]
        self.assertEqual((137, 9, "exited"), (shown.exit_code, shown.signal, shown.state))
        self.assertGreaterEqual(shown.finished_at, shown.started_at)

    def test_stop_that_is_heeded(self):
        self.pod("s", container("sh", "-c", TRAP))
        self.ready("s")
        began = time.monotonic()
        shown = self.stop("s", 100000)
        self.assertLess(time.monotonic() - began, 60)
        self.assertEqual(("exited", 9), (shown.state, shown.exit_code))
        self.assertEqual(b"ready\ntold\n", self.logs("s"))

    def test_stop_that_is_ignored(self):
        self.pod("s", container("sh", "-c", IGNORE))
        self.ready("s")
        began = time.monotonic()
        shown = self.stop("s", 400)
        self.assertTrue(0.35 < time.monotonic() - began < 60)
        self.assertEqual(("exited", 137, 9), (shown.state, shown.exit_code, shown.containers[0].signal))

    def test_stop_at_once(self):
        done = self.pod("s", container("sh", "-c", TRAP))
        self.ready("s")
        shown = self.stop("s")
        self.assertEqual(137, shown.exit_code)
        self.assertNotIn(b"told", self.logs("s"))
        self.assertIsNone(host.process(done.containers[0].pid))
        # Stopping what has ended is fine, and changes nothing.
        again = self.stop("s", 1000)
        self.assertEqual((shown.id, shown.state, shown.containers), (again.id, again.state, again.containers))

    def test_second_stop_kills_sooner(self):
        self.pod("s", container("sh", "-c", IGNORE))
        self.ready("s")
        slow = self.node.workloads.Stop.future(nacre_pb2.StopRequest(target="s", grace_ms=60000))
        nacre_test.until(lambda: self.inspect("s").state == "stopping", what="the stop")
        self.assertEqual(137, self.stop("s", 0).exit_code)
        self.assertEqual(137, slow.result(timeout=50).workload.exit_code)

    def test_remove(self):
        before = self.node.baseline()
        self.pod("r")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.remove("r"), "r", "running")
        self.stop("r")
        self.remove("r")
        self.assertFails(Code.NOT_FOUND, lambda: self.inspect("r"), "target")
        self.assertNoTraces(before)

    def test_remove_by_force(self):
        before = self.node.baseline()
        done = self.pod("r", container("sh", "-c", IGNORE))
        self.remove(done.id, force=True)
        self.assertIsNone(host.process(done.containers[0].pid))
        self.assertEqual({}, self.all())
        self.assertNoTraces(before)

    def test_remove_ends_the_calls_on_it(self):
        self.pod("r", container("sh", "-c", "echo ready; sleep 100000"))
        self.ready("r")
        wait = self.node.workloads.Wait.future(nacre_pb2.WaitRequest(target="r"))
        logs = self.node.workloads.Logs(nacre_pb2.LogsRequest(target="r", follow=True))
        self.assertEqual(b"ready\n", next(logs).data)
        shell = self.node.exec(nacre_pb2.ExecRequest(target="r", command=["sleep", "100001"]))
        time.sleep(0.1)
        self.remove("r", force=True)
        self.assertIn(wait.code(), (Code.OK, Code.ABORTED))
        for stream in (logs, shell):
            try:
                list(stream)
            except grpc.RpcError as e:
                self.assertIn(e.code(), (Code.ABORTED, Code.UNAVAILABLE, Code.NOT_FOUND))

    def test_auto_remove(self):
        before = self.node.baseline()
        with nacre_test.Events(self.node) as events:
            self.pod("gone", container("sh", "-c", "sleep 0.2; exit 3"), auto_remove=True)
            events.wait("gone", "removed")
            self.assertEqual(3, events.wait("gone", "exited", object="workload").exit_code)
        self.assertEqual({}, self.all())
        self.assertNoTraces(before)

    def test_children_end_with_the_container(self):
        self.pod("c", container("sh", "-c", "setsid sleep 3001 & sleep 3002 & read x; true", stdin=True))
        top = self.cgroup_dir("c")
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="c", data=b"\n"))
        self.assertEqual(0, self.wait("c").exit_code)
        left = [host.read(f"/proc/{p}/cmdline") for p in host.cgroup_pids(top)]
        self.assertEqual([], [l for l in left if l.startswith("sleep")])


class Output(PodTest):
    def test_binary_and_separated(self):
        data = bytes(range(256)) * 4096
        self.pod("o", container("sh", "-c", "cat; echo -n 'error without an end' >&2", stdin=True))
        for at in range(0, len(data), 1 << 18):
            self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="o", data=data[at:at + (1 << 18)]))
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="o", close=True))
        self.wait("o")
        self.assertEqual(data, self.logs("o", stream=STDOUT))
        self.assertEqual(b"error without an end", self.logs("o", stream=STDERR))

    def test_follow(self):
        self.pod("f", container("sh", "-c", "for i in 1 2 3; do echo $i; read x; done; echo end >&2", stdin=True))
        logs = self.node.workloads.Logs(nacre_pb2.LogsRequest(target="f", follow=True))
        answers, asked = [], []
        for _ in range(3):
            answers.append(next(logs))
            asked.append(time.time_ns())
            self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="f", data=b"\n"))
        answers += logs
        self.assertEqual(b"1\n2\n3\nend\n", b"".join(a.data for a in answers))
        self.assertEqual(sorted(a.time for a in answers), [a.time for a in answers])
        # Each has the time at which it was written, which is after it was asked for.
        self.assertEqual(4, len(answers))
        self.assertTrue(all(a.time <= t <= b.time for a, t, b in zip(answers, asked, answers[1:])), (asked, answers))
        # The same for one who comes later.
        self.assertEqual(b"1\n2\n3\nend\n", self.logs("f"))

    def test_follow_tells_at_once(self):
        self.pod("f", container("sh", "-c", "while read x; do echo got $x; done", stdin=True))
        logs = self.node.workloads.Logs(nacre_pb2.LogsRequest(target="f", follow=True))
        for n in range(5):
            began = time.monotonic()
            self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="f", data=f"{n}\n".encode()))
            self.assertEqual(f"got {n}\n".encode(), next(logs).data)
            self.assertLess(time.monotonic() - began, 20)
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="f", close=True))
        self.assertEqual([], list(logs))

    def test_of_several_containers(self):
        self.pod("s", container("echo", "one", name="a"), container("echo", "two", name="b"))
        self.wait("s")
        self.assertEqual((b"one\n", b"two\n"), (self.logs("s", "a"), self.logs("s", "b")))
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.logs("s"), "container")

    def test_a_lot(self):
        self.pod("l", container("sh", "-c", "seq 1 200000"))
        self.assertEqual(0, self.wait("l").exit_code)
        self.assertEqual("".join(f"{n}\n" for n in range(1, 200001)).encode(), self.logs("l"))

    def test_long_lines(self):
        self.pod("l", container("sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; echo; head -c 70000 /dev/zero | tr '\\0' y"))
        self.wait("l")
        self.assertEqual(b"x" * 100000 + b"\n" + b"y" * 70000, self.logs("l"))

    def test_log_files_are_for_the_owner(self):
        self.pod("m", container("echo", "secret"))
        self.wait("m")
        files = [f for f in self.node.files() if f.endswith("/main.log")]
        self.assertEqual(1, len(files))
        self.assertEqual(0, os.stat(os.path.join(self.node.dir, files[0])).st_mode & 0o027)


class Exec(PodTest):
    def setUp(self):
        super().setUp()
        self.pod("x", container("sleep", "100000", env=["WHO=container", "KEEP=1"], working_dir="/tmp"))

    def test_output_and_exit_code(self):
        self.assertEqual((b"out\n", b"err\n", 7), self.exec("x", "sh", "-c", "echo out; echo err >&2; exit 7"))
        answers = self.exec_all("x", "sh", "-c", "kill -9 $$")
        self.assertEqual((137, 9), (answers[-1].exit.exit_code, answers[-1].exit.signal))

    def test_binary_and_large(self):
        out, err, code = self.exec("x", "sh", "-c", "seq 1 300000; seq 1 100000 >&2")
        self.assertEqual(0, code)
        self.assertEqual("".join(f"{n}\n" for n in range(1, 300001)).encode(), out)
        self.assertEqual("".join(f"{n}\n" for n in range(1, 100001)).encode(), err)

    def test_output_comes_as_it_is_written(self):
        answers = self.node.exec(nacre_pb2.ExecRequest(target="x", command=[
            "sh", "-c", "echo a; until [ -e /go ]; do sleep 0.05; done; echo b"]))
        self.assertEqual(b"a\n", next(answers).stdout)
        self.sh("x", "touch /go")
        self.assertEqual(b"b\n", b"".join(a.stdout for a in answers))

    def test_what_cannot_be_run(self):
        for command, code in ((["/no/such"], 127), (["no-such"], 127), (["/etc/passwd"], 126), (["/etc"], 126)):
            last = self.exec_all("x", *command)[-1].exit
            self.assertEqual(code, last.exit_code, command)
            self.assertIn(command[0], last.reason)

    def test_environment(self):
        out = self.exec("x", "env", env=["WHO=exec", "NEW=a b=c"])[0].decode().splitlines()
        self.assertIn("WHO=exec", out)
        self.assertIn("KEEP=1", out)
        self.assertIn("NEW=a b=c", out)
        self.assertIn("WHO=container", self.exec("x", "env")[0].decode().splitlines())

    def test_directory_and_user(self):
        self.assertEqual("/tmp\n", self.sh("x", "pwd"))
        self.assertEqual("/etc\n", self.sh("x", "pwd", working_dir="/etc"))
        self.assertEqual("65534 65534\n", self.sh("x", "echo $(id -u) $(id -g)", user="nobody"))
        self.assertEqual("12 34\n", self.sh("x", "echo $(id -u) $(id -g)", user="12:34"))
        self.assertEqual("0 0\n", self.sh("x", "echo $(id -u) $(id -g)"))

    def test_inside_the_walls_of_its_container(self):
        status = dict(l.split(":\t", 1) for l in self.sh("x", "cat /proc/self/status").splitlines() if ":\t" in l)
        own = dict(l.split(":\t", 1) for l in host.read(f"/proc/{self.inspect('x').containers[0].pid}/status").splitlines()
                   if ":\t" in l)
        for key in ("CapBnd", "CapEff", "CapPrm", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp"):
            self.assertEqual(own[key], status[key], key)
        inside = self.sh("x", "for n in pid mnt net ipc uts cgroup; do readlink /proc/self/ns/$n; done").split()
        self.assertEqual(list(namespaces(self.inspect("x").containers[0].pid).values()), inside)
        self.assertIn("0::/", self.sh("x", "cat /proc/self/cgroup").splitlines())

    def test_descriptors_of_ours_stay_out(self):
        self.assertEqual("0 1 2 3", " ".join(self.sh("x", "ls /proc/self/fd").split()))

    def test_timeout(self):
        began = time.monotonic()
        answers = self.exec_all("x", "sh", "-c", "echo before; sleep 3003", timeout_ms=3000)
        self.assertLess(time.monotonic() - began, 60)
        self.assertEqual((b"before\n", 137), (b"".join(a.stdout for a in answers), answers[-1].exit.exit_code))
        nacre_test.until(lambda: not self.sleepers(3003), what="its end")

    def sleepers(self, seconds):
        return {p for p in host.cgroup_pids(self.cgroup_dir("x")) if host.read(f"/proc/{p}/cmdline") == f"sleep\0{seconds}\0"}

    def test_cancel_kills(self):
        call = self.node.exec(nacre_pb2.ExecRequest(target="x", command=["sh", "-c", "sleep 3004 & sleep 3004"]))
        nacre_test.until(lambda: len(self.sleepers(3004)) == 2, what="both")
        call.cancel()
        nacre_test.until(lambda: not self.sleepers(3004), what="the end of both")
        self.assertEqual("running", self.inspect("x").state)

    def test_deadline_kills(self):
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.node.exec(nacre_pb2.ExecRequest(target="x", command=["sleep", "3005"]), timeout=0.4))
        self.assertEqual(Code.DEADLINE_EXCEEDED, caught.exception.code())
        nacre_test.until(lambda: not self.sleepers(3005), what="its end")

    def test_only_where_it_runs(self):
        self.stop("x")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.exec("x", "true"), "x", "exited")

    def test_ends_with_its_container(self):
        call = self.node.exec(nacre_pb2.ExecRequest(target="x", command=["sleep", "3006"]))
        nacre_test.until(lambda: self.sleepers(3006), what="the exec")
        self.stop("x")
        last = list(call)[-1].exit
        self.assertEqual((137, 9), (last.exit_code, last.signal))

    def test_many_at_once(self):
        calls = [self.node.exec(nacre_pb2.ExecRequest(target="x", command=["sh", "-c", f"echo {n}; exit {n}"]))
                 for n in range(40)]
        for n, call in enumerate(calls):
            answers = list(call)
            self.assertEqual((f"{n}\n".encode(), n), (b"".join(a.stdout for a in answers), answers[-1].exit.exit_code))

    def test_the_client_that_does_not_read(self):
        call = self.node.exec(nacre_pb2.ExecRequest(target="x", command=["sh", "-c", "yes | head -c 50000000"]))
        time.sleep(0.3)
        self.assertEqual("beside\n", self.sh("x", "echo beside"))
        self.assertEqual(50000000, sum(len(a.stdout) for a in call))


class Input(PodTest):
    def test_until_the_end_of_file(self):
        self.pod("i", container("cat", stdin=True))
        for data in (b"one\n", b"\0\xff", b""):
            self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="i", data=data))
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="i", data=b"last", close=True))
        self.assertEqual(0, self.wait("i").exit_code)
        self.assertEqual(b"one\n\0\xfflast", self.logs("i"))

    def test_writing_waits_for_the_reader(self):
        self.pod("i", container("sh", "-c", "sleep 0.5; wc -c", stdin=True))
        for n in range(8):
            self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="i", data=b"x" * (1 << 19), close=n == 7),
                                           timeout=60)
        self.assertEqual(0, self.wait("i").exit_code)
        self.assertEqual(str(4 << 20).encode() + b"\n", self.logs("i"))

    def test_after_the_end(self):
        self.pod("i", container("cat", stdin=True))
        self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="i", close=True))
        self.wait("i")
        self.assertFails(Code.FAILED_PRECONDITION,
                         lambda: self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="i", data=b"x")))

    def test_not_asked_for(self):
        self.pod("i", container("sh", "-c", "readlink /proc/self/fd/0; read x || echo at its end; sleep 100000"))
        self.ready("i", line=b"at its end\n")
        self.assertEqual(b"/dev/null\nat its end\n", self.logs("i"))
        self.assertFails(Code.FAILED_PRECONDITION,
                         lambda: self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="i", data=b"x")), "stdin")


class Told(PodTest):
    def test_events_of_a_life(self):
        with nacre_test.Events(self.node) as events:
            self.pod("e", container("sh", "-c", "exit 3"))
            self.wait("e")
            self.remove("e")
            events.wait("e", "removed")
            seen = list(events.seen)
        own = [e.state for e in seen if e.name == "e" and e.object == "workload"]
        self.assertEqual(["starting", "running", "exited", "removed"], [s for s in own if s not in ("stopping", "removing")])
        self.assertEqual(sorted({e.sequence for e in seen}), [e.sequence for e in seen])
        self.assertEqual([3], [e.exit_code for e in seen if e.object == "workload" and e.state == "exited"])
        containers = [e.state for e in seen if e.object == "container"]
        self.assertEqual(["running", "exited"], [s for s in containers if s in ("running", "exited")])

    def test_events_of_one_target(self):
        self.pod("mine")
        with nacre_test.Events(self.node, "mine") as events:
            self.pod("other", container("true"))
            self.wait("other")
            self.stop("mine")
            events.wait("mine", "exited", object="workload")
        self.assertEqual(set(), {e.name.split("/")[0] for e in events.seen} - {"mine"})

    def test_list_shows_what_runs_unless_all_is_asked_for(self):
        self.pod("lives")
        self.pod("ended", container("true"))
        self.wait("ended")
        shown = [w.name for w in self.node.workloads.List(nacre_pb2.ListRequest()).workloads]
        self.assertEqual(["lives"], shown)
        self.assertEqual(["lives", "ended"], list(self.all()))

    def test_list_is_answered_while_others_start(self):
        stop = threading.Event()

        def churn():
            while not stop.is_set():
                self.pod("churn", container("true"))
                self.remove("churn", force=True)

        thread = threading.Thread(target=churn)
        thread.start()
        try:
            slowest = 0
            for _ in range(100):
                began = time.monotonic()
                self.all()
                slowest = max(slowest, time.monotonic() - began)
            self.assertLess(slowest, 20)
        finally:
            stop.set()
            thread.join()


class Order(PodTest):
    """Init containers, one after the other, before the others."""

    def pod_of(self, *sections, name="shop", options=(), check=True):
        words = ["pod", "--name", name, *options]
        for section in sections:
            words += ["--", *section]
        return self.node.cli(*words, check=check)

    def init(self, name, script):
        return ["--init-ctr", "always", "-v", "ordered:/d", name + "=busybox", "sh", "-c", script]

    def main(self, name, script="exec sleep 1000"):
        return ["-v", "ordered:/d", name + "=busybox", "sh", "-c", script]

    def setUp(self):
        super().setUp()
        self.addCleanup(self.node.cli, "volume", "rm", "ordered", check=False)
        self.addCleanup(self.node.clear)

    def states(self, name="shop"):
        return {c["name"]: (c["state"], c["exit_code"]) for c in self.node.json("inspect", name)["containers"]}

    def test_one_after_the_other(self):
        self.pod_of(self.main("web", "echo web >> /d/log; exec sleep 1000"), self.init("one", "sleep 0.3; echo one >> /d/log"),
                    self.init("two", "echo two >> /d/log"), self.main("db", "until grep -q web /d/log; do sleep 0.1; done; exec sleep 1000"))
        self.assertEqual({"web": ("running", None), "one": ("exited", 0), "two": ("exited", 0), "db": ("running", None)}, self.states())
        nacre_test.until(lambda: self.node.cli("exec", "-c", "db", "shop", "cat", "/d/log").stdout == "one\ntwo\nweb\n", what="the order")
        web, one, two, db = self.node.json("inspect", "shop")["containers"]
        self.assertEqual([False, True, True, False], [c["init_container"] for c in (web, one, two, db)])
        self.assertLessEqual(one["finished_at"], two["started_at"])
        self.assertLessEqual(two["finished_at"], min(web["started_at"], db["started_at"]))
        # Again at each start, and over a daemon that takes over.
        self.node.restart()
        self.assertEqual("running", self.node.json("inspect", "shop")["state"])
        self.node.cli("restart", "-t", "0", "shop")
        self.assertEqual("one\ntwo\nweb\none\ntwo\n", self.node.cli("exec", "-c", "db", "shop", "cat", "/d/log").stdout[:20])
        self.node.cli("stop", "-t", "0", "shop")
        self.assertEqual({("exited", 137), ("exited", 0)}, set(self.states().values()))

    def test_one_that_fails(self):
        done = self.pod_of(self.init("one", "exit 3"), self.init("two", "touch /d/two"), self.main("web"), check=False)
        self.assertEqual(3, done.returncode)
        self.assertIn("init container one ended with 3", done.stderr)
        w = self.node.json("inspect", "shop")
        self.assertEqual(("failed", 3, "the init container one ended with 3"), (w["state"], w["exit_code"], w["reason"]))
        self.assertEqual({"one": ("exited", 3), "two": ("exited", 0), "web": ("exited", 0)}, self.states())
        self.assertIn("not started", w["containers"][2]["reason"])
        self.assertIsNone(w["containers"][2]["started_at"])
        # Its policy begins with the first one.
        self.pod_of(self.init("one", "echo x >> /d/runs; [ $(wc -l < /d/runs) -ge 3 ]"), self.main("web"), name="again",
                    options=("--restart", "on-failure"), check=False)
        self.assertIn("init container one ended with 3", self.node.cli("start", "shop", check=False).stderr)
        nacre_test.until(lambda: self.node.json("inspect", "again")["state"] == "running", what="the third start")
        self.assertEqual("3\n", self.node.cli("exec", "-c", "web", "again", "sh", "-c", "wc -l < /d/runs").stdout)

    def test_one_that_cannot_be_executed(self):
        done = self.pod_of(["--init-ctr", "always", "one=busybox", "/no/such"], self.main("web"), check=False)
        self.assertEqual(127, done.returncode)
        self.assertEqual(("failed", 127), self.states()["one"])
        self.assertEqual("failed", self.node.json("inspect", "shop")["state"])

    def test_stop_while_one_runs(self):
        client = self.node.spawn_cli("pod", "--name", "shop", "--", *self.init("one", "exec sleep 1000"), "--", *self.main("web"))
        nacre_test.until(lambda: self.node.cli("inspect", "shop", check=False).returncode == 0 and
                         self.states() == {"one": ("running", None), "web": ("created", None)}, what="the init container runs")
        self.assertIn("starting", self.node.cli("ps").stdout)
        self.node.cli("stop", "-t", "0", "shop")
        self.assertEqual({"one": ("exited", 137), "web": ("exited", 0)}, self.states())
        client.communicate(timeout=60)
        # And one whose daemon dies is undone, as any start is.
        client = self.node.spawn_cli("pod", "--name", "cut", "--", *self.init("one", "exec sleep 1000"), "--", *self.main("web"))
        nacre_test.until(lambda: self.node.cli("inspect", "cut", check=False).returncode == 0 and
                         self.states("cut")["one"] == ("running", None), what="the init container runs")
        self.node.kill()
        client.communicate(timeout=60)
        self.node.start()
        nacre_test.until(lambda: self.node.cli("inspect", "cut", check=False).returncode != 0, what="undone")
        # The node has a spare keeper again behind the first start.
        self.node.cli("run", "--rm", "busybox", "true")

    def test_what_is_refused(self):
        for fields, code, field in (((True,), grpc.StatusCode.INVALID_ARGUMENT, "containers[0].init_container"),
                                    ((False, True), grpc.StatusCode.INVALID_ARGUMENT, "containers[1].init_container")):
            containers = [runtime_pb2.Container(name=f"c{i}", image="busybox", init_container=is_init,
                                                health=runtime_pb2.HealthCheck(shell="true") if len(fields) > 1 and is_init else None)
                          for i, is_init in enumerate(fields)]
            self.assertFails(code, lambda q=runtime_pb2.RunPodRequest(containers=containers): self.node.runtime.RunPod(q), field)
        self.assertIn("always", self.node.cli("pod", "--", "--init-ctr", "once", "a=busybox", check=False).stderr)

    def test_what_requires_another(self):
        """Each begins when those that it requires have come so far; what never comes fails the pod."""
        check = ("--health-cmd", "test -e /d/up", "--health-interval", "100ms", "--health-start-period", "1m", "--health-start-interval", "100ms")
        self.pod_of(["--requires", "db:healthy", "--requires", "job:completed", *self.main("web", "cp /d/up /d/seen; exec sleep 1000")],
                    [*check, *self.main("db", "sleep 0.5; echo up > /d/up; exec sleep 1000")],
                    ["--requires", "db", *self.main("job", "echo done >> /d/job")], self.init("one", "touch /d/one"))
        web, db, job, one = self.node.json("inspect", "shop")["containers"]
        self.assertEqual(["running", "running", "exited"], [c["state"] for c in (web, db, job)])
        self.assertLessEqual(one["finished_at"], db["started_at"])
        self.assertLessEqual(db["started_at"], job["started_at"])
        self.assertLessEqual(job["finished_at"], web["started_at"])
        self.assertEqual("up\n", self.node.cli("exec", "-c", "web", "shop", "cat", "/d/seen").stdout)
        self.node.cli("restart", "-t", "0", "shop")
        self.assertEqual("done\ndone\n", self.node.cli("exec", "-c", "db", "shop", "cat", "/d/job").stdout)
        for condition, script, options, said in (("completed", "exit 4", (), "container db ended with 4"), ("healthy", "exec sleep 1000", (), "without a health check"),
                                                 ("healthy", "exit 0", check, "container db ended with 0")):
            self.node.cli("rm", "-f", "bad", check=False)
            self.pod_of(["--requires", "db:" + condition, *self.main("web")], [*options, *self.main("db", script)], name="bad", check=False)
            w = self.node.json("inspect", "bad")
            self.assertIn(said, w["reason"])
            self.assertEqual(("failed", None), (w["state"], w["containers"][0]["started_at"]))
        for words, said in ((["a:x"], "none of started"), (["c"], "no other container"), (["b"], "no other container"), (["a"], "wait for each other")):
            done = self.pod_of(["--requires", "b", "a=busybox"], ["--requires", *words, "b=busybox"], name="no", check=False)
            self.assertIn(said, done.stderr)

    def test_in_a_cell(self):
        containers = [runtime_pb2.Container(name="one", image="busybox", args=["sh", "-c", "exit 0"], init_container=True),
                      runtime_pb2.Container(name="web", image="busybox", args=["sleep", "1000"])]
        self.node.runtime.RunCell(runtime_pb2.RunCellRequest(meta=runtime_pb2.Meta(name="c"), containers=containers))
        self.assertEqual({"one": ("exited", 0), "web": ("running", None)}, self.states("c"))
