# SPDX-License-Identifier: Apache-2.0
"""A client of SPDY/3.1 as kubectl and crictl are one, with the standard library alone: remote commands over a URL of the CRI."""
import socket
import struct
import urllib.parse
import zlib

WORDS = ("options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization "
         "cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range "
         "content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified "
         "location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding "
         "upgrade user-agent vary via warning www-authenticate method get status").split() + ["200 OK", "version", "HTTP/1.1", "url", "public",
                                                                                             "set-cookie", "keep-alive", "origin"]
TEXT = ("100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information"
        "204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error"
        "501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, "
        "Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
        "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.")
DICTIONARY = b"".join(struct.pack(">I", len(w)) + w.encode() for w in WORDS) + TEXT.encode()


class Refused(Exception):
    """(status, text) of the answer."""


class Connection:
    def __init__(self, url, protocols=("v4.channel.k8s.io",), upgrade="SPDY/3.1", timeout=30):
        at = urllib.parse.urlsplit(url)
        self.sock = socket.create_connection((at.hostname, at.port), timeout)
        lines = [f"POST {at.path} HTTP/1.1", f"Host: {at.netloc}", "Connection: Upgrade", f"Upgrade: {upgrade}"]
        self.sock.sendall("\r\n".join(lines + [f"X-Stream-Protocol-Version: {p}" for p in protocols] + ["", ""]).encode())
        self.data = b""
        while b"\r\n\r\n" not in self.data:
            got = self.sock.recv(65536)
            if not got:
                raise Refused(0, self.data.decode())
            self.data += got
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        self.head = head.decode()
        if " 101 " not in self.head.splitlines()[0]:
            while True:
                got = self.sock.recv(65536)
                if not got:
                    break
                self.data += got
            raise Refused(int(self.head.split()[1]), self.data.decode())
        self.begin(self.sock)

    @classmethod
    def over(cls, sock):
        """On what has sendall(), recv() and close()."""
        self = cls.__new__(cls)
        self.head, self.data = "", b""
        self.begin(sock)
        return self

    def begin(self, sock):
        self.sock = sock
        self.deflate = zlib.compressobj(zdict=DICTIONARY)
        self.inflate = zlib.decompressobj(zdict=DICTIONARY)
        self.next = 1
        self.received, self.ended, self.replied = {}, set(), set()

    def close(self):
        self.sock.close()

    def open(self, **headers):
        pairs = [(k.lower(), v) for k, v in headers.items()]
        block = struct.pack(">I", len(pairs)) + b"".join(struct.pack(">I", len(w)) + w.encode() for p in pairs for w in p)
        block = self.deflate.compress(block) + self.deflate.flush(zlib.Z_SYNC_FLUSH)
        number, self.next = self.next, self.next + 2
        self.sock.sendall(struct.pack(">HHIIIH", 0x8003, 1, 10 + len(block), number, 0, 0) + block)
        return number

    def send(self, stream, data, fin=False):
        self.sock.sendall(struct.pack(">II", stream, len(data) | (0x1000000 if fin else 0)) + data)

    def reset(self, stream):
        """CANCEL: takes it back."""
        self.sock.sendall(struct.pack(">IIII", 0x80030003, 8, stream, 5))

    def ping(self, number):
        self.sock.sendall(struct.pack(">HHII", 0x8003, 6, 4, number))

    def need(self, n):
        while len(self.data) < n:
            got = self.sock.recv(1 << 20)
            if not got:
                return None
            self.data += got
        taken, self.data = self.data[:n], self.data[n:]
        return taken

    def frame(self):
        """The next frame as (type or None for data, stream, payload), or None at the end."""
        head = self.need(8)
        if head is None:
            return None
        first, second = struct.unpack(">II", head)
        payload = self.need(second & 0xffffff)
        if not first & 0x80000000:
            self.received[first] = self.received.get(first, b"") + payload
            if second >> 24 & 1:
                self.ended.add(first)
            return None, first, payload
        kind = first & 0xffff
        stream, = struct.unpack(">I", payload[:4])
        if kind == 2:
            self.inflate.decompress(payload[4:])
            self.replied.add(stream)
        return kind, stream, payload

    def until(self, done):
        while not done():
            if self.frame() is None:
                return False
        return True


class Command(Connection):
    """The streams of a remote command, opened."""

    def __init__(self, url, stdin=False, stdout=True, stderr=True, tty=False, **more):
        super().__init__(url, **more)
        self.streams = {"error": self.open(streamType="error")}
        for name, wanted in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr), ("resize", tty)):
            if wanted:
                self.streams[name] = self.open(streamType=name)

    def write(self, data, fin=False):
        self.send(self.streams["stdin"], data, fin)

    def text(self, name):
        return self.received.get(self.streams[name], b"")

    def finish(self):
        """(stdout, stderr, what the error stream said)."""
        self.until(lambda: set(self.streams.values()) - {self.streams.get("stdin"), self.streams.get("resize")} <= self.ended)
        told = self.text("error").decode()
        out, err = (self.text(n) if n in self.streams else b"" for n in ("stdout", "stderr"))
        self.close()
        return out, err, told
