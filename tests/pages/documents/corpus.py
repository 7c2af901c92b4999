"""Forty documents of each kind, made by LibreOffice from content of many sorts, with the text that it reads in them.

    python -m tests.pages.documents.corpus

makes them anew, in two minutes, and packs them into tests/data/documents.tar.xz; LibreOffice and poppler-utils are
needed for that only. The sources are flat OpenDocument files that are written here, each with another seed: headings,
lists, tables, footnotes, columns, right-to-left and East Asian scripts. The zipped ones are packed without compression
of their own, which makes the archive a tenth of its size. Of the PDFs, whose fonts take most of the room, ten are
kept; forty others are made by a browser when they are tested.
"""

from __future__ import annotations

import io
import random
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

COUNT = 40
KEPT_PDFS = 10
ARCHIVE = Path(__file__).parents[2] / "data" / "documents.tar.xz"
_CSV = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,true,false,false,-1"  # all sheets, as they are shown
_TEXT = "txt:Text (encoded):UTF8"
SENTENCES = {
    "en": "The ferry leaves the old pier at noon. Nobody waits in the rain. The council has closed the bridge again. "
    "Prices rose by 3.5 percent last year. Please return the form before Friday.",
    "de": "Die Fähre verlässt den alten Hafen am Mittag. Niemand wartet im Regen. Die Brücke bleibt gesperrt. "
    "Größere Schäden wurden nicht gemeldet. Die Gebühren steigen im nächsten Jahr.",
    "fr": "Le bac quitte le vieux port à midi. Personne n’attend sous la pluie. Le pont reste fermé jusqu’en été. "
    "Les élèves reçoivent leurs résultats demain. L’œuvre est exposée au musée.",
    "tr": "Vapur öğle vakti eski iskeleden kalkıyor. Yağmurda kimse beklemiyor. Köprü yine kapatıldı. "
    "Fiyatlar geçen yıl yüzde beş arttı. Işıklar akşam sekizde söndü.",
    "ru": "Паром отходит от старого причала в полдень. Под дождём никто не ждёт. Мост снова закрыт. "
    "Цены выросли в прошлом году. Собрание состоится в пятницу вечером.",
    "el": "Το πλοίο φεύγει από το παλιό λιμάνι το μεσημέρι. Κανείς δεν περιμένει στη βροχή. Η γέφυρα έκλεισε ξανά. "
    "Οι τιμές αυξήθηκαν πέρυσι.",
    "ar": "تغادر العبارة الرصيف القديم عند الظهر. لا أحد ينتظر تحت المطر. الجسر مغلق مرة أخرى. "
    "ارتفعت الأسعار هذا العام.",
    "he": "המעבורת עוזבת את הרציף הישן בצהריים. איש אינו ממתין בגשם. הגשר נסגר שוב. המחירים עלו השנה.",
    "zh": "渡轮中午离开旧码头。没有人在雨中等待。桥又关闭了。去年价格上涨了百分之五。请在星期五之前交回表格。",
    "ja": "フェリーは正午に古い桟橋を出ます。雨の中で待つ人はいません。橋は再び閉鎖されました。料金は来年上がります。",
    "ko": "여객선은 정오에 낡은 부두를 떠납니다. 비를 맞으며 기다리는 사람은 없습니다. 다리는 다시 폐쇄되었습니다.",
    "hi": "नौका दोपहर को पुराने घाट से निकलती है। बारिश में कोई इंतज़ार नहीं करता। पुल फिर बंद है।",
}
_NAMES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in (
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("style", "style"),
        ("draw", "drawing"),
        ("meta", "meta"),
        ("number", "datastyle"),
        ("presentation", "presentation"),
        ("svg", "svg-compatible"),
        ("fo", "xsl-fo-compatible"),
    )
)
_MORE_NAMES = 'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
_STYLES = """<office:automatic-styles>
<style:style style:name="columns" style:family="section"><style:section-properties>
<style:columns fo:column-count="2" fo:column-gap="1cm"/></style:section-properties></style:style>
<style:style style:name="sheet" style:family="paragraph">
<style:paragraph-properties fo:break-before="page"/></style:style>
<style:style style:name="bold" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>
<style:style style:name="page" style:family="drawing-page"/>
<number:date-style style:name="day"><number:year number:style="long"/><number:text>-</number:text>
<number:month number:style="long"/><number:text>-</number:text><number:day number:style="long"/></number:date-style>
<number:percentage-style style:name="share"><number:number number:decimal-places="1" number:min-decimal-places="1"
number:min-integer-digits="1"/><number:text>%</number:text></number:percentage-style>
<number:number-style style:name="price"><number:number number:decimal-places="2" number:min-decimal-places="2"
number:min-integer-digits="1" number:grouping="true"/></number:number-style>
<style:style style:name="cday" style:family="table-cell" style:data-style-name="day"/>
<style:style style:name="cshare" style:family="table-cell" style:data-style-name="share"/>
<style:style style:name="cprice" style:family="table-cell" style:data-style-name="price"/>
</office:automatic-styles>"""


class Author:
    """Writes content of its own sort, the same for each seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        names = list(SENTENCES)
        self.language = names[seed % len(names)]
        self.title = f"Report {seed}: {self.sentence()}"

    def sentence(self) -> str:
        language = self.language if self._random.random() < 0.85 else "en"
        text = SENTENCES[language]
        parts = text.replace("。", "。|").replace(". ", ".|").replace("। ", "।|").split("|")
        return escape(self._random.choice([part.strip() for part in parts if part.strip()]))

    def number(self, most: int) -> int:
        return self._random.randint(1, most)

    def paragraph(self) -> str:
        inner = " ".join(self.sentence() for _ in range(self.number(5)))
        kind = self.number(6)
        if kind == 1:
            inner += f' <text:a xlink:href="https://example.org/{self.number(99)}">{self.sentence()}</text:a>'
        elif kind == 2:
            note = f"<text:note-citation>{self.number(9)}</text:note-citation><text:note-body><text:p>{self.sentence()}"
            inner += f'<text:note text:note-class="footnote">{note}</text:p></text:note-body></text:note>'
        elif kind == 3:
            inner += f'<text:tab/><text:span text:style-name="bold">{self.sentence()}</text:span><text:line-break/>end'
        return f"<text:p>{inner}</text:p>"

    def list(self) -> str:
        items = "".join(
            f"<text:list-item><text:p>{self.sentence()}</text:p></text:list-item>" for _ in range(self.number(5))
        )
        return f"<text:list>{items}</text:list>"

    def table(self, rows: int = 0) -> str:
        columns = 1 + self.number(3)
        row = "<table:table-row>{}</table:table-row>"
        cell = "<table:table-cell office:value-type='string'><text:p>{}</text:p></table:table-cell>"
        body = "".join(
            row.format("".join(cell.format(self.sentence()) for _ in range(columns)))
            for _ in range(rows or 1 + self.number(3))
        )
        name = f"Table{self.number(10_000)}"
        head = f'<table:table-column table:number-columns-repeated="{columns}"/>'
        return f'<table:table table:name="{name}">{head}{body}</table:table>'

    def flow(self, parts: int) -> str:
        written = []
        for _ in range(parts):
            kind = self.number(8)
            if kind == 1:
                written.append(f'<text:h text:outline-level="2">{self.sentence()}</text:h>')
            elif kind == 2:
                written.append(self.list())
            elif kind == 3:
                written.append(self.table())
            elif kind == 4:
                # Without footnotes: LibreOffice sometimes never ends to lay them out in columns.
                inner = "".join(f"<text:p>{self.sentence()} {self.sentence()}</text:p>" for _ in range(3))
                written.append(
                    f'<text:section text:style-name="columns" text:name="S{self.number(10**6)}">{inner}</text:section>'
                )
            elif kind == 5:
                written.append(f'<text:p text:style-name="sheet">{self.sentence()}</text:p>')
            else:
                written.append(self.paragraph())
        return "".join(written)

    def cell(self) -> str:
        kind = self.number(6)
        if kind == 1:
            day = f"20{self.number(25):02}-{self.number(12):02}-{self.number(28):02}"
            return f'<table:table-cell table:style-name="cday" office:value-type="date" office:date-value="{day}"/>'
        if kind == 2:
            share = self.number(999) / 1000
            return (
                f'<table:table-cell table:style-name="cshare" office:value-type="percentage" office:value="{share}"/>'
            )
        if kind == 3:
            price = self.number(10**7) / 100
            return f'<table:table-cell table:style-name="cprice" office:value-type="float" office:value="{price}"/>'
        if kind == 4:
            return f'<table:table-cell office:value-type="float" office:value="{self.number(10**6) / 8}"/>'
        return f'<table:table-cell office:value-type="string"><text:p>{self.sentence()}</text:p></table:table-cell>'

    def sheet(self, number: int) -> str:
        rows = "".join(
            f"<table:table-row>{''.join(self.cell() for _ in range(5))}</table:table-row>"
            for _ in range(10 + self.number(20))
        )
        return f'<table:table table:name="Sheet {number}">{rows}</table:table>'

    def slide(self, number: int) -> str:
        box = (
            '<draw:frame draw:layer="layout" svg:width="22cm" svg:height="{h}cm" svg:x="2cm" svg:y="{y}cm">'
            "<draw:text-box>{text}</draw:text-box></draw:frame>"
        )
        points = "".join(f"<text:p>{self.sentence()}</text:p>" for _ in range(self.number(4)))
        title, body = f"<text:p>{number}. {self.sentence()}</text:p>", f"{points}{self.list()}"
        inner = box.format(h=2, y=1, text=title) + box.format(h=10, y=4, text=body)
        return f'<draw:page draw:name="page{number}" draw:style-name="page">{inner}</draw:page>'


def _flat(author: Author, kind: str, body: str) -> str:
    meta = f"<office:meta><dc:title>{author.title}</dc:title><meta:initial-creator>Ada Byron</meta:initial-creator>"
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {_NAMES} {_MORE_NAMES} office:version="1.2" '
        f'office:mimetype="application/vnd.oasis.opendocument.{kind}">{meta}</office:meta>{_STYLES}'
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document>"
    )


def _text(author: Author) -> str:
    head = f'<text:h text:outline-level="1">{author.title}</text:h>'
    return _flat(author, "text", head + author.flow(8 + author.number(20)))


def _sheets(author: Author) -> str:
    return _flat(author, "spreadsheet", "".join(author.sheet(n) for n in range(1, 2 + author.number(2))))


def _slides(author: Author) -> str:
    return _flat(author, "presentation", "".join(author.slide(n) for n in range(1, 3 + author.number(5))))


SOURCES: dict[str, Callable[[Author], str]] = {"fodt": _text, "fods": _sheets, "fodp": _slides}


def write_sources(folder: Path, kind: str, count: int = COUNT) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for seed in range(count):
        path = folder / f"{kind}-{seed:02}.{kind}"
        path.write_text(SOURCES[kind](Author(seed)), encoding="utf-8")
        made.append(path)
    return made


def converted(office: str, sources: Sequence[Path], form: str, folder: Path) -> list[Path]:
    """The files as LibreOffice converts them, in their order; `form` may name a filter after a colon."""
    profile = folder / "profile"
    command = [office, f"-env:UserInstallation={profile.as_uri()}", "--headless", "--convert-to", form]
    subprocess.run(
        [*command, "--outdir", str(folder), *map(str, sources)], check=True, capture_output=True, timeout=110
    )
    return [folder / f"{source.stem}.{form.partition(':')[0]}" for source in sources]


def text_of_pdf(pdftotext: str, path: Path) -> str:
    read = subprocess.run([pdftotext, "-enc", "UTF-8", str(path), "-"], check=True, capture_output=True, timeout=60)
    return read.stdout.decode()


def html_of(seed: int) -> str:
    """A document of the same sorts of content for a browser to print."""
    author = Author(seed)
    direction = "rtl" if author.language in ("ar", "he") else "ltr"
    parts = [f"<h1>{author.title}</h1>"]
    for _ in range(6 + author.number(12)):
        kind = author.number(6)
        if kind == 1:
            parts.append(f"<h2>{author.sentence()}</h2>")
        elif kind == 2:
            parts.append(f"<ul>{''.join(f'<li>{author.sentence()}' for _ in range(author.number(5)))}</ul>")
        elif kind == 3:
            rows = "".join(f"<tr><td>{author.sentence()}<td>{author.number(10**6):,}" for _ in range(author.number(6)))
            parts.append(f"<table border=1>{rows}</table>")
        elif kind == 4:
            parts.append(f"<div style='columns: 2'><p>{'<p>'.join(author.sentence() for _ in range(6))}</div>")
        elif kind == 5:
            parts.append(f"<p style='break-before: page'>{author.sentence()}")
        else:
            parts.append(f"<p>{author.sentence()} <a href=https://example.org/{seed}>{author.sentence()}</a>")
    return f"<html lang={author.language} dir={direction}><title>{author.title}</title><body>{''.join(parts)}"


def _stored(path: Path) -> bytes:
    """A zipped file without compression."""
    packed = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as new:
        for part in old.infolist():
            if "Thumbnail" not in part.filename:
                new.writestr(zipfile.ZipInfo(part.filename), old.read(part))
    return packed.getvalue()


def make(folder: Path, office: str = "soffice", pdftotext: str = "pdftotext") -> dict[str, bytes]:
    """All files of the archive, by name."""
    sources = {kind: write_sources(folder / kind, kind) for kind in SOURCES}
    made: dict[str, bytes] = {}

    def folder_of(name: str) -> Path:
        place = folder / name
        place.mkdir()
        return place

    def keep(paths: Sequence[Path], texts: Sequence[str]) -> None:
        for number, (path, text) in enumerate(zip(paths, texts, strict=True)):
            name = f"{path.suffix[1:]}/{number:02}"
            made[f"{name}{path.suffix}"] = path.read_bytes() if path.suffix == ".pdf" else _stored(path)
            made[f"{name}.txt"] = text.encode()

    for form in ("docx", "odt"):
        files = converted(office, sources["fodt"], form, folder_of(form))
        keep(files, [each.read_text("utf-8") for each in converted(office, files, _TEXT, folder_of(f"{form}-text"))])
    texts = [each.read_text("utf-8") for each in converted(office, sources["fodt"], _TEXT, folder_of("text"))]
    keep(converted(office, sources["fodt"], "epub", folder_of("epub")), texts)
    pdfs = converted(office, sources["fodt"][:KEPT_PDFS], "pdf", folder_of("pdf"))
    keep(pdfs, [text_of_pdf(pdftotext, each) for each in pdfs])
    for form in ("xlsx", "ods"):
        files = converted(office, sources["fods"], form, folder_of(form))
        tables = folder_of(f"{form}-tables")
        converted(office, files, _CSV, tables)
        keep(files, ["\n".join(t.read_text("utf-8") for t in sorted(tables.glob(f"{f.stem}-*.csv"))) for f in files])
    files = converted(office, sources["fodp"], "pptx", folder_of("pptx"))
    printed = converted(office, files, "pdf", folder_of("pptx-printed"))
    keep(files, [text_of_pdf(pdftotext, each) for each in printed])
    return made


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for name, body in make(Path(folder)).items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))


if __name__ == "__main__":
    main()
