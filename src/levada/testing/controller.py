"""Contract suite of the stage controller: how many workers a stage gets, from samples of its queue."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.stages import Controller, SizingRule, StageSample
from levada.testing.common import properties

_property = properties()
_steps = st.lists(
    st.tuples(
        st.floats(0.01, 30.0),
        st.integers(0, 10_000),
        st.integers(0, 60),
        st.integers(0, 500),
        st.integers(0, 500),
    ),
    max_size=40,
)


class ControllerContract:
    """The number of workers stays within its limits, and samples that make no sense change nothing.

    ```python
    class TestMyController(ControllerContract):
        def make(self, least: int, most: int) -> SizingRule:
            return my_rule(least=least, most=most)
    ```
    """

    def make(self, least: int, most: int) -> SizingRule:
        raise NotImplementedError

    @staticmethod
    def targets(rule: SizingRule, steps: list[tuple[float, int, int, int, int]]) -> list[int]:
        """The workers wanted after each step: seconds, jobs waiting, busy workers, jobs arrived, jobs done."""
        controller, found = Controller(rule), []
        at, arrived, done = 0.0, 0, 0
        for seconds, queue, busy, came, went in steps:
            at, arrived, done = at + seconds, arrived + came, done + went
            sample = StageSample(at=at, queue=queue, on=10, busy=busy, arrived=arrived, done=done)
            found.append(controller.workers_wanted(sample))
        return found

    @_property
    @given(_steps)
    def test_the_workers_wanted_are_within_the_limits(self, steps: list[tuple[float, int, int, int, int]]) -> None:
        assert all(2 <= wanted <= 50 for wanted in self.targets(self.make(2, 50), steps))

    @_property
    @given(_steps)
    def test_the_same_samples_give_the_same_workers(self, steps: list[tuple[float, int, int, int, int]]) -> None:
        assert self.targets(self.make(1, 50), steps) == self.targets(self.make(1, 50), steps)

    @_property
    @given(st.lists(st.builds(StageSample, **dict.fromkeys(("at", "queue", "on", "busy", "done"), st.floats()))))
    def test_no_sample_can_break_it(self, samples: list[StageSample]) -> None:
        controller = Controller(self.make(1, 20))
        assert all(1 <= controller.workers_wanted(sample) <= 20 for sample in samples)

    @pytest.mark.parametrize(
        "nonsense",
        [
            {"queue": math.nan},
            {"queue": -1.0},
            {"busy": math.inf},
            {"at": math.nan},
            {"at": 0.5},
            {"at": 1e12},
            {"done": 0.0},
            {"capacity": 0.0},
        ],
        ids=str,
    )
    def test_nonsense_holds_the_last_safe_size(self, nonsense: dict[str, float]) -> None:
        controller = Controller(self.make(1, 100))
        good = [
            StageSample(at=at, queue=20.0, on=10.0, busy=10.0, arrived=100 + 10 * at, done=90 + 10 * at)
            for at in (1.0, 2.0, 3.0)
        ]
        wanted = [controller.workers_wanted(each) for each in good][-1]
        assert not controller.trouble
        assert controller.workers_wanted(msgspec.structs.replace(good[-1], **({"at": 4.0} | nonsense))) == wanted
        assert controller.trouble

    def test_a_rule_names_its_limits_and_every_decision_has_a_reason(self) -> None:
        rule = self.make(3, 7)
        assert rule.name
        assert (rule.least, rule.most) == (3, 7)
        controller = Controller(rule)
        assert controller.why
        for at in range(5):
            controller.workers_wanted(StageSample(at=float(at), queue=10.0, on=3.0, busy=3.0))
            assert controller.why
