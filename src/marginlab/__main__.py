"""``python -m marginlab``."""

from marginlab.cli import main

if __name__ == "__main__":
    main()
