"""Training by recipes: an encoder, a sum of losses and data, with checkpoints from which it resumes.

- ``arguments``, ``options``: sentence-transformers' training arguments, with ours
- ``recipe``, ``recipe_files``: YAML → losses, training arguments, data and model options
- ``script``: a run by a recipe as a Python script of the trainer
- ``settings``: checks of these that need no torch
- ``encoder``, ``retriever``, ``adapter``, ``reranker``: prepare data, build model and losses, fit, save
- ``run``, ``run_folder``: the context of a run, and the files from which a killed one resumes
- ``trainer``: trainers that stop at NaN, save the loss's own parameters and train in several processes
- ``warm_up``: new heads learn before the rest of the model
- ``development``: development scores with an interval
- ``hard_negatives``, ``swap_negatives``, ``teacher``, ``replay``: functions from a data set to a data set with more
  columns
- ``new_rows``: only the rows of new pieces learn
- ``mixture``, ``sentence_vectors``: training text as one data set, vectors that are cached
- ``cross_lingual_transfer``: fine-tuning on English labels, tested in other languages
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.training.adapter import load_adapter_recipe as load_adapter_recipe
    from st_xling.training.adapter import train_adapter as train_adapter
    from st_xling.training.arguments import CrossLingualTrainingArguments as CrossLingualTrainingArguments
    from st_xling.training.arguments import RankingTrainingArguments as RankingTrainingArguments
    from st_xling.training.cross_lingual_transfer import transfer as transfer
    from st_xling.training.encoder import build_loss as build_loss
    from st_xling.training.encoder import train as train
    from st_xling.training.hard_negatives import add_hard_negatives as add_hard_negatives
    from st_xling.training.new_rows import TrainRowsCallback as TrainRowsCallback
    from st_xling.training.new_rows import rows_recipe as rows_recipe
    from st_xling.training.new_rows import train_new_rows as train_new_rows
    from st_xling.training.options import ModelOptions as ModelOptions
    from st_xling.training.recipe import Recipe as Recipe
    from st_xling.training.recipe import load_recipe as load_recipe
    from st_xling.training.recipe_files import recipe_names as recipe_names
    from st_xling.training.replay import add_replay as add_replay
    from st_xling.training.replay import load_kept_texts as load_kept_texts
    from st_xling.training.reranker import RankingTrainer as RankingTrainer
    from st_xling.training.retriever import RetrievalSources as RetrievalSources
    from st_xling.training.retriever import load_retrieval_recipe as load_retrieval_recipe
    from st_xling.training.retriever import train_retrieval as train_retrieval
    from st_xling.training.run import TrainingInterrupted as TrainingInterrupted
    from st_xling.training.run import TrainingResult as TrainingResult
    from st_xling.training.swap_negatives import add_swap_negatives as add_swap_negatives
    from st_xling.training.teacher import add_teacher_vectors as add_teacher_vectors
    from st_xling.training.trainer import CrossLingualTrainer as CrossLingualTrainer
    from st_xling.training.trainer import NotFiniteError as NotFiniteError
    from st_xling.training.warm_up import warm_up_heads as warm_up_heads
    from st_xling.utils.lora_options import LoraOptions as LoraOptions

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
