"""Task folders of a simulated box: made for a task, left behind by it, removed by name when empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from simbox.errors import WindowsError, com_error

if TYPE_CHECKING:
    from simbox.box import Box


def missing() -> WindowsError:
    """No such task or folder."""
    return WindowsError(
        "System.IO.FileNotFoundException",
        "The system cannot find the file specified. (Exception from HRESULT: 0x80070002)",
        0x80070002,
        "ObjectNotFound",
        "FileNotFoundException",
    )


def make(state: dict[str, Any], path: str) -> None:
    """Add the folders on the way to a task to the state."""
    known = {folder.casefold() for folder in state["task_folders"]}
    for folder in reversed(list(above(path))):
        if folder.casefold() not in known:
            state["task_folders"].append(folder)


def above(path: str) -> Iterator[str]:
    """The folders on the way to a path, the innermost first; not the root."""
    folder = path.rpartition("\\")[0]
    while folder:
        yield folder
        folder = folder.rpartition("\\")[0]


class TaskFolders:
    """Folders by path, found whatever their case."""

    def __init__(self, box: Box) -> None:
        self._box = box

    def all(self) -> list[str]:
        """All folders."""
        return list(self._box.store.get("task_folders"))

    def find(self, path: str) -> str:
        """The folder's path in its own case. Raises: WindowsError 0x80070002 when there is none."""
        wanted = "\\" + path.strip("\\")
        for known in ["\\", *self.all()]:
            if known.casefold() == wanted.casefold():
                return known
        raise missing()

    def tasks(self, folder: str) -> list[str]:
        """Full paths of the tasks in one folder."""
        prefix = folder.rstrip("\\").casefold()
        names = [record["Path"] for record in self._box.store.get("tasks").values()]
        return sorted(name for name in names if name.rpartition("\\")[0].casefold() == prefix)

    def inside(self, folder: str) -> list[str]:
        """Full paths of the folders in one folder."""
        prefix = folder.rstrip("\\").casefold()
        found = [name for name in self.all() if name.rpartition("\\")[0].casefold() == prefix]
        return sorted(name for name in found if name != "\\")

    def on_the_way(self, path: str) -> list[dict[str, Any]]:
        """The folders on the way to a task that exist, the innermost first, as Get-BoxTask gives them."""
        known = {folder.casefold(): folder for folder in self.all()}
        found = [known[folder.casefold()] for folder in above(path) if folder.casefold() in known]
        return [
            {
                "Path": folder,
                "Tasks": [name.rpartition("\\")[2] for name in self.tasks(folder)],
                "Folders": [name.rpartition("\\")[2] for name in self.inside(folder)],
            }
            for folder in found
        ]

    def create(self, path: str) -> str:
        """Make a folder and those above it. Raises: WindowsError 0x800700B7 when it exists."""
        wanted = "\\" + path.strip("\\")
        if wanted.casefold() in {known.casefold() for known in ["\\", *self.all()]}:
            raise com_error(
                0x800700B7,
                "Cannot create a file when that file already exists. (Exception from HRESULT: 0x800700B7)",
            )
        with self._box.store.change() as state:
            make(state, wanted + "\\x")
        return wanted

    def delete(self, path: str) -> None:
        """Remove an empty folder. Raises: WindowsError 0x80070002, 0x80070091 when it holds something."""
        folder = self.find(path)
        if folder == "\\" or self.tasks(folder) or self.inside(folder):
            raise com_error(0x80070091, "The directory is not empty. (Exception from HRESULT: 0x80070091)")
        with self._box.store.change() as state:
            state["task_folders"].remove(folder)
