"""How a node is put together: its matrix, the roles of its ports, what is odd about it, and a picture."""
