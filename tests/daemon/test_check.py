# SPDX-License-Identifier: Apache-2.0
"""`nacre check`: silent where all is whole; otherwise it names what a record says and is not there, and what nobody recorded."""
import json
import os
import signal
import sqlite3
import subprocess

import grpc

import host
import images
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2
from steps import container


class CheckTest(steps.StepsTest):
    def findings(self):
        answer = self.node.info.Check(nacre_pb2.CheckRequest(), timeout=60)
        return {(f.object, f.name, f.what) for f in answer.findings}

    def assertWhole(self):
        self.assertEqual(set(), self.findings())


class Check(CheckTest):
    def test_whole(self):
        self.assertWhole()
        done = self.node.cli("check")
        self.assertEqual(("", ""), (done.stdout, done.stderr))
        self.assertEqual([], self.node.json("check"))

    def test_things_that_nobody_recorded(self):
        group = os.path.join(self.node.cgroup(), "node", "cell.stray")
        made = [os.path.join(group, "below"), os.path.join(self.node.root, "logs", "stray"),
                os.path.join(self.node.root, "layers", "777"), os.path.join(self.node.root, "containers", "stray"),
                os.path.join(self.node.root, "staging", "stray"), os.path.join(self.node.run, "i", "stray"),
                os.path.join(self.node.run, "machines", "stray"), os.path.join(self.node.root, "disks", "stray")]
        blob = os.path.join(self.node.root, "blobs", "sha256", "stray")
        unknown = "it is there, and no record knows it"
        for path in made:
            os.makedirs(path)
        with open(blob, "w", encoding="ascii"):
            pass
        try:
            self.assertEqual({("disk", "stray", "it is there, and is no whole disk")} | {(kind, name, unknown) for kind, name in (
                ("cgroup", "node/cell.stray"), ("log", "stray"), ("layer", "777"), ("rootfs", "stray"), ("staging", "stray"),
                ("directory", "i/stray"), ("directory", "machines/stray"), ("blob", "stray"))}, self.findings())
            done = self.node.cli("check", check=False)
            self.assertEqual((1, ""), (done.returncode, done.stderr))
            lines = done.stdout.splitlines()
            self.assertEqual(["OBJECT", "NAME", "ID", "WHAT"], lines[0].split())
            self.assertEqual(10, len(lines))
            told = json.loads(self.node.cli("-o", "json", "check", check=False).stdout)
            self.assertIn({"object": "log", "id": None, "name": "stray", "what": unknown}, told)
        finally:
            os.unlink(blob)
            for path in made[:1] + [group] + made[1:]:
                os.rmdir(path)
        self.assertWhole()

    def test_things_that_are_missing(self):
        pod = self.pod("p")
        log = os.path.join(self.node.root, "logs", pod.id)
        os.rename(log, log + "-away")
        blobs = os.path.join(self.node.root, "blobs", "sha256")
        blob = os.path.join(blobs, sorted(os.listdir(blobs))[0])
        os.rename(blob, blob + "-away")
        try:
            found = self.findings()
            self.assertIn(("log", "p", f"{pod.id} is missing"), found)
            self.assertIn(("log", f"{pod.id}-away", "it is there, and no record knows it"), found)
            self.assertEqual(1, len([w for o, n, w in found if o == "blob" and w == f"{os.path.basename(blob)} is missing"]))
            self.assertEqual(4, len(found), found)
        finally:
            os.rename(log + "-away", log)
            os.rename(blob + "-away", blob)
        self.assertWhole()

    def test_records_that_say_otherwise(self):
        pod = self.pod("p")
        db = sqlite3.connect(os.path.join(self.node.run, "run.db"), timeout=10)
        try:
            db.execute("UPDATE workload SET state_word='exited' WHERE id=?", (pod.id,))
            columns = [row[1] for row in db.execute("PRAGMA table_info(workload)")]
            db.execute("INSERT INTO workload SELECT " + ", ".join("'stray'" if c in ("id", "path") else c for c in columns)
                       + " FROM workload")
            db.commit()
            self.assertEqual({("workload", "p", "the record says exited, and it is running"),
                              ("record", "workload stray", "it is there, and no record knows it")}, self.findings())
            db.execute("UPDATE workload SET state_word='running' WHERE id=?", (pod.id,))
            db.execute("DELETE FROM workload WHERE id='stray'")
            db.commit()
        finally:
            db.close()
        self.assertWhole()

    def test_image_records_that_say_otherwise(self):
        image, = self.node.images.List(nacre_pb2.ListImagesRequest()).images
        name, unknown = image.names[0], "it is there, and no record knows it"
        db = sqlite3.connect(os.path.join(self.node.root, "root.db"), timeout=10)
        try:
            db.execute("UPDATE image_name SET word='other' WHERE word=?", (name,))
            db.execute("INSERT INTO layer VALUES(777, 0, 'x', 1)")
            db.commit()
            self.assertEqual({("image", name, "its record has other names"), ("record", "layer 777", unknown)}, self.findings())
            db.execute("UPDATE image_name SET word=? WHERE word='other'", (name,))
            db.execute("DELETE FROM layer WHERE number=777")
            # One that memory has, and the store has not.
            db.execute("UPDATE image SET id='stray' WHERE id=?", (image.id,))
            db.commit()
            self.assertEqual({("record", "image stray"), ("record", name)}, {f[:2] for f in self.findings()})
            db.execute("UPDATE image SET id=? WHERE id='stray'", (image.id,))
            db.commit()
        finally:
            db.close()
        self.assertWhole()

    def test_mounts_are_seen(self):
        """A mount inside of the node's directories, in the daemon's own mount namespace."""
        self.pod("p")
        where = os.path.join(self.node.root, "containers", os.listdir(os.path.join(self.node.root, "containers"))[0])
        command = ["nsenter", "-m", "-t", str(self.node.pid)]
        subprocess.run(command + ["mount", "-t", "tmpfs", "none", where], check=True)
        try:
            self.assertEqual({("mount", where, "it is there, and no record knows it")}, self.findings())
        finally:
            subprocess.run(command + ["umount", where], check=True)
        self.assertWhole()

    def test_a_stopped_keeper_is_no_finding(self):
        self.pod("p")
        keeper = self.inspect("p").pid
        os.kill(keeper, signal.SIGSTOP)
        try:
            self.assertWhole()
        finally:
            os.kill(keeper, signal.SIGCONT)

    def test_limit_of_checks_at_once(self):
        os.makedirs(os.path.join(self.node.root, "logs", "stray"))
        refused = grpc.StatusCode.RESOURCE_EXHAUSTED

        def one_is_refused():
            """They may come one by one: then each finds room."""
            calls = [self.node.info.Check.future(nacre_pb2.CheckRequest(), timeout=60) for _ in range(12)]
            codes = [c.exception().code() if c.exception() else None for c in calls]
            self.assertGreaterEqual(codes.count(None), 4)
            self.assertLessEqual(set(codes), {None, refused})
            return refused in codes

        try:
            nacre_test.until(one_is_refused, what="more checks at once than there is room for")
        finally:
            os.rmdir(os.path.join(self.node.root, "logs", "stray"))


class Daemons(CheckTest):
    """With a node of its own for each test, since its daemons come and go."""

    def setUp(self):
        self.node = nacre_test.Node()
        self.addCleanup(self.node.destroy)
        images.ensure(self.node, "busybox")

    def test_whole_with_everything(self):
        self.pod("p", container("sleep", "100000", name="a"), container("sh", "-c", "exit 3", name="b"))
        self.pod("over", container("true"))
        self.wait("over")
        self.cell("c")
        self.spawn("i")
        self.cell("i/c")
        self.spawn("i/j")
        self.pod("i/j/p")
        running = self.node.runtime.RunExecutable.future(runtime_pb2.RunExecutableRequest(
            meta=runtime_pb2.Meta(name="exe"), keep=True, executable=runtime_pb2.Executable(command="sleep 100000")))
        nacre_test.until(lambda: "exe" in self.all() and self.inspect("exe").state == "running", what="the executable")
        self.assertWhole()
        self.node.restart()
        self.assertWhole()
        self.assertFalse(running.done() and running.exception() is None)
        for name in ("over", "i/j/p", "c", "i"):
            self.remove(name, force=True)
            self.assertWhole()

    def test_cancelled_and_left(self):
        """A check that nobody waits for any more, also when the daemon ends."""
        os.makedirs(os.path.join(self.node.root, "logs", "stray"))
        try:
            for _ in range(3):
                check = self.node.info.Check.future(nacre_pb2.CheckRequest())
                # Behind this the stream is there (see test_transport's test_cancelled_streams).
                self.node.info.Info(nacre_pb2.InfoRequest())
                check.cancel()
            self.node.info.Check.future(nacre_pb2.CheckRequest())
            self.node.restart(signal.SIGTERM)
        finally:
            if os.path.exists(os.path.join(self.node.root, "logs", "stray")):
                os.rmdir(os.path.join(self.node.root, "logs", "stray"))
        self.assertWhole()
        self.assertIsNotNone(host.process(self.node.pid))
