# SPDX-License-Identifier: Apache-2.0
"""What a word of -k stands for, in tests/run and in the programs that it starts.

*WORD* is looked for in the name of a unit program, in the full name of a test (module.Class.test) and, with a slash or .py in it, in
the path of a module from tests/ on. =WORD is that name alone: a unit program, a module (test_copy, daemon/test_copy.py), or a test.
"""
import fnmatch
import os

MATCHED = "# matched "


def is_match(word, name, path=None):
    names = [name]
    if path:
        names += [path, os.path.basename(path).removesuffix(".py")] if word.startswith("=") or "/" in word or ".py" in word else []
    if word.startswith("="):
        return any(fnmatch.fnmatch(n, word[1:]) for n in names)
    return any(fnmatch.fnmatch(n, f"*{word}*") for n in names)


def wanted(words, name, path=None):
    return not words or any(is_match(w, name, path) for w in words)


def tell(words, names, path=None):
    """For the runner: which of the words stand for something here."""
    for word in words:
        if any(is_match(word, n, path) for n in names):
            print(MATCHED + word, flush=True)
