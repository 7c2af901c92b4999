"""Records over Flink's subtasks: what travels with the job, and that each sender decides alone."""

from __future__ import annotations

import copy
import os
import pickle
import random
import subprocess
import sys
from collections import Counter
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import pstdev

import pytest

from levada.engines.flink import FlinkGrouping
from levada.grouping import KeyGrouping, LevelledGrouping, PartialKeyGrouping
from levada.grouping.levels import Tuning

EXAMPLES = Path(__file__).parents[2] / "examples" / "grouping"
SECRET = b"known to all senders"


def skewed(records: int) -> list[str]:
    chance = random.Random(1)
    return ["hot" if chance.random() < 0.5 else f"key {chance.randrange(200)}" for _ in range(records)]


def test_it_names_the_partition_that_the_grouping_alone_would() -> None:
    keys = skewed(2_000)
    for sender, grouping in (
        (FlinkGrouping(SECRET), LevelledGrouping(6, SECRET)),
        (FlinkGrouping(make=KeyGrouping), KeyGrouping(6)),
        (FlinkGrouping(make=PartialKeyGrouping), PartialKeyGrouping(6)),
    ):
        assert [sender(key, 6) for key in keys] == [grouping.choose(key, 0.0) for key in keys]


def test_each_subtask_gets_a_sender_that_has_seen_nothing() -> None:
    keys = skewed(3_000)
    original = FlinkGrouping(SECRET)
    first = [original(key, 4) for key in keys]
    copies = [pickle.loads(pickle.dumps(original)), copy.deepcopy(original)]
    for subtask in copies:
        assert [subtask(key, 4) for key in keys] == first


def test_what_travels_with_the_job_stays_small() -> None:
    sender = FlinkGrouping(SECRET)
    fresh = len(pickle.dumps(sender))
    for key in skewed(3_000):
        sender(key, 4)
    assert len(pickle.dumps(sender)) == fresh < 200


def test_a_method_with_settings_of_its_own_travels_too() -> None:
    make = partial(LevelledGrouping, secret=SECRET, tuning=Tuning(window=50.0))
    travelled = pickle.loads(pickle.dumps(FlinkGrouping(make=make)))
    alone = make(4)
    assert [travelled(key, 4) for key in skewed(500)] == [alone.choose(key) for key in skewed(500)]


def test_a_job_that_is_scaled_gets_a_sender_for_the_new_number() -> None:
    sender = FlinkGrouping(SECRET)
    assert max(sender(key, 2) for key in skewed(100)) == 1
    assert max(sender(key, 8) for key in skewed(100)) > 1
    assert {sender(key, 1) for key in skewed(100)} == {0}


def test_records_without_a_key_go_to_each_partition_in_turn() -> None:
    sender = FlinkGrouping(SECRET)
    assert [sender(None, 3) for _ in range(5)] == [0, 1, 2, 0, 1]


def test_bad_input_is_refused_where_the_job_is_written() -> None:
    with pytest.raises(ValueError, match="secret"):
        FlinkGrouping()
    with pytest.raises(TypeError, match="bytes, str or int"):
        FlinkGrouping(SECRET)((1, 2), 4)  # type: ignore[arg-type]


def test_the_recorded_example_is_what_four_senders_decide_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from skewed import SECRET as shared  # type: ignore[import-not-found]
    from skewed import skewed_keys

    keys = skewed_keys(20_000)
    senders = [FlinkGrouping(shared) for _ in range(4)]
    pairs = [(key, senders[place % 4](key, 4)) for place, key in enumerate(keys)]
    counts = Counter(worker for _, worker in pairs)
    shares = [100.0 * counts[worker] / len(keys) for worker in range(4)]
    recorded = (EXAMPLES / "flink.txt").read_text(encoding="utf-8").splitlines()[-1].split()
    assert recorded[1:5] == [f"{share:.1f}" for share in shares]
    assert recorded[5:] == [f"{pstdev(shares):.2f}", f"{len(set(pairs)) / len(set(keys)):.3f}"]


@pytest.mark.skipif(find_spec("pyflink") is None, reason="needs Flink, which has a run of its own: make test-flink")
@pytest.mark.timeout(300)
def test_the_example_prints_what_was_recorded_on_a_real_mini_cluster() -> None:
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, EXAMPLES / "flink.py"], capture_output=True, text=True, check=True, env=quiet
    )
    assert done.stdout == (EXAMPLES / "flink.txt").read_text(encoding="utf-8")
