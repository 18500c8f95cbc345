"""Write a new world and mission: from a survey, or from a table of a cell's trials."""
