"""How hosts are reached: one command on one host, and many hosts at once."""
