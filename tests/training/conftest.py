"""A little parallel text that several modules train on."""

import pytest
from datasets import Dataset

from st_xling.data.phrasebook import parallel_phrases


@pytest.fixture(scope="session")
def data() -> dict[str, Dataset]:
    return {"vi-en": parallel_phrases("vi", "en", size=24)}
