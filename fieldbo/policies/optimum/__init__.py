"""Where is the field largest or smallest? Policies for finite sites and boxes."""
