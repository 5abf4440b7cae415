# SPDX-License-Identifier: Apache-2.0
"""Commands in containers and containers' own programs over the streaming server, spoken to as kubectl and crictl do."""
import json
import os
import resource
import socket
import time
import unittest

import grpc

import cri_streams
import host
import nacre_test
import spdy
from nacre_test import until

cri = nacre_test.pb["cri_pb2"]
Code = grpc.StatusCode


class Streams(cri_streams.StreamsTest):
    def exec(self, container, *command, protocols=("v4.channel.k8s.io",), **want):
        want = {"stdout": True, "stderr": True, **want}
        url = self.api.Exec(cri.ExecRequest(container_id=container, cmd=command, **want)).url
        return spdy.Command(url, protocols=protocols, **want)

    def attach(self, container, **want):
        want = {"stdout": True, "stderr": True, **want}
        return spdy.Command(self.api.Attach(cri.AttachRequest(container_id=container, **want)).url, **want)

    # ---- exec ----

    def test_a_command(self):
        one = self.make(self.api, "a")
        out, err, told = self.exec(one, "sh", "-c", "echo hello; echo oops >&2").finish()
        self.assertEqual((b"hello\n", b"oops\n", {"status": "Success"}), (out, err, json.loads(told)))
        status = json.loads(self.exec(one, "sh", "-c", "exit 7").finish()[2])
        self.assertEqual(("Failure", "NonZeroExitCode", [{"reason": "ExitCode", "message": "7"}]),
                         (status["status"], status["reason"], status["details"]["causes"]))
        # What cannot be executed ended as a shell would say.
        self.assertEqual("127", json.loads(self.exec(one, "/not/there").finish()[2])["details"]["causes"][0]["message"])

    def test_input_and_its_end(self):
        one = self.make(self.api, "a")
        c = self.exec(one, "cat", stdin=True)
        big = os.urandom(3 << 20)
        for at in range(0, len(big), 1 << 16):
            c.write(big[at:at + (1 << 16)])
            c.sock.setblocking(True)
            if at % (1 << 18) == 0:
                c.until(lambda: len(c.text("stdout")) > at - (1 << 18))
        c.write(b"", fin=True)
        out, _, told = c.finish()
        self.assertEqual((big == out, "Success"), (True, json.loads(told)["status"]))

    def test_a_terminal(self):
        one = self.make(self.api, "a")
        c = self.exec(one, "sh", stdin=True, stderr=False, tty=True)
        c.send(c.streams["resize"], b'{"Width":101,"Height":33}{"Width":')
        c.send(c.streams["resize"], b'102,"Height":34}')
        until(lambda: self.asks(c, b"stty size\n", b"34 102"), what="the terminal has its size")
        c.write(b"exit 5\n")
        self.assertEqual("5", json.loads(c.finish()[2])["details"]["causes"][0]["message"])

    def asks(self, c, question, answer):
        before = len(c.text("stdout"))
        c.write(question)
        c.until(lambda: c.text("stdout")[before:].count(b"\n") >= 2)
        return answer in c.text("stdout")[before:]

    def test_older_protocols(self):
        one = self.make(self.api, "a")
        for protocol in ("v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"):
            c = self.exec(one, "sh", "-c", "echo x; exit 3", protocols=("v9.channel.k8s.io", protocol, "v4.channel.k8s.io"))
            self.assertIn(f"X-Stream-Protocol-Version: {protocol}", c.head)
            self.assertEqual((b"x\n", "command terminated with non-zero exit code: exit status 3"), c.finish()[::2])
            self.assertEqual("", self.exec(one, "true", protocols=(protocol,)).finish()[2])

    def test_a_client_that_goes_takes_its_command_along(self):
        one = self.make(self.api, "a")
        c = self.exec(one, "sleep", "4242")
        running = lambda: [p for p in host.cgroup_pids(self.node.cgroup()) if "4242" in host.read(f"/proc/{p}/cmdline")]
        until(running, what="it runs")
        c.close()
        until(lambda: not running(), what="it was killed")

    def test_a_client_that_does_not_read_holds_its_command_up(self):
        one = self.make(self.api, "a")
        daemon = self.node.process.pid
        before = int(host.read(f"/proc/{daemon}/statm").split()[1])
        c = self.exec(one, "sh", "-c", "exec yes")
        time.sleep(2)
        grown = (int(host.read(f"/proc/{daemon}/statm").split()[1]) - before) * 4096
        self.assertLess(grown, (64 if nacre_test.SANITIZED else 16) << 20)
        self.assertTrue(c.until(lambda: len(c.text("stdout")) > 1 << 20))
        c.close()

    # ---- attach ----

    def test_a_program_of_a_container(self):
        one = self.make(self.api, "a", "sh", "-c", "while read x; do echo got $x; done; echo over", stdin=True, stdin_once=True)
        c = self.attach(one, stdin=True)
        c.write(b"one\n")
        self.assertTrue(c.until(lambda: b"got one\n" in c.text("stdout")))
        c.write(b"two\n", fin=True)
        out, _, told = c.finish()
        self.assertEqual((b"got one\ngot two\nover\n", "Success"), (out, json.loads(told)["status"]))

    def test_who_looks_on_does_not_end_the_program(self):
        one = self.make(self.api, "a", "sh", "-c", "while read x; do echo got $x; done", stdin=True)
        for n in (b"1", b"2"):
            c = self.attach(one, stdin=True)
            c.write(n + b"\n")
            self.assertTrue(c.until(lambda n=n, c=c: b"got " + n in c.text("stdout")))
            c.write(b"", fin=True)
            c.close()
        self.assertEqual(cri.CONTAINER_RUNNING, self.api.ContainerStatus(cri.ContainerStatusRequest(container_id=one)).status.state)

    # ---- ports ----

    def test_ports_of_a_pod(self):
        one = self.make(self.api, "a", "sh", "-c", self.SERVER)
        self.until_listening(one)
        c = spdy.Connection(self.forward_url(one), protocols=("portforward.k8s.io",))
        big = os.urandom(1 << 20)
        for n in range(3):
            data, error = self.pair(c, 80, n)
            c.send(data, b"hello\n")
            self.assertTrue(c.until(lambda d=data: b"got hello\n" in c.received.get(d, b"")))
            for at in range(0, len(big), 1 << 16):
                c.send(data, big[at:at + (1 << 16)])
                c.until(lambda d=data, at=at: len(c.received[d]) > at - (1 << 17))
            c.send(data, b"", fin=True)
            self.assertTrue(c.until(lambda d=data, e=error: {d, e} <= c.ended))
            self.assertEqual((True, b""), (c.received[data] == b"got hello\n" + big, c.received.get(error, b"")))
            self.until_listening(one)
        # A port where nobody listens is told so, and the others go on.
        data, error = self.pair(c, 81, "x")
        self.assertTrue(c.until(lambda: {data, error} <= c.ended))
        self.assertIn(b"the port 81 of the pod: Connection refused", c.received[error])
        data, error = self.pair(c, 80, "y")
        c.send(data, b"again\n")
        self.assertTrue(c.until(lambda: b"got again\n" in c.received.get(data, b"")))
        c.close()

    def test_ports_that_are_none(self):
        one = self.make(self.api, "a")
        c = spdy.Connection(self.forward_url(one), protocols=("portforward.k8s.io",))
        for port, kind in (("0", "data"), ("65536", "data"), ("x", "error"), ("80", "stdin")):
            number = c.open(streamType=kind, port=port, requestID="1")
            while True:
                kind_of, stream, _ = c.frame()
                if (kind_of, stream) == (3, number):
                    break
        c.close()
        pod = self.api.ListContainers(cri.ListContainersRequest()).containers[0].pod_sandbox_id
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.api.PortForward(cri.PortForwardRequest(pod_sandbox_id=pod, port=[0])))
        self.assertFails(Code.NOT_FOUND, lambda: self.api.PortForward(cri.PortForwardRequest(pod_sandbox_id="0123456789abcdef")))
        self.api.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=pod))
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.api.PortForward(cri.PortForwardRequest(pod_sandbox_id=pod)))

    # ---- what is refused ----

    def test_what_is_no_wish(self):
        one = self.make(self.api, "a")
        for call, kind in ((self.api.Exec, cri.ExecRequest), (self.api.Attach, cri.AttachRequest)):
            more = {"cmd": ["true"]} if kind is cri.ExecRequest else {}
            for field, want in (("stderr", {"tty": True, "stderr": True, "stdout": True}), ("stdin", {})):
                said = self.assertFails(Code.INVALID_ARGUMENT, lambda c=call, k=kind, w=want, m=more: c(k(container_id=one, **m, **w)))
                self.assertTrue(said.startswith(field + ": "), said)
            self.assertFails(Code.NOT_FOUND, lambda c=call, k=kind, m=more: c(k(container_id="0123456789abcdef", stdout=True, **m)))
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.api.Exec(cri.ExecRequest(container_id=one, stdout=True)))
        self.assertFails(Code.INVALID_ARGUMENT, lambda: self.api.Attach(cri.AttachRequest(container_id=one, stdout=True, tty=True)))
        self.api.StopContainer(cri.StopContainerRequest(container_id=one, timeout=0))
        self.assertFails(Code.FAILED_PRECONDITION, lambda: self.api.Exec(cri.ExecRequest(container_id=one, cmd=["true"], stdout=True)))

    def test_a_url_is_good_once(self):
        one = self.make(self.api, "a")
        url = self.api.Exec(cri.ExecRequest(container_id=one, cmd=["true"], stdout=True)).url
        for wrong in (url[:-1] + ("0" if url[-1] != "0" else "1"), url.replace("/exec/", "/attach/"), url.rpartition("/")[0] + "/"):
            self.assertRefused(404, wrong)
        self.assertRefused(403, url, protocols=("v9.channel.k8s.io",))
        self.assertRefused(404, url)
        url = self.api.Exec(cri.ExecRequest(container_id=one, cmd=["true"], stdout=True)).url
        self.assertRefused(400, url, upgrade="h2c")
        self.assertEqual("Success", json.loads(spdy.Command(url, stderr=False).finish()[2])["status"])

    def assertRefused(self, status, url, **more):
        with self.assertRaises(spdy.Refused) as caught:
            spdy.Connection(url, **more)
        self.assertEqual(status, caught.exception.args[0], caught.exception.args)

    # ---- limits ----

    @staticmethod
    def is_open(s):
        s.setblocking(False)
        try:
            return s.recv(1) != b""
        except BlockingIOError:
            return True
        except ConnectionError:
            return False

    def test_who_shows_no_token(self):
        one = self.make(self.api, "a")
        url = self.api.Exec(cri.ExecRequest(container_id=one, cmd=["true"], stdout=True)).url
        port = int(url.split(":")[2].split("/")[0])
        strangers = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(200)]
        for s in strangers:
            self.addCleanup(s.close)
        began = time.monotonic()
        until(lambda: not any(self.is_open(s) for s in strangers[:136]), what="the oldest are closed")
        self.assertEqual("Success", json.loads(spdy.Command(url, stderr=False).finish()[2])["status"])
        self.assertLess(time.monotonic() - began, 4)
        # The client of the URL has taken the place of one more.
        self.assertEqual([False] * 137 + [True] * 63, [self.is_open(s) for s in strangers])
        # A word now and then does not help.
        while any(self.is_open(s) for s in strangers) and time.monotonic() - began < 20:
            for s in strangers[137:]:
                try:
                    s.send(b"G")
                except OSError:
                    pass
            time.sleep(0.5)
        self.assertTrue(4 < time.monotonic() - began < 15, time.monotonic() - began)

    @staticmethod
    def connect_as(user, port):
        os.seteuid(user)
        try:
            s = socket.socket()
        finally:
            os.seteuid(0)
        s.connect(("127.0.0.1", port))
        return s

    def test_other_users_do_not_close_ours(self):
        one = self.make(self.api, "a")
        url = self.api.Exec(cri.ExecRequest(container_id=one, cmd=["true"], stdout=True)).url
        port = int(url.split(":")[2].split("/")[0])
        ours = [self.connect_as(0, port) for _ in range(10)]
        theirs = [self.connect_as(54321, port) for _ in range(200)]
        for s in ours + theirs:
            self.addCleanup(s.close)
        until(lambda: not any(self.is_open(s) for s in theirs[:146]), what="the oldest are closed")
        self.assertEqual(([True] * 10, [True] * 54), ([self.is_open(s) for s in ours], [self.is_open(s) for s in theirs[146:]]))
        # Nobody of them gets in once all places are ours.
        more = [self.connect_as(0, port) for _ in range(54)]
        for s in more:
            self.addCleanup(s.close)
        until(lambda: not any(self.is_open(s) for s in theirs), what="theirs are closed")
        late = self.connect_as(54321, port)
        self.addCleanup(late.close)
        until(lambda: not self.is_open(late), what="the late one is closed")
        self.assertEqual([True] * 64, [self.is_open(s) for s in ours + more])
        self.assertEqual("Success", json.loads(spdy.Command(url, stderr=False).finish()[2])["status"])

    def test_all_connections_in_use(self):
        one = self.make(self.api, "a")
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, max(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
        inside = [spdy.Connection(self.forward_url(one), protocols=("portforward.k8s.io",)) for _ in range(1024)]
        for c in inside:
            self.addCleanup(c.close)
        url = self.api.Exec(cri.ExecRequest(container_id=one, cmd=["true"], stdout=True)).url
        self.assertRefused(503, url)
        inside[0].close()

        def answered():
            try:
                return json.loads(spdy.Command(url, stderr=False).finish()[2])["status"]
            except spdy.Refused:
                return None
        self.assertEqual("Success", until(answered, what="there is room again"))

    def test_bytes_of_strangers(self):
        one = self.make(self.api, "a")
        url = self.api.Exec(cri.ExecRequest(container_id=one, cmd=["cat"], stdin=True, stdout=True)).url
        port = int(url.split(":")[2].split("/")[0])
        for data in (b"\0" * 100, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000, b"GET /\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port), 10) as s:
                try:
                    s.sendall(data)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(4096):
                        pass
                except ConnectionError:
                    pass
        for data in (b"\xff" * 64, b"\x80\x03\x00\x01\x00\xff\xff\xff", b"\x80\x03\x00\x01\x00\x00\x00\x0e" + b"\0\0\0\1" + b"\0" * 6 + b"junk",
                     b"\x80\x02\x00\x01\x00\x00\x00\x00"):
            url = self.api.Exec(cri.ExecRequest(container_id=one, cmd=["cat"], stdin=True, stdout=True)).url
            c = spdy.Connection(url)
            c.sock.sendall(data)
            self.assertIsNone(c.frame())
            c.close()
        self.assertEqual(b"fine\n", self.exec(one, "echo", "fine").finish()[0])


if __name__ == "__main__":
    unittest.main()
