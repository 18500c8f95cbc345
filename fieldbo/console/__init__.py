"""The console: watch a run in a browser, steer it, and enter readings by hand."""
