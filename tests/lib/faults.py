# SPDX-License-Identifier: Apache-2.0
"""Daemons and keepers that are made to fail: base/fault/failpoint.h and base/file/sysio.h, and what must be true afterwards.

    @faults.spread
    class Crashes(faults.FaultTest):
        @faults.for_each(faults.places("daemon"))
        def crash_at(self, place):
            ...
"""
import collections
import os
import re
import subprocess
import time
import unittest

import grpc

import elf
import fakeregistry
import host
import images
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2
from steps import container

Code = grpc.StatusCode
Point = collections.namedtuple("Point", "name who sides about")
# `make sweep` tries every position; ./check a spread of them.
EVERYTHING = bool(os.environ.get("NACRE_SWEEP"))


def has_faults():
    """Whether the build can be made to fail (-Dfaults=true)."""
    return elf.holds(nacre_test.BINARY, b"NACRE_FAILPOINT")


def table():
    """The one table of failpoints, of a build that has them."""
    if not has_faults():
        return []
    listed = subprocess.run([nacre_test.BINARY, "daemon", "--list-failpoints"], check=True, capture_output=True, text=True)
    return [Point(*line.split(None, 3)) for line in listed.stdout.splitlines()]


def places(*who):
    """Every place of the table that one of `who` comes to: NAME in front of the step, NAME+ behind it."""
    return [p.name + side for p in table() if p.who in who for side in ("", "+")[:2 if p.sides == "both" else 1]]


def some(positions, n):
    """All of them in `make sweep`; else about n, spread evenly."""
    positions = list(positions)
    return positions if EVERYTHING else positions[::max(1, round(len(positions) / n))]


def for_each(values):
    """Makes a method into as many tests as there are values."""
    def make(method):
        method.values = values
        return method

    return make


def spread(cls):
    """Class decorator: puts the tests of for_each() in place of their methods."""
    for name, method in list(vars(cls).items()):
        for value in getattr(method, "values", ()):
            word = "".join(c if c.isalnum() else "_" for c in value.replace("+", "_after"))
            setattr(cls, f"test_{name}_{word}", lambda self, m=method, v=value: m(self, v))
    return cls


class SurvivalTest(steps.StepsTest):
    """What is left behind is measured from a daemon that took over from another: it holds other descriptors than the first."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node.restart()
        cls.node.info.Info(nacre_pb2.InfoRequest())
        cls.before = cls.node.baseline()

    @classmethod
    def tearDownClass(cls):
        if cls.node.alive:
            cls.node.clear()
            cls.node.restart()
            cls.node.info.Info(nacre_pb2.InfoRequest())
            now = cls.node.baseline()
            if cls.plain(now) == cls.plain(cls.before):
                cls.before = now
        super().tearDownClass()

    @staticmethod
    def plain(lines):
        """Without what differs from one daemon to the next: what it looks up once and keeps, and the number of a keeper."""
        kept = [re.sub(r"^process \d+", "process", l) for l in lines if not re.match(r"descriptor (/|/self/oom_score_adj|pid:\[\]) x", l)]
        return collections.Counter(kept)

    def assertNoTraces(self, before, **_):
        end = time.monotonic() + 60 * nacre_test.SLOWNESS
        while self.plain(before) != self.plain(self.node.snapshot()) and time.monotonic() < end:
            time.sleep(0.05)
        now, had = self.plain(self.node.snapshot()), self.plain(before)
        titles = {p: host.read(f"/proc/{p}/cmdline").rstrip("\0") for p in self.node.keepers()}
        self.assertEqual(([], []), (sorted((now - had).elements()), sorted((had - now).elements())), titles)

    def check(self):
        return self.node.info.Check(nacre_pb2.CheckRequest(), timeout=60)

    def assertWhole(self):
        """What `nacre check` says is nothing."""
        answer = self.check()
        self.assertEqual([], [f"{f.object} {f.name}: {f.what}" for f in answer.findings], self.node.log()[-3000:])


class FaultTest(SurvivalTest):
    """One node for all; the faults come with the environment of a daemon that takes over from another."""

    # What a repeated call may say where the first one came to nothing, or had all but come to its end.
    OVER = {"make": (Code.ALREADY_EXISTS, Code.FAILED_PRECONDITION, Code.NOT_FOUND),
            "use": (Code.FAILED_PRECONDITION, Code.NOT_FOUND), "end": (Code.NOT_FOUND,)}

    @classmethod
    def setUpClass(cls):
        if not has_faults():
            raise unittest.SkipTest("this build has no test hooks")
        super().setUpClass()
        cls.archive = images.make(os.path.join(cls.node.dir, "second.tar"), "--busybox", "--cmd", "true", "--label", "n=2",
                                  "--layers", "3")
        cls.registry = fakeregistry.FakeRegistry()
        cls.registry.__enter__()
        cls.addClassCleanup(cls.registry.__exit__, None, None, None)
        cls.registry.put_image("faults/pulled", "1", layers=[fakeregistry.layer_tar({"a": b"a" * 100000}),
                                                             fakeregistry.layer_tar({"b": b"b" * 1000})])
        # What is copied is loaded and sent each time.
        cls.registry.on("HEAD", "/v2/faults/copied/blobs/", lambda a: a.reply(404))
        cls.registry.on("POST", "/v2/faults/copied/.*mount=", lambda a: (a.body(), a.errors(405, "UNSUPPORTED")))
        # Prune leaves it alone.
        cls.node.images.Pin(nacre_pb2.PinImageRequest(image="busybox", pinned=True))

    def setUp(self):
        super().setUp()
        if not self.node.alive:
            self.node.start()
        self.node.info.Info(nacre_pb2.InfoRequest())
        self.start = self.node.baseline()
        self.interrupted, self.cut_short = [], None

    def check(self):
        """The fault may wait for the check itself, which says so then; it comes once."""
        try:
            return super().check()
        except grpc.RpcError as e:
            self.assertIn(e.code(), (Code.INTERNAL, Code.RESOURCE_EXHAUSTED), e.details())
            self.assertRegex(e.details(), r"^\S+.* .*\S+")
            return super().check()

    # -- daemons --

    def restart_with(self, seconds=30.0, **env):
        """True where the daemon came up; it may die of the fault at once."""
        self.node.kill()
        try:
            self.node.start(seconds, env=env)
            return True
        except AssertionError:
            return False

    def restart_plainly(self):
        if self.node.alive:
            self.node.kill()
        self.node.start()

    def log_from_here(self):
        """A function that returns what the daemon (and its keepers) have said since."""
        begin = os.path.getsize(self.node.log_path)

        def said():
            with open(self.node.log_path, "rb") as f:
                f.seek(begin)
                return f.read().decode("utf-8", "replace")

        return said

    def assertAlive(self):
        """Else how the daemon ended, and what it said last."""
        ended = self.node.process.poll()
        self.assertIsNone(ended, f"the daemon ended with status {ended}:\n{self.node.log()[-4000:]}")

    # -- a bit of everything --

    def prune(self):
        """An image that nobody uses, and a file that nobody knows: both go."""
        with open(os.path.join(self.node.root, "blobs", "sha256", "stray"), "wb"):
            pass
        for item in self.node.images.Prune(nacre_pb2.PruneImagesRequest(all=True), timeout=60).items:
            self.assertIn(item.kind, ("image", "blob", "partial"))

    def pull(self):
        for _ in self.node.images.Pull(nacre_pb2.PullRequest(image=f"{self.registry.host}/faults/pulled:1"), timeout=120):
            pass

    def push(self):
        for _ in self.node.images.Push(nacre_pb2.PushRequest(image="second", destination=f"{self.registry.host}/faults/pushed:1"),
                                       timeout=120):
            pass

    def copy(self):
        request = nacre_pb2.CopyImageRequest(source=f"{self.registry.host}/faults/pulled:1",
                                             destination=f"{self.registry.host}/faults/copied:1")
        for _ in self.node.images.Copy(request, timeout=120):
            pass

    def steps(self):
        """(kind, what, function) of each, in order."""
        run, images_ = self.node.runtime, self.node.images
        sleeps = container("sh", "-c", "echo in; sleep 100000")
        return (
            ("make", "import", lambda: self.node.import_image(self.archive, "second")),
            ("use", "tag image", lambda: images_.Tag(nacre_pb2.TagImageRequest(image="second", name="third"))),
            ("use", "push", self.push),
            ("make", "pull", self.pull),
            ("use", "copy", self.copy),
            ("make", "pod", lambda: self.pod("pod", sleeps)),
            ("use", "exec", lambda: self.exec("pod", "true")),
            ("make", "cell", lambda: self.cell("cell")),
            ("make", "inst", lambda: self.spawn("inst")),
            ("make", "inst/in", lambda: self.spawn("inst/in")),
            ("make", "inst/cell", lambda: self.cell("inst/cell")),
            ("use", "exec in inst", lambda: self.exec("inst/cell", "true")),
            ("use", "executable", lambda: run.RunExecutable(runtime_pb2.RunExecutableRequest(
                executable=runtime_pb2.Executable(command="true")), timeout=60)),
            ("make", "ends", lambda: self.pod("ends", container("true"))),
            ("use", "wait", lambda: self.wait("ends")),
            ("use", "stop", lambda: self.stop("inst/cell", 100)),
            ("end", "remove inst/cell", lambda: self.remove("inst/cell")),
            ("end", "remove inst/in", lambda: self.remove("inst/in", force=True)),
            ("use", "stop cell", lambda: self.stop("cell")),
            ("end", "remove cell", lambda: self.remove("cell")),
            ("end", "remove ends", lambda: self.remove("ends", force=True)),
            ("end", "remove pod", lambda: self.remove("pod", force=True)),
            ("end", "remove inst", lambda: self.remove("inst", force=True)),
            ("end", "remove name", lambda: images_.Remove(nacre_pb2.RemoveImageRequest(image="third"), timeout=60)),
            ("end", "remove image", lambda: images_.Remove(nacre_pb2.RemoveImageRequest(image="second"), timeout=60)),
            ("make", "import again", lambda: self.node.import_image(self.archive, "second")),
            ("use", "prune", self.prune),
        )

    def flow(self):
        """All of them, whatever fails. A failure must be told in a sentence; it is noted in `interrupted`."""
        self.cut_short = None
        for kind, what, call in self.steps():
            try:
                call()
            except grpc.RpcError as e:
                self.interrupted.append((kind, what))
                if self.is_dying(e):
                    self.cut_short = what
                    return
                self.assertNotIn(e.code(), (Code.UNKNOWN, Code.UNIMPLEMENTED, Code.DEADLINE_EXCEEDED), e.details())
                self.assertRegex(e.details(), r"^\S+.* .*\S+")

    def is_dying(self, error):
        """The connection may end a moment before the process does; who still answers does not die."""
        if not self.node.alive:
            return True
        if error.code() != Code.UNAVAILABLE or "keeper" in error.details():
            return False
        end = time.monotonic() + 30
        while self.node.alive and time.monotonic() < end:
            try:
                self.node.info.Info(nacre_pb2.InfoRequest(), timeout=30)
                return False
            except grpc.RpcError:
                time.sleep(0.02)
        return not self.node.alive

    def repeat(self, kind, what):
        """What was interrupted: it succeeds, or what is there says why not."""
        call, = [c for k, w, c in self.steps() if (k, w) == (kind, what)]
        try:
            call()
        except grpc.RpcError as e:
            self.assertIn(e.code(), self.OVER[kind], f"{what}: {e.details()}")
            # The name may be taken by what the call was to make, if that is whole; nothing that is half made keeps it.
            if what == self.cut_short != "import" and e.code() == Code.ALREADY_EXISTS:
                self.assertIn(self.all()[what].state, ("running", "ready", "exited"), e.details())

    # -- afterwards --

    def check_settled(self):
        settled = ("running", "exited", "failed", "ready")
        nacre_test.until(lambda: all(w.state in settled for w in self.all().values()), what="settled states")
        self.assertWhole()

    def check_objects(self):
        """Each is whole: what runs can be used."""
        self.check_settled()
        for name, w in self.all().items():
            if w.kind in ("pod", "cell") and w.state == "running":
                self.assertEqual((b"whole\n", b"", 0), self.exec(name, "echo", "whole"), name)
            if w.kind == "instance" and w.state == "ready":
                self.cell(f"{name}/whole")

    def clear_all(self):
        self.node.clear()
        self.assertEqual({}, self.all())
        for image in self.node.images.List(nacre_pb2.ListImagesRequest()).images:
            if "docker.io/library/second:latest" in image.names or f"{self.registry.host}/faults/pulled:1" in image.names:
                self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=image.id), timeout=60)
        self.assertWhole()

    def check_whole(self):
        """Every object is whole or gone, what was interrupted succeeds when it is repeated, and nothing is left behind."""
        self.restart_plainly()
        self.check_objects()
        for kind, what in self.interrupted[:1]:
            self.repeat(kind, what)
        self.check_settled()
        self.clear_all()
        for kind, what, call in self.steps():
            if kind != "end":
                call()
        self.clear_all()
        self.restart_plainly()
        self.node.info.Info(nacre_pb2.InfoRequest())
        self.assertWhole()
        self.assertNoTraces(self.start)
