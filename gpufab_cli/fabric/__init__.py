"""A fabric.yml as those need it that go to its hosts."""
