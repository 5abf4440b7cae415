# SPDX-License-Identifier: Apache-2.0
"""A daemon of one's own to test: its directories, its API, its command line, and what it leaves behind.

    import nacre_test

    class Pods(nacre_test.NodeTest):
        def test_runs(self):
            self.assertEqual(self.node.cli("run", "--rm", self.busybox(), "echo", "hello").stdout, "hello\n")

The build directory is $NACRE_BUILD ("build"). NodeTest starts one daemon for the class; after its last test everything
that is left over is a failure. For daemons that are killed and started again, make a Node yourself:

    with nacre_test.Node() as node:
        node.kill()
        node.start()
"""
import collections
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import grpc

import api
import host

ROOT = api.ROOT
BUILD = os.path.normpath(os.path.join(ROOT, os.environ.get("NACRE_BUILD", "build")))
BINARY = os.path.join(BUILD, "nacre")
PROBE = os.path.join(BUILD, "tests", "probe", "probe")
ATTACK = os.path.join(BUILD, "tests", "probe", "attack")
MKIMAGE = os.path.join(ROOT, "tests", "mkimage")
SANITIZED = os.path.basename(BUILD).endswith(("asan", "tsan")) or "san" in os.environ.get("NACRE_BUILD_KIND", "")
# A sanitized build is slower than what a limit of time was thought for.
SLOWNESS = 4 if SANITIZED else 1


host.enter_cgroup()
pb = api.load(BUILD)
runtime_pb2, nacre_pb2, instance_pb2 = pb["runtime_pb2"], pb["nacre_pb2"], pb["instance_pb2"]


def until(condition, seconds=60.0, what="it"):
    """Waits until condition() is true, and returns what it returned. Only a hang reaches the limit."""
    end = time.monotonic() + seconds * SLOWNESS
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true within {seconds * SLOWNESS:.0f} s")
        time.sleep(0.02)


def settled(read, seconds=1.0):
    """What read() returns once it has stayed the same for so long: what is made ahead of need is there."""
    last, since = read(), time.monotonic()
    while time.monotonic() - since < seconds * SLOWNESS:
        time.sleep(0.02)
        now = read()
        if now != last:
            last, since = now, time.monotonic()
    return last


class CliError(AssertionError):
    def __init__(self, done):
        super().__init__(f"{' '.join(done.args)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        self.done = done


class Events:
    """What a node tells from now on, collected in the background. A context manager."""

    def __init__(self, node, target=""):
        self.seen = []
        self.call = node.events.Events(nacre_pb2.EventsRequest(target=target))
        # The answer to another call shows that this one has begun.
        node.info.Info(nacre_pb2.InfoRequest())
        self.thread = threading.Thread(target=self._collect, daemon=True)
        self.thread.start()

    def _collect(self):
        try:
            for event in self.call:
                self.seen.append(event)
        except grpc.RpcError:
            pass

    def wait(self, name, state, seconds=60.0, **fields):
        """The first event of this name and state."""
        def find():
            return next((e for e in list(self.seen) if (e.name, e.state) == (name, state)
                         and all(getattr(e, k) == v for k, v in fields.items())), None)

        return until(find, seconds, f"the event {name} {state}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call.cancel()
        self.thread.join(5)


class Node:
    """A daemon with root, run and socket below a directory of its own. A context manager: destroy() at the end."""

    def __init__(self, config="", env=None, start=True):
        self.dir = tempfile.mkdtemp(prefix="nt-")
        self.root, self.run = os.path.join(self.dir, "root"), os.path.join(self.dir, "run")
        self.socket = os.path.join(self.dir, "sock")
        self.config = os.path.join(self.dir, "config.yaml")
        self.log_path = os.path.join(self.dir, "daemon.log")
        self.env = dict(env or {})
        self.process = None
        self._channel = None
        self._notify = None
        # Nor does each node try KVM, which may take a processor for twenty seconds (test_survive.py has it).
        if "hardware:" not in config:
            config = config.replace("vm:\n", "vm:\n  hardware: no\n") if "vm:\n" in config else config + "vm:\n  hardware: no\n"
        # Nor is a pod on a network that names none (tests/network has those).
        if "network:" not in config:
            config += "network:\n  default: none\n"
        with open(self.config, "w", encoding="utf-8") as f:
            # Tests count what is there: a keeper that waits for the next pod would come and go (test_spare.py has it), and so
            # would the machine of a template (test_warm.py).
            if "templates:" not in config:
                config = config.replace("vm:\n", "vm:\n  templates: no\n", 1) if "vm:\n" in config else config + "vm:\n  templates: no\n"
            f.write(config if "spare:" in config else config + "spare: no\n")
        if start:
            try:
                self.start()
            except BaseException:
                self.destroy()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    # -- life --

    def command(self):
        return [BINARY, "daemon", "--config", self.config, "--root", self.root, "--run", self.run, "--socket", self.socket]

    def launch(self, *args, env=None):
        """Starts the daemon and does not wait for anything."""
        # A connection to the one before would wait a while until it tries again.
        self._ended()
        notify = os.path.join(self.dir, "notify")
        if os.path.exists(notify):
            os.unlink(notify)
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind(notify)
        environment = {**os.environ, **self.env, **(env or {}), "NOTIFY_SOCKET": notify}
        # A relative NACRE_SOCKET of the caller means nothing to this daemon.
        environment.pop("NACRE_SOCKET", None)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command() + list(args), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment, cwd="/")

    def start(self, seconds=60.0, **kwargs):
        """Starts it and waits until it says READY=1."""
        self.launch(**kwargs)
        self.wait_ready(seconds)

    def wait_ready(self, seconds=60.0):
        self._notify.settimeout(0.1)
        end = time.monotonic() + seconds * SLOWNESS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"the daemon ended with status {self.process.returncode}:\n{self.log()}")
            try:
                if b"READY=1" in self._notify.recv(4096).split(b"\n"):
                    return
            except TimeoutError:
                pass
        raise AssertionError(f"the daemon was not ready within {seconds * SLOWNESS:.0f} s:\n{self.log()}")

    def _ended(self):
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def send_signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=60.0):
        """The exit status of the daemon; negative where a signal ended it."""
        try:
            return self.process.wait(timeout=seconds * SLOWNESS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the daemon did not end:\n{self.log()}") from None
        finally:
            self._ended()

    def kill(self):
        """SIGKILL; workloads go on."""
        self.send_signal(signal.SIGKILL)
        return self.wait()

    def stop(self):
        """SIGTERM: drains calls, leaves workloads running."""
        self.send_signal(signal.SIGTERM)
        return self.wait()

    def restart(self, number=signal.SIGKILL):
        self.send_signal(number)
        self.wait()
        self.start()

    @property
    def pid(self):
        return self.process.pid

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        return host.read(self.log_path)

    def clear(self):
        """Removes every workload."""
        for w in self.workloads.List(nacre_pb2.ListRequest(all=True)).workloads:
            try:
                self.workloads.Remove(nacre_pb2.RemoveRequest(target=w.id, force=True))
            except grpc.RpcError as e:
                # What hung below another one went with it.
                if e.code() != grpc.StatusCode.NOT_FOUND:
                    raise

    def cgroup(self):
        """The directory of all that this node runs, as its daemon told it when it was ready; None before."""
        told = re.findall(r"\bcgroup\"?[=:]\"?([^\s\",}]+)", self.log())
        return os.path.join(host.cgroup_root(), told[-1].lstrip("/")) if told and host.cgroup_root() else None

    def ahead(self):
        """Processes that wait to be a container."""
        top = self.cgroup()
        return {p for c in host.nameless(top) for p in host.cgroup_pids(os.path.join(top, c))}

    def keepers(self):
        """Processes of this node's program in its cgroup, the daemon aside, and those that wait to be a container."""
        top = self.cgroup()
        if not top:
            return set()
        return {int(p.split()[0]) for p in host.processes_of(BINARY)} & host.cgroup_pids(top) - {self.process.pid} - self.ahead()

    def destroy(self):
        """Ends the daemon and all that it had, the hard way, and removes its directory. Returns what a sanitizer said."""
        if self.alive:
            try:
                self.clear()
            except (grpc.RpcError, AssertionError):
                pass
            self.send_signal(signal.SIGTERM)
            try:
                self.wait(5)
            except AssertionError:
                self.kill()
        self._ended()
        if self.cgroup():
            host.end_cgroup(self.cgroup())
        said = self.sanitizer_reports()
        self._remove_dir()
        return said

    def _remove_dir(self):
        for line in sorted(host.mounts(), reverse=True):
            point = line.split()[0]
            if point.startswith(self.dir + "/"):
                subprocess.run(["umount", "-l", point], check=False, capture_output=True)
        for _ in range(50):
            shutil.rmtree(self.dir, ignore_errors=True)
            if not os.path.exists(self.dir):
                return
            time.sleep(0.02)

    def sanitizer_reports(self):
        first = "ERROR: AddressSanitizer|ERROR: LeakSanitizer|WARNING: ThreadSanitizer|runtime error:"
        return "\n".join(re.findall(rf"^.*(?:{first}).*(?:\n.*){{0,30}}", self.log(), re.M))

    # -- the API --

    @property
    def channel(self):
        if self._channel is None:
            self._channel = grpc.insecure_channel("unix:" + self.socket, options=[
                ("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20),
                ("grpc.enable_retries", 0)])
        return self._channel

    @property
    def runtime(self):
        return pb["runtime_pb2_grpc"].RuntimeServiceStub(self.channel)

    @property
    def networks(self):
        return pb["nacre_pb2_grpc"].NetworkServiceStub(self.channel)

    @property
    def volumes(self):
        return pb["nacre_pb2_grpc"].VolumeServiceStub(self.channel)

    @property
    def clouds(self):
        return pb["nacre_pb2_grpc"].CloudServiceStub(self.channel)

    @property
    def workloads(self):
        return pb["nacre_pb2_grpc"].WorkloadServiceStub(self.channel)

    @property
    def events(self):
        return pb["nacre_pb2_grpc"].EventServiceStub(self.channel)

    @property
    def images(self):
        return pb["nacre_pb2_grpc"].ImageServiceStub(self.channel)

    @property
    def info(self):
        return pb["nacre_pb2_grpc"].NodeServiceStub(self.channel)

    def exec(self, request, *inputs, **kwargs):
        """Exec with everything that is sent known before; then the call is half-closed."""
        return self.workloads.Exec(iter([request, *inputs]), **kwargs)

    # -- the command line --

    def cli(self, *args, check=True, seconds=60, stdin=None, env=None):
        """nacre --socket … ARGS, with output as text; a status other than 0 raises CliError unless check is false."""
        done = subprocess.run([BINARY, "--socket", self.socket, *args], capture_output=True, text=True, errors="replace",
                              timeout=seconds * SLOWNESS, check=False, env={**os.environ, **(env or {})},
                              **({"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}))
        if check and done.returncode != 0:
            raise CliError(done)
        return done

    def json(self, *args, **kwargs):
        return json.loads(self.cli("-o", "json", *args, **kwargs).stdout)

    def spawn_cli(self, *args, **kwargs):
        """The same without waiting: a Popen with pipes."""
        return subprocess.Popen([BINARY, "--socket", self.socket, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **kwargs)

    def import_image(self, path, name):
        """Over the API; the Image."""
        image = None
        for answer in self.images.Import(nacre_pb2.ImportRequest(path=path, name=name)):
            image = answer.image if answer.HasField("image") else image
        return image

    # -- what it leaves behind --

    def await_empty_staging(self):
        """Until the files of what was imported, pulled or removed are gone: the store answers first, and deletes behind."""
        until(lambda: not os.listdir(self.root + "/staging"), what="an empty staging directory")

    def fds(self):
        """The daemon's descriptors by kind, without the numbers that differ at every look."""
        kinds = collections.Counter()
        folder = f"/proc/{self.pid}/fd"
        for fd in os.listdir(folder):
            try:
                target = os.readlink(os.path.join(folder, fd))
            except OSError:
                continue
            # Of a /proc that is mounted nowhere: the file of a process has its number in front.
            target = re.sub(rf"^/{self.pid}/", "/self/", target)
            kinds[re.sub(r"(socket|pipe|net|mnt|pid|ipc|uts|cgroup):\[\d+\]", r"\1:[]", target)] += 1
        return kinds

    def snapshot(self, files=True):
        """Everything that a workload can leave behind, as a set of lines: compare two with traces().

        Processes are those of the test's own cgroup, the tester and the daemon aside.
        """
        seen = {f"mount {m}" for m in host.mounts()} | {f"link {l}" for l in host.links()}
        if self.alive:
            seen |= {f"mount of the daemon {m}" for m in host.mounts(self.pid)}
            seen |= {f"descriptor {name} x{n}" for name, n in self.fds().items()}
        own = host.own_cgroup()
        if own:
            # A keeper may have one process ready for the next cell, and no more.
            ahead = host.nameless(own)
            layers = collections.Counter(os.path.dirname(c) for c in ahead if os.path.basename(c).startswith("cell."))
            seen |= {f"{n} groups ahead of need in {layer}" for layer, n in layers.items() if n > 1}
            seen |= {f"cgroup {c}" for c in host.cgroups(own) - ahead}
            known = {os.getpid(), os.getppid(), self.process.pid if self.process else 0}
            known |= {p for c in ahead for p in host.cgroup_pids(os.path.join(own, c))}
            seen |= {f"process {p}{host.authority(p)}" for p in map(host.process, host.cgroup_pids(own) - known) if p}
        if files:
            seen |= {f"file {f}" for f in self.files()}
        return seen

    def programs(self):
        """Processes of the test's cgroup that run a program of ours, and their children before they run another."""
        own = host.own_cgroup()
        return {p for p in host.cgroup_pids(own) if host.read(f"/proc/{p}/comm").startswith("nacre")} if own else set()

    def baseline(self, **kwargs):
        """A snapshot once nothing changes any more: what was removed a moment ago may still be on its way out.

        That two looks show the same is not enough where a daemon or a keeper has not come to it yet: none of them may have
        anything to do, or be at it, while the second look is taken.
        """
        seen = []

        def same():
            rest = host.at_rest(self.programs())
            seen.append(self.snapshot(**kwargs))
            if len(seen) > 1 and seen[-1] == seen[-2] and rest is not None and rest == host.at_rest(self.programs()):
                return True
            time.sleep(0.08)
            return False

        until(same, what="a moment of rest")
        return seen[-1]

    def files(self):
        """Files and directories below root and run, the databases' own companions aside."""
        found = set()
        for top in (self.root, self.run):
            for folder, names, files in os.walk(top):
                for name in names + files:
                    if not name.endswith(("-wal", "-shm", "-journal")):
                        found.add(os.path.relpath(os.path.join(folder, name), self.dir))
        return found


def traces(before, node, seconds=60.0, but=(), **kwargs):
    """What node.snapshot() has that `before` had not, or lacks, once things have settled; lines with a word of `but` do not count."""
    end = time.monotonic() + seconds * SLOWNESS
    while True:
        now = node.snapshot(**kwargs)
        lines = sorted([f"+ {l}" for l in now - before] + [f"- {l}" for l in before - now])
        lines = [line for line in lines if not any(word in line for word in but)]
        if not lines or time.monotonic() > end:
            return lines
        time.sleep(0.05)


class NodeTest(unittest.TestCase):
    """Tests that share one daemon. After the last, all workloads are removed, and what is left over is a failure."""

    CONFIG = ""
    ENV = {}
    # Images are imported before the first look, so that they are no leftovers.
    IMAGES = ("busybox",)

    @classmethod
    def setUpClass(cls):
        cls.node = Node(cls.CONFIG, cls.ENV)
        try:
            for name in cls.IMAGES:
                cls.image(name)
            cls.prepare()
            # The connection of the tests is no leftover either.
            cls.node.info.Info(nacre_pb2.InfoRequest())
            cls.before = cls.node.baseline()
            cls.share()
        except BaseException:
            print(cls.node.log())
            cls.node.destroy()
            raise

    @classmethod
    def prepare(cls):
        """What else is there before the first look, and is no leftover."""

    @classmethod
    def share(cls):
        """What is there behind it, for all tests."""

    @classmethod
    def tearDownClass(cls):
        left, died, said = [], "", ""
        try:
            if cls.node.alive:
                cls.node.clear()
                left = traces(cls.before, cls.node)
            else:
                died = f"the daemon ended with status {cls.node.process.returncode}:\n{cls.node.log()}"
        finally:
            log = cls.node.log()
            said = cls.node.destroy()
        if died or left or said:
            raise AssertionError("\n".join(filter(None, [died, "left behind:" if left else "", *left, said, log[-8000:]])))

    @classmethod
    def image(cls, name):
        """Makes the fixture `name` (see images.py), imports it, and returns the name to run it by."""
        import images

        return images.ensure(cls.node, name)

    @classmethod
    def busybox(cls):
        return cls.image("busybox")

    @classmethod
    def probe(cls):
        return cls.image("probe")

    def assertNoTraces(self, before, **kwargs):
        self.assertEqual([], traces(before, self.node, **kwargs))

    def assertFails(self, code, call, *words):
        """The call fails with this gRPC status, and its text has these words."""
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        self.assertEqual(code, caught.exception.code(), caught.exception.details())
        for word in words:
            self.assertIn(word, caught.exception.details())
        return caught.exception.details()
