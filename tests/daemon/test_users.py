# SPDX-License-Identifier: Apache-2.0
"""Pods in user namespaces of their own: which ids they have, what they own, and what is theirs on the disk, by the kernel's word."""
import json
import os
import shutil
import stat
import tempfile
import urllib.request

import grpc

import host
import nacre_test
import screen
import steps
from nacre_test import runtime_pb2, until
from steps import container

Code = grpc.StatusCode
FIRST, EACH = 0x70000000, 65536


def ids_of(pid):
    """(real user, real group) of a process of the node."""
    lines = {l.split(":")[0]: l.split()[1:] for l in host.read(f"/proc/{pid}/status").splitlines()}
    return int(lines["Uid"][0]), int(lines["Gid"][0])


def maps_of(pid):
    return [tuple(int(x) for x in host.read(f"/proc/{pid}/{name}").split()) for name in ("uid_map", "gid_map")]


class Users(steps.StepsTest):
    def setUp(self):
        super().setUp()
        self.dir = tempfile.mkdtemp(prefix="nacre-users-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_pod(self, *options, name="p", command=("sleep", "1000")):
        self.node.cli("run", "-d", "--name", name, "--userns", "auto", *options, "busybox", *command)
        return self.inspect(name).containers[0].pid

    def sh(self, script, name="p", *options):
        done = self.node.cli("exec", *options, name, "sh", "-c", script, check=False)
        return (done.stdout + done.stderr).strip()

    def test_root_of_a_pod_is_nobody_on_the_node(self):
        pid = self.run_pod()
        self.assertEqual([(0, FIRST, EACH)] * 2, maps_of(pid))
        self.assertEqual((FIRST, FIRST), ids_of(pid))
        shown = self.inspect("p")
        self.assertEqual((FIRST, FIRST, EACH), (shown.ids_uid, shown.ids_gid, shown.ids_count))
        self.assertEqual("0 0", self.sh("echo $(id -u) $(id -g)"))
        # What is in the image is root's in the pod, and nobody's beyond its range.
        self.assertEqual("0:0", self.sh("stat -c %u:%g /bin/busybox"))
        self.assertEqual("0:0 0:0 0:0 0:0", self.sh("touch /new; stat -c %u:%g / /new /etc/hosts /dev/shm | xargs"))
        # The namespaces are the user namespace's: its root may change them.
        self.node.cli("rm", "-f", "p")
        self.run_pod("--cap-add", "SYS_ADMIN", "--cap-add", "NET_ADMIN")
        self.assertEqual("other", self.sh("hostname other; hostname"))
        self.assertEqual("", self.sh("ip link set lo down && ip link set lo up"))

    def test_ranges(self):
        pids = {name: self.run_pod(name=name) for name in ("a", "b")}
        self.assertEqual({FIRST, FIRST + EACH}, {ids_of(pid)[0] for pid in pids.values()})
        # Over restarts of the pod and of the daemon, and not given to anybody else meanwhile.
        self.sh("touch /mine; adduser -D -u 1000 x; su x -c 'touch /tmp/his' 2>&1", "b")
        self.node.cli("stop", "-t", "0", "b")
        self.node.kill()
        self.node.start()
        self.assertEqual(FIRST + 2 * EACH, ids_of(self.run_pod(name="c"))[0])
        self.node.cli("start", "b")
        self.assertEqual(FIRST + EACH, ids_of(self.inspect("b").containers[0].pid)[0])
        self.assertEqual("0", self.sh("stat -c %u /mine", "b"))
        self.node.cli("rm", "-f", "a")
        until(lambda: "a" not in self.node.cli("ps", "-a").stdout.split())
        self.assertEqual(FIRST, ids_of(self.run_pod(name="d"))[0])

    def test_files_of_volumes_and_of_the_node(self):
        os.mkdir(self.dir + "/sub")
        os.chown(self.dir + "/sub", 1000, 1000)
        os.chmod(self.dir, 0o755)
        self.run_pod("-v", self.dir + ":/host", "-v", "data:/data", "--tmpfs", "/t:uid=7,gid=8,mode=700")
        self.assertEqual("0:0 1000:1000 0:0 7:8", self.sh("stat -c %u:%g /host /host/sub /data /t | xargs"))
        self.assertEqual("", self.sh("touch /host/new /data/new; chown 5:6 /host/new; mkdir /host/sub/d; touch /t/x"))
        st = os.stat(self.dir + "/new")
        self.assertEqual((5, 6, 0), (st.st_uid, st.st_gid, os.stat(self.dir + "/sub/d").st_uid))
        # What root in there may not do, it may not do to files that are mapped either.
        self.assertIn("not permitted", self.sh("mknod /host/null c 1 3"))
        # Another pod has other ids, and finds the same files; one without finds them too.
        self.run_pod("-v", "data:/data", name="q")
        self.assertEqual("0", self.sh("stat -c %u /data/new", "q"))
        self.node.cli("run", "-d", "--name", "r", "-v", "data:/data", "busybox", "sleep", "1000")
        self.assertEqual("0", self.sh("stat -c %u /data/new", "r"))

    def test_a_volume_takes_what_the_image_has(self):
        self.run_pod("-v", "etc:/etc", "-v", "own:/own:U", "-u", "1000:1000")
        self.assertEqual("0 1000:1000", self.sh("stat -c %u /etc/passwd; stat -c %u:%g /own").replace("\n", " "))
        self.assertEqual("", self.sh("touch /own/x"))

    def test_terminals(self):
        self.node.cli("run", "-dit", "--name", "p", "--userns", "auto", "busybox", "sh")
        self.assertEqual("0:5", self.sh("stat -c %u:%g /dev/pts/0"))
        with screen.Screen(nacre_test.BINARY, "--socket", self.node.socket, "exec", "-it", "p", "sh", "-c", "stat -L -c %u:%g /proc/self/fd/0") as s:
            s.until(b"0:5")
        self.assertEqual("7", self.sh("stat -L -c %u /proc/self/fd/1", "p", "-u", "7"))

    def test_copies(self):
        self.run_pod()
        with open(self.dir + "/f", "w", encoding="ascii") as f:
            f.write("hello\n")
        os.chown(self.dir + "/f", 12, 34)
        self.node.cli("cp", self.dir + "/f", "p:/f")
        self.node.cli("cp", "-a", self.dir + "/f", "p:/g")
        self.assertEqual("hello hello 0:0 12:34", self.sh("cat /f /g; stat -c %u:%g /f /g").replace("\n", " "))
        self.sh("mkdir /d; echo x >/d/x; chown 56:78 /d/x")
        self.node.cli("cp", "-a", "p:/d", self.dir + "/d")
        st = os.stat(self.dir + "/d/x")
        self.assertEqual((56, 78), (st.st_uid, st.st_gid))
        self.node.cli("stop", "-t", "0", "p")
        self.node.cli("cp", self.dir + "/f", "p:/later")
        self.node.cli("start", "p")
        self.assertEqual("0", self.sh("stat -c %u /later"))

    def test_privileged(self):
        pid = self.run_pod("--privileged")
        self.assertEqual([(0, FIRST, EACH)] * 2, maps_of(pid))
        self.assertEqual("", self.sh("mount -t tmpfs none /tmp && touch /tmp/x"))
        # Of the node it has nothing: no device can be made, no clock set, nothing of the kernel's changed.
        for script in ("mknod /zero c 1 5", "date -s 2020-01-01", "echo 1 >/proc/sys/kernel/panic", "mount -t devtmpfs none /tmp",
                       "umount /proc", "insmod /bin/busybox"):
            self.assertRegex(self.sh(script + " && echo done"), "(?i)(not permitted|denied|invalid argument|busy)", script)

    def test_words_that_cannot_be(self):
        for word, said in (("keep-id", "keeps the ids of a user"), ("nomap", "neither")):
            done = self.node.cli("run", "--userns", word, "busybox", check=False)
            self.assertEqual((125, True), (done.returncode, said in done.stderr), done.stderr)
        self.node.cli("run", "-d", "--name", "p", "--userns", "host", "busybox", "sleep", "1000")
        self.assertEqual(0, ids_of(self.inspect("p").containers[0].pid)[0])

    def test_with_namespaces_of_the_node(self):
        pid = self.run_pod("--network", "host", "--ipc", "host", "--uts", "host", "--pid", "host")
        self.assertEqual((FIRST, FIRST), ids_of(pid))
        self.assertEqual("0 1", self.sh("id -u; [ $(ls /proc 2>/dev/null | grep -c '^[0-9]') -gt 3 ] && echo 1").replace("\n", " "))
        self.assertIn("not permitted", self.sh("hostname other"))
        self.assertRegex(self.sh(f"kill -9 {os.getpid()}"), "not permitted|No such process")

    def test_on_a_network(self):
        """The ports are made in the namespace of the pod, which its keeper enters after it was cloned, and not in the node's."""
        before = os.listdir("/sys/class/net")
        for _ in range(3):
            self.run_pod("--network", "default", "-p", "8080:80", command=("httpd", "-f", "-p", "80", "-h", "/etc"))
            self.assertEqual(["eth0", "lo"], sorted(self.sh("ls /sys/class/net").split()))
            self.assertNotIn("eth0", set(os.listdir("/sys/class/net")) - set(before))
            until(lambda: self.sh("wget -qO- http://127.0.0.1/passwd").startswith("root:"))
            with urllib.request.urlopen("http://127.0.0.1:8080/passwd", timeout=10) as answer:
                self.assertIn(b"root:", answer.read())
            self.node.cli("rm", "-f", "p")
        done = self.node.cli("cell", "--userns", "auto", "--network", "default", "busybox", "true", check=False)
        self.assertIn("--network: a cell in a user namespace can be on no network of the node", done.stderr)

    def test_ports_and_sysctls(self):
        self.node.cli("run", "-d", "--name", "p", "--userns", "auto", "--sysctl", "net.ipv4.ip_default_ttl=42", "busybox", "nc", "-l", "-p", "80", "-e", "cat")
        self.assertEqual("42", self.sh("cat /proc/sys/net/ipv4/ip_default_ttl"))
        until(lambda: ":0050" in self.sh("cat /proc/net/tcp /proc/net/tcp6"))

    def test_a_limit_of_the_disk(self):
        self.run_pod("--disk", "32M")
        self.assertEqual("0:0", self.sh("touch /x; stat -c %u:%g /x"))
        self.assertRegex(self.sh("dd if=/dev/zero of=/big bs=1M count=64 2>&1"), "No space")

    def test_programs_that_gain(self):
        """A set-user-ID program of the image is root of the pod, and capabilities of files hold in it."""
        self.run_pod("--security-profile", "baseline", "-u", "1000")
        self.sh("cp /bin/busybox /tmp/su && chmod 4755 /tmp/su && echo root::0:0::/:/bin/sh >/etc/passwd && echo x:x:1000:1000::/:/bin/sh >>/etc/passwd",
                "p", "-u", "0")
        self.assertEqual("0 1000", self.sh("/tmp/su root -c 'id -u'; id -u").replace("\n", " "))

    def test_cells(self):
        """A cell's other namespaces belong to its user namespace too, whose ids its keeper has; both containers of it are in there."""
        self.run_pod()
        self.node.cli("cell", "--name", "box", "--userns", "auto", "--cap-add", "NET_ADMIN", "--cap-add", "NET_RAW", "-v", "data:/data", "busybox", "sleep", "1000")
        pid = self.inspect("box").containers[0].pid
        self.assertEqual([(0, FIRST + EACH, EACH)] * 2, maps_of(pid))
        self.assertEqual("0 box 0:0 0:0", self.sh("id -u; hostname; stat -c %u:%g /data /dev/shm", "box").replace("\n", " "))
        self.assertEqual("", self.sh("ip link set lo down && ip link set lo up && ping -c 1 127.0.0.1 >/dev/null", "box"))
        self.node.cli("stop", "-t", "0", "box")
        self.node.cli("start", "box")
        self.assertEqual([(0, FIRST + EACH, EACH)] * 2, maps_of(self.inspect("box").containers[0].pid))
        self.node.cli("cell", "--name", "open", "--userns", "auto", "--network", "host", "busybox", "sleep", "1000")
        self.assertIn("not permitted", self.sh("ip link set lo down", "open"))
        self.assertEqual("0", self.sh("id -u", "open"))

    def test_a_file_system_without_ids(self):
        said = self.assertFails(Code.FAILED_PRECONDITION, lambda: self.pod(
            "p", container("sleep", "1000", mounts=[runtime_pb2.Mount(source="/sys/kernel", target="/k", read_only=True)]),
            security=runtime_pb2.PodSecurity(userns="auto")))
        self.assertEqual("containers[0].mounts[0].source: the file system cannot map ids of its mounts", said)
        # Nothing of it is left: its range is the next one's.
        self.assertEqual(FIRST, ids_of(self.run_pod())[0])

    def tearDown(self):
        self.node.cli("rm", "-fa", check=False)
        self.node.cli("volume", "prune", "-fa", check=False)
        super().tearDown()


class Few(steps.StepsTest):
    CONFIG = "users:\n  first: 1000000\n  count: 131072\n"

    def test_ranges_that_are_taken(self):
        for name, first in (("a", 1000000), ("b", 1065536)):
            self.node.cli("run", "-d", "--name", name, "--userns", "auto", "busybox", "sleep", "1000")
            self.assertEqual(first, ids_of(self.inspect(name).containers[0].pid)[0])
        said = self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.pod("c", container("true"), security=runtime_pb2.PodSecurity(userns="auto")))
        self.assertIn("each of the 2 ranges of ids for user namespaces is taken", said)
        self.assertEqual({"a", "b"}, set(self.all()))
        self.node.cli("rm", "-f", "a")
        self.node.cli("run", "-d", "--name", "c", "--userns", "auto", "busybox", "sleep", "1000")
        self.assertEqual(1000000, ids_of(self.inspect("c").containers[0].pid)[0])
