"""Explain a query from the record: the best candidates, their costs, and why the first was chosen."""
