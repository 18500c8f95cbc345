"""Where does the field exceed a threshold? TruVaR and its rivals."""
