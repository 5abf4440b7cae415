# SPDX-License-Identifier: Apache-2.0
"""govmomi's simulator of a vCenter as a second opinion of nacre-cloud: the forms of its calls, namespaces and prefixes that are not
tests/lib/fake_vsphere.py's, TLS checked by authorities and by a thumbprint.

What it is not good for: it makes machines at once, and throttles nobody (tests/cloud has those)."""
import os
import subprocess

import grpc

# From 0.37 to 0.52 its clones lose the instanceUuid and the extraConfig that the spec of a clone has.
MODULE = "github.com/vmware/govmomi/simulator@v0.30.7"
PROGRAM = "the simulator of a vCenter"
STEPS = 10
CONFIG = """cloud:
  poll: 200ms
  settle: 1s
  lease: 2s
  vsphere:
    endpoint: {url}
    datacenter: DC0
    resource_pool: DC0_C0/Resources
    datastore: LocalDS_0
    {trust}
"""


def strangers(folder):
    """A file with the certificate of an authority that has signed nothing here."""
    path = os.path.join(folder, "nacre-vcsim-strangers.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null",
                    "-subj", "/CN=nobody", "-days", "2", "-out", path], check=True, stderr=subprocess.DEVNULL)
    return path


def run(program, nacre_test):
    """How much did not pass."""
    pb2, passed = nacre_test.nacre_pb2, 0

    def step(good, what):
        nonlocal passed
        passed += bool(good)
        if not good:
            print(f"FAIL vcsim: {what}", flush=True)

    def refused(trust, env, url):
        with nacre_test.Node(config=CONFIG.format(url=url, trust=trust), env=env) as node:
            try:
                node.clouds.RunCloudVm(pb2.RunCloudVmRequest(image="DC0_C0_RP0_VM0", dry_run=False), timeout=300)
            except grpc.RpcError as e:
                return e.details()
        return "it was made"

    server = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url, thumbprint, file = server.stdout.readline().split()
        env = {"GOVC_USERNAME": "node", "GOVC_PASSWORD": "se<&>cret"}
        with nacre_test.Node(config=CONFIG.format(url=url, trust=f"thumbprint: '{thumbprint}'"), env=env) as node, \
                nacre_test.Node(config=CONFIG.format(url=url, trust=f"ca_file: {file}"), env=env) as other:
            show = lambda: list(node.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).vms)  # noqa: E731
            collect = lambda on, **q: [f.instance for f in on.clouds.CollectCloudVms(  # noqa: E731
                pb2.CollectCloudVmsRequest(**q), timeout=300).vms]
            made = node.clouds.RunCloudVm(pb2.RunCloudVmRequest(name="vm", image="DC0_C0_RP0_VM0", cpus=2, memory=1 << 30), timeout=300).vm
            step(len(made.instance) == 36, f"CloneVM_Task: {made}")
            nacre_test.until(lambda: show()[0].state == "running", seconds=300, what="running")
            step(show()[0].zone == "DC0", f"RetrievePropertiesEx: {show()}")
            lease = show()[0].lease_ends_at
            nacre_test.until(lambda: show()[0].lease_ends_at > lease, seconds=300, what="the lease is renewed (ReconfigVM_Task)")
            theirs = other.clouds.RunCloudVm(pb2.RunCloudVmRequest(name="vm", image="DC0_C0_RP0_VM0"), timeout=300).vm
            step(collect(node) == [] and collect(other) == [], "a node's own machines are not collected")
            name = other.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).node
            step(collect(node, node=name) == [theirs.instance] and collect(node, node=name) == [], "those of another node are")
            nacre_test.until(lambda: [v.state for v in other.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).vms] == ["exited"], seconds=300)
            other.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="vm"), timeout=300)
            stopped = node.clouds.StopCloudVm(pb2.StopCloudVmRequest(target="vm"), timeout=300).vm
            step(stopped.state == "exited", f"PowerOffVM_Task and Destroy_Task: {stopped}")
            node.clouds.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="vm", force=True), timeout=300)
            step(not show() and not collect(node, dry_run=True), f"nothing is left: {show()}")
        said = refused(f"thumbprint: '{thumbprint}'", {**env, "GOVC_PASSWORD": "wrong"}, url)
        step("InvalidLogin" in said, f"a wrong password: {said}")
        # Another certificate than the one that is pinned, and one that no authority of the file has signed.
        for trust in (f"thumbprint: '{':'.join(['00'] * 32)}'", f"ca_file: {strangers(os.path.dirname(file))}"):
            with nacre_test.Node(config=CONFIG.format(url=url, trust=trust), env=env) as node:
                list_of = lambda: list(node.clouds.ListCloudVms(pb2.ListCloudVmsRequest()).vms)  # noqa: E731
                # A call that nobody holds is cancelled by grpc at once, often before it was sent.
                call = node.clouds.RunCloudVm.future(pb2.RunCloudVmRequest(name="vm", image="DC0_C0_RP0_VM0"), timeout=300)
                nacre_test.until(lambda: list_of() and list_of()[0].reason, seconds=300, what="it says why")
                step("certificate" in list_of()[0].reason, f"{trust}: {list_of()[0].reason}")
                call.cancel()
        step("InvalidLogin" in refused(f"ca_file: {file}", {**env, "GOVC_USERNAME": "x"}, url), "a wrong name")
    finally:
        if os.path.exists(os.path.join(os.path.dirname(file), "nacre-vcsim-strangers.pem")):
            os.unlink(os.path.join(os.path.dirname(file), "nacre-vcsim-strangers.pem"))
        server.stdin.close()
        server.wait(30)
    return STEPS - passed
