"""A resolved fabric and what features want of its hosts, as commands take them."""
