"""What LaMBO remembers from step to step: regions, the arms over them, and how each has fared.

==============  ========================================================================================
``N``           number of modules; all but the last are cut into regions, whose products are the K arms
``p``, log_p    probabilities of the arms and their logarithms, (K,)
``h``           height of the tree up to which the next arm may differ from the last
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
    """LaMBO's memory.

    Attributes
    ----------
    regions : list of (n_m, 2, D_m) arrays
        Regions of each module but the last.
    arms : (K, N - 1) int array
    log_p : (K,) array
    below : (K,) int array
        Number of consecutive steps that each arm was improbable.
    depths : tuple of N - 1 int
    value_scale : float
        Value that a loss of 1 corresponds to, in model units.
    arm : int or None
        The last arm; None before the first step, and once the arm's regions are dropped.
    h : int
    step : int
        Number of steps taken.
    refinements : int
        Number of times the regions were bisected.
    moves : int
        Number of changes of the first module in the current period.
    moved : bool
        Whether the last query changed the first module.
    """

    regions: list[Array]
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
        cls, regions: list[Array], arms: Integers, depths: tuple[int, ...], value_scale: float
    ) -> BanditState:
        """Return the state before the first step: all arms equally probable, and free to go to any."""
        K = len(arms)
        uniform, below = np.full(K, -np.log(K)), np.zeros(K, dtype=np.intp)
        return cls(regions, arms, uniform, below, depths, value_scale, h=sum(depths))

    def restarted(self) -> BanditState:
        """Return the state with all arms equally probable again."""
        K = len(self.arms)
        return replace(self, log_p=np.full(K, -np.log(K)), below=np.zeros(K, dtype=np.intp))

    def to_plain(self) -> dict[str, Any]:
        """Return the state as numbers and lists."""
        plain = {**vars(self), "depths": list(self.depths)}
        plain |= {name: plain[name].tolist() for name in ("arms", "log_p", "below")}
        return {"cells": [boxes.tolist() for boxes in plain.pop("regions")], **plain}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> BanditState:
        """Return the state that `to_plain` wrote."""
        fields = {name: value for name, value in plain.items() if name != "cells"}
        fields["regions"] = [np.asarray(boxes, dtype=float) for boxes in plain["cells"]]
        fields["arms"] = np.asarray(plain["arms"], dtype=np.intp)
        fields["below"] = np.asarray(plain["below"], dtype=np.intp)
        fields["log_p"] = np.asarray(plain["log_p"], dtype=float)
        return cls(**{**fields, "depths": tuple(plain["depths"])})

    def current_arm(self, columns: Columns, position: Array) -> int | None:
        """Return the arm that holds the system's `position` (d,), or None before the first step.

        The last arm, as long as its regions hold the position; otherwise its query was not carried out.
        """
        if self.arm is None or arm_at(self.arms[[self.arm]], self.regions, columns, position) is not None:
            return self.arm
        return arm_at(self.arms, self.regions, columns, position)

    def refined(self, keep: Integers, domain: Domain, columns: Columns, position: Array) -> BanditState:
        """Bisect the regions that the arms in `keep` use, and make all arms equally probable.

        The last arm becomes the new arm that holds `position` (d,), if its predecessor is kept.
        """
        units = [domain.extent[list(axes)] for axes in columns[:-1]]
        finer = refined(self.regions, self.arms, keep, units)
        stays = self.current_arm(columns, position) in keep.tolist()
        arm = arm_at(finer.arms, finer.regions, columns, position) if stays else None
        return replace(
            self, regions=finer.regions, arms=finer.arms, arm=arm, refinements=self.refinements + 1
        ).restarted()

    def deepened(self, often: int) -> BanditState:
        """End a period: d_1 grows by 1 if the first module changed more than `often` times."""
        first, *rest = self.depths
        return replace(self, depths=(first + (self.moves > often), *rest), moves=0)
