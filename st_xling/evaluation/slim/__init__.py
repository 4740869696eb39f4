"""Is a slim encoder as good as the one that it was cut from?

``set_apart``  rows of a stream kept out of it, and a sample of those that are not
``parity``     :func:`parity`: cosines to the old embeddings, tokens, translation retrieval, before and after
``report``     what became of a model, as a table and for its ``results.json``
``write``      its folder, whole or not at all
``slim_model`` :func:`slim_model`: from a model and specs of text to that folder
"""

from st_xling.evaluation.slim.parity import Parity, parity
from st_xling.evaluation.slim.report import SlimFigures
from st_xling.evaluation.slim.slim_model import slim_model

__all__ = ["Parity", "SlimFigures", "parity", "slim_model"]
