#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pods whose image is that of a machine in a cloud ("ami://…", "gce://…", "vsphere://…"): the machine is the pod. Nothing boots here; however
one ends, none is left."""
import os
import signal
import threading
import unittest

import grpc

import cloud_pods
import fake_ec2
import fake_gce
import fake_vsphere
import host
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2

Code = grpc.StatusCode
GIB = 1 << 30


class ImageTest(cloud_pods.CloudTest):
    KIND = IMAGE = None

    def run_pod(self, name="web", image=None, **fields):
        return self.pod(name, steps.container(image=image or self.IMAGE), **fields)

    def only(self):
        (machine,) = self.cloud.alive()
        return machine

    def state_of(self, name="web"):
        return self.inspect(name).state

    def ends(self, state, *words):
        nacre_test.until(lambda: self.state_of() == state, what=f"web is {state}")
        w = self.inspect("web")
        for word in words:
            self.assertIn(word, w.reason + w.containers[0].reason)
        self.none_left()


class Same:
    """What is the same in all clouds."""

    def test_life(self):
        answer = self.run_pod()
        self.assertEqual((self.KIND, "its image is that of a machine"), (answer.kind, answer.kind_reason))
        w = self.inspect("web")
        self.assertEqual(("vm", "running", self.IMAGE), (w.kind, w.state, w.containers[0].image))
        (record,) = self.records()
        self.assertEqual(("pod-" + w.id, "running"), (record.name, record.state))
        self.assertIn(w.id, self.tags(self.only()).values())
        self.assertIn("web", self.node.cli("ps").stdout)
        # Over the end of the daemon it is what it was, and only one.
        os.kill(self.node.pid, signal.SIGKILL)
        self.node.wait()
        self.node.start()
        self.assertEqual("running", self.state_of())
        self.assertEqual(1, len(self.cloud.alive()))
        self.stop("web")
        w = self.inspect("web")
        self.assertEqual(("exited", 137), (w.state, w.exit_code))
        self.none_left()
        self.remove("web")
        self.assertEqual([], list(self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads))

    def test_what_is_refused(self):
        for field, call in (
                ("containers[0].command", lambda: self.pod("web", steps.container("sh", image=self.IMAGE))),
                ("containers[0].env", lambda: self.pod("web", steps.container(image=self.IMAGE, env=["A=b"]))),
                ("containers[0].resources.pids", lambda: self.pod("web", steps.container(
                    image=self.IMAGE, resources=runtime_pb2.Resources(pids=9)))),
                ("volumes", lambda: self.run_pod(volumes=[runtime_pb2.Volume(name="v")])),
                ("restart", lambda: self.run_pod(restart=runtime_pb2.RestartPolicy(policy="always"))),
                ("network", lambda: self.run_pod(network="default")),
                ("parent", lambda: self.run_pod("x/web"))):
            with self.subTest(field):
                self.assertFails(Code.UNIMPLEMENTED, call, field + ": ")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_pod(kind="cell"), "kind: ", self.KIND)
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.pod("web", steps.container(image=self.IMAGE), steps.container("true", name="b")),
                         "containers: ")
        other = "gce://x" if self.KIND != "gce" else "ami://ami-1"
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.run_pod(image=other), "the cloud of this node is " + self.KIND)
        self.assertEqual(({}, []), (dict(self.cloud.machines), list(self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads)))

    def test_what_cannot_be_done_to_it(self):
        self.run_pod()
        for call in (lambda: self.exec_all("web", "true"), lambda: list(self.node.workloads.Logs(nacre_pb2.LogsRequest(target="web", follow=True))),
                     lambda: list(self.node.workloads.Attach(iter([nacre_pb2.AttachRequest(target="web")]), timeout=60))):
            self.assertFails(Code.UNIMPLEMENTED, call, "machine")

    def test_node_reboots(self):
        """The pod is lost with the node's state, and its machine is found by its record."""
        self.run_pod()
        self.node.kill()
        host.end_cgroup(self.node.cgroup())
        with open(os.path.join(self.node.run, "boot"), "w", encoding="ascii") as f:
            f.write("00000000-0000-0000-0000-000000000000\n")
        self.node.start()
        self.none_left()

    def test_record_removed_by_hand(self):
        self.run_pod()
        self.node.cli("cloud", "rm", "--force", self.records()[0].name)
        self.ends("failed", "its machine in the cloud is")


class Boots:
    """Where the cloud tells of a machine that it does not run yet."""

    def test_removed_while_it_boots(self):
        self.cloud.boot = 3600
        thread = threading.Thread(target=lambda: self.assertRaises(grpc.RpcError, self.run_pod))
        thread.start()
        nacre_test.until(self.cloud.alive)
        self.remove("web", force=True)
        thread.join(60)
        self.assertFalse(thread.is_alive())
        self.none_left()

    def test_daemon_ends_while_it_boots(self):
        """Whoever asked asks again: nothing is left of the first call, and its name is free."""
        self.cloud.boot = 3600
        thread = threading.Thread(target=lambda: self.assertRaises(grpc.RpcError, self.run_pod))
        thread.start()
        nacre_test.until(self.cloud.alive)
        os.kill(self.node.pid, signal.SIGKILL)
        thread.join(60)
        self.node.wait()
        self.node.start()
        self.none_left()
        self.cloud.boot = 0.05
        self.run_pod()
        self.assertEqual(1, len(self.cloud.alive()))


class Ec2(Same, Boots, ImageTest):
    FAKE, KIND, IMAGE = fake_ec2, "ec2", "ami://ami-1"

    @staticmethod
    def tags(machine):
        return machine.tags

    def test_size_and_console(self):
        self.run_pod(resources=runtime_pb2.Resources(memory=4 * GIB))
        machine = self.only()
        self.assertEqual(("ami-1", "big"), (machine.parameters["ImageId"], machine.parameters["InstanceType"]))
        self.assertEqual(machine.console.encode(), self.logs("web"))
        self.assertEqual(f"{machine.id} login: ", self.node.cli("logs", "--tail", "1", "web").stdout)

    def test_refused_by_the_cloud(self):
        self.cloud.capacity = 0
        self.assertFails(Code.RESOURCE_EXHAUSTED, self.run_pod, "InsufficientInstanceCapacity", "sufficient capacity in the zone")
        self.assertFails(Code.NOT_FOUND, lambda: self.inspect("web"), "web")
        self.cloud.capacity = None
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_pod(image="ami://ami-0"), "InvalidAMIID.NotFound")
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.run_pod(resources=runtime_pb2.Resources(cpu_quota=900000, cpu_period=100000)),
                         "9 processors")
        self.assertEqual({}, dict(self.cloud.machines))
        self.run_pod()

    def test_switched_off_by_its_guest(self):
        self.run_pod()
        machine = self.only()
        machine.reason, machine.ended = "Client.InstanceInitiatedShutdown: Instance initiated shutdown", self.cloud.now()
        self.ends("exited", "InstanceInitiatedShutdown")
        self.assertEqual(0, self.inspect("web").exit_code)

    def test_reclaimed(self):
        self.run_pod()
        machine = self.only()
        machine.reason, machine.ended = "Server.SpotInstanceTermination: Spot instance termination", self.cloud.now()
        self.ends("failed", "SpotInstanceTermination")
        self.assertEqual(1, len(self.cloud.machines))

    def test_spot(self):
        """With cloud.ec2.spot: asked for as such, with the cloud's reason where it has none, and when it takes one back."""
        with nacre_test.Node(config=self.cloud.config("    spot: yes\n"), env=self.cloud.env()) as node:
            def run():
                node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name="web"), containers=[steps.container(image=self.IMAGE)]))
            self.cloud.fail["RunInstances"] = [(400, "MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")]
            self.assertFails(Code.RESOURCE_EXHAUSTED, run, "MaxSpotInstanceCountExceeded")
            self.assertEqual({}, dict(self.cloud.machines))
            run()
            machine = self.only()
            self.assertEqual("spot", machine.parameters["InstanceMarketOptions.MarketType"])
            machine.reason, machine.ended = "Server.SpotInstanceTermination: Spot instance termination", self.cloud.now()
            inspect = lambda: node.workloads.Inspect(nacre_pb2.InspectRequest(target="web")).workload  # noqa: E731
            nacre_test.until(lambda: inspect().state == "failed")
            self.assertIn("SpotInstanceTermination", inspect().reason)
            nacre_test.until(lambda: not self.cloud.alive())

    def test_stopped_by_somebody_else(self):
        self.run_pod()
        self.only().stopped = True
        self.ends("failed", "its machine in the cloud is stopped")

    def test_deleted_without_a_word(self):
        self.run_pod()
        with self.cloud.lock:
            self.cloud.machines.clear()
        self.ends("failed", "does not show it any more")

    def test_renamed_and_bare_of_tags(self):
        """Another name changes nothing; one that lost its tags is nobody's, and ended."""
        self.run_pod()
        machine = self.only()
        machine.tags["Name"] = "theirs"
        calls = self.cloud.calls["DescribeInstances"]
        nacre_test.until(lambda: self.cloud.calls["DescribeInstances"] > calls + 2)
        self.assertEqual("running", self.state_of())
        machine.tags.clear()
        self.ends("failed", "does not show it any more")


class Gce(Same, Boots, ImageTest):
    FAKE, KIND, IMAGE = fake_gce, "gce", "gce://projects/debian-cloud/global/images/family/debian-12"

    @staticmethod
    def tags(machine):
        return machine.labels

    def test_spot(self):
        with nacre_test.Node(config=self.cloud.config("    spot: yes\n"), env=self.cloud.env()) as node:
            node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name="web"), containers=[steps.container(image=self.IMAGE)]))
            self.assertEqual(("SPOT", "DELETE", False), tuple(self.only().body["scheduling"][k] for k in (
                "provisioningModel", "instanceTerminationAction", "automaticRestart")))
            node.workloads.Remove(nacre_pb2.RemoveRequest(target="web", force=True), timeout=60)
            nacre_test.until(lambda: not self.cloud.alive())

    def test_stopped(self):
        """Its guest, or somebody there: that is its end, and it is removed."""
        self.run_pod()
        self.only().stopped = True
        self.ends("exited", "its machine in the cloud is stopped")


class Vsphere(Same, ImageTest):
    FAKE, KIND, IMAGE = fake_vsphere, "vsphere", "vsphere://debian"

    @staticmethod
    def tags(machine):
        return machine.tags

    def test_stopped(self):
        self.run_pod()
        self.only().on = False
        self.ends("exited", "its machine in the cloud is stopped")


if __name__ == "__main__":
    unittest.main()
