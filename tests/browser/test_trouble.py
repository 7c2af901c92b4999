"""Pages, tabs and browsers that hang, crash, grow or are not there: a reason each, and the next page is rendered."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from levada.browser.messages import Rendered, ToRender
from levada.browser.process import BrowserProcess
from levada.browser.processes import descendants
from levada.core.reasons import Reason
from levada.core.settings import parse_settings
from levada.core.site_rules.rules import SiteRules
from levada.core.site_rules.visit import RenderRule
from levada.crawl.distributed.messages import ToFetch
from tests.browser.shop import SHOP_BLOCK, shop_files
from tests.browser.tab import HTML, render_all, setup, shown
from tests.fetch.servers import Exchange, answer, web
from tests.servers.nginx import nginx
from tests.story.commands import contents, started
from tests.story.secrets_planted import run

AT = "http://127.0.0.1:9/"
GOOD = "<!doctype html><main>before</main><script>document.querySelector('main').textContent = 'after'</script>"
ENDLESS = "<!doctype html><p>x<script>for (;;);</script>"
GREEDY = "<!doctype html><p>x<script>const kept = []; for (;;) kept.push(new Uint8Array(1 << 24).fill(1));</script>"
LATER = "<!doctype html><p>x<script>setTimeout(() => document.body.append('at last'), 1500)</script>"
PATIENCE = 20.0


def test_a_page_without_end_is_ended_and_the_next_one_is_rendered() -> None:
    hangs, good = render_all(setup(pages=1, seconds=4.0), [(AT, ENDLESS), (AT, GOOD)])
    assert hangs.reason is Reason.RENDER_TIMEOUT
    assert "browser.seconds" in hangs.detail
    assert "after" in shown(good)


def test_a_page_that_takes_too_much_memory_is_killed_and_the_next_one_is_rendered() -> None:
    greedy, good = render_all(setup(pages=1, seconds=20.0, memory=300 * 1024 * 1024), [(AT, GREEDY), (AT, GOOD)])
    assert greedy.reason is Reason.RENDER_MEMORY
    assert "browser.memory" in greedy.detail
    assert "after" in shown(good)


def test_a_page_is_read_once_what_wait_for_names_is_there() -> None:
    page = LATER.replace(
        "'at last'", "Object.assign(document.createElement('b'), {className: 'price', textContent: '7'})"
    )
    (rendered,) = render_all(setup(), [(AT, page)], wait_for="b.price")
    assert '<b class="price">7</b>' in shown(rendered)


def test_a_page_where_it_never_appears_fails_and_says_so() -> None:
    (rendered,) = render_all(setup(seconds=2.0), [(AT, GOOD)], wait_for="main .price")
    assert rendered.reason is Reason.RENDER_TIMEOUT
    assert "'main .price' did not appear within 2 s" in rendered.detail


def test_a_page_that_asks_without_end_is_read_as_far_as_it_came() -> None:
    with web({"/x": answer(b"x")}) as server:
        page = "<!doctype html><p>it is there<script>setInterval(() => fetch('/x'), 1)</script>"
        (rendered,) = render_all(setup(server.address), [(f"{server.url}/", page)])
        assert "it is there" in shown(rendered)
        assert len(server.exchanges) <= 450


def test_a_rendered_page_that_is_too_long_is_refused() -> None:
    page = "<!doctype html><p id=p><script>p.textContent = 'x'.repeat(200000)</script>"
    (rendered,) = render_all(setup(max_html=100_000), [(AT, page)])
    assert rendered.reason is Reason.DECODED_BYTES


def test_shadow_roots_are_read_and_scripts_are_left_out_but_not_their_data() -> None:
    page = (
        "<!doctype html><meta charset=iso-8859-9><x-lamp></x-lamp><noscript>no scripts</noscript>"
        '<script type="application/ld+json">{"name": "Lamp"}</script><style>p { color: red }</style><script>'
        "document.querySelector('x-lamp').attachShadow({mode: 'open'}).innerHTML ="
        " '<p>a lamp in the shade</p>'</script>"
    )
    (rendered,) = render_all(setup(), [(AT, page)])
    html = shown(rendered)
    assert "a lamp in the shade" in html
    assert '{"name": "Lamp"}' in html
    for left_out in ("noscript", "attachShadow", "color: red", "iso-8859-9"):
        assert left_out not in html


def test_a_page_cannot_change_how_it_is_read() -> None:
    page = (
        "<!doctype html><main>what is there</main><script>Node.prototype.cloneNode = () => null;"
        "Object.defineProperty(Element.prototype, 'outerHTML', {get: () => 'x'.repeat(1e9)});"
        "document.documentElement.__proto__ = null; JSON.stringify = () => 'nothing'</script>"
    )
    (rendered,) = render_all(setup(), [(AT, page)])
    assert "what is there" in shown(rendered)


def with_process(work: Callable[[BrowserProcess], object], **options: float) -> None:
    async def run_it() -> None:
        process = BrowserProcess(setup(**options))
        try:
            await work(process)  # type: ignore[misc]
        finally:
            await process.close()

    asyncio.run(run_it())


async def good(process: BrowserProcess) -> Rendered:
    return await process.render(ToRender(0, AT, 200, HTML, GOOD.encode()))


def test_a_browser_that_is_killed_is_started_again() -> None:
    async def work(process: BrowserProcess) -> None:
        assert "after" in shown(await good(process))
        assert process._process is not None
        for pid in _programs(process._process.pid):
            os.kill(pid, signal.SIGKILL)
        later = [await good(process) for _ in range(3)]
        assert [each.reason for each in later if each.reason not in (None, Reason.RENDER_CRASH)] == []
        assert "after" in shown(later[-1])

    with_process(work)


def test_a_child_that_is_killed_is_started_again_and_nothing_is_left_of_it() -> None:
    async def work(process: BrowserProcess) -> None:
        assert "after" in shown(await good(process))
        assert process._process is not None
        pid = process._process.pid
        left = [pid, *descendants(pid)]
        os.kill(pid, signal.SIGKILL)
        assert "after" in shown([await good(process) for _ in range(2)][-1])
        _assert_gone(left)

    with_process(work)


def _programs(pid: int) -> list[int]:
    found = []
    for each in descendants(pid):
        command = Path(f"/proc/{each}/cmdline").read_bytes()
        if b"chrom" in command and b"--type=" not in command:
            found.append(each)
    assert found
    return found


def _assert_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE
    while left := [pid for pid in pids if _lives(pid)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_crawl_that_is_killed_or_interrupted_leaves_no_browser_behind(tmp_path: Path) -> None:
    setup()
    shop_files(tmp_path / "files")
    with nginx(tmp_path / "shop", SHOP_BLOCK.format(root=tmp_path / "files")) as port:
        (tmp_path / "levada.toml").write_text(
            f'[guard]\nallow = ["127.0.0.1:{port}"]\n[politeness]\ndelay = 0\n'
            f'[[site]]\nmatch = "127.0.0.1:{port}"\nrender = "always"\n'
        )
        for number in (signal.SIGKILL, signal.SIGINT):
            crawl = started("crawl", f"http://127.0.0.1:{port}/", cwd=tmp_path)
            try:
                deadline = time.monotonic() + PATIENCE
                while not _renders(crawl.pid):
                    assert crawl.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                left = list(descendants(crawl.pid))
            finally:
                os.killpg(crawl.pid, number)
                crawl.communicate(timeout=60)
            _assert_gone(left)


def _renders(pid: int) -> bool:
    commands = []
    for each in descendants(pid):
        try:
            commands.append(Path(f"/proc/{each}/cmdline").read_bytes())
        except OSError:
            continue
    return any(b"--type=renderer" in command for command in commands)


def test_without_a_browser_one_sentence_says_what_to_do_and_nothing_is_lost(tmp_path: Path) -> None:
    setup()
    shop_files(tmp_path / "files")
    with nginx(tmp_path / "shop", SHOP_BLOCK.format(root=tmp_path / "files")) as port:
        start = f"http://127.0.0.1:{port}/about"
        settings = (
            f'[guard]\nallow = ["127.0.0.1:{port}"]\n[politeness]\ndelay = 0\n'
            f'[[site]]\nmatch = "127.0.0.1:{port}"\nrender = "auto"\ndepth = 0\n'
        )
        (tmp_path / "levada.toml").write_text(settings)
        assert run(tmp_path, "crawl", start, "--once").returncode == 0
        before = contents(tmp_path / "levada-data")
        assert "since 1931" in before[start][1]
        assert run(tmp_path, "settings", "set", "browser.command=no-such-browser").returncode == 0
        done = run(tmp_path, "check", start)
        assert "browser-missing" in done.stdout + done.stderr
        said = [line for line in done.stderr.splitlines() if "pages that need a browser" in line]
        assert len(said) <= 1
        assert "apt install chromium and pip install 'levada[browser]'" in done.stdout + done.stderr
        assert contents(tmp_path / "levada-data") == before


LOADS = (
    "<!doctype html><main>nothing</main><script>fetch('/api').then((r) => r.text())"
    ".then((told) => { document.querySelector('main').textContent = told })</script>"
)


def test_a_hiccup_of_the_site_does_not_become_content() -> None:
    asked: list[int] = []

    def api(exchange: Exchange) -> None:
        asked.append(1)
        status = "200 OK" if len(asked) > 1 else "500 Internal Server Error"
        exchange.send(answer(b"all is well" if len(asked) > 1 else b"an error", status=status))

    with web({"/api": api}) as server:
        (rendered,) = render_all(setup(server.address), [(f"{server.url}/", LOADS)])
    assert "all is well" in shown(rendered)
    assert len(asked) == 2


def test_what_fails_every_time_is_read_as_it_is() -> None:
    with web({"/api": answer(b"an error", status="500 Internal Server Error")}) as server:
        (rendered,) = render_all(setup(server.address), [(f"{server.url}/", LOADS)])
        assert len([each for each in server.exchanges if each.path == "/api"]) == 2
    assert "an error" in shown(rendered)


def test_a_site_that_asks_scripts_to_come_back_later_is_left_alone(tmp_path: Path) -> None:
    setup()
    shell = f"<!doctype html><title>Later</title><div id=app></div>{LOADS}"
    answers = {
        "/": answer(shell.encode(), "Content-Type: text/html"),
        "/api": answer(b"", "Retry-After: 500", status="429 Too Many Requests"),
    }
    with web(answers) as server:
        (tmp_path / "levada.toml").write_text(
            f'[guard]\nallow = ["{server.address}"]\n[politeness]\ndelay = 0\n'
            f'[[site]]\nmatch = "{server.address}"\nrender = "always"\n'
        )
        crawl = started("crawl", f"{server.url}/", cwd=tmp_path)
        try:
            deadline = time.monotonic() + PATIENCE
            while "retry-after" not in run(tmp_path, "why", f"{server.url}/").stdout:
                assert crawl.poll() is None
                assert time.monotonic() < deadline
        finally:
            os.killpg(crawl.pid, signal.SIGINT)
            crawl.communicate(timeout=60)
    assert contents(tmp_path / "levada-data") == {}


def test_the_doctor_says_whether_a_rule_can_be_kept(tmp_path: Path) -> None:
    setup()
    rule = '[[site]]\nmatch = "a.test"\nrender = "auto"\n'
    found = {}
    for name, settings in (
        ("there", rule),
        ("missing", rule + '[browser]\ncommand = "no-such-browser"\n'),
        ("none", ""),
    ):
        (tmp_path / "levada.toml").write_text(settings)
        told = json.loads(run(tmp_path, "doctor", "--json").stdout)["checks"]
        found[name] = [(each["verdict"], each["found"]) for each in told if each["name"] == "browser"]
    assert found["none"] == []
    assert found["there"][0][0] == "ok"
    assert found["missing"][0][0] == "warn"
    assert "no-such-browser" in found["missing"][0][1]


def test_rules_of_rendering_reach_workers_in_messages() -> None:
    site = "https://a.test/"
    (table,) = parse_settings('[[site]]\nmatch = "a.test"\nrender = "always"\nwait_for = "main"\n', "a test").site
    rule = SiteRules([table]).visit_rule(site)
    sent = ToFetch(collection="c", leases=(), rules={7: rule})
    received = msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=ToFetch)
    assert received.rules[7] == rule
    assert received.rules[7].render == RenderRule(always=True, wait_for="main")
