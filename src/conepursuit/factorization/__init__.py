"""Non-negative factorisations X ~ F'G: their losses, and the greedy loop over ranks."""
