# SPDX-License-Identifier: Apache-2.0
"""Tests of pods in a fake cloud: the class of those without machines that boot, and of those with them."""
import os
import subprocess
import threading
import unittest

import grpc

import machines
import nacre_test
import steps
from nacre_test import nacre_pb2


class CloudTest(steps.StepsTest):
    """One cloud and one node; each test ends with no machine in the cloud and no record."""

    FAKE = None                                                      # the module of the fake
    BOOT = "15m"                                                     # cloud.boot_limit
    POLL = "100ms"                                                   # cloud.poll

    @classmethod
    def setUpClass(cls):
        cls.cloud = cls.FAKE.Cloud().__enter__()
        cls.node = nacre_test.Node(config=cls.cloud.config(f"    agent_image: {cls.cloud.agent}\n", boot=cls.BOOT, poll=cls.POLL), env=cls.cloud.env())
        try:
            cls.image("busybox")
            cls.prepare()
        except BaseException:
            print(cls.node.log())
            cls.node.destroy()
            cls.cloud.__exit__()
            raise

    @classmethod
    def tearDownClass(cls):
        said = cls.node.destroy()
        cls.cloud.__exit__()
        if said:
            raise AssertionError(said)

    def setUp(self):
        self.cloud.reset()

    def tearDown(self):
        if not self.node.alive:
            self.node.wait()
            self.node.start()
        self.cloud.reset(machines=False)
        self.node.clear()
        self.none_left()

    def records(self):
        return list(self.node.clouds.ListCloudVms(nacre_pb2.ListCloudVmsRequest()).vms)

    def none_left(self):
        nacre_test.until(lambda: not self.records() and not self.cloud.alive(), what="no machine is left")

    def crash(self, place, kind):
        """The daemon ends at a place: no machine is left, and never was a second one."""
        self.node.stop()
        self.node.start(env={"NACRE_FAILPOINT": f"{place}=crash"})
        thread = threading.Thread(target=lambda: self.assertRaises(grpc.RpcError, lambda: self.pod("web", kind=kind)))
        thread.start()
        if place.startswith("far.end"):
            nacre_test.until(lambda: any(r.address for r in self.records()))
            self.assertRaises(grpc.RpcError, lambda: self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="web", force=True), timeout=60))
        nacre_test.until(lambda: not self.node.alive, what=f"the crash at {place}")
        thread.join(60)
        self.node.wait()
        self.node.start()
        nacre_test.until(lambda: not self.cloud.alive(), what=f"no machine is left behind {place}")
        self.assertLessEqual(len(self.cloud.machines), 1)


class BootTest(CloudTest):
    """With a guest set as the agent's image, and machines that boot it."""

    @classmethod
    def setUpClass(cls):
        machines.need()
        if nacre_test.SANITIZED:
            raise unittest.SkipTest("a program that is not static is no pid 1 of an initramfs")
        super().setUpClass()

    @classmethod
    def prepare(cls):
        machines.build_set(cls.node, "--cloud", "--name", "agent")
        place = os.path.join(cls.node.root, "guest", "agent")
        tsc = subprocess.run([os.path.join(nacre_test.BUILD, "tests", "guest", "tsc")], capture_output=True, text=True, check=True).stdout.strip()
        cls.cloud.guest = (os.path.join(place, "kernel"), os.path.join(place, "initrd"),
                           ["quiet", "NACRE_PATIENCE=120", f"tsc_early_khz={tsc}"])
