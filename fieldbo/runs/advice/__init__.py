"""Advise on the battery of a mission, from simulated runs in fields that are drawn from its belief."""
