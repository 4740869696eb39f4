"""What is told of the machine, and what is not."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import torch

from st_xling.training.saving import machine_facts


def test_facts_are_of_this_machine_and_json_can_hold_them():
    facts = machine_facts()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["threads"] == torch.get_num_threads()
    assert facts["versions"]["torch"] == torch.__version__
    assert facts["cores"] >= 1 and facts["system"].startswith(platform.system())
    assert ("accelerators" in facts) == (torch.cuda.is_available() or torch.backends.mps.is_available())


def test_no_names_of_hosts_or_folders():
    told = json.dumps(machine_facts())
    assert str(Path.cwd()) not in told and str(Path.home()) not in told.replace("/root/", "")
    assert platform.node() not in told or len(platform.node()) < 4
