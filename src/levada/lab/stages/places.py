"""Where in a machine's two arrays does what stand?

Two, for a compiled function that is handed many arrays, or tuples of them, spends its time on counting references.
"""

from __future__ import annotations

__all__ = [
    "A_BUSY",
    "A_LEAVING",
    "A_ON",
    "A_QUEUE",
    "CLOCKS",
    "COUNTS",
    "CRASHES",
    "CRASH_AT",
    "C_ARRIVED",
    "C_BUSY",
    "C_BUSY_ON",
    "C_CAPACITY",
    "C_DONE",
    "C_DROPPED",
    "C_END",
    "C_FIRST",
    "C_HEAD",
    "C_IDLE",
    "C_KIND",
    "C_LOOKS",
    "C_LOOKS_SUM",
    "C_MOST",
    "C_ON",
    "C_STARTING",
    "C_TAIL",
    "C_TAKEN",
    "END",
    "HELD",
    "HELD_SECONDS",
    "INTERVAL",
    "LOAD_AT",
    "NOW",
    "N_EVENTS",
    "N_FED",
    "N_FLOATS",
    "N_HEAP",
    "N_INTEGERS",
    "N_LATENCIES",
    "N_LATENCY",
    "N_LOAD",
    "N_RECORDED",
    "N_ROOM",
    "N_STAGES",
    "N_WORKERS",
    "RATES",
    "R_ENTRY",
    "R_LONGEST",
    "R_PICKUP_AT",
    "R_POLL",
    "R_SERVICE",
    "R_SPREAD",
    "R_STARTUP",
    "R_TAKEN_IN",
    "R_WAITED",
    "SCANNERS",
    "SLOW_FACTOR",
    "SLOW_FROM",
    "SOURCE_AT",
    "STAFF",
    "S_BUSY",
    "S_IDLE",
    "S_ON",
    "S_PLACE",
    "S_STARTING",
    "S_TURN",
    "TOTALS",
    "T_CHANCE",
    "T_COMPLETED",
    "T_CRASHED",
    "T_DECISIONS",
    "T_HEAP",
    "T_LOAD",
    "T_MADE",
    "T_SWITCHED",
]

# At the head of the floats: the time, when the next event of each kind is, what the source does, the run's end.
NOW, SOURCE_AT, LOAD_AT, CRASH_AT, SCANNERS, HELD_SECONDS, HELD = range(7)
INTERVAL, SLOW_FROM, SLOW_FACTOR, CRASHES, END, CLOCKS = range(7, 13)

# At the head of the integers: counts of the whole system, the state of chance, sizes, where other things begin, and
# the stage that the source feeds.
T_HEAP, T_LOAD, T_MADE, T_COMPLETED, T_DECISIONS, T_SWITCHED, T_CRASHED, T_CHANCE = range(8)
N_STAGES, N_WORKERS, N_ROOM, N_FLOATS, N_INTEGERS, N_HEAP = range(8, 14)
N_EVENTS, N_LOAD, N_RECORDED, N_LATENCY, N_LATENCIES, N_FED, TOTALS = range(14, 21)

# Then each stage's block of `N_INTEGERS`: its queue as a ring (head, tail), workers, jobs; looks are lengths met at
# each push and pop. Never changed: the queue's room, the kind of times, and where its recorded ones are.
C_HEAD, C_TAIL, C_ON, C_BUSY, C_BUSY_ON, C_STARTING, C_IDLE = range(7)
C_ARRIVED, C_TAKEN, C_DONE, C_DROPPED, C_MOST, C_LOOKS, C_LOOKS_SUM = range(7, 14)
C_CAPACITY, C_KIND, C_FIRST, C_END, COUNTS = range(14, 19)

# After these the same for each of `N_WORKERS`: events of an earlier turn are void; an idle worker's place is where
# it stands in the list of those that could take a job (spread over all workers), or -1.
S_ON, S_BUSY, S_STARTING, S_TURN, S_IDLE, S_PLACE, STAFF = range(7)

# Each stage's block of `N_FLOATS`: what never changes, the next pickup, when the last job is taken in, then areas
# under curves (jobs waiting, workers on, workers busy, workers that are off and still busy). Then, `N_ROOM` each,
# when the jobs of its ring were made and are taken in, and, `N_WORKERS`, when the workers' jobs were made.
R_SERVICE, R_SPREAD, R_ENTRY, R_POLL, R_STARTUP, R_PICKUP_AT, R_TAKEN_IN = range(7)
A_QUEUE, A_ON, A_BUSY, A_LEAVING, R_WAITED, R_LONGEST, RATES = range(7, 14)
