"""Where is the field above or below a threshold? TruVaR and its rivals."""
