"""Files of a run: tables as CSV, and each file whole or not at all."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """Return a CSV file's content; numbers keep all their digits, NaN is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        cells = [float(x) if isinstance(x, np.floating) else x for x in row]
        writer.writerow(["" if isinstance(x, float) and math.isnan(x) else x for x in cells])
    return out.getvalue().encode()
