"""An audit's report for people and for machines."""
