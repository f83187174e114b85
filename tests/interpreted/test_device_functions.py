"""What the kernels compute number by number: on a GPU if there is one, else in Triton's interpreter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # exp2 of 3000


@pytest.fixture(params=["interpreted", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "interpreted":
        request.getfixturevalue("interpreted")
        return "cpu"
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"


def units(value: Tensor, truth: Tensor) -> float:
    """The largest difference in units of the truth's last place."""
    place = np.spacing(np.maximum(truth.abs().numpy(), 1e-30).astype(np.float32))
    return float(((value.cpu().double() - truth).abs() / torch.from_numpy(place)).max())


def test_activations(device: str) -> None:
    from device_functions import activate

    near = torch.linspace(-12, 12, 2**16 - 8)
    x = torch.cat([near, torch.tensor([-1e3, -1e-6, -0.0, 0.0, 1e-30, 1e-6, 80.0, 1e3])]).to(device)
    ours = torch.empty_like(x), torch.empty_like(x)
    activate[(16,)](x, *ours, BLOCK=2**12)
    exact = x.cpu().double()
    for value, truth, most in zip(ours, (exact.sigmoid(), exact.tanh()), (20, 8), strict=True):
        assert (value.cpu().double() - truth).abs().max() <= 4e-7
        assert units(value, truth) <= most
        assert value[-1] == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_activations_of_what_is_not_finite(bad: float, device: str) -> None:
    from device_functions import activate

    x = torch.full((16,), bad, device=device)
    ours = torch.empty_like(x), torch.empty_like(x)
    activate[(1,)](x, *ours, BLOCK=16)
    for value, truth in zip(ours, (x.sigmoid(), x.tanh()), strict=True):
        assert torch.equal(value.nan_to_num(7), truth.nan_to_num(7))


def test_a_number_is_the_sum_of_three_halves(device: str) -> None:
    from device_functions import halves

    torch.manual_seed(0)
    x = (torch.randn(1024) * torch.logspace(-20, 20, 1024)).to(device)
    parts = torch.empty(4, 1024, device=device)
    halves[(1,)](x, parts, BLOCK=1024)
    assert not parts[3].any()
    assert (parts[1].abs() <= x.abs() * 2**-7).all()
    assert torch.equal(parts[:3].flip(0).double().sum(dim=0).float(), x)
