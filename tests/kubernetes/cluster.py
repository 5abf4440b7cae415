# SPDX-License-Identifier: Apache-2.0
"""Debian's etcd and a kube-apiserver, and the kubelet's way to them. No controllers and no scheduler: pods name their node."""
import json
import os
import shutil
import subprocess

from kubelet import Failed, fetch, until

PORT, ETCD = 6443, 2379
TOKEN = "a-token-of-these-tests"
SERVER = f"https://127.0.0.1:{PORT}"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


def missing():
    """The programs that are not on this host."""
    return [p for p in ("etcd", "openssl") if not shutil.which(p)]


class Cluster:
    """A context manager."""

    def __init__(self, programs, folder):
        self.programs, self.dir, self.processes = programs, folder, []
        os.makedirs(folder)

    def path(self, name, text=None):
        path = os.path.join(self.dir, name)
        if text is not None:
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
        return path

    def launch(self, name, *words):
        with open(self.path(name + ".log"), "ab") as log:
            self.processes.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.dir))

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    def start(self):
        key = self.path("sa.key")
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        etcd = f"http://127.0.0.1:{ETCD}"
        self.launch("etcd", "etcd", "--data-dir", self.path("etcd"), "--listen-client-urls", etcd, "--advertise-client-urls", etcd)
        self.launch("kube-apiserver", os.path.join(self.programs, "kube-apiserver"), "--etcd-servers", etcd, "--cert-dir", self.path("pki"),
                    "--bind-address", "127.0.0.1", "--secure-port", str(PORT), "--advertise-address", "192.0.2.1", "--authorization-mode", "AlwaysAllow",
                    "--token-auth-file", self.path("tokens", f'{TOKEN},admin,1,"system:masters"\n'), "--service-cluster-ip-range", "10.96.0.0/24",
                    "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-signing-key-file", key,
                    "--service-account-key-file", key, "--allow-privileged=true", "--kubelet-preferred-address-types", "InternalIP")
        until(self.ready, "kube-apiserver is ready", 300)
        until(lambda: self.get("namespaces/default"), "the namespace default")
        # What controllers would make.
        self.make("namespaces/default/serviceaccounts", "ServiceAccount", "default")
        self.make("namespaces/default/configmaps", "ConfigMap", "kube-root-ca.crt", data={"ca.crt": "none\n"})

    def ready(self):
        for process in self.processes:
            if process.poll() is not None:
                with open(self.path(os.path.basename(process.args[0]) + ".log"), encoding="utf-8", errors="replace") as f:
                    raise Failed(f"{process.args[0]} ended with status {process.returncode}:\n{f.read()[-4000:]}")
        try:
            return fetch(SERVER + "/readyz", token=TOKEN)[0] == 200
        except OSError:
            return False

    def kubeconfig(self):
        return self.path("kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": SERVER, "insecure-skip-tls-verify": True}}], "users": [{"name": "u", "user": {"token": TOKEN}}]}))

    # -- the API --

    @staticmethod
    def url(path, api="api/v1"):
        return f"{SERVER}/{api}/{path}"

    def call(self, method, path, body=None, api="api/v1", **more):
        """What it answered; None: not found."""
        status, answer = fetch(self.url(path, api), method, body, TOKEN, **more)
        if status == 404:
            return None
        if status >= 300:
            raise Failed(f"{method} {path}: {status} {answer[:2000].decode()}")
        return answer

    def get(self, path, **more):
        answer = self.call("GET", path, **more)
        return answer and json.loads(answer)

    def make(self, path, kind, name, api="api/v1", **fields):
        body = {"apiVersion": api.removeprefix("apis/").removeprefix("api/"), "kind": kind, "metadata": {"name": name, **fields.pop("metadata", {})}, **fields}
        return json.loads(self.call("POST", path, body, api=api))

    def patch(self, path, body, kind=STRATEGIC, **more):
        return json.loads(self.call("PATCH", path, body, kind=kind, **more))
