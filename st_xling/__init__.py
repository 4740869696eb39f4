"""Cross-lingual sentence embeddings for the Hugging Face ecosystem."""

from st_xling._version import __version__

__all__ = ["__version__"]
