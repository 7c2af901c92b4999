"""The search box script, suggestions, and the OpenSearch description.

A browser that adds the collection as a search engine asks for suggestions without cookies. Where a login is needed,
the description is opened with a search key (`/opensearch.xml?key=...`), which then stands in its addresses.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from levada.core.errors import BadQuery
from levada.core.search_records import Query
from levada.serve.access import KEY_FIELD
from levada.serve.operations import API, Operations
from levada.serve.responses import tagged_answer
from levada.serve.view import View

EMBEDDING = Operations()
SCRIPT = "/embed/search.js"
_SUGGESTED = 8
_SHORT_NAME = 16  # characters: no browser must show more


class SuggestAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    q: Annotated[str, msgspec.Meta(max_length=500, description="The words that were typed so far.")] = ""


@EMBEDDING.add("GET", "/suggest", "Titles of the best hits, in the form of OpenSearch suggestions", errors=(404,))
def _suggest(view: View, ask: SuggestAsk) -> list[str | list[str]]:
    """The words, titles, descriptions and addresses."""
    if not ask.q.strip():
        return [ask.q, [], [], []]
    typed = Query(ask.q, _SUGGESTED, 0, view.collection().clock.now(), as_you_type=True)
    try:
        found = view.search(typed).hits
    except BadQuery:
        found = ()  # nothing to look for yet
    titled = [hit for hit in found if hit.title]
    return [ask.q, [hit.title for hit in titled], [hit.site for hit in titled], [hit.url for hit in titled]]


def embed_routes(view: View) -> list[Route]:
    script = (files(__package__) / "search.js").read_bytes()

    async def search_box(request: Request) -> Response:
        answer = tagged_answer(request, script, "text/javascript; charset=utf-8", "public, max-age=300")
        answer.headers["cross-origin-resource-policy"] = "cross-origin"  # it holds nothing of the collection
        return answer

    async def describe(request: Request) -> Response:
        body = _description(view.name, str(request.base_url).rstrip("/"), request.query_params.get(KEY_FIELD, ""))
        return tagged_answer(request, body.encode(), "application/opensearchdescription+xml")

    async def search(request: Request) -> Response:
        root = request.scope.get("root_path", "")
        return RedirectResponse(f"{root}/#/search?q={quote(request.query_params.get('q', ''))}", 303)

    return [Route(SCRIPT, search_box), Route("/opensearch.xml", describe), Route("/search", search)]


def _description(name: str, base: str, key: str) -> str:
    with_key = f"&{KEY_FIELD}={quote(key)}" if key else ""
    results = quoteattr(f"{base}/search?q={{searchTerms}}")
    suggestions = quoteattr(f"{base}{API}/suggest?q={{searchTerms}}{with_key}")
    own = quoteattr(f"{base}/opensearch.xml{f'?{with_key[1:]}' if key else ''}")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">\n'
        f"  <ShortName>{escape(name[:_SHORT_NAME])}</ShortName>\n"
        f"  <Description>Searches the collection {escape(name)}</Description>\n"
        "  <InputEncoding>UTF-8</InputEncoding>\n"
        f'  <Image width="16" height="16" type="image/svg+xml">{escape(base)}/static/icon.svg</Image>\n'
        f'  <Url type="text/html" method="get" template={results}/>\n'
        f'  <Url type="application/x-suggestions+json" method="get" template={suggestions}/>\n'
        f'  <Url type="application/opensearchdescription+xml" rel="self" template={own}/>\n'
        "</OpenSearchDescription>\n"
    )
