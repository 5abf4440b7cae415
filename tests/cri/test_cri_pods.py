# SPDX-License-Identifier: Apache-2.0
"""Sandboxes and containers by Kubernetes' interface, judged by the kernel and by the node's own API."""
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import grpc

import host
import nacre_test
from nacre_test import nacre_pb2, until

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode


class Pods(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\ncri:\n  network: builtin\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.api = cri_grpc.RuntimeServiceStub(cls.node.channel)

    @classmethod
    def prepare(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        # The first one on a network has the daemon open its sockets.
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    def setUp(self):
        self.logs = tempfile.mkdtemp(prefix="nacre-cri-")
        self.addCleanup(shutil.rmtree, self.logs)
        self.addCleanup(self.node.clear)

    # ---- calls ----

    def config(self, name, attempt=0, **more):
        metadata = cri.PodSandboxMetadata(name=name, uid="uid-" + name, namespace="tests", attempt=attempt)
        return cri.PodSandboxConfig(metadata=metadata, hostname="host-" + name, log_directory=self.logs, **more)

    def run_sandbox(self, name, **more):
        return self.api.RunPodSandbox(cri.RunPodSandboxRequest(config=self.config(name, **more))).pod_sandbox_id

    def create(self, sandbox, name, *command, attempt=0, **more):
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name, attempt=attempt), image=cri.ImageSpec(image="busybox"),
                                     command=command, **more)
        return self.api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=config)).container_id

    def start(self, container):
        self.api.StartContainer(cri.StartContainerRequest(container_id=container))

    def status(self, container):
        return self.api.ContainerStatus(cri.ContainerStatusRequest(container_id=container)).status

    def sandbox(self, sandbox):
        return self.api.PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox)).status

    def execute(self, container, *words, timeout=0):
        return self.api.ExecSync(cri.ExecSyncRequest(container_id=container, cmd=words, timeout=timeout))

    def stop(self, container, timeout=0):
        self.api.StopContainer(cri.StopContainerRequest(container_id=container, timeout=timeout))

    def remove(self, container):
        self.api.RemoveContainer(cri.RemoveContainerRequest(container_id=container))

    def stop_sandbox(self, sandbox):
        self.api.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))

    def remove_sandbox(self, sandbox):
        self.api.RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox))

    def refused(self, code, words, call, *args, **more):
        with self.assertRaises(grpc.RpcError) as caught:
            call(*args, **more)
        self.assertEqual((code, True), (caught.exception.code(), words in caught.exception.details()), caught.exception.details())

    # ---- sandboxes ----

    def test_a_kubelet_names_the_group(self):
        root, base = host.cgroup_root(), self.node.cgroup()
        above = os.path.join(os.path.dirname(base), f"kube-{os.getpid()}")
        given, missing = os.path.join(above, "burstable", "pod1"), os.path.join(above, "burstable", "pod2")
        os.makedirs(given)
        self.addCleanup(lambda: [os.rmdir(d) for d in (given, os.path.dirname(given), above)])
        self.addCleanup(self.node.clear)

        def run(name, parent):
            pod = self.run_sandbox(name, linux=cri.LinuxPodSandboxConfig(cgroup_parent=parent[len(root):]))
            one = self.create(pod, "one", "/bin/sleep", "1000")
            self.start(one)
            return pod, one
        pod, one = run("web", given)
        other, _ = run("db", missing)
        for parent in given, missing:
            pids = host.cgroup_pids(parent)
            self.assertIn("sleep", [host.read(f"/proc/{p}/comm").strip() for p in pids])
            self.assertFalse(pids & host.cgroup_pids(base))
        # What is counted is found there, and a daemon that comes back finds all of it again.
        for restart in False, True:
            if restart:
                self.node.restart()
                type(self).api = cri_grpc.RuntimeServiceStub(self.node.channel)
            stats = self.api.PodSandboxStats(cri.PodSandboxStatsRequest(pod_sandbox_id=pod)).stats
            self.assertGreater(stats.linux.cpu.usage_core_nano_seconds.value, 0)
            self.assertEqual(b"", self.execute(one, "true").stderr)
            self.assertEqual(2, self.node.cli("tree").stdout.count("sleep 1000"))
        self.stop_sandbox(pod)
        self.stop_sandbox(other)
        until(lambda: host.cgroups(os.path.dirname(given)) == {"pod1"}, what="only the kubelet's group is left")

    def test_sysctls_of_a_sandbox(self):
        names = {"net.ipv4.ip_local_port_range": "1024\t2000", "kernel.shm_rmid_forced": "1"}
        paths = ["/proc/sys/" + n.replace(".", "/") for n in names]
        before = [host.read(p) for p in paths]
        pod = self.run_sandbox("web", linux=cri.LinuxPodSandboxConfig(sysctls=names))
        one = self.create(pod, "one", "/bin/sleep", "1000")
        self.start(one)
        self.assertEqual("".join(v + "\n" for v in names.values()).encode(), self.execute(one, "cat", *paths).stdout)
        self.assertEqual(before, [host.read(p) for p in paths])

    def test_sysctls_stay_where_a_network_sets_them_otherwise(self):
        """Ports without privilege and ping: what was asked for is not written over, be it what the kernel itself begins with."""
        names = ("net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range")
        ids = [cri.IDMapping(host_id=300000, length=65536)]
        users = cri.NamespaceOption(pid=cri.CONTAINER, userns_options=cri.UserNamespace(mode=cri.POD, uids=ids, gids=ids))
        for n, (sysctls, want, options) in enumerate((({}, "0 0 2147483647", None), ({names[0]: "123"}, "123 0 2147483647", None),
                                                      ({names[0]: "1024"}, "1024 0 2147483647", None), ({names[1]: "1\t0"}, "0 1 0", None),
                                                      ({names[1]: "5\t9"}, "0 5 9", None), ({names[0]: "123"}, "123", users))):
            security = cri.LinuxSandboxSecurityContext(namespace_options=options)
            pod = self.run_sandbox(f"web{n}", linux=cri.LinuxPodSandboxConfig(sysctls=sysctls, security_context=security))
            one = self.create(pod, "one", "/bin/sleep", "1000",
                              linux=cri.LinuxContainerConfig(security_context=cri.LinuxContainerSecurityContext(namespace_options=options)))
            self.start(one)
            have = self.execute(one, "cat", *("/proc/sys/" + n.replace(".", "/") for n in names)).stdout.decode().split()
            self.assertEqual(want, " ".join(have)[:len(want)], sysctls)

    def test_addresses_of_further_networks(self):
        self.node.cli("network", "create", "--subnet", "10.98.1.0/24", "back")
        self.addCleanup(self.node.cli, "network", "rm", "back")
        pod = self.run_sandbox("web")
        one = self.create(pod, "one", "/bin/sleep", "1000")
        self.start(one)
        first = self.sandbox(pod).network
        self.assertEqual(1, len(first.additional_ips))
        self.node.cli("network", "connect", "back", pod)
        status = self.sandbox(pod).network
        shown = [status.ip] + [a.ip for a in status.additional_ips]
        self.assertEqual([first.ip, first.additional_ips[0].ip], shown[:2])
        links = self.execute(one, "ip", "-o", "address").stdout.decode()
        found = [line.split()[3].split("/")[0] for line in links.splitlines() if " eth" in line and "fe80" not in line]
        self.assertEqual(sorted(found), sorted(shown))
        self.node.cli("network", "disconnect", "back", pod)
        self.assertEqual(first, self.sandbox(pod).network)
        self.node.cli("rm", "-f", pod)

    def test_a_sandbox_lives_without_a_container(self):
        dns = cri.DNSConfig(servers=["10.10.10.10"], searches=["google.com"], options=["ndots:8"])
        pod = self.run_sandbox("web", labels={"a": "b"}, annotations={"x/y": "z"}, dns_config=dns)
        status = self.sandbox(pod)
        self.assertEqual((cri.SANDBOX_READY, {"a": "b"}, {"x/y": "z"}), (status.state, dict(status.labels), dict(status.annotations)))
        self.assertEqual("uid-web", status.metadata.uid)
        self.assertEqual([pod], [s.id for s in self.api.ListPodSandbox(cri.ListPodSandboxRequest()).items])
        # The node has the route to its address.
        self.assertIn(" dev nacre", subprocess.run(["ip", "route", "get", status.network.ip], check=True, capture_output=True, text=True).stdout)
        one = self.create(pod, "one", "/bin/sleep", "1000")
        self.start(one)
        self.assertEqual(b"host-web\n", self.execute(one, "hostname").stdout)
        resolv = self.execute(one, "cat", "/etc/resolv.conf").stdout.decode()
        self.assertEqual("nameserver 10.10.10.10\nsearch google.com\noptions ndots:8\n", resolv)
        self.stop_sandbox(pod)
        self.assertEqual((cri.SANDBOX_NOTREADY, cri.CONTAINER_EXITED), (self.sandbox(pod).state, self.status(one).state))
        # Its rules went before the call returned; its link goes with the namespace, when the kernel comes to that.
        table = subprocess.run(["nft", "list", "table", "inet", "nacre"], check=True, capture_output=True, text=True).stdout
        self.assertNotIn(status.network.ip, table)
        until(lambda: status.network.ip not in subprocess.run(["ip", "route"], check=True, capture_output=True, text=True).stdout,
              what="its route is gone")
        self.stop_sandbox(pod)
        self.remove_sandbox(pod)
        self.remove_sandbox(pod)
        self.stop_sandbox(pod)
        self.refused(Code.NOT_FOUND, "there is no sandbox", self.sandbox, pod)
        self.refused(Code.NOT_FOUND, "there is no container", self.status, one)

    def test_verbose_answers_say_more(self):
        pod = self.run_sandbox("more")
        one = self.create(pod, "one", "sleep", "1000")
        self.start(one)
        quiet = self.api.ContainerStatus(cri.ContainerStatusRequest(container_id=one))
        told = self.api.ContainerStatus(cri.ContainerStatusRequest(container_id=one, verbose=True))
        info = json.loads(told.info["info"])
        with open(f"/proc/{info['pid']}/cmdline", "rb") as f:
            self.assertEqual(b"sleep\x001000\x00", f.read())
        self.assertEqual((0, quiet.status, pod), (len(quiet.info), told.status, info["sandboxID"]))
        told = self.api.PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=pod, verbose=True))
        info = json.loads(told.info["info"])
        self.assertEqual("cell", info["kind"])
        # What it is stopped with: what was said, else what its image says, else SIGTERM.
        self.assertEqual(cri.SIGNAL_SIGTERM, quiet.status.stop_signal)
        two = self.create(pod, "two", "sleep", "1000", stop_signal=cri.SIGNAL_SIGRTMINPLUS3)
        self.assertEqual(cri.SIGNAL_SIGRTMINPLUS3, self.status(two).stop_signal)
        self.assertTrue(os.path.exists(f"/proc/{info['pid']}"))

    def test_a_call_that_is_made_again_finds_its_sandbox(self):
        first = self.run_sandbox("again")
        self.assertEqual(first, self.run_sandbox("again"))
        one = self.create(first, "one", "sleep", "1000")
        self.assertEqual(one, self.create(first, "one", "sleep", "1000"))
        self.start(one)
        self.refused(Code.ALREADY_EXISTS, "count the attempt up", self.create, first, "one", "sleep", "1000")
        self.assertNotEqual(one, self.create(first, "one", "sleep", "1000", attempt=1))
        self.stop_sandbox(first)
        self.refused(Code.ALREADY_EXISTS, "count the attempt up", self.run_sandbox, "again")
        self.assertNotEqual(first, self.run_sandbox("again", attempt=1))

    def unread(self):
        """Bytes in the queues of the daemon's connections."""
        rows = subprocess.run(["ss", "-xnH"], check=True, capture_output=True, text=True).stdout.splitlines()
        return sum(int(row.split()[2]) for row in rows if f" {self.node.socket} " in row and "ESTAB" in row)

    def at_once(self, name, request):
        """The answers to eight of them, which the daemon reads together."""
        os.kill(self.node.pid, signal.SIGSTOP)
        try:
            calls = [getattr(self.api, name).future(request) for _ in range(8)]
            until(lambda: self.unread() >= 8 * request.ByteSize(), what="all are written")
        finally:
            os.kill(self.node.pid, signal.SIGCONT)
        return [call.result() for call in calls]

    def test_the_same_calls_at_once_make_one(self):
        config = self.config("twice")
        pod, = {answer.pod_sandbox_id for answer in self.at_once("RunPodSandbox", cri.RunPodSandboxRequest(config=config))}
        # With mounts, which take a thread's turn.
        one = cri.ContainerConfig(metadata=cri.ContainerMetadata(name="one"), image=cri.ImageSpec(image="busybox"),
                                  command=["sleep", "1000"], mounts=[cri.Mount(host_path=self.logs, container_path="/logs"),
                                          cri.Mount(container_path="/img", image=cri.ImageSpec(image="busybox"), readonly=True)])
        request = cri.CreateContainerRequest(pod_sandbox_id=pod, config=one, sandbox_config=config)
        container, = {answer.container_id for answer in self.at_once("CreateContainer", request)}
        self.start(container)
        for name, key, value in (("StopContainer", "container_id", container),
                                 ("RemoveContainer", "container_id", container), ("StopPodSandbox", "pod_sandbox_id", pod),
                                 ("RemovePodSandbox", "pod_sandbox_id", pod)):
            self.at_once(name, getattr(cri, name + "Request")(**{key: value}))

    def insist(self, name, request):
        """As a kubelet: whose deadline has passed calls again, with more time; two do so at once."""
        call, seconds = getattr(self.api, name), 0.0005
        while True:
            both = [call.future(request, timeout=seconds) for _ in range(2)]
            ends = [one.exception() for one in both]
            late = [end is not None and end.code() == Code.DEADLINE_EXCEEDED for end in ends]
            for one, end, is_late in zip(both, ends, late):
                if not end:
                    return one.result()
                self.assertTrue(is_late, f"{name}: {end}")
            seconds *= 2

    def test_deadlines_that_pass_leave_one_of_each(self):
        for n in range(10):
            config = self.config(f"late{n}")
            pod = self.insist("RunPodSandbox", cri.RunPodSandboxRequest(config=config)).pod_sandbox_id
            one = cri.ContainerConfig(metadata=cri.ContainerMetadata(name="one"), image=cri.ImageSpec(image="busybox"),
                                      command=["sleep", "1000"], mounts=[cri.Mount(host_path=self.logs, container_path="/logs")])
            request = cri.CreateContainerRequest(pod_sandbox_id=pod, config=one, sandbox_config=config)
            container = self.insist("CreateContainer", request).container_id
            self.start(container)
            self.assertEqual([pod], [s.id for s in self.api.ListPodSandbox(cri.ListPodSandboxRequest()).items])
            self.assertEqual([container], [c.id for c in self.api.ListContainers(cri.ListContainersRequest()).containers])
            self.insist("StopContainer", cri.StopContainerRequest(container_id=container))
            self.insist("RemoveContainer", cri.RemoveContainerRequest(container_id=container))
            self.insist("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=pod))
            self.insist("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=pod))
            self.assertEqual([], list(self.api.ListPodSandbox(cri.ListPodSandboxRequest()).items))

    def test_what_is_wrong_is_named(self):
        self.refused(Code.INVALID_ARGUMENT, "config.metadata: required", self.api.RunPodSandbox,
                     cri.RunPodSandboxRequest(config=cri.PodSandboxConfig()))
        self.refused(Code.INVALID_ARGUMENT, "runtime_handler", self.api.RunPodSandbox,
                     cri.RunPodSandboxRequest(config=self.config("bad"), runtime_handler="nobody"))
        pod = self.run_sandbox("bad")
        self.refused(Code.INVALID_ARGUMENT, "config.log_path", self.create, pod, "one", "true", log_path="../x")
        self.refused(Code.NOT_FOUND, "there is no sandbox", self.create, "0123456789abcdef", "one", "true")
        security = cri.LinuxContainerSecurityContext(run_as_group=cri.Int64Value(value=5))
        self.refused(Code.INVALID_ARGUMENT, "run_as_group", self.create, pod, "one", "true",
                     linux=cri.LinuxContainerConfig(security_context=security))
        self.assertEqual([], list(self.api.ListContainers(cri.ListContainersRequest()).containers))

    # ---- containers ----

    def test_containers_come_and_go(self):
        pod = self.run_sandbox("many")
        one = self.create(pod, "one", "sleep", "1000", labels={"role": "one"})
        self.assertEqual(cri.CONTAINER_CREATED, self.status(one).state)
        self.refused(Code.FAILED_PRECONDITION, "not running", self.execute, one, "true")
        self.stop(one)
        self.start(one)
        self.refused(Code.FAILED_PRECONDITION, "only one that is created", self.start, one)
        two = self.create(pod, "two", "sh", "-c", "exit 3")
        self.start(two)
        until(lambda: self.status(two).state == cri.CONTAINER_EXITED, what="it has ended")
        self.assertEqual((3, "Error"), (self.status(two).exit_code, self.status(two).reason))
        # They share the network, and each its own processes.
        self.assertEqual(0, self.execute(one, "ip", "link", "show", "eth0").exit_code)
        listed = self.api.ListContainers(cri.ListContainersRequest(filter=cri.ContainerFilter(label_selector={"role": "one"}))).containers
        self.assertEqual([one], [c.id for c in listed])
        streamed = [c.id for m in self.api.StreamContainers(cri.StreamContainersRequest()) for c in m.containers]
        self.assertEqual([one, two], streamed)
        self.remove(two)
        self.remove(two)
        self.remove(one)
        self.assertEqual([], list(self.api.ListContainers(cri.ListContainersRequest()).containers))
        again = self.create(pod, "one", "sleep", "1000")
        self.start(again)
        self.assertEqual(cri.SANDBOX_READY, self.sandbox(pod).state)

    def test_a_stop_asks_first_and_kills_then(self):
        pod = self.run_sandbox("stop")
        nice = self.create(pod, "nice", "sh", "-c", "trap 'exit 7' TERM; while :; do sleep 0.05; done")
        deaf = self.create(pod, "deaf", "sh", "-c", "trap '' TERM; while :; do sleep 0.05; done")
        for one in (nice, deaf):
            self.start(one)
            # The trap is there when the shell sleeps.
            until(lambda one=one: b"sleep" in self.execute(one, "ps").stdout, what="it waits")
        self.stop(nice, timeout=30)
        self.assertEqual(7, self.status(nice).exit_code)
        self.stop(deaf, timeout=1)
        self.assertEqual(137, self.status(deaf).exit_code)

    def test_a_command_ends_in_time_or_is_killed(self):
        pod = self.run_sandbox("exec")
        one = self.create(pod, "one", "sleep", "1000")
        self.start(one)
        answer = self.execute(one, "sh", "-c", "echo out; echo err >&2; exit 4")
        self.assertEqual((b"out\n", b"err\n", 4), (answer.stdout, answer.stderr, answer.exit_code))
        self.refused(Code.DEADLINE_EXCEEDED, "did not end within 1 s", self.execute, one, "sleep", "1000", timeout=1)
        self.assertNotIn(b"sleep 1000\n" * 2, self.execute(one, "ps", "-o", "args").stdout)

    def test_the_log_is_the_file_that_was_asked_for(self):
        pod = self.run_sandbox("log")
        one = self.create(pod, "one", "sh", "-c", "echo hello; echo oops >&2", log_path="one.log")
        self.start(one)
        until(lambda: self.status(one).state == cri.CONTAINER_EXITED, what="it has ended")
        path = f"{self.logs}/one.log"
        self.assertEqual(path, self.status(one).log_path)
        with open(path, encoding="ascii") as f:
            lines = sorted(line.split(" ", 1)[1] for line in f.read().splitlines())
        self.assertEqual(["stderr F oops", "stdout F hello"], lines)
        self.remove(one)
        self.assertTrue(os.path.exists(path))

    def test_a_log_that_was_moved_away_is_opened_anew(self):
        pod = self.run_sandbox("turn")
        one = self.create(pod, "one", "sh", "-c", "while read line; do echo $line; done", stdin=True, log_path="one.log")
        reopen = cri.ReopenContainerLogRequest(container_id=one)
        self.refused(Code.FAILED_PRECONDITION, "not running", self.api.ReopenContainerLog, reopen)
        self.start(one)
        for k in range(3):
            if k == 2:
                # A daemon that came later knows where the log is, too.
                self.node.restart()
                type(self).api = cri_grpc.RuntimeServiceStub(self.node.channel)
            self.node.workloads.WriteStdin(nacre_pb2.WriteStdinRequest(target=pod, data=b"line %d\n" % k))
            until(lambda k=k: f"line {k}" in self.text("one.log"), what="it is in the log")
            os.rename(f"{self.logs}/one.log", f"{self.logs}/old{k}")
            self.api.ReopenContainerLog(reopen)
            self.assertEqual("", self.text("one.log"))
        self.assertEqual([["line", "0"], ["line", "1"], ["line", "2"]], [self.text(f"old{k}").split()[3:] for k in range(3)])
        self.stop(one)
        os.unlink(f"{self.logs}/one.log")
        self.refused(Code.FAILED_PRECONDITION, "not running", self.api.ReopenContainerLog, reopen)
        self.assertFalse(os.path.exists(f"{self.logs}/one.log"))

    def text(self, name):
        with open(f"{self.logs}/{name}", encoding="ascii") as f:
            return f.read()

    def test_a_program_that_is_not_there(self):
        pod = self.run_sandbox("none")
        one = self.create(pod, "one", "/no/such/program")
        self.refused(Code.FAILED_PRECONDITION, "/no/such/program", self.start, one)
        self.assertEqual((cri.CONTAINER_EXITED, "StartError"), (self.status(one).state, self.status(one).reason))

    def test_a_mount_and_a_user(self):
        os.mkdir(f"{self.logs}/data")
        with open(f"{self.logs}/data/file", "w", encoding="ascii") as f:
            f.write("content")
        pod = self.run_sandbox("mount")
        mounts = [cri.Mount(container_path="/data", host_path=f"{self.logs}/data", readonly=True)]
        security = cri.LinuxContainerSecurityContext(run_as_user=cri.Int64Value(value=1234), run_as_group=cri.Int64Value(value=4321))
        one = self.create(pod, "one", "sleep", "1000", mounts=mounts, linux=cri.LinuxContainerConfig(security_context=security),
                          envs=[cri.KeyValue(key="GREETING", value=b"hi")])
        self.start(one)
        answer = self.execute(one, "sh", "-c", "cat /data/file; id -u; id -g; echo $GREETING; touch /data/x")
        self.assertEqual(b"content1234\n4321\nhi\n", answer.stdout)
        self.assertIn(b"Read-only file system", answer.stderr)
        self.assertEqual(mounts, list(self.status(one).mounts))

    def test_an_image_is_told_by_the_name_in_the_pod(self):
        pod = self.run_sandbox("web")
        image = cri_grpc.ImageServiceStub(self.node.channel).ImageStatus(cri.ImageStatusRequest(image=cri.ImageSpec(image="busybox"))).image.id
        for name, want in (("", image), ("docker.io/library/busybox:1", "docker.io/library/busybox:1")):
            config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name=f"one{len(name)}"), command=["sleep", "1000"],
                                         image=cri.ImageSpec(image=image, user_specified_image=name))
            one = self.api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=pod, config=config)).container_id
            status = self.status(one)
            self.assertEqual((want, name, image), (status.image.image, status.image.user_specified_image, status.image_id))

    def test_an_image_is_mounted(self):
        image = cri.ImageSpec(image="busybox", user_specified_image="busybox:1")
        mounts = [cri.Mount(container_path="/image", image=image, readonly=True),
                  cri.Mount(container_path="/part", image=image, image_sub_path="../bin/../bin/busybox", readonly=True)]
        # A kubelet takes ranges from all that an id can be.
        ids = [cri.IDMapping(host_id=65534 * 65536, length=65536)]
        for name, more in (("one", {}), ("two", {"userns_options": cri.UserNamespace(mode=cri.POD, uids=ids, gids=ids)})):
            options = cri.NamespaceOption(pid=cri.CONTAINER, **more)
            pod = self.run_sandbox(name, linux=cri.LinuxPodSandboxConfig(security_context=cri.LinuxSandboxSecurityContext(namespace_options=options)))
            one = self.create(pod, "one", "sleep", "1000", mounts=mounts,
                              linux=cri.LinuxContainerConfig(security_context=cri.LinuxContainerSecurityContext(namespace_options=options)))
            self.start(one)
            answer = self.execute(one, "sh", "-c", "/image/bin/busybox stat -c %u:%A /image/bin/busybox; cmp /image/bin/busybox /part; touch /image/x")
            self.assertEqual((b"0:-rwxr-xr-x\n", True), (answer.stdout, b"Read-only file system" in answer.stderr), answer)
            status = self.status(one)
            self.assertEqual([status.image_id] * 2, [m.image.image_ref for m in status.mounts])
            # As it sees them itself.
            self.assertEqual((0, 0, [0]), (status.user.linux.uid, status.user.linux.gid, list(status.user.linux.supplemental_groups)))

    def test_privilege_is_what_was_asked_for(self):
        pod = self.run_sandbox("caps")

        def status(name, user=0, **more):
            context = cri.LinuxContainerSecurityContext(run_as_user=cri.Int64Value(value=user),
                                                        namespace_options=cri.NamespaceOption(pid=cri.CONTAINER), **more)
            one = self.create(pod, name, "sleep", "1000", linux=cri.LinuxContainerConfig(
                security_context=context, resources=cri.LinuxContainerResources(oom_score_adj=500)))
            self.start(one)
            # What Exec runs has the same.
            out = self.execute(one, "sh", "-c", "cat /proc/1/status /proc/1/oom_score_adj; echo ===; cat /proc/self/status").stdout.decode()
            first, second = ({line.split(":")[0]: line.split(":")[1].split() for line in part.splitlines() if ":" in line}
                             for part in out.split("==="))
            for key in ("CapBnd", "CapEff", "NoNewPrivs", "Seccomp_filters"):
                self.assertEqual(first[key], second[key], key)
            self.assertIn("\n500\n", out)
            seen = self.status(one).user.linux
            self.assertEqual((first["Uid"][1], first["Gid"][1], first["Groups"]),
                             (str(seen.uid), str(seen.gid), [str(g) for g in seen.supplemental_groups]))
            return first
        baseline, default = 0xa80425fb, cri.SecurityProfile()
        plain = status("plain")
        self.assertEqual((["%016x" % baseline], ["0"]), (plain["CapBnd"], plain["NoNewPrivs"]))
        filtered, free = status("filtered", seccomp=default), status("free")
        self.assertEqual(int(free["Seccomp_filters"][0]) + 1, int(filtered["Seccomp_filters"][0]))
        caps = cri.Capability(drop_capabilities=["ALL"], add_capabilities=["CAP_NET_RAW"])
        one = status("one", capabilities=caps, no_new_privs=True)
        self.assertEqual((["%016x" % (1 << 13)], ["1"]), (one["CapEff"], one["NoNewPrivs"]))
        self.assertEqual(["0" * 16], status("user", user=1000)["CapEff"])
        self.assertEqual(["0", "5", "7"], status("groups", supplemental_groups=[5, 7], supplemental_groups_policy=cri.Strict)["Groups"])

    # ---- events and restarts ----

    def test_events_tell_each_step_to_each_client(self):
        told = [queue.Queue(), queue.Queue()]
        calls = [self.api.GetContainerEvents(cri.GetEventsRequest()) for _ in told]
        threads = [threading.Thread(target=self.read, args=(call, to)) for call, to in zip(calls, told)]
        for thread in threads:
            thread.start()
        # A stream that has begun tells what follows: a sandbox is made until both have told of one.
        k = 0
        while any(to.empty() for to in told):
            self.remove_sandbox(self.run_sandbox(f"warm{k}"))
            k += 1
        pod = self.run_sandbox("events")
        one = self.create(pod, "one", "true")
        self.start(one)
        until(lambda: self.status(one).state == cri.CONTAINER_EXITED, what="it has ended")
        self.remove(one)
        self.remove_sandbox(pod)
        expected = [(pod, "CREATED"), (pod, "STARTED"), (one, "CREATED"), (one, "STARTED"), (one, "STOPPED"), (one, "DELETED"),
                    (pod, "STOPPED"), (pod, "DELETED")]
        for to in told:
            seen = []
            while not seen or seen[-1] != expected[-1]:
                event = to.get(timeout=20)
                if event.container_id in (pod, one):
                    seen.append((event.container_id, cri.ContainerEventType.Name(event.container_event_type).split("_")[1]))
                    self.assertEqual("events", event.pod_sandbox_status.metadata.name)
            self.assertEqual(expected, seen)
        for call, thread in zip(calls, threads):
            call.cancel()
            thread.join()

    def read(self, call, to):
        try:
            for event in call:
                to.put(event)
        except grpc.RpcError as e:
            to.put(e)

    def test_a_restart_of_the_daemon_keeps_what_runs(self):
        pod = self.run_sandbox("survivor", labels={"a": "b"})
        one = self.create(pod, "one", "sleep", "1000")
        self.start(one)
        created = self.create(pod, "two", "sleep", "1000")
        address = self.sandbox(pod).network.ip
        self.node.restart()
        type(self).api = cri_grpc.RuntimeServiceStub(self.node.channel)
        status = self.sandbox(pod)
        self.assertEqual((cri.SANDBOX_READY, address, {"a": "b"}), (status.state, status.network.ip, dict(status.labels)))
        self.assertEqual(cri.CONTAINER_RUNNING, self.status(one).state)
        self.assertEqual(0, self.execute(one, "true").exit_code)
        # Nobody starts what was only created; it can be made anew.
        self.assertEqual((cri.CONTAINER_EXITED, "StartError"), (self.status(created).state, self.status(created).reason))
        again = self.create(pod, "two", "sleep", "1000", attempt=1)
        self.start(again)
        self.assertEqual(b"host-survivor\n", self.execute(again, "cat", "/etc/hostname").stdout)


if __name__ == "__main__":
    unittest.main()
