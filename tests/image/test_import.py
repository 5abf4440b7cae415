# SPDX-License-Identifier: Apache-2.0
"""Import, list, find, remove, root file systems and recovery, through src/image without the daemon."""
import bz2
import gzip
import hashlib
import json
import lzma
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver import DRIVER, FETCH, ROOT, StoreTest, mkimage, small_file  # noqa: E402

REF_NAME = "org.opencontainers.image.ref.name"


def has_faults():
    """Whether this build has failpoints."""
    with open(DRIVER, "rb") as file:
        return b"NACRE_FAILPOINT" in file.read()


class ImportTest(StoreTest):

    def busybox(self, out, *args):
        path = self.path(out)
        done = subprocess.run([os.path.join(ROOT, "tests/mkimage"), "--out", path, "--busybox", *args],
                              capture_output=True, text=True, check=True)
        return path, done.stdout.strip()

    def test_both_formats_in_every_wrapping(self):
        cases = [("dir", "oci"), ("o.tar", "oci"), ("o.tar.gz", "oci"), ("d.tar", "docker"), ("d.tar.gz", "docker")]
        for n, (out, form) in enumerate(cases):
            with self.subTest(out=out, form=form):
                path, ident = self.busybox(out, "--format", form, "--name", "test/%d" % n, "--layers", "3", "--cmd", "sh")
                self.assertEqual(self.driver("import", path).stdout.strip(), ident)
        lines = self.images()
        # The same configuration is the same image, whatever it came in; the first record stays.
        self.assertEqual(len(lines), 1, lines)
        self.assertEqual(lines[0][1:6], ["docker.io/test/%d:latest" % n for n in range(5)])
        self.assertEqual(len(self.leftovers()), 3 + 5, self.leftovers())
        for n in range(5):
            self.driver("rm", "test/%d" % n)
        self.assert_empty()

    def layout(self, *images, others=()):
        """A layout of images (annotations) and of what is none (descriptors with their blobs)."""
        files, manifests = {}, []
        for n, (annotations, options) in enumerate(images):
            layers = [mkimage.Layer(mkimage.build_tar([small_file(f"f{n}")]))]
            made = mkimage.oci_files(layers, mkimage.make_config(layers, {}), "")
            entry = json.loads(made["index.json"])["manifests"][0]
            manifests.append({**entry, "annotations": annotations, **options})
            files.update(made)
        for descriptor, blobs in others:
            manifests.insert(0, descriptor)
            files.update({"blobs/sha256/" + mkimage.digest(data)[7:]: data for data in blobs})
        files["index.json"] = mkimage.dump({"schemaVersion": 2, "manifests": manifests})
        files["oci-layout"] = mkimage.dump({"imageLayoutVersion": "1.0.0"})
        return files

    def descriptor(self, data, media_type, **more):
        return {"mediaType": media_type, "digest": mkimage.digest(data), "size": len(data), **more}

    def not_images(self):
        """What tools put beside an image: an SBOM as a blob, an artifact, a signature of cosign, an attestation of buildkit."""
        empty, sbom = b"{}", b"<sbom/>"
        artifact = mkimage.dump({"schemaVersion": 2, "mediaType": mkimage.MANIFEST, "artifactType": "application/spdx+json",
                                 "config": self.descriptor(empty, "application/vnd.oci.empty.v1+json"),
                                 "layers": [self.descriptor(sbom, "application/spdx+json")]})
        config = mkimage.dump({"architecture": "", "os": "", "rootfs": {"type": "layers", "diff_ids": [mkimage.digest(sbom)]}})
        signature = mkimage.dump({"schemaVersion": 2, "mediaType": mkimage.MANIFEST, "config": self.descriptor(config, mkimage.CONFIG),
                                  "layers": [self.descriptor(sbom, "application/vnd.dev.cosign.simplesigning.v1+json")]})
        return {"blob": (self.descriptor(sbom, "application/spdx+json"), [sbom]),
                "blob-of-sha512": ({"mediaType": "application/x", "digest": "sha512:" + "0" * 128, "size": 1}, []),
                "artifact": (self.descriptor(artifact, mkimage.MANIFEST), [artifact, empty, sbom]),
                "artifact-that-says-so": (self.descriptor(artifact, mkimage.MANIFEST, artifactType="application/spdx+json"), [artifact]),
                "signature": (self.descriptor(signature, mkimage.MANIFEST, annotations={REF_NAME: "sig"}), [signature, config, sbom]),
                "attestation": (self.descriptor(sbom, mkimage.MANIFEST, platform={"architecture": "unknown", "os": "unknown"}), [sbom])}

    def test_what_is_no_image_is_passed_over(self):
        others = self.not_images()
        for n, (name, other) in enumerate([*others.items(), ("all", None)]):
            with self.subTest(name=name):
                beside = [other] if other else list(others.values())
                path = self.path(f"both{n}")
                mkimage.write_directory(path, self.layout(({REF_NAME: "x/y:1"}, {}), others=beside))
                self.driver("import", path)
                self.assertEqual(["docker.io/x/y:1"], self.images()[0][1:-2])
                self.driver("rm", "x/y:1")
                self.assert_empty()
                if other and name != "attestation":
                    path = self.path(f"alone{n}")
                    mkimage.write_directory(path, self.layout(others=beside))
                    self.refused("unsupported", "type \"application/", "import", path)

    def test_an_index_in_a_layout_passes_over_them_too(self):
        others = self.not_images()
        for name in ("blob", "artifact-that-says-so", "attestation"):
            files = self.layout(({}, {}), others=[others[name]])
            inner = mkimage.dump({**json.loads(files["index.json"]), "mediaType": mkimage.INDEX})
            files["blobs/sha256/" + mkimage.digest(inner)[7:]] = inner
            files["index.json"] = mkimage.dump({"schemaVersion": 2, "manifests": [
                self.descriptor(inner, mkimage.INDEX, annotations={REF_NAME: "x/y:1"})]})
            mkimage.write_directory(self.path(name), files)
            self.driver("import", self.path(name))
            self.assertEqual(["docker.io/x/y:1"], self.images()[0][1:-2])

    def test_an_image_of_layers_that_cannot_be_read_is_not_passed_over(self):
        for kind, words in (("tar+xz", "compressed with xz"), ("tar+bzip2", "compressed with bzip2"), ("tar+encrypted", "cannot be unpacked")):
            files = self.layout(({REF_NAME: "x/y:1"}, {}))
            entry = json.loads(files["index.json"])["manifests"][0]
            manifest = json.loads(files["blobs/sha256/" + entry["digest"][7:]])
            manifest["layers"][0]["mediaType"] = "application/vnd.oci.image.layer.v1." + kind
            data = mkimage.dump(manifest)
            files["blobs/sha256/" + mkimage.digest(data)[7:]] = data
            entry.update(digest=mkimage.digest(data), size=len(data))
            files["index.json"] = mkimage.dump({"schemaVersion": 2, "manifests": [entry]})
            mkimage.write_directory(self.path(kind), files)
            self.refused("unsupported", words, "import", self.path(kind))

    def test_archives_that_are_compressed_otherwise_are_named(self):
        path, _ = self.make("a.tar", [[small_file("a")]], image_name="one")
        with open(path, "rb") as file:
            data = file.read()
        for kind, module in (("xz", lzma), ("bzip2", bz2)):
            with open(self.path("b.tar." + kind), "wb") as file:
                file.write(module.compress(data))
            self.refused("unsupported", f"compressed with {kind}.*recompress", "import", self.path("b.tar." + kind))
        self.assert_empty()

    def test_tags_alone_become_names(self):
        """Behind the name of the file or directory, as far as that is one."""
        for name, said, expected in (
                ("nginx", "1.27", ["docker.io/library/nginx:1.27"]), ("Nginx.oci.tar", "latest", ["docker.io/library/nginx:latest"]),
                ("my-app_1.tar.gz", "v2", ["docker.io/library/my-app_1:v2"]), ("a b", "1", []), ("-x", "1", []), ("nginx", "no tag", []),
                ("nginx", "quay.io/a/b:3", ["quay.io/a/b:3"]), ("nginx", "", []), ("x:y", "1", [])):
            with self.subTest(name=name, said=said):
                path = self.path(name)
                write = mkimage.write_files if name.endswith((".tar", ".gz")) else mkimage.write_directory
                write(path, self.layout(({REF_NAME: said} if said else {}, {})))
                image = self.driver("import", path).stdout.strip()
                self.assertEqual(expected, self.images()[0][1:-2])
                self.driver("rm", image)
                subprocess.run(["rm", "-rf", "--", path], check=True)

    def test_one_of_several_is_chosen(self):
        layout = self.layout(({REF_NAME: "1.27"}, {}), ({REF_NAME: "1.28"}, {}),
                             ({REF_NAME: "1.28", "io.containerd.image.name": "quay.io/a/b:1.28"}, {"platform": {"os": "plan9", "architecture": "x"}}),
                             ({REF_NAME: "old", "io.containerd.image.name": "quay.io/a/b:3"}, {}))
        path = self.path("nginx")
        mkimage.write_directory(path, layout)
        for ref, name in (("1.28", "docker.io/library/nginx:1.28"), ("1.27", "docker.io/library/nginx:1.27"), ("old", "quay.io/a/b:3"),
                          ("quay.io/a/b:3", "quay.io/a/b:3")):
            self.driver("import", path, "", ref)
            self.assertEqual([name], self.images()[0][1:-2], ref)
            self.driver("rm", name)
        self.driver("import", path, "mine:5", "1.28")
        self.assertEqual(["docker.io/library/mine:5"], self.images()[0][1:-2])
        self.refused("not-found", 'no image "1.29"; it has: 1.27, 1.28, quay.io/a/b:3, old', "import", path, "", "1.29")
        self.refused("invalid", "3 images.*choose it by its ref", "import", path, "mine:6")
        told = self.driver("import", path).stderr
        self.assertEqual([f"# name docker.io/library/{n}" for n in ("nginx:1.27", "mine:5", "nginx:1.28")] + ["# name quay.io/a/b:3"],
                         [line for line in told.splitlines() if line.startswith("# name")])
        layers = [mkimage.Layer(mkimage.build_tar([small_file("f")]))]
        saved = mkimage.docker_files(layers, mkimage.make_config(layers, {}), "one:1")
        saved["manifest.json"] = mkimage.dump(json.loads(saved["manifest.json"]) + [
            dict(json.loads(saved["manifest.json"])[0], RepoTags=["two:2"], Config="gone.json")])
        mkimage.write_files(self.path("saved.tar"), saved)
        self.driver("import", self.path("saved.tar"), "", "one:1")
        self.refused("not-found", "it has: one:1, two:2", "import", self.path("saved.tar"), "", "three")

    def test_a_root_file_system_becomes_an_image(self):
        tar = mkimage.build_tar([("etc", b"5", 0o755, b"", ""), small_file("etc/name", b"here\n"), small_file("bin/tool", b"x", 0o4755)])
        config = '{"architecture": "amd64", "config": {"Cmd": ["sh"], "Env": ["A=1"], "Labels": {"l": "m"}}}'
        ids = {}
        squeezed = subprocess.run(["zstd", "-qc"], input=tar, capture_output=True, check=True).stdout
        for kind, data in (("none", tar), ("gzip", gzip.compress(tar)), ("zstd", squeezed)):
            with self.subTest(kind=kind):
                with open(self.path("root." + kind), "wb") as file:
                    file.write(data)
                ident = self.driver("root", self.path("root." + kind), config, "made/" + kind).stdout.strip()
                self.assertEqual(ident, self.driver("root", self.path("root." + kind), config, "made/" + kind).stdout.strip())
                with open(os.path.join(self.root, "blobs/sha256", ident[7:]), "rb") as file:
                    document = json.load(file)
                self.assertEqual({"Cmd": ["sh"], "Env": ["A=1"], "Labels": {"l": "m"}}, document["config"])
                self.assertEqual(["sha256:" + hashlib.sha256(tar).hexdigest()], document["rootfs"]["diff_ids"])
                ids[ident] = kind
        # What is in it makes the image; how it was packed does not.
        self.assertEqual(1, len(ids), ids)
        with self.mounted("made/none", "0011223344556677") as top:
            self.assertEqual(["bin", "etc"], sorted(os.listdir(top)))
            self.assertEqual(0o4755, stat.S_IMODE(os.stat(top + "/bin/tool").st_mode))
        self.driver("rm", next(iter(ids)))
        self.assertEqual([], [name for name in self.leftovers() if not name.startswith("containers/")])

    def test_what_is_no_root_file_system_is_refused(self):
        tar, _ = self.make("a.tar", [[small_file("a")]], image_name="x:1")
        for name, data in (("empty", b""), ("text", b"no tar at all\n" * 100), ("cut", gzip.compress(os.urandom(9000))[:5000])):
            with open(self.path(name), "wb") as file:
                file.write(data)
        self.refused("invalid", "the tar is empty", "root", self.path("empty"), "{}")
        self.refused("invalid", "no tar archive that can be read", "root", self.path("text"), "{}")
        self.refused("invalid", "decompress the tar", "root", self.path("cut"), "{}")
        self.refused("invalid", "a tar, not a directory", "root", self.work, "{}")
        for config, words in (("{", "the settings"), ("[]", "the settings"), ('{"config": []}', "config"), ('{"config": {"Cmd": "sh"}}', "Cmd"),
                              ('{"config": {"Env": [1]}}', "no list of strings"), ('{"config": {}, "config": {}}', "the settings"),
                              ('{"architecture": "%s"}' % ("a" * 100), "too long"), ('{"x": "%s"}' % ("a" * 40000), "more than")):
            with self.subTest(config=config[:40]):
                self.refused("invalid", words, "root", tar, config)
        self.assert_empty()
        self.refused("invalid", "imported with --root", "import", self.root_tar())

    def root_tar(self):
        with open(self.path("plain.tar"), "wb") as file:
            file.write(mkimage.build_tar([small_file("a")]))
        return self.path("plain.tar")

    def test_name_moves_and_last_name_takes_the_image(self):
        first, _ = self.make("a.tar", [[small_file("a")]], image_name="x:1")
        second, _ = self.make("b.tar", [[small_file("b")]], image_name="x:1")
        self.driver("import", first)
        self.driver("import", first, "y/z:2")
        self.driver("import", second)
        lines = self.images()
        self.assertEqual(lines[0][1:-2], ["docker.io/y/z:2"])
        self.assertEqual(lines[1][1:-2], ["docker.io/library/x:1"])
        self.driver("rm", "x:1")
        self.assertEqual(len(self.images()), 1)
        self.driver("import", first, "third")
        self.driver("rm", "y/z:2")
        self.assertEqual(self.images()[0][1:-2], ["docker.io/library/third:latest"])
        self.driver("rm", self.images()[0][0][7:15])
        self.assert_empty()
        self.refused("not-found", "there is no image", "rm", "x:1")

    def test_find(self):
        path, ident = self.make("a.tar", [[small_file("a")]], image_name="quay.io/a/b:1")
        self.driver("import", path)
        for words in ("x", "quay.io/a/b", ident[:-1] + "0"):
            self.refused("not-found", "there is no image", "rm", words)
        self.refused("invalid", "no component", "rm", "Quay")
        self.refused("invalid", "digest", "rm", "quay.io/a/b:1@sha256:00")
        self.driver("rm", "quay.io/a/b:1")
        self.assert_empty()

    def test_shares_layers(self):
        base = mkimage.Layer(mkimage.build_tar([small_file("base")]))
        one, _ = self.make("a.tar", [base, [small_file("one")]], image_name="one")
        two, _ = self.make("b.tar", [base, [small_file("two")]], image_name="two")
        swapped, _ = self.make("c.tar", [[small_file("one")], base], image_name="swapped")
        for path in (one, two, swapped):
            self.driver("import", path)
        layers = [line[2:-1] for line in self.images()]
        self.assertEqual(layers, [["1", "2"], ["1", "3"], ["4", "5"]])
        self.driver("rm", "one")
        self.assertEqual(sorted(os.listdir(self.root + "/layers")), ["0", "1", "3", "4", "5"])
        self.driver("rm", "two")
        self.driver("rm", "swapped")
        self.assert_empty()

    def test_a_blob_is_verified_although_its_layer_is_present(self):
        """A configuration that gives another blob the diff id of a layer of the store; the same tar, packed otherwise, is taken."""
        base = mkimage.Layer(mkimage.build_tar([small_file("base")]))
        one, ident = self.make("a.tar", [base, [small_file("one")]], image_name="one")
        self.driver("import", one)
        for forged in (0, 1):
            layers = [base, mkimage.Layer(mkimage.build_tar([small_file("one")]))]
            layers[forged] = mkimage.Layer(mkimage.build_tar([small_file("other")]))
            layers[forged].diff_id = (base.diff_id, mkimage.Layer(mkimage.build_tar([small_file("one")])).diff_id)[forged]
            path, _ = self.make("b.tar", layers, image_name="two")
            self.refused("invalid", "layer %d of 2: .*has the diff id .* the configuration says" % (forged + 1), "import", path)
            self.assertEqual([ident], [line[0] for line in self.images()])
        for compress in ("none", "gzip"):
            path, _ = self.make("c.tar", [mkimage.Layer(base.tar, compress), [small_file("one")]], image_name="one")
            self.driver("import", path)
            self.assertEqual([["1", "2"]], [line[2:-1] for line in self.images()])
        self.driver("sweep")
        self.driver("rm", "one")
        self.assert_empty()

    def test_two_at_once(self):
        one, ident = self.make("a.tar", [[small_file("f%d" % n)] for n in range(4)], image_name="one")
        for _ in range(8):
            done = self.driver("both", one, one)
            self.assertEqual(done.stdout.split(), [ident, ident])
            self.assertEqual(self.images()[0][2:-1], ["1", "2", "3", "4"])
            self.assertEqual(os.listdir(self.root + "/staging"), [])
            self.driver("rm", "one")
            self.assert_empty()

    def test_cancel_leaves_nothing_or_all(self):
        path, _ = self.make("a.tar", [[small_file("f%d" % n, os.urandom(200000))] for n in range(4)], image_name="one")
        for ms in (0, 3, 10, 30, 60):
            with self.subTest(ms=ms):
                self.driver("cancel", path, str(ms))
                if self.images():
                    self.driver("rm", "one")
                self.assert_empty()

    def test_rootfs_is_the_merged_tree(self):
        lower = mkimage.build_tar([
            ("etc", b"5", 0o755, b"", ""), small_file("etc/keep"), small_file("etc/gone"), small_file("opaque/old"),
            small_file("bin/tool", b"#!/bin/sh\n", 0o4755), small_file("replaced/x"), ("lib", b"2", 0o777, b"", "usr/lib"),
            small_file("usr/lib/libc")])
        upper = mkimage.build_tar([
            small_file("etc/.wh.gone", b""), small_file("opaque/new"), small_file("opaque/.wh..wh..opq", b""),
            small_file("replaced", b"now a file\n"), ("root", b"5", 0o700, b"", "")])
        path, _ = self.make("a.tar", [mkimage.Layer(lower), mkimage.Layer(upper)], image_name="one")
        self.driver("import", path)
        with self.mounted("one", "0011223344556677") as top:
            self.assertEqual(sorted(os.listdir(top)), ["bin", "etc", "lib", "opaque", "replaced", "root", "usr"])
            self.assertEqual(os.listdir(top + "/etc"), ["keep"])
            self.assertEqual(os.listdir(top + "/opaque"), ["new"])
            self.assertTrue(os.path.isfile(top + "/replaced"))
            self.assertEqual(stat.S_IMODE(os.stat(top + "/bin/tool").st_mode), 0o4755)
            self.assertEqual(os.listdir(top + "/lib"), ["libc"])
            with open(top + "/etc/keep", "a", encoding="utf-8") as file:
                file.write("more\n")
            os.unlink(top + "/bin/tool")
        self.assertEqual(sorted(os.listdir(self.root + "/containers/0011223344556677/upper")), ["bin", "etc"])
        with open(self.root + "/layers/1/etc/keep", encoding="utf-8") as file:
            self.assertEqual(file.read(), "x\n")
        self.driver("sweep")
        self.assertEqual(os.listdir(self.root + "/containers"), [])

    def test_rootfs_of_many_layers_and_of_none(self):
        many, _ = self.make("a.tar", [[small_file("f%d" % n)] for n in range(256)], image_name="many")
        none, _ = self.make("b.tar", [], image_name="none")
        too_many, _ = self.make("c.tar", [[small_file("f%d" % n)] for n in range(257)], image_name="toomany")
        self.driver("import", many)
        self.driver("import", none)
        with self.mounted("many", "a0") as top:
            self.assertEqual(len(os.listdir(top)), 256)
        with self.mounted("none", "a1") as top:
            self.assertEqual(os.listdir(top), [])
        self.refused("exhausted", "layers", "import", too_many)

    def mounted(self, reference, ident):
        test = self

        class Mounted:
            def __enter__(self):
                self.process = subprocess.Popen([DRIVER, test.root, FETCH, "rootfs", reference, ident],
                                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                test.assertEqual(self.process.stdout.readline(), "mounted\n")
                return test.root + "/mnt"

            def __exit__(self, *_):
                subprocess.run(["umount", test.root + "/mnt"], check=True)
                self.process.communicate()
                test.assertEqual(self.process.returncode, 0)

        return Mounted()

    def test_names_that_are_refused(self):
        path, _ = self.make("a.tar", [[small_file("a")]])
        for name, words in (("UPPER", "no component"), ("a b", "no component"), ("x@sha256:" + "0" * 64, "cannot have a digest"),
                            ("x:", "no tag"), ("../x", "no name of a registry")):
            self.refused("invalid", words, "import", path, name)
        self.assert_empty()

    def test_paths_that_are_refused(self):
        os.mkfifo(self.path("fifo"))
        os.mkdir(self.path("empty"))
        with open(self.path("nothing"), "wb"):
            pass
        with open(self.path("text"), "wb") as file:
            file.write(b"this is no archive\n" * 100)
        for path, kind, words in (("/nowhere", "not-found", "no file"), ("relative", "invalid", "absolute"),
                                  (self.path("fifo"), "invalid", "neither"), ("/dev/null", "invalid", "neither"),
                                  (self.path("empty"), "invalid", "neither an OCI"),
                                  (self.path("nothing"), "invalid", "empty"), (self.path("text"), "invalid", "no tar")):
            self.refused(kind, words, "import", path)
        self.assert_empty()

    def test_recovery_drops_what_no_record_names(self):
        path, _ = self.make("a.tar", [[small_file("a")], [small_file("b")]], image_name="one")
        self.driver("import", path)
        os.makedirs(self.root + "/layers/77/deep/er")
        os.makedirs(self.root + "/layers/junk")
        os.makedirs(self.root + "/staging/0123/blobs")
        for name in ("0" * 64, "junk"):
            with open(self.root + "/blobs/sha256/" + name, "wb"):
                pass
        before = self.images()
        self.assertEqual(len(before), 1)
        self.driver("sweep")
        self.assertEqual(len(self.leftovers()), 2 + 4, self.leftovers())
        # A layer that is lost takes its image with it.
        shutil.rmtree(self.root + "/layers/2")
        self.assertEqual(self.images(), [])
        self.driver("sweep")
        self.assert_empty()

    def test_damaged_blob_is_replaced(self):
        path, _ = self.make("a.tar", [[small_file("a")]], image_name="one")
        self.driver("import", path)
        blobs = self.root + "/blobs/sha256/"
        for name in os.listdir(blobs):
            with open(blobs + name, "r+b") as file:
                file.write(b"damage")
        self.driver("import", path)
        for name in os.listdir(blobs):
            with open(blobs + name, "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).hexdigest(), name)

    def test_full_disk(self):
        path, _ = self.make("a.tar", [[small_file("f", os.urandom(3 << 20))]], image_name="big")
        little, _ = self.make("b.tar", [[small_file("g")]], image_name="little")
        for size in ("1600k", "2500k", "4m", "5m", "6m"):
            with self.subTest(size=size):
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "none", self.root], check=True)
                try:
                    done = self.driver("import", path, check=False)
                    if done.returncode == 0:
                        self.driver("rm", "big")
                    else:
                        self.assertRegex(done.stderr, "No space left on device")
                    self.assert_empty()
                    self.driver("import", little)
                    self.fill()
                    self.driver("rm", "little")
                    self.assertEqual([n for n in self.leftovers() if not n.startswith("staging")], [])
                finally:
                    subprocess.run(["umount", self.root], check=True)

    def fill(self):
        """Until there is no byte left."""
        file = os.open(self.root + "/fill", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            while True:
                os.write(file, b"\0" * 4096)
        except OSError:
            pass
        finally:
            os.close(file)

    def test_failpoints(self):
        if not has_faults():
            self.skipTest("this build has no failpoints")
        path, _ = self.make("a.tar", [[small_file("a")], [small_file("b")]], image_name="one")
        for point in ("import.start", "import.blob", "import.layer", "import.record", "store.write"):
            with self.subTest(point=point, action="error"):
                self.refused("fault", "No space left", "import", path, env={"NACRE_FAILPOINT": point + "=error:28"})
                self.assert_empty()
            with self.subTest(point=point, action="crash"):
                done = self.driver("import", path, env={"NACRE_FAILPOINT": point + "=crash"}, check=False)
                self.assertEqual(done.returncode, -9)
                self.driver("sweep")
                self.assert_empty()
        self.driver("import", path)
        self.refused("fault", "No space left", "rootfs", "one", "a0", env={"NACRE_FAILPOINT": "container.rootfs=error:28"})

    def test_calls_of_the_kernel_fail(self):
        """One at a time, while importing, making a root file system and removing: an error in words, and nothing left of it."""
        if not has_faults():
            self.skipTest("this build has no faults")
        path, _ = self.make("a.tar", [[small_file("a")], [small_file("b")]], image_name="one")

        def tries(k, *args):
            done = self.driver(*args, env={"NACRE_SYSIO": "*:%d:EIO" % k}, check=False)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            if done.returncode:
                self.assertRegex(done.stderr.strip().splitlines()[-1], "^[a-z-]+: .*Input/output error")
            return done.returncode == 0

        for k in range(1, 100, 4):
            with self.subTest(k=k):
                if tries(k, "import", path):
                    self.driver("rm", "one")
                self.driver("sweep")
                self.assert_empty()
                self.driver("import", path)
                if tries(k, "rootfs", "one", "a0"):
                    subprocess.run(["umount", "-q", self.root + "/mnt"], check=False)
                self.driver("sweep")
                self.assertEqual(os.listdir(self.root + "/containers"), [])
                if not tries(k, "rm", "one"):
                    self.driver("rm", "one", check=False)
                self.driver("sweep")
                self.assert_empty()

    def test_faults_of_the_helper(self):
        if not has_faults():
            self.skipTest("this build has no faults")
        path, _ = self.make("a.tar", [[small_file("d%d/f" % n) for n in range(3)]], image_name="one")
        for call in ("openat", "write", "mkdirat", "renameat", "ftruncate"):
            for k in (1, 2, 3):
                with self.subTest(call=call, k=k):
                    done = self.driver("import", path, env={"NACRE_FETCH_SYSIO": "%s:%d:ENOSPC" % (call, k)}, check=False)
                    if done.returncode == 0:
                        self.driver("rm", "one")
                    else:
                        self.assertRegex(done.stderr, "No space left on device")
                    self.assert_empty()

    def test_record_can_be_read(self):
        path, ident = self.make("a.tar", [[small_file("a")]], image_name="one",
                                settings={"Env": ["A=1", "NONE", "=x", "B=x=y"], "Entrypoint": [""],
                                          "Cmd": ["sh", "-c", "echo \u00e4"], "User": "me",
                                          "WorkingDir": "/w", "StopSignal": "SIGINT"})
        self.driver("import", path)
        with sqlite3.connect(self.root + "/root.db") as db:
            self.assertEqual(db.execute("SELECT id, user, working_dir, stop_signal FROM image").fetchall(),
                             [(ident, "me", "/w", "SIGINT")])
            words = db.execute("SELECT list, word FROM image_word WHERE list <> 'blob' ORDER BY list, position").fetchall()
        self.assertEqual(words, [("cmd", "sh"), ("cmd", "-c"), ("cmd", "echo \u00e4"), ("env", "A=1"), ("env", "B=x=y")])

    def test_other_tools(self):
        """Layouts and archives as skopeo and umoci write them."""
        if not shutil.which("skopeo"):
            self.skipTest("skopeo is not installed")
        path, _ = self.busybox("o", "--name", "made/here:1", "--layers", "2", "--cmd", "sh")
        for target in ("oci:%s:latest" % self.path("s1"), "oci-archive:%s:quay.io/s/2:x" % self.path("s2.tar"),
                       "docker-archive:%s:quay.io/s/3:x" % self.path("s3.tar")):
            subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", "oci:" + path, target], check=True)
            self.driver("import", target.split(":")[1])
        names = " ".join(" ".join(line) for line in self.images())
        self.assertIn("quay.io/s/2:x", names)
        self.assertIn("quay.io/s/3:x", names)
        if shutil.which("umoci"):
            layout = self.path("u")
            subprocess.run(["umoci", "init", "--layout", layout], check=True)
            subprocess.run(["umoci", "new", "--image", layout + ":x"], check=True)
            self.driver("import", layout)


if __name__ == "__main__":
    unittest.main()
