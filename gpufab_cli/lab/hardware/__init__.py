"""The hardware process: a model of one machine and the two faces it shows to the node."""

# How long (seconds) the kernel may keep a name in /sys: long enough for one walk over the tree, short enough to hide
# no change.
NAME_CACHE_S = 0.2
