# SPDX-License-Identifier: Apache-2.0
"""What callers are handed over sockets, groups below and above a container's own, and what a failed update leaves."""
import array
import json
import os
import select
import socket
import unittest

import host
import oci_test

SUPERVISED = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
              "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_NOTIFY"}]}

# Whoever stays must not keep the pipes that a test reads to their end.
QUIETLY = "exec sleep 1000 >/dev/null 2>&1"


def group_of(pid):
    """Where the process is, as a directory."""
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as f:
        path = next(line for line in f.read().splitlines() if line.startswith("0::"))[3:]
    return os.path.join(top(), path.lstrip("/"))


def top():
    """The directory of the group that /proc/PID/cgroup calls "/"."""
    own = host.own_cgroup()
    with open("/proc/self/cgroup", encoding="ascii") as f:
        path = next(line for line in f.read().splitlines() if line.startswith("0::"))[3:]
    return own[:len(own) - len(path)] if path != "/" else own


class Listener:
    """A socket of a caller; what comes over its first connection."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(1)
        self.socket.settimeout(oci_test.TIMEOUT)

    def receive(self):
        """(text, descriptors)"""
        connection, _ = self.socket.accept()
        with connection:
            connection.settimeout(oci_test.TIMEOUT)
            fds = array.array("i")
            text = b""
            while True:
                data, ancillary, _, _ = connection.recvmsg(65536, socket.CMSG_SPACE(4 * fds.itemsize))
                for _, _, value in ancillary:
                    fds.frombytes(value[:len(value) - len(value) % fds.itemsize])
                if not data:
                    return text.decode(), list(fds)
                text += data


class Sockets(oci_test.OciTest):
    def listener(self, name):
        listener = Listener(os.path.join(self.dir, name))
        self.addCleanup(listener.socket.close)
        return listener

    def closed_later(self, fds):
        for fd in fds:
            self.addCleanup(os.close, fd)
        return fds

    def check_pidfd(self, listener, pid):
        text, fds = listener.receive()
        self.closed_later(fds)
        self.assertEqual((text, len(fds)), ("pidfd", 1))
        with open(f"/proc/self/fdinfo/{fds[0]}", encoding="ascii") as f:
            self.assertIn(f"Pid:\t{pid}\n", f.read())

    def test_a_pidfd(self):
        listener = self.listener("pidfd")
        self.bundle("sleep", "1000")
        self.create("--pidfd-socket", listener.path)
        self.check_pidfd(listener, self.state()["pid"])
        self.oci("start", self.name)
        pid_file = os.path.join(self.dir, "pid")
        self.oci("exec", "-d", "--pid-file", pid_file, "--pidfd-socket", listener.path, self.name, "sh", "-c", QUIETLY)
        with open(pid_file, encoding="ascii") as f:
            self.check_pidfd(listener, f.read())
        self.assertIn("--pidfd-socket: connect to /nowhere", self.oci("exec", "--pidfd-socket", "/nowhere", self.name, "true", status=1).stderr)
        self.delete()

    def supervised(self, listener, *args):
        self.bundle(*args)
        self.config["linux"]["seccomp"] = {**SUPERVISED, "listenerPath": listener.path, "listenerMetadata": "what\never"}
        self.save()

    def check_agent(self, listener, status, pid=None):
        """The document that comes with a filter's listener."""
        text, fds = listener.receive()
        self.closed_later(fds)
        document = json.loads(text)
        self.assertEqual(document["fds"], ["seccompFd"])
        self.assertEqual(len(fds), 1)
        self.assertEqual(os.readlink(f"/proc/self/fd/{fds[0]}"), "anon_inode:seccomp notify")
        self.assertEqual(document["metadata"], "what\never")
        self.assertEqual(document["state"]["id"], self.name)
        self.assertEqual(document["state"]["status"], status)
        self.assertEqual(document["state"]["bundle"], self.path)
        if pid:
            self.assertEqual(document["pid"], pid)
            self.assertEqual(document["state"]["pid"], pid)
        return fds[0]

    def test_a_seccomp_agent(self):
        listener = self.listener("agent")
        self.supervised(listener, "sh", "-c", "mkdir /tmp/asked; sleep 1000")
        self.create()
        pid = self.state()["pid"]
        self.oci("start", self.name)
        fd = self.check_agent(listener, "creating", pid)
        # The call that it waits for an answer to has come.
        self.assertEqual(len(select.select([fd], [], [], oci_test.TIMEOUT)[0]), 1)
        self.assertFalse(os.path.exists(os.path.join(self.rootfs, "tmp", "asked")))
        self.oci("exec", "-d", self.name, "sh", "-c", QUIETLY)
        self.check_agent(listener, "running")
        self.delete()

    def test_an_agent_that_is_not_there(self):
        listener = self.listener("agent")
        listener.socket.close()
        self.supervised(listener, "true")
        self.create()
        self.assertIn("linux.seccomp.listenerPath: connect to", self.oci("start", self.name, status=1).stderr)
        self.delete()
        del self.config["linux"]["seccomp"]["listenerPath"]
        self.save()
        self.assertIn("linux.seccomp", self.create(status=1))

    def test_labels_that_the_kernel_has_not(self):
        self.started("sleep", "1000")
        for flag, module, label in (("--apparmor", "apparmor", "none"), ("--process-label", "selinux", "a_u:b_r:c_t:s0")):
            if not os.path.exists(f"/sys/kernel/security/{module}") and not os.path.exists(f"/sys/fs/{module}"):
                error = self.oci("exec", flag, label, self.name, "true", status=1).stderr
                self.assertIn("set the labels" if "set the labels" in error else "look for the security modules", error)
        self.delete()


class Groups(oci_test.OciTest):
    def test_exec_in_a_group_below(self):
        pid = self.started("sleep", "1000")
        below = os.path.join(group_of(pid), "below", "deep")
        os.makedirs(below)
        out = self.oci("exec", "--cgroup", "below/deep", self.name, "cat", "/proc/self/cgroup").stdout
        self.assertTrue(out.rstrip().endswith("/below/deep"), out)
        out = self.oci("exec", "--cgroup", "/below", self.name, "cat", "/proc/self/cgroup").stdout
        self.assertTrue(out.rstrip().endswith("/below"), out)
        self.assertIn("--cgroup: open nosuch", self.oci("exec", "--cgroup", "nosuch", self.name, "true", status=1).stderr)
        self.assertIn("--cgroup: open ../x", self.oci("exec", "--cgroup", "../x", self.name, "true", status=1).stderr)
        self.delete()

    def named(self, name, path):
        self.config["linux"]["cgroupsPath"] = path
        self.save()
        saved, self.name = self.name, name
        try:
            self.create()
        finally:
            self.name = saved

    def test_groups_on_the_way_go_when_nobody_is_in_them(self):
        self.bundle("sleep", "1000")
        path = f"{self.name}-way/deep/"
        self.named(self.name + "-1", path + "1")
        self.named(self.name + "-2", path + "2")
        with open(os.path.join(self.root, self.name + "-1", "state.json"), encoding="utf-8") as f:
            way = os.path.dirname(os.path.dirname(group_of(json.load(f)["pid"])))
        self.assertTrue(way.endswith("-way"), way)
        self.oci("delete", "--force", self.name + "-1")
        self.assertEqual([n for n in os.listdir(os.path.join(way, "deep")) if os.path.isdir(os.path.join(way, "deep", n))], ["2"])
        self.oci("delete", "--force", self.name + "-2")
        self.assertFalse(os.path.exists(way))
        # What was there before is not ours to remove.
        os.mkdir(way)
        self.named(self.name + "-1", path + "1")
        self.oci("delete", "--force", self.name + "-1")
        self.assertEqual([n for n in os.listdir(way) if os.path.isdir(os.path.join(way, n))], [])
        os.rmdir(way)

    def test_a_failed_update_leaves_the_devices(self):
        self.bundle("sleep", "1000")
        self.caps("CAP_MKNOD")
        self.create()
        self.oci("start", self.name)
        allow = {"devices": [{"allow": True, "type": "c", "major": 10, "minor": 666, "access": "m"}]}
        make = ["exec", "--cap", "CAP_MKNOD", self.name, "sh", "-c", "rm -f /tmp/x; mknod /tmp/x c 10 666"]

        def update(resources, status):
            return self.oci("update", "--resources", "-", self.name, status=status, stdin=None, input=json.dumps(resources)).stderr

        self.oci(*make, status=1)
        update({**allow, "unified": {"nosuch.file": "1"}}, 1)
        self.oci(*make, status=1)
        update({"devices": [{"allow": True, "type": "x"}]}, 1)
        update(allow, 0)
        self.oci(*make)
        update({"devices": [{"allow": False}], "unified": {"nosuch.file": "1"}}, 1)
        self.oci(*make)
        self.delete()


class Sentences(oci_test.OciTest):
    def test_a_sysctl_by_its_name(self):
        self.bundle("true")
        for name, value, text in (("kernel.core_pattern", "x", "sysctls: kernel.core_pattern: belongs to no namespace"),
                                  ("net.ipv4.ip_forward", "1\n2", "sysctls: net.ipv4.ip_forward: the value is not one line"),
                                  ("/net/a", "1", "sysctls: /net/a: is no name of a sysctl")):
            self.config["linux"]["sysctl"] = {name: value}
            self.save()
            self.assertIn(text, self.create(status=1))
        self.config["linux"]["sysctl"] = {"net.ipv4.ip_forward": "1"}
        self.config["linux"]["namespaces"] = [n for n in self.config["linux"]["namespaces"] if n["type"] != "network"]
        self.save()
        self.assertIn("sysctls: net.ipv4.ip_forward: is of a namespace that is kept", self.create(status=1))

    def test_targets_behind_links_that_lead_nowhere(self):
        source = os.path.join(self.dir, "file")
        with open(source, "w", encoding="ascii") as f:
            f.write("bound")
        self.bundle("sh", "-c", "cat /etc/resolv.conf /run/systemd/resolve/stub; ls -d /srv/made/dir")
        os.symlink("../run/systemd/resolve/stub", os.path.join(self.rootfs, "etc", "resolv.conf"))
        os.symlink("/srv/made", os.path.join(self.rootfs, "var"))
        self.config["mounts"] += [{"destination": "/etc/resolv.conf", "type": "bind", "source": source, "options": ["bind"]},
                                  {"destination": "/var/dir", "type": "tmpfs", "source": "tmpfs"}]
        self.save()
        self.assertEqual(self.run_it().stdout, "boundbound/srv/made/dir\n")
        self.assertTrue(os.path.isdir(os.path.join(self.rootfs, "srv", "made", "dir")))


if __name__ == "__main__":
    unittest.main()
