# SPDX-License-Identifier: Apache-2.0
"""A kubelet alone, with pods from files: what each case looks at is what the kubelet tells, what the containers left, and what nacre knows.

The cases of CASES run beside each other, those of ALONE one after the other behind them, since they end the kubelet or the daemon.
"""
import gzip
import hashlib
import json
import os
import signal
import socket
import subprocess
import urllib.parse
import urllib.request

import fakeregistry
from kubelet import CLIENTS, Failed, Pod, expect, statuses, until, where

SHELL = ["sh", "-c"]
FORWARDED = 4 << 20
PORT = 8080


class Bench:
    """What a case gets: the node, its kubelet, and a folder of its own that its pods may mount."""

    def __init__(self, node, kubelet, folder, registry):
        self.node, self.kubelet, self.folder, self.registry = node, kubelet, folder, registry
        self.token = ""
        os.makedirs(folder, exist_ok=True)

    def pod(self, name, *containers, metadata=None, **spec):
        """A manifest of these containers."""
        self.prepare(containers, spec)
        self.kubelet.put(name, {"containers": list(containers), **spec}, **(metadata or {}))
        return Pod(name, lambda n: self.kubelet.pods().get(n))

    def prepare(self, containers, spec):
        """All of them have the folder as /shared."""
        spec.setdefault("terminationGracePeriodSeconds", 5)
        spec["volumes"] = [{"name": "shared", "hostPath": {"path": self.folder, "type": "Directory"}}, *spec.pop("volumes", ())]
        for c in (*containers, *spec.get("initContainers", ())):
            c["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}, *c.pop("volumeMounts", ())]

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text=""):
        with open(self.path(name), "w", encoding="ascii") as f:
            f.write(text)

    def read(self, name):
        try:
            with open(self.path(name), encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def said(self, pod, container="main", **query):
        return self.kubelet.get(f"containerLogs/default/{pod.seen()['metadata']['name']}/{container}", **query).decode()

    def nacre_pods(self):
        """Names of all workloads of the node."""
        return [w["name"] for w in self.node.json("ps", "-a")]


def shell(script, name="main", **more):
    # `trap` makes the shell end at once by SIGTERM, and `wait` lets it hear of that.
    return {"name": name, "image": "busybox", "imagePullPolicy": "Never", "command": [*SHELL, script], **more}


def idle(before="true", name="main", **more):
    return shell(f"trap 'exit 0' TERM; {before}; while :; do sleep 1000 & wait; done", name, **more)


def quick(kind):
    return {**kind, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 5}


def probes_exec(b):
    pod = b.pod("exec", idle(readinessProbe=quick({"exec": {"command": ["test", "-e", "/shared/ready"]}}),
                             livenessProbe=quick({"exec": {"command": ["test", "!", "-e", "/shared/dead"]}})))
    pod.running()
    pod.ready(False)
    b.write("ready")
    pod.ready()
    b.write("dead")
    pod.restarted()
    os.unlink(b.path("dead"))


def serving(*, answers):
    """httpd of busybox, whose pages are files of the bench."""
    return idle("mkdir -p /shared/www; echo page >/shared/www/index.html; httpd -h /shared/www -p " + str(PORT), ports=[{"containerPort": PORT}], **answers)


def probes_http(b):
    pod = b.pod("http", serving(answers={
        "startupProbe": {**quick({"httpGet": {"path": "/index.html", "port": PORT}}), "failureThreshold": 60},
        "readinessProbe": quick({"httpGet": {"path": "/ready", "port": PORT}}),
        "livenessProbe": quick({"httpGet": {"path": "/index.html", "port": PORT}})}))
    pod.running()
    pod.ready(False)
    b.write("www/ready")
    pod.ready()
    os.unlink(b.path("www/index.html"))
    pod.restarted()


def probes_tcp(b):
    pod = b.pod("tcp", serving(answers={"readinessProbe": quick({"tcpSocket": {"port": PORT}})}))
    pod.ready()
    expect(b.kubelet.run(pod.seen(), "main", "killall", "httpd")[0], 200, "killall")
    pod.ready(False)
    expect(pod.status()["restartCount"], 0, "restarts of a container that is not ready")


def probes_grpc(b):
    b.write("serves")
    pod = b.pod("grpc", {"name": "main", "image": "busybox", "imagePullPolicy": "Never", "command": ["/programs/grpc_health", str(PORT), "/shared/serves"],
                         "readinessProbe": quick({"grpc": {"port": PORT}}), "volumeMounts": [{"name": "programs", "mountPath": "/programs", "readOnly": True}]},
                volumes=[{"name": "programs", "hostPath": {"path": b.kubelet.programs}}])
    pod.ready()
    os.unlink(b.path("serves"))
    pod.ready(False)


def restarts(b):
    """With back-off, of which the kubelet tells, and with the last exit status."""
    pod = b.pod("restarts", shell("echo run >>/shared/runs; echo last words >/dev/termination-log; exit 3"))
    pod.restarted(2)
    seen = pod.until(lambda p: statuses(p)["main"]["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff", "back-off")
    last = statuses(seen)["main"]["lastState"]["terminated"]
    expect((last["exitCode"], last["reason"], last["message"]), (3, "Error", "last words\n"), "the last state")
    if len(b.read("runs").split()) < 3:
        raise Failed(f"it ran {b.read('runs')!r}")


def never_restarts(b):
    done, failed = b.pod("done", shell("exit 0"), restartPolicy="Never"), b.pod("failed", shell(
        "echo the reason; exit 7", terminationMessagePolicy="FallbackToLogsOnError"), restartPolicy="Never")
    done.phase("Succeeded")
    failed.phase("Failed")
    end = failed.status()["state"]["terminated"]
    expect((end["exitCode"], end["message"], failed.status()["restartCount"]), (7, "the reason\n", 0), "the end of a pod that failed")


def init_and_sidecar(b):
    """Init containers in their order, a sidecar among them that is ready before the next, outlives the container and ends behind it."""
    note = "echo {0} >>/shared/order"
    sidecar = shell("trap 'echo sidecar ends >>/shared/order; exit 0' TERM; echo sidecar >>/shared/order; sleep 1; touch /tmp/up; while :; do sleep 1000 & wait; done",
                    "sidecar", restartPolicy="Always", startupProbe={**quick({"exec": {"command": ["test", "-e", "/tmp/up"]}}), "failureThreshold": 60})
    pod = b.pod("inits", shell(note.format("main") + "; sleep 1; " + note.format("main ends")), restartPolicy="Never", initContainers=[
        shell(note.format("one"), "one"), sidecar, shell(note.format("two"), "two")])
    pod.phase("Succeeded")
    expect(b.read("order").splitlines(), ["one", "sidecar", "two", "main", "main ends", "sidecar ends"], "the order")
    inits = statuses(pod.seen(), "initContainerStatuses")
    expect([inits[n]["state"]["terminated"]["exitCode"] for n in ("one", "sidecar", "two")], [0, 0, 0], "exit codes of the init containers")


def init_fails(b):
    pod = b.pod("init-fails", shell("echo main >>/shared/init-fails"), restartPolicy="Never", initContainers=[shell("exit 4", "one")])
    pod.phase("Failed")
    expect(statuses(pod.seen(), "initContainerStatuses")["one"]["state"]["terminated"]["exitCode"], 4, "exit code of the init container")
    expect(b.read("init-fails"), "", "what the container did")


def lifecycle(b):
    """postStart before the container counts as running, preStop before the signal."""
    pod = b.pod("hooks", shell("trap 'echo term >>/shared/hooks; exit 0' TERM; while :; do sleep 1000 & wait; done", lifecycle={
        "postStart": {"exec": {"command": [*SHELL, "echo post >>/shared/hooks"]}}, "preStop": {"exec": {"command": [*SHELL, "echo pre >>/shared/hooks; sleep 1"]}}}))
    pod.running()
    expect(b.read("hooks"), "post\n", "what postStart did")
    b.kubelet.withdraw("hooks")
    until(lambda: b.read("hooks") == "post\npre\nterm\n", "preStop, then the signal")


def deadline(b):
    """activeDeadlineSeconds, and a container that hears no SIGTERM."""
    pod = b.pod("deadline", shell("trap '' TERM; while :; do sleep 1000 & wait; done"), activeDeadlineSeconds=3, terminationGracePeriodSeconds=1, restartPolicy="Never")
    seen = pod.phase("Failed")
    expect(seen["status"]["reason"], "DeadlineExceeded", "reason")
    until(lambda: pod.status()["state"].get("terminated", {}).get("exitCode") == 137, "it was killed")


def volumes(b):
    """hostPath of each kind, read-only and with sub-paths; emptyDir on disk and in memory, shared, with a group; the downward API."""
    b.write("file", "from the host\n")
    os.mkdir(b.path("tree"))
    b.write("tree/leaf", "leaf\n")
    script = ("set -e; test \"$(cat /one)\" = 'from the host'; test \"$(cat /sub)\" = leaf; if touch /ro/x 2>/dev/null; then exit 10; fi; "
              "echo data >/disk/x; stat -c %g /disk >/shared/gid; df -k /memory | tail -n1 | tr -s ' ' | cut -d' ' -f2 >/shared/size; "
              "grep -c ' /memory tmpfs ' /proc/mounts >/shared/tmpfs; cat /about/labels >/shared/labels; echo $POD_NAME $POD_UID_SET $POD_IP >/shared/env; touch /disk/done")
    mounts = [{"name": "one", "mountPath": "/one"}, {"name": "tree", "mountPath": "/sub", "subPath": "leaf"}, {"name": "tree", "mountPath": "/ro", "readOnly": True},
              {"name": "disk", "mountPath": "/disk"}, {"name": "memory", "mountPath": "/memory"}, {"name": "about", "mountPath": "/about"}]
    env = [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "POD_UID_SET", "value": "$(POD_NAME)-x"},
           {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    other = shell("until test -e /disk/done; do usleep 50000; done; cat /disk/x >/shared/other", "other", volumeMounts=[{"name": "disk", "mountPath": "/disk"}])
    pod = b.pod("volumes", shell(script, volumeMounts=mounts, env=env), other, restartPolicy="Never", securityContext={"fsGroup": 4242}, metadata={"labels": {"a": "b"}},
                volumes=[{"name": "one", "hostPath": {"path": b.path("file"), "type": "File"}}, {"name": "tree", "hostPath": {"path": b.path("tree")}},
                         {"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}},
                         {"name": "about", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}])
    seen = pod.phase("Succeeded")
    expect((b.read("other"), b.read("gid"), b.read("size"), b.read("tmpfs")), ("data\n", "4242\n", "8192\n", "1\n"), "what the containers saw")
    expect(b.read("labels"), 'a="b"', "labels by the downward API")
    expect(b.read("env").split(), ["volumes-node", "volumes-node-x", seen["status"]["podIP"]], "the environment")


def propagation(b):
    """What the host mounts shows in the container, and what a privileged container mounts shows on the host."""
    os.mkdir(b.path("in"))
    os.mkdir(b.path("out"))
    host = [{"name": "shared", "mountPath": "/host", "mountPropagation": "HostToContainer"}]
    both = [{"name": "shared", "mountPath": "/host", "mountPropagation": "Bidirectional"}]
    pod = b.pod("propagation", idle(volumeMounts=host), idle("mount -t tmpfs out /host/out; touch /host/out/seen", "both", volumeMounts=both, securityContext={"privileged": True}))
    pod.running()
    subprocess.run(["mount", "-t", "tmpfs", "in", b.path("in")], check=True)
    b.write("in/seen", "x")
    try:
        expect(b.kubelet.run(pod.seen(), "main", "cat", "/host/in/seen"), (200, "x"), "a mount of the host")
        until(lambda: os.path.exists(b.path("out/seen")), "a mount of the container")
        expect(b.kubelet.run(pod.seen(), "main", "ls", "/host/out"), (200, "seen\n"), "another container's mount")
    finally:
        subprocess.run(["umount", b.path("in")], check=True)
        subprocess.run(["umount", b.path("out")], check=False)


def security(b):
    """User, groups, capabilities, read-only root, seccomp, sysctls, no new privileges: by the kernel's word."""
    script = ("id -u; id -G; grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t' ' '; cat /proc/sys/net/ipv4/ip_unprivileged_port_start; "
              "touch /x 2>&1 | grep -o 'Read-only file system'; hostname")
    pod = b.pod("security", shell(script, securityContext={"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
                                                           "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}), restartPolicy="Never", hostname="other",
                securityContext={"runAsUser": 1000, "runAsGroup": 2000, "supplementalGroups": [3000], "seccompProfile": {"type": "RuntimeDefault"},
                                 "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "123"}]})
    pod.phase("Succeeded")
    expect(b.said(pod).splitlines(), ["1000", "2000 3000", "CapBnd: 0000000000000400", "NoNewPrivs: 1", "Seccomp: 2", "123", "Read-only file system", "other"],
           "what the kernel tells the container")


def user_namespace(b):
    """Its ids are others outside, and those of volumes are as they would be without."""
    pod = b.pod("userns", shell("cat /proc/self/uid_map; stat -c %u /empty /shared; touch /empty/x", volumeMounts=[{"name": "empty", "mountPath": "/empty"}]),
                restartPolicy="Never", hostUsers=False,
                volumes=[{"name": "empty", "emptyDir": {}}])
    pod.phase("Succeeded")
    fields = b.said(pod).split()
    if fields[0] != "0" or int(fields[1]) < 65536 or fields[2:] != ["65536", "0", "0"]:
        raise Failed(f"the map is {fields}")


def namespaces(b):
    """Those of the host, and one of processes that containers share."""
    own = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "ipc")}
    host = b.pod("of-the-host", shell("readlink /proc/self/ns/net; readlink /proc/self/ns/ipc; cat /proc/1/comm"), restartPolicy="Never", hostNetwork=True, hostIPC=True, hostPID=True)
    both = b.pod("share", idle(), shell("until ps | grep '[s]leep 1000'; do usleep 50000; done", "other"), restartPolicy="Never", shareProcessNamespace=True)
    host.phase("Succeeded")
    with open("/proc/1/comm", encoding="utf-8") as f:
        expect(b.said(host).splitlines(), [own["net"], own["ipc"], f.read().strip()], "namespaces of the host")
    both.until(lambda p: "terminated" in statuses(p)["other"]["state"], "the other's end")


def images(b):
    """Pulled from a registry, mounted as a volume, missing, and never to be pulled."""
    name = f"{b.registry.host}/kube/page:1"
    tree = {"page": b"from an image\n", "folder/leaf": b"leaf\n"}
    b.registry.put_image("kube/page", "1", [fakeregistry.layer_tar(tree)])
    pod = b.pod("pulls", shell("cat /image/page; cat /sub/leaf; touch /image/x 2>&1 | grep -o 'Read-only'", volumeMounts=[
        {"name": "image", "mountPath": "/image"}, {"name": "image", "mountPath": "/sub", "subPath": "folder"}]), restartPolicy="Never",
        volumes=[{"name": "image", "image": {"reference": name, "pullPolicy": "Always"}}])
    pod.phase("Succeeded")
    expect(b.said(pod), "from an image\nleaf\nRead-only\n", "an image as a volume")
    missing = b.pod("missing", {**shell("true"), "image": f"{b.registry.host}/kube/none:1", "imagePullPolicy": "Always"})
    never = b.pod("never", {**shell("true"), "image": "nosuch"})

    def waits(p):
        return statuses(p).get("main", {}).get("state", {}).get("waiting", {})
    seen = missing.until(lambda p: waits(p).get("reason") == "ErrImagePull", "ErrImagePull")
    if "manifest 1: it answers with status 404" not in waits(seen)["message"]:
        raise Failed(f"the message is {waits(seen)['message']!r}")
    missing.until(lambda p: waits(p).get("reason") == "ImagePullBackOff", "ImagePullBackOff")
    never.until(lambda p: waits(p).get("reason") == "ErrImageNeverPull", "ErrImageNeverPull")


def bad_command(b):
    pod = b.pod("bad", {**shell(""), "command": ["/no/such"]})
    seen = pod.until(lambda p: statuses(p)["main"].get("lastState", {}).get("terminated") or statuses(p)["main"]["state"].get("waiting", {}).get("message"), "an error")
    if "/no/such" not in str(statuses(seen)["main"]):
        raise Failed(f"the status is {statuses(seen)['main']}")


def logs(b):
    """Of both streams, the last lines, of the container before, and rotated with nothing lost."""
    pod = b.pod("logs", shell("test -e /shared/again || { echo first; touch /shared/again; exit 1; }; echo out; echo err >&2; trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"))
    pod.restarted()
    pod.running()
    # Which of two streams is read first is nobody's promise.
    until(lambda: sorted(b.said(pod).split()) == ["err", "out"], "both streams")
    expect((b.said(pod, previous="true"), b.said(pod).endswith(b.said(pod, tailLines=1))), ("first\n", True), "the one before, and the last line")
    many = b.pod("rotated", shell("i=0; while [ $i -lt 4 ]; do seq 30000 | sed \"s/.*/$i & aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/\"; i=$((i+1)); "
                                  "until test -e /shared/on$i; do usleep 50000; done; done"), restartPolicy="Never")
    many.running()
    seen = many.seen()["metadata"]
    folder = os.path.join(b.kubelet.logs, f"default_{seen['name']}_{seen['uid']}", "main")
    # More than twice of what is rotated: until the daemon has heard of it, it writes on in the old file.
    for i in range(1, 5):
        until(lambda want=i: len(log_files(folder)) > want, f"{i} rotations")
        b.write(f"on{i}")
    many.phase("Succeeded")
    lines = "".join(text + ("" if tag == "P" else "\n") for _, _, tag, text in (line.split(" ", 3) for line in log_lines(folder))).splitlines()
    want = [f"{i} {n} {'a' * 50}" for i in range(4) for n in range(1, 30001)]
    if lines != want:
        raise Failed(f"{len(lines)} lines of {len(want)}; the first other one is {next((p for p in zip(lines, want) if p[0] != p[1]), None)}")


def log_files(folder):
    """The names of a log's files, the rotated ones first, without the ending that they have once they are packed."""
    return sorted({n.removesuffix(".gz") for n in os.listdir(folder) if not n.endswith(".tmp")} - {"0.log"}) + ["0.log"]


def log_lines(folder):
    """Of all files of a log. One may be packed meanwhile."""
    found = []
    for path in (os.path.join(folder, name) for name in log_files(folder)):
        try:
            with open(path, encoding="ascii") as f:
                found += f.read().splitlines()
        except FileNotFoundError:
            with gzip.open(path + ".gz", "rt", encoding="ascii") as f:
                found += f.read().splitlines()
    return found


def streams(b):
    """exec, attach and port-forward through the kubelet's own server, by client-go and both transports."""
    pod = b.pod("streams", shell("mkdir -p /w; head -c 4194304 /dev/urandom >/w/blob; cp /w/blob /shared/blob; httpd -h /w -p 8080; while read x; do echo got $x; done", stdin=True))
    seen = pod.running()
    until(lambda: os.path.exists(b.path("blob")), "the page")
    for transport in CLIENTS:
        flags = {"container": "main", "output": "1", "error": "1"}
        done = b.kubelet.client(transport, "exec", seen, **flags, command=[*SHELL, "echo hello; echo oops >&2"])
        expect((done.stdout, done.stderr), (b"hello\n", b"oops\n"), f"exec by {transport}")
        b.kubelet.client(transport, "exec", seen, **flags, command=[*SHELL, "exit 3"], status=3)
        data = os.urandom(1 << 20)
        done = b.kubelet.client(transport, "exec", seen, "stdin", **{**flags, "input": "1"}, command=["cat"], data=data)
        expect(hashlib.sha256(done.stdout).digest(), hashlib.sha256(data).digest(), f"cat by {transport}")
        with open(b.path("blob"), "rb") as f:
            forward(b, transport, b.kubelet.url(f"portForward/{where(seen)}"), f.read(), "/blob")
        attach(b, transport, b.kubelet.url(f"attach/{where(seen)}/main", input="1", output="1", error="1"))
    expect(b.kubelet.run(seen, "main", "echo", "hello"), (200, "hello\n"), "ExecSync")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def with_query(url, query):
    return url + "?" + urllib.parse.urlencode(query, doseq=True)


def started(b, *words):
    return subprocess.Popen([os.path.join(b.kubelet.programs, "client_go"), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            env={**os.environ, "TOKEN": b.token})


def forward(b, transport, url, page, path):
    """Gets `page` at the path of PORT by a stream of this URL."""
    mine = free_port()
    url = with_query(url, {"ports" if "/portforward" in url else "port": PORT}) if transport == "websocket" else url
    with started(b, "forward", transport, url, f"{mine}:{PORT}") as p:
        try:
            expect(p.stdout.readline(), b"ready\n", f"port-forward by {transport}")
            have = urllib.request.urlopen(f"http://127.0.0.1:{mine}{path}", timeout=60).read()
            expect(hashlib.sha256(have).digest(), hashlib.sha256(page).digest(), f"the page by {transport}")
        finally:
            p.kill()


def attach(b, transport, url):
    with started(b, "exec", transport, url, "stdin") as p:
        try:
            p.stdin.write(b"one\n")
            p.stdin.flush()
            expect(p.stdout.readline(), b"got one\n", f"attach by {transport}")
        finally:
            p.kill()


def statistics(b):
    """The summary, and the names that cAdvisor's page has."""
    pod = b.pod("stats", idle())
    pod.running()

    def look():
        found = [p for p in json.loads(b.kubelet.get("stats/summary"))["pods"] if p["podRef"]["name"].startswith("stats-")]
        return found and found[0].get("containers") and found[0]
    seen = until(look, "the pod in the summary")
    expect([c["name"] for c in seen["containers"]], ["main"], "containers in the summary")
    text = b.kubelet.get("metrics/resource").decode()
    if 'node_cpu_usage_seconds_total' not in text and "container_start_time_seconds" not in text:
        raise Failed(f"metrics/resource: {text[:500]}")


def removal(b):
    """Of pod, sandbox, directory of volumes, logs and mounts."""
    pod = b.pod("removed", idle(volumeMounts=[{"name": "memory", "mountPath": "/memory"}]), volumes=[{"name": "memory", "emptyDir": {"medium": "Memory"}}])
    seen = pod.running()
    uid = seen["metadata"]["uid"]
    b.kubelet.withdraw("removed")
    pod.gone()
    until(lambda: not any("removed" in name for name in b.nacre_pods()), "nacre has nothing of it")
    until(lambda: not os.path.exists(os.path.join(b.kubelet.root, "pods", uid)), "its directory is gone")
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        if uid in f.read():
            raise Failed("a mount is left")


def instances(b, pods):
    """{pod: its containers, with when they began}."""
    return {p.name: [(s["containerID"], s["restartCount"], s["state"]["running"]["startedAt"]) for s in statuses(p.running()).values()] for p in pods}


def restarted_kubelet(b):
    """Containers go on, what changed meanwhile is done, and probes and logs go on."""
    pods = [b.pod(f"stays-{n}", idle("echo began", readinessProbe=quick({"exec": {"command": ["test", "-e", "/shared/ready"]}}))) for n in range(3)]
    gone = b.pod("goes", idle())
    gone.running()
    before = instances(b, pods)
    for number in (signal.SIGTERM, signal.SIGKILL):
        b.kubelet.stop(number)
        if number == signal.SIGKILL:
            b.kubelet.withdraw("goes")
            b.write("ready")
        b.kubelet.start()
        expect(instances(b, pods), before, "the containers")
    gone.gone()
    for pod in pods:
        pod.ready()
        expect(b.said(pod), "began\n", "its log")


def restarted_daemon(b):
    """Containers go on, their logs are whole, and the kubelet finds its way back by itself."""
    count = "i=0; trap 'exit 0' TERM; while :; do echo $i; i=$((i+1)); usleep 20000; done"
    pods = [b.pod(f"lasts-{n}", shell(count, readinessProbe=quick({"exec": {"command": ["true"]}}))) for n in range(3)]
    for pod in pods:
        pod.ready()
    before = instances(b, pods)
    for number in (signal.SIGKILL, signal.SIGTERM):
        b.node.restart(number)
        later = b.pod(f"later-{number}", idle())
        later.running()
        for pod in pods:
            pod.ready()
            expect(b.kubelet.run(pod.seen(), "main", "echo", "hello"), (200, "hello\n"), "ExecSync")
    expect(instances(b, pods), before, "the containers")
    for pod in pods:
        numbers = [int(line) for line in b.said(pod).split()]
        expect(numbers, list(range(len(numbers))), "its log")


def dies_meanwhile(b):
    """A container that ends while the daemon is down is started again, and one that hangs is killed."""
    pod = b.pod("dies", idle("echo $$$$ >/shared/pid"), hostPID=True)
    pod.running()
    until(lambda: b.read("pid").strip(), "its process")
    b.node.kill()
    os.kill(int(b.read("pid")), signal.SIGKILL)
    b.node.start()
    pod.restarted()
    pod.running()
    expect(pod.status()["lastState"]["terminated"]["exitCode"], 137, "how it ended")


def quiet(b):
    """At the end: nothing is left of all pods once their manifests are gone."""
    for name in os.listdir(b.kubelet.manifests):
        os.unlink(os.path.join(b.kubelet.manifests, name))
    until(lambda: not b.kubelet.pods(), "no pods")
    until(lambda: not b.nacre_pods(), "nothing is left in nacre")
    until(lambda: not os.listdir(os.path.join(b.kubelet.root, "pods")), "nothing is left of the kubelet's volumes")


CASES = (probes_exec, probes_http, probes_tcp, probes_grpc, restarts, never_restarts, init_and_sidecar, init_fails, lifecycle, deadline, volumes,
         propagation, security, user_namespace, namespaces, images, bad_command, logs, streams, statistics, removal)
ALONE = (restarted_kubelet, restarted_daemon, dies_meanwhile, quiet)
