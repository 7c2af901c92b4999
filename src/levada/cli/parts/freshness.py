"""`levada freshness`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.app import make_family
from levada.cli.options import JsonOption, print_result
from levada.cli.terminal import printer
from levada.core.errors import UsageError
from levada.core.words import shortened

if TYPE_CHECKING:
    from levada.freshness import Rule

_MINUTE = 60.0
_WORDS = {1: "unchanged", 2: "changed"}


def freshness() -> None:
    """Prints the intervals at which a rule revisits a page.

    Examples:

    ```
    levada freshness intervals --outcomes 1,2,1,1
    levada freshness intervals --policy nutch-22 --first 60 --outcomes 2,2,1 --json
    ```
    """


def intervals(
    outcomes: Annotated[
        str, typer.Option(metavar="1,2,...", help="What each visit after the first met: 1 unchanged, 2 changed.")
    ],
    policy: Annotated[str, typer.Option(metavar="NAME", help="The rule; a wrong name lists all.")] = "ema",
    first: Annotated[
        float | None, typer.Option(metavar="MINUTES", help="Interval after the first visit; default: the rule's.")
    ] = None,
    floor: Annotated[
        float | None, typer.Option(metavar="MINUTES", help="Shortest interval; default: the rule's.")
    ] = None,
    ceiling: Annotated[
        float | None, typer.Option(metavar="MINUTES", help="Longest interval; default: the rule's.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Prints the interval that a rule sets after each visit, in minutes.

    The first visit is not printed; each further one comes when the interval before it has passed.

    Examples:

    ```
    levada freshness intervals --outcomes 1,2,1,1
    levada freshness intervals --policy nutch-22 --first 60 --outcomes 2,2,1 --json
    ```
    """
    met = _outcomes(outcomes)
    rule = _rule(policy, {"first": first, "floor": floor, "ceiling": ceiling})
    minutes = [seconds / _MINUTE for seconds in _intervals(rule, met)]
    print_result(json, {"policy": policy, "intervals": minutes}, _print_table, met, minutes)


def _outcomes(typed: str) -> list[int]:
    codes = [code.strip() for code in typed.split(",")]
    wrong = next((code for code in codes if code not in ("1", "2")), None)
    if wrong is not None:
        raise UsageError(f"--outcomes: {shortened(wrong, 40)!r} is neither 1 (unchanged) nor 2 (changed)")
    return [int(code) for code in codes]


def _rule(policy: str, minutes: dict[str, float | None]) -> Rule:
    from levada.freshness import revisit_rule

    given = {name: value * _MINUTE for name, value in minutes.items() if value is not None}
    try:
        return revisit_rule(shortened(policy, 40), **given)
    except ValueError as error:
        raise UsageError(f"{policy} {error}") from None


def _intervals(rule: Rule, outcomes: Sequence[int]) -> list[float]:
    memory = [0.0] * rule.width
    interval, found = rule.step(memory, rule.parameters, 0.0, 0), list[float]()
    for outcome in outcomes:
        interval = rule.step(memory, rule.parameters, interval, outcome)
        found.append(interval)
    return found


def _print_table(outcomes: Sequence[int], minutes: Sequence[float]) -> None:
    out = printer()
    out.print("visit  met        next after")
    for number, (outcome, after) in enumerate(zip(outcomes, minutes, strict=True), 2):
        out.print(f"{number:>5}  {_WORDS[outcome]:<9}  {after:,.2f} min")


family = make_family(freshness, intervals, no_args_is_help=True)
