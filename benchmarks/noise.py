"""How many versions are made of noise, and how many changes are missed?

Seventeen kinds of pages with dates, counters, tokens and rotating advertisements are visited 200 times each; the
content of each changes at twelve of these visits (`levada.lab.noise`). `false` are versions without a change, `missed`
changes without a version. `defaults` is Levada without a rule, `dates` with `ignore = ["dates"]` for every page, `rule`
with the rule that a user would write. `changedetection` is the text that changedetection.io compares by default:
inscriptis over the whole page, without white space (JSON: sorted). It is reproduced with the package inscriptis; no
other part of that program runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from typing import Any

from inscriptis import get_text
from table import show

from levada.core.records import RawPage
from levada.core.site_rules.visit import ReadingRule
from levada.lab.noise import NoisyPage, noisy_pages
from levada.pages.change import text_part
from levada.pages.parse import parse_page

Compared = Callable[[NoisyPage, bytes], object]


def by_levada(rule_of: Callable[[NoisyPage], ReadingRule | None]) -> Compared:
    def compared(page: NoisyPage, body: bytes) -> bytes:
        return text_part(parse_page(RawPage("http://noise.example/", body, page.kind, rule=rule_of(page))).text_digest)

    return compared


def by_changedetection(page: NoisyPage, body: bytes) -> str:
    if page.kind == "application/json":
        text = json.dumps(json.loads(body), sort_keys=True, indent=2, ensure_ascii=False)
    else:
        text = get_text(body.decode())
    return "".join(text.split())


READERS: dict[str, Compared] = {
    "changedetection": by_changedetection,
    "defaults": by_levada(lambda page: None),
    "dates": by_levada(lambda page: ReadingRule(ignore=("dates",))),
    "rule": by_levada(lambda page: page.rule),
}


def versions(page: NoisyPage, compared: Compared) -> Iterator[int]:
    """The visits at which another text is met than at the visit before."""
    before: object = None
    for visit, body in enumerate(page.bodies):
        now = compared(page, body)
        if visit and now != before:
            yield visit
        before = now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--visits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for page in noisy_pages(options.seed, options.visits):
        row: dict[str, Any] = {"page": page.name, "changes": len(page.changes)}
        for name, compared in READERS.items():
            found = set(versions(page, compared))
            row |= {f"{name}_false": len(found - page.changes), f"{name}_missed": len(page.changes - found)}
        rows.append(row)
    totals: dict[str, Any] = {"page": "all"}
    totals |= {name: sum(row[name] for row in rows) for name in rows[0] if name != "page"}
    share = totals["defaults_false"] / max(1, totals["changedetection_false"])
    show("noise", [*rows, totals], {"false versions by defaults over changedetection": share}, as_json=options.json)


if __name__ == "__main__":
    main()
