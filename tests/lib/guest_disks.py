# SPDX-License-Identifier: Apache-2.0
"""The guest's disk, a sparse file in four parts: its root with the programs under test, swap, one without anything, one with quotas."""
import glob
import gzip
import os
import re
import shutil
import struct
import subprocess

ROOT_BYTES = 1 << 30
SWAP_BYTES = 128 << 20
RAW_BYTES = 64 << 20
QUOTA_BYTES = 256 << 20
# In the order of their numbers: bytes, and the kind that a table of partitions has for it.
PARTS = ((ROOT_BYTES, 0x83), (SWAP_BYTES, 0x82), (RAW_BYTES, 0x83), (QUOTA_BYTES, 0x83))
SECTOR = 512
ALIGN = 1 << 20
APPLETS = ("sh", "true", "sleep", "cat", "dd", "mount", "ls", "mkdir", "rmdir", "echo", "test", "tail")
GUEST = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "guest")
CALLERS = ("podman", "conmon", "containerd", "containerd-shim-runc-v2", "ctr", "criu", "tar", "ip", "iptables-save", "iptables-restore",
           "ip6tables-save", "ip6tables-restore")
# Loaded by iptables where criu locks a network.
XTABLES = ("libxt_mark.so", "libxt_standard.so")
CALLER_APPLETS = ("sed", "seq", "find", "head", "grep", "wc", "kill", "ln", "[", "tar", "id")
CRIU_APPLETS = ("rm", "cp", "mv", "gzip")
MKIMAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "mkimage")


class Tree:
    """A directory that becomes the root disk."""

    def __init__(self, top):
        self.top = top
        for name in ("bin", "dev", "proc", "sys", "tmp", "run", "root", "etc", "tests", "var/lib", "sys/fs/cgroup"):
            os.makedirs(os.path.join(top, name), exist_ok=True)
        for name in ("sbin", "usr/bin", "usr/sbin"):
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            os.symlink("/bin", os.path.join(top, name))
        self.write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
        self.write("etc/group", "root:x:0:\n")

    def write(self, name, text):
        path = os.path.join(self.top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def put(self, source, name):
        path = os.path.join(self.top, name.lstrip("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(source, path)

    def put_program(self, source, name):
        """A dynamic program with all that its loader needs."""
        self.put(source, name)
        said = subprocess.run(["ldd", source], check=True, capture_output=True, text=True)
        for path in re.findall(r"(/\S+) \(0x", said.stdout):
            self.put(path, path)

    def link(self, target, name):
        os.symlink(target, os.path.join(self.top, name))


def sparse(path, size):
    with open(path, "wb") as f:
        f.truncate(size)
    return path


def quietly(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stdout}{done.stderr}")


def fill(tree, build, names):
    """The programs under test and the test programs; `names` are those of the latter."""
    tree.put(os.path.join(build, "nacre"), "bin/nacre")
    tree.put(os.path.join(build, "tests", "guest", "project"), "bin/project")
    for helper in glob.glob(os.path.join(build, "libexec", "nacre", "nacre-*")):
        if os.path.isfile(helper):
            tree.put_program(helper, f"libexec/nacre/{os.path.basename(helper)}")
    image = os.path.join(tree.top, "images", "busybox.tar")
    os.mkdir(os.path.dirname(image))
    quietly(MKIMAGE, "--out", image, "--format", "oci", "--name", "busybox", "--busybox")
    for top in ("", "images/rootfs/"):
        tree.put("/bin/busybox", f"{top}bin/busybox")
        for applet in APPLETS:
            tree.link("busybox", f"{top}bin/{applet}")
    for name in names:
        tree.put(os.path.join(build, "tests", "guest", f"guest-{name}"), f"tests/{name}")
    if names:
        fill_labels(tree)


def fill_labels(tree):
    labels = os.path.join(tree.top, "labels")
    os.mkdir(labels)
    # Debian's own list of what AppArmor can do, since this host's kernel may have none to be asked.
    quietly("/usr/sbin/apparmor_parser", "-K", "-M", "/etc/apparmor.d/abi/3.0", "-o", f"{labels}/apparmor", f"{GUEST}/apparmor.profile")
    quietly("/usr/bin/checkpolicy", "-U", "allow", "-c", "31", "-o", f"{labels}/selinux", f"{GUEST}/selinux.conf")


def with_levels(policy):
    """The same policy with levels, and with the label that OCI runtime-tools give to mounts."""
    access = "class process { transition dyntransition }\n"
    policy = policy.replace(access, access + "sensitivity s0;\ndominance { s0 }\ncategory c715;\ncategory c811;\n"
                            "level s0:c715,c811;\nmlsconstrain process transition (l1 dom l2);\n")
    policy = policy.replace("type box_t;", "type box_t;\ntype svirt_sandbox_file_t;")
    policy = policy.replace("user node_u roles { node_r };", "".join(
        f"user {user} roles {{ node_r }} level s0 range s0 - s0:c715,c811;\n" for user in ("node_u", "system_u")))
    return re.sub(r"(node_u:\w+:node_t)(?=;?$)", r"\1:s0", policy, flags=re.M)


def fill_validation(tree, place, cases, script):
    """Validation programs that were built in `place`, what they need, and the script that runs them."""
    top = os.path.join(tree.top, "validation")
    for case in cases:
        tree.put(os.path.join(place, "bin", case), f"validation/bin/{case}")
    tree.put(os.path.join(place, "bin", "runtimetest"), "validation/runtimetest")
    # They call tar without a word about compression, and busybox's wants one.
    with gzip.open(os.path.join(place, "rootfs-amd64.tar.gz")) as source, open(f"{top}/rootfs-amd64.tar.gz", "wb") as f:
        shutil.copyfileobj(source, f)
    for applet in CALLER_APPLETS:
        tree.link("busybox", f"bin/{applet}")
    quietly("/usr/sbin/apparmor_parser", "-K", "-M", "/etc/apparmor.d/abi/3.0", "-o", f"{top}/apparmor", f"{GUEST}/validation.profile")
    with open(f"{GUEST}/selinux.conf", encoding="utf-8") as f:
        tree.write("validation/selinux.conf", with_levels(f.read()))
    quietly("/usr/bin/checkpolicy", "-M", "-U", "allow", "-c", "31", "-o", f"{top}/selinux", f"{top}/selinux.conf")
    tree.put(script, "tests/validation")


def fill_callers(tree, script):
    """What calls nacre-oci from Debian's packages, and the script that lets it do so."""
    for name in CALLERS:
        tree.put_program(shutil.which(name), f"bin/{os.path.basename(name)}")
    for name in XTABLES:
        for path in glob.glob(f"/usr/lib/*/xtables/{name}"):
            tree.put(path, path)
    for applet in {*CALLER_APPLETS, *CRIU_APPLETS} - set(CALLERS):
        tree.link("busybox", f"bin/{applet}")
    tree.write("etc/containers/policy.json", '{"default": [{"type": "insecureAcceptAnything"}]}')
    tree.write("etc/containers/containers.conf", '[engine]\nconmon_path = ["/bin/conmon"]\n[network]\nnetwork_backend = "cni"\n')
    tree.put(script, "tests/callers")


def make(place, tree):
    """The path of the disk, made in the directory `place`."""
    disk = sparse(os.path.join(place, "disk.img"), ALIGN + sum(size for size, _ in PARTS))
    table, begin = b"", ALIGN
    begins = []
    for size, kind in PARTS:
        # Cylinders mean nothing to a kernel.
        table += struct.pack("<B3sB3sII", 0, b"", kind, b"", begin // SECTOR, size // SECTOR)
        begins.append(begin)
        begin += size
    # What a crash would leave on it is nobody's business: the guest lives once.
    quietly("/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", tree.top, "-E", f"offset={begins[0]}", disk, f"{ROOT_BYTES >> 10}k")
    quietly("/sbin/mke2fs", "-q", "-t", "ext4", "-O", "quota,project", "-E", f"quotatype=prjquota,offset={begins[3]}", disk,
            f"{QUOTA_BYTES >> 10}k")
    swap = sparse(os.path.join(place, "swap.img"), SWAP_BYTES)
    os.chmod(swap, 0o600)
    quietly("/sbin/mkswap", "-q", swap)
    with open(swap, "rb") as source, open(disk, "r+b") as f:
        f.seek(446)
        f.write(table.ljust(64, b"\0") + b"\x55\xaa")
        # All there is of it is in its first page.
        f.seek(begins[1])
        f.write(source.read(4096))
    os.unlink(swap)
    return disk
