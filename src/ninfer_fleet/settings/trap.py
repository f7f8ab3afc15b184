"""Shared pieces of the settings: how a value is refused, and which texts are safe on a box."""

from __future__ import annotations

import re
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

# Inside double quotes of a .bat these still mean something to cmd.exe, or end the quotes; the rest is invalid
# in a Windows file name anyway.
UNSAFE_IN_BAT = set('%!^&|<>"*?')
_ABSOLUTE = re.compile(r"[A-Za-z]:\\(?:[^\\/:]+\\)*[^\\/:]+")
_WORD = re.compile(r"[A-Za-z0-9._:/-]+", re.ASCII)
_URL_REST = re.compile(r"[\x21\x23-\x7e]+")
# A password with a slash or a blank in it is no valid URL, and yet a password.
_LOGIN = re.compile(r"^https?://[^/@]*:(?!\d+(/|$))[^@]*@", re.DOTALL)
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.I)
_OF_WINDOWS = {
    "windows",
    "program files",
    "program files (x86)",
    "$recycle.bin",
    "system volume information",
    "boot",
    "recovery",
}
LONGEST_PATH = 160  # MAX_PATH is 260; build and cache append names of their own


class Values(BaseModel):
    """Base of all settings: nothing unknown, nothing changed afterwards, no value in error texts (it may be a
    key)."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch(cls, value: Any, info: ValidationInfo) -> Any:
        # pydantic takes true for 1; YAML takes yes and on for true.
        entries = value if isinstance(value, list | tuple) else (value,)
        if any(isinstance(one, bool) for one in entries) and not _takes_switch(
            cls.model_fields[str(info.field_name)].annotation
        ):
            raise refuse(
                "true and false are switches, and this setting is none",
                "give the number, or the text in quotes (YAML takes yes, no, on and off for switches)",
            )
        return value


def _takes_switch(annotation: Any) -> bool:
    return annotation is bool or any(_takes_switch(one) for one in get_args(annotation))


def refuse(reason: str, remedy: str) -> PydanticCustomError:
    """The error of a refused value: raise it from a validator."""
    return PydanticCustomError("refused", "{reason}. Remedy: {remedy}", {"reason": reason, "remedy": remedy})


def check_name(name: str) -> str:
    """The name of a file or folder, if Windows does not take it for a device; raises the refusal otherwise."""
    if _DEVICE.fullmatch(name):
        raise refuse(f"{name!r} is the name of a device on Windows", "use another name")
    return name


def check_word(text: str) -> str:
    """A word that no program takes for one of its options; raises the refusal otherwise."""
    if text.startswith("-"):
        raise refuse(
            f"{text!r} begins with a hyphen and would be taken for an option", "begin with a letter or digit"
        )
    if not _WORD.fullmatch(text):
        raise refuse(f"{text!r} is not one word", "use letters, digits and . _ : / - of plain ASCII")
    return text


def check_url(url: str, schemes: tuple[str, ...]) -> str:
    """A URL in plain ASCII that carries no login; raises the refusal otherwise, never showing a login."""
    scheme, mark, rest = url.partition("://")
    place = rest.partition("/")[0]
    login, at, host = place.rpartition("@")
    # Of ssh a user alone is part of the address.
    if (at and (scheme != "ssh" or ":" in login)) or _LOGIN.search(url):
        raise refuse(
            "a URL with a login (user, password or token before an @) would stand in diffs, logs and jobs",
            "take the login out; serve the file or repository without one, over the tailnet or as file://, or give"
            " the account of the box a credential helper",
        )
    named = "this" if "@" in url else repr(url)
    if not mark or scheme not in schemes or not _URL_REST.fullmatch(rest):
        raise refuse(
            f"{named} is no URL that can be fetched",
            f"give a URL in plain ASCII that begins with {_either(schemes)}",
        )
    if host.startswith("-") or login.startswith("-") or (not host and scheme != "file"):
        raise refuse(f"{named} names no host", f"give a URL such as {schemes[0]}://host/path")
    return url


def _either(schemes: tuple[str, ...]) -> str:
    return " or ".join(f"{scheme}://" for scheme in schemes)


def check_path(path: str) -> str:
    """A Windows path that every tool on the way takes literally; raises the refusal otherwise."""
    remedy = r"use a short absolute ASCII path such as C:\ninfer"
    if not path.isascii() or not path.isprintable():
        raise refuse(
            f"{path!r} is not plain ASCII; ninfer-serve reads its arguments and cmd.exe its files "
            f"in the ANSI code "
            "page, so other characters arrive garbled",
            remedy,
        )
    unsafe = "".join(sorted(UNSAFE_IN_BAT & set(path)))
    if unsafe:
        raise refuse(f"{path!r} holds {unsafe!r}, which cmd.exe does not take literally", remedy)
    if not _ABSOLUTE.fullmatch(path) or any(part in (".", "..") for part in path.split("\\")):
        raise refuse(
            f"{path!r} is not an absolute path of a file or folder on a drive (no root, no slash, no dots)",
            remedy,
        )
    if any(part != part.strip() or part.endswith(".") for part in path.split("\\")):
        raise refuse(f"{path!r} has a part that begins or ends with a blank or ends with a dot", remedy)
    for part in path.split("\\"):
        check_name(part)
    if len(path) > LONGEST_PATH:
        raise refuse(f"{path!r} has {len(path)} characters, more than {LONGEST_PATH}", remedy)
    return path


def check_own_folder(path: str) -> str:
    """A path that we may make, close to others and fill: not one of Windows' own folders, nor below one."""
    check_path(path)
    first = path.split("\\")[1].casefold()
    profiles = first in ("users", "programdata") and path.count("\\") == 1
    if profiles or first in _OF_WINDOWS:
        raise refuse(
            f"{path!r} belongs to Windows or to other programs; its access list would be replaced",
            r"use a folder of its own such as C:\ninfer",
        )
    return path


Word = Annotated[str, AfterValidator(check_word)]
WindowsPath = Annotated[str, AfterValidator(check_path)]
OwnFolder = Annotated[str, AfterValidator(check_own_folder)]
