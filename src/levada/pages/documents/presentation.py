"""Presentations (PPTX): the slides in their order, each a page, with tables, diagrams and speaker notes."""

from __future__ import annotations

from levada.core.reasons import Reason
from levada.core.records import ReadPage
from levada.pages.documents.gathering import DocumentText, Unreadable
from levada.pages.documents.package import Attributes, Package, Relation, XmlReader, attribute, filled
from levada.pages.documents.word import WordPart, office_page

_MAIN = "application/vnd.openxmlformats-officedocument.presentationml"
_PLACEHOLDERS = frozenset(("sldNum", "sldImg", "dt", "ftr", "hdr"))  # the number, picture, date, foot of every slide


class PresentationReader:
    content_types = (
        f"{_MAIN}.presentation",
        f"{_MAIN}.slideshow",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    )

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
        package = Package(body)
        main = next(
            (each.target for each in package.relations("").values() if each.kind == "officeDocument"),
            "ppt/presentation.xml",
        )
        order, relations, text = _SlideOrder(), package.relations(main), DocumentText()
        order.read(package.pieces(main))
        slides = [relations[id].target for id in order.ids if id in relations]

        def read_all() -> None:
            for number, slide in enumerate(slides):
                if number:
                    text.end_page()
                _read_slide(package, slide, text)

        left_out = filled(text, read_all)
        return office_page(package, text, left_out, pages=len(slides))


def _read_slide(package: Package, slide: str, text: DocumentText) -> None:
    relations = package.relations(slide)
    _Slide(text, relations).read(package.pieces(slide))
    for each in relations.values():
        if each.kind in ("diagramData", "notesSlide") and each.target in package:
            _Slide(text, package.relations(each.target)).read(package.pieces(each.target))


class _SlideOrder(XmlReader):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sldId":
            ids = [value for key, value in attributes.items() if key.endswith(" id")]  # another `id` has no prefix
            self.ids += ids[:1]
            if len(self.ids) > MAX_SLIDES:
                raise Unreadable(Reason.UNPACKED_BYTES, f"more than {MAX_SLIDES:,} slides")


MAX_SLIDES = 10_000


class _Slide(WordPart):
    """The paragraphs of a slide. The shapes that every slide has are left out: their text is read at the end of each,
    when it is known what they are."""

    def __init__(self, text: DocumentText, relations: dict[str, Relation]) -> None:
        super().__init__(text, relations)
        self._shape_is_frame = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sp":
            self._shape_is_frame = False
        elif name == "ph" and attribute(attributes, "type") in _PLACEHOLDERS:
            self._shape_is_frame = True
        if name == "txBody" and self._shape_is_frame:
            self._skipping += 1
            return
        super().start(name, attributes)
