# SPDX-License-Identifier: Apache-2.0
"""What sandboxes and containers use, by Kubernetes' interface."""
import socket
import subprocess
import unittest

import grpc

import host
import nacre_test

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode


class Stats(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\ncri:\n  network: builtin\n"

    @classmethod
    def prepare(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        host.show_own_devices()
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    def setUp(self):
        self.api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.addCleanup(self.node.clear)

    def run_sandbox(self, name, **more):
        config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name=name, uid="1", namespace="tests"), hostname=name, **more)
        return self.api.RunPodSandbox(cri.RunPodSandboxRequest(config=config)).pod_sandbox_id

    def create(self, sandbox, name, *command, start=True, **more):
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name), image=cri.ImageSpec(image="busybox"),
                                     command=command or ["sleep", "1000"], **more)
        one = self.api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=config)).container_id
        if start:
            self.api.StartContainer(cri.StartContainerRequest(container_id=one))
        return one

    def stats(self, container):
        return self.api.ContainerStats(cri.ContainerStatsRequest(container_id=container)).stats

    def pod(self, sandbox):
        return self.api.PodSandboxStats(cri.PodSandboxStatsRequest(pod_sandbox_id=sandbox)).stats

    def listed(self, **filter_):
        f = cri.ContainerStatsFilter(**filter_)
        found = self.api.ListContainerStats(cri.ListContainerStatsRequest(filter=f)).stats
        answers = list(self.api.StreamContainerStats(cri.StreamContainerStatsRequest(filter=f)))
        self.assertTrue(all(a.container_stats for a in answers))
        self.assertEqual([s.attributes.id for s in found], [s.attributes.id for a in answers for s in a.container_stats])
        return [s.attributes.id for s in found]

    def pods(self, **filter_):
        f = cri.PodSandboxStatsFilter(**filter_)
        found = self.api.ListPodSandboxStats(cri.ListPodSandboxStatsRequest(filter=f)).stats
        answers = list(self.api.StreamPodSandboxStats(cri.StreamPodSandboxStatsRequest(filter=f)))
        self.assertEqual([s.attributes.id for s in found], [s.attributes.id for a in answers for s in a.pod_sandbox_stats])
        return [s.attributes.id for s in found]

    def test_a_container_that_works(self):
        pod = self.run_sandbox("work", labels={"a": "b"}, annotations={"c": "d"})
        one = self.create(pod, "one", "sh", "-c", "while :; do :; done", labels={"role": "one"}, annotations={"x": "y"})
        before = self.stats(one)
        self.assertEqual((one, "one", {"role": "one"}, {"x": "y"}), (before.attributes.id, before.attributes.metadata.name,
                                                                   dict(before.attributes.labels), dict(before.attributes.annotations)))
        self.assertTrue(before.cpu.timestamp and before.memory.timestamp)
        after = nacre_test.until(lambda: (lambda s: s if s.cpu.usage_core_nano_seconds.value > 50_000_000 else None)(self.stats(one)),
                                 what="it has worked for 50 ms")
        self.assertGreater(after.cpu.timestamp, before.cpu.timestamp)
        # The whole has what a part has, and more.
        whole = self.pod(pod)
        self.assertEqual((pod, "work", {"a": "b"}, {"c": "d"}), (whole.attributes.id, whole.attributes.metadata.name,
                                                                dict(whole.attributes.labels), dict(whole.attributes.annotations)))
        self.assertGreaterEqual(whole.linux.cpu.usage_core_nano_seconds.value, after.cpu.usage_core_nano_seconds.value)
        self.assertEqual([one], [c.attributes.id for c in whole.linux.containers])
        self.assertEqual("eth0", whole.linux.network.default_interface.name)
        # What is sent to a pod is what it receives, and it answers that nobody listens.
        address = self.api.PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=pod)).status.network.ip
        before = whole.linux.network.default_interface

        def has_come():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.sendto(b"x" * 1000, (address, 9))
            now = self.pod(pod).linux.network.default_interface
            return now.rx_bytes.value >= before.rx_bytes.value + 1000 and now.tx_bytes.value > before.tx_bytes.value
        nacre_test.until(has_come, what="a packet was received and answered")

    def test_who_is_told_of(self):
        pods = [self.run_sandbox(f"pod{k}", labels={"k": str(k)}) for k in range(2)]
        ids = [self.create(pod, name, labels={"name": name}) for pod in pods for name in ("one", "two")]
        created = self.create(pods[0], "three", start=False)
        self.assertEqual(ids, self.listed())
        self.assertEqual(ids[:2], self.listed(pod_sandbox_id=pods[0]))
        self.assertEqual(ids[1:2], self.listed(id=ids[1]))
        self.assertEqual([ids[0], ids[2]], self.listed(label_selector={"name": "one"}))
        self.assertEqual([], self.listed(label_selector={"name": "none"}))
        self.assertEqual(pods, self.pods())
        self.assertEqual(pods[1:], self.pods(label_selector={"k": "1"}))
        self.assertEqual(pods[:1], self.pods(id=pods[0]))
        # One that does not run uses nothing, which is not 0.
        self.assertEqual((created, False), (self.stats(created).attributes.id, self.stats(created).HasField("cpu")))
        self.api.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=pods[0]))
        self.assertEqual((ids[2:], pods[1:]), (self.listed(), self.pods()))
        self.assertFalse(self.pod(pods[0]).linux.HasField("cpu"))
        self.assertFails(Code.NOT_FOUND, lambda: self.stats("0123456789abcdef"), "container_id: ")
        self.assertFails(Code.NOT_FOUND, lambda: self.pod("0123456789abcdef"), "pod_sandbox_id: ")

    def test_metrics(self):
        descriptors = self.api.ListMetricDescriptors(cri.ListMetricDescriptorsRequest()).descriptors
        keys = {d.name: list(d.label_keys) for d in descriptors}
        self.assertEqual((len(descriptors), True), (len(keys), all(d.help and d.label_keys for d in descriptors)))
        self.assertEqual([], list(self.api.ListPodSandboxMetrics(cri.ListPodSandboxMetricsRequest()).pod_metrics))
        pods = [self.run_sandbox(f"pod{k}") for k in range(10)]
        one = self.create(pods[0], "one", "sh", "-c", "exec 7</etc/passwd; sleep 1000 & touch /ready; wait",
                          linux=cri.LinuxContainerConfig(resources=cri.LinuxContainerResources(oom_score_adj=5)))
        self.create(pods[0], "created", start=False)
        self.api.ExecSync(cri.ExecSyncRequest(container_id=one, cmd=["sh", "-c", "until [ -e /ready ]; do sleep 0.05; done"]))
        told = self.api.ListPodSandboxMetrics(cri.ListPodSandboxMetricsRequest()).pod_metrics
        pieces = list(self.api.StreamPodSandboxMetrics(cri.StreamPodSandboxMetricsRequest()))
        self.assertEqual((pods, pods), ([p.pod_sandbox_id for p in told], [p.pod_sandbox_id for m in pieces for p in m.pod_sandbox_metrics]))
        self.assertEqual(2, len(pieces))
        self.assertEqual([one], [c.container_id for c in told[0].container_metrics])
        found = {}
        for whose in [told[0], *told[0].container_metrics]:
            for m in whose.metrics:
                self.assertEqual(len(keys[m.name]), len(m.label_values), m)
                labels = dict(zip(keys[m.name], m.label_values))
                self.assertTrue((labels["container"] in ("", "one"), labels["pod"], labels["namespace"]) == (True, "pod0", "tests"), labels)
                self.assertTrue(m.timestamp and labels["id"].startswith("/"))
                found.setdefault((labels["container"], m.name), []).append((labels, m.value.value))
        # The shell and its child, each with its four descriptors, of which none is a socket.
        for name, least in (("container_processes", 2), ("container_file_descriptors", 5), ("container_sockets", 0),
                            ("container_cpu_usage_seconds_total", 0), ("container_fs_inodes_total", 1), ("container_start_time_seconds", 1 << 30),
                            ("container_last_seen", 1 << 30), ("container_ulimits_soft", 1), ("container_spec_cpu_period", 100000)):
            self.assertGreaterEqual(found["one", name][0][1], least, name)
        self.assertEqual(2, found["one", "container_processes"][0][1])
        self.assertEqual(("busybox", one), tuple(found["one", "container_last_seen"][0][0][k] for k in ("image", "name")))
        self.assertEqual(("eth0", pods[0]), tuple(found["", "container_network_receive_bytes_total"][0][0][k] for k in ("interface", "name")))
        self.assertNotIn(("one", "container_network_receive_bytes_total"), found)
        self.assertNotIn(("", "container_spec_cpu_period"), found)
        # What is not counted here is absent.
        whole = self.pod(pods[0]).linux
        self.assertEqual(whole.memory.HasField("usage_bytes"), ("", "container_memory_usage_bytes") in found)


if __name__ == "__main__":
    unittest.main()
