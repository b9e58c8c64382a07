"""Scores what was made: programs by hidden tests, pages by their looks."""
