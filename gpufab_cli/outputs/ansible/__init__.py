"""The inventory that the roles take."""
