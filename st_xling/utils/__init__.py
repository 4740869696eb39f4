"""Shared by all layers; nothing here imports another package of st_xling.

Files and folders:

- ``io``: files that are complete or absent, locks, JSON files
- ``resumable``: a folder from which a long command resumes after a kill
- ``paths``: which files a command reads and writes, and what of their names is published
- ``file_endings``: formats and compressions by the ending of a name
- ``text``, ``json_text``: lines and JSON of users' files

The command line and messages:

- ``options``: choices of options, and checks that name what is wrong with a value
- ``lora_options``, ``built_sizes``: options that are checked without torch
- ``terminal``: bars, log lines and errors on stderr
- ``tables``, ``score_histogram``: results as plain text
- ``signature``: what a metric depends on, in one line
- ``python_code``: Python code in lines of readable length

Languages:

- ``languages``: codes and names
- ``identify``: the language of a text; ``identifiable``: the part of a text that shows it

Models and hosts:

- ``lazy_model``: a model that is loaded when it is needed
- ``cosines``: cosines, and the nearest sentence by them
- ``precision``: whether bfloat16 is faster than float32
- ``distributed``: several processes that train as one
- ``private``: private API of other libraries
- ``lazy``: public names that are imported on first use
"""
