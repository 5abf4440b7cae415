# SPDX-License-Identifier: Apache-2.0
"""Reads our C sources well enough to judge their form: comments and strings blanked out, functions found."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def files(*tops, endings=(".c", ".h")):
    for top in tops:
        for folder, names, found in os.walk(os.path.join(ROOT, top)):
            names[:] = sorted(n for n in names if n != "__pycache__")
            for name in sorted(found):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def blank(text):
    """The same text with comments and literals as blanks: lines and columns stay."""
    return TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def functions(text):
    """(name, first line, number of lines) of each function, in kernel style: its braces stand in the first column.

    The length counts from the line with the name to the closing brace.
    """
    lines = blank(text).split("\n")
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line.startswith("}") and start is not None:
            head = start - 1
            while head > 0 and lines[head - 1].strip() and not lines[head - 1].startswith(("}", "#")) \
                    and not lines[head - 1].rstrip().endswith((";", "}")):
                head -= 1
            name = re.search(r"(\w+)\s*\(", "\n".join(lines[head:start]))
            if name:
                yield name.group(1), head + 1, number - head + 1
            start = None
