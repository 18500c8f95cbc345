"""Policies that seek an optimum in a chain of modules, where changing an early setting is expensive."""
