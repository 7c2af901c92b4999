from __future__ import annotations

import pytest

from levada.cli.terminal import progress_bar


def test_piped_a_line_is_printed_at_each_tenth_however_many_are_done_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress_bar() as progress:
        assert progress is not None
        for done in range(0, 1_001, 37):
            progress(done, 1_000, "moving")
        progress(1_000, 1_000, "moving")
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 10
    assert told.err.splitlines()[-1] == "1,000 of 1,000 done: moving"


def test_a_run_that_begins_anew_is_told_of_anew(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as progress:
        assert progress is not None
        for done in (1, 2, 1, 2):
            progress(done, 2, "a run")
    assert len(capsys.readouterr().err.splitlines()) == 4


def test_nothing_to_do_is_no_trouble(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as progress:
        assert progress is not None
        progress(0, 0, "nothing")
    assert capsys.readouterr().err == ""
