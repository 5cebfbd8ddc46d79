"""The errors a user can meet, and how they say where, what and what would be right.

Messages name arguments of the library in backticks, as in ```overwrite=True```; the command line shows flags instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class EquifinalError(Exception):
    """Base of every error that equifinal raises on purpose."""


class ModelError(EquifinalError):
    """The model text or its declarations are wrong.

    Attributes
    ----------
    line, column
        Where in the model text, counted from 1; ``None`` if the error has no place in it.
    word
        The offending word, if there is one.
    file
        The file it stands in, if it was read from one.
    """

    def __init__(
        self, message: str, *, line: int | None = None, column: int | None = None, word: str = "", file: str = ""
    ):
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.word = word
        self.file = file

    def __str__(self) -> str:
        place = [self.file] if self.file else []
        if self.line is not None:
            place += [f"line {self.line}", f"column {self.column}"]
        return f"{', '.join(place)}: {self.message}" if place else self.message

    def moved(self, *, file: str, lines: int = 0) -> ModelError:
        """The same error, as seen in the file that the model text stands in."""
        line = None if self.line is None else self.line + lines
        return ModelError(self.message, line=line, column=self.column, word=self.word, file=file)

    def __reduce__(self) -> tuple[Any, ...]:  # keyword-only arguments do not survive the default pickling
        return _model_error, (self.message, self.line, self.column, self.word, self.file)


def _model_error(message: str, line: int | None, column: int | None, word: str, file: str) -> ModelError:
    return ModelError(message, line=line, column=column, word=word, file=file)


class DataError(EquifinalError):
    """Data, priors, noise or settings are missing, malformed or contradict the model."""


class IdentifiabilityError(EquifinalError):
    """The identifiability analysis cannot answer the question asked."""


class SolverError(EquifinalError):
    """The differential equations cannot be compiled or solved."""


class SamplingError(EquifinalError):
    """A sampler cannot start or go on."""


class InterruptedRunError(SamplingError):
    """A run was stopped before anything was drawn."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'gamma'?"`` when a known word is close, else an empty string."""
    close = get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    if not close:  # difflib is case sensitive; modellers are not always
        lowered = {k.lower(): k for k in known}
        close = [lowered[m] for m in get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)]
    return f"; did you mean '{close[0]}'?" if close else ""
