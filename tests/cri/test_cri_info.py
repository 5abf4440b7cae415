# SPDX-License-Identifier: Apache-2.0
"""What a kubelet asks of a node before anything else: version, status, configuration."""
import json
import unittest

import nacre_test

cri_pb2, cri_pb2_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]


class Info(unittest.TestCase):
    def node(self, config):
        node = self.enterContext(nacre_test.Node(config))
        return node, cri_pb2_grpc.RuntimeServiceStub(node.channel)

    def conditions(self, api):
        return {c.type: (c.status, c.reason, c.message) for c in api.Status(cri_pb2.StatusRequest()).status.conditions}

    def test_a_node_with_networks_of_its_own(self):
        node, api = self.node("cri:\n  network: builtin\n")
        for version in ("", "0.1.0"):
            answer = api.Version(cri_pb2.VersionRequest(version=version))
            self.assertEqual(("0.1.0", "nacre", "v1"), (answer.version, answer.runtime_name, answer.runtime_api_version))
            self.assertRegex(answer.runtime_version, r"^\d+\.\d+\.\d+")
        self.assertEqual({"RuntimeReady": (True, "", ""), "NetworkReady": (True, "", "")}, self.conditions(api))
        status = api.Status(cri_pb2.StatusRequest(verbose=True))
        self.assertEqual({"", "cell"}, {h.name for h in status.runtime_handlers} - {"vm"})
        self.assertEqual({(True, True)}, {(h.features.recursive_read_only_mounts, h.features.user_namespaces)
                                          for h in status.runtime_handlers if h.name != "vm"})
        self.assertEqual(cri_pb2.RuntimeFeatures(supplemental_groups_policy=True, mount_options=True, user_namespaces_host_network=True), status.features)
        info = json.loads(status.info["info"])
        self.assertEqual((node.root, node.run, node.socket), tuple(info["config"][k] for k in ("rootDir", "stateDir", "socket")))
        self.assertIsNone(info["handlers"]["cell"])
        # A machine needs a guest, which this node has none of; it says so.
        self.assertIn("guest", info["handlers"]["vm"])
        self.assertEqual({}, dict(api.Status(cri_pb2.StatusRequest()).info))
        config = api.RuntimeConfig(cri_pb2.RuntimeConfigRequest())
        self.assertEqual(cri_pb2.CGROUPFS, config.linux.cgroup_driver)
        network = cri_pb2.NetworkConfig(pod_cidr="10.1.0.0/24")
        api.UpdateRuntimeConfig(cri_pb2.UpdateRuntimeConfigRequest(runtime_config=cri_pb2.RuntimeConfig(network_config=network)))

    def test_a_node_without_a_network_says_why(self):
        _, api = self.node("")
        conditions = self.conditions(api)
        self.assertEqual((True, "", ""), conditions["RuntimeReady"])
        ready, reason, message = conditions["NetworkReady"]
        self.assertEqual((False, "NetworkPluginNotReady"), (ready, reason))
        self.assertIn("cri.network: builtin", message)


if __name__ == "__main__":
    unittest.main()
