# SPDX-License-Identifier: Apache-2.0
"""Volumes of the node, with a name and without: what makes them, fills them, keeps them and takes them away. Compared with the
directories on the disk, the mounts that the kernel tells of, and what is left behind."""
import concurrent.futures
import glob
import io
import json
import os
import stat
import subprocess
import tarfile
import threading
import unittest

import grpc

import faults
import host
import nacre_test
import schema
import steps
from nacre_test import nacre_pb2, runtime_pb2
from steps import container

Code = grpc.StatusCode
BAD, NONE, STATE = Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.FAILED_PRECONDITION


def mount(volume="", target="/data", **fields):
    return runtime_pb2.Mount(volume=volume, target=target, **fields)


def sleeper(*mounts, image="busybox", **fields):
    return container("sleep", "100000", mounts=mounts, image=image, **fields)


def entry(tar, name, kind=tarfile.DIRTYPE, mode=0o755, data=b"", **fields):
    e = tarfile.TarInfo(name)
    e.type, e.mode, e.size = kind, mode, len(data)
    for key, value in fields.items():
        setattr(e, key, value)
    tar.addfile(e, io.BytesIO(data))


def seeded(tar):
    """What an image with data has: owners, modes, links of both kinds, an attribute, a FIFO."""
    entry(tar, "seed", mode=0o1750, uid=7, gid=8)
    entry(tar, "seed/file", tarfile.REGTYPE, 0o640, b"of the image\n", uid=1, gid=2, mtime=1000000000,
          pax_headers={"SCHILY.xattr.user.colour": "blue"})
    entry(tar, "seed/same", tarfile.LNKTYPE, linkname="seed/file")
    entry(tar, "seed/link", tarfile.SYMTYPE, linkname="/etc/shadow")
    entry(tar, "seed/pipe", tarfile.FIFOTYPE, 0o600)
    entry(tar, "seed/deep/er/and", mode=0o711)
    entry(tar, "seed/deep/er/and/low", tarfile.REGTYPE, 0o4755, b"low\n")
    entry(tar, "seed/empty")


class VolumesTest(steps.StepsTest):
    @classmethod
    def prepare(cls):
        cls.make_image("seeded", ["/seed", "/none"], seeded)

    def also_image(self, name, *args, **kwargs):
        self.make_image(name, *args, **kwargs)
        self.addCleanup(lambda: self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=name)))
        self.addCleanup(self.prune)

    @classmethod
    def make_image(cls, name, volumes, fill=lambda tar: None, user=""):
        path = os.path.join(cls.node.dir, "image.tar")
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
            tar.add("/bin/busybox", "bin/busybox")
            for applet in ("sh", "cat", "sleep", "stat", "id"):
                entry(tar, "bin/" + applet, tarfile.SYMTYPE, linkname="busybox")
            entry(tar, "etc/passwd", tarfile.REGTYPE, 0o644, b"root:x:0:0::/:/bin/sh\nann:x:1234:4321::/:/bin/sh\n")
            fill(tar)
        config = {"config": {"Volumes": {v: {} for v in volumes}, "User": user}}
        list(cls.node.images.Import(nacre_pb2.ImportRequest(path=path, name=name, config=json.dumps(config))))
        os.unlink(path)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.prune)

    def prune(self):
        self.node.clear()
        self.node.volumes.PruneVolumes(nacre_pb2.PruneVolumesRequest(all=True))
        nacre_test.until(lambda: not os.listdir(os.path.join(self.node.root, "volumes")), what="the directories to go")

    def volumes(self):
        return {v.name: v for v in self.node.volumes.ListVolumes(nacre_pb2.ListVolumesRequest()).volumes}

    def volume(self, name):
        return self.node.volumes.InspectVolume(nacre_pb2.InspectVolumeRequest(name=name)).volume

    def make(self, name="", **fields):
        return self.node.volumes.CreateVolume(nacre_pb2.CreateVolumeRequest(name=name, **fields)).volume

    def drop(self, name):
        self.node.volumes.RemoveVolume(nacre_pb2.RemoveVolumeRequest(name=name))

    def run_volume(self, path, *mounts, **fields):
        """A pod whose only container could be started; its status."""
        status, = self.pod(path, sleeper(*mounts, **fields)).containers
        self.assertEqual("running", status.state, status.reason)
        return status


class Service(VolumesTest):
    def test_made_told_and_removed(self):
        made = self.make("data", labels=["owner=shop", "plain"])
        self.assertEqual((made.name, list(made.labels), made.anonymous), ("data", ["owner=shop", "plain="], False))
        self.assertTrue(os.path.isdir(made.path), made.path)
        nameless = self.make()
        self.assertEqual(nameless.id, nameless.name)
        self.assertEqual(["data", nameless.name], list(self.volumes()))
        self.assertEqual(made, self.volume("data"))
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.make("data"), "name:", "data")
        self.drop("data")
        self.assertFalse(os.path.exists(made.path))
        self.assertFails(NONE, lambda: self.drop("data"), "name:")
        self.assertFails(NONE, lambda: self.volume("data"), "name:")

    def test_names_and_labels(self):
        for name in ("-x", ".", "..", "a/b", "a b", "x" * 129, "\n", "_a"):
            self.assertFails(BAD, lambda n=name: self.make(n), "name:")
        for labels in (["=x"], ["a=1", "a=2"], ["a=\n"], ["a" * 1025], [f"l{i}=" for i in range(65)]):
            self.assertFails(BAD, lambda given=labels: self.make("ok", labels=given), "labels")
        self.make("A.b_c-1", labels=[f"l{i}=" for i in range(64)])
        self.assertEqual({"A.b_c-1"}, set(self.volumes()))

    def test_a_name_is_never_one_on_the_disk(self):
        self.make("data")
        names = os.listdir(os.path.join(self.node.root, "volumes"))
        self.assertEqual([self.volume("data").id], names)

    def test_one_in_use_stays_until_its_last_workload_is_removed(self):
        self.run_volume("one", mount("data"))
        self.assertEqual(["one"], list(self.volume("data").workloads))
        self.assertFails(STATE, lambda: self.drop("data"), "one", "running")
        self.stop("one")
        self.assertFails(STATE, lambda: self.drop("data"), "one", "exited")
        self.assertEqual([], list(self.node.volumes.PruneVolumes(nacre_pb2.PruneVolumesRequest(all=True)).removed))
        self.remove("one")
        self.assertEqual([], list(self.volume("data").workloads))
        self.drop("data")

    def test_it_survives_the_daemon(self):
        self.run_volume("one", mount("data"), mount(anonymous=True, target="/nameless"))
        self.sh("one", "echo kept >/data/word")
        before = {v.id: v for v in self.volumes().values()}
        self.node.restart()
        self.assertEqual(before, {v.id: v for v in self.volumes().values()})
        self.assertFails(STATE, lambda: self.drop("data"), "one")
        self.remove("one", force=True)
        self.run_volume("two", mount("data"))
        self.assertEqual("kept\n", self.sh("two", "cat /data/word"))


class Mounts(VolumesTest):
    def test_two_pods_share_one_at_the_same_time(self):
        self.run_volume("a", mount("data"))
        status = self.run_volume("b", mount("data", target="/other", read_only=True, no_exec=True))
        self.sh("a", "echo word >/data/file")
        self.assertEqual("word\n", self.sh("b", "cat /other/file"))
        self.assertEqual("word\n", host.read(os.path.join(self.volume("data").path, "file")))
        options, = [line.split()[5].split(",") for line in host.read(f"/proc/{status.pid}/mountinfo").splitlines()
                    if line.split()[4] == "/other"]
        self.assertEqual(set(), {"ro", "nosuid", "nodev", "noexec"} - set(options))
        self.assertEqual(["a", "b"], list(self.volume("data").workloads))

    def test_declared_for_several_containers(self):
        self.pod("p", sleeper(runtime_pb2.Mount(source="d", target="/a"), name="one"),
                 sleeper(runtime_pb2.Mount(source="d", target="/b"), name="two"),
                 volumes=[runtime_pb2.Volume(name="d", named="data")])
        self.sh("p", "echo x >/a/x", container="one")
        self.assertEqual("x\n", self.sh("p", "cat /b/x", container="two"))
        self.assertEqual([("", "data", "/a"), ("", "data", "/b")],
                         [(m.source, m.volume, m.target) for c in self.inspect("p").containers for m in c.mounts])

    def test_a_cell_has_one(self):
        self.cell("c", sleeper(mount("data")))
        self.sh("c", "echo x >/data/x")
        self.assertEqual(["c"], list(self.volume("data").workloads))

    def test_a_part_of_one(self):
        path = self.make("data").path
        os.makedirs(os.path.join(path, "sub/dir"))
        with open(os.path.join(path, "sub/file"), "w", encoding="ascii") as f:
            f.write("part\n")
        for name, to in (("out", "/etc"), ("up", "../../.."), ("in", "sub")):
            os.symlink(to, os.path.join(path, name))
        self.run_volume("p", mount("data", sub_path="sub"), mount("data", target="/file", sub_path="in/file"))
        self.assertEqual("part\n", self.sh("p", "cat /data/file"))
        self.assertEqual("part\n", self.sh("p", "cat /file"))
        # What a link leads to is looked for in the volume.
        for sub_path in ("none", "out", "up/etc"):
            self.assertFails(NONE, lambda s=sub_path: self.pod("q", sleeper(mount("data", sub_path=s))), "mounts[0]", "volume data")
        os.mkfifo(os.path.join(path, "pipe"))
        self.assertFails(STATE, lambda: self.pod("q", sleeper(mount("data", sub_path="pipe"))), "mounts[0]")

    def test_what_does_not_go_together(self):
        tmpfs = runtime_pb2.Tmpfs()
        for bad in (mount("-x"), mount("a/b"), mount("data", source="/x"), mount("data", tmpfs=tmpfs),
                    mount("data", anonymous=True), mount("data", sub_path="/abs"), mount("data", propagation="rshared"),
                    mount("data", propagation="upwards"), mount("data", relabel="maybe"), mount("data", chown=True, read_only=True),
                    mount(tmpfs=tmpfs, no_copy=True), mount(tmpfs=tmpfs, chown=True), mount(tmpfs=tmpfs, sub_path="x"),
                    mount(source="/usr", no_copy=True), mount(source="/usr", sub_path="x")):
            self.assertFails(BAD, lambda b=bad: self.pod("bad", sleeper(b)), "mounts[0]")
        self.assertFails(BAD, lambda: self.pod("bad", volumes=[runtime_pb2.Volume(name="d", named="x", host_path="/x")]), "named")
        self.assertEqual({}, self.volumes())
        self.run_volume("fine", mount("data", relabel="shared"))

    def test_what_does_not_start_makes_none(self):
        self.assertFails(NONE, lambda: self.pod("bad", sleeper(mount("data"), image="missing")), "image")
        self.assertFails(NONE, lambda: self.pod("bad", sleeper(mount(anonymous=True), mount(source="/no/such", target="/x"))), "mounts[1]")
        self.assertEqual({}, self.volumes())

    def test_its_directory_is_gone(self):
        os.rename(self.make("data").path, os.path.join(self.node.dir, "taken"))
        self.addCleanup(os.rmdir, os.path.join(self.node.dir, "taken"))
        self.assertFails(STATE, lambda: self.pod("bad", sleeper(mount("data"))), "volume data", "gone")

    def test_it_is_given_to_the_user_of_the_container(self):
        self.also_image("ann", [], seeded, user="ann")
        path = self.make("data").path
        os.makedirs(os.path.join(path, "deep/er"))
        os.symlink("/etc/passwd", os.path.join(path, "link"))
        before = os.stat("/etc/passwd")
        self.run_volume("p", mount("data", chown=True), image="ann")
        for name in ("", "deep", "deep/er", "link"):
            seen = os.lstat(os.path.join(path, name))
            self.assertEqual((1234, 4321), (seen.st_uid, seen.st_gid), name)
        self.assertEqual(before, os.stat("/etc/passwd"))
        self.run_volume("q", mount("data", chown=True), user="7:8")
        self.assertEqual((7, 8), (os.stat(path).st_uid, os.stat(path).st_gid))
        self.assertFails(STATE, lambda: self.pod("bad", sleeper(mount("data", chown=True), user="nobody-here")), "mounts[0]")


class Filling(VolumesTest):
    def tree(self, path):
        """{name: what the kernel says of it} of everything in a directory, and of itself."""
        seen = {}
        for folder, names, files in os.walk(path):
            for name in [""] + names + files:
                full = os.path.join(folder, name)
                st = os.lstat(full)
                rest = os.readlink(full) if os.path.islink(full) else host.read(full) if os.path.isfile(full) else ""
                seen[os.path.relpath(full, path)] = (oct(st.st_mode), st.st_uid, st.st_gid, rest)
        return seen

    def test_the_first_container_finds_what_its_image_has(self):
        self.run_volume("p", mount("data", target="/seed"), mount(anonymous=True, target="/none"), image="seeded")
        path = self.volume("data").path
        self.maxDiff = None
        self.assertEqual({
            ".": ("0o41750", 7, 8, ""), "file": ("0o100640", 1, 2, "of the image\n"), "same": ("0o100640", 1, 2, "of the image\n"),
            "link": ("0o120777", 0, 0, "/etc/shadow"), "pipe": ("0o10600", 0, 0, ""), "deep": ("0o40755", 0, 0, ""),
            "deep/er": ("0o40755", 0, 0, ""), "deep/er/and": ("0o40711", 0, 0, ""),
            "deep/er/and/low": ("0o104755", 0, 0, "low\n"), "empty": ("0o40755", 0, 0, "")}, self.tree(path))
        one, other = (os.stat(os.path.join(path, n)) for n in ("file", "same"))
        self.assertEqual((one.st_ino, 2, 1000000000), (other.st_ino, one.st_nlink, int(one.st_mtime)))
        self.assertEqual(["data"], os.listdir(os.path.dirname(path)))
        self.assertEqual("of the image\n", self.sh("p", "cat /seed/file"))

    def test_what_it_does_not_get(self):
        self.run_volume("nocopy", mount("plain", target="/seed", no_copy=True), image="seeded")
        self.assertEqual([], os.listdir(self.volume("plain").path))
        # One that is not empty, and one that somebody has.
        with open(os.path.join(self.make("full").path, "own"), "w", encoding="ascii"):
            pass
        self.run_volume("full", mount("full", target="/seed"), image="seeded")
        self.assertEqual(["own"], os.listdir(self.volume("full").path))
        self.run_volume("first", mount("had", target="/data"))
        self.run_volume("second", mount("had", target="/seed"), image="seeded")
        self.assertEqual([], os.listdir(self.volume("had").path))
        self.sh("first", "echo x >/data/x")
        self.assertEqual("x\n", self.sh("second", "cat /seed/x"))

    def test_of_two_that_start_at_once_one_fills_it(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda i: self.pod(f"p{i}", sleeper(mount("data", target="/seed"), image="seeded")), range(8)))
        self.assertEqual(["running"] * 8, [d.containers[0].state for d in done])
        for i in range(8):
            self.assertEqual("of the image\n", self.sh(f"p{i}", "cat /seed/file"))
        self.sh("p0", "echo all >/seed/new")
        self.assertEqual("all\n", self.sh("p7", "cat /seed/new"))

    def test_links_of_an_image_lead_into_the_image(self):
        def hostile(tar):
            entry(tar, "out", tarfile.SYMTYPE, linkname="../../../../etc")
            entry(tar, "deep", tarfile.SYMTYPE, linkname="/etc/")
            entry(tar, "loop", tarfile.SYMTYPE, linkname="loop")
            entry(tar, "etc/mark", tarfile.REGTYPE, 0o644, b"the image's\n")

        self.also_image("hostile", [], hostile)
        for name in ("out", "deep"):
            self.run_volume(name, mount(name, target="/" + name), image="hostile")
            self.assertEqual(["mark", "passwd"], sorted(os.listdir(self.volume(name).path)))
        status, = self.pod("loop", sleeper(mount("loop", target="/loop"), image="hostile")).containers
        self.assertEqual("failed", status.state)
        self.assertEqual([], os.listdir(self.volume("loop").path))


class Anonymous(VolumesTest):
    def test_volumes_of_an_image(self):
        self.run_volume("p", image="seeded")
        mounts = {m.target: m.volume for m in self.inspect("p").containers[0].mounts}
        self.assertEqual({"/seed", "/none"}, set(mounts))
        self.assertEqual(set(mounts.values()), set(self.volumes()))
        self.assertTrue(all(v.anonymous for v in self.volumes().values()))
        self.assertEqual("of the image\n", host.read(os.path.join(self.volume(mounts["/seed"]).path, "file")))
        # A mount of the user takes the place of one.
        self.run_volume("q", runtime_pb2.Mount(target="/seed/", tmpfs=runtime_pb2.Tmpfs()), mount("named", "/none"), image="seeded")
        self.assertEqual(3, len(self.volumes()))

    def test_a_workload_that_starts_again_has_its_own(self):
        self.run_volume("p", mount("data"), mount(anonymous=True, target="/own"), image="seeded")
        before = {m.target: m.volume for m in self.inspect("p").containers[0].mounts}
        self.node.cli("exec", "p", "sh", "-c", "echo kept >/own/x; echo more >/seed/y")
        known = set(self.volumes())
        for _ in range(2):
            self.node.cli("restart", "-t", "0", "p")
            self.assertEqual(before, {m.target: m.volume for m in self.inspect("p").containers[0].mounts})
            self.assertEqual(known, set(self.volumes()))
            self.assertEqual("kept\nmore\nof the image\n", self.node.cli("exec", "p", "cat", "/own/x", "/seed/y", "/seed/file").stdout)
        self.node.restart()
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="p", force=True, volumes=True))
        self.assertEqual({"data"}, set(self.volumes()))

    def test_an_image_is_mounted_and_stays(self):
        """Also where the daemon was restarted, and something else has its name."""
        def image(target, **more):
            return runtime_pb2.Mount(image="data", target=target, **more)
        self.also_image("data", [], lambda tar: (seeded(tar), entry(tar, "out", tarfile.SYMTYPE, linkname="/etc/passwd")))
        self.run_volume("p", image("/all"), image("/part", sub_path="seed/file"), image("/out", sub_path="out"), image("/no", no_exec=True))
        look = "cat /all/seed/file /part; head -n 1 /out; stat -c %u:%g /part; /all/bin/stat -c %a /all/seed; /no/bin/stat; touch /all/x"
        seen = "of the image\nof the image\nroot:x:0:0::/:/bin/sh\n1:2\n1750\n"
        for again in False, True, True:
            if again:
                self.node.restart()
                self.make_image("data", [], lambda tar: None)
                self.node.cli("restart", "-t", "0", "p")
            done = self.node.cli("exec", "p", "sh", "-c", look, check=False)
            self.assertEqual((seen, True, True), (done.stdout, "Read-only" in done.stderr, "ermission denied" in done.stderr), done.stderr)
            self.assertEqual("data", self.inspect("p").containers[0].mounts[0].image)
        # It has no name any more: nothing else holds it.
        for n in 1, 0:
            self.node.cli("image", "prune")
            self.assertEqual(n, len([i for i in self.node.images.List(nacre_pb2.ListImagesRequest()).images if not i.names]))
            self.node.clear()

    def test_they_go_with_their_workload_if_asked(self):
        self.run_volume("p", mount("data"), image="seeded")
        self.remove("p", force=True)
        self.assertEqual(3, len(self.volumes()))
        self.assertEqual(2, len(self.node.volumes.PruneVolumes(nacre_pb2.PruneVolumesRequest()).removed))
        self.run_volume("p", mount("data"), image="seeded")
        nameless, = [m.volume for m in self.inspect("p").containers[0].mounts if m.target == "/seed"]
        # One that another workload has too stays.
        self.run_volume("q", mount(nameless, "/x"))
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="p", force=True, volumes=True))
        self.assertEqual({"data", nameless}, set(self.volumes()))
        # Nor does one go with a workload that it was not made for.
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="q", force=True, volumes=True))
        self.node.cli("run", "--rm", "-v", nameless + ":/x", "seeded", "sh", "-c", "echo x >/x/y")
        self.assertEqual({"data", nameless}, set(self.volumes()))

    def test_a_run_that_removes_itself_takes_them(self):
        for flags in ([], ["-d"]):
            self.node.cli("run", "--rm", *flags, "-v", "data:/keep", "-v", "/own", "seeded", "sh", "-c", "echo x >/own/x; cat /seed/file")
            nacre_test.until(lambda: set(self.volumes()) == {"data"}, what="the volumes to go")
        self.assertFails(NONE, lambda: self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="seeded")))

    def test_an_image_whose_volumes_cannot_be_mounted(self):
        for name, volumes in (("proc", ["/proc"]), ("sys", ["/sys/x"]), ("up", ["../x"]), ("dots", ["/a/../.."]), ("root", ["/"]),
                              ("null", ["/dev/null"]), ("many", [f"/v{i}" for i in range(33)]), ("most", [f"/v{i}" for i in range(2000)])):
            self.also_image("bad-" + name, volumes)
            self.assertFails(STATE, lambda n=name: self.pod("bad", sleeper(image="bad-" + n)), "containers[0].image", "volume")
        self.also_image("just", [f"/v{i}" for i in range(32)] + ["/v0/"])
        self.run_volume("just", image="just")
        self.assertEqual(32, len(self.volumes()))
        self.assertFails(STATE, lambda: self.pod("more", sleeper(mount("data"), image="just")), "containers[0].image")


class CommandLine(VolumesTest):
    def test_commands(self):
        cli = self.node.cli
        self.assertEqual("data\n", cli("volume", "create", "--label", "owner=shop", "data").stdout)
        nameless = cli("volume", "create").stdout.strip()
        cli("run", "-d", "--name", "p", "-v", "data:/data", "busybox", "sleep", "1000")
        self.assertIn("WORKLOADS", cli("volume", "ls").stdout)
        for filters, names in (([], ["data", nameless]), (["name=at"], ["data"]), (["label=owner"], ["data"]),
                               (["label=owner=other"], []), (["dangling=true"], [nameless]), (["anonymous=true"], []),
                               (["name=a", "dangling=false"], ["data"])):
            words = [w for f in filters for w in ("--filter", f)]
            self.assertEqual(names, cli("volume", "ls", "-q", *words).stdout.split(), filters)
        self.assertIn("dangling", cli("volume", "ls", "--filter", "size=1", check=False).stderr)
        shown, = json.loads(cli("volume", "inspect", "data").stdout)
        for command, words in (("volume create", ["create", "other"]), ("volume ls", ["ls"]), ("volume inspect", ["inspect", "data"]),
                               ("inspect", None)):
            value = self.node.json(*(["volume", *words] if words else ["inspect", "p"]))
            schema.check(schema.load(), command, value)
        cli("volume", "rm", "other")
        self.assertEqual(({"owner": "shop"}, ["p"]), (shown["labels"], shown["workloads"]))
        self.assertIn("p, which is running", cli("volume", "rm", "data", check=False).stderr)
        cli("rm", "-f", "p")
        cli("volume", "rm", "data")
        self.assertIn("no volume data", cli("volume", "rm", "data", check=False).stderr)
        cli("volume", "rm", "-f", "data")
        self.assertEqual(nameless + "\n", cli("volume", "prune", "-f", "--all").stdout)
        schema.check(schema.load(), "volume prune", self.node.json("volume", "prune"))

    def test_export_and_import(self):
        self.make("data"), self.make("copy")
        there, = (os.path.join(self.node.root, "volumes", self.volume(n).id, "data") for n in ("data",))
        copy = os.path.join(self.node.root, "volumes", self.volume("copy").id, "data")
        os.chmod(there, 0o2770)
        os.chown(there, 1234, 4321)
        os.mkdir(there + "/dir")
        with open(there + "/dir/file", "wb") as f:
            f.write(b"x")
            f.truncate(5 << 20)
        os.chown(there + "/dir/file", 5, 6)
        os.link(there + "/dir/file", there + "/hard")
        os.symlink("/etc/passwd", there + "/soft")
        archive = os.path.join(self.node.dir, "v.tar")
        self.addCleanup(os.unlink, archive)
        self.assertEqual("", self.node.cli("volume", "export", "data", "-O", archive).stdout)
        with open(copy + "/kept", "w", encoding="ascii"):
            pass
        schema.check(schema.load(), "volume import", self.node.json("volume", "import", "copy", archive))
        os.unlink(copy + "/kept")
        look = lambda top: sorted((p[len(top):], s.st_mode, s.st_uid, s.st_gid, s.st_nlink, s.st_size if stat.S_ISREG(s.st_mode) else 0)  # noqa: E731
                                  for p in [top, *glob.glob(top + "/**", recursive=True)] for s in [os.lstat(p)])
        self.assertEqual(look(there), look(copy))
        self.assertEqual("/etc/passwd", os.readlink(copy + "/soft"))
        self.assertLess(os.stat(copy + "/hard").st_blocks, 1000)
        self.drop("copy"), self.make("copy")
        with subprocess.Popen([nacre_test.BINARY, "--socket", self.node.socket, "volume", "export", "data"], stdout=subprocess.PIPE) as export:
            done = subprocess.run([nacre_test.BINARY, "--socket", self.node.socket, "volume", "import", "copy", "-"], check=True,
                                  stdin=export.stdout, stdout=subprocess.PIPE)
        self.assertEqual((b"", 5 << 20), (done.stdout, os.stat(os.path.join(self.volume("copy").path, "hard")).st_size))
        for words in (["export", "none"], ["import", "none", archive]):
            self.assertIn("no volume none", self.node.cli("volume", *words, check=False).stderr)
        self.assertIn("No such file", self.node.cli("volume", "import", "copy", "/none", check=False).stderr)

    def test_it_stays_while_it_is_copied(self):
        """Nor does a first container fill it then, which would put another directory in its place."""
        self.make("data")
        go = threading.Event()

        def messages():
            yield nacre_pb2.CopyToRequest(target="data", entry=nacre_pb2.CopyEntry(type="TYPE_FILE", path=b"./a", size=1, mode=0o644))
            go.wait()
            yield nacre_pb2.CopyToRequest(data=b"x")
        call = self.node.volumes.ImportVolume.future(messages())
        nacre_test.until(lambda: os.listdir(self.volume("data").path), what="the file that is not complete")
        with self.assertRaisesRegex(grpc.RpcError, "its files are copied"):
            self.drop("data")
        self.run_volume("p", mount("data", "/seed"), image="seeded")
        go.set()
        self.assertEqual((1, 1), (call.result().entries, call.result().bytes))
        self.assertEqual(["a"], os.listdir(self.volume("data").path))
        self.node.clear()
        with self.assertRaisesRegex(grpc.RpcError, "path: a volume has none"):
            self.node.volumes.ImportVolume(iter([nacre_pb2.CopyToRequest(target="data", path="/x")]))
        self.drop("data")

    def test_a_name_is_never_a_directory_of_where_one_stands(self):
        os.makedirs(os.path.join(self.node.dir, "shared"), exist_ok=True)
        self.addCleanup(os.rmdir, os.path.join(self.node.dir, "shared"))
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.node.dir)
        self.node.cli("run", "--rm", "-v", "shared:/x", "busybox", "touch", "/x/file")
        self.assertEqual(["file"], os.listdir(self.volume("shared").path))
        self.assertEqual([], os.listdir("shared"))
        self.node.cli("run", "--rm", "-v", "./shared:/x", "busybox", "touch", "/x/file")
        os.unlink("shared/file")
        self.assertIn("none/at/all", self.node.cli("run", "--rm", "-v", "none/at/all:/x", "busybox", check=False).stderr)

    def test_a_tmpfs_has_an_owner(self):
        out = self.node.cli("run", "--rm", "--tmpfs", "/x:uid=12,gid=34,mode=750,size=64k", "--tmpfs", "/y", "seeded", "stat", "-c", "%u %g %a %F",
                            "/x", "/y").stdout
        self.assertEqual(["12 34 750 directory", "0 0 1777 directory"], out.splitlines())
        self.assertIn("uid", self.node.cli("run", "--rm", "--tmpfs", "/x:uid=4000000000", "busybox", check=False).stderr)

    def test_what_the_host_mounts_later(self):
        top = os.path.join(self.node.dir, "top")
        os.makedirs(os.path.join(top, "point"))
        self.addCleanup(os.rmdir, top)
        self.addCleanup(os.rmdir, os.path.join(top, "point"))
        for command in (["mount", "-t", "tmpfs", "none", top], ["mount", "--make-shared", top]):
            subprocess.run(command, check=True)
        self.addCleanup(subprocess.run, ["umount", "-R", top], check=True)
        os.mkdir(os.path.join(top, "point"))
        self.node.cli("run", "-d", "--name", "slave", "-v", f"{top}:/x:rslave", "busybox", "sleep", "1000")
        self.node.cli("run", "-d", "--name", "private", "--mount", f"type=bind,src={top},dst=/x,bind-propagation=rprivate", "busybox", "sleep", "1000")
        subprocess.run(["mount", "-t", "tmpfs", "none", os.path.join(top, "point")], check=True)
        for name, n in (("slave", 2), ("private", 1)):
            seen = host.read(f"/proc/{self.inspect(name).containers[0].pid}/mountinfo")
            self.assertEqual(n, sum(line.split()[4] in ("/x", "/x/point") for line in seen.splitlines()), seen)
        self.assertIn("not shared", self.node.cli("run", "--rm", "-v", "/usr:/x:rshared", "busybox", check=False).stderr)

    def mounted(self, *words):
        """The only mount beside those of every container, as inspect shows it."""
        ident = self.node.cli("run", "-d", *words, "seeded", "sleep", "1000").stdout.strip()
        shown = self.node.json("inspect", ident)["containers"][0]["mounts"]
        self.node.cli("rm", "-f", "-v", ident)
        return {m["target"]: m for m in shown}

    def test_mount_in_the_words_of_docker(self):
        for words in (["-v", "data:/x:ro"], ["--mount", "source=data,target=/x,readonly"], ["--mount", "type=volume,src=data,dst=/x,ro=true"],
                      ["--mount", "destination=/x,source=data,ro=1,volume-nocopy,type=volume"]):
            seen = self.mounted(*words)["/x"]
            self.assertEqual((None, "data", True), (seen["source"], seen["volume"], seen["read_only"]), words)
        for words in (["-v", "/usr:/x"], ["--mount", "type=bind,src=/usr,dst=/x,readonly=false"], ["-v", "/usr/../usr:/x:z,rw,rprivate"]):
            seen = self.mounted(*words)["/x"]
            self.assertEqual(("/usr", None, False), (seen["source"], seen["volume"], seen["read_only"]), words)
        for words in (["--tmpfs", "/x:size=1m,mode=700,exec"], ["--mount", "type=tmpfs,dst=/x,tmpfs-size=1m,tmpfs-mode=0700"]):
            self.assertEqual({"size": 1 << 20, "mode": 0o700, "uid": 0, "gid": 0}, self.mounted(*words)["/x"]["tmpfs"])
        seen = self.mounted("--mount", "type=image,source=busybox,target=/x,subpath=bin")["/x"]
        self.assertEqual((None, None, "busybox", "bin", True), tuple(seen[k] for k in ("source", "volume", "image", "sub_path", "read_only")))
        for bad in ("type=image,dst=/x", "type=image,src=busybox,dst=/x,rw=true", "type=image,src=busybox,dst=/x,U", "src=data", "type=bind,dst=/x",
                    "dst=/x,tmpfs-size=1m", "dst=/x,readonly=maybe", "dst=/x,nothing"):
            self.assertIn("--mount", self.node.cli("run", "--rm", "--mount", bad, "busybox", check=False).stderr)
        for bad in ("data", "data:", ":/x", "data:/x:rslave", "/usr:/x:nocopy", "data:/x:what"):
            self.assertIn("--volume", self.node.cli("run", "--rm", "-v", bad, "busybox", check=False).stderr)


class Secrets(VolumesTest):
    """Compared with what the container reads; the value is looked for in all that could show it."""
    VALUE, NEXT = "of-the-first-hour", "of-the-second"

    def cli(self, *words, value=None, **kwargs):
        done = self.node.cli(*words, stdin=value, **kwargs)
        self.assertFalse({v for v in (self.VALUE, self.NEXT) if v in done.stdout + done.stderr} and words[0] != "exec", words)
        return done

    def sets(self):
        return os.listdir(os.path.join(self.node.run, "secrets"))

    def setUp(self):
        super().setUp()
        self.addCleanup(lambda: self.node.cli("secret", "rm", "-i", "key", "other"))
        ident = self.cli("secret", "create", "key", "-", value=self.VALUE).stdout.strip()
        shown, = self.node.json("secret", "inspect", "key")
        self.assertEqual((ident, len(self.VALUE)), (shown["id"], shown["size"]))

    def read(self, what, target="p"):
        return self.cli("exec", target, "sh", "-c", what).stdout

    def test_files_variables_and_a_new_value(self):
        self.cli("run", "-d", "--name", "p", "--secret", "key", "--secret", "source=key,target=mine,uid=1,gid=2,mode=0400", "--secret",
                 "key,target=/etc/key", "--secret", "key,type=env,target=KEY", "--restart", "on-failure", "busybox", "sleep", "1000")
        look = "cd /run/secrets; stat -c '%n %a %u %g' * /etc/key; cat key mine /etc/key; echo; echo $KEY"
        there = f"key 444 0 0\nmine 400 1 2\n/etc/key 444 0 0\n{self.VALUE * 3}\n{self.VALUE}\n"
        self.assertEqual(there, self.read(look))
        self.assertNotEqual(0, self.cli("exec", "p", "sh", "-c", "echo > /run/secrets/key", check=False).returncode)
        for mode, path in ((0o700, self.node.root + "/secrets"), (0o600, self.node.root + "/secrets/key"), (0o700, self.node.run + "/secrets")):
            self.assertEqual(mode, os.stat(path).st_mode & 0o777, path)
        self.assertIn("there is a secret key", self.cli("secret", "create", "key", "-", value=self.NEXT, check=False).stderr)
        self.cli("secret", "create", "--replace", "key", "-", value=self.NEXT)
        self.assertEqual(self.NEXT * 2 + self.VALUE, self.read("cd /run/secrets; cat key mine /etc/key"))
        for words in (["inspect", "p"], ["-o", "json", "inspect", "p"], ["inspect", "--docker", "p"], ["ps"], ["logs", "p"], ["secret", "ls"]):
            self.cli(*words)
        self.assertNotIn(self.VALUE, self.node.log())
        mounts = self.node.json("inspect", "p")["containers"][0]["mounts"]
        self.assertEqual([["/run/secrets", ["key", "key"]], ["/etc/key", ["key"]]], [[m["target"], m["secrets"]] for m in mounts])
        self.node.restart()
        self.cli("secret", "create", "--replace", "key", "-", value=self.VALUE)
        self.assertEqual(self.VALUE, self.read("cat /run/secrets/key"))
        self.cli("secret", "create", "--replace", "key", "-", value=self.NEXT)
        self.cli("restart", "-t", "0", "p")
        self.assertEqual(there.replace(self.VALUE, self.NEXT), self.read(look))
        self.assertEqual(2, len(self.sets()))
        for name in self.sets():
            done = self.cli("run", "--rm", "-v", f"{self.node.run}/secrets/{name}/files:/x:ro", "busybox", "true", check=False)
            self.assertIn("not given out", done.stderr)
        with open("/proc/mounts", encoding="utf-8") as f:
            self.assertNotIn(self.sets()[0], f.read())
        self.cli("rm", "-f", "p")
        nacre_test.until(lambda: not self.sets(), what="the copies to go")

    def test_what_is_refused_leaves_nothing(self):
        for words, said in ((["--secret", "none"], "no secret none"), (["--secret", "none,type=env"], "no secret none"),
                            (["--secret", "key", "--secret", "none,target=x"], "no secret none"), (["--secret", "key,mode=9"], '"mode=9" is wrong'),
                            (["--secret", "key,target=../x"], "is not the name of a file"), (["--secret", "key", "--secret", "key"], "taken by another")):
            self.assertIn(said, self.cli("run", "--rm", *words, "busybox", "true", check=False).stderr)
        self.cli("secret", "create", "--env", "other", "PATH")
        schema.check(schema.load(), "secret ls", self.node.json("secret", "ls"))
        self.assertEqual(2, len(self.cli("secret", "ls", "-q").stdout.split()))
        self.cli("secret", "rm", "key")
        self.assertIn("no secret key", self.cli("secret", "rm", "key", check=False).stderr)
        self.assertEqual([], self.sets())


class Killed(VolumesTest):
    """A daemon that dies in the middle leaves nothing that the next one does not know, or remove."""

    IMAGES = ("busybox",)

    def leftovers(self):
        folder = os.path.join(self.node.root, "volumes")
        return set(os.listdir(folder)) - {v.id for v in self.volumes().values()}

    @unittest.skipUnless(faults.has_faults(), "a build with -Dfaults=true")
    def test_at_each_step(self):
        for point in faults.places("volume"):
            with self.subTest(point):
                self.node.stop()
                self.node.start(env={"NACRE_FAILPOINT": f"{point}=crash"})
                try:
                    self.pod("p", sleeper(mount("data", target="/seed"), image="seeded"))
                    self.remove("p", force=True)
                    self.drop("data")
                except grpc.RpcError:
                    pass
                self.node.restart()
                nacre_test.until(lambda: not self.leftovers(), what="what was left to go")
                for v in self.volumes().values():
                    self.assertEqual(["data"], os.listdir(os.path.dirname(v.path)))
                    self.assertIn(len(os.listdir(v.path)), (0, 6))
                self.prune()
        # The daemon and the keeper that the class began with are not those of its end.
        type(self).before = self.node.baseline()
