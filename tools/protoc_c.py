#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs protoc-c and marks the header that it makes as a system header, since its initialisers cast constness away in
every file that uses them. gnu17 defines `linux` as a macro, and the CRI has fields of that name: the header undefines it.

    protoc_c.py PROTOC_C PROTO_DIR OUT_DIR PROTO
"""
import os
import subprocess
import sys


def main():
    protoc_c, proto_dir, out_dir, proto = sys.argv[1:5]
    subprocess.run([protoc_c, f"--proto_path={proto_dir}", f"--c_out={out_dir}", proto], check=True)
    name = os.path.basename(proto).replace(".proto", ".pb-c.h")
    path = os.path.join(out_dir, name)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write('#pragma GCC diagnostic ignored "-Wcast-qual"\n#pragma GCC system_header\n#undef linux\n' + text)


if __name__ == "__main__":
    main()
