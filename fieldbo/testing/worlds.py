"""The contract of every world, as tests to inherit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.errors import FieldboError
from fieldbo.messages import Observation, Query, to_plain
from fieldbo.world.world import World


class WorldContract(ABC):
    """The contract of every world, including live ones, which have no truth. Override `world`."""

    sites_at_most = 40
    """Maximum number of sites to test, evenly spread."""

    additive = True
    """True if a route costs the sum of its legs."""

    @abstractmethod
    def world(self, draw: int) -> World:
        """Return the world with that draw of its field; a deterministic world ignores `draw`."""

    def _some(self, world: World) -> Array:
        assert world.start is not None
        sites = world.domain.sites
        return self._spread(sites[np.isfinite(world.cost.travel(world.start, sites))])

    def _spread(self, sites: Array) -> Array:
        index = np.unique(np.linspace(0, len(sites) - 1, self.sites_at_most).astype(int))
        return np.asarray(sites[index])

    def _evaluated(self, world: World, site: Array, position: Array, number: int = 0) -> Observation:
        route = world.cost.path(position, site)
        query = Query(site, id=f"run/{number}", route=route if len(route) > 2 else np.empty((0, len(site))))
        return world.evaluate(query, position, 5.0, stream(11, "sensor", number))

    def test_it_is_a_frozen_value(self) -> None:
        """The field of a mission can't be replaced."""
        world = self.world(0)
        try:
            world.field = None  # type: ignore[misc]
        except AttributeError:
            return
        raise AssertionError("the field can be set")

    def test_its_sites_and_its_start_lie_inside_the_domain(self) -> None:
        """All of them."""
        world = self.world(0)
        assert world.domain.contains(world.domain.sites).all()
        assert np.isfinite(world.domain.sites).all()
        assert world.start is not None
        assert world.domain.contains(world.start[None])[0]

    def test_the_same_draw_has_the_same_truth_and_a_live_world_has_none(self) -> None:
        """On repetition, in another copy, and for a site alone or among others."""
        for draw in (0, 1):
            world, other = self.world(draw), self.world(draw)
            sites = self._some(world)
            if world.live:
                try:
                    world.truth(sites)
                except FieldboError:
                    continue
                raise AssertionError("a live world returned a truth")
            truth = world.truth(sites)
            assert truth.shape == (len(sites),)
            assert np.isfinite(truth).all()
            assert np.array_equal(truth, world.truth(sites))
            assert np.array_equal(truth, other.truth(sites))
            alone = np.concatenate([world.truth(s[None]) for s in sites[:5]])
            assert np.allclose(alone, truth[:5], rtol=1e-9, atol=1e-12)

    def test_noise_is_never_negative(self) -> None:
        """At any site and sensor level."""
        world = self.world(0)
        for level in range(world.sensor.settings):
            variance = world.sensor.variance(world.domain.sites, level)
            assert variance.shape == (world.domain.size,)
            assert (variance >= 0).all()
            assert np.isfinite(variance).all()

    @staticmethod
    def _repeatable(world: World, seen: Observation) -> dict[str, Any]:
        """Return the plain form of an observation without measured channels such as computing time."""
        plain = to_plain(seen)
        measured = () if world.field is None else world.field.measured
        return {
            **plain,
            "channels": {k: v for k, v in (plain["channels"] or {}).items() if k not in measured},
        }

    def test_an_evaluation_depends_on_its_stream_alone(self) -> None:
        """The same stream gives the same reading; if there is noise, another stream gives another one."""
        world = self.world(0)
        site, position = self._some(world)[[-1, 0]]
        if world.live:
            try:
                self._evaluated(world, site, position)
            except FieldboError:
                return
            raise AssertionError("a live world returned a reading")
        first = self._evaluated(world, site, position)
        assert self._repeatable(world, first) == self._repeatable(
            world, self._evaluated(world, site, position)
        )
        again = self.world(0)
        assert self._repeatable(world, first) == self._repeatable(
            world, self._evaluated(again, site, position)
        )
        if first.noise_variances[0] > 0:
            query = Query(site, id="run/0")
            another = world.evaluate(query, position, 5.0, stream(12, "sensor", 0))
            assert another.values[0] != first.values[0]

    def test_an_evaluation_returns_position_time_and_cost(self) -> None:
        """At the declared cost and duration, or within the range of the world's disturbances."""
        world = self.world(0)
        position = self._some(world)[0]
        for n, site in enumerate([] if world.live else self._some(world)[:10]):
            seen = self._evaluated(world, site, position, n)
            assert seen.order == f"run/{n}"
            assert np.array_equal(seen.position, site)
            assert len(seen.values) == 1
            declared = world.cost.to(position, site[None])[0], world.cost.duration_s(position, site[None])[0]
            if world.disturbances is None:
                assert (seen.cost, seen.times_s[0]) == (declared[0], 5.0 + declared[1])
            else:
                worst = 1.0 + world.disturbances.worst
                assert seen.cost <= worst * declared[0]
                assert seen.times_s[0] <= 5.0 + worst * declared[1]

    def test_a_site_outside_the_domain_is_an_error(self) -> None:
        """A FieldboError."""
        world = self.world(0)
        outside = world.domain.high + world.domain.extent
        try:
            self._evaluated(world, outside, world.domain.sites[0])
        except FieldboError:
            return
        raise AssertionError(f"a reading at {outside.tolist()}, outside the domain")

    def test_a_sample_costs_at_least_its_travel(self) -> None:
        """Costs and durations between reachable sites are finite and not negative."""
        world = self.world(0)
        sites = self._some(world)
        travel, full = world.cost.travel(sites, sites), world.cost.to(sites, sites)
        assert (travel >= 0).all()
        assert (full >= travel).all()
        assert np.isfinite(full).all()
        seconds = world.cost.duration_s(sites, sites)
        assert (seconds >= 0).all()
        assert np.isfinite(seconds).all()

    def test_costs_have_the_shapes_of_their_arguments_and_agree(self) -> None:
        """(N,) from one position, (P, N) from several; the matrix has the same values."""
        world = self.world(0)
        cost, sites = world.cost, self._some(world)
        positions = sites[: max(1, len(sites) // 3)]
        for price in (cost.to, cost.travel, cost.duration_s):
            table = price(positions, sites)
            assert table.shape == (len(positions), len(sites))
            for row, position in zip(table, positions, strict=True):
                assert np.allclose(price(position, sites), row, rtol=1e-12, atol=1e-12)
        matrix = cost.matrix(sites)
        assert matrix.shape == (len(sites), len(sites))
        assert np.allclose(matrix, cost.to(sites, sites), rtol=1e-12, atol=1e-12)

    def test_a_path_begins_and_ends_at_its_sites(self) -> None:
        """It includes both ends."""
        world = self.world(0)
        sites = self._some(world)
        for a, b in zip(sites, sites[::-1], strict=True):
            path = world.cost.path(a, b)
            assert path.ndim == 2
            assert path.shape[1] == world.domain.dimension
            assert np.array_equal(path[0], a)
            assert np.array_equal(path[-1], b)
            assert np.isfinite(path).all()

    def test_a_path_costs_the_sum_of_its_legs_and_avoids_obstacles(self) -> None:
        """An unreachable site costs infinity, and has no path."""
        world = self.world(0)
        sites, fractions = self._spread(world.domain.sites), np.linspace(0.0, 1.0, 101)[:, None]
        for a, b in zip(sites, sites[::-1], strict=True):
            price = world.cost.travel(a, b[None])[0]
            try:
                path = world.cost.path(a, b)
            except FieldboError:
                assert np.isinf(price)
                continue
            legs = list(pairwise(path))
            if self.additive:
                assert np.isclose(price, sum(world.cost.travel(p, q[None])[0] for p, q in legs), rtol=1e-6)
            if world.domain.obstacles:
                between = np.concatenate([p + fractions * (q - p) for p, q in legs])
                assert world.domain.contains(between).all()

    def test_the_declared_rates_of_travel_are_correct(self) -> None:
        """Rates along the axes where travel is straight, and seconds per unit of travel."""
        cost, sites = self.world(0).cost, self._some(self.world(0))
        travel = cost.travel(sites, sites)
        if cost.straight_rates is not None:
            gaps = cost.straight_rates * (sites[None] - sites[:, None])
            assert np.allclose(travel, np.linalg.norm(gaps, axis=2), rtol=1e-9, atol=1e-12)
        if cost.seconds_per_travel is not None:
            seconds = cost.seconds_per_travel * travel
            assert np.allclose(cost.travel_s(sites, sites), seconds, rtol=1e-9, atol=1e-12)
