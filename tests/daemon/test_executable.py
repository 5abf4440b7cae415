# SPDX-License-Identifier: Apache-2.0
"""RunExecutable: one process of this system, as a shell would run it, under the node's keeper."""
import concurrent.futures
import os
import time
import unittest

import grpc

import host
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2

MIB = 1 << 20


def request(command, *args, name="", keep=False, **fields):
    return runtime_pb2.RunExecutableRequest(
        meta=runtime_pb2.Meta(name=name), keep=keep,
        executable=runtime_pb2.Executable(command=command, args=args, **fields))


def parent_of(pid):
    return int(host.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[1])


def cgroup_of(pid):
    lines = [l for l in host.read(f"/proc/{pid}/cgroup").splitlines() if l.startswith("0::")]
    return lines[0][3:] if lines else None


class ExecutableTest(nacre_test.NodeTest):
    IMAGES = ()

    def execute(self, command, *args, **fields):
        return self.node.runtime.RunExecutable(request(command, *args, **fields), timeout=100 * nacre_test.SLOWNESS)

    def sh(self, script, **fields):
        return self.execute("sh", "-c", script, **fields)

    def sleepers(self, seconds):
        """Processes of this test that run `sleep SECONDS`."""
        wanted = f"sleep\0{seconds}\0"
        return {p for p in host.cgroup_pids(host.own_cgroup()) if host.read(f"/proc/{p}/cmdline") == wanted}

    def begin(self, seconds, **fields):
        """Starts `sleep SECONDS` without waiting for its end: the future, and its pid once it runs.

        The kernel shows the process before the keeper has told the daemon of it: both must know the pid.
        """
        future = self.node.runtime.RunExecutable.future(request("sleep", str(seconds), **fields))
        pid = nacre_test.until(lambda: self.sleepers(seconds), what="the sleep").pop()
        nacre_test.until(lambda: pid in [c.pid for w in self.node.workloads.List(nacre_pb2.ListRequest()).workloads
                                         for c in w.containers], what="its pid in the list")
        return future, pid

    def names(self):
        return [w.name for w in self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads]


class Results(ExecutableTest):
    def test_output_and_exit_code(self):
        before = time.time_ns()
        done = self.sh("echo out; echo err >&2; exit 7")
        after = time.time_ns()
        self.assertEqual((b"out\n", b"err\n"), (done.stdout, done.stderr))
        self.assertEqual((7, 0, ""), (done.exit_code, done.signal, done.reason))
        self.assertFalse(done.stdout_truncated or done.stderr_truncated)
        self.assertTrue(done.id and done.name)
        self.assertGreater(done.pid, 0)
        self.assertTrue(before <= done.started_at <= done.finished_at <= after,
                        (before, done.started_at, done.finished_at, after))

    def test_command_is_split_as_systemd_does(self):
        done = self.execute("printf '%s|' a 'b  c' \"d $HOME\" e\\ f ''")
        self.assertEqual(b"a|b  c|d $HOME|e f||", done.stdout)

    def test_args_are_taken_as_they_are(self):
        done = self.execute("/usr/bin/printf", "%s|", "a b", "'q'", "$HOME", "", "\\")
        self.assertEqual(b"a b|'q'|$HOME||\\|", done.stdout)
        # With args the command is the program alone, blanks included.
        self.assertEqual(127, self.execute("echo a", "b").exit_code)

    def test_killed_by_a_signal(self):
        for number in (9, 15, 11):
            done = self.sh(f"kill -{number} $$")
            self.assertEqual((128 + number, number), (done.exit_code, done.signal))

    def test_no_such_program_is_127(self):
        for program in ("/no/such/program", "no-such-program"):
            done = self.execute(program)
            self.assertEqual((127, 0, 0), (done.exit_code, done.signal, done.pid))
            self.assertIn(program, done.reason)

    def test_not_executable_is_126(self):
        for program in ("/etc/passwd", "/etc"):
            done = self.execute(program)
            self.assertEqual((126, 0), (done.exit_code, done.pid), program)
            self.assertIn(program, done.reason)

    def test_no_such_directory_is_told(self):
        done = self.execute("true", cwd="/no/such/directory")
        self.assertEqual((125, 0), (done.exit_code, done.pid))
        self.assertIn("/no/such/directory", done.reason)

    def test_binary_output_is_exact(self):
        data = bytes(range(256)) * 1024 + b"no line feed at the end"
        done = self.execute("cat", stdin=data)
        self.assertEqual(0, done.exit_code)
        self.assertEqual(data, done.stdout)

    def test_first_four_mebibytes_and_a_flag(self):
        done = self.sh(f"head -c {4 * MIB + 1} /dev/zero; head -c {4 * MIB} /dev/zero >&2")
        self.assertEqual((4 * MIB, True), (len(done.stdout), done.stdout_truncated))
        self.assertEqual((4 * MIB, False), (len(done.stderr), done.stderr_truncated))
        self.assertEqual(0, done.exit_code)


class Settings(ExecutableTest):
    def test_user_and_group(self):
        self.assertEqual(b"65534 65533\n65533\n", self.sh("echo $(id -u) $(id -g); id -G", user="65534:65533").stdout)
        again = self.sh("echo out >/dev/stdout; echo err >/dev/stderr", user="65534")
        self.assertEqual((b"out\n", b"err\n"), (again.stdout, again.stderr))
        own = self.sh("id -u; id -g").stdout.split()
        self.assertEqual([os.geteuid(), os.getegid()], list(map(int, own)))

    def test_user_without_group(self):
        lines = self.execute("cat", "/proc/self/status", user="1234").stdout.decode().splitlines()
        status = dict(l.split(":\t", 1) for l in lines)
        self.assertEqual(["1234"] * 4, status["Uid"].split())
        self.assertEqual((["1234"] * 4, ["1234"]), (status["Gid"].split(), status["Groups"].split()))
        self.assertEqual(0, int(status["CapEff"], 16))

    def test_environment_is_path_and_home_only(self):
        names = {v.split(b"=")[0] for v in self.execute("env").stdout.splitlines()}
        self.assertEqual({b"PATH", b"HOME"}, names)

    def test_environment_as_asked_for(self):
        done = self.execute("env", env=["A=1", "B=x=y z", "EMPTY=", "PATH=/usr/bin:/bin", "HOME=/h", "A=2"])
        self.assertEqual({b"A=2", b"B=x=y z", b"EMPTY=", b"PATH=/usr/bin:/bin", b"HOME=/h"}, set(done.stdout.splitlines()))

    def test_directory(self):
        self.assertEqual(b"/\n", self.execute("pwd").stdout)
        self.assertEqual(b"/proc\n", self.execute("pwd", cwd="/proc").stdout)

    def test_standard_input(self):
        data = os.urandom(4 * MIB)
        self.assertEqual(data, self.execute("cat", stdin=data).stdout)
        self.assertEqual(b"/dev/null\n", self.execute("readlink", "/proc/self/fd/0").stdout)

    def test_input_that_nobody_reads(self):
        self.assertEqual(0, self.execute("true", stdin=b"x" * (4 * MIB)).exit_code)

    def test_nothing_of_ours_is_inherited(self):
        done = self.sh("ls /proc/self/fd | tr '\\n' ' '; echo; grep -E '^Sig(Blk|Ign)' /proc/self/status")
        lines = done.stdout.decode().splitlines()
        # 3 is the directory that ls reads.
        self.assertEqual("0 1 2 3", lines[0].strip())
        self.assertEqual([0, 0], [int(l.split()[1], 16) for l in lines[1:]])

    def test_own_session(self):
        done = self.execute("cat", "/proc/self/stat")
        fields = done.stdout.decode().rpartition(")")[2].split()
        self.assertEqual((done.pid, done.pid), (int(fields[2]), int(fields[3])))


class Life(ExecutableTest):
    def test_lives_under_the_keeper_of_the_node(self):
        future, pid = self.begin(1001)
        keeper = parent_of(pid)
        self.assertNotEqual(self.node.pid, keeper)
        self.assertIn(keeper, self.node.keepers())
        self.assertIn("nacre: keeper", host.read(f"/proc/{keeper}/cmdline"))
        shown = [w for w in self.node.workloads.List(nacre_pb2.ListRequest()).workloads if w.kind == "executable"]
        self.assertEqual([pid], [w.containers[0].pid for w in shown])
        self.node.workloads.Stop(nacre_pb2.StopRequest(target=shown[0].id))
        self.assertEqual((137, 9, pid), (future.result().exit_code, future.result().signal, future.result().pid))

    def test_own_cgroup(self):
        (one, a), (two, b) = self.begin(1002), self.begin(1003)
        groups = [cgroup_of(p) for p in (a, b, self.node.pid, parent_of(a))]
        self.assertEqual(4, len(set(groups)), groups)
        top = self.node.info.Info(nacre_pb2.InfoRequest()).cgroup
        for group in groups[:2]:
            self.assertTrue(group.lstrip("/").startswith(top.strip("/") + "/"), (group, top))
        for call in (one, two):
            call.cancel()
        nacre_test.until(lambda: not self.sleepers(1002) | self.sleepers(1003), what="the end of both")
        nacre_test.until(lambda: not os.path.exists(host.cgroup_root() + groups[0]), what="the end of the cgroup")

    def test_children_end_with_it(self):
        # They hold the pipes of its output open, one of them in a session of its own.
        done = self.sh("sleep 1004 & setsid sleep 1005 & nohup sleep 1006 >/dev/null 2>&1 & sleep 0.1; echo done")
        self.assertEqual((0, b"done\n"), (done.exit_code, done.stdout))
        self.assertEqual(set(), self.sleepers(1004) | self.sleepers(1005) | self.sleepers(1006))

    def test_timeout(self):
        began = time.monotonic()
        done = self.sh("echo before; sleep 1007", timeout_ms=3000)
        self.assertLess(time.monotonic() - began, 60)
        self.assertEqual((137, 9, b"before\n"), (done.exit_code, done.signal, done.stdout))
        self.assertIn("timeout", done.reason)
        self.assertEqual(set(), self.sleepers(1007))

    def test_deadline_kills_it(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.node.runtime.RunExecutable(request("sleep", "1008", keep=True, name="late"), timeout=0.5)
        self.assertEqual(grpc.StatusCode.DEADLINE_EXCEEDED, caught.exception.code())
        nacre_test.until(lambda: not self.sleepers(1008), what="the end of the process")
        nacre_test.until(lambda: "late" not in self.names(), what="the end of the record")

    def test_cancel_kills_it(self):
        future, _ = self.begin(1009, name="cancelled")
        self.assertTrue(future.cancel())
        nacre_test.until(lambda: not self.sleepers(1009), what="the end of the process")
        nacre_test.until(lambda: "cancelled" not in self.names(), what="the end of the record")

    def test_record_goes_unless_it_is_kept(self):
        self.execute("true", name="gone")
        self.assertNotIn("gone", self.names())
        done = self.sh("echo kept; echo error >&2; exit 3", name="kept", keep=True)
        self.assertEqual("kept", done.name)
        shown = self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="kept")).workload
        self.assertEqual((done.id, "executable", "exited", 3), (shown.id, shown.kind, shown.state, shown.exit_code))
        logs = list(self.node.workloads.Logs(nacre_pb2.LogsRequest(target="kept")))
        self.assertEqual([(1, b"kept\n"), (2, b"error\n")], sorted((l.stream, l.data) for l in logs))
        self.assertFails(grpc.StatusCode.ALREADY_EXISTS, lambda: self.execute("true", name="kept"), "kept")
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target=done.id))
        self.assertNotIn("kept", self.names())
        self.assertFails(grpc.StatusCode.NOT_FOUND,
                         lambda: self.node.workloads.Remove(nacre_pb2.RemoveRequest(target=done.id)), "target")

    def test_stop_and_wait_from_another_call(self):
        future, pid = self.begin(1010, name="stopped", keep=True)
        self.assertFails(grpc.StatusCode.FAILED_PRECONDITION,
                         lambda: self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="stopped")), "stopped")
        waiting = self.node.workloads.Wait.future(nacre_pb2.WaitRequest(target="stopped"))
        stopped = self.node.workloads.Stop(nacre_pb2.StopRequest(target="stopped", grace_ms=10000)).workload
        self.assertEqual(("exited", 143), (stopped.state, stopped.exit_code))
        self.assertEqual((143, 15), (future.result().exit_code, future.result().signal))
        self.assertEqual(143, waiting.result().exit_code)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="stopped"))

    def test_removed_by_force_while_it_runs(self):
        future, pid = self.begin(1011, name="forced")
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="forced", force=True))
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.assertIn(future.code(), (grpc.StatusCode.ABORTED, grpc.StatusCode.OK))

    def test_exec_into_it_is_refused(self):
        future, _ = self.begin(1012, name="plain")
        self.assertFails(grpc.StatusCode.INVALID_ARGUMENT,
                         lambda: list(self.node.exec(nacre_pb2.ExecRequest(target="plain", command=["true"]))),
                         "target", "executable")
        future.cancel()
        nacre_test.until(lambda: not self.sleepers(1012), what="the end of the process")

    def test_fifty_at_once(self):
        self.execute("true")
        before = self.node.baseline()
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            done = list(pool.map(lambda i: self.sh(f"sleep 2; echo {i}; exit {i}"), range(50)))
        took = time.monotonic() - began
        self.assertEqual([(i, f"{i}\n".encode()) for i in range(50)], [(d.exit_code, d.stdout) for d in done])
        self.assertEqual(50, len({d.pid for d in done}))
        self.assertLess(took, 90, "they did not run side by side")
        self.assertNoTraces(before)


class Comment(unittest.TestCase):
    def test_is_kept_with_its_record(self):
        with nacre_test.Node() as node:
            node.runtime.RunExecutable(request("true", name="noted", keep=True, comment="why ä"))
            node.restart()
            self.assertEqual("why ä", node.workloads.Inspect(nacre_pb2.InspectRequest(target="noted")).workload.comment)
            self.assertEqual("why ä", node.json("inspect", "noted")["comment"])
