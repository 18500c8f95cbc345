"""Arrays, random streams, threads and compiled loops: what every other package builds on."""
