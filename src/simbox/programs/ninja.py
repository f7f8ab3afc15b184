"""ninja.exe: builds what CMake's stand-in has written, with progress lines, and leaves exe and DLL files."""

from __future__ import annotations

import re

from simbox import programs
from simbox.programs.invocation import Invocation

# Beside the exe files in a real build (docs/facts/ninfer.md#files-of-a-build).
DLLS = (
    "avcodec-62.dll",
    "avformat-62.dll",
    "avutil-60.dll",
    "swscale-9.dll",
    "swresample-6.dll",
    "libcurl.dll",
    "z.dll",
    "dstorage.dll",
    "dstoragecore.dll",
)


def run(invocation: Invocation) -> int:
    """Exit codes: 0, 1."""
    folder, targets, rest = invocation.cwd, [], invocation.arguments
    while rest:
        text = rest.pop(0)
        if text == "--version":
            invocation.out(invocation.box.profile.get("toolchain", "ninja"))
            return 0
        if text == "-C":
            folder = invocation.box.filesystem.normalise(rest.pop(0) if rest else ".", invocation.cwd)
        elif text in ("-j", "-k", "-l", "-t", "-d", "-f"):
            rest = rest[1:]
        elif text.startswith("-"):
            continue
        else:
            targets.append(text)
    return build(invocation, folder, targets)


def build(invocation: Invocation, folder: str, targets: list[str]) -> int:
    """Build targets (all when empty) in a configured folder; what is built and unchanged costs no step."""
    host = invocation.box.filesystem.host(folder)
    if not (host / "build.ninja").is_file():
        invocation.err("ninja: error: loading 'build.ninja': The system cannot find the file specified.")
        return 1
    if not invocation.variable("INCLUDE"):
        invocation.err(
            "cl : fatal error C1034: cassert: no include path set (not in a Visual Studio environment)"
        )
        return 1
    text = (host / "build.ninja").read_text()
    known = re.findall(r"^build ([\w-]+): phony", text, re.MULTILINE)
    wanted = known if not targets or targets == ["all"] else targets
    for target in wanted:
        if target not in known:
            invocation.err(f"ninja: error: unknown target '{target}'")
            return 1
    log = host / ".ninja_log"
    done = log.read_text().split("\0") if log.is_file() else []
    steps = re.findall(r"^build (\S+): compile (\S+)\n  DEFINES = (.*)$", text, re.MULTILINE)
    open_steps = [step for step in steps if " ".join(step) not in done]
    links = [target for target in wanted if open_steps or not (host / "apps" / f"{target}.exe").is_file()]
    total, step_s = (
        len(open_steps) + len(links),
        float(invocation.box.profile.get("build", "step_seconds", default=0)),
    )
    if not total:
        invocation.out("ninja: no work to do.")
        return 0
    for number, (target, source, defines) in enumerate(open_steps, 1):
        if invocation.stopping.wait(step_s):
            return 1
        invocation.out(
            f"[{number}/{total}] Building {'CUDA' if source.endswith('.cu') else 'CXX'} object {target}"
        )
        done.append(f"{target} {source} {defines}")
        log.write_text("\0".join(done))
    (host / "apps").mkdir(exist_ok=True)
    image = programs.image(invocation.box)
    sm_counts = ",".join(sorted(set(re.findall(r"-DNINFER_TARGET_SM_COUNT=(\d+)", text)))) or "128"
    for number, target in enumerate(links, len(open_steps) + 1):
        invocation.out(f"[{number}/{total}] Linking CXX executable apps\\{target}.exe")
        # what was compiled in, so that two builds differ in their hashes
        (host / "apps" / f"{target}.exe").write_bytes(image + f"\0{target} sm={sm_counts}\0".encode())
    for name in DLLS:
        if not (host / "apps" / name).exists():
            (host / "apps" / name).write_bytes(b"MZ" + name.encode())
    return 0
