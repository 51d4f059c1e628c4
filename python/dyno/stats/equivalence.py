"""Whether two things were shown to be as good as equal; "no difference shown" is another, weaker answer.

"Within 2 %" means a ratio between 1 / 1.02 and 1.02. That is symmetric on the log scale: whether a is set beside b or b
beside a, the answer is the same, which it would not be for 0.98 to 1.02.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dyno.stats.arrays import check_share, exp_held, two_sided_p
from dyno.stats.ratios import LogShift


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests of b / a; without unit.

    `margin` is a share: 0.02 asks for a ratio between 1 / 1.02 and 1.02. `p` is the larger of both one-sided p-values.
    `lo` and `hi` are the interval of confidence 1 - 2 alpha, which lies within the margin just where p < alpha.
    """

    ratio: float
    lo: float
    hi: float
    n: int
    margin: float
    alpha: float
    p: float
    method: str

    @property
    def shown(self) -> bool:
        """Whether equivalence within the margin was shown at alpha."""
        return self.p < self.alpha


def equivalence_of(shift: LogShift | None, margin: float, alpha: float) -> Equivalence | None:
    """Test whether b / a lies within the margin, of what `paired_shift` or `unpaired_shift` gives.

    With d the mean of ln b - ln a, e its standard error and m = ln(1 + margin), p is the larger of P(T > (d + m) / e)
    and P(T < (d - m) / e) at the shift's degrees of freedom: both "lower than 1 / (1 + margin)" and "higher than
    1 + margin" have to be ruled out (D. J. Schuirmann, A comparison of the two one-sided tests procedure and the power
    approach, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). Assumes what the shift does.

    None without a shift. Raises ValueError for a margin that is not above 0 or an alpha outside (0, 0.5).
    """
    check_share("twice alpha", 2 * alpha)
    if not 0 < margin < math.inf:
        raise ValueError(f"a margin is a share above 0, got {margin}")
    if shift is None:
        return None
    lo, hi = shift.interval(1 - 2 * alpha)
    room = math.log1p(margin) - abs(shift.centre)  # to the nearer edge: the farther one is the easier to rule out
    if not shift.error or shift.degrees is None:
        p = float(room <= 0)
    else:
        tail = two_sided_p(room / shift.error, shift.degrees) / 2
        p = tail if room > 0 else 1 - tail
    return Equivalence(exp_held(shift.centre), lo, hi, shift.n, margin, alpha, p, shift.method)
