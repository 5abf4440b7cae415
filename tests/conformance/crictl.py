# SPDX-License-Identifier: Apache-2.0
"""crictl, Kubernetes' own client of the CRI, against a node: a pod from its beginning to its end. The pod is on the node's network."""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

import images

ON_THE_NODE = {"security_context": {"namespace_options": {"network": 2}}}
SERVER = "mkdir /w; echo page > /w/index.html; httpd -p 127.0.0.1:{port} -h /w; while read x; do echo got $x; done"


class Failed(Exception):
    pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Crictl:
    def __init__(self, program, node):
        self.command = [program, "--config", os.devnull, "-r", "unix://" + node.socket, "-i", "unix://" + node.socket]
        self.dir = tempfile.mkdtemp(prefix="nacre-crictl-")
        self.port = free_port()
        pod = {"metadata": {"name": "pod", "namespace": "tests", "uid": "1"}, "log_directory": self.dir, "linux": ON_THE_NODE}
        one = {"metadata": {"name": "one"}, "image": {"image": "busybox"}, "command": ["sh", "-c", SERVER.format(port=self.port)],
               "stdin": True, "stdin_once": True, "log_path": "one.log", "linux": ON_THE_NODE}
        self.pod, self.one = self.file("pod", pod), self.file("one", one)

    def file(self, name, content):
        path = os.path.join(self.dir, name + ".json")
        with open(path, "w", encoding="ascii") as f:
            json.dump(content, f)
        return path

    def run(self, *words, status=0, **more):
        done = subprocess.run([*self.command, *words], capture_output=True, text=True, check=False, timeout=100, **more)
        if done.returncode != status:
            raise Failed(f"crictl {' '.join(words)}: exit status {done.returncode}, not {status}\n{done.stdout}{done.stderr}")
        return done.stdout

    def expect(self, want, *words, **more):
        have = self.run(*words, **more)
        if want not in have:
            raise Failed(f"crictl {' '.join(words)}: {want!r} is not in {have!r}")


def forwards(c, pod, transport):
    mine = free_port()
    with subprocess.Popen([*c.command, "port-forward", "--transport", transport, pod, f"{mine}:{c.port}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as p:
        try:
            for tries in range(100):
                try:
                    page = urllib.request.urlopen(f"http://127.0.0.1:{mine}/index.html", timeout=10).read()
                    break
                except OSError:
                    if tries == 99:
                        raise
                    time.sleep(0.1)
            if page != b"page\n":
                raise Failed(f"crictl port-forward by {transport}: {page!r}")
        finally:
            p.terminate()


def life(c):
    """Yields the name of each step that is done."""
    c.expect("nacre", "version")
    c.expect("RuntimeReady", "info")
    c.expect("busybox", "images")
    yield "version, info, images"
    pod = c.run("runp", c.pod).strip()
    one = c.run("create", pod, c.one, c.pod).strip()
    c.run("start", one)
    yield "runp, create, start"
    for words in (("pods",), ("ps",), ("inspect", one), ("inspectp", pod), ("stats",), ("statsp",)):
        c.expect(one[:13] if words[0] in ("ps", "inspect", "stats") else pod[:13], *words)
    yield "pods, ps, inspect, inspectp, stats, statsp"
    c.expect("hello", "exec", "-s", one, "echo", "hello")
    for transport in ("spdy", "websocket"):
        c.expect("hello", "exec", "--transport", transport, one, "echo", "hello")
        c.expect("typed", "exec", "--transport", transport, "-i", one, "cat", input="typed\n")
        c.run("exec", "--transport", transport, one, "sh", "-c", "exit 3", status=1)
    yield "exec"
    for transport in ("spdy", "websocket"):
        forwards(c, pod, transport)
    yield "port-forward"
    c.expect("got a\ngot b\n", "attach", "--transport", "websocket", "-i", one, input="a\nb\n")
    c.expect("got b\n", "logs", one)
    yield "attach, logs"
    c.run("stop", one)
    c.expect("Exited", "ps", "-a")
    c.run("rm", one)
    c.run("stopp", pod)
    c.expect("NotReady", "pods")
    c.run("rmp", pod)
    yield "stop, rm, stopp, rmp"


STEPS = 7


def run(program, node):
    """How many steps did not pass."""
    images.ensure(node, "busybox")
    c, passed = Crictl(program, node), 0
    try:
        for _ in life(c):
            passed += 1
    except (Failed, OSError, subprocess.TimeoutExpired) as e:
        print(f"FAIL crictl: {e}", flush=True)
    finally:
        shutil.rmtree(c.dir)
    return STEPS - passed
