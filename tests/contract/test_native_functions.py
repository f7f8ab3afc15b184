"""Functions of DLLs are called without a compiler, so that a plan writes nothing on a box."""

from __future__ import annotations

from pathlib import Path

import pytest
from powershell import EngineBox

import winfleet.wire.program

PINVOKE = Path(winfleet.wire.program.__file__).with_name("pinvoke.ps1").read_text("ascii")
TABLE = """@{ 'kernel32.dll' = @{
    OpenProcess = [IntPtr], [uint32], [bool], [int]
    GetCurrentProcessId = , [int]
    GetSystemDirectoryW = [int], [byte[]], [int]
    QueryPerformanceFrequency = [bool], [long].MakeByRefType()
} }"""


def told(box: EngineBox, text: str) -> list[str]:
    """The lines that this writes after a session's functions have been made."""
    start = f"$global:Wire = @{{}}\n{PINVOKE}\n$native = Get-NativeType -Name 'Trial' -Table {TABLE}\n"
    reply = box.reply("Invoke-BoxScript", Text=start + text)
    assert reply.output("stderr") == b""
    return reply.output("stdout").decode().splitlines()


@pytest.mark.wine
def test_numbers_buffers_and_references_pass(wine_box: EngineBox) -> None:
    text = """$native::GetCurrentProcessId() -eq $PID
$bytes = New-Object -TypeName 'byte[]' -ArgumentList 128
[System.Text.Encoding]::Unicode.GetString($bytes, 0, 2 * $native::GetSystemDirectoryW($bytes, 64))
$frequency = [long] 0
$native::QueryPerformanceFrequency([ref] $frequency)
$frequency -gt 0"""
    yes, folder, *more = told(wine_box, text)
    assert (yes, folder.lower(), more) == ("True", "c:\\windows\\system32", ["True", "True"])


@pytest.mark.wine
def test_what_windows_says_of_a_failure_is_kept(wine_box: EngineBox) -> None:
    text = """$process = $native::OpenProcess(0x1000, $false, 0x7ffffff0)
$code = [System.Runtime.InteropServices.Marshal]::GetLastWin32Error()
$process -eq [IntPtr]::Zero
$code"""
    assert told(wine_box, text) == ["True", "87"]  # ERROR_INVALID_PARAMETER: there is no such process


@pytest.mark.wine
def test_a_type_is_made_once_and_in_memory_alone(wine_box: EngineBox) -> None:
    text = f"""[object]::ReferenceEquals($native, (Get-NativeType -Name 'Trial' -Table {TABLE}))
[object]::ReferenceEquals($native, (Get-NativeType -Name 'Other' -Table {TABLE}))
$native.Assembly.IsDynamic"""
    assert told(wine_box, text) == ["True", "False", "True"]
