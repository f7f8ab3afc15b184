"""Compilers and build tools of a box."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, ModelError, items, mapping, optional_text, text
from winfleet.version import version_numbers


@dataclass(frozen=True)
class CudaToolkit(Model):
    """One CUDA installation.

    Attributes: variable (CUDA_PATH, CUDA_PATH_V13_3), path, version ("13.3", what nvcc says, else
    version.json; None: neither could be read), nvcc_version ("13.3.48").
    """

    variable: str
    path: str
    version: str | None
    nvcc_version: str | None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version as numbers that compare."""
        return version_numbers(self.version)


@dataclass(frozen=True)
class VisualStudio(Model):
    """One Visual Studio or Build Tools.

    Attributes: installation_path, name ("Visual Studio Build Tools 2022"), version ("17.14.36"), toolset
    ("14.44.35207"; None: no C++ tools), vcvars64_path (None: not there), complete.
    """

    installation_path: str
    name: str
    version: str
    toolset: str | None
    vcvars64_path: str | None
    complete: bool


@dataclass(frozen=True)
class Program(Model):
    """A tool. Attributes: path, version (dotted number in its version text; None: none found)."""

    path: str
    version: str | None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version as numbers that compare."""
        return version_numbers(self.version)


@dataclass(frozen=True)
class ToolchainState(Model):
    """Answer of Get-BoxToolchain: cuda (all toolkits), visual_studio (newest first), programs, vcpkg."""

    cuda: tuple[CudaToolkit, ...]
    visual_studio: tuple[VisualStudio, ...]
    cmake: Program | None
    ninja: Program | None
    git: Program | None
    curl: Program | None
    vcpkg_root: str | None
    vcpkg_exe: str | None
    vswhere_path: str | None

    @classmethod
    def parse(cls, value: Any) -> ToolchainState:
        """From the JSON value. Raises ModelError."""
        data = mapping(value, "Get-BoxToolchain")
        programs = mapping(data.get("Programs") or {}, "Programs")
        vcpkg = mapping(data.get("Vcpkg") or {}, "Vcpkg")
        vswhere = mapping(data.get("Vswhere") or {}, "Vswhere")
        return cls(
            cuda=tuple(_cuda(mapping(item, "Cuda")) for item in items(data.get("Cuda"), "Cuda")),
            visual_studio=_visual_studio(
                optional_text(vswhere, "Json"), items(data.get("VisualStudio"), "VisualStudio")
            ),
            cmake=_program(programs.get("cmake")),
            ninja=_program(programs.get("ninja")),
            git=_program(programs.get("git")),
            curl=_program(programs.get("curl")),
            vcpkg_root=optional_text(vcpkg, "Root"),
            vcpkg_exe=optional_text(vcpkg, "Exe"),
            vswhere_path=optional_text(vswhere, "Path"),
        )

    def cuda_of(self, version: str) -> CudaToolkit | None:
        """The toolkit whose version begins with the numbers of version ("13.3" also matches "13.3.1"), or
        None."""
        wanted = version_numbers(version)
        return next((item for item in self.cuda if wanted and item.numbers[: len(wanted)] == wanted), None)


def nvcc_versions(nvcc_text: str | None) -> tuple[str | None, str | None]:
    """Release ("13.0") and full version ("13.0.88") in the text of ``nvcc --version``."""
    found = re.search(r"release\s+(\d+\.\d+)\s*,\s*V(\d+(?:\.\d+)+)", nvcc_text or "")
    return (found[1], found[2]) if found else (None, None)


def version_in(value: str | None) -> str | None:
    """The first dotted number in the first line of a program's version text ("git version
    2.51.0.windows.1")."""
    found = re.search(r"(?<![\w.])v?(\d+(?:\.\d+)+)", (value or "").strip())
    return found[1] if found else None


def _cuda(data: Any) -> CudaToolkit:
    release, full = nvcc_versions(optional_text(data, "NvccVersion"))
    if release is None:
        try:
            packages = json.loads(optional_text(data, "VersionJson") or "{}")
            release = version_in(str(packages["cuda"]["version"]))
            full = full or version_in(str(packages.get("cuda_nvcc", {}).get("version", "")))
        except (ValueError, KeyError, TypeError, AttributeError):
            release = None
    return CudaToolkit(text(data, "Variable"), text(data, "Path"), release, full)


def _program(value: Any) -> Program | None:
    if value is None:
        return None
    data = mapping(value, "Programs")
    path = optional_text(data, "Path")
    return None if path is None else Program(path, version_in(optional_text(data, "VersionText")))


def _visual_studio(vswhere_json: str | None, found: list[Any]) -> tuple[VisualStudio, ...]:
    try:
        instances = json.loads(vswhere_json.lstrip("\ufeff")) if vswhere_json and vswhere_json.strip() else []
    except ValueError as error:
        raise ModelError(f"vswhere gave no JSON: {error}") from error
    details = {
        text(item, "InstallationPath").rstrip("\\").casefold(): item
        for item in (mapping(one, "VisualStudio") for one in found)
    }
    result = []
    for one in instances:
        path = str(one.get("installationPath", ""))
        detail = details.get(path.rstrip("\\").casefold(), {})
        result.append(
            VisualStudio(
                installation_path=path,
                name=str(one.get("displayName", "")),
                version=str(one.get("installationVersion", "")),
                toolset=(optional_text(detail, "DefaultToolset") or "").strip() or None,
                vcvars64_path=optional_text(detail, "VcVars64Path"),
                complete=bool(one.get("isComplete", True)),
            )
        )
    return tuple(sorted(result, key=lambda item: version_numbers(item.version), reverse=True))
