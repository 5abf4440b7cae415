# SPDX-License-Identifier: Apache-2.0
"""What containers mount: volumes of a pod or cell, directories and files of the node, new file systems in memory; and a root
that cannot be written to. Compared with the mounts that the kernel tells of. Row A05 of the reference "security"."""
import os
import signal
import socket
import subprocess

import grpc

import host
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2
from steps import container

Code = grpc.StatusCode
BAD, NONE, STATE = Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.FAILED_PRECONDITION


def mount(source="", target="/mnt", **fields):
    return runtime_pb2.Mount(source=source, target=target, **fields)


def tmpfs(target="/scratch", no_exec=False, **fields):
    return runtime_pb2.Mount(target=target, no_exec=no_exec, tmpfs=runtime_pb2.Tmpfs(**fields))


def volume(name, path, **fields):
    return runtime_pb2.Volume(name=name, host_path=path, **fields)


def sleeper(*mounts, **fields):
    return container("sleep", "100000", mounts=mounts, **fields)


def mounts_of(pid):
    """{target: (options, optional fields, file system, options of that)} of a process."""
    seen = {}
    for line in host.read(f"/proc/{pid}/mountinfo").splitlines():
        own, _, rest = line.partition(" - ")
        words, fs = own.split(), rest.split()
        seen[words[4]] = (set(words[5].split(",")), words[6:], fs[0], set(fs[2].split(",")))
    return seen


class MountsTest(steps.StepsTest):
    def setUp(self):
        super().setUp()
        self.dir = os.path.join(self.node.dir, "shared")
        os.makedirs(os.path.join(self.dir, "sub"), exist_ok=True)
        self.addCleanup(subprocess.run, ["rm", "-rf", self.dir], check=True)
        self.file = self.put("file", "of the host\n")

    def put(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        return path

    def get(self, name):
        return host.read(os.path.join(self.dir, name))

    def fails(self, run, *mounts, **fields):
        """The status of a container that could not be started."""
        status, = run("f", sleeper(*mounts, **fields)).containers
        self.assertEqual("failed", status.state)
        self.remove("f", force=True)
        return status.reason


class Volumes(MountsTest):
    def test_what_is_written_is_seen_on_both_sides(self):
        for run in (self.pod, self.cell):
            run("v", sleeper(mount("data", "/data"), mount(self.file, "/new/dir/file")), volumes=[volume("data", self.dir)])
            self.assertEqual("of the host\n", self.sh("v", "cat /data/file"))
            self.sh("v", "echo inside >/data/answer; echo changed >/new/dir/file")
            self.assertEqual(("inside\n", "changed\n"), (self.get("answer"), self.get("file")))
            self.put("later", "later\n")
            self.assertEqual("later\n", self.sh("v", "cat /data/later"))
            self.put("file", "of the host\n")
            self.remove("v", force=True)
            self.assertEqual("inside\n", self.get("answer"))

    def test_containers_share_a_volume(self):
        self.pod("s", sleeper(mount("data", "/a"), name="one"), sleeper(mount("data", "/b", read_only=True), name="two"),
                 volumes=[volume("data", self.dir)])
        self.sh("s", "echo hello >/a/word", container="one")
        self.assertEqual("hello\n", self.sh("s", "cat /b/word", container="two"))
        _, err, code = self.exec("s", "sh", "-c", "echo x >/b/word", container="two")
        self.assertEqual(1, code)
        self.assertIn(b"Read-only", err)

    def test_attributes(self):
        status, = self.pod("a", sleeper(mount(self.dir, "/rw"), mount(self.dir, "/ro", read_only=True, no_exec=True),
                                        mount("data", "/also", read_only=False)),
                           volumes=[volume("data", self.dir, read_only=True)]).containers
        seen = mounts_of(status.pid)
        for target, there, missing in (("/rw", {"rw", "nosuid", "nodev"}, {"noexec"}),
                                       ("/ro", {"ro", "nosuid", "nodev", "noexec"}, set()), ("/also", {"ro"}, {"noexec"})):
            options, tags, _, _ = seen[target]
            self.assertEqual((set(), set(), []), (there - options, missing & options, tags), target)

    def test_read_only_goes_for_what_is_mounted_below(self):
        point = os.path.join(self.dir, "sub")
        subprocess.run(["mount", "-t", "tmpfs", "none", point], check=True)
        self.addCleanup(subprocess.run, ["umount", point], check=True)
        status, = self.pod("r", sleeper(mount(self.dir, "/ro", read_only=True), mount(self.dir, "/rw"))).containers
        seen = mounts_of(status.pid)
        self.assertIn("ro", seen["/ro/sub"][0])
        self.assertEqual(set(), {"rw", "nosuid", "nodev"} - seen["/rw/sub"][0])
        self.sh("r", "echo below >/rw/sub/word")
        self.assertEqual("below\n", self.get("sub/word"))
        self.remove("r", force=True)

    def test_later_mounts_of_the_host_do_not_come_in(self):
        status, = self.pod("p", sleeper(mount(self.dir, "/data"))).containers
        before = host.read(f"/proc/{status.pid}/mountinfo")
        point = os.path.join(self.dir, "sub")
        subprocess.run(["mount", "-t", "tmpfs", "none", point], check=True)
        self.addCleanup(subprocess.run, ["umount", point], check=True)
        self.assertEqual(before, host.read(f"/proc/{status.pid}/mountinfo"))

    def test_in_nested_instances_they_are_of_the_node(self):
        self.spawn("a")
        self.spawn("a/b")
        for run in (self.pod, self.cell):
            run("a/b/v", sleeper(mount("data", "/data"), mount("data", "/scratch/below"), tmpfs(size=1 << 20)),
                volumes=[volume("data", self.dir)])
            self.sh("a/b/v", "echo deep >/data/deep; echo x >/scratch/x")
            self.assertEqual("deep\n", self.get("deep"))
            self.assertEqual("deep\n", self.sh("a/b/v", "cat /scratch/below/deep"))
            self.remove("a/b/v", force=True)

    def test_execs_see_them_and_copies_reach_them(self):
        self.pod("x", sleeper(mount(self.dir, "/data")))
        answers = list(self.node.workloads.CopyFrom(nacre_pb2.CopyFromRequest(target="x", path="/data/file")))
        self.assertEqual(b"of the host\n", b"".join(a.data for a in answers))

    def test_order(self):
        status, = self.pod("o", sleeper(mount(self.dir, "/data"), tmpfs("/data/sub"))).containers
        self.assertEqual("tmpfs", mounts_of(status.pid)["/data/sub"][2])
        self.sh("o", "echo hidden >/data/sub/word")
        self.assertFalse(os.path.exists(os.path.join(self.dir, "sub", "word")))

    def test_order_is_that_of_depth(self):
        """Whatever order, kind or workload: what lies deeper is mounted later."""
        self.put("sub/word", "deeper\n")
        deep, flat, memory = mount(self.dir + "/sub", "/m/sub"), mount(self.dir, "/m"), tmpfs("/m")
        for run in (self.pod, self.cell):
            for mounts in ((deep, flat), (flat, deep), (deep, memory), (memory, deep)):
                run("o", sleeper(*mounts))
                self.assertEqual("deeper\n", self.sh("o", "cat /m/sub/word"), mounts)
                self.assertEqual(list(mounts), list(self.inspect("o").containers[0].mounts))
                self.remove("o", force=True)
        for words in (("-v", f"{self.dir}/sub:/m/sub", "-v", f"{self.dir}:/m"), ("--tmpfs", "/m", "-v", f"{self.dir}/sub:/m/sub")):
            self.assertEqual("deeper\n", self.node.cli("run", "--rm", *words, "busybox", "cat", "/m/sub/word").stdout)

    def test_directories_of_the_image_stay_inside(self):
        self.pod("l", sleeper(mount(self.dir, "/bin/nacre-canary")))
        self.assertEqual("of the host\n", self.sh("l", "cat /bin/nacre-canary/file"))
        self.assertFalse(os.path.lexists("/bin/nacre-canary"))

    def test_they_survive_the_daemon(self):
        self.pod("s", sleeper(mount("data", "/data", read_only=True), tmpfs(size=1 << 20, mode=0o700)),
                 volumes=[volume("data", self.dir)])
        before = self.inspect("s")
        self.node.restart(signal.SIGKILL)
        after = self.inspect("s")
        self.assertEqual(before.containers[0].pid, after.containers[0].pid)
        self.assertEqual(before.containers[0].mounts, after.containers[0].mounts)
        self.assertEqual("of the host\n", self.sh("s", "cat /data/file"))


class Memory(MountsTest):
    def test_size_and_mode(self):
        for run in (self.pod, self.cell):
            status, = run("t", sleeper(tmpfs(size=1 << 20, mode=0o750, no_exec=True), tmpfs("/tmp"))).containers
            options, tags, fs, own = mounts_of(status.pid)["/scratch"]
            self.assertEqual(([], "tmpfs", set()), (tags, fs, {"nosuid", "nodev", "noexec"} - options))
            self.assertIn("size=1024k", own)
            self.assertEqual("750\n1777\n", self.sh("t", "stat -c %a /scratch; stat -c %a /tmp"))
            _, err, code = self.exec("t", "dd", "if=/dev/zero", "of=/scratch/big", "bs=1024", "count=2000")
            self.assertEqual(1, code)
            self.assertIn(b"No space", err)
            self.remove("t", force=True)

    def test_shared_memory_of_another_size(self):
        status, = self.pod("m", sleeper(tmpfs("/dev/shm", size=2 << 20))).containers
        self.assertIn("size=2048k", mounts_of(status.pid)["/dev/shm"][3])

    def test_with_a_terminal(self):
        status, = self.pod("y", sleeper(tmpfs(), mount(self.dir, "/data"), tty=True)).containers
        self.assertLessEqual({"/scratch", "/data", "/dev/console"}, set(mounts_of(status.pid)))
        self.assertEqual(["0", "1", "2"], sorted(os.listdir(f"/proc/{status.pid}/fd")))


class Root(MountsTest):
    def test_read_only(self):
        for run in (self.pod, self.cell):
            status, = run("r", sleeper(tmpfs(), mount(self.dir, "/data"), read_only_root=True)).containers
            self.assertIn("ro", mounts_of(status.pid)["/"][0])
            _, err, code = self.exec("r", "sh", "-c", "echo x >/file")
            self.assertEqual(1, code)
            self.assertIn(b"Read-only", err)
            self.sh("r", "echo x >/scratch/x; echo x >/data/x; echo x >/dev/shm/x; echo x >/dev/null")
            self.assertTrue(self.inspect("r").containers[0].read_only_root)
            self.remove("r", force=True)

    def test_missing_targets_are_made_all_the_same(self):
        self.pod("r", sleeper(mount(self.dir, "/not/there"), read_only_root=True))
        self.assertEqual("of the host\n", self.sh("r", "cat /not/there/file"))


class Shown(MountsTest):
    def test_inspect(self):
        mounts = [mount("data", "/data"), mount(self.file, "/file", read_only=True), tmpfs(size=4096, mode=0o700, no_exec=True)]
        self.pod("i", sleeper(*mounts), volumes=[volume("data", self.dir, read_only=True)])
        mounts[0].source, mounts[0].read_only = self.dir, True
        self.assertEqual(mounts, list(self.inspect("i").containers[0].mounts))
        listed, = self.node.workloads.List(nacre_pb2.ListRequest()).workloads
        self.assertEqual(mounts, list(listed.containers[0].mounts))

    def test_plain_ones_show_nothing(self):
        self.pod("i")
        self.assertEqual([], list(self.inspect("i").containers[0].mounts))


class Refused(MountsTest):
    def refused(self, code, field, *mounts, words=(), **fields):
        for run in (self.pod, self.cell):
            text = self.assertFails(code, lambda r=run: r("no", sleeper(*mounts), **fields), *words)
            self.assertTrue(text.startswith(field + ": "), text)
            self.assertEqual({}, self.all())
        self.assertNoTraces(self.before)

    def test_sources(self):
        field = "containers[0].mounts[0].source"
        own = [self.node.dir, os.path.dirname(self.node.dir)]
        info = self.node.info.Info(nacre_pb2.InfoRequest())
        own += [info.root, info.run, os.path.join(info.root, "logs"), os.path.join(info.run, "run.db")]
        for path in ("/", "//", *own):
            self.refused(BAD, field, mount(path), words=["given out"])
        self.refused(BAD, field, mount(""), words=["required"])
        self.refused(NONE, field, mount("nobody"), words=["volumes"])
        self.refused(NONE, field, mount("./x"))
        self.refused(NONE, field, mount(self.dir + "/missing"))
        self.refused(NONE, field, mount(self.file + "/below"))
        for path in ("/" + "x" * 256, "/" + "x" * 256 + "/y", "/x" * 2049):
            self.refused(BAD, field, mount(path), words=["longer than"])

    def test_links_are_not_followed(self):
        link = os.path.join(self.dir, "link")
        os.symlink("/etc", link)
        os.symlink(self.dir, os.path.join(self.dir, "sub", "up"))
        for path in (link, link + "/hostname", os.path.join(self.dir, "sub", "up", "file"), "/proc/self/root/etc",
                     "/proc/self/cwd"):
            self.refused(STATE, "containers[0].mounts[0].source", mount(path), words=["symbolic link"])
            self.refused(STATE, "containers[0].mounts[0].source", mount("v"), volumes=[volume("v", path)],
                         words=["symbolic link"])

    def test_what_is_neither_directory_nor_file(self):
        fifo, path = os.path.join(self.dir, "fifo"), os.path.join(self.dir, "socket")
        os.mkfifo(fifo)
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
        for source in (fifo, path, "/dev/null"):
            self.refused(STATE, "containers[0].mounts[0].source", mount(source), words=["neither"])

    def test_targets(self):
        """A05: nothing goes on a procfs, by whatever name, nor on what the node puts into each container."""
        field = "containers[0].mounts[0].target"
        for target in ("", "data", "/", "//", "/./data", "/../data", "/data/..", "/proc/../proc", "//proc/.", "/proc", "/proc/",
                       "/proc/self", "//proc", "/proc/self/attr", "/sys", "/sys/fs/cgroup", "/dev", "/dev/", "/dev/null",
                       "/dev/pts", "/" + "x" * 4096):
            self.refused(BAD, field, mount(self.dir, target))
            self.refused(BAD, field, tmpfs(target))

    def test_targets_twice(self):
        self.refused(BAD, "containers[0].mounts[1].target", mount(self.dir, "/a/b"), tmpfs("/a//b/"), words=["mounts[0]"])

    def test_tmpfs(self):
        at = "containers[0].mounts[0]"
        self.refused(BAD, at + ".tmpfs.mode", tmpfs(mode=0o10000))
        self.refused(BAD, at + ".tmpfs", mount(self.dir, tmpfs=runtime_pb2.Tmpfs()))
        self.refused(BAD, at + ".read_only", mount(tmpfs=runtime_pb2.Tmpfs(), read_only=True))

    def test_volumes(self):
        for name in ("", "A", "a/b", "/a"):
            self.refused(BAD, "volumes[0].name", volumes=[volume(name, self.dir)])
        self.refused(BAD, "volumes[1].name", volumes=[volume("a", self.dir), volume("a", self.dir)])
        for path in ("", "a", "./a"):
            self.refused(BAD, "volumes[0].host_path", volumes=[volume("a", path)])

    def test_too_many(self):
        many = [volume(f"v{n}", self.dir) for n in range(1000)]
        self.refused(BAD, "volumes", volumes=many, words=["64"])
        self.refused(BAD, "containers[0].mounts", *[mount(self.dir, f"/m/{n}") for n in range(33)], words=["32"])
        crowd = [sleeper(*[mount(self.dir, f"/m/{n}") for n in range(32)], name=f"c{i}") for i in range(8)]
        text = self.assertFails(BAD, lambda: self.pod("no", *crowd, sleeper(mount(self.dir), name="more")), "256")
        self.assertTrue(text.startswith("containers[8].mounts: "), text)

    def test_as_many_as_there_may_be(self):
        """More descriptors than a keeper holds for messages to come, over one connection."""
        crowd = [sleeper(*[mount("v%d" % (n % 64), f"/m/{n}") for n in range(32)], name=f"c{i}") for i in range(8)]
        answer = self.pod("yes", *crowd, volumes=[volume(f"v{n}", self.dir) for n in range(64)])
        self.assertEqual(["running"] * 8, [c.state for c in answer.containers], answer.containers)
        for i in range(8):
            self.assertEqual("of the host\n", self.sh("yes", "cat /m/31/file", container=f"c{i}"))

    def test_something_else_is_there(self):
        self.assertIn("/etc/passwd", self.fails(self.pod, tmpfs("/etc/passwd")))
        self.assertIn("/bin/busybox", self.fails(self.cell, mount(self.dir, "/bin/busybox")))
        self.assertIn("/etc", self.fails(self.pod, mount(self.file, "/etc")))


def long_path(top, length):
    """An absolute path of that length below top, of names of at most 200."""
    left = length - len(top)
    names = []
    while left > 401:
        names.append("x" * 200)
        left -= 201
    # At least two more characters each: a slash and a letter.
    first = left // 2
    return "/".join([top, *names, "y" * (first - 1), "z" * (left - first - 1)])


class Lengths(MountsTest):
    """A08: what is mounted, and where, is as long in all as lengths of 16 bits can say, or longer."""

    EACH = 3000

    def parts(self, total):
        """Lengths of at most EACH whose sum is total."""
        n = total // self.EACH + 1
        return [total // n + (i < total % n) for i in range(n)]

    def test_around_16_bits(self):
        for total in (65534, 65535, 65536, 70000):
            mounts = []
            for i, n in enumerate(self.parts(total)):
                source = long_path(f"{self.dir}/{total}-{i}", n)
                os.makedirs(source)
                with open(os.path.join(source, "word"), "w", encoding="ascii") as f:
                    f.write(f"{i}\n")
                mounts.append(mount(source, long_path(f"/{i}", n)))
            self.assertEqual([total] * 2, [sum(len(getattr(m, k)) for m in mounts) for k in ("source", "target")])
            for run in (self.pod, self.cell):
                status, = run("long", sleeper(*mounts)).containers
                self.assertEqual("running", status.state, status.reason)
                seen = mounts_of(self.inspect("long").containers[0].pid)
                self.assertEqual([], [m.target for m in mounts if m.target not in seen])
                # Each of them where it belongs, and nothing but them.
                self.assertEqual(len(mounts), sum(len(t) > 2000 for t in seen))
                self.assertEqual("".join(f"{i}\n" for i in range(len(mounts))),
                                 self.sh("long", "for i in $(seq 0 %d); do find /$i -name word -exec cat {} +; done" % (len(mounts) - 1)))
                self.remove("long", force=True)
            subprocess.run(f"rm -rf {self.dir}/{total}-*", shell=True, check=True)

    def test_volumes_around_16_bits(self):
        for total in (65534, 65535, 65536, 70000):
            volumes = [volume(f"v{i}", long_path(f"{self.dir}/{total}-{i}", n)) for i, n in enumerate(self.parts(total))]
            for v in volumes:
                os.makedirs(v.host_path)
            self.pod("long", sleeper(*[mount(v.name, f"/mnt/{v.name}") for v in volumes]), volumes=volumes)
            shown = self.inspect("long").containers[0].mounts
            self.assertEqual([(v.host_path, f"/mnt/{v.name}") for v in volumes], [(m.source, m.target) for m in shown])
            self.assertEqual(len(volumes), sum(t.startswith("/mnt/") for t in mounts_of(self.inspect("long").containers[0].pid)))
            self.remove("long", force=True)
            subprocess.run(f"rm -rf {self.dir}/{total}-*", shell=True, check=True)


class Links(MountsTest):
    """A05, A31: links where something is to be mounted, as an image has them; here they are in a mount before it."""

    def test_to_a_procfs(self):
        os.symlink("/proc", os.path.join(self.dir, "p"))
        os.symlink("/proc/self/attr", os.path.join(self.dir, "q"))
        for run in (self.pod, self.cell):
            for target in ("/d/p", "/d/p/self", "/d/q"):
                self.assertIn("procfs", self.fails(run, mount(self.dir, "/d"), tmpfs(target)))

    def test_to_the_root_and_to_what_a_container_has(self):
        """Refused as where the request names these places, but once the container starts: judged where a target arrives."""
        for name, to in (("up", "../.."), ("root", "/"), ("sys", "/sys"), ("dev", "/dev"), ("group", "sub/../../sys/fs/cgroup")):
            os.symlink(to, os.path.join(self.dir, name))
        for run in (self.pod, self.cell):
            for target in ("/d/up", "/d/root"):
                self.assertIn(f"{target}: leads to the root, and nothing can be mounted on that",
                              self.fails(run, mount(self.dir, "/d"), mount(self.dir, target)))
            for target in ("/d/sys", "/d/sys/kernel", "/d/group", "/d/dev", "/d/dev/new", "/d/dev/pts", "/d/dev/shm/new"):
                self.assertIn(f"{target}: leads into /dev or /sys of the container, and nothing can be mounted there but on /dev/shm",
                              self.fails(run, mount(self.dir, "/d"), tmpfs(target)))
            self.assertIn("leads into /dev", self.fails(run, mount(self.dir, "/d"), mount(self.file, "/d/dev/null")))
            run("yes", sleeper(mount(self.dir, "/d"), tmpfs("/d/dev/shm", size=1 << 20), tmpfs("/d/sub/x")))
            self.assertIn("size=1024k", mounts_of(self.inspect("yes").containers[0].pid)["/dev/shm"][3])
            self.remove("yes", force=True)

    def test_out_of_the_root(self):
        canary = os.path.join(self.node.dir, "canary")
        os.makedirs(canary, exist_ok=True)
        self.addCleanup(subprocess.run, ["rm", "-rf", canary], check=True)
        os.symlink(canary, os.path.join(self.dir, "out"))
        self.pod("o", sleeper(mount(self.dir, "/d"), tmpfs("/d/out/made")))
        self.assertEqual("tmpfs", mounts_of(self.inspect("o").containers[0].pid)[canary + "/made"][2])
        self.assertEqual([], os.listdir(canary))


class Cli(MountsTest):
    def test_flags(self):
        for words in (("run", "-d"), ("cell",)):
            # A name relative to here, and through a link: the command line finds what it means.
            os.symlink("sub", os.path.join(self.dir, "link"))
            self.put("sub/word", "below\n")
            self.node.cli(*words, "--name", "c", "-v", self.dir + "/link:/data:ro,noexec", "-v", self.file + ":/file", "--tmpfs",
                          "/t:size=64k,mode=700", "--tmpfs", "/u", "--read-only", "busybox", "sleep", "100000")
            own, = self.inspect("c").containers
            self.assertEqual([mount(self.dir + "/sub", "/data", read_only=True, no_exec=True), mount(self.file, "/file"),
                              tmpfs("/t", size=64 << 10, mode=0o700), tmpfs("/u")], list(own.mounts))
            self.assertTrue(own.read_only_root)
            self.assertEqual("below\n", self.sh("c", "cat /data/word"))
            self.remove("c", force=True)
            os.unlink(os.path.join(self.dir, "link"))

    def test_wrong_ones(self):
        for words, text in ((("-v", "etc"), "SOURCE:TARGET"), (("-v", ":/x"), "SOURCE:TARGET"), (("-v", "/etc:/x:loud"), "loud"),
                            (("--tmpfs", "/x:size=no"), "size=no"), (("--tmpfs", "/x:mode=9"), "mode=9"),
                            (("--tmpfs", "/x:ro"), "ro"), (("-v", "./no-such:/x"), "no-such"), (("-v", "/no/such:/x"), "/no/such"),
                            (("-v", "/etc:/proc"), "/proc")):
            done = self.node.cli("run", *words, "busybox", "true", check=False)
            self.assertNotEqual(0, done.returncode)
            self.assertIn(text, done.stderr)

