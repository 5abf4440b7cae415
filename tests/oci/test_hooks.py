# SPDX-License-Identifier: Apache-2.0
"""Hooks: when, where, with which state, and what a failure does."""
import json
import os

import oci_test

SCRIPT = """#!/bin/sh
cat > {out}.state
env > {out}.env
pwd > {out}.cwd
echo "$@" > {out}.args
readlink /proc/self/ns/mnt > {out}.mnt
readlink /proc/self/ns/pid > {out}.pid
echo {kind} >> {log}
exit {status}
"""
KINDS = ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"]


class Hooks(oci_test.OciTest):
    def hook(self, kind, status=0, **more):
        """A hook that writes down what it sees; the one of the container's own root does that in there."""
        inside = kind == "startContainer"
        directory = os.path.join(self.rootfs, "tmp") if inside else self.dir
        seen_as = "/tmp" if inside else self.dir
        path = os.path.join(directory, f"hook-{kind}")
        with open(path, "w", encoding="utf-8") as f:
            f.write(SCRIPT.format(out=f"{seen_as}/{kind}", kind=kind, status=status,
                                  log="/tmp/order" if inside else f"{self.dir}/order"))
        os.chmod(path, 0o755)
        self.config.setdefault("hooks", {}).setdefault(kind, []).append(
            {"path": f"{seen_as}/hook-{kind}", "args": ["zero", "one"], "env": ["PATH=/bin:/usr/bin", "HOOK=yes"], **more})
        self.save()

    def seen(self, kind, what):
        inside = kind == "startContainer"
        with open(os.path.join(self.rootfs, "tmp") + f"/{kind}.{what}" if inside else f"{self.dir}/{kind}.{what}",
                  encoding="utf-8") as f:
            return f.read()

    def order(self):
        path = os.path.join(self.dir, "order")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as f:
            return f.read().split()

    def test_order_state_and_places(self):
        self.bundle("sleep", "1000")
        self.config["annotations"] = {"a": "b"}
        self.config["process"]["env"] += ["LD_PRELOAD=./x.so", "BASH_ENV=/x"]
        for kind in KINDS:
            self.hook(kind)
        self.create()
        self.assertEqual(self.order(), ["prestart", "createRuntime", "createContainer"])
        self.oci("start", self.name)
        self.assertEqual(self.order(), ["prestart", "createRuntime", "createContainer", "poststart"])
        pid = self.state()["pid"]
        container = {n: os.readlink(f"/proc/{pid}/ns/{n}") for n in ("mnt", "pid")}
        host = {n: os.readlink(f"/proc/self/ns/{n}") for n in ("mnt", "pid")}
        self.oci("kill", self.name, "KILL")
        self.wait_for("stopped")
        self.oci("delete", self.name)
        self.assertEqual(self.order()[-1], "poststop")
        expected = {"prestart": "creating", "createRuntime": "creating", "createContainer": "creating",
                    "startContainer": "created", "poststart": "running", "poststop": "stopped"}
        for kind, status in expected.items():
            state = json.loads(self.seen(kind, "state"))
            self.assertEqual((state["status"], state["id"], state["annotations"]), (status, self.name, {"a": "b"}), kind)
            inside = kind in ("createContainer", "startContainer")
            if status != "stopped":
                self.assertEqual(state["pid"], 1 if inside else pid, kind)
            for n, file in (("mnt", "mnt"), ("pid", "pid")):
                self.assertEqual(self.seen(kind, file).strip(), (container if inside else host)[n], (kind, n))
            variables = dict(v.split("=", 1) for v in self.seen(kind, "env").splitlines())
            for name in ("PWD", "SHLVL", "OLDPWD", "_"):  # the shell's own
                variables.pop(name, None)
            self.assertEqual(variables, {"PATH": "/bin:/usr/bin", "HOOK": "yes"}, kind)
            self.assertEqual(self.seen(kind, "cwd"), "/\n")
            self.assertEqual(self.seen(kind, "args"), "one\n")

    def test_a_hook_that_fails_ends_the_creation(self):
        for kind in ("prestart", "createRuntime", "createContainer"):
            self.bundle("sleep", "1000")
            self.config.pop("hooks", None)
            self.hook(kind, status=3)
            self.hook("poststop")
            before = self.order().count("poststop")
            self.assertIn(f"hook {kind}[0] ({self.dir}/hook-{kind}): exit status 3", self.create(status=1))
            self.assertEqual(self.order().count("poststop"), before + 1)
            self.assertEqual(os.listdir(self.root), [])
            self.assertEqual(self.groups(), [])

    def test_a_hook_that_fails_ends_the_start(self):
        for kind in ("startContainer", "poststart"):
            self.bundle("sleep", "1000")
            self.config.pop("hooks", None)
            self.hook(kind, status=4)
            self.create()
            self.assertIn("exit status 4", self.oci("start", self.name, status=1).stderr)
            self.wait_for("stopped")
            self.oci("delete", self.name)

    def test_a_poststop_that_fails_is_a_warning(self):
        self.bundle("true")
        self.config["hooks"] = {"poststop": [{"path": "/bin/false"}]}
        self.hook("poststop")
        done = self.run_it()
        self.assertEqual(self.order(), ["poststop"])
        self.assertIn("warning: hook poststop[0]", done.stderr)
        self.assertEqual(os.listdir(self.root), [])

    def test_a_timeout(self):
        self.bundle("true")
        self.config["hooks"] = {"prestart": [{"path": "/bin/sleep", "args": ["sleep", "1000"], "timeout": 1}]}
        self.save()
        self.assertIn("did not end within 1 s", self.create(status=1))

    def test_a_hook_that_is_not_there(self):
        self.bundle("true")
        self.config["hooks"] = {"createRuntime": [{"path": "/nonexistent"}]}
        self.save()
        self.assertIn("hook createRuntime[0] (/nonexistent): open: No such file", self.create(status=1))

    def test_a_hook_of_the_image_has_the_containers_filter(self):
        """security.md A25: it is a program of the image, which nothing but the container's own walls may hold."""
        self.bundle("true")
        self.config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
                                           "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}
        path = os.path.join(self.rootfs, "tmp", "hook")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\ngrep -E '^(NoNewPrivs|Seccomp|CapBnd):' /proc/self/status >/tmp/seen\nmkdir /tmp/made 2>>/tmp/seen\ntrue\n")
        os.chmod(path, 0o755)
        self.config["hooks"] = {"startContainer": [{"path": "/tmp/hook", "env": ["PATH=/bin"]}]}
        for no_new_privs in (True, False):
            self.config["process"]["noNewPrivileges"] = no_new_privs
            self.save()
            self.run_it()
            with open(os.path.join(self.rootfs, "tmp", "seen"), encoding="utf-8") as f:
                seen = f.read().splitlines()
            bounding = next(l for l in seen if l.startswith("CapBnd:"))
            self.assertEqual([f"NoNewPrivs:\t{int(no_new_privs)}", "Seccomp:\t2"], [l for l in seen[:3] if l != bounding])
            self.assertEqual(0, int(bounding.split()[1], 16) & 1 << 21, "CAP_SYS_ADMIN")
            self.assertIn("No space left on device", seen[-1])
            self.assertFalse(os.path.exists(os.path.join(self.rootfs, "tmp", "made")))

    def test_a_path_that_is_no_namespace(self):
        for path in ("/proc/self/mounts", "/dev/null", "/proc/self/ns/uts"):
            self.bundle("true")
            self.config["linux"]["namespaces"] = [n if n["type"] != "ipc" else {**n, "path": path}
                                                  for n in self.config["linux"]["namespaces"]]
            self.save()
            self.assertIn(f"{path} is no ipc namespace", self.create(status=1))
