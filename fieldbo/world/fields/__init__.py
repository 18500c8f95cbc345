"""Kinds of ground truth, one per module. Only worlds and metrics read a field."""
