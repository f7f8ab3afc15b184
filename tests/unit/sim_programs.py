"""Runs a program of a simulated box and keeps what it prints."""

from __future__ import annotations

from simbox import programs
from simbox.box import Box
from simbox.programs import RunningProgram

STUDIO = "C:\\Program Files\\Microsoft Visual Studio\\2022\\Community"
BUILD_ENVIRONMENT = {
    "PATH": f"{STUDIO}\\VC\\Tools\\MSVC\\14.44.35207\\bin\\Hostx64\\x64;"
    f"{STUDIO}\\Common7\\IDE\\CommonExtensions\\Microsoft\\CMake\\Ninja;"
    "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v13.3\\bin",
    "INCLUDE": "x",
}
PATHS = {
    "git": "C:\\Program Files\\Git\\cmd\\git.exe",
    "cmake": "C:\\Program Files\\CMake\\bin\\cmake.exe",
    "ninja": f"{STUDIO}\\Common7\\IDE\\CommonExtensions\\Microsoft\\CMake\\Ninja\\ninja.exe",
    "nvcc": "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v13.3\\bin\\nvcc.exe",
    "vswhere": "C:\\Program Files (x86)\\Microsoft Visual Studio\\Installer\\vswhere.exe",
    "nvidia-smi": "C:\\Windows\\System32\\nvidia-smi.exe",
    "curl": "C:\\Windows\\System32\\curl.exe",
}


class Run:
    """A program that runs or has run."""

    def __init__(
        self, box: Box, program: str, *arguments: str, environment: dict[str, str] | None = None
    ) -> None:
        self._out = bytearray()
        self._err = bytearray()
        path = PATHS.get(program, program)
        self.running: RunningProgram = programs.start(
            box,
            path,
            [path, *arguments],
            environment=environment,
            stdout=self._out.extend,
            stderr=self._err.extend,
        )

    @property
    def code(self) -> int:
        """The exit code, when it has ended."""
        code = self.running.wait(30)
        assert code is not None, f"still running: {self.err}"
        return code

    @property
    def out(self) -> str:
        """Everything on stdout, once it has ended."""
        assert self.code is not None
        return self._out.decode()

    @property
    def err(self) -> str:
        """Everything on stderr so far."""
        return self._err.decode()


def build(box: Box, *defines: str) -> Run:
    """Clone at a commit, configure with the declared values and those given, and build."""
    assert Run(box, "git", "clone", "https://github.com/UDPSendToFailed/ninfer-4090", "C:\\src").code == 0
    configured = Run(
        box, "cmake", "-S", "C:\\src", "-B", "C:\\build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_TOOLCHAIN_FILE=C:/vcpkg/scripts/buildsystems/vcpkg.cmake", "-DCMAKE_CUDA_ARCHITECTURES=89",
        "-DNINFER_TARGET_SM_COUNT=114", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *defines,
        environment=BUILD_ENVIRONMENT,
    )  # fmt: skip
    if configured.code:
        return configured
    return Run(box, "ninja", "-C", "C:\\build", "ninfer", "ninfer-serve", environment=BUILD_ENVIRONMENT)
