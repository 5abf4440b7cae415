# SPDX-License-Identifier: Apache-2.0
"""Tests of machines in a fake cloud: one cloud and one node for the class; each test ends with no machine in the cloud and no record."""
import os
import signal
import threading
import unittest

import grpc

import host
import nacre_test

pb2 = nacre_test.nacre_pb2


class CloudTest(unittest.TestCase):
    FAKE = None                                                      # the class of the cloud
    IMAGE = ""                                                       # what run_vm() asks for
    LEASE = "2s"                                                     # cloud.lease

    @classmethod
    def setUpClass(cls):
        cls.cloud = cls.FAKE().__enter__()
        cls.node = nacre_test.Node(config=cls.cloud.config(lease=cls.LEASE), env=cls.cloud.env())

    @classmethod
    def tearDownClass(cls):
        said = cls.node.destroy()
        cls.cloud.__exit__()
        if said:
            raise AssertionError(said)

    def setUp(self):
        self.cloud.reset()

    def tearDown(self):
        self.cloud.reset(machines=False)
        for vm in self.vms():
            self.remove(vm.name)
        self.assertEqual(([], []), (self.vms(), self.cloud.alive()))

    def vms(self):
        return list(self.node.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).vms)

    def run_vm(self, name="", image=None, timeout=60, **more):
        return self.node.clouds.RunCloudVm(pb2.RunCloudVmRequest(name=name, image=self.IMAGE if image is None else image, **more),
                                           timeout=timeout * nacre_test.SLOWNESS).vm

    def remove(self, name, force=True):
        self.node.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target=name, force=force), timeout=60 * nacre_test.SLOWNESS)

    def state(self, name):
        return next((vm.state for vm in self.vms() if vm.name == name), None)

    def wait_state(self, name, state):
        return nacre_test.until(lambda: next((vm for vm in self.vms() if (vm.name, vm.state) == (name, state)), None),
                                what=f"{name} is {state}")

    def assertFails(self, code, call, *parts):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        self.assertEqual(code, caught.exception.code(), caught.exception.details())
        for part in parts:
            self.assertIn(part, caught.exception.details())

    def helpers(self):
        """Processes of nacre-cloud that this node has started."""
        return host.processes_here(os.path.join(nacre_test.BUILD, "libexec", "nacre", "nacre-cloud"))

    def interrupted(self, place, action, victim, work):
        """Runs work() in a thread; `victim` ends once, before or after the cloud carries that action out."""
        ended = threading.Event()

        def end(_):
            if not ended.is_set():
                victim()
                ended.set()
        getattr(self.cloud, place)[action] = end

        def quiet():
            try:
                work()
            except grpc.RpcError:
                pass
        thread = threading.Thread(target=quiet)
        thread.start()
        self.assertTrue(ended.wait(60), f"{place} {action}")
        thread.join(60)

    def end_helper(self):
        for pid in self.helpers():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def end_daemon(self):
        os.kill(self.node.pid, signal.SIGKILL)
