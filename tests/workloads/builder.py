# SPDX-License-Identifier: Apache-2.0
"""Images from Debian's packages, without a registry: one layer that all share, and one for each image with its own packages.

mmdebstrap makes the shared layer. The packages of an image are installed by apt in a chroot whose root is an overlay on it; what the
overlay's upper directory has then is the image's layer. After them the script setup/NAME of this directory runs there: configuration,
content, users. Everything lies below build/workloads: images are OCI layouts that share the file of the first layer by hard links. An
image is made again when its row, its script, this file or the base is another one.

The root that a script sees is that of the image alone; it has a network (of whoever builds), since apt needs one.
"""
import fcntl
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess

import images
import nacre_test

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(nacre_test.BUILD, "workloads")
MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"
# As images of Debian do it: none of this is what a program reads while it works.
LEAN = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*"]
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root"}
LAYER = "application/vnd.oci.image.layer.v1.tar"


def run(*command, **kwargs):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, **kwargs)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)[:300]}: exit status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def key_of(*parts):
    return hashlib.sha256("\0".join([read(os.path.abspath(__file__)), *parts]).encode()).hexdigest()


def pack(folder, tar):
    """The directory as the tar of a layer; its digest and size."""
    run("tar", "--create", "--file", tar, "--directory", folder, "--numeric-owner", "--xattrs", "--xattrs-include=security.capability",
        "--sort=name", ".")
    with open(tar, "rb") as f:
        return {"digest": "sha256:" + hashlib.file_digest(f, "sha256").hexdigest(), "size": os.path.getsize(tar)}


def whiteouts(upper):
    """What an overlay says by devices and attributes, a layer says by names."""
    for folder, names, files in os.walk(upper):
        try:
            opaque = os.getxattr(folder, "trusted.overlay.opaque") == b"y"
        except OSError:
            opaque = False
        if opaque:
            write(os.path.join(folder, ".wh..wh..opq"), "")
        for name in names + files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if status.st_rdev == 0 and status.st_mode & 0o170000 == 0o020000:
                os.unlink(path)
                write(os.path.join(folder, ".wh." + name), "")


def lock():
    """Waits until no other process builds; the descriptor holds it."""
    os.makedirs(TOP, exist_ok=True)
    held = open(os.path.join(TOP, "lock"), "w", encoding="ascii")  # pylint: disable=consider-using-with
    fcntl.flock(held, fcntl.LOCK_EX)
    return held


class Base:
    """The layer that all images share. `packages` come into it beside the smallest Debian."""

    def __init__(self, packages=()):
        self.key = key_of("base", SUITE, MIRROR, *packages)
        self.dir = os.path.join(TOP, "base-" + self.key[:12])
        self.root, self.tar = os.path.join(self.dir, "root"), os.path.join(self.dir, "layer.tar")
        if not os.path.exists(os.path.join(self.dir, "layer.json")):
            self.make(packages)
        self.descriptor = json.loads(read(os.path.join(self.dir, "layer.json")))
        self.installed = set(run("chroot", self.root, "dpkg-query", "-W", "-f=${Package}\\n").split())

    def make(self, packages):
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        os.makedirs(os.path.join(TOP, "archives"), exist_ok=True)
        run("mmdebstrap", "--mode=root", "--variant=minbase", "--quiet", '--aptopt=APT::Install-Recommends "false"',
            '--aptopt=Acquire::Languages "none"', "--dpkgopt=force-unsafe-io", *(f"--dpkgopt=path-exclude={path}" for path in LEAN),
            "--skip=cleanup/apt", "--include=" + ",".join(["ca-certificates", "netbase", *sorted(packages)]), SUITE, self.root,
            f"deb {MIRROR} {SUITE} main", f"deb-src {MIRROR} {SUITE} main")
        # Scripts of packages make links in there (update-alternatives).
        for number in range(1, 9):
            os.makedirs(os.path.join(self.root, f"usr/share/man/man{number}"), exist_ok=True)
        # Lists and packages of apt serve the other layers, and are in none.
        run("cp", "-r", os.path.join(self.root, "var/cache/apt/."), os.path.join(TOP, "archives"))
        os.rename(os.path.join(self.root, "var/lib/apt/lists"), os.path.join(self.dir, "lists"))
        shutil.rmtree(os.path.join(self.root, "var/cache/apt"))
        for name in ("var/lib/apt/lists", "var/cache/apt"):
            os.mkdir(os.path.join(self.root, name), 0o755)
        # Debian's scripts start no server in there.
        write(os.path.join(self.root, "usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n")
        os.chmod(os.path.join(self.root, "usr/sbin/policy-rc.d"), 0o755)
        for name in ("etc/resolv.conf", "etc/hostname"):
            if os.path.lexists(os.path.join(self.root, name)):
                os.unlink(os.path.join(self.root, name))
        write(os.path.join(self.dir, "layer.json"), json.dumps(pack(self.root, self.tar)))


class Chroot:
    """An overlay on the base in which packages are installed. A context manager; `upper` is what has changed."""

    def __init__(self, base, folder):
        self.base, self.dir = base, folder
        self.root, self.upper = os.path.join(folder, "root"), os.path.join(folder, "upper")

    def __enter__(self):
        work = os.path.join(self.dir, "work")
        for path in (self.root, self.upper, work):
            os.makedirs(path)
        run("mount", "-t", "overlay", "-o", f"lowerdir={self.base.root},upperdir={self.upper},workdir={work}", "overlay", self.root)
        # /etc/resolv.conf is not bound: the image would keep the file that it is bound on.
        shutil.copyfile("/etc/resolv.conf", os.path.join(self.root, "etc/resolv.conf"))
        for what, where in (("/dev", "dev"), ("/proc", "proc"), (os.path.join(self.base.dir, "lists"), "var/lib/apt/lists"),
                            (os.path.join(TOP, "archives"), "var/cache/apt")):
            run("mount", "--bind", what, os.path.join(self.root, where))
        return self

    def __call__(self, *command, **kwargs):
        return run("chroot", self.root, *command, env=ENV, **kwargs)

    def __exit__(self, *_):
        run("umount", "--recursive", self.root)
        os.unlink(os.path.join(self.upper, "etc/resolv.conf"))
        for name in ("root", "work"):
            shutil.rmtree(os.path.join(self.dir, name))


def make_layer(base, name, packages, folder):
    """Installs and sets up; returns the layer's descriptor, its tar is FOLDER/layer.tar."""
    with Chroot(base, folder) as chroot:
        missing = [p for p in packages if p not in base.installed]
        if missing:
            chroot("apt-get", "install", "-qq", "-y", *missing)
        script = os.path.join(HERE, "setup", name)
        if os.path.exists(script):
            chroot("sh", "-eu", "-s", input=read(script))
    whiteouts(os.path.join(folder, "upper"))
    descriptor = pack(os.path.join(folder, "upper"), os.path.join(folder, "layer.tar"))
    shutil.rmtree(os.path.join(folder, "upper"))
    return descriptor


def write_layout(folder, name, layers, settings):
    """layers: (descriptor, tar). Blobs are hard links, in a directory that nacre imports."""
    blobs = os.path.join(folder, "oci", "blobs", "sha256")
    os.makedirs(blobs)
    form = images.module()

    def blob(data):
        found = {"digest": form.digest(data), "size": len(data)}
        with open(os.path.join(blobs, found["digest"][7:]), "wb") as f:
            f.write(data)
        return found

    for descriptor, tar in layers:
        os.link(tar, os.path.join(blobs, descriptor["digest"][7:]))
    config = form.dump({"architecture": form.machine(), "os": "linux", "config": settings,
                        "rootfs": {"type": "layers", "diff_ids": [d["digest"] for d, _ in layers]}})
    manifest = form.dump({"schemaVersion": 2, "mediaType": form.MANIFEST, "config": dict(blob(config), mediaType=form.CONFIG),
                          "layers": [dict(d, mediaType=LAYER) for d, _ in layers]})
    entry = dict(blob(manifest), mediaType=form.MANIFEST, platform={"architecture": form.machine(), "os": "linux"},
                 annotations={"org.opencontainers.image.ref.name": name})
    write(os.path.join(folder, "oci", "oci-layout"), json.dumps({"imageLayoutVersion": "1.0.0"}))
    write(os.path.join(folder, "oci", "index.json"),
          json.dumps({"schemaVersion": 2, "mediaType": form.INDEX, "manifests": [entry]}))


def image(base, name, packages, settings):
    """The image as the path of an OCI layout."""
    folder = os.path.join(TOP, name)
    key = key_of(base.key, name, *packages, json.dumps(settings, sort_keys=True), read(os.path.join(HERE, "setup", name)),
                 platform.machine())
    if read(os.path.join(folder, "key")) != key:
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        descriptor = make_layer(base, name, packages, folder)
        write_layout(folder, name, [(base.descriptor, base.tar), (descriptor, os.path.join(folder, "layer.tar"))], settings)
        write(os.path.join(folder, "key"), key)
    return os.path.join(folder, "oci")
