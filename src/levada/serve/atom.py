"""Change feed as Atom: an entry per change, or per hour or day."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from xml.etree import ElementTree

from levada.collection.change_facts import ChangeDigest
from levada.core.durations import iso, moment
from levada.core.records import ChangeFacts, DiffLine
from levada.core.words import plural

_ATOM = "http://www.w3.org/2005/Atom"
_NOT_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)))
_TAGS = {"-": "del", "+": "ins"}


def atom_of_changes(changes: Sequence[ChangeFacts], about: str, address: str) -> bytes:
    """A feed with an entry for each change; `address` is that of the feed itself."""
    feed = _feed(about, address, changes[0].at if changes else str(iso(0.0)))
    for change in changes:
        entry = _entry(feed, change.title or change.url, f"urn:levada:{change.id}", change.at)
        _link(entry, change.url)
        if change.link != change.url:
            _link(entry, change.link, rel="related")
        _tell(entry, "summary", summary_of(change))
        _tell(entry, "content", _content(change), type="html")
    return _written(feed)


def atom_of_digests(digests: Sequence[ChangeDigest], about: str, address: str, dashboard: str) -> bytes:
    """A feed with an entry for each hour or day."""
    feed = _feed(about, address, str(iso(digests[0].end if digests else 0.0)))
    for digest in digests:
        start = moment(digest.start)
        day = start[:10] if digest.end - digest.start > 3600 else start
        entry = _entry(feed, f"{day}: {digest.summary}", f"{address}#{day.replace(' ', 'T')}", str(iso(digest.end)))
        _link(entry, dashboard)
        _tell(entry, "summary", digest.summary)
        _tell(entry, "content", "".join(_headed(each) for each in digest.changes), type="html")
    return _written(feed)


def summary_of(change: ChangeFacts) -> str:
    """`changed, 15% of the words; 2 lines came, 1 went`."""
    share = f", {change.changed:.0%} of the words" if change.what == "changed" else ""
    if change.added is None or change.removed is None or not change.added + change.removed:
        return f"{change.what}{share}"
    return f"{change.what}{share}; {plural(change.added, 'line')} came, {change.removed:,} went"


def _headed(change: ChangeFacts) -> str:
    title = escape(change.title or change.url)
    return f'<h3><a href="{escape(change.link)}">{title}</a></h3>{_content(change)}'


def _content(change: ChangeFacts) -> str:
    """HTML in which everything that outsiders wrote is escaped."""
    lines = "".join(_line(each) for each in change.lines)
    note = f"<p><em>{escape(change.note)}</em></p>" if change.note else ""
    return f"<p>{escape(summary_of(change))}, {escape(change.site)}</p>{lines}{note}"


def _line(changed: DiffLine) -> str:
    tag = _TAGS[changed.sign]
    pieces = (f"<b>{escape(text)}</b>" if differs else escape(text) for text, differs in changed.pieces)
    return f"<p>{changed.sign} <{tag}>{''.join(pieces)}</{tag}></p>"


def _feed(about: str, address: str, updated: str) -> ElementTree.Element:
    feed = ElementTree.Element("feed", xmlns=_ATOM)
    _tell(feed, "title", f"Changes: {about}" if about else "Changes")
    _tell(feed, "id", address)
    _link(feed, address, rel="self")
    _tell(ElementTree.SubElement(feed, "author"), "name", "Levada")
    _tell(feed, "updated", updated)
    return feed


def _entry(feed: ElementTree.Element, title: str, id: str, updated: str) -> ElementTree.Element:
    entry = ElementTree.SubElement(feed, "entry")
    for name, text in (("title", title), ("id", id), ("updated", updated)):
        _tell(entry, name, text)
    return entry


def _link(parent: ElementTree.Element, address: str, **how: str) -> None:
    ElementTree.SubElement(parent, "link", {**how, "href": address.translate(_NOT_XML)})


def _tell(parent: ElementTree.Element, name: str, text: str, **how: str) -> None:
    ElementTree.SubElement(parent, name, how).text = text.translate(_NOT_XML)


def _written(feed: ElementTree.Element) -> bytes:
    return bytes(ElementTree.tostring(feed, "utf-8", xml_declaration=True))
