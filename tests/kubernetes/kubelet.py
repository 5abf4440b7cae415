# SPDX-License-Identifier: Apache-2.0
"""A kubelet on a node of ours: its configuration, its life, and what its own API tells of pods."""
import base64
import json
import os
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

NAME = "node"
PORT = 10250
PATIENCE = 120
CLIENTS = ("spdy", "websocket")

# The times are short, so that what a kubelet does by the clock is seen soon.
CONFIG = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": "127.0.0.1", "port": PORT, "readOnlyPort": 0,
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}}, "authorization": {"mode": "AlwaysAllow"},
    "failSwapOn": False, "makeIPTablesUtilChains": False, "fileCheckFrequency": "1s", "syncFrequency": "2s", "runtimeRequestTimeout": "2m",
    "imageGCHighThresholdPercent": 100, "evictionHard": {f"{s}.available": "0%" for s in ("memory", "nodefs", "imagefs")},
    "containerLogMaxSize": "1Mi", "containerLogMaxFiles": 9, "containerLogMonitorInterval": "3s", "nodeStatusUpdateFrequency": "2s",
    "crashLoopBackOff": {"maxContainerRestartPeriod": "2s"}, "cgroupDriver": "cgroupfs", "registryPullQPS": 0, "serializeImagePulls": False,
    "featureGates": {"KubeletCrashLoopBackOffMax": True, "ImageVolume": True},
}
# A host with version 1 of the cgroups has no controllers for us, and a kubelet that makes no groups.
VERSION_1 = {"failCgroupV1": False, "cgroupsPerQOS": False, "enforceNodeAllocatable": []}


class Failed(Exception):
    pass


def expect(have, want, what):
    if have != want:
        raise Failed(f"{what}: {have!r}, not {want!r}")


def until(condition, what, seconds=PATIENCE):
    """What condition() returned once it was true. What is seen of another program's clock is looked for ten times a second."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.1)


def unchecked():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def fetch(url, method="GET", body=None, token=None, kind="application/json", timeout=60):
    """(status, bytes)."""
    headers = {"Content-Type": kind, **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(url, method=method, headers=headers, data=json.dumps(body).encode() if body is not None else None)
    try:
        with urllib.request.urlopen(request, timeout=timeout, context=unchecked()) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def version_1():
    return not os.path.exists("/sys/fs/cgroup/cgroup.controllers")


class Kubelet:
    """A context manager. `config` is put over CONFIG, `flags` behind the flags."""

    def __init__(self, programs, node, config=None, flags=()):
        self.programs, self.node, self.flags = programs, node, flags
        self.dir = os.path.join(node.dir, "kubelet")
        self.root, self.manifests, self.logs = (os.path.join(self.dir, name) for name in ("root", "manifests", "logs"))
        for folder in (self.root, self.manifests, self.logs):
            os.makedirs(folder)
        self.log_path, self.config = os.path.join(self.dir, "log"), os.path.join(self.dir, "config.json")
        resolv = os.path.join(self.dir, "resolv.conf")
        with open(resolv, "w", encoding="ascii") as f:
            f.write("nameserver 192.0.2.53\n")
        merged = {**CONFIG, **(VERSION_1 if version_1() else {}), "containerRuntimeEndpoint": "unix://" + node.socket, "resolvConf": resolv,
                  "staticPodPath": self.manifests, "podLogsDir": self.logs, "volumePluginDir": os.path.join(self.dir, "plugins"), **(config or {})}
        self.configure(**merged)
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process:
            self.stop(signal.SIGKILL)

    def configure(self, **fields):
        """Fields over those that it has; for its next start."""
        before = {}
        if os.path.exists(self.config):
            with open(self.config, encoding="ascii") as f:
                before = json.load(f)
        with open(self.config, "w", encoding="ascii") as f:
            json.dump({**before, **fields}, f)

    def start(self):
        words = [os.path.join(self.programs, "kubelet"), "--config", self.config, "--root-dir", self.root, "--cert-dir", self.dir + "/pki",
                 "--hostname-override", NAME, "--node-ip", "192.0.2.1", "-v", "2", *self.flags]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self.healthy, "the kubelet is healthy")

    def healthy(self):
        if self.process.poll() is not None:
            raise Failed(f"the kubelet ended with status {self.process.returncode}:\n{self.said()[-4000:]}")
        try:
            return self.get("healthz") == b"ok"
        except (OSError, Failed):
            return False

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait()
        self.process = None

    def said(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    # -- its API --

    @staticmethod
    def url(path, **query):
        return f"https://127.0.0.1:{PORT}/{path}" + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")

    def get(self, path, **query):
        status, body = fetch(self.url(path, **query))
        if status != 200:
            raise Failed(f"GET {path}: {status} {body[:500]!r}")
        return body

    def pods(self):
        """{name: pod}, as the kubelet sees them; static pods without the node's name behind theirs."""
        return {p["metadata"]["name"].removesuffix("-" + NAME): p for p in json.loads(self.get("pods"))["items"] or ()}

    def run(self, pod, container, *command):
        """What the command said, by ExecSync."""
        status, body = fetch(self.url(f"run/{where(pod)}/{container}", cmd=" ".join(command)), "POST")
        return status, body.decode()

    def client(self, transport, what, pod, *words, container=None, status=0, data=None, **query):
        """client-go with the kubelet's own URL of a stream."""
        path = f"{what}/{where(pod)}" + (f"/{container}" if container else "")
        done = subprocess.run([os.path.join(self.programs, "client_go"), "exec", transport, self.url(path, **query), *words], input=data or b"",
                              capture_output=True, check=False, timeout=PATIENCE)
        expect(done.returncode, status, f"exit status of {what} by {transport}, which said {done.stderr!r}")
        return done

    # -- static pods --

    def put(self, name, spec, **metadata):
        """A manifest, in one step: a kubelet does not read hidden files."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", **metadata}, "spec": spec}
        hidden = os.path.join(self.manifests, f".{name}")
        with open(hidden, "w", encoding="ascii") as f:
            json.dump(pod, f)
        os.rename(hidden, os.path.join(self.manifests, name + ".json"))

    def withdraw(self, name):
        os.unlink(os.path.join(self.manifests, name + ".json"))


def where(pod):
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def statuses(pod, kind="containerStatuses"):
    return {s["name"]: s for s in pod.get("status", {}).get(kind) or ()}


class Pod:
    """One pod, looked at by `look`, which returns what the kubelet or the API server knows of it, or None."""

    def __init__(self, name, look):
        self.name, self.look = name, look

    def seen(self):
        return self.look(self.name) or {}

    def until(self, condition, what, seconds=PATIENCE):
        """The pod once condition(pod) holds."""
        def look():
            pod = self.seen()
            return pod if pod and condition(pod) else None
        try:
            return until(look, f"pod {self.name}: {what}", seconds)
        except Failed as e:
            raise Failed(f"{e}; its status: {json.dumps(self.seen().get('status'))[:3000]}") from None

    def status(self, container="main", kind="containerStatuses"):
        return statuses(self.seen(), kind).get(container, {})

    def running(self):
        return self.until(lambda p: statuses(p) and all("running" in s["state"] for s in statuses(p).values()), "all containers run")

    def ready(self, want=True):
        return self.until(lambda p: statuses(p) and all(s["ready"] for s in statuses(p).values()) == want, f"ready: {want}")

    def restarted(self, count=1, container="main"):
        return self.until(lambda p: statuses(p).get(container, {}).get("restartCount", 0) >= count, f"{container} restarted {count} times")

    def phase(self, want):
        return self.until(lambda p: p["status"].get("phase") == want, f"phase {want}")

    def gone(self):
        until(lambda: not self.seen(), f"pod {self.name} is gone")


def encoded(text):
    return base64.b64encode(text.encode()).decode()
