"""What a fabric is written as for others."""
