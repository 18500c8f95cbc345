"""Robots over MAVLink: guided mode, fences and flight plans."""
