"""Canaries: each fails first when a library moves or changes a private part that we use."""

import dataclasses

import pytest
from sentence_transformers import SentenceTransformerTrainingArguments
from sentence_transformers.cross_encoder import CrossEncoderTrainingArguments

from st_xling.training.settings import _ARGUMENT_FILES
from st_xling.utils.private import dataclass_fields


@pytest.mark.parametrize("kind", [SentenceTransformerTrainingArguments, CrossEncoderTrainingArguments])
def test_training_arguments_are_found_without_importing_them(kind: type) -> None:
    """Names of training arguments are read in the libraries' files, so that a typing error needs no torch."""
    names = {name for package, module in _ARGUMENT_FILES for name in dataclass_fields(package, module)}
    assert {entry.name for entry in dataclasses.fields(kind)} <= names


def test_a_module_that_is_not_there_has_no_names() -> None:
    assert dataclass_fields("transformers", "no_such_file.py") == dataclass_fields("no_such_package", "a.py") == []
