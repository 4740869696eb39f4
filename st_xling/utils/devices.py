"""Names of devices."""

from __future__ import annotations


def check_device(name: str) -> None:
    """Raise unless this machine and this build of PyTorch have the device.

    Args:
        name: As PyTorch spells it: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``.
    Raises:
        ValueError: For a name that is none, or a device that is not there.
    """
    import torch

    try:
        torch.zeros(1, device=torch.device(name))
    except Exception as error:  # AssertionError, RuntimeError or NotImplementedError, by device
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        there = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        there += ["mps"] if torch.backends.mps.is_available() else []
        raise ValueError(
            f"device must be one of this machine's ({', '.join(there)}): got {name!r} ({reason})."
        ) from error
