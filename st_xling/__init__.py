"""Cross-lingual sentence embeddings for the Hugging Face ecosystem."""

from st_xling._version import __version__
from st_xling.metrics.shims import write_shims

__all__ = ["__version__"]

write_shims()
