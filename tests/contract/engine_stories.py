"""Stories of box commands, told to every engine: what one call leaves is what the next one finds.

The scratch folder is D. Texts of errors are Windows' own and differ between Windows and Wine; type, id,
category and HRESULT are compared. `wine` names what Wine does otherwise than Windows, so that the call is not
compared.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

D = "C:\\engine stories"
KEY = "HKLM:\\SOFTWARE\\NInferFleetStories"


@dataclass(frozen=True)
class Step:
    """One call. Attributes: command, parameters, payload, wine (why it is not compared)."""

    command: str
    parameters: dict[str, Any] = field(default_factory=dict)
    payload: bytes = b""
    wine: str = ""


def do(command: str, payload: bytes = b"", wine: str = "", **parameters: Any) -> Step:
    return Step(command, parameters, payload, wine)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def put(path: str, data: bytes) -> Step:
    return do("Set-BoxFile", data, Path=path, Sha256=sha(data))


def look(*paths: str) -> Step:
    return do("Get-BoxFile", Path=list(paths), Hash=True, MaxContentBytes=100)


LONG = "x" * 300
HELLO = b"hello"

STORIES: dict[str, list[Step]] = {
    "folders": [
        do("New-BoxDirectory", Path=[D, f"{D}\\a\\b", D]),
        do("New-BoxDirectory", Path=[f"{D}\\A\\B"]),
        do("New-BoxDirectory", Path=[f"{D}\\bad|x"]),
        do("New-BoxDirectory", Path=["Q:\\x"], wine="a missing drive is a missing file to it"),
        do("Get-BoxChildItem", Path=D, Recurse=True),
        do("Get-BoxChildItem", Path=f"{D}\\nope"),
        put(f"{D}\\f.txt", HELLO),
        do("Get-BoxChildItem", Path=f"{D}\\f.txt"),
        do("New-BoxDirectory", Path=[f"{D}\\f.txt"]),
        do("New-BoxDirectory", Path=[f"{D}\\f.txt\\x\\y"]),
    ],
    "parameters": [
        do("New-BoxDirectory"),
        do("New-BoxDirectory", Path=[]),
        do("New-BoxDirectory", Path=[""]),
        do("New-BoxDirectory", Path=["relative\\x"]),
        do("New-BoxDirectory", Nope=1, Path=[D]),
        do("New-BoxDirectory", path=[D]),
        do("New-BoxDirectory", b"x", Path=[D]),
        do("New-BoxNothing", Path=[D]),
        do("Get-Item", Path=[D]),
        do("Get-BoxFile", Path=D),
        do("Get-BoxFile", Path=[5]),
        do("Get-BoxFile", Path=[D], Hash="yes"),
        do("Get-BoxFile", Path=[D], Hash=1),
        do("Get-BoxFile", Path=[D], MaxContentBytes="many"),
        do("Get-BoxChildItem", Path=[D]),
        do("Set-BoxFile", HELLO, Path=f"{D}\\f.txt"),
    ],
    "files": [
        do("New-BoxDirectory", Path=[f"{D}\\a"]),
        put(f"{D}\\f.txt", HELLO),
        put(f"{D}\\f.txt", HELLO),
        put(f"{D}\\F.TXT", b"other case"),
        put(f"{D}\\\u4e2d\u6587 \U0001f600 'quoted' [1] $x `t.txt", HELLO),
        put(f"{D}\\empty", b""),
        do("Set-BoxFile", HELLO, Path=f"{D}\\f.txt", Sha256="00" * 32),
        do("Set-BoxFile", HELLO, Path=f"{D}\\a", Sha256=sha(HELLO)),
        do("Set-BoxFile", HELLO, Path=f"{D}\\f.txt", Sha256=sha(HELLO), Encoding="zip"),
        do("Set-BoxFile", HELLO, Path=f"{D}\\f.txt", Sha256=sha(HELLO), Encoding="gzip"),
        put(f"{D}\\missing\\f.txt", HELLO),
        do("Set-BoxFile", Path=f"{D}\\g.txt", Sha256=sha(HELLO), TemporaryPath=f"{D}\\none.tmp"),
        look(f"{D}\\f.txt", f"{D}/f.txt", f"{D}\\.\\a\\..\\f.txt", D, f"{D}\\nope", f"{D}\\nope\\x", "Q:\\"),
        look(
            f"{D}\\a|b",
            f"{D}\\a*b",
            "relative",
            f"{D}\\{LONG}",
            f"{D}\\\u4e2d\u6587 \U0001f600 'quoted' [1] $x `t.txt",
        ),
        look("\\\\no-such-server\\share\\f.txt"),
        do("Get-BoxFile", Path=[f"{D}\\f.txt"], MaxContentBytes=4),
        do("Get-BoxChildItem", Path=D),
    ],
    "parts of files": [
        do("New-BoxDirectory", Path=[f"{D}\\a"]),
        put(f"{D}\\f.txt", HELLO),
        do("Get-BoxFilePart", Path=f"{D}\\f.txt", OffsetBytes=1, LengthBytes=3),
        do("Get-BoxFilePart", Path=f"{D}\\f.txt", OffsetBytes=99, LengthBytes=3),
        do("Get-BoxFilePart", Path=f"{D}\\f.txt", OffsetBytes=-1, LengthBytes=3),
        do("Get-BoxFilePart", Path=f"{D}\\a", LengthBytes=3),
        do("Get-BoxFilePart", Path=f"{D}\\nope", LengthBytes=3),
        do("Get-BoxFilePart", Path=f"{D}\\nope\\x", LengthBytes=3),
        do("Write-BoxFilePart", b"part1", TemporaryPath=f"{D}\\t.tmp", OffsetBytes=0),
        do("Write-BoxFilePart", b"part2", TemporaryPath=f"{D}\\t.tmp", OffsetBytes=5),
        do("Write-BoxFilePart", b"again", TemporaryPath=f"{D}\\t.tmp", OffsetBytes=5),
        do("Write-BoxFilePart", b"x", TemporaryPath=f"{D}\\nope.tmp", OffsetBytes=5),
        do("Write-BoxFilePart", b"x", TemporaryPath=f"{D}\\nope\\x.tmp", OffsetBytes=0),
        do("Write-BoxFilePart", b"x", TemporaryPath=f"{D}\\a", OffsetBytes=0),
        do("Set-BoxFile", Path=f"{D}\\t.bin", Sha256=sha(b"part1part2"), TemporaryPath=f"{D}\\t.tmp"),
        look(f"{D}\\t.bin", f"{D}\\t.tmp"),
    ],
    "read-only files": [
        put(f"{D}\\f.txt", HELLO),
        do("Set-BoxFileAttribute", Path=f"{D}\\f.txt", ReadOnly=True),
        do("Set-BoxFileAttribute", Path=f"{D}\\f.txt", ReadOnly=True),
        do("Set-BoxFileAttribute", Path=f"{D}\\nope", ReadOnly=True),
        look(f"{D}\\f.txt"),
        put(f"{D}\\f.txt", b"new"),
        look(f"{D}\\f.txt"),
        do("Remove-BoxItem", Path=[f"{D}\\f.txt"]),
        look(f"{D}\\f.txt"),
    ],
    "copies and moves": [
        do("New-BoxDirectory", Path=[f"{D}\\a\\b"]),
        put(f"{D}\\f.txt", HELLO),
        put(f"{D}\\g.txt", b"g"),
        do("Copy-BoxItem", Items=[{"Path": f"{D}\\f.txt", "Destination": f"{D}\\c{n}.txt"} for n in (1, 2)]),
        do("Copy-BoxItem", Items=[{"Path": f"{D}\\nope", "Destination": f"{D}\\x"}]),
        do("Copy-BoxItem", Items=[{"Path": f"{D}\\f.txt", "Destination": f"{D}\\nope\\x"}]),
        do("Copy-BoxItem", Items=[{"Path": "", "Destination": f"{D}\\x"}]),
        do("Copy-BoxItem", Items=[]),
        do("Move-BoxItem", Path=f"{D}\\c1.txt", Destination=f"{D}\\moved.txt"),
        do("Move-BoxItem", Path=f"{D}\\nope", Destination=f"{D}\\x"),
        do("Move-BoxItem", Path=f"{D}\\moved.txt", Destination=f"{D}\\g.txt"),
        do("Move-BoxItem", Path=f"{D}\\moved.txt", Destination=f"{D}\\nope\\x"),
        do("Move-BoxItem", Path=f"{D}\\a", Destination=f"{D}\\a2"),
        do("Get-BoxChildItem", Path=D, Recurse=True),
    ],
    "junctions": [
        do("New-BoxDirectory", Path=[f"{D}\\one", f"{D}\\two", f"{D}\\folder\\full"]),
        do("New-BoxJunction", Path=f"{D}\\j", Target=f"{D}\\one"),
        do("New-BoxJunction", Path=f"{D}\\j", Target=f"{D}\\ONE\\"),
        put(f"{D}\\j\\in.txt", HELLO),
        do("New-BoxJunction", Path=f"{D}\\j", Target=f"{D}\\two"),
        do("New-BoxJunction", Path=f"{D}\\j", Target=f"{D}\\nope"),
        do("New-BoxJunction", Path=f"{D}\\folder", Target=f"{D}\\two"),
        look(f"{D}\\j", f"{D}\\j\\in.txt", f"{D}\\one\\in.txt"),
        do("Get-BoxChildItem", Path=D, Recurse=True),
        do("Get-BoxDisk", Path=[f"{D}\\j\\deep\\x", "Q:\\x"]),
        do("Set-BoxFile", HELLO, Path=f"{D}\\j", Sha256=sha(HELLO)),
        do("Remove-BoxItem", Path=[f"{D}\\j"], Recurse=True),
        look(f"{D}\\j", f"{D}\\one\\in.txt"),
    ],
    "removal": [
        do("New-BoxDirectory", Path=[f"{D}\\a\\b"]),
        put(f"{D}\\a\\f.txt", HELLO),
        do("Remove-BoxItem", Path=[f"{D}\\a"]),
        do("Remove-BoxItem", Path=[f"{D}\\nope", f"{D}\\a"], Recurse=True),
        look(f"{D}\\a"),
        do("Remove-BoxItem", Path=["C:\\"]),
        do("Remove-BoxItem", Path=["c:\\windows\\"], Recurse=True),
        do("Remove-BoxItem", Path=["C:\\Users"], Recurse=True),
        do("Remove-BoxItem", Path=["C:\\Program Files"], Recurse=True),
    ],
    "registry": [
        do("Get-BoxRegistry", Key=KEY),
        do("Set-BoxRegistryValue", Key=KEY, Name="a", Kind="DWord", Data=4294967295),
        do("Set-BoxRegistryValue", Key=KEY, Name="A", Kind="dword", Data=-1),
        do("Set-BoxRegistryValue", Key=KEY, Name="m", Kind="MultiString", Data=["x", "y"]),
        do("Set-BoxRegistryValue", Key=KEY, Name="b", Kind="Binary", Data="AQI="),
        do("Set-BoxRegistryValue", Key=KEY, Name="e", Kind="ExpandString", Data="%X%"),
        do("Set-BoxRegistryValue", Key=KEY, Name="q", Kind="QWord", Data=2**63),
        do("Set-BoxRegistryValue", Key=KEY, Name="", Kind="String", Data="the default value"),
        do("Set-BoxRegistryValue", Key=KEY, Name="z", Kind="Nope", Data=1),
        do("Set-BoxRegistryValue", Key=KEY, Name="z", Kind="DWord", Data="abc"),
        do("Set-BoxRegistryValue", Key=KEY, Name="z", Kind="DWord", Data=2**33),
        do("Set-BoxRegistryValue", Key="HKXX:\\a", Name="z", Kind="DWord", Data=1),
        do("Get-BoxRegistry", Key=KEY),
        do("Get-BoxRegistry", Key=KEY, Name=["M", "nope"]),
        do("Remove-BoxRegistryValue", Key=KEY, Name="a"),
        do("Remove-BoxRegistryValue", Key=KEY, Name="a"),
        do("Remove-BoxRegistryValue", Key=f"{KEY}\\nope", Name="a"),
    ],
    "http": [
        do("Get-BoxHttp", Url="http://127.0.0.1:1/"),
        do("Get-BoxHttp", Url="ftp://127.0.0.1/"),
        do("Get-BoxHttp", Url="http://127.0.0.1:1/", BearerFile=f"{D}\\nope"),
        do("Invoke-BoxHttp", Url="http://127.0.0.1:1/", Body="{}"),
    ],
    "free text": [
        do("Invoke-BoxScript", Text="echo hi", Shell="cmd"),
        do("Invoke-BoxScript", Text="exit 3", Shell="cmd"),
        do("Invoke-BoxScript", Text="echo one\nset /p X=\nexit /b 5", Shell="cmd", payload=b"in\r\n"),
        do("Invoke-BoxScript", Text="echo %Y%", Shell="cmd", Environment={"Y": "from outside"}),
        do("Invoke-BoxScript", Text="echo hi", Shell="bash"),
        do("Invoke-BoxScript", Text="echo hi", Shell="cmd", WorkingDirectory=f"{D}\\nope"),
        do("Invoke-BoxScript", Text="echo \u4e2d\necho x", Shell="cmd"),
    ],
    "nouns of Windows": [
        do("Get-BoxAccount", Name=["SYSTEM", "nobody-here", "S-1-5-32-544"]),
        do("Get-BoxAcl", Path=["C:\\nope"]),
        do("Get-BoxTask", TaskPath=["\\Nope", "bad"]),
        do("Start-BoxTask", TaskPath="\\Nope"),
        do("Start-BoxTask", TaskPath="bad"),
        do("Unregister-BoxTask", TaskPath="\\Nope"),
        do("Remove-BoxFirewallRule", Name=["*"]),
        do("Remove-BoxFirewallRule", Name=["nope"]),
        do("Disable-BoxFirewallRule", Name=["nope"]),
        do("Get-BoxCompileCommand", Path="C:\\nope", Definition="X"),
        do("Get-BoxListener", Port=[1]),
        do("Get-BoxToolchain"),
        do("Get-BoxProcess", Name=["nope.exe"]),
        do("Stop-BoxProcess", ProcessId=999996, CreationTimeUtc="2020-01-01T00:00:00.0000000Z"),
        do("Get-BoxJob", Path=f"{D}\\nope"),
    ],
}
