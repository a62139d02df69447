#!/usr/bin/env python3
"""mkstub.py SDKDIR < stubs.txt: a stub SDK, one .tbd (text-based dylib) a library."""
import os
import sys

TARGETS = "[ arm64-macos, arm64e-macos ]"


def location(words):
    """Path in the SDK and install name of the library a heading names, or None for symbols."""
    if words[0] == "framework":
        base = f"/System/Library/Frameworks/{words[1]}.framework"
        return f"{base}/{words[1]}.tbd", f"{base}/Versions/A/{words[1]}"
    if words[0] == "lib":
        return f"/usr/lib/lib{words[1]}.tbd", words[2]
    return None


def tbd(install_name, symbols):
    lines = ["--- !tapi-tbd", "tbd-version: 4", f"targets: {TARGETS}",
             f"install-name: '{install_name}'", "current-version: 1", "compatibility-version: 1"]
    if symbols:
        quoted = ", ".join(f"'{s}'" for s in sorted(symbols))
        lines += ["exports:", f"  - targets: {TARGETS}", f"    symbols: [ {quoted} ]"]
    return "\n".join([*lines, "...", ""])


libraries, current = {}, None
for line in sys.stdin:
    words = line.split("#")[0].split()
    if not words:
        continue
    heading = location(words)
    if heading:
        current = libraries.setdefault(heading, set())
    else:
        current.update(words)
for (path, install_name), symbols in libraries.items():
    out = sys.argv[1] + path
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w") as file:
        file.write(tbd(install_name, symbols))
