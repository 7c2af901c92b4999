"""Forms as browsers send them."""

from __future__ import annotations

import re
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.fetch.forms import forms_of
from levada.testing.common import properties


def sent(html: str, **values: str) -> list[tuple[str, str]]:
    forms, _ = forms_of(html.encode())
    return forms[0].filled(values)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("<input name=a value=1>", [("a", "1")]),
        ("<INPUT NAME='a' VALUE='x &amp; y'>", [("a", "x & y")]),
        ('<input name="a>b" value="<form>">', [("a>b", "<form>")]),
        ("<input value=1>", []),
        ("<input name=a value=1 disabled>", []),
        ("<input type=hidden name=t value=9><input type=file name=f>", [("t", "9")]),
        ("<input type=checkbox name=a><input type=checkbox name=b checked><input type=radio name=c value=2 checked>",
         [("b", "on"), ("c", "2")]),
        ("<button name=go value=1>x</button><button name=no value=2>y</button>", [("go", "1")]),
        ("<button type=button name=help>?</button><input type=reset name=r><input type=submit name=s value=S>",
         [("s", "S")]),
        ("<select name=l><option value=1><option value=2 selected></select>", [("l", "2")]),
        ("<select name=l><option value=1><option value=2></select><option value=3>", [("l", "1")]),
        ("<textarea name=t>x</textarea>", [("t", "")]),
        ("<!-- <input name=no> --><script>'<input name=no>'</script><input name=a>", [("a", "")]),
        ("<input name=user value=you>", [("user", "me")]),
    ],
)  # fmt: skip
def test_a_form_is_sent_as_a_browser_sends_it(fields: str, expected: list[tuple[str, str]]) -> None:
    values = {"user": "me"} if "user" in fields else {}
    assert sent(f"<form action=/in method=post>{fields}</form><input name=outside>", **values) == expected


def test_a_button_that_the_rule_names_is_the_one_that_is_pressed() -> None:
    buttons = "<button name=cancel value=1>x</button><button name=go value=2>y</button>"
    assert sent(f"<form>{buttons}</form>", go="2") == [("go", "2")]


def test_a_page_has_its_forms_apart() -> None:
    forms, base = forms_of(
        b'<base href="/x/"><form action="/search"><input name=q></form>'
        b'<form method=POST action="in?a=1&amp;b=2"><input type=PASSWORD name=p></form><form><input name=q></form>'
    )
    assert [(each.action, each.method, each.asks_password) for each in forms] == [
        ("/search", "get", False),
        ("in?a=1&b=2", "post", True),
        ("", "get", False),
    ]
    assert base == "/x/"
    assert forms[1].has(["p"])
    assert not forms[1].has(["p", "q"])


@properties(200)
@given(st.text(st.sampled_from("<>/='\"- abforminpute!\n"), max_size=200))
def test_no_page_breaks_it(html: str) -> None:
    forms, _ = forms_of(html.encode())
    assert len(forms) <= len(re.findall("<form", html))


@properties(100)
@given(st.dictionaries(st.text(st.sampled_from("abc-_[]"), min_size=1), st.text(st.sampled_from("ab<>&\"' é"))))
def test_hidden_fields_go_along_as_they_are(hidden: dict[str, str]) -> None:
    fields = [f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">' for name, value in hidden.items()]
    assert dict(sent(f"<form>{''.join(fields)}</form>")) == hidden
