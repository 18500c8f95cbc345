"""Tables with several quantities in one column of values, a row each: which of them is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from fieldbo.errors import InputError, counted
from fieldbo.tables.cells import held
from fieldbo.tables.sheet import Sheet


class _Long(NamedTuple):
    """The columns of a table in long form; each may have one of several names."""

    quantity: tuple[str, ...]
    value: tuple[str, ...]
    unit: tuple[str, ...]
    part: tuple[str, ...] = ()


_LONG = (
    _Long(
        ("characteristicname", "result_characteristic"),
        ("resultmeasurevalue", "result_measure"),
        ("resultmeasure/measureunitcode", "resultmeasure.measureunitcode", "resultmeasure_measureunitcode",
         "result_measureunit"),
        ("resultsamplefractiontext", "result_samplefraction"),
    ),
    _Long(("determinand.label", "determinand"), ("result",), ("determinand.unit.label", "unit")),
    _Long(
        ("parameter", "parameter_name", "analyte", "variable", "quantity", "characteristic", "parametername"),
        ("value", "result", "result_value", "resultvalue", "measurement", "concentration"),
        ("unit", "units", "uom", "unit_of_measure", "result_unit"),
        ("fraction",),
    ),
)  # fmt: skip


class _Kind(NamedTuple):
    """One of the quantities in a table."""

    name: str
    part: str
    unit: str

    def __str__(self) -> str:
        part = f" ({self.part})" if self.part else ""
        return f"{self.name}{part}" + (f" [{self.unit}]" if self.unit else "")

    def is_called(self, name: str) -> bool:
        wanted = " ".join(name.lower().split())
        part = f"{self.name} ({self.part})" if self.part else self.name
        unit = f"{self.name} [{self.unit}]"
        return wanted in {each.lower() for each in (self.name, part, unit, str(self))}


def choose_quantity(sheet: Sheet, quantity: str | None) -> None:
    """Leave the rows of one quantity in a table in long form, and call the column of values by its name.

    Raises
    ------
    InputError
        There are several quantities and `quantity` names none or more than one of them, or there is only one
        quantity per column.
    """
    columns = _columns(sheet)
    if columns is None:
        if quantity is not None:
            raise InputError(
                f"quantity is {quantity!r}, but the table has a column for each quantity",
                expected=", ".join(sheet.names),
                where=f"{sheet.path}, --quantity",
                fix="leave --quantity out, and name the column with --value",
            )
        return
    name, value, unit, part = columns
    cells = [[""] * len(sheet.rows) if i is None else sheet.column(i) for i in (name, part, unit)]
    kinds = [_Kind(*each) for each in zip(*cells, strict=True)]
    with_value = [
        kind for kind, cell in zip(kinds, sheet.column(value), strict=True) if cell[:1] not in ("", "<")
    ]
    counts = Counter(kind for kind in with_value if kind.name)
    wanted = [kind for kind in counts if quantity is None or kind.is_called(quantity)]
    if len(wanted) != 1:
        raise _ask(sheet, quantity, counts, wanted)
    (kind,) = wanted
    # of a result below a limit, the unit may be missing
    same = [(k.name, k.part) == (kind.name, kind.part) and k.unit in ("", kind.unit) for k in kinds]
    if not all(same):
        others = counted(same.count(False), "row")
        sheet.notes.append(f"{counted(sum(same), 'row')} of {kind}; {others} of others left out")
    sheet.keep(same)
    sheet.names[value] = kind.name
    sheet.units[value], sheet.roles[value] = kind.unit, "value"


def _columns(sheet: Sheet) -> tuple[int, int, int | None, int | None] | None:
    """Return the columns of the quantity, value, unit and part; None for a table that is not in long form."""
    lower = [name.lower() for name in sheet.names]

    def column(names: Sequence[str]) -> int | None:
        return next((lower.index(name) for name in names if name in lower), None)

    for long in _LONG:
        name, value = column(long.quantity), column(long.value)
        if name is None or value is None:
            continue
        words = [cell for cell in sheet.column(name) if cell]
        if words and all(held(cell) == "text" for cell in words[:100]):
            return name, value, column(long.unit), column(long.part)
    return None


def _ask(sheet: Sheet, quantity: str | None, counts: Counter[_Kind], wanted: Sequence[_Kind]) -> InputError:
    """Return the error that lists the quantities with the numbers of their rows."""
    if not counts:
        return InputError("no row has a value", expected="a row per reading", where=str(sheet.path))
    offered = counts if quantity is None or not wanted else {kind: counts[kind] for kind in wanted}
    listed = sorted(offered, key=lambda kind: (-offered[kind], str(kind)))
    problem = f"the table holds {counted(len(counts), 'quantity', 'quantities')} in one column"
    if quantity is not None:
        what = "is none" if not wanted else f"may be {len(wanted)}"
        problem += f"; {quantity!r} {what} of them"
    return InputError(
        problem,
        expected="\n".join(f"{kind} ({counted(counts[kind], 'row')})" for kind in listed[:40]),
        where=f"{sheet.path}, column {sheet.names[_columns(sheet)[0]]}",  # type: ignore[index]
        fix=f'choose one with --quantity, such as --quantity "{listed[0]}"',
    )
