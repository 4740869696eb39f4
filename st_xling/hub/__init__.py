"""A model's way to others: its card, and the Hub.

- ``card``: writes a model's card by ``card_template.md`` from the content of its folder (``card_facts``)
- ``push``: which files of a folder are published; pushes them to the Hub, in one commit
- ``dataset``: publishes a file of pairs as a data set, with a card
"""

from st_xling.hub.card import card_text, write_card
from st_xling.hub.card_facts import CardOptions
from st_xling.hub.dataset import DatasetReport, push_dataset
from st_xling.hub.push import HubError, PushReport, published_files, push_model

__all__ = [
    "CardOptions",
    "DatasetReport",
    "HubError",
    "PushReport",
    "card_text",
    "published_files",
    "push_dataset",
    "push_model",
    "write_card",
]
