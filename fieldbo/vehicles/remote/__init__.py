"""Robots at the other end of a link: watchdog, timeouts, arrival, and checks on what they report."""
