# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed, or fails, while the guest of a machine that runs is told of a network: it is on that network or it is not."""
import grpc

import faults
import nacre_test
from nacre_test import nacre_pb2, until
from test_killed_machines import MachinesTest


@faults.spread
class Networks(MachinesTest):
    def connect(self):
        self.node.networks.Connect(nacre_pb2.ConnectNetworkRequest(target="p", name="two"), timeout=60)

    def connected(self):
        try:
            self.connect()
        except grpc.RpcError as e:
            self.assertEqual(grpc.StatusCode.UNAVAILABLE, e.code(), e.details())
            return False
        return True

    @faults.for_each(["network.guest=crash", "network.guest+=crash", "network.guest=error:28"] if faults.has_faults() else [])
    def connect_with(self, fault):
        self.node.cli("network", "create", "--driver", "bridge", "two")
        self.assertTrue(self.restart_with(NACRE_FAILPOINT=fault, NACRE_KEEPER_FAILPOINT=""))
        self.pod("p", kind="vm", network="default")
        with self.assertRaises(grpc.RpcError):
            self.connect()
        if "crash" in fault:
            until(lambda: not self.node.alive, 60, fault)
        self.restart_with(NACRE_FAILPOINT="", NACRE_KEEPER_FAILPOINT="")
        until(lambda: b"eth1" not in self.exec("p", "ip", "-o", "address", "show", "up")[0], what="it is off that network")
        self.assertEqual([], list(self.inspect("p").further_attachments))
        # It may be leaving still, which the answer tells.
        until(self.connected, what="it can be connected again")
        self.assertIn(self.inspect("p").further_attachments[0].ip.encode(), self.exec("p", "ip", "address", "show", "eth1")[0])
        self.node.clear()
        self.node.cli("network", "rm", "two")


del MachinesTest
