"""What is installed to build with, and what the compiler is told."""

from __future__ import annotations

import json
import ntpath
import re
from typing import Any

from simbox.cmd.variables import Environment
from simbox.engines.python import programs
from simbox.engines.python.answers import Call, Command
from simbox.errors import WindowsError

_PROGRAM_FILES = "C:\\Program Files"
_VSWHERE = "C:\\Program Files (x86)\\Microsoft Visual Studio\\Installer\\vswhere.exe"
_VSWHERE_ARGUMENTS = (
    "-products * -requires Microsoft.VisualStudio.Component.VC.Tools.x86.x64 -format json -utf8"
)
_CUDA_VARIABLE = re.compile(r"CUDA_PATH(_V[0-9_]+)?", re.IGNORECASE)
_ARCHITECTURE = re.compile(r"(?:--generate-code|-gencode|--gpu-architecture|-arch)[=\s]+\"?([^\s\"]+)", re.I)


def _read(call: Call, path: str) -> str | None:
    try:
        host = call.box.filesystem.host(path)
    except WindowsError:
        return None
    return host.read_text("utf-8-sig", "replace") if host.is_file() else None


def _find(call: Call, name: str, folders: list[str]) -> str | None:
    for folder in folders:
        if not ntpath.isabs(folder):
            continue
        path = ntpath.join(folder, name)
        try:
            if call.box.filesystem.host(path).is_file():
                return path
        except WindowsError:
            continue
    return None


def _version(call: Call, path: str | None) -> dict[str, Any] | None:
    if not path:
        return None
    try:
        run = programs.run(call, path, "--version")
        text = programs.text(run.output)
        if run.exit_code != 0:
            text += programs.text(run.error_output)
    except WindowsError as error:
        text = error.message
    return {"Path": path, "VersionText": text.strip()}


def _expand(text: str, environment: Environment) -> str:
    return re.sub(r"%([^%]+)%", lambda match: environment.get(match[1], match[0]), text)


def get(call: Call) -> dict[str, Any]:
    """Get-BoxToolchain."""
    environment = Environment(call.box.windows.system.environment())
    cuda = []
    for name in sorted(environment, key=str.casefold):
        if not _CUDA_VARIABLE.fullmatch(name):
            continue
        root = environment[name]
        version = _version(call, _find(call, "nvcc.exe", [ntpath.join(root, "bin")]))
        cuda.append(
            {
                "Variable": name,
                "Path": root,
                "VersionJson": _read(call, ntpath.join(root, "version.json")),
                "NvccVersion": version["VersionText"] if version else None,
            }
        )
    vswhere: dict[str, Any] = {"Path": None, "Json": None}
    if call.box.filesystem.host(_VSWHERE).is_file():
        output = programs.run(call, _VSWHERE, _VSWHERE_ARGUMENTS).output
        vswhere = {"Path": _VSWHERE, "Json": programs.text(output)}
    studios = _studios(call, vswhere["Json"])
    folders = [
        _expand(folder.strip().strip('"'), environment)
        for folder in environment.get("Path", "").split(";")
        if folder.strip()
    ]
    folders += [ntpath.join(_PROGRAM_FILES, place) for place in ("CMake\\bin", "Git\\cmd", "Ninja")]
    for studio in studios:
        bundled = studio["InstallationPath"] + "\\Common7\\IDE\\CommonExtensions\\Microsoft\\CMake"
        folders += [bundled + "\\CMake\\bin", bundled + "\\Ninja"]
    folders.append("C:\\Windows\\system32")
    return {
        "Cuda": cuda,
        "Vswhere": vswhere,
        "VisualStudio": studios,
        "Programs": {
            name: _version(call, _find(call, f"{name}.exe", folders))
            for name in ("cmake", "ninja", "git", "curl")
        },
        "Vcpkg": _vcpkg(call, environment),
    }


def _studios(call: Call, report: str | None) -> list[dict[str, Any]]:
    found = []
    for instance in json.loads(report) if report else []:
        root = instance["installationPath"]
        build = root + "\\VC\\Auxiliary\\Build"
        toolset = _read(call, build + "\\Microsoft.VCToolsVersion.default.txt")
        batch = build + "\\vcvars64.bat"
        found.append(
            {
                "InstallationPath": root,
                "DefaultToolset": toolset.strip() if toolset is not None else None,
                "VcVars64Path": batch if call.box.filesystem.host(batch).is_file() else None,
            }
        )
    return found


def _vcpkg(call: Call, environment: Environment) -> dict[str, Any] | None:
    root = call.text("VcpkgRoot") or environment.get("VCPKG_ROOT", "")
    if not root or not call.box.filesystem.host(root).is_dir():
        return None
    return {"Root": root, "Exe": _find(call, "vcpkg.exe", [root])}


def compile_commands(call: Call) -> dict[str, Any]:
    """Get-BoxCompileCommand."""
    answer: dict[str, Any] = {
        "Exists": False,
        "CommandCount": 0,
        "CudaCommandCount": 0,
        "DefinitionValues": {},
        "WithoutDefinition": 0,
        "Architectures": {},
    }
    text = _read(call, call.text("Path"))
    if text is None:
        return answer
    answer["Exists"] = True
    try:
        commands = json.loads(text)
    except ValueError as error:
        raise WindowsError(
            "System.ArgumentException", f"Conversion from JSON failed with error: {error}", 0x80070057
        ) from error
    wanted = re.compile(r'[-/]D\s*"?' + re.escape(call.text("Definition")) + r'(?:=([^\s"]*))?(?=["\s]|$)')
    for command in commands if isinstance(commands, list) else [commands]:
        answer["CommandCount"] += 1
        if not str(command.get("file", "")).lower().endswith(".cu"):
            continue
        answer["CudaCommandCount"] += 1
        line = command.get("command") or " ".join(command.get("arguments", []))
        hits = wanted.findall(line)
        if hits:
            answer["DefinitionValues"][hits[-1]] = answer["DefinitionValues"].get(hits[-1], 0) + 1
        else:
            answer["WithoutDefinition"] += 1
        for architecture in _ARCHITECTURE.findall(line):
            answer["Architectures"][architecture] = answer["Architectures"].get(architecture, 0) + 1
    return answer


COMMANDS: dict[str, Command] = {
    "get-boxtoolchain": get,
    "get-boxcompilecommand": compile_commands,
}
