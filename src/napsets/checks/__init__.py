"""Checks of arguments before anything is computed; an error names the argument."""
