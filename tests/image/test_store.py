# SPDX-License-Identifier: Apache-2.0
"""The store of images as its users meet it: names and pins, through the API and the commands."""
import hashlib
import json
import os
import sqlite3
import subprocess
import tarfile
import time

import grpc

import faults
import images
import nacre_test
from nacre_test import nacre_pb2

Code = grpc.StatusCode


class StoreTest(faults.SurvivalTest):
    """A node without images; each test makes its own, and takes them away."""

    IMAGES = ()

    def setUp(self):
        self.addCleanup(self.clear)

    def clear(self):
        self.node.clear()
        for image in self.list():
            if image.pinned:
                self.pin(image.id, False)
            self.remove(image.id)

    def list(self):
        return list(self.node.images.List(nacre_pb2.ListImagesRequest()).images)

    def image(self, reference):
        """As it is listed now."""
        return next(i for i in self.list() if reference in (i.id, *i.names))

    def make(self, name, *words, form="oci"):
        """Imported: busybox, different from others by its label."""
        path = images.make(os.path.join(self.node.dir, name + ".tar"), "--busybox", "--cmd", "sh", "--label", "n=" + name, *words, form=form)
        self.addCleanup(os.unlink, path)
        return self.node.import_image(path, name)

    def tag(self, image, name):
        return self.node.images.Tag(nacre_pb2.TagImageRequest(image=image, name=name)).image

    def pin(self, image, pinned=True):
        return self.node.images.Pin(nacre_pb2.PinImageRequest(image=image, pinned=pinned)).image

    def remove(self, image):
        self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=image), timeout=60)

    def names(self):
        return sorted(name.removeprefix("docker.io/library/") for i in self.list() for name in i.names)


class Names(StoreTest):
    def test_tag(self):
        one, two = self.make("one"), self.make("two")
        with nacre_test.Events(self.node) as events:
            self.assertIn("docker.io/library/new:latest", self.tag("one", "new").names)
            events.wait("new", "tagged")
        self.assertEqual(["new:latest", "one:latest", "two:latest"], self.names())
        # It moves, and is there once however often it is given.
        for _ in range(2):
            self.assertEqual(two.id, self.tag(two.id, "new").id)
        self.assertEqual(["docker.io/library/one:latest"], list(self.image(one.id).names))
        self.node.restart()
        self.assertEqual({two.id}, {i.id for i in self.list() if "docker.io/library/new:latest" in i.names})
        self.node.cli("image", "tag", two.id[7:19], "registry.local:5000/a/b:v1")
        self.assertIn("registry.local:5000/a/b:v1", self.names())

    def test_bad_input(self):
        self.make("one")
        for image, name, code, words in (("", "x", Code.INVALID_ARGUMENT, "image: required"), ("one", "", Code.INVALID_ARGUMENT, "name: required"),
                                         ("none", "x", Code.NOT_FOUND, "there is no image \"none\""),
                                         ("one", "UPPER", Code.INVALID_ARGUMENT, "name: "),
                                         ("one", "x@sha256:" + "0" * 64, Code.INVALID_ARGUMENT, "cannot have a digest")):
            self.assertFails(code, lambda i=image, n=name: self.tag(i, n), words)
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.pin(""), "image: required")
        self.assertFails(Code.NOT_FOUND, lambda: self.pin("none"), "there is no image")
        self.assertEqual(["one:latest"], self.names())

    def test_pin(self):
        one = self.make("one")
        self.assertFalse(one.pinned)
        self.assertTrue(self.pin("one").pinned)
        self.node.restart()
        self.assertTrue(self.image(one.id).pinned)
        for reference in ("one", one.id):
            self.assertFails(Code.FAILED_PRECONDITION, lambda r=reference: self.remove(r), "is pinned")
        # A name of several may go, and move away; the image stays.
        self.tag("one", "other")
        self.remove("one")
        self.make("other")
        self.assertEqual([], list(self.image(one.id).names))
        done = self.node.cli("image", "rm", one.id, check=False)
        self.assertEqual(125, done.returncode)
        self.assertIn("is pinned", done.stderr)
        self.node.cli("image", "unpin", one.id)
        self.node.cli("image", "rm", one.id, "other")
        self.assertEqual([], self.list())

    def test_where_it_came_from(self):
        one = self.make("one")
        self.assertEqual(f"file:{self.node.dir}/one.tar", one.source)
        self.node.restart()
        self.assertEqual(one.source, self.image(one.id).source)

    def test_a_database_of_an_earlier_nacre(self):
        """Its images are neither pinned nor known to come from anywhere."""
        one = self.make("one")
        self.pin("one")
        self.node.stop()
        with sqlite3.connect(os.path.join(self.node.root, "root.db")) as db:
            db.execute("ALTER TABLE image DROP COLUMN pinned")
            db.execute("ALTER TABLE image DROP COLUMN source")
            db.execute("DROP TABLE network")
            db.execute("DROP TABLE identity")
            db.execute("DROP TABLE volume")
            db.execute("DROP TABLE cloud_vm")
            db.execute("DROP TABLE kept")
            db.execute("DROP TABLE aurae_vm")
            db.execute("PRAGMA user_version=1")
        db.close()
        self.node.start()
        image = self.image(one.id)
        self.assertEqual((one.names, False, ""), (image.names, image.pinned, image.source))


def du(path):
    """What du(1) says of the files of a directory, without the directory itself: {name: bytes}."""
    names = sorted(os.listdir(path))
    if not names:
        return {}
    done = subprocess.run(["du", "-s", "-B1", "--", *names], cwd=path, capture_output=True, text=True, check=True)
    return {line.split("\t")[1]: int(line.split("\t")[0]) for line in done.stdout.splitlines()}


class Documents(StoreTest):
    def test_inspect(self):
        one = self.make("one", "--env", "A=ä", "--layers", "3")
        answer = self.node.images.Inspect(nacre_pb2.InspectImageRequest(image="one"))
        self.assertEqual(self.image(one.id), answer.image)
        for data, digest in ((answer.manifest, one.digest), (answer.config, one.id)):
            self.assertEqual(digest, "sha256:" + hashlib.sha256(data).hexdigest())
        told = json.loads(self.node.cli("image", "inspect", one.id[7:19]).stdout)
        self.assertEqual((json.loads(answer.manifest), json.loads(answer.config)), (told["manifest"], told["config"]))
        self.assertEqual("A=ä\n", self.node.cli("image", "inspect", "one", "--format", "{config.config.Env[0]}").stdout)
        self.assertFails(Code.NOT_FOUND, lambda: self.node.images.Inspect(nacre_pb2.InspectImageRequest(image="none")))
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.node.images.Inspect(nacre_pb2.InspectImageRequest()), "image: required")
        os.unlink(os.path.join(self.node.root, "blobs", "sha256", one.digest[7:]))
        self.assertFails(Code.INTERNAL, lambda: self.node.images.Inspect(nacre_pb2.InspectImageRequest(image="one")), one.digest)

    def test_history(self):
        self.make("one", "--layers", "2")
        manifest = self.node.images.Inspect(nacre_pb2.InspectImageRequest(image="one"))
        told = json.loads(self.node.cli("-o", "json", "image", "history", "one").stdout)
        steps = json.loads(manifest.config).get("history", [])
        self.assertEqual([s.get("created_by") for s in steps], [s["created_by"] for s in told])
        if steps:
            sizes = [layer["size"] for layer in json.loads(manifest.manifest)["layers"]]
            self.assertEqual(sizes, [s["size"] for s in told if not s["empty"]])
        self.assertEqual(["CREATED", "SIZE", "BY"], self.node.cli("image", "history", "one").stdout.split("\n")[0].split())


class DiskTest(StoreTest):
    def usage(self):
        return self.node.images.DiskUsage(nacre_pb2.DiskUsageRequest(), timeout=60)

    def prune(self, **fields):
        return self.node.images.Prune(nacre_pb2.PruneImagesRequest(**fields), timeout=60)

    def path(self, *names):
        return os.path.join(self.node.root, *names)

    def write(self, name, size=10000, age=0):
        """A file of the root directory, last written to so many seconds ago."""
        path = self.path(name)
        with open(path, "wb") as f:
            f.write(b"x" * size)
        os.utime(path, (time.time() - age,) * 2)
        return path

    def files(self):
        return sorted(os.path.join(top, name) for top in ("blobs/sha256", "layers", "erofs", "partial", "containers", "staging")
                      for name in os.listdir(self.path(top)) if (top, name) != ("layers", "0"))

    def assertAsDu(self):
        """The answer against the files as du(1) sees them."""
        usage = self.usage()
        tops = {"layers": "layer_bytes", "blobs/sha256": "blob_bytes", "erofs": "erofs_bytes", "partial": "partial_bytes",
                "containers": "container_bytes", "staging": "staging_bytes"}
        self.assertEqual({top: sum(du(self.path(top)).values()) for top in tops}, {top: getattr(usage, m) for top, m in tops.items()})
        self.assertEqual(du(self.path("containers")), {c.name: c.bytes for c in usage.containers})
        self.assertEqual(du(self.path("partial")), {p.name: p.bytes for p in usage.partials})
        self.assertFalse(usage.incomplete)
        return usage


class Usage(DiskTest):
    def test_own_and_shared(self):
        """Two images that share a layer of two, and what each takes by itself."""
        mk = images.module()
        base = mk.Layer(mk.build_tar([("base", tarfile.REGTYPE, 0o644, os.urandom(300000), "")]))
        ids = []
        for name, size in (("one", 100000), ("two", 700000)):
            path = os.path.join(self.node.dir, name + ".tar")
            mk.write_image(path, [base, mk.Layer(mk.build_tar([
                (name, tarfile.REGTYPE, 0o644, os.urandom(size), ""), (name + "-again", tarfile.LNKTYPE, 0o644, b"", name)]))], {"Cmd": ["x"]})
            ids.append(self.node.import_image(path, name).id)
            os.unlink(path)
        usage = self.assertAsDu()
        layers, blobs = du(self.path("layers")), du(self.path("blobs/sha256"))
        with sqlite3.connect(self.path("root.db")) as db:
            made_of = {i: [str(n) for n, in db.execute("SELECT layer FROM image_layer WHERE image=? ORDER BY position", (i,))] for i in ids}
            stored = {i: {w[7:] for w, in db.execute("SELECT word FROM image_word WHERE image=? AND list='blob'", (i,))} for i in ids}
        db.close()
        both = set(stored[ids[0]]) & set(stored[ids[1]])
        shared = layers[made_of[ids[0]][0]] + sum(blobs[b] for b in both)
        self.assertEqual({i: (layers[made_of[i][1]] + sum(blobs[b] for b in stored[i] - both), shared) for i in ids},
                         {u.id: (u.own, u.shared) for u in usage.images})
        self.assertEqual(1, len(both))
        self.assertEqual(sum(u.own for u in usage.images) + shared + layers["0"], usage.layer_bytes + usage.blob_bytes)
        self.assertEqual(sum(u.own for u in usage.images) + shared, usage.reclaimable_bytes)
        self.assertAlmostEqual(os.statvfs(self.node.root).f_bavail * os.statvfs(self.node.root).f_frsize / 1e9, usage.free_bytes / 1e9, 0)
        self.assertEqual(256 << 20, usage.reserve_bytes)
        self.assertEqual(sum(v for k, v in du(self.node.root).items() if k.startswith("root.db")), usage.database_bytes)

    def test_containers_and_downloads(self):
        self.make("one")
        self.node.cli("run", "-d", "--name", "pod", "one", "sh", "-c", "dd if=/dev/zero of=/big bs=64k count=40; mkdir -p /a/b/c; sync; >/done; sleep 100000")
        self.addCleanup(os.unlink, self.write("partial/" + "a" * 64, 123456))
        upper, = os.listdir(self.path("containers"))
        nacre_test.until(lambda: os.path.exists(self.path("containers", upper, "upper", "done")), what="what it wrote")
        usage = self.assertAsDu()
        self.assertGreater(usage.container_bytes, 2 << 20)
        self.assertEqual(0, usage.reclaimable_bytes - du(self.path("partial"))["a" * 64])
        text = self.node.cli("image", "df").stdout
        self.assertRegex(text, r"(?m)^docker.io/library/one:latest +[0-9a-f]{12} +\S+ .*B +0 B$")
        self.assertRegex(text, r"(?m)^unfinished downloads +12[0-9.]+ kB$")
        told = json.loads(self.node.cli("-o", "json", "image", "df").stdout)
        self.assertEqual(usage.layer_bytes, told["layer_bytes"])


class Prune(DiskTest):
    def test_what_goes(self):
        used, named, dangling, pinned = self.make("used"), self.make("named"), self.make("dangling"), self.make("pinned")
        self.tag("named", "dangling")
        self.pin(pinned.id)
        self.node.cli("run", "-d", "--name", "pod", "used", "sleep", "100000")
        for all_, wanted in ((False, {dangling.id}), (True, {dangling.id, named.id})):
            preview = self.prune(all=all_, dry_run=True)
            self.assertEqual(wanted, {i.id for i in preview.items})
            self.assertEqual(4, len(self.list()))
        done = self.prune()
        self.assertEqual([("image", dangling.id, "")], [(i.kind, i.id, i.error) for i in done.items])
        before = self.usage()
        preview = self.prune(all=True, dry_run=True)
        self.assertEqual(before.reclaimable_bytes, preview.bytes)
        with nacre_test.Events(self.node) as events:
            done = self.prune(all=True)
            events.wait("docker.io/library/named:latest", "removed", reason="pruned")
        self.assertEqual(preview, done)
        self.assertEqual({"docker.io/library/named:latest", "docker.io/library/dangling:latest"}, set(done.items[0].names))
        after = self.assertAsDu()
        # What was said to be freed is what is not there any more.
        self.assertEqual(done.bytes, before.layer_bytes + before.blob_bytes - after.layer_bytes - after.blob_bytes)
        self.assertEqual({used.id, pinned.id}, {i.id for i in self.list()})
        self.assertEqual(0, after.reclaimable_bytes)
        # A container that has ended holds its image until it is removed.
        self.node.cli("stop", "-t", "0", "pod")
        self.assertEqual([], list(self.prune(all=True).items))
        self.node.cli("rm", "pod")
        nacre_test.until(lambda: self.image(used.id).containers == 0, what="the image to be unused")
        self.assertEqual([used.id], [i.id for i in self.prune(all=True).items])
        self.node.restart()
        self.assertEqual([pinned.id], [i.id for i in self.list()])

    def test_age(self):
        self.make("one")
        self.write("partial/" + "b" * 64, age=500)
        self.write("partial/" + "c" * 64, age=10)
        self.assertEqual(["partial"], [i.kind for i in self.prune(all=True, older_than_s=300).items])
        self.assertEqual(["partial/" + "c" * 64], [f for f in self.files() if f.startswith("partial")])
        out = self.node.cli("image", "prune", "--older-than", "5m", "-a").stdout
        self.assertEqual("0 B freed\n", out)
        out = self.node.cli("image", "prune").stdout
        self.assertRegex(out, r"(?m)^partial +- +c{12} +\S+ kB$")
        done = self.node.cli("image", "prune", "--older-than", "soon", check=False)
        self.assertEqual((125, True), (done.returncode, "--older-than" in done.stderr))

    def test_what_belongs_to_nobody(self):
        """Whatever lies in the store and no record names goes; what is known stays."""
        self.make("one")
        known = self.files()
        for top in ("layers/777", "layers/junk", "containers/0123456789abcdef", "staging/0123456789abcdef"):
            os.makedirs(self.path(top, "deep/er"))
        for name in ("blobs/sha256/" + "d" * 64, "blobs/sha256/junk", "erofs/778", "partial/" + "e" * 64, "blobs/sha256/" + "n" * 250):
            self.write(name, age=0)
        preview = self.prune(dry_run=True)
        done = self.prune()
        self.assertEqual(preview, done)
        self.assertEqual({("layer", "777"), ("layer", "junk"), ("container", "0123456789abcdef"), ("staging", "0123456789abcdef"),
                          ("blob", "d" * 64), ("blob", "junk"), ("erofs", "778"), ("partial", "e" * 64), ("blob", "n" * 250)},
                         {(i.kind, i.id) for i in done.items})
        self.assertEqual(known, self.files())
        self.assertGreater(done.bytes, 40000)
        self.assertEqual([], list(self.node.info.Check(nacre_pb2.CheckRequest(), timeout=60).findings))

    def test_a_start_keeps_young_downloads(self):
        young, old = self.write("partial/" + "1" * 64, age=86000), self.write("partial/" + "2" * 64, age=86500)
        strange = self.write("partial/strange")
        self.node.restart()
        nacre_test.until(lambda: not os.path.exists(old) and not os.path.exists(strange), what="the old download to go")
        self.assertTrue(os.path.exists(young))
        self.prune()
        self.assertFalse(os.path.exists(young))


class Reserve(DiskTest):
    """A disk that is nearly full: the root directory on a small file system of its own."""

    CONFIG = "images:\n  reserve: 1000000GiB\n"

    def test_an_import_is_refused_before_it_begins(self):
        path = images.path("busybox")
        size = os.path.getsize(path)
        partial = self.write("partial/" + "3" * 64, age=5)
        text = self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.node.import_image(path, "one"),
                                "nearly full", f"{size / 1e6:.1f} MB are needed", "1073741824.0 MB stay so (images.reserve)")
        self.assertNotIn("staging", text)
        # Even what they take would not be enough: they stay.
        self.assertTrue(os.path.exists(partial))
        self.assertEqual(["partial/" + "3" * 64], self.files())
        os.unlink(partial)


class Listing(StoreTest):
    def ls(self, *words):
        return [line.split() for line in self.node.cli("image", "ls", *words).stdout.splitlines()]

    def test_filters(self):
        one, two, three = self.make("one"), self.make("two"), self.make("three")
        self.tag("two", "quay.io/x/two")
        self.tag("three", "one")
        self.pin("two")
        self.node.cli("run", "-d", "--name", "pod", "three", "sleep", "100000")
        self.assertEqual(1, self.image(three.id).containers)
        for words, wanted in (([], {one.id, two.id, three.id}), (["--dangling"], {one.id}), (["--unused"], {one.id, two.id}),
                              (["--pinned"], {two.id}), (["quay.io/"], {two.id}), (["--pinned", "--dangling"], set()),
                              (["t"], {two.id, three.id})):
            self.assertEqual(wanted, set(self.node.cli("image", "ls", "-q", *words).stdout.split()), words)
            told = json.loads(self.node.cli("-o", "json", "image", "ls", *words).stdout)
            self.assertEqual(wanted, {i["id"] for i in told}, words)
        self.assertEqual([["NAME", "ID", "SIZE", "LAYERS", "CREATED"]], self.ls("nothing"))
        rows = self.ls("--digests", "quay.io/")
        self.assertEqual(["DIGEST", "SOURCE"], rows[0][-2:])
        self.assertEqual([two.digest, two.source], rows[1][-2:])
        self.assertEqual(two.id + " True\n", self.node.cli("image", "ls", "quay", "--format", "{id} {pinned}").stdout.replace("true", "True"))
