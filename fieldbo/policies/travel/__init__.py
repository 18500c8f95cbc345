"""An optimum when travel is paid by distance: one-step policies and rollouts."""
