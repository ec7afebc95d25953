"""Rows of small values that are cheap to draw."""

from hypothesis import strategies as st


def octets(count, value):
    """A tuple of so many values, each made of a byte: one draw, where a list is a draw an item."""
    return st.binary(min_size=count, max_size=count).map(lambda drawn: tuple(map(value, drawn)))


bits = st.integers(0, 255).map(lambda mask: tuple(bit for bit in range(8) if mask >> bit & 1))
"""Any of the numbers from 0 to 7, in their order."""
