"""Which real skewed streams can be had? Words, flights and word counts, from small data packages."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable, Iterator
from importlib import resources
from importlib.util import find_spec
from typing import Any

import numpy as np

from levada.errors import MissingExtra, UsageError
from levada.lab.grouping.streams import Stream, of_keys

__all__ = ["REAL_STREAMS", "real_stream"]

