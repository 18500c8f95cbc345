"""What came of a run, and how good it is: its answer, scored step by step; and the files of a run folder."""

from fieldbo.result.answers import (
    ANSWERS,
    Answer,
    LevelSetAnswer,
    OptimumAnswer,
    amount,
    answer_of,
    in_words,
)
from fieldbo.result.cells import Cell, ModuleRuns, Play, SetPlays, cell_of, judged_by
from fieldbo.result.outcome import Result
from fieldbo.result.plays import BestPlay
from fieldbo.result.steps import Scorer, Step
from fieldbo.result.tables import table, write_whole
from fieldbo.result.truth import Place, Truth, truth_of

__all__ = [
    "ANSWERS",
    "Answer",
    "BestPlay",
    "Cell",
    "LevelSetAnswer",
    "ModuleRuns",
    "OptimumAnswer",
    "Place",
    "Play",
    "Result",
    "Scorer",
    "SetPlays",
    "Step",
    "Truth",
    "amount",
    "answer_of",
    "cell_of",
    "in_words",
    "judged_by",
    "table",
    "truth_of",
    "write_whole",
]
