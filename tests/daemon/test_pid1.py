# SPDX-License-Identifier: Apache-2.0
"""`nacre daemon` as pid 1 of a pid namespace: what it mounts, reaps and survives, and how it ends."""
import os
import pty
import signal
import termios
import time
import unittest

import host
import images
import nacre_test
import pid1
from nacre_test import until

STAY = "trap 'echo {name} >> /out/order; exit 0' TERM; echo up > /out/{name}; while :; do sleep 0.05; done"
STUBBORN = "trap '' TERM; echo up > /out/{name}; while :; do sleep 0.05; done"


class Pid1Test(unittest.TestCase):
    def box(self, config="", **kwargs):
        box = pid1.Box(config, **kwargs)
        self.addCleanup(box.destroy)
        self.addCleanup(lambda: print("".join(f"# {line}\n" for line in box.log().splitlines()[-40:])))
        return box

    def up(self, config="", **kwargs):
        box = self.box(config)
        box.up(**kwargs)
        return box

    def run_pod(self, box, name, script, *options):
        os.makedirs(box.path("/srv/out"), exist_ok=True)
        box.cli("run", "-d", "--name", name, "-v", "/srv/out:/out", *options, "busybox", "sh", "-c", script.format(name=name))
        until(lambda: os.path.exists(box.path(f"/srv/out/{name}")), what=f"{name} runs")

    def order(self, box):
        return host.read(box.path("/srv/out/order")).split()


class Begin(Pid1Test):
    def test_what_is_missing_is_mounted(self):
        box = self.box()
        # As systemd leaves all mounts of a host.
        pid1.run("mount", "--make-rshared", box.root)
        before = host.mounts()
        box.up()
        mounts = box.mounts()
        self.assertEqual({"/proc": "proc", "/sys": "sysfs", "/dev": "tmpfs", "/dev/pts": "devpts", "/dev/shm": "tmpfs",
                          "/dev/mqueue": "mqueue", "/run": "tmpfs", "/sys/fs/cgroup": "cgroup2"},
                         {p: fs for p, (_, fs) in mounts.items() if p.startswith(("/proc", "/sys", "/dev", "/run"))})
        # The host has none of them.
        self.assertEqual(before, host.mounts())
        self.assertEqual("1 nacre", box.inside("/bin/sh", "-c", "cat /proc/1/stat").split(")")[0].replace("(", ""))
        for name, numbers in (("null", "1:3"), ("zero", "1:5"), ("full", "1:7"), ("random", "1:8"), ("urandom", "1:9"), ("tty", "5:0")):
            self.assertEqual(f"character special file {numbers} 666", box.inside("stat", "-c", "%F %Hr:%Lr %a", f"/dev/{name}").strip())
        # It is pid 1, and what serves is its child.
        self.assertEqual(1, {outside: inside for inside, outside in box.process_ids().items()}[box.pid])
        self.assertIsNotNone(box.daemon())
        self.assertIn("UP", box.inside("ip", "link", "show", "lo"))
        box.busybox()
        self.assertEqual("hello\n", box.cli("run", "--rm", "busybox", "echo", "hello").stdout)

    def test_what_is_mounted_stays(self):
        box = self.box()
        for name in ("dev", "run"):
            box.mount("-t", "tmpfs", "mine", box.path("/" + name))
        for name in ("null", "zero", "random", "urandom"):
            os.mknod(box.path(f"/dev/{name}"), 0o20666, os.stat(f"/dev/{name}").st_rdev)
        box.write("/run/mine", "")
        box.up(shell="mount -t proc mine /proc; mount -t sysfs mine /sys")
        sources = {line.split()[4]: line.partition(" - ")[2].split()[1] for line in host.read(f"/proc/{box.pid}/mountinfo").splitlines()}
        self.assertEqual({"/proc": "mine", "/sys": "mine", "/dev": "mine", "/run": "mine"},
                         {p: sources[p] for p in ("/proc", "/sys", "/dev", "/run")})
        self.assertIn("/run/mine", box.inside("ls", "/run/mine"))
        self.assertEqual("devpts", box.mounts()["/dev/pts"][1])

    def test_proc_of_another_namespace_is_covered(self):
        box = self.box()
        box.mount("-t", "proc", "outer", box.path("/proc"))
        box.up()
        self.assertIn("nacre", box.inside("cat", "/proc/1/comm"))
        self.assertEqual("outer", [m.partition(" - ")[2].split()[1] for m in host.read("/proc/self/mountinfo").splitlines()
                                   if m.split()[4] == box.path("/proc")][-1])

    def test_no_streams_and_nothing_mounted(self):
        box = self.box()
        box.up(shell="exec 0<&- 1>&- 2>&-")
        self.assertEqual({os.makedev(1, 3)}, {os.stat(f"/proc/{box.pid}/fd/{fd}").st_rdev for fd in range(3)})
        self.assertEqual(0, pid1.stop(box))

    def test_read_only_root(self):
        box = self.box()
        box.mount("-t", "tmpfs", "srv", box.path("/srv"))
        pid1.run("mount", "-o", "remount,bind,ro", box.root)
        box.up()
        self.assertEqual("/run/nacre-root", box.json("info")["root"])
        self.assertIn("images and logs are kept in memory", box.log())
        self.assertEqual("tmpfs", box.mounts()["/tmp"][1])
        box.busybox()
        self.assertEqual("hello\n", box.cli("run", "--rm", "busybox", "echo", "hello").stdout)

    def test_directories_that_are_not_there(self):
        box = self.box(empty=("etc", "srv", "tmp"))
        box.up()
        self.assertEqual("proc", box.mounts()["/proc"][1])
        self.assertEqual("tmpfs", box.mounts()["/run"][1])


class Life(Pid1Test):
    def test_orphans_are_reaped(self):
        box = self.up()
        before = box.process_ids()
        box.inside("/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (sh -c 'exec sleep 0.1' & ); done")
        until(lambda: box.process_ids().keys() == before.keys(), what="nothing is left of them, no zombie either")

    def test_nobody_inside_kills_it(self):
        box = self.up()
        asked = {signal.SIGTERM, signal.SIGINT, signal.SIGPWR, signal.SIGUSR1, signal.SIGUSR2}
        # Of those a sanitizer dies by itself.
        faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT} if nacre_test.SANITIZED else set()
        for number in sorted(set(range(1, signal.SIGRTMAX + 1)) - asked - faults - {32, 33}):
            box.inside("/bin/sh", "-c", f"kill -{int(number)} 1")
        box.cli("ps")
        self.assertIsNone(box.process.poll())
        self.assertEqual(0, pid1.stop(box))

    @unittest.skipIf(nacre_test.SANITIZED, "a sanitizer writes there before main()")
    def test_a_console_that_takes_nothing(self):
        far, near = pty.openpty()
        self.addCleanup(os.close, far)
        box = self.box()
        # What is written there waits for ever, as behind control-S.
        termios.tcflow(near, termios.TCOOFF)
        box.start(log=near)
        os.close(near)
        # Its daemon may wait, and pid 1 does not.
        until(lambda: box.children(), what="it has begun")
        self.assertEqual(0, pid1.stop(box, seconds=90))

    def test_orphans_without_end(self):
        box = self.up()
        box.inside("/bin/sh", "-c", "(while :; do (true & ) ; done) >/dev/null 2>&1 &")
        for _ in range(5):
            began = time.monotonic()
            box.cli("ps")
            print(f"# answered after {time.monotonic() - began:.2f} s")
        zombies = [p for p in box.children() if ") Z " in host.read(f"/proc/{p}/stat")]
        self.assertLess(len(zombies), 200)
        self.assertEqual(0, pid1.stop(box, seconds=20))

    def test_a_daemon_that_dies(self):
        box = self.up()
        box.busybox()
        self.run_pod(box, "web", STAY)
        pid = box.json("inspect", "web")["containers"][0]["pid"]
        first = box.daemon()
        os.kill(first, signal.SIGKILL)
        until(lambda: box.daemon() not in (None, first), what="there is another daemon")
        box.up()
        self.assertEqual(pid, box.json("inspect", "web")["containers"][0]["pid"])
        self.assertEqual("running", box.json("inspect", "web")["state"])

    def test_a_broken_configuration(self):
        box = self.box("nonsense: 1\n")
        box.up()
        lacks = box.json("info")["lacks"]
        self.assertRegex(lacks[0], r"/etc/nacre/config.yaml:\d+: nonsense: there is no such key")
        box.busybox()
        self.run_pod(box, "web", STAY)
        first = box.daemon()
        # As broken as before.
        box.signal(signal.SIGHUP)
        until(lambda: box.log().count("the configuration is broken") == 2, what="it was looked at again")
        self.assertEqual(first, box.daemon())
        box.configure("system:\n  hostname: again\n")
        box.signal(signal.SIGHUP)
        until(lambda: box.daemon() not in (None, first), what="there is a daemon with it")
        box.up()
        self.assertFalse(box.json("info").get("lacks"))
        self.assertEqual("running", box.json("inspect", "web")["state"])

    def test_a_broken_policy(self):
        box = self.box("policy: /etc/nacre/access.yaml\n")
        box.write("/etc/nacre/access.yaml", "rules: [\n")
        box.up()
        self.assertIn("no daemon comes up with the configuration", box.json("info")["lacks"][0])
        self.assertIn("access.yaml", box.log())
        box.write("/etc/nacre/access.yaml", "rules: []\n")

    def test_reload_is_passed_on(self):
        box = self.box("policy: /etc/nacre/access.yaml\n")
        box.write("/etc/nacre/access.yaml", "rules: []\n")
        box.up()
        first = box.daemon()
        box.write("/etc/nacre/access.yaml", "rules: [\n")
        box.signal(signal.SIGHUP)
        until(lambda: "access.yaml" in box.log(), what="the daemon has read it")
        self.assertEqual(first, box.daemon())


class End(Pid1Test):
    def end(self, number):
        box = self.up()
        box.busybox()
        for name in ("a", "b", "c"):
            self.run_pod(box, name, STAY, "--restart", "always")
        processes = box.process_ids()
        self.assertEqual(0, pid1.stop(box, number))
        self.assertEqual(["c", "b", "a"], self.order(box))
        self.assertFalse([p for p in processes.values() if os.path.exists(f"/proc/{p}")])

    def test_sigterm(self):
        self.end(signal.SIGTERM)

    def test_sigint(self):
        self.end(signal.SIGINT)

    def test_sigpwr(self):
        self.end(signal.SIGPWR)

    def test_who_does_not_end(self):
        box = self.up("system:\n  stop_within: 4s\n")
        box.busybox()
        self.run_pod(box, "a", STAY)
        self.run_pod(box, "b", STUBBORN)
        began = time.monotonic()
        self.assertEqual(0, pid1.stop(box))
        # The first half of the time is for the order, the second one for all together.
        self.assertEqual(["a"], self.order(box))
        self.assertGreater(time.monotonic() - began, 3.5)
        self.assertIn("stopped together", box.log())

    def test_a_second_signal(self):
        box = self.up("system:\n  stop_within: 10m\n")
        box.busybox()
        self.run_pod(box, "a", STUBBORN)
        box.signal(signal.SIGTERM)
        until(lambda: "stopping workload=a" in box.log(), what="it is asked to end")
        box.signal(signal.SIGTERM)
        self.assertEqual(0, box.wait(seconds=15))

    def test_a_daemon_that_hangs(self):
        box = self.up("system:\n  stop_within: 100ms\n")
        os.kill(box.daemon(), signal.SIGSTOP)
        self.assertEqual(0, pid1.stop(box, seconds=40))
        self.assertIn("the daemon does not end in time", box.log())

    def test_while_no_daemon_is_there(self):
        box = self.box("libexec: /nowhere\n")
        box.start(shell="rm -f /etc/nacre/config.yaml; mkdir /etc/nacre/config.yaml")
        until(lambda: "the configuration is broken" in box.log(), what="it has begun")
        self.assertEqual(0, pid1.stop(box, seconds=30))

    def test_a_daemon_that_is_not_pid_1(self):
        with nacre_test.Node() as node:
            images.ensure(node, "busybox")
            out = os.path.join(node.dir, "out")
            os.mkdir(out)
            for name in ("a", "b"):
                node.cli("run", "-d", "--name", name, "--restart", "always", "-v", f"{out}:/out", "busybox", "sh", "-c", STAY.format(name=name))
                until(lambda name=name: os.path.exists(os.path.join(out, name)), what=f"{name} runs")
            node.send_signal(signal.SIGPWR)
            self.assertEqual(0, node.wait())
            self.assertEqual(["b", "a"], host.read(os.path.join(out, "order")).split())
            # No keeper either: the host ends.
            until(lambda: not host.cgroup_pids(node.cgroup()), what="nothing is left")
            # The same boot: nobody has stopped them, so their policy starts them.
            node.start()
            until(lambda: {w["state"] for w in node.json("ps", "-a")} == {"running"}, what="they run again")

    def test_workloads_begin_again(self):
        box = self.up()
        box.busybox()
        self.run_pod(box, "web", STAY, "--restart", "always")
        self.run_pod(box, "job", STAY, "--restart", "on-failure")
        self.run_pod(box, "plain", STAY)
        self.assertEqual(0, pid1.stop(box))
        os.unlink(box.path("/srv/out/web"))
        box.process = None
        box.up()
        until(lambda: os.path.exists(box.path("/srv/out/web")), what="it runs again")
        states = {w["name"]: w["state"] for w in box.json("ps", "-a")}
        self.assertEqual({"web": "running", "job": "exited", "plain": "exited"}, states)
