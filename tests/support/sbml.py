"""SBML text for tests: the parts of a model as MathML, put together."""

from __future__ import annotations

import re

_OPERATORS = {"+": "plus", "*": "times", "-": "minus", "/": "divide", "<": "lt", "<=": "leq", ">": "gt", ">=": "geq"}


def sbml(
    *,
    compartments: str = '<compartment id="c" size="1" constant="true"/>',
    species: str = "",
    parameters: str = "",
    functions: str = "",
    first: str = "",
    rules: str = "",
    reactions: str = "",
    events: str = "",
    level: int = 3,
    attributes: str = "",
) -> str:
    """A document from the insides of its lists; empty lists are left out."""
    parts = {
        "FunctionDefinitions": functions,
        "Compartments": compartments,
        "Species": species,
        "Parameters": parameters,
        "InitialAssignments": first,
        "Rules": rules,
        "Reactions": reactions,
        "Events": events,
    }
    lists = "".join(f"<listOf{name}>{inside}</listOf{name}>" for name, inside in parts.items() if inside)
    space = {3: "http://www.sbml.org/sbml/level3/version2/core", 2: "http://www.sbml.org/sbml/level2/version4"}[level]
    version = {3: 2, 2: 4}[level]
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<sbml xmlns="{space}" level="{level}" version="{version}">'
        f'<model id="m" {attributes}>{lists}</model></sbml>'
    )


def species(name: str, start: str = 'initialConcentration="1"', **attributes: str) -> str:
    given = {"compartment": "c", "hasOnlySubstanceUnits": "false", "boundaryCondition": "false", "constant": "false"}
    written = " ".join(f'{key}="{value}"' for key, value in (given | attributes).items())
    return f'<species id="{name}" {start} {written}/>'


def parameter(name: str, value: float | str | None = 1, *, constant: bool = True) -> str:
    given = "" if value is None else f' value="{value}"'
    return f'<parameter id="{name}"{given} constant="{str(constant).lower()}"/>'


def math(text: str) -> str:
    """MathML of a formula in prefix notation, ``(* k A)``, with ``time`` for the symbol of this name."""
    tokens = re.findall(r"[()]|[^\s()]+", text)
    found, rest = _math(tokens)
    assert not rest
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML">{found}</math>'


def _math(tokens: list[str]) -> tuple[str, list[str]]:
    token, *rest = tokens
    if token != "(":
        return _atom(token), rest
    operator, *rest = rest
    inside = []
    while rest[0] != ")":
        part, rest = _math(rest)
        inside.append(part)
    if operator == "piecewise":
        pieces = "".join(f"<piece>{a}{b}</piece>" for a, b in zip(inside[:-1:2], inside[1::2], strict=True))
        return f"<piecewise>{pieces}<otherwise>{inside[-1]}</otherwise></piecewise>", rest[1:]
    if operator == "lambda":
        variables = "".join(f"<bvar>{name}</bvar>" for name in inside[:-1])
        return f"<lambda>{variables}{inside[-1]}</lambda>", rest[1:]
    name = _OPERATORS.get(operator, operator)
    head = f"<ci>{name[1:]}</ci>" if name.startswith(":") else f"<{name}/>"
    if name in ("delay", "rateOf"):
        head = f'<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/{name}">{name}</csymbol>'
    return f"<apply>{head}{''.join(inside)}</apply>", rest[1:]


def _atom(token: str) -> str:
    if token == "time":
        return '<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/time">t</csymbol>'
    if token in ("pi", "true", "false", "exponentiale"):
        return f"<{token}/>"
    return f"<cn>{token}</cn>" if re.match(r"[-+.\d]", token) else f"<ci>{token}</ci>"


def reaction(name: str, rate: str, reactants: str = "", products: str = "", local: str = "") -> str:
    """A reaction; ``reactants="2 A"`` and so on, separated by commas; `local` are local parameters."""

    def references(listed: str, kind: str) -> str:
        items = []
        for item in filter(None, (part.strip() for part in listed.split(","))):
            *count, identifier = item.split()
            number = count[0] if count else "1"
            items.append(f'<speciesReference species="{identifier}" stoichiometry="{number}" constant="true"/>')
        return f"<listOf{kind}>{''.join(items)}</listOf{kind}>" if items else ""

    own = f"<listOfLocalParameters>{local}</listOfLocalParameters>" if local else ""
    law = f"<kineticLaw>{math(rate)}{own}</kineticLaw>"
    body = references(reactants, "Reactants") + references(products, "Products") + law
    return f'<reaction id="{name}" reversible="false">{body}</reaction>'


def rule(kind: str, variable: str, formula: str) -> str:
    """``kind`` is assignment or rate."""
    return f'<{kind}Rule variable="{variable}">{math(formula)}</{kind}Rule>'


def event(name: str, trigger: str, sets: dict[str, str], extra: str = "", *, trigger_values: bool = True) -> str:
    assignments = "".join(f'<eventAssignment variable="{k}">{math(v)}</eventAssignment>' for k, v in sets.items())
    return (
        f'<event id="{name}" useValuesFromTriggerTime="{str(trigger_values).lower()}">'
        f'<trigger initialValue="true" persistent="true">{math(trigger)}</trigger>{extra}'
        f"<listOfEventAssignments>{assignments}</listOfEventAssignments></event>"
    )
