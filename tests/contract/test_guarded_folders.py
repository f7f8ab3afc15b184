"""Short names lead to the same folders; which one a folder has, only the box knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from powershell import BoxFault, EngineBox

import winfleet.wire.program

PINVOKE = Path(winfleet.wire.program.__file__).with_name("pinvoke.ps1").read_text("ascii")
ASK = """$global:Wire = @{}
$table = @{ 'kernel32.dll' = @{ GetShortPathNameW = [int], [byte[]], [byte[]], [int] } }
$native = Get-NativeType -Name 'Short' -Table $table
$bytes = New-Object -TypeName 'byte[]' -ArgumentList 520
$length = $native::GetShortPathNameW([Text.Encoding]::Unicode.GetBytes('C:\\Program Files' + [char] 0), $bytes, 260)
[Text.Encoding]::Unicode.GetString($bytes, 0, 2 * $length)"""


@pytest.mark.wine
def test_the_short_name_of_a_guarded_folder_is_refused(wine_box: EngineBox) -> None:
    short = wine_box.reply("Invoke-BoxScript", Text=f"{PINVOKE}\n{ASK}").output("stdout").decode().strip()
    assert "~" in short
    for path in (short, f"{short}\\Common Files"):
        with pytest.raises(BoxFault, match="belongs to Windows"):
            wine_box.call("Remove-BoxItem", Path=[path], Recurse=True)
        with pytest.raises(BoxFault, match="belongs to Windows"):
            wine_box.call("Set-BoxAcl", Path=path, Sddl="D:PAI(A;;FA;;;SY)")
    assert wine_box.host("C:\\Program Files").is_dir()
