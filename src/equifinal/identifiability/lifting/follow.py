"""What follows from functions that are known, ties included: the closure that verdicts and checks share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from equifinal.algebra.arithmetic.budget import SECOND, Budget, TooLarge
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.elimination.quotient import NotFinite
from equifinal.algebra.generators.expressing import express
from equifinal.identifiability.lifting.atoms import Refine, Vector, in_whole_numbers
from equifinal.identifiability.lifting.lifted import Lifted
from equifinal.language.expression import Expression, Name, Number, names, substitute
from equifinal.language.rational import multiplied, raised, terms_of


def follows(
    function: Expression, known: Sequence[Expression], order: Sequence[str], constants: Mapping[str, Fraction]
) -> bool:
    """Whether a function has one value wherever the known ones have; not, where that is too hard to tell.

    `order` are all the names that are not constants.
    """
    if function in known:
        return True
    used = {n for e in (*known, function) for n in names(e)}
    here = {n: v for n, v in constants.items() if n in used}
    unknowns = [n for n in order if n in used]
    if not used <= {*unknowns, *here}:
        return False
    try:
        return express(function, known, unknowns, here, Budget(2 * SECOND), with_formula=False).identifiable
    except (TooLarge, NotFinite, BadPrime):
        return False


def closed(
    lifted: Lifted, known: Sequence[Expression], constants: Mapping[str, Fraction], *, backwards: bool
) -> list[Expression]:
    """The known functions, known numbers, and ties whose arguments follow from them.

    If `backwards`, arguments of ties that follow as well: a one-to-one function that is known tells its argument.
    """
    order = [*lifted.coordinates, *(tie.name for tie in lifted.ties)]
    found = [*known, *(Name(n) for n in lifted.known)]
    found += [Name(tie.name) for tie in lifted.ties if tie.kind == "log" and isinstance(tie.argument, Number)]
    found = list(dict.fromkeys(found))
    for _ in range(len(lifted.ties) + 1):
        more: list[Expression] = []
        for tie in lifted.ties:
            if backwards and tie.one_to_one and tie.argument not in found:
                more += [tie.argument] if follows(Name(tie.name), found, order, constants) else []
            if Name(tie.name) not in found and follows(tie.argument, found, order, constants):
                more.append(Name(tie.name))
        for name, inside in lifted.hidden.items():
            put_in = [substitute(f, lifted.parameters) for f in inside]
            if Name(name) not in found and all(follows(f, found, order, constants) for f in put_in):
                more.append(Name(name))
        if not more:
            break
        found += more
    return found


def constant_functions(
    lifted: Lifted, functions: Sequence[Expression], constants: Mapping[str, Fraction]
) -> list[Expression]:
    """Functions of the unknowns of rational models that are constant where given functions of the parameters are."""
    given = [substitute(f, lifted.parameters) for f in functions]
    found = closed(lifted, given, constants, backwards=False)
    found += [product for f in given for product in _exponentials(lifted, f)]
    allowed = {*lifted.unknowns, *constants}
    return [f for f in dict.fromkeys(found) if set(names(f)) <= allowed and not isinstance(f, Number)]


def _exponentials(lifted: Lifted, function: Expression) -> list[Expression]:
    """Products of exponentials that the function determines, being their logarithm but for a factor."""
    ties = [tie for tie in lifted.ties if tie.kind == "exp" and tie.name in lifted.unknowns]
    bases = {frozenset((base, abs(c)) for (base, _), c in tie.vector.items()) for tie in ties}
    found: list[Expression] = []
    for signature in bases:
        vector: Vector = {(base, m): c * k for base, c in signature for m, k in terms_of(function).items()}
        try:
            whole = in_whole_numbers(vector, [dict(tie.vector) for tie in ties])
        except Refine:
            continue
        if whole is not None:
            found.append(multiplied(*(raised(Name(t.name), n) for t, n in zip(ties, whole, strict=True) if n)))
    return found
