"""``python -m gpufab_cli``: the same as ``gpufab``."""

from gpufab_cli.cli import main

if __name__ == "__main__":
    main()
