# SPDX-License-Identifier: Apache-2.0
"""Python stubs of src/api/*.proto, made on the fly below the build directory."""
import fcntl
import importlib
import os
import shutil
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROTOS = os.path.join(ROOT, "src", "api")
NAMES = ("runtime", "nacre", "instance", "cri", "cells", "discovery", "observe", "vms")


def generate(folder):
    """Into `folder`, as one step, so that two test processes do not meet half of it."""
    from grpc_tools import protoc

    os.makedirs(os.path.dirname(folder), exist_ok=True)
    fresh = tempfile.mkdtemp(prefix="pb.", dir=os.path.dirname(folder))
    try:
        status = protoc.main(["protoc", f"--proto_path={PROTOS}", f"--python_out={fresh}", f"--grpc_python_out={fresh}"]
                             + [os.path.join(PROTOS, n + ".proto") for n in NAMES])
        if status != 0:
            raise RuntimeError(f"protoc ended with status {status}")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            os.rename(fresh, folder)
        except OSError:
            if not os.path.isdir(folder):
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def is_fresh(folder):
    made = os.path.join(folder, NAMES[-1] + "_pb2_grpc.py")
    if not os.path.exists(made):
        return False
    return all(os.path.getmtime(os.path.join(PROTOS, n + ".proto")) <= os.path.getmtime(made) for n in NAMES)


def load(build):
    """The modules by name: {"runtime_pb2": ..., "runtime_pb2_grpc": ..., ...}."""
    folder = os.path.join(build, "pb")
    with open(folder + ".lock", "w", encoding="ascii") as lock:
        # Several test modules begin at the same moment.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_fresh(folder):
            generate(folder)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return {n + part: importlib.import_module(n + part) for n in NAMES for part in ("_pb2", "_pb2_grpc")}
