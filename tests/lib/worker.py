#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one unittest module and speaks TAP: worker.py [-k PATTERN]... [--without NAME]... [--timeout SECONDS] [--part I/N] FILE.

Each test may take --timeout seconds, or the SECONDS of its class where those are more; past that it fails with the stacks of all threads, and the ones after it still run.
A line "# begin NAME" goes before each test, so that the runner can name one that hangs for good.
"""
import argparse
import atexit
import faulthandler
import importlib.util
import os
import signal
import sys
import time
import unittest

import selection

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)


class Overtime(Exception):
    pass


def on_alarm(_signum, _frame):
    faulthandler.dump_traceback(all_threads=True)
    raise Overtime("the test took too long")


class TapResult(unittest.TestResult):
    def __init__(self, timeout, names):
        super().__init__()
        self.timeout = timeout
        self.names = names
        self.n = 0
        self.bad = {}
        self.skip = None
        self.began = 0.0

    def line(self, ok, name, note="", details=""):
        self.n += 1
        for text in details.splitlines():
            print("# " + text)
        print(f"{'ok' if ok else 'not ok'} {self.n} - {name}{note}", flush=True)

    def startTest(self, test):
        super().startTest(test)
        print("# begin " + test.id(), flush=True)
        self.bad[test.id()] = []
        self.skip = None
        self.began = time.monotonic()
        signal.alarm(max(self.timeout, getattr(test, "SECONDS", 0)))

    def stopTest(self, test):
        signal.alarm(0)
        took = f" ({time.monotonic() - self.began:.1f} s)"
        bad = self.bad.pop(test.id())
        if bad:
            self.line(False, test.id() + took, "", "\n".join(bad))
        elif self.skip is not None:
            self.line(True, test.id(), " # SKIP " + self.skip)
        else:
            self.line(True, test.id() + took)
        super().stopTest(test)

    def fail(self, test, err):
        text = self._exc_info_to_string(err, test)
        if test.id() in self.bad:
            self.bad[test.id()].append(text)
        else:
            self.line(False, test.id(), "", text)

    def addError(self, test, err):
        super().addError(test, err)
        self.fail(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.fail(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.bad[test.id()].append(str(subtest) + "\n" + self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if test.id() in self.bad:
            self.skip = reason
        else:
            # "setUpClass (module.Class)": none of its tests will begin.
            inside = test.id().partition("(")[2].rstrip(")")
            for name in [n for n in self.names if n.startswith(inside + ".")]:
                self.line(True, name, " # SKIP " + reason)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.bad[test.id()].append("expected to fail, and passed")


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-k", action="append", default=[])
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="not this test")
    parser.add_argument("--timeout", type=int, default=60)
    parser.add_argument("--part", default="0/1", metavar="I/N", help="each N-th test, from I on")
    parser.add_argument("file")
    options = parser.parse_args()

    sys.path[0:0] = [HERE, os.path.dirname(os.path.abspath(options.file))]
    name = os.path.splitext(os.path.basename(options.file))[0]
    spec = importlib.util.spec_from_file_location(name, options.file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)

    tests = list(flatten(unittest.defaultTestLoader.loadTestsFromModule(module)))
    path = os.path.relpath(os.path.abspath(options.file), TESTS)
    selection.tell(options.k, [t.id() for t in tests], path)
    tests = [t for t in tests if selection.wanted(options.k, t.id(), path)]
    first, step = (int(n) for n in options.part.split("/"))
    tests = [t for t in tests[first::step] if t.id() not in options.without]
    print(f"1..{len(tests)}", flush=True)
    signal.signal(signal.SIGALRM, on_alarm)
    # A shell without job control starts its background jobs with the first two ignored, nohup all it starts with the third, and so
    # would be what the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    result = TapResult(options.timeout, [t.id() for t in tests])
    unittest.TestSuite(tests).run(result)
    # gRPC's threads must not keep a finished module alive.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
