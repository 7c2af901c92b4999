"""Where in a machine's arrays does what stand?"""

from __future__ import annotations

__all__ = [
    "A_BUSY",
    "A_LAST",
    "A_ON",
    "A_PAID",
    "A_QUEUE",
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
    "C_READY",
    "C_STARTING",
    "C_TAIL",
    "C_TAKEN",
    "EVENTS",
    "E_TURN",
    "E_WHOSE",
    "G_MADE",
    "G_READY",
    "HELD",
    "HELD_SECONDS",
    "INTERVAL",
    "LOAD_AT",
    "L_AT",
    "L_BY",
    "NOW",
    "RATES",
    "RING",
    "R_ENTRY",
    "R_ENTRY_AT",
    "R_LONGEST",
    "R_PICKUP_AT",
    "R_POLL",
    "R_SERVICE",
    "R_SPREAD",
    "R_STARTUP",
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
    "T_COMPLETED",
    "T_CRASHED",
    "T_DECISIONS",
    "T_HEAP",
    "T_LOAD",
    "T_MADE",
    "T_SWITCHED",
]

# Of `clocks`: the time, when the next event of each kind is, and what the source does.
NOW, SOURCE_AT, LOAD_AT, CRASH_AT, SCANNERS, HELD_SECONDS, HELD, INTERVAL, SLOW_FROM, SLOW_FACTOR, CRASHES = range(
    11
)

# Of `totals`: sizes and counts of the whole system.
T_HEAP, T_LOAD, T_MADE, T_COMPLETED, T_DECISIONS, T_SWITCHED, T_CRASHED = range(7)

# Of `counts`, per stage: the queue as a ring (head, end of those taken in, tail), workers, jobs; looks are lengths
# met at each push and pop.
C_HEAD, C_READY, C_TAIL, C_ON, C_BUSY, C_BUSY_ON, C_STARTING, C_IDLE = range(8)
C_ARRIVED, C_TAKEN, C_DONE, C_DROPPED, C_MOST, C_LOOKS, C_LOOKS_SUM = range(8, 15)

# Also of `counts`, and never changed: the queue's room, the kind of times, and where its recorded ones are.
C_CAPACITY, C_KIND, C_FIRST, C_END, COUNTS = range(15, 20)

# Of `rates`, per stage: what the model says; when the next event is; sums over time, and when they were last
# counted; the sum and the greatest of the waits in the queue.
R_SERVICE, R_SPREAD, R_ENTRY, R_POLL, R_STARTUP, R_ENTRY_AT, R_PICKUP_AT = range(7)
A_QUEUE, A_ON, A_PAID, A_BUSY, A_LAST, R_WAITED, R_LONGEST, RATES = range(7, 15)

# Of `staff`, per stage and worker: events of an earlier turn are void; an idle worker's place is where it stands in
# the list of those that could take a job, or -1.
S_ON, S_BUSY, S_STARTING, S_TURN, S_IDLE, S_PLACE, STAFF = range(7)

# Of `ring`, per stage: when a job was made, and when it had been taken in. Of `events`: whose, and of which turn.
G_MADE, G_READY, RING = range(3)
E_WHOSE, E_TURN, EVENTS = range(3)
L_AT, L_BY = range(2)
