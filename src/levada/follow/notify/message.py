"""Composing a message from changes: templates, the default text and its HTML, and the message id. Pure.

Everything that stands on a page is hostile. It is put in as text: fields are replaced once and never looked at again,
nothing is evaluated, titles are one line, and HTML is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape

from levada.core.durations import iso
from levada.core.errors import UsageError
from levada.core.records import ChangeEvent, ChangeFacts, ChangeKind, DiffLine
from levada.core.subscriptions import DescribedChange, Message, MessageTemplate, Subscription
from levada.core.words import line, plural, shortened

TITLE_FIELDS = ("name", "count", "title", "url", "site", "what")
BODY_FIELDS = ("name", "title", "url", "site", "what", "when", "changed", "came", "went", "diff", "link")
_FIELD = re.compile(r"\{(\w*)\}")
_TITLE_LENGTH = 200
_BODY = "{what}: {title}\n{url}\n{when}\n\n{diff}\n\n{link}"
_BETWEEN = "\n\n" + "─" * 40 + "\n\n"
_NOT_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_STYLES = {"+": "background:#e6f4ea;color:#0b5c2b", "-": "background:#fce8e6;color:#8c1d18"}
_TEST = ("-The ferry leaves at noon.", "+The ferry leaves at one.")


def checked_template(template: MessageTemplate) -> MessageTemplate:
    """The template, if it names only fields that there are."""
    for text, fields, option in ((template.title, TITLE_FIELDS, "--title"), (template.body, BODY_FIELDS, "--body")):
        for name in _FIELD.findall(text):
            if name not in fields:
                known = ", ".join(f"{{{each}}}" for each in fields)
                raise UsageError(f"{option} has no field {{{name}}}; known: {known}")
    return template


def composed(subscription: Subscription, changes: Sequence[DescribedChange], now: float, collection: str) -> Message:
    """One message about these changes."""
    own = subscription.template
    facts = [each.facts for each in changes]
    sections = [_filled(own.body or _BODY, _fields(subscription, each)).strip() for each in facts]
    text = _text(_BETWEEN.join(sections)) + "\n"
    html = _preformatted(text) if own.body else _html(facts)
    id = _id(subscription, facts, collection)
    return Message(id, subscription.id, now, _title(subscription, facts), text, html, tuple(changes))


def trial_message(subscription: Subscription, now: float, collection: str) -> Message:
    """A message that shows how those of this subscription will look."""
    event = ChangeEvent(0, now, ChangeKind.CHANGED, 0, "https://example.org/", "example.org", 2, 0.9, "This is a test")
    lines = tuple(DiffLine(each[0], ((each[1:], True),)) for each in _TEST)
    facts = ChangeFacts(
        id=f"test-{now:.6f}",
        at=str(iso(now)),
        what=event.what.value,
        url=event.url,
        site=event.site,
        title=event.title,
        version=event.version,
        changed=0.1,
        link=event.url,
        added=1,
        removed=1,
        diff="\n".join(_TEST),
        lines=lines,
        note="nothing has changed: you asked for a test",
    )
    return composed(subscription, [DescribedChange(event, facts)], now, collection)


def _title(subscription: Subscription, changes: Sequence[ChangeFacts]) -> str:
    first = changes[0]
    if subscription.template.title:
        fields = _fields(subscription, first) | {"count": str(len(changes))}
        title = _filled(subscription.template.title, fields)
    elif len(changes) == 1:
        title = f"{first.what.capitalize()}: {first.title or first.url}"
    else:
        sites = {each.site for each in changes}
        where = first.site if len(sites) == 1 else plural(len(sites), "site")
        title = f"{plural(len(changes), 'change')} on {where}"
    return shortened(" ".join(line(_text(title)).split()), _TITLE_LENGTH) or "A page changed"


def _fields(subscription: Subscription, change: ChangeFacts) -> dict[str, str]:
    note = f"({change.note})" if change.note else ""
    return {
        "name": subscription.id,
        "title": change.title or "(no title)",
        "url": change.url,
        "site": change.site,
        "what": change.what.capitalize(),
        "when": _when(change),
        "changed": f"{change.changed:.0%}" if change.what == "changed" else "",
        "came": "\n".join(each.text for each in change.lines if each.sign == "+"),
        "went": "\n".join(each.text for each in change.lines if each.sign == "-"),
        "diff": "\n".join(part for part in (change.diff, note) if part),
        "link": change.link if change.link != change.url else "",
    }


def _when(change: ChangeFacts) -> str:
    return change.at[:16].replace("T", " ") + " UTC"


def _filled(template: str, fields: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda found: fields.get(found[1], found[0]), template)


def _text(text: str) -> str:
    """Without control characters and halves of characters, which no mail may hold."""
    return _NOT_TEXT.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _html(changes: Sequence[ChangeFacts]) -> str:
    sections = []
    for each in changes:
        share = f" · {each.changed:.0%} of the words" if each.what == "changed" else ""
        lines = "".join(map(_html_line, each.lines))
        note = f"<p><small>{escape(each.note)}</small></p>" if each.note else ""
        link = f'<p><a href="{escape(each.link)}">Open it in the dashboard</a></p>' if each.link != each.url else ""
        sections.append(
            f'<h3 style="margin:1em 0 0">{escape(each.what.capitalize())}: {escape(each.title or "(no title)")}</h3>'
            f'<p style="margin:.2em 0"><a href="{escape(each.url)}">{escape(each.url)}</a><br>'
            f"<small>{escape(_when(each))}{share}</small></p>"
            f'<div style="font-family:monospace">{lines}</div>{note}{link}'
        )
    return _text(_page("<hr>".join(sections)))


def _html_line(changed: DiffLine) -> str:
    pieces = (f"<b>{escape(text)}</b>" if differs else escape(text) for text, differs in changed.pieces)
    return f'<div style="{_STYLES.get(changed.sign, "")};white-space:pre-wrap">{changed.sign} {"".join(pieces)}</div>'


def _preformatted(text: str) -> str:
    return _page(f'<pre style="white-space:pre-wrap">{escape(text)}</pre>')


def _page(body: str) -> str:
    return f'<!doctype html><html><head><meta charset="utf-8"></head><body>{body}</body></html>'


def _id(subscription: Subscription, changes: Sequence[ChangeFacts], collection: str) -> str:
    """By what it covers, so that it is the same whoever composes it, and another for another subscription."""
    about = (collection, subscription.id, f"{subscription.created:.6f}", *(each.id for each in changes))
    return sha256("\n".join(about).encode()).hexdigest()[:32]
