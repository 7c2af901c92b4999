"""Tabs: Chromium, driven by Playwright, and caged.

Everything that the browser asks for goes through our own egress proxy, by its pass for this one page. The document
itself is not asked for again: it is the answer that the fetcher has. Other documents (where a script leads to, frames)
are not loaded, and neither are pictures, fonts, sound and video unless the rule wants them.

Each site has a context of its own, with nothing of other sites in it. It is kept for a while, so that the scripts of
a site are loaded once and not for every page.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from levada.browser.egress import KEY_HOST, EgressLimits, EgressProxy, Pass
from levada.browser.messages import BrowserSetup, Rendered, ToRender
from levada.core.reasons import Reason
from levada.fetch.guard import AddressGuard
from levada.pages.urls import site_of

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Playwright

log = logging.getLogger(__name__)

QUIET = 6.0  # seconds after the document is read in which the network may become quiet
MOST_REQUESTS = 400  # of one page; beyond them nothing more is loaded
_KEPT_CONTEXTS = 4  # that wait for the next page of their site
_MOST_PAGES = 50  # rendered in one context
_AGAIN = 1.0  # seconds after which a page is rendered once more, because something of its own failed
_CLOSING = 5.0  # seconds; a browser that does not close a tab in this time is ended
_WATCH = 0.5  # seconds between two looks at the memory
_MOST_PICTURE = 1024 * 1024
_HIGHEST = 4_000  # pixels of a screenshot
_VIEW = {"width": 1280, "height": 900}
_HEADERS_LEFT_OUT = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"})
_NEEDED = frozenset({"XHR", "Fetch", "Script"})
_MEDIA = ("Image", "Font", "Media")

FLAGS = (
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--enforce-webrtc-ip-permission-check",
    "--no-pings",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-sync",
    "--disable-domain-reliability",
    "--disable-notifications",
    "--disable-speech-api",
    "--mute-audio",
)

SANDBOX = "sandbox allow-scripts allow-same-origin allow-forms; frame-src 'none'; object-src 'none'"
"""What a page may not do, as the browser itself enforces it: no popups, downloads, dialogs, frames, plug-ins."""

# In a world of its own, where the page's scripts have not changed any function. Open shadow roots become part of
# the document; scripts are left out, except for data, and what only stands there for browsers without scripts.
_DOCUMENT = """
(most) => {
  const copy = (node) => {
    const made = node.cloneNode(false);
    const parts = node.shadowRoot ? [...node.shadowRoot.childNodes, ...node.childNodes] : node.childNodes;
    for (const part of parts) {
      const name = part.nodeName;
      if (name === 'NOSCRIPT' || name === 'STYLE' || part.nodeType === 8) continue;
      if (name === 'SCRIPT' && !/json/i.test(part.type)) continue;
      if (name === 'META' && (part.hasAttribute('charset') || /content-type/i.test(part.httpEquiv))) continue;
      made.appendChild(name === 'TEMPLATE' ? part.cloneNode(true) : copy(part));
    }
    return made;
  };
  const html = '<!DOCTYPE html>\\n' + copy(document.documentElement).outerHTML;
  return html.length > most ? html.length : html;
}
"""


class _Gone(Exception):
    """The tab ended: why."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class _Place(msgspec.Struct):
    """A context of a site, used by one page at a time."""

    key: tuple[object, ...]
    context: Any
    issued: Pass
    pages: int = 0


class Tabs:
    """Renders pages, as many at once as are asked for. A browser that crashed is started again."""

    def __init__(self, setup: BrowserSetup) -> None:
        self._setup = setup
        self._proxy = EgressProxy(AddressGuard(setup.allow), EgressLimits(max_bytes=setup.max_bytes))
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._starting = asyncio.Lock()
        self._idle: OrderedDict[int, _Place] = OrderedDict()
        self._rendering = 0
        self._killed_at = float("-inf")
        self._watch: asyncio.Task[None] | None = None

    async def render(self, asked: ToRender) -> Rendered:
        """The page as the browser has it; a failure is an answer with a reason."""
        self._rendering += 1
        try:
            async with asyncio.timeout(2 * (self._setup.seconds + _CLOSING) + _AGAIN):
                answer = await self._render(asked)
                if answer.failed:
                    await asyncio.sleep(_AGAIN)
                    answer = await self._render(asked)
                return answer
        except _Gone as gone:
            return Rendered(asked.id, reason=gone.reason, detail=str(gone))
        except TimeoutError:
            await self._end_browser()
            return Rendered(asked.id, reason=Reason.RENDER_TIMEOUT, detail="The browser does not answer.")
        except Exception as error:  # Playwright's own errors are of many kinds
            return Rendered(asked.id, reason=Reason.RENDER_CRASH, detail=_first_line(error))
        finally:
            self._rendering -= 1

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        await self._end_browser()
        if self._playwright is not None:
            with suppress(Exception):
                async with asyncio.timeout(_CLOSING):
                    await self._playwright.stop()
        await self._proxy.close()

    async def _render(self, asked: ToRender) -> Rendered:
        browser = await self._running()
        place = await self._place(browser, asked)
        is_usable = False
        try:
            place.issued.open()
            if asked.cookies:
                await place.context.clear_cookies()
                await place.context.add_cookies(_cookies(asked))
            page = await place.context.new_page()
            try:
                answer = await _Visit(page, asked, self._setup).run()
                if place.issued.trouble:
                    raise _Gone(Reason.PROXY, place.issued.trouble)
                is_usable = place.pages < _MOST_PAGES
            except _Gone as gone:
                if gone.reason is Reason.RENDER_CRASH and time.monotonic() - self._killed_at < _CLOSING:
                    size = f"{self._setup.memory // 1024 // 1024:,} MiB"
                    raise _Gone(Reason.RENDER_MEMORY, f"The page took more than {size} (browser.memory).") from None
                raise
            finally:
                place.issued.close()
                with suppress(Exception):
                    async with asyncio.timeout(_CLOSING):
                        await page.close()
            return msgspec.structs.replace(
                answer, loaded=place.issued.used, refused=tuple(dict.fromkeys(place.issued.refused))[:10]
            )
        finally:
            await self._leave(place, is_usable)

    async def _running(self) -> Browser:
        async with self._starting:
            if self._browser is not None and self._browser.is_connected():
                return self._browser
            self._forget_contexts()
            if self._playwright is None:
                try:
                    from playwright.async_api import async_playwright
                except ImportError:
                    raise _Gone(Reason.BROWSER_MISSING, "pip install 'levada[browser]'") from None
                self._playwright = await async_playwright().start()
                await self._proxy.start()
                self._watch = asyncio.create_task(self._watch_memory())
            is_root = os.getuid() == 0  # Chromium's sandbox does not work for root
            try:
                self._browser = await self._playwright.chromium.launch(
                    executable_path=self._setup.command,
                    args=[*FLAGS, f"--js-flags=--max-old-space-size={max(64, self._setup.memory // 2 // 1024**2)}"],
                    chromium_sandbox=not is_root,
                    proxy={"server": f"http://127.0.0.1:{self._proxy.port}"},
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                    env=_environment(),
                    timeout=1000 * self._setup.seconds,
                )
            except Exception as error:
                said = f"{self._setup.command} does not start: {_first_line(error)}"
                raise _Gone(Reason.BROWSER_MISSING, said) from None
            return self._browser

    async def _place(self, browser: Browser, asked: ToRender) -> _Place:
        """A context for this site: one that waits for its next page, or a fresh one."""
        agent = asked.agent or self._setup.agent
        key = (site_of(asked.url), agent, asked.accept_language, asked.media, asked.proxy)
        for number, place in self._idle.items():
            if place.key == key:
                del self._idle[number]
                place.pages += 1
                return place
        context = await browser.new_context(
            user_agent=agent,
            extra_http_headers={"Accept-Language": asked.accept_language} if asked.accept_language else {},
            accept_downloads=False,
            service_workers="block",
            viewport=_VIEW,  # type: ignore[arg-type]
        )
        place = _Place(key, context, self._proxy.issue(asked.proxy), 1)
        await _hand_over(context, self._proxy.user, place.issued)
        return place

    async def _leave(self, place: _Place, is_usable: bool) -> None:
        if is_usable:
            self._idle[id(place)] = place
            if len(self._idle) <= _KEPT_CONTEXTS:
                return
            _, place = self._idle.popitem(last=False)
        self._proxy.revoke(place.issued)
        with suppress(Exception):
            async with asyncio.timeout(_CLOSING):
                await place.context.close()

    def _forget_contexts(self) -> None:
        while self._idle:
            self._proxy.revoke(self._idle.popitem()[1].issued)

    async def _end_browser(self) -> None:
        browser, self._browser = self._browser, None
        self._forget_contexts()
        if browser is not None:
            with suppress(Exception):
                async with asyncio.timeout(_CLOSING):
                    await browser.close()

    async def _watch_memory(self) -> None:
        """Kill the processes of tabs that take too much: V8's own limit does not count pictures and buffers."""
        from levada.browser.processes import descendants, is_renderer, resident_bytes

        while True:
            await asyncio.sleep(_WATCH)
            if not self._rendering:
                continue
            for pid in descendants(os.getpid()):
                if resident_bytes(pid) > self._setup.memory and is_renderer(pid):
                    self._killed_at = time.monotonic()
                    with suppress(ProcessLookupError):
                        os.kill(pid, 9)


class _Visit:
    """One page in its tab."""

    def __init__(self, page: Page, asked: ToRender, setup: BrowserSetup) -> None:
        self._page = page
        self._asked = asked
        self._setup = setup
        self._is_served = False
        self._stays = asyncio.Event()  # another document was asked for and refused: this one is not finished then
        self._requests = 0
        self._own: set[str] = set()  # requests of its scripts to its own site, that have no answer yet
        self._failed = False
        self._ended: asyncio.Future[Rendered | _Gone] = asyncio.get_running_loop().create_future()
        self._cdp: CDPSession | None = None
        self._frame = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> Rendered:
        page = self._page
        page.on("crash", lambda _: self._end(_Gone(Reason.RENDER_CRASH, "The page crashed its tab.")))
        page.on("close", lambda _: self._end(_Gone(Reason.RENDER_CRASH, "The browser ended.")))
        page.on("popup", self._close_popup)
        work = asyncio.ensure_future(self._work())
        try:
            async with asyncio.timeout(self._setup.seconds):
                waited: list[asyncio.Future[Any]] = [work, self._ended]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not self._ended.done():
                return work.result()
            end = self._ended.result()
            if isinstance(end, _Gone):
                raise end
            return end
        except TimeoutError:
            seconds = f"{self._setup.seconds:g} s"
            missing = f"{self._asked.wait_for!r} did not appear" if self._asked.wait_for else "The page was not done"
            raise _Gone(Reason.RENDER_TIMEOUT, f"{missing} within {seconds} (browser.seconds).") from None
        finally:
            for task in (work, *self._tasks):
                task.cancel()
            await asyncio.gather(work, *self._tasks, return_exceptions=True)

    def _end(self, end: _Gone | Rendered) -> None:
        if not self._ended.done():
            self._ended.set_result(end)

    async def _work(self) -> Rendered:
        page, asked = self._page, self._asked
        most = 1000 * self._setup.seconds
        cdp = self._cdp = await page.context.new_cdp_session(page)
        cdp.on("Fetch.requestPaused", self._paused)
        cdp.on("Network.requestWillBeSent", self._count)
        cdp.on("Network.responseReceived", self._answered)
        cdp.on("Network.loadingFailed", self._broke_off)
        self._frame = (await cdp.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        kinds = ("Document",) if asked.media else ("Document", *_MEDIA)
        await cdp.send("Network.enable")
        await cdp.send("Fetch.enable", {"patterns": [{"urlPattern": "*", "resourceType": kind} for kind in kinds]})
        await page.goto(asked.url, wait_until="commit", timeout=most)
        await self._first_of(page.wait_for_load_state("domcontentloaded", timeout=most), self._stays.wait())
        if asked.wait_for:
            await page.wait_for_selector(asked.wait_for.removeprefix("css:"), state="attached", timeout=most)
        with suppress(Exception):
            await page.wait_for_load_state("networkidle", timeout=1000 * QUIET)
        html = await self._document(cdp)
        picture = await self._picture(cdp) if asked.screenshot else b""
        return Rendered(asked.id, html, picture, failed=self._failed)

    async def _first_of(self, *ways: Coroutine[Any, Any, Any]) -> None:
        tasks = [asyncio.ensure_future(way) for way in ways]
        self._tasks.update(tasks)  # they end with the visit
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    async def _document(self, cdp: CDPSession) -> bytes:
        world = await cdp.send("Page.createIsolatedWorld", {"frameId": self._frame, "worldName": "levada"})
        asked = {
            "functionDeclaration": _DOCUMENT,
            "executionContextId": world["executionContextId"],
            "arguments": [{"value": self._setup.max_html}],
            "returnByValue": True,
        }
        value = (await cdp.send("Runtime.callFunctionOn", asked))["result"].get("value")
        html = value.encode("utf-8", "replace") if isinstance(value, str) else b""
        if not html or len(html) > self._setup.max_html:
            raise _Gone(Reason.DECODED_BYTES, "The rendered page exceeds fetch.max_decoded_bytes.")
        return html

    async def _picture(self, cdp: CDPSession) -> bytes:
        size = (await cdp.send("Page.getLayoutMetrics"))["cssContentSize"]
        height = min(max(size["height"], _VIEW["height"]), _HIGHEST)
        for quality in (60, 30, 10):
            clip = {"x": 0, "y": 0, "width": _VIEW["width"], "height": height, "scale": 1}
            asked = {"format": "jpeg", "quality": quality, "captureBeyondViewport": True, "clip": clip}
            picture = base64.b64decode((await cdp.send("Page.captureScreenshot", asked))["data"])
            if len(picture) <= _MOST_PICTURE:
                return picture
            height = max(height / 2, _VIEW["height"])
        return b""

    def _paused(self, event: dict[str, Any]) -> None:
        task = asyncio.ensure_future(self._decide(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _decide(self, event: dict[str, Any]) -> None:
        """Serve the document, once; refuse other documents, and what is not wanted."""
        cdp, request, paused = self._cdp, event["request"], event["requestId"]
        assert cdp is not None
        is_main = event["resourceType"] == "Document" and event.get("frameId") == self._frame
        with suppress(Exception):  # the tab ended meanwhile
            if is_main and not self._is_served:
                self._is_served = True
                await cdp.send("Fetch.fulfillRequest", {"requestId": paused, **_served(self._asked)})
                return
            reason = "Aborted" if is_main else "BlockedByClient"
            await cdp.send("Fetch.failRequest", {"requestId": paused, "errorReason": reason})
        if is_main:
            self._stays.set()
        url = request["url"].partition("#")[0]
        if is_main and request["method"] == "GET" and url != self._asked.url.partition("#")[0]:
            self._end(Rendered(self._asked.id, location=url))

    def _count(self, event: dict[str, Any]) -> None:
        self._requests += 1
        if event.get("type") in _NEEDED and site_of(event["request"]["url"]) == site_of(self._asked.url):
            self._own.add(event["requestId"])
        if self._requests == MOST_REQUESTS and self._cdp is not None:
            task = asyncio.ensure_future(_silently(self._cdp.send("Network.setBlockedURLs", {"urls": ["*"]})))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _answered(self, event: dict[str, Any]) -> None:
        """What its own site answers its scripts: a request to come back later is one for the whole visit."""
        if event["requestId"] not in self._own:
            return
        response = event["response"]
        status = response["status"]
        waits = {name.lower(): value for name, value in response["headers"].items()}.get("retry-after")
        if status == 429 or (status == 503 and waits is not None):
            self._end(Rendered(self._asked.id, retry_after=waits or ""))
        self._failed |= status >= 500

    def _broke_off(self, event: dict[str, Any]) -> None:
        is_ours = event.get("canceled") or event.get("blockedReason")
        self._failed |= event["requestId"] in self._own and not is_ours

    def _close_popup(self, popup: Page) -> None:
        task = asyncio.ensure_future(_silently(popup.close()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _silently(work: Any) -> None:
    with suppress(Exception):
        await work


async def _hand_over(context: BrowserContext, user: str, issued: Pass) -> None:
    """Let the browser load a page of the proxy's own: it sends the pass along from then on, unasked.

    Playwright's own way would switch off the browser's cache, and every page would load the scripts of its site again.
    """
    page = await context.new_page()
    cdp = await context.new_cdp_session(page)
    credentials = {"response": "ProvideCredentials", "username": user, "password": issued.secret}

    async def answer(event: dict[str, Any]) -> None:
        given = {"requestId": event["requestId"], "authChallengeResponse": credentials}
        await _silently(cdp.send("Fetch.continueWithAuth", given))

    async def go_on(event: dict[str, Any]) -> None:
        await _silently(cdp.send("Fetch.continueRequest", {"requestId": event["requestId"]}))

    cdp.on("Fetch.authRequired", answer)
    cdp.on("Fetch.requestPaused", go_on)
    await cdp.send("Fetch.enable", {"handleAuthRequests": True, "patterns": [{"urlPattern": "*"}]})
    await page.goto(f"http://{KEY_HOST}/")
    await page.close()


def _cookies(asked: ToRender) -> list[dict[str, Any]]:
    """The cookies of a session, for the page's own host. Scripts see only those that are made to be sent by them."""
    found = []
    for each in asked.cookies.split("; "):
        name, _, value = each.partition("=")
        is_for_scripts = "csrf" in name.lower() or "xsrf" in name.lower()
        found.append(
            {"name": name, "value": value, "url": asked.url, "httpOnly": not is_for_scripts, "sameSite": "Lax"}
        )
    return found


def _served(asked: ToRender) -> dict[str, Any]:
    headers = [{"name": name, "value": value} for name, value in asked.headers if name.lower() not in _HEADERS_LEFT_OUT]
    headers.append({"name": "Content-Security-Policy", "value": SANDBOX})
    return {
        "responseCode": asked.status,
        "responseHeaders": headers,
        "body": base64.b64encode(asked.body).decode("ascii"),
    }


def _environment() -> dict[str, str | float | bool]:
    """What the browser needs of the environment; secrets that the fetcher reads are not among it."""
    kept = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]
