"""OpenGraph, Twitter cards and Dublin Core: an item from the meta elements of a page, with names of schema.org."""

from __future__ import annotations

from collections.abc import Iterable

from levada.core.structured import Item
from levada.pages.structured.building import Builder, Limits

_OPEN_GRAPH = {
    "og:title": "name",
    "og:description": "description",
    "og:image": "image",
    "og:image:url": "image",
    "og:url": "url",
    "og:site_name": "publisher",
    "og:locale": "inLanguage",
    "article:published_time": "datePublished",
    "og:published_time": "datePublished",
    "article:modified_time": "dateModified",
    "og:updated_time": "dateModified",
    "article:author": "author",
    "article:section": "articleSection",
    "article:tag": "keywords",
    "book:author": "author",
    "book:isbn": "isbn",
    "book:release_date": "datePublished",
    "product:brand": "brand",
    "product:category": "category",
    "product:condition": "itemCondition",
    "product:retailer_item_id": "sku",
    "og:brand": "brand",
    "video:release_date": "datePublished",
    "video:duration": "duration",
    "music:musician": "byArtist",
    "music:duration": "duration",
}
_OFFERED = {
    "product:price:amount": "price",
    "og:price:amount": "price",
    "product:sale_price:amount": "price",
    "product:price:currency": "priceCurrency",
    "og:price:currency": "priceCurrency",
    "product:sale_price:currency": "priceCurrency",
    "product:availability": "availability",
    "og:availability": "availability",
}
_TYPES = {
    "article": "Article",
    "book": "Book",
    "books.book": "Book",
    "business.business": "LocalBusiness",
    "event": "Event",
    "music.album": "MusicAlbum",
    "music.song": "MusicRecording",
    "place": "Place",
    "product": "Product",
    "product.item": "Product",
    "og:product": "Product",
    "profile": "ProfilePage",
    "recipe": "Recipe",
    "restaurant.restaurant": "Restaurant",
    "video.episode": "TVEpisode",
    "video.movie": "Movie",
    "video.other": "VideoObject",
    "video.tv_show": "TVSeries",
}
_TWITTER = {
    "twitter:title": "name",
    "twitter:description": "description",
    "twitter:image": "image",
    "twitter:image:src": "image",
    "twitter:creator": "author",
    "twitter:site": "publisher",
}
_DUBLIN_CORE = {
    "title": "name",
    "creator": "author",
    "contributor": "contributor",
    "publisher": "publisher",
    "date": "datePublished",
    "date.issued": "datePublished",
    "issued": "datePublished",
    "created": "dateCreated",
    "date.created": "dateCreated",
    "modified": "dateModified",
    "date.modified": "dateModified",
    "description": "description",
    "abstract": "abstract",
    "subject": "keywords",
    "language": "inLanguage",
    "identifier": "identifier",
    "rights": "copyrightNotice",
    "license": "license",
}
_AVAILABILITY = {
    "instock": "InStock",
    "in stock": "InStock",
    "available": "InStock",
    "oos": "OutOfStock",
    "out of stock": "OutOfStock",
    "outofstock": "OutOfStock",
    "pending": "BackOrder",
    "preorder": "PreOrder",
    "available for order": "BackOrder",
}


def read_meta(elements: Iterable[tuple[str, str]], limits: Limits) -> list[Item]:
    """One item of each vocabulary that the elements, as name and content, use."""
    graph = Builder([], limits, source="opengraph")
    card = Builder(["WebPage"], limits, source="twitter")
    dublin = Builder(["CreativeWork"], limits, source="dublin-core")
    offered: dict[str, str] = {}
    kind = ""
    for name, content in elements:
        if name == "og:type":
            kind = kind or content.strip().lower()
        elif name in _OPEN_GRAPH:
            graph.add(_OPEN_GRAPH[name], content)
        elif name in _OFFERED:
            is_sale = name.startswith("product:sale_")
            if content.strip() and (is_sale or _OFFERED[name] not in offered):
                offered[_OFFERED[name]] = content
        elif name in _TWITTER:
            card.add(_TWITTER[name], content)
        elif name.startswith("dc"):
            term = name.replace("terms", "", 1).replace(":", ".")[3:]
            if term in _DUBLIN_CORE:
                dublin.add(_DUBLIN_CORE[term], content)
    if offered:
        offer = Builder(["Offer"], limits)
        for name, content in offered.items():
            offer.add(name, _AVAILABILITY.get(content.strip().lower(), content) if name == "availability" else content)
        graph.add("offers", offer)
    if offered or kind or graph.properties:
        graph.types = (_TYPES.get(kind, "Product" if "price" in offered else "WebPage"),)
    return [each.item() for each in (graph, card, dublin) if each.properties and limits.take_item()]
