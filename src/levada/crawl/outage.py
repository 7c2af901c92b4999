"""Outage rule: whether the network is down, or only some sites.

A site that cannot be reached says little: it may be down for good. The network counts as down if nothing was reached
in a row of attempts, and then none of the sites that used to answer can be reached either. So a probe always
decides, and a crawl that has never reached anything never takes that for an outage. If the crawl knows only one site
that answers, the rule cannot tell its outage from one of the network, and says so; waiting serves in both cases.

Facts in, decision out: times are arguments, and nothing here asks the network.
"""

from __future__ import annotations

from collections import OrderedDict

from levada.core.reasons import Reason

UNREACHED = frozenset({Reason.DNS, Reason.CONNECT, Reason.SECONDS, Reason.MIN_RATE})
"""Why no answer came, where the reason may be the network."""

FAILURES = 5
"""Attempts in a row without an answer, after which the rule wants a probe."""

PROBED_AT_ONCE = 3
SHORTEST, LONGEST = 5.0, 60.0
"""Seconds between two probes; they grow with the outage."""

_FEW = 3  # sites that answer: with fewer, the outage may be theirs
_SHARE = 0.02  # of the outage so far that may pass between two probes of few sites
_LONGEST_OF_FEW = 3600.0
_MOST_KEPT = 20  # origins that answered


class OutageRule:
    """Follows what was reached and what was not; `suspicious` wants a probe, `since` is when an outage began."""

    def __init__(self) -> None:
        self.since: float | None = None
        self._answered: OrderedDict[str, None] = OrderedDict()  # origins, the one that answered last at the end
        self._failures = 0
        self._began = 0.0
        self._probes = 0

    @property
    def suspicious(self) -> bool:
        return self.since is None and self._failures >= FAILURES

    @property
    def few(self) -> bool:
        """Whether so few sites are known to answer that the outage may be theirs."""
        return len(self._answered) < _FEW

    @property
    def probes(self) -> int:
        """Probes in vain since the outage began."""
        return self._probes

    def know(self, origin: str) -> None:
        """This origin has answered at some time."""
        if origin in self._answered:
            return
        self._answered.setdefault(origin)
        self._answered.move_to_end(origin, last=False)
        if len(self._answered) > _MOST_KEPT:
            self._answered.popitem(last=False)

    def reached(self, origin: str) -> bool:
        """This origin answered; returns whether that ends an outage."""
        self._answered[origin] = None
        self._answered.move_to_end(origin)
        if len(self._answered) > _MOST_KEPT:
            self._answered.popitem(last=False)
        ended = self.since is not None
        self._failures, self.since, self._probes = 0, None, 0
        return ended

    def end(self) -> None:
        """Count an outage as over, because none of the sites that used to answer may be asked."""
        self._failures, self.since, self._probes = 0, None, 0

    def failed(self, at: float) -> None:
        """No answer came."""
        if self._failures == 0:
            self._began = at
        self._failures += 1

    def targets(self) -> list[str]:
        """The origins to probe: of those that answered, others each time. Empty if none ever did."""
        chosen = list(reversed(self._answered))[:PROBED_AT_ONCE]
        if self.since is not None:
            for origin in chosen:
                self._answered.move_to_end(origin, last=False)
        return chosen

    def probed_in_vain(self) -> bool:
        """No target answered; returns whether that begins an outage. Without targets it says nothing."""
        if not self._answered:
            self._failures = 0
            return False
        self._probes += 1
        if self.since is not None:
            return False
        self.since = self._began
        return True

    def pause(self, now: float) -> float:
        """Seconds until the next probe."""
        since = now if self.since is None else self.since
        if self.few:
            return min(max(SHORTEST, _SHARE * (now - since)), _LONGEST_OF_FEW)
        return float(min(SHORTEST * 2 ** min(max(0, self._probes - 1), 10), LONGEST))
