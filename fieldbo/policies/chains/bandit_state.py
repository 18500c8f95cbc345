"""What LaMBO remembers from step to step: cells, the arms over them, and how each has fared.

==============  ========================================================================================
``N``           number of modules; all but the last are cut into cells, whose products are the K arms
``p``, log_p    probabilities of the arms, and their logarithms, (K,)
``h``           up to this height of the tree the next arm may differ from the last one
``d_m``         depth of module m in the tree
==============  ========================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.policies.chains.arm_tree import Integers
from fieldbo.policies.chains.partition import Columns, arm_at, refined


@dataclass(frozen=True, eq=False)
class BanditState:
    """What LaMBO remembers.

    Attributes
    ----------
    cells : list of (n_m, 2, D_m) arrays
        Of each module but the last.
    arms : (K, N - 1) int array
    log_p : (K,) array
    below : (K,) int array
        For how many steps in a row each arm was improbable.
    depths : tuple of N - 1 int
    value_scale : float
        In model units: what a loss of 1 stands for.
    arm : int or None
        The last one; None before the first, and where its cells are gone.
    h : int
    step : int
        How many were taken.
    refinements : int
        How often cells were bisected.
    moves : int
        How often the first module changed in this period.
    moved : bool
        Whether it did with the last query.
    """

    cells: list[Array]
    arms: Integers
    log_p: Array
    below: Integers
    depths: tuple[int, ...]
    value_scale: float
    arm: int | None = None
    h: int = 0
    step: int = 0
    refinements: int = 0
    moves: int = 0
    moved: bool = False

    @classmethod
    def over(
        cls, cells: list[Array], arms: Integers, depths: tuple[int, ...], value_scale: float
    ) -> BanditState:
        """Return the memory before the first step: all arms alike, and free to go to any."""
        K = len(arms)
        even, none = np.full(K, -np.log(K)), np.zeros(K, dtype=np.intp)
        return cls(cells, arms, even, none, depths, value_scale, h=sum(depths))

    def evened(self) -> BanditState:
        """Return it with all arms alike again."""
        K = len(self.arms)
        return replace(self, log_p=np.full(K, -np.log(K)), below=np.zeros(K, dtype=np.intp))

    def to_plain(self) -> dict[str, Any]:
        """Return it as numbers and lists."""
        plain = {**vars(self), "cells": [own.tolist() for own in self.cells], "depths": list(self.depths)}
        return {**plain, **{name: getattr(self, name).tolist() for name in ("arms", "log_p", "below")}}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> BanditState:
        """Return what `to_plain` wrote."""
        told = dict(plain)
        told["cells"] = [np.asarray(own, dtype=float) for own in plain["cells"]]
        told["arms"] = np.asarray(plain["arms"], dtype=np.intp)
        told["below"] = np.asarray(plain["below"], dtype=np.intp)
        told["log_p"] = np.asarray(plain["log_p"], dtype=float)
        return cls(**{**told, "depths": tuple(plain["depths"])})

    def standing(self, columns: Columns, position: Array) -> int | None:
        """Return the arm that a system at `position` (d,) stands in; None before the first step.

        The last one drawn while its cells hold the position: otherwise its query came to nothing.
        """
        if self.arm is None or arm_at(self.arms[[self.arm]], self.cells, columns, position) is not None:
            return self.arm
        return arm_at(self.arms, self.cells, columns, position)

    def refined(self, keep: Integers, domain: Domain, columns: Columns, position: Array) -> BanditState:
        """Return it over the halves of the cells that the arms to keep use, all arms alike.

        The last arm is the new one that a system at `position` (d,) stands in, if its old one is kept.
        """
        units = [domain.extent[list(own)] for own in columns[:-1]]
        finer = refined(self.cells, self.arms, keep, units)
        stays = self.standing(columns, position) in keep.tolist()
        arm = arm_at(finer.arms, finer.cells, columns, position) if stays else None
        told = replace(self, cells=finer.cells, arms=finer.arms, arm=arm, refinements=self.refinements + 1)
        return told.evened()

    def deepened(self, often: int) -> BanditState:
        """Return it at the end of a period: d_1 grows if the first module changed more than `often` times."""
        first, *rest = self.depths
        return replace(self, depths=(first + (self.moves > often), *rest), moves=0)
