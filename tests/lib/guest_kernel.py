# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel, as tools/guest-kernel has unpacked it: the image, and its first root with the modules that it needs."""
import glob
import os
import re
import stat

# What init.c needs before it has a root, and what a node needs of a kernel that has next to nothing built in.
MODULES = ("virtio_mmio", "virtio_console", "virtio_blk", "virtio-rng", "bfq", "overlay", "loop", "veth", "bridge", "nf_tables", "nft_chain_nat",
           "nft_masq", "nft_ct", "tun", "dummy", "unix_diag", "tcp_diag", "udp_diag", "raw_diag", "af_packet_diag", "netlink_diag",
           "nft_compat", "xt_mark", "nf_conntrack_netlink", "quota_v2")


class Missing(Exception):
    pass


class Kernel:
    def __init__(self, top):
        images = sorted(glob.glob(os.path.join(top, "boot", "vmlinuz-*")))
        if not images:
            raise Missing(f"no kernel in {top}: tools/guest-kernel fetches it")
        self.image = images[-1]
        self.version = os.path.basename(self.image).partition("-")[2]
        tree = os.path.join(top, "lib", "modules", self.version, "kernel")
        self.files = {}
        for folder, _, names in os.walk(tree):
            self.files.update({plain(n[:-3]): os.path.join(folder, n) for n in names if n.endswith(".ko")})

    def modules(self, wanted=MODULES):
        """[(name, bytes)] of these modules and of what they need, in the order in which they can be loaded."""
        found = {}

        def take(name):
            if name in found:
                return
            if name not in self.files:
                raise Missing(f"{self.image} has no module {name}")
            with open(self.files[name], "rb") as f:
                data = f.read()
            for needed in re.search(rb"\0depends=([^\0]*)\0", data).group(1).decode().split(","):
                if needed:
                    take(plain(needed))
            found[name] = data

        for name in wanted:
            take(plain(name))
        return list(found.items())

    def first_root(self, init, wanted=MODULES):
        """The bytes of an initramfs with the program `init` and these modules."""
        modules = self.modules(wanted)
        paths = "".join(f"/modules/{name}.ko\n" for name, _ in modules)
        with open(init, "rb") as f:
            entries = [("init", stat.S_IFREG | 0o755, f.read()), ("modules", stat.S_IFDIR | 0o755, b""),
                       ("modules/list", stat.S_IFREG | 0o644, paths.encode())]
        entries += [(f"modules/{name}.ko", stat.S_IFREG | 0o644, data) for name, data in modules]
        return b"".join(cpio(*e) for e in entries) + cpio("TRAILER!!!", 0, b"")


def plain(name):
    """The kernel takes - and _ in the name of a module for the same."""
    return name.replace("-", "_")


def padded(data):
    return data + b"\0" * (-len(data) % 4)


def cpio(name, mode, data):
    """One entry of a cpio archive in the form that the kernel reads (newc)."""
    cpio.inode += 1
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (cpio.inode, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
    header = b"070701" + b"".join(b"%08X" % f for f in fields)
    return padded(header + name.encode() + b"\0") + padded(data)


cpio.inode = 0
