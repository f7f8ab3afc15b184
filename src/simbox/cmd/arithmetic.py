"""SET /A: 32-bit integers, the operators of C, names of variables without percent signs."""

from __future__ import annotations

import re
from collections.abc import MutableMapping

_TOKEN = re.compile(
    r"\s*(<<=|>>=|<<|>>|\*=|/=|%=|\+=|-=|&=|\^=|\|=|[()!~*/%+\-&^|=,]|0[xX][0-9a-fA-F]+|\d\w*|[^\s()!~*/%+\-&^|=,<>]+)"
)
_LEVELS = [["|"], ["^"], ["&"], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]
_ASSIGNMENTS = {"=", "*=", "/=", "%=", "+=", "-=", "&=", "^=", "|=", "<<=", ">>="}


class ArithmeticFault(Exception):
    """What SET /A refuses; `code` is the error level it sets."""

    def __init__(self, message: str, code: int) -> None:
        self.code = code
        super().__init__(message)


def _wrap(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


class _Evaluation:
    def __init__(self, text: str, variables: MutableMapping[str, str]) -> None:
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise ArithmeticFault("Missing operator.", 1073750990)
            self.tokens.append(match[1])
            at = match.end()
        self.at = 0
        self.variables = variables

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        if not token:
            raise ArithmeticFault("Missing operand.", 1073750988)
        self.at += 1
        return token

    def whole(self) -> int:
        value = self.assignment()
        while self.peek() == ",":
            self.at += 1
            value = self.assignment()
        if self.peek() == ")":
            raise ArithmeticFault("Unbalanced parenthesis.", 1073750989)
        if self.peek():
            raise ArithmeticFault("Missing operator.", 1073750990)
        return value

    def assignment(self) -> int:
        following = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else ""
        if following not in _ASSIGNMENTS:
            return self.level(0)
        name = self.take()
        operator = self.take()
        value = self.assignment()
        if operator != "=":
            value = self.apply(operator[:-1], self.value_of(name), value)
        self.variables[name] = str(value)
        return value

    def level(self, depth: int) -> int:
        if depth == len(_LEVELS):
            return self.unary()
        value = self.level(depth + 1)
        while self.peek() in _LEVELS[depth]:
            operator = self.take()
            value = self.apply(operator, value, self.level(depth + 1))
        return value

    def unary(self) -> int:
        token = self.take()
        match token:
            case "-":
                return _wrap(-self.unary())
            case "+":
                return self.unary()
            case "~":
                return _wrap(~self.unary())
            case "!":
                return int(not self.unary())
            case "(":
                value = self.assignment()
                if self.peek() != ")":
                    raise ArithmeticFault("Unbalanced parenthesis.", 1073750989)
                self.at += 1
                return value
        if token[0].isdigit():
            return self.number(token)
        if not (token[0].isalpha() or token[0] in "_@#$.:?\\[]{}'`"):
            raise ArithmeticFault("Missing operand.", 1073750988)
        return self.value_of(token)

    def number(self, token: str) -> int:
        try:
            if token[:2].lower() == "0x":
                value = int(token, 16)
            elif token.startswith("0") and len(token) > 1:
                value = int(token, 8)
            else:
                value = int(token)
        except ValueError:
            raise ArithmeticFault(
                "Invalid number.  Numeric constants are either decimal (17),\r\n"
                "hexadecimal (0x11), or octal (021).",
                1073750991,
            ) from None
        if value > 0xFFFFFFFF or (value > 0x7FFFFFFF and token[:2].lower() != "0x"):
            raise ArithmeticFault("Invalid number.  Numbers are limited to 32-bits of precision.", 1073750992)
        return _wrap(value)

    def value_of(self, name: str) -> int:
        match = re.match(r"\s*([-+]?)(0[xX][0-9a-fA-F]+|\d+)", self.variables.get(name, ""))
        if match is None:
            return 0
        try:
            value = self.number(match[2])
        except ArithmeticFault:
            return 0
        return _wrap(-value) if match[1] == "-" else value

    @staticmethod
    def apply(operator: str, left: int, right: int) -> int:
        if operator in ("/", "%"):
            if right == 0:
                raise ArithmeticFault("Divide by zero error.", 1073750993)
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return _wrap(quotient if operator == "/" else left - quotient * right)
        match operator:
            case "*":
                return _wrap(left * right)
            case "+":
                return _wrap(left + right)
            case "-":
                return _wrap(left - right)
            case "&":
                return _wrap(left & right)
            case "^":
                return _wrap(left ^ right)
            case "|":
                return _wrap(left | right)
            case "<<":
                return _wrap(left << right) if 0 <= right < 32 else 0
            case ">>":
                return left >> right if 0 <= right < 32 else (-1 if left < 0 else 0)
        raise ArithmeticFault("Missing operator.", 1073750990)


def evaluate(text: str, variables: MutableMapping[str, str]) -> int:
    """Evaluate an expression, setting the variables it assigns. Raises ArithmeticFault."""
    evaluation = _Evaluation(text.replace('"', ""), variables)
    if not evaluation.tokens:
        raise ArithmeticFault("The syntax of the command is incorrect.", 1)
    return evaluation.whole()
