"""Arrays, random streams, threads, compiled loops, climbs and caches, which every other package uses."""
