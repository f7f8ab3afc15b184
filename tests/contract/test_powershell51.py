"""What ships is valid Windows PowerShell 5.1, told by PowerShell's parser and the tables of 5.1."""

from __future__ import annotations

from pathlib import Path

import pytest
from powershell51 import rules, tables

import simbox.standins
import winfleet.powershell

SHIPPED = sorted(Path(winfleet.powershell.__file__).parent.glob("*.ps1"))
STANDINS = sorted(Path(simbox.standins.__file__).parent.glob("*.ps1"))


@pytest.fixture(scope="module")
def known() -> tables.Tables:
    try:
        rules.powershell()
        return tables.load()
    except (tables.NoTables, rules.NoPowerShell) as missing:
        pytest.skip(str(missing))


def test_shipped_files_have_only_what_windows_powershell_has(known: tables.Tables) -> None:
    assert len(SHIPPED) > 15
    assert list(rules.faults(rules.parsed(SHIPPED), known)) == []


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_files_are_ascii_with_line_feeds(path: Path) -> None:
    content = path.read_bytes()
    assert content.isascii()
    assert b"\r" not in content
    assert b"\t" not in content


def test_stand_ins_take_no_parameter_that_the_real_command_lacks(known: tables.Tables) -> None:
    wrong = []
    stood_in = 0
    for tree in rules.parsed(STANDINS):
        assert tree["errors"] == []
        for function in tree["functions"]:
            real = known.commands.get(function["name"].lower())
            if real is None:
                continue
            stood_in += 1
            extra = {name.lower() for name in function["parameters"]} - real
            wrong += [f"{function['name']} -{name}" for name in sorted(extra)]
    assert wrong == []
    assert stood_in > 20


PROBES = [
    ("$a = $b ? 1 : 2", "PowerShell 7"),
    ("$a = $b ?? 1", "PowerShell 7"),
    ("Get-Date && Get-Date", "PowerShell 7"),
    ("Get-Content -LiteralPath x -AsByteStream", "no parameter -asbytestream"),
    ("ConvertFrom-Json -InputObject x -AsHashtable", "no parameter -ashashtable"),
    ("Invoke-WebRequest -Uri x -UseBasicParsing -SkipCertificateCheck", "no parameter -skipcertificatecheck"),
    ("Invoke-WebRequest -Uri x", "PS16"),
    ("ConvertTo-Json -InputObject x", "PS07"),
    ("Get-Uptime", "no command"),
    ("iru", "alias"),
    ("dir", "no command"),
    ("[IO.File]::Move('a', 'b', $true)", "takes no 3 arguments"),
    ("[Convert]::FromHexString('00')", "no member FromHexString"),
    ("[IO.Path]::GetRelativePath('a', 'b')", "no member GetRelativePath"),
    (
        "$s = New-Object System.Diagnostics.ProcessStartInfo; $s.ArgumentList.Add('x')",
        "no member ArgumentList",
    ),
    ("function F { param([string] $X) $X.Contains('a', 'Ordinal') }", "takes no 2 arguments"),
    ("[System.OperatingSystem]::IsWindows()", "no member IsWindows"),
    ("function F { param($Input) }", "PS27"),
    ("if (", "Missing"),
]


@pytest.fixture(scope="module")
def probes(known: tables.Tables, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Each text with what the check says of it; one parser for all."""
    folder = tmp_path_factory.mktemp("probes")
    files = []
    for number, (text, _) in enumerate(PROBES):
        file = folder / f"{number}.ps1"
        file.write_text(text)
        files.append(file)
    trees = rules.parsed(files)
    return {text: list(rules.faults([tree], known)) for (text, _), tree in zip(PROBES, trees, strict=True)}


@pytest.mark.parametrize(("text", "told"), PROBES)
def test_the_check_sees_what_only_newer_versions_have(
    probes: dict[str, list[str]], text: str, told: str
) -> None:
    assert any(told in fault for fault in probes[text]), probes[text]


def test_the_check_lets_pass_what_is_there(known: tables.Tables, tmp_path: Path) -> None:
    file = tmp_path / "probe.ps1"
    file.write_text(
        "$list = New-Object 'System.Collections.Generic.List[string]'; $list.Add('a'); $list.ToArray()\n"
        "[IO.Path]::Combine('a', 'b', 'c', 'd', 'e')\n"
        "Get-Item -LiteralPath C:\\ -Force -ErrorAction SilentlyContinue\n"
        "New-NetFirewallRule -Name x -DisplayName x -RemoteAddress y -PolicyStore PersistentStore\n"
    )
    assert list(rules.faults(rules.parsed([file]), known)) == []
