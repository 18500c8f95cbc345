"""Explain a decision from the record: which sites were best, and why this one."""
