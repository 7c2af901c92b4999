"""Learns the weights of `levada.pages.language_model` from free texts.

    python benchmarks/language_model.py --sentences cv/server/data --declarations udhr2 --words langdata

`--sentences` is `server/data` of a clone of github.com/common-voice/common-voice (CC0), `--declarations` the unpacked
`udhr2` of github.com/nltk/nltk_data (the Universal Declaration of Human Rights, public domain), and `--words` a folder
with the files `*.training_text` and `*.word.bigrams` of github.com/tesseract-ocr/langdata (Apache 2.0), which fill up
languages with few sentences. What is in no language is learnt from code (the Python standard library, C headers),
numbers and chance, and from declarations in languages that are not told apart. It prints the share of right answers on
a tenth of the text that was kept back, and writes `src/levada/pages/data/languages.bin`. It needs scikit-learn:
`pip install 'levada[bench]'`. Judge the result on another corpus, with `levada lab reading --languages`.
"""

from __future__ import annotations

import argparse
import random
import re
import string
import sysconfig
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from levada.pages.language_model import (
    COMMON,
    LARGEST,
    MAGIC,
    RUN,
    STEPS,
    UNKNOWN,
    features_of,
    plain_words,
    script_of,
    slot_of,
)

# Language: folders of sentences, declarations, files of words.
LANGUAGES = {
    line.split()[0]: [part.split(",") if part != "-" else [] for part in line.split()[1:]]
    for line in """
    af af afr afr
    am am amh amh
    ar ar arb ara
    as as - asm
    az az azj_latn aze
    be be bel bel
    bg bg bul bul
    bn bn ben ben
    br br bre bre
    ca ca cat cat
    ckb ckb ckb -
    cs cs ces ces
    cy cy cym cym
    da da dan dan
    de de deu,deu_1901 deu
    dv dv div div
    el el ell_monotonic ell
    en en eng eng
    eo eo epo epo
    es es spa spa
    et et est est
    eu eu eus eus
    fa fa pes_1,pes_2 fas
    fi fi fin fin
    fr fr fra fra
    fy fy-NL fri fry
    ga ga-IE gle gle
    gd - gla gla
    gl gl glg glg
    gu - guj guj
    ha ha hau_NG -
    he he heb heb
    hi hi hin hin
    hr hr,bs hrv,bos_latn hrv,bos
    ht ht hat_popular hat
    hu hu hun hun
    hy - hye hye
    id id ind ind
    ig ig ibo -
    is is isl isl
    it it ita ita
    ja ja jpn jpn
    ka ka kat kat
    kk kk kaz kaz
    km km khm khm
    kn kn kan kan
    ko ko kor kor
    ku kmr - kmr
    ky ky kir kir
    la - lat lat
    lg lg lug -
    lo lo lao lao
    lt lt lit lit
    lv lv lav lav
    mg - plt mlg
    mi - mri mri
    mk mk mkd mkd
    ml ml mal mal
    mn mn khk mon
    mr mr mar mar
    mt mt mlt mlt
    my my mya mya
    ne ne-NP nep nep
    nl nl nld nld
    no nb-NO,nn-NO nob,nno nor
    oc oc lnc oci
    or or - ori
    pa pa-IN pan pan
    pl pl pol pol
    ps ps pbu pus
    pt pt por_BR,por_PT por
    rm rm-sursilv,rm-vallader roh -
    ro ro ron,ron_1993 ron
    ru ru rus rus
    rw rw kin -
    si si - sin
    sk sk slk slk
    sl sl slv slv
    sn - sna -
    so so som som
    sq sq als sqi
    sr sr srp_cyrl srp
    st st,nso sot -
    sv sv-SE swe swe
    sw sw swh swa
    ta ta tam tam
    te te - tel
    tg tg tgk tgk
    th th tha tha
    ti ti tir tir
    tk tk tuk_latn -
    tl tl tgl tgl
    tn tn tsn -
    tr tr tur tur
    ts ts tso_MZ -
    tt tt tat tat
    ug ug uig_arab uig
    uk uk ukr ukr
    ur ur urd urd
    uz - uzn_latn uzb
    vi vi vie vie
    xh xh xho -
    yi yi ydd yid
    yo yo yor yor
    zh zh-CN,zh-TW,zh-HK cmn_hans,cmn_hant chi_sim,chi_tra
    zu zu zul -
    """.strip().splitlines()
}
LETTERS = 400_000  # of a language's text at most
FEW = 120_000  # letters: a language with fewer sentences is filled up by the words of another source
SEGMENTS = 3_000  # that a language is learnt from; three times as many of a common one
UNMARKED = 0.08  # share of the texts that are written without accents
SLOTS = 1 << 15
CANDIDATES = 80_000
LEAST_WORD = 4  # letters; shorter words are runs
EPOCHS = 5
_CAPTION = re.compile(r"^\s*<[^>]*>|\?{2,}")


def lines_of(paths: Iterable[Path]) -> list[str]:
    lines = [line.strip() for path in paths for line in path.read_text("utf-8", "replace").splitlines()]
    return [line for line in lines if len(line) > 2 and not _CAPTION.search(line)]


def sentences_in(folder: Path) -> list[str]:
    return lines_of(sorted(path for path in folder.glob("*.txt") if "singleword" not in path.name))


def gathered(names: list[list[str]], given: argparse.Namespace, chance: random.Random) -> list[str]:
    sources, declarations, words = names
    kept = list[str]()
    for name in sources:
        lines = sentences_in(given.sentences / name)
        chance.shuffle(lines)
        kept += within(lines, LETTERS // len(sources))
    for name in declarations:
        path = given.declarations / f"{name}.txt"
        lines = lines_of([path])[6:] if path.is_file() else []
        kept += 2 * lines
    if sum(map(len, kept)) < FEW:
        for name in words:
            kept += within(lines_of(p for p in [given.words / f"{name}.training_text"] if p.is_file()), FEW)
    if sum(map(len, kept)) < FEW:
        for name in words:
            pairs = lines_of(p for p in [given.words / f"{name}.word.bigrams"] if p.is_file())[:40_000]
            chance.shuffle(pairs)
            kept += within([" ".join(pairs[at : at + 5]) for at in range(0, len(pairs) - 5, 5)], FEW)
    return kept


def within(lines: list[str], letters: int) -> list[str]:
    kept = list[str]()
    for line in lines:
        letters -= len(line)
        if letters < 0:
            break
        kept.append(line)
    return kept


def in_no_language(given: argparse.Namespace, chance: random.Random) -> list[str]:
    library = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::4]
    code = [re.sub(r"#.*", "", line) for line in lines_of(library)]
    code = [
        line for line in code if re.search(r"[=(){}\[\]:_]", line) and not re.search(r"[A-Za-z]+ [a-z]+ [a-z]+ ", line)
    ]
    headers = [line for line in lines_of(sorted(Path("/usr/include").glob("*.h"))) if line[0] in "#{}etsuv"]
    chance.shuffle(code)
    chance.shuffle(headers)
    pieces = [" ".join(code[at : at + 4]) for at in range(0, 12_000, 4)]
    pieces += [" ".join(headers[at : at + 3]) for at in range(0, 3_000, 3)]
    for _ in range(2_500):
        letters = chance.choice((string.ascii_lowercase, string.ascii_letters + string.digits, "0123456789abcdef"))
        pieces.append(" ".join("".join(chance.choices(letters, k=chance.randint(2, 24))) for _ in range(8)))
    known = {name for _, names, _ in LANGUAGES.values() for name in names}
    alike = (
        "srp_latn",
        "bos_cyrl",
        "tgl_tglg",
        "ell_polytonic",
        "ron_1953",
        "cmn",
        "ast",
        "sco",
        "nds",
        "pcm",
        "nya_chechewa",
    )
    for path in sorted(given.declarations.glob("*.txt")):
        if path.stem not in known and not path.stem.startswith(alike) and not path.stem[0].isdigit():
            lines = lines_of([path])[6:]
            chance.shuffle(lines)
            pieces += lines[:14]
    return pieces


def segments_of(lines: list[str], chance: random.Random, count: int) -> Iterator[str]:
    """Texts as they are met on pages: between a few words and several sentences."""
    for _ in range(count):
        at = chance.randrange(len(lines))
        text = " ".join(lines[at : at + 6])
        if chance.random() < UNMARKED:
            text = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", text)).replace("ı", "i").replace("ł", "l")
        size = int(20 * 2 ** chance.uniform(0, 3.6))
        start = chance.randrange(max(1, min(len(text) - size, 40))) if chance.random() < 0.3 else 0
        yield plain_words(text[start : start + size].encode())


def worth(counts: dict[str, Counter[str]]) -> list[str]:
    """The features that tell most about the language, best first."""
    shares: dict[str, dict[str, float]] = {}
    for language, counted in counts.items():
        whole = counted.total()
        for feature, count in counted.items():
            if count >= 3 and (len(feature) == RUN or len(feature) >= LEAST_WORD):
                shares.setdefault(feature, {})[language] = count / whole
    gains = Counter[str]()
    for feature, by_language in shares.items():
        mean = sum(by_language.values()) / len(counts)
        gains[feature] = sum(share * np.log(share / mean) for share in by_language.values())
    return [feature for feature, _ in gains.most_common(CANDIDATES)]


def places(features: list[str]) -> dict[str, int]:
    """A slot for each feature that finds its own free: of two that collide, the better one stays."""
    taken: dict[int, str] = {}
    for feature in features:
        taken.setdefault(slot_of(feature, SLOTS)[0], feature)
    return {feature: at for at, feature in enumerate(taken.values())}


def matrix(samples: list[str], index: dict[str, int]) -> csr_matrix:
    rows, columns = list[int](), list[int]()
    for row, sample in enumerate(samples):
        for feature in features_of(sample):
            at = index.get(feature)
            if at is None and len(feature) == RUN:
                at = index.get(script_of(feature))
            if at is not None:
                rows.append(row)
                columns.append(at)
    return csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), (len(samples), len(index)))


def learn(texts: csr_matrix, answers: np.ndarray, languages: int, decay: float) -> np.ndarray:
    """Softmax regression by Adam, in batches."""
    weights = np.zeros((texts.shape[1], languages), np.float32)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    generator = np.random.default_rng(7)
    step = 0
    for epoch in range(EPOCHS):
        order = generator.permutation(texts.shape[0])
        loss = 0.0
        for begin in range(0, len(order), 4096):
            batch = order[begin : begin + 4096]
            rows = texts[batch]
            odds = rows @ weights
            odds -= odds.max(axis=1, keepdims=True)
            chances = np.exp(odds)
            chances /= chances.sum(axis=1, keepdims=True)
            loss -= float(np.log(chances[np.arange(len(batch)), answers[batch]] + 1e-9).sum())
            chances[np.arange(len(batch)), answers[batch]] -= 1
            slope = np.asarray(rows.T @ chances) / len(batch) + decay * weights
            step += 1
            first += 0.1 * (slope - first)
            second += 0.001 * (slope * slope - second)
            rate = 0.05 * (1 - epoch / EPOCHS) * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            weights -= rate * first / (np.sqrt(second) + 1e-8)
        print(f"epoch {epoch}: loss {loss / len(order):.4f}", flush=True)
    return weights


def quantized(weights: np.ndarray) -> np.ndarray:
    """In steps from the least weight of each row: what is added to all languages tells none."""
    return np.clip(np.rint((weights - weights.min(axis=1, keepdims=True)) * STEPS), 0, LARGEST).astype(np.uint8)


def write(path: Path, index: dict[str, int], rows: np.ndarray, languages: list[str]) -> None:
    table = np.zeros((SLOTS, 1 + len(languages)), np.uint8)
    for feature, at in index.items():
        slot, mark = slot_of(feature, SLOTS)
        table[slot, 0] = mark
        table[slot, 1:] = rows[at]
    path.write_bytes(MAGIC + ",".join(languages).encode() + b"\n" + table.tobytes())


def main() -> None:
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--sentences", type=Path, required=True, metavar="DIR")
    command.add_argument("--declarations", type=Path, required=True, metavar="DIR")
    command.add_argument("--words", type=Path, required=True, metavar="DIR")
    command.add_argument("--decay", type=float, default=1e-6)
    command.add_argument("--out", type=Path, default=Path("src/levada/pages/data/languages.bin"), metavar="FILE")
    given = command.parse_args()
    chance = random.Random(7)
    texts = {UNKNOWN: in_no_language(given, chance)}
    texts |= {language: gathered(names, given, chance) for language, names in LANGUAGES.items()}
    for language, lines in texts.items():
        print(f"{language or 'none'}:{sum(map(len, lines)) // 1000}k", end=" ")
    print()
    languages = list(texts)
    samples, checks = list[str](), list[str]()
    answers, expected = list[int](), list[int]()
    counts: dict[str, Counter[str]] = {}
    for at, (language, lines) in enumerate(texts.items()):
        edge = max(1, len(lines) * 9 // 10)
        counts[language] = Counter(f for line in lines[:edge] for f in features_of(plain_words(line.encode()[:480])))
        learnt = list(
            segments_of(lines[:edge], chance, SEGMENTS * (4 if language == UNKNOWN else 3 if language in COMMON else 1))
        )
        checked = list(segments_of(lines[edge:] or lines, chance, 150))
        samples += learnt
        checks += checked
        answers += [at] * len(learnt)
        expected += [at] * len(checked)
    print(len(samples), "texts", flush=True)
    counts.pop(UNKNOWN)
    blocks = {script_of(sample[at : at + RUN]) for sample in samples for at in range(0, len(sample) - RUN, 5)}
    index = places([*sorted(blocks), *worth(counts)])
    print(len(index), "features, of them", sum(len(f) != RUN for f in index), "words and scripts", flush=True)
    weights = learn(matrix(samples, index), np.array(answers), len(languages), given.decay)
    rows = quantized(weights)
    wanted = np.array(expected)
    held_back = matrix(checks, index)
    for name, kind in (("exact", weights), ("in steps", rows.astype(np.float32))):
        print(f"{name}: {100 * float(((held_back @ kind).argmax(axis=1) == wanted).mean()):.2f}% of texts kept back")
    write(given.out, index, rows, languages)


if __name__ == "__main__":
    main()
