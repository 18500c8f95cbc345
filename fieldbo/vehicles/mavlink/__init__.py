"""Robots with an autopilot that speaks MAVLink."""
