# SPDX-License-Identifier: Apache-2.0
"""Workloads that attack what is done for them while it is done.

Rows of the reference "security": A01, A02, A08, A26, A28, A29, A40. Races are run 500 times, or as often as the environment
variable NACRE_RACES says (make races: 20,000). Those of mounts, masks and /proc (A07, A16, A17, A19) are in
isolate/spawn/spawn_race_test.c.
"""
import os

import grpc

import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2
from steps import container

RACES = int(os.environ.get("NACRE_RACES", "500"))
BAD = grpc.StatusCode.INVALID_ARGUMENT


class AttackTest(steps.StepsTest):
    IMAGES = ("busybox", "attack")

    def attacker(self, *command, name="evil", script="true"):
        """A pod that has run a script, and runs the program attack."""
        self.pod(name, container("sh", "-c", f"{script} && echo ready && exec /attack {' '.join(command)}", image="attack"))
        nacre_test.until(lambda: self.logs(name).startswith(b"ready\n"), what="the attacker")


class Looking(AttackTest):
    def test_an_exec_cannot_be_seen_before_it_is_a_workload(self):
        """Neither its memory, nor its descriptors, nor our program through it."""
        self.attacker("watch")
        nacre_test.until(lambda: b"watching\n" in self.logs("evil"), what="the watcher")
        for n in range(RACES):
            self.assertEqual(0, self.exec("evil", "true")[2], n)
        # Some of them live long enough to be seen for sure.
        nacre_test.until(lambda: self.exec("evil", "sleep", "0.01") and b"seen 50\n" in self.logs("evil"),
                         what="processes that the watcher has seen")
        self.assertNotIn(b"got ", self.logs("evil"))


class Copying(AttackTest):
    """The name of a directory becomes a link to a directory of the host and back."""

    def setUp(self):
        super().setUp()
        self.canary = os.path.join(self.node.dir, "canary")
        os.makedirs(self.canary, exist_ok=True)
        with open(os.path.join(self.canary, "secret"), "w", encoding="ascii") as f:
            f.write("of the host\n")
        self.before = self.look()
        self.attacker("swap", "/race/x", "/race/y",
                      script=f"mkdir -p /race/x && echo inside >/race/x/secret && ln -s {self.canary} /race/y")

    def look(self):
        with open(os.path.join(self.canary, "secret"), encoding="ascii") as f:
            return sorted(os.listdir(self.canary)), f.read(), os.stat(self.canary).st_mtime_ns

    def test_out(self):
        got = set()
        for _ in range(RACES):
            try:
                request = nacre_pb2.CopyFromRequest(target="evil", path="/race/x/secret")
                answer = list(self.node.workloads.CopyFrom(request, timeout=60))
                # A name that is gone by the time it is looked at has no data.
                got.add(b"".join(m.data for m in answer) or [m.entry.type for m in answer][0])
            except grpc.RpcError as e:
                self.assertNotIn(e.code(), (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN), e.details())
        self.assertIn(b"inside\n", got)
        self.assertLessEqual(got, {b"inside\n", nacre_pb2.CopyEntry.TYPE_OTHER})
        self.assertEqual("running", self.inspect("evil").state)

    def test_in(self):
        for n in range(RACES):
            first = nacre_pb2.CopyToRequest(target="evil", path="/race/x")
            entry = nacre_pb2.CopyEntry(type=nacre_pb2.CopyEntry.TYPE_FILE, path=f"new{n % 7}".encode(), mode=0o644, size=1)
            try:
                self.node.workloads.CopyTo(iter([first, nacre_pb2.CopyToRequest(entry=entry, data=b"x")]), timeout=60)
            except grpc.RpcError as e:
                self.assertNotIn(e.code(), (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN), e.details())
        self.assertEqual(self.before, self.look())
        self.assertEqual("running", self.inspect("evil").state)


class Executing(AttackTest):
    def test_nothing_of_a_root_is_executed_for_us(self):
        """What others find by PATH writes a mark here."""
        self.pod("p", container("sleep", "100000", image="attack"))
        self.sh("p", "mkdir -p /usr/bin /sbin; for n in ps nsenter top stat xz gzip pigz unpigz zstd tar sh; do for d in /bin /usr/bin"
                     " /sbin; do rm -f $d/$n; printf '#!/bin/busybox sh\\necho %s >>/mark\\n' $n >$d/$n; /bin/busybox chmod 755 $d/$n;"
                     " done; done")
        self.node.workloads.Stats(nacre_pb2.StatsRequest(targets=["p"]))
        self.node.workloads.Processes(nacre_pb2.ProcessesRequest(target="p"))
        self.inspect("p")
        for data in (b"\x1f\x8b\x08\x00", b"\xfd7zXZ\x00", b"(\xb5/\xfd"):
            first = nacre_pb2.CopyToRequest(target="p", path="/")
            entry = nacre_pb2.CopyEntry(type=nacre_pb2.CopyEntry.TYPE_FILE, path=b"packed", mode=0o644, size=len(data))
            self.node.workloads.CopyTo(iter([first, nacre_pb2.CopyToRequest(entry=entry, data=data)]), timeout=60)
            request = nacre_pb2.CopyFromRequest(target="p", path="/packed")
            self.assertEqual(data, b"".join(m.data for m in self.node.workloads.CopyFrom(request, timeout=60)))
        self.assertNotEqual(0, self.exec("p", "/bin/busybox", "test", "-e", "/mark")[2])
        self.exec("p", "ps")
        self.assertEqual(b"ps\n", self.exec("p", "/bin/busybox", "cat", "/mark")[0])


class Strings(AttackTest):
    IMAGES = ("busybox", "probe")

    def test_lengths_around_16_bits(self):
        self.pod("p")
        for n in (32767, 32768, 65534, 65535, 65536, 70000):
            out, _, code = self.exec("p", "sh", "-c", "echo ${#X} ${#Y}; echo $Y", env=[f"X={'x' * n}", "Y=last"])
            self.assertEqual((f"{n} 4\nlast\n".encode(), 0), (out, code))

    def test_control_characters_stay_where_they_are(self):
        odd = "a\nMORE=1\r\tb\u2028c'\"+="
        env = [f"ODD={odd}", "LAST=1"]
        pid = self.pod("p", container("sleep", "100000", env=env, args=[])).containers[0].pid
        with open(f"/proc/{pid}/environ", encoding="utf-8", newline="") as f:
            entries = f.read().split("\0")
        self.assertEqual(1, entries.count(f"ODD={odd}"))
        self.assertEqual([], [e for e in entries if e.startswith("MORE=")])
        hosts = self.sh("p", "cat /etc/hosts")
        for name in ("a\nb", "a\rb", "a b", "a\u2028b", "a\tb", "a;b", "$(a)"):
            with self.assertRaises(grpc.RpcError) as caught:
                self.node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name=name), containers=[container("true")]))
            self.assertEqual(BAD, caught.exception.code(), name)
            self.assertIn("name", caught.exception.details())
        self.assertEqual(hosts, self.sh("p", "cat /etc/hosts"))
