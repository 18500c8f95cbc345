"""Write a new world and its first mission, from a survey or from a table of trials."""
