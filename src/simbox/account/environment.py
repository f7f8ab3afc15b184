"""The environment and folder that a process of the box's account starts with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simbox.cmd.variables import Environment

if TYPE_CHECKING:
    from simbox.box import Box


def profile_folder(box: Box) -> str:
    """The account's profile folder; made when it is missing, as the profile service does at logon."""
    folder = f"C:\\Users\\{box.store.get('system', 'user', default='Administrator')}"
    box.filesystem.make_directory(folder)
    return folder


def environment(box: Box) -> Environment:
    """The machine's variables and those that Windows adds for an account at logon."""
    user = str(box.store.get("system", "user", default="Administrator"))
    profile = f"C:\\Users\\{user}"
    values = Environment(
        {
            "ALLUSERSPROFILE": "C:\\ProgramData",
            "APPDATA": f"{profile}\\AppData\\Roaming",
            "CommonProgramFiles": "C:\\Program Files\\Common Files",
            "COMPUTERNAME": str(box.store.get("system", "computer_name")),
            "ComSpec": "C:\\Windows\\System32\\cmd.exe",
            "HOMEDRIVE": "C:",
            "HOMEPATH": f"\\Users\\{user}",
            "LOCALAPPDATA": f"{profile}\\AppData\\Local",
            "PATHEXT": ".COM;.EXE;.BAT;.CMD",
            "ProgramData": "C:\\ProgramData",
            "ProgramFiles": "C:\\Program Files",
            "ProgramFiles(x86)": "C:\\Program Files (x86)",
            "ProgramW6432": "C:\\Program Files",
            "PROMPT": "$P$G",
            "PUBLIC": "C:\\Users\\Public",
            "USERDOMAIN": str(box.store.get("system", "computer_name")),
            "USERNAME": user,
            "USERPROFILE": profile,
        }
    )
    values.update(box.windows.system.environment())
    return values
