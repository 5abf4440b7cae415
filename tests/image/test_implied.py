# SPDX-License-Identifier: Apache-2.0
"""Directories that a layer only implies (`tmp/x` without `tmp/`) look as they do below it, as podman has it of the same image;
and whiteouts, which imply them too."""
import io
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver import DRIVER, FETCH, StoreTest, mkimage  # noqa: E402


def directory(name, mode, uid=0, gid=0, mtime=1000000000, **pax):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.uid, info.gid, info.mtime = tarfile.DIRTYPE, mode, uid, gid, mtime
    info.pax_headers = {"SCHILY.xattr." + key.replace("_", "."): value for key, value in pax.items()}
    return info


def file(name):
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = 0o644, 1000000001
    return info


def layer(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info in entries:
            tar.addfile(info, io.BytesIO(b"") if info.isreg() else None)
    return mkimage.Layer(out.getvalue())


BASE = (directory("./", 0o751, 3, 4), directory("tmp/", 0o1777), directory("opt/", 0o710, 5, 6, user_kind="x"),
        directory("opt/deep/", 0o2750, 7, 8), directory("var/", 0o700, 9, 9), directory("var/spool/", 0o711))
ABOVE = (file("tmp/x"), file("opt/deep/er/y"), file("fresh/z"))


class Implied(StoreTest):

    def put(self, name, *layers):
        path, _ = self.make(name.replace("/", "-").replace(":", "-") + ".tar", list(layers), image_name=name)
        self.driver("import", path)
        return path

    def look(self, top):
        """Every directory: mode, owner and attributes."""
        found = {}
        for folder, _, _ in os.walk(top):
            st = os.lstat(folder)
            names = [n for n in os.listxattr(folder) if n.startswith("user.") and not n.startswith("user.overlay.")]
            found[os.path.relpath(folder, top)] = (oct(stat.S_IMODE(st.st_mode)), st.st_uid, st.st_gid,
                                                   {n: os.getxattr(folder, n) for n in names})
        return found

    def mounted(self, name, look=None):
        """The root file system of a container, as `look` (or self.look) sees it."""
        self.n += 1
        with subprocess.Popen([DRIVER, self.root, FETCH, "rootfs", name, f"c{self.n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process:
            self.assertEqual("mounted\n", process.stdout.readline())
            try:
                return (look or self.look)(self.root + "/mnt")
            finally:
                subprocess.run(["umount", self.root + "/mnt"], check=True)
                process.communicate("")

    def assert_clean(self):
        """Neither list nor mark stays anywhere."""
        for folder, _, names in os.walk(self.root + "/layers"):
            self.assertEqual([], [n for n in names if n.startswith(".wh.")], folder)
            self.assertEqual([], [n for n in os.listxattr(folder) if "nacre" in n], folder)

    def setUp(self):
        super().setUp()
        os.mkdir(self.root + "/mnt")
        self.n = 0

    def test_as_below(self):
        self.put("one", layer(*BASE), layer(*ABOVE))
        found = self.mounted("one")
        self.assertEqual(("0o1777", 0, 0, {}), found["tmp"])
        self.assertEqual(("0o710", 5, 6, {"user.kind": b"x"}), found["opt"])
        self.assertEqual(("0o2750", 7, 8, {}), found["opt/deep"])
        self.assertEqual(("0o751", 3, 4, {}), found["."])
        # On nothing, they are made as they always were.
        self.assertEqual(("0o755", 0, 0, {}), found["fresh"])
        self.assertEqual(("0o2755", 0, 8, {}), found["opt/deep/er"])
        self.assert_clean()

    def test_what_the_layer_says_counts(self):
        """Behind its content or before it; and the layer above takes what counts then."""
        self.put("one", layer(*BASE), layer(file("tmp/x"), directory("tmp/", 0o700, 1, 1), directory("opt/", 0o755), file("opt/y")),
                 layer(file("tmp/z"), directory("./", 0o700), file("var/spool/q")))
        found = self.mounted("one")
        self.assertEqual(("0o700", 1, 1, {}), found["tmp"])
        self.assertEqual(("0o755", 0, 0, {}), found["opt"])
        self.assertEqual(("0o700", 0, 0, {}), found["."])
        self.assertEqual(("0o711", 0, 0, {}), found["var/spool"])
        self.assertEqual(("0o700", 9, 9, {}), found["var"])
        self.assert_clean()

    def test_the_same_layer_on_others(self):
        """One diff id on two bases is two layers, each as what it lies on; by itself it is as it was made."""
        above = layer(*ABOVE)
        self.put("one", layer(*BASE), above)
        self.put("two", layer(directory("tmp/", 0o1700, 2, 2)), above)
        self.put("alone", above)
        self.assertEqual("0o1777", self.mounted("one")["tmp"][0])
        self.assertEqual(("0o1700", 2, 2, {}), self.mounted("two")["tmp"])
        self.assertEqual("0o755", self.mounted("alone")["tmp"][0])
        self.assert_clean()

    def test_what_is_hidden_below(self):
        """A directory that a whiteout took away is no pattern for what comes later; what an opaque one hides is none either."""
        self.put("gone", layer(*BASE), layer(file(".wh.tmp"), file("opt/.wh..wh..opq")), layer(file("tmp/x"), file("opt/deep/y")))
        found = self.mounted("gone")
        self.assertEqual("0o755", found["tmp"][0])
        self.assertEqual("0o755", found["opt/deep"][0])
        self.assertEqual(("0o710", 5, 6, {"user.kind": b"x"}), found["opt"])
        self.assert_clean()

    def test_a_link_leads_nowhere_else(self):
        """A link below, or in the layer: nothing outside of the layers is touched."""
        outside = self.path("outside")
        os.mkdir(outside, 0o700)
        link = tarfile.TarInfo("l")
        link.type, link.linkname = tarfile.SYMTYPE, outside
        self.put("one", layer(link), layer(file("l/x")))
        inside = tarfile.TarInfo("m")
        inside.type, inside.linkname = tarfile.SYMTYPE, "/d"
        self.put("two", layer(directory("m", 0o700, 9, 9), directory("m/n", 0o711, 9, 9)),
                 layer(directory("d", 0o755), inside, file("m/n/x")))
        self.mounted("one")
        found = self.mounted("two")
        self.assertEqual(("0o755", 0), found["d"][:2])
        st = os.stat(outside)
        self.assertEqual((0o700, 0, []), (stat.S_IMODE(st.st_mode), st.st_uid, os.listdir(outside)))

    def test_a_link_below_is_hidden_by_what_is_implied(self):
        """As containerd and Docker have it on an overlay: `lib/x` makes lib a directory, which looks as what the link led to."""
        links = []
        for name, target in (("lib", "usr/lib"), ("far", "../../../usr/lib"), ("nowhere", "usr/none"), ("loop", "loop"), ("etc", "usr/file")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            links.append(link)
        self.put("one", layer(directory("usr/lib/", 0o2751, 5, 6, user_kind="x"), file("usr/lib/old"), file("usr/file"), *links),
                 layer(*(file(name + "/x") for name in ("lib", "far", "nowhere", "loop", "etc"))))
        found = self.mounted("one")
        for name in ("lib", "far", "usr/lib"):
            self.assertEqual(("0o2751", 5, 6, {"user.kind": b"x"}), found[name], name)
        for name in ("nowhere", "loop", "etc"):
            self.assertEqual(("0o755", 0, 0, {}), found[name], name)
        # Nothing went where the links lead to.
        self.assertEqual(["x"], os.listdir(self.root + "/layers/2/lib"))
        self.assertEqual(["old"], os.listdir(self.root + "/layers/1/usr/lib"))
        self.assert_clean()

    def names_and_remove(self, top):
        """Every name of a tree, each of which can be looked up and removed."""
        found = set()
        for folder, dirs, files in os.walk(top, topdown=False):
            for name in dirs + files:
                path = os.path.join(folder, name)
                is_dir = stat.S_ISDIR(os.lstat(path).st_mode)
                found.add(os.path.relpath(path, top) + "/" * is_dir)
                (os.rmdir if is_dir else os.unlink)(path)
        return found

    def test_whiteouts_in_every_order(self):
        """What the layer itself has counts, what a whiteout removes below is gone, and no name is left that cannot be looked up."""
        base = (directory("d/", 0o710), file("d/f"), file("d/g"), directory("d/e/", 0o711), file("d/e/h"), file("top"))
        all_names = {"d/", "d/f", "d/g", "d/e/", "d/e/h", "top"}
        gone = {"top"}
        hard = tarfile.TarInfo("d/hard")
        hard.type, hard.linkname = tarfile.LNKTYPE, "d/f"
        link = tarfile.TarInfo("l")
        link.type, link.linkname = tarfile.SYMTYPE, "d"
        device = tarfile.TarInfo("d/none")
        device.type = tarfile.CHRTYPE
        cases = (
            ((file(".wh.d"), file("d/.wh.f")), gone),
            ((file(".wh.d"), file("d/e/.wh.h"), file("d/.wh.e")), gone),
            ((file(".wh.d"), file("d/.wh..wh..opq")), gone),
            ((file(".wh.d"), file("d/.wh.f"), file("d/f")), {"top", "d/", "d/f"}),
            ((file(".wh.d"), file("d/x"), file("d/.wh.g")), {"top", "d/", "d/x"}),
            ((file(".wh.d"), directory("d/", 0o700)), {"top", "d/"}),
            ((file(".wh.d"), directory("d/", 0o700), file("d/.wh.f"), file("d/e/.wh.h")), {"top", "d/", "d/e/"}),
            ((file(".wh.d"), file("d")), {"top", "d"}),
            ((file(".wh.d"), file("d"), file("d/.wh.f")), {"top", "d"}),
            ((file("d/.wh..wh..opq"), file("d/.wh.f"), file("d/y")), {"top", "d/", "d/y"}),
            ((file(".wh..wh..opq"), file("only")), {"only"}),
            ((file("only"), directory("d/", 0o700), file(".wh..wh..opq"), file(".wh.top")), {"only", "d/"}),
            ((file("d/.wh.f"), file("d/f")), all_names),
            ((file("d/.wh.f"), file("d/f"), hard), all_names | {"d/hard"}),
            ((file("d/.wh.e"), file("d/e/.wh.h"), file("d/e/new")), (all_names - {"d/e/h"}) | {"d/e/new"}),
            ((file("d/.wh.none"), file(".wh.nothing"), file("d/e/.wh.z")), all_names),
            ((file("n/.wh.x"), file("n/m/.wh.y"), file("n/real")), all_names | {"n/", "n/m/", "n/real"}),
            ((directory("n/", 0o755), file("n/.wh.x")), all_names | {"n/"}),
            ((file("n/.wh.m"), file("n/m/.wh.y")), all_names | {"n/"}),
            ((link, file("l/.wh.f"), directory("d/", 0o700)), (all_names - {"d/f"}) | {"l"}),
            ((file("top/.wh.x"),), (all_names - {"top"}) | {"top/"}),
            ((file("d/f/.wh.x"), file("d/.wh.f")), all_names - {"d/f"}),
            ((device, file("d/e/.wh.h")), all_names - {"d/e/h"}))
        for n, (entries, expected) in enumerate(cases):
            # A hard link stays behind its target, as a link does behind what it leads through.
            orders = (entries,) if hard in entries or link in entries else (entries, entries[::-1], entries[1:] + entries[:1])
            for k, order in enumerate(dict.fromkeys(orders)):
                with self.subTest(case=n, order=k):
                    self.put(f"c{n}.{k}", layer(*base), layer(*order))
                    self.assertEqual(expected, self.mounted(f"c{n}.{k}", self.names_and_remove))
        self.assert_clean()

    def test_whiteouts_in_layers_that_lie_on_nothing(self):
        entries = (file("a/b/.wh.x"), file("a/y"), file(".wh.z"))
        self.put("alone", layer(*entries))
        self.assertEqual({"a/", "a/b/", "a/y"}, self.mounted("alone", self.names_and_remove))
        self.put("three", layer(file("q")), layer(*entries), layer(file("a/.wh.y"), file(".wh.q"), file("a/b/c/.wh.d")))
        self.assertEqual({"a/", "a/b/", "a/b/c/"}, self.mounted("three", self.names_and_remove))
        self.assert_clean()

    def test_what_a_whiteout_removes_is_no_pattern(self):
        """Nor what an opaque directory of the same layer hides."""
        for n, order in enumerate(((file(".wh.tmp"), file("tmp/x"), file("tmp/in/y")), (file("tmp/in/y"), file("tmp/x"), file(".wh.tmp")))):
            self.put(f"one{n}", layer(*BASE, directory("tmp/in/", 0o711, 4, 4)), layer(*order))
            found = self.mounted(f"one{n}")
            self.assertEqual(("0o755", 0, 0, {}), found["tmp"])
            self.assertEqual(("0o755", 0, 0, {}), found["tmp/in"])
        self.assert_clean()

    def test_as_podman(self):
        if not shutil.which("podman"):
            self.skipTest("podman is not here")
        for k, layers in enumerate(((BASE, ABOVE), (BASE, ABOVE, (file("opt/q"), file("var/spool/q"))),
                                    (BASE, (file("tmp/x"), directory("tmp/", 0o700, 1, 1))))):
            path = self.put(f"x/p{k}:1", *(layer(*entries) for entries in layers))
            podman = ["podman", "--root", self.path(f"graph{k}"), "--runroot", self.path("run"), "--storage-driver", "vfs",
                      "--events-backend", "none"]
            subprocess.run([*podman, "load", "-q", "-i", path], check=True, capture_output=True)
            top = subprocess.run([*podman, "image", "mount", f"x/p{k}:1"], check=True, capture_output=True, text=True).stdout.strip()
            theirs, ours = self.look(top), self.mounted(f"x/p{k}:1")
            subprocess.run([*podman, "image", "unmount", "-a"], check=False, capture_output=True)
            # podman's own store decides about the root.
            self.assertEqual({n: theirs[n] for n in theirs if n != "."}, {n: ours[n] for n in ours if n != "."})


if __name__ == "__main__":
    unittest.main()
