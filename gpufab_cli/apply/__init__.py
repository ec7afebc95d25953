"""Bring hosts to what is declared: drain, ansible-runner, rounds and batches."""
