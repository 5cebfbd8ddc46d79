"""Model text to tokens, in the spelling that the language writes."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from equifinal.errors import ModelError

MAX_LENGTH = 100_000


class Token(NamedTuple):
    kind: str  # "number", "name", "sign", "newline", "end"
    text: str
    line: int
    column: int


_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# what pasted text contains for what the language writes
_SPELLINGS = {"−": "-", "–": "-", "·": "*", "×": "*", "⋅": "*", "÷": "/", "’": "'", "′": "'", "‘": "'", "µ": "μ"}
_SPELLINGS |= {"≤": "<=", "≥": ">="}
_SIGNS = ("**", "<=", ">=", "<", ">", "+", "-", "*", "/", "^", "(", ")", "=", "'", ";", ",")
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"
_HINTS = {
    ",": "; write decimals with a point, and one equation on a line",
    "[": "; use round brackets",
    "{": "; use round brackets",
    "!": "; write factorials as numbers",
    "<": "; conditions on time stand in brackets, (t < 10), or in piecewise(a, t < 10, b)",
    ":": "; write an equation as name = expression",
    '"': "; names are written without quotes",
}
_HINTS |= dict.fromkeys((">", "<=", ">="), _HINTS["<"])


def _starts_name(char: str) -> bool:
    return char == "_" or char.isalpha()


def _continues_name(char: str) -> bool:
    if char in _SUPERSCRIPTS:
        return False
    return char == "_" or char.isalnum() or unicodedata.category(char) in ("Mn", "Mc")


def canonical_name(name: str) -> str:
    """A name in the spelling that the tokenizer gives it: letters that look the same are the same."""
    return "".join(_SPELLINGS.get(char, char) for char in unicodedata.normalize("NFC", name))


def tokenize(text: str) -> list[Token]:
    """Split model text into tokens; comments run from ``#`` to the end of the line."""
    if not isinstance(text, str):
        raise ModelError(f"model text must be a string, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise ModelError(f"the text is {len(text)} characters long; at most {MAX_LENGTH} are allowed")
    tokens: list[Token] = []
    lines = re.split(r"\r\n|\r|\n", unicodedata.normalize("NFC", text))
    for line_number, raw in enumerate(lines, start=1):
        line = "".join(_SPELLINGS.get(char, char) for char in raw)
        position = 0
        while position < len(line):
            char, column = line[position], position + 1
            if char == "#":
                break
            if char.isspace() or char == "\ufeff":
                position += 1
                continue
            if number := _NUMBER.match(line, position):
                tokens.append(Token("number", number.group(), line_number, column))
                position = number.end()
            elif _starts_name(char):
                end = position + 1
                while end < len(line) and _continues_name(line[end]):
                    end += 1
                tokens.append(Token("name", line[position:end], line_number, column))
                position = end
            elif sign := next((s for s in _SIGNS if line.startswith(s, position)), None):
                tokens.append(Token("newline" if sign == ";" else "sign", sign, line_number, column))
                position += len(sign)
            else:
                hint = "; write powers as x^2" if char in _SUPERSCRIPTS else _HINTS.get(char, "")
                shown = char if char.isprintable() else f"U+{ord(char):04X}"
                raise ModelError(f"unexpected character '{shown}'{hint}", line=line_number, column=column, word=char)
        tokens.append(Token("newline", "end of line", line_number, len(line) + 1))
    tokens.append(Token("end", "end of text", len(lines), len(lines[-1]) + 1))
    return tokens


def is_word(token: Token, *texts: str) -> bool:
    return token.kind in ("sign", "name") and token.text in texts


def shown(token: Token) -> str:
    if token.kind in ("newline", "end") and token.text != ";":
        return f"the {token.text}"
    return f"'{token.text}'{_HINTS.get(token.text, '') if token.kind == 'sign' else ''}"
