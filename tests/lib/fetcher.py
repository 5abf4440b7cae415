# SPDX-License-Identifier: Apache-2.0
"""The helpers without the core: runs them as src/image/helper/helper.c does, and speaks the packets of wire/message/fetchmsg.h."""
import array
import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time

import nacre_test

MAGIC = 0x6e636632
NAMES = """READ UNPACK BLOB IMAGE WORD LAYER IMAGE_END DONE UNPACKED ERROR PULL PUSH LIST NETWORK PROXY REGISTRY_DIR ENDPOINT AUTH
    MOUNT PUSH_BLOB GO RESOLVED REFERRER CONTENT CONTENT_END FETCH SKIP PROGRESS NOTE RESTART PUSHED TAG POLICY EXPORT
    EXPORT_IMAGE COPY WANT MEMORY VERIFY SIGNER ANNOTATION VERDICT""".split()
# Of what comes: n a number, d a digest, t a text.
MEMBERS = {"BLOB": "dn", "IMAGE": "ddttt", "WORD": "nt", "LAYER": "ddnn", "IMAGE_END": "nn", "DONE": "n", "UNPACKED": "nnn",
           "ERROR": "nnt", "RESOLVED": "dntt", "REFERRER": "dntt", "CONTENT": "dnt", "CONTENT_END": "n", "PROGRESS": "dn", "NOTE": "t",
           "RESTART": "dt", "PUSHED": "dn", "TAG": "t", "SIGNER": "tdt", "ANNOTATION": "tt", "VERDICT": "dnttn"}
KINDS = """FAULT INVALID PRECONDITION NOT_FOUND EXISTS UNAVAILABLE EXHAUSTED UNSUPPORTED DENIED CANCELLED DEADLINE ABORTED
    RANGE UNAUTHENTICATED""".split()
COPY, REFERRERS = 1, 2
GZIP = 1  # enum fetch_compression
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUTS = 0x00020000, 0x08000000, 0x04000000
LIBEXEC = os.path.join(nacre_test.BUILD, "libexec", "nacre")
FETCH, TRANSFER = (os.path.join(LIBEXEC, name) for name in ("nacre-fetch", "nacre-transfer"))


class Text(str):
    """A text of a message, even where it looks as a digest."""


def pack(name, *members):
    body = b""
    for m in members:
        if isinstance(m, int):
            body += struct.pack("=Q", m)
        elif m.startswith("sha256:") and not isinstance(m, Text):
            body += m.encode() + b"\0"
        else:
            body += struct.pack("=I", len(m.encode()) + 1) + m.encode() + b"\0"
    return struct.pack("=IIII", MAGIC, NAMES.index(name), 16 + len(body), 0) + body


def unpack(packet):
    magic, kind, length, _zero = struct.unpack_from("=IIII", packet)
    assert magic == MAGIC and length == len(packet)
    name, at, members = NAMES[kind], 16, []
    for form in MEMBERS[name]:
        if form == "n":
            members.append(struct.unpack_from("=Q", packet, at)[0])
            at += 8
        elif form == "d":
            members.append(packet[at:at + 71].decode())
            at += 72
        else:
            size = struct.unpack_from("=I", packet, at)[0]
            members.append(packet[at + 4:at + 3 + size].decode())
            at += 4 + size
    return (name, *members)


class Failed(Exception):
    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


def launch(program, command, *fds):
    """One of the helpers, with a socket and these two as its descriptors: our end of that, and the process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    libc = ctypes.CDLL(None, use_errno=True)

    def enter():
        # None of the copies is where another one goes.
        for number, fd in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (theirs.fileno(), *fds)], 3):
            os.dup2(fd, number, inheritable=True)
        os.closerange(6, 256)
        if libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) != 0:
            os._exit(97)
    env = {k: v for k, v in os.environ.items() if "PROFILE" in k}
    process = subprocess.Popen([program, command], preexec_fn=enter, close_fds=False, env=env)  # pylint: disable=all
    theirs.close()
    return ours, process


def begin_unpack(blob, layer, compression, root, max_bytes=20 << 30, max_entries=2000000, program=FETCH):
    """Unpacks the file `blob` into the directory `root`. layer: its digest, diff id and size. As launch()."""
    fds = os.open(blob, os.O_RDONLY), os.open(root, os.O_RDONLY)
    ours, process = launch(program, "unpack", *fds)
    for fd in fds:
        os.close(fd)
    ours.send(pack("UNPACK", *layer, compression, max_bytes, max_entries, 0))
    return ours, process


class Fetcher:
    """One run. Messages are collected in self.heard; run() answers LAYERs and CONTENTs, and returns at DONE."""

    def __init__(self, command):
        self.folder = tempfile.TemporaryDirectory(prefix="fetcher-")  # pylint: disable=consider-using-with
        self.staging = os.path.join(self.folder.name, "staging")
        self.partial = os.path.join(self.folder.name, "partial")
        os.mkdir(self.staging, 0o700)
        os.mkdir(self.partial, 0o700)
        directory = os.open(self.staging, os.O_PATH | os.O_DIRECTORY)
        self.socket, self.process = launch(TRANSFER, command, directory, directory)
        os.close(directory)
        self.heard, self.offered, self.times = [], {}, []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.socket.close()
        self.folder.cleanup()

    def say(self, name, *members, fds=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([pack(name, *members)], control)

    def hear(self, seconds=60):
        if not select.select([self.socket], [], [], seconds)[0]:
            raise Failed("TIMEOUT", f"nothing for {seconds} s; heard {self.heard[-5:]}")
        try:
            packet = self.socket.recv(65536)
        except ConnectionResetError:
            # It has ended without having read all; its last words come behind that.
            packet = self.socket.recv(65536)
        if not packet:
            raise Failed("END", f"it ended with {self.process.wait()}; heard {self.heard[-5:]}")
        message = unpack(packet)
        self.heard.append(message)
        self.times.append(time.monotonic())
        if message[0] == "ERROR":
            self.process.wait()
            raise Failed(KINDS[message[1]], message[3])
        return message

    def all(self, name):
        return [m[1:] for m in self.heard if m[0] == name]

    def notes(self):
        return "\n".join(m[0] for m in self.all("NOTE"))

    def blob_path(self, digest):
        return os.path.join(self.partial, digest[7:])

    def fetch(self, digest, follow=False):
        """Answers one offer with FETCH; where it follows, the read end of the pipe comes back."""
        path = self.blob_path(digest)
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        ends = os.pipe() if follow else ()
        size = self.offered[digest]
        self.say("FETCH", digest, size, min(os.fstat(fd).st_size, size), int(follow), fds=[fd, *ends[1:]])
        os.close(fd)
        if follow:
            os.close(ends[1])
            return ends[0]
        return None

    def setup(self, *messages, **network):
        order = ("connections", "stall_ms", "min_rate", "n_retries", "retry_ms", "retry_max_ms", "connect_ms")
        if network:
            self.say("NETWORK", *(network.get(n, 0) for n in order))
        for m in messages:
            self.say(*m)

    def run(self, *messages, answer=None, seconds=60, **network):
        """GO, then until DONE. answer(self, digest) in place of a FETCH for each offer."""
        self.setup(*messages, **network)
        self.say("GO")
        while True:
            m = self.hear(seconds)
            if m[0] in ("LAYER", "CONTENT"):
                self.offered.setdefault(m[1], m[3] if m[0] == "LAYER" else m[2])
            elif m[0] in ("IMAGE_END", "CONTENT_END"):
                for digest in self.offered:
                    (answer or Fetcher.fetch)(self, digest)
            elif m[0] == "RESTART":
                os.truncate(self.blob_path(m[1]), 0)
                (answer or Fetcher.fetch)(self, m[1])
            elif m[0] == "DONE":
                self.process.wait()
                return self


def pull(reference, *messages, architecture="amd64", variant="", flags=0, host_flags=0, before=None, answer=None, seconds=60,
         max_bytes=1 << 26, **network):
    """A whole pull; the caller leaves it as a context. before(fetcher) may put files into partial."""
    f = Fetcher("pull")
    try:
        f.say("PULL", reference, "linux", architecture, variant, max_bytes, flags, host_flags)
        if before:
            before(f)
        network.setdefault("retry_ms", 1)
        return f.run(*messages, answer=answer, seconds=seconds, **network)
    except BaseException as e:
        e.notes = f.notes()
        e.heard = f.heard
        f.__exit__()
        raise
