# SPDX-License-Identifier: Apache-2.0
"""The programs in Go of these tests, in BUILD/kubernetes/bin: built once, outside of the tree.

kubelet and kube-apiserver come from the module k8s.io/kubernetes. What it has in its folder staging are modules too, which it names
by version v0.0.0 and replaces by that folder; a module of others that needs it must replace them by their released versions.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "conformance"))

import go_program  # noqa: E402

KUBERNETES = "k8s.io/kubernetes"
VERSION = "v1.34.1"
STAGED = "v0.34.1"
PROGRAMS = ("kubelet", "kube-apiserver")
# Our own, each with the module that it needs.
OWN = {"client_go": (os.path.join(os.path.dirname(HERE), "conformance"), f"k8s.io/client-go@{STAGED}"),
       "grpc_health": (HERE, "google.golang.org/grpc@v1.72.1")}


def find_go():
    return shutil.which("go") or shutil.which("/usr/local/go/bin/go") or shutil.which("/usr/lib/go/bin/go")


def run(go, *words, **more):
    print(f"go {' '.join(words)}", flush=True)
    done = subprocess.run([go, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{done.stderr.strip()}\nmake kubernetes: go {words[0]} failed")
    return done.stdout


def staging(go):
    """The names of the modules that come with Kubernetes."""
    with tempfile.TemporaryDirectory(prefix="nacre-kubernetes-") as folder:
        mod = json.loads(run(go, "mod", "download", "-json", f"{KUBERNETES}@{VERSION}", cwd=folder))["GoMod"]
    with open(mod, encoding="utf-8") as f:
        return re.findall(r"^\s*(\S+) => \./staging/", f.read(), re.M)


def kubernetes(go, folder):
    lines = [f"\t{name} => {name} {STAGED}\n" for name in staging(go)]
    with tempfile.TemporaryDirectory(prefix="nacre-kubernetes-") as module:
        with open(os.path.join(module, "go.mod"), "w", encoding="ascii") as f:
            f.write(f"module node\n\ngo 1.24.0\n\nrequire {KUBERNETES} {VERSION}\n\nreplace (\n{''.join(lines)})\n")
        # Without its number the API server does not know which of its own features are released.
        flags = f"-s -w -X k8s.io/component-base/version.gitVersion={VERSION}"
        run(go, "build", "-trimpath", "-ldflags", flags, "-o", folder + "/", *(f"{KUBERNETES}/cmd/{p}" for p in PROGRAMS), cwd=module,
            env={**os.environ, "GOFLAGS": "-mod=mod " + os.environ.get("NACRE_GOFLAGS", ""), "CGO_ENABLED": "0"})


def stale(program, source):
    return not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source)


def programs(build):
    """The folder with all of them; None where Go is missing."""
    folder, go = os.path.join(build, "kubernetes", "bin"), find_go()
    have = all(os.path.exists(os.path.join(folder, p)) for p in (*PROGRAMS, *OWN))
    if not go:
        return folder if have else None
    os.makedirs(folder, exist_ok=True)
    if not all(os.path.exists(os.path.join(folder, p)) for p in PROGRAMS):
        kubernetes(go, folder)
    for name, (place, module) in OWN.items():
        if stale(os.path.join(folder, name), os.path.join(place, name + ".go")):
            why = go_program.build(go, os.path.join(folder, name), name, module, name, place)
            if why:
                sys.exit(f"make kubernetes: {why}")
    return folder
