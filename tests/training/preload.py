"""What every command would import and load, imported and loaded once in the process that forks those of the tests."""

import gc
import os
import tempfile
import threading

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads of tokenizers would not survive a fork
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import matplotlib.pyplot  # noqa: F401
import torch
import tqdm.auto

import st_xling.cli
import st_xling.hub.card
import st_xling.mining.encoding
import st_xling.mining.pipeline.text_mining
import st_xling.training.run
from st_xling.models import load_encoder, tiny_encoder
from st_xling.training import encoder, trainer  # noqa: F401
from st_xling.utils.identify import main_language

torch.set_num_threads(1)
for kind in (tqdm.std.tqdm, tqdm.auto.tqdm):  # a lock shared with a process that was killed would never open again
    kind.set_lock(threading.RLock())
st_xling.cli.load_app()
main_language(["The house is red."])
with tempfile.TemporaryDirectory() as folder:
    tiny_encoder(["ab cd"] * 3, vocabulary=20, layers=1, hidden_size=8).save_pretrained(folder)
    load_encoder(folder, device="cpu")
# Else the collector of each forked process looks through, and so copies, all that they share.
gc.collect()
gc.freeze()
