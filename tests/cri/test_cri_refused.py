# SPDX-License-Identifier: Apache-2.0
"""What a kubelet may ask for and is not honoured is refused by name, and what leads elsewhere is followed or refused as it should."""
import os
import shutil
import subprocess
import tempfile
import unittest

import grpc

import host
import nacre_test

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode
SECURITY = "config.linux.security_context."
UNCONFINED = cri.SecurityProfile(profile_type=cri.SecurityProfile.Unconfined)
LOCALHOST = cri.SecurityProfile(profile_type=cri.SecurityProfile.Localhost, localhost_ref="/x")


def namespaces(**more):
    return cri.NamespaceOption(**{"pid": cri.CONTAINER, **more})

MAPPED = cri.IDMapping(host_id=65536, length=65536)

class Refused(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\ncri:\n  network: builtin\n"

    @classmethod
    def prepare(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    def setUp(self):
        self.api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.logs = tempfile.mkdtemp(prefix="nacre-cri-")
        self.addCleanup(shutil.rmtree, self.logs)
        self.addCleanup(self.node.clear)

    def run_sandbox(self, **more):
        metadata = cri.PodSandboxMetadata(name="pod", uid="1", namespace="tests")
        config = cri.PodSandboxConfig(metadata=metadata, hostname="pod", log_directory=self.logs, **more)
        return self.api.RunPodSandbox(cri.RunPodSandboxRequest(config=config)).pod_sandbox_id

    def create(self, sandbox, name="one", **more):
        config = cri.ContainerConfig(**{"metadata": cri.ContainerMetadata(name=name), "image": cri.ImageSpec(image="busybox"),
                                        "command": ["sleep", "1000"], **more})
        return self.api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=config)).container_id

    def assertRefused(self, code, field, call):
        said = self.assertFails(code, call)
        self.assertTrue(said.startswith(field + ": "), said)

    def test_checkpoints(self):
        """A kubelet, and its own tests, take a runtime without them for one that lacks the call by this code and these words."""
        for name in ("CheckpointContainer", "CheckpointPod", "RestorePod"):
            call = self.node.channel.unary_unary(f"/runtime.v1.RuntimeService/{name}", bytes, bytes)
            said = self.assertFails(Code.UNIMPLEMENTED, lambda c=call: c(b""))
            self.assertEqual(f"unknown method {name} for service runtime.v1.RuntimeService", said)

    def test_sandboxes(self):
        def own(**more):
            return {"linux": cri.LinuxPodSandboxConfig(**more)}

        def security(**more):
            return own(security_context=cri.LinuxSandboxSecurityContext(**more))
        for code, field, more in (
                (Code.INVALID_ARGUMENT, "config.linux.cgroup_parent", own(cgroup_parent="kubepods")),
                (Code.INVALID_ARGUMENT, "config.linux.cgroup_parent", own(cgroup_parent="/kubepods/../x")),
                (Code.INVALID_ARGUMENT, "config.linux.cgroup_parent", own(cgroup_parent="/kubepods//x")),
                (Code.INVALID_ARGUMENT, "config.linux.cgroup_parent", own(cgroup_parent="/x" * 257)),
                (Code.INVALID_ARGUMENT, "config.linux.cgroup_parent", own(cgroup_parent=self.node.cgroup()[len(host.cgroup_root()):] + "/x")),
                (Code.INVALID_ARGUMENT, "config.linux.sysctls", own(sysctls={"vm.swappiness": "1"})),
                (Code.INVALID_ARGUMENT, "config.linux.sysctls", own(sysctls={"../net": "1"})),
                (Code.INVALID_ARGUMENT, "config.linux.sysctls", own(sysctls={"kernel.shm_rmid_forced": "1\n2"})),
                (Code.INVALID_ARGUMENT, "config.linux.sysctls",
                 {"linux": cri.LinuxPodSandboxConfig(sysctls={"net.ipv4.ip_forward": "1"},
                                                     security_context=cri.LinuxSandboxSecurityContext(namespace_options=namespaces(network=cri.NODE)))}),
                (Code.UNIMPLEMENTED, SECURITY + "selinux_options", security(selinux_options=cri.SELinuxOption(level="s0"))),
                *((Code.INVALID_ARGUMENT, SECURITY + "namespace_options.userns_options",
                   security(namespace_options=namespaces(userns_options=cri.UserNamespace(mode=cri.POD, uids=users, gids=groups))))
                  for users, groups in (([], []), ([MAPPED] * 2, [MAPPED]), ([MAPPED], [MAPPED] * 2), ([MAPPED], []),
                                        ([cri.IDMapping(host_id=65536, container_id=1, length=9)], [MAPPED]),
                                        ([MAPPED], [cri.IDMapping(host_id=65536, length=9)]),
                                        ([cri.IDMapping(host_id=0, length=65536)], [MAPPED]),
                                        ([cri.IDMapping(host_id=2**32 - 65536, length=65536)], [MAPPED]),
                                        ([cri.IDMapping(host_id=2**32 - 1, length=65536)], [MAPPED]),
                                        ([cri.IDMapping(host_id=65536)], [cri.IDMapping(host_id=65536)]))),
                (Code.INVALID_ARGUMENT, SECURITY + "namespace_options.userns_options",
                 security(namespace_options=namespaces(userns_options=cri.UserNamespace(mode=cri.CONTAINER)))),
                (Code.INVALID_ARGUMENT, SECURITY + "namespace_options.userns_options",
                 security(namespace_options=namespaces(userns_options=cri.UserNamespace(mode=cri.TARGET)))),
                (Code.INVALID_ARGUMENT, SECURITY + "namespace_options.network",
                 security(namespace_options=namespaces(network=cri.CONTAINER))),
                (Code.INVALID_ARGUMENT, SECURITY + "namespace_options.ipc", security(namespace_options=namespaces(ipc=cri.TARGET))),
                (Code.INVALID_ARGUMENT, SECURITY + "run_as_group", security(run_as_group=cri.Int64Value(value=1)))):
            self.assertRefused(code, field, lambda more=more: self.run_sandbox(**more))
        self.assertEqual([], list(self.api.ListPodSandbox(cri.ListPodSandboxRequest()).items))
        # What is said of a process that a sandbox does not have holds.
        self.run_sandbox(**security(run_as_user=cri.Int64Value(value=65535), readonly_rootfs=True, privileged=True, seccomp=cri.SecurityProfile(),
                                    supplemental_groups=[1], namespace_options=namespaces(userns_options=cri.UserNamespace(mode=cri.NODE))))

    def test_containers(self):
        pod = self.run_sandbox()

        def own(**more):
            return {"linux": cri.LinuxContainerConfig(**more)}

        def security(**more):
            return own(security_context=cri.LinuxContainerSecurityContext(**more))

        def resources(**more):
            return own(resources=cri.LinuxContainerResources(**more))

        def mount(**more):
            return {"mounts": [cri.Mount(**{"container_path": "/data", "host_path": self.logs, **more})]}
        for code, field, more in (
                (Code.NOT_FOUND, "config.CDI_devices", {"CDI_devices": [cri.CDIDevice(name="a.b/c=d")]}),
                (Code.UNIMPLEMENTED, SECURITY + "capabilities.add_ambient_capabilities",
                 security(capabilities=cri.Capability(add_ambient_capabilities=["NET_ADMIN"]))),
                (Code.INVALID_ARGUMENT, SECURITY + "capabilities.drop_capabilities[1]",
                 security(capabilities=cri.Capability(drop_capabilities=["ALL", "FLY"]))),
                (Code.NOT_FOUND, SECURITY + "seccomp.localhost_ref", security(seccomp=LOCALHOST)),
                *((Code.INVALID_ARGUMENT, SECURITY + "seccomp.localhost_ref", security(seccomp=cri.SecurityProfile(
                    profile_type=cri.SecurityProfile.Localhost, localhost_ref=path))) for path in ("", "x", "../x", "/x/../y", "/x/..", "/" + "x" * 4095)),
                (Code.FAILED_PRECONDITION, SECURITY + "seccomp.localhost_ref", security(seccomp=cri.SecurityProfile(
                    profile_type=cri.SecurityProfile.Localhost, localhost_ref="/dev/zero"))),
                (Code.INVALID_ARGUMENT, SECURITY + "seccomp_profile_path", security(seccomp_profile_path="localhost/x")),
                (Code.INVALID_ARGUMENT, SECURITY + "seccomp_profile_path", security(seccomp_profile_path="/x")),
                (Code.UNIMPLEMENTED, SECURITY + "apparmor", security(apparmor=LOCALHOST)),
                (Code.UNIMPLEMENTED, SECURITY + "apparmor_profile", security(apparmor_profile="localhost/x")),
                (Code.INVALID_ARGUMENT, SECURITY + "supplemental_groups", security(supplemental_groups=[-1])),
                (Code.NOT_FOUND, SECURITY + "namespace_options.target_id",
                 security(namespace_options=cri.NamespaceOption(pid=cri.TARGET, target_id="x"))),
                (Code.INVALID_ARGUMENT, SECURITY + "masked_paths", security(masked_paths=["bin/ls"])),
                (Code.INVALID_ARGUMENT, "config.linux.resources.oom_score_adj", resources(oom_score_adj=1001)),
                (Code.INVALID_ARGUMENT, "config.linux.resources.unified", resources(unified={"../memory.high": "max"})),
                (Code.INVALID_ARGUMENT, "config.mounts[0].uidMappings", mount(uidMappings=[cri.IDMapping(length=1)])),
                (Code.INVALID_ARGUMENT, "config.mounts[0].image", mount(image=cri.ImageSpec(image="busybox"))),
                (Code.INVALID_ARGUMENT, "config.mounts[0].readonly", mount(host_path="", image=cri.ImageSpec(image="busybox"))),
                (Code.NOT_FOUND, "config.mounts[0].image", mount(host_path="", readonly=True, image=cri.ImageSpec(image="none"))),
                *((Code.NOT_FOUND, "config.mounts[0].image", mount(host_path="", readonly=True, image=cri.ImageSpec(image="busybox"),
                                                                   image_sub_path=path)) for path in ("no", "bin/busybox/x")),
                (Code.INVALID_ARGUMENT, "config.mounts[0].image_sub_path", mount(host_path="", readonly=True, image=cri.ImageSpec(image="busybox"),
                                                                                 image_sub_path="/bin")),
                (Code.INVALID_ARGUMENT, "config.mounts[0].image_sub_path", mount(image_sub_path="bin")),
                (Code.INVALID_ARGUMENT, "config.mounts[0].recursive_read_only", mount(recursive_read_only=True)),
                (Code.INVALID_ARGUMENT, "config.mounts[0].mount_options", mount(mount_options=["suid"])),
                (Code.INVALID_ARGUMENT, "config.mounts[0].host_path", mount(host_path="")),
                (Code.INVALID_ARGUMENT, "config.stop_signal", {"stop_signal": 99}),
                (Code.INVALID_ARGUMENT, "config.log_path", {"log_path": "/one.log"}),
                (Code.INVALID_ARGUMENT, "config.log_path", {"log_path": "a/../../one.log"})):
            self.assertRefused(code, field, lambda more=more: self.create(pod, **more))
        self.assertEqual([], list(self.api.ListContainers(cri.ListContainersRequest()).containers))
        # What a kubelet asks for unless a pod says otherwise, and each container has.
        self.create(pod, **own(security_context=cri.LinuxContainerSecurityContext(
            no_new_privs=True, seccomp=cri.SecurityProfile(), apparmor=UNCONFINED, masked_paths=["/proc/kcore", "/sys/firmware"],
            readonly_paths=["/proc/sys"], namespace_options=namespaces()), resources=cri.LinuxContainerResources(
                hugepage_limits=[cri.HugepageLimit(page_size="2MB")])))

    def test_links_of_the_node(self):
        os.mkdir(f"{self.logs}/real")
        with open(f"{self.logs}/real/file", "w", encoding="ascii") as f:
            f.write("content")
        os.symlink("real", f"{self.logs}/link")
        os.symlink("link", f"{self.logs}/logs")
        os.symlink("/etc/passwd", f"{self.logs}/real/passwd.log")
        os.mkfifo(f"{self.logs}/real/fifo.log")
        pod = self.run_sandbox()
        one = self.create(pod, mounts=[cri.Mount(container_path="/data", host_path=f"{self.logs}/link")])
        self.api.StartContainer(cri.StartContainerRequest(container_id=one))
        answer = self.api.ExecSync(cri.ExecSyncRequest(container_id=one, cmd=["cat", "/data/file"]))
        self.assertEqual(b"content", answer.stdout)
        self.assertRefused(Code.NOT_FOUND, "config.mounts[0].host_path", lambda: self.create(
            pod, "two", mounts=[cri.Mount(container_path="/data", host_path=f"{self.logs}/nothing")]))
        # What is the node's own is not given out by a link either.
        os.symlink(self.node.root, f"{self.logs}/own")
        self.assertRefused(Code.INVALID_ARGUMENT, "config.mounts[0].host_path", lambda: self.create(
            pod, "two", mounts=[cri.Mount(container_path="/data", host_path=f"{self.logs}/own")]))
        # A link in the directory of logs stays in it, and a log is a file.
        passwd = os.stat("/etc/passwd")
        self.assertRefused(Code.NOT_FOUND, "config.log_path", lambda: self.create(pod, "two", log_path="real/passwd.log"))
        self.assertEqual(passwd, os.stat("/etc/passwd"))
        self.assertIn("fifo.log", self.assertFails(None, lambda: self.create(pod, "two", log_path="real/fifo.log")))
        self.create(pod, "two", log_path="logs/two.log")
        self.assertTrue(os.path.exists(f"{self.logs}/real/two.log"))

    def test_read_only_mounts(self):
        """Of a tree with a mount in it: the mount itself, or all of it."""
        os.mkdir(f"{self.logs}/below")
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", f"{self.logs}/below"], check=True)
        self.addCleanup(subprocess.run, ["umount", f"{self.logs}/below"], check=True)
        pod = self.run_sandbox()
        for name, recursive in (("top", False), ("all", True)):
            one = self.create(pod, name, mounts=[cri.Mount(container_path="/data", host_path=self.logs, readonly=True,
                                                           recursive_read_only=recursive)])
            self.api.StartContainer(cri.StartContainerRequest(container_id=one))
            answer = self.api.ExecSync(cri.ExecSyncRequest(container_id=one, cmd=["touch", "/data/x", "/data/below/x"]))
            self.assertIn(b"/data/x: Read-only file system", answer.stderr)
            self.assertEqual(recursive, b"/data/below/x: Read-only file system" in answer.stderr)
        self.api.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=pod))

    def assertFails(self, code, call, *words):
        if code:
            return super().assertFails(code, call, *words)
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        return caught.exception.details()


if __name__ == "__main__":
    unittest.main()
