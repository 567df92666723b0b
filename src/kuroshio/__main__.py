"""`python -m kuroshio`."""

from .cli import main

if __name__ == "__main__":
    main()
