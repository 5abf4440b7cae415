# SPDX-License-Identifier: Apache-2.0
"""Images that mean harm: layers, documents and compressions, imported in a scratch root beside a canary."""
import glob
import gzip
import hashlib
import json
import os
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import corpus  # noqa: E402
from driver import DRIVER, FETCH, StoreTest, mkimage, small_file  # noqa: E402


def describe(top):
    """Everything about a tree that an escape could change."""
    found = {}
    for folder, dirs, files in os.walk(top):
        for name in dirs + files + ["."]:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            data = b""
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    data = file.read()
            found[path] = (st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_nlink, st.st_mtime_ns, st.st_size, data,
                           os.readlink(path) if stat.S_ISLNK(st.st_mode) else "",
                           sorted(os.listxattr(path, follow_symlinks=False)))
    return found


class Batch:
    """One driver that imports image after image into one root."""

    def __init__(self, root):
        self.process = subprocess.Popen([DRIVER, root, FETCH, "batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, encoding="utf-8", errors="replace")

    def take(self, path):
        self.process.stdin.write(path + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=120)


class HostileTest(StoreTest):
    def setUp(self):
        super().setUp()
        self.canary = self.path("canary")
        os.mkdir(self.canary)
        for n, mode in enumerate((0o000, 0o644, 0o4755, 0o7777)):
            with open("%s/file%s" % (self.canary, n or ""), "wb") as file:
                file.write(b"canary\n")
                os.fchmod(file.fileno(), mode)
        os.symlink("file", self.canary + "/link")
        os.mkfifo(self.canary + "/fifo")
        os.mkdir(self.path("root-evil"))
        # The machine's own may change meanwhile: where somebody installs a package, say.
        subprocess.run(["cp", "-a", "/etc", self.path("etc")], check=True)
        subprocess.run(["mount", "--bind", self.path("etc"), "/etc"], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", "/etc"], check=True)
        self.before = self.outside()

    def outside(self):
        return {**describe(self.canary), **describe(self.path("root-evil")), "etc": sorted(os.listdir("/etc")),
                "top": sorted(os.listdir("/")), "work": sorted(n for n in os.listdir(self.work) if not n.startswith("image"))}

    def import_layer(self, batch, n, data, compress="none"):
        path = self.path("image%d" % n)
        layer = data if isinstance(data, mkimage.Layer) else mkimage.Layer(data, compress)
        mkimage.write_image(path, [layer])
        return batch.take(path)

    def judge(self, name, answer, expected):
        good = answer.startswith("ok ")
        self.assertTrue(answer, name + ": the driver is gone")
        if expected == corpus.OK or callable(expected):
            self.assertTrue(good, "%s: %s" % (name, answer))
        elif expected == corpus.REFUSED:
            self.assertRegex(answer, "^(invalid|exhausted): ", name)
        elif expected != corpus.ANY:
            self.assertRegex(answer, "^" + expected, name)
        if not good:
            self.assertRegex(answer, "^(invalid|exhausted|unsupported): ", name)
        if callable(expected):
            top = "%s/layers/%s" % (self.root, answer.split()[2])
            self.assertTrue(expected(top), "%s: the layer holds something else" % name)

    def test_corpus(self):
        batch = Batch(self.root)
        n = 0
        for n, (name, data, expected) in enumerate(corpus.cases(self.canary)):
            with self.subTest(name=name):
                self.judge(name, self.import_layer(batch, n, data), expected)
                if not name.startswith(("typeflag", "cut")) or n % 20 == 0:
                    self.assertEqual(self.outside(), self.before, name)
        self.assertEqual(batch.end(), 0)
        self.assertEqual(self.outside(), self.before)
        self.assertGreaterEqual(n, 120)
        self.assertEqual(os.listdir(self.root + "/staging"), [])
        layers = len(os.listdir(self.root + "/layers")) - 1
        self.assertLessEqual(layers, len(self.images()))

    def test_devices_and_hidden_whiteouts_are_not_there(self):
        batch = Batch(self.root)
        data = corpus.tar(corpus.entry(b"dev/null", corpus.CHAR, major=1, minor=3), corpus.entry(b"dev/zero", corpus.CHAR),
                          corpus.entry(b"dev/sda", corpus.BLOCK, major=8))
        answer = self.import_layer(batch, 0, data)
        self.assertEqual(batch.end(), 0)
        for _, _, files in os.walk("%s/layers/%s" % (self.root, answer.split()[2])):
            self.assertEqual(files, [])

    def test_no_space_left(self):
        """Each kind of entry on a file system that ends at every few kilobytes: refused in words, and nothing stays."""
        data = corpus.tar(
            corpus.entry(b"d/", corpus.DIR), *[corpus.entry(b"d/%d" % n, data=os.urandom(3000)) for n in range(20)],
            *[corpus.entry(b"e%d/" % n, corpus.DIR) for n in range(20)], corpus.entry(b"l", corpus.SYMLINK, link=b"t" * 90),
            corpus.entry(b"h", corpus.LINK, link=b"d/1"), corpus.entry(b"p", corpus.FIFO), corpus.entry(b"d/.wh.x"),
            corpus.entry(b"d/.wh..wh..opq"), corpus.entry(b"last", data=b"z" * 100000))
        path = self.path("image")
        mkimage.write_image(path, [mkimage.Layer(data, "none")])
        answers = set()
        for size in range(64, 1400, 48):
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk,mode=700" % size, "none", self.root], check=True)
            try:
                done = self.driver("import", path, check=False)
                last = (done.stderr or done.stdout).strip().splitlines()[-1]
                answers.add(done.returncode)
                if done.returncode:
                    self.assertRegex(last, "No space left|database or disk is full|full", size)
                    for folder in ("staging", "layers", "blobs/sha256"):
                        where = os.path.join(self.root, folder)
                        self.assertEqual([n for n in os.listdir(where) if n != "0"] if os.path.isdir(where) else [], [], size)
            finally:
                subprocess.run(["umount", "-l", self.root], check=True)
        self.assertEqual(answers, {0, 1})
        self.assertEqual(self.outside(), self.before)

    def test_somebody_moves_directories_meanwhile(self):
        """Directories of a layer that is being unpacked change places with links that lead out of it, over and over."""
        parts = [corpus.entry(b"d/", corpus.DIR), corpus.entry(b"o/", corpus.DIR)]
        for n in range(4000):
            parts.append(corpus.entry(b"%s/%d" % (b"do"[n % 2:n % 2 + 1], n), data=b"x"))
        path = self.path("image")
        mkimage.write_image(path, [mkimage.Layer(corpus.tar(*parts), "none")])
        moved = 0
        process = subprocess.Popen([DRIVER, self.root, FETCH, "import", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            for top in glob.glob(self.root + "/staging/*/layer*"):
                for name in ("d", "o"):
                    try:
                        os.symlink(self.canary, top + "/link")
                        os.rename(top + "/" + name, top + "/kept")
                        os.rename(top + "/link", top + "/" + name)
                        os.unlink(top + "/" + name)
                        os.rename(top + "/kept", top + "/" + name)
                        moved += 1
                    except OSError:
                        for rest in ("link", "kept"):
                            subprocess.run(["rm", "-rf", top + "/" + rest], check=True)
        self.assertGreater(moved, 10)
        self.assertEqual(self.outside(), self.before)

    def test_bombs(self):
        """Refused at a limit, and a good image goes through afterwards. Many empty members are only slow to write."""
        zeros = gzip.compress(b"\0" * (300 << 20), 9)
        bomb = mkimage.Layer(b"")
        bomb.blob = zeros
        members = mkimage.Layer(b"")
        members.blob = gzip.compress(b"", mtime=0) * 200000
        cut = mkimage.Layer(mkimage.build_tar([small_file("f", os.urandom(100000))]))
        cut.blob = cut.blob[:-1000]
        damaged = mkimage.Layer(mkimage.build_tar([small_file("g", os.urandom(100000))]))
        damaged.blob = damaged.blob[:5000] + b"\xff" * 100 + damaged.blob[5100:]
        garbage = mkimage.Layer(mkimage.build_tar([small_file("h")]))
        garbage.blob += b"garbage"
        batch = Batch(self.root)
        for n, (layer, words) in enumerate(((bomb, "exhausted: .*more than 200 times"), (members, "^ok "),
                                            (cut, "invalid: .*cut short"), (damaged, "invalid: "), (garbage, "invalid: .*gzip"))):
            with self.subTest(words=words):
                self.assertRegex(self.import_layer(batch, n, layer), words)
        self.assertRegex(self.import_layer(batch, 9, mkimage.build_tar([small_file("ok")])), "^ok ")
        self.assertEqual(batch.end(), 0)
        self.assertEqual(len(os.listdir(self.root + "/blobs/sha256")), 6)

    def zstd(self, data, window_log):
        """A frame of raw blocks that says it needs this window."""
        out = b"\x28\xb5\x2f\xfd\0" + bytes([(window_log - 10) << 3])
        size = 1 << 17
        for at in range(0, len(data), size):
            piece = data[at:at + size]
            out += (len(piece) << 3 | (at + size >= len(data))).to_bytes(3, "little") + piece
        return out

    def test_zstd(self):
        batch = Batch(self.root)
        for n, (make, words) in enumerate((
                (lambda d: self.zstd(d, 20), "^ok "), (lambda d: self.zstd(d, 25), "^ok "),
                (lambda d: self.zstd(d, 26), "^invalid: .*zstd data wants a window of more than 32 MiB$"),
                (lambda d: self.zstd(d, 31), "^invalid: .*zstd data wants a window of more than 32 MiB$"),
                (lambda d: self.zstd(d, 20)[:-10], "^invalid: .*cut short"), (lambda d: b"", "^invalid: "),
                (lambda d: self.zstd(d, 20) + b"garbage", "^invalid: .*zstd"),
                (lambda d: self.zstd(d, 20) + self.zstd(b"x" * 100, 20), "^invalid: .*diff id"),
                (lambda d: self.zstd(d, 20) + self.zstd(b"x", 26), "^invalid: .*zstd"),
                (lambda d: b"\x28\xb5\x2f\xfd", "^invalid: "),
                # What zstd:chunked has behind its frames, and what somebody may have put before them.
                (lambda d: self.zstd(d, 20) + b"\x50\x2a\x4d\x18\x05\0\0\0table", "^ok "),
                (lambda d: b"\x5f\x2a\x4d\x18\x05\0\0\0table" + self.zstd(d, 20), "^ok "))):
            with self.subTest(n=n):
                # Each has content of its own: a layer that is there already is not unpacked again.
                data = mkimage.build_tar([small_file("f", os.urandom(1 << 20))])
                layer = mkimage.Layer(data, "none", mkimage.LAYER + "+zstd")
                layer.blob = make(data)
                self.assertRegex(self.import_layer(batch, n, layer), words)
        self.assertEqual(batch.end(), 0)

    # ---- documents ----

    def good_files(self):
        layer = mkimage.Layer(mkimage.build_tar([small_file("f")]))
        return layer, mkimage.oci_files([layer], mkimage.make_config([layer], {}), "x")

    def rewrite(self, name, change):
        """A layout in which one document was changed, with the digests above it made right again."""
        layer = mkimage.Layer(mkimage.build_tar([small_file("f")]))
        config = mkimage.make_config([layer], {"Env": ["A=1"], "Cmd": ["sh"]})
        manifest = {"schemaVersion": 2, "mediaType": mkimage.MANIFEST, "layers": [layer.descriptor()],
                    "config": {"mediaType": mkimage.CONFIG}}
        index = {"schemaVersion": 2, "mediaType": mkimage.INDEX, "manifests": [{"mediaType": mkimage.MANIFEST}]}
        layout = {"imageLayoutVersion": "1.0.0"}
        files = {"blobs/sha256/" + mkimage.digest(layer.blob)[7:]: layer.blob}

        def settle(label, document, into):
            document = change(document) if label == name else document
            data = document if isinstance(document, bytes) else mkimage.dump(document)
            if into is not None and isinstance(into, dict):
                into.setdefault("digest", mkimage.digest(data))
                into.setdefault("size", len(data))
                files["blobs/sha256/" + mkimage.digest(data)[7:]] = data
            return data

        settle("config", config, manifest["config"])
        settle("manifest", manifest, index["manifests"][0])
        files["index.json"] = settle("index", index, None)
        files["oci-layout"] = settle("layout", layout, None)
        return files

    def test_documents(self):
        """Each is refused as invalid or unsupported, by name, and nothing is left."""
        deep = b"[" * 100000

        def put(*keys_and_value):
            *keys, value = keys_and_value

            def change(document):
                place = document
                for key in keys[:-1]:
                    place = place[key]
                if value is None:
                    del place[keys[-1]]
                else:
                    place[keys[-1]] = value
                return document
            return change

        def raw(data):
            return lambda _document: data

        hexes = "0123456789abcdef" * 4
        bad_digests = ["", "sha256:", "sha256:" + hexes[:-1], "sha256:" + hexes + "0", "sha256:" + hexes.upper(), "md5:" + hexes[:32],
                       "sha256:../../../../../../../../../../../../etc/passwd", "sha256:sha256:" + hexes, hexes,
                       "sha256:" + hexes + "\u0000", "sha512:" + hexes * 2, "sha256:" + hexes[:-2] + "/x"]
        cases = []
        for label in ("config", "manifest", "index", "layout"):
            for data in (b"", b"{", b"null", b"[]", b"\"x\"", b"\xff\xfe{}", b"{}", b"{\"a\":1,\"a\":2}", deep, b"{\"a\":\"\\u0000\"}",
                         b"{} {}", b"\xef\xbb\xbf{}", b"{\"a\":" * 70 + b"1" + b"}" * 70):
                cases.append((label, raw(data)))
        for text in bad_digests:
            cases.append(("index", put("manifests", 0, "digest", text)))
            cases.append(("manifest", put("config", "digest", text)))
            cases.append(("manifest", put("layers", 0, "digest", text)))
            cases.append(("config", put("rootfs", "diff_ids", [text])))
        for value in (-1, 1.5, "5", 2**60, 2**63, True, [], 0, 1):
            cases.append(("index", put("manifests", 0, "size", value)))
            cases.append(("manifest", put("layers", 0, "size", value)))
            cases.append(("manifest", put("config", "size", value)))
        for value in (1, 3, "2", None, [], -2):
            cases.append(("index", put("schemaVersion", value)))
            cases.append(("manifest", put("schemaVersion", value)))
        for value in ("text/plain", "", 5, None, mkimage.INDEX + "x"):
            cases.append(("index", put("manifests", 0, "mediaType", value)))
            cases.append(("manifest", put("config", "mediaType", value)))
            cases.append(("manifest", put("layers", 0, "mediaType", value)))
        cases += [
            ("index", put("manifests", 0, "mediaType", mkimage.INDEX)),
            ("manifest", put("mediaType", mkimage.INDEX)),
            ("manifest", put("manifests", [])),
            ("manifest", put("fsLayers", [])),
            ("index", put("config", {})),
            ("index", put("layers", [])),
            ("index", put("manifests", [])),
            ("index", put("manifests", {})),
            ("index", put("manifests", [5])),
            ("index", put("manifests", 0, "platform", "linux")),
            ("index", put("manifests", 0, "annotations", [])),
            ("index", put("manifests", 0, "annotations", {"org.opencontainers.image.ref.name": 5})),
            ("index", put("manifests", 0, "urls", ["https://evil.example/x"])),
            ("manifest", put("layers", 0, "urls", ["https://evil.example/x"])),
            ("manifest", put("layers", 0, "mediaType", mkimage.LAYER + "+gzip+encrypted")),
            ("manifest", put("layers", 0, "mediaType", mkimage.LAYER + "+zstd")),
            ("manifest", put("layers", [])),
            ("manifest", put("layers", None)),
            ("manifest", put("config", None)),
            ("manifest", put("config", [])),
            ("config", put("rootfs", None)),
            ("config", put("rootfs", "type", "weird")),
            ("config", put("rootfs", "diff_ids", [])),
            ("config", put("rootfs", "diff_ids", ["sha256:" + hexes, "sha256:" + hexes])),
            ("config", put("rootfs", "diff_ids", ["sha256:" + hexes])),
            ("config", put("os", None)),
            ("config", put("architecture", 5)),
            ("config", put("config", [])),
            ("config", put("config", "Env", "A=1")),
            ("config", put("config", "Env", [5])),
            ("config", put("config", "Env", ["A=" + "x" * 40000])),
            ("config", put("config", "Env", ["A%d=" % n for n in range(5000)])),
            ("config", put("config", "Cmd", {"a": 1})),
            ("config", put("config", "Cmd", ["x" * 40000])),
            ("config", put("config", "Entrypoint", "sh")),
            ("config", put("config", "User", ["root"])),
            ("config", put("config", "User", "a\nb")),
            ("config", put("config", "User", "u" * 300)),
            ("config", put("config", "WorkingDir", 5)),
            ("config", put("config", "WorkingDir", "/" + "w" * 5000)),
            ("config", put("config", "StopSignal", {})),
            ("layout", put("imageLayoutVersion", "2.0.0")),
            ("layout", put("imageLayoutVersion", 1)),
        ]
        batch = Batch(self.root)
        for n, (name, change) in enumerate(cases):
            with self.subTest(n=n, name=name):
                path = self.path("image%d" % n)
                mkimage.write_directory(path, self.rewrite(name, change))
                answer = batch.take(path)
                self.assertRegex(answer, "^(invalid|unsupported|exhausted|precondition): ", "%d %s" % (n, name))
        path = self.path("image-good")
        # Other runtimes too pass over an entry without a name or without a value.
        mkimage.write_directory(path, self.rewrite("config", put("config", "Env", ["novalue", "=x", "A=1"])))
        self.assertRegex(batch.take(path), "^ok ")
        self.assertEqual(batch.end(), 0)
        self.driver("rm", self.images()[0][0])
        self.assert_empty()

    def test_other_machine(self):
        path, _ = self.make("image.tar", [[small_file("f")]], arch="pdp11")
        self.refused("precondition", "no image for this machine", "import", path)
        files = self.rewrite("config", lambda c: dict(c, architecture="pdp11"))
        mkimage.write_directory(self.path("image2"), files)
        self.refused("precondition", "linux/pdp11", "import", self.path("image2"))
        self.assert_empty()

    def test_every_blob_is_verified(self):
        _, files = self.good_files()
        for name in [n for n in files if n.startswith("blobs/")]:
            for label, change in (("bit", lambda d: bytes([d[0] ^ 1]) + d[1:]), ("cut", lambda d: d[:-1]),
                                  ("more", lambda d: d + b" "), ("empty", lambda d: b""), ("gone", None)):
                with self.subTest(name=name, label=label):
                    changed = dict(files)
                    if change:
                        changed[name] = change(changed[name])
                    else:
                        del changed[name]
                    path = self.path("image%s%s.tar" % (label, name[-8:]))
                    mkimage.write_files(path, changed)
                    self.refused("invalid", "digest|bytes|no file|empty", "import", path)
                    self.assert_empty()

    def test_links_in_a_directory_stay_inside(self):
        """A layout on disk whose blob is a link to a file of the host."""
        _, files = self.good_files()
        secret = self.path("secret")
        with open(secret, "wb") as file:
            file.write(b"secret")
        path = self.path("image")
        mkimage.write_directory(path, files)
        os.unlink(path + "/oci-layout")
        os.symlink(secret, path + "/oci-layout")
        self.refused("invalid", "neither an OCI", "import", path)
        os.unlink(path + "/oci-layout")
        os.symlink("../secret", path + "/oci-layout")
        self.refused("invalid", "neither an OCI", "import", path)
        os.unlink(path + "/oci-layout")
        os.mkfifo(path + "/oci-layout")
        self.refused("invalid", "neither an OCI", "import", path)
        self.assert_empty()

    def test_docker_archives(self):
        layer = mkimage.Layer(mkimage.build_tar([small_file("f")]))
        good = mkimage.docker_files([layer], mkimage.make_config([layer], {}), "x")
        layer_name = layer.diff_id[7:] + "/layer.tar"
        config_name = json.loads(good["manifest.json"])[0]["Config"]

        def manifest(**changes):
            document = json.loads(good["manifest.json"])
            document[0].update(changes)
            return {"manifest.json": mkimage.dump(document)}

        cases = [
            (manifest(Config="../../etc/passwd"), "no file"), (manifest(Config="/etc/passwd"), "no file"),
            (manifest(Layers=["../x"]), "no file"), (manifest(Layers=[]), "diff ids"), (manifest(Layers="x"), "no array"),
            (manifest(Layers=[5]), "strings"), (manifest(RepoTags=[5]), "strings"), (manifest(RepoTags={}), "no array"),
            (manifest(Layers=[layer_name, layer_name]), "diff ids"), (manifest(Config=layer_name), "JSON|longer|configuration"),
            ({"manifest.json": b"[]"}, "no image"), ({"manifest.json": b"{}"}, "no JSON array"), ({"manifest.json": b"[[]]"}, "objects"),
            ({"manifest.json": b""}, "empty"), ({layer_name: b"junk" * 200}, "diff id|no tar"), ({config_name: b"{}"}, "digest"),
        ]
        for n, (changes, words) in enumerate(cases):
            with self.subTest(n=n):
                path = self.path("image%d.tar" % n)
                mkimage.write_files(path, dict(good, **changes))
                self.refused("invalid", words, "import", path)
        self.assert_empty()
        path = self.path("image-names.tar")
        mkimage.write_files(path, dict(good, **manifest(RepoTags=["Bad Name", "x:1", "y@sha256:" + "0" * 64])))
        self.driver("import", path)
        self.assertEqual(self.images()[0][1:-2], ["docker.io/library/x:1"])

    def test_outer_archive(self):
        """What holds the blobs is a tar of strangers too."""
        _, files = self.good_files()
        entries = [corpus.entry(name.encode(), data=data) for name, data in files.items()]
        first = next(iter(files))
        for n, (parts, words) in enumerate((
                (entries + [corpus.entry(first.encode(), data=b"other")], "twice"),
                (entries + [corpus.entry(b"../x", data=b"other")], r"\.\."),
                (entries[:-1] + [corpus.entry(b"index.json", corpus.SYMLINK, link=b"/etc/passwd")], "neither an OCI"),
                (entries[:-1] + [corpus.entry(b"index.json", corpus.SYMLINK, link=b"index.json")], "neither an OCI"),
                (entries[:-1] + [corpus.entry(b"index.json", corpus.LINK, link=b"../../etc/passwd")], "neither an OCI"),
                (entries[:-1] + [corpus.entry(b"index.json", corpus.FIFO)], "neither an OCI"))):
            with self.subTest(n=n):
                with open(self.path("image%d.tar" % n), "wb") as file:
                    file.write(corpus.tar(*parts))
                self.refused("invalid", words, "import", self.path("image%d.tar" % n))
        whole = corpus.tar(*entries)
        batch = Batch(self.root)
        for n in range(0, len(whole) - 1024, 512):
            with open(self.path("image-cut%d.tar" % n), "wb") as file:
                file.write(whole[:n])
            answer = batch.take(self.path("image-cut%d.tar" % n))
            self.assertRegex(answer, "^(invalid|ok)", str(n))
        # Right behind the data of the last member, and one byte before that.
        name, data = "blobs/sha256/" + "0" * 64, b"x" * 700
        for n, expected in ((len(whole) - 1024 + 512 + 700, "^ok "), (len(whole) - 1024 + 512 + 800, "^ok "),
                            (len(whole) - 1024 + 512 + 699, "^invalid: .*Truncated")):
            with open(self.path("image-end%d.tar" % n), "wb") as file:
                file.write((whole[:-1024] + corpus.entry(name.encode(), data=data))[:n])
            self.assertRegex(batch.take(self.path("image-end%d.tar" % n)), expected, str(n))
        self.assertEqual(batch.end(), 0)

    def test_digest_of_docker_manifest_is_stable(self):
        layer = mkimage.Layer(mkimage.build_tar([small_file("f")]))
        mkimage.write_image(self.path("image1.tar"), [layer], {}, "x", "docker")
        self.driver("import", self.path("image1.tar"))
        first = sorted(os.listdir(self.root + "/blobs/sha256"))
        self.driver("rm", "x")
        self.driver("import", self.path("image1.tar"))
        self.assertEqual(sorted(os.listdir(self.root + "/blobs/sha256")), first)
        for name in first:
            with open(self.root + "/blobs/sha256/" + name, "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).hexdigest(), name)


if __name__ == "__main__":
    unittest.main()
