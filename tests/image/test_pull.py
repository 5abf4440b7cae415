# SPDX-License-Identifier: Apache-2.0
"""Pulling through src/image without the daemon, from a stand-in for the nacre-transfer (tests/lib/fake_transfer.py):
who loads what, what is gone on with, what stays behind."""
import fcntl
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver import DRIVER, FETCH, ROOT, StoreTest, mkimage, small_file  # noqa: E402
from test_import import has_faults  # noqa: E402

POINTS = ("pull.start", "pull.plan", "pull.partial", "pull.blob", "pull.clean", "import.layer", "import.sync", "import.blob",
          "import.record", "store.write")


class PullTest(StoreTest):

    def setUp(self):
        super().setUp()
        self.fetch = self.path("nacre-fetch")
        self.registry = self.path("fake-registry")
        os.makedirs(self.registry + "/blobs")
        shutil.copy(os.path.join(ROOT, "tests/lib/fake_transfer.py"), self.path("nacre-transfer"))
        os.symlink(FETCH, self.fetch)
        self.script()

    def script(self, **what):
        with open(self.registry + "/script.json", "w", encoding="utf-8") as file:
            json.dump(what, file)

    def serve(self, name, layers):
        """An image of Layer objects in the registry. Returns its id and the digests of its layers."""
        config = mkimage.dump(mkimage.make_config(layers, {}))
        manifest = mkimage.dump({"name": name, "layers": [l.descriptor() for l in layers]})
        for data in (config, manifest, *(l.blob for l in layers)):
            with open(f"{self.registry}/blobs/{hashlib.sha256(data).hexdigest()}", "wb") as file:
                file.write(data)
        image = {"manifest": mkimage.digest(manifest), "config": mkimage.digest(config),
                 "layers": [[mkimage.digest(l.blob), l.diff_id, len(l.blob), 1 if l.media_type.endswith("gzip") else 0]
                            for l in layers]}
        with open(f"{self.registry}/{name}.json", "w", encoding="utf-8") as file:
            json.dump(image, file)
        return image["config"], [l[0] for l in image["layers"]]

    def layers(self, n, size=300000, seed=1, compress="gzip"):
        rng = random.Random(seed)
        return [mkimage.Layer(mkimage.build_tar([small_file(f"file-{seed}-{k}", rng.randbytes(size))]), compress) for k in range(n)]

    def log(self):
        try:
            with open(self.registry + "/log", encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def fetched(self):
        return [line.split()[1] for line in self.log() if line.startswith("fetch ")]

    def partial(self):
        return os.listdir(self.root + "/partial")

    def assert_whole(self, ident, digests):
        """The image is there, all of its content, and nothing else but the parts of others."""
        lines = [line for line in self.images() if line[0] == ident]
        self.assertEqual(len(lines), 1, self.images())
        for digest in digests:
            with open(f"{self.root}/blobs/sha256/{digest[7:]}", "rb") as file:
                self.assertEqual("sha256:" + hashlib.sha256(file.read()).hexdigest(), digest)
        self.assertEqual([n for n in self.leftovers() if n.startswith("staging")], [])
        for digest in digests:
            self.assertNotIn(digest[7:], self.partial())

    def test_pull_twice_and_remove(self):
        ident, digests = self.serve("app", self.layers(3) + self.layers(1, seed=9, compress="none"))
        self.assertEqual(self.driver("pull", "localhost:5000/app:1").stdout.strip(), ident)
        self.assert_whole(ident, digests)
        self.assertEqual(sorted(self.fetched()), sorted(digests))
        self.assertEqual(self.images()[0][1], "localhost:5000/app:1")
        again = self.driver("pull", "localhost:5000/app:2", "localhost:5000/app@sha256:" + "0" * 64)
        self.assertEqual(again.stdout.split(), [ident, ident])
        self.assertEqual(len(self.fetched()), 4)
        self.assertEqual(self.images()[0][1:3], ["localhost:5000/app:1", "localhost:5000/app:2"])
        self.driver("rm", ident)
        self.assert_empty()
        self.assertEqual(self.partial(), [])

    def test_many_at_once_load_each_blob_once(self):
        self.script(rate=400000)
        ident, digests = self.serve("app", self.layers(3))
        other, more = self.serve("other", self.layers(3)[:2] + self.layers(1, seed=7))
        done = self.driver("pull", *["localhost:5000/app:%d" % n for n in range(12)], *["localhost:5000/other:1"] * 3)
        self.assertEqual(sorted(done.stdout.split()), sorted([ident] * 12 + [other] * 3))
        self.assertEqual(sorted(self.fetched()), sorted(set(digests + more)))
        self.assertEqual(sorted(self.leftovers()), sorted(set(self.leftovers())))
        self.assertEqual(len([n for n in self.leftovers() if n.startswith("layers/")]), 4)
        # Whoever did not bring a layer was told of it.
        self.assertGreater(len([l for l in done.stderr.splitlines() if l.startswith("# loading")]), len(self.fetched()) * 3)
        self.assert_whole(ident, digests)
        self.assert_whole(other, more)

    def test_the_same_blob_more_than_once(self):
        layer = self.layers(1)[0]
        ident, digests = self.serve("app", [layer, self.layers(1, seed=2)[0], layer, layer])
        self.assertEqual(self.driver("pull", "localhost:5000/app").stdout.strip(), ident)
        self.assertEqual(len(self.fetched()), 2)
        self.assert_whole(ident, digests)

    def test_wrong_bytes_are_loaded_again(self):
        ident, digests = self.serve("app", self.layers(2))
        self.script(wrong={digests[0]: 2})
        done = self.driver("pull", "localhost:5000/app")
        self.assertEqual(done.stdout.strip(), ident)
        self.assertEqual(self.fetched().count(digests[0]), 3)
        self.assert_whole(ident, digests)

    def test_bytes_that_stay_wrong_end_it(self):
        _, digests = self.serve("app", self.layers(2))
        self.script(wrong={digests[1]: 1000})
        self.refused("invalid", "it has another digest", "pull", "localhost:5000/app")
        self.assertEqual(self.fetched().count(digests[1]), 9)
        self.assertEqual(self.leftovers(), [])

    def test_a_layer_that_is_not_what_the_configuration_says(self):
        layers = self.layers(3)
        layers[1].diff_id = "sha256:" + "1" * 64
        self.serve("app", layers)
        self.refused("invalid", "image localhost:5000/app:latest: layer 2 of 3: ", "pull", "localhost:5000/app")
        self.assertEqual(self.images(), [])
        self.assertEqual([n for n in self.leftovers() if n.startswith(("staging", "layers"))], [])

    def test_a_forged_blob_of_a_layer_that_is_present(self):
        layers = self.layers(3)
        ident, _ = self.serve("app", layers)
        self.driver("pull", "localhost:5000/app")
        forged = self.layers(1, seed=2)[0]
        forged.diff_id = layers[1].diff_id
        self.serve("evil", [layers[0], forged, layers[2]])
        self.refused("invalid", "image localhost:5000/evil:latest: layer 2 of 3: ", "pull", "localhost:5000/evil")
        self.assertEqual([ident], [line[0] for line in self.images()])
        self.assertEqual(3, len([n for n in self.leftovers() if n.startswith("layers")]))

    def test_a_helper_that_dies_leaves_a_part(self):
        ident, digests = self.serve("app", self.layers(2, size=900000))
        self.script(die={digests[1]: [400000, 1]}, rate=1000000)
        self.refused("fault", "ended with status 9", "pull", "localhost:5000/app")
        self.assertEqual(self.leftovers(), [])
        kept = os.path.getsize(f"{self.root}/partial/{digests[1][7:]}")
        self.assertGreaterEqual(kept, 400000)
        self.assertEqual(self.driver("pull", "localhost:5000/app").stdout.strip(), ident)
        self.assertIn(f"fetch {digests[1]} {kept}", self.log())
        self.assert_whole(ident, digests)
        self.assertEqual(self.partial(), [])

    def test_another_takes_over_from_one_that_dies(self):
        ident, digests = self.serve("app", self.layers(2, size=900000))
        self.script(die={digests[1]: [400000, 1]}, rate=2000000)
        done = self.driver("pull", "localhost:5000/app:1", "localhost:5000/app:2", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.split(), [ident])
        starts = [int(line.split()[2]) for line in self.log() if line.startswith("fetch " + digests[1])]
        self.assertEqual(len(starts), 2, self.log())
        self.assertGreaterEqual(starts[1], 400000)
        self.assert_whole(ident, digests)

    def test_a_helper_that_has_outlived_its_daemon_writes_into_nothing(self):
        ident, digests = self.serve("app", self.layers(1))
        os.mkdir(self.root + "/partial", 0o700)
        with open(f"{self.root}/partial/{digests[0][7:]}", "wb", buffering=0) as file:
            file.write(b"x" * 1000)
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertEqual(self.driver("pull", "localhost:5000/app").stdout.strip(), ident)
            file.write(b"x" * 1000)
        self.assertEqual([line for line in self.log() if line.startswith("fetch")], [f"fetch {digests[0]} 0"])
        self.assert_whole(ident, digests)

    def test_cancelled_at_any_time(self):
        ident, digests = self.serve("app", self.layers(4, size=200000))
        self.script(rate=100000, chunk=16384, hold=0.1)
        for delay in (1, 60, 150, 250, 400, 700):
            with self.subTest(delay=delay):
                done = self.driver("pullcancel", "localhost:5000/app:1", str(delay), check=False)
                self.assertEqual(done.stdout, "")
                self.assertEqual([n for n in self.leftovers() if n.startswith(("staging", "layers"))], [], done.stderr)
        self.assertEqual(self.driver("pull", "localhost:5000/app").stdout.strip(), ident)
        self.assert_whole(ident, digests)
        self.assertEqual(self.partial(), [])

    def test_another_takes_over_from_one_that_is_cancelled(self):
        ident, digests = self.serve("app", self.layers(1, size=900000))
        self.script(rate=1500000)
        done = self.driver("pullcancel", "localhost:5000/app:1", "600", "localhost:5000/app:2")
        self.assertEqual(done.stdout.split(), [ident])
        starts = [int(line.split()[2]) for line in self.log() if line.startswith("fetch ")]
        self.assertEqual(len(starts), 2, self.log())
        self.assertGreater(starts[1], 0)
        self.assert_whole(ident, digests)

    def test_errors_of_the_helper_are_told_as_they_are(self):
        self.serve("app", self.layers(1))
        self.script(error=[5, 11, "RegistryUnavailable: localhost:5000: get the manifest: 503"])
        self.refused("unavailable", "^unavailable: RegistryUnavailable: localhost:5000", "pull", "localhost:5000/app")
        self.assert_empty()
        self.refused("invalid", "UPPER", "pull", "UPPER")

    def test_a_verdict_that_cannot_be(self):
        self.serve("app", self.layers(1))
        zeros = "sha256:" + "0" * 64
        signer = ["/a.pub", zeros, "localhost:5000/app"]
        for script in ({"verdicts": []}, {"verdicts": [[zeros, 0, "", "", 0]]}, {"verdicts": [["", 3, "", "no", 0]]},
                       {"verdicts": [["", 0, "", "", 0]] * 2}, {"verdicts": [["", 2, "", "", 1]]},
                       {"signers": [signer] * 17, "verdicts": [["", 2, "", "", 16]]}):
            self.script(**script)
            done = self.driver("pull", "localhost:5000/app:1", check=False)
            self.assertIn("Protocol error", done.stderr, script)
            self.assertEqual(self.images(), [])
        self.assertEqual(self.fetched(), [])
        self.script(signers=[signer] * 16, verdicts=[["", 2, "", "", 16]])
        self.driver("pull", "localhost:5000/app:1")

    def test_no_room(self):
        self.serve("app", self.layers(1, size=4 << 20))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", self.root], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.root], check=True)
        self.refused("exhausted", r"there is no room for localhost:5000/app:latest: it takes about 16\.\d MB \(4\.2 MB to load",
                     "pull", "localhost:5000/app")
        self.assertEqual(self.fetched(), [])
        self.assert_empty()

    def test_downloads_that_nobody_wants_make_room(self):
        ident, digests = self.serve("app", self.layers(1, size=4 << 20))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", self.root], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.root], check=True)
        os.mkdir(self.root + "/partial")
        with open(f"{self.root}/partial/{'a' * 64}", "wb") as file:
            file.write(bytes(12 << 20))
        # What is gone on with takes none, and stays.
        with open(f"{self.registry}/blobs/{digests[0][7:]}", "rb") as file, open(f"{self.root}/partial/{digests[0][7:]}", "wb") as to:
            to.write(file.read()[:1 << 20])
        self.driver("pull", "localhost:5000/app")
        self.assertEqual([f"fetch {digests[0]} {1 << 20}"], [line for line in self.log() if line.startswith("fetch")])
        self.assert_whole(ident, digests)
        self.assertEqual([], self.partial())

    def test_the_disk_fills(self):
        zeros = mkimage.Layer(mkimage.build_tar([small_file("zeros", bytes(40 << 20))]))
        self.serve("app", [zeros])
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", self.root], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.root], check=True)
        done = self.driver("pull", "localhost:5000/app", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "No space left")
        self.assert_empty()

    def test_killed_at_every_step(self):
        if not has_faults():
            raise unittest.SkipTest("a build without failpoints")
        ident, digests = self.serve("app", self.layers(2))
        for point in POINTS:
            for side in ("", "+"):
                with self.subTest(point=point + side):
                    done = self.driver("pull", "localhost:5000/app", env={"NACRE_FAILPOINT": f"{point}{side}@1=crash"}, check=False)
                    self.assertEqual(done.returncode, -9, done.stderr)
                    time.sleep(0.1)
                    self.assertEqual(self.driver("pull", "localhost:5000/app").stdout.strip(), ident)
                    self.assert_whole(ident, digests)
                    self.assertEqual(self.partial(), [])
                    self.driver("rm", ident)
                    self.assert_empty()

    def test_failing_at_every_step(self):
        if not has_faults():
            raise unittest.SkipTest("a build without failpoints")
        ident, digests = self.serve("app", self.layers(2))
        for point in POINTS:
            if point == "pull.clean":
                continue
            with self.subTest(point=point):
                done = self.driver("pull", "localhost:5000/app", env={"NACRE_FAILPOINT": f"{point}@1=error:5"}, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual([n for n in self.leftovers() if n.startswith(("staging", "layers", "blobs"))], [])
        self.assertEqual(self.driver("pull", "localhost:5000/app").stdout.strip(), ident)
        self.assert_whole(ident, digests)
        self.assertEqual(self.partial(), [])


if __name__ == "__main__":
    unittest.main()
