"""Raw logs of boats and sondes: read the file, say what its columns hold, and make survey points of it."""
