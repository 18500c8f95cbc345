"""What the READMEs say of two terminals happens: a simulated robot in one, its mission in the other."""

import re
import shlex
from pathlib import Path

import pytest
from peers.network import own_network
from peers.processes import Broker, fieldbo, python

ROOT = Path(__file__).parents[2]


def pairs(*readmes):
    """Each robot and the mission that is run beside it, as the words of two commands."""
    blocks = [b for r in readmes for b in re.findall(r"```sh\n(.*?)```", (ROOT / r).read_text(), re.DOTALL)]
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    robots = [k for k, line in enumerate(lines) if line.startswith("fieldbo robot ")]
    found = [(shlex.split(lines[k])[1:], shlex.split(lines[k + 1])[1:]) for k in robots]
    assert all(mission[0] == "run" and "--vehicle" in mission for _, mission in found)
    return found


MQTT = pairs("README.md", "vehicles/README.md")
MAVLINK = [
    (
        [word.replace("boat-mqtt", "boat-mavlink") for word in robot],
        [*mission[:-1], "vehicles/boat-mavlink.toml"],
    )
    for robot, mission in MQTT
    if mission[-1] == "vehicles/boat-mqtt.toml"
]


TESTED = ["--set", "model.outliers=tested"]
"""How readings of a robot are treated by default."""


def test_the_readmes_have_examples_for_each_link():
    assert len(MQTT) == 3
    assert len(MAVLINK) == 1


@pytest.mark.parametrize(("robot", "mission"), [*MQTT, *MAVLINK], ids=lambda words: words[1])
def test_the_commands_for_two_terminals_visit_the_sites_of_the_simulation(robot, mission, tmp_path):
    short = ["--set", "agent.max_steps=8"]
    told = [*mission, *short, "--out", tmp_path / "real"]
    alone = mission[: mission.index("--vehicle")] + mission[mission.index("--vehicle") + 2 :]
    with own_network(), Broker(tmp_path, port=1883), python("-m", "fieldbo", *robot, cwd=ROOT) as boat:
        boat.wait_for("ready")
        with (
            python("-m", "fieldbo", *told, cwd=ROOT) as run,
            fieldbo(*alone, *short, *TESTED, "--out", tmp_path / "alone") as simulation,
        ):
            assert (run.wait(), simulation.wait()) == (0, 0), run.output + simulation.output
    visited = [(tmp_path / name / "path.csv").read_text() for name in ("real", "alone")]
    assert visited[0] == visited[1]
    assert visited[0].count("\n") > 5
