"""A page as Markdown: what each element becomes, and that nothing on a page can break it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.pages.markdown import escaped, markdown_of, text_as_markdown

URL = "https://example.org/dir/page"


def written(body: str, title: str = "", head: str = "") -> str:
    html = f"<html><head>{head}</head><body><main>{body}</main></body></html>"
    return markdown_of(html.encode(), URL, title)


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<h1>One</h1><h3>Three <em>x</em></h3>", "# One\n\n### Three *x*"),
        ("<p>a<br>b</p>", "a  \nb"),
        (
            "<p>a   <b> bold </b>\n c <i>it</i> <del>gone</del> <code>x `y`</code></p>",
            "a **bold** c *it* ~~gone~~ `` x `y` ``",
        ),
        ('<a href="../x?utm_source=mail#part">go</a>', "[go](https://example.org/x)"),
        ('<a href="/a_(b)">go</a>', "[go](https://example.org/a_%28b%29)"),
        ('<a href="javascript:alert(1)">js</a> <a href="#top">up</a> <a href="mailto:a@b.c">mail</a>', "js up mail"),
        ('<img src="i.png" alt="A [cat]"><img src="x.png">', "![A \\[cat\\]](https://example.org/dir/i.png)"),
        (
            '<a href="/p"><img src="i.png" alt="cat"></a>',
            "[![cat](https://example.org/dir/i.png)](https://example.org/p)",
        ),
        ('<a href="/card"><h2>Title</h2><p>Text</p></a>', "## [Title](https://example.org/card)\n\nText"),
        ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "- a\n  - b\n- c"),
        ("<ol start=9><li>a</li><li><p>b</p><p>c</p></li></ol>", "9. a\n\n10. b\n\n    c"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        ("<dl><dt>T</dt><dd>one</dd><dd>two</dd></dl>", "- **T**: one; two"),
        ('<pre><code class="language-py">if x:\n    y = "```"\n</code></pre>', '````py\nif x:\n    y = "```"\n````'),
        ("<pre>one<br>two</pre>", "```\none\ntwo\n```"),
        ("<p>a</p><hr><p>b</p>", "a\n\n---\n\nb"),
        (
            "<table><caption>C</caption><tr><th>A|B</th><th>D</th></tr><tr><td>1<br>2</td><td>3</td></tr></table>",
            "C\n\n| A\\|B | D |\n| --- | --- |\n| 1 2 | 3 |",
        ),
        (
            "<table><tr><td>1</td><td>2</td></tr><tr><td colspan=2>3</td></tr></table>",
            "|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 |  |",
        ),
        ("<table><tr><td><h2>A</h2><p>x</p></td><td><ul><li>y</li></ul></td></tr></table>", "## A\n\nx\n\n- y"),
        (
            "<p>*a* _b_ c_d [x] `y` &lt;b&gt; 1*2 \\ &amp;amp;</p>",
            "\\*a\\* \\_b\\_ c_d \\[x\\] \\`y\\` \\<b> 1\\*2 \\\\ \\&amp;",
        ),
        (
            "<p># no heading</p><p>- no item</p><p>1. no number</p><p>&gt; no quote</p><p>===</p>",
            "\\# no heading\n\n\\- no item\n\n1\\. no number\n\n\\> no quote\n\n\\===",
        ),
        ("<figure><p>x</p><figcaption>said</figcaption></figure>", "x\n\n*said*"),
        ("text <div>block</div> more <span>words</span>", "text\n\nblock\n\nmore words"),
        ("<script>alert(1)</script><style>p{}</style><p>a<!-- b --></p>", "a"),
        ('<h2 id="a">A<a class="headerlink" href="#a">¶</a></h2><h3><a href="#b">#</a> B</h3>', "## A\n\n### B"),
        (
            "<dl><dt>T<dd><p>a</p><pre>x\n  y</pre><dd>b<dt>U<dd>c</dl>",
            "- **T**: a\n\n  ```\n  x\n    y\n  ```\n\n  b\n\n- **U**: c",
        ),
        ("<dl><dt>T<dd>a<dl><dt>in<dd>b</dl></dl>", "- **T**: a\n  - **in**: b"),
        ("<dl><div><dt>T</dt><dd>a</dd></div></dl>", "- **T**: a"),
        ('<dl><dt class="sig">f(<em>a</em>, *)<a href="#f">¶</a><dd>g</dl>', "- `f(a, *)`: g"),
        ("<ul><li>a</li><ul><li>b</li></ul></ul>", "- a\n  - b"),
        (
            "<table><tr><th>A<th>B<tr><td rowspan=2>1<td>2<tr><td>3<tr><td colspan=2>4</table>",
            "| A | B |\n| --- | --- |\n| 1 | 2 |\n| 1 | 3 |\n| 4 |  |",
        ),
        (
            "<table><thead><tr><th rowspan=2>A<th colspan=2>B<tr><th>c<th>d</thead><tr><td>1<td>2<td>3</table>",
            "| A | B c | B d |\n| --- | --- | --- |\n| 1 | 2 | 3 |",
        ),
        (
            "<table><tr><th>A<th>B<tr><td><p>1</p><p>2</p><td><pre>x | y\nz</pre></table>",
            "| A | B |\n| --- | --- |\n| 1<br>2 | `x \\| y`<br>`z` |",
        ),
        ('<div class="highlight-python3"><div class="highlight"><pre>x</pre></div></div>', "```python\nx\n```"),
        ('<pre class="sourceCode c"><code>x</code></pre>', "```c\nx\n```"),
        ('<div class="language-none"><pre data-lang="Rust">x</pre></div>', "```rust\nx\n```"),
        (
            '<table><tr><td class="linenos"><pre>1</pre><td><pre><span class="lineno">1</span>x</pre></table>',
            "```\nx\n```",
        ),
        ("<pre>x<button>Copy</button></pre>", "```\nx\n```"),
        ("<p>10<sup>-3</sup> 1<sup>st</sup></p>", "10^-3 1st"),
        ('<p>so <math display="block" alttext="a_1"></math> <math><mi>x</mi></math></p>', "so $$a_1$$"),
        ("<ul><li><input type=checkbox checked> a<li><input type=checkbox> b</ul>", "- [x] a\n- [ ] b"),
        (
            '<img src="data:image/gif;base64,R0" data-src="/late.png" alt="late">',
            "![late](https://example.org/late.png)",
        ),
    ],
)
def test_an_element_becomes(html: str, markdown: str) -> None:
    assert written(html) == markdown


def test_the_title_is_the_first_heading_unless_the_page_has_one() -> None:
    assert written("<p>text</p>", "A *title*") == "# A \\*title\\*\n\ntext"
    assert written("<h1>Own</h1><p>text</p>", "Another") == "# Own\n\ntext"


def test_links_are_relative_to_the_base_of_the_page() -> None:
    assert written('<a href="x">x</a>', head='<base href="/docs/">') == "[x](https://example.org/docs/x)"
    assert written('<a href="x">x</a>', head='<base href="javascript:1">') == "[x](https://example.org/dir/x)"


def test_menus_and_frames_are_left_out_where_there_is_text() -> None:
    menu = "".join(f'<li><a href="/{n}">Entry {n}</a></li>' for n in range(5))
    body = f"<nav>Navigation</nav><ul>{menu}</ul><p>{'many words ' * 40}</p><footer>Imprint</footer>"
    assert markdown_of(f"<body>{body}</body>".encode(), URL) == ("many words " * 40).strip()


def test_a_page_of_links_alone_keeps_them() -> None:
    menu = "".join(f'<li><a href="/{n}">Entry {n}</a></li>' for n in range(5))
    assert markdown_of(f"<body><ul>{menu}</ul></body>".encode(), URL).count("](https://example.org/") == 5


def test_what_is_nested_too_deeply_is_text_or_nothing() -> None:
    assert "deep" in markdown_of(b"<div>" * 500 + b"deep", URL)
    assert markdown_of(b"<div>" * 6000 + b"deep", URL) == ""
    assert "x" in markdown_of(b"<ul><li>" * 300 + b"x", URL)


def test_the_length_of_links_is_bounded() -> None:
    base = f'<base href="https://example.org/{"a" * 1900}/">'
    links = "".join(f'<a href="{n}">n</a> ' for n in range(20_000))
    page = f"<head>{base}</head><body><main><p>{links}</p></main></body>".encode()
    assert len(markdown_of(page, URL)) < 6_000_000


_NAMES = "p div ul ol li table tr td th pre code blockquote h1 h2 a b em br hr img dl dt dd figure span main"
_TAGS = st.sampled_from(_NAMES.split())
_PIECES = st.one_of(
    _TAGS.map(lambda tag: f"<{tag}>"),
    _TAGS.map(lambda tag: f"</{tag}>"),
    st.sampled_from(['<a href="/x">', '<a href="http://[">', '<img alt="*" src="(">', '<td colspan="99999999999">']),
    st.text(max_size=12),
)


@given(st.lists(_PIECES, max_size=40).map("".join))
def test_any_page_becomes_text_without_elements_and_in_lines(html: str) -> None:
    markdown = markdown_of(html.encode("utf-8", "replace"), URL, "t")
    assert "\x1e" not in markdown
    assert "\x1f" not in markdown
    for line in markdown.split("\n"):
        assert not line.startswith("#######")


@given(st.binary(max_size=200))
def test_any_bytes_are_read(html: bytes) -> None:
    markdown_of(html, "not an address", "t").encode()


@given(st.text(alphabet="*_`[]<>\\~&;ab ", max_size=30))
def test_escaped_text_has_no_unescaped_sign(text: str) -> None:
    found = escaped(text)
    plain = found.replace("\\\\", "")
    for sign in "*`[<":
        assert plain.count(sign) == plain.count("\\" + sign)


def test_plain_text_is_a_paragraph_per_line() -> None:
    assert text_as_markdown("one  two\n\n# three", "T") == "# T\n\none two\n\n\\# three"
