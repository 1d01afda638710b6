"""`python -m heddle ARGS` is the program `heddle ARGS`."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).parent / "_prefix/bin/heddle"
    try:
        os.execv(program, [str(program), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"heddle: {program} cannot be run: {error.strerror}. Install the wheel again")


if __name__ == "__main__":
    main()
