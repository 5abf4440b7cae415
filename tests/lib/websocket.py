# SPDX-License-Identifier: Apache-2.0
"""A client of WebSocket (RFC 6455) and of Kubernetes' channels in it, with the standard library alone."""
import base64
import hashlib
import os
import socket
import struct
import urllib.parse

from spdy import Refused

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
CLOSE_CHANNEL = 255
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Connection:
    def __init__(self, url, protocol="v5.channel.k8s.io", timeout=30, fields=()):
        at = urllib.parse.urlsplit(url)
        key = base64.b64encode(os.urandom(16))
        self.sock = socket.create_connection((at.hostname, at.port), timeout)
        more = {"Sec-WebSocket-Key": key.decode(), "Sec-WebSocket-Version": "13", **({"Sec-WebSocket-Protocol": protocol} if protocol else {}), **dict(fields)}
        lines = [f"GET {at.path} HTTP/1.1", f"Host: {at.netloc}", "Connection: keep-alive, Upgrade", "Upgrade: websocket"]
        self.sock.sendall("\r\n".join(lines + [f"{n}: {v}" for n, v in more.items() if v is not None] + ["", ""]).encode())
        self.data, self.closed, self.pongs = b"", None, []
        while b"\r\n\r\n" not in self.data:
            if not self.more():
                raise Refused(0, self.data.decode())
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        self.head = head.decode()
        if " 101 " not in self.head.splitlines()[0]:
            while self.more():
                pass
            raise Refused(int(self.head.split()[1]), self.data.decode())
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        agreed = [line for line in self.head.splitlines() if line.startswith("Sec-WebSocket-Protocol: ")]
        assert f"Sec-WebSocket-Accept: {accept}" in self.head.splitlines(), self.head
        assert agreed == ([f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []), self.head

    def close(self):
        self.sock.close()

    def more(self):
        got = self.sock.recv(1 << 20)
        self.data += got
        return bool(got)

    def frame(self, data, opcode=BINARY, fin=True, mask=True):
        length = (struct.pack(">B", len(data)) if len(data) < 126 else struct.pack(">BH", 126, len(data)) if len(data) < 65536
                  else struct.pack(">BQ", 127, len(data)))
        first = bytes([(0x80 if fin else 0) | opcode])
        if not mask:
            return first + length + data
        key = os.urandom(4)
        masked = int.from_bytes(data, "big") ^ int.from_bytes((key * (len(data) // 4 + 1))[:len(data)], "big")
        return first + bytes([length[0] | 0x80]) + length[1:] + key + masked.to_bytes(len(data), "big")

    def send(self, data, **more):
        self.sock.sendall(self.frame(data, **more))

    def need(self, n):
        while len(self.data) < n:
            if not self.more():
                return None
        taken, self.data = self.data[:n], self.data[n:]
        return taken

    def receive(self):
        """(opcode, payload) of the next frame, or None at the end. A close is kept: (code, reason)."""
        head = self.need(2)
        if head is None:
            return None
        assert head[0] & 0x80 and not head[1] & 0x80, head
        length = head[1]
        if length > 125:
            length = int.from_bytes(self.need(2 if length == 126 else 8), "big")
        opcode, payload = head[0] & 0x0f, self.need(length)
        if opcode == CLOSE:
            self.closed = (int.from_bytes(payload[:2], "big"), payload[2:].decode()) if payload else (None, "")
        elif opcode == PONG:
            self.pongs.append(payload)
        return opcode, payload


class Channels(Connection):
    """Each message has the number of its channel in front; base64: as text."""

    def __init__(self, url, protocol="v5.channel.k8s.io", **more):
        super().__init__(url, protocol, **more)
        self.text, self.received = "base64" in (protocol or ""), {}

    def say(self, channel, data):
        self.send(bytes([ord("0") + channel]) + base64.b64encode(data) if self.text else bytes([channel]) + data, opcode=TEXT if self.text else BINARY)

    def hear(self):
        """False at the end."""
        got = self.receive()
        if got is None:
            return False
        opcode, payload = got
        if opcode in (TEXT, BINARY):
            assert (opcode == TEXT) == self.text and payload, got
            channel, data = (payload[0] - ord("0"), base64.b64decode(payload[1:])) if self.text else (payload[0], payload[1:])
            self.received.setdefault(channel, []).append(data)
        return True

    def heard(self, channel):
        return b"".join(self.received.get(channel, []))

    def until(self, done):
        while not done():
            if not self.hear():
                return False
        return True

    def end(self, channel=0):
        """No more input (version 5)."""
        self.send(bytes([CLOSE_CHANNEL, channel]))

    def finish(self):
        """(stdout, stderr, what the error channel said) once the server has closed normally."""
        while self.hear():
            pass
        assert self.closed == (1000, ""), self.closed
        self.close()
        return self.heard(1), self.heard(2), self.heard(3).decode()


class Tunnel:
    """A socket for spdy.Connection: what is sent and received goes through the messages of a WebSocket."""

    def __init__(self, url, piece=None):
        self.web, self.piece, self.over = Connection(url, "SPDY/3.1+portforward.k8s.io"), piece, False

    def sendall(self, data):
        for at in range(0, len(data), self.piece or len(data)):
            self.web.send(data[at:at + (self.piece or len(data))])

    def recv(self, _size):
        while True:
            got = self.web.receive()
            if got is None or got[0] == CLOSE:
                return b""
            if got[0] == BINARY and got[1]:
                return got[1]

    def close(self):
        self.web.close()
