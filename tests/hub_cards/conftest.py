"""All models of ``hub_cards/``, made once."""

from __future__ import annotations

import pytest

from tests.hub_cards.making import make_models


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Name of a run → its card, as the commands leave it."""
    return make_models(tmp_path_factory.mktemp("hub-cards"))
