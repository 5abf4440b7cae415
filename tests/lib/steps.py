# SPDX-License-Identifier: Apache-2.0
"""What most tests do to a node, in few words: StepsTest is a NodeTest that has them as methods."""
import os

import host
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2

SPACES = ("pid", "mnt", "net", "ipc", "uts", "cgroup")


def namespaces(pid):
    """{"pid": "pid:[4026531836]", ...} of a process as we see it."""
    return {n: os.readlink(f"/proc/{pid}/ns/{n}") for n in SPACES}


def pid_depth(pid):
    """In how many pid namespaces below ours a process stands: 0 for our own."""
    line, = [l for l in host.read(f"/proc/{pid}/status").splitlines() if l.startswith("NSpid:")]
    return len(line.split()) - 2


def container(*command, image="busybox", **fields):
    return runtime_pb2.Container(image=image, command=command, **fields)


def parts(path):
    parent, _, name = path.rpartition("/")
    return parent, runtime_pb2.Meta(name=name)


class StepsTest(nacre_test.NodeTest):
    def setUp(self):
        # Also where a test fails half-way: the next one begins with an empty node.
        self.addCleanup(self.node.clear)

    def spawn(self, path, **fields):
        parent, meta = parts(path)
        return self.node.runtime.Spawn(runtime_pb2.SpawnRequest(meta=meta, parent=parent, **fields))

    def cell(self, path, *containers, **fields):
        """RunCell, sleeping unless containers are given."""
        instance, meta = parts(path)
        return self.node.runtime.RunCell(runtime_pb2.RunCellRequest(
            meta=meta, instance=instance, containers=containers or [container("sleep", "100000")], **fields))

    def pod(self, path, *containers, **fields):
        parent, meta = parts(path)
        return self.node.runtime.RunPod(runtime_pb2.RunPodRequest(
            meta=meta, parent=parent, containers=containers or [container("sleep", "100000")], **fields))

    def inspect(self, target):
        return self.node.workloads.Inspect(nacre_pb2.InspectRequest(target=target)).workload

    def all(self):
        """Everything the node knows: {path: Workload}, in its order."""
        return {w.name: w for w in self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads}

    def exec_all(self, target, *command, **fields):
        return list(self.node.exec(nacre_pb2.ExecRequest(target=target, command=command, **fields), timeout=60))

    def exec(self, target, *command, **fields):
        """(stdout, stderr, exit code)"""
        answers = self.exec_all(target, *command, **fields)
        # What is missing must not be taken for 0.
        self.assertTrue(answers and answers[-1].HasField("exit"), answers[-1:])
        return b"".join(a.stdout for a in answers), b"".join(a.stderr for a in answers), answers[-1].exit.exit_code

    def sh(self, target, script, **fields):
        """The standard output of a script that must succeed."""
        out, err, code = self.exec(target, "sh", "-c", script, **fields)
        self.assertEqual((b"", 0), (err, code), out)
        return out.decode()

    def logs(self, target, container="", follow=False, stream=None):
        request = nacre_pb2.LogsRequest(target=target, container=container, follow=follow)
        return b"".join(a.data for a in self.node.workloads.Logs(request, timeout=60) if stream in (None, a.stream))

    def stop(self, target, grace_ms=0):
        return self.node.workloads.Stop(nacre_pb2.StopRequest(target=target, grace_ms=grace_ms), timeout=60).workload

    def wait(self, target, container=""):
        return self.node.workloads.Wait(nacre_pb2.WaitRequest(target=target, container=container), timeout=60)

    def remove(self, target, force=False):
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target=target, force=force), timeout=60)

    def cgroup_dir(self, target):
        return os.path.join(host.cgroup_root(), self.inspect(target).cgroup.lstrip("/"))
