"""Damages messages and capture files at random: python -m tests.capture.fuzz_mongodb ROUNDS SEED

Outside the suite, where hypothesis does the same in small. Anything raised ends it; at the end it says how long the
slowest round took and how much memory was needed.
"""

from __future__ import annotations

import io
import random
import resource
import struct
import sys
import time

import bson

from levada.capture.mongodb.conversation import CaptureCounts, CaptureReading, queries_in_pcap
from tests.capture.captured_packets import pcap, pcapng, segments_of
from tests.capture.mongodb_responder import compressed, message, msg
from tests.capture.test_mongodb_messages import FIND, SEEDS, heard_in

MATCH = {"$match": {"a": {"$in": [1, {"$gt": 3}]}, "$expr": {"$and": [{"$eq": ["$a", 1]}]}}}
STRANGE = {"$or": [{"a": bson.Decimal128("1E6000")}, {"b": bson.Timestamp(1, 2)}, {"c": bson.Regex("^a", "i")}]}
CORPUS = [
    *SEEDS,
    msg({"aggregate": "c", "pipeline": [MATCH, {"$lookup": {"from": "x"}}], "$db": "d"}),
    msg({"update": "c", "$db": "d"}, updates=[{"q": STRANGE, "u": [{"$set": {"a": 1}}]}]),
    msg({"bulkWrite": 1, "$db": "admin"}, ops=[{"insert": 0, "document": {}}], nsInfo=[{"ns": "a.b"}]),
    compressed(msg({"find": "c", "filter": STRANGE}), 2),
]
OPCODES = [2001, 2002, 2004, 2006, 2010, 2012, 2013]


def damaged(chance: random.Random) -> bytes:
    data = bytearray(chance.choice(CORPUS))
    for _ in range(chance.randint(1, 6)):
        place, kind = chance.randrange(len(data)), chance.randrange(5)
        if kind == 0:
            data[place] = chance.randrange(256)
        elif kind == 1:
            lie = chance.choice([-1, 0, 1, 5, 2**31 - 1, -(2**31), len(data), len(data) - place])
            data[place : place + 4] = struct.pack("<i", lie)
        elif kind == 2:
            del data[place : place + chance.randint(1, 20)]
        elif kind == 3:
            data[place:place] = data[chance.randrange(len(data)) :][: chance.randint(1, 60)]
        else:
            data[place:place] = chance.randbytes(chance.randint(1, 8))
        if len(data) < 20:
            data = bytearray(FIND)
    return bytes(data)


def one_round(chance: random.Random) -> None:
    data = damaged(chance)
    heard_in(message(chance.choice(OPCODES), data[16:]))
    heard_in(data + FIND)
    if chance.random() < 0.1:
        form = chance.choice([pcap, pcapng])
        file = bytearray(form(segments_of(data, [30])))
        for _ in range(3):
            file[4 + chance.randrange(len(file) - 4)] = chance.randrange(256)
        list(queries_in_pcap(io.BytesIO(bytes(file)), 27_017, CaptureReading(CaptureCounts())))


def main(rounds: int, seed: int) -> None:
    chance, slowest = random.Random(seed), 0.0
    for _ in range(rounds):
        began = time.perf_counter()
        one_round(chance)
        slowest = max(slowest, time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{rounds:,} rounds, the slowest {slowest:.3f} s, {peak} MB at most")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
