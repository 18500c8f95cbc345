"""Small runs whose pages are tested, some with names that would be code if a page did not escape them."""

import json
import re
from base64 import b64decode

import numpy as np
from working_folder import write

from fieldbo.agent.agent import Agent
from fieldbo.messages import Lost, Rejected
from fieldbo.mission.load import load_mission
from fieldbo.runs.folder import begin

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>&amp;\u2028"
"""Would run, or end the page's data, if it were not escaped."""

WORLD = """format = 1
version = "1"
title = {name}
cost_unit = "s"
[value]
name = {name}
unit = "mg"
[domain]
kind = "grid"
axes = [
    {{ name = "east", unit = "m", low = 0, high = 90, count = 10 }},
    {{ name = "north", unit = "m", low = 0, high = 60, count = 7 }},
]
clearance = 1
obstacles = [{{ name = {name}, low = [35, 15], high = [55, 35] }}]
[field]
kind = "gp-draw"
length_scales = [30, 30]
[cost]
kind = "euclidean"
sampling = 2
[sensor]
noise_sd = 0.05
"""
MISSION = """format = 1
title = {name}
world = "pond"
{question}
[agent]
battery = 400
home = [0, 0]
max_steps = 8
[policy]
kind = "truvar"
[model]
learn = false
length_scales = [30, 30]
"""
LEVEL_SET = '[question]\nkind = "level-set"\nthreshold = 0.3'


def pond(folder, name="algae", question=LEVEL_SET):
    """Write a world and a mission with a name into a folder; return the mission."""
    quoted = json.dumps(name)
    write(folder / "pond" / "world.toml", WORLD.format(name=quoted))
    write(folder / "pond.toml", MISSION.format(name=quoted, question=question))
    return load_mission(str(folder / "pond.toml"))


def carried_out(mission, folder, *, rejected=(), lost=(), orders=None, end=True, reason="too shallow"):
    """Carry out a mission in its simulated world, and record it; return the run folder.

    Parameters
    ----------
    mission : Mission
    folder : Path
        The run folder to make.
    rejected, lost : sequence of int
        Numbers of orders that are.
    orders : int, optional
        Stop after so many orders, as if the process had died.
    end : bool
        Whether to record the end.
    reason : str
        Of rejections and losses.
    """
    made, record = begin(mission, folder)
    agent, draws = Agent(mission, record.name), np.random.default_rng(0)
    with record:
        while orders is None or agent.asks < orders:
            order = agent.ask()
            if not hasattr(order, "site"):
                if end:
                    record.end(order.reason)
                break
            record.order(order, agent.memory, agent.why)
            number = int(order.id.rpartition("/")[2])
            if number in rejected:
                event = Rejected(order.id, reason)
            elif number in lost:
                event = Lost(order.id, reason)
            elif hasattr(order, "level"):
                value = float(mission.world.truth(order.site[None])[0]) + 0.01 * draws.normal()
                event = order.observed(value, noise_variance=0.0025)
            else:
                event = order.observed()
            record.event(event)
            agent.tell(event)
    return made


def data_of(page):
    """Return the data in a page."""
    text = page.decode()
    found = re.search(r'<script type="application/json" id="run-data">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def unpacked(packed):
    """Return the values of a packed layer."""
    whole = np.frombuffer(b64decode(packed["values"]), dtype="<u2").astype(float)
    values = packed["low"] + (packed["high"] - packed["low"]) * whole / 65534
    return np.where(whole == 65535, np.nan, values)
