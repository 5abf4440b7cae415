#!/usr/bin/python3 -I
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for `nacre-transfer pull`, for tests of who starts it: it brings images from DIR beside itself (fake-registry/), and
does what fake-registry/script.json says.

fake-registry/REPOSITORY.json   {"manifest": DIGEST, "config": DIGEST, "layers": [[DIGEST, DIFF_ID, SIZE, COMPRESSION]...]}
fake-registry/blobs/HEX
fake-registry/log               a line for each thing that was asked: "resolve NAME", "fetch DIGEST FROM", "skip DIGEST"
script.json                     {"rate": bytes a second, "chunk": bytes, "wrong": {DIGEST: times}, "die": {DIGEST: [bytes, times]},
                                 "error": [kind, errno, text], "hold": seconds before the documents,
                                 "signers": [[key, fingerprint, identity]...],
                                 "verdicts": [[digest or "" for the manifest's, kind, scope, text, signers]...]}
"""
import array
import fcntl
import json
import os
import selectors
import socket
import struct
import sys
import time

MAGIC = 0x6e636632
(READ, UNPACK, BLOB, IMAGE, WORD, LAYER, IMAGE_END, DONE, UNPACKED, ERROR, PULL, PUSH, LIST, NETWORK, PROXY, REGISTRY_DIR, ENDPOINT,
 AUTH, MOUNT, PUSH_BLOB, GO, RESOLVED, REFERRER, CONTENT, CONTENT_END, FETCH, SKIP, PROGRESS, NOTE, RESTART, PUSHED,
 TAG, POLICY, EXPORT, EXPORT_IMAGE, COPY, WANT, MEMORY, VERIFY, SIGNER, ANNOTATION, VERDICT) = range(42)
# n: a number, d: a digest, t: a text.
FORMS = {BLOB: "dn", IMAGE: "ddttt", WORD: "nt", LAYER: "ddnn", IMAGE_END: "nn", DONE: "n", ERROR: "nnt", PULL: "ttttnnn",
         PUSH: "tn", LIST: "tnnn", NETWORK: "nnnnnnn", PROXY: "ttt", REGISTRY_DIR: "t", ENDPOINT: "ttnn", AUTH: "tntt", GO: "",
         RESOLVED: "dntt", FETCH: "dnnn", SKIP: "d", PROGRESS: "dn", NOTE: "t", RESTART: "dt", PUSHED: "dn", TAG: "t",
         PUSH_BLOB: "dnn", MOUNT: "t", POLICY: "t", SIGNER: "tdt", ANNOTATION: "tt", VERDICT: "dnttn"}
HERE = os.path.dirname(os.path.abspath(sys.argv[0]))
DIR = os.path.join(HERE, "fake-registry")


def encode(kind, *members):
    body = b""
    for form, value in zip(FORMS[kind], members, strict=True):
        if form == "n":
            body += struct.pack("=Q", value)
        elif form == "d":
            body += value.encode() + b"\0"
        else:
            body += struct.pack("=I", len(value.encode()) + 1) + value.encode() + b"\0"
    return struct.pack("=IIII", MAGIC, kind, 16 + len(body), 0) + body


def decode(packet):
    magic, kind, length, _ = struct.unpack("=IIII", packet[:16])
    assert magic == MAGIC and length == len(packet), packet
    at, members = 16, []
    for form in FORMS[kind]:
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
    return kind, members


class Channel:
    def __init__(self):
        self.sock = socket.socket(fileno=3)

    def tell(self, kind, *members):
        self.sock.send(encode(kind, *members))

    def hear(self):
        packet, control, _, _ = self.sock.recvmsg(65536, socket.CMSG_SPACE(16))
        if not packet:
            sys.exit(1)
        fds = array.array("i")
        for _, _, data in control:
            fds.frombytes(data)
        return (*decode(packet), list(fds))


def log(line):
    fd = os.open(DIR + "/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def times(name, limit):
    """Whether it is still one of the first `limit` times, over all processes."""
    with open(f"{DIR}/count-{name}", "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b"x")
        file.flush()
        return file.tell() <= limit


class Download:
    def __init__(self, script, digest, size, start, fds):
        self.digest, self.size, self.at, self.fds = digest, size, start, fds
        with open(f"{DIR}/blobs/{digest[7:]}", "rb") as file:
            self.data = file.read()
        self.wrong = digest in script.get("wrong", {}) and times("wrong-" + digest[7:15], script["wrong"][digest])
        if self.wrong:
            self.data = self.data[:-1] + bytes([self.data[-1] ^ 1])
        self.die = None
        if digest in script.get("die", {}):
            limit, n = script["die"][digest]
            if times("die-" + digest[7:15], n):
                self.die = limit
        if os.pread(fds[0], start, 0) != self.data[:start]:
            log("damaged " + digest)
            os.ftruncate(fds[0], 0)
            self.at = 0
        self.say()

    def say(self):
        try:
            os.write(self.fds[1], struct.pack("=Q", self.at))
        except (BrokenPipeError, BlockingIOError):
            pass

    def step(self, n):
        if self.die is not None and self.at >= self.die:
            log("die " + self.digest)
            os._exit(9)
        part = self.data[self.at:self.at + n]
        os.pwrite(self.fds[0], part, self.at)
        self.at += len(part)
        self.say()
        return self.at == len(self.data)

    def close(self):
        for fd in self.fds:
            os.close(fd)


def serve(channel, script, layers):
    left, running = {digest for digest, *_ in layers}, {}
    select = selectors.DefaultSelector()
    select.register(channel.sock, selectors.EVENT_READ)
    chunk = script.get("chunk", 65536)
    pause = chunk / script["rate"] if "rate" in script else 0
    while left:
        while select.select(pause if running else None):
            kind, members, fds = channel.hear()
            if kind == SKIP:
                log("skip " + members[0])
                left.remove(members[0])
            elif kind == FETCH:
                digest, size, start, follow = members
                assert len(fds) == 1 + follow and digest in left, members
                log(f"fetch {digest} {start}")
                running[digest] = Download(script, digest, size, start, fds)
            if not left:
                return
        for digest, download in list(running.items()):
            if not download.step(chunk):
                channel.tell(PROGRESS, digest, download.at)
                continue
            download.close()
            del running[digest]
            if download.wrong:
                channel.tell(RESTART, digest, "it has another digest")
            else:
                left.remove(digest)
                channel.tell(BLOB, digest, download.size)


def pull(channel):
    kind, (reference, _, _, _, _, _, _), _ = channel.hear()
    assert kind == PULL, kind
    while kind != GO:
        kind, members, _ = channel.hear()
        if kind == AUTH:
            log("auth " + " ".join(map(str, members)))
    with open(DIR + "/script.json", encoding="utf-8") as file:
        script = json.load(file)
    repository = reference.split("@")[0].rsplit("/", 1)[1].split(":")[0]
    log("resolve " + reference)
    if "error" in script:
        channel.tell(ERROR, *script["error"])
        sys.exit(1)
    time.sleep(script.get("hold", 0))
    with open(f"{DIR}/{repository}.json", encoding="utf-8") as file:
        image = json.load(file)
    channel.tell(RESOLVED, image["manifest"], 1, "application/vnd.oci.image.manifest.v1+json", "http://fake")
    for signer in script.get("signers", ()):
        channel.tell(SIGNER, *signer)
    for digest, *verdict in script.get("verdicts", [["", 0, "", "", 0]]):
        channel.tell(VERDICT, digest or image["manifest"], *verdict)
    for digest in (image["manifest"], image["config"]):
        with open(f"{DIR}/blobs/{digest[7:]}", "rb") as file:
            data = file.read()
        fd = os.open("blob", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=5)
        os.write(fd, data)
        os.close(fd)
        os.rename("blob", digest[7:], src_dir_fd=5, dst_dir_fd=5)
        channel.tell(BLOB, digest, len(data))
    channel.tell(IMAGE, image["config"], image["manifest"], "", "", "")
    for layer in image["layers"]:
        channel.tell(LAYER, *layer)
    channel.tell(IMAGE_END, 0, len(image["layers"]))
    serve(channel, script, image["layers"])
    channel.tell(DONE, 1)


if sys.argv[1:] != ["pull"]:
    sys.exit(f"{sys.argv[0]}: it does nothing but pull")
pull(Channel())
