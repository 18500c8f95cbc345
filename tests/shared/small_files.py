"""Texts of small world and mission files, one key on a line, for tests that write them or change them."""

import json

GP_DRAW = {"kind": "gp-draw", "length_scales": [3, 3]}
EUCLIDEAN = {"kind": "euclidean", "sampling": 1}


def world_text(
    *axes, title="a field", domain=None, field=GP_DRAW, value=None, cost=EUCLIDEAN, sensor=None, **more
):
    """Return the file of a grid; each axis is a name, its low and high end in metres, and the count."""
    sides = [{"name": name, "unit": "m", "low": low, "high": high, "count": n} for name, low, high, n in axes]
    tables = {
        "domain": {"kind": "grid", "axes": sides, **(domain or {})},
        "field": field,
        "value": value,
        "cost": cost,
        "sensor": sensor or {"noise_sd": 0.1},
    }
    return toml_text({"format": 1, "version": "1", "title": title, "cost_unit": "s", **more, **tables})


def mission_text(world="tiny", *, threshold=None, goal=None, battery, agent=None, policy="truvar", **more):
    """Return the file of a mission: of a level set where there is a threshold, else of an optimum."""
    question = {"kind": "optimum" if threshold is None else "level-set", "threshold": threshold, "goal": goal}
    first = {key: setting for key, setting in more.items() if not isinstance(setting, dict)}
    tables = {key: setting for key, setting in more.items() if isinstance(setting, dict)}
    policy = {"kind": policy} if isinstance(policy, str) else policy
    agent = {"battery": battery, **(agent or {})}
    return toml_text(
        {
            "format": 1,
            "world": world,
            **first,
            "question": question,
            "agent": agent,
            "policy": policy,
            **tables,
        }
    )


def toml_text(content):
    """Return TOML with each table under its header and what lies deeper within its line; None is left out."""
    lines = []
    for key, setting in content.items():
        if isinstance(setting, dict):
            told = {name: one for name, one in setting.items() if one is not None}
            lines += [f"[{key}]", *(f"{name} = {_inline(one)}" for name, one in told.items())]
        elif setting is not None:
            lines.append(f"{key} = {_inline(setting)}")
    return "\n".join([*lines, ""])


def _inline(setting):
    if isinstance(setting, dict):
        return "{ " + ", ".join(f"{name} = {_inline(one)}" for name, one in setting.items()) + " }"
    if isinstance(setting, list | tuple):
        between = ",\n        " if any(isinstance(one, dict) for one in setting) else ", "
        return "[" + between.join(_inline(one) for one in setting) + "]"
    return json.dumps(setting, ensure_ascii=False)
