#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pods of kind gce. What all clouds have in common is tested with ec2 (test_ec2_pods.py); this is that a machine of the other fake's boots,
learns who it is from that cloud's metadata service, enrols, and goes."""
import unittest

import grpc

import cloud_pods
import fake_gce
import faults
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode


class Machines(cloud_pods.BootTest):
    FAKE = fake_gce

    def test_life(self):
        made = self.pod("web", steps.container("sh", "-c", "echo hello; exec sleep 100000", name="main"), kind="gce")
        self.assertEqual("gce", made.kind)
        (machine,) = self.cloud.alive()
        (record,) = self.records()
        instance = self.inspect("web")
        self.assertEqual(("running", "gce"), (instance.state, instance.instance_kind))
        self.assertEqual({"nacre-cluster", "nacre-node", "nacre-vm", "nacre-instance", "nacre-lease", "name"}, set(machine.labels))
        self.assertEqual((record.id, "pod-" + machine.labels["nacre-instance"]), (machine.labels["nacre-vm"], record.name))
        self.assertEqual("small", machine.type)
        nacre_test.until(lambda: self.logs("web") == b"hello\n")
        self.assertEqual("web\n", self.sh("web", "hostname"))
        asked = machine.guest.asked
        out, _, code = self.exec("web", "sh", "-c", "echo | nc -w 2 169.254.169.254 80")
        self.assertEqual((b"", 1, asked), (out, code, machine.guest.asked))
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="web", grace_ms=100), timeout=60)
        self.assertEqual("exited", self.inspect("web").state)
        self.none_left()
        self.assertFalse(machine.guest.alive)

    def test_its_power_off(self):
        """It stops a machine of this cloud, which has to be ended all the same. By the kubelet's interface."""
        api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.assertEqual({"gce"}, {h.name for h in api.Status(cri.StatusRequest()).runtime_handlers} & {"ec2", "gce"})
        config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="web", uid="1", namespace="tests"), hostname="web")
        pod = api.RunPodSandbox(cri.RunPodSandboxRequest(config=config, runtime_handler="gce"), timeout=120 * nacre_test.SLOWNESS).pod_sandbox_id
        (machine,) = self.cloud.alive()
        status = api.PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=pod)).status
        self.assertEqual((machine.address, "gce", cri.SANDBOX_READY), (status.network.ip, status.runtime_handler, status.state))
        # The machine has the emptyDir of the kubelet, which the container can write to.
        empty = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~empty-dir/work"
        made = cri.ContainerConfig(metadata=cri.ContainerMetadata(name="one"), image=cri.ImageSpec(image="busybox"), command=["sleep", "1000"],
                                   mounts=[cri.Mount(host_path=empty, container_path="/work")])
        one = api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=pod, config=made)).container_id
        api.StartContainer(cri.StartContainerRequest(container_id=one))
        ran = api.ExecSync(cri.ExecSyncRequest(container_id=one, cmd=["sh", "-c", "echo x > /work/file; cat /work/file"]))
        self.assertEqual((b"x\n", b"", 0), (ran.stdout, ran.stderr, ran.exit_code))
        machine.guest.end()
        self.none_left()
        nacre_test.until(lambda: api.PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=pod)).status.state == cri.SANDBOX_NOTREADY)
        api.RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=pod), timeout=60)


class Refused(cloud_pods.CloudTest):
    FAKE = fake_gce

    def test_refusals(self):
        mount = runtime_pb2.Mount(source="/tmp", target="/data")
        self.assertFails(Code.UNIMPLEMENTED, lambda: self.pod("web", steps.container("true", mounts=[mount]), kind="gce"), '"gce"', "read-only")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.pod("web", kind="ec2"), "cloud.gce", "not ec2")
        self.cloud.broken = ("ZONE_RESOURCE_POOL_EXHAUSTED", "does not have enough resources available")
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.pod("web", kind="gce"), "enough resources")
        self.assertEqual({}, dict(self.cloud.machines))
        for code, status, word, text in (
                (Code.RESOURCE_EXHAUSTED, 403, "quotaExceeded", "Quota 'CPUS' exceeded. Limit: 8.0 in region eu-test1."),
                (Code.INVALID_ARGUMENT, 404, "notFound", "The resource 'projects/p/global/images/agent' was not found")):
            with self.subTest(word):
                self.cloud.fail["insert"] = [(status, word, text)]
                self.node.clear()
                self.assertFails(code, lambda: self.pod("web", kind="gce"), text)
                self.none_left()
        self.assertEqual({}, dict(self.cloud.machines))
        with nacre_test.Node(config=self.cloud.config(), env=self.cloud.env()) as node:
            with self.assertRaises(grpc.RpcError) as caught:
                node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name="web"), kind="gce", containers=[steps.container("true")]))
            self.assertIn("cloud.gce.agent_image", caught.exception.details())


@faults.spread
class Crashes(cloud_pods.CloudTest):
    """The daemon ends behind the create call, and in front of the end: no machine is left."""

    FAKE = fake_gce

    @faults.for_each([p for p in faults.places("far") if p in ("far.run+", "far.end")])
    def killed_at(self, place):
        self.crash(place, "gce")


if __name__ == "__main__":
    unittest.main()
