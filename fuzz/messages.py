#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a table of all message types of some headers that protoc-c made: messages.py OUTPUT HEADER..."""
import re
import sys


def main():
    names = []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as f:
            names += re.findall(r"^extern const ProtobufCMessageDescriptor (\w+);", f.read(), re.M)
    with open(sys.argv[1], "w", encoding="ascii") as f:
        f.write("/* Made by fuzz/messages.py. */\n#include <protobuf-c/protobuf-c.h>\n#include <stddef.h>\n")
        f.write("extern const ProtobufCMessageDescriptor *const fuzz_messages[];\nextern const size_t fuzz_n_messages;\n")
        f.write("".join(f"extern const ProtobufCMessageDescriptor {n};\n" for n in names))
        f.write("const ProtobufCMessageDescriptor *const fuzz_messages[] = {\n")
        f.write("".join(f"\t&{n},\n" for n in names))
        f.write(f"}};\nconst size_t fuzz_n_messages = {len(names)};\n")


if __name__ == "__main__":
    main()
