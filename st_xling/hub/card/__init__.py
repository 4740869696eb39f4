"""Model cards: what a folder tells about its model, as the Hub reads it and as people do."""

from st_xling.hub.card.options import CardOptions
from st_xling.hub.card.validate import check_card, validate_online
from st_xling.hub.card.write import card_text, write_card

__all__ = ["CardOptions", "card_text", "check_card", "validate_online", "write_card"]
