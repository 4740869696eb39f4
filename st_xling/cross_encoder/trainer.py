"""The host's trainer of cross-encoders, which stops at what is not a number and resumes adapters."""

from __future__ import annotations

from sentence_transformers.cross_encoder import CrossEncoderTrainer

from st_xling.training.guarded import GuardedTrainer


class RankingTrainer(GuardedTrainer, CrossEncoderTrainer):
    """``CrossEncoderTrainer`` with what :class:`GuardedTrainer` adds. Takes the host's arguments."""
