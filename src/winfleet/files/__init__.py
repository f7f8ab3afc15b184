"""Files, folders and junctions."""

from winfleet.files.fact import ChildItems, Files
from winfleet.files.model import FileState, Listing
from winfleet.files.operations import FileContent, absent, copies, directories, junction, put

__all__ = [
    "ChildItems",
    "FileContent",
    "FileState",
    "Files",
    "Listing",
    "absent",
    "copies",
    "directories",
    "junction",
    "put",
]
