"""`python -m halfwidth` is the `halfwidth` command."""

from halfwidth.cli import main

if __name__ == "__main__":
    main()
