# SPDX-License-Identifier: Apache-2.0
"""Devices of the node in containers of Kubernetes: those that were asked for, so as they were asked for, and no other one."""
import os
import shutil
import stat
import subprocess
import tempfile
import unittest

import grpc

import nacre_test

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode
LOOP = os.makedev(10, 237)


class Devices(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\ncri:\n  network: builtin\n"

    @classmethod
    def prepare(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    def setUp(self):
        self.api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.dir = tempfile.mkdtemp(prefix="nacre-cri-", dir="/dev")
        self.addCleanup(shutil.rmtree, self.dir)
        self.addCleanup(self.node.clear)
        config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="pod", uid="1", namespace="tests"), hostname="pod")
        self.pod = self.api.RunPodSandbox(cri.RunPodSandboxRequest(config=config)).pod_sandbox_id
        # A device that no container has: that of the loop devices.
        self.device = self.node_of("loop", LOOP)

    def node_of(self, name, number, mode=stat.S_IFCHR | 0o666):
        path = f"{self.dir}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mknod(path, mode, number)
        os.chmod(path, 0o666)
        return path

    def create(self, *devices, name="one", mounts=(), start=True, **security):
        context = cri.LinuxContainerSecurityContext(**security)
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name), image=cri.ImageSpec(image="busybox"), command=["sleep", "1000"],
                                     devices=[cri.Device(**d) for d in devices], mounts=mounts,
                                     linux=cri.LinuxContainerConfig(security_context=context))
        one = self.api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=self.pod, config=config)).container_id
        if start:
            self.api.StartContainer(cri.StartContainerRequest(container_id=one))
        return one

    def sh(self, container, script):
        done = self.api.ExecSync(cri.ExecSyncRequest(container_id=container, cmd=["sh", "-c", script]))
        return (done.stdout + done.stderr).decode().strip()

    def assertRefused(self, code, field, **device):
        said = self.assertFails(code, lambda: self.create({"container_path": "/dev/x", "permissions": "rwm", **device}))
        self.assertTrue(said.startswith(f"config.devices[0].{field}: "), said)

    def test_what_was_asked_for(self):
        opened = "exec 3<{0} && echo read; exec 4>>{0} && echo written"
        one = self.create({"host_path": self.device, "container_path": "/dev/mine", "permissions": "rwm"},
                          {"host_path": self.device, "container_path": "/dev/sub/dir/mine", "permissions": "r"},
                          {"host_path": "/dev/zero", "container_path": "/opt/zero", "permissions": "rw"})
        self.assertEqual("read\nwritten", self.sh(one, opened.format("/dev/mine")))
        # The rules are of the device, whatever the name; its mode is the node's own affair.
        self.assertEqual("read\nwritten", self.sh(one, opened.format("/dev/sub/dir/mine")))
        self.assertEqual("4", self.sh(one, "head -c 4 /opt/zero | wc -c"))
        self.assertEqual("a ed", self.sh(one, "stat -c '%t %T' /dev/mine"))
        self.assertIn("Read-only", self.sh(one, "chmod 600 /dev/mine"))
        self.assertEqual(0o666, stat.S_IMODE(os.stat(self.device).st_mode))
        # A container beside it has none of that.
        other = self.create(name="other")
        self.assertIn("No such file", self.sh(other, "ls /dev/mine"))

    def test_only_reading(self):
        one = self.create({"host_path": self.device, "container_path": "/dev/mine", "permissions": "r"})
        said = self.sh(one, "exec 3</dev/mine && echo read; (exec 4>>/dev/mine) || echo refused")
        self.assertTrue(said.startswith("read\nrefused") and "not permitted" in said, said)

    def test_a_directory_and_links(self):
        self.node_of("d/a", LOOP)
        self.node_of("d/deep/b", os.makedev(1, 3))
        os.symlink("/etc/passwd", f"{self.dir}/d/link")
        os.symlink("d", f"{self.dir}/way")
        one = self.create({"host_path": f"{self.dir}/way", "container_path": "/dev/all", "permissions": "r"})
        self.assertEqual("read", self.sh(one, "exec 3</dev/all/a && cat /dev/all/deep/b && echo read"))
        self.assertIn("not permitted", self.sh(one, "echo x >>/dev/all/a"))

    def test_a_volume_has_no_devices(self):
        """Unless the container is privileged, which has all of them."""
        mounts = [cri.Mount(container_path="/host", host_path=self.dir)]
        one = self.create(mounts=mounts)
        self.assertIn("denied", self.sh(one, "cat /host/loop"))
        all_of_them = self.create(name="two", mounts=mounts, privileged=True)
        self.assertEqual("read", self.sh(all_of_them, "exec 3</host/loop && echo read"))

    def test_wrong_ones(self):
        self.assertRefused(Code.INVALID_ARGUMENT, "permissions", host_path=self.device, permissions="rwx")
        self.assertRefused(Code.INVALID_ARGUMENT, "host_path", host_path="")
        self.assertRefused(Code.INVALID_ARGUMENT, "host_path", host_path="dev/zero", container_path="/dev/x")
        self.assertRefused(Code.NOT_FOUND, "host_path", host_path="/dev/nothing")
        self.assertRefused(Code.FAILED_PRECONDITION, "host_path", host_path="/etc/passwd")
        for path in ("/dev/null", "/dev/pts/7", "/dev/fd/3", "/proc/x", "/sys/x", "/dev/../x", "x"):
            self.assertRefused(Code.INVALID_ARGUMENT, "container_path", host_path=self.device, container_path=path)
        self.assertRefused(Code.INVALID_ARGUMENT, "host_path", host_path=self.node.root)
        said = self.assertFails(Code.INVALID_ARGUMENT, lambda: self.create(*[
            {"host_path": self.device, "container_path": f"/dev/x{k}"} for k in range(33)]))
        self.assertTrue(said.startswith("config.devices: 33"), said)


if __name__ == "__main__":
    unittest.main()
