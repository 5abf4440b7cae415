# SPDX-License-Identifier: Apache-2.0
"""The program as a file and as a process: alone, hardened, and attributable."""
import errno
import glob
import json
import os
import re
import shlex
import subprocess
import unittest

import elf
import host
import nacre_test
from nacre_test import runtime_pb2

LIBEXEC = os.path.join(nacre_test.BUILD, "libexec", "nacre")
# The helpers, and what they may be linked with; whatever else appears was not thought about.
LIBC = {"libc", "ld-linux-x86-64", "ld-linux-aarch64"}
HELPERS = {"nacre-cloud": {"libcrypto", "libssl", "libcurl", "libexpat", "libnettle", "libseccomp", *LIBC},
           "nacre-cni": LIBC,
           "nacre-fetch": {"libisal", *LIBC},
           "nacre-remote": LIBC,
           "nacre-transfer": {"libjansson", "libnettle", "libseccomp", "libcrypto", "libssl", "libcurl", "libzstd", "libisal", *LIBC}}
# What is executed where there is nothing but itself: a guest, a container.
STATIC = {"nacre-gate", "nacre-init", "nacre-svid"}
# What gcc 12 knows of the reference's section 4.5; the rest of it is newer, or clang's alone.
FLAGS = """
    -O2 -Wall -Wextra -Werror -Wformat=2 -Wconversion -Wimplicit-fallthrough -Wtrampolines -Wbidi-chars=any -Wshadow -Wlogical-op
    -Wduplicated-cond -Wduplicated-branches -Wnull-dereference -Wrestrict -Warray-bounds=2 -Wstringop-overflow=4 -Wvla -Walloca
    -Wcast-align=strict -Wcast-qual -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wundef -Wswitch-enum -Wdate-time
    -Werror=format-security -Werror=implicit -Werror=incompatible-pointer-types -Werror=int-conversion -Werror=return-type
    -Werror=shift-overflow=2 -Werror=overflow -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-clash-protection -fstack-protector-strong
    -fno-delete-null-pointer-checks -fno-strict-overflow -fno-strict-aliasing -ftrivial-auto-var-init=zero -fvisibility=hidden
    -fno-common
""".split()
# Of libc: name service and its resolver read configuration and load libraries from whatever root they find.
NAME_SERVICE = re.compile(r"^_*(nss_|getaddrinfo$|getpw|getgr(nam|gid|ent)|gethostby|getservby|initgroups|res_.?query|"
                          r"libc_getspecific_nss|nsswitch)", re.I)


def readelf(*words):
    return subprocess.run(["readelf", "-W", *words], check=True, capture_output=True, text=True).stdout


def symbols(path):
    """{name: (type, size)}"""
    text = subprocess.run(["nm", "-S", path], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 4:
            found[words[3]] = (words[2], int(words[1], 16))
        elif len(words) >= 2:
            found[words[-1]] = (words[-2], 0)
    return found


class HardenedTest(unittest.TestCase):
    def assertEveryObjectHas(self, folder, *words):
        """Of our own objects: what a linked program says is the least of all, and Debian's libc says nothing."""
        objects = glob.glob(os.path.join(nacre_test.BUILD, folder, "**", "lib*.a.p", "*.o"), recursive=True)
        self.assertGreater(len(objects), 5)
        notes = subprocess.run(["readelf", "-W", "-n", *objects], check=True, capture_output=True, text=True).stdout
        seen = re.findall(r"x86 feature: (.*)", notes)
        self.assertEqual([words] * len(objects), [tuple(s.split(", ")) for s in seen])

    def assertHardened(self, path):
        parts, dynamic = elf.segments(path), readelf("-d", path)
        self.assertIn("DYN", readelf("-h", path))
        self.assertRegex(dynamic, r"FLAGS_1.*\bNOW\b.*\bPIE\b")
        for word in ("RPATH", "RUNPATH", "TEXTREL"):
            self.assertNotIn(word, dynamic)
        self.assertIn(elf.PT_GNU_RELRO, [kind for kind, _, _ in parts])
        self.assertEqual([0], [flags & elf.PF_X for kind, flags, _ in parts if kind == elf.PT_GNU_STACK])
        self.assertEqual([], [f for _, f, _ in parts if f & elf.PF_W and f & elf.PF_X])
        self.assertEqual(0, os.stat(path).st_mode & 0o6022)
        self.assertIn("NT_GNU_BUILD_ID", readelf("-n", path))
        # A page is code, or constants, or data: code stands apart from all that a file has beside it.
        self.assertEqual({elf.PF_R | elf.PF_X}, {flags for kind, flags, _ in parts if kind == elf.PT_LOAD and flags & elf.PF_X})


@unittest.skipIf(nacre_test.SANITIZED, "a sanitized build is dynamic")
class File(HardenedTest):
    @classmethod
    def setUpClass(cls):
        cls.symbols = symbols(nacre_test.BINARY)

    def test_needs_nothing(self):
        self.assertNotIn(elf.PT_INTERP, [kind for kind, _, _ in elf.segments(nacre_test.BINARY)])
        self.assertNotIn("(NEEDED)", readelf("-d", nacre_test.BINARY))

    def test_hardened(self):
        self.assertHardened(nacre_test.BINARY)
        self.assertIn("__stack_chk_fail", self.symbols)
        self.assertGreater(len([s for s in self.symbols if re.fullmatch(r"__\w+_chk", s)]), 3)

    @unittest.skipUnless(os.uname().machine == "x86_64", "notes of x86")
    def test_marked_branches_and_shadow_stacks(self):
        self.assertEveryObjectHas("src", "IBT", "SHSTK")

    def test_no_name_service(self):
        # Those of alone.c say no in a few instructions.
        linked = {s: size for s, (kind, size) in self.symbols.items() if NAME_SERVICE.match(s) and kind in "tTwWi"}
        self.assertEqual({}, {s: size for s, size in linked.items() if size > 64})
        for word in (b"nsswitch.conf", b"libnss_", b"openssl.cnf"):
            self.assertFalse(elf.holds(nacre_test.BINARY, word), word)

    def test_our_dlopen_is_the_one(self):
        for name in ("dlopen", "dlsym", "dlclose", "iconv_open", "getaddrinfo"):
            self.assertLess(self.symbols.get(name, ("T", 0))[1], 64, name)

    def test_no_path_of_the_builder(self):
        self.assertFalse(elf.holds(nacre_test.BINARY, nacre_test.ROOT.encode() + b"/"))

    def test_no_test_hooks(self):
        listed = subprocess.run([nacre_test.BINARY, "daemon", "--list-failpoints"], check=True, capture_output=True, text=True)
        self.assertGreater(len(listed.stdout.splitlines()), 10)
        self.assertNotIn("failpoint_hit", self.symbols)
        for name in (b"NACRE_FAILPOINT", b"NACRE_SYSIO", b"NACRE_FETCH_SYSIO"):
            self.assertFalse(elf.holds(nacre_test.BINARY, name), name)


@unittest.skipIf(nacre_test.SANITIZED, "built with sanitizers")
class Helper(HardenedTest):
    def test_each_is_known(self):
        self.assertEqual({*HELPERS, *STATIC}, {n for n in os.listdir(LIBEXEC) if os.path.isfile(os.path.join(LIBEXEC, n))
                                        and os.access(os.path.join(LIBEXEC, n), os.X_OK)})

    def test_hardened(self):
        for name in HELPERS:
            path = os.path.join(LIBEXEC, name)
            self.assertHardened(path)
            wanted = readelf("--dyn-syms", path)
            self.assertIn("__stack_chk_fail", wanted)
            self.assertGreater(len(set(re.findall(r"\b(__\w+_chk)\b", wanted)) - {"__stack_chk_fail"}), 0)

    def test_the_gate_is_as_static_as_the_core(self):
        """It is the gate in a guest too, where there is no library, and next to strangers."""
        path = os.path.join(LIBEXEC, "nacre-gate")
        self.assertHardened(path)
        self.assertFalse(elf.is_dynamic(path))
        linked = symbols(path)
        for name in ("dlopen", "dlsym", "getaddrinfo"):
            self.assertLess(linked.get(name, ("T", 0))[1], 64, name)
        self.assertEqual({}, {s: size for s, (kind, size) in linked.items()
                              # Of libssl, which writes a file of NSS, the library, where it is told to.
                              if NAME_SERVICE.match(s) and kind in "tTwWi" and size > 64 and s != "nss_keylog_int"})

    def test_needs(self):
        for name, needs in HELPERS.items():
            needed = set(re.findall(r"\(NEEDED\).*\[(.*?)(?:\.so.*)?\]", readelf("-d", os.path.join(LIBEXEC, name))))
            self.assertEqual(set(), needed - needs)


@unittest.skipIf(nacre_test.SANITIZED, "built with sanitizers")
class Compilation(unittest.TestCase):
    def test_each_file_has_each_flag(self):
        with open(os.path.join(nacre_test.BUILD, "compile_commands.json"), encoding="utf-8") as f:
            commands = [c for c in json.load(f) if re.match(r"(\.\./)?(src|libexec)/(?!.*(_gen|_test)\.c$)", c["file"])
                        and "_gen.p/" not in c["output"]]
        if not all("-Wtrampolines" in c["command"] for c in commands):
            self.skipTest("another compiler than gcc")
        self.assertGreater(len(commands), 100)
        for c in commands:
            words = set(shlex.split(c["command"]))
            self.assertEqual(set(), set(FLAGS) - words, c["file"])
            self.assertTrue(words & {"-fPIE", "-fPIC"}, c["file"])
            self.assertTrue(os.uname().machine != "x86_64" or "-fcf-protection=full" in words, c["file"])


class Process(nacre_test.NodeTest):
    IMAGES = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, parent in (("a", ""), ("b", "a")):
            cls.node.runtime.Spawn(runtime_pb2.SpawnRequest(meta=runtime_pb2.Meta(name=name), parent=parent))
        cls.keepers = {host.read(f"/proc/{p}/cmdline").rstrip("\0"): p for p in cls.node.keepers()}

    def test_titles(self):
        titles = sorted(self.keepers)
        self.assertEqual(3, len(titles), titles)
        self.assertTrue(all(t.startswith("nacre: keeper ") for t in titles), titles)
        self.assertEqual(["nacre: keeper a", "nacre: keeper a/b"], [t for t in titles if t.split()[-1][0] == "a"])

    def instance_keepers(self):
        return [self.keepers["nacre: keeper a"], self.keepers["nacre: keeper a/b"]]

    def test_program_cannot_be_written(self):
        for pid in self.instance_keepers():
            self.assertTrue(os.statvfs(f"/proc/{pid}/exe").f_flag & os.ST_RDONLY, "its program is on a writable mount")
            for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC):
                with self.assertRaises(OSError) as caught:
                    os.open(f"/proc/{pid}/exe", flags)
                self.assertIn(caught.exception.errno, (errno.EROFS, errno.ETXTBSY))

    def test_namespaces(self):
        spaces = ("pid", "mnt", "net", "ipc", "uts")
        seen = [[os.readlink(f"/proc/{p}/ns/{n}") for n in spaces] for p in ["self", *self.instance_keepers()]]
        for one in range(3):
            for two in range(one):
                self.assertEqual([], [s for s in spaces if seen[one][spaces.index(s)] == seen[two][spaces.index(s)]])

    @unittest.skipIf(nacre_test.SANITIZED, "a dynamic program needs its libraries")
    def test_root_holds_nothing_of_the_host(self):
        for pid in self.instance_keepers():
            self.assertEqual(set(), {"etc", "home", "root", "usr", "var", "work", "bin"} & set(os.listdir(f"/proc/{pid}/root")))
            points = {m.split()[0] for m in host.mounts(pid)}
            self.assertLess(len(points), 12, points)
            self.assertFalse([m for m in host.read(f"/proc/{pid}/mountinfo").splitlines() if " shared:" in m or " master:" in m])

    def test_descriptors_are_few_and_none_of_the_daemons(self):
        for pid in self.keepers.values():
            targets = [os.readlink(f"/proc/{pid}/fd/{f}") for f in os.listdir(f"/proc/{pid}/fd")]
            self.assertLess(len(targets), 40, targets)
            # A keeper writes how it ended into a file of its own; of the rest it knows nothing.
            ours = [t for t in targets if t.startswith((self.node.root, self.node.run))]
            self.assertEqual(set(), {os.path.basename(t) for t in ours} - {"end"})

    def test_no_environment(self):
        for pid in self.keepers.values():
            names = {v.split("=")[0] for v in host.read(f"/proc/{pid}/environ").split("\0") if "=" in v}
            self.assertEqual(set(), names - {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "NACRE_SYSIO", "NACRE_FAILPOINT"})

    def test_out_of_memory_comes_late(self):
        # Below zero needs CAP_SYS_RESOURCE, which a container on a builder may lack.
        for pid in self.keepers.values():
            self.assertLessEqual(int(host.read(f"/proc/{pid}/oom_score_adj")), 0)
