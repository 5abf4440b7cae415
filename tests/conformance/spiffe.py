# SPDX-License-Identifier: Apache-2.0
"""go-spiffe, SPIFFE's own library, in a container with an identity: its certificates, mutual TLS with them, and their renewal."""
import os

import images

MODULE = "github.com/spiffe/go-spiffe/v2@v2.5.0"
PROGRAM = "the client of go-spiffe"
STEPS = 1


def wrong_with(said):
    """Of what the program has said in a container "main" of a pod "spiffe"; None: nothing."""
    lines = [line.split() for line in said.splitlines()]
    if [len(line) for line in lines] != [3, 3, 3] or [line[0] for line in lines] != ["hello", "hello", "2"]:
        return f"it said {said!r}"
    (_, first, number), (_, second, renewed), (_, hint, instance) = lines
    if not first.endswith("/workload/spiffe/ctr/main") or first != second or number == renewed:
        return f"the identities are {first} {number} and {second} {renewed}"
    return None if hint == "instance" and "/ctr/main/inst/" in instance else f"the second identity is {hint} {instance}"


def run(program, nacre_test):
    """How much did not pass."""
    with nacre_test.Node("identity:\n  svid_life: 4s\n") as node:
        done = node.cli("run", "--rm", "--name", "spiffe", "--identity", "-v", f"{os.path.dirname(program)}:/program:ro",
                        images.ensure(node, "busybox"), "/program/" + os.path.basename(program), check=False, seconds=100)
    wrong = f"exit status {done.returncode}: {done.stderr}" if done.returncode else wrong_with(done.stdout)
    if wrong:
        print(f"FAIL go-spiffe: {wrong}", flush=True)
    return STEPS if wrong else 0
