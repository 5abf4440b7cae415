#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Carries bytes between TCP and a unix socket: relay.py PORT SOCKET, on 127.0.0.1, until it is ended.

For clients of other makers that speak TCP only. Each direction of a connection has a thread of its own, and the end of one
direction is passed on as just that. What a client says in one breath goes on in one piece: with a server that answers at once,
"so many streams open at the same time" would otherwise be a matter of luck.
"""
import select
import socket
import sys
import threading


BREATH = 0.02
PIECE_MAX = 1 << 20


def hear(source, breath):
    """What comes next, with all that follows it without a pause; empty at the end."""
    data = source.recv(65536)
    while data and breath and len(data) < PIECE_MAX and select.select([source], [], [], breath)[0]:
        more = source.recv(65536)
        if not more:
            break
        data += more
    return data


def carry(source, target, breath=0):
    try:
        while True:
            data = hear(source, breath)
            if not data:
                break
            target.sendall(data)
    except OSError:
        pass
    for s, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        try:
            s.shutdown(how)
        except OSError:
            pass


def both_ways(client, path):
    with client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        try:
            server.connect(path)
        except OSError:
            return
        there = threading.Thread(target=carry, args=(client, server, BREATH), daemon=True)
        there.start()
        carry(server, client)
        there.join()


def listen(port):
    """A listening socket on 127.0.0.1; port 0 is one that is free."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    return listener


def serve(listener, path):
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=both_ways, args=(client, path), daemon=True).start()


if __name__ == "__main__":
    serve(listen(int(sys.argv[1])), sys.argv[2])
