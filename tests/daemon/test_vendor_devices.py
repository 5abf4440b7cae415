# SPDX-License-Identifier: Apache-2.0
"""Devices of vendors by name (CDI) in pods and cells of the own API, and as `--device` of the command line."""
import json
import os
import shutil
import tempfile
import unittest

import grpc

import steps
from nacre_test import runtime_pb2 as runtime, until

Code = grpc.StatusCode
FIELD = "containers[0].cdi_devices: "


class Vendors(steps.StepsTest):
    FILES = tempfile.mkdtemp(prefix="nacre-cdi-")
    CONFIG = f"devices:\n  cdi_dirs: {FILES}/etc:{FILES}/run\n"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.FILES, ignore_errors=True)
        super().tearDownClass()

    def setUp(self):
        self.addCleanup(self.node.clear)
        self.vendor("a.json", zero={"deviceNodes": [{"path": "/dev/v/zero", "hostPath": "/dev/zero", "permissions": "r"}],
                                    "mounts": [{"hostPath": f"{self.FILES}/etc", "containerPath": "/vendor", "options": ["ro"]}],
                                    "env": ["WHICH=zero"], "additionalGids": [4321]},
                    null={"deviceNodes": [{"path": "/dev/v/null", "hostPath": "/dev/null"}], "env": ["WHICH=null"]},
                    gone={"deviceNodes": [{"path": "/dev/v", "hostPath": "/dev/none"}]},
                    twice={"mounts": [{"hostPath": "/etc", "containerPath": "/taken"}]},
                    hook={"hooks": [{"hookName": "prestart", "path": "/bin/x"}]})

    def vendor(self, name, **devices):
        os.makedirs(f"{self.FILES}/etc", exist_ok=True)
        self.addCleanup(shutil.rmtree, f"{self.FILES}/etc", ignore_errors=True)
        with open(f"{self.FILES}/etc/{name}", "w", encoding="utf-8") as f:
            json.dump({"cdiVersion": "0.7.0", "kind": "vendor.com/mem",
                       "devices": [{"name": n, "containerEdits": edits} for n, edits in devices.items()]}, f)

    def run_pod(self, *names, **kwargs):
        kwargs.setdefault("args", ["sleep", "1000"])
        main = runtime.Container(image="busybox", cdi_devices=names, **kwargs)
        return self.node.runtime.RunPod(runtime.RunPodRequest(kind="cell", containers=[main]))

    def refused(self, code, *names, **kwargs):
        said = self.assertFails(code, lambda: self.run_pod(*names, **kwargs))
        self.assertTrue(said.startswith(FIELD), said)
        self.assertEqual("", self.node.cli("ps", "-aq").stdout)
        return said

    def script(self, target, script, container="main"):
        return self.node.cli("exec", "-c", container, target, "sh", "-c", script).stdout.strip()

    def test_what_a_device_gives(self):
        script = "head -c 4 /dev/v/zero | wc -c; echo $WHICH; ls /vendor; id -G; ls -d /dev/v/null"
        self.node.cli("run", "-d", "--name", "one", "--device", "vendor.com/mem=zero", "--device", "/dev/null:/dev/own", "busybox", "sleep", "1000")
        self.assertEqual("4\nzero\na.json\n0 4321", self.script("one", script + "; true"))
        self.assertEqual("1 3", self.script("one", "stat -c '%t %T' /dev/own"))
        shown = self.inspect("one").containers[0]
        self.assertEqual(["vendor.com/mem=zero"], list(shown.cdi_devices))
        self.assertEqual([("/dev/own", False), ("/dev/v/zero", True)], sorted((d.path, d.cdi) for d in shown.devices))
        self.assertEqual([("/vendor", True)], [(m.target, m.cdi) for m in shown.mounts])

    def test_each_container_of_a_pod_has_its_own(self):
        self.node.cli("pod", "--name", "two", "--", "--device", "vendor.com/mem=zero", "a=busybox", "sleep", "1000",
                      "--", "--device", "vendor.com/mem=null", "b=busybox", "sleep", "1000", "--", "c=busybox", "sleep", "1000")
        self.assertEqual("zero\nzero", self.script("two", "ls /dev/v; echo $WHICH", "a"))
        self.assertEqual("null\nnull", self.script("two", "ls /dev/v; echo $WHICH", "b"))
        self.assertEqual("", self.script("two", "ls -d /dev/v 2>/dev/null; echo $WHICH", "c"))

    def test_a_cell_has_them_too(self):
        main = runtime.Container(image="busybox", args=["sleep", "1000"], cdi_devices=["vendor.com/mem=null"])
        made = self.node.runtime.RunCell(runtime.RunCellRequest(containers=[main]))
        self.assertEqual("null", self.script(made.id, "ls /dev/v"))

    def test_a_start_reads_the_files_anew(self):
        """All containers, and one alone: a driver that was upgraded is the one that a start gets."""
        self.node.cli("run", "-d", "--name", "one", "--device", "vendor.com/mem=zero", "-v", "/etc:/mine:ro", "busybox", "sleep", "1000")
        self.vendor("a.json", zero={"deviceNodes": [{"path": "/dev/v/new", "hostPath": "/dev/null"}], "env": ["WHICH=new"]})
        self.assertEqual("zero", self.script("one", "ls /dev/v"))
        self.node.cli("restart", "one")
        self.assertEqual("new\nnew\npasswd", self.script("one", "ls /dev/v; echo $WHICH; cd /mine; ls passwd; grep ' /vendor ' /proc/self/mounts; true"))
        self.vendor("a.json", zero={"env": ["WHICH=third"]})
        self.node.cli("restart", "-c", "main", "one")
        self.assertEqual("third", self.script("one", "echo $WHICH; ls -d /dev/v 2>/dev/null; true"))
        # What is gone is told, and the pod stays what it is: stopped.
        self.node.cli("stop", "-t", "0", "one")
        self.vendor("a.json")
        done = self.node.cli("start", "one", check=False)
        self.assertIn("no file has the device vendor.com/mem=zero", done.stderr)
        self.vendor("a.json", zero={"env": ["WHICH=back"]})
        self.node.cli("start", "one")
        self.assertEqual("back", self.script("one", "echo $WHICH"))

    def test_a_policy_and_a_new_daemon_find_them(self):
        self.node.cli("run", "-d", "--name", "one", "--restart", "always", "--device", "vendor.com/mem=zero", "busybox", "sh", "-c",
                      "test -e /tmp/again && exec sleep 1000; touch /tmp/again")
        until(lambda: self.inspect("one").restart_count > 0 and self.inspect("one").state == "running")
        self.node.restart()
        self.assertEqual("zero", self.script("one", "ls /dev/v"))
        self.node.cli("restart", "one")
        self.assertEqual("zero", self.script("one", "ls /dev/v"))

    def test_refusals_name_the_field(self):
        self.assertIn("is not vendor/class=name", self.refused(Code.INVALID_ARGUMENT, "vendor.com=x"))
        self.refused(Code.NOT_FOUND, "vendor.com/mem=x")
        self.assertIn("/dev/none", self.refused(Code.NOT_FOUND, "vendor.com/mem=gone"))
        self.assertIn("containerEdits.hooks: prestart", self.refused(Code.UNIMPLEMENTED, "vendor.com/mem=hook"))
        self.assertIn("more than the limit of 64", self.refused(Code.INVALID_ARGUMENT, *[f"a.b/c={i}" for i in range(65)]))
        taken = [runtime.Mount(source="/etc", target="/taken")]
        self.assertIn("/taken is taken by mounts[0]", self.refused(Code.INVALID_ARGUMENT, "vendor.com/mem=twice", mounts=taken))
        # A broken file is told where no other one has the device.
        with open(f"{self.FILES}/etc/b.yaml", "w", encoding="utf-8") as f:
            f.write("kind: [\n")
        self.run_pod("vendor.com/mem=zero")
        self.node.clear()
        self.assertIn(f"no file has the device vendor.com/mem=x ({self.FILES}/etc/b.yaml: line ", self.refused(Code.NOT_FOUND, "vendor.com/mem=x"))
        done = self.node.cli("run", "--rm", "--device", "vendor.com/mem=x", "busybox", "true", check=False)
        self.assertEqual((125, True), (done.returncode, "--device: no file has the device" in done.stderr), done.stderr)
        for word in ("vendor.com", "vendor.com/mem"):
            self.assertIn("vendor.com/class=name", self.node.cli("run", "--device", word, "busybox", check=False).stderr)

    def test_marks_are_for_answers(self):
        said = self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_pod(mounts=[runtime.Mount(source="/etc", target="/x", cdi=True)]))
        self.assertTrue(said.startswith("containers[0].mounts[0].cdi: in answers only"), said)
        said = self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_pod(devices=[runtime.Device(host_path="/dev/null", cdi=True)]))
        self.assertTrue(said.startswith("containers[0].devices[0].cdi: in answers only"), said)

    def test_the_same_request_again_reads_no_file(self):
        q = runtime.RunPodRequest(kind="cell", request_id="once", containers=[
            runtime.Container(image="busybox", args=["sleep", "1000"], cdi_devices=["vendor.com/mem=zero"])])
        first = self.node.runtime.RunPod(q)
        os.unlink(f"{self.FILES}/etc/a.json")
        self.assertEqual(first.id, self.node.runtime.RunPod(q).id)


if __name__ == "__main__":
    unittest.main()
