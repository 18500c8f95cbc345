"""Tables of readings in files: what instruments and programs write, as named columns with units and lines."""
