"""Special characters: from expanded lines to a tree. Lines are asked for one by one, as cmd.exe reads
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from simbox.cmd.syntax import (
    Block,
    Chain,
    For,
    If,
    Node,
    Parsed,
    Pipe,
    Quiet,
    Redirection,
    Simple,
    SyntaxFault,
)

BLANKS = " \t"
DELIMITERS = " \t,;="
SPECIAL = "&|<>"
COMPARISONS = ("EQU", "NEQ", "LSS", "LEQ", "GTR", "GEQ")


class Parser:
    """Parses one statement at a time.

    Args:
        next_line: the next physical line after the percent phase, without its line end; None at the end.
    """

    def __init__(self, next_line: Callable[[], str | None]) -> None:
        self._next_line = next_line
        self._text = ""
        self._at = 0
        self._depth = 0

    def statement(self) -> Parsed | None:
        """The next statement, or None when there are no more lines. Raises SyntaxFault."""
        line = self._next_line()
        if line is None:
            return None
        self._text, self._at, self._depth = line, 0, 0
        node = self._sequence()
        if self._at < len(self._text):
            self._fault(self._text[self._at])
        return Parsed(node, self._text.strip())

    def _fault(self, token: str) -> None:
        raise SyntaxFault(f"{token} was unexpected at this time.")

    def _more(self) -> bool:
        """Append the next physical line, after a line break. False at the end of the file."""
        line = self._next_line()
        if line is None:
            return False
        self._text += "\n" + line
        return True

    def _peek(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _skip(self, characters: str) -> None:
        while self._at < len(self._text) and self._text[self._at] in characters:
            self._at += 1

    # operators, lowest first: & || && |

    def _sequence(self) -> Node | None:
        left = self._binary(("||",), lambda: self._binary(("&&",), self._pipe))
        self._skip(BLANKS)
        while self._peek() == "&" and self._peek(2) != "&&":
            if left is None:
                self._fault("&")
            self._at += 1
            right = self._binary(("||",), lambda: self._binary(("&&",), self._pipe))
            if right is not None:
                left = Chain("&", left, right) if left is not None else right
            self._skip(BLANKS)
        return left

    def _binary(
        self, operators: tuple[Literal["||", "&&"], ...], operand: Callable[[], Node | None]
    ) -> Node | None:
        left = operand()
        self._skip(BLANKS)
        while self._peek(2) in operators:
            operator = operators[0]
            if left is None:
                self._fault(operator)
            self._at += 2
            right = operand()
            if left is None or right is None:
                raise SyntaxFault("The syntax of the command is incorrect.")
            left = Chain(operator, left, right)
            self._skip(BLANKS)
        return left

    def _pipe(self) -> Node | None:
        left = self._command()
        self._skip(BLANKS)
        while self._peek() == "|" and self._peek(2) != "||":
            if left is None:
                self._fault("|")
            self._at += 1
            right = self._command()
            if left is None or right is None:
                raise SyntaxFault("The syntax of the command is incorrect.")
            left = Pipe(left, right)
            self._skip(BLANKS)
        return left

    # commands

    def _command(self) -> Node | None:
        self._skip(DELIMITERS)
        while self._peek() == "^" and self._at + 1 >= len(self._text) and self._more():
            self._at += 2
            self._skip(DELIMITERS)
        here = self._peek()
        if here == "@":
            self._at += 1
            body = self._command()
            return Quiet(body) if body is not None else None
        if here == "(":
            return self._block()
        if here == ":":
            self._to_line_end()
            return None
        word = self._word_ahead().lower()
        if word == "rem":
            self._to_line_end()
            return None
        if word == "if":
            self._at += 2
            return self._if()
        if word == "for":
            self._at += 3
            return self._for()
        return self._simple()

    def _word_ahead(self) -> str:
        end = self._at
        while end < len(self._text) and self._text[end] not in DELIMITERS + SPECIAL + '()\n/"^':
            end += 1
        return self._text[self._at : end]

    def _to_line_end(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _block(self) -> Node:
        self._at += 1
        self._depth += 1
        body: list[Node] = []
        while True:
            self._skip(BLANKS + "\n")
            if self._at >= len(self._text):
                if not self._more():
                    raise SyntaxFault("The syntax of the command is incorrect.")
                continue
            if self._peek() == ")":
                self._at += 1
                break
            node = self._sequence()
            if node is not None:
                body.append(node)
            self._skip(BLANKS)
            if self._at < len(self._text) and self._peek() not in "\n)":
                self._fault(self._peek())
        self._depth -= 1
        redirections: list[Redirection] = []
        self._skip(BLANKS)
        while self._redirection_ahead():
            redirections.append(self._redirection())
            self._skip(BLANKS)
        return Block(tuple(body), tuple(redirections))

    def _simple(self) -> Node | None:
        text: list[str] = []
        redirections: list[Redirection] = []
        quoted = False
        while self._at < len(self._text):
            here = self._peek()
            if here == "\n":
                break
            if here == '"':
                quoted = not quoted
            if quoted:
                text.append(here)
                self._at += 1
                continue
            if here == "^":
                text.append(self._escaped())
                continue
            if here in "<>" or (here.isdigit() and self._handle_ahead(text)):
                redirections.append(self._redirection())
                continue
            if here in "&|" or (here == ")" and self._depth):
                break
            text.append(here)
            self._at += 1
        command = "".join(text).lstrip(DELIMITERS)
        if not command.strip() and not redirections:
            return None
        return Simple(command, tuple(redirections))

    def _escaped(self) -> str:
        """The character after a caret; at the end of a line that is the first one of the next line."""
        self._at += 1
        if self._at >= len(self._text) and not self._more():
            return ""
        if self._peek() == "\n":
            self._at += 1
            if self._at >= len(self._text):
                return ""
        character = self._peek()
        self._at += 1
        return character

    # redirections

    def _handle_ahead(self, before: list[str]) -> bool:
        separate = not before or before[-1] in DELIMITERS + "("
        return separate and self._peek(2)[1:] in ("<", ">")

    def _redirection_ahead(self) -> bool:
        here = self._peek(2)
        return here[:1] in ("<", ">") or (here[:1].isdigit() and here[1:] in ("<", ">"))

    def _redirection(self) -> Redirection:
        handle: int | None = None
        if self._peek().isdigit():
            handle = int(self._peek())
            self._at += 1
        operator: Literal["<", ">", ">>"] = "<" if self._peek() == "<" else ">"
        self._at += 1
        if operator == ">" and self._peek() == ">":
            operator = ">>"
            self._at += 1
        if handle is None:
            handle = 0 if operator == "<" else 1
        if self._peek() == "&":
            self._at += 1
            digit = self._peek()
            if not digit.isdigit():
                self._fault(digit or "&")
            self._at += 1
            return Redirection(handle, operator, "&" + digit)
        target = self._token()
        if not target:
            raise SyntaxFault("The syntax of the command is incorrect.")
        return Redirection(handle, operator, target)

    def _token(self, stop: str = "") -> str:
        """One word: quotes and carets are honoured, quotes kept."""
        self._skip(DELIMITERS if "=" not in stop else " \t,;")
        out: list[str] = []
        quoted = False
        while self._at < len(self._text):
            here = self._peek()
            if here == "\n":
                break
            if here == '"':
                quoted = not quoted
            elif not quoted:
                if here == "^":
                    out.append(self._escaped())
                    continue
                if here in DELIMITERS + SPECIAL + stop or (here == ")" and self._depth):
                    break
            out.append(here)
            self._at += 1
        return "".join(out)

    # if and for

    def _if(self) -> Node:
        negated = ignore_case = False
        token = self._token()
        while token.lower() in ("not", "/i"):
            if token.lower() == "not":
                negated = True
            else:
                ignore_case = True
            token = self._token()
        word = token.lower()
        right = ""
        if word in ("exist", "defined", "errorlevel", "cmdextversion") and self._peek(2) != "==":
            kind, left = word, self._token()
        else:
            left = token
            self._skip(" \t,;")
            if self._peek(2) == "==":
                kind = "=="
                self._at += 2
            else:
                kind = self._token().upper()
                if kind not in COMPARISONS:
                    self._fault(kind or ")")
            right = self._token()
        then = self._sequence()
        if then is None:
            raise SyntaxFault("The syntax of the command is incorrect.")
        otherwise = None
        self._skip(BLANKS)
        if self._word_ahead().lower() == "else":
            self._at += 4
            otherwise = self._sequence()
        return If(negated, ignore_case, kind, left, right, then, otherwise)

    def _for(self) -> Node:
        switch = options = ""
        token = self._token()
        if token.lower() in ("/l", "/f", "/d", "/r"):
            switch = token.lower()
            token = self._for_option() if switch in ("/f", "/r") else self._token()
            if not token.startswith("%"):
                options = token
                token = self._token()
        if len(token) != 2 or token[0] != "%":
            self._fault(token)
        if self._token().lower() != "in":
            self._fault(token)
        self._skip(DELIMITERS)
        if self._peek() != "(":
            self._fault(self._peek())
        self._at += 1
        items = self._for_items()
        if self._token().lower() != "do":
            raise SyntaxFault("The syntax of the command is incorrect.")
        body = self._sequence()
        if body is None:
            raise SyntaxFault("The syntax of the command is incorrect.")
        return For(switch, options, token[1], items, body)

    def _for_option(self) -> str:
        self._skip(BLANKS)
        return self._token()

    def _for_items(self) -> str:
        """The text between the parentheses of a FOR; line breaks count as blanks."""
        out: list[str] = []
        quoted = False
        while True:
            if self._at >= len(self._text):
                if not self._more():
                    raise SyntaxFault("The syntax of the command is incorrect.")
                continue
            here = self._peek()
            if here == '"':
                quoted = not quoted
            elif here == "\n":
                quoted, here = False, " "
            elif not quoted and here == "^":
                out.append(self._escaped())
                continue
            elif not quoted and here == ")":
                self._at += 1
                return "".join(out)
            out.append(here)
            self._at += 1
