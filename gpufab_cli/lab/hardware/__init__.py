"""The hardware process: a model of one machine and the two faces it shows to the node."""
