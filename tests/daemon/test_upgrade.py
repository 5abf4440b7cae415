# SPDX-License-Identifier: Apache-2.0
"""A daemon of another build takes over, and the keepers of the old one go on as that build, in place."""
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import unittest

import grpc

import elf
import host
import images
import nacre_test
import steps
from nacre_test import instance_pb2, nacre_pb2, pb, runtime_pb2
from steps import container

Code = grpc.StatusCode
PODS = 15 if nacre_test.SANITIZED else 100
FDCHAN_MAGIC = 0x6e616366


def build_id(path):
    """The GNU build-id, and where it stands in the file."""
    with open(path, "rb") as f:
        data = f.read()
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0"
    at = data.index(note) + len(note)
    return data[at:at + 20], at


def other_build(folder):
    """The same program as another build: a copy whose build-id differs, so that the two can be told apart by name and id."""
    path = os.path.join(folder, "nacre-next")
    shutil.copy(nacre_test.BINARY, path)
    was, at = build_id(path)
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(bytes(b ^ 0x5a for b in was))
    return path


def inode(path):
    status = os.stat(path)
    return status.st_dev, status.st_ino


class UpgradeNode(nacre_test.Node):
    """A node whose daemon can be started from one of two builds."""

    def __init__(self, env=None, config="", start=True):
        self.binary = nacre_test.BINARY
        super().__init__(f"libexec: {os.path.join(nacre_test.BUILD, 'libexec', 'nacre')}\n" + config, env=env, start=start)
        self.other = other_build(self.dir)

    def command(self):
        return [self.binary] + super().command()[1:]

    def runs(self, pid, binary):
        try:
            return inode(f"/proc/{pid}/exe") == inode(binary)
        except OSError:
            return False

    def all_keepers(self):
        """{pid: start time} of whatever build. Not their children, which may show the same program: a clone before its exec,
        and the next program that a keeper tries before it goes on as that."""
        top = self.cgroup()
        groups = [os.path.join(top, c) for c in host.cgroups(top) if os.path.basename(c) == "keeper"]
        pids = {p for g in groups for p in host.cgroup_pids(g) if host.leads_its_group(p)}
        return {p: host.start_time(p) for p in pids if self.runs(p, nacre_test.BINARY) or self.runs(p, self.other)}

    def until_upgraded(self, keepers, binary=None):
        """Until each of these runs the build; they are the same processes."""
        binary = binary or self.binary
        nacre_test.until(lambda: all(self.runs(p, binary) for p in keepers), 60, "every keeper of the new build")
        now = self.all_keepers()
        for pid, start in keepers.items():
            assert now.get(pid) == start, f"keeper {pid} is another process"

    def keeper_dir(self):
        """Where the sockets of the keeper of the only instance are."""
        only, = os.listdir(os.path.join(self.run, "i"))
        return os.path.join(self.run, "i", only)


class UpgradeTest(steps.StepsTest):
    IMAGES = ("busybox", "probe")

    @classmethod
    def setUpClass(cls):
        cls.node = None

    @classmethod
    def tearDownClass(cls):
        pass

    def begin(self, prepare=None, **kwargs):
        """prepare(node): before its daemon is started."""
        self.node = UpgradeNode(start=False, **kwargs)
        self.addCleanup(self.end)
        if prepare:
            prepare(self.node)
        self.node.start()
        for name in self.IMAGES:
            images.ensure(self.node, name)
        return self.node

    def setUp(self):
        pass

    def end(self):
        node, self.node = self.node, None
        said = node.destroy()
        self.assertEqual("", said)

    def counter(self, name, pause=10):
        return container(image="probe", args=["lines", name, "1000000000", str(pause)])

    def count(self, name):
        """How far the log goes; every number must be there once, in order."""
        numbers = self.logs(name).split(b"\n")[:-1]
        want = [f"{name.rpartition('/')[2]} {n}".encode() for n in range(1, len(numbers) + 1)]
        if numbers != want:
            at = next(i for i, (a, b) in enumerate(zip(numbers, want)) if a != b)
            self.fail(f"{name}: line {at + 1} is {numbers[max(at - 1, 0):at + 3]}")
        return len(numbers)

    def identities(self):
        """{name: (pid, start time)} of every first process."""
        shown = self.all()
        return {n: (w.containers[0].pid, host.start_time(w.containers[0].pid)) for n, w in shown.items()
                if w.containers and w.containers[0].pid}

    def replace(self, number=signal.SIGKILL, binary=None):
        self.node.send_signal(number)
        self.node.wait()
        self.node.binary = binary or self.node.other
        self.node.start(60)

    def check_counting(self, names):
        counts = {n: self.count(n) for n in names}
        # It goes on; how fast is the machine's affair.
        for name in names:
            nacre_test.until(lambda n=name: self.count(n) > counts[n], 60, f"a further line of {name}")


class Pods(UpgradeTest):
    def test_many_pods_with_open_streams(self):
        node = self.begin()
        names = [f"pod-{n}" for n in range(PODS)]
        calls = [node.runtime.RunPod.future(runtime_pb2.RunPodRequest(
            meta=runtime_pb2.Meta(name=n), containers=[self.counter(n, 200)])) for n in names]
        for c in calls:
            self.assertEqual("running", c.result(120).containers[0].state)
        self.cell("cell", self.counter("cell"))
        names.append("cell")
        before, keepers = self.identities(), node.all_keepers()
        self.assertEqual(PODS + 1, len(keepers))
        followed, ran = self.follow(names[0]), self.run_exec(names[1])
        nacre_test.until(lambda: followed.text and ran.text, 60, "open streams")

        for number, binary in ((signal.SIGKILL, node.other), (signal.SIGKILL, nacre_test.BINARY)):
            self.replace(number, binary)
            node.until_upgraded(keepers)
            self.assertEqual(before, self.identities())
        for stream in (followed, ran):
            stream.join(60)
            self.assertIn(stream.code, (Code.UNAVAILABLE, Code.CANCELLED))
        self.check_counting(names)
        self.assertEqual({""}, {w.keeper_note for w in self.all().values()})
        # They are as good as new: exec, stop, and an end that is told.
        answers = list(begin(self.node.workloads.Exec, nacre_pb2.ExecRequest(
            target=names[2], command=["/probe", "lines", "x", "3", "0"])))
        self.assertEqual(b"x 1\nx 2\nx 3\n", b"".join(a.stdout for a in answers))
        for name in names[:3] + ["cell"]:
            self.assertEqual(137, self.stop(name).exit_code)
            self.count(name)

    def follow(self, name):
        return Stream(self.node.workloads.Logs(nacre_pb2.LogsRequest(target=name, follow=True)), lambda m: m.data)

    def run_exec(self, name):
        return Stream(begin(self.node.workloads.Exec, nacre_pb2.ExecRequest(
            target=name, command=["/probe", "lines", "x", "1000000000", "10"])), lambda m: m.stdout)


def begin(method, request):
    """An exec whose client has no more to say."""
    return method(iter([request]) if isinstance(method, grpc.StreamStreamMultiCallable) else request)


class Stream:
    """A stream of the API, read in the background: what came, and how it ended."""

    def __init__(self, call, part):
        self.text, self.code, self.call = b"", None, call
        self.thread = threading.Thread(target=self.read, args=(part,), daemon=True)
        self.thread.start()

    def read(self, part):
        try:
            for message in self.call:
                self.text += part(message)
            self.code = Code.OK
        except grpc.RpcError as e:
            self.code = e.code()

    def join(self, seconds):
        self.thread.join(seconds * nacre_test.SLOWNESS)


class Depth(UpgradeTest):
    def test_nested_three_deep(self):
        node = self.begin()
        for path in ("a", "a/b", "a/b/c"):
            self.spawn(path)
        for name in ("a/x", "a/b/x", "a/b/c/x", "x"):
            self.cell(name, self.counter("x"))
        self.cell("a/b/c/ends", container("sh", "-c", "read x; exit 7", stdin=True))
        before, keepers = self.identities(), node.all_keepers()
        self.assertEqual(4, len(keepers))
        self.replace(signal.SIGTERM)
        node.until_upgraded(keepers)
        self.assertEqual(before, self.identities())
        self.check_counting(["a/x", "a/b/x", "a/b/c/x", "x"])
        node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target="a/b/c/ends", data=b"go\n"))
        self.assertEqual(7, self.wait("a/b/c/ends").exit_code)
        # New ones are made by keepers that were exchanged, of the build that they are now.
        self.spawn("a/b/c/d")
        self.cell("a/b/c/d/y")
        self.assertEqual(b"deep\n", self.exec("a/b/c/d/y", "echo", "deep")[0])
        added = set(node.all_keepers()) - set(keepers)
        self.assertEqual([True], [node.runs(p, node.other) for p in added])
        # The ends of keepers are still told to those above.
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="a/b"))
        self.assertEqual({"a", "a/x", "x"}, set(self.all()) - {n for n, w in self.all().items() if w.state == "failed"
                                                                or n.startswith("a/b")})
        nacre_test.until(lambda: len(node.all_keepers()) == 2, 60, "the end of the nested keepers")


class Ends(UpgradeTest):
    def test_no_exit_code_is_lost(self):
        node = self.begin()
        count = 24
        for n in range(count):
            self.cell(f"e-{n}", container("sh", "-c", f"sleep {0.3 + 0.04 * n}; echo last words; exit {n + 1}"))
        keepers = node.all_keepers()
        for binary in (node.other, nacre_test.BINARY, node.other):
            self.replace(signal.SIGKILL, binary)
            node.until_upgraded(keepers)
        for n in range(count):
            self.assertEqual(n + 1, self.wait(f"e-{n}").exit_code, n)
            self.assertEqual(b"last words\n", self.logs(f"e-{n}"))

    def test_an_end_that_was_told_is_kept(self):
        node = self.begin()
        self.pod("p", container("sh", "-c", "exit 3", name="one"), container("sleep", "100000", name="two"))
        nacre_test.until(lambda: self.inspect("p").containers[0].state == "exited")
        keepers = node.all_keepers()
        self.replace()
        node.until_upgraded(keepers)
        shown = self.inspect("p")
        self.assertEqual([("exited", 3), ("running", 0)], [(c.state, c.exit_code) for c in shown.containers])
        self.assertEqual(3, self.stop("p").exit_code)


    def test_a_user_namespace_is_kept(self):
        node = self.begin()
        node.cli("run", "-d", "--name", "p", "--userns", "auto", "busybox", "sleep", "100000")
        node.cli("cell", "--name", "c", "--userns", "auto", "busybox", "sleep", "100000")
        keepers = node.all_keepers()
        self.replace()
        node.until_upgraded(keepers)
        for name in ("p", "c"):
            inside = host.read(f"/proc/{self.inspect(name).containers[0].pid}/uid_map").split()
            self.assertEqual([*inside, "0"], node.cli("exec", name, "sh", "-c", "cat /proc/self/uid_map; id -u").stdout.split())
            self.assertNotEqual("0", inside[1])


class Replace(UpgradeTest):
    def test_replace_takes_over(self):
        node = self.begin()
        self.pod("p", self.counter("p"))
        before, keepers = self.identities(), node.all_keepers()
        old = node.process
        # A call that the old one still answers, and a daemon that may not take over.
        waiting = node.workloads.Wait.future(nacre_pb2.WaitRequest(target="p"))
        refused = subprocess.run(node.command(), capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(1, refused.returncode)
        self.assertIn("another daemon", refused.stderr)
        node.binary = node.other
        node.launch("--replace")
        node.wait_ready(60)
        self.assertEqual(0, old.wait(60))
        self.assertIn(waiting.code(), (Code.UNAVAILABLE, Code.CANCELLED))
        node.until_upgraded(keepers)
        self.assertEqual(before, self.identities())
        self.check_counting(["p"])

    def test_replace_that_cannot_serve_ends_nobody(self):
        node = nacre_test.Node()
        self.addCleanup(node.destroy)
        done = subprocess.run([*node.command(), "--replace", "--root", "/proc/none"], capture_output=True, text=True,
                              timeout=60 * nacre_test.SLOWNESS, check=False)
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertIn("/proc/none", done.stderr)
        self.assertTrue(node.alive)
        self.assertEqual(node.pid, node.info.Info(nacre_pb2.InfoRequest()).pid)

    def test_replace_of_nobody(self):
        node = self.begin()
        node.kill()
        node.launch("--replace")
        node.wait_ready(60)
        self.assertEqual({}, self.all())


class Keeper:
    """What the parent of a keeper can ask it, asked by us."""

    def __init__(self, folder):
        self.channel = grpc.insecure_channel("unix:" + os.path.join(folder, "rpc.sock"))
        self.stub = pb["instance_pb2_grpc"].InstanceServiceStub(self.channel)
        self.channel_socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel_socket.connect(os.path.join(folder, "fd.sock"))

    def upgrade(self, path):
        """Answers with the error."""
        token = int.from_bytes(os.urandom(7), "little") + 1
        with open(path, "rb") as f:
            self.channel_socket.sendmsg([struct.pack("<IIQ", FDCHAN_MAGIC, 0, token)],
                                        [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", f.fileno()))])
        try:
            self.stub.Upgrade(instance_pb2.UpgradeRequest(exe_token=token, version="test"), timeout=60)
        except grpc.RpcError as e:
            return e
        return None

    def close(self):
        self.channel.close()
        self.channel_socket.close()


class Refusals(UpgradeTest):
    def test_what_is_no_keeper_is_refused(self):
        node = self.begin()
        self.pod("p", self.counter("p"))
        before, keepers = self.identities(), node.all_keepers()
        keeper = Keeper(node.keeper_dir())
        self.addCleanup(keeper.close)
        script = os.path.join(node.dir, "script")
        with open(script, "w", encoding="ascii") as f:
            f.write("no program at all\n")
        os.chmod(script, 0o755)
        for path, words in ((script, "Exec format error"), ("/bin/busybox", "exit status"),
                            (os.path.join(node.dir, "config.yaml"), "Permission denied")):
            error = keeper.upgrade(path)
            self.assertIsNotNone(error, path)
            self.assertIn(words, error.details())
        with self.assertRaises(grpc.RpcError) as raised:
            keeper.stub.Upgrade(instance_pb2.UpgradeRequest(exe_token=7))
        self.assertEqual(Code.INVALID_ARGUMENT, raised.exception.code())
        self.assertTrue(all(node.runs(p, nacre_test.BINARY) for p in keepers))
        self.assertEqual(before, self.identities())
        self.check_counting(["p"])

    def test_one_that_somebody_else_exchanges(self):
        """The daemon connects again, as after a restart, and has the keeper come back to its own build."""
        node = self.begin()
        self.pod("p", self.counter("p"))
        self.spawn("a")
        self.cell("a/c", self.counter("c"))
        self.cell("d", self.counter("d"))
        before, keepers = self.identities(), node.all_keepers()
        folders = [os.path.join(node.run, "i", i) for i in os.listdir(os.path.join(node.run, "i"))]
        for folder in folders + [os.path.join(node.run, "node")]:
            keeper = Keeper(folder)
            self.assertEqual(Code.UNAVAILABLE, keeper.upgrade(node.other).code())
            keeper.close()
        nacre_test.until(lambda: node.log().count("a keeper is connected again") >= 3, 60, "new connections")
        node.until_upgraded(keepers)
        self.assertEqual(before, self.identities())
        self.check_counting(["p", "a/c", "d"])
        self.assertEqual({"ready", "running"}, {w.state for w in self.all().values()})
        self.assertEqual(b"y 1\n", self.exec("p", "/probe", "lines", "y", "1", "0")[0])
        self.assertEqual(137, self.stop("p").exit_code)

    @unittest.skipUnless(elf.holds(nacre_test.BINARY, b"NACRE_FAILPOINT"), "needs a build with -Dfaults=true")
    def test_one_that_somebody_else_makes_too_new(self):
        """Without a common protocol it is left alone, as after a restart: listed, and stopped by its cgroup."""
        # The keeper of the node and that of the pod say hello; the third is the one after the exchange.
        node = self.begin(env={"NACRE_FAILPOINT": "upgrade.protocol@3=error:71"})
        self.pod("p", self.counter("p"))
        before = self.identities()
        keeper = Keeper(node.keeper_dir())
        self.addCleanup(keeper.close)
        self.assertEqual(Code.UNAVAILABLE, keeper.upgrade(node.other).code())
        nacre_test.until(lambda: "too far apart" in self.inspect("p").keeper_note, 60, "the note")
        self.assertEqual("running", self.inspect("p").state)
        self.assertEqual(before, self.identities())
        self.check_counting(["p"])
        self.remove("p", force=True)
        self.assertEqual({}, self.all())

    def test_an_open_exec_puts_it_off(self):
        node = self.begin()
        shown = self.pod("p", container("sleep", "100000"))
        keepers = node.all_keepers()
        keeper = Keeper(node.keeper_dir())
        self.addCleanup(keeper.close)
        request = instance_pb2.ExecRequest(id=shown.containers[0].id, argv=["sh", "-c", "echo here; sleep 100000"])
        call = begin(keeper.stub.Exec, request)
        self.assertEqual(b"here\n", next(call).stdout)
        error = keeper.upgrade(node.other)
        self.assertEqual(Code.ABORTED, error.code())
        self.assertIn("exec", error.details())
        self.replace()
        pod = next(p for p in keepers if b"keeper p" in open(f"/proc/{p}/cmdline", "rb").read())
        rest = {p: s for p, s in keepers.items() if p != pod}
        node.until_upgraded(rest)
        self.assertTrue(node.runs(pod, nacre_test.BINARY))
        # It is used as it is, meanwhile.
        self.assertEqual(b"old\n", self.exec("p", "echo", "old")[0])
        call.cancel()
        node.until_upgraded(keepers)
        self.assertEqual(b"new\n", self.exec("p", "echo", "new")[0])

    @unittest.skipUnless(elf.holds(nacre_test.BINARY, b"NACRE_FAILPOINT"), "needs a build with -Dfaults=true")
    def test_a_failure_leaves_it_as_it_was(self):
        for point in ("upgrade.write", "upgrade.exec"):
            node = self.begin(env={"NACRE_KEEPER_FAILPOINT": f"{point}=error:5"})
            self.pod("p", self.counter("p"))
            before, keepers = self.identities(), node.all_keepers()
            self.replace()
            nacre_test.until(lambda: self.inspect("p").keeper_note, 60, "the note")
            self.assertIn("Input/output error", self.inspect("p").keeper_note)
            self.assertTrue(all(node.runs(p, nacre_test.BINARY) for p in keepers), point)
            self.assertEqual(before, self.identities())
            self.check_counting(["p"])
            self.assertEqual(137, self.stop("p").exit_code)
            self.end_early()

    def end_early(self):
        self.doCleanups()

    @unittest.skipUnless(elf.holds(nacre_test.BINARY, b"NACRE_FAILPOINT"), "needs a build with -Dfaults=true")
    def test_too_far_apart(self):
        node = self.begin()
        self.pod("p", self.counter("p"))
        self.cell("c", self.counter("c"))
        before, keepers = self.identities(), node.all_keepers()
        node.kill()
        node.binary = node.other
        node.start(60, env={"NACRE_FAILPOINT": "upgrade.protocol=error:1"})
        shown = self.all()
        self.assertEqual({"p": "running", "c": "running"}, {n: w.state for n, w in shown.items()})
        for w in shown.values():
            self.assertIn("too far apart", w.keeper_note)
        self.assertEqual(before, self.identities())
        self.assertTrue(all(node.runs(p, nacre_test.BINARY) for p in keepers))
        self.check_counting(["p", "c"])
        with self.assertRaises(grpc.RpcError) as raised:
            self.exec("p", "/probe", "x")
        self.assertEqual(Code.FAILED_PRECONDITION, raised.exception.code())
        # Nobody tells their exit codes: they are lost with a reason.
        for name in ("p", "c"):
            gone = self.stop(name)
            self.assertEqual(("failed", 137), (gone.state, gone.exit_code))
            self.assertTrue(gone.reason)
        for pid, start in before.values():
            nacre_test.until(lambda p=pid, s=start: host.start_time(p) != s, 60, "the end of what was stopped")
        self.remove("p")
        self.remove("c")
        self.assertEqual({}, self.all())


if __name__ == "__main__":
    unittest.main()
