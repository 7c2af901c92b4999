"""Machine of the simulator: its state in two arrays, and the compiled event loop that changes it.

The state is two arrays, one of floats and one of integers, so that a compiled loop can stop and go on; a compiled
function that takes many arrays, or tuples of them, spends its time on counting references. In every function `f`
and `n` are the machine's floats and integers. A worker is on or off, busy or idle, and perhaps starting; one that
is off and busy finishes its job.

A poll of an empty queue changes nothing, so polls are not events: while jobs are ready and workers idle, the next
pickup comes after an exponential time at the rate of all polls of idle workers together, which is the same. Nor is
the entry of a job into a queue, one after the other: its end is known from the start. The area under a curve grows
by what a change adds until the end of the run, and shrinks when the change is undone: one addition per change.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from levada.lab.stages.model import TIMES, Model, mean_time
from levada.stages.chain import cut_to_budget, must_hold
from levada.stages.rule import LEAST, RATE, SERVICE, SizingRule
from levada.stages.sample import BEFORE_ON, FIELDS, QUEUE

# The floats start with the time, the time of the next event of each kind, the state of the source, the run's end.
NOW, SOURCE_AT, LOAD_AT, CRASH_AT, SCANNERS, HELD_SECONDS, HELD = range(7)
INTERVAL, SLOW_FROM, SLOW_FACTOR, CRASHES, END, CLOCKS = range(7, 13)
# The integers start with the counts of the whole system, the state of the random numbers, sizes, the offsets of
# other blocks, and the stage that the source feeds.
T_HEAP, T_LOAD, T_GENERATED, T_COMPLETED, T_DECISIONS, T_SWITCHED, T_CRASHED, T_RANDOM = range(8)
N_STAGES, N_WORKERS, N_ROOM, N_FLOATS, N_INTEGERS, N_HEAP = range(8, 14)
N_EVENTS, N_LOAD, N_RECORDED, N_LATENCY, N_LATENCIES, N_FED, TOTALS = range(14, 21)
# Then each stage's block of `N_INTEGERS`: its queue as a ring (head, tail), workers, jobs; the queue's length is
# read and summed at each push and pop. Constants: the capacity, the kind of times, and where its recorded ones are.
C_HEAD, C_TAIL, C_ON, C_BUSY, C_BUSY_ON, C_STARTING, C_IDLE = range(7)
C_ARRIVED, C_TAKEN, C_DONE, C_DROPPED, C_MOST, C_READINGS, C_LENGTHS = range(7, 14)
C_CAPACITY, C_KIND, C_FIRST, C_END, COUNTS = range(14, 19)
# After these the same for each of `N_WORKERS`: events of an earlier turn are void; an idle worker's position is its
# index in the list of those that can take a job (spread over all workers), or -1.
S_ON, S_BUSY, S_STARTING, S_TURN, S_IDLE, S_POSITION, WORKER_SIZE = range(7)
# Each stage's block of `N_FLOATS`: constants, the next pickup, when the last job has entered, then areas under
# curves (jobs waiting, workers on, workers busy, workers off and still busy). Then, `N_ROOM` each, when the jobs of
# its ring were generated and have entered, and, for `N_WORKERS`, when the workers' jobs were generated.
R_SERVICE, R_SPREAD, R_ENTRY, R_POLL, R_STARTUP, R_PICKUP_AT, R_ENTERED_AT = range(7)
A_QUEUE, A_ON, A_BUSY, A_LEAVING, R_WAITED, R_LONGEST, RATES = range(7, 14)


Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


class Machine(NamedTuple):
    """The two arrays; the constants above say what is where."""

    floats: Floats
    integers: Integers

    @property
    def rates(self) -> Floats:
        """One row per stage."""
        stages, width = self.integers[N_STAGES], self.integers[N_FLOATS]
        return self.floats[CLOCKS : CLOCKS + stages * width].reshape(stages, width)[:, :RATES]

    @property
    def counts(self) -> Integers:
        """One row per stage."""
        stages, width = self.integers[N_STAGES], self.integers[N_INTEGERS]
        return self.integers[TOTALS : TOTALS + stages * width].reshape(stages, width)[:, :COUNTS]

    @property
    def latencies(self) -> Floats:
        """Room for the latency of each job."""
        first = self.integers[N_LATENCY]
        return self.floats[first : first + self.integers[N_LATENCIES]]


def build_machine(model: Model, rules: tuple[SizingRule, ...]) -> Machine:
    """The times of the event heap are in the floats before the load, its events at the end of the integers."""
    stages = len(model.stages)
    workers = max(1, *(max(rule.most, stage.first) for rule, stage in zip(rules, model.stages, strict=True)))
    room = 1 << (max(stage.capacity for stage in model.stages) + workers + 2).bit_length()
    heap = 4 * stages * workers + 64
    floats, integers = RATES + 2 * room + workers, COUNTS + WORKER_SIZE * workers
    load = np.array([*model.load.pieces(model.seconds), (np.inf, 0.0)])
    recorded = np.array([time for stage in model.stages for time in stage.recorded])
    latencies = int(model.jobs + 6 * model.jobs**0.5) + 100
    sizes = np.cumsum([CLOCKS, stages * floats, heap, load.size, recorded.size, latencies])
    machine = Machine(np.zeros(sizes[-1]), np.zeros(TOTALS + stages * integers + heap, np.int64))
    machine.integers[T_RANDOM] = model.seed
    machine.integers[N_STAGES:TOTALS] = (
        *(stages, workers, room, floats, integers, sizes[1]),
        *(TOTALS + stages * integers, sizes[2], sizes[3], sizes[4], latencies, 0),
    )
    machine.floats[sizes[1] : sizes[2]] = np.inf
    machine.floats[sizes[2] : sizes[4]] = np.concatenate((load.ravel(), recorded))
    _set_clocks(machine.floats, model, stages * workers)
    _set_stages(machine, model, workers)
    return machine


def _set_clocks(clocks: Floats, model: Model, workers: int) -> None:
    clocks[:CLOCKS] = np.inf
    clocks[[NOW, SCANNERS, HELD_SECONDS, HELD]] = 0.0
    clocks[[INTERVAL, SLOW_FROM, SLOW_FACTOR]] = model.interval, model.slow_from, model.slow_factor
    clocks[[CRASHES, END]] = model.crashes * workers, model.seconds


def _set_stages(machine: Machine, model: Model, workers: int) -> None:
    rows, counts, recorded = machine.rates, machine.counts, 0
    for place, stage in enumerate(model.stages):
        rows[place, [R_SERVICE, R_SPREAD, R_ENTRY]] = mean_time(stage), stage.spread, stage.entry
        rows[place, [R_POLL, R_STARTUP, R_PICKUP_AT]] = stage.poll, stage.startup, np.inf
        ends = recorded, recorded + len(stage.recorded)
        counts[place, [C_CAPACITY, C_KIND, C_FIRST, C_END]] = stage.capacity, TIMES.index(stage.times), *ends
        recorded = ends[1]
        first = TOTALS + place * machine.integers[N_INTEGERS] + COUNTS
        machine.integers[first : first + workers * WORKER_SIZE].reshape(workers, WORKER_SIZE)[:, S_POSITION] = -1


_GAMMA, _MIX, _MIX_AGAIN = 0x9E3779B97F4A7C15 - 2**64, 0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64
_UNIT = 2.0**-53


def uniform(n: Integers) -> float:
    """A number from 0 to 1, without 1.

    SplitMix64 in signed integers, which wrap around when compiled; a mask makes each shift fill up with zeros.
    Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
    """
    n[T_RANDOM] += _GAMMA
    word = int(n[T_RANDOM])
    word = (word ^ ((word >> 30) & (2**34 - 1))) * _MIX
    word = (word ^ ((word >> 27) & (2**37 - 1))) * _MIX_AGAIN
    word ^= (word >> 31) & (2**33 - 1)
    return ((word >> 11) & (2**53 - 1)) * _UNIT


def exponential(n: Integers, mean: float) -> float:
    return -mean * math.log(1.0 - uniform(n)) if mean > 0.0 else 0.0


def normal(n: Integers) -> float:
    """A standard normal number, by Box and Muller."""
    return math.sqrt(2.0 * exponential(n, 1.0)) * math.cos(2.0 * math.pi * uniform(n))


def push_event(f: Floats, n: Integers, at: float, stage: int, worker: int) -> None:
    """Add an event to the heap, which has room for four per worker; void events leave when their time comes.

    A node has four children: half as deep as with two, and the times of the children are adjacent.
    """
    place = n[T_HEAP]
    if n[N_EVENTS] + place + 4 >= len(n):
        raise MemoryError("too many workers were switched while they started")
    n[T_HEAP] = place + 1
    turn = n[TOTALS + stage * n[N_INTEGERS] + COUNTS + worker * WORKER_SIZE + S_TURN]
    _rise(f, n, place, at, (turn << 32) | (stage << 24) | worker)


def pop_event(f: Floats, n: Integers) -> int:
    """Remove the earliest event and return it: turn, stage (8 bits) and worker (24 bits) in one number.

    The last event falls through the gap to the bottom and rises again, rarely far. Slots behind the last are
    infinitely late, so that there are always four children, chosen from without a branch.
    """
    due, events = n[N_HEAP], n[N_EVENTS]
    size = n[T_HEAP] - 1
    n[T_HEAP] = size
    first: int = n[events]
    at, place, child = f[due + size], due, due + 1
    f[due + size] = math.inf
    while child < due + size:
        one, two = child, child + 2
        one += 1 if f[one + 1] < f[one] else 0
        two += 1 if f[two + 1] < f[two] else 0
        one = two if f[two] < f[one] else one
        f[place] = f[one]
        n[events + place - due] = n[events + one - due]
        place = one
        child = due + 4 * (place - due) + 1
    if size > 0:
        _rise(f, n, place - due, at, n[events + size])
    return first


def _rise(f: Floats, n: Integers, place: int, at: float, event: int) -> None:
    due, events = n[N_HEAP], n[N_EVENTS]
    while place > 0:
        parent = (place - 1) >> 2
        if f[due + parent] <= at:
            break
        f[due + place] = f[due + parent]
        n[events + place] = n[events + parent]
        place = parent
    f[due + place] = at
    n[events + place] = event


def set_workers(f: Floats, n: Integers, stage: int, wanted: int, idle_first: bool, now: float) -> int:
    """Switch workers on or off until `wanted` are on; returns how many were switched."""
    on = TOTALS + stage * n[N_INTEGERS] + C_ON
    before = n[on]
    if wanted > before:
        for busy in range(1 if idle_first else 0, -1, -1):  # workers that are still busy need no start
            _switch_on(f, n, stage, wanted, busy, now)
    elif wanted < before:
        for patience in range(0 if idle_first else 2, 3):
            _switch_off(f, n, stage, wanted, patience, now)
    f[CLOCKS + stage * n[N_FLOATS] + A_ON] += (n[on] - before) * (f[END] - now)
    return int(abs(n[on] - before))


def _switch_on(f: Floats, n: Integers, stage: int, wanted: int, busy: int, now: float) -> None:
    """The lowest numbers first: only busy ones, or any."""
    a, b = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS]
    for worker in range(n[N_WORKERS]):
        if n[b + C_ON] >= wanted:
            return
        w = b + COUNTS + worker * WORKER_SIZE
        is_busy = n[w + S_BUSY]
        if n[w + S_ON] == 1 or is_busy < busy:
            continue
        n[w + S_ON] = 1
        n[b + C_ON] += 1
        if is_busy == 1:
            n[b + C_BUSY_ON] += 1
            f[a + A_LEAVING] -= f[END] - now
        elif f[a + R_STARTUP] > 0.0:
            n[w + S_STARTING] = 1
            n[w + S_TURN] += 1
            n[b + C_STARTING] += 1
            push_event(f, n, now + f[a + R_STARTUP], stage, worker)
        else:
            add_idle(n, b, worker)


def _switch_off(f: Floats, n: Integers, stage: int, wanted: int, patience: int, now: float) -> None:
    """The highest numbers first: with patience 0 only starting workers, with 1 idle ones too, with 2 any."""
    b = TOTALS + stage * n[N_INTEGERS]
    for worker in range(n[N_WORKERS] - 1, -1, -1):
        if n[b + C_ON] <= wanted:
            return
        w = b + COUNTS + worker * WORKER_SIZE
        starting, busy = n[w + S_STARTING] == 1, n[w + S_BUSY] == 1
        if n[w + S_ON] == 0 or (patience == 0 and not starting) or (patience == 1 and busy):
            continue
        n[w + S_ON] = 0
        n[b + C_ON] -= 1
        if busy:
            n[b + C_BUSY_ON] -= 1
            f[CLOCKS + stage * n[N_FLOATS] + A_LEAVING] += f[END] - now
        elif starting:
            n[w + S_STARTING] = 0
            n[w + S_TURN] += 1
            n[b + C_STARTING] -= 1
        else:
            remove_idle(n, b, worker)


def add_idle(n: Integers, b: int, worker: int) -> None:
    """`b` is the offset of the stage's integers."""
    count, staff = n[b + C_IDLE], b + COUNTS
    n[staff + count * WORKER_SIZE + S_IDLE] = worker
    n[staff + worker * WORKER_SIZE + S_POSITION] = count
    n[b + C_IDLE] = count + 1


def remove_idle(n: Integers, b: int, worker: int) -> None:
    """The last idle worker takes its position."""
    count, staff = n[b + C_IDLE] - 1, b + COUNTS
    own = staff + worker * WORKER_SIZE + S_POSITION
    place, last = n[own], n[staff + count * WORKER_SIZE + S_IDLE]
    n[staff + place * WORKER_SIZE + S_IDLE] = last
    n[staff + last * WORKER_SIZE + S_POSITION] = place
    n[own] = -1
    n[b + C_IDLE] = count


_SOURCE, _LOAD, _CRASH, _WORKER, _PICKUP = range(5)


def advance(f: Floats, n: Integers, until: float) -> None:
    """Run all events until this time."""
    stages, floats, due = n[N_STAGES], n[N_FLOATS], n[N_HEAP]
    while True:
        at, what, stage = f[SOURCE_AT], _SOURCE, n[N_FED]
        if f[LOAD_AT] < at:
            at, what = f[LOAD_AT], _LOAD
        if f[CRASH_AT] < at:
            at, what = f[CRASH_AT], _CRASH
        if f[due] < at:
            at, what = f[due], _WORKER
        for place in range(stages):
            if f[CLOCKS + place * floats + R_PICKUP_AT] < at:
                at, what, stage = f[CLOCKS + place * floats + R_PICKUP_AT], _PICKUP, place
        if at > until:
            f[NOW] = until
            return
        f[NOW] = at
        if what == _PICKUP:
            _pick_up(f, n, stage, at)
        elif what == _WORKER:
            _work(f, n, at)
        elif what == _SOURCE:
            n[T_GENERATED] += 1
            arm_source(f, n, at)
            _offer(f, n, stage, at, at)
        elif what == _LOAD:
            _change_load(f, n, at)
        else:
            _crash(f, n, at)


def arm_source(f: Floats, n: Integers, now: float) -> None:
    if f[SCANNERS] <= 1e-9 or f[HELD] > 0.0:
        f[SOURCE_AT] = math.inf
    else:
        f[SOURCE_AT] = now + exponential(n, f[INTERVAL] / f[SCANNERS])


def _change_load(f: Floats, n: Integers, now: float) -> None:
    """The load is pairs of a time and a change."""
    place = n[N_LOAD] + 2 * n[T_LOAD]
    f[SCANNERS] += f[place + 1]
    n[T_LOAD] += 1
    f[LOAD_AT] = f[place + 2]
    arm_source(f, n, now)


def _offer(f: Floats, n: Integers, stage: int, made: float, now: float) -> None:
    a, b, room = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS], n[N_ROOM]
    n[b + C_ARRIVED] += 1
    tail = n[b + C_TAIL]
    length = tail - n[b + C_HEAD]
    if length > n[b + C_CAPACITY]:  # one more may be entering
        n[b + C_DROPPED] += 1
        return
    f[a + R_ENTERED_AT] = max(now, f[a + R_ENTERED_AT]) + exponential(n, f[a + R_ENTRY])
    place = a + RATES + (tail & (room - 1))
    f[place], f[place + room] = made, f[a + R_ENTERED_AT]
    f[a + A_QUEUE] += f[END] - now
    n[b + C_TAIL] = tail + 1
    n[b + C_MOST] = max(n[b + C_MOST], length + 1)
    n[b + C_READINGS] += 1
    n[b + C_LENGTHS] += length + 1
    if length == 0:
        arm_pickup(f, n, stage, now)


def arm_pickup(f: Floats, n: Integers, stage: int, now: float) -> None:
    a, b, room = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS], n[N_ROOM]
    idle, head = n[b + C_IDLE], n[b + C_HEAD]
    if idle == 0 or head == n[b + C_TAIL]:
        f[a + R_PICKUP_AT] = math.inf
    else:
        ready = f[a + RATES + room + (head & (room - 1))]
        f[a + R_PICKUP_AT] = max(now, ready) + exponential(n, f[a + R_POLL] / idle)


def _pick_up(f: Floats, n: Integers, stage: int, now: float) -> None:
    a, b, room = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS], n[N_ROOM]
    head, left = n[b + C_HEAD], f[END] - now
    place = a + RATES + (head & (room - 1))
    wait = now - f[place + room]
    f[a + R_WAITED] += wait
    f[a + R_LONGEST] = max(f[a + R_LONGEST], wait)
    f[a + A_QUEUE] -= left
    f[a + A_BUSY] += left
    n[b + C_HEAD] = head + 1
    n[b + C_TAKEN] += 1
    n[b + C_READINGS] += 1
    n[b + C_LENGTHS] += n[b + C_TAIL] - head - 1
    worker = n[b + COUNTS + int(uniform(n) * n[b + C_IDLE]) * WORKER_SIZE + S_IDLE]
    remove_idle(n, b, worker)
    n[b + COUNTS + worker * WORKER_SIZE + S_BUSY] = 1
    n[b + C_BUSY] += 1
    n[b + C_BUSY_ON] += 1
    f[a + RATES + 2 * room + worker] = f[place]
    push_event(f, n, now + _service_time(f, n, stage, now), stage, worker)
    arm_pickup(f, n, stage, now)


def _service_time(f: Floats, n: Integers, stage: int, now: float) -> float:
    a, b = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS]
    mean, spread, kind = f[a + R_SERVICE], f[a + R_SPREAD], n[b + C_KIND]
    if kind == 0:
        time = exponential(n, mean)
    elif kind == 1:
        time = mean
    elif kind == 2:
        time = mean * math.exp(spread * normal(n) - 0.5 * spread * spread)
    else:
        first, end = n[b + C_FIRST], n[b + C_END]
        time = f[n[N_RECORDED] + first + int(uniform(n) * (end - first))]
    return float(time * f[SLOW_FACTOR] if now >= f[SLOW_FROM] else time)


def _work(f: Floats, n: Integers, now: float) -> None:
    """A worker has started, or has finished its job."""
    code = pop_event(f, n)
    worker, stage = code & 0xFFFFFF, (code >> 24) & 0xFF
    b = TOTALS + stage * n[N_INTEGERS]
    w = b + COUNTS + worker * WORKER_SIZE
    if n[w + S_TURN] != code >> 32:
        return
    if n[w + S_BUSY] == 1:
        _finish(f, n, stage, worker, now)
    else:
        n[w + S_STARTING] = 0
        n[b + C_STARTING] -= 1
        add_idle(n, b, worker)
        arm_pickup(f, n, stage, now)


def _finish(f: Floats, n: Integers, stage: int, worker: int, now: float) -> None:
    a, b = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS]
    _end_job(f, n, stage, worker, now)
    n[b + C_DONE] += 1
    if n[b + COUNTS + worker * WORKER_SIZE + S_ON] == 1:
        add_idle(n, b, worker)
        arm_pickup(f, n, stage, now)
    made = f[a + RATES + 2 * n[N_ROOM] + worker]
    if stage + 1 < n[N_STAGES]:
        _offer(f, n, stage + 1, made, now)
    else:
        if n[T_COMPLETED] < n[N_LATENCIES]:
            f[n[N_LATENCY] + n[T_COMPLETED]] = now - made
        n[T_COMPLETED] += 1


def _end_job(f: Floats, n: Integers, stage: int, worker: int, now: float) -> None:
    a, b, left = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS], f[END] - now
    w = b + COUNTS + worker * WORKER_SIZE
    n[w + S_BUSY] = 0
    n[b + C_BUSY] -= 1
    f[a + A_BUSY] -= left
    if n[w + S_ON] == 1:
        n[b + C_BUSY_ON] -= 1
    else:
        f[a + A_LEAVING] -= left


def _crash(f: Floats, n: Integers, now: float) -> None:
    """Crash any possible worker, so that the rate never changes; one that is off and idle loses nothing."""
    f[CRASH_AT] = now + exponential(n, 1.0 / f[CRASHES])
    workers = n[N_WORKERS]
    code = int(uniform(n) * workers * n[N_STAGES])
    stage, worker = code // workers, code % workers
    b = TOTALS + stage * n[N_INTEGERS]
    w = b + COUNTS + worker * WORKER_SIZE
    if n[w + S_ON] + n[w + S_BUSY] == 0:
        return
    n[T_CRASHED] += 1
    n[w + S_TURN] += 1
    if n[w + S_BUSY] == 1:
        _return_job(f, n, stage, worker, now)
    if n[w + S_ON] == 1:
        if n[w + S_POSITION] >= 0:
            remove_idle(n, b, worker)
        n[b + C_STARTING] += 1 - n[w + S_STARTING]
        n[w + S_STARTING] = 1
        push_event(f, n, now + f[CLOCKS + stage * n[N_FLOATS] + R_STARTUP], stage, worker)
    arm_pickup(f, n, stage, now)


def _return_job(f: Floats, n: Integers, stage: int, worker: int, now: float) -> None:
    """Put the job of a crashed worker back at the head of its queue."""
    a, b, room = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS], n[N_ROOM]
    _end_job(f, n, stage, worker, now)
    n[b + C_HEAD] -= 1
    place = a + RATES + (n[b + C_HEAD] & (room - 1))
    f[place], f[place + room] = f[a + RATES + 2 * room + worker], now
    f[a + A_QUEUE] += f[END] - now


def step(memory: Any, parameters: Any, sample: Any) -> float:
    """Placeholder for the rule's own step, which replaces it when compiled."""
    raise NotImplementedError


def run_samples(
    f: Floats, n: Integers, memory: Floats, parameters: Floats, samples: Floats, how: Floats, course: Floats
) -> int:
    """Decide for the stages in order, for each rule sees the decision before it; returns the snapshots taken.

    `f` and `n` are a machine's floats and integers. `samples` has room for a sample of each stage, and after it the
    wanted workers (initially the first ones) and the queue before. `how` is the period, whether idle workers go
    first and whether the source may be held, the budget, and how many samples there are between two snapshots in
    `course`.
    """
    period, idle_first, hold, budget, every = how[0], how[1] > 0.0, how[2] > 0.0, how[3], int(how[4])
    stages, wanted, queues_before = n[N_STAGES], samples[:, FIELDS], samples[:, FIELDS + 1]
    _begin(f, n, wanted, idle_first)
    number = 0
    while number * period <= f[END]:
        now = number * period
        advance(f, n, now)
        if f[HELD] > 0.0:
            f[HELD_SECONDS] += period
        for stage in range(stages):
            _sample(f, n, stage, now, samples, memory)
            if number % every == 0:
                _snapshot(n, stage, course[number // every, stage])
            if stage > 0:
                samples[stage, BEFORE_ON] = wanted[stage - 1]
            wanted[stage] = step(memory[stage], parameters[stage], samples[stage])
        cut_to_budget(wanted, parameters[:, LEAST], budget)
        for stage in range(stages):
            _execute(f, n, stage, int(wanted[stage]), idle_first, now)
        if hold:
            _hold(f, n, samples, queues_before, now)
        number += 1
    advance(f, n, f[END])
    return (number - 1) // every + 1


def _begin(f: Floats, n: Integers, first: Floats, idle_first: bool) -> None:
    f[LOAD_AT] = f[n[N_LOAD]]
    if f[CRASHES] > 0.0:
        f[CRASH_AT] = exponential(n, 1.0 / f[CRASHES])
    for stage in range(n[N_STAGES]):
        place = CLOCKS + stage * n[N_FLOATS] + R_STARTUP
        startup = f[place]
        f[place] = 0.0  # the first workers need no start
        set_workers(f, n, stage, int(first[stage]), idle_first, 0.0)
        f[place] = startup


def _snapshot(n: Integers, stage: int, row: Floats) -> None:
    b = TOTALS + stage * n[N_INTEGERS]
    row[0] = n[b + C_TAIL] - n[b + C_HEAD]
    row[1] = n[b + C_ON]
    row[2] = n[b + C_ON] + n[b + C_BUSY] - n[b + C_BUSY_ON]


def _sample(f: Floats, n: Integers, stage: int, now: float, samples: Floats, memory: Floats) -> None:
    """Fill a sample, in the order of `levada.stages.sample`."""
    row, b = samples[stage], TOTALS + stage * n[N_INTEGERS]
    row[0] = now
    row[1] = n[b + C_TAIL] - n[b + C_HEAD]
    row[2], row[3], row[4] = n[b + C_ON], n[b + C_BUSY], n[b + C_STARTING]
    row[5], row[6] = n[b + C_ARRIVED], n[b + C_DONE]
    row[7], row[8] = f[HELD_SECONDS], n[b + C_CAPACITY]
    if stage > 0:
        before = b - n[N_INTEGERS]
        row[10] = n[before + C_TAIL] - n[before + C_HEAD]
        row[11], row[12] = n[before + C_BUSY], n[before + C_DONE]
        row[13], row[14] = memory[stage - 1, SERVICE], memory[stage - 1, RATE]


def _execute(f: Floats, n: Integers, stage: int, wanted: int, idle_first: bool, now: float) -> None:
    if wanted != n[TOTALS + stage * n[N_INTEGERS] + C_ON]:
        n[T_DECISIONS] += 1
        n[T_SWITCHED] += set_workers(f, n, stage, wanted, idle_first, now)
        arm_pickup(f, n, stage, now)


def _hold(f: Floats, n: Integers, samples: Floats, queues_before: Floats, now: float) -> None:
    held = must_hold(f[HELD] > 0.0, samples, queues_before)
    if held != (f[HELD] > 0.0):
        f[HELD] = 1.0 if held else 0.0
        arm_source(f, n, now)
    for stage in range(len(queues_before)):
        queues_before[stage] = samples[stage, QUEUE]
