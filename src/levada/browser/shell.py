"""Empty shells: pages whose content only scripts make."""

from __future__ import annotations

from enum import Enum

from selectolax.lexbor import LexborHTMLParser

_FEW = 200  # characters of text that a shell may have, such as "Loading..."
_ROOTS = (
    "#app, #root, #__next, #__nuxt, #svelte, #gatsby-focus-wrapper, #ember-app, #q-app, #react-root, #app-root, "
    "#main-app, #application, [data-reactroot], [data-server-rendered], [ng-app], [ng-version], [data-v-app]"
)


class Shell(Enum):
    """How much a page looks like one."""

    NO = 0
    MAYBE = 1  # hardly any text, and scripts
    YES = 2  # and an element for them to fill, or a sentence for browsers without scripts


def shell_of(body: bytes) -> Shell:
    """Whether an HTML page, as it is served, is an empty shell."""
    if b"<script" not in body and b"<SCRIPT" not in body:
        return Shell.NO
    body, without_scripts = _parted(body)
    tree = LexborHTMLParser(body)
    if tree.css_first("script[src], script[type=module], script:not([type])") is None:
        return Shell.NO
    asks_for_scripts = b"javascript" in without_scripts
    holds_root = any(_is_empty(each.text() or "") for each in tree.css(_ROOTS)) or _has_empty_component(tree)
    tree.strip_tags(["script", "style", "template", "svg", "head"])
    if not _is_empty(tree.body.text() if tree.body is not None else ""):
        return Shell.NO
    return Shell.YES if asks_for_scripts or holds_root else Shell.MAYBE


def words_of(body: bytes) -> int:
    """How many words the body of a page shows."""
    tree = LexborHTMLParser(_parted(body)[0])
    tree.strip_tags(["script", "style", "template", "head"])
    return len((tree.body.text(separator=" ") if tree.body is not None else "").split())


def _parted(body: bytes) -> tuple[bytes, bytes]:
    """A page without what is for browsers without scripts, and that in lower case."""
    lower, at = body.lower(), 0
    kept, left_out = [], []
    while (start := lower.find(b"<noscript", at)) >= 0 and (end := lower.find(b"</noscript", start)) >= 0:
        kept.append(body[at:start])
        left_out.append(lower[start:end])
        at = end
    kept.append(body[at:])
    return b"".join(kept), b"".join(left_out)


def _is_empty(text: str) -> bool:
    return len(" ".join(text.split())) <= _FEW


def _has_empty_component(tree: LexborHTMLParser) -> bool:
    """An element with a name of the site's own, such as <app-root>, that is empty."""
    body = tree.body
    return body is not None and any(
        "-" in (each.tag or "") and _is_empty(each.text() or "") for each in body.iter(include_text=False)
    )
