# SPDX-License-Identifier: Apache-2.0
"""Devices of the node in containers of Kubernetes: those that were asked for, so as they were asked for, and no other one."""
import json
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
    VENDORS = tempfile.mkdtemp(prefix="nacre-cdi-")
    CONFIG = f"network:\n  default: default\ncri:\n  network: builtin\ndevices:\n  cdi_dirs: {VENDORS}/none:{VENDORS}/etc:{VENDORS}/run\n"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.VENDORS, ignore_errors=True)
        super().tearDownClass()

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

    def create(self, *devices, name="one", mounts=(), start=True, cdi=(), annotations=None, envs=(), **security):
        context = cri.LinuxContainerSecurityContext(**security)
        config = cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name), image=cri.ImageSpec(image="busybox"), command=["sleep", "1000"],
                                     devices=[cri.Device(**d) for d in devices], mounts=mounts, envs=envs, annotations=annotations or {},
                                     CDI_devices=[cri.CDIDevice(name=n) for n in cdi],
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

    def vendor(self, where, name, text):
        os.makedirs(f"{self.VENDORS}/{where}", exist_ok=True)
        self.addCleanup(shutil.rmtree, f"{self.VENDORS}/{where}", ignore_errors=True)
        with open(f"{self.VENDORS}/{where}/{name}", "w", encoding="utf-8") as f:
            f.write(text)

    def test_devices_of_vendors(self):
        """By name, from files of two directories and of both forms."""
        zero = {"deviceNodes": [{"path": "/dev/v/zero", "hostPath": "/dev/zero", "permissions": "r"}], "additionalGids": [4321]}
        self.vendor("etc", "a.json", json.dumps({"cdiVersion": "0.7.0", "kind": "vendor.com/mem", "devices": [
            {"name": "zero", "containerEdits": zero}, {"name": "loop", "containerEdits": {"env": ["WHICH=old"]}}]}))
        self.vendor("run", "b.yaml", f"""---
cdiVersion: 1.0.0
kind: vendor.com/mem
containerEdits:
  env: [KIND=mem, "MINE=theirs"]
  mounts:
  - {{hostPath: {self.VENDORS}/run, containerPath: /vendor, options: [ro, nosuid, noexec]}}
devices:
- name: loop
  containerEdits:
    env: [WHICH=new]
    deviceNodes:
    - path: /dev/v/loop
      hostPath: {self.device}
""")
        own = {"host_path": "/dev/null", "container_path": "/dev/own"}
        one = self.create(own, cdi=["vendor.com/mem=loop"], annotations={"cdi.k8s.io/plugin": "vendor.com/mem=zero,vendor.com/mem=loop"},
                          envs=[cri.KeyValue(key="MINE", value=b"mine")])
        self.assertEqual("a ed\n4\nnew mem theirs\nb.yaml\n0 4321",
                         self.sh(one, "stat -c '%t %T' /dev/v/loop; head -c 4 /dev/v/zero | wc -c; echo $WHICH $KIND $MINE; ls /vendor; id -G"))
        self.assertEqual("read", self.sh(one, "exec 3</dev/v/loop && echo read"))
        self.assertIn("Read-only", self.sh(one, "touch /vendor/x"))
        self.assertIn("noexec", self.sh(one, "grep ' /vendor ' /proc/self/mounts"))
        # Nobody else has it, and nothing of it is opened by its rules.
        self.assertIn("No such file", self.sh(self.create(name="two"), "ls /dev/v"))

    def test_devices_of_vendors_that_are_not_there(self):
        good = {"cdiVersion": "0.7.0", "kind": "vendor.com/mem", "devices": [
            {"name": "gone", "containerEdits": {"deviceNodes": [{"path": "/dev/v", "hostPath": "/dev/none"}]}},
            {"name": "hook", "containerEdits": {"hooks": [{"hookName": "prestart", "path": "/bin/x"}]}}]}
        self.vendor("etc", "a.json", json.dumps(good))
        self.vendor("etc", "b.yaml", "kind: [\n")
        for code, name, words in (
                (Code.INVALID_ARGUMENT, "vendor.com=x", "is not vendor/class=name"),
                (Code.NOT_FOUND, "vendor.com/mem=x", f"no file has the device vendor.com/mem=x ({self.VENDORS}/etc/b.yaml: line "),
                (Code.NOT_FOUND, "vendor.com/mem=gone", "/dev/none"),
                (Code.UNIMPLEMENTED, "vendor.com/mem=hook", f"{self.VENDORS}/etc/a.json: vendor.com/mem=hook: containerEdits.hooks: prestart")):
            said = self.assertFails(code, lambda name=name: self.create(cdi=[name]))
            self.assertEqual((True, True), (said.startswith("config.CDI_devices: "), words in said), said)
        self.vendor("run", "c.json", "")
        os.unlink(f"{self.VENDORS}/run/c.json")
        os.mkfifo(f"{self.VENDORS}/run/c.json")
        said = self.assertFails(Code.FAILED_PRECONDITION, lambda: self.create(cdi=["vendor.com/mem=gone"]))
        self.assertIn("c.json: it is no regular file", said)
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.create(cdi=[f"a.b/c={i}" for i in range(65)]))
        self.assertEqual([], list(self.api.ListContainers(cri.ListContainersRequest()).containers))

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
