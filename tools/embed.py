#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a file as a C array: embed.py INPUT OUTPUT NAME gives `NAME` and `NAME_len`."""
import sys


def main():
    source, target, name = sys.argv[1:4]
    with open(source, "rb") as f:
        data = f.read()
    with open(target, "w", encoding="ascii") as f:
        f.write("/* Made by tools/embed.py. */\n")
        f.write(f"extern const unsigned char {name}[];\nextern const unsigned long {name}_len;\n")
        f.write(f"const unsigned char {name}[] = {{\n")
        for i in range(0, len(data), 20):
            f.write("\t" + ",".join(str(b) for b in data[i:i + 20]) + ",\n")
        f.write(f"}};\nconst unsigned long {name}_len = {len(data)};\n")


if __name__ == "__main__":
    main()
