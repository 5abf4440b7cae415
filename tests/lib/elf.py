# SPDX-License-Identifier: Apache-2.0
"""As much of the ELF format as tests look at."""
import functools
import struct

PT_LOAD, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 1, 3, 0x6474e551, 0x6474e552
PF_X, PF_W, PF_R = 1, 2, 4


@functools.lru_cache(None)
def segments(path):
    """[(type, flags, bytes)] of a 64-bit file."""
    with open(path, "rb") as f:
        data = f.read()
    offset, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    found = []
    for i in range(count):
        kind, flags, at, _, _, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)
        found.append((kind, flags, data[at:at + length]))
    return found


def holds(path, word):
    """Whether what is loaded of a program has these bytes in it; debug information is not."""
    return any(word in data for kind, _, data in segments(path) if kind == PT_LOAD)


def is_dynamic(path):
    """Whether it needs an interpreter, and so libraries."""
    return any(kind == PT_INTERP for kind, _, _ in segments(path))
