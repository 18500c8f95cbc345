"""The fields of the shipped worlds: lake, wall, networks and factory cells."""
