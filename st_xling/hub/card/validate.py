"""Whether a card is one: read back strictly here, and asked of the Hub."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import ModelCard, ModelCardData, constants

from st_xling.utils.hub_requests import limited_requests


def check_card(text: str, data: ModelCardData) -> None:
    """Read a card back by the Hub's own reader and compare.

    Raises:
        ValueError: If its metadata do not come back as they went in, or the reader would write another text.
    """
    card = ModelCard(text, ignore_metadata_errors=False)
    if card.data.to_dict() != data.to_dict():
        raise ValueError(f"the card's metadata do not read back as they are: got {card.data.to_dict()}.")
    if str(card) != text:
        raise ValueError("the card would change when the Hub's client saves it.")


def validate_online(path: str | Path) -> None:
    """Ask the Hub's validator, at ``HF_ENDPOINT``, about a card.

    Args:
        path: ``README.md`` of a model.
    Raises:
        ValueError: What the Hub has against it.
        OSError: When the Hub cannot be asked.
    """
    card = ModelCard.load(Path(path), ignore_metadata_errors=False)
    try:
        with limited_requests(total_s=60):
            card.validate()
    except ValueError as error:
        raise ValueError(f"{path}: the Hub says: {str(error).strip()}; mend it with st-xling card.") from error
    except Exception as error:  # the client's own error for a broken connection differs from version to version
        reason = (str(error).splitlines() or [""])[0]
        raise OSError(
            f"{path} was not validated: {constants.ENDPOINT} cannot be asked ({type(error).__name__}: {reason}); check "
            "the network, HF_ENDPOINT and HF_HUB_OFFLINE, or leave --validate out."
        ) from error
