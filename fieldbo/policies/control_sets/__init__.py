"""Policies that seek an optimum where some variables may be left to chance, at unknown or declared costs."""
