"""Stand-ins for the vendors' packages: signed local repositories, for real apt and real dnf.

They bear the names, versions and dependencies of the real ones, and maintainer scripts that try the harm which those
are known for. They hold no drivers and no libraries, and their descriptions say so.
"""
