#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Machines of Google's Compute Engine, made by a node in a cloud of the test's own (tests/lib/fake_gce.py). What a node does with the
answers of a cloud is the same for all of them (test_ec2.py); this is what is said there, and what is heard."""
import os
import signal
import threading
import time
import unittest

import grpc

import cloud_machines
import fake_gce
import nacre_test

Code = grpc.StatusCode
pb2 = nacre_test.nacre_pb2
IMAGE = "projects/debian-cloud/global/images/family/debian-12"


class Gce(cloud_machines.CloudTest):
    FAKE, IMAGE = fake_gce.Cloud, IMAGE

    def test_from_run_to_rm(self):
        self.run_vm("web", cpus=3)
        vm = self.wait_state("web", "running")
        (machine,) = self.cloud.alive()
        self.assertEqual(("gce", fake_gce.ZONE, fake_gce.ZONE, IMAGE, "big"), (vm.provider, vm.region, vm.zone, vm.image, vm.type))
        self.assertEqual((machine.name, machine.address), (vm.instance, vm.address))
        self.assertEqual({"items": ["web"]}, machine.body["tags"])
        node = self.node.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).node
        wanted = {"nacre-cluster": "nacre", "nacre-node": node, "nacre-vm": vm.id, "name": "web"}
        self.assertEqual(wanted, {k: v for k, v in machine.labels.items() if k != "nacre-lease"})
        # Its lease is renewed, and the other labels stay; one that somebody else changes meanwhile too.
        first = int(machine.labels["nacre-lease"])
        with self.cloud.lock:
            machine.labels["theirs"] = "x"
            machine.n_labels += 1
        nacre_test.until(lambda: int(machine.labels["nacre-lease"]) > first, what="the lease is renewed")
        self.assertEqual({**wanted, "theirs": "x"}, {k: v for k, v in machine.labels.items() if k != "nacre-lease"})
        self.assertAlmostEqual(time.time(), int(machine.labels["nacre-lease"]), delta=60)
        console = self.node.clouds.CloudVmConsole(pb2.CloudVmConsoleRequest(target="web"))
        self.assertIn(f"{machine.name} login:".encode(), console.output)
        self.assertEqual([vm.id, "web", "gce", "running"], self.node.cli("ps").stdout.splitlines()[-1].split()[:4])
        # Somebody stops it there.
        machine.stopped = True
        self.wait_state("web", "stopped")
        self.assertEqual("exited", self.node.clouds.StopCloudVm(pb2.StopCloudVmRequest(target="web")).vm.state)
        self.assertEqual([], self.cloud.alive())

    def test_what_is_refused(self):
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_vm(image="nothing"), "notFound", "'nothing' was not found")
        self.assertFails(Code.UNIMPLEMENTED, lambda: self.run_vm(dry_run=True), "dry_run")
        self.cloud.fail["insert"] = [(403, "forbidden", "Required 'compute.instances.create' permission")]
        self.assertFails(Code.FAILED_PRECONDITION, self.run_vm, "compute.instances.create", "doc/cloud.md")
        # The answer to the call is good, and the operation is not.
        self.cloud.broken = ("ZONE_RESOURCE_POOL_EXHAUSTED", "does not have enough resources available")
        self.assertFails(Code.RESOURCE_EXHAUSTED, self.run_vm, "ZONE_RESOURCE_POOL_EXHAUSTED", "enough resources")
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.node.runtime.RunPod(nacre_test.runtime_pb2.RunPodRequest(
            kind="ec2", containers=[nacre_test.runtime_pb2.Container(image="busybox")])), "gce")
        self.assertEqual(([], {}), (self.vms(), dict(self.cloud.machines)))

    def test_what_goes_wrong(self):
        """Lost answers, limits, faults of the server and of what is in front of it: one machine, and none left."""
        for action in ("insert", "operation", "get", "list", "delete"):
            self.cloud.drop[action] = 1
        self.cloud.fail["insert"] = [(503, "backendError", "later"), (429, "rateLimitExceeded", "slower")]
        self.cloud.throttle = 4
        self.run_vm("vm")
        self.wait_state("vm", "running")
        self.assertEqual(1, len(self.cloud.machines))
        self.remove("vm")
        self.assertEqual([], self.cloud.alive())
        # The id of the request is forgotten there, and the name is not.
        self.cloud.reset()
        self.cloud.drop["insert"] = 1
        thread = threading.Thread(target=self.run_vm, args=("late",))
        with self.cloud.lock:
            thread.start()
            nacre_test.until(lambda: self.vms())
        nacre_test.until(lambda: self.cloud.machines)
        self.cloud.requests.clear()
        thread.join(60)
        self.wait_state("late", "running")
        self.assertEqual(1, len(self.cloud.machines))

    def test_answers_that_are_deep_huge_or_cut_off(self):
        """Each is no answer: the call is made again with its token, and what it made is found by that."""
        for raw in (b"[" * 200000 + b"]" * 200000, b'{"a": [' + b"1," * (1 << 21) + b"1]}", b'{"name": "operation', b"", b"\0" * 64, b"[]",
                    b'{"status": "DONE", "status": 1e999999}'):
            with self.subTest(raw[:24]):
                begun = threading.Thread(target=self.run_vm, args=("vm",))
                calls = self.cloud.n_calls
                self.cloud.raw = raw
                begun.start()
                nacre_test.until(lambda calls=calls: self.cloud.n_calls >= calls + 3)
                self.cloud.raw = None
                begun.join(60)
                self.assertFalse(begun.is_alive())
                self.wait_state("vm", "running")
                self.assertEqual(1, len(self.cloud.alive()))
                self.remove("vm")
                self.assertEqual([], self.cloud.alive())

    def test_deleted_while_it_is_made(self):
        """Somebody deletes it there: the call fails, and no record stays. So where nobody knows of the operation any more."""
        self.cloud.work = 0.5
        for more in ({}, {"drop": True}):
            with self.subTest(more):
                failed = []
                self.cloud.drop["insert"] = 1 if more else 0
                thread = threading.Thread(target=lambda: failed.append(self.assertRaises(grpc.RpcError, self.run_vm, "vm")))
                thread.start()
                nacre_test.until(lambda: self.cloud.machines)
                with self.cloud.lock:
                    self.cloud.machines.clear()
                    if more:
                        self.cloud.operations.clear()
                        self.cloud.requests.clear()
                        self.cloud.broken = ("INVALID_USAGE", "no second one")
                thread.join(60)
                nacre_test.until(lambda: not self.vms(), what="no record stays")
        # The operation is forgotten, the machine is there: it is taken.
        with self.cloud.lock:
            thread = threading.Thread(target=self.run_vm, args=("kept",))
            thread.start()
            nacre_test.until(lambda: self.vms())
        nacre_test.until(lambda: self.cloud.machines)
        self.cloud.operations.clear()
        thread.join(60)
        self.wait_state("kept", "running")
        self.assertEqual(1, len(self.cloud.machines))

    def test_the_id_of_another_request(self):
        """The cloud knows the requestId with another body, or the name with other labels: nothing of that is taken for ours."""
        def other(name):
            self.cloud.machines[name] = fake_gce.Machine(self.cloud, 9, {"name": name, "machineType": "x/y", "labels": {"theirs": "x"}})

        self.cloud.before["insert"] = lambda q, body: self.cloud.requests.setdefault(q["requestId"], ({}, "operation-0"))
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_vm("vm"), "requestId")
        self.assertEqual(([], {}), (self.vms(), dict(self.cloud.machines)))
        self.cloud.before["insert"] = lambda q, body: body["name"] in self.cloud.machines or other(body["name"])
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.run_vm("vm"), "without the labels")
        self.assertEqual(([], 1), (self.vms(), len(self.cloud.alive())))
        self.cloud.reset()

    def test_the_daemon_ends_while_it_is_made(self):
        self.cloud.work = 1
        thread = threading.Thread(target=lambda: self.assertRaises(grpc.RpcError, self.run_vm, "vm"))
        thread.start()
        nacre_test.until(lambda: self.cloud.machines)
        os.kill(self.node.pid, signal.SIGKILL)
        self.node.wait()
        thread.join(60)
        self.node.start()
        self.wait_state("vm", "running")
        self.assertEqual(1, len(self.cloud.machines))

    def test_tokens(self):
        """One that ends is replaced; a machine of Google's needs no key."""
        claims = self.cloud.claims
        with self.cloud.lock:
            self.cloud.tokens.clear()
        for name in ("a", "b", "c"):
            self.run_vm(name)
            self.wait_state(name, "running")
        self.assertEqual(claims + 1, self.cloud.claims)
        with nacre_test.Node(config=self.cloud.config(), env={"GOOGLE_APPLICATION_CREDENTIALS": "", **self.cloud.env(metadata=True)}) as other:
            other.clouds.RunCloudVm(pb2.RunCloudVmRequest(name="vm", image=IMAGE))
            self.assertEqual((4, claims + 1), (len(self.cloud.alive()), self.cloud.claims))
            other.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="vm", force=True))


if __name__ == "__main__":
    unittest.main()
