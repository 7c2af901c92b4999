"""The contract of stored subscriptions and their outbox."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from levada.core.errors import UsageError
from levada.core.protocols import Subscriptions
from levada.core.records import ChangeEvent, ChangeFacts, ChangeKind, ChangeSelection
from levada.core.subscriptions import DescribedChange, Message, Subscription, TakenChanges, Waiting
from levada.store.subscriptions import MemorySubscriptions, SqliteSubscriptions

ONE = Subscription("a", "https://one.example/told", "secret", ChangeSelection("b.example", "words", 0.5), (3, 4))
TWO = Subscription("b", "https://two.example/", "other")


@pytest.fixture(params=["memory", "sqlite"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subscriptions]:
    made: Subscriptions = (
        MemorySubscriptions() if request.param == "memory" else SqliteSubscriptions(tmp_path / "hooks.db")
    )
    yield made
    made.close()


def change(number: int) -> DescribedChange:
    event = ChangeEvent(number, 1.0, ChangeKind.CHANGED, number, f"http://a.test/{number}", "a.test", 2, 0.5)
    facts = ChangeFacts(f"0-{number}", "", "changed", event.url, event.site, "Title", 2, 0.5, diff="+came")
    return DescribedChange(event, facts)


def message(changes: Sequence[DescribedChange]) -> Message:
    ids = ",".join(each.facts.id for each in changes)
    return Message(ids, "a", 7.0, "title", "text", "<p>", tuple(changes))


def test_what_is_added_is_there_as_it_was(book: Subscriptions) -> None:
    assert book.subscriptions() == []
    book.add(TWO)
    book.add(ONE)
    assert book.subscriptions() == [ONE, TWO]
    assert book.get("b") == TWO
    assert book.get("c") is None


def test_a_name_is_given_once(book: Subscriptions) -> None:
    book.add(ONE)
    with pytest.raises(UsageError, match='a notification "a" already'):
        book.add(replace(TWO, id="a"))
    assert book.subscriptions() == [ONE]


def test_an_edit_replaces_and_what_was_removed_stays_removed(book: Subscriptions) -> None:
    book.add(ONE)
    further = replace(ONE, after=(9, 9), told=7)
    assert book.edit("a", lambda known: replace(known, after=(9, 9), told=7)) == further
    assert book.subscriptions() == [further]
    assert book.remove("a")
    assert not book.remove("a")
    assert book.edit("a", lambda known: known) is None
    assert book.subscriptions() == []


def test_changes_wait_and_the_position_moves_with_them(book: Subscriptions) -> None:
    book.add(ONE)
    assert book.waiting("a") is None
    assert book.take("a", TakenChanges((3, 4), (5, 4), [change(4), change(5)], 10.0))
    assert book.take("a", TakenChanges((5, 4), (6, 4), [change(6)], 20.0, 2))
    assert book.waiting("a") == Waiting(3, 10.0)
    known = book.get("a")
    assert known is not None
    assert (known.after, known.lost) == ((6, 4), 2)


def test_a_position_that_another_has_moved_takes_nothing(book: Subscriptions) -> None:
    book.add(ONE)
    assert not book.take("a", TakenChanges((1, 1), (5, 4), [change(4)], 10.0))
    assert not book.take("nobody", TakenChanges((), (5, 4), [change(4)], 10.0))
    assert book.waiting("a") is None
    assert book.subscriptions() == [ONE]


def test_a_message_ends_the_wait_of_its_changes_and_stays_until_it_is_sent(book: Subscriptions) -> None:
    book.add(ONE)
    book.take("a", TakenChanges((3, 4), (6, 4), [change(4), change(5), change(6)], 10.0))
    assert book.compose("a", 2, message)
    assert book.waiting("a") == Waiting(1, 10.0)
    assert book.unsent("a") == 2
    assert book.compose("a", 2, message)
    assert not book.compose("a", 2, message)
    first = book.next_message("a")
    assert first == message([change(4), change(5)])
    book.failed(first, "down", retry_at=30.0)
    again = book.next_message("a")
    assert again == replace(first, attempts=1)
    book.sent(again, at=40.0)
    book.sent(again, at=41.0)  # a repetition changes nothing
    last = book.next_message("a")
    assert last == message([change(6)])
    book.sent(last, at=42.0)
    assert book.next_message("a") is None
    known = book.get("a")
    assert known is not None
    assert (known.told, known.failures, known.trouble, known.retry_at) == (3, 0, "", 0.0)
    assert [(each.message, each.sent, each.attempts, each.trouble) for each in book.log(10)] == [
        ("0-6", 42.0, 0, ""),
        ("0-4,0-5", 40.0, 1, "down"),
    ]
    assert book.log(10, "b") == []
    assert len(book.log(1, "a")) == 1


def test_a_failure_is_counted_and_says_when_to_try_again(book: Subscriptions) -> None:
    book.add(ONE)
    book.take("a", TakenChanges((3, 4), (4, 4), [change(4)], 10.0))
    book.compose("a", 1, message)
    due = book.next_message("a")
    assert due is not None
    book.failed(due, "down", retry_at=30.0)
    book.failed(due, "still down", retry_at=60.0)
    known = book.get("a")
    assert known is not None
    assert (known.failures, known.trouble, known.retry_at) == (2, "still down", 60.0)


def test_skipping_forgets_what_waits_and_what_is_due(book: Subscriptions) -> None:
    book.add(ONE)
    book.take("a", TakenChanges((3, 4), (6, 4), [change(4), change(5), change(6)], 10.0))
    book.compose("a", 2, message)
    assert book.skip("a", (9, 9)) == 3
    assert (book.waiting("a"), book.next_message("a"), book.unsent("a")) == (None, None, 0)
    known = book.get("a")
    assert known is not None
    assert known.after == (9, 9)


def test_a_removed_subscription_takes_its_messages_with_it(book: Subscriptions) -> None:
    book.add(ONE)
    book.take("a", TakenChanges((3, 4), (5, 4), [change(4), change(5)], 10.0))
    book.compose("a", 1, message)
    book.remove("a")
    assert (book.waiting("a"), book.next_message("a"), book.log(10)) == (None, None, [])


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "hooks.db"
    path.touch(0o644)
    book = SqliteSubscriptions(path)
    book.add(ONE)
    modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}
    book.close()
