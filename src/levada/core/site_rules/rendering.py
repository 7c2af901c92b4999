"""The keys of a rule that say whether a browser renders a page, and when it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from levada.core.selectors import Language, check_selector, language_of
from levada.core.site_rules.visit import RenderRule

if TYPE_CHECKING:
    from levada.core.site_rules.section import SiteSettings

NEVER, ALWAYS = "never", "always"


def check_rendering(table: SiteSettings) -> None:
    """ValueError if a key of this table is wrong."""
    if table.wait_for is None:
        return
    try:
        check_selector(table.wait_for)
    except ValueError as error:
        raise ValueError(f"wait_for: {error}") from None
    if language_of(table.wait_for)[0] is not Language.CSS:
        raise ValueError(f'wait_for takes a CSS selector, such as "main .price", not {table.wait_for[:100]!r}')


def render_rule(keys: SiteSettings) -> RenderRule | None:
    """How a browser renders a page; None if none does."""
    if keys.render is None or keys.render == NEVER:
        return None
    return RenderRule(keys.render == ALWAYS, keys.wait_for or "", bool(keys.screenshot), bool(keys.render_media))


def renders_any(tables: Iterable[SiteSettings]) -> bool:
    """Whether one of the rules has pages rendered."""
    return any(table.render not in (None, NEVER) for table in tables)


def rendered_how(keys: SiteSettings) -> str:
    """What of it makes the text of a page another one; "" if no browser renders it."""
    rule = render_rule(keys)
    return "" if rule is None else f"{keys.render} {rule.wait_for}"
