"""Paths: the readings of the whole route still to come, planned together and planned again as values come."""
