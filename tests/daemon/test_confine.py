# SPDX-License-Identifier: Apache-2.0
"""What the daemon and its keepers have given up, by the word of the kernel, and what they can hand on."""
import os
import signal
import unittest

import grpc

import host
import images
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2, until
from steps import container

# As in isolate/seccomp/confine.c.
KEPT = sum(1 << n for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 15, 18, 19, 21, 23, 24, 27, 29, 31))
SETS = ("CapBnd", "CapPrm", "CapEff", "CapInh", "CapAmb")


def status(pid, tid=None):
    path = f"/proc/{pid}/status" if tid is None else f"/proc/{pid}/task/{tid}/status"
    return dict(l.split(":\t", 1) for l in host.read(path).splitlines() if ":\t" in l)


def sets(of):
    return {k: int(of[k], 16) for k in SETS}


def title(pid):
    return host.read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()


def node_keeper(node, other_than=0):
    """Once it has become what it is: it runs our program before it has dropped anything."""
    def find():
        found = (p for p in node.keepers() if title(p) == "nacre: keeper node" and p != other_than)
        return next((p for p in found if int(status(p)["CapEff"], 16) & ~KEPT == 0), 0)
    return until(find, what="the keeper of the node")


class Confined(steps.StepsTest):
    def setUp(self):
        super().setUp()
        self.own = sets(status("self"))

    def assertConfined(self, of, bounding):
        few = self.own["CapPrm"] & KEPT
        self.assertEqual({"CapBnd": self.own["CapBnd"] & (KEPT if bounding else -1),
                          "CapPrm": few if bounding else self.own["CapPrm"], "CapEff": few, "CapInh": 0, "CapAmb": 0}, sets(of))
        self.assertEqual("0", of["NoNewPrivs"].strip())

    def test_the_daemon(self):
        pid = self.node.pid
        self.assertConfined(status(pid), True)
        for tid in os.listdir(f"/proc/{pid}/task"):
            seen = status(pid, tid)
            # One that has ended meanwhile says nothing; LeakSanitizer's own is older than main().
            if seen and not nacre_test.SANITIZED:
                self.assertConfined(seen, True)
            self.assertEqual("2", seen.get("Seccomp", "2").strip())

    def test_the_keeper_of_an_instance(self):
        running, = self.pod("p").containers
        seen = status(self.inspect("p").pid)
        self.assertConfined(seen, True)
        self.assertEqual("2", seen["Seccomp"].strip())
        # The container has its own filter on top.
        of = status(running.pid)
        self.assertEqual(int(seen["Seccomp_filters"]) + 1, int(of["Seccomp_filters"]))

    def test_what_a_container_may_do_is_asked_for(self):
        def run(*options):
            out = self.node.cli("run", "--rm", *options, "busybox", "cat", "/proc/self/status").stdout
            return dict(line.split(":\t", 1) for line in out.splitlines() if ":\t" in line)
        plain, baseline, restricted = run(), run("--security-profile", "baseline"), run("--security-profile=restricted")
        self.assertEqual((["00000000a80425fb", "00000000a80425fb", "0" * 16], ["0", "0", "1"]),
                         ([of["CapBnd"] for of in (plain, baseline, restricted)], [of["NoNewPrivs"] for of in (plain, baseline, restricted)]))
        self.assertEqual("0000000000002001", run("--cap-drop", "all", "--cap-add", "net_raw,CAP_CHOWN")["CapEff"])
        free = run("--security-opt", "seccomp=unconfined", "--security-opt", "no-new-privileges=false", "--group-add", "7")
        self.assertEqual((int(plain["Seccomp_filters"]) - 1, "0", "0 7 "), (int(free["Seccomp_filters"]), free["NoNewPrivs"], free["Groups"]))
        for options, words in ((("--cap-add", "FLY"), "is no capability"), (("--group-add", "x"), "the number of a group"),
                               (("--security-opt", "label=x"), "not \"label=x\""), (("--security-profile", "none"), "none of \"baseline\"")):
            done = self.node.cli("run", *options, "busybox", "true", check=False)
            self.assertNotEqual(0, done.returncode)
            self.assertIn(words, done.stderr)

    def test_a_node_that_a_container_makes_is_no_device(self):
        script = ("for d in / /dev /dev/shm /t; do mknod $d/n c 1 3 && (: < $d/n) 2>/dev/null && echo $d is open; done; "
                  "echo x > /dev/null && head -c 1 /dev/zero | wc -c; cat /proc/self/mountinfo")
        out = self.node.cli("run", "--rm", "--security-profile", "baseline", "--tmpfs", "/t", "busybox", "sh", "-c", script).stdout
        count, *lines = out.splitlines()
        self.assertEqual("1", count, out)
        # The devices of the house, each a mount of its own, and a devpts, where nobody makes a node. Those over /proc hide what is there.
        mounts = {w[4] for w in (l.split() for l in lines) if "nodev" not in w[5].split(",") and not w[4].startswith("/proc/")}
        self.assertEqual({"/dev/" + n for n in ("null", "zero", "full", "random", "urandom", "tty", "pts")}, mounts)

    def execute(self, command, *args):
        done = self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
            executable=runtime_pb2.Executable(command=command, args=args)), timeout=100 * nacre_test.SLOWNESS)
        self.assertEqual(0, done.exit_code, done)
        return done.stdout.decode()

    def test_the_keeper_of_the_node_hands_everything_on(self):
        seen = status(node_keeper(self.node))
        self.assertConfined(seen, False)
        self.assertEqual(status("self")["Seccomp"], seen["Seccomp"])
        of = dict(l.split(":\t", 1) for l in self.execute("cat", "/proc/self/status").splitlines() if ":\t" in l)
        self.assertEqual([self.own["CapBnd"], self.own["CapBnd"] & self.own["CapPrm"]], [sets(of)["CapBnd"], sets(of)["CapEff"]])
        self.assertEqual((0, 0), (sets(of)["CapInh"], sets(of)["CapAmb"]))


def execute(node, command, *args):
    """Once the keeper of the node is ready."""
    def run():
        try:
            return node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
                executable=runtime_pb2.Executable(command=command, args=args)), timeout=30 * nacre_test.SLOWNESS)
        except grpc.RpcError as e:
            if e.code() != grpc.StatusCode.UNAVAILABLE:
                raise
            return None
    return until(run, what="an executable").stdout.decode()


def of_an_executable(node):
    """What it has, as (bounding set, seccomp)."""
    of = dict(l.split(":\t", 1) for l in execute(node, "cat", "/proc/self/status").splitlines() if ":\t" in l)
    return sets(of)["CapBnd"], of["Seccomp"].strip()


class Later(unittest.TestCase):
    """A keeper of the node that a confined daemon has made has what that has; a restart gives it back where nothing runs."""

    def setUp(self):
        self.node = nacre_test.Node()
        self.addCleanup(self.node.destroy)
        self.all = sets(status("self"))["CapBnd"], status("self")["Seccomp"].strip()
        self.less = self.all[0] & KEPT, "2"

    def lacks(self):
        return list(self.node.info.Info(nacre_pb2.InfoRequest()).lacks)

    def lose_keeper(self):
        before = node_keeper(self.node)
        os.kill(before, signal.SIGKILL)
        return node_keeper(self.node, other_than=before)

    def test_less_and_that_is_told_and_a_restart_mends_it(self):
        self.assertEqual((self.all, []), (of_an_executable(self.node), self.lacks()))
        seen = status(self.lose_keeper())
        self.assertEqual(self.less, (sets(seen)["CapBnd"], seen["Seccomp"].strip()))
        until(lambda: "executables have no more privilege than this daemon" in self.node.log(), what="a word about it")
        self.assertEqual(self.less, of_an_executable(self.node))
        lack, = self.lacks()
        self.assertTrue(lack.startswith("privilege for executables: "), lack)
        self.node.restart()
        self.assertEqual((self.all, []), (of_an_executable(self.node), self.lacks()))

    def test_what_runs_is_worth_more(self):
        later = self.lose_keeper()
        self.assertEqual(self.less, of_an_executable(self.node))
        self.node.import_image(images.path("busybox"), "busybox")
        self.node.runtime.RunCell(runtime_pb2.RunCellRequest(
            meta=runtime_pb2.Meta(name="c"), containers=[container("sleep", "100000")]), timeout=30 * nacre_test.SLOWNESS)
        self.node.restart()
        self.assertEqual(later, node_keeper(self.node))
        self.assertEqual((self.less, 1), (of_an_executable(self.node), len(self.lacks())))
        self.node.clear()
        self.node.restart()
        self.assertEqual((self.all, []), (of_an_executable(self.node), self.lacks()))


if __name__ == "__main__":
    unittest.main()
