# SPDX-License-Identifier: Apache-2.0
"""tests/run itself: programs and modules that fail at the first run, or always, and what is said of them."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import cover
import jobs
import retry

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# tests/run with less patience for what a job leaves behind.
RUN = f"""
import runpy, sys
sys.path.insert(0, {os.path.join(TESTS, 'lib')!r})
import jobs
jobs.PATIENCE = 0.2
runpy.run_path({os.path.join(TESTS, 'run')!r}, run_name="__main__")
"""
MESON = '#!/bin/sh\nexec cat "$3/tests.json"\n'
# Of each program and module: what has run is written down, and "first" is true in the first run alone.
PROGRAM = """#!/bin/sh
echo "$0" >>{log}
first=no
mkdir "$0.ran" 2>/dev/null && first=yes
"""
MODULE = """
import os, subprocess, unittest
LOG = {log!r}
def first(what):
    with open(LOG, "a", encoding="utf-8") as f:
        f.write(what + "\\n")
    with open(LOG, encoding="utf-8") as f:
        return f.read().split("\\n").count(what) == 1
"""


class Runner(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="nacre-runner-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.log = os.path.join(self.dir, "log")
        for name in ("bin", "build", "modules"):
            os.mkdir(os.path.join(self.dir, name))
        self.script("bin/meson", MESON)
        self.units = []

    def write(self, name, text):
        with open(os.path.join(self.dir, name), "w", encoding="utf-8") as f:
            f.write(text)

    def script(self, name, text):
        self.write(name, text)
        os.chmod(os.path.join(self.dir, name), 0o755)

    def unit(self, name, text):
        """A unit program: a shell script."""
        self.script("build/" + name, PROGRAM.format(log=self.log) + text)
        self.units.append({"name": name, "cmd": [os.path.join(self.dir, "build", name)], "env": {}, "timeout": 1,
                           "suite": ["nacre:unit"]})

    def module(self, name, text):
        self.write(f"modules/test_{name}.py", MODULE.format(log=self.log) + text)

    def run_tests(self, *words):
        """The exit status; the lines are in self.lines."""
        self.write("build/tests.json", json.dumps(self.units))
        build = os.path.join(self.dir, "build")
        done = subprocess.run([sys.executable, "-c", RUN, "--no-host-check", "--modules", os.path.join(self.dir, "modules"), "--timeout", "2",
                               *words, build], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=100,
                              env={**os.environ, "PATH": os.path.join(self.dir, "bin") + ":" + os.environ["PATH"]})
        self.lines = [line.replace(" in " + build, "") for line in done.stdout.splitlines()]
        return done.returncode

    def ran(self):
        """What has run, in its order."""
        with open(self.log, encoding="utf-8") as f:
            return [line.rpartition("/")[2] for line in f.read().split()]

    def fails(self):
        return [line.rpartition(": ")[2] for line in self.lines if line.startswith("FAIL ")]

    def is_flaky(self, count, *names):
        """The last two lines: the counts alone in one, then what is flaky."""
        self.assertEqual([count, "flaky: " + ", ".join(names)], self.lines[-2:], "\n".join(self.lines))
        self.assertEqual([], self.fails())

    # ---- programs ----

    def test_a_program_that_fails_once_passes(self):
        self.unit("flaky", 'echo 1..2; echo ok 1 - a\n[ $first = no ] || { echo why; echo not ok 2 - b; exit 1; }\necho ok 2 - b\n')
        self.unit("slow", "sleep 0.3; echo 1..1; echo ok 1 - c; echo end >>" + self.log)
        self.assertEqual(0, self.run_tests("-j", "2"))
        self.is_flaky("3 passed, 0 failed, 0 skipped", "flaky: b")
        # Alone, when all others have ended.
        self.assertEqual(["end", "flaky"], self.ran()[-2:])
        self.assertIn("    why", self.lines)

    def test_a_program_that_always_fails_has_failed(self):
        self.unit("bad", "echo 1..3; echo ok 1 - a; echo ok 2 - b '# SKIP no'; echo not ok 3 - c; exit 1")
        self.assertEqual(1, self.run_tests())
        self.assertEqual("1 passed, 1 failed, 1 skipped", self.lines[-1])
        self.assertEqual(["c"], self.fails())
        self.assertEqual(["bad"] * 2, self.ran())

    def test_different_tests_of_a_program_each_time(self):
        self.unit("either", 'echo 1..2\nif [ $first = yes ]; then echo ok 1 - a; echo not ok 2 - b; else echo not ok 1 - a; echo ok 2 - b; fi\nexit 1')
        self.assertEqual(0, self.run_tests())
        self.is_flaky("2 passed, 0 failed, 0 skipped", "either: a", "either: b")

    def test_what_is_skipped_the_second_time_has_failed(self):
        self.unit("skips", 'echo 1..1; [ $first = no ] || { echo not ok 1 - a; exit 1; }\necho ok 1 - a "# SKIP today"')
        self.assertEqual(1, self.run_tests())
        self.assertEqual("0 passed, 1 failed, 0 skipped", self.lines[-1])

    def test_programs_that_do_not_end_well(self):
        self.unit("dies", "echo 1..2; echo ok 1 - a; [ $first = no ] || kill -9 $$\necho ok 2 - b")
        self.unit("hangs", "echo 1..1; [ $first = no ] || exec sleep 100\necho ok 1 - c")
        self.unit("leaves", "[ $first = no ] || setsid sleep 100 >/dev/null 2>&1 &\necho 1..1; echo ok 1 - d")
        self.unit("says-nothing", "[ $first = no ] || exit 3\necho 1..1; echo ok 1 - e")
        self.unit("status", "echo 1..1; echo ok 1 - f; [ $first = no ] || exit 99")
        self.assertEqual(0, self.run_tests("-j", "1"))
        self.is_flaky("6 passed, 0 failed, 0 skipped", "dies", "hangs", "leaves", "says-nothing", "status")

    def test_programs_that_never_end_well(self):
        self.unit("dies", "echo 1..2; echo ok 1 - a; kill -9 $$")
        self.unit("leaves", "setsid sleep 100 >/dev/null 2>&1 &\necho 1..1; echo ok 1 - d")
        self.assertEqual(1, self.run_tests())
        self.assertEqual("2 passed, 2 failed, 0 skipped", self.lines[-1])
        self.assertEqual(["ended with status -9 after 1 of 2 tests", "left processes behind"], self.fails())

    def test_without_a_second_run(self):
        self.unit("flaky", 'echo 1..1\n[ $first = no ] || { echo not ok 1 - b; exit 1; }\necho ok 1 - b\n')
        self.assertEqual(1, self.run_tests("--no-retry"))
        self.assertEqual(("0 passed, 1 failed, 0 skipped", ["b"]), (self.lines[-1], self.fails()))
        self.assertEqual(["flaky"], self.ran())
        # No time for one.
        shutil.rmtree(os.path.join(self.dir, "build", "flaky.ran"))
        self.assertEqual(1, self.run_tests("--retry-seconds", "-1"))
        self.assertEqual("0 passed, 1 failed, 0 skipped", self.lines[-1])

    def test_where_none_may_be_flaky(self):
        self.unit("flaky", 'echo 1..1\n[ $first = no ] || { echo not ok 1 - b; exit 1; }\necho ok 1 - b\n')
        self.assertEqual(1, self.run_tests("--no-flaky"))
        self.is_flaky("1 passed, 0 failed, 0 skipped", "flaky: b")

    # ---- modules ----

    def test_only_what_failed_of_a_module_runs_again(self):
        self.module("m", """
class C(unittest.TestCase):
    def test_a(self):
        first("a")
    def test_b(self):
        self.assertFalse(first("b"))
    def test_c(self):
        first("c")
        self.skipTest("not here")
""")
        self.assertEqual(0, self.run_tests())
        self.is_flaky("2 passed, 0 failed, 1 skipped", "test_m.C.test_b")
        self.assertEqual(["a", "b", "c", "b"], self.ran())

    def test_a_module_that_dies_goes_on_where_it_died(self):
        self.module("m", """
class C(unittest.TestCase):
    def test_a(self):
        first("a")
    def test_b(self):
        if first("b"):
            os._exit(1)
    def test_c(self):
        first("c")
""")
        self.assertEqual(0, self.run_tests())
        self.is_flaky("3 passed, 0 failed, 0 skipped", "test_m.py")
        self.assertEqual(["a", "b", "b", "c"], self.ran())

    def test_a_test_and_a_module_that_take_too_long(self):
        self.module("m", """
import time
class C(unittest.TestCase):
    def test_a(self):
        first("a")
    def test_b(self):
        if first("b"):
            time.sleep(30)
""")
        self.module("n", """
import signal
class C(unittest.TestCase):
    def test_a(self):
        if first("n"):
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
            signal.sigtimedwait([signal.SIGUSR1], 30)
""")
        self.assertEqual(0, self.run_tests("--timeout", "1", "--module-timeout", "2", "-j", "2"))
        self.assertEqual("3 passed, 0 failed, 0 skipped", self.lines[-2])
        self.assertEqual({"flaky: test_m.C.test_b", "test_n.py"}, set(self.lines[-1].split(", ")))

    def test_fixtures_of_classes_that_fail(self):
        self.module("m", """
class Other(unittest.TestCase):
    def test_other(self):
        first("other")
class Up(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        assert not first("up")
    def test_up(self):
        first("in-up")
class Down(unittest.TestCase):
    @classmethod
    def tearDownClass(cls):
        assert not first("down")
    def test_down(self):
        first("in-down")
""")
        self.assertEqual(0, self.run_tests())
        self.is_flaky("3 passed, 0 failed, 0 skipped", "tearDownClass (test_m.Down)", "setUpClass (test_m.Up)")
        # The other class has nothing to do with it.
        self.assertEqual(["in-down", "down", "other", "up", "in-down", "down", "up", "in-up"], self.ran())

    def test_a_fixture_that_always_fails(self):
        self.module("m", """
class Down(unittest.TestCase):
    @classmethod
    def tearDownClass(cls):
        assert not "left behind"
    def test_down(self):
        pass
""")
        self.assertEqual(1, self.run_tests())
        self.assertEqual("1 passed, 1 failed, 0 skipped", self.lines[-1])

    def test_a_module_that_leaves_something_runs_again_as_a_whole(self):
        self.module("m", """
class C(unittest.TestCase):
    def test_a(self):
        if first("a"):
            subprocess.Popen(["sleep", "100"], start_new_session=True, stdout=subprocess.DEVNULL)
    def test_b(self):
        first("b")
""")
        self.assertEqual(0, self.run_tests())
        self.is_flaky("2 passed, 0 failed, 0 skipped", "test_m.py")
        self.assertEqual(["a", "b"] * 2, self.ran())

    def test_parts_of_a_module(self):
        self.module("m", """
class C(unittest.TestCase):
    def test_a(self):
        self.assertFalse(first("a"))
    def test_b(self):
        first("b")
    def test_c(self):
        first("c")
    def test_d(self):
        self.assertFalse(first("d"))
""")
        self.assertEqual(0, self.run_tests("--parts", "test_m.py=2", "-j", "1"))
        self.is_flaky("4 passed, 0 failed, 0 skipped", "test_m.C.test_a", "test_m.C.test_d")
        self.assertEqual(["a", "c", "b", "d", "a", "d"], self.ran())

    def test_once_for_the_first_build(self):
        self.unit("u", "echo 1..1; echo ok 1 - x")
        for name in ("m", "n"):
            self.module(name, "class C(unittest.TestCase):\n    def test_a(self):\n        first('" + name + "')\n")
        other = os.path.join(self.dir, "other")
        os.mkdir(other)
        self.write("other/tests.json", "[]")
        self.assertEqual(0, self.run_tests("--once", "test_m.py", other))
        # `other` comes first.
        self.assertEqual("4 passed, 0 failed, 0 skipped", self.lines[-1])
        self.assertEqual(["m", "n", "n", "u"], sorted(self.ran()))

    # ---- names ----

    def test_names(self):
        self.unit("base-one", "echo 1..1; echo ok 1 - x")
        self.unit("base-one-more", "echo 1..1; echo ok 1 - x")
        for name in ("copy", "image_copy"):
            self.module(name, "class Pods(unittest.TestCase):\n    def test_it(self):\n        first('" + name + "')\n")
        for words, n in ((["base-one"], 2), (["=base-one"], 1), (["test_copy"], 1), (["copy"], 2), (["test_copy.py"], 1), (["=test_copy"], 1),
                         (["Pods"], 2), (["test_copy.Pods.test_it"], 1), (["=base-one", "test_image"], 2), (["*"], 4)):
            self.assertEqual(0, self.run_tests(*(w for word in words for w in ("-k", word))), words)
            self.assertEqual(f"{n} passed, 0 failed, 0 skipped", self.lines[-1], words)

    def test_names_of_nothing(self):
        self.unit("base-one", "echo 1..1; echo ok 1 - x")
        self.module("copy", "class Pods(unittest.TestCase):\n    def test_it(self):\n        pass\n")
        for words in (["-k", "nothing"], ["-k", "base-one", "-k", "nothing"], ["-k", "test_copy", "--unit", "-k", "base"],
                      ["-k", "base-one", "--whole"], ["-k", "=base"], ["-k", "Pods", "--except", "test_copy.py"]):
            self.assertEqual(1, self.run_tests(*words), words)
            self.assertEqual(1, sum("has such a name" in line for line in self.lines), self.lines)
            self.assertIn(" 0 failed", self.lines[-1])

    # ---- times ----

    def test_times(self):
        self.unit("quick", "echo 1..1; echo ok 1 - x")
        self.unit("slow", "sleep 2.1; echo 1..1; echo ok 1 - x")
        self.module("m", "class C(unittest.TestCase):\n    def test_it(self):\n        pass\n")
        self.assertEqual(0, self.run_tests("--timeout", "9"))
        rows = [m.group(1) for m in (re.match(r" +\d+\.\d +\d+\.\d  (?:.*: )?(.*)", line) for line in self.lines) if m]
        self.assertEqual(["slow", "test_m.py", "1 others"], rows[:3])
        self.assertRegex(rows[3], "^all, in [0-9]+ s, ")


class Directory(unittest.TestCase):
    """Folders in which the tree can be, or is not to be."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="nacre-directory-")
        self.addCleanup(shutil.rmtree, self.dir)

    def verdict(self, folder):
        done = subprocess.run([os.path.join(TESTS, "..", "tools", "directory"), TESTS, folder], capture_output=True, text=True, check=False)
        self.assertEqual("", done.stdout)
        if done.returncode:
            self.assertIn(f'the directory "{folder}" cannot be used: ', done.stderr)
        return done.stderr

    def test_names(self):
        for name in ("a", "a.b-c_d+e", "x@y=1,2%3~", "n" * 100):
            os.mkdir(os.path.join(self.dir, name))
            self.assertEqual("", self.verdict(os.path.join(self.dir, name)))
            self.assertEqual([], os.listdir(os.path.join(self.dir, name)))
        for name in ("a b", "a:b", "a'b", 'a"b', "a$b", "a\\b", "a\nb", "a\n", "\n", "\xe9", "a*", "a(b", "a;b", "a#b", "a&b"):
            os.mkdir(os.path.join(self.dir, name))
            self.assertIn("its path may have letters", self.verdict(os.path.join(self.dir, name)), name)
        os.makedirs(os.path.join(self.dir, "n" * 100, "n" * 100))
        self.assertIn("characters, and may have 200", self.verdict(os.path.join(self.dir, "n" * 100, "n" * 100)))

    def test_places(self):
        for folder in ("/", "/tmp", os.path.join(self.dir, "not-there"), __file__):
            self.assertTrue(self.verdict(folder), folder)
        for options, words in (("noexec", "noexec"), ("ro", "no file can be made"), ("size=8k,nr_inodes=1", "no file can be made")):
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", self.dir], check=True)
            try:
                self.assertIn(words, self.verdict(self.dir))
            finally:
                subprocess.run(["umount", self.dir], check=True)

    def test_run_names_it_before_the_first_test(self):
        folder = os.path.join(self.dir, "a b")
        os.mkdir(folder)
        done = subprocess.run([os.path.join(TESTS, "run"), folder], capture_output=True, text=True, check=False)
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn(f'the directory "{folder}" cannot be used: ', done.stderr)

    def test_what_is_covered_for_a_test(self):
        """The folders that are kept are where they were, alone."""
        for name in ("kept/in/deep", "kept-not", "more"):
            os.makedirs(os.path.join(self.dir, name))
        self.addCleanup(subprocess.run, ["umount", "--recursive", self.dir], check=True)
        cover.cover(self.dir, os.path.join(self.dir, "kept/in"), os.path.join(self.dir, "kept/in/deep"), os.path.join(self.dir, "more"), TESTS)
        self.assertEqual(["kept", "more"], sorted(os.listdir(self.dir)))
        self.assertEqual(["deep"], os.listdir(os.path.join(self.dir, "kept/in")))
        self.assertTrue(os.path.exists(__file__))


class Narrow(unittest.TestCase):
    """What a second run is narrowed to, of jobs that take long."""

    @staticmethod
    def job(command, narrow, *lines):
        job = jobs.Job("b", "x", command, 1, narrow=narrow)
        for line in lines:
            job.take(line)
        job.finish(1 if job.failures else 0, False)
        return job

    def test_places_that_allocate(self):
        command = ["python", "failmalloc.py", "--seconds", "5", "program"]
        job = self.job(command, retry.failmalloc, "1..1", "# harm at 3:17", "# harm at 4:2", "not ok 1 - 9 of 80 places: 2 do harm")
        job.is_one_test = True
        self.assertEqual(command[:2] + ["--at", "3:17", "--at", "4:2"] + command[2:], job.narrow(job))
        self.assertEqual(["x in b"], retry.settle(job, self.job(command, None, "1..1", "ok 1 - 2 of 2 places")))
        self.assertEqual((1, 0), (job.count(jobs.OK), job.count(jobs.FAILED)))
        job = self.job(command, retry.failmalloc, "1..1", "not ok 1 - each test alone")
        self.assertEqual(command, job.narrow(job))

    def test_programs_of_the_guest(self):
        command = ["python", "guest.py", "-k", "a", "build"]
        lines = ("# begin one", "ok 1 - one: x", "# begin two", "not ok 2 - two: y", "not ok 3 - two: left z behind", "1..3")
        job = self.job(command, retry.guest, *lines)
        self.assertEqual(["python", "guest.py", "-k", "=two", "build"], job.narrow(job))
        for wrong in ("not ok 3 - the guest ended in two", "not ok 3 - the guest does not come up: not up"):
            job = self.job(command, retry.guest, *lines[:4], wrong, "1..3")
            self.assertEqual(command, job.narrow(job))
        # It was ended before it said how many.
        job = self.job(command, retry.guest, *lines[:4])
        self.assertEqual(command, job.narrow(job))


if __name__ == "__main__":
    unittest.main()
