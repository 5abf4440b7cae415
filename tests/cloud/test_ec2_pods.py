#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pods of kind ec2: a machine of the fake's boots, enrols over the network and runs containers; however that goes wrong, none is left."""
import base64
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import types
import unittest

import grpc

import cloud_pods
import fake_ec2
import fake_guest
import faults
import host
import nacre_test
import spdy
import steps
from cri_streams import StreamsTest
from nacre_test import nacre_pb2, runtime_pb2

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode
MARK = b"#nacre-boot\n"
CLOCK = 2                                                            # the tag of wall_clock_ns (wire/message/bootmsg.c)


def older(user_data, seconds):
    """The same user-data, written so long ago."""
    frame = bytearray(base64.b64decode(user_data.removeprefix(MARK)))
    at = 12
    while struct.unpack_from("<H", frame, at)[0] != CLOCK:
        at += 4 + struct.unpack_from("<H", frame, at + 2)[0]
    clock, = struct.unpack_from("<Q", frame, at + 4)
    struct.pack_into("<Q", frame, at + 4, clock - seconds * 10 ** 9)
    return MARK + base64.b64encode(frame) + b"\n"


class CloudTest(cloud_pods.CloudTest):
    FAKE = fake_ec2


class Machines(cloud_pods.BootTest):
    """With a guest set as the agent's image, and machines that boot it."""

    FAKE = fake_ec2

    def test_life(self):
        made = self.pod("web", steps.container("sh", "-c", "echo hello; exec sleep 100000", name="main"), kind="ec2")
        self.assertEqual("ec2", made.kind)
        (machine,) = self.cloud.alive()
        instance = self.inspect("web")
        self.assertEqual(("running", "ec2"), (instance.state, instance.instance_kind))
        # Tags and user-data: whose it is, and how it enrols. No key is in there.
        (record,) = self.records()
        self.assertEqual({"nacre-cluster", "nacre-node", "nacre-vm", "nacre-instance", "nacre-lease", "Name"}, set(machine.tags))
        self.assertEqual((record.id, "pod-" + machine.tags["nacre-instance"]), (machine.tags["nacre-vm"], record.name))
        self.assertTrue(machine.user_data.startswith(MARK) and len(machine.user_data) < 4096, machine.user_data)
        self.assertEqual("small", machine.parameters["InstanceType"])
        nacre_test.until(lambda: self.logs("web") == b"hello\n")
        # It is another kernel, with the pod's name, and the network of its cloud.
        self.assertEqual("web\n", self.sh("web", "hostname"))
        self.assertIn("inet 169.254.169.15/24", self.sh("web", "ip addr"))
        # What was written for the agent is out of reach of what runs there, and so is the agent.
        asked = machine.guest.asked
        for address, port in (("169.254.169.254", 80), ("169.254.169.15", 7474), ("127.0.0.1", 7474)):
            out, err, code = self.exec("web", "sh", "-c", f"echo | nc -w 2 {address} {port}")
            self.assertEqual((b"", 1), (out, code), (address, err))
        self.assertEqual(asked, machine.guest.asked)
        # Standard input, and a status.
        self.assertEqual((b"", b"", 7), self.exec("web", "sh", "-c", "exit 7"))
        self.restarts()
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="web", grace_ms=100), timeout=60)
        self.assertEqual("exited", self.inspect("web").state)
        self.none_left()
        self.assertFalse(machine.guest.alive)

    def test_deleted_while_it_runs(self):
        """By somebody else: the pod ends, its status says of what, and no other machine is made for it."""
        self.pod("web", steps.container("sleep", "100000"), kind="ec2")
        (machine,) = self.cloud.alive()
        machine.reason = "Client.UserInitiatedShutdown: User initiated shutdown"
        machine.ended = self.cloud.now()
        machine.guest.end()
        nacre_test.until(lambda: self.inspect("web").state == "failed", what="the pod has failed")
        self.assertIn("UserInitiatedShutdown", self.inspect("web").reason)
        self.none_left()
        self.assertEqual(1, len(self.cloud.machines))

    # -- by the kubelet's interface --

    def cri(self):
        return cri_grpc.RuntimeServiceStub(self.node.channel)

    def sandbox_config(self, name, **more):
        return cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name=name, uid="uid-" + name, namespace="tests"), hostname=name,
                                    log_directory=self.logs_of_pods, **more)

    def create(self, sandbox, name, *command, **more):
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name), image=cri.ImageSpec(image="busybox"), command=command,
                                     log_path=name + ".log", **more)
        return self.cri().CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=config)).container_id

    def lines(self, name):
        """What the kubelet's file has: (text, whether it is no mark)."""
        with open(os.path.join(self.logs_of_pods, name + ".log"), encoding="ascii") as f:
            return [line.split(" ", 3)[3].rstrip("\n") for line in f if ":at=" not in line]

    def test_sandbox(self):
        """A sandbox of the handler ec2: containers come and go in it, their logs are the kubelet's files, whatever becomes of the daemon."""
        self.logs_of_pods = tempfile.mkdtemp(prefix="nacre-cri-")
        self.addCleanup(shutil.rmtree, self.logs_of_pods)
        secret = os.path.join(self.logs_of_pods, "secret")
        os.mkdir(secret)
        subprocess.run(["mount", "-t", "tmpfs", "none", secret], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", secret], check=True)
        with open(os.path.join(secret, "token"), "w", encoding="ascii") as f:
            f.write("first")
        linux = cri.LinuxPodSandboxConfig(resources=cri.LinuxContainerResources(memory_limit_in_bytes=4 << 30, cpu_quota=250000))
        made = self.cri().RunPodSandbox.future(
            cri.RunPodSandboxRequest(config=self.sandbox_config("web", linux=linux), runtime_handler="ec2"),
            timeout=120 * nacre_test.SLOWNESS)
        nacre_test.until(self.cloud.alive, what="a machine")
        (machine,) = self.cloud.alive()
        # Meanwhile: user-data outlive what they are for. A machine that starts with old ones serves nobody, and switches itself off.
        late = fake_guest.Guest(self.cloud, 99, older(machine.user_data, 16 * 60), fake_ec2.Metadata)
        self.addCleanup(late.close)
        pod = made.result().pod_sandbox_id
        self.assertEqual("big", machine.parameters["InstanceType"])
        status = self.cri().PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=pod)).status
        self.assertEqual((machine.address, "ec2", cri.SANDBOX_READY), (status.network.ip, status.runtime_handler, status.state))
        mount = cri.Mount(host_path=secret, container_path="/secret", readonly=True)
        one = self.create(pod, "one", "sh", "-c", "echo $(hostname) $(cat /secret/token); while ! [ -e /go ]; do sleep 0.1; done; echo over",
                          mounts=[mount])
        self.assertEqual(cri.CONTAINER_CREATED, self.container(one).state)
        self.cri().StartContainer(cri.StartContainerRequest(container_id=one))
        nacre_test.until(lambda: self.lines("one") == ["web first"], what="its first line")
        # The kubelet has renamed the file; then the daemon is killed. Nothing is lost, nothing is there twice.
        path = os.path.join(self.logs_of_pods, "one.log")
        os.rename(path, path + ".old")
        self.cri().ReopenContainerLog(cri.ReopenContainerLogRequest(container_id=one))
        self.assertEqual([], self.lines("one"))
        os.kill(self.node.pid, signal.SIGKILL)
        self.node.wait()
        self.node.start()
        ran = self.cri().ExecSync(cri.ExecSyncRequest(container_id=one, cmd=["sh", "-c", "echo out; echo err >&2; touch /go; exit 3"]))
        self.assertEqual((b"out\n", b"err\n", 3), (ran.stdout, ran.stderr, ran.exit_code))
        nacre_test.until(lambda: self.container(one).state == cri.CONTAINER_EXITED, what="it has ended")
        self.assertEqual(["over"], self.lines("one"))
        # A second one of the same image and volume, which is stopped. What it cannot have is refused, and leaves nothing.
        for field, more in (("config.mounts[0].host_path", {"mounts": [cri.Mount(host_path=secret, container_path="/x")]}),
                            ("privileged", {"linux": cri.LinuxContainerConfig(
                                security_context=cri.LinuxContainerSecurityContext(privileged=True))})):
            self.assertFails(Code.UNIMPLEMENTED, lambda more=more: self.create(pod, "two", "true", **more), field)
        two = self.create(pod, "two", "sh", "-c", StreamsTest.SERVER, mounts=[mount])
        self.cri().StartContainer(cri.StartContainerRequest(container_id=two))
        self.assertEqual(b"first", self.cri().ExecSync(cri.ExecSyncRequest(container_id=two, cmd=["cat", "/secret/token"])).stdout)
        c = spdy.Connection(self.cri().PortForward(cri.PortForwardRequest(pod_sandbox_id=pod)).url, protocols=("portforward.k8s.io",))
        data, error = StreamsTest.pair(c, 8089, 1)
        self.assertTrue(c.until(lambda: {data, error} <= c.ended))
        self.assertIn(b"Connection refused", c.received[error])
        StreamsTest.until_listening(types.SimpleNamespace(api=self.cri()), two)
        data, error = StreamsTest.pair(c, 80, 2)
        c.send(data, b"hello\n")
        self.assertTrue(c.until(lambda: b"got hello\n" in c.received.get(data, b"") or error in c.ended))
        self.assertEqual(b"", c.received.get(error, b""))
        c.close()
        self.cri().StopContainer(cri.StopContainerRequest(container_id=two, timeout=0))
        self.assertEqual(cri.CONTAINER_EXITED, self.container(two).state)
        self.cri().RemoveContainer(cri.RemoveContainerRequest(container_id=two))
        self.assertEqual([one], [c.id for c in self.cri().ListContainers(cri.ListContainersRequest()).containers])
        self.cri().StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=pod), timeout=60)
        self.none_left()
        self.cri().RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=pod), timeout=60)
        self.assertEqual([], list(self.cri().ListPodSandbox(cri.ListPodSandboxRequest()).items))
        nacre_test.until(lambda: not late.alive, what="it has switched itself off")
        self.assertIn(b"the token in the user-data of this machine has ended", late.console())

    def kubelet_file(self, uid, *names, text=None):
        """What a kubelet makes for a pod: a directory, or a file with a text."""
        path = os.path.join(self.logs_of_pods, "pods", uid, *names)
        os.makedirs(path if text is None else os.path.dirname(path), exist_ok=True)
        if text is not None:
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
        return path

    def test_volumes_of_a_kubelet(self):
        """emptyDir and termination file are the machine's own, etc-hosts and other files that are only read are sent; the rest is refused."""
        self.logs_of_pods = tempfile.mkdtemp(prefix="nacre-cri-")
        self.addCleanup(shutil.rmtree, self.logs_of_pods)
        empty = self.kubelet_file("uid-web", "volumes", "kubernetes.io~empty-dir", "work")
        said = self.kubelet_file("uid-web", "containers", "one", "0a1b2c3d", text="")
        hosts = self.kubelet_file("uid-web", "etc-hosts", text="127.0.0.1 localhost\n10.1.2.3 alias\n")
        key = self.kubelet_file("uid-web", "volume-subpaths", "config", "one", "0", text="key of config")
        other = self.kubelet_file("uid-other", "volumes", "kubernetes.io~empty-dir", "work")
        pod = self.cri().RunPodSandbox(cri.RunPodSandboxRequest(config=self.sandbox_config("web"), runtime_handler="ec2"),
                                       timeout=120 * nacre_test.SLOWNESS).pod_sandbox_id

        def mounts(*more):
            return [cri.Mount(host_path=empty, container_path="/work"), cri.Mount(host_path=hosts, container_path="/etc/hosts"), *more]

        def run(container, *command):
            got = self.cri().ExecSync(cri.ExecSyncRequest(container_id=container, cmd=["sh", "-c", *command]))
            return got.stdout.decode(), got.exit_code

        for path in (other, os.path.dirname(empty), os.path.dirname(key), key):
            with self.subTest(path):
                self.assertFails(Code.UNIMPLEMENTED, lambda path=path: self.create(pod, "one", "true", mounts=mounts(
                    cri.Mount(host_path=path, container_path="/x"))), "config.mounts[2].host_path", "read-only")
        one = self.create(pod, "one", "sleep", "1000", linux=cri.LinuxContainerConfig(
            security_context=cri.LinuxContainerSecurityContext(run_as_user=cri.Int64Value(value=1000))), mounts=mounts(
                cri.Mount(host_path=said, container_path="/dev/termination-log"), cri.Mount(host_path=key, container_path="/etc/key", readonly=True)))
        self.cri().StartContainer(cri.StartContainerRequest(container_id=one))
        self.assertEqual(("", 0), run(one, "echo from-one > /work/file && echo last > /dev/termination-log"))
        self.assertEqual(("last\n", 0), run(one, "cat /dev/termination-log"))
        self.assertEqual(("key of config", 0), run(one, "cat /etc/key"))
        self.assertEqual("127.0.0.1 localhost\n10.1.2.3 alias\n", run(one, "cat /etc/hosts")[0])
        for path in ("/etc/hosts", "/etc/key"):
            self.assertEqual(("", 1), run(one, f"echo x 2>/dev/null >> {path}"))
        # A daemon that knows nothing of it any more; the directory is the same, and read-only where that was asked for.
        os.kill(self.node.pid, signal.SIGKILL)
        self.node.wait()
        self.node.start()
        two = self.create(pod, "two", "sleep", "1000", mounts=[
            cri.Mount(host_path=empty, container_path="/in", readonly=True), cri.Mount(host_path=hosts, container_path="/etc/hosts")])
        self.cri().StartContainer(cri.StartContainerRequest(container_id=two))
        self.assertEqual(("from-one\n", 0), run(two, "cat /in/file"))
        self.assertEqual(1, run(two, "echo x 2>/dev/null > /in/file")[1])
        self.assertIn("alias", run(two, "cat /etc/hosts")[0])
        # Nothing of it is on the node.
        self.assertEqual([], os.listdir(empty))
        self.assertEqual(0, os.path.getsize(said))
        self.cri().RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=pod), timeout=60)
        self.none_left()

    def container(self, container):
        return self.cri().ContainerStatus(cri.ContainerStatusRequest(container_id=container)).status

    def restarts(self):
        """The daemon is killed: pod and machine are what they were."""
        os.kill(self.node.pid, signal.SIGKILL)
        self.node.wait()
        self.node.start()
        self.assertEqual("running", self.inspect("web").state)
        self.assertEqual((b"again\n", b"", 0), self.exec("web", "echo", "again"))
        self.assertEqual(1, len(self.cloud.alive()))
        self.assertEqual(b"hello\n", self.logs("web"))



class Nobody(CloudTest):
    """In the machine nobody answers: how it goes away again."""

    def begin(self, name="web"):
        """A pod that waits for its machine, in a thread; the machine."""
        def run():
            try:
                self.pod(name, kind="ec2")
            except grpc.RpcError as e:
                self.error = e
        self.error = None
        self.thread = threading.Thread(target=run)
        self.thread.start()
        self.addCleanup(self.thread.join)
        nacre_test.until(lambda: self.cloud.alive() and any(r.address for r in self.records()), what="a machine with an address")
        return self.cloud.alive()[0]

    def failed(self, *words):
        self.thread.join(60)
        self.assertFalse(self.thread.is_alive())
        self.assertIsNotNone(self.error)
        for word in words:
            self.assertIn(word, self.error.details())

    def test_removed_while_it_boots(self):
        self.begin()
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="web", force=True), timeout=60)
        self.failed()
        self.none_left()

    def test_ended_by_somebody_else(self):
        machine = self.begin()
        machine.reason = "Server.SpotInstanceTermination: Spot instance termination"
        machine.ended = self.cloud.now()
        self.failed("its machine in the cloud is", "SpotInstanceTermination")
        self.none_left()

    def test_stopped_by_somebody_else(self):
        self.begin().stopped = True
        self.failed("its machine in the cloud is stopped")
        self.none_left()

    def test_record_removed_by_hand(self):
        self.begin()
        self.node.cli("cloud", "rm", "--force", self.records()[0].name)
        self.failed("its machine in the cloud is")
        self.none_left()

    def test_no_room(self):
        self.cloud.capacity = 0
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.pod("web", kind="ec2"), "InsufficientInstanceCapacity")
        self.assertEqual({}, dict(self.cloud.machines))
        self.assertFails(Code.NOT_FOUND, lambda: self.inspect("web"), "web")

    def test_what_the_cloud_refuses(self):
        """A quota, an image that is not there, a right that lacks: its words are the answer, and nothing is left."""
        for code, status, word, text in (
                (Code.RESOURCE_EXHAUSTED, 400, "VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of 5 allows"),
                (Code.INVALID_ARGUMENT, 400, "InvalidAMIID.NotFound", "The image id '[ami-a9e47]' does not exist"),
                (Code.FAILED_PRECONDITION, 403, "UnauthorizedOperation", "You are not authorized to perform this operation.")):
            with self.subTest(word):
                self.cloud.fail["RunInstances"].append((status, word, text))
                self.assertFails(code, lambda: self.pod("web", kind="ec2"), word, text)
                self.assertEqual({}, dict(self.cloud.machines))
                self.none_left()
                # Not even its name: the same call succeeds in taking it once more.
                self.assertFails(Code.NOT_FOUND, lambda: self.inspect("web"), "web")
                self.assertEqual([], list(self.node.workloads.List(nacre_pb2.ListRequest()).workloads))

    def test_deleted_without_a_word(self):
        """The cloud does not know it any more while the node waits for it."""
        machine = self.begin()
        with self.cloud.lock:
            del self.cloud.machines[machine.id]
        self.failed("its machine in the cloud is", "does not show it any more")
        self.none_left()

    def test_throttled_and_lost_answers(self):
        self.cloud.throttle = 3
        self.cloud.drop["RunInstances"] = 2
        self.begin()
        self.assertEqual(1, len(self.cloud.alive()))

    def test_daemon_ends_while_it_boots(self):
        """Whoever asked asks again: the machine goes."""
        self.begin()
        os.kill(self.node.pid, signal.SIGKILL)
        self.node.wait()
        self.node.start()
        self.failed()
        nacre_test.until(lambda: not self.cloud.alive())
        self.assertEqual(1, len(self.cloud.machines))

    def test_node_reboots(self):
        """Its instances are lost, and their machines are found by their records."""
        self.begin()
        self.node.kill()
        host.end_cgroup(self.node.cgroup())
        with open(os.path.join(self.node.run, "boot"), "w", encoding="ascii") as f:
            f.write("00000000-0000-0000-0000-000000000000\n")
        self.node.start()
        self.failed()
        self.none_left()

    def test_limits_choose_the_type(self):
        limits = runtime_pb2.Resources(memory=4 << 30)
        thread = threading.Thread(target=lambda: self.assertRaises(grpc.RpcError, lambda: self.pod("web", kind="ec2", resources=limits)))
        thread.start()
        nacre_test.until(self.cloud.alive)
        self.assertEqual("big", self.cloud.alive()[0].parameters["InstanceType"])
        nacre_test.until(lambda: any(r.address for r in self.records()))
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="web", force=True), timeout=60)
        thread.join(60)

    def test_refusals(self):
        """What a machine in a cloud cannot have is refused before there is one."""
        mount = runtime_pb2.Mount(source="/tmp", target="/data")
        for code, call, *words in (
                (Code.UNIMPLEMENTED, lambda: self.pod("web", steps.container("true", mounts=[mount]), kind="ec2"), "read-only"),
                (Code.FAILED_PRECONDITION, lambda: self.pod("web", kind="ec2", network="host"), '"ec2"'),
                (Code.INVALID_ARGUMENT, lambda: self.pod("web", kind="gce"), "gce")):
            with self.subTest(words):
                with self.assertRaises(grpc.RpcError) as caught:
                    call()
                self.assertIn(caught.exception.code(), (code, Code.FAILED_PRECONDITION), caught.exception.details())
                for word in words:
                    self.assertIn(word, caught.exception.details())
        self.assertEqual({}, dict(self.cloud.machines))

    def test_refusals_of_sandboxes(self):
        """The same by the kubelet's interface, by the names that it has."""
        api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.assertIn("ec2", {h.name for h in api.Status(cri.StatusRequest()).runtime_handlers})
        host = cri.NODE
        options = {"network": cri.NamespaceOption(network=host), "pid": cri.NamespaceOption(pid=host), "ipc": cri.NamespaceOption(ipc=host),
                   "userns_options": cri.NamespaceOption(userns_options=cri.UserNamespace(
                       mode=cri.POD, uids=[cri.IDMapping(host_id=65536, length=65536)], gids=[cri.IDMapping(host_id=65536, length=65536)]))}
        linux = {f"config.linux.security_context.namespace_options.{k}":
                 cri.LinuxPodSandboxConfig(security_context=cri.LinuxSandboxSecurityContext(namespace_options=v)) for k, v in options.items()}
        linux["config.linux.security_context.privileged"] = cri.LinuxPodSandboxConfig(
            security_context=cri.LinuxSandboxSecurityContext(privileged=True))
        linux["config.linux.sysctls"] = cri.LinuxPodSandboxConfig(sysctls={"kernel.shm_rmid_forced": "1"})
        wishes = [(field, {"linux": value}) for field, value in linux.items()]
        wishes.append(("config.port_mappings", {"port_mappings": [cri.PortMapping(host_port=80, container_port=80)]}))
        for field, more in wishes:
            config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="web", uid="1", namespace="tests"), **more)
            with self.subTest(field):
                self.assertFails(Code.UNIMPLEMENTED, lambda config=config: api.RunPodSandbox(
                    cri.RunPodSandboxRequest(config=config, runtime_handler="ec2")), field)
        self.assertEqual({}, dict(self.cloud.machines))

    def test_a_sandbox_without_a_machine(self):
        """What the cloud refuses is the answer of the call, and nothing of the sandbox is left."""
        api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.cloud.capacity = 0
        config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="web", uid="1", namespace="tests"))
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: api.RunPodSandbox(
            cri.RunPodSandboxRequest(config=config, runtime_handler="ec2")), "InsufficientInstanceCapacity")
        self.assertEqual(0, len(api.ListPodSandbox(cri.ListPodSandboxRequest()).items))

    def test_without_an_image(self):
        with nacre_test.Node(config=self.cloud.config(), env=self.cloud.env()) as node:
            with self.assertRaises(grpc.RpcError) as caught:
                node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name="web"), kind="ec2",
                                                              containers=[steps.container("true")]))
            self.assertEqual(Code.FAILED_PRECONDITION, caught.exception.code())
            self.assertIn("cloud.ec2.agent_image", caught.exception.details())
            status = cri_grpc.RuntimeServiceStub(node.channel).Status(cri.StatusRequest(verbose=True))
            self.assertNotIn("ec2", {h.name for h in status.runtime_handlers})


class NeverCalls(CloudTest):
    """A machine that runs, and in which nobody answers, is ended at cloud.boot_limit."""

    BOOT = "2s"

    def test_ended_at_the_limit(self):
        begun = self.cloud.now()
        self.assertFails(Code.UNAVAILABLE, lambda: self.pod("web", kind="ec2"), "cloud.boot_limit", "port 7474")
        self.assertGreaterEqual(self.cloud.now() - begun, 2)
        (machine,) = self.cloud.machines.values()
        self.none_left()
        self.assertIsNotNone(machine.ended)


@faults.spread
class Crashes(CloudTest):
    """The daemon ends at each named place, in front of and behind the step."""

    @faults.for_each(faults.places("far"))
    def killed_at(self, place):
        self.crash(place, "ec2")


if __name__ == "__main__":
    unittest.main()
