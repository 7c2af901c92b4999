"""Contract suites of the notifier and the page hook, which follow stored pages."""

from __future__ import annotations

from collections.abc import Sequence

from levada.core.plugins import call
from levada.core.protocols import Notifier, PageHook
from levada.core.records import ChangeEvent, ChangeKind, Outcome, StoredPage


def some_changes(count: int = 3, first: int = 1) -> list[ChangeEvent]:
    """Changes of different pages, in the order of the change log."""
    kinds = list(ChangeKind)
    return [
        ChangeEvent(
            seq=number,
            page_id=number,
            url=f"http://a.test/{number}",
            site="a.test",
            what=kinds[number % len(kinds)],
            version=1,
            similarity=0.5,
            at=1_700_000_000.0 + number,
            title=f"Page {number} \N{SNOWMAN} <b>\"'",
        )
        for number in range(first, first + count)
    ]


def some_page(number: int) -> StoredPage:
    """A page that was just stored, another one for each number."""
    return StoredPage(
        url=f"http://a.test/{number}",
        site="a.test",
        at=1_700_000_000.0 + number,
        outcome=Outcome.CHANGED if number % 2 else Outcome.FIRST,
        version=1 + number % 2,
        title=f"Page {number} \N{SNOWMAN} <b>\"'",
        language="en",
        text=f"The ferry number {number} leaves at noon.",
    )


class NotifierContract:
    """A notifier sends each batch of changes, of any size, and raises an exception if it cannot.

    ```python
    class TestMyNotifier(NotifierContract):
        def make(self) -> Notifier:
            self.outbox = []
            return MyNotifier(self.outbox.append)

        def sent(self) -> list[str]:
            return [url for message in self.outbox for url in message.urls]
    ```
    """

    def make(self) -> Notifier:
        raise NotImplementedError

    def sent(self) -> list[str]:
        """The URLs of the pages that the latest notifier has sent, in order."""
        raise NotImplementedError

    def notified(self, *batches: Sequence[ChangeEvent]) -> list[str]:
        notifier = self.make()
        for batch in batches:
            call(notifier.notify, batch)
        return self.sent()

    def test_every_change_is_sent_once_and_in_order(self) -> None:
        changes = some_changes(5)
        assert self.notified(changes[:2], changes[2:]) == [change.url for change in changes]

    def test_no_change_is_no_message(self) -> None:
        assert self.notified([]) == []

    def test_many_changes_are_sent_too(self) -> None:
        changes = some_changes(500)
        assert self.notified(changes) == [change.url for change in changes]

    def test_every_kind_of_change_can_be_sent(self) -> None:
        changes = some_changes(2 * len(ChangeKind))
        assert self.notified(*([change] for change in changes)) == [change.url for change in changes]

    def test_the_changes_are_not_modified(self) -> None:
        changes = some_changes()
        self.notified(changes)
        assert changes == some_changes()


class PageHookContract:
    """A hook is called once for each stored page, after its commit, and does not modify the page.

    ```python
    class TestMyHook(PageHookContract):
        def make(self) -> PageHook:
            self.seen = []
            return MyHook(self.seen.append)

        def effects(self) -> int:
            return len(self.seen)
    ```
    """

    def make(self) -> PageHook:
        raise NotImplementedError

    def effects(self) -> int:
        """How many pages the latest hook has processed."""
        raise NotImplementedError

    def test_it_works_for_each_page(self) -> None:
        hook = self.make()
        for number in range(20):
            call(hook.after_page, some_page(number))
        assert self.effects() == 20

    def test_a_page_may_come_twice(self) -> None:
        hook = self.make()
        for _ in range(2):
            hook.after_page(some_page(1))
        assert self.effects() in (1, 2)

    def test_the_page_is_not_modified(self) -> None:
        page = some_page(1)
        self.make().after_page(page)
        assert page == some_page(1)

    def test_two_hooks_share_no_state(self) -> None:
        self.make().after_page(some_page(1))
        self.make()
        assert self.effects() == 0
