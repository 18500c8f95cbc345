"""An optimum when some variables may be left to chance, at unknown costs."""
