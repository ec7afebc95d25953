"""What ``gpufab verify`` proves on the nodes: a testinfra suite over SSH.

It reads a node by other means than the node core does (text where the core reads JSON, sysfs through a shell, its own
parsers) and imports nothing of it, so that a mistake there cannot hide itself here.
"""
