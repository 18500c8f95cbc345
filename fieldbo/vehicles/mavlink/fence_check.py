"""What contradicts a fence, and a fence in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fieldbo._numerics.arrays import Array
from fieldbo.domain.places import place_text
from fieldbo.errors import InputError, counted
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.mavlink.fence_storage import too_many
from fieldbo.vehicles.mavlink.geofence import GeoFence, room_m
from fieldbo.vehicles.mavlink.settings import MavlinkSettings

_MOST_TRIPS = 200
"""How many trips home are checked."""

_MOST_NAMES = 3
"""How many names are listed."""


def check_geofence(fence: GeoFence, mission: Mission) -> list[str]:
    """Return warnings about sites that a fence excludes.

    Raises
    ------
    InputError
        The fence excludes a start, a home, all sites, or the trip from a start home.
    """
    ground, world = fence.ground, mission.world
    for spec in mission.vehicles:
        for name, place in (("start", spec.start), ("home", spec.home)):
            if place is not None and (why := fence.objection(ground.geodetic(place)[0])) is not None:
                raise _contradiction(
                    f"the {name} {place_text(world.domain, place)} is not allowed: {why}", name
                )
        if (why := _objection_home(fence, mission, spec.start, spec.home)) is not None:
            raise _contradiction(f"the fence allows no trip home from the start: {why}", "trip home")
    sites = world.domain.sites
    inside = fence.holds(ground.geodetic(sites))
    if not inside.any():
        raise _contradiction(f"the fence excludes all {counted(len(inside), 'site')}", "sites")
    if inside.all():
        return []
    warnings = [
        f"the fence excludes {int((~inside).sum())} of {len(inside)} sites: orders to them will be rejected"
    ]
    some = sites[inside][:: 1 + int(inside.sum()) // _MOST_TRIPS]
    cut_off = [
        site
        for site in some
        for spec in mission.vehicles
        if _objection_home(fence, mission, site, spec.home) is not None
    ]
    if cut_off:
        warnings.append(
            f"the trip home leaves the fence from some sites, such as {place_text(world.domain, cut_off[0])}"
        )
    return warnings


def _contradiction(problem: str, what: str) -> InputError:
    return InputError(
        problem,
        expected=f"a fence around the {what}",
        where="link.fence",
        fix="enlarge the fence of the vehicle file, or correct the origin in [frame]",
    )


def _objection_home(fence: GeoFence, mission: Mission, site: Array, home: Array | None) -> str | None:
    """Return why the trip home from a site (d,) must not be taken; None if it may, or there is no home."""
    if home is None:
        return None
    places = fence.ground.geodetic(mission.world.cost.path(site, home))
    return fence.objection_on(places[1:], places[0])


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")


def describe_geofence(fence: GeoFence, mission: Mission, link: MavlinkSettings) -> list[str]:
    """Return a fence in words, and warnings."""
    upload = link.upload_fence
    clearance, unit = mission.world.domain.clearance, mission.world.domain.axes[0].unit
    exclusions = [zone.name for zone in fence.zones if not zone.inclusion]
    parts = []
    if fence.inclusion is not None:
        parts.append(f"inclusion of {fence.inclusion.shape(fence.ground).area:.0f} m2")
        named = f" ({_few(exclusions)})" if exclusions else ""
        parts.append(counted(len(exclusions), "exclusion") + named)
        room = room_m(mission.world.domain)
        parts.append(f"{room:g} {unit} from routes, which keep a clearance of {clearance:g} {unit}")
    limits = [
        f"{word} {value:g} m"
        for word, value in (("from", fence.limits.lowest), ("up to", fence.limits.highest))
        if math.isfinite(value)
    ]
    parts += [f"altitudes {' '.join(limits)}"] if limits else []
    if not fence.zones:  # autopilots hold zones; fieldbo alone checks altitudes
        use = "checked by fieldbo alone" if parts else "nothing to compare or upload"
    else:
        use = "uploaded before the first order" if upload else "only compared with the vehicle's own"
    lines = [f"  fence     {', '.join(parts) or 'none'}; {use}"]
    if fence.left_out:
        missing = f"{counted(len(fence.left_out), 'obstacle')} ({_few(fence.left_out)})"
        lines.append(f"  fence     omits {missing}: no area on the ground expresses them; routes avoid them")
    warnings = [*check_geofence(fence, mission), *filter(None, [too_many(fence, link)])]
    if upload and clearance == 0.0 and fence.zones:
        warnings.append(
            "with no clearance, the slightest position error at the edge of the world breaches the fence: "
            "set clearance and outline in [domain]"
        )
    return lines + [f"warning: {warning}" for warning in warnings]
