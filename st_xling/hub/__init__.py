"""Cards of models and data sets, and publishing on the Hub.

- ``card``: writes a model's card by ``card_template.md`` from the content of its folder (``card_facts``)
- ``eval_results``: the results of a card that the Hub's leaderboards read
- ``push``: which files of a folder are published; pushes them to the Hub, in one commit
- ``dataset``: publishes a file of pairs as a data set, with a card
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.hub.card import card_text as card_text
    from st_xling.hub.card import write_card as write_card
    from st_xling.hub.card_facts import CardOptions as CardOptions
    from st_xling.hub.dataset import DatasetReport as DatasetReport
    from st_xling.hub.dataset import push_dataset as push_dataset
    from st_xling.hub.eval_results import eval_result_entries as eval_result_entries
    from st_xling.hub.push import HubError as HubError
    from st_xling.hub.push import PushReport as PushReport
    from st_xling.hub.push import published_files as published_files
    from st_xling.hub.push import push_model as push_model

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
