"""First contents of a box: its state from the profile, and the files that every such Windows has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from simbox.box_profile import Profile
from simbox.engines.wine import standins as build

if TYPE_CHECKING:
    from simbox.box import Box

# What Windows 11 sets up; a name is not localised in SDDL.
_SYSTEM_ACLS = {
    "C:\\": "O:SYG:SYD:PAI(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICI;0x1200a9;;;BU)"
    "(A;OICIIO;0x1301bf;;;AU)(A;;LC;;;AU)",
    "C:\\Windows": "O:SYG:SYD:PAI(A;OICIIO;GA;;;CO)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)",
    "C:\\Program Files": "O:SYG:SYD:PAI(A;OICIIO;GA;;;CO)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
    "(A;OICI;0x1200a9;;;BU)",
    "C:\\Users": "O:SYG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;OICI;0x1200a9;;;WD)",
}
_OTHER_ROOT_ACL = "O:SYG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICI;0x1301bf;;;AU)(A;OICI;0x1200a9;;;BU)"


def state(name: str, profile: Profile) -> dict[str, Any]:
    """The first state.json of a box."""
    drives = [letter for disk in profile.get("disks", default=[]) for letter in disk["volumes"]]
    acls = {f"{drive}\\": _OTHER_ROOT_ACL for drive in drives} | _SYSTEM_ACLS | profile.get("acl", default={})
    return {
        "system": {
            **profile.get("system", default={}),
            "computer_name": name.upper()[:15],
            "user": profile.get("user"),
            "console_user": profile.get("console_user"),
        },
        "environment": profile.get("environment", default={}),
        "machine_sid": profile.get("machine_sid"),
        "accounts": profile.get("accounts", default={}),
        "gpu": profile.get("gpu", default={}),
        "disks": profile.get("disks", default=[]),
        "network": profile.get("network", default=[]),
        "firewall": profile.get("firewall", default={}),
        "acl": {path.casefold(): {"path": path, "sddl": sddl} for path, sddl in acls.items()},
        "tasks": {},
        "task_folders": ["\\", "\\Microsoft", "\\Microsoft\\Windows"],
        "registry": {},
        "faults": profile.get("faults", default={}),
    }


def drives(box: Box) -> None:
    """Lay down the files of a new box. A program file is a copy of the stub exe in a wine box
    (`programs.image`).
    """
    from simbox import programs

    files = box.filesystem
    for disk in box.profile.get("disks", default=[]):
        for volume in disk["volumes"]:
            files.drive(volume[0]).mkdir(exist_ok=True)
            dosdevices = box.directory / "dosdevices"
            if dosdevices.is_dir() and not (dosdevices / f"{volume[0].lower()}:").is_symlink():
                (dosdevices / f"{volume[0].lower()}:").symlink_to(f"../drive_{volume[0].lower()}")
    for folder in ("C:\\Windows\\System32", *box.profile.get("folders", default=[])):
        files.make_directory(folder)
    for path, target in box.profile.get("junctions", default={}).items():
        files.make_directory(target)
        files.make_junction(path, target)
    _toolchain(box)
    for path, text in box.profile.get("files", default={}).items():
        files.write(path, text.encode())
    image = programs.image(box)
    for path in box.profile.get("programs", default=[]):
        host = files.host(path)
        if host.is_symlink():
            host.unlink()  # a wine box links C:\windows to its template
        files.write(path, image)
    if box.engine == "wine" and box.profile.get("gpu", "driver_loaded", default=True):
        files.write("C:\\Windows\\System32\\nvcuda.dll", build.nvcuda().read_bytes())


def _toolchain(box: Box) -> None:
    tools = box.profile.get("toolchain", default={})
    files = box.filesystem
    if cuda := tools.get("cuda"):
        versions = {
            "cuda": {"name": "CUDA SDK", "version": cuda["version"]},
            "cuda_nvcc": {"name": "CUDA NVCC", "version": cuda["nvcc"]},
            "cuda_cudart": {"name": "CUDA Runtime (cudart)", "version": cuda["nvcc"]},
        }
        files.write(cuda["root"] + "\\version.json", json.dumps(versions, indent=3).encode())
        files.write(cuda["root"] + "\\bin\\x64\\cudart64_13.dll", b"MZ")
    if studio := tools.get("visual_studio"):
        build = studio["root"] + "\\VC\\Auxiliary\\Build"
        files.write(
            build + "\\Microsoft.VCToolsVersion.default.txt", f"{studio['toolset']}\r\n".encode("ascii")
        )
        files.write(build + "\\vcvars64.bat", _vcvars(studio))
    if vcpkg := tools.get("vcpkg"):
        files.write(vcpkg + "\\scripts\\buildsystems\\vcpkg.cmake", b"# vcpkg toolchain\n")
        files.write(vcpkg + "\\.vcpkg-root", b"")


def _vcvars(studio: dict[str, Any]) -> bytes:
    """The batch file that makes the compiler usable in one process; honours -vcvars_ver= as far as it is
    installed.
    """
    root, toolset = studio["root"], studio["toolset"]
    short = ".".join(toolset.split(".")[:2])
    tools = f"{root}\\VC\\Tools\\MSVC\\{toolset}"
    studio_cmake = f"{root}\\Common7\\IDE\\CommonExtensions\\Microsoft\\CMake"
    lines = [
        "@echo off",
        'if "%~1"=="" goto known',
        f'if "%~1"=="-vcvars_ver={short}" goto known',
        f'if "%~1"=="-vcvars_ver={toolset}" goto known',
        # cmd takes = as a separator between arguments, so an unquoted -vcvars_ver=14.44 arrives as two
        'if not "%~1"=="-vcvars_ver" goto unknown',
        f'if "%~2"=="{short}" goto known',
        f'if "%~2"=="{toolset}" goto known',
        ":unknown",
        "echo [ERROR:vcvars.bat] Toolset directory for version '%~1 %~2' was not found.",
        "exit /b 1",
        ":known",
        f"echo ** Visual Studio 2022 Developer Command Prompt v{'.'.join(studio['version'].split('.')[:2])}",
        "echo [vcvarsall.bat] Environment initialized for: 'x64'",
        f'set "VSINSTALLDIR={root}\\"',
        f'set "VCINSTALLDIR={root}\\VC\\"',
        f'set "VCToolsInstallDir={tools}\\"',
        f'set "VCToolsVersion={toolset}"',
        'set "VSCMD_ARG_TGT_ARCH=x64"',
        f'set "INCLUDE={tools}\\include"',
        f'set "LIB={tools}\\lib\\x64"',
        f'set "PATH={tools}\\bin\\Hostx64\\x64;{studio_cmake}\\CMake\\bin;{studio_cmake}\\Ninja;%PATH%"',
        "exit /b 0",
    ]
    return ("\r\n".join(lines) + "\r\n").encode("ascii")
