"""From models with doses, switches, functions and steady states to rational ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from equifinal.identifiability.lifting.atoms import Key, Refine, Vector, hashable
from equifinal.identifiability.lifting.functions import (
    Atoms,
    Functions,
    NotLiftable,
    Rotation,
    SingularStart,
    Solve,
    Ties,
    argument_of,
)
from equifinal.identifiability.lifting.happening import System, pieces, with_inputs
from equifinal.identifiability.lifting.lifted import HALVED, LATE, POSITIVE, RESTING, RICH, SEEN, Lifted
from equifinal.language.expression import TIME, Call, Expression, Name, Power, Product, Sum, names, substitute
from equifinal.language.model import Model
from equifinal.language.rational import (
    ONE,
    ZERO,
    added,
    change,
    linear_parts,
    multiplied,
    number,
    numerator,
    raised,
    simplified,
    without_factors,
)
from equifinal.language.steady import rational_steady_state, resting_equations

ROUNDS = 200  # of beginning again with what was found


@dataclass
class _Choices:
    """What was found on the way, and holds from the start of the next round on."""

    divisors: dict[frozenset[tuple[Key, Fraction]], int] = field(default_factory=dict)
    solved: dict[str, Expression] = field(default_factory=dict)
    roots: dict[str, Call] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)
    tieless: set[int] = field(default_factory=set)  # models whose rest is not tied to parameters


def lift(models: Sequence[Model]) -> Lifted:
    """Rational models that determine at least as much as the models do.

    Raises
    ------
    NotLiftable
        If one calls a function that has no derivative everywhere, of something that changes or is unknown.
    """
    choices = _Choices()
    for _ in range(ROUNDS):
        lifting = _Lifting(models, choices)
        try:
            return lifting.run()
        except Refine as split:
            key = hashable(split.vector)
            choices.divisors[key] = choices.divisors.get(key, 1) * split.divisor
        except Solve as solve:
            value = {solve.name: solve.value}
            choices.solved = {name: substitute(e, value) for name, e in choices.solved.items()} | value
            if solve.root:
                choices.roots[solve.root[0]] = solve.root[1]
        except SingularStart:
            if lifting.current in choices.late:
                raise NotLiftable("a function has no value at the start of the model") from None
            choices.late.add(lifting.current)
    raise NotLiftable("the functions in the models depend on each other in too many ways")


class _Lifting:
    """One round."""

    def __init__(self, models: Sequence[Model], choices: _Choices):
        self.models, self.choices = models, choices
        self.parameters = tuple(dict.fromkeys(name for model in models for name in model.parameters))
        self.known: dict[str, None] = {}
        self.hidden: dict[str, tuple[Expression, ...]] = {
            name: shown.arguments[:1] for name, shown in choices.roots.items()
        }
        self.assumptions: dict[str, None] = {}
        self.ties = Ties(choices.divisors, self._solvable)
        self.current = 0
        functions = Functions(self.ties, self.ties, set, {})
        self.values = {name: functions.rational(e) for name, e in choices.solved.items()}

    def _solvable(self) -> tuple[str, ...]:
        """Parameters that may be written in terms of others."""
        inside = {name for tie in self.ties.ties for name in names(tie.argument)}
        return tuple(n for n in self.parameters if n not in self.choices.solved and n not in inside)

    def run(self) -> Lifted:
        lifted = []
        for number_of_model, model in enumerate(self.models):
            self.current = number_of_model
            lifted.append(self._model(model))
        if self.ties.positive:
            self.assumptions[POSITIVE] = None
        if self.ties.rough:
            self.assumptions[HALVED] = None
        coordinates = [n for n in self.parameters if n not in self.values]
        coordinates += [n for n in (*self.hidden, *self.known) if n not in self.values]
        seen = {n for model in lifted for n in model.parameters}
        inside = {n for tie in self.ties.ties for n in names(tie.argument)}
        inside |= {n for name in self.parameters for n in names(self.values.get(name, ZERO))}
        for i, model in enumerate(self.models):  # parameters that no equation contains are unknown as well
            absent = [n for n in model.parameters if n in coordinates and n not in seen and n not in inside]
            lifted[i] = replace(lifted[i], parameters=(*lifted[i].parameters, *absent))
        return Lifted(
            models=tuple(lifted),
            parameters={n: self.values.get(n, Name(n)) for n in self.parameters},
            coordinates=tuple(coordinates),
            known=tuple(self.known),
            hidden={n: functions for n, functions in self.hidden.items() if n not in self.values},
            ties=tuple(self.ties.ties),
            roots=dict(self.choices.roots),
            assumptions=tuple(self.assumptions),
        )

    def _model(self, model: Model) -> Model:
        if model.before is not None:
            explicit = rational_steady_state(model, positive=False)
            model = explicit if explicit is not None else self._at_rest(model)
        system = with_inputs(model)
        if system.inputs:
            self.assumptions[RICH] = None
        if system.moments:
            self.assumptions[SEEN] = None
            system.outputs |= {f"moment {i}": moment for i, moment in enumerate(system.moments, start=1)}
        states = _States(system, self, model.start_time)
        return states.model(model)

    # --- steady states without a formula ---

    def _at_rest(self, model: Model) -> Model:
        """The model from a state at rest that is unknown: parameters are solved for in favour of it."""
        assert model.before is not None
        before = model.before
        rest = {x: f"{x} at rest" for x in model.states}
        used = [Name(n) for n in before.parameters if n not in rest.values()]
        self.hidden |= {name: tuple(used) for name in rest.values()}
        if self.current not in self.choices.tieless:
            self._solve_rest(before, {x: Name(name) for x, name in rest.items()})
        if self.current in self.choices.tieless:
            self.assumptions[RESTING] = None
        return replace(model, initial={x: Name(name) for x, name in rest.items()}, before=None)

    def _solve_rest(self, before: Model, rest: Mapping[str, Expression]) -> None:
        functions = Functions(self.ties, self.ties, set, before.constants)
        try:
            rational = replace(
                before,
                equations={
                    x: functions.rational(substitute(e, rest), True)
                    for x, e in zip(before.states, before.rhs, strict=True)
                },
                initial={x: functions.rational(e, True) for x, e in zip(before.states, before.start, strict=True)},
                definitions={},
            )
            equations = _resting(rational, rest, self.values)
        except (ZeroDivisionError, SingularStart):
            self.choices.tieless.add(self.current)
            return
        inside = {name for tie in self.ties.ties for name in names(tie.argument)}
        for equation in sorted(equations, key=lambda e: len(names(e))):
            for name in (*self.parameters, *(n.name for n in rest.values() if isinstance(n, Name))):
                parts = linear_parts(equation, name) if name not in inside else None
                if parts is not None and name not in self.values:
                    if isinstance(_common(*parts), Sum):  # either this is zero, or the rest: nobody knows which
                        self.choices.tieless.add(self.current)
                        return
                    value = simplified(multiplied(number(-1), parts[1], raised(parts[0], -1)))
                    raise Solve(name, self._written(value))
        if equations:
            self.choices.tieless.add(self.current)

    def _written(self, expression: Expression) -> Expression:
        shown: dict[str, Expression] = {}
        for tie in self.ties.ties:
            shown[tie.name] = substitute(tie.shown, shown)
        return substitute(expression, shown)


def _common(one: Expression, other: Expression) -> Expression:
    """The greatest common factor of two polynomials."""
    return one if other == ZERO else simplified(multiplied(one, raised(without_factors(one, [other]), -1)))


def _resting(model: Model, rest: Mapping[str, Expression], values: Mapping[str, Expression]) -> list[Expression]:
    """Equations for states at rest, with what is solved for put in."""
    found = []
    as_states = {name.name: Name(x) for x, name in rest.items() if isinstance(name, Name)}
    rational = replace(model, equations={x: substitute(e, as_states) for x, e in model.equations.items()})
    for equation in resting_equations(rational):
        put_in = substitute(substitute(equation, rest), values)
        if (left := numerator(put_in)) != ZERO:
            # parameters are not zero, and neither is what they are equal to: so the rest is
            found.append(without_factors(left, [values.get(n, Name(n)) for n in model.parameters]))
    return found


class _States(Atoms):
    """Functions of what changes with time, as further states of one model."""

    def __init__(self, system: System, lifting: _Lifting, start_time: Expression):
        super().__init__(lifting.choices.divisors)
        self.system, self.lifting = system, lifting
        self.rates: dict[str, Expression] = {}
        self.starts: dict[str, Expression] = {}
        self.made: list[tuple[str, Vector | Expression, Rotation | Name]] = []
        self.functions = Functions(lifting.ties, self, self._moving, system.constants)
        self.clock = "clock"
        self.start_time = start_time
        self.extra: list[str] = []

    def _moving(self) -> set[str]:
        return {*self.system.rates, *self.system.inputs, self.clock, *self.starts, *self.extra}

    def _named(self, kind: str) -> Name:
        self.extra.append(f"{kind} of states {len(self.extra) + 1}")
        return Name(self.extra[-1])

    def new_power(self, vector: Vector) -> Name:
        made = self._named("power")
        self.made.append(("power", vector, made))
        return made

    def new_rotation(self, vector: Vector) -> Rotation:
        made = self._named("cosine"), self._named("sine")
        self.made.append(("rotation", vector, made))
        return made

    def new_logarithm(self, factor: Expression) -> Name:
        made = self._named("logarithm")
        self.made.append(("logarithm", factor, made))
        return made

    def _prepared(self, expression: Expression) -> Expression:
        """What is solved for put in, and a state in place of time; functions of time alone that are no good, inputs."""
        clocked = substitute(expression, {**self.lifting.choices.solved, TIME: Name(self.clock)})
        return self.functions.rational(_with_known_times(pieces(clocked), self.clock, self.system))

    def model(self, model: Model) -> Model:
        """The rational model."""
        system, late = self.system, self.lifting.current in self.lifting.choices.late
        rates = {x: self._prepared(e) for x, e in system.rates.items()}
        outputs = {y: self._prepared(e) for y, e in system.outputs.items()}
        starts = {x: self._prepared(e) for x, e in system.starts.items()}
        if late:
            self.lifting.assumptions[LATE] = None
            everything = tuple(Name(n) for n in self.lifting.parameters)
            starts = {x: Name(f"{x} later, {self.lifting.current + 1}") for x in starts}
            self.lifting.hidden |= {f"{x} later, {self.lifting.current + 1}": everything for x in starts}
        self.rates, self.starts = dict(rates), dict(starts)
        used = {n for e in (*rates.values(), *outputs.values()) for n in names(e)}
        if self.clock in used or any(self.clock in names(e) for e in self._arguments()):
            self.rates[self.clock] = ONE
            begin = Name(f"time later, {self.lifting.current + 1}") if late else self._prepared(self.start_time)
            self.starts[self.clock] = begin
            if late:
                self.lifting.known |= dict.fromkeys(names(begin))
        at = 0
        while at < len(self.made):  # rates may need further functions
            self._complete(*self.made[at])
            at += 1
        return self._assembled(model, outputs)

    def _arguments(self) -> list[Expression]:
        found: list[Expression] = []
        for _, what, _ in self.made:
            if isinstance(what, dict):
                found += [e for key in what for e in key if e is not None]
            else:
                found.append(what)
        return found

    def _rate_of(self, expression: Expression) -> Expression:
        """How an expression changes; the rate of change of an input is an input as well."""
        rates = dict(self.rates)
        for name in names(expression):
            if name in self.system.inputs:
                rates[name] = Name(f"change of {name}")
                if f"change of {name}" not in self.system.inputs:
                    self.system.inputs.append(f"change of {name}")
        return change(expression, rates)

    def _at_start(self, expression: Expression) -> Expression:
        """The value at the start; an input has some known one."""
        starts = dict(self.starts)
        for name in names(expression):
            if name in self.system.inputs:
                known = f"{name} at the start, {self.lifting.current + 1}"
                self.lifting.known[known] = None
                starts[name] = Name(known)
        return simplified(substitute(expression, starts))

    def _complete(self, kind: str, what: Vector | Expression, made: Rotation | Name) -> None:
        """Give a new state its rate of change and its initial value."""
        try:
            if kind == "logarithm":
                assert isinstance(made, Name)
                assert not isinstance(what, dict)
                self.rates[made.name] = multiplied(self._rate_of(what), raised(what, -1))
                self.starts[made.name] = self.functions.rational(Call("log", (self._at_start(what),)))
                return
            assert isinstance(what, dict)
            if kind == "rotation":
                assert isinstance(made, tuple)
                cosine, sine = made
                assert isinstance(cosine, Name)
                assert isinstance(sine, Name)
                angle = argument_of(what, lambda base: base)
                rate, first = self._rate_of(angle), self._at_start(angle)
                self.rates |= {
                    cosine.name: multiplied(number(-1), sine, rate),
                    sine.name: multiplied(cosine, rate),
                }
                self.starts |= {
                    cosine.name: self.functions.rational(Call("cos", (first,))),
                    sine.name: self.functions.rational(Call("sin", (first,))),
                }
                return
            assert isinstance(made, Name)
            terms, first_values = [], []
            for (base, m), c in what.items():
                moved = self._rate_of(m)
                exponent = multiplied(number(c), self._at_start(m))
                if base is None:
                    terms.append(multiplied(number(c), moved))
                    first_values.append(Call("exp", (exponent,)))
                    continue
                if moved != ZERO:
                    log = self.functions.rational(Call("log", (base,)))
                    terms.append(multiplied(number(c), moved, log))
                terms.append(multiplied(number(c), m, self._rate_of(base), raised(base, -1)))
                first_values.append(Call("power", (self._at_start(base), exponent)))
            self.rates[made.name] = multiplied(made, added(terms))
            self.starts[made.name] = multiplied(*(self.functions.rational(value) for value in first_values))
        except ZeroDivisionError:
            raise SingularStart from None

    def _forget_unused(self, states: set[str], outputs: Mapping[str, Expression]) -> None:
        """Leave out new states on which nothing that is seen depends."""
        needed = {n for e in outputs.values() for n in names(e)} | states
        while more := {n for x in needed if x in self.rates for n in names(self.rates[x])} - needed:
            needed |= more
        self.rates = {x: e for x, e in self.rates.items() if x in needed}
        self.starts = {x: e for x, e in self.starts.items() if x in needed}

    def _assembled(self, model: Model, outputs: Mapping[str, Expression]) -> Model:
        lifting, system = self.lifting, self.system
        quantities = {}
        for name, expression in model.interest.items():
            try:
                quantities[name] = self._prepared(expression)
            except (NotLiftable, SingularStart, ZeroDivisionError):
                continue
        known = {n: n for n in lifting.known if n.endswith(f", {lifting.current + 1}")}
        outputs = {**outputs, **{f"{n}, known": Name(n) for n in known}}
        self._forget_unused(set(model.states), outputs)
        parts = [*self.rates.values(), *self.starts.values(), *outputs.values()]
        taken = {*self.rates, *system.inputs, *system.constants}
        used = dict.fromkeys(n for e in parts for n in names(e) if n not in taken)
        states = tuple(self.rates) or ("rest",)
        first = [n for n in model.parameters if n in used]
        renamed = {y: y if y not in self.rates else f"{y} seen" for y in outputs}
        parameters = (*first, *(n for n in used if n not in first))
        return Model(
            states=states,
            parameters=parameters,
            constants=dict(system.constants),
            inputs=tuple(u for u in system.inputs if any(u in names(e) for e in parts)),
            equations=self.rates or {"rest": ZERO},
            initial=self.starts or {"rest": ZERO},
            definitions={renamed[y]: e for y, e in outputs.items() if not (y in self.rates and e == Name(y))},
            outputs=tuple(y if y in self.rates and e == Name(y) else renamed[y] for y, e in outputs.items()),
            quantities={q: e for q, e in quantities.items() if set(names(e)) <= {*parameters, *system.constants}},
        )


def _with_known_times(expression: Expression, clock: str, system: System) -> Expression:
    """Functions of time alone that have no derivative everywhere, such as max(0, t - 5), are known inputs."""

    def inside(parts: tuple[Expression, ...]) -> tuple[Expression, ...]:
        return tuple(_with_known_times(part, clock, system) for part in parts)

    match expression:
        case Sum(terms):
            return Sum(inside(terms))
        case Product(factors):
            return Product(inside(factors))
        case Power(base, exponent):
            return Power(_with_known_times(base, clock, system), exponent)
        case Call(function, arguments):
            found = Call(function, inside(arguments))
            rough = function in ("abs", "min", "max")
            return system.new_input() if rough and set(names(system.numeric(found))) == {clock} else found
    return expression
