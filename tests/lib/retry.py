# SPDX-License-Identifier: Apache-2.0
"""The second run of jobs with failures, and what the two runs say together.

A test that fails in the first run and passes in the second is flaky: it counts as passed, and is named. A second run of a module leaves
out the tests that have passed already; where that would leave out what may have been at fault, nothing is left out. A program that
cannot run single tests is run as a whole. A test that failed and is skipped the second time has failed.
"""
import collections
import re

import jobs


def not_passed(job):
    """Names of tests that need not run again: those that passed or were skipped, in classes that have set up and taken down well."""
    # "setUpClass (module.Class)", "tearDownModule (module)".
    fixtures = [f.group(1) for f in (re.match(r"\w+ \(([\w.]+)\)$", r.name) for r in job.failures) if f]
    done = [r.name for r in job.results if r.verdict != jobs.FAILED]
    done = [n for n in done if not any(n.startswith(f + ".") for f in fixtures)]
    tests = [r.name for r in job.results if not re.match(r"\w+ \(", r.name)]
    # All went well but for the process that ran them: any of them may have done it.
    everything_ran = job.planned is not None and len(tests) >= job.planned
    return [] if everything_ran and not any(r.verdict == jobs.FAILED for r in job.results) else done


def module(job):
    """Of tests/lib/worker.py."""
    return [*job.command, *(word for name in not_passed(job) for word in ("--without", name))]


def failmalloc(job):
    """Of tests/lib/failmalloc.py: the places that did harm, instead of those that the time is enough for."""
    places = [n for r in job.failures for line in r.output for n in re.findall(r"^# harm at (\d+:\d+)", line)]
    return [*job.command[:2], *(word for n in places for word in ("--at", n)), *job.command[2:]]


def guest(job):
    """Of tests/lib/guest.py: the programs that failed, where each failure is one of a program."""
    programs = {r.name.partition(": ")[0] for r in job.results if r.verdict == jobs.FAILED}
    if job.faults or not programs <= set(job.began):
        return job.command
    words, build = job.command[:2], job.command[-1]
    return [*words, *(w for p in sorted(programs) for w in ("-k", "=" + p)), build]


def again(job):
    """The job of the second run."""
    second = jobs.Job(job.build, job.name + " (again)", job.narrow(job), job.timeout, job.env)
    second.stutter = job.stutter
    return second


def keyed(results):
    """{(name, which of those with that name): result}: programs may have two tests of one name."""
    seen, found = collections.Counter(), {}
    for r in results:
        found[r.name, seen[r.name]] = r
        seen[r.name] += 1
    return found


def full_name(job, result):
    """As a person would ask for it: a test of a module has its module in front, one of a program not yet."""
    if job.is_one_test:
        return f"{job.name} in {job.build}"
    if result in job.faults or re.fullmatch(r"[\w.]+\.\w+|\w+ \([\w.]+\)", result.name):
        return f"{job.name if result in job.faults else result.name} in {job.build}"
    return f"{job.name}: {result.name} in {job.build}"


def settle(first, second):
    """Puts into `first` what both runs say together, and returns the names of what is flaky."""
    flaky, final = [], []
    is_well = not second.failures and (second.count(jobs.OK) or not first.count(jobs.OK))
    before, after = keyed(first.results), keyed(second.results)
    for key, result in before.items():
        then = after.get(key)
        verdicts = {result.verdict, then.verdict if then else None}
        if verdicts == {jobs.FAILED, jobs.OK}:
            flaky.append(full_name(first, result))
            final.append(result if result.verdict == jobs.OK else then)
        elif result.verdict == jobs.FAILED and not then and is_well and is_fixture(first, result):
            flaky.append(full_name(first, result))
        elif verdicts == {jobs.FAILED, jobs.SKIPPED}:
            final.append(result if result.verdict == jobs.FAILED else then)
        else:
            final.append(then or result)
    final += [r for key, r in after.items() if key not in before]
    if first.faults and is_well:
        flaky.append(full_name(first, first.faults[0]))
        first.faults = []
    elif first.faults or second.faults:
        first.faults = second.faults or first.faults
    first.results = final
    return flaky


def is_fixture(job, result):
    """Whether this says something of a class or module, or of a program with a report of its own, and is no test."""
    return bool(re.match(r"\w+ \([\w.]+\)$", result.name)) or result.name not in job.began
