"""One decision of a distUCB rollout: three steps, 32 fantasies, every candidate."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
from scipy.special import ndtri
from scipy.stats.qmc import Sobol
from timing import Plan, Row, alternate, peer, timed
from truvar import NOISE, readings

from fieldbo._numerics.blas import one_blas_thread
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.posterior import Belief
from fieldbo.belief.surface import Surface
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.policies.travel.one_step import TravelScore
from fieldbo.policies.travel.rollout import Simulation, rollout_values

READINGS = 60
LENGTH_SCALES = np.array([0.2, 0.2])
STEPS, FANTASIES = 3, 32
KAPPA, SCALE = 2.0, 1.0  # the unit square's longest side
FIRST_STEPS = 50
DECISIONS = 9
SAME = 1e-6
"""Values of a first step that differ by less, relatively, are equal."""


def scattered(n: int) -> np.ndarray:
    """Return n sites (n, 2) anywhere on the unit square."""
    return np.random.default_rng(1).random((n, 2))


class Deciding:
    """A vehicle at the last of 60 readings, and a surface with these readings."""

    def __init__(self, sites: np.ndarray) -> None:
        self.x, self.y = readings(READINGS)
        belief = Belief(Matern52(LENGTH_SCALES)).condition_on(self.x, self.y, np.full(READINGS, NOISE))
        self.surface = Surface(belief, sites)
        self.draws = ndtri(Sobol(STEPS - 1, rng=0).random(FANTASIES))
        base = TravelScore("dist-ucb", KAPPA, "one_plus", SCALE)
        square = Domain((Axis("x", "", 0.0, 1.0), Axis("y", "", 0.0, 1.0)), sites)
        self._paths = Simulation(base, Euclidean().within(square), (), STEPS, self.draws)
        self._noise = np.full(len(sites), NOISE)

    def values(self) -> np.ndarray:
        """Return the value of each first step (N,)."""
        return rollout_values(self._paths, self.surface, self._noise, self.x[-1]).value

    def decide(self) -> int:
        """Return the best first step, as the policy finds it; this is timed."""
        every = np.ones(self.surface.size, dtype=bool)
        leading = rollout_values(self._paths, self.surface, self._noise, self.x[-1], leading_of=every)
        return int(np.argmax(leading.value))

    def seconds(self) -> float:
        """Decide a few times, and return the median."""
        return float(np.median([timed(self.decide)[0] for _ in range(DECISIONS)]))

    def data(self, firsts: np.ndarray) -> dict[str, object]:
        """Return the peers' data; `firsts` are the first steps to evaluate."""
        return {
            "x": self.x,
            "y": self.y,
            "noise": NOISE,
            "variance": 1.0,
            "length_scales": LENGTH_SCALES,
            "sites": self.surface.candidates,
            "firsts": firsts,
            "position": self.x[-1],
            "draws": self.draws,
            "kappa": KAPPA,
            "scale": SCALE,
        }


def alone(sites: np.ndarray, name: str, plan: Plan) -> list[Row]:
    """Time a decision."""
    with one_blas_thread():
        own = Deciding(sites)
        own.decide()  # the first compiles
        return alternate(plan.runs or 5, own.seconds, {}).rows(name, plan)


def against_botorch(sites: np.ndarray, all_firsts: bool, name: str, plan: Plan) -> list[Row]:
    """Time a decision; peers are BoTorch's `fantasize`, with the same draws, and its `qMultiStepLookahead`.

    Unless `all_firsts` is true, `fantasize` evaluates 50 first steps, and its time is scaled.
    """
    if not plan.peers:
        return alone(sites, name, plan)
    count = len(sites) if all_firsts else FIRST_STEPS
    firsts = np.linspace(0, len(sites) - 1, count).astype(int)
    with ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        own = Deciding(sites)
        values = own.values()[firsts]  # the first compiles
        data = own.data(firsts)
        exact = stack.enter_context(peer("botorch_fantasize", data, plan.threads))
        apart = np.max(np.abs(exact.answer / values - 1.0))
        assert apart < SAME, f"a value differs from BoTorch's by {apart:.1e} of it"
        tree = stack.enter_context(peer("botorch_multistep", data, plan.threads))
        share = count / len(sites)
        timings = alternate(
            plan.runs or 1,
            own.seconds,
            {
                "BoTorch fantasize": lambda: exact.seconds() / share,
                "BoTorch qMultiStepLookahead": tree.seconds,
            },
        )
    measured = "" if all_firsts else f", {count} first steps measured and scaled"
    notes = {
        "BoTorch fantasize": f"values agree to {apart:.0e}{measured}",
        "BoTorch qMultiStepLookahead": "8/4/2 fantasies, optimised",
    }
    return timings.rows(name, plan, notes)
