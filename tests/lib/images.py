# SPDX-License-Identifier: Apache-2.0
"""Images that tests run, made by tests/mkimage once for a build directory and imported into a node on demand.

busybox   Debian's busybox with all its applets; runs `sh`
probe     the program tests/probe alone as /probe; user 1000:1000, an environment variable and a working directory of its own
attack    busybox and the program tests/probe/attack.c as /attack
"""
import importlib.machinery
import importlib.util
import os
import subprocess

import nacre_test

RECIPES = {
    "busybox": ["--busybox", "--cmd", "sh"],
    "attack": ["--busybox", "--file", nacre_test.ATTACK + ":/attack:0755"],
    "probe": ["--file", nacre_test.PROBE + ":/probe:0755", "--dir", "/data:0777", "--dir", "/tmp:1777", "--entrypoint", "/probe",
              "--user", "1000:1000", "--env", "PROBE=image", "--workdir", "/data"],
}
# The file whose change makes an image stale.
CONTENT = {"busybox": "/bin/busybox", "probe": nacre_test.PROBE, "attack": nacre_test.ATTACK}


def path(name):
    """The image as an OCI archive, made where it is missing or older than what it is made of."""
    archive = os.path.join(nacre_test.BUILD, "images", name + ".tar")
    inputs = [CONTENT[name], nacre_test.MKIMAGE, os.path.abspath(__file__)]
    if not os.path.exists(archive) or max(map(os.path.getmtime, inputs)) > os.path.getmtime(archive):
        os.makedirs(os.path.dirname(archive), exist_ok=True)
        make(f"{archive}.{os.getpid()}.tar", *RECIPES[name], "--name", name)
        os.rename(f"{archive}.{os.getpid()}.tar", archive)
    return archive


def make(out, *arguments, form="oci"):
    """Any image, by mkimage's own arguments."""
    done = subprocess.run([nacre_test.MKIMAGE, "--out", out, "--format", form, *arguments], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"mkimage: {done.stderr}")
    return out


def ensure(node, name):
    imported = node.__dict__.setdefault("imported", set())
    if name not in imported:
        node.import_image(path(name), name)
        imported.add(name)
    return name


def module():
    """tests/mkimage as a module, for what its command line does not say."""
    loader = importlib.machinery.SourceFileLoader("mkimage", nacre_test.MKIMAGE)
    loaded = importlib.util.module_from_spec(importlib.util.spec_from_loader("mkimage", loader))
    loader.exec_module(loaded)
    return loaded
