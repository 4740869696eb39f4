"""A model's way to others: its card, and the Hub.

``card``         writes a model's card from what its folder holds
``known_files``  what each file of a published model is
``files``        which files of a folder are published
``push``         a model's folder to the Hub, in one commit
``spaces``       a metric's folder to the Hub, as a Space
``commit``       the one commit
``hub_errors``   what goes wrong on the way, with what to do
``load``         a model from a folder or the Hub, that keeps its card, figures, thresholds and pictures
"""

from st_xling.hub.card import CardOptions, card_text, write_card
from st_xling.hub.files import PublishedFile, published_files
from st_xling.hub.hub_errors import HubError
from st_xling.hub.load import load
from st_xling.hub.push import PushReport, push_model
from st_xling.hub.spaces import push_metric

__all__ = [
    "CardOptions",
    "HubError",
    "PublishedFile",
    "PushReport",
    "card_text",
    "load",
    "published_files",
    "push_metric",
    "push_model",
    "write_card",
]
