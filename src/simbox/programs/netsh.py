"""netsh.exe: the one question that is asked of it, answered in the language and code page of the box."""

from __future__ import annotations

from simbox.programs.invocation import Invocation

_QUESTION = "excludedportrange"


def run(invocation: Invocation) -> int:
    """`netsh interface ipv4 show excludedportrange protocol=tcp`; anything else ends with 1."""
    words = [word.lower() for word in invocation.arguments]
    if words[:1] not in (["int"], ["interface"]) or _QUESTION not in words:
        invocation.out(f"The following command was not found: {' '.join(invocation.arguments)}.")
        return 1
    box = invocation.box
    page = box.store.get("system", "oem_code_page", default=437)
    text = box.windows.system.excluded_port_ranges_text()
    invocation.stdout(text.encode(f"cp{page}", "replace"))
    return 0
