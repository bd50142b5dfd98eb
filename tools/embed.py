#!/usr/bin/env python3
"""Makes a C file of any file: embed.py FILE OUT.c NAME. For what the program carries inside."""
import sys

path, out, name = sys.argv[1:]
with open(path, "rb") as file:
    data = file.read()
with open(out, "w", encoding="ascii") as file:
    file.write(f"/* Made by tools/embed.py. */\n#include <stddef.h>\n\nextern const unsigned char {name}[];\n"
               f"extern const size_t {name}_size;\n\nconst size_t {name}_size = {len(data)};\n"
               f"const unsigned char {name}[] = {{\n")
    for at in range(0, len(data), 24):
        file.write(",".join(map(str, data[at:at + 24])) + ",\n")
    file.write("0};\n")
