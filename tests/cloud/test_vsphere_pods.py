#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pods of kind vsphere. What all clouds have in common is tested with ec2 (test_ec2_pods.py); this is that a machine of this fake's boots, learns
who it is from its host, leaves nothing of that there, tells its address, enrols, and goes."""
import os
import shutil
import signal
import tempfile
import unittest

import grpc

import cloud_pods
import fake_vsphere
import faults
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode
SETTING = "guestinfo.userdata"


class Machines(cloud_pods.BootTest):
    FAKE = fake_vsphere

    def test_life(self):
        written = []
        self.cloud.before["PowerOnVM_Task"] = lambda cloud: written.extend(m.extra[SETTING] for m in cloud.alive())
        made = self.pod("web", steps.container("sh", "-c", "echo hello; exec sleep 100000", name="main"), kind="vsphere")
        self.assertEqual("vsphere", made.kind)
        (machine,) = self.cloud.alive()
        (record,) = self.records()
        guest, instance = machine.guest, self.inspect("web")
        self.assertEqual(("running", "vsphere"), (instance.state, instance.instance_kind))
        self.assertEqual({"token", "cluster", "node", "vm", "instance", "lease", "Name"}, set(machine.tags))
        self.assertEqual((record.id, "pod-" + machine.tags["instance"]), (machine.tags["vm"], record.name))
        nacre_test.until(lambda: self.logs("web") == b"hello\n")
        self.assertEqual("web\n", self.sh("web", "hostname"))
        # A process without any right could ask the host: there is nothing to hear any more, and nothing was asked beside this.
        self.assertGreater(len(written[0]), 1000)
        self.assertEqual(("-", machine.address), (machine.extra[SETTING], machine.extra["guestinfo.nacre.address"]))
        self.assertEqual([f"info-get {SETTING}", f"info-set {SETTING} -", "info-set guestinfo.nacre.address 169.254.169.15"],
                         guest.backdoor.asked)
        # A workload that tells the host another address does not move its pod.
        machine.extra["guestinfo.nacre.address"], lists = "10.9.9.9", self.cloud.calls["FindByInventoryPath"]
        nacre_test.until(lambda: self.cloud.calls["FindByInventoryPath"] > lists + 2)
        self.assertEqual([machine.address], [r.address for r in self.records()])
        # The daemon goes, and the next one finds the machine as it was.
        self.node.stop()
        self.node.start()
        self.assertEqual("running", self.inspect("web").state)
        self.assertEqual("web\n", self.sh("web", "hostname"))
        self.assertEqual([machine], self.cloud.alive())
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="web", grace_ms=100), timeout=60)
        self.assertEqual("exited", self.inspect("web").state)
        self.none_left()
        self.assertFalse(guest.alive)

    def containers_come_and_go(self, api, pod, config, logs):
        """In a sandbox: created, started, seen, executed in, logged, stopped, removed; what it cannot have is refused by name."""
        def create(name, *command, **more):
            return api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=pod, sandbox_config=config, config=cri.ContainerConfig(
                metadata=cri.ContainerMetadata(name=name), image=cri.ImageSpec(image="busybox"), command=command, log_path=name + ".log",
                **more))).container_id

        def state(container):
            return api.ContainerStatus(cri.ContainerStatusRequest(container_id=container)).status.state
        one = create("one", "sh", "-c", "echo $(hostname); exec sleep 1000")
        self.assertEqual(cri.CONTAINER_CREATED, state(one))
        api.StartContainer(cri.StartContainerRequest(container_id=one))
        ran = api.ExecSync(cri.ExecSyncRequest(container_id=one, cmd=["sh", "-c", "echo out; echo err >&2; exit 3"]))
        self.assertEqual((b"out\n", b"err\n", 3), (ran.stdout, ran.stderr, ran.exit_code))
        with open(os.path.join(logs, "one.log"), encoding="ascii") as f:
            nacre_test.until(lambda: " F web\n" in f.read(), what="its line in the kubelet's file")
        # Over the end of the daemon.
        os.kill(self.node.pid, signal.SIGKILL)
        self.node.wait()
        self.node.start()
        api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.assertEqual(cri.CONTAINER_RUNNING, state(one))
        self.assertFails(Code.UNIMPLEMENTED, lambda: create("two", "true", mounts=[cri.Mount(host_path=logs, container_path="/x")]),
                         "config.mounts[0].host_path")
        api.StopContainer(cri.StopContainerRequest(container_id=one, timeout=0))
        self.assertEqual(cri.CONTAINER_EXITED, state(one))
        api.RemoveContainer(cri.RemoveContainerRequest(container_id=one))
        self.assertEqual([], list(api.ListContainers(cri.ListContainersRequest()).containers))

    def test_sandbox_and_its_power_off(self):
        """That stops a machine of this cloud, which has to be ended all the same. By the kubelet's interface."""
        logs = tempfile.mkdtemp(prefix="nacre-cri-")
        self.addCleanup(shutil.rmtree, logs)
        api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.assertEqual({"vsphere"}, {h.name for h in api.Status(cri.StatusRequest()).runtime_handlers} & {"ec2", "gce", "vsphere"})
        config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="web", uid="1", namespace="tests"), hostname="web",
                                      log_directory=logs)
        pod = api.RunPodSandbox(cri.RunPodSandboxRequest(config=config, runtime_handler="vsphere"),
                                timeout=120 * nacre_test.SLOWNESS).pod_sandbox_id
        (machine,) = self.cloud.alive()
        status = api.PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=pod)).status
        self.assertEqual((machine.address, "vsphere", cri.SANDBOX_READY), (status.network.ip, status.runtime_handler, status.state))
        self.containers_come_and_go(api, pod, config, logs)
        api = cri_grpc.RuntimeServiceStub(self.node.channel)
        machine.guest.end()
        self.none_left()
        nacre_test.until(lambda: api.PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=pod)).status.state == cri.SANDBOX_NOTREADY)
        api.RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=pod), timeout=60)


class Refused(cloud_pods.CloudTest):
    FAKE = fake_vsphere

    def test_refusals(self):
        mount = runtime_pb2.Mount(source="/tmp", target="/data")
        self.assertFails(Code.UNIMPLEMENTED, lambda: self.pod("web", steps.container("true", mounts=[mount]), kind="vsphere"), '"vsphere"',
                         "read-only")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.pod("web", kind="gce"), "cloud.vsphere", "not gce")
        self.cloud.broken["CloneVM_Task"].append(fake_vsphere.Fault("InsufficientResourcesFault", "Insufficient resources"))
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.pod("web", kind="vsphere"), "Insufficient resources")
        self.assertEqual({}, dict(self.cloud.machines))
        with nacre_test.Node(config=self.cloud.config(), env=self.cloud.env()) as node:
            with self.assertRaises(grpc.RpcError) as caught:
                node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name="web"), kind="vsphere",
                                                              containers=[steps.container("true")]))
            self.assertIn("cloud.vsphere.agent_image", caught.exception.details())


@faults.spread
class Crashes(cloud_pods.CloudTest):
    """The daemon ends behind the create call, and in front of the end: no machine is left."""

    FAKE = fake_vsphere

    @faults.for_each([p for p in faults.places("far") if p in ("far.run+", "far.end")])
    def killed_at(self, place):
        self.crash(place, "vsphere")


if __name__ == "__main__":
    unittest.main()
