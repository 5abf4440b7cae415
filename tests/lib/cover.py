# SPDX-License-Identifier: Apache-2.0
"""An empty file system over a folder of the host, for this mount namespace: the tree under test stays where it is below it."""
import ctypes
import os

MS_NODEV = 4
MS_BIND = 0x1000
MS_REC = 0x4000
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags, data=None):
    if libc.mount(os.fsencode(source), os.fsencode(target), kind, flags, data):
        error = ctypes.get_errno()
        raise OSError(error, f"mount {source} on {target}: {os.strerror(error)}")


def build_of(program):
    """The build folder that a program belongs to: the outermost with meson's files, or the program's own."""
    build = folder = os.path.dirname(os.path.realpath(program))
    while folder != "/":
        build = folder if os.path.isdir(os.path.join(folder, "meson-info")) else build
        folder = os.path.dirname(folder)
    return build


def needed(folder, keep):
    """Those of the folders that would be covered, without those that another one of them holds."""
    found = {f for f in map(os.path.realpath, keep) if f.startswith(folder + "/")}
    return sorted(f for f in found if not any(f.startswith(other + "/") for other in found))


def cover(folder, *keep, mode=b"mode=1777"):
    """Covers `folder` with a tmpfs, but for the tree and the folders `keep`. OSError."""
    folder = os.path.realpath(folder)
    kept = [(f, os.open(f, os.O_PATH | os.O_CLOEXEC)) for f in needed(folder, [ROOT, *keep])]
    mount("tmpfs", folder, b"tmpfs", MS_NODEV, mode)
    for path, fd in kept:
        os.makedirs(path)
        mount(f"/proc/self/fd/{fd}", path, None, MS_BIND | MS_REC)
        os.close(fd)
