# SPDX-License-Identifier: Apache-2.0
"""Prometheus' text exposition format, version 0.0.4, read strictly: more so than Prometheus itself does."""
import re

NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
SAMPLE = re.compile(r"([a-z][a-z0-9_]*)(?:\{(.*)\})? (\S+)\Z")
LABEL = re.compile(r'([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|\Z)')
PARTS = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


class Bad(AssertionError):
    pass


def need(held, line):
    if not held:
        raise Bad(line)


def labels(text, line):
    found, at = {}, 0
    while at < len(text):
        m = LABEL.match(text, at)
        need(m and m.group(1) not in found, line)
        found[m.group(1)] = re.sub(r"\\(.)", lambda e: {"n": "\n"}.get(e.group(1), e.group(1)), m.group(2))
        at = m.end()
    need(not text.endswith(","), line)
    return found


def histogram(samples, name):
    """Buckets of each series grow up to +Inf, which is the count; there is a sum."""
    series = {}
    for part, of, value in samples:
        of = dict(of)
        bound = of.pop("le", None)
        need((bound is not None) == (part == "_bucket"), name)
        one = series.setdefault(frozenset(of.items()), {"buckets": []})
        if part == "_bucket":
            one["buckets"].append((float(bound), value))
        else:
            one[part] = value
    for one in series.values():
        need(one["buckets"] == sorted(one["buckets"]) and [v for _, v in one["buckets"]] == sorted(v for _, v in one["buckets"]), name)
        need(one["buckets"][-1] == (float("inf"), one["_count"]) and "_sum" in one, name)


def read(text):
    """{family: (kind, [(part, labels, value)])}; Bad where the page is none. Its last line is "# EOF"."""
    need(text.endswith("\n# EOF\n"), "the end")
    families, name, seen = {}, None, set()
    lines = text.splitlines()
    for i, line in enumerate(lines[:-1]):
        if line.startswith("# HELP "):
            name, words = line[7:].split(" ", 1)
            kind = re.fullmatch(rf"# TYPE {name} (counter|gauge|histogram)", lines[i + 1])
            need(NAME.match(name) and name not in families and words.endswith(".") and kind, line)
            need(name.endswith("_total") == (kind.group(1) == "counter"), line)
            families[name] = (kind.group(1), [])
        elif line.startswith("#"):
            need(line.startswith(f"# TYPE {name} ") and not families[name][1], line)
        else:
            m = SAMPLE.match(line)
            need(m and name and m.group(1).startswith(name), line)
            part, of = m.group(1)[len(name):], labels(m.group(2) or "", line)
            need(part in PARTS[families[name][0]], line)
            key = (m.group(1), frozenset(of.items()))
            need(key not in seen, line)
            seen.add(key)
            families[name][1].append((part, of, float(m.group(3))))
    for name, (kind, samples) in families.items():
        need(samples, name)
        if kind == "histogram":
            histogram(samples, name)
    return families


def value(families, family, part="", /, **of):
    """The one sample of the family whose labels are, among others, these; None where there is none."""
    found = [v for p, have, v in families.get(family, (None, []))[1] if p == part and of.items() <= have.items()]
    assert len(found) <= 1, found
    return found[0] if found else None
