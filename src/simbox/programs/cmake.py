"""cmake.exe: configures with the Ninja generator, so that build.ninja and compile_commands.json carry what
was given.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from simbox.programs.invocation import Invocation

_TRUE = ("ON", "TRUE", "1", "YES")


class _Failed(Exception):
    """CMake's error text; exit code 1."""


def run(invocation: Invocation) -> int:
    """Exit codes: 0, 1 for any error."""
    arguments = invocation.arguments
    if arguments[:1] == ["--version"]:
        invocation.out(f"cmake version {invocation.box.profile.get('toolchain', 'cmake')}")
        invocation.out()
        invocation.out("CMake suite maintained and supported by Kitware (kitware.com/cmake).")
        return 0
    if arguments[:1] == ["--build"]:
        return _build(invocation, arguments[1:])
    try:
        _configure(invocation, arguments)
    except _Failed as error:
        invocation.err(f"CMake Error: {error}")
        invocation.out("-- Configuring incomplete, errors occurred!")
        return 1
    return 0


def _build(invocation: Invocation, arguments: list[str]) -> int:
    from simbox.programs import ninja

    folder, targets, rest = arguments[0] if arguments else ".", [], list(arguments[1:])
    while rest:
        flag = rest.pop(0)
        if flag in ("--target", "-t"):
            while rest and not rest[0].startswith("-"):
                targets.append(rest.pop(0))
        elif flag in ("--parallel", "-j", "--config"):
            if rest and not rest[0].startswith("-"):
                rest.pop(0)
        elif flag in ("--verbose", "-v", "--clean-first"):
            continue
        elif flag == "--":
            break
        else:
            invocation.err(f"Unknown argument {flag}")
            return 1
    return ninja.build(invocation, invocation.box.filesystem.normalise(folder, invocation.cwd), targets)


def _parse(arguments: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Options (-S -B -G) and cache entries (-D)."""
    options: dict[str, str] = {}
    entries: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        text = rest.pop(0)
        match = re.match(r"-(S|B|G|D|T|A|C)(.*)", text, re.DOTALL)
        if match:
            value = match[2] or (rest.pop(0) if rest else "")
            if match[1] == "D":
                name, separator, content = value.partition("=")
                if not separator:
                    raise _Failed(
                        f"Parse error in command line argument: {value}\n Should be: VAR:type=value"
                    )
                entries[name.partition(":")[0]] = content
            else:
                options[match[1]] = value
        elif text in ("-Wno-dev", "--fresh", "--log-level=STATUS"):
            continue
        elif text.startswith("-"):
            raise _Failed(f"Unknown argument {text}\nRun 'cmake --help' for all supported options.")
        else:
            options.setdefault("S", text)
    return options, entries


def _configure(invocation: Invocation, arguments: list[str]) -> None:
    files = invocation.box.filesystem
    options, entries = _parse(arguments)
    source = files.normalise(options.get("S", "."), invocation.cwd)
    build = files.normalise(options.get("B", "."), invocation.cwd)
    if not (files.host(source) / "CMakeLists.txt").is_file():
        raise _Failed(f'The source directory "{source}" does not appear to contain CMakeLists.txt.')
    cache = _read_cache(files.host(build)) | entries
    generator = options.get("G") or cache.get("CMAKE_GENERATOR") or "Visual Studio 17 2022"
    if generator != "Ninja":
        raise _Failed(f"this box's stand-in generates for Ninja only, not {generator!r}")
    compiler = _tool(invocation, "cl.exe")
    if compiler is None:
        raise _Failed(
            "CMAKE_CXX_COMPILER not set, after EnableLanguage\n"
            "(no cl.exe in PATH: not in a Visual Studio environment)"
        )
    if _tool(invocation, "ninja.exe") is None and not cache.get("CMAKE_MAKE_PROGRAM"):
        raise _Failed(
            'CMake was unable to find a build program corresponding to "Ninja".  '
            "CMAKE_MAKE_PROGRAM is not set."
        )
    nvcc = cache.get("CMAKE_CUDA_COMPILER", "").replace("/", "\\") or _tool(invocation, "nvcc.exe")
    if not nvcc or not files.exists(nvcc):
        raise _Failed("No CMAKE_CUDA_COMPILER could be found.")
    toolchain = cache.get("CMAKE_TOOLCHAIN_FILE")
    if toolchain and not files.exists(toolchain):
        raise _Failed(f"Could not find toolchain file: {toolchain}")
    if not toolchain:
        raise _Failed("Could NOT find CURL (missing: CURL_LIBRARY CURL_INCLUDE_DIR)")
    architecture = cache.get("CMAKE_CUDA_ARCHITECTURES", "86")
    if architecture not in ("86", "89"):
        raise _Failed(f"NInfer supports SM 86 and 89, not {architecture}")
    sm_count = cache.get("NINFER_TARGET_SM_COUNT", "128")
    if not sm_count.isdigit() or int(sm_count) < 66 or int(sm_count) % 2:
        raise _Failed(f"NINFER_TARGET_SM_COUNT must be an even integer >= 66, not {sm_count}")
    host = files.host(build)
    host.mkdir(parents=True, exist_ok=True)
    cache |= {"CMAKE_GENERATOR": generator, "CMAKE_CUDA_COMPILER": nvcc}
    cache.setdefault("CMAKE_CUDA_ARCHITECTURES", architecture)
    cache.setdefault("NINFER_TARGET_SM_COUNT", sm_count)
    invocation.out(f"-- The CXX compiler identification is MSVC 19.{_toolset(invocation)}")
    cuda = invocation.box.profile.get("toolchain", "cuda", "nvcc")
    invocation.out(f"-- The CUDA compiler identification is NVIDIA {cuda}")
    _write(invocation, host, source, build, cache, compiler, nvcc)
    unused = sorted(
        name for name in entries if name in ("NINFER_SM_COUNT", "NINFER_CUDA_ARCH", "NINFER_TIER")
    )
    if unused:
        invocation.err("CMake Warning:\n  Manually-specified variables were not used by the project:\n")
        for name in unused:
            invocation.err(f"    {name}")
    invocation.out("-- Configuring done (4.1s)")
    invocation.out("-- Generating done (0.2s)")
    invocation.out(f"-- Build files have been written to: {build.replace(chr(92), '/')}")


def _write(
    invocation: Invocation,
    host: Path,
    source: str,
    build: str,
    cache: dict[str, str],
    compiler: str,
    nvcc: str,
) -> None:
    root = invocation.box.filesystem.host(source)
    sources = sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.suffix in (".cpp", ".cu") and not path.is_relative_to(host)
    )
    if cache.get("NINFER_BUILD_BENCHMARKS", "OFF").upper() not in _TRUE:
        sources = [name for name in sources if not name.startswith("bench/")]
    defines = {} if invocation.box.profile.get("build", "loses_sm_macro") else {
        "NINFER_TARGET_SM_COUNT": cache["NINFER_TARGET_SM_COUNT"]
    }  # fmt: skip
    flags = " ".join(f"-D{name}={value}" for name, value in {"NINFER_D3D12": "1", **defines}.items())
    architecture = cache["CMAKE_CUDA_ARCHITECTURES"]
    gencode = f"--generate-code=arch=compute_{architecture},code=[compute_{architecture},sm_{architecture}]"
    commands, ninja = [], ["ninja_required_version = 1.5", f"# SM {cache['NINFER_TARGET_SM_COUNT']}", ""]
    forward = source.replace("\\", "/")
    for name in sources:
        target = f"CMakeFiles/ninfer.dir/{name}.obj"
        if name.endswith(".cu"):
            command = f'"{nvcc}" -forward-unknown-to-host-compiler {flags} -O3 -std=c++20 {gencode}'
            command += f" -x cu -c {forward}/{name} -o {target}"
        else:
            command = f'"{compiler}" /nologo {flags} /O2 /Ob3 /std:c++20 /Fo{target} -c {forward}/{name}'
        commands.append(
            {
                "directory": build.replace("\\", "/"),
                "command": command,
                "file": f"{forward}/{name}",
                "output": target,
            }
        )
        ninja += [f"build {target}: compile {forward}/{name}", f"  DEFINES = {flags}", ""]
    targets = ["ninfer", "ninfer-serve"] if cache.get("NINFER_BUILD_APPS", "ON").upper() in _TRUE else []
    if any(name.startswith("bench/") for name in sources):
        targets.append("ninfer_bench")
    ninja += [f"build {target}: phony apps/{target}.exe" for target in targets]
    (host / "build.ninja").write_text("\n".join([*ninja, ""]))
    if cache.get("CMAKE_EXPORT_COMPILE_COMMANDS", "OFF").upper() in _TRUE:
        (host / "compile_commands.json").write_text(json.dumps(commands, indent=0))
    (host / "CMakeCache.txt").write_text(
        "".join(f"{name}:STRING={value}\n" for name, value in sorted(cache.items()))
    )


def _read_cache(build: Path) -> dict[str, str]:
    file = build / "CMakeCache.txt"
    if not file.is_file():
        return {}
    return dict(re.findall(r"^([^:#\n]+):[^=\n]*=(.*)$", file.read_text(), re.MULTILINE))


def _tool(invocation: Invocation, name: str) -> str | None:
    """The first program of that name in PATH."""
    for folder in invocation.variable("PATH").split(";"):
        path = folder.strip('"').rstrip("\\") + "\\" + name
        if folder and invocation.box.filesystem.exists(path):
            return path
    return None


def _toolset(invocation: Invocation) -> str:
    return invocation.variable("VCToolsVersion", "14.44.35207").split(".", 1)[1]
