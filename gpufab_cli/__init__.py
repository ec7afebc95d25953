"""gpufab: declare a GPU fabric once; provision, prove and audit every node of it."""

__version__ = "0.1.0"
