# SPDX-License-Identifier: Apache-2.0
"""client-go, the library that kubectl is made of, against the streaming server: both of its transports. The pod is on the node's network."""
import hashlib
import os
import socket
import subprocess
import threading

import crictl
import images

MODULE = "k8s.io/client-go@v0.34.1"
PROGRAM = "client-go"
TRANSPORTS = ("spdy", "websocket")
INPUT, FORWARDED = 16 << 20, 8 << 20


class Failed(Exception):
    pass


def expect(have, want, what):
    if have != want:
        raise Failed(f"{what}: {have!r}, not {want!r}")


class Client:
    def __init__(self, program, api, cri, pod, container):
        self.program, self.api, self.cri, self.pod, self.container = program, api, cri, pod, container

    def exec_url(self, *command, **want):
        return self.api.Exec(self.cri.ExecRequest(container_id=self.container, cmd=command, **{"stdout": True, "stderr": True, **want})).url

    def run(self, transport, url, *words, status=0, **more):
        done = subprocess.run([self.program, "exec", transport, url, *words], capture_output=True, check=False, timeout=100, **more)
        expect(done.returncode, status, f"exit status of exec by {transport}, which said {done.stderr!r}")
        return done

    def exec(self, transport):
        done = self.run(transport, self.exec_url("sh", "-c", "echo hello; echo oops >&2"))
        expect((done.stdout, done.stderr), (b"hello\n", b"oops\n"), f"exec by {transport}")
        self.run(transport, self.exec_url("sh", "-c", "exit 3"), status=3)

    def input(self, transport):
        data = os.urandom(INPUT)
        done = self.run(transport, self.exec_url("cat", stdin=True), "stdin", input=data)
        expect((len(done.stdout), hashlib.sha256(done.stdout).digest()), (len(data), hashlib.sha256(data).digest()), f"cat by {transport}")
        # What follows the end of the input is still heard.
        done = self.run(transport, self.exec_url("sh", "-c", "wc -c; echo over", stdin=True), "stdin", input=data)
        expect(done.stdout, b"%d\nover\n" % len(data), f"the end of the input by {transport}")

    def terminal(self, transport):
        url = self.exec_url("sh", "-c", "tty -s || exit 9; until stty size | grep '34 102'; do usleep 10000; done; read x; echo got $x; exit 3",
                            stdin=True, stderr=False, tty=True)
        done = self.run(transport, url, "stdin", "tty", status=3, input=b"typed\n")
        lines = done.stdout.replace(b"\r", b"").splitlines()
        expect(lines[-1], b"got typed", f"a terminal by {transport}: {lines}")

    def attach(self, transport):
        url = self.api.Attach(self.cri.AttachRequest(container_id=self.container, stdin=True, stdout=True, stderr=True)).url
        with subprocess.Popen([self.program, "exec", transport, url, "stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            try:
                p.stdin.write(b"one\n")
                p.stdin.flush()
                expect(p.stdout.readline(), b"got one\n", f"attach by {transport}")
            finally:
                p.kill()

    def forward(self, transport, port):
        url = self.api.PortForward(self.cri.PortForwardRequest(pod_sandbox_id=self.pod, port=[port])).url
        mine, data = crictl.free_port(), os.urandom(FORWARDED)
        with subprocess.Popen([self.program, "forward", transport, url, f"{mine}:{port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            try:
                expect(p.stdout.readline(), b"ready\n", f"port-forward by {transport}")
                for _ in range(2):
                    expect(hashlib.sha256(echoed(mine, data)).digest(), hashlib.sha256(data).digest(), f"what came back by {transport}")
                p.stdin.close()
                expect(p.wait(timeout=20), 0, f"exit status of port-forward by {transport}")
            finally:
                p.kill()


def serve_echo():
    """A port of the node, and so of the pod, where what comes goes back."""
    server = socket.create_server(("127.0.0.1", 0))

    def echo(connection):
        with connection:
            for data in iter(lambda: connection.recv(1 << 16), b""):
                connection.sendall(data)

    def serve():
        while True:
            threading.Thread(target=echo, args=(server.accept()[0],), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]


def echoed(port, data):
    with socket.create_connection(("127.0.0.1", port), 60) as s:
        def send():
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
        writer = threading.Thread(target=send)
        writer.start()
        got = b"".join(iter(lambda: s.recv(1 << 20), b""))
        writer.join()
    return got


def make(node, api, cri):
    """(sandbox, container), of which the container answers lines of its input."""
    images.ensure(node, "busybox")
    network = cri.NamespaceOption(network=cri.NODE)
    pod = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="client-go", namespace="tests", uid="2"), linux=cri.LinuxPodSandboxConfig(
        security_context=cri.LinuxSandboxSecurityContext(namespace_options=network)))
    sandbox = api.RunPodSandbox(cri.RunPodSandboxRequest(config=pod)).pod_sandbox_id
    one = cri.ContainerConfig(metadata=cri.ContainerMetadata(name="one"), image=cri.ImageSpec(image="busybox"), stdin=True,
                              command=["sh", "-c", "while read x; do echo got $x; done"],
                              linux=cri.LinuxContainerConfig(security_context=cri.LinuxContainerSecurityContext(namespace_options=network)))
    container = api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=one, sandbox_config=pod)).container_id
    api.StartContainer(cri.StartContainerRequest(container_id=container))
    return sandbox, container


STEPS = 5 * len(TRANSPORTS)


def run(program, node, pb):
    """How many steps did not pass."""
    cri = pb["cri_pb2"]
    api, port = pb["cri_pb2_grpc"].RuntimeServiceStub(node.channel), serve_echo()
    sandbox, container = make(node, api, cri)
    client, failed = Client(program, api, cri, sandbox, container), 0
    for transport in TRANSPORTS:
        for step, words in ((client.exec, ()), (client.input, ()), (client.terminal, ()), (client.attach, ()), (client.forward, (port,))):
            try:
                step(transport, *words)
            except (Failed, OSError, subprocess.TimeoutExpired) as e:
                failed += 1
                print(f"FAIL client-go: {step.__name__}: {e}", flush=True)
    api.RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox))
    return failed
