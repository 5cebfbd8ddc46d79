"""Equations as text to a `Model`: statements are sorted into roles, and every name is checked on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from equifinal.errors import ModelError, did_you_mean
from equifinal.language.checks import checked, free_names, has_conditions
from equifinal.language.expression import TIME, Expression, Name, Number, initial_name, name_nodes, substitute
from equifinal.language.model import Model, exact_number, read_part
from equifinal.language.parser import Parser, is_name
from equifinal.language.tokens import canonical_name, shown


class Statement(NamedTuple):
    kind: str  # "derivative", "initial" or "definition"
    name: str
    expression: Expression
    line: int
    column: int


def read_model(
    equations: str,
    outputs: Iterable[str],
    inputs: Iterable[str],
    constants: Mapping[str, Any],
    quantities: Mapping[str, str],
    parameters: Iterable[str] | None,
) -> Model:
    """See `Model.parse`."""
    return _Reader(equations, inputs, constants, parameters).model(outputs, quantities)


def read_statements(
    text: str, constants: Mapping[str, Fraction] | None = None
) -> tuple[list[Statement], dict[str, Fraction]]:
    """The equations of a block of model text, one by one, and the constants that stand in exponents."""
    parser = Parser(text, constants)
    statements: list[Statement] = []
    while True:
        while parser.peek().kind == "newline":
            parser.position += 1
        if parser.peek().kind == "end":
            return statements, parser.exponents
        first = parser.peek()
        kind, name = _left_side(parser)
        parser.skip_newlines()
        expression = parser.expression()
        if parser.peek().kind not in ("newline", "end"):
            raise parser.error(f"expected an operator or the end of the line, found {shown(parser.peek())}")
        statements.append(Statement(kind, name, expression, first.line, first.column))


def _left_side(parser: Parser) -> tuple[str, str]:
    first = parser.peek()
    if first.kind != "name":
        raise parser.error(f"expected an equation such as x' = ..., x(0) = ... or y = ..., found '{first.text}'")
    parser.take()
    kind, name = "definition", first.text
    if parser.take_if("'"):
        kind = "derivative"
    elif parser.peek().text == "(" and parser.peek(1).text == "t" and parser.peek(2).text == ")":
        parser.position += 3  # x(t) = ... and x(t)' = ... read as x
        kind = "derivative" if parser.take_if("'") else "definition"
    elif parser.take_if("("):
        if not (parser.peek().kind == "number" and Fraction(parser.peek().text) == 0):
            raise parser.error(f"initial values are given at time 0: write {name}(0) = ...")
        parser.take()
        parser.expect(")", f"after {name}(0")
        kind = "initial"
    elif len(name) > 1 and name.startswith("d") and parser.peek().text == "/" and parser.peek(1).text == "dt":
        parser.position += 2
        kind, name = "derivative", name[1:]
    if parser.peek().text == "'":
        raise parser.error("only first derivatives are read; make the derivative a state of its own")
    parser.expect("=", f"after '{name}'")
    return kind, name


class _Reader:
    """Sorts statements and declarations into a `Model`, checking every name on the way."""

    def __init__(
        self, text: str, inputs: Iterable[str], constants: Mapping[str, Any], parameters: Iterable[str] | None
    ):
        self.inputs = _declared_names(inputs, "inputs")
        self.allowed = None if parameters is None else _declared_names(parameters, "parameters")
        names = _declared_names(constants, "constants")
        values = (exact_number(value, f"constant '{name}'") for name, value in constants.items())
        self.constants = dict(zip(names, values, strict=True))
        read, self.exponents = read_statements(text, self.constants)
        numbers = _numbers(self.exponents)
        self.statements = [s._replace(expression=substitute(s.expression, numbers)) for s in read]

    def model(self, outputs: Iterable[str], quantities: Mapping[str, str]) -> Model:
        equations = self._collect("derivative", "has two equations")
        definitions = self._collect("definition", "is defined twice")
        initial = self._collect("initial", "has two initial values")
        if not equations:
            raise ModelError("the model has no states: write at least one equation such as x' = -k*x")
        self._check_roles(equations, definitions, initial)
        for statement in self.statements:
            if statement.kind == "initial" and statement.name not in equations:
                hint = did_you_mean(statement.name, equations)
                raise _at(
                    statement,
                    f"initial value of '{statement.name}', which has no equation {statement.name}' = ...{hint}",
                )
        for state in equations:
            initial.setdefault(state, Name(f"{state}_0"))
        draft = Model(
            states=tuple(equations),
            parameters=(),
            constants={n: value for n, value in self.constants.items() if n not in self.exponents},
            inputs=self.inputs,
            equations=equations,
            initial={state: initial[state] for state in equations},
            definitions=definitions,
            outputs=_declared_names(outputs, "outputs"),
            quantities={},
        )
        model = checked(replace(draft, parameters=free_names(draft)))
        if self.allowed is not None:
            self._check_allowed(model)
            implied = {*model.states, *definitions, *self.constants, *self.inputs}
            unseen = [name for name in self.allowed if name not in model.parameters and name not in implied]
            model = replace(model, parameters=(*model.parameters, *unseen))
        constant, changing = _read_quantities(quantities, model, self.exponents)
        return checked(replace(model, quantities=constant, trajectories=changing))

    def _collect(self, kind: str, twice: str) -> dict[str, Expression]:
        found: dict[str, Expression] = {}
        for statement in self.statements:
            if statement.kind != kind:
                continue
            if statement.name in found:
                raise _at(statement, f"'{statement.name}' {twice}")
            found[statement.name] = statement.expression
        return found

    def _check_roles(
        self,
        equations: Mapping[str, Expression],
        definitions: Mapping[str, Expression],
        initial: Mapping[str, Expression],
    ) -> None:
        for statement in self.statements:
            name = statement.name
            clashes = {
                "a constant": name in self.constants,
                "an input": name in self.inputs,
                "a state": statement.kind == "definition" and name in equations,
            }
            for role, clash in clashes.items():
                if clash:
                    raise _at(statement, f"'{name}' is declared as {role}, so it cannot have an equation of its own")
            if name == "t":
                raise _at(statement, "'t' stands for time and cannot be defined")
        for name in self.inputs:
            if name in self.constants:
                raise ModelError(f"'{name}' is declared both as a constant and as an input", word=name)
        for state in equations:
            if f"{state}_0" in definitions and state not in initial:
                raise ModelError(
                    f"'{state}_0' names the initial value of '{state}' and cannot be defined", word=f"{state}_0"
                )

    def _check_allowed(self, model: Model) -> None:
        assert self.allowed is not None
        implied = {f"{x}_0" for x in model.states}
        known = {*self.allowed, *model.states, *model.definitions, *model.constants, *model.inputs}
        for statement in self.statements:
            for node in name_nodes(statement.expression):
                if node.name in model.parameters and node.name not in self.allowed and node.name not in implied:
                    hint = did_you_mean(node.name, known).removeprefix("; ").removesuffix("?")
                    other = f", or {hint}?" if hint else ""
                    raise ModelError(
                        f"{node.name} has no prior: add it to [parameters] or give it a value in [constants]{other}",
                        line=node.line,
                        column=node.column,
                        word=node.name,
                    )


def _at(statement: Statement, message: str) -> ModelError:
    return ModelError(message, line=statement.line, column=statement.column, word=statement.name)


def _check_name(name: Any, what: str) -> None:
    if not isinstance(name, str):
        raise ModelError(f"the name of a {what} must be text, not {name!r}")
    if not is_name(name):
        raise ModelError(f"'{name}' cannot be the name of a {what}: use letters, digits and underscores", word=name)
    if name == "t":
        raise ModelError(f"'t' stands for time and cannot be the name of a {what}", word=name)


def _declared_names(declared: Iterable[str], what: str) -> tuple[str, ...]:
    if isinstance(declared, str):
        raise ModelError(f"{what} must be a list of names, not the text '{declared}'")
    found = tuple(declared)
    for name in found:
        _check_name(name, what.rstrip("s"))
        if found.count(name) > 1:
            raise ModelError(f"'{name}' appears twice among the {what}", word=name)
    return tuple(canonical_name(name) for name in found)


def _numbers(constants: Mapping[str, Fraction]) -> dict[str, Expression]:
    return {name: Number(value) for name, value in constants.items()}


def _read_quantities(
    quantities: Mapping[str, str], model: Model, exponents: Mapping[str, Fraction]
) -> tuple[dict[str, Expression], dict[str, Expression]]:
    """Quantities that are numbers, and those that change with time."""
    constant: dict[str, Expression] = {}
    changing: dict[str, Expression] = {}
    known = {*model.parameters, *model.constants, *model.definitions}
    for name, text in quantities.items():
        _check_name(name, "quantity of interest")
        taken = name in known or name in model.states or name in model.inputs
        if taken and not (name in model.definitions and text == name):  # a definition may be of interest as it is
            raise ModelError(f"quantity '{name}' has the same name as something else in the model", word=name)
        if not isinstance(text, str):
            raise ModelError(f"quantity '{name}' must be text such as \"beta*N/gamma\", not {text!r}", word=name)
        expression = substitute(read_part(text, f"quantity '{name}'", exponents), _numbers(exponents))
        closed = substitute(expression, model.closed_definitions)
        changes = has_conditions(closed)
        for node in name_nodes(closed):
            if node.name in model.states or node.name in model.inputs or node.name == TIME:
                changes = True
            elif node.name not in known and node.name not in {initial_name(x) for x in model.states}:
                raise ModelError(
                    f"quantity '{name}': unknown name '{node.name}'{did_you_mean(node.name, (*known, *model.states))}",
                    word=node.name,
                )
        (changing if changes else constant)[canonical_name(name)] = expression
    return constant, changing
