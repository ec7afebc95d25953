"""Jobs over the hosts of a fabric: one rank a GPU, each next to its own."""
