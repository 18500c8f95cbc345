"""A vehicle file for MAVLink, whose `link` is to be filled in, and its frame."""

from fieldbo.domain.frame import Frame, Origin

BOAT = """format = 1
[link]
kind = "mavlink"
{link}
[frame]
origin = {{ latitude = 47.31, longitude = 8.58, altitude = 406 }}
along = "east"
left = "north"
[battery]
full = 1e6
[arrival]
within = 0.1
"""
FRAME = Frame(Origin(47.31, 8.58, 406.0), along="east", left="north")
