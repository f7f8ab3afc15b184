"""IF."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from simbox.cmd.patterns import matching
from simbox.cmd.syntax import If

if TYPE_CHECKING:
    from simbox.cmd.interpreter import Interpreter

_NUMBER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|[0-9]+)")


def _number(text: str) -> int | None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    digits = match[1]
    base = 16 if digits[:2].lower() == "0x" else 8 if digits.startswith("0") and len(digits) > 1 else 10
    try:
        value = int(digits, base)
    except ValueError:
        return None
    return -value if text.startswith("-") else value


def _compared(kind: str, left: str, right: str, ignore_case: bool) -> bool:
    numbers = _number(left), _number(right)
    if numbers[0] is not None and numbers[1] is not None:
        difference = numbers[0] - numbers[1]
    else:
        if ignore_case:
            left, right = left.lower(), right.lower()
        difference = (left > right) - (left < right)
    return {
        "EQU": difference == 0,
        "NEQ": difference != 0,
        "LSS": difference < 0,
        "LEQ": difference <= 0,
        "GTR": difference > 0,
        "GEQ": difference >= 0,
    }[kind]


def holds(node: If, shell: Interpreter) -> bool:
    """Whether the condition of an IF is true, NOT included."""
    left, right = shell.late(node.left), shell.late(node.right)
    match node.kind:
        case "exist":
            result = _exists(left.replace('"', ""), shell)
        case "defined":
            result = shell.state.variable(left) is not None
        case "errorlevel":
            result = shell.state.error_level >= (_number(left) or 0)
        case "cmdextversion":
            result = (_number(left) or 0) <= 2
        case "==":
            result = left.lower() == right.lower() if node.ignore_case else left == right
        case kind:
            result = _compared(kind, left, right, node.ignore_case)
    return result != node.negated


def _exists(path: str, shell: Interpreter) -> bool:
    if not path:
        return False
    if path.lower().rpartition("\\")[2] == "nul":
        return True
    if "*" in path or "?" in path:
        return bool(matching(shell.state, path))
    entry = shell.state.entry(path)
    return entry is not None and (entry.directory or not path.endswith("\\"))
