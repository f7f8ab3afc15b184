"""The exceptions of .NET's file classes, as PowerShell reports them for a call of one of their methods."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from simbox.engines.python.hostpaths import win32_code
from simbox.errors import WindowsError

_TYPES = {
    2: ("System.IO.FileNotFoundException", "Could not find file '{0}'."),
    3: ("System.IO.DirectoryNotFoundException", "Could not find a part of the path '{0}'."),
    5: ("System.UnauthorizedAccessException", "Access to the path '{0}' is denied."),
    32: (
        "System.IO.IOException",
        "The process cannot access the file '{0}' because it is being used by another process.",
    ),
    53: ("System.IO.IOException", "The network path was not found. : '{0}'."),
    80: ("System.IO.IOException", "The file '{0}' already exists."),
    87: ("System.IO.IOException", "The parameter is incorrect. : '{0}'."),
    112: ("System.IO.IOException", "There is not enough space on the disk. : '{0}'."),
    123: (
        "System.IO.IOException",
        "The filename, directory name, or volume label syntax is incorrect. : '{0}'.",
    ),
    145: ("System.IO.IOException", "The directory is not empty. : '{0}'."),
    183: (
        "System.IO.IOException",
        "Cannot create '{0}' because a file or directory with the same name already exists.",
    ),
    206: (
        "System.IO.PathTooLongException",
        "The specified file name or path is too long, or a component of the specified path is too long.",
    ),
    267: ("System.IO.IOException", "The directory name is invalid. : '{0}'."),
}


def file_error(code: int, path: str) -> WindowsError:
    """The exception for a Win32 error code on a path."""
    type_name, text = _TYPES.get(code, ("System.IO.IOException", "Unknown error on '{0}'."))
    return WindowsError(
        type_name, text.format(path), 0x80070000 | code, "NotSpecified", type_name.rpartition(".")[2]
    )


_WITHOUT_PATH = {
    2: "Could not find file.",
    3: "Could not find a part of the path.",
    5: "Access to the path is denied.",
    32: "The process cannot access the file because it is being used by another process.",
    183: "Cannot create a file when that file already exists.",
}


def rename_error(code: int) -> WindowsError:
    """As file_error, for the calls that rename: .NET does not say which of the two paths it was."""
    error = file_error(code, "")
    return WindowsError(
        error.type, _WITHOUT_PATH.get(code, error.message), error.hresult, "NotSpecified", error.id
    )


def from_host(error: OSError, path: str) -> WindowsError:
    """The exception for what the host's operating system refused."""
    if error.errno == errno.ENAMETOOLONG:
        return file_error(206, path)
    return file_error(win32_code(error), path)


class Rethrown(WindowsError):
    """An error that PowerShell code caught and threw again: it keeps the id that it had inside."""


@contextlib.contextmanager
def rethrowing() -> Iterator[None]:
    """Like a try whose catch ends with `throw`."""
    try:
        yield
    except WindowsError as error:
        raise Rethrown(error.type, error.message, error.hresult, error.category, error.id) from error
