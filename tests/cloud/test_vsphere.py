#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Machines of vSphere, made by a node in a vCenter of the test's own (tests/lib/fake_vsphere.py): however a call goes wrong, none is left.
What a node does with the answers of a cloud is the same for all of them (test_ec2.py); this is what is said there, and what is heard."""
import os
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
import unittest

import grpc

import cloud_machines
import fake_vsphere
import faults
import nacre_test

Code = grpc.StatusCode
Fault = fake_vsphere.Fault
pb2 = nacre_test.nacre_pb2


class CloudTest(cloud_machines.CloudTest):
    FAKE, IMAGE = fake_vsphere.Cloud, "debian"

    def whole_life(self, name="vm"):
        self.run_vm(name)
        self.wait_state(name, "running")
        self.assertEqual(1, len(self.cloud.alive()))
        self.remove(name)
        self.assertEqual([], self.cloud.alive())


class Life(CloudTest):
    def test_from_run_to_rm(self):
        self.run_vm("web", cpus=3)
        vm = self.wait_state("web", "running")
        (machine,) = self.cloud.alive()
        self.assertEqual(("vsphere", "Test%20DC", "Test%20DC", "debian", "big"), (vm.provider, vm.region, vm.zone, vm.image, vm.type))
        self.assertEqual((machine.uuid, 8, 32768, True), (vm.instance, machine.cpus, machine.memory, machine.on))
        nacre_test.until(lambda: self.vms()[0].address == machine.address)
        node = self.node.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).node
        wanted = {"cluster": "nacre", "node": node, "vm": vm.id, "Name": "web", "token": machine.name}
        self.assertEqual(wanted, {k: x for k, x in machine.tags.items() if k != "lease"})
        # Its lease is renewed, and all else stays.
        first = int(machine.tags["lease"])
        machine.extra["theirs"] = "x"
        nacre_test.until(lambda: int(machine.tags["lease"]) > first, what="the lease is renewed")
        self.assertEqual((wanted, "x"), ({k: x for k, x in machine.tags.items() if k != "lease"}, machine.extra["theirs"]))
        self.assertAlmostEqual(time.time(), int(machine.tags["lease"]), delta=60)
        console = lambda: self.node.clouds.CloudVmConsole(pb2.CloudVmConsoleRequest(target="web"))  # noqa: E731
        self.assertFails(Code.FAILED_PRECONDITION, console, "is no text", "guestinfo.console")
        machine.extra["guestinfo.console"] = "hello <from> it"
        self.assertEqual(b"hello <from> it", console().output)
        self.assertEqual([vm.id, "web", "vsphere", "running"], self.node.cli("ps").stdout.splitlines()[-1].split()[:4])
        self.assertEqual(1, self.cloud.calls["CloneVM_Task"])
        self.assertEqual("exited", self.node.clouds.StopCloudVm(pb2.StopCloudVmRequest(target="web")).vm.state)
        self.assertEqual([], self.cloud.alive())

    def test_sizes(self):
        """Names of the table, or without one what is asked for."""
        self.run_vm("a", type="small")
        self.assertEqual((2, 2048), (self.cloud.alive()[0].cpus, self.cloud.alive()[0].memory))
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_vm(type="huge"), "type: ", "cloud.vsphere.types")
        self.assertFails(Code.RESOURCE_EXHAUSTED, lambda: self.run_vm(cpus=9), "cloud.vsphere.types", "9 processors")
        self.remove("a")
        with nacre_test.Node(config=self.cloud.config(types=""), env=self.cloud.env()) as other:
            for wish, size in (({"cpus": 3, "memory": 3 << 30}, (3, 3072)), ({}, (1, 512))):
                other.clouds.RunCloudVm(pb2.RunCloudVmRequest(name="vm", image="debian", **wish))
                self.assertEqual(size, (self.cloud.alive()[0].cpus, self.cloud.alive()[0].memory))
                other.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="vm", force=True))

    def test_what_is_refused(self):
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.run_vm(image="nothing"), "/Test DC/vm/nothing", "VirtualMachine")
        self.assertFails(Code.UNIMPLEMENTED, lambda: self.run_vm(dry_run=True), "dry_run")
        self.cloud.fail["CloneVM_Task"] = [Fault("NoPermission", "Permission to perform this operation was denied.",
                                                 "<w:privilegeId>VirtualMachine.Provisioning.DeployTemplate</w:privilegeId>")]
        self.assertFails(Code.FAILED_PRECONDITION, self.run_vm, "NoPermission", "DeployTemplate", "doc/cloud.md")
        self.cloud.broken["CloneVM_Task"] = [Fault("InsufficientStorageSpace", "Insufficient disk space on datastore 'ds1'.")]
        self.assertFails(Code.RESOURCE_EXHAUSTED, self.run_vm, "InsufficientStorageSpace", "datastore 'ds1'")
        self.assertEqual(([], []), (self.vms(), self.cloud.alive()))

    def test_many_in_pages_of_two(self):
        names = [f"n{i}" for i in range(7)]
        threads = [threading.Thread(target=self.run_vm, args=(n,)) for n in names]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for n in names:
            self.wait_state(n, "running")
        self.assertEqual(7, len(self.cloud.alive()))

    def test_at_rest(self):
        """Machines of others cost one small property of each; those of this node are asked for at once."""
        self.run_vm("vm")
        self.wait_state("vm", "running")
        with nacre_test.Node(config=self.cloud.config(), env=self.cloud.env()) as other:
            other.clouds.RunCloudVm(pb2.RunCloudVmRequest(name="b", image="debian"))
            self.cloud.calls.clear()
            nacre_test.until(lambda: self.cloud.calls["FindByInventoryPath"] >= 10)
            self.assertFalse(set(self.cloud.calls) & {"Login", "CloneVM_Task", "PowerOnVM_Task"})
            other.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="b", force=True))


class Faults(CloudTest):
    def test_answers_that_are_lost(self):
        for method in ("Login", "FindByUuid", "CloneVM_Task", "PowerOnVM_Task", "RetrievePropertiesEx", "PowerOffVM_Task", "Destroy_Task"):
            self.cloud.drop[method] = 1
        self.whole_life()
        self.assertEqual(1, len(self.cloud.machines))

    def test_a_clone_that_takes_long_after_a_lost_answer(self):
        """Its name is taken before it can be found, and it is waited for."""
        self.cloud.clone = 2
        self.cloud.drop["CloneVM_Task"] = 1
        self.whole_life()
        self.assertEqual(1, len(self.cloud.machines))
        self.assertGreater(self.cloud.calls["CloneVM_Task"], 1)

    def test_every_third_call_is_throttled(self):
        self.cloud.throttle = 3
        self.whole_life()
        self.assertEqual(1, len(self.cloud.machines))

    def test_faults_that_pass(self):
        for method in ("CloneVM_Task", "PowerOnVM_Task", "PowerOffVM_Task", "Destroy_Task"):
            self.cloud.fail[method] = [Fault("TaskInProgress", "later"), Fault("SystemError", "oops"), Fault("HostNotConnected", "?")]
        self.whole_life()
        self.assertEqual(1, len(self.cloud.machines))

    def test_answers_that_are_none(self):
        deep = b"<a>" * 5000
        huge = b"<a>" + b"<b>x</b>" * 1200000 + b"</a>"
        for raw in (b"<html><p>a proxy</html>", deep, huge, b"", b"\xff\xfe", b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
                    b"<x:Envelope><x:Body/></x:Envelope>"):
            with self.subTest(raw[:40]):
                self.cloud.reset()
                self.cloud.raw = raw
                begun = threading.Thread(target=self.whole_life)
                begun.start()
                nacre_test.until(lambda: sum(self.cloud.calls.values()) >= 2)
                self.cloud.raw = None
                begun.join(60)
                self.assertEqual(1, len(self.cloud.machines))

    def test_sessions_that_end(self):
        """In the middle of a create, a list, a destroy: each is logged in for once, and done once."""
        for method in ("FindByUuid", "CloneVM_Task", "PowerOnVM_Task", "RetrievePropertiesEx", "PowerOffVM_Task", "Destroy_Task"):
            with self.subTest(method):
                self.cloud.reset()
                self.cloud.expire.add(method)
                logins = self.cloud.calls["Login"]
                self.whole_life()
                self.assertEqual((1, set()), (len(self.cloud.machines), self.cloud.expire))
                self.assertGreater(self.cloud.calls["Login"], logins)

    def test_a_session_that_ends_between_pages(self):
        for name in ("a", "b", "c"):
            self.run_vm(name)
        for name in ("a", "b", "c"):
            self.wait_state(name, "running")
        self.cloud.expire.add("ContinueRetrievePropertiesEx")
        nacre_test.until(lambda: not self.cloud.expire)
        self.cloud.calls.clear()
        nacre_test.until(lambda: self.cloud.calls["ContinueRetrievePropertiesEx"] >= 6)
        self.assertEqual(["running"] * 3, [vm.state for vm in self.vms()])

    def test_half_a_machine(self):
        """The task fails and leaves what it has made, or what was made cannot be switched on."""
        self.cloud.half = True
        self.cloud.broken["CloneVM_Task"] = [Fault("CustomizationFault", "it went wrong at the end")]
        self.assertFails(Code.FAILED_PRECONDITION, self.run_vm, "CustomizationFault", "at the end")
        self.assertEqual(([], [], 1), (self.vms(), self.cloud.alive(), len(self.cloud.machines)))
        self.cloud.reset()
        self.cloud.broken["PowerOnVM_Task"] = [Fault("InsufficientMemoryResourcesFault", "The available Memory resources are insufficient")]
        self.assertFails(Code.RESOURCE_EXHAUSTED, self.run_vm, "InsufficientMemoryResourcesFault", "are insufficient")
        self.assertEqual(([], [], 1), (self.vms(), self.cloud.alive(), len(self.cloud.machines)))

    def test_half_a_machine_that_stays(self):
        """What is left cannot be destroyed at first: the record stays until it can."""
        self.cloud.broken["PowerOnVM_Task"] = [Fault("InsufficientCpuResourcesFault", "no")] * 2
        self.cloud.fail["Destroy_Task"] = [Fault("NoPermission", "not yours")]
        self.assertFails(Code.RESOURCE_EXHAUSTED, self.run_vm, "InsufficientCpuResourcesFault")
        nacre_test.until(lambda: not self.vms() and not self.cloud.alive())

    def test_a_destroy_that_is_refused(self):
        self.run_vm("kept")
        self.wait_state("kept", "running")
        self.cloud.fail["Destroy_Task"] = [Fault("NoPermission", "Permission to perform this operation was denied.")]
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.remove("kept"), "NoPermission")
        nacre_test.until(lambda: not self.vms(), what="it is removed all the same")
        self.assertEqual([], self.cloud.alive())


class Keys(CloudTest):
    def test_a_password_that_is_refused(self):
        """It is not shown again for a minute, since vCenter locks accounts; another process shows it once."""
        self.cloud.sessions.clear()
        self.cloud.password = "other"
        self.cloud.calls.clear()
        try:
            for _ in range(3):
                self.assertFails(Code.FAILED_PRECONDITION, self.run_vm, "InvalidLogin", "incorrect user name or password", "doc/cloud.md")
            self.assertEqual(1, self.cloud.calls["Login"])
        finally:
            self.cloud.password = fake_vsphere.PASSWORD
        for pid in self.helpers():
            os.kill(pid, signal.SIGKILL)
        self.whole_life()

    def test_of_a_file(self):
        folder = tempfile.mkdtemp(prefix="nt-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "govc.env")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"export GOVC_USERNAME={fake_vsphere.USER}\nGOVC_PASSWORD='{fake_vsphere.PASSWORD}'\n")
        os.chmod(path, 0o600)
        for config, env, good in ((f"    credentials: {path}\n", {}, True), ("", {}, False), (f"    credentials: {path}x\n", {}, False)):
            with nacre_test.Node(config=self.cloud.config(config), env={"GOVC_USERNAME": "", "GOVC_PASSWORD": "", **env}) as other:
                request = pb2.RunCloudVmRequest(name="vm", image="debian")
                if not good:
                    self.assertFails(Code.FAILED_PRECONDITION, lambda: other.clouds.RunCloudVm(request), "key")
                    continue
                other.clouds.RunCloudVm(request)
                other.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="vm", force=True))

    def test_a_host_alone(self):
        self.cloud.api_type = "HostAgent"
        self.cloud.sessions.clear()
        try:
            with nacre_test.Node(config=self.cloud.config(), env=self.cloud.env()) as other:
                self.assertFails(Code.FAILED_PRECONDITION, lambda: other.clouds.RunCloudVm(pb2.RunCloudVmRequest(image="debian")), "no vCenter")
        finally:
            self.cloud.api_type = "VirtualCenter"


class Others(CloudTest):
    """What somebody else does to machines, and other nodes."""

    def made(self, name="vm"):
        self.run_vm(name)
        vm = self.wait_state(name, "running")
        return next(m for m in self.cloud.alive() if m.uuid == vm.instance)

    def test_stopped_and_started_and_renamed(self):
        machine = self.made()
        machine.on = False
        self.wait_state("vm", "stopped")
        machine.on, machine.name = True, "theirs"
        self.wait_state("vm", "running")
        self.remove("vm")
        self.assertEqual([], self.cloud.alive())

    def test_gone_without_a_word(self):
        machine = self.made()
        machine.gone = True
        self.assertIn("does not show it any more", self.wait_state("vm", "exited").reason)

    def test_a_copy_of_one(self):
        """Somebody's copy has the settings of ours: it is neither shown nor ended."""
        machine = self.made()
        with self.cloud.lock:
            copy = fake_vsphere.Machine(self.cloud, 99, "copy", {"uuid": machine.uuid[:9] + "0000" + machine.uuid[13:], "extra": dict(machine.extra),
                                                                 "cpus": 1, "memory": 1})
            self.cloud.machines[copy.id] = copy
        self.cloud.calls.clear()
        nacre_test.until(lambda: self.cloud.calls["FindByInventoryPath"] >= 4)
        self.remove("vm")
        self.assertEqual([], list(self.node.clouds.CollectCloudVms(pb2.CollectCloudVmsRequest()).vms))
        self.assertEqual([copy], self.cloud.alive())
        copy.gone = True

    def test_two_nodes_of_one_vcenter(self):
        collect = lambda on, **q: [vm.instance for vm in on.clouds.CollectCloudVms(pb2.CollectCloudVmsRequest(**q)).vms]  # noqa: E731
        with nacre_test.Node(config=self.cloud.config(lease="2s"), env=self.cloud.env()) as other:
            self.made("mine")
            theirs = other.clouds.RunCloudVm(pb2.RunCloudVmRequest(name="mine", image="debian")).vm
            self.assertEqual(([], [], 2), (collect(self.node), collect(other), len(self.cloud.alive())))
            name = other.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).node
            self.assertEqual([theirs.instance], collect(self.node, node=name, dry_run=True))
            other.kill()
            nacre_test.until(lambda: collect(self.node, expired=True, dry_run=True) == [theirs.instance], what="its lease has ended")
            self.assertEqual([theirs.instance], collect(self.node, expired=True))
            nacre_test.until(lambda: len(self.cloud.alive()) == 1)

    def test_a_lost_record(self):
        self.made()
        self.node.stop()
        with sqlite3.connect(os.path.join(self.node.root, "root.db")) as db:
            db.execute("DELETE FROM cloud_vm")
        db.close()
        self.node.start()
        self.assertIn(self.cloud.alive()[0].uuid, self.node.cli("cloud", "gc").stdout)
        nacre_test.until(lambda: not self.cloud.alive())


class Ends(CloudTest):
    """Daemon and helper end at every place between intent and record."""

    PLACES = ("CloneVM_Task", "PowerOnVM_Task", "Destroy_Task")

    def end_daemon(self):
        super().end_daemon()
        self.node.wait()

    def both(self, victim, after):
        for method in self.PLACES:
            for place in ("before", "after"):
                with self.subTest(f"{place} {method}"):
                    if method == "Destroy_Task":
                        self.run_vm("vm")
                        self.wait_state("vm", "running")
                    work = (lambda: self.remove("vm")) if method == "Destroy_Task" else (lambda: self.run_vm("vm"))
                    self.interrupted(place, method, victim, work)
                    after()
                    if method != "Destroy_Task":
                        self.wait_state("vm", "running")
                        self.remove("vm")
                    nacre_test.until(lambda: not self.vms())
                    self.assertEqual(([], 1), (self.cloud.alive(), len(self.cloud.machines)))
                    self.cloud.reset()

    def test_the_helper(self):
        self.both(self.end_helper, lambda: None)

    def test_the_daemon(self):
        self.both(self.end_daemon, self.node.start)


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
            nacre_test.until(lambda: self.state("vm") in ("running", None), what=f"{vm.name} after the crash at {place}")


if __name__ == "__main__":
    unittest.main()
