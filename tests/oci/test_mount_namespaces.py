# SPDX-License-Identifier: Apache-2.0
"""Containers in a mount namespace that is not theirs, and the order of mounts."""
import os
import subprocess
import unittest

import oci_test


def mounts_of(pid):
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


class MountNamespaces(oci_test.OciTest):
    def without_own(self, *args):
        self.bundle(*args)
        self.namespaces = [n for n in self.config["linux"]["namespaces"] if n["type"] != "mount"]
        self.config["linux"]["namespaces"] = self.namespaces
        self.save()

    def look(self, namespace):
        """A container whose mount namespace is that of a process: nobody in there sees anything of it."""
        with open(os.path.join(self.rootfs, "secret"), "w", encoding="ascii") as f:
            f.write("hidden")
        self.config["linux"]["maskedPaths"] = ["/secret"]
        self.config["linux"]["readonlyPaths"] = ["/etc"]
        self.config["mounts"].append({"destination": "/mnt", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]})
        self.save()
        before = mounts_of(namespace)
        self.create()
        pid = self.state()["pid"]
        link = os.readlink(f"/proc/{namespace}/ns/mnt")
        self.assertEqual(os.readlink(f"/proc/{pid}/ns/mnt"), link)
        self.assertEqual(mounts_of(namespace), before)
        self.oci("start", self.name)
        out = self.oci("exec", self.name, "sh", "-c", "readlink /proc/self/ns/mnt; ls /proc/self >/dev/null && echo proc; ls -A /mnt; touch /mnt/x;"
                       "cat /secret; touch /etc/x 2>&1; pwd; ls -d /root /home /usr 2>/dev/null; true").stdout
        self.assertEqual(out.splitlines(), [link, "proc", "touch: /etc/x: Read-only file system", "/"])
        out = self.oci("exec", "--cwd", "/mnt", self.name, "ls").stdout
        self.assertEqual(out, "x\n")
        self.assertEqual(mounts_of(namespace), before)
        self.assertEqual(os.listdir(os.path.join(self.rootfs, "mnt")), [])
        self.delete()

    def test_that_of_the_runtime(self):
        self.without_own("sleep", "1000")
        self.look("self")

    def test_that_of_another_process(self):
        other = subprocess.Popen(["unshare", "--mount", "sh", "-c", "echo; exec sleep 1000"], stdout=subprocess.PIPE)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.addCleanup(other.stdout.close)
        # It writes once it is in the namespace.
        other.stdout.readline()
        self.without_own("sleep", "1000")
        self.namespaces.append({"type": "mount", "path": f"/proc/{other.pid}/ns/mnt"})
        self.save()
        self.look(other.pid)

    def test_refused(self):
        self.without_own("true")
        self.namespaces.append({"type": "user"})
        self.config["linux"]["uidMappings"] = self.config["linux"]["gidMappings"] = [{"containerID": 0, "hostID": 1000, "size": 10}]
        self.save()
        self.assertIn("linux.namespaces: a user namespace needs a mount namespace beside it", self.create(status=1))
        del self.namespaces[-1], self.config["linux"]["uidMappings"], self.config["linux"]["gidMappings"]
        self.config["mounts"][-1]["options"].append("unbindable")
        self.save()
        self.assertIn("unbindable only in a new mount namespace", self.create(status=1))

    def test_the_order_is_that_of_the_list(self):
        """Binds behind new file systems and between them, of directories and of files; on /proc/self/mountinfo it is seen since Linux 6.8."""
        source = os.path.join(self.dir, "source")
        os.makedirs(os.path.join(source, "dir"))
        open(os.path.join(source, "file"), "w", encoding="ascii").close()
        self.bundle("cat", "/proc/self/mountinfo")
        wanted = [m["destination"] for m in self.config["mounts"]]
        for i, (kind, options) in enumerate([("file", ["bind"]), ("dir", ["rbind", "unbindable"]), ("tmpfs", []), ("dir", ["bind", "slave"]),
                                             ("file", ["bind", "runbindable"]), ("tmpfs", ["unbindable"])]):
            new = kind == "tmpfs"
            self.config["mounts"].append({"destination": f"/order/{i}", "type": "tmpfs" if new else "bind",
                                          "source": "tmpfs" if new else os.path.join(source, kind), "options": options})
            wanted.append(f"/order/{i}")
        self.save()
        lines = [line.split() for line in self.run_it().stdout.splitlines()]
        self.assertEqual([words[4] for words in lines if words[4] in wanted], wanted)
        unbindable = [words[4] for words in lines if "unbindable" in words[6:]]
        self.assertEqual(unbindable, ["/order/1", "/order/4", "/order/5"])
        self.assertEqual([words for words in lines if "/d" == words[4] or "/f" == words[4]], [])
        self.assertEqual(len(lines), len(set(words[4] for words in lines)) + self.covered(lines))

    @staticmethod
    def covered(lines):
        """Mounts on a place that has one already: what hides and what is made read-only."""
        places = [words[4] for words in lines]
        return sum(places.count(p) - 1 for p in set(places) if p.startswith(("/proc", "/sys")))


if __name__ == "__main__":
    unittest.main()
