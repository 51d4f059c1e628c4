"""Findings in words. No sentence claims a difference without its interval; only throughput is called fast or slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dyno.model import measures, responses
from dyno.model.findings import (
    Comparison,
    Interval,
    OverallRatio,
    Pace,
    ResourceRatio,
    Verdict,
    format_ratio,
    format_share,
)
from dyno.model.units import counted
from dyno.model.usage import is_resource
from dyno.stats import Ratio


def levels(chosen: Mapping[str, str]) -> str:
    """`workload=a threads=4`."""
    return " ".join(f"{factor}={level}" for factor, level in chosen.items())


def listed(items: Sequence[str], most: int = 5) -> str:
    """`a; b; c and 4 more`."""
    shown = "; ".join(items[:most])
    return f"{shown} and {len(items) - most:,} more" if len(items) > most else shown


def joined(items: Sequence[str], most: int = 3) -> str:
    """`a`, `a and b`, `a, b and 4 more`."""
    shown = list(items[:most]) if len(items) <= most else [*items[: most - 1], f"{len(items) - most + 1:,} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def capital(text: str) -> str:
    """A sentence that begins with a word of ours."""
    return text[0].upper() + text[1:]


def unsteady(count: int, n: int) -> str:
    """What stands beside a cell's figures; empty where each of its runs was steady, or not known to be otherwise."""
    return f"no steady state in {count:,} of {counted(n, 'run')}" if count else ""


def too_few(a: str, n_a: int, b: str, n_b: int) -> str:
    """Why two levels have no interval yet."""
    return f"{a} has {counted(n_a, 'ok run')} and {b} has {n_b}, and each needs 2"


def not_over(beyond: int, of: int, whose: str = "") -> str:
    """How many faults say of a response only that it takes longer than they were watched."""
    return (
        f"in {beyond} of {counted(of, 'fault')}{f' of {whose}' if whose else ''} it was not over when the watch ended"
    )


def given(response: str) -> str:
    """Why a throughput of an open loop answers nothing."""
    title = responses.lookup(response).title
    return f"{title} came at a given rate, however slow the system is; gate on `replicates.of: latency_p99`"


NOT_JUDGED = "scale smoke shows that everything works, not how fast anything is"
OF_MEANS = ", of means since 0 has no logarithm"


def comparison(found: Comparison, told: Mapping[str, str], *, paired: bool, of_means: bool, why_not: str) -> str:
    """One comparison as one sentence: direction, ratio, interval, adjusted p and n.

    `told` has those of the other factors' levels that need saying. It begins with a word of ours: a factor's spelling
    means something.
    """
    known = responses.lookup(found.response)
    where = f"With {levels(told)}, " if told else ""
    factor, a, b = found.factor, found.a, found.b
    if found.ratio is None or found.ci is None:
        if not where:
            return f"In {known.title}, {factor} {b} and {a} cannot be compared: {why_not}."
        return f"{where}{factor} {b} and {a} cannot be compared in {known.title}: {why_not}."
    size = format_ratio(found.ratio, found.ci)
    runs = f"n = {counted(found.n, 'pair')}" if paired else f"n = {counted(found.n, 'run')}, not paired"
    runs += OF_MEANS if of_means else ""
    if found.pace == "rate":
        given = f"{where}the rate of {factor} {b} or {a} was given, and reached"
        return capital(f"{given}: {known.title} {size} says nothing of what they can do ({runs}).")
    if found.verdict == "not judged":
        return capital(f"{where}{_unjudged(known.title, f'{factor} {b}', a)}: {size} ({runs}).")
    basis = f"{_p(found)}, {runs}"
    ranks = _by_ranks(found)
    if found.verdict == "no difference shown":
        claim = _not_shown(known.title, f"{factor} {b}", a, found.ci)
        return capital(f"{where}{claim}: {size} ({basis}){ranks}.")
    if found.verdict == "equivalent":
        if not where:
            equal = f"In {known.title}, {factor} {b} and {a} are shown to be within {_margin(found)} of each other"
            return f"{equal}: {size} ({basis}){ranks}."
        equal = f"{where}{factor} {b} and {a} are shown to be within {_margin(found)} of each other in {known.title}"
        return f"{equal}: {size} ({basis}){ranks}."
    better = "lower is better; " if known.better == "lower" else ""
    within = f", a difference shown to be within {_margin(found)}" if found.equivalent else ""
    rest = f"{within}{ranks}{confounded(found)}"
    if not where:
        return f"The {known.title} of {factor} {b} is {size} that of {a} ({better}{basis}){rest}."
    return f"{where}{factor} {b} has {size} the {known.title} of {a} ({better}{basis}){rest}."


def overall(found: OverallRatio) -> str:
    """One level against the first, over many combinations together, as one sentence."""
    known = measures.lookup(found.response)
    factor, a, b, size = found.factor, found.a, found.b, format_ratio(found.ratio, found.ci)
    if is_resource(found.response):
        blocks = f"n = {counted(found.n, 'block')}"
        claim = f"{capital(known.title)}, {factor} {b} against {a} over {together(found)}"
        return f"{claim}: {_use(found, size, blocks)}."
    where = capital(f"over {together(found)}, ")
    if found.verdict == "not judged":
        return f"{where}{_unjudged(known.title, f'{factor} {b}', a)}: {size} (n = {counted(found.n, 'block')})."
    basis = f"{_p(found)}, n = {counted(found.n, 'block')}"
    if found.verdict == "no difference shown":
        claim = _not_shown(known.title, f"{factor} {b}", a, found.ci)
        return f"{where}{claim}: {size} ({basis})."
    if found.verdict == "equivalent":
        equal = f"{where}{factor} {b} and {a} are shown to be within {_margin(found)} of each other in {known.title}"
        return f"{equal}: {size} ({basis})."
    better = "lower is better; " if known.better == "lower" else ""
    within = f", a difference shown to be within {_margin(found)}" if found.equivalent else ""
    rest = f"{within}{confounded(found)}"
    return f"{where}{factor} {b} has {size} the {known.title} of {a} ({better}{basis}){rest}."


def of_resource(found: ResourceRatio, told: Mapping[str, str], *, paired: bool) -> str:
    """What two cells used of a resource, as one sentence. `told` is as for `comparison`."""
    where = f" with {levels(told)}" if told else ""
    claim = f"{capital(measures.lookup(found.resource).title)}, {found.factor} {found.b} against {found.a}{where}"
    if found.ratio is None or found.ci is None:
        return f"{claim}: no ratio, since {found.reason}."
    runs = f"n = {counted(found.n, 'pair')}" if paired else f"n = {counted(found.n, 'run')}, not paired"
    return f"{claim}: {_use(found, format_ratio(found.ratio, found.ci), runs)}."


def _use(found: ResourceRatio | OverallRatio, size: str, runs: str) -> str:
    """The ratio of what was used, and what is shown by it."""
    if found.verdict == "not judged":
        return f"{size}, not judged at scale smoke ({runs})"
    basis = f"{_p(found)}, {runs}"
    if found.verdict == "equivalent":
        return f"{size}, shown to be within {_margin(found)} of each other ({basis})"
    shown = found.verdict in ("higher", "lower")
    verdict = f"shown to be {found.verdict}" if shown else found.verdict
    return f"{size}, {verdict} ({basis}){confounded(found) if shown else ''}"


def _unjudged(title: str, b: str, a: str) -> str:
    """What stands before a ratio at scale smoke."""
    return f"{title} of {b} against {a} is not judged at scale smoke"


def together(found: OverallRatio) -> str:
    """`all 18 combinations together`, `5 of the 6 combinations with workload=a together`."""
    some = f"{found.combinations} of " if found.combinations < found.of else ""
    unlike = f" ({found.unlike})" if found.unlike else ""
    if not found.where:
        return f"{some}{'the' if some else 'all'} {found.of} combinations together{unlike}"
    return f"{some}the {found.of} combinations with {levels(found.where)} together{unlike}"


def confounded(found: Comparison | OverallRatio | ResourceRatio) -> str:
    """What else may be behind a difference, as the end of a sentence: no direction is claimed without it."""
    return differs_too(found.confounded)


def differs_too(keys: Sequence[str]) -> str:
    """The same, of the keys of `run.json` that differ."""
    if not keys:
        return ""
    names = [key.partition(".")[2] for key in keys]
    return f"; {joined(names)} {'differ' if len(names) > 1 else 'differs'} too"


def _margin(found: Comparison | OverallRatio | ResourceRatio) -> str:
    return format_share(found.margin or 0.0)


def _p(found: Comparison | OverallRatio | ResourceRatio) -> str:
    # Of what is claimed: that there is a difference, or that there is none to speak of.
    p = found.p_equivalent if found.verdict == "equivalent" else found.p_adjusted
    if p is None:
        return "no p"
    return probability(p) if found.family == 1 else f"adjusted {probability(p)}"


def probability(p: float) -> str:
    """`p < 0.001`, `p = 0.034`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def _by_ranks(found: Comparison) -> str:
    ranks = found.ranks
    if ranks is None:
        return ""
    size = f"{ranks.ratio:.2f}x, too few for an interval" if ranks.ci is None else format_ratio(ranks.ratio, ranks.ci)
    return f"; by ranks, since the noise is far from normal: {size}"


def folder_comparison(
    response: str,
    chosen: Mapping[str, str],
    ratio: Ratio | None,
    verdict: str,
    why_not: str,
    *,
    of_means: bool = False,
) -> str:
    """One cell of two results folders as one sentence."""
    title = responses.lookup(response).title
    where = f"{levels(chosen) or 'The only cell'}: "
    if ratio is None:
        return f"{where}no comparison of {title}: {why_not}."
    size = format_ratio(ratio.ratio, (ratio.lo, ratio.hi))
    runs = f"n = {counted(ratio.n, 'run')}{OF_MEANS if of_means else ''}"
    if verdict == "not judged":
        return f"{where}{_unjudged(title, 'the second folder', 'the first')}: {size} ({runs})."
    drift = f"{runs}; not interleaved: a difference may be the machine's drift"
    if verdict == "no difference shown":
        return f"{where}no difference in {title} is shown between the folders: {size} ({drift})."
    return f"{where}the second folder has {size} the {title} of the first ({drift})."


def folder_agreement(response: str, names: tuple[str, str], ratio: Ratio | None, cells: int, of: int) -> str:
    """How far apart the figures of two folders are over all their cells; never which is the faster."""
    title = responses.lookup(response).title
    if ratio is None:
        return (
            f"Over all cells: no ratio of {title}, since the two have not two runs of values above 0 in the same cells."
        )
    some = f"{cells} of the {of}" if cells < of else f"all {of}"
    where = f" over {some} cells together" if of > 1 else ""
    size = format_ratio(ratio.ratio, (ratio.lo, ratio.hi))
    first, second = names
    told = f"{second} measured {size} the {title} of {first}{where}"
    why = f"n = {counted(ratio.n, 'block')}; not interleaved: a difference may be the machine's drift"
    return f"{capital(told) if second.startswith('the ') else told} ({why})."


def _adjective(response: str, verdict: Verdict, pace: Pace | None) -> str:
    """`faster`, or `has a lower median latency` where speed is not what was measured."""
    if response == "throughput" and pace is None:
        return "is faster than" if verdict == "higher" else "is slower than"
    return f"has a {verdict} {responses.lookup(response).title} than"


def of_pair(found: Sequence[Comparison]) -> str:
    """What all combinations say of one pair of levels, as one sentence without its full stop."""
    first, several = found[0], len(found) > 1
    a, b, response = first.a, first.b, first.response
    if rated := [each for each in found if each.pace == "rate" and each.ratio is not None]:
        of_rated = f" in {len(rated)} of {len(found)} combinations" if len(rated) < len(found) else ""
        claim = f"the rate of {b} or {a} was given, and reached{of_rated}"
        clause = f"{claim}, which shows neither as the faster ({responses.lookup(response).title} {_extremes(rated)})"
        rest = [each for each in found if each not in rated]
        return ", ".join([clause, *([of_pair(rest)] if rest else [])])
    by_verdict: dict[Verdict, list[Comparison]] = {}
    for each in found:
        by_verdict.setdefault(each.verdict, []).append(each)
    if len(by_verdict) == 1:
        number = "both" if len(found) == 2 else f"all {len(found)}"
        everywhere = f" in {number} combinations" if several else ""
        if first.verdict == "not enough runs":
            return f"{b} and {a} cannot be compared{everywhere}" if several else first.sentence.rstrip(".")
        return f"{_claim(first, alone=not several)}{everywhere}: {_extremes(found)}"
    parts = []
    for verdict in ("higher", "lower", "equivalent"):
        if some := by_verdict.get(verdict):
            claim = _claim(some[0])
            parts.append(f"{claim} in {len(some)} of {len(found)} combinations ({_extremes(some, where=True)})")
    if some := by_verdict.get("no difference shown"):
        parts.append(f"no difference between {b} and {a} is shown in {len(some)} of {len(found)}")
    if some := by_verdict.get("not enough runs"):
        parts.append(f"{len(some)} of {len(found)} cannot be compared")
    return ", ".join(parts)


def over_all(found: OverallRatio, singles: Sequence[Comparison]) -> str:
    """What all combinations together say of a pair of levels, and each by itself; without its full stop."""
    size = format_ratio(found.ratio, found.ci)
    return f"{_claim(found, alone=True)} over {together(found)}: {size} ({_alone(singles)})"


def _alone(singles: Sequence[Comparison]) -> str:
    """`alone, each is slower`, `alone, 12 are slower and 6 show no difference`."""
    speed = singles[0].response == "throughput" and not any(each.pace for each in singles)
    words: dict[Verdict, tuple[str, str]] = {
        "higher": ("is faster", "are faster") if speed else ("is higher", "are higher"),
        "lower": ("is slower", "are slower") if speed else ("is lower", "are lower"),
        "equivalent": (f"is within {_margin(singles[0])}", f"are within {_margin(singles[0])}"),
        "no difference shown": ("shows no difference", "show no difference"),
        "not enough runs": ("cannot be compared", "cannot be compared"),
    }
    counts = [(sum(each.verdict == verdict for each in singles), *word) for verdict, word in words.items()]
    there = [(count, one, many) for count, one, many in counts if count]
    if len(there) == 1:
        return f"alone, each {there[0][1]}"
    told = [f"{count} {one if count == 1 else many}" for count, one, many in there]
    return f"alone, {joined(told, most=len(told))}"


def _claim(found: Comparison | OverallRatio, *, alone: bool = False) -> str:
    """`alone` where it is the only one that the claim is about."""
    a, b, title = found.a, found.b, responses.lookup(found.response).title
    if found.verdict == "no difference shown":
        return _not_shown(title, b, a, found.ci if alone else None)
    if found.verdict == "equivalent":
        return f"{b} and {a} are within {_margin(found)} of each other in {title}"
    return f"{b} {_adjective(found.response, found.verdict, found.pace)} {a}"


def _not_shown(title: str, b: str, a: str, ci: Interval | None) -> str:
    """An interval that leaves out 1 is that of one comparison; of many some do by chance."""
    if ci is not None and not ci[0] <= 1 <= ci[1]:
        return f"a difference in {title} between {b} and {a} is shown by itself alone, not beyond all comparisons"
    return f"no difference in {title} is shown between {b} and {a}"


def _extremes(found: Sequence[Comparison], where: bool = False) -> str:
    """The smallest and the largest ratio, each with its interval."""

    def shown(each: Comparison, ratio: float, interval: tuple[float, float]) -> str:
        place = f" with {levels(each.within)}" if where else ""
        return f"{format_ratio(ratio, interval)}{place}"

    measured = [(each.ratio, each.ci, each) for each in found if each.ratio is not None and each.ci is not None]
    ratio, interval, least = min(measured, key=lambda entry: entry[0])
    if len(measured) == 1:
        return shown(least, ratio, interval)
    top_ratio, top_interval, most = max(measured, key=lambda entry: entry[0])
    return f"{shown(least, ratio, interval)} to {shown(most, top_ratio, top_interval)}"
