# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of the runtime handler "vm": Kubernetes' pods in machines of their own, most cases in one machine."""
import os
import re
import shutil
import socket
import subprocess
import tempfile

import grpc

import host
import machines
import nacre_test
import spdy
from cri_streams import StreamsTest
from machines import load_tests  # noqa: F401
from nacre_test import until

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode
GIB = 1 << 30
SYSCTLS = {"net.ipv4.ip_local_port_range": "1024\t2000", "kernel.shm_rmid_forced": "1"}


class Machines(nacre_test.NodeTest):
    """Calls of a kubelet, and a node with a guest set."""
    CONFIG = "network:\n  default: default\ncri:\n  network: builtin\n"

    @classmethod
    def setUpClass(cls):
        cls.kernel = machines.need()
        super().setUpClass()

    @classmethod
    def prepare(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        host.show_own_devices()
        machines.build_set(cls.node)
        cls.node.cli("run", "--kind", "vm", "--rm", "busybox", "true")
        # The first one on a network has the daemon open its sockets.
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    @classmethod
    def tearDownClass(cls):
        """A daemon that was started again has fewer descriptors and helpers than the first one, and another authority, if any."""
        try:
            cls.node.clear()
            left = nacre_test.traces(cls.before, cls.node, but=("descriptor", "- process", "the authority"))
        finally:
            log = cls.node.log()
            said = cls.node.destroy()
        if left or said:
            raise AssertionError("\n".join(["left behind:", *left, said, log[-8000:]]))

    @property
    def api(self):
        return cri_grpc.RuntimeServiceStub(self.node.channel)

    @classmethod
    def config(cls, name, attempt=0, **more):
        metadata = cri.PodSandboxMetadata(name=name, uid="uid-" + name, namespace="tests", attempt=attempt)
        return cri.PodSandboxConfig(metadata=metadata, hostname="host-" + name, **more)

    @classmethod
    def run_sandbox(cls, name, **more):
        api = cri_grpc.RuntimeServiceStub(cls.node.channel)
        return api.RunPodSandbox(cri.RunPodSandboxRequest(config=cls.config(name, **more), runtime_handler="vm"), timeout=180).pod_sandbox_id

    def create(self, sandbox, name, *command, attempt=0, image="busybox", **more):
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name, attempt=attempt), image=cri.ImageSpec(image=image),
                                     command=command or ["sleep", "1000"], **more)
        return self.api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=config)).container_id

    def start(self, container):
        self.api.StartContainer(cri.StartContainerRequest(container_id=container))

    def begin(self, sandbox, name, *command, **more):
        container = self.create(sandbox, name, *command, **more)
        self.start(container)
        return container

    def status(self, container):
        return self.api.ContainerStatus(cri.ContainerStatusRequest(container_id=container)).status

    def sandbox(self, sandbox):
        return self.api.PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox)).status

    def ask(self, container, script, timeout=0):
        done = self.api.ExecSync(cri.ExecSyncRequest(container_id=container, cmd=["sh", "-c", script], timeout=timeout))
        return (done.stdout + done.stderr).decode()

    def stop(self, container, timeout=0):
        self.api.StopContainer(cri.StopContainerRequest(container_id=container, timeout=timeout))

    def remove(self, container):
        self.api.RemoveContainer(cri.RemoveContainerRequest(container_id=container))

    def ended(self, container):
        return until(lambda: self.status(container).state == cri.CONTAINER_EXITED and self.status(container), what="it has ended")

    def refused(self, code, words, call, *args, **more):
        with self.assertRaises(grpc.RpcError) as caught:
            call(*args, **more)
        self.assertEqual((code, True), (caught.exception.code(), words in caught.exception.details()), caught.exception.details())


class OneMachine(Machines):
    """Containers that come and go in one machine, which stays for all tests."""

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.place = tempfile.mkdtemp(prefix="nacre-criv-")
        cls.addClassCleanup(shutil.rmtree, cls.place)
        cls.logs = os.path.join(cls.place, "logs")
        os.mkdir(cls.logs)

    @classmethod
    def share(cls):
        cls.pod = cls.run_sandbox("web", log_directory=cls.logs, linux=cri.LinuxPodSandboxConfig(sysctls=SYSCTLS))

    def setUp(self):
        self.addCleanup(self.clear_containers)

    def clear_containers(self):
        for c in self.api.ListContainers(cri.ListContainersRequest()).containers:
            self.remove(c.id)

    def at(self, name, text=None):
        path = os.path.join(self.place, name)
        if text is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
        return path

    def lines(self, name):
        """Of a log, without the notes of where a daemon is to go on."""
        return [line for line in host.read(self.at("logs/" + name)).splitlines() if " P:file=" not in line]

    def mount(self, name, target, **more):
        return cri.Mount(host_path=os.path.join(self.place, name), container_path=target, **more)

    def shares(self):
        """What the machine has of the node by virtiofs, as the kernel knows it: {name: whether it is read-only}."""
        virtiofsd = next(p for p in host.cgroup_pids(self.node.cgroup()) if host.read(f"/proc/{p}/comm").startswith("virtiofsd"))
        rows = [line.split() for line in host.read(f"/proc/{virtiofsd}/mountinfo").splitlines()]
        return {row[4]: "ro" in row[5].split(",") for row in rows if re.fullmatch(r"/v[0-9]+", row[4])}

    def none_left(self):
        self.clear_containers()
        until(lambda: not self.shares(), what="nothing of the node is in the machine")

    # ---- the life of containers ----

    def test_life(self):
        status = self.sandbox(self.pod)
        self.assertEqual(("vm", cri.SANDBOX_READY, "web"), (status.runtime_handler, status.state, status.metadata.name))
        one = self.create(self.pod, "one", "sh", "-c", "uname -r; hostname; echo oops >&2; exec sleep 1000", log_path="one.log")
        self.assertEqual(cri.CONTAINER_CREATED, self.status(one).state)
        self.start(one)
        until(lambda: "oops" in host.read(self.at("logs/one.log")), what="its log is on the node")
        lines = [line.split(" ", 3) for line in self.lines("one.log")]
        self.assertEqual([["stdout", "F", self.kernel.version], ["stdout", "F", "host-web"], ["stderr", "F", "oops"]],
                         [line[1:] for line in sorted(lines, key=lambda line: line[1] == "stderr")])
        os.rename(self.at("logs/one.log"), self.at("logs/one.log.1"))
        self.api.ReopenContainerLog(cri.ReopenContainerLogRequest(container_id=one))
        self.assertEqual([], self.lines("one.log"))
        self.stop(one, 5)
        status = self.ended(one)
        self.assertEqual((143, "Error"), (status.exit_code, status.reason))
        self.assertTrue(status.created_at <= status.started_at <= status.finished_at, status)
        self.remove(one)
        self.remove(one)
        # Again and again, with the same name.
        for attempt in range(1, 4):
            two = self.begin(self.pod, "one", "sh", "-c", f"exit {attempt}", attempt=attempt)
            self.assertEqual(attempt, self.ended(two).exit_code)
            self.assertEqual([two], [c.id for c in self.api.ListContainers(cri.ListContainersRequest()).containers])
            self.remove(two)

    def test_containers_share_the_pod(self):
        self.begin(self.pod, "server", "sh", "-c", "while :; do echo pong | nc -l -p 90; done")
        client = self.begin(self.pod, "client")
        until(lambda: "pong" in self.ask(client, "nc 127.0.0.1 90 </dev/null"), what="the other one answers")

    def test_ports(self):
        one = self.begin(self.pod, "one", "sh", "-c", StreamsTest.SERVER)
        listens = lambda: re.search(r":0050 \S+ 0A ", self.ask(one, "cat /proc/net/tcp /proc/net/tcp6"))
        until(listens, what="it listens")
        c = spdy.Connection(self.api.PortForward(cri.PortForwardRequest(pod_sandbox_id=self.pod)).url, protocols=("portforward.k8s.io",))
        big = os.urandom(1 << 20)
        for n in range(2):
            data, error = StreamsTest.pair(c, 80, n)
            c.send(data, b"hello\n")
            self.assertTrue(c.until(lambda d=data: b"got hello\n" in c.received.get(d, b"")))
            for at in range(0, len(big), 1 << 16):
                c.send(data, big[at:at + (1 << 16)])
            c.send(data, b"", fin=True)
            self.assertTrue(c.until(lambda d=data, e=error: {d, e} <= c.ended))
            self.assertEqual((True, b""), (c.received[data] == b"got hello\n" + big, c.received.get(error, b"")))
            until(listens, what="it listens again")
        # A port where nobody listens is told so, and the others go on.
        data, error = StreamsTest.pair(c, 81, "x")
        self.assertTrue(c.until(lambda: {data, error} <= c.ended))
        self.assertIn(b"the port 81 of the pod: port 81: Connection refused", c.received[error])
        # A client that goes takes its connection along.
        data, _ = StreamsTest.pair(c, 80, "y")
        c.send(data, b"again\n")
        self.assertTrue(c.until(lambda: b"got again\n" in c.received.get(data, b"")))
        c.close()
        until(listens, what="its connection is gone")
        # So does one that takes back one stream, to a program that never ends by itself.
        two = self.begin(self.pod, "two", "sh", "-c", "nc -l -p 82 -e sleep 1000; exec sleep 1000")
        listens = lambda: re.search(r":0052 \S+ 0A ", self.ask(two, "cat /proc/net/tcp /proc/net/tcp6"))
        until(listens, what="it listens")
        c = spdy.Connection(self.api.PortForward(cri.PortForwardRequest(pod_sandbox_id=self.pod)).url, protocols=("portforward.k8s.io",))
        data, _ = StreamsTest.pair(c, 82, "z")
        until(lambda: not listens(), what="it is connected")
        c.reset(data)
        # A socket that nobody holds has no inode.
        rows = lambda: map(str.split, self.ask(two, "cat /proc/net/tcp /proc/net/tcp6").splitlines())
        until(lambda: not any(row[2].endswith(":0052") and row[9] != "0" for row in rows()), what="nobody holds the connection")
        c.close()

    def test_a_sysctl_that_its_kernel_lacks(self):
        bad = {"linux": cri.LinuxPodSandboxConfig(sysctls={"net.ipv4.no_such_name": "1"})}
        refused = lambda: self.refused(Code.FAILED_PRECONDITION, "net.ipv4.no_such_name", self.run_sandbox, "bad", **bad)
        # The first machine of a daemon has it start the issuer of certificates, which stays.
        self.node.restart()
        refused()
        before = self.node.baseline()
        refused()
        self.assertEqual([self.pod], [s.id for s in self.api.ListPodSandbox(cri.ListPodSandboxRequest()).items])
        self.assertEqual([], nacre_test.traces(before, self.node))

    def test_sysctls_are_the_machines(self):
        paths = ["/proc/sys/" + name.replace(".", "/") for name in SYSCTLS]
        one = self.begin(self.pod, "one")
        self.assertEqual("".join(v + "\n" for v in SYSCTLS.values()), self.ask(one, "cat " + " ".join(paths)))
        self.assertNotEqual(SYSCTLS["net.ipv4.ip_local_port_range"], host.read(paths[0]).strip())

    # ---- what is counted ----

    def test_stats(self):
        one = self.begin(self.pod, "one", "sh", "-c", "head -c 30000000 /dev/zero > /dev/shm/x; exec sleep 1000")
        two = self.create(self.pod, "two")
        until(lambda: "30000000" in self.ask(one, "wc -c /dev/shm/x"), what="its memory is in use")
        self.ask(one, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
        own = self.api.ContainerStats(cri.ContainerStatsRequest(container_id=one)).stats
        self.assertGreater(own.cpu.usage_core_nano_seconds.value, 0)
        self.assertGreater(own.memory.working_set_bytes.value, 30000000)
        pod = self.api.PodSandboxStats(cri.PodSandboxStatsRequest(pod_sandbox_id=self.pod)).stats
        self.assertEqual([one], [c.attributes.id for c in pod.linux.containers])
        # What the node gives, as its kernel knows it. (A guest may count time that the node had taken from it.)
        self.assertGreater(pod.linux.cpu.usage_core_nano_seconds.value, 0)
        self.assertGreater(pod.linux.memory.working_set_bytes.value, own.memory.working_set_bytes.value)
        listed = self.api.ListContainerStats(cri.ListContainerStatsRequest()).stats
        self.assertEqual([one], [c.attributes.id for c in listed])
        self.remove(two)
        # What is sent to a pod is what it receives, and it answers that nobody listens.
        before = pod.linux.network.default_interface
        self.assertEqual("eth0", before.name)
        address = self.sandbox(self.pod).network.ip

        def has_come():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.sendto(b"x" * 1000, (address, 9))
            pod = self.api.PodSandboxStats(cri.PodSandboxStatsRequest(pod_sandbox_id=self.pod)).stats
            now = pod.linux.network.default_interface
            return now.rx_bytes.value >= before.rx_bytes.value + 1000 and now.tx_bytes.value > before.tx_bytes.value
        until(has_come, what="a packet was received and answered")

    def test_metrics(self):
        one = self.begin(self.pod, "one")
        names = [d.name for d in self.api.ListMetricDescriptors(cri.ListMetricDescriptorsRequest()).descriptors]
        pod, = self.api.ListPodSandboxMetrics(cri.ListPodSandboxMetricsRequest()).pod_metrics
        self.assertEqual(self.pod, pod.pod_sandbox_id)
        own, = pod.container_metrics
        self.assertEqual(one, own.container_id)
        for metrics in pod.metrics, own.metrics:
            values = {m.name: m.value.value for m in metrics}
            self.assertGreater(values["container_cpu_usage_seconds_total"] + values["container_memory_usage_bytes"], 0)
            self.assertLessEqual(set(values), set(names))
            # What is not known is not said.
            self.assertNotIn("container_memory_mapped_file", values)

    def test_users(self):
        """What the kernel of the machine says, also to a daemon that comes later."""
        context = cri.LinuxContainerSecurityContext(run_as_user=cri.Int64Value(value=1000), run_as_group=cri.Int64Value(value=2000),
                                                    supplemental_groups=[1234, 50000])
        one = self.begin(self.pod, "one", linux=cri.LinuxContainerConfig(security_context=context))
        users = lambda: self.status(one).user.linux
        known = lambda: (users().uid, users().gid, sorted(users().supplemental_groups)) == (1000, 2000, [1234, 2000, 50000])
        until(known, what="its user is known")
        self.assertEqual("1000 2000 1234 50000", self.ask(one, "echo $(id -u) $(id -G)").strip())
        self.node.restart()
        until(known, what="its user is known again")

    # ---- volumes ----

    def test_directories_and_files_of_the_node(self):
        self.at("both/f", "both"), self.at("ro/f", "ours"), self.at("single", "one"), self.at("dev-term", "")
        image = cri.Mount(container_path="/img", image=cri.ImageSpec(image="busybox"), image_sub_path="bin", readonly=True)
        mounts = [self.mount("both", "/both"), self.mount("ro", "/ro", readonly=True), image,
                  self.mount("single", "/etc/single", readonly=True), self.mount("dev-term", "/dev/termination-log")]
        one = self.begin(self.pod, "one", mounts=mounts)
        self.assertEqual("bothoursone", self.ask(one, "cat /both/f /ro/f /etc/single"))
        self.assertEqual("", self.ask(one, "echo mine > /both/g; echo bye > /dev/termination-log; test -x /img/sh"))
        self.assertEqual(("mine\n", "bye\n"), (host.read(self.at("both/g")), host.read(self.at("dev-term"))))
        for path in ("/ro/f", "/etc/single", "/img/x"):
            self.assertIn("Read-only file system", self.ask(one, f"echo x > {path}"))
        self.assertEqual(3, sum(self.shares().values()), self.shares())
        self.assertRegex(self.status(one).mounts[2].image.image_ref, "^sha256:")
        # One that wants to write gets that, beside one that may not; what both write to is one share.
        two = self.begin(self.pod, "two", mounts=[self.mount("ro", "/rw"), self.mount("both", "/both")])
        self.assertEqual("", self.ask(two, "echo theirs > /rw/f"))
        self.assertEqual("theirs\n", host.read(self.at("ro/f")))
        self.assertIn("Read-only file system", self.ask(one, "echo x > /ro/f"))
        self.assertEqual((6, 3), (len(self.shares()), sum(self.shares().values())))
        # What only one of them had goes with it, also when another daemon made it.
        self.node.restart()
        self.assertEqual("both", self.ask(one, "cat /both/f"))
        three = self.begin(self.pod, "three", mounts=[self.mount("both", "/b")])
        self.assertEqual(6, len(self.shares()))
        self.remove(one)
        until(lambda: len(self.shares()) == 2, what="what one had alone is gone")
        self.assertEqual("both", self.ask(three, "cat /b/f"))
        self.none_left()

    def test_a_container_that_is_refused_leaves_nothing(self):
        """What it would have had of the node is not held."""
        self.at("both/f", "both")
        image = cri.Mount(container_path="/img", image=cri.ImageSpec(image="busybox"), readonly=True)
        bad = cri.Mount(container_path="/bad", image=cri.ImageSpec(image="busybox"), image_sub_path="none", readonly=True)
        held = lambda: len(os.listdir(f"/proc/{self.node.pid}/fd"))
        before = None
        for _ in range(4):
            self.refused(Code.NOT_FOUND, "config.mounts[2]", self.create, self.pod, "one", mounts=[self.mount("both", "/both"), image, bad])
            before = before or held()
        self.assertEqual(before, held())

    def test_files_that_change_as_a_whole(self):
        """As a kubelet makes ConfigMaps, Secrets and projected tokens."""
        os.makedirs(self.at("map/..1"))
        self.at("map/..1/a", "old"), self.at("map/..1/b", "old")
        os.symlink("..1", self.at("map/..data"))
        for name in "ab":
            os.symlink(f"..data/{name}", self.at(f"map/{name}"))
        one = self.begin(self.pod, "one", mounts=[self.mount("map", "/map", readonly=True), self.mount("map/..1/a", "/sub", readonly=True)])
        self.assertEqual("oldoldold", self.ask(one, "cat /map/a /map/b /sub"))
        self.at("map/..2/a", "new"), self.at("map/..2/b", "new")
        os.symlink("..2", self.at("map/..next"))
        os.rename(self.at("map/..next"), self.at("map/..data"))
        until(lambda: self.ask(one, "cat /map/a /map/b") == "newnew", what="both have changed")
        # A file that was named by itself is that file, as everywhere.
        self.assertEqual("old", self.ask(one, "cat /sub"))
        # A daemon that comes later goes on with it, and the next container has it too.
        self.node.restart()
        os.makedirs(self.at("map/..3"))
        self.at("map/..3/a", "last"), self.at("map/..3/b", "last")
        os.symlink("..3", self.at("map/..next"))
        os.rename(self.at("map/..next"), self.at("map/..data"))
        until(lambda: self.ask(one, "cat /map/a /map/b") == "lastlast", what="both have changed again")
        two = self.begin(self.pod, "two", mounts=[self.mount("map", "/map", readonly=True)])
        self.assertEqual("last", self.ask(two, "cat /map/a"))

    def test_what_no_machine_has(self):
        refuse = lambda field, **more: self.refused(Code.UNIMPLEMENTED, field, self.create, self.pod, "one", **more)
        refuse("config.devices[0].host_path", devices=[cri.Device(host_path="/dev/null", container_path="/dev/x", permissions="rw")])
        refuse("config.mounts[0].host_path", mounts=[self.mount("logs", "/x", propagation=cri.PROPAGATION_HOST_TO_CONTAINER)])
        self.refused(Code.NOT_FOUND, "config.mounts[0].host_path", self.create, self.pod, "one", mounts=[self.mount("none", "/x")])
        self.assertEqual(0, len(self.api.ListContainers(cri.ListContainersRequest()).containers))
        self.none_left()
