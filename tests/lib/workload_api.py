# SPDX-License-Identifier: Apache-2.0
"""A client of SPIFFE's Workload API: workload_api.py SOCKET GROUP STEP... goes into the cgroup GROUP ("": stays) and prints what each
step is told, as JSON. The messages are read by hand (wire.py)."""
import base64
import json
import os
import socket
import sys

SERVICE = "/SpiffeWorkloadAPI/"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
MARK = ("workload.spiffe.io", "true")


def svids(data):
    import wire

    text = lambda m, n: (wire.get(m, n) or [b""])[0].decode()  # noqa: E731
    return [{"id": text(m, 1), "hint": text(m, 5), **{k: base64.b64encode(wire.get(m, n)[0]).decode() for n, k in ((2, "cert"), (3, "key"), (4, "bundle"))}}
            for m in wire.get(data, 1)]


def bundles(data):
    import wire

    return {wire.get(e, 1)[0].decode(): base64.b64encode(wire.get(e, 2)[0]).decode() for e in wire.get(data, 2)}


def call(channel, method, metadata, n=1):
    """The first n messages, or the status."""
    import grpc

    stream = channel.unary_stream(SERVICE + method, lambda m: m, lambda m: m)(b"", metadata=metadata, timeout=60)
    try:
        return [next(stream) for _ in range(n)]
    except grpc.RpcError as e:
        return [e.code().name, e.details()]
    finally:
        stream.cancel()


def step(channel, word):
    if word.startswith("svids"):
        told = call(channel, "FetchX509SVID", (MARK,), int(word[5:] or 1))
        return [svids(m) if isinstance(m, bytes) else m for m in told]
    if word == "bundles":
        told = call(channel, "FetchX509Bundles", (MARK,))
        return [bundles(m) if isinstance(m, bytes) else m for m in told]
    marks = {"none": (), "twice": (MARK, MARK), "True": ((MARK[0], "True"),), "jwt": (MARK,)}[word]
    return call(channel, "FetchJWTSVID" if word == "jwt" else "FetchX509SVID", marks)


def many(path, n):
    """How many of n connections are served at once."""
    served, all_of_them = 0, [socket.socket(socket.AF_UNIX) for _ in range(n)]
    for s in all_of_them:
        s.settimeout(60)
        s.connect(path)
    for s in all_of_them:
        try:
            s.sendall(PREFACE)
            served += bool(s.recv(9))
        except ConnectionError:
            pass
    return served


def follow(channel):
    """A line for each message, until the stream ends."""
    for m in channel.unary_stream(SERVICE + "FetchX509SVID", lambda m: m, lambda m: m)(b"", metadata=(MARK,)):
        print(json.dumps(svids(m)), flush=True)


def main():
    path, group, *steps = sys.argv[1:]
    if group:
        with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(os.getpid()))
    if steps == ["pass"]:
        # The connection goes to the other end of standard input, and this process ends.
        with socket.socket(socket.AF_UNIX) as s, socket.socket(fileno=0) as to:
            s.connect(path)
            socket.send_fds(to, [b"x"], [s.fileno()])
            to.recv(1)
        return
    if steps[0] == "many":
        print(many(path, int(steps[1])))
        return
    import grpc

    with grpc.insecure_channel("unix:" + path) as channel:
        if steps == ["follow"]:
            follow(channel)
            return
        print(json.dumps([step(channel, word) for word in steps]))


if __name__ == "__main__":
    main()
