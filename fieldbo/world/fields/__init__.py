"""Kinds of ground truth, one per module. Only worlds and metrics may read a field."""
