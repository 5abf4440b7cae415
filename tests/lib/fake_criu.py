#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A criu for tests: `criu swrk 3`, stricter than the real one about what it is asked, and as bad as the test wants.

$FAKE_CRIU is a directory. `plan.json` in it says what to do:

    version      [major, minor, sublevel], else [3, 17, 1]
    mem_track    whether memory can be tracked, else true
    then         "do" (the default), "refuse" with the sentence of `message`, "kill" (itself), "exit" with status 3, "garbage"
                 or "other": at the dump, or once the process that is restored has been made
    joins        whether what is restored goes to its cgroup, else true
    runs         what is restored, else ["/bin/sleep", "1000"]
    terminal     whether it sends a terminal

Each request becomes a line of `requests` (JSON), and what it found of it: the names of its directories, what is mounted at the
root, its descriptors. What is wrong with one becomes a line of `wrong`.
"""
import array
import ctypes
import json
import os
import signal
import socket
import struct
import sys

PLACE = os.environ["FAKE_CRIU"]
DUMP, RESTORE, PRE_DUMP, NOTIFY, FEATURES, VERSION = 1, 2, 4, 6, 9, 10
KINDS = {DUMP: "dump", RESTORE: "restore", PRE_DUMP: "pre-dump", FEATURES: "features", VERSION: "version"}
PAIR = {1: ("key", str), 2: ("value", str)}
# Number: (name, kind). A list is of what may come more than once.
OPTIONS = {
    1: ("images_fd", int), 2: ("pid", int), 3: ("leave_running", bool), 4: ("ext_unix_sk", bool), 5: ("tcp_established", bool),
    6: ("evasive_devices", bool), 7: ("shell_job", bool), 8: ("file_locks", bool), 9: ("log_level", int), 10: ("log_file", str),
    12: ("notify_scripts", bool), 13: ("root", str), 14: ("parent_img", str), 15: ("track_mem", bool), 16: ("auto_dedup", bool),
    17: ("work_fd", int), 23: ("mounts", [PAIR]), 24: ("manage_cgroups", bool), 25: ("cg_root", [{1: ("ctrl", str), 2: ("path", str)}]),
    26: ("rst_sibling", bool), 27: ("inherit_fd", [{1: ("key", str), 2: ("fd", int)}]), 34: ("groups", int), 37: ("external", [str]),
    38: ("empty_ns", int), 39: ("joins", [PAIR]), 50: ("orphan_pts_master", bool), 53: ("lsm_profile", str),
    63: ("lsm_mount_context", str),
}
REQUEST = {1: ("type", int), 2: ("opts", OPTIONS), 3: ("notify_success", bool), 5: ("features", {1: ("mem_track", bool)})}


class Wrong(Exception):
    pass


# ---- protobuf ----

def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def value_of(kind, wire, data, at):
    if wire == 0 and kind in (int, bool):
        value, at = varint(data, at)
        return kind(value), at
    if wire != 2 or kind in (int, bool):
        raise Wrong(f"wire type {wire} for a {kind}")
    length, at = varint(data, at)
    if at + length > len(data):
        raise Wrong("a field goes past the end")
    inner = data[at:at + length]
    return inner.decode() if kind is str else decode(inner, kind), at + length


def decode(data, fields):
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key >> 3 not in fields:
            raise Wrong(f"field {key >> 3} is unknown")
        name, kind = fields[key >> 3]
        value, at = value_of(kind[0] if isinstance(kind, list) else kind, key & 7, data, at)
        if isinstance(kind, list):
            found.setdefault(name, []).append(value)
        elif name in found:
            raise Wrong(f"{name} comes twice")
        else:
            found[name] = value
    return found


def number(value):
    data = b""
    while True:
        data += bytes([value & 0x7f | (0x80 if value > 0x7f else 0)])
        value >>= 7
        if not value:
            return data


def encode(*fields):
    """Each a number of a field with an int, a str or bytes."""
    data = b""
    for field, value in fields:
        if isinstance(value, int):
            data += number(field << 3) + number(value & (1 << 64) - 1)
        else:
            value = value.encode() if isinstance(value, str) else value
            data += number(field << 3 | 2) + number(len(value)) + value
    return data


# ---- the conversation ----

class Criu:
    def __init__(self, plan):
        self.plan = plan
        self.socket = socket.socket(fileno=3)
        if self.socket.type != socket.SOCK_SEQPACKET:
            raise Wrong("3 is no socket of packets")
        self.peer = struct.unpack("3i", self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def say(self, kind, *fields, success=True, fds=()):
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([encode((1, kind), (2, int(success)), *fields)], ancillary)

    def hear(self):
        return decode(self.socket.recv(1 << 20), REQUEST)

    def notify(self, script, *fields, fds=()):
        self.say(NOTIFY, (5, encode((1, script), *fields)), fds=fds)
        answer = self.hear()
        if answer.get("type") != NOTIFY or "notify_success" not in answer:
            raise Wrong(f"the answer to {script} is {answer}")
        return answer["notify_success"]

    def path(self, fd):
        return os.readlink(f"/proc/{self.peer}/fd/{fd}")

    def note(self, request):
        """Writes the request down, with what it leads to."""
        seen = {"kind": KINDS.get(request["type"]), "opts": request.get("opts", {})}
        opts = seen["opts"]
        if opts:
            seen.update(images=self.path(opts["images_fd"]), work=self.path(opts["work_fd"]))
            with open(f"/proc/{self.peer}/fd/{opts['work_fd']}/{opts['log_file']}", "w", encoding="ascii") as f:
                f.write("a log\n")
        if request["type"] == RESTORE:
            seen["root"] = sorted(os.listdir(opts["root"]))
            with open("/proc/self/mountinfo", encoding="utf-8") as f:
                mounts = f.read().splitlines()
            seen["mounted"] = opts["root"] in [line.split()[4] for line in mounts]
            seen["shared"] = [line for line in mounts if " shared:" in line]
        seen["fds"] = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) != 3 and alive(fd)}
        append("requests", json.dumps(seen))

    def misbehave(self, kind):
        then = self.plan.get("then", "do")
        if then == "refuse":
            self.say(kind, (7, 5), (9, self.plan["message"]), success=False)
            sys.exit(1)
        if then == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if then == "exit":
            sys.exit(3)
        if then == "garbage":
            self.socket.send(b"\xff\xff\xff")
            sys.exit(1)
        if then == "other":
            self.say(VERSION)
            sys.exit(1)

    def dump(self, kind, opts):
        for needed in ("images_fd", "work_fd", "pid", "log_file", "root"):
            if needed not in opts:
                raise Wrong(f"{needed} is missing")
        if not os.path.isdir(f"/proc/{opts['pid']}"):
            raise Wrong("the process is not there")
        for script in ("pre-dump", "network-lock"):
            if not self.notify(script):
                raise Wrong(f"{script} was refused")
        self.misbehave(kind)
        with open(f"/proc/{self.peer}/fd/{opts['images_fd']}/inventory.img", "w", encoding="ascii") as f:
            f.write("an image\n")
        if kind == DUMP and not opts.get("leave_running"):
            os.kill(opts["pid"], signal.SIGKILL)
        self.say(kind)
        if kind == PRE_DUMP and self.socket.recv(1 << 20):
            raise Wrong("more follows")

    def restore(self, opts):
        for needed in ("images_fd", "work_fd", "log_file", "root", "rst_sibling", "notify_scripts"):
            if needed not in opts:
                raise Wrong(f"{needed} is missing")
        if "pid" in opts:
            raise Wrong("the process is not there yet")
        pid, go = clone_sibling(self.plan.get("runs", ["/bin/sleep", "1000"]))
        if not self.notify("setup-namespaces", (2, pid)):
            sys.exit(1)
        if self.plan.get("joins", True):
            with open(group_root() + opts["cg_root"][0]["path"] + "/cgroup.procs", "w", encoding="ascii") as f:
                f.write(str(pid))
        if self.plan.get("terminal"):
            master, slave = os.openpty()
            os.write(slave, b"hello\n")
            if not self.notify("orphan-pts-master", fds=[master]):
                sys.exit(1)
        self.misbehave(RESTORE)
        if not self.notify("post-restore", (2, pid)):
            sys.exit(1)
        os.write(go, b"x")
        self.notify("post-resume")
        self.say(RESTORE, (4, encode((1, pid))))

    def serve(self):
        request = self.hear()
        kind = request.get("type")
        self.note(request)
        if kind == VERSION:
            self.say(VERSION, (10, encode(*zip((1, 2, 4), self.plan.get("version", [3, 17, 1])))))
        elif kind == FEATURES:
            if request.get("features") != {"mem_track": True}:
                raise Wrong("asks for no feature")
            self.say(FEATURES, (8, encode((1, int(self.plan.get("mem_track", True))))))
        elif kind in (DUMP, PRE_DUMP):
            self.dump(kind, request["opts"])
        elif kind == RESTORE:
            self.restore(request["opts"])
        else:
            raise Wrong(f"request {kind}")


def alive(fd):
    return os.path.lexists(f"/proc/self/fd/{fd}")


def group_root():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            left, _, right = line.partition(" - ")
            if right.startswith("cgroup2 "):
                return left.split()[4]
    raise Wrong("no cgroup2")


def clone_sibling(command):
    """(pid, fd): a process beside this one, which runs the command once something was written to fd."""
    ready, go = os.pipe()
    pid = ctypes.CDLL(None, use_errno=True).syscall(56, 0x8000 | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os.close(go)
        if os.read(ready, 1):
            os.execv(command[0], command)
        signal.pause()
    os.close(ready)
    return pid, go


def append(name, line):
    with open(os.path.join(PLACE, name), "a", encoding="utf-8") as f:
        f.write(line + "\n")


def main():
    if sys.argv[1:] != ["swrk", "3"]:
        raise Wrong(f"called as {sys.argv}")
    with open(os.path.join(PLACE, "plan.json"), encoding="utf-8") as f:
        Criu(json.load(f)).serve()


if __name__ == "__main__":
    try:
        main()
    except Exception as e:  # whatever it is, the test shall see it
        append("wrong", f"{type(e).__name__}: {e}")
        raise
