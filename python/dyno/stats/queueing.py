"""Closed queueing networks: what so many clients can get at the most, and what they get where requests stand in line.

A *centre* is something that operations use: CPUs, a disk. Its service demand D is the time of one of its servers that
an operation takes, all visits together; with X operations a second, X D of its servers are busy (the utilisation law).
Z is the time that a client waits of its own will between operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dyno.stats.arrays import Values, as_array

FEWEST_OF_FORECAST = 4
"""Levels: a demand that changes with load is a curve, and three points leave none to check it by."""

MOST_CLIENTS = 4096
"""For which a network is solved; its time grows with their square."""


@dataclass(frozen=True)
class Centre:
    """`demand` in seconds for an operation; `servers` alike, a fraction where a quota leaves no whole one.

    Infinitely many where nobody ever stands in line.
    """

    demand: float
    servers: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.demand < math.inf or not self.servers > 0:
            raise ValueError(f"a centre has a demand of 0 s or more and servers, got {self.demand} and {self.servers}")

    @property
    def least_interval(self) -> float:
        """Seconds from one completion to the next at the least, all servers busy: D / m."""
        return self.demand / self.servers


@dataclass(frozen=True)
class Solved:
    """What so many clients get: operations a second, seconds of an operation, and how it is at each centre.

    `residence` is the seconds that an operation spends at each centre, in line and in service; `present` the mean
    number of operations there.
    """

    clients: int
    throughput: float
    response: float
    residence: tuple[float, ...]
    present: tuple[float, ...]


def asymptotic_throughput(clients: float, centres: Sequence[Centre], think: float = 0.0) -> float:
    """The most operations a second that `clients` can get: min(1 / max(D_k / m_k), N / (sum of D_k + Z)).

    The first since no server is busy for more than all of the time, the second since an operation takes its own service
    at the least (P. J. Denning, J. P. Buzen, The operational analysis of queueing network models, Computing Surveys 10,
    1978; E. D. Lazowska et al., Quantitative System Performance, 1984, chapter 5; R. Jain, The Art of Computer Systems
    Performance Analysis, 1991, section 33.7). With m servers at a centre its bound is m times that of one. Assumes that
    an operation is at one centre at a time; where its parts overlap, the second is no bound.

    Infinite where nothing takes time. Raises ValueError for clients or a think time below 0.
    """
    _check(clients, think)
    slowest = max((centre.least_interval for centre in centres), default=0.0)
    alone = sum(centre.demand for centre in centres) + think
    return min(1 / slowest if slowest else math.inf, clients / alone if alone else math.inf)


def saturation_clients(centres: Sequence[Centre], think: float = 0.0) -> float:
    """N* = (sum of D_k + Z) / max(D_k / m_k): with more clients some stand in line, however well they are spread.

    Where the two bounds of `asymptotic_throughput` meet, by the same sources. Infinite where no centre takes time.
    Raises ValueError for a think time below 0.
    """
    _check(0, think)
    slowest = max((centre.least_interval for centre in centres), default=0.0)
    return (sum(centre.demand for centre in centres) + think) / slowest if slowest else math.inf


def least_response(clients: float, centres: Sequence[Centre], think: float = 0.0) -> float:
    """The least mean time of an operation in seconds: max(sum of D_k, N max(D_k / m_k) - Z), by the same sources.

    Raises ValueError for clients or a think time below 0.
    """
    _check(clients, think)
    slowest = max((centre.least_interval for centre in centres), default=0.0)
    return max(sum(centre.demand for centre in centres), clients * slowest - think)


def mean_value_analysis(clients: int, centres: Sequence[Centre], think: float = 0.0) -> Solved:
    """The exact solution of a network of queues with such centres, for exponential or processor-shared service.

    By the mean value analysis of M. Reiser and S. S. Lavenberg (Mean-value analysis of closed multichain queuing
    networks, Journal of the ACM 27, 1980): with R_k = D_k (1 + Q_k) for a single server, and for m servers

        R_k(n) = D_k sum over j = 1..n of j / min(j, m) p_k(j - 1 | n - 1),   X(n) = n / (Z + sum of R_k(n)),
        p_k(j | n) = X(n) D_k / min(j, m) p_k(j - 1 | n - 1)

    The chance that nobody is there, p_k(0 | n), is not taken from what the others leave of 1, which few digits are left
    of under load, but from the network without that centre: p_k(0 | n) = p_k(0 | n - 1) X(n) / X_without_k(n) (M.
    Reiser, Mean-value analysis and convolution method for queue-dependent servers in closed queueing networks,
    Performance Evaluation 1, 1981).

    Raises ValueError for a number of clients that is not whole or not in 1 to 4,096, a think time below 0, or a network
    in which nothing takes time.
    """
    _check(clients, think)
    if clients != int(clients) or not 1 <= clients <= MOST_CLIENTS:
        raise ValueError(f"a network is solved for 1 to {MOST_CLIENTS} clients, got {clients}")
    residence = np.array([centre.demand for centre in centres], dtype=np.float64)
    queues = [place for place, centre in enumerate(centres) if centre.demand > 0 and centre.servers < math.inf]
    apart = think + sum(centre.demand for centre in centres if centre.servers == math.inf)
    if not queues and not apart:
        raise ValueError("a network in which nothing takes time has no throughput")
    throughputs, of_queues = _solve(int(clients), tuple(centres[place] for place in queues), apart)
    residence[queues] = of_queues
    throughput = float(throughputs[-1])
    return Solved(
        int(clients),
        throughput,
        float(residence.sum()),
        tuple(map(float, residence)),
        tuple(map(float, throughput * residence)),
    )


def _solve(clients: int, centres: tuple[Centre, ...], think: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Throughputs of 1 to so many clients, and the residence times of the most; infinite where nothing takes time."""
    many = {
        place: _solve(clients, centres[:place] + centres[place + 1 :], think)[0]
        for place, centre in enumerate(centres)
        if centre.servers != 1
    }
    if not centres and not think:
        return np.full(clients, math.inf), np.zeros(0)
    throughputs, residence = np.zeros(clients), np.zeros(len(centres))
    chances = {place: np.zeros(clients + 1) for place in many}
    for each in chances.values():
        each[0] = 1.0
    jobs = np.arange(1, clients + 1)
    slower = {place: jobs / np.minimum(jobs, centres[place].servers) for place in many}
    present = np.zeros(len(centres))
    for n in range(1, clients + 1):
        for place, centre in enumerate(centres):
            if place in many:
                residence[place] = centre.demand * float(slower[place][:n] @ chances[place][:n])
            else:
                residence[place] = centre.demand * (1 + present[place])
        throughput = n / (think + residence.sum())
        throughputs[n - 1] = throughput
        present = throughput * residence
        for place, without in many.items():
            of = chances[place]
            nobody = of[0] * throughput / without[n - 1]
            of[1 : n + 1] = throughput * centres[place].demand * slower[place][:n] / jobs[:n] * of[:n]
            of[0] = nobody
    return throughputs, residence


def interpolated(levels: Values, values: Values, at: float) -> float:
    """A value between measured levels: the monotone piecewise cubic over ln(level), in the unit of the values.

    It goes through each point and has no extreme between two of them, so nothing is made up that was not measured (F.
    N. Fritsch, J. Butland, A method for constructing local monotone piecewise cubic interpolants, SIAM Journal on
    Scientific and Statistical Computing 5, 1984). Over logs, since the first client that is added changes more than the
    hundredth.

    Raises ValueError for a place below the first or above the last level, fewer than two levels, levels that do not
    rise or are not above 0, and values that are not one a level or not finite.
    """
    x, y = as_array(levels), as_array(values)
    if x.size != y.size or x.size < 2 or not (np.diff(x) > 0).all() or not x[0] > 0:
        raise ValueError("interpolating takes two levels or more, rising and above 0, and a value for each")
    if not x[0] <= at <= x[-1]:
        raise ValueError(f"{at:g} is not between the measured levels {x[0]:g} and {x[-1]:g}")
    # Importing scipy takes longer than most commands that never need it.
    from scipy.interpolate import PchipInterpolator

    with np.errstate(over="ignore"):  # a slope near 0 has an infinite reciprocal, which gives a derivative of 0
        return float(PchipInterpolator(np.log(x), y)(math.log(at)))


def nearest(levels: Values, values: Values, at: float) -> float:
    """The value of the level that is nearest by ratio; of the lower one where two are as near."""
    x, y = as_array(levels), as_array(values)
    return float(y[int(np.argmin(np.abs(np.log(x) - math.log(at))))])


def on_a_line(levels: Values, values: Values, at: float) -> float:
    """The value on the straight line between the two levels around it."""
    return float(np.interp(at, as_array(levels), as_array(values)))


@dataclass(frozen=True)
class LoadDependent:
    """A network whose demands were measured at several numbers of clients, to be asked for those between them.

    At a number of clients its demands are interpolated, and the network with just these demands is solved. So the
    demands are of the load that they are asked for, which a network solved step by step with the demands of each step
    (A. Kattepur, M. Nambiar, Performance modeling of multi-tiered web applications with varying service demands, IPDPS
    workshops 2015) has in its last step alone; and no demand of fewer clients than were measured is needed.

    What an operation waits for that is in no demand (a wake-up, a lock, an answer on its way) is a delay: as long as it
    takes for the network to have the throughput measured, at levels with no more clients than fill the network. With
    more of them a delay is hidden by the line at the fullest centre and cannot be told; there it is as at the next
    lower level where it can. What is then left between measured and solved is a factor, interpolated too.

    `demands` and `delays` are in seconds, `delays` None where they cannot be told, all by level.
    """

    levels: tuple[int, ...]
    throughputs: tuple[float, ...]
    demands: tuple[tuple[float, ...], ...]
    servers: tuple[float, ...]
    delays: tuple[float | None, ...]

    @classmethod
    def measured(
        cls,
        levels: Sequence[int],
        throughputs: Sequence[float],
        demands: Sequence[Sequence[float]],
        servers: Sequence[float],
    ) -> LoadDependent:
        """From the throughput (operations a second) and demands of each level. Raises ValueError as solving does."""
        delays = [_delay(*each, servers) for each in zip(levels, throughputs, demands, strict=True)]
        return cls(tuple(levels), tuple(throughputs), tuple(map(tuple, demands)), tuple(servers), tuple(delays))

    def without(self, level: int) -> LoadDependent:
        """The same as if that level had not been measured."""
        kept = [place for place, each in enumerate(self.levels) if each != level]
        return LoadDependent(
            tuple(self.levels[place] for place in kept),
            tuple(self.throughputs[place] for place in kept),
            tuple(self.demands[place] for place in kept),
            self.servers,
            tuple(self.delays[place] for place in kept),
        )

    def throughput(self, clients: int) -> float:
        """Operations a second of so many clients. Raises ValueError for fewer or more than were measured."""
        delay = interpolated(self.levels, self._z, clients)
        solved = _throughput(clients, self.demands_at(clients), self.servers, delay)
        return solved * math.exp(interpolated(self.levels, self._off, clients))

    def demands_at(self, clients: float) -> tuple[float, ...]:
        """In seconds, of each centre. Raises ValueError as `throughput` does."""
        columns = zip(*self.demands, strict=True)
        return tuple(interpolated(self.levels, column, clients) for column in columns)

    @cached_property
    def _z(self) -> tuple[float, ...]:
        """The delay of each level."""
        known = next((delay for delay in self.delays if delay is not None), 0.0)
        found = []
        for delay in self.delays:
            known = known if delay is None else delay
            found.append(known)
        return tuple(found)

    @cached_property
    def _off(self) -> tuple[float, ...]:
        """ln(measured / solved) of each level."""
        return tuple(
            math.log(throughput / _throughput(level, demands, self.servers, delay))
            for level, throughput, demands, delay in zip(
                self.levels, self.throughputs, self.demands, self._z, strict=True
            )
        )


_FULL = 0.98
"""Of the time of the fullest centre: beyond it, there are more clients than fill a network of any size looked at."""


def _delay(clients: int, throughput: float, demands: Sequence[float], servers: Sequence[float]) -> float | None:
    """The think time with which the network has that throughput; None where more clients than fill it hide it."""
    centres = [Centre(demand, number) for demand, number in zip(demands, servers, strict=True)]
    if throughput * max((centre.least_interval for centre in centres), default=0.0) >= _FULL:
        return None
    # All of an operation's time, if nobody stood in line.
    most = clients / throughput

    def slower(delay: float) -> float:
        return _throughput(clients, demands, servers, delay) / throughput - 1

    if slower(0.0) <= 0:
        return 0.0 if clients <= saturation_clients(centres) else None
    from scipy.optimize import brentq

    delay = float(brentq(slower, 0.0, most, xtol=1e-4 * most))
    return delay if clients <= saturation_clients(centres, delay) else None


def _throughput(clients: int, demands: Sequence[float], servers: Sequence[float], think: float) -> float:
    centres = [Centre(demand, number) for demand, number in zip(demands, servers, strict=True)]
    return mean_value_analysis(clients, centres, think).throughput


def _check(clients: float, think: float) -> None:
    if not 0 <= clients < math.inf or not 0 <= think < math.inf:
        raise ValueError(f"clients and think time are 0 or more, got {clients} and {think}")
