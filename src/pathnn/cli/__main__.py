"""`python -m pathnn.cli`: the same as `pathnn`."""

from pathnn.cli import main

if __name__ == "__main__":
    main()
