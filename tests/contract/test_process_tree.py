"""A tree of processes is stopped by who they are: an id that passed to another process meanwhile is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from powershell import EngineBox

import winfleet.process

PROCESS = Path(winfleet.process.__file__).with_name("process.ps1").read_text("ascii")
# A table as CIM tells it and the processes as they are when they are looked up; what is killed leaves both.
WORLD = """
$start = [datetime] '2026-01-01T10:00:00'
$rows = New-Object System.Collections.ArrayList
$live = @{}
$killed = New-Object System.Collections.ArrayList
$hidden = @{}
function Add-Row([int] $Id, [int] $Parent, [double] $At, [object] $Now = $null) {
    $created = $start.AddSeconds($At)
    [void] $rows.Add([pscustomobject] @{ ProcessId = $Id; ParentProcessId = $Parent; CreationDate = $created })
    if ($null -eq $Now) { $Now = $At }
    $live[$Id] = $start.AddSeconds($Now).AddTicks(7)
}
function Read-ProcessTable { return , @($rows.ToArray()) }
function Open-Process { param($Process) }
function Get-Process {
    [CmdletBinding()]
    param($Id)
    if (-not $live.ContainsKey($Id)) { return }
    $one = [pscustomobject] @{ Id = $Id; StartTime = $live[$Id] }
    $one | Add-Member -MemberType ScriptMethod -Name WaitForExit -Value { param($Milliseconds) $true }
    $one | Add-Member -MemberType ScriptMethod -Name Kill -PassThru -Value {
        [void] $killed.Add($this.Id)
        $live.Remove($this.Id)
        foreach ($row in @($rows)) { if ($row.ProcessId -eq $this.Id) { $rows.Remove($row) } }
        if ($hidden.ContainsKey($this.Id)) { & $hidden[$this.Id] }
    }
}
"""


def killed(box: EngineBox, text: str, at: float = 0) -> list[int]:
    """The ids that are killed when the tree of process 10, created at that second, is stopped."""
    stop = f"Stop-ProcessTree -ProcessId 10 -Created $start.AddSeconds({at})\n$killed -join ' '"
    reply = box.reply("Invoke-BoxScript", Text=f"{PROCESS}\n{WORLD}\n{text}\n{stop}")
    assert reply.output("stderr") == b""
    return [int(number) for number in reply.output("stdout").split()]


@pytest.mark.wine
def test_parents_go_first_and_strangers_stay(wine_box: EngineBox) -> None:
    text = """Add-Row 30 20 2; Add-Row 10 1 0; Add-Row 20 10 1; Add-Row 40 1 0
Add-Row 50 10 -5  # its parent had that id before"""
    assert killed(wine_box, text) == [10, 20, 30]


@pytest.mark.wine
def test_an_id_that_passed_on_since_the_table_was_read_is_left_alone(wine_box: EngineBox) -> None:
    assert killed(wine_box, "Add-Row 10 1 0; Add-Row 20 10 1 99; Add-Row 30 20 2") == [10, 30]


@pytest.mark.wine
def test_a_root_whose_id_passed_on_is_left_alone_with_its_children(wine_box: EngineBox) -> None:
    text = "Add-Row 10 1 60; Add-Row 20 10 61; Add-Row 30 10 5"  # 30 is from before, 20 is the stranger's
    assert killed(wine_box, text) == [30]


@pytest.mark.wine
def test_what_is_started_while_it_dies_is_found(wine_box: EngineBox) -> None:
    text = "Add-Row 10 1 0; Add-Row 20 10 1; $hidden[20] = { Add-Row 30 20 3 }"
    assert killed(wine_box, text) == [10, 20, 30]
