# SPDX-License-Identifier: Apache-2.0
"""Debug containers: beside one that runs, with its processes, confined as it is; removed at their end, and with their pod."""
import os
import signal

import grpc

import nacre_test
from nacre_test import nacre_pb2, runtime_pb2, until

Code = grpc.StatusCode
Container, Security = runtime_pb2.Container, runtime_pb2.Security


class Debug(nacre_test.NodeTest):
    IMAGES = ("busybox", "probe")

    def setUp(self):
        self.addCleanup(self.node.clear)

    def pod(self, *options, name="web", script="echo here > /mark; exec sleep 1000"):
        self.node.cli("run", "-d", "--name", name, *options, "busybox", "sh", "-c", script)

    def parts(self, name="web"):
        return {c["name"]: c for c in self.node.json("inspect", name)["containers"]}

    def debug(self, *words, check=True, **kwargs):
        return self.node.cli("debug", *words, check=check, **kwargs)

    def status(self, pid):
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)

    def test_sees_the_other(self):
        self.pod()
        until(lambda: self.node.cli("exec", "web", "cat", "/mark", check=False).returncode == 0, what="the mark is there")
        with nacre_test.Events(self.node, "web") as events:
            done = self.debug("web", "--", "sh", "-c", "cat /proc/1/root/mark; hostname; ls /mark; exit 7", check=False)
            self.assertEqual((7, ["here", "web"]), (done.returncode, done.stdout.split()))
            for state in ("created", "running", "exited", "removed"):
                events.wait("web/debug-1", state)
        self.assertEqual(["main"], list(self.parts()))
        self.assertEqual("", self.node.cli("logs", "web").stdout)
        self.assertEqual("debug-1", self.debug("-d", "web", "--", "sleep", "1000").stdout.strip())
        main, own = self.parts()["main"], self.parts()["debug-1"]
        self.assertEqual((False, True, "busybox"), (main["debug"], own["debug"], own["image"]))
        for kind in ("pid", "net", "ipc", "uts"):
            self.assertEqual(*(os.readlink(f"/proc/{c['pid']}/ns/{kind}") for c in (main, own)))
        for kind in ("mnt", "cgroup"):
            self.assertNotEqual(*(os.readlink(f"/proc/{c['pid']}/ns/{kind}") for c in (main, own)))
        # Whoever names no container means the one that came with the pod.
        self.assertIn("sleep 1000", self.node.cli("exec", "web", "ps").stdout)
        self.assertEqual("debug-2", self.debug("-d", "web", "--", "sleep", "1000").stdout.strip())
        self.node.cli("stop", "-t", "0", "--container", "debug-1", "web")
        self.assertEqual(["main", "debug-2"], list(self.parts()))
        self.assertEqual("debug-1", self.debug("-d", "web", "--", "sleep", "1000").stdout.strip())

    def test_an_image_without_a_shell(self):
        """A static program alone."""
        self.node.cli("run", "-d", "--name", "bare", "probe", "sleep", "1000")
        self.assertNotEqual(0, self.node.cli("exec", "bare", "sh", "-c", "true", check=False).returncode)
        done = self.debug("--image", "busybox", "bare", "--", "sh", "-c", "test -x /proc/1/root/probe && cat")
        self.assertEqual("", done.stdout)
        done = self.debug("-i", "--image", "busybox", "bare", "--", "cat", stdin="in and out\n")
        self.assertEqual("in and out\n", done.stdout)

    def test_output_and_status_of_many(self):
        self.pod()
        for i in range(20):
            done = self.debug("web", "--", "sh", "-c", f"echo {i}; exit {i}", check=False)
            self.assertEqual((i, f"{i}\n"), (done.returncode, done.stdout), done.stderr)
        self.assertEqual(["main"], list(self.parts()))

    def test_confined_as_the_other(self):
        forms = {
            "plain": (),
            "user": ("--user", "1234:567"),
            "restricted": ("--security-profile", "restricted"),
            "baseline": ("--security-profile", "baseline", "--cap-drop", "NET_RAW", "--cap-add", "SYS_NICE"),
            "quiet": ("--security-opt", "no-new-privileges", "--user", "77"),
        }
        for name, options in forms.items():
            self.pod(*options, name=name, script="exec sleep 1000")
            self.debug("-d", name, "--", "sleep", "1000")
            main, own = (self.status(c["pid"]) for c in self.parts(name).values())
            for key in ("Uid", "Gid", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters"):
                self.assertEqual(main[key], own[key], f"{name}: {key}")
            self.assertEqual("0\n", self.debug(name, "--", "sh", "-c", "ls /proc/1/root/bin > /dev/null; echo $?").stdout)
        # More only where that is asked for.
        self.debug("-d", "--cap-add", "SYS_PTRACE", "plain", "--", "sleep", "1000")
        more = int(self.status(self.parts("plain")["debug-2"]["pid"])["CapEff"], 16)
        self.assertEqual(1 << 19, more & ~int(self.status(self.parts("plain")["main"]["pid"])["CapEff"], 16))
        self.debug("-d", "--user", "99", "plain", "--", "sleep", "1000")
        self.assertEqual("99", self.status(self.parts("plain")["debug-3"]["pid"])["Uid"].split()[0])
        self.debug("-d", "--privileged", "user", "--", "sleep", "1000")
        self.assertTrue(self.parts("user")["debug-2"]["security"]["privileged"])

    def test_a_user_namespace(self):
        self.pod("--userns", "auto", script="exec sleep 1000")
        self.debug("-d", "web", "--", "sleep", "1000")
        main, own = self.parts().values()
        self.assertEqual(*(os.readlink(f"/proc/{c['pid']}/ns/user") for c in (main, own)))
        self.assertEqual(*(self.status(c["pid"])["Uid"] for c in (main, own)))
        self.assertNotEqual("0", self.status(own["pid"])["Uid"].split()[0])
        self.assertEqual("0\n", self.debug("web", "--", "sh", "-c", "id -u; ls /proc/1/root > /dev/null").stdout)

    def test_the_keeper_is_not_traced(self):
        """Where the pod's containers see their keeper, who could trace it would have what it has."""
        self.pod("--pid", "pod", script="exec sleep 1000")
        done = self.debug("--cap-add", "SYS_PTRACE", "web", "--", "true", check=False)
        self.assertEqual(125, done.returncode)
        self.assertIn("spec.security.cap_add: SYS_PTRACE", done.stderr)
        until(lambda: list(self.parts()) == ["main"], what="nothing is left of it")
        self.assertIn("sleep 1000", self.debug("web", "--", "ps").stdout)

    def test_one_of_several(self):
        self.node.cli("pod", "--name", "shop", "--", "web=busybox", "sleep", "1000", "--", "db=busybox", "sleep", "2000")
        done = self.debug("shop", "--", "true", check=False)
        self.assertIn("shop has 2 of them", done.stderr)
        self.debug("-d", "-c", "db", "shop", "--", "sleep", "3000")
        self.assertIn("shop has 2 of them", self.debug("shop", "--", "true", check=False).stderr)
        parts = self.parts("shop")
        self.assertEqual(*(os.readlink(f"/proc/{parts[n]['pid']}/ns/pid") for n in ("db", "debug-1")))
        # With the first process of its namespace it ends; the rest of the pod does not.
        self.node.cli("kill", "-c", "db", "shop")
        until(lambda: set(self.parts("shop")) == {"web", "db"}, what="the debug container is gone")
        self.assertEqual("running", self.parts("shop")["web"]["state"])
        for words, text in ((("-c", "none"), "has no container none"), (("-c", "db"), "shop/db is exited"),
                            (("-c", "web", "--name", "db"), "has a container db already"),
                            (("-c", "web", "--cap-add", "NONE"), "spec.security.cap_add[0]"),
                            (("-c", "web", "--image", "nowhere", "--pull", "never"), "spec.image: there is no image")):
            done = self.debug(*words, "shop", "--", "true", check=False)
            self.assertEqual(125, done.returncode)
            self.assertIn(text, done.stderr)
        done = self.debug("-c", "web", "shop", "--", "/no/such", check=False)
        self.assertIn("container debug-1: execute the program: /no/such", done.stderr)
        until(lambda: set(self.parts("shop")) == {"web", "db"}, what="the one that failed is gone")

    def test_its_pod_does_not_wait_for_it(self):
        """Neither at its end, nor at a stop, a restart, or a removal; its exit code is the pod's own."""
        stubborn = ("sh", "-c", "trap '' TERM; sleep 1000")
        self.pod(script="mkfifo /gate; read line < /gate; exit 5")
        self.debug("-d", "web", "--", *stubborn)
        self.node.cli("exec", "web", "sh", "-c", "until [ -p /gate ]; do :; done; echo go > /gate", check=False)
        self.assertEqual("5", self.node.cli("wait", "web").stdout.strip())
        self.assertEqual(["main"], list(self.parts()))
        self.node.cli("start", "web")
        self.debug("-d", "web", "--", *stubborn)
        self.node.cli("restart", "-t", "0", "web")
        self.assertEqual(["main"], list(self.parts()))
        self.debug("-d", "web", "--", *stubborn)
        self.node.cli("stop", "-t", "0", "web")
        self.assertEqual((["main"], "exited"), (list(self.parts()), self.node.json("inspect", "web")["state"]))
        self.assertIn("only one that runs", self.debug("web", "--", "true", check=False).stderr)
        self.node.cli("start", "web")
        self.debug("-d", "web", "--", *stubborn)
        self.node.cli("rm", "--force", "web")
        # One that sees all processes of its pod outlives the container that it came to look at.
        self.pod("--pid", "pod", "--restart", "on-failure:1", script="mkfifo /gate; read line < /gate; exit 5")
        self.debug("-d", "web", "--", *stubborn)
        self.node.cli("exec", "web", "sh", "-c", "until [ -p /gate ]; do :; done; echo go > /gate", check=False)
        until(lambda: self.node.json("inspect", "web")["restart_count"] == 1 and list(self.parts()) == ["main"],
              what="its policy has started it again")

    def test_over_a_restart_of_the_daemon(self):
        self.pod()
        self.debug("-d", "web", "--", "sleep", "1000")
        self.debug("-d", "web", "--", "sh", "-c", "sleep 1000; exit 3")
        pid = self.parts()["debug-2"]["pid"]
        self.node.restart()
        self.assertEqual(["main", "debug-1", "debug-2"], list(self.parts()))
        self.assertTrue(self.parts()["debug-2"]["debug"])
        os.kill(pid, signal.SIGKILL)
        until(lambda: list(self.parts()) == ["main", "debug-1"], what="one has ended")
        # One that ends while nobody looks is removed by the daemon that comes.
        pid = self.parts()["debug-1"]["pid"]
        self.node.kill()
        os.kill(pid, signal.SIGKILL)
        self.node.start()
        until(lambda: list(self.parts()) == ["main"], what="the other has ended")
        self.debug("-d", "web", "--", "sleep", "1000")
        self.node.restart()
        self.node.cli("restart", "-t", "0", "web")
        self.assertEqual(["main"], list(self.parts()))

    def test_a_cell(self):
        self.node.cli("cell", "--name", "one", "busybox", "sleep", "1000")
        self.assertIn("sleep 1000", self.debug("one", "--", "ps").stdout)

    def test_what_has_none(self):
        self.node.cli("execute", "--keep", "--name", "here", "true")
        for request, code, field in (
                (nacre_pb2.DebugRequest(target="here"), Code.UNIMPLEMENTED, "target"),
                (nacre_pb2.DebugRequest(target="none"), Code.NOT_FOUND, "target"),
                (nacre_pb2.DebugRequest(), Code.INVALID_ARGUMENT, "target")):
            self.assertFails(code, lambda q=request: self.node.workloads.Debug(q), field)
        self.pod()
        for spec, field in ((Container(init_container=True), "spec.init_container"), (Container(name="A"), "spec.name"),
                            (Container(restart=runtime_pb2.RestartPolicy(policy="always")), "spec.restart"),
                            (Container(health=runtime_pb2.HealthCheck(disabled=True)), "spec.health"),
                            (Container(requires=[runtime_pb2.Requirement(container="main")]), "spec.requires"),
                            (Container(mounts=[runtime_pb2.Mount(anonymous=True, target="/x")]), "spec.mounts"),
                            (Container(user="a b:"), "spec.user")):
            self.assertFails(Code.INVALID_ARGUMENT, lambda c=spec: self.node.workloads.Debug(nacre_pb2.DebugRequest(target="web", spec=c)),
                             field)
        self.assertFails(Code.NOT_FOUND, lambda: self.node.workloads.Debug(
            nacre_pb2.DebugRequest(target="web", spec=Container(image="nowhere"))), "spec.image")
        self.debug("-d", "web", "--", "sleep", "1000")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.node.workloads.Debug(
            nacre_pb2.DebugRequest(target="web", container="debug-1")), "a debug container itself")
        done = self.node.cli("start", "--container", "debug-1", "web", check=False)
        self.assertIn("is a debug container", done.stderr)


if __name__ == "__main__":
    nacre_test.main()
