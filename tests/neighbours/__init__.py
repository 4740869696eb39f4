"""Files and models of ours, opened by the tools that people use next to us: ``python -m tests.neighbours``.

A module a kind of file; a function a meeting, see :func:`~tests.neighbours.meeting.meeting`. They install other tools,
and are run by hand.
"""
