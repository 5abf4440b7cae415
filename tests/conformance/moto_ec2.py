# SPDX-License-Identifier: Apache-2.0
"""moto, other people's EC2 (PyPI), as a second opinion of nacre-cloud: the forms of its calls, the XML of answers that are not
tests/lib/fake_ec2.py's, and with keys that moto checks, its signatures.

What moto is not good for: it honours no tokens, and shows what was made at once (tests/cloud has those).
"""
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import grpc

MOTO = "moto[ec2,iam,server]==5.2.1"
STEPS = 5
INSTALL_SECONDS = 600
REGION = "eu-central-1"
POLICY = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:*","Resource":"*"}]}'


def install(folder):
    """The path of moto_server, and why there is none."""
    program = os.path.join(folder, "bin", "moto_server")
    if not os.path.exists(program) and shutil.which("moto_server"):
        program = shutil.which("moto_server")
    if os.path.exists(program):
        return program, ""
    python = shutil.which("python3")
    print(f"pip install {MOTO}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    for words in ([python, "-m", "venv", folder], [os.path.join(folder, "bin", "pip"), "install", "--quiet", MOTO]):
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
            why = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1]
        except subprocess.TimeoutExpired:
            why = f"pip has not ended within {INSTALL_SECONDS} s"
        if why:
            shutil.rmtree(folder, ignore_errors=True)
            return None, why
    return program, ""


class Moto:
    """A server with one user, whose key it checks. A context manager."""

    def __init__(self, program):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        # So many calls are not checked: those that make the user.
        self.process = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(self.port)], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "3"})

    def iam(self, **form):
        request = urllib.request.Request(self.url, urllib.parse.urlencode({"Version": "2010-05-08", **form}).encode(), headers={
            "Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=x"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    def __enter__(self):
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.1)
        self.iam(Action="CreateUser", UserName="node")
        self.iam(Action="PutUserPolicy", UserName="node", PolicyName="p", PolicyDocument=POLICY)
        text = self.iam(Action="CreateAccessKey", UserName="node")
        self.key, self.secret = (re.search(f"<{n}>([^<]+)</{n}>", text).group(1) for n in ("AccessKeyId", "SecretAccessKey"))
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def config(self):
        return (f"cloud:\n  poll: 200ms\n  settle: 1s\n  ec2:\n    region: {REGION}\n    endpoint: {self.url}\n"
                f'    types: [ "t3.micro=2:1GiB:0.01" ]\n')

    def env(self, secret=None):
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": secret or self.secret, "AWS_SESSION_TOKEN": "",
                "AWS_PROFILE": ""}


def run(folder):
    """(passed, failed, skipped)"""
    import nacre_test

    pb2 = nacre_test.nacre_pb2
    program, why = install(folder)
    if not program:
        print(f"make conformance: moto cannot be installed, and is skipped: {why}", flush=True)
        return 0, 0, STEPS
    passed = 0

    def step(good, what):
        nonlocal passed
        passed += bool(good)
        if not good:
            print(f"FAIL moto: {what}", flush=True)

    with Moto(program) as moto:
        with nacre_test.Node(config=moto.config(), env=moto.env()) as node:
            stub = nacre_test.pb["nacre_pb2_grpc"].CloudServiceStub(node.channel)
            show = lambda: list(stub.ListCloudVms(pb2.ListCloudVmsRequest()).vms)  # noqa: E731
            made = stub.RunCloudVm(pb2.RunCloudVmRequest(name="vm", image="ami-12c6146b"), timeout=300).vm
            step(re.fullmatch("i-[0-9a-f]{17}", made.instance), f"RunInstances: {made}")
            nacre_test.until(lambda: show()[0].state == "running", seconds=300, what="running")
            step(show()[0].address and show()[0].zone.startswith(REGION), f"DescribeInstances: {show()}")
            console = stub.CloudVmConsole(pb2.CloudVmConsoleRequest(target="vm"), timeout=300)
            step(b"Linux version" in console.output, f"GetConsoleOutput: {console}")
            stub.RemoveCloudVm(pb2.RemoveCloudVmRequest(target="vm", force=True), timeout=300)
            step(not show() and not stub.CollectCloudVms(pb2.CollectCloudVmsRequest(dry_run=True)).vms, f"TerminateInstances: {show()}")
        # What is signed by another secret is found out, so what was taken was signed well.
        with nacre_test.Node(config=moto.config(), env=moto.env("wrong")) as node:
            stub = nacre_test.pb["nacre_pb2_grpc"].CloudServiceStub(node.channel)
            try:
                stub.RunCloudVm(pb2.RunCloudVmRequest(image="ami-12c6146b"), timeout=300)
                step(False, "a wrong secret is taken")
            except grpc.RpcError as e:
                step("AuthFailure" in e.details() or "Signature" in e.details(), f"a wrong secret: {e.details()}")
    return passed, STEPS - passed, 0
