#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program walled off from the host: enclosure.py CGROUP COMMAND... ("-" for no cgroup).

The program gets mount and network namespaces of its own (loopback up, nothing else), joins the cgroup v2 directory CGROUP,
and dies with whoever started it. What it leaves behind in the cgroup can then be found, and ended, as one.
"""
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_REC_PRIVATE = 0x4000 | 0x40000
PR_SET_PDEATHSIG = 1
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1

libc = ctypes.CDLL(None, use_errno=True)


def must(result, what):
    if result != 0:
        error = ctypes.get_errno()
        sys.exit(f"enclosure: {what}: {os.strerror(error)}")


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(s, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | IFF_UP))


def main():
    cgroup, command = sys.argv[1], sys.argv[2:]
    must(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "ask to die with the runner")
    if cgroup != "-":
        with open(os.path.join(cgroup, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write("0")
    must(libc.unshare(CLONE_NEWNS | CLONE_NEWNET), "make mount and network namespaces")
    must(libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None), "make the mounts private")
    loopback_up()
    try:
        os.execvp(command[0], command)
    except OSError as e:
        sys.exit(f"enclosure: {command[0]}: {e.strerror}")


if __name__ == "__main__":
    main()
