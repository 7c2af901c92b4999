"""What does somebody hear whose start addresses led nowhere?"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.adapters.sqlite import SqliteStore
from levada.assemble.folder import DataFolder
from levada.cli.start_trouble import tell_trouble
from levada.errors import LevadaError
from levada.flow.settings import Settings
from levada.reasons import Reason
from levada.records import Found, How, Outcome, PageState
from tests.cli.collection import NOW, settle

START = Found("https://example.org/a?b=c&d=e", "example.org", how=How.SEED, admit=True)


@pytest.mark.parametrize(
    ("state", "reason", "told"),
    [
        (PageState.FAILED, Reason.SECONDS, r"nothing is stored of \S+ \(seconds\): "),
        (PageState.ELSEWHERE, Reason.REDIRECTED, "the start addresses lead on, but nothing could be stored: "),
    ],
)
def test_a_command_that_says_more_names_the_address_and_the_folder(
    tmp_path: Path, state: PageState, reason: Reason, told: str
) -> None:
    folder = DataFolder(tmp_path / "my data")
    folder.make()
    folder.save_settings(Settings())
    store = SqliteStore(folder.database)
    try:
        store.add([START], [], NOW)
        settle(store, START.url, NOW, Outcome.FIRST, state=state, reason=reason)
    finally:
        store.close()
    typed = rf"levada why '{START.url.replace('?', '[?]')}' --data '{folder.path}' says more$"
    with pytest.raises(LevadaError, match=told + typed):
        tell_trouble(folder, [START])
