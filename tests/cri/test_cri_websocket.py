# SPDX-License-Identifier: Apache-2.0
"""The streaming server over WebSocket: remote commands in channels, ports in channels and in a tunnel, and frames of strangers."""
import hashlib
import json
import os
import struct
import threading
import time
import unittest

import cri_streams
import host
import nacre_test
import spdy
import websocket
from nacre_test import until

cri = nacre_test.pb["cri_pb2"]


class WebSocket(cri_streams.StreamsTest):
    def exec_url(self, container, *command, **want):
        return self.api.Exec(cri.ExecRequest(container_id=container, cmd=command, **{"stdout": True, "stderr": True, **want})).url

    def exec(self, container, *command, protocol="v5.channel.k8s.io", fields=(), **want):
        return websocket.Channels(self.exec_url(container, *command, **want), protocol, fields=fields)

    # ---- remote commands ----

    def test_a_command(self):
        one = self.make(self.api, "a")
        for protocol in ("v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"):
            c = self.exec(one, "sh", "-c", "echo hello; echo oops >&2; exit 7", protocol=protocol)
            self.assertTrue(c.hear())
            self.assertEqual({1: [b""]}, c.received)  # the connection is established
            out, err, told = c.finish()
            status = json.loads(told)
            self.assertEqual((b"hello\n", b"oops\n", "NonZeroExitCode", [{"reason": "ExitCode", "message": "7"}]),
                             (out, err, status["reason"], status["details"]["causes"]))
            self.assertEqual({"status": "Success"}, json.loads(self.exec(one, "true", protocol=protocol).finish()[2]))
        for protocol in ("channel.k8s.io", "base64.channel.k8s.io", None):
            told = self.exec(one, "sh", "-c", "exit 3", protocol=protocol).finish()[2]
            self.assertEqual("command terminated with non-zero exit code: exit status 3", told)
            self.assertEqual("", self.exec(one, "true", protocol=protocol).finish()[2])

    def test_the_first_message(self):
        one = self.make(self.api, "a")
        for channel, want in ((1, {}), (2, {"stdout": False}), (3, {"stdout": False, "stderr": False, "stdin": True})):
            c = self.exec(one, "sleep", "1000", **want)
            self.assertTrue(c.hear())
            self.assertEqual({channel: [b""]}, c.received)
            c.close()

    def test_input_and_its_end(self):
        one = self.make(self.api, "a")
        big = os.urandom(3 << 20)
        for protocol in ("v5.channel.k8s.io", "v4.base64.channel.k8s.io"):
            c = self.exec(one, "head", "-c", str(len(big)), protocol=protocol, stdin=True)
            for at in range(0, len(big), 1 << 16):
                c.say(0, big[at:at + (1 << 16)])
                c.until(lambda c=c, at=at: len(c.heard(1)) > at - (1 << 18))
            out, _, told = c.finish()
            self.assertEqual((True, "Success"), (out == big, json.loads(told)["status"]))
        # Only version 5 can end the input and still hear what comes of it.
        c = self.exec(one, "sh", "-c", "wc -c; echo over", stdin=True)
        c.say(0, b"12345")
        c.say(0, b"")
        c.end(1)
        c.end()
        c.say(0, b"nobody reads that")
        out, _, told = c.finish()
        self.assertEqual((b"5\nover\n", "Success"), (out, json.loads(told)["status"]))

    def test_one_large_message(self):
        one = self.make(self.api, "a")
        big = os.urandom(8 << 20)
        c = self.exec(one, "sh", "-c", "sha256sum", stdin=True, stderr=False)
        writer = threading.Thread(target=lambda: (c.say(0, big), c.end()))
        writer.start()
        out = c.finish()[0]
        writer.join()
        self.assertEqual(hashlib.sha256(big).hexdigest(), out.split()[0].decode())

    def test_fragments_and_pings(self):
        one = self.make(self.api, "a")
        c = self.exec(one, "cat", stdin=True)
        c.send(b"", fin=False)
        c.send(b"are you there?", opcode=websocket.PING)
        for byte in b"\0hel":
            c.send(bytes([byte]), opcode=0, fin=False)
        c.send(b"lo\n", opcode=0)
        c.send(b"\0as text", opcode=websocket.TEXT)
        c.send(b"\x07channels that nobody has")
        c.send(b"")
        c.send(b"unasked", opcode=websocket.PONG)
        c.end()
        self.assertEqual(b"hello\nas text", c.finish()[0])
        self.assertEqual([b"are you there?"], c.pongs)

    def test_a_terminal(self):
        one = self.make(self.api, "a")
        c = self.exec(one, "sh", stdin=True, stderr=False, tty=True)
        c.say(4, b'{"Width":101,"Height":33}')
        c.say(4, b'{"Width":102,"Height":34}')

        def asks():
            before = len(c.heard(1))
            c.say(0, b"stty size\n")
            c.until(lambda: c.heard(1)[before:].count(b"\n") >= 2)
            return b"34 102" in c.heard(1)[before:]
        until(asks, what="the terminal has its size")
        c.say(0, b"exit 5\n")
        self.assertEqual("5", json.loads(c.finish()[2])["details"]["causes"][0]["message"])

    def test_a_client_that_goes_takes_its_command_along(self):
        one = self.make(self.api, "a")
        running = lambda: [p for p in host.cgroup_pids(self.node.cgroup()) if "4242" in host.read(f"/proc/{p}/cmdline")]
        for say_so in (True, False):
            c = self.exec(one, "sleep", "4242")
            until(running, what="it runs")
            if say_so:
                c.send(struct.pack(">H", 1001) + b"going away", opcode=websocket.CLOSE)
                while c.hear():
                    pass
                self.assertEqual((1001, ""), c.closed)
            c.close()
            until(lambda: not running(), what="it was killed")

    def test_a_client_that_does_not_read(self):
        """Neither output nor answers to it are kept without end."""
        one = self.make(self.api, "a")
        daemon = self.node.process.pid
        size = lambda: int(host.read(f"/proc/{daemon}/statm").split()[1]) * 4096
        before = size()
        c = self.exec(one, "sh", "-c", "exec yes")
        quiet = self.exec(one, "sleep", "1000", stdin=True)
        quiet.sock.settimeout(1)
        ping = quiet.frame(b"x" * 125, opcode=websocket.PING) * 1000
        with self.assertRaises(TimeoutError):
            for _ in range(400):  # 50 MiB
                quiet.sock.sendall(ping)
        time.sleep(1)
        self.assertLess(size() - before, (64 if nacre_test.SANITIZED else 16) << 20)
        self.assertTrue(c.until(lambda: len(c.heard(1)) > 1 << 20))
        # And it is answered when it reads at last.
        quiet.sock.settimeout(30)
        while len(quiet.pongs) < 10000:
            self.assertTrue(quiet.hear())
        c.close()
        quiet.close()

    def test_a_command_that_does_not_read(self):
        one = self.make(self.api, "a")
        before = int(host.read(f"/proc/{self.node.process.pid}/statm").split()[1])
        c = self.exec(one, "sh", "-c", "sleep 3; wc -c", stdin=True, stderr=False)
        c.sock.settimeout(1)
        data, sent = c.frame(b"\0" + b"x" * 65535), 0
        with self.assertRaises(TimeoutError):
            for _ in range(1000):  # 64 MiB
                sent += c.sock.send(data[sent % len(data):])
        grown = (int(host.read(f"/proc/{self.node.process.pid}/statm").split()[1]) - before) * 4096
        self.assertLess(grown, (64 if nacre_test.SANITIZED else 16) << 20)
        c.sock.settimeout(30)
        c.sock.sendall(data[sent % len(data):])
        sent += len(data) - sent % len(data)
        c.end()
        self.assertEqual(sent // len(data) * 65535, int(c.finish()[0]))

    def test_a_client_whose_input_is_held_up_hears_of_us(self):
        """Its pings stand behind its input; without a pong it would take the connection for dead."""
        one = self.make(self.api, "a")
        c = self.exec(one, "sleep", "1000", stdin=True)
        c.sock.settimeout(1)
        with self.assertRaises(TimeoutError):
            c.say(0, b"x" * (16 << 20))
        c.sock.settimeout(30)
        self.assertTrue(c.until(lambda: c.pongs))
        c.close()

    # ---- attach ----

    def test_a_program_of_a_container(self):
        one = self.make(self.api, "a", "sh", "-c", "while read x; do echo got $x; done; echo over", stdin=True, stdin_once=True)
        c = websocket.Channels(self.api.Attach(cri.AttachRequest(container_id=one, stdin=True, stdout=True, stderr=True)).url)
        c.say(0, b"one\n")
        self.assertTrue(c.until(lambda: b"got one\n" in c.heard(1)))
        c.say(0, b"two\n")
        c.end()
        out, _, told = c.finish()
        self.assertEqual((b"got one\ngot two\nover\n", "Success"), (out, json.loads(told)["status"]))

    # ---- ports ----

    def test_ports_in_a_tunnel(self):
        one = self.make(self.api, "a", "sh", "-c", self.SERVER)
        big = os.urandom(1 << 20)
        for piece in (None, 3):
            self.until_listening(one)
            c = spdy.Connection.over(websocket.Tunnel(self.forward_url(one), piece))
            data, error = self.pair(c, 80, 1)
            c.send(data, b"hello\n")
            self.assertTrue(c.until(lambda d=data: b"got hello\n" in c.received.get(d, b"")))
            c.sock.piece = piece and 1000
            for at in range(0, len(big), 1 << 16):
                c.send(data, big[at:at + (1 << 16)])
                c.until(lambda d=data, at=at: len(c.received[d]) > at - (1 << 17))
            c.send(data, b"", fin=True)
            self.assertTrue(c.until(lambda d=data, e=error: {d, e} <= c.ended))
            self.assertEqual((True, b""), (c.received[data] == b"got hello\n" + big, c.received.get(error, b"")))
            data, error = self.pair(c, 81, 2)
            self.assertTrue(c.until(lambda d=data, e=error: {d, e} <= c.ended))
            self.assertIn(b"the port 81 of the pod: Connection refused", c.received[error])
            c.sock.web.send(struct.pack(">H", 1000), opcode=websocket.CLOSE)
            self.assertFalse(c.until(lambda: False))
            self.assertEqual((1000, ""), c.sock.web.closed)
            c.close()

    def test_ports_in_channels(self):
        one = self.make(self.api, "a", "sh", "-c", self.SERVER)
        for protocol in ("v4.channel.k8s.io", "v4.base64.channel.k8s.io", None):
            self.until_listening(one)
            c = websocket.Channels(self.forward_url(one, 80, 8081), protocol)
            c.say(0, b"hello\n")
            self.assertTrue(c.until(lambda c=c: b"got hello\n" in c.heard(0) and len(c.heard(3)) > 2))
            self.assertEqual([struct.pack("<H", p) for p in (80, 80, 8081, 8081)], [c.received[n][0] for n in range(4)])
            self.assertIn(b"the port 8081 of the pod: Connection refused", c.heard(3))
            big = os.urandom(1 << 20)
            for at in range(0, len(big), 1 << 16):
                c.say(0, big[at:at + (1 << 16)])
                c.until(lambda c=c, at=at: len(c.heard(0)) > at - (1 << 17))
            self.assertTrue(c.until(lambda c=c: len(c.heard(0)) == len(big) + 12))
            self.assertEqual(big, c.heard(0)[12:])
            c.close()
        # When all have ended, so has the connection.
        c = websocket.Channels(self.forward_url(one, 8081), "v4.channel.k8s.io")
        while c.hear():
            pass
        self.assertEqual((struct.pack("<H", 8081), (1000, "")), (c.heard(0), c.closed))
        c.close()
        pod = self.api.ListContainers(cri.ListContainersRequest()).containers[0].pod_sandbox_id
        for ports in ([], [8081] * 33):
            url = self.api.PortForward(cri.PortForwardRequest(pod_sandbox_id=pod, port=ports)).url
            self.assertRefused(400, url, "v4.channel.k8s.io")

    # ---- what is refused ----

    def assertRefused(self, status, url, protocol="v5.channel.k8s.io", **fields):
        with self.assertRaises(spdy.Refused) as caught:
            websocket.Connection(url, protocol, fields={n.replace("_", "-"): v for n, v in fields.items()})
        self.assertEqual(status, caught.exception.args[0], caught.exception.args)

    def test_requests(self):
        one = self.make(self.api, "a")
        url = self.exec_url(one, "true")
        # These do not use the URL up.
        self.assertRefused(426, url, Sec_WebSocket_Version="8")
        self.assertRefused(426, url, Sec_WebSocket_Version=None)
        self.assertRefused(400, url, Sec_WebSocket_Key=None)
        self.assertRefused(400, url, Sec_WebSocket_Key="AAAA")
        self.assertRefused(404, url[:-1] + ("0" if url[-1] != "0" else "1"), Origin="http://127.0.0.1")
        self.assertRefused(403, url, "v3.channel.k8s.io")
        self.assertRefused(404, url)
        # An Origin neither lets in nor keeps out: dashboards have one of their own.
        self.assertEqual("Success", json.loads(self.exec(one, "true", fields={"Origin": "https://dashboard.example"}).finish()[2])["status"])

    def test_frames_of_strangers(self):
        one = self.make(self.api, "a")
        for data, code in ((b"\x82\x01x", 1002),  # not masked
                           (b"\xc2\x80mask", 1002), (b"\x83\x80mask", 1002), (b"\x80\x80mask", 1002), (b"\x09\x80mask", 1002),
                           (b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xffmask", 1002),
                           (b"\x82\xff" + struct.pack(">Q", (32 << 20) + 1) + b"mask", 1009),
                           (b"\x88\x83\0\0\0\0\x03\xe8\xff", 1007)):
            c = self.exec(one, "cat", stdin=True)
            c.sock.sendall(data + b"\x82\x80mask")
            while c.hear():
                pass
            self.assertEqual(code, c.closed[0], (data, c.closed))
            c.close()
        c = self.exec(one, "cat", stdin=True, protocol="v4.base64.channel.k8s.io")
        c.send(b"0a$b=", opcode=websocket.TEXT)
        while c.hear():
            pass
        self.assertEqual((1007, "a message is not in base64"), c.closed)
        c.close()
        # The bytes of a tunnel are no SPDY.
        c = websocket.Tunnel(self.forward_url(one))
        c.sendall(b"\x80\x02\x00\x01\x00\x00\x00\x00")
        self.assertEqual(b"", c.recv(1))
        c.close()
        self.assertEqual(b"fine\n", self.exec(one, "echo", "fine").finish()[0])


if __name__ == "__main__":
    unittest.main()
