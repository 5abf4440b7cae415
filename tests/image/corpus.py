# SPDX-License-Identifier: Apache-2.0
"""Hostile layers (security.md 1.3.1), made on the spot: a list of (name, tar bytes, expectation).

The expectation is OK, REFUSED (an error of kind "invalid" or "exhausted"), ANY (either is right: the row is about escapes
only), a pattern of the answer, or a function that looks at the unpacked directory of a layer that must have been accepted.
"""
import io
import os
import stat
import tarfile

OK, REFUSED, ANY = "ok", "refused", "any"
CANARY = b""  # set by cases(): the path of a directory that must stay as it is, without its first slash

FILE, LINK, SYMLINK, CHAR, BLOCK, DIR, FIFO = (bytes([c]) for c in b"0123456")


def octal(value, width):
    return b"%0*o\0" % (width - 1, value)


def header(name, kind=FILE, size=0, link=b"", mode=b"0000644\0", uid=b"0000000\0", gid=b"0000000\0", mtime=b"00000000000\0",
           size_field=None, magic=b"ustar\00000", prefix=b"", major=0, minor=0, signed=False, checksum=None):
    """A header, field by field; what does not fit is cut."""
    block = name[:100].ljust(100, b"\0") + mode.ljust(8, b"\0")[:8] + uid.ljust(8, b"\0")[:8] + gid.ljust(8, b"\0")[:8]
    block += (size_field or octal(size, 12)).ljust(12, b"\0")[:12] + mtime.ljust(12, b"\0")[:12] + b" " * 8 + kind
    block += link[:100].ljust(100, b"\0") + magic.ljust(8, b"\0")[:8] + b"\0" * 64
    block += octal(major, 8) + octal(minor, 8) + prefix[:155].ljust(155, b"\0") + b"\0" * 12
    total = sum(b - 256 if signed and b > 127 else b for b in block)
    field = checksum if checksum is not None else b"%06o\0 " % (total & 0o777777)
    return block[:148] + field.ljust(8, b"\0")[:8] + block[156:]


def pad(data):
    return data + b"\0" * (-len(data) % 512)


def pax(records):
    """An extended header for the entry behind it."""
    body = b""
    for key, value in records.items():
        key = key.encode() if isinstance(key, str) else key
        n = len(key) + len(value) + 3
        while len(b"%d" % n) + len(key) + len(value) + 3 != n:
            n = len(b"%d" % n) + len(key) + len(value) + 3
        body += b"%d %s=%s\n" % (n, key, value)
    return header(b"PaxHeader", b"x", len(body)) + pad(body)


def long_name(name, kind=b"L"):
    return header(b"././@LongLink", kind, len(name) + 1) + pad(name + b"\0")


def entry(name, kind=FILE, data=b"", link=b"", **fields):
    """With GNU long names where a name or link does not fit."""
    out = b""
    if len(link) > 100:
        out += long_name(link, b"K")
    if len(name) > 100:
        out += long_name(name)
    return out + header(name, kind, len(data), link, **fields) + pad(data)


def tar(*parts):
    return b"".join(parts) + b"\0" * 1024


def at(path, check):
    def run(top):
        return check(os.lstat(os.path.join(top, path)))
    return run


def absent(*paths):
    return lambda top: not any(os.path.lexists(os.path.join(top, p)) for p in paths)


def whiteout(path):
    return at(path, lambda st: stat.S_ISCHR(st.st_mode) and st.st_rdev == 0)


def opaque(path):
    return lambda top: os.getxattr(os.path.join(top, path), "user.overlay.opaque") == b"y"


def content(path, data):
    def run(top):
        with open(os.path.join(top, path), "rb") as file:
            return file.read() == data
    return run


def escapes():
    """Each link tries to reach the canary's directory, and an entry then goes through it."""
    up = b"../" * 30
    for label, target in (("absolute", b"/" + CANARY), ("relative", up + CANARY)):
        yield "symlink-%s-then-file" % label, tar(entry(b"l", SYMLINK, link=target), entry(b"l/escaped", data=b"x")), ANY
        yield "symlink-%s-then-dir" % label, tar(entry(b"l", SYMLINK, link=target), entry(b"l/", DIR)), OK
        yield "symlink-%s-replaced-by-file" % label, tar(
            entry(b"l", SYMLINK, link=target + b"/file"), entry(b"l", data=b"mine")), content("l", b"mine")
        yield "symlink-%s-two-steps" % label, tar(
            entry(b"a", SYMLINK, link=target), entry(b"b", SYMLINK, link=b"a"), entry(b"b/escaped", data=b"x")), ANY
        yield "symlink-%s-slash-ended" % label, tar(entry(b"l/", SYMLINK, link=target + b"/"), entry(b"l/escaped", data=b"x")), ANY
        yield "symlink-%s-whiteout-through" % label, tar(entry(b"l", SYMLINK, link=target), entry(b"l/.wh.file")), ANY
        yield "symlink-%s-opaque-through" % label, tar(entry(b"l", SYMLINK, link=target), entry(b"l/.wh..wh..opq")), ANY
        yield "symlink-%s-hardlink-to-it" % label, tar(
            entry(b"l", SYMLINK, link=target + b"/file"), entry(b"h", LINK, link=b"l"), entry(b"h", data=b"x")), content("h", b"x")
        yield "symlink-%s-hardlink-chmod" % label, tar(
            entry(b"l", SYMLINK, link=target + b"/file"), entry(b"h", LINK, link=b"l", mode=b"0000777\0")), OK
        yield "hardlink-%s" % label, tar(entry(b"h", LINK, link=target + b"/file"), entry(b"h", data=b"x")), REFUSED
        yield "hardlink-%s-through-symlink" % label, tar(
            entry(b"l", SYMLINK, link=target), entry(b"h", LINK, link=b"l/file"), entry(b"h", data=b"x")), REFUSED
        yield "name-%s" % label, tar(entry(target + b"/escaped", data=b"x")), REFUSED if label == "relative" else OK
        yield "name-%s-whiteout" % label, tar(entry(target + b"/.wh.file")), REFUSED if label == "relative" else OK
        yield "symlink-%s-dir-mode-through" % label, tar(
            entry(b"d", SYMLINK, link=target), entry(b"d/.", DIR, mode=b"0000777\0", uid=b"0001750\0")), ANY
        yield "pax-path-%s" % label, tar(pax({"path": target + b"/escaped"}), entry(b"harmless", data=b"x")), \
            REFUSED if label == "relative" else OK
        yield "pax-linkpath-%s" % label, tar(pax({"linkpath": target + b"/file"}), entry(b"h", LINK, link=b"harmless")), REFUSED
        yield "fifo-through-%s" % label, tar(entry(b"l", SYMLINK, link=target), entry(b"l/fifo", FIFO)), ANY
        yield "char-through-%s" % label, tar(entry(b"l", SYMLINK, link=target), entry(b"l/dev", CHAR, major=1, minor=3)), ANY
    yield "symlink-parent", tar(entry(b"d", DIR), entry(b"d/up", SYMLINK, link=b".."), entry(b"d/up/x", data=b"1")), content("x", b"1")
    yield "symlink-through-absolute", tar(
        entry(b"usr/lib", DIR), entry(b"lib", SYMLINK, link=b"/usr/lib"), entry(b"lib/x", data=b"1")), content("usr/lib/x", b"1")
    yield "hardlink-through-absolute", tar(
        entry(b"usr/f", data=b"1"), entry(b"l", SYMLINK, link=b"/usr"), entry(b"h", LINK, link=b"l/f")), content("h", b"1")
    yield "symlink-loop", tar(entry(b"a", SYMLINK, link=b"b"), entry(b"b", SYMLINK, link=b"a"), entry(b"a/x", data=b"1")), REFUSED
    yield "symlink-to-itself", tar(entry(b"a", SYMLINK, link=b"a"), entry(b"a/x", data=b"1")), REFUSED
    yield "symlink-empty-target", tar(entry(b"a", SYMLINK)), REFUSED
    yield "symlink-proc-self", tar(entry(b"p", SYMLINK, link=b"/proc/self/root"), entry(b"p/x", data=b"1")), ANY
    yield "symlink-proc-fd", tar(entry(b"p", SYMLINK, link=b"/proc/self/fd/4"), entry(b"p", data=b"1")), content("p", b"1")
    yield "sibling-prefix", tar(entry(b"../root-evil/x", data=b"1")), REFUSED
    yield "dir-replaces-symlink", tar(entry(b"l", SYMLINK, link=b"/" + CANARY), entry(b"l", DIR), entry(b"l/x", data=b"1")), ANY


def names():
    for label, name in (("dotdot", b".."), ("dotdot-slash", b"../"), ("inner-dotdot", b"a/../b"), ("last-dotdot", b"a/.."),
                        ("slash-dotdot", b"/../a"), ("256", b"n" * 256), ("4096", b"n/" * 2048), ("65535", b"n" * 65535)):
        yield "name-" + label, tar(entry(name, data=b"x")), REFUSED
    for label, name in (("255", b"n" * 255), ("4095", (b"n" * 63 + b"/") * 63 + b"n" * 63), ("backslash", b"a\\..\\b"),
                        ("0xff", b"\xff\xfe"), ("bad-utf8", b"a\xc3("), ("newline", b"a\nb"), ("escape", b"\x1b[2J"), ("dots", b"..."),
                        ("leading-slash", b"//a"), ("current", b"./././a"), ("space", b" "), ("dash", b"-rf")):
        yield "name-" + label, tar(entry(name, data=b"x")), OK
    yield "name-empty-file", tar(entry(b"", data=b"x")), ANY
    yield "name-root-dir", tar(entry(b"./", DIR, mode=b"0000711\0")), at(".", lambda st: stat.S_IMODE(st.st_mode) == 0o711)
    yield "name-root-as-file", tar(entry(b"./", data=b"x")), ANY
    yield "name-root-as-symlink", tar(entry(b".", SYMLINK, link=b"/" + CANARY)), REFUSED
    yield "pax-path-nul", tar(pax({"path": b"a\0/../../b"}), entry(b"c", data=b"x")), ANY
    yield "pax-path-bad-utf8", tar(pax({"path": b"\xff\xff"}), entry(b"c", data=b"x")), ANY
    yield "pax-path-empty", tar(pax({"path": b""}), entry(b"c", data=b"x")), ANY
    yield "pax-path-overrides", tar(pax({"path": b"real"}), entry(b"header", data=b"x")), lambda top: os.listdir(top) == ["real"]
    yield "prefix-dotdot", tar(header(b"x", magic=b"ustar\00000", prefix=b"../..")), REFUSED
    yield "deep", tar(entry(b"d/" * 2000, DIR)), OK
    yield "deep-10000", tar(entry(b"d/" * 10000, DIR)), REFUSED
    yield "file-as-parent", tar(entry(b"f", data=b"x"), entry(b"f/x", data=b"x")), REFUSED
    yield "implied-parents", tar(entry(b"a/b/c", data=b"x")), at("a/b", lambda st: stat.S_IMODE(st.st_mode) == 0o755)


def whiteouts():
    for label, name in (("nothing", b".wh."), ("current", b".wh.."), ("parent", b".wh..."), ("root-parent", b"/.wh..."),
                        ("inner-current", b"a/.wh.."), ("inner-parent", b"a/.wh..."), ("nested", b".wh..wh."),
                        ("directory-name", b".wh.d/x")):
        yield "whiteout-" + label, tar(entry(name)), REFUSED if label != "nested" else OK
    for kind, label in ((FILE, "file"), (DIR, "dir"), (SYMLINK, "symlink"), (CHAR, "char"), (FIFO, "fifo"), (LINK, "link")):
        yield "whiteout-as-" + label, tar(entry(b"a/.wh.x", kind, link=b"/" + CANARY)), whiteout("a/x")
    yield "whiteout-aufs", tar(entry(b".wh..wh.aufs", data=b"x"), entry(b".wh..wh.plnk/1.2", data=b"x")), lambda top: os.listdir(top) == []
    yield "whiteout-opaque-root", tar(entry(b".wh..wh..opq")), OK
    yield "whiteout-opaque-after", tar(entry(b"d/x", data=b"1"), entry(b"d/.wh..wh..opq")), \
        lambda top: opaque("d")(top) and content("d/x", b"1")(top)
    yield "whiteout-opaque-before", tar(entry(b"d/.wh..wh..opq"), entry(b"d/x", data=b"1")), \
        lambda top: opaque("d")(top) and content("d/x", b"1")(top)
    yield "whiteout-then-file", tar(entry(b".wh.x"), entry(b"x", data=b"1")), content("x", b"1")
    yield "whiteout-then-dir", tar(entry(b".wh.x"), entry(b"x", DIR)), opaque("x")
    yield "dir-then-whiteout", tar(entry(b"x/y", data=b"1"), entry(b".wh.x")), \
        lambda top: opaque("x")(top) and content("x/y", b"1")(top)
    yield "file-then-whiteout", tar(entry(b"x", data=b"1"), entry(b".wh.x")), content("x", b"1")
    yield "whiteout-of-its-directory-first", tar(entry(b".wh.d"), entry(b"d/.wh.f")), whiteout("d")
    yield "whiteout-of-its-directory-last", tar(entry(b"d/e/.wh.f"), entry(b".wh.d")), whiteout("d")
    yield "whiteout-below-a-file", tar(entry(b"f", data=b"x"), entry(b"f/.wh.x")), content("f", b"x")
    yield "whiteout-below-opaque", tar(entry(b"d/.wh.x"), entry(b"d/.wh..wh..opq"), entry(b"d/y", data=b"1")), \
        lambda top: opaque("d")(top) and os.listdir(top + "/d") == ["y"]
    yield "whiteout-of-a-directory-with-whiteouts", tar(entry(b".wh.d"), entry(b"d/.wh.f"), entry(b"d/x", data=b"1")), \
        lambda top: opaque("d")(top) and os.listdir(top + "/d") == ["x"]
    yield "whiteouts-many", tar(*[entry(b"d%d/.wh.%d" % (n % 7, n)) for n in range(20000)], entry(b".wh.d3")), \
        lambda top: whiteout("d3")(top) and whiteout("d4/4")(top) and len(os.listdir(top)) == 7
    yield "whiteout-twice", tar(entry(b".wh.x"), entry(b".wh.x")), whiteout("x")
    yield "whiteout-below-dead-symlink", tar(entry(b"l", SYMLINK, link=b"nowhere"), entry(b"l/.wh.x")), REFUSED
    yield "whiteout-of-symlink", tar(entry(b"l", SYMLINK, link=b"/" + CANARY), entry(b".wh.l")), \
        at("l", lambda st: stat.S_ISLNK(st.st_mode))
    yield "hardlink-to-whiteout", tar(entry(b".wh.x"), entry(b"y", LINK, link=b"x")), REFUSED


def kinds():
    for n in range(256):
        kind = bytes([n])
        if kind in b"KLxgXSNDMV":  # they speak of the entry behind them, which is in names()
            continue
        yield "typeflag-%d" % n, tar(entry(b"d/", DIR), entry(b"x", kind, link=b"d"), entry(b"y", data=b"1")), ANY
    for kind, label in ((CHAR, "char"), (BLOCK, "block")):
        for major, minor in ((1, 3), (8, 0), (0, 0), (0o7777777, 0o7777777)):
            yield "%s-%d-%d" % (label, major, minor), tar(entry(b"dev", kind, major=major, minor=minor)), absent("dev")
    yield "fifo", tar(entry(b"f", FIFO, mode=b"0004644\0")), at("f", lambda st: stat.S_ISFIFO(st.st_mode))
    yield "setuid", tar(entry(b"s", data=b"1", mode=b"0006755\0", uid=b"0000144\0")), \
        at("s", lambda st: stat.S_IMODE(st.st_mode) == 0o6755 and st.st_uid == 100)
    yield "sticky", tar(entry(b"s/", DIR, mode=b"0001777\0")), at("s", lambda st: stat.S_IMODE(st.st_mode) == 0o1777)
    chain = [entry(b"x", data=b"1"), entry(b"x", DIR), entry(b"x/y", data=b"2"), entry(b"x", SYMLINK, link=b"/" + CANARY),
             entry(b"x", data=b"last")]
    yield "duplicates", tar(*chain), content("x", b"last")
    yield "hardlink-to-later", tar(entry(b"h", LINK, link=b"f"), entry(b"f", data=b"1")), REFUSED
    yield "hardlink-to-self", tar(entry(b"h", LINK, link=b"h")), REFUSED
    yield "hardlink-to-self-after", tar(entry(b"h", data=b"1"), entry(b"h", LINK, link=b"h")), content("h", b"1")
    yield "hardlink-to-dir", tar(entry(b"d/", DIR), entry(b"h", LINK, link=b"d")), REFUSED
    yield "hardlink-to-root", tar(entry(b"h", LINK, link=b"/")), REFUSED
    yield "hardlink-over-dir", tar(entry(b"f", data=b"1"), entry(b"d/x", data=b"2"), entry(b"d", LINK, link=b"f")), content("d", b"1")
    yield "hardlink-with-data", tar(entry(b"f", data=b"1"), entry(b"h", LINK, b"other", link=b"f"), entry(b"z", data=b"3")), ANY
    yield "hardlink-good", tar(entry(b"f", data=b"1"), entry(b"h", LINK, link=b"./f")), at("h", lambda st: st.st_nlink == 2)


def numbers():
    for label, field in (("base256-negative", b"\xff" * 12), ("base256-huge", b"\x80" + b"\x7f" * 11),
                         ("octal-max", b"77777777777\0")):
        yield "size-" + label, tar(header(b"x", size_field=field)), REFUSED
    for label, field in (("spaces", b"            "), ("letters", b"abcdefghijk\0"), ("minus", b"-0000000001\0")):
        yield "size-" + label, tar(header(b"x", size_field=field)), ANY
    yield "checksum-signed", tar(header(b"\xff\xff", signed=True)), OK
    yield "checksum-wrong", tar(header(b"x", checksum=b"000001\0 ")), REFUSED
    yield "checksum-wrong-second", tar(entry(b"a", data=b"1"), header(b"x", checksum=b"000001\0 ")), REFUSED
    for label, value in (("2-31", 2**31), ("2-32-2", 2**32 - 2)):
        yield "uid-" + label, tar(pax({"uid": b"%d" % value}), entry(b"x")), at("x", lambda st, v=value: st.st_uid == v)
    for label, value in (("2-32-1", 2**32 - 1), ("2-32", 2**32), ("2-63-1", 2**63 - 1), ("2-63", 2**63), ("2-64", 2**64)):
        yield "uid-" + label, tar(pax({"uid": b"%d" % value}), entry(b"x")), REFUSED
        yield "gid-" + label, tar(pax({"gid": b"%d" % value}), entry(b"x")), REFUSED
    yield "uid-negative", tar(pax({"uid": b"-1"}), entry(b"x")), REFUSED
    for label, value in (("minus-1", b"-1"), ("2-63", b"9223372036854775808"), ("fraction", b"1.123456789"), ("junk", b"x"),
                         ("big", b"99999999999999")):
        yield "mtime-" + label, tar(pax({"mtime": value}), entry(b"x")), ANY
    yield "pax-size-smaller", tar(pax({"size": b"1"}), entry(b"x", data=b"y" * 512)), ANY
    yield "pax-size-bigger", tar(pax({"size": b"9999"}), entry(b"x", data=b"y")), ANY
    yield "pax-size-2-62", tar(pax({"size": b"%d" % 2**62}), entry(b"x", data=b"y")), REFUSED
    yield "pax-bad-length", tar(header(b"p", b"x", 512), pad(b"999999 path=x\n"), entry(b"y")), ANY
    yield "pax-no-newline", tar(header(b"p", b"x", 512), pad(b"8 path=x"), entry(b"y")), ANY
    yield "pax-alone", tar(pax({"path": b"x"})), ANY
    yield "pax-global", tar(header(b"g", b"g", 512), pad(b"14 comment=xy\n"), entry(b"y", data=b"1")), content("y", b"1")
    yield "gnu-long-alone", tar(long_name(b"x" * 200)), ANY
    yield "gnu-long-huge", tar(header(b"././@LongLink", b"L", 2**33)), ANY
    sparse = {"GNU.sparse.major": b"1", "GNU.sparse.minor": b"0", "GNU.sparse.name": b"s", "GNU.sparse.realsize": b"%d" % 2**60}
    yield "sparse-huge", tar(pax(sparse), entry(b"x", data=pad(b"1\n0\n1\n") + b"1")), REFUSED
    negative = dict(sparse, **{"GNU.sparse.realsize": b"10"})
    yield "sparse-negative", tar(pax(negative), entry(b"x", data=pad(b"1\n-5\n1\n") + b"1")), ANY
    overlap = dict(sparse, **{"GNU.sparse.realsize": b"100000"})
    yield "sparse-unsorted", tar(pax(overlap), entry(b"x", data=pad(b"2\n50000\n1\n0\n1\n") + b"12")), "invalid: .*are not sorted"


def gnu_sparse(name, pieces, real_size, data):
    """A header of the kind that GNU tar wrote before PAX: four (offset, length) in it, the others in blocks behind it."""
    block = bytearray(header(name, b"S", len(data), magic=b"ustar  \0"))
    block[345:512] = b"\0" * 167
    for n, (offset, length) in enumerate(pieces[:4]):
        block[386 + 24 * n:386 + 24 * n + 24] = octal(offset, 12) + octal(length, 12)
    block[483:495] = octal(real_size, 12) if real_size < 8 << 30 else b"\x80" + real_size.to_bytes(11, "big")
    block[482] = len(pieces) > 4
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    rest = [pieces[n:n + 21] for n in range(4, len(pieces), 21)]
    more = b"".join(b"".join(octal(o, 12) + octal(l, 12) for o, l in part).ljust(504, b"\0") +
                    bytes([n < len(rest) - 1]).ljust(8, b"\0") for n, part in enumerate(rest))
    return bytes(block) + more + pad(data)


def holes(path, size, pieces):
    """The file is as long as that, has these bytes, and takes little room."""
    def run(top):
        with open(os.path.join(top, path), "rb") as file:
            st = os.fstat(file.fileno())
            return st.st_size == size and st.st_blocks * 512 < 1 << 20 and all(
                os.pread(file.fileno(), len(data), offset) == data for offset, data in pieces)
    return run


def sparse_forms(pieces, data):
    """The same sparse file as each program writes it."""
    size = max(offset + length for offset, length in pieces)
    real = {"GNU.sparse.name": b"s", "GNU.sparse.realsize": b"%d" % size}
    numbers = b"%d\n" % len(pieces) + b"".join(b"%d\n%d\n" % p for p in pieces)
    yield "gnu", gnu_sparse(b"s", pieces, size, data)
    yield "pax-0.1", pax({"GNU.sparse.size": b"%d" % size, "GNU.sparse.numblocks": b"%d" % len(pieces), "GNU.sparse.name": b"s",
                          "GNU.sparse.map": b",".join(b"%d,%d" % p for p in pieces)}) + entry(b"GNUSparseFile.0/s", data=data)
    yield "pax-1.0", pax({"GNU.sparse.major": b"1", "GNU.sparse.minor": b"0", **real}) + entry(
        b"GNUSparseFile.0/s", data=pad(numbers) + data)


def sparse_maps():
    """What is wrong with a map is said; 65,536 pieces are not wrong."""
    many_pieces = [(2 * n, 1) for n in range(65537)]
    for label, pieces, expected in (
            ("overlap", [(0, 512), (511, 512)], "invalid: .*overlap"), ("within", [(0, 600), (100, 1)], "invalid: .*overlap"),
            ("twice", [(512, 512), (512, 512)], "invalid: .*overlap"), ("unsorted", [(4096, 1), (0, 1)], "invalid: .*are not sorted"),
            ("unsorted-empty", [(4096, 1), (0, 0)], "invalid: .*are not sorted"), ("touch", [(0, 1), (1, 1), (2, 0)], content("s", b"ab")),
            ("five", [(n * 600, 1) for n in range(5)], holes("s", 2401, [(n * 600, b"abcde"[n:n + 1]) for n in range(5)])),
            ("65537", many_pieces, "exhausted: .*more than 65536 pieces"),
            ("65537-empty", [(n, 0) for n in range(65537)], "exhausted: .*more than 65536 pieces")):
        data = (b"abcde" * 20000)[:sum(length for _, length in pieces)]
        for form, made in sparse_forms(pieces, data):
            yield "sparse-map-%s-%s" % (label, form), tar(made), expected
    for form, made in sparse_forms(many_pieces[:-1], b"x" * 65536):
        if form != "pax-0.1":  # such a header is longer than libarchive takes
            yield "sparse-map-65536-" + form, tar(made), at("s", lambda st: st.st_size == 131071)


def sparse():
    big = 16 << 30
    for label, size in (("small", 1 << 20), ("16-gib", big)):
        pieces = [(0, b"a" * 512), (size // 2, b"b" * 512), (size - 512, b"c" * 512)]
        where, data = [(offset, len(d)) for offset, d in pieces], b"".join(d for _, d in pieces)
        yield "sparse-gnu-" + label, tar(gnu_sparse(b"s", where, size, data)) if size < 8 << 30 else tar(
            gnu_sparse(b"s", where[:1], size, data[:512])), holes("s", size, pieces if size < 8 << 30 else pieces[:1])
        numbers = b"%d\n" % len(where) + b"".join(b"%d\n%d\n" % w for w in where)
        names = {"GNU.sparse.major": b"1", "GNU.sparse.minor": b"0", "GNU.sparse.name": b"s", "GNU.sparse.realsize": b"%d" % size}
        yield "sparse-pax-1.0-" + label, tar(pax(names), entry(b"GNUSparseFile.0/s", data=pad(numbers) + data)), holes("s", size, pieces)
        names = {"GNU.sparse.size": b"%d" % size, "GNU.sparse.numblocks": b"%d" % len(where), "GNU.sparse.name": b"s",
                 "GNU.sparse.map": b",".join(b"%d,%d" % w for w in where)}
        yield "sparse-pax-0.1-" + label, tar(pax(names), entry(b"GNUSparseFile.0/s", data=data)), holes("s", size, pieces)
        yield "sparse-hole-at-the-end-" + label, tar(gnu_sparse(b"s", [(0, 512), (size, 0)], size, b"a" * 512)) if size < 8 << 30 else tar(
            pax(names), entry(b"GNUSparseFile.0/s", data=data)), holes("s", size, [(0, b"a" * 512)])
    yield "sparse-20-gib", tar(gnu_sparse(b"s", [(0, 512)], (20 << 30) + 1, b"a" * 512)), REFUSED
    yield "size-base256", tar(header(b"x", size_field=b"\x80" + (5).to_bytes(11, "big")), pad(b"hello")), content("x", b"hello")
    yield "size-base256-9-gib", tar(header(b"x", size_field=b"\x80" + (9 << 30).to_bytes(11, "big")), pad(b"hello")), REFUSED


def attributes():
    xattrs = {"SCHILY.xattr.user.kept": b"1", "SCHILY.xattr.user.overlay.opaque": b"y", "SCHILY.xattr.trusted.overlay.opaque": b"y",
              "SCHILY.xattr.user.overlay.redirect": b"/etc", "SCHILY.xattr.trusted.x": b"1", "SCHILY.xattr.security.selinux": b"x",
              "SCHILY.xattr.system.posix_acl_access": b"x"}
    yield "xattrs", tar(pax(xattrs), entry(b"d/", DIR)), lambda top: os.listxattr(top + "/d") == ["user.kept"]
    cap = b"\x01\0\0\x02" + b"\x20\0\0\0" + b"\0" * 12
    yield "xattr-capability", tar(pax({"SCHILY.xattr.security.capability": cap}), entry(b"f", data=b"1", mode=b"0000755\0")), \
        lambda top: os.getxattr(top + "/f", "security.capability") == cap
    yield "xattr-capability-bad", tar(pax({"SCHILY.xattr.security.capability": b"junk"}), entry(b"f", data=b"1")), ANY
    yield "xattr-huge", tar(pax({"SCHILY.xattr.user.x": b"x" * 100000}), entry(b"f", data=b"1")), OK
    yield "xattr-no-name", tar(pax({"SCHILY.xattr.": b"x", "SCHILY.xattr.user.": b"x"}), entry(b"f", data=b"1")), OK
    acl = {"SCHILY.acl.access": b"user::rwx,user:1:r-x:1,group::r--,mask::r-x,other::---"}
    yield "acl", tar(pax(acl), entry(b"f", data=b"1")), lambda top: "system.posix_acl_access" in os.listxattr(top + "/f")
    default = {"SCHILY.acl.default": b"user::rwx,user:1:rwx:1,group::r--,mask::rwx,other::---"}
    yield "acl-default", tar(pax(default), entry(b"d/", DIR), entry(b"d/f", data=b"1"), entry(b"d/e/", DIR)), lambda top: (
        "system.posix_acl_default" in os.listxattr(top + "/d") and os.listxattr(top + "/d/f") == [] == os.listxattr(top + "/d/e"))
    yield "acl-junk", tar(pax({"SCHILY.acl.access": b"user:::::rwx,,x:y"}), entry(b"f", data=b"1")), ANY


def ends():
    good = tar(entry(b"a/", DIR), entry(b"a/f", data=b"x" * 700), pax({"path": b"p" * 150}), entry(b"q", data=b"y" * 10),
               entry(b"l" * 120, SYMLINK, link=b"t" * 120))
    for n in range(0, len(good), 512):
        yield "cut-%d" % (n // 512), good[:n], ANY
        yield "cut-%d-and-100" % (n // 512), good[:n + 100], ANY
    last = entry(b"a/f", data=b"x" * 700)
    for label, first in (("", b""), ("pax-", pax({"path": b"a/f", "size": b"700"}))):
        for n, padding in ((700, "none"), (701, "one"), (1023, "all-but-one"), (1024, "all")):
            yield "end-%spadding-%s" % (label, padding), first + last[:512 + n], content("a/f", b"x" * 700)
        for n in (0, 1, 187, 512, 699):
            yield "end-%sin-data-%d" % (label, n), first + last[:512 + n], REFUSED
    for form, made in sparse_forms([(0, 512), (1024, 700)], b"x" * 1212):
        yield "end-behind-sparse-" + form, made[:-324], holes("s", 1724, [(1024, b"x" * 700)])
        yield "end-in-sparse-" + form, made[:-325], REFUSED
    yield "end-behind-skipped", entry(b".wh..wh.aufs", data=b"x" * 700)[:1212], OK
    yield "end-in-skipped", entry(b".wh..wh.aufs", data=b"x" * 700)[:1211], REFUSED
    yield "end-in-header", last[:300], REFUSED
    yield "end-in-second-header", last + entry(b"b")[:300], REFUSED
    yield "two-archives", good + tar(entry(b"second", data=b"1")), absent("second")
    yield "trailing-garbage", good + os.urandom(5000), OK
    yield "no-end-mark", good[:-1024], ANY
    yield "empty-archive", b"\0" * 1024, OK
    yield "no-tar", b"hello world\n" * 1000, REFUSED
    yield "cpio", b"070701" + b"0" * 200, REFUSED
    yield "shar", b"#!/bin/sh\necho\n" + b"#" * 600, REFUSED


def many():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for n in range(20000):
            archive.addfile(tarfile.TarInfo("d/%d" % n))
    yield "many-entries", out.getvalue(), lambda top: len(os.listdir(top + "/d")) == 20000


def cases(canary):
    """All of them, for a canary directory at this absolute path, which has a file `file`."""
    global CANARY
    CANARY = os.fsencode(canary).strip(b"/")
    for make in (escapes, names, whiteouts, kinds, numbers, sparse, sparse_maps, attributes, ends, many):
        yield from make()
