"""Latitude and longitude at the edges of a world with a CRS: what is read, printed and typed."""
