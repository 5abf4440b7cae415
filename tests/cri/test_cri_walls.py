# SPDX-License-Identifier: Apache-2.0
"""What containers of Kubernetes share with their pod and with the node where it is asked for, by the kernel's word."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import grpc

import host
import nacre_test
from nacre_test import until

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode


class Walls(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\ncri:\n  network: builtin\n"

    @classmethod
    def prepare(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    def setUp(self):
        self.api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.dir = tempfile.mkdtemp(prefix="nacre-cri-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.addCleanup(self.node.clear)

    def sandbox(self, name="pod", **namespaces):
        context = cri.LinuxSandboxSecurityContext(namespace_options=cri.NamespaceOption(**namespaces))
        config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name=name, uid="1", namespace="tests"), hostname="pod",
                                      linux=cri.LinuxPodSandboxConfig(security_context=context))
        return self.api.RunPodSandbox(cri.RunPodSandboxRequest(config=config)).pod_sandbox_id

    def create(self, pod, name, *command, namespaces=None, mounts=(), **security):
        context = cri.LinuxContainerSecurityContext(namespace_options=cri.NamespaceOption(**(namespaces or {"pid": cri.CONTAINER})), **security)
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name), image=cri.ImageSpec(image="busybox"),
                                     command=command or ["sleep", "1000"], mounts=mounts, linux=cri.LinuxContainerConfig(security_context=context))
        sandbox = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="pod", uid="1", namespace="tests"))
        return self.api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=pod, config=config, sandbox_config=sandbox)).container_id

    def run_one(self, *args, **more):
        one = self.create(*args, **more)
        self.api.StartContainer(cri.StartContainerRequest(container_id=one))
        return one

    def sh(self, container, script):
        done = self.api.ExecSync(cri.ExecSyncRequest(container_id=container, cmd=["sh", "-c", script]))
        return (done.stdout + done.stderr).decode().strip()

    def assertRefused(self, code, field, call):
        said = self.assertFails(code, call)
        self.assertTrue(said.startswith(field + ": "), said)

    # ---- users ----

    def mapped_sandbox(self, host_id=3 * 65536, **more):
        mapping = [cri.IDMapping(host_id=host_id, length=65536)]
        return self.sandbox(userns_options=cri.UserNamespace(mode=cri.POD, uids=mapping, gids=mapping), **more), mapping

    def test_a_user_namespace(self):
        pod, mapping = self.mapped_sandbox()
        os.chmod(self.dir, 0o755)
        for name, owner in (("his", 1000), ("roots", 0)):
            with open(f"{self.dir}/{name}", "w", encoding="ascii"):
                os.chown(f"{self.dir}/{name}", owner, owner)
        mounts = [cri.Mount(host_path=self.dir, container_path="/mapped", uidMappings=mapping, gidMappings=mapping),
                  cri.Mount(host_path=self.dir, container_path="/as-it-is", readonly=True)]
        one = self.run_one(pod, "one", "sh", "-c", "sleep 777 & exec sleep 888", namespaces={"pid": cri.POD}, mounts=mounts)
        two = self.run_one(pod, "two")
        pid = next(p for p in os.listdir("/proc") if p.isdigit() and host.read(f"/proc/{p}/cmdline").startswith("sleep\x00888"))
        self.assertEqual(["0 196608 65536"] * 2, [" ".join(host.read(f"/proc/{pid}/{m}").split()) for m in ("uid_map", "gid_map")])
        self.assertEqual("1000 0 65534 65534", self.sh(one, "stat -c %u /mapped/his /mapped/roots /as-it-is/his /as-it-is/roots | xargs"))
        self.sh(one, "touch /mapped/new")
        self.assertEqual(0, os.stat(self.dir + "/new").st_uid)
        # Both containers are in it, and so are the namespaces that they share.
        self.assertEqual(1, len({self.sh(c, f"readlink /proc/self/ns/{n}") for c in (one, two) for n in ("user",)}))
        self.assertIn("sleep 777", self.sh(one, "ps"))
        self.assertIn("denied", self.sh(one, "ls /proc/1/root/"))
        # A volume with other ids than the sandbox has is none.
        other = [cri.IDMapping(host_id=65536, length=65536)]
        self.assertRefused(Code.INVALID_ARGUMENT, "config.mounts[0].uidMappings", lambda: self.create(
            pod, "three", mounts=[cri.Mount(host_path=self.dir, container_path="/m", uidMappings=other, gidMappings=other)]))
        # Over a restart of the daemon, too.
        self.node.kill()
        self.node.start()
        self.api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.assertEqual("0 196608", self.sh(self.run_one(pod, "four"), "awk '{ print $1, $2 }' /proc/self/uid_map"))

    def test_a_user_namespace_on_the_network_of_the_node(self):
        pod, _ = self.mapped_sandbox(network=cri.NODE)
        one = self.run_one(pod, "one")
        self.assertEqual("0 196608", self.sh(one, "awk '{ print $1, $2 }' /proc/self/uid_map"))
        self.assertIn("not permitted", self.sh(one, "ip link set lo down"))

    # ---- processes ----

    def test_containers_of_a_pod_share_their_processes(self):
        pod = self.sandbox()
        shared = {"namespaces": {"pid": cri.POD}}
        one = self.run_one(pod, "one", "sh", "-c", "sleep 777 & exec sleep 888", **shared)
        two = self.run_one(pod, "two", **shared)
        apart = self.run_one(pod, "three")
        seen = self.sh(two, "ps")
        self.assertEqual((True, True, False), ("sleep 888" in seen, "sleep 777" in seen, "sleep 888" in self.sh(apart, "ps")), seen)
        # It is what nothing said means.
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name="bare"), image=cri.ImageSpec(image="busybox"), command=["sleep", "1000"])
        bare = self.api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=pod, config=config)).container_id
        self.api.StartContainer(cri.StartContainerRequest(container_id=bare))
        self.assertIn("sleep 888", self.sh(bare, "ps"))
        # The first of them is the keeper, which nobody of them can look into or end.
        self.assertIn("denied", self.sh(two, "ls /proc/1/root/"))
        self.sh(two, "kill -9 1; kill 1")
        # What a container leaves behind ends with it, though it was not the first process.
        self.api.StopContainer(cri.StopContainerRequest(container_id=one, timeout=5))
        left = self.sh(two, "ps")
        self.assertEqual((False, False), ("sleep 888" in left, "sleep 777" in left), left)
        self.assertEqual(cri.CONTAINER_RUNNING, self.api.ContainerStatus(cri.ContainerStatusRequest(container_id=two)).status.state)
        # It is no pid 1, so that a signal ends it.
        status = self.api.ContainerStatus(cri.ContainerStatusRequest(container_id=one)).status
        self.assertEqual(128 + 15, status.exit_code)

    def test_a_container_that_looks_at_another_one(self):
        pod = self.sandbox()
        one = self.run_one(pod, "one", "sleep", "888")
        debug = self.run_one(pod, "debug", namespaces={"pid": cri.TARGET, "target_id": one},
                             capabilities=cri.Capability(add_capabilities=["SYS_PTRACE"]))
        self.assertEqual("sleep 888", self.sh(debug, "tr '\\0' ' ' < /proc/1/cmdline"))
        # Its containers are the kubelet's.
        done = self.node.cli("debug", "-c", self.node.json("inspect", pod)["containers"][0]["name"], pod, "--", "true", check=False)
        self.assertIn("is a sandbox of Kubernetes: use `kubectl debug`", done.stderr)
        self.assertEqual("root", self.sh(debug, "ls -d /proc/1/root/root | xargs basename"))
        self.assertEqual("done", self.sh(one, "ps | grep -q 'sleep 1000' && echo done"))
        self.api.StopContainer(cri.StopContainerRequest(container_id=one, timeout=0))
        until(lambda: self.api.ContainerStatus(cri.ContainerStatusRequest(container_id=debug)).status.state == cri.CONTAINER_EXITED,
              what="it ends with the processes that it was among")
        field = "config.linux.security_context.namespace_options."
        for target, code in ((one, Code.FAILED_PRECONDITION), ("0123456789abcdef", Code.NOT_FOUND)):
            self.assertRefused(code, field + "target_id", lambda t=target: self.create(pod, "late", namespaces={"pid": cri.TARGET, "target_id": t}))
        other = self.sandbox("other")
        self.assertRefused(Code.INVALID_ARGUMENT, field + "target_id",
                           lambda: self.create(other, "far", namespaces={"pid": cri.TARGET, "target_id": self.run_one(pod, "near")}))

    def test_processes_and_ipc_of_the_node(self):
        pod = self.sandbox(pid=cri.NODE, ipc=cri.NODE)
        one = self.run_one(pod, "one", namespaces={"pid": cri.NODE, "ipc": cri.NODE})
        own = self.run_one(pod, "two", namespaces={"pid": cri.CONTAINER, "ipc": cri.NODE})
        links = [os.readlink(f"/proc/self/ns/{n}") for n in ("pid", "ipc")]
        self.assertEqual(links, self.sh(one, "readlink /proc/self/ns/pid; readlink /proc/self/ns/ipc").split())
        self.assertNotEqual(links[0], self.sh(own, "readlink /proc/self/ns/pid"))
        self.assertIn(f"{os.getpid()}\n", self.sh(one, "ls /proc") + "\n")
        name = f"nacre-test-{os.getpid()}"
        with open(f"/dev/shm/{name}", "w", encoding="ascii") as f:
            f.write("here")
        self.addCleanup(os.unlink, f"/dev/shm/{name}")
        self.assertEqual("here", self.sh(one, f"cat /dev/shm/{name}"))
        pids = host.cgroup_pids(os.path.join(self.node.cgroup()))
        self.api.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=pod))
        sleeps = [p for p in pids if "sleep" in host.read(f"/proc/{p}/comm")]
        self.assertEqual([], sleeps)

    def test_what_cannot_be_shared(self):
        pod = self.sandbox()
        context = "config.linux.security_context."
        self.assertRefused(Code.INVALID_ARGUMENT, context + "namespace_options.pid", lambda: self.create(pod, "a", namespaces={"pid": cri.NODE}))
        ptrace = cri.Capability(add_capabilities=["SYS_PTRACE"])
        self.assertRefused(Code.FAILED_PRECONDITION, context + "capabilities.add_capabilities",
                           lambda: self.create(pod, "b", namespaces={"pid": cri.POD}, capabilities=ptrace))
        self.create(pod, "c", capabilities=ptrace)
        # Nor by way of a container that sees the keeper: the keeper itself refuses that.
        shared = self.run_one(pod, "d", namespaces={"pid": cri.POD})
        late = self.create(pod, "e", namespaces={"pid": cri.TARGET, "target_id": shared}, capabilities=ptrace)
        said = self.assertFails(Code.FAILED_PRECONDITION, lambda: self.api.StartContainer(cri.StartContainerRequest(container_id=late)))
        self.assertIn("would see its keeper", said)

    # ---- /proc and /sys ----

    def test_paths_that_are_hidden_or_read_only(self):
        pod = self.sandbox()
        one = self.run_one(pod, "one", masked_paths=["/etc/passwd", "/root", "/not/there"], readonly_paths=["/tmp", "/proc/sys"])
        self.assertEqual("0", self.sh(one, "cat /etc/passwd | wc -c"))
        self.assertIn("Read-only", self.sh(one, "touch /root/x"))
        self.assertIn("Read-only", self.sh(one, "touch /tmp/x"))
        self.assertIn("Read-only", self.sh(one, "echo 1 > /proc/sys/net/ipv4/ip_forward"))
        self.assertNotEqual("0", self.sh(one, "cat /proc/interrupts | wc -c"))
        two = self.run_one(pod, "two", masked_paths=["/etc/passwd"])
        self.assertEqual("0", self.sh(two, "cat /etc/passwd | wc -c"))
        self.assertEqual("0", self.sh(self.run_one(pod, "three"), "cat /proc/interrupts | wc -c"))
        self.assertIn("Read-only", self.sh(two, "echo 1 > /proc/sys/net/ipv4/ip_forward"))

    def test_a_privileged_container(self):
        pod = self.sandbox()
        plain = self.run_one(pod, "plain")
        free = self.run_one(pod, "free", privileged=True, masked_paths=["/etc/passwd"])
        self.assertNotEqual("", self.sh(plain, "mount -t tmpfs none /tmp"))
        self.assertEqual("", self.sh(free, "mount -t tmpfs none /tmp && umount /tmp"))
        self.assertEqual("1", self.sh(free, "echo 1 > /proc/sys/net/ipv4/ip_forward; cat /proc/sys/net/ipv4/ip_forward"))
        self.assertNotEqual("0", self.sh(free, "cat /etc/passwd | wc -c"))
        options = re.search(r"^\S+ \S+ \S+ \S+ /sys (\S+)", self.sh(free, "cat /proc/self/mountinfo"), re.M).group(1)
        self.assertEqual("rw", options.split(",")[0])

    def test_seccomp_profiles_of_the_node(self):
        path = self.dir + "/profile.json"
        with open(path, "w", encoding="ascii") as f:
            f.write('{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}')
        pod = self.sandbox()
        local = cri.SecurityProfile(profile_type=cri.SecurityProfile.Localhost, localhost_ref=path)
        for name, fields in (("new", {"seccomp": local}), ("old", {"seccomp_profile_path": "localhost/" + path})):
            one = self.run_one(pod, name, **fields)
            self.assertIn("not permitted", self.sh(one, "mkdir /x"))
        field = "config.linux.security_context.seccomp.localhost_ref"
        for text in ("", "{", "[]", " " * ((1 << 20) + 1)):
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
            self.assertRefused(Code.INVALID_ARGUMENT, field, lambda: self.create(pod, "broken", seccomp=local))

    # ---- mounts ----

    def test_the_message_of_a_container_that_ends(self):
        """A kubelet gives each container a file in its /dev."""
        with open(self.dir + "/message", "w", encoding="ascii"):
            pass
        pod = self.sandbox()
        one = self.run_one(pod, "one", mounts=[cri.Mount(host_path=self.dir + "/message", container_path="/dev/termination-log")])
        self.sh(one, "echo all is done > /dev/termination-log")
        self.assertEqual("all is done\n", host.read(self.dir + "/message"))

    def test_mounts_that_come_later(self):
        self.addCleanup(subprocess.run, ["umount", "-R", self.dir], check=False)
        subprocess.run(["mount", "-t", "tmpfs", "none", self.dir], check=True)
        mounts = [cri.Mount(host_path=self.dir, container_path="/in", propagation=p)
                  for p in (cri.PROPAGATION_PRIVATE, cri.PROPAGATION_HOST_TO_CONTAINER, cri.PROPAGATION_BIDIRECTIONAL)]
        pod = self.sandbox()
        for one in mounts[1:]:
            self.assertRefused(Code.FAILED_PRECONDITION, "config.mounts[0].host_path", lambda m=one: self.create(pod, "refused", mounts=[m]))
        subprocess.run(["mount", "--make-shared", self.dir], check=True)
        os.mkdir(self.dir + "/sub")
        os.mkdir(self.dir + "/up")
        private, slave, both = (self.run_one(pod, n, mounts=[m], privileged=True) for n, m in zip(("a", "b", "c"), mounts))
        subprocess.run(["mount", "-t", "tmpfs", "none", self.dir + "/sub"], check=True)
        with open(self.dir + "/sub/file", "w", encoding="ascii"):
            pass
        self.assertEqual(["", "file", "file"], [self.sh(c, "ls /in/sub") for c in (private, slave, both)])
        for container, there in ((slave, False), (both, True)):
            self.assertEqual("", self.sh(container, "mount -t tmpfs none /in/up && touch /in/up/x"))
            self.assertEqual(there, os.path.exists(self.dir + "/up/x"))


if __name__ == "__main__":
    unittest.main()
