"""Reasons recorded with every refusal and failure.

They are stored, counted, shown and documented (docs/reasons.md lists each with what to do); a test holds the
two together.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something was not fetched or not stored; docs/reasons.md lists each with what to do.

    >>> news.check(start + "no-such-page").reason is levada.Reason.GONE
    True
    """

    # The address guard and the URL itself
    ADDRESS = "address"  # not a public unicast address
    SCHEME = "scheme"  # neither http nor https
    BAD_URL = "bad-url"
    URL_LENGTH = "url-length"
    # What the site asks for
    ROBOTS = "robots"
    ROBOTS_UNREACHABLE = "robots-unreachable"
    NOFOLLOW = "nofollow"
    NOINDEX = "noindex"
    # What the rules of a site say about the way in
    CREDENTIALS = "credentials"  # a secret or certificate cannot be read, or would go over plain http
    LOGIN_FAILED = "login-failed"  # the site does not accept what was sent
    PROXY = "proxy"  # no proxy works, or none connects to the site
    # Limits of one fetch
    BYTES = "bytes"
    BUFFERED_BYTES = "buffered-bytes"  # of all exchanges together
    DECODED_BYTES = "decoded-bytes"
    HEADER_BYTES = "header-bytes"
    SECONDS = "seconds"
    MIN_RATE = "min-rate"
    REDIRECTS = "redirects"
    # The network
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    PROTOCOL = "protocol"
    HTTP_4XX = "http-4xx"
    HTTP_5XX = "http-5xx"
    RETRY_AFTER = "retry-after"
    GONE = "gone"
    # Rendering in a browser
    BROWSER_MISSING = "browser-missing"  # no Chromium, or no `levada[browser]`
    RENDER_TIMEOUT = "render-timeout"
    RENDER_CRASH = "render-crash"
    RENDER_MEMORY = "render-memory"
    # What came back
    CONTENT_TYPE = "content-type"
    EMPTY = "empty"
    NO_MATCH = "no-match"  # nothing of what the site's rule selects is on the page
    PARSE_SECONDS = "parse-seconds"
    PARSE_MEMORY = "parse-memory"
    PARSER_DIED = "parser-died"
    QUARANTINED = "quarantined"
    NESTING = "nesting"
    ENCRYPTED = "encrypted"  # a document that asks for a password
    DAMAGED = "damaged"  # a document that is not what it says it is, or breaks off
    UNPACKED_BYTES = "unpacked-bytes"  # a document that unpacks to far more than it holds
    NEEDS_EXTRA = "needs-extra"  # a document that only `levada[documents]` can read
    # Traps and bounds of a crawl
    SCOPE = "scope"
    RULE = "rule"  # a rule of the site keeps it out
    DEPTH = "depth"
    SITE_FULL = "site-full"
    LINKS = "links"  # a page has more links than are taken
    REPEATING_PATH = "repeating-path"
    CALENDAR = "calendar"  # counted by versions that judged such addresses by their year
    PARAMETERS = "parameters"  # more in one address than a person would make
    NEAR_DUPLICATES = "near-duplicates"
    TRAP = "trap"  # not fetched: very many pages with such URLs brought nothing new
    DUPLICATE = "duplicate"
    REDIRECTED = "redirected"
    FORGOTTEN = "forgotten"  # deleted by `levada forget`, until it is named as a start again
    PLUGIN = "plugin"  # a plug-in raised, hung or answered nonsense
    # A fault of our own, logged with its trace
    INTERNAL = "internal"


ADVICE: dict[str, str] = {
    Reason.DNS: "its name cannot be resolved: check the spelling and your network",
    Reason.CONNECT: "nobody answers there: check the address, its port and your network",
    Reason.TLS: "its certificate is not valid: for an authority of your own set fetch.ca_file",
    Reason.PROTOCOL: "what answers there does not speak HTTP: check the address and its port",
    Reason.ROBOTS: "its robots.txt does not allow it: ask the site's owner",
    Reason.ROBOTS_UNREACHABLE: "its robots.txt cannot be read: run the same command again later",
    Reason.GONE: "there is no such page: check the spelling",
    Reason.REDIRECTS: "it leads in a circle, or on and on (crawl.max_redirects)",
    Reason.BYTES: "it is larger than fetch.max_bytes",
    Reason.DECODED_BYTES: "it is larger than fetch.max_decoded_bytes",
    Reason.NEEDS_EXTRA: "it is a PDF: pip install 'levada[documents]', then run the same command again",
    Reason.BROWSER_MISSING: "it needs a browser: apt install chromium and pip install 'levada[browser]'",
    Reason.RENDER_TIMEOUT: "a browser did not get done with it: raise browser.seconds, or correct wait_for in its rule",
    Reason.RENDER_MEMORY: "a browser needs more memory for it: raise browser.memory if you trust the site",
    Reason.ENCRYPTED: "it is a document that asks for a password",
    Reason.DAMAGED: "it is a document that breaks off, or not what it says it is",
    Reason.HTTP_4XX: "the site does not give it to us",
    Reason.HTTP_5XX: "the site is out of order: run the same command again later",
}
"""What to say of a page, and to do, for the reasons that a user can do something about."""
