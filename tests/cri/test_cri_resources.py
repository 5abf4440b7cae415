# SPDX-License-Identifier: Apache-2.0
"""Limits of containers by Kubernetes' interface: asked for, changed while they run, and told as they are. What a host without a
controller of cgroup version 2 cannot enforce is refused by the name of the field; that limits hold is for tests/guest to show."""
import os
import subprocess
import unittest

import grpc

import host
import nacre_test
from nacre_test import nacre_pb2

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode
MIB = 1 << 20
# Fields with values, a file of the group, and what that has then.
FIELDS = (({"memory_limit_in_bytes": 64 * MIB}, "memory.max", "67108864"),
          ({"memory_limit_in_bytes": 64 * MIB, "memory_swap_limit_in_bytes": 64 * MIB}, "memory.swap.max", "0"),
          ({"cpu_shares": 512}, "cpu.weight", "59"),
          ({"cpu_quota": 50000, "cpu_period": 100000}, "cpu.max", "50000 100000"),
          ({"cpuset_cpus": "0"}, "cpuset.cpus", "0"), ({"cpuset_mems": "0"}, "cpuset.mems", "0"),
          ({"hugepage_limits": [cri.HugepageLimit(page_size="2MB", limit=4 * MIB)]}, "hugetlb.2MB.max", "4194304"),
          ({"unified": {"hugetlb.2MB.rsvd.max": "2097152"}}, "hugetlb.2MB.rsvd.max", "2097152"),
          ({"unified": {"memory.high": "33554432"}}, "memory.high", "33554432"))


def resources(**fields):
    return cri.LinuxContainerResources(**fields)


class Resources(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\ncri:\n  network: builtin\n"

    @classmethod
    def prepare(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    def setUp(self):
        self.api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.addCleanup(self.node.clear)
        group = self.node.info.Info(nacre_pb2.InfoRequest()).cgroup
        self.controllers = host.read(os.path.join(host.cgroup_root(), group.lstrip("/"), "cgroup.subtree_control")).split()

    def has(self, file):
        return file.partition(".")[0] in self.controllers

    def sandbox(self, **more):
        config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="pod", uid="1", namespace="tests"), hostname="pod", **more)
        return self.api.RunPodSandbox(cri.RunPodSandboxRequest(config=config)).pod_sandbox_id

    def create(self, pod, name="one", asked=None, start=False, **more):
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name), image=cri.ImageSpec(image="busybox"), command=["sleep", "1000"],
                                     linux=cri.LinuxContainerConfig(resources=asked, **more))
        one = self.api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=pod, config=config)).container_id
        if start:
            self.start(one)
        return one

    def start(self, container):
        self.api.StartContainer(cri.StartContainerRequest(container_id=container))

    def update(self, container, **fields):
        self.api.UpdateContainerResources(cri.UpdateContainerResourcesRequest(container_id=container, linux=resources(**fields)))

    def told(self, container):
        status = self.api.ContainerStatus(cri.ContainerStatusRequest(container_id=container)).status
        self.assertTrue(status.resources.HasField("linux"))
        return status.resources.linux

    def group(self, container, file):
        answer = self.api.ContainerStatus(cri.ContainerStatusRequest(container_id=container, verbose=True))
        pid = nacre_test.json.loads(answer.info["info"])["pid"]
        path = next(line.rstrip().split("::")[1] for line in open(f"/proc/{pid}/cgroup", encoding="ascii") if line.startswith("0::"))
        return host.read(os.path.join(host.cgroup_root(), path.lstrip("/"), file)).strip()

    def assertRefused(self, code, field, call):
        said = self.assertFails(code, call)
        self.assertTrue(said.startswith(field + ": "), said)
        return said

    def test_each_holds_or_is_refused_by_name(self):
        pod = self.sandbox()
        plain = self.create(pod, "plain", start=True)
        created = self.create(pod, "created")
        for n, (fields, file, text) in enumerate(FIELDS):
            field = list(fields)[-1] if "cpu_quota" not in fields else "cpu_quota"
            if not self.has(file):
                word = file.partition(".")[0]
                self.assertIn(word, self.assertRefused(Code.FAILED_PRECONDITION, "config.linux.resources." + field,
                                                       lambda: self.create(pod, f"no{n}", resources(**fields))))
                for one in (plain, created):
                    self.assertIn(word, self.assertRefused(Code.FAILED_PRECONDITION, "linux." + field, lambda: self.update(one, **fields)))
                    self.assertEqual(resources(), self.told(one))
                continue
            one = self.create(pod, f"one{n}", resources(**fields), start=True)
            self.update(plain, **fields)
            self.update(created, **fields)
            for which in (one, plain):
                self.assertEqual(text, self.group(which, file), file)
            for which in (one, plain, created):
                told = self.told(which)
                for name in fields:
                    self.assertEqual(getattr(resources(**fields), name), getattr(told, name) if name != "unified" else
                                     {k: told.unified[k] for k in fields["unified"]})
            self.api.RemoveContainer(cri.RemoveContainerRequest(container_id=one))
        self.start(created)
        for fields, file, text in FIELDS:
            if self.has(file):
                self.assertEqual(text, self.group(created, file), file)

    def test_what_is_told(self):
        """Also of a container of which nothing was said; and after the daemon was restarted."""
        asked = resources(oom_score_adj=900, cpu_shares=2, hugepage_limits=[cri.HugepageLimit(page_size="2MB")])
        pod = self.sandbox()
        one, bare = self.create(pod, "one", asked, start=True), self.create(pod, "bare")
        self.assertEqual((asked, resources()), (self.told(one), self.told(bare)))
        # What holds for a process from its beginning is not changed, and told as it is.
        self.update(one, oom_score_adj=500)
        self.update(one)
        self.assertEqual(asked, self.told(one))
        self.node.kill()
        self.node.start()
        self.api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.assertEqual(asked, self.told(one))

    def test_wrong_values(self):
        pod = self.sandbox()
        one = self.create(pod, start=True)
        for field, fields in (("oom_score_adj", {"oom_score_adj": 1001}), ("cpu_period", {"cpu_period": -1}), ("cpu_shares", {"cpu_shares": -1}),
                              ("cpu_quota", {"cpu_quota": 5}), ("cpu_period", {"cpu_quota": 5000, "cpu_period": 5}),
                              ("cpuset_cpus", {"cpuset_cpus": "a"}), ("memory_swap_limit_in_bytes", {"memory_swap_limit_in_bytes": MIB}),
                              ("memory_swap_limit_in_bytes", {"memory_limit_in_bytes": 2 * MIB, "memory_swap_limit_in_bytes": MIB}),
                              ("unified", {"unified": {"../x": "1"}}), ("unified", {"unified": {"cgroup.procs": "1"}}),
                              ("unified", {"unified": {"memory=": "1"}}), ("unified", {"unified": {f"memory.{k}": "1" for k in range(17)}}),
                              ("hugepage_limits", {"hugepage_limits": [cri.HugepageLimit(page_size="../2MB", limit=1)]})):
            self.assertRefused(Code.INVALID_ARGUMENT, "config.linux.resources." + field, lambda: self.create(pod, "no", resources(**fields)))
            self.assertRefused(Code.INVALID_ARGUMENT, "linux." + field, lambda: self.update(one, **fields))
        self.assertRefused(Code.INVALID_ARGUMENT, "linux", lambda: self.api.UpdateContainerResources(
            cri.UpdateContainerResourcesRequest(container_id=one)))
        self.assertRefused(Code.NOT_FOUND, "container_id", lambda: self.update("0123456789abcdef"))
        self.api.StopContainer(cri.StopContainerRequest(container_id=one))
        self.assertRefused(Code.FAILED_PRECONDITION, "container_id", lambda: self.update(one))

    def test_a_sandbox_is_told_of_its_resources(self):
        pod = self.sandbox(linux=cri.LinuxPodSandboxConfig(overhead=resources(cpu_shares=10)))

        def tell(which):
            self.api.UpdatePodSandboxResources(cri.UpdatePodSandboxResourcesRequest(
                pod_sandbox_id=which, overhead=resources(cpu_shares=20), resources=resources(memory_limit_in_bytes=MIB)))
        tell(pod)
        tell(pod)
        self.assertRefused(Code.NOT_FOUND, "pod_sandbox_id", lambda: tell("0123456789abcdef"))
        self.api.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=pod))
        self.assertRefused(Code.FAILED_PRECONDITION, "pod_sandbox_id", lambda: tell(pod))


if __name__ == "__main__":
    unittest.main()
