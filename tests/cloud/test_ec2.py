#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Machines of EC2, made by a node in a cloud of the test's own (tests/lib/fake_ec2.py): however a call goes wrong, none is left."""
import json
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import unittest

import grpc

import cloud_machines
import fake_ec2
import faults
import host
import nacre_test
import schema

Code = grpc.StatusCode
pb2 = nacre_test.nacre_pb2


class CloudTest(cloud_machines.CloudTest):
    FAKE, IMAGE = fake_ec2.Cloud, "ami-1"
    LEASE = "24h"


class Life(CloudTest):
    def test_from_run_to_rm(self):
        with nacre_test.Events(self.node) as events:
            made = self.run_vm("web")
            self.assertIn(made.state, ("pending", "running"))
            vm = self.wait_state("web", "running")
            self.assertEqual(("ec2", "eu-test-1", "eu-test-1a", "ami-1", "small"), (vm.provider, vm.region, vm.zone, vm.image, vm.type))
            (machine,) = self.cloud.alive()
            self.assertEqual((vm.instance, vm.address), (machine.id, machine.address))
            node = self.node.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).node
            self.assertRegex(node, "^[0-9a-f]{16}$")
            lease = int(machine.tags.pop("nacre-lease"))
            self.assertAlmostEqual(time.time() + 24 * 3600, lease, delta=300)
            self.assertEqual({"nacre-cluster": "nacre", "nacre-node": node, "nacre-vm": vm.id, "Name": "web"}, machine.tags)
            q = machine.parameters
            self.assertEqual(("subnet-1", "sg-1", "sg-2", "required", "terminate"), (
                q["SubnetId"], q["SecurityGroupId.1"], q["SecurityGroupId.2"], q["MetadataOptions.HttpTokens"],
                q["InstanceInitiatedShutdownBehavior"]))
            self.assertEqual([vm.id, "web", "ec2", "running"], self.node.cli("ps").stdout.splitlines()[-1].split()[:4])
            console = self.node.clouds.CloudVmConsole(pb2.CloudVmConsoleRequest(target="web"))
            self.assertEqual((machine.console.encode(), "2026-01-01T00:00:00.000Z"), (console.output, console.time))
            self.assertFails(Code.FAILED_PRECONDITION, lambda: self.remove("web", force=False), "has not ended")
            self.assertEqual("exited", self.node.clouds.StopCloudVm(pb2.StopCloudVmRequest(target=vm.id)).vm.state)
            self.assertEqual([], self.cloud.alive())
            self.assertNotIn("web", self.node.cli("ps").stdout)
            self.assertIn("exited", self.node.cli("ps", "-a").stdout)
            # Ending what has ended is fine.
            self.assertEqual("exited", self.node.clouds.StopCloudVm(pb2.StopCloudVmRequest(target="web")).vm.state)
            self.assertGreater(self.vms()[0].ended_at, self.vms()[0].created_at)
            self.remove("web", force=False)
            for state in ("pending", "running", "ending", "exited", "removed"):
                events.wait("web", state, object="cloud", kind="ec2")

    def test_command_line(self):
        cli = self.node.cli
        self.assertEqual("the cloud would make it\n", cli("cloud", "run", "--dry-run", "ami-1").stdout)
        self.assertEqual([], self.cloud.alive())
        self.assertEqual("db\n", cli("cloud", "run", "--name", "db", "--cpus", "3", "ami-1").stdout)
        self.wait_state("db", "running")
        table = cli("cloud", "ls").stdout.splitlines()
        self.assertEqual(["NAME", "STATE", "INSTANCE", "TYPE", "ADDRESS", "REASON"], table[0].split())
        self.assertEqual(["db", "running", self.cloud.alive()[0].id, "big"], table[1].split()[:4])
        self.assertIn("login:", cli("cloud", "logs", "db").stdout)
        document = schema.load()
        schema.check(document, "cloud ls", json.loads(cli("-o", "json", "cloud", "ls").stdout))
        schema.check(document, "cloud gc", json.loads(cli("-o", "json", "cloud", "gc", "--dry-run").stdout))
        schema.check(document, "cloud run", json.loads(cli("-o", "json", "cloud", "run", "--type", "m1.x", "ami-2").stdout))
        schema.check(document, "cloud run", json.loads(cli("-o", "json", "cloud", "run", "--dry-run", "ami-2").stdout))
        refused = cli("cloud", "rm", "db", check=False)
        self.assertEqual((125, True), (refused.returncode, "stop it first, or --force" in refused.stderr))
        self.assertEqual("db\n", cli("cloud", "stop", "db").stdout)
        self.assertEqual("db\n", cli("cloud", "rm", "db").stdout)
        wrong = cli("cloud", "run", "--type", "x", "--cpus", "1", "ami-1", check=False)
        self.assertIn("--type says how large it is", wrong.stderr)

    def test_refusals(self):
        self.run_vm("one")
        self.assertFails(Code.ALREADY_EXISTS, lambda: self.run_vm("one"), "the name one is taken")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_vm("One"), "name: ")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_vm(image=""), "image: required")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_vm(image="a b"), "image: ")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_vm(type="a b"), "type: ")
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.run_vm(cpus=9), "9 processors")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_vm(image="ami-0"), "InvalidAMIID.NotFound", "does not exist")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_vm(image="ami-0", dry_run=True), "InvalidAMIID.NotFound")
        self.assertFails(Code.NOT_FOUND, lambda: self.remove("two"), "two")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.remove(""), "target: required")
        self.assertFails(Code.NOT_FOUND, lambda: self.node.clouds.CloudVmConsole(pb2.CloudVmConsoleRequest(target="two")))
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.node.clouds.CollectCloudVms(pb2.CollectCloudVmsRequest(node="x")), "node: ")
        # A refusal leaves no record.
        self.assertEqual(["one"], [v.name for v in self.vms()])

    def test_many_in_pages_of_two(self):
        names = [f"n{i}" for i in range(7)]
        threads = [threading.Thread(target=self.run_vm, args=(n,)) for n in names]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for n in names:
            self.wait_state(n, "running")
        self.assertEqual((7, 7), (len(self.cloud.alive()), len({m.token for m in self.cloud.alive()})))

    def test_at_rest_one_question_for_all(self):
        """A node whose machines just run asks for all of them at once, and not more often than it was told."""
        for n in ("a", "b"):
            self.run_vm(n)
            self.wait_state(n, "running")
        self.cloud.calls.clear()
        begin = self.cloud.now()
        nacre_test.until(lambda: self.cloud.calls["DescribeInstances"] >= 5)
        self.assertEqual({"DescribeInstances"}, set(self.cloud.calls))
        self.assertGreater(self.cloud.now() - begin, 0.4)


class Faults(CloudTest):
    def whole_life(self, name="vm"):
        self.run_vm(name)
        self.wait_state(name, "running")
        self.assertEqual(1, len(self.cloud.alive()))
        self.remove(name)
        self.assertEqual([], self.cloud.alive())

    def test_answers_that_are_lost(self):
        for action in ("RunInstances", "DescribeInstances", "TerminateInstances"):
            self.cloud.drop[action] = 2
        self.whole_life()
        self.assertEqual(1, len(self.cloud.machines))

    def test_every_second_call_is_throttled(self):
        self.cloud.throttle = 2
        self.whole_life()

    def test_a_server_that_fails(self):
        for action in ("RunInstances", "TerminateInstances"):
            self.cloud.fail[action] = [(500, "InternalError", "oops"), (503, "Unavailable", "later"), (502, "Brandnew", "?")]
        self.whole_life()

    def test_a_server_that_says_nonsense(self):
        self.cloud.raw = b"<html><p>a proxy</html>"
        begun = threading.Thread(target=self.whole_life)
        begun.start()
        nacre_test.until(lambda: self.cloud.calls["RunInstances"] >= 2)
        self.cloud.raw = None
        begun.join(60)
        self.assertEqual(1, len(self.cloud.machines))

    def test_answers_that_are_deep_huge_or_cut_off(self):
        """Each is no answer: the call is made again with its token, and what it made is found by that."""
        deep = b"<a>" * 100000 + b"</a>" * 100000
        for raw in (deep, b"<RunInstancesResponse>" + b"<x>1</x>" * (1 << 20), b"<RunInstancesResponse><instancesSet><item>", b"", b"\0" * 64,
                    b'<!DOCTYPE a [<!ENTITY b "b"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>'):
            with self.subTest(raw[:24]):
                self.cloud.calls.clear()
                begun = threading.Thread(target=self.whole_life)
                self.cloud.raw = raw
                begun.start()
                nacre_test.until(lambda: self.cloud.calls["RunInstances"] >= 2)
                self.cloud.raw = None
                begun.join(60)
                self.assertFalse(begun.is_alive())
                self.assertEqual(1, len(self.cloud.machines))
                with self.cloud.lock:
                    self.cloud.machines.clear()

    def test_no_room_in_the_cloud(self):
        self.cloud.capacity = 0
        self.assertFails(Code.RESOURCE_EXHAUSTED, self.run_vm, "InsufficientInstanceCapacity", "sufficient capacity in the zone")
        self.assertEqual([], self.vms())
        self.cloud.capacity = None
        self.whole_life()

    def test_no_room_after_a_lost_answer(self):
        """What the first call has made is found, whatever a later one says."""
        self.cloud.drop["RunInstances"] = 1
        self.cloud.after["RunInstances"] = lambda _: self.cloud.fail["RunInstances"].append(
            (500, "InsufficientInstanceCapacity", "none left"))
        vm = self.run_vm("half")
        self.assertEqual([vm.instance], [m.id for m in self.cloud.alive()])

    def test_other_words_with_the_same_token(self):
        """Nobody but a fault sends them. The machine of the first call is found by its token."""
        def change(_):
            self.cloud.after.clear()
            (machine,) = self.cloud.machines.values()
            machine.parameters = {**machine.parameters, "KeyName": "x"}
        self.cloud.drop["RunInstances"] = 1
        self.cloud.after["RunInstances"] = change
        vm = self.run_vm("half")
        self.assertEqual([vm.instance], [m.id for m in self.cloud.alive()])

    def test_what_was_made_is_not_visible_yet(self):
        self.cloud.hide = 0.8
        self.run_vm("new")
        self.remove("new")
        self.assertEqual([], self.cloud.alive())

    def test_keys_that_are_refused(self):
        key = self.cloud.keys.pop("AKIDTEST")
        try:
            self.assertFails(Code.FAILED_PRECONDITION, self.run_vm, "AuthFailure", "doc/cloud.md")
        finally:
            self.cloud.keys["AKIDTEST"] = key

    def test_a_terminate_that_is_refused(self):
        self.run_vm("kept")
        self.cloud.fail["TerminateInstances"] = [(400, "OperationNotPermitted", "it is protected")]
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.remove("kept"), "OperationNotPermitted", "it is protected")
        nacre_test.until(lambda: not self.vms(), what="it is removed all the same")
        self.assertEqual([], self.cloud.alive())


class Others(CloudTest):
    """What somebody else does to machines in the cloud."""

    def made(self, name="vm"):
        self.run_vm(name)
        vm = self.wait_state(name, "running")
        return self.cloud.machines[vm.instance]

    def test_ended(self):
        machine = self.made()
        machine.reason = "Server.SpotInstanceTermination: reclaimed"
        machine.ended = self.cloud.now()
        self.assertIn("reclaimed", self.wait_state("vm", "exited").reason)

    def test_stopped_and_started(self):
        machine = self.made()
        machine.stopped = True
        self.wait_state("vm", "stopped")
        machine.stopped = False
        self.wait_state("vm", "running")
        machine.stopped = True
        self.wait_state("vm", "stopped")
        self.assertEqual(1, len(self.cloud.alive()))

    def test_gone_without_a_word(self):
        machine = self.made()
        with self.cloud.lock:
            del self.cloud.machines[machine.id]
        self.assertIn("does not show it any more", self.wait_state("vm", "exited").reason)

    def test_renamed(self):
        machine = self.made()
        machine.tags["Name"] = "theirs"
        self.assertEqual("running", self.state("vm"))


class Ends(CloudTest):
    """Daemon and helper end at every place between intent and record."""

    def test_the_helper(self):
        for place in ("before", "after"):
            with self.subTest(place):
                self.interrupted(place, "RunInstances", self.end_helper, lambda: self.run_vm("vm"))
                self.wait_state("vm", "running")
                self.assertEqual(1, len(self.cloud.alive()))
                self.cloud.reset(machines=False)
                self.interrupted(place, "TerminateInstances", self.end_helper, lambda: self.remove("vm"))
                nacre_test.until(lambda: not self.vms())
                self.assertEqual([], self.cloud.alive())
                self.cloud.reset()

    def test_the_daemon(self):
        for place in ("before", "after"):
            with self.subTest(place):
                self.interrupted(place, "RunInstances", self.end_daemon, lambda: self.run_vm("vm"))
                self.node.wait()
                self.node.start()
                self.wait_state("vm", "running")
                self.assertEqual(1, len(self.cloud.alive()))
                self.cloud.reset(machines=False)
                self.interrupted(place, "TerminateInstances", self.end_daemon, lambda: self.remove("vm"))
                self.node.wait()
                self.node.start()
                nacre_test.until(lambda: not self.vms())
                self.assertEqual([], self.cloud.alive())
                self.cloud.reset()

    def test_removed_after_a_lost_answer(self):
        """The daemon ends while the cloud makes it; whoever comes back wants it gone."""
        self.interrupted("after", "RunInstances", self.end_daemon, lambda: self.run_vm("vm"))
        self.node.wait()
        self.node.start()
        self.remove("vm")
        self.assertEqual(([], 1), (self.cloud.alive(), len(self.cloud.machines)))

    def test_a_refusal_after_a_restart_is_not_believed(self):
        """A key that does not count any more says nothing of a machine that was made before."""
        self.interrupted("after", "RunInstances", self.end_daemon, lambda: self.run_vm("vm"))
        self.node.wait()
        key = self.cloud.keys.pop("AKIDTEST")
        self.node.start()
        nacre_test.until(lambda: any("AuthFailure" in v.reason for v in self.vms()))
        self.assertEqual("creating", self.state("vm"))
        self.cloud.keys["AKIDTEST"] = key
        self.wait_state("vm", "running")
        self.assertEqual(1, len(self.cloud.alive()))

    def test_a_daemon_that_is_told_to_end(self):
        self.run_vm("vm")
        self.node.stop()
        self.assertEqual([], self.helpers())
        self.node.start()
        self.wait_state("vm", "running")


@faults.spread
class Crashes(CloudTest):
    """Where the build can be made to fail: the daemon ends at each named place, in front of and behind the step."""

    @faults.for_each(faults.places("cloud"))
    def killed_at(self, place):
        self.node.stop()
        self.node.start(env={"NACRE_FAILPOINT": f"{place}=crash"})
        try:
            self.run_vm("vm")
            self.remove("vm")
        except grpc.RpcError:
            pass
        nacre_test.until(lambda: not self.node.alive, what=f"the crash at {place}")
        self.node.wait()
        self.node.start()
        self.assertLessEqual(len(self.cloud.machines), 1)
        for vm in self.vms():
            # It goes on, or to its end, before anybody asks.
            nacre_test.until(lambda: self.state("vm") in ("running", None), what=f"{vm.name} after the crash at {place}")


class Keys(unittest.TestCase):
    """Where the key comes from, and what happens when it ends."""

    def setUp(self):
        self.cloud = fake_ec2.Cloud().__enter__()
        self.addCleanup(self.cloud.__exit__)

    def node(self, more="", **env):
        hidden = {k: "" for k in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")}
        node = nacre_test.Node(config=self.cloud.config(more), env={**hidden, "AWS_EC2_METADATA_DISABLED": "true", **env})
        self.addCleanup(node.destroy)
        return node

    def run_vm(self, node):
        return node.clouds.RunCloudVm(pb2.RunCloudVmRequest(image="ami-1"), timeout=60 * nacre_test.SLOWNESS).vm

    def clear(self, node):
        for vm in node.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).vms:
            node.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target=vm.name, force=True), timeout=60 * nacre_test.SLOWNESS)
        self.assertEqual([], self.cloud.alive())

    def write(self, path, key):
        with open(path + ".new", "w", encoding="ascii") as f:
            f.write(f"[default]\naws_access_key_id = none\naws_secret_access_key = none\n[nacre]\naws_access_key_id = {key}\n"
                    f"aws_secret_access_key = {self.cloud.keys[key]['secret']}\n")
        os.rename(path + ".new", path)

    def test_of_a_file_that_is_replaced(self):
        folder = tempfile.mkdtemp(prefix="nt-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "keys")
        self.write(path, "AKIDTEST")
        os.chmod(path, 0o600)
        node = self.node("    profile: nacre\n", AWS_SHARED_CREDENTIALS_FILE=path)
        self.run_vm(node)
        # It ends while one is made; somebody renews the file.
        self.cloud.keys["AKIDTEST"]["ended"] = True
        self.cloud.keys["AKIDNEXT"] = {"secret": "other", "token": "", "ended": False}
        thread = threading.Thread(target=self.run_vm, args=(node,))
        thread.start()
        nacre_test.until(lambda: "key has ended" in node.log())
        self.write(path, "AKIDNEXT")
        thread.join(60)
        nacre_test.until(lambda: len(self.cloud.alive()) == 2)
        self.clear(node)

    def test_of_the_metadata_service(self):
        self.cloud.keys["ASIAONE"] = {"secret": "one", "token": "session/one==", "ended": False}
        self.cloud.keys["ASIATWO"] = {"secret": "two", "token": "session/two==", "ended": False}
        self.cloud.metadata_key = "ASIAONE"
        node = self.node(AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT=self.cloud.url + "/")
        self.run_vm(node)
        self.cloud.keys["ASIAONE"]["ended"] = True
        self.cloud.metadata_key = "ASIATWO"
        self.run_vm(node)
        self.assertEqual(2, len(self.cloud.alive()))
        self.clear(node)

    def test_none(self):
        node = self.node(HOME="/nonexistent")
        with self.assertRaises(grpc.RpcError) as caught:
            self.run_vm(node)
        self.assertEqual((Code.FAILED_PRECONDITION, True), (caught.exception.code(), "no key" in caught.exception.details()))
        self.assertEqual([], list(node.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).vms))


class Configuration(unittest.TestCase):
    def refused(self, text, *parts):
        with self.assertRaises(AssertionError) as caught:
            nacre_test.Node(config="cloud:\n" + text).destroy()
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_what_is_refused(self):
        self.refused("  ec2:\n    subnet: s\n", "cloud.ec2.region: required")
        self.refused("  ec2:\n    region: Über\n", "cloud.ec2.region", "is not the name of a region")
        self.refused("  ec2:\n    region: r\n    types: [ x ]\n", "cloud.ec2.types", "NAME=CPUS:MEMORY")
        self.refused("  poll: 1ms\n", "cloud.poll", "a duration from 100ms to 10m")

    def test_without_a_cloud(self):
        with nacre_test.Node() as node:
            with self.assertRaises(grpc.RpcError) as caught:
                node.clouds.RunCloudVm(pb2.RunCloudVmRequest(image="ami-1"))
            self.assertEqual(Code.FAILED_PRECONDITION, caught.exception.code())
            self.assertIn("cloud.ec2.region", caught.exception.details())

    def test_a_key_is_not_shown_in_the_clear(self):
        """Over http only a loopback address is asked."""
        env = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        with nacre_test.Node(config="cloud:\n  ec2:\n    region: r\n    endpoint: http://192.0.2.1/\n", env=env) as node:
            with self.assertRaises(grpc.RpcError) as caught:
                node.clouds.RunCloudVm(pb2.RunCloudVmRequest(image="ami-1", type="t"))
            self.assertEqual(Code.INVALID_ARGUMENT, caught.exception.code())
            self.assertIn("keys are shown over https alone", caught.exception.details())

    def test_another_region(self):
        """Machines of the region before are shown, and not touched."""
        with fake_ec2.Cloud() as cloud, nacre_test.Node(config=cloud.config(), env=cloud.env()) as node:
            node.clouds.RunCloudVm(pb2.RunCloudVmRequest(name="vm", image="ami-1"))
            node.stop()
            text = host.read(node.config)
            for words, reason in ((text.replace("eu-test-1", "eu-test-2"), "is in the region eu-test-1, and cloud.ec2.region"),
                                  ("vm:\n  hardware: no\nspare: no\n", "none is configured any more")):
                with open(node.config, "w", encoding="utf-8") as f:
                    f.write(words)
                node.start()
                self.assertIn("that the configuration does not name", node.log())
                with self.assertRaises(grpc.RpcError) as caught:
                    node.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="vm", force=True))
                self.assertEqual(Code.FAILED_PRECONDITION, caught.exception.code())
                self.assertIn(reason, caught.exception.details())
                self.assertEqual(1, len(cloud.alive()))
                node.stop()
            with open(node.config, "w", encoding="utf-8") as f:
                f.write(text)
            node.start()
            node.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="vm", force=True))
            self.assertEqual([], cloud.alive())


class Sandbox(CloudTest):
    def test_what_the_helper_is(self):
        """Nobody, without capabilities, behind a filter, at an empty root; the kernel says it."""
        (pid,) = nacre_test.until(self.helpers)
        # The first answer shows that its sandbox is closed.
        self.run_vm("vm")
        status = dict(line.split(":\t", 1) for line in host.read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
        self.assertEqual((["65534"] * 4, "0" * 16, "0" * 16, "1", "2"), (
            status["Uid"].split(), status["CapEff"], status["CapBnd"], status["NoNewPrivs"], status["Seccomp"]))
        self.assertEqual(["etc"], os.listdir(f"/proc/{pid}/root"))


class Lost(CloudTest):
    """Machines whose record is lost, and those of other nodes."""

    def collect(self, on, **q):
        return [v.instance for v in on.clouds.CollectCloudVms(pb2.CollectCloudVmsRequest(**q)).vms]

    def test_another_node_of_the_account(self):
        with nacre_test.Node(config=self.cloud.config(), env=self.cloud.env()) as other:
            self.run_vm("mine")
            theirs = other.clouds.RunCloudVm(pb2.RunCloudVmRequest(name="mine", image="ami-1")).vm
            nacre_test.until(lambda: len([m for m in self.cloud.alive() if m.visible]) == 2)
            self.assertEqual([], self.collect(self.node))
            self.assertEqual([], self.collect(other))
            self.assertEqual(2, len(self.cloud.alive()))
            # One that never comes back.
            name = other.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).node
            self.assertEqual([theirs.instance], self.collect(self.node, node=name, dry_run=True))
            self.assertEqual(2, len(self.cloud.alive()))
            self.assertEqual([theirs.instance], self.collect(self.node, node=name))
            nacre_test.until(lambda: len(self.cloud.alive()) == 1)

    def test_a_node_that_does_not_come_back(self):
        """Its leases end, by the clock of the cloud, which is an hour ahead here; until then nobody ends its machines."""
        self.cloud.clock = 3600
        with nacre_test.Node(config=self.cloud.config(lease="2s"), env=self.cloud.env()) as other:
            vm = other.clouds.RunCloudVm(pb2.RunCloudVmRequest(name="vm", image="ami-1")).vm
            machine = self.cloud.machines[vm.instance]
            # A key without that right: the machine goes on, and somebody is told.
            self.cloud.fail["CreateTags"] = [(403, "UnauthorizedOperation", "You are not authorized")]
            nacre_test.until(lambda: "the leases of machines in the cloud cannot be renewed" in other.log())
            self.cloud.calls.clear()
            nacre_test.until(lambda: self.cloud.calls["CreateTags"] >= 2, what="the lease is renewed, and again")
            self.assertAlmostEqual(time.time() + 3600, int(machine.tags["nacre-lease"]), delta=60)
            self.assertEqual([], self.collect(self.node, expired=True))
            shown = other.clouds.ListCloudVms(pb2.ListCloudVmsRequest())
            self.assertAlmostEqual(time.time() + 3600, shown.vms[0].lease_ends_at / 1e9, delta=60)
            other.kill()
            nacre_test.until(lambda: self.collect(self.node, expired=True, dry_run=True), what="its lease has ended")
            found = self.node.clouds.CollectCloudVms(pb2.CollectCloudVmsRequest(expired=True, dry_run=True)).vms
            self.assertEqual([(vm.instance, shown.node)], [(v.instance, v.node) for v in found])
            self.assertEqual([], self.collect(self.node))
            self.assertIn(vm.instance, self.node.cli("cloud", "gc", "--expired").stdout)
            nacre_test.until(lambda: not self.cloud.alive())
            # It comes back all the same.
            other.start()
            nacre_test.until(lambda: [v.state for v in other.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).vms] == ["exited"])
            other.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="vm"))

    def test_a_clock_that_jumps(self):
        """The cloud's goes an hour ahead and two days back: no machine of a node that lives is taken for one without a lease."""
        with nacre_test.Node(config=self.cloud.config(lease="10s"), env=self.cloud.env()) as other:
            vm = other.clouds.RunCloudVm(pb2.RunCloudVmRequest(name="vm", image="ami-1")).vm
            machine = self.cloud.machines[vm.instance]
            for clock in (3600, -48 * 3600, 0):
                self.cloud.clock = clock
                nacre_test.until(lambda clock=clock: abs(int(machine.tags["nacre-lease"]) - time.time() - clock) < 60,
                                 what="the lease goes by the clock of the cloud")
                self.assertEqual([], self.collect(self.node, expired=True))
                self.assertEqual([vm.instance], [m.id for m in self.cloud.alive()])
            other.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="vm", force=True))
        self.assertEqual([], self.cloud.alive())

    def test_a_clone_with_the_same_name(self):
        """Neither ends what the other has made: of a machine without a record here nothing is done by itself."""
        with nacre_test.Node(config=self.cloud.config(lease="2s"), env=self.cloud.env()) as clone:
            clone.stop()
            shutil.copy(os.path.join(self.node.root, "cloud-node"), os.path.join(clone.root, "cloud-node"))
            clone.start()
            self.run_vm("vm")
            theirs = clone.clouds.RunCloudVm(pb2.RunCloudVmRequest(name="vm", image="ami-1")).vm
            self.wait_state("vm", "running")
            nacre_test.until(lambda: self.cloud.calls["CreateTags"] >= 1)
            self.assertEqual(([], 2), (self.collect(self.node, expired=True), len(self.cloud.alive())))
            self.remove("vm")
            self.assertEqual([theirs.instance], [m.id for m in self.cloud.alive()])
            clone.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="vm", force=True))

    def test_a_lost_record(self):
        self.run_vm("vm")
        vm = self.wait_state("vm", "running")
        self.node.stop()
        with sqlite3.connect(os.path.join(self.node.root, "root.db")) as db:
            db.execute("DELETE FROM cloud_vm")
        db.close()
        self.node.start()
        self.assertEqual([vm.instance], self.collect(self.node, dry_run=True))
        table = self.node.cli("cloud", "gc").stdout
        self.assertIn(vm.instance, table)
        nacre_test.until(lambda: not self.cloud.alive())
        self.assertEqual([], self.collect(self.node))

    def test_a_damaged_record(self):
        self.run_vm("vm")
        self.node.stop()
        path = os.path.join(self.node.root, "root.db")

        def change(word):
            with sqlite3.connect(path) as db:
                db.execute("UPDATE cloud_vm SET wanted=?", (word,))
            db.close()
        change("perhaps")
        self.node.launch()
        self.assertNotEqual(0, self.node.wait())
        self.assertIn("is damaged, or of a newer nacre", self.node.log())
        change("run")
        self.node.start()


if __name__ == "__main__":
    unittest.main()
