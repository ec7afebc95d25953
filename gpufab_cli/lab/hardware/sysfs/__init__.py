"""The /sys face: which files a machine has, what they read and what writing them does."""
