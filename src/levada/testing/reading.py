"""Contract suites of the page reader, the main-text extractor and the change filter, which run in a parser
child."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.protocols import ChangeFilter, Extractor, PageReader
from levada.core.records import ReadPage
from levada.testing.common import properties

_URL = "http://a.test/x"
_property = properties()
_HTML = st.lists(
    st.sampled_from(
        ["<p>", "</p>", "<div class=x>", "</div>", "<!--", "-->", "<script>", "&amp;", "&#0;", "text ", "<"]
    )
    | st.text(max_size=5),
    max_size=40,
).map("".join)


class ReaderContract:
    """A reader turns the bytes of its content types into a title, a text and links, the same ones each time.

    ```python
    class TestMyReader(ReaderContract):
        samples = {"application/x-note": b"Title: One\\n\\nThe ferry leaves at noon."}
        expected = "ferry"

        def make(self) -> PageReader:
            return MyReader()
    ```
    """

    samples: ClassVar[dict[str, bytes]] = {}
    """One good body for each content type of the reader."""
    expected = ""
    """A word of the text of every sample."""

    def make(self) -> PageReader:
        raise NotImplementedError

    @staticmethod
    def assert_read(page: ReadPage) -> None:
        assert isinstance(page, ReadPage)
        assert isinstance(page.title, str)
        assert isinstance(page.text, str)
        assert all(isinstance(link, str) for link in page.links)
        for text in (page.title, page.text):
            text.encode("utf-8")

    def test_it_names_its_content_types_in_lower_case_without_parameters(self) -> None:
        types = self.make().content_types
        assert types
        assert isinstance(types, tuple)
        assert all(each == each.lower().strip() and ";" not in each and "/" in each for each in types)

    def test_every_content_type_has_a_sample(self) -> None:
        assert sorted(self.samples) == sorted(self.make().content_types)

    def test_a_good_body_is_read(self) -> None:
        for content_type, body in self.samples.items():
            page = self.make().read(body, content_type, _URL)
            self.assert_read(page)
            assert self.expected in page.text

    def test_the_same_body_is_read_alike_each_time(self) -> None:
        reader = self.make()
        for content_type, body in self.samples.items():
            first, again = (reader.read(body, content_type, _URL) for _ in range(2))
            assert (first.title, first.text, tuple(first.links)) == (again.title, again.text, tuple(again.links))

    def test_parameters_of_the_content_type_do_no_harm(self) -> None:
        for content_type, body in self.samples.items():
            assert self.expected in self.make().read(body, f"{content_type}; charset=utf-8", _URL).text

    @_property
    @given(st.binary(max_size=300), st.integers(0, 400))
    def test_broken_bodies_are_read_or_refused_with_a_value_error(self, body: bytes, cut: int) -> None:
        reader = self.make()
        for content_type, sample in self.samples.items():
            for broken in (body, sample[:cut], sample[:cut] + body):
                try:
                    page = reader.read(broken, content_type, _URL)
                except ValueError:
                    continue
                self.assert_read(page)


class ExtractorContract:
    """An extractor finds the main text of any HTML, without markup.

    ```python
    class TestMyExtractor(ExtractorContract):
        def make(self) -> Extractor:
            return MyExtractor()
    ```
    """

    def make(self) -> Extractor:
        raise NotImplementedError

    def test_the_main_text_is_found(self) -> None:
        body = " ".join(f"The ferry number {n} leaves the old pier at noon, and nobody waits." for n in range(30))
        html = f"<html><body><nav><a href=/>Home</a></nav><article><p>{body}</p></article></body></html>"
        found = self.make().extract(html, _URL)
        assert "ferry number 7 leaves the old pier" in found
        assert "<" not in found

    @pytest.mark.parametrize("html", ["", " ", "<html></html>", "<script>var ferry</script>"])
    def test_html_without_text_has_no_main_text(self, html: str) -> None:
        assert self.make().extract(html, _URL).strip() == ""

    @_property
    @given(_HTML)
    def test_any_html_has_a_main_text_that_can_be_stored(self, html: str) -> None:
        found = self.make().extract(html, _URL)
        assert isinstance(found, str)
        found.encode("utf-8", "replace")

    @_property
    @given(_HTML)
    def test_the_same_html_has_the_same_text(self, html: str) -> None:
        extractor = self.make()
        assert extractor.extract(html, _URL) == extractor.extract(html, _URL)


class ChangeFilterContract:
    """A change filter removes what does not count as a change; two texts that differ only there become equal.

    ```python
    class TestMyFilter(ChangeFilterContract):
        same = ("Seen 12 times. The ferry leaves.", "Seen 99 times. The ferry leaves.")
        different = ("The ferry leaves.", "The ferry stays.")

        def make(self) -> ChangeFilter:
            return MyFilter()
    ```
    """

    same: tuple[str, str] = ("", "")
    """Two texts whose difference does not count."""
    different: tuple[str, str] = ("The ferry leaves.", "The ferry stays.")
    """Two texts whose difference counts."""

    def make(self) -> ChangeFilter:
        raise NotImplementedError

    def test_what_does_not_count_is_left_out(self) -> None:
        one, other = (self.make().filter(text, _URL) for text in self.same)
        assert one == other

    def test_what_counts_is_kept(self) -> None:
        one, other = (self.make().filter(text, _URL) for text in self.different)
        assert one != other

    @_property
    @given(st.text(max_size=200))
    def test_a_filtered_text_is_filtered_no_further(self, text: str) -> None:
        once = self.make().filter(text, _URL)
        assert isinstance(once, str)
        assert self.make().filter(once, _URL) == once

    @_property
    @given(st.text(max_size=200))
    def test_the_same_text_is_filtered_alike_each_time(self, text: str) -> None:
        change_filter = self.make()
        assert change_filter.filter(text, _URL) == change_filter.filter(text, _URL)
