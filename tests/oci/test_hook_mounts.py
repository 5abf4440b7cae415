# SPDX-License-Identifier: Apache-2.0
"""Mounts that hooks make below the bundle's root, as GPU hooks do: the program sees them, and the host never has them."""
import os

import oci_test

# A hook of the runtime's namespaces enters the container's mount namespace by the pid of the state on its standard input.
ENTER = "exec nsenter --mount=/proc/$(sed 's/.*\"pid\":[ ]*\\([0-9]*\\).*/\\1/' | head -n 1)/ns/mnt sh -ec '{script}'"
DIRECTLY = "cat >/dev/null; {script}"
LOOK = "cat /mnt/dir/seen /mnt/file; ls /mnt"


class HookMounts(oci_test.OciTest):
    def setUp(self):
        super().setUp()
        self.source = os.path.join(self.dir, "source")
        os.mkdir(self.source)
        os.chmod(self.dir, 0o755)
        for path in (os.path.join(self.source, "seen"), os.path.join(self.dir, "one")):
            with open(path, "w", encoding="ascii") as f:
                f.write(os.path.basename(path) + "\n")
        os.mkdir(os.path.join(self.rootfs, "mnt", "dir"))
        with open(os.path.join(self.rootfs, "mnt", "file"), "w", encoding="ascii"):
            pass

    def hooks(self, kind, how, script=None):
        """A hook that puts a directory and a file into the root, at the path of the bundle."""
        script = script or (f"mount --bind {self.source} {self.rootfs}/mnt/dir; "
                            f"mount --bind {self.dir}/one {self.rootfs}/mnt/file")
        self.config["hooks"] = {kind: [{"path": "/bin/sh", "args": ["sh", "-ec", how.format(script=script)],
                                        "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]}
        self.save()

    def assertSeen(self, **kwargs):
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            before = f.read()
        self.assertEqual(self.run_it(**kwargs).stdout, "seen\none\ndir\nfile\n")
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            self.assertEqual(f.read(), before)
        # They were never in the root itself.
        self.assertEqual(os.listdir(os.path.join(self.rootfs, "mnt", "dir")), [])
        self.assertEqual(os.path.getsize(os.path.join(self.rootfs, "mnt", "file")), 0)

    def ways(self):
        return (("createContainer", DIRECTLY), ("prestart", ENTER), ("createRuntime", ENTER))

    def test_seen_by_the_program(self):
        for kind, how in self.ways():
            with self.subTest(kind=kind):
                self.bundle("sh", "-c", LOOK)
                self.hooks(kind, how)
                self.assertSeen()

    def test_whatever_the_root_is(self):
        for name, change in (("read-only", lambda c: c["root"].update({"readonly": True})),
                             ("slave", lambda c: c["linux"].update({"rootfsPropagation": "rslave"})),
                             ("shared", lambda c: c["linux"].update({"rootfsPropagation": "shared"})),
                             ("absolute", lambda c: c["root"].update({"path": self.rootfs}))):
            for kind, how in self.ways():
                with self.subTest(name=name, kind=kind):
                    self.bundle("sh", "-c", LOOK)
                    change(self.config)
                    self.hooks(kind, how)
                    self.assertSeen()

    def test_without_pivot(self):
        self.bundle("sh", "-c", LOOK)
        self.hooks("createContainer", DIRECTLY)
        before = self.mounts()
        self.assertEqual(self.run_it("--no-pivot").stdout, "seen\none\ndir\nfile\n")
        self.assertEqual(self.mounts(), before)

    def mounts(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return f.read()

    def test_in_a_user_namespace(self):
        """Also where the directory of the bundle is closed to the users of that namespace: a hook of the host enters it as root."""
        for kind, how, mode in (("createContainer", DIRECTLY, 0o755), ("prestart", ENTER, 0o755), ("prestart", ENTER, 0o700)):
            with self.subTest(kind=kind, mode=mode):
                self.bundle("sh", "-c", LOOK)
                self.config["linux"]["namespaces"].append({"type": "user"})
                for name in ("uidMappings", "gidMappings"):
                    self.config["linux"][name] = [{"containerID": 0, "hostID": 100000, "size": 2000}]
                for top, dirs, files in os.walk(self.rootfs):
                    for name in dirs + files:
                        os.lchown(os.path.join(top, name), 100000, 100000)
                os.chown(self.rootfs, 100000, 100000)
                os.chmod(self.dir, mode)
                self.hooks(kind, how)
                self.assertSeen()

    def test_in_the_mount_namespace_of_the_host(self):
        """The tree is made in a namespace that the program is not in; what the hook has put there goes with it."""
        for kind, how in self.ways():
            with self.subTest(kind=kind):
                self.bundle("sh", "-c", LOOK)
                self.config["linux"]["namespaces"] = [n for n in self.config["linux"]["namespaces"] if n["type"] != "mount"]
                self.hooks(kind, how)
                self.assertSeen()

    def test_the_hook_fails_behind_its_mount(self):
        before = self.mounts()
        for kind, how in self.ways():
            with self.subTest(kind=kind):
                self.bundle("true")
                self.hooks(kind, how, f"mount --bind {self.source} {self.rootfs}/mnt/dir; exit 3")
                self.assertIn("exit status 3", self.create(status=1))
                self.assertEqual(self.mounts(), before)

    def test_the_tree_is_whole_when_a_hook_runs(self):
        """It finds the mounts of config.json below the bundle's root, in a namespace that sends nothing to the host's."""
        for kind, how in self.ways():
            with self.subTest(kind=kind):
                self.bundle("sh", "-c", "cat /mnt/file")
                self.hooks(kind, how, f"grep -c \" {self.rootfs}/proc .* - proc \" /proc/self/mountinfo >{self.dir}/found; "
                                      f"grep -c shared: /proc/self/mountinfo >>{self.dir}/found || true; "
                                      f"mount --bind {self.dir}/found {self.rootfs}/mnt/file")
                self.assertEqual(self.run_it().stdout, "1\n0\n")
