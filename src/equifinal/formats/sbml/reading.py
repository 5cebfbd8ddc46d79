"""SBML files, opened with care: no entities, no network, bounded depth and size, and only what can be represented."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.parsers import expat

from equifinal.errors import DataError, ModelError
from equifinal.files import read_text

MAX_BYTES = 60_000_000
MAX_NESTING = 200  # of XML elements; a parser in C would run out of stack at some point
# packages that add nothing to a model's behaviour, or nothing that is used here
HARMLESS = ("layout", "render", "groups", "req", "l3v2extendedmath")


def open_sbml(path: Path) -> Any:
    """The model of an SBML file as libsbml has it, with the document that owns it.

    Raises
    ------
    DataError, ModelError
        If the file is not one, or needs what is not supported.
    """
    text = read_text(path, MAX_BYTES)
    _check_xml(text, path.name)
    document = libsbml_module().readSBMLFromString(text)
    _check_read(document, path.name)
    if document.getLevel() < 2:
        raise ModelError("SBML Level 1 is not read; convert the model to Level 2 or 3", file=path.name)
    for at in range(document.getNumPlugins()):
        name = document.getPlugin(at).getPackageName()
        unused = name == "comp" and not _composed(document.getModel())
        if name not in HARMLESS and not unused and document.getPackageRequired(name):
            raise ModelError(f"the SBML package '{name}' is not supported", file=path.name, word=name)
    for at in range(document.getNumUnknownPackages() if hasattr(document, "getNumUnknownPackages") else 0):
        if document.getUnknownPackageRequired(at):
            raise ModelError("the file needs an SBML package that is not known", file=path.name)
    if document.getModel() is None:
        raise ModelError("the SBML file has no model", file=path.name)
    return document


def _composed(model: Any) -> bool:
    """Whether a model is made of submodels, and not only declares that it could be."""
    plugin = model.getPlugin("comp") if model is not None else None
    return plugin is not None and plugin.getNumSubmodels() > 0


def libsbml_module() -> Any:
    try:
        import libsbml
    except ImportError:
        raise DataError("SBML needs the package python-libsbml: pip install 'equifinal[petab]'") from None
    return libsbml


def _check_xml(text: str, file: str) -> None:
    """Refuse what is not XML, declares entities, or is nested without end, before anything else reads it."""
    depth = 0

    def opened(name: str, attributes: object) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_NESTING:
            raise ModelError(f"elements are nested more than {MAX_NESTING} deep", line=line(), column=column())

    def closed(name: str) -> None:
        nonlocal depth
        depth -= 1

    def declared(*_: object) -> None:
        raise ModelError("document type declarations and entities are not read", line=line(), column=column())

    def line() -> int:
        return parser.CurrentLineNumber

    def column() -> int:
        return parser.CurrentColumnNumber + 1

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    parser.StartDoctypeDeclHandler = declared
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise ModelError(
            f"not an XML file: {expat.errors.messages[error.code]}",
            line=error.lineno,
            column=error.offset + 1,
            file=file,
        ) from None
    except ModelError as error:
        raise error.moved(file=file) from None


def _check_read(document: Any, file: str) -> None:
    serious = libsbml_module().LIBSBML_SEV_ERROR
    for at in range(document.getNumErrors()):
        error = document.getError(at)
        if error.getSeverity() >= serious:
            message = " ".join(error.getMessage().split())
            raise ModelError(
                f"not valid SBML: {message[:300]}", line=error.getLine(), column=max(1, error.getColumn()), file=file
            )
