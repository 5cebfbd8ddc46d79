"""What does not conform between data, model and priors, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from equifinal.results.conformity import Discord, Foreseen, Kind

SENTENCES: dict[Kind | Foreseen, str] = {
    "in a tail": ("{name} lies beyond 99.99% of its prior, {where}: check its units, the model and the prior."),
    "at the lower bound": (
        "{name} presses against the lower bound of its prior, {lower:g}: the data want smaller values than you allow."
    ),
    "at the upper bound": (
        "{name} presses against the upper bound of its prior, {upper:g}: the data want larger values than you allow."
    ),
    "large residuals": (
        "The residuals of {name} are {sd:.1f} times as large as the model and its noise allow (largest: {largest:.1f} "
        "standard deviations): the model misses something, or the noise is assumed too small."
    ),
    "trend": (
        "The residuals of {name} that follow each other in time agree more than chance explains: the model misses a "
        "trend, which the noise cannot stand for."
    ),
    "above replicates": (
        "The noise scale {name} is {scale:.3g}, but replicates of the data scatter by {scatter:.3g} only: the noise "
        "stands for something that the model misses."
    ),
    "above predictions": (
        "{count} of {of} observations of {name} lie above 99.5% of what your priors predict (median of the data "
        "{data:.3g}, of the predictions {predicted:.3g}): check units, model and priors."
    ),
    "below predictions": (
        "{count} of {of} observations of {name} lie below 99.5% of what your priors predict (median of the data "
        "{data:.3g}, of the predictions {predicted:.3g}): check units, model and priors."
    ),
    "prior not solved": "At none of {draws:,} prior draws could the model be solved: check model and priors.",
}
UNJUDGED = "whether model and priors agree with the data cannot be told from such draws"
CONFORMS = "the model and its priors agree with the data, as far as residuals tell"


def discord_sentence(discord: Discord) -> str:
    side = "largest" if discord.numbers.get("below") else "smallest"
    where = f"among the {side} values that it allows"
    return SENTENCES[discord.kind].format(name=discord.name, where=where, **discord.numbers)


def discord_sentences(found: Sequence[Discord]) -> list[str]:
    return [discord_sentence(discord) for discord in found]
