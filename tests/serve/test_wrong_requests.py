"""Messages for wrong requests to the API."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from starlette.testclient import TestClient

from levada.serve.responses import what_is_wrong


class Ask(msgspec.Struct, forbid_unknown_fields=True):
    q: Annotated[str, Meta(min_length=1, max_length=5)]
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    least: Annotated[float, Meta(ge=0, le=1)] = 0.0
    beside: bool = False
    urls: Annotated[list[str], Meta(max_length=2)] = []
    site: str | None = None


def told(asked: Any, strict: bool = True) -> str:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(asked, Ask, strict=strict)
    return what_is_wrong(str(caught.value), asked, Ask.__struct_encode_fields__)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"q": "a", "limit": "x"}, "limit must be a whole number, not 'x'"),
        ({"q": "a", "limit": 1.5}, "limit must be a whole number, not 1.5"),
        ({"q": "a", "limit": None}, "limit must be a whole number, not null"),
        ({"q": "a", "limit": 0}, "limit must be at least 1, not 0"),
        ({"q": "a", "limit": 101}, "limit must be at most 100, not 101"),
        ({"q": "a", "least": 2}, "least must be at most 1, not 2"),
        ({"q": "a", "least": "x"}, "least must be a number, not 'x'"),
        ({"q": "a", "beside": "x"}, "beside must be true or false, not 'x'"),
        ({"q": "a", "urls": "x"}, "urls must be a list, not 'x'"),
        ({"q": "a", "urls": ["x", 5]}, "urls[1] must be text, not 5"),
        ({"q": "a", "urls": ["x", "y", "z"]}, "urls must have at most 2 entries, not 3"),
        ({"q": "a", "site": 5}, "site must be text or null, not 5"),
        ({"q": ""}, "q must not be empty"),
        ({"q": "a" * 6}, "q must have at most 5 characters, not 6"),
        ({}, "q is missing"),
        ({"q": "a", "limt": 1}, "'limt' is not known here; did you mean 'limit'?"),
        ({"q": "a", "zzz": 1}, "'zzz' is not known here: there is q, limit, least, beside, urls, site"),
        ([], "the body must be an object, not []"),
    ],
)
def test_each_kind_of_mistake_has_its_sentence(asked: Any, sentence: str) -> None:
    assert told(asked) == sentence


def test_what_a_query_holds_is_text_and_its_numbers_are_shown_as_numbers() -> None:
    assert told({"q": "a", "limit": "1000"}, strict=False) == "limit must be at most 100, not 1000"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("JSON is malformed: invalid character (byte 0)", "the body is no JSON: invalid character (byte 0)"),
        ("Input data was truncated", "the body is no JSON: it is empty, or ends too early"),
        ("Expected `object`, got `array`", "the body must be an object"),
        ("Object contains unknown field `x`", "'x' is not known here: nothing is asked besides the path"),
        ("Something new - at `$.limit`", "limit: Something new"),
    ],
)
def test_what_cannot_be_looked_up_is_said_without(error: str, sentence: str) -> None:
    assert what_is_wrong(error, msgspec.UNSET, ()) == sentence


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-200, 200) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(Ask.__struct_encode_fields__) | st.text(max_size=8), _values))
def test_no_mistake_is_told_in_words_for_programmers(asked: dict[str, Any]) -> None:
    try:
        msgspec.convert(asked, Ask)
    except msgspec.ValidationError as error:
        sentence = what_is_wrong(str(error), asked, Ask.__struct_encode_fields__)
        assert 0 < len(sentence) <= 300
        assert not sentence.startswith(("Expected", "Object"))


def test_the_api_says_these_sentences(api: TestClient) -> None:
    def message(answer: Any) -> str:
        assert answer.status_code == 400
        return str(answer.json()["error"]["message"])

    v1 = "/api/v1"
    assert message(api.get(f"{v1}/search?q=a&limit=x")) == "limit must be a whole number, not 'x'"
    assert message(api.get(f"{v1}/health?x=1")) == "'x' is not known here: nothing is asked besides the path"
    assert message(api.get(f"{v1}/trends?window=x")).startswith("window 'x' is not a duration")
    assert message(api.put(f"{v1}/budget", json={"perhour": 1})) == (
        "'perhour' is not known here; did you mean 'per_hour'?"
    )
    assert message(api.post(f"{v1}/seeds", json={"urls": ["a b"]})) == (
        "not an address: 'a b'; write it like https://example.org"
    )
    json = {"content-type": "application/json"}
    deep = '{"urls": ' + "[" * 500_000
    assert message(api.post(f"{v1}/seeds", content=deep, headers=json)) == "urls[0] must be text"
    latin = '{"url": "https://example.org/\xe9"}'.encode("latin-1")
    assert message(api.post(f"{v1}/webhooks", content=latin, headers=json)) == (
        "the body is no JSON: it is not UTF-8 (byte 29)"
    )
