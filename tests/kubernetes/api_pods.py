# SPDX-License-Identifier: Apache-2.0
"""A kubelet with an API server: the node's object, and what pods have of other objects and of subresources."""
import base64
import json
import os
import signal
import subprocess

import static_pods
from cluster import MERGE, TOKEN
from kubelet import CLIENTS, NAME, PATIENCE, Failed, Pod, expect, statuses, until, version_1
from static_pods import SHELL, idle, shell

PODS = "namespaces/default/pods"


class Bench(static_pods.Bench):
    def __init__(self, cluster, *others):
        super().__init__(*others)
        self.cluster, self.token = cluster, TOKEN

    def pod(self, name, *containers, metadata=None, **spec):
        self.prepare(containers, spec)
        self.cluster.make(PODS, "Pod", name, metadata=metadata or {}, spec={"nodeName": NAME, "containers": list(containers), **spec})
        return Pod(name, lambda n: self.cluster.get(f"{PODS}/{n}"))

    def said(self, pod, container="main", **query):
        more = "".join(f"&{k}={v}" for k, v in query.items())
        return self.cluster.call("GET", f"{PODS}/{pod.name}/log?container={container}{more}").decode()

    def shown(self, pod, *command, container="main", status=0):
        """What a command in the container said, by way of the API server."""
        done = self.client("websocket", "exec", pod, container=container, stdout="true", stderr="true", command=list(command))
        expect(done.returncode, status, f"{command}, which said {done.stderr!r}")
        return done.stdout.decode()

    def client(self, transport, what, pod, *words, data=b"", **query):
        path = static_pods.with_query(self.cluster.url(f"{PODS}/{pod.name}/{what}"), query)
        return subprocess.run([os.path.join(self.kubelet.programs, "client_go"), "exec", transport, path, *words], input=data, capture_output=True,
                              check=False, timeout=PATIENCE, env={**os.environ, "TOKEN": TOKEN})

    def delete(self, pod, **options):
        self.cluster.call("DELETE", f"{PODS}/{pod.name}", {"apiVersion": "v1", "kind": "DeleteOptions", **options})


def node_object(b):
    def look():
        node = b.cluster.get(f"nodes/{NAME}")
        conditions = {c["type"]: c["status"] for c in (node or {}).get("status", {}).get("conditions", ())}
        return node if conditions.get("Ready") == "True" else None
    status = until(look, "the node is ready")["status"]
    if not status["nodeInfo"]["containerRuntimeVersion"].startswith("nacre://"):
        raise Failed(f"the runtime is {status['nodeInfo']['containerRuntimeVersion']}")
    handlers = {h["name"]: h.get("features", {}) for h in status["runtimeHandlers"]}
    expect({"", "cell"} <= set(handlers), True, f"handlers {handlers}")
    expect((handlers["cell"]["recursiveReadOnlyMounts"], handlers["cell"]["userNamespaces"]), (True, True), "features of cell")
    until(lambda: any("busybox" in n for i in look()["status"].get("images", ()) for n in i["names"]), "its images")


def configuration(b):
    """ConfigMaps and Secrets in the environment and as volumes, which change with them in one step."""
    b.cluster.make("namespaces/default/configmaps", "ConfigMap", "settings", data={"a": "1", "b": "1"})
    b.cluster.make("namespaces/default/secrets", "Secret", "secret", data={"key": base64.b64encode(b"hidden").decode()})
    mounts = [{"name": "settings", "mountPath": "/settings"}, {"name": "secret", "mountPath": "/secret", "readOnly": True}, {"name": "absent", "mountPath": "/absent"},
              {"name": "settings", "mountPath": "/one", "subPath": "a"}]
    # Of two keys that change together, no reader who follows one link sees one old and one new. (The old ones are removed, too.)
    watch = "(while :; do cd /settings/..data; a=$(cat a 2>/dev/null) && b=$(cat b 2>/dev/null) && test \"$a\" != \"$b\" && echo torn; cd /; usleep 2000; done) & true"
    pod = b.pod("configured", idle(watch, env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}],
                                   envFrom=[{"secretRef": {"name": "secret"}}], volumeMounts=mounts), volumes=[
        {"name": "settings", "configMap": {"name": "settings"}}, {"name": "secret", "secret": {"secretName": "secret", "defaultMode": 0o400}},
        {"name": "absent", "configMap": {"name": "absent", "optional": True}}])
    pod.running()
    expect(b.shown(pod, *SHELL, "echo $A $key; cat /settings/a /secret/key; stat -Lc ' %a' /secret/key; grep -c ' /secret tmpfs ro' /proc/mounts; ls /absent"),
           "1 hidden\n1hidden 400\n1\n", "what it has")
    b.cluster.patch("namespaces/default/configmaps/settings", {"data": {"a": "2", "b": "2"}}, MERGE)
    b.cluster.patch("namespaces/default/secrets/secret", {"stringData": {"key": "other"}}, MERGE)
    until(lambda: b.shown(pod, "cat", "/settings/a", "/settings/b", "/secret/key") == "22other", "the new ones")
    expect((b.shown(pod, "cat", "/one"), b.said(pod)), ("1", ""), "a sub-path, which stays, and what was seen torn")
    until(lambda: b.cluster.make("namespaces/default/configmaps", "ConfigMap", "absent", data={"now": "there"}), "the optional one")
    until(lambda: b.shown(pod, "ls", "/absent") == "now\n", "the optional one in the pod")


def waits_for_configuration(b):
    pod = b.pod("waits", shell("echo $KEY", env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "later", "key": "key"}}}]), restartPolicy="Never")
    pod.until(lambda p: statuses(p).get("main", {}).get("state", {}).get("waiting", {}).get("reason") == "CreateContainerConfigError", "an error of its configuration")
    b.cluster.make("namespaces/default/secrets", "Secret", "later", stringData={"key": "there"})
    pod.phase("Succeeded")
    expect(b.said(pod), "there\n", "what it said")


def tokens(b):
    """The token of the service account, and a projected one for another audience beside a ConfigMap and labels."""
    b.cluster.make("namespaces/default/configmaps", "ConfigMap", "projected", data={"x": "y"})
    sources = [{"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 600}}, {"configMap": {"name": "projected"}},
               {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]
    pod = b.pod("tokens", idle(volumeMounts=[{"name": "all", "mountPath": "/all"}], securityContext={"runAsUser": 1000}), volumes=[
        {"name": "all", "projected": {"sources": sources}}])
    seen = pod.running()
    expect(b.shown(pod, "cat", "/all/x", "/all/name", "/var/run/secrets/kubernetes.io/serviceaccount/namespace"), "ytokensdefault", "projected files")
    for path, audience in (("/all/token", "vault"), ("/var/run/secrets/kubernetes.io/serviceaccount/token", "https://kubernetes.default.svc")):
        part = b.shown(pod, "cat", path).split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        expect((claims["aud"], claims["kubernetes.io"]["pod"]["uid"]), ([audience], seen["metadata"]["uid"]), f"claims of {path}")


def ephemeral(b):
    """A container that comes into a pod that runs, in the namespace of processes of another one."""
    pod = b.pod("ephemeral", idle())
    pod.running()
    more = {"name": "debug", "image": "busybox", "imagePullPolicy": "Never", "targetContainerName": "main", "command": [*SHELL, "ps | grep -c '[s]leep 1000'"]}
    b.cluster.patch(f"{PODS}/ephemeral/ephemeralcontainers", {"spec": {"ephemeralContainers": [more]}})
    pod.until(lambda p: "terminated" in statuses(p, "ephemeralContainerStatuses").get("debug", {}).get("state", {}), "the other's end")
    if b.said(pod, "debug").strip() == "0":
        raise Failed("it did not see the process of the container")


def subresources(b):
    """Logs, exec, attach and port-forward by way of the API server."""
    pod = b.pod("sub", shell("echo began; mkdir /w; echo page >/w/index.html; httpd -h /w -p 8080; while read x; do echo got $x; done", stdin=True))
    pod.running()
    until(lambda: b.said(pod) == "began\n", "the log")
    for transport in CLIENTS:
        flags = {"container": "main", "stdout": "true", "stderr": "true"}
        done = b.client(transport, "exec", pod, **flags, command=[*SHELL, "echo hello; echo oops >&2; exit 3"])
        expect((done.returncode, done.stdout, done.stderr), (3, b"hello\n", b"oops\n"), f"exec by {transport}")
        data = os.urandom(1 << 20)
        done = b.client(transport, "exec", pod, "stdin", data=data, **flags, stdin="true", command=["cat"])
        expect(done.stdout == data, True, f"cat by {transport}")
        static_pods.forward(b, transport, b.cluster.url(f"{PODS}/sub/portforward"), b"page\n", "/index.html")
        static_pods.attach(b, transport, static_pods.with_query(b.cluster.url(f"{PODS}/sub/attach"), {**flags, "stdin": "true"}))


def limits(b):
    """With version 2 of the cgroups they are the kernel's; with version 1 they are refused by name."""
    wants = {"limits": {"memory": "32Mi", "cpu": "250m"}, "requests": {"memory": "16Mi", "cpu": "100m"}}
    pod = b.pod("limits", idle(resources=wants))
    if version_1():
        def waiting(p):
            return statuses(p).get("main", {}).get("state", {}).get("waiting", {})
        seen = pod.until(lambda p: "cgroup" in waiting(p).get("message", ""), "a refusal")
        expect(waiting(seen)["reason"] in ("CreateContainerError", "RunContainerError"), True, f"the reason {waiting(seen)}")
        return
    pod.running()
    expect(b.shown(pod, "cat", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/cpu.max").split(), [str(32 << 20), "25000", "100000"], "the kernel's limits")
    b.cluster.patch(f"{PODS}/limits/resize", {"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": "48Mi", "cpu": "500m"}}}]}})
    until(lambda: b.shown(pod, "cat", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/cpu.max").split() == [str(48 << 20), "50000", "100000"], "the kernel's new limits")
    expect(pod.status()["restartCount"], 0, "restarts")


def runtime_class(b):
    """Handlers by their names: `cell`, and one that nobody has."""
    for name, handler in (("walled", "cell"), ("unknown", "nosuch")):
        b.cluster.make("runtimeclasses", "RuntimeClass", name, api="apis/node.k8s.io/v1", handler=handler)
    pod, other = b.pod("class", shell("echo ran"), restartPolicy="Never", runtimeClassName="walled"), b.pod("no-class", shell("echo ran"), runtimeClassName="unknown")
    pod.phase("Succeeded")
    expect(b.said(pod), "ran\n", "what it said")

    def told():
        return [e["message"] for e in b.cluster.get("namespaces/default/events")["items"] if e["involvedObject"]["name"] == "no-class"]
    until(lambda: any("nosuch" in m for m in told()), "an event that names the handler")
    b.delete(other, gracePeriodSeconds=0)


def machine(b):
    """RuntimeClass vm: another kernel's boot, its logs, exec, a secret, and its end."""
    b.cluster.make("runtimeclasses", "RuntimeClass", "vm", api="apis/node.k8s.io/v1", handler="vm")
    b.cluster.make("namespaces/default/secrets", "Secret", "vm", stringData={"key": "hidden"})
    pod = b.pod("machine", idle("cat /proc/sys/kernel/random/boot_id", volumeMounts=[{"name": "secret", "mountPath": "/secret"}]), runtimeClassName="vm",
                volumes=[{"name": "secret", "secret": {"secretName": "vm"}}])
    pod.until(lambda p: "running" in statuses(p).get("main", {}).get("state", {}), "it runs", 300)
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        expect(b.said(pod) not in ("", f.read()), True, "another boot")
    expect(b.shown(pod, "cat", "/secret/key"), "hidden", "a secret")
    b.delete(pod)
    pod.gone()


def ends(b):
    """Deletion with a grace period: preStop, the signal, and the object is gone when the containers are."""
    pod = b.pod("ends", shell("trap 'echo term >>/shared/ends; exit 0' TERM; while :; do sleep 1000 & wait; done", lifecycle={
        "preStop": {"exec": {"command": [*SHELL, "echo pre >>/shared/ends"]}}}))
    seen = pod.running()
    b.delete(pod, gracePeriodSeconds=20)
    pod.gone()
    expect(b.read("ends"), "pre\nterm\n", "its last deeds")
    until(lambda: not any(seen["metadata"]["uid"] in name or "ends" in name for name in b.nacre_pods()), "nacre has nothing of it")
    told = {e["reason"] for e in b.cluster.get("namespaces/default/events")["items"] if e["involvedObject"]["name"] == "ends"}
    expect({"Pulled", "Created", "Started", "Killing"} <= told, True, f"events {told}")


def restarts_of_both(b):
    """Kubelet and daemon at once, while a pod is deleted and another one is made."""
    stays, goes = b.pod("both-stays", idle()), b.pod("both-goes", idle())
    before, _ = static_pods.instances(b, [stays]), goes.running()
    b.kubelet.stop(signal.SIGKILL)
    b.node.kill()
    b.delete(goes)
    comes = b.pod("both-comes", idle())
    b.node.start()
    b.kubelet.start()
    comes.running()
    goes.gone()
    expect(static_pods.instances(b, [stays]), before, "the container")


def eviction(b):
    """A kubelet that is told to want more free memory than there is evicts, and the node says why."""
    # Without a request it would not even be admitted again.
    pod = b.pod("evicted", shell("trap 'exit 1' TERM; while :; do sleep 1000 & wait; done", resources={"requests": {"memory": "1Mi"}}))
    pod.running()
    b.kubelet.stop()
    b.kubelet.configure(evictionHard={"memory.available": "99%", "nodefs.available": "0%", "imagefs.available": "0%"}, evictionPressureTransitionPeriod="1s")
    b.kubelet.start()
    seen = pod.phase("Failed")
    why = {c["type"]: c.get("reason") for c in seen["status"]["conditions"]}.get("DisruptionTarget")
    expect((seen["status"].get("reason"), why), ("Evicted", "TerminationByKubelet"), "the reason")
    until(lambda: {c["type"]: c["status"] for c in b.cluster.get(f"nodes/{NAME}")["status"]["conditions"]}["MemoryPressure"] == "True", "pressure")


CASES = (node_object, configuration, waits_for_configuration, tokens, ephemeral, subresources, limits, runtime_class, machine, ends)
ALONE = (restarts_of_both, eviction)
