#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pods of kind ec2: a machine of the fake's boots, enrols over the network and runs containers; however that goes wrong, none is left."""
import base64
import os
import signal
import struct
import subprocess
import threading
import unittest

import grpc

import fake_ec2
import faults
import host
import machines
import nacre_test
import steps
from nacre_test import nacre_pb2, runtime_pb2

Code = grpc.StatusCode
AGENT = "    agent_image: ami-a9e47\n"
MARK = b"#nacre-boot\n"
CLOCK = 2                                                            # the tag of wall_clock_ns (wire/message/bootmsg.c)


def older(user_data, seconds):
    """The same user-data, written so long ago."""
    frame = bytearray(base64.b64decode(user_data.removeprefix(MARK)))
    at = 12
    while struct.unpack_from("<H", frame, at)[0] != CLOCK:
        at += 4 + struct.unpack_from("<H", frame, at + 2)[0]
    clock, = struct.unpack_from("<Q", frame, at + 4)
    struct.pack_into("<Q", frame, at + 4, clock - seconds * 10 ** 9)
    return MARK + base64.b64encode(frame) + b"\n"


class CloudTest(steps.StepsTest):
    """One cloud and one node; each test ends with no machine in the cloud and no record."""

    @classmethod
    def setUpClass(cls):
        cls.cloud = fake_ec2.Cloud().__enter__()
        cls.node = nacre_test.Node(config=cls.cloud.config(AGENT), env=cls.cloud.env())
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


class Machines(CloudTest):
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

    def test_life(self):
        made = self.pod("web", steps.container("sh", "-c", "echo hello; exec sleep 100000", name="main"), kind="ec2")
        self.assertEqual("ec2", made.kind)
        (machine,) = self.cloud.alive()
        instance = self.inspect("web")
        self.assertEqual(("running", "ec2"), (instance.state, instance.instance_kind))
        # Tags and user-data: whose it is, and how it enrols. No key is in there.
        (record,) = self.records()
        self.assertEqual({"nacre-cluster", "nacre-node", "nacre-vm", "nacre-instance", "Name"}, set(machine.tags))
        self.assertEqual((record.id, "pod-" + machine.tags["nacre-instance"]), (machine.tags["nacre-vm"], record.name))
        self.assertTrue(machine.user_data.startswith(MARK) and len(machine.user_data) < 4096, machine.user_data)
        self.assertEqual("small", machine.parameters["InstanceType"])
        nacre_test.until(lambda: self.logs("web") == b"hello\n")
        # It is another kernel, with the pod's name, and the network of its cloud.
        self.assertEqual("web\n", self.sh("web", "hostname"))
        self.assertIn("inet 169.254.169.15/24", self.sh("web", "ip addr"))
        # What was written for the agent is out of reach of what runs there, and so is the agent.
        asked = machine.guest.asked
        for address, port in (("169.254.169.254", 80), ("169.254.169.15", 7474), ("127.0.0.1", 7474)):
            out, err, code = self.exec("web", "sh", "-c", f"echo | nc -w 2 {address} {port}")
            self.assertEqual((b"", 1), (out, code), (address, err))
        self.assertEqual(asked, machine.guest.asked)
        # Standard input, and a status.
        self.assertEqual((b"", b"", 7), self.exec("web", "sh", "-c", "exit 7"))
        self.restarts()
        self.node.workloads.Stop(nacre_pb2.StopRequest(target="web", grace_ms=100), timeout=60)
        self.assertEqual("exited", self.inspect("web").state)
        self.none_left()
        self.assertFalse(machine.guest.alive)
        self.old_token(machine)

    def restarts(self):
        """The daemon is killed: pod and machine are what they were."""
        os.kill(self.node.pid, signal.SIGKILL)
        self.node.wait()
        self.node.start()
        self.assertEqual("running", self.inspect("web").state)
        self.assertEqual((b"again\n", b"", 0), self.exec("web", "echo", "again"))
        self.assertEqual(1, len(self.cloud.alive()))
        self.assertEqual(b"hello\n", self.logs("web"))

    def old_token(self, machine):
        """User-data outlive what they are for; a machine that is started with old ones serves nobody, and switches itself off."""
        late = fake_ec2.Guest(self.cloud, 99, older(machine.user_data, 16 * 60))
        try:
            nacre_test.until(lambda: not late.alive, what="it has switched itself off")
            self.assertIn(b"the token in the user-data of this machine has ended", late.console())
        finally:
            late.close()


class Nobody(CloudTest):
    """In the machine nobody answers: how it goes away again."""

    def begin(self, name="web"):
        """A pod that waits for its machine, in a thread; the machine."""
        def run():
            try:
                self.pod(name, kind="ec2")
            except grpc.RpcError as e:
                self.error = e
        self.error = None
        self.thread = threading.Thread(target=run)
        self.thread.start()
        self.addCleanup(self.thread.join)
        nacre_test.until(lambda: self.cloud.alive() and any(r.address for r in self.records()), what="a machine with an address")
        return self.cloud.alive()[0]

    def failed(self, *words):
        self.thread.join(60)
        self.assertFalse(self.thread.is_alive())
        self.assertIsNotNone(self.error)
        for word in words:
            self.assertIn(word, self.error.details())

    def test_removed_while_it_boots(self):
        self.begin()
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="web", force=True), timeout=60)
        self.failed()
        self.none_left()

    def test_ended_by_somebody_else(self):
        machine = self.begin()
        machine.reason = "Server.SpotInstanceTermination: Spot instance termination"
        machine.ended = self.cloud.now()
        self.failed("its machine in the cloud is", "SpotInstanceTermination")
        self.none_left()

    def test_stopped_by_somebody_else(self):
        self.begin().stopped = True
        self.failed("its machine in the cloud is stopped")
        self.none_left()

    def test_record_removed_by_hand(self):
        self.begin()
        self.node.cli("cloud", "rm", "--force", self.records()[0].name)
        self.failed("its machine in the cloud is")
        self.none_left()

    def test_no_room(self):
        self.cloud.capacity = 0
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.pod("web", kind="ec2"), "InsufficientInstanceCapacity")
        self.assertEqual({}, dict(self.cloud.machines))

    def test_throttled_and_lost_answers(self):
        self.cloud.throttle = 3
        self.cloud.drop["RunInstances"] = 2
        self.begin()
        self.assertEqual(1, len(self.cloud.alive()))

    def test_daemon_ends_while_it_boots(self):
        """Whoever asked asks again: the machine goes."""
        self.begin()
        os.kill(self.node.pid, signal.SIGKILL)
        self.node.wait()
        self.node.start()
        self.failed()
        nacre_test.until(lambda: not self.cloud.alive())
        self.assertEqual(1, len(self.cloud.machines))

    def test_node_reboots(self):
        """Its instances are lost, and their machines are found by their records."""
        self.begin()
        self.node.kill()
        host.end_cgroup(self.node.cgroup())
        with open(os.path.join(self.node.run, "boot"), "w", encoding="ascii") as f:
            f.write("00000000-0000-0000-0000-000000000000\n")
        self.node.start()
        self.failed()
        self.none_left()

    def test_limits_choose_the_type(self):
        limits = runtime_pb2.Resources(memory=4 << 30)
        thread = threading.Thread(target=lambda: self.assertRaises(grpc.RpcError, lambda: self.pod("web", kind="ec2", resources=limits)))
        thread.start()
        nacre_test.until(self.cloud.alive)
        self.assertEqual("big", self.cloud.alive()[0].parameters["InstanceType"])
        nacre_test.until(lambda: any(r.address for r in self.records()))
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="web", force=True), timeout=60)
        thread.join(60)

    def test_refusals(self):
        """What a machine in a cloud cannot have is refused before there is one."""
        mount = runtime_pb2.Mount(source="/tmp", target="/data")
        for code, call, *words in (
                (Code.UNIMPLEMENTED, lambda: self.pod("web", steps.container("true", mounts=[mount]), kind="ec2"), "read-only"),
                (Code.FAILED_PRECONDITION, lambda: self.pod("web", kind="ec2", network="host"), '"ec2"'),
                (Code.INVALID_ARGUMENT, lambda: self.pod("web", kind="gce"), "gce")):
            with self.subTest(words):
                with self.assertRaises(grpc.RpcError) as caught:
                    call()
                self.assertIn(caught.exception.code(), (code, Code.FAILED_PRECONDITION), caught.exception.details())
                for word in words:
                    self.assertIn(word, caught.exception.details())
        self.assertEqual({}, dict(self.cloud.machines))

    def test_without_an_image(self):
        with nacre_test.Node(config=self.cloud.config(), env=self.cloud.env()) as node:
            with self.assertRaises(grpc.RpcError) as caught:
                node.runtime.RunPod(runtime_pb2.RunPodRequest(meta=runtime_pb2.Meta(name="web"), kind="ec2",
                                                              containers=[steps.container("true")]))
            self.assertEqual(Code.FAILED_PRECONDITION, caught.exception.code())
            self.assertIn("cloud.ec2.agent_image", caught.exception.details())


@faults.spread
class Crashes(CloudTest):
    """The daemon ends at each named place, in front of and behind the step."""

    @faults.for_each(faults.places("ec2"))
    def killed_at(self, place):
        self.node.stop()
        self.node.start(env={"NACRE_FAILPOINT": f"{place}=crash"})
        thread = threading.Thread(target=lambda: self.assertRaises(grpc.RpcError, lambda: self.pod("web", kind="ec2")))
        thread.start()
        if place.startswith("ec2.end"):
            nacre_test.until(lambda: any(r.address for r in self.records()))
            self.assertRaises(grpc.RpcError, lambda: self.node.workloads.Remove(nacre_pb2.RemoveRequest(target="web", force=True), timeout=60))
        nacre_test.until(lambda: not self.node.alive, what=f"the crash at {place}")
        thread.join(60)
        self.node.wait()
        self.node.start()
        nacre_test.until(lambda: not self.cloud.alive(), what=f"no machine is left behind {place}")
        self.assertLessEqual(len(self.cloud.machines), 1)


if __name__ == "__main__":
    unittest.main()
