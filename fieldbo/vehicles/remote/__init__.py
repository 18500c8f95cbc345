"""A robot at the other end of a link: watchdog, arrival, and which of its reports to believe."""
