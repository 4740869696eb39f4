"""One sub-command a file: ``add_parser`` says what it takes, ``run`` calls one library function and prints its figures.

Nothing heavy may be imported before ``run``: ``--help`` comes at once.
"""
