"""What the data said about each parameter, quantity and combination, in one plain sentence."""

from __future__ import annotations

import math

from equifinal.identifiability.verdicts import GLOBALLY, LOCALLY, NOT, UNKNOWN
from equifinal.results.information import BARELY_INFORMED, BOUNDED_ABOVE
from equifinal.results.meaning import COMBINATION, NOISE, QUANTITY, UNTOUCHED, WEAK, Direction, Finding, Meaning
from equifinal.words.identifiability import listed

MOST_TIED = 3
SKEW = 0.15  # by how many standard deviations mean and median differ
ONLY_BOUND = "these data and your other priors only bound it"


def estimate(mean: float, sd: float) -> str:
    """``1.880 (sd 0.015)``: as many digits as the spread deserves."""
    if not math.isfinite(mean):
        return "not a finite number"
    if not sd > 0 or not math.isfinite(sd):  # one draw has none
        return f"{mean:.6g}"
    return f"{rounded(mean, sd)} (sd {spread(sd)})"


def rounded(value: float, sd: float, like: float | None = None) -> str:
    """A number with as many digits as let its standard deviation show two, and three at least.

    An exponent is used where ``like`` would need one.
    """
    if not (math.isfinite(value) and sd > 0 and math.isfinite(sd)):
        return f"{value:.4g}"
    size = max(abs(value if like is None else like), sd)
    last = math.floor(math.log10(sd)) - 1  # the power of ten of the last digit
    if value:
        last = min(last, math.floor(math.log10(abs(value))) - 2)
    if 1e-3 <= size < 1e6:
        return f"{value:.{min(12, max(0, -last))}f}"
    first = math.floor(math.log10(abs(value))) if value else last
    return f"{value:.{min(12, max(0, first - last))}e}".replace("e-0", "e-").replace("e+0", "e+")


def spread(sd: float) -> str:
    """A standard deviation with two digits."""
    if 1e-3 <= sd < 1e6:
        return f"{sd:.{max(0, 1 - math.floor(math.log10(sd)))}f}"
    return f"{sd:.1e}".replace("e-0", "e-").replace("e+0", "e+")


def sentence(meaning: Meaning, finding: Finding) -> str:
    """What is known about one parameter, quantity or combination, and from where.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> found = equifinal.interpret(data)
    >>> equifinal.explain(found, found.named("gamma"))[:24]
    'gamma: not identifiable.'
    """
    told = {COMBINATION: _combination, NOISE: _noise}.get(finding.kind)
    if told is not None:
        return told(finding)
    if finding.verdict == NOT:
        return _not_identifiable(meaning, finding)
    if finding.verdict == UNKNOWN:
        return f"{finding.name}: whether it is identifiable is not known. Posterior: {value_text(finding)}."
    if finding.verdict == LOCALLY:
        return _locally(meaning, finding)
    if finding.weak:
        return (
            f"{finding.name}: identifiable, but barely informed. Better data could determine it; with these data its "
            f"posterior, {value_text(finding)}, is {_how_narrow(finding)}."
        )
    if finding.bounded:
        return f"{finding.name}: identifiable, but {ONLY_BOUND}: {bound_text(finding)}."
    return f"{finding.name}: identifiable, and determined by the data: {value_text(finding)}."


def _combination(finding: Finding) -> str:
    if finding.weak:
        return (
            f"{finding.name}: identifiable, but barely informed by these data: {value_text(finding)}, "
            f"{_how_narrow(finding)}."
        )
    if finding.bounded:
        return f"{finding.name}: identifiable, but {ONLY_BOUND}: {bound_text(finding)}."
    return f"{finding.name}: determined by the data: {value_text(finding)}."


def bound_text(finding: Finding) -> str:
    """``at most 46 (95%), how small it is, they leave open``, or the like from below."""
    above = finding.information.kind == BOUNDED_ABOVE
    value = rounded(finding.quantile(0.95 if above else 0.05), finding.sd)
    side, other = ("most", "small") if above else ("least", "large")
    return f"at {side} {value} (with probability 95%); how {other} it is, they leave open"


def _noise(finding: Finding) -> str:
    if finding.weak:
        return f"{finding.name}: a noise parameter, about which these data say little: {value_text(finding)}."
    if finding.bounded:
        return f"{finding.name}: a noise parameter; {ONLY_BOUND}: {bound_text(finding)}."
    return f"{finding.name}: a noise parameter, determined by the residuals: {value_text(finding)}."


def _locally(meaning: Meaning, finding: Finding) -> str:
    if not meaning.identifiability.complete or meaning.identifiability.scope != "global":
        known = "identifiable at least locally; whether globally is not known"
        return f"{finding.name}: {known}. Posterior: {value_text(finding)}."
    number = finding.alternatives
    count = f"up to {number} values" if number else "several values (or perhaps a single one)"
    weak = f"; moreover, the data say little: it is {_how_narrow(finding)}" if finding.weak else ""
    weak = f"; moreover, {ONLY_BOUND}: {bound_text(finding)}" if finding.bounded else weak
    return (
        f"{finding.name}: identifiable up to alternatives. The data allow {count} that give the same output; your "
        f"prior decides between them. Posterior: {value_text(finding)}{weak}."
    )


def _not_identifiable(meaning: Meaning, finding: Finding) -> str:
    if finding.kind == QUANTITY:
        share = (
            ""
            if math.isnan(finding.prior_share)
            else f" Your prior alone accounts for {_share(finding)} of its spread."
        )
        return (
            f"{finding.name}: not identifiable. It can change while every output stays the same, so its posterior, "
            f"{value_text(finding)}, depends on your prior no matter how many data there are.{share}"
        )
    known = meaning.combinations_with(finding)
    shown = listed([f"{f.name} = {value_text(f)}" for f in known[:MOST_TIED]])
    more = f" and {len(known) - MOST_TIED} more" if len(known) > MOST_TIED else ""
    start = f"{finding.name}: not identifiable."
    if not known and meaning.identifiability.complete:
        return f"{start} No output depends on it: its posterior is your prior."
    if not known:
        return (
            f"{start} Which combinations containing it are determined is not known. Posterior: {value_text(finding)}."
        )
    tied = listed(meaning.tied_to(finding)) or "other parameters"
    if all(f.weak for f in known):
        return (
            f"{start} It is tied to {tied} only through {shown}{more}, about which these data say little: its "
            f"posterior, {value_text(finding)}, is {_how_narrow(finding)}."
        )
    if abs(finding.shrinkage) < UNTOUCHED:
        return (
            f"{start} Its posterior is your prior restricted to what the other bounds allow; the data determine "
            f"{shown}{more}."
        )
    return (
        f"{start} The data determine {shown}{more}, which ties it to {tied}; beyond that, its posterior, "
        f"{value_text(finding)}, depends on your priors{_of_which(finding)}."
    )


def _of_which(finding: Finding) -> str:
    return "" if math.isnan(finding.prior_share) else f", which alone account for {_share(finding)} of its spread"


def _share(finding: Finding) -> str:
    share = finding.prior_share
    return "over 99%" if share > 0.99 else "under 1%" if share < 0.01 else f"{share:.0%}"


def value_text(finding: Finding) -> str:
    """Write mean and standard deviation; for a skewed posterior, which these misrepresent, median and central 90%."""
    low, middle, high = (finding.quantile(q) for q in (0.05, 0.5, 0.95))
    if finding.sd > 0 and abs(finding.mean - middle) > SKEW * finding.sd:
        shown = [rounded(x, finding.sd, finding.mean) for x in (middle, low, high)]
        return f"{shown[0]} (90%: {shown[1]} to {shown[2]})"
    return estimate(finding.mean, finding.sd)


def _how_narrow(finding: Finding) -> str:
    if math.isnan(finding.shrinkage):
        return "not comparable with your prior"
    shown = f"{bits_text(finding.information.bits)}, shrinkage {finding.shrinkage:.2f}".replace("-0.00", "0.00")
    return f"{'no' if finding.shrinkage < 0 else 'hardly'} narrower than your prior ({shown})"


def bits_text(bits: float) -> str:
    """The information that data gave, with one digit: ``0.3 bits``."""
    return "" if math.isnan(bits) else "over 10 bits" if bits > 10 else f"{bits:.1f} bits"


def direction_text(direction: Direction) -> str:
    """A direction in combination space as a product of powers, plus what cannot be a logarithm."""
    powers, terms = [], []
    for label, weight in direction.weights.items():
        whole = label if label.isidentifier() else f"({label})"
        one = abs(weight - 1) < 0.05
        if direction.logarithmic[label]:
            powers.append((label if len(direction.weights) == 1 else whole) if one else f"{whole}^{weight:.2g}")
        else:
            terms.append(whole if one else f"{weight:.2g}*{whole}")
    product = " * ".join(powers)
    if not terms:
        return product
    if powers:
        bare = product[1:-1] if len(powers) == 1 and product.startswith("(") and product.endswith(")") else product
        terms.insert(0, f"log({bare})")
    return " + ".join(terms).replace("+ -", "- ")


def worst_direction_matters(direction: Direction) -> bool:
    """Whether a direction says more than what was said of each combination: data say little of a product of several."""
    return direction.shrinkage < WEAK and len(direction.weights) > 1


def weakest_sentence(meaning: Meaning) -> str:
    """Name the direction among the combinations that the data determine least; empty where that does not matter."""
    worst = meaning.weakest
    if worst is None or not worst_direction_matters(worst):
        return ""
    return (
        f"Of everything identifiable, the data say least about {direction_text(worst)} (shrinkage "
        f"{shrinkage_text(worst.shrinkage)}), although better data could determine it."
    )


def shrinkage_text(shrinkage: float) -> str:
    """Two digits; empty where it is not defined."""
    if math.isnan(shrinkage):
        return ""
    return "over 0.99" if shrinkage > 0.99 else f"{shrinkage:.2f}".replace("-0.00", "0.00")


def driven_by(finding: Finding) -> str:
    """What decides the posterior, in a few words for a table."""
    if finding.kind == NOISE or finding.verdict == GLOBALLY:
        return "data, barely" if finding.weak else "data, a bound only" if finding.bounded else "data"
    if finding.verdict == LOCALLY:
        return "data, up to alternatives"
    if math.isnan(finding.prior_share):
        return "data and prior"
    if finding.prior_share > 0.5:
        return f"prior ({_share(finding)})"
    # what it is tied to may be as little known as it is itself
    return "prior, data barely" if finding.information.kind == BARELY_INFORMED else f"data; prior {_share(finding)}"


def verdict_word(finding: Finding) -> str:
    """Name the verdict: ``identifiable``, ``up to 2 values``, ``not identifiable`` or ``noise``."""
    if finding.kind == NOISE:
        return "noise"
    if finding.verdict == LOCALLY:
        return f"up to {finding.alternatives} values" if finding.alternatives else "identifiable, at least locally"
    return {GLOBALLY: "identifiable", NOT: "not identifiable", UNKNOWN: "not known"}[finding.verdict]
