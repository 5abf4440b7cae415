# SPDX-License-Identifier: Apache-2.0
"""What the tests of the streaming server have in common: a node with its first URL given out, containers, ports."""
import subprocess

import nacre_test
from nacre_test import until

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]


class StreamsTest(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\ncri:\n  network: builtin\n"

    @classmethod
    def prepare(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        # The first URL has the daemon listen.
        api = cri_grpc.RuntimeServiceStub(cls.node.channel)
        one = cls.make(api, "begin")
        api.Exec(cri.ExecRequest(container_id=one, cmd=["true"], stdout=True))
        cls.node.clear()

    @staticmethod
    def make(api, name, *command, **more):
        metadata = cri.PodSandboxMetadata(name=name, uid=name, namespace="tests")
        pod = api.RunPodSandbox(cri.RunPodSandboxRequest(config=cri.PodSandboxConfig(metadata=metadata))).pod_sandbox_id
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name="one"), image=cri.ImageSpec(image="busybox"),
                                     command=command or ["sleep", "1000"], **more)
        one = api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=pod, config=config)).container_id
        api.StartContainer(cri.StartContainerRequest(container_id=one))
        return one

    def setUp(self):
        self.api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.addCleanup(self.node.clear)

    SERVER = "while :; do nc -l -p 80 -e sh -c 'read x; echo got $x; cat'; done"

    def forward_url(self, container, *ports):
        pod = self.api.ContainerStatus(cri.ContainerStatusRequest(container_id=container), wait_for_ready=True)
        pod, = [c.pod_sandbox_id for c in self.api.ListContainers(cri.ListContainersRequest()).containers if c.id == pod.status.id]
        return self.api.PortForward(cri.PortForwardRequest(pod_sandbox_id=pod, port=ports or [80])).url

    def until_listening(self, container):
        table = cri.ExecSyncRequest(container_id=container, cmd=["cat", "/proc/net/tcp", "/proc/net/tcp6"])
        until(lambda: b":0050" in self.api.ExecSync(table).stdout, what="it listens")

    @staticmethod
    def pair(c, port, number):
        """Streams of SPDY for one connection to a port."""
        error = c.open(streamType="error", port=str(port), requestID=str(number))
        data = c.open(streamType="data", port=str(port), requestID=str(number))
        c.send(error, b"", fin=True)
        return data, error
