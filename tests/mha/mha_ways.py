"""Every way to ask `mha` the same question: NumPy, torch with weights, the fused kernel, modes."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

import mha


def tensors(x, dtype=None):
    """Arrays as tensors, floats in `dtype`; dicts too; everything else as it is."""
    if isinstance(x, dict):
        return {name: tensors(value, dtype) for name, value in x.items()}
    if not isinstance(x, np.ndarray):
        return x
    tensor = torch.from_numpy(np.array(x))
    return tensor.to(dtype) if dtype and tensor.is_floating_point() else tensor


def layer_of(state, num_heads, *, dropout=0.0, dtype=torch.float64):
    """A layer that holds these parameters (out, in)."""
    d_model, kdim = state["k_proj.weight"].shape
    layer = mha.MultiHeadAttention(
        d_model,
        num_heads,
        kdim=kdim,
        vdim=state["v_proj.weight"].shape[1],
        bias="q_proj.bias" in state,
        dropout=dropout,
        dtype=dtype,
    )
    layer.load_state_dict(tensors(state, dtype))
    return layer


def torch_of(state, num_heads, **options):
    """A module of torch's own with these parameters."""
    d_model, kdim = state["k_proj.weight"].shape
    vdim, bias = state["v_proj.weight"].shape[1], "q_proj.bias" in state
    module = torch.nn.MultiheadAttention(
        d_model,
        num_heads,
        kdim=kdim,
        vdim=vdim,
        bias=bias,
        dtype=torch.float64,
        **{"batch_first": True, **options},
    )
    with torch.no_grad():
        q, k, v = (torch.from_numpy(state[f"{n}_proj.weight"]) for n in "qkv")
        if module.in_proj_weight is not None:
            module.in_proj_weight.copy_(torch.cat([q, k, v]))
        else:
            module.q_proj_weight.copy_(q)
            module.k_proj_weight.copy_(k)
            module.v_proj_weight.copy_(v)
        module.out_proj.weight.copy_(torch.from_numpy(state["out_proj.weight"]))
        if bias:
            packed = np.concatenate([state[f"{n}_proj.bias"] for n in "qkv"])
            module.in_proj_bias.copy_(torch.from_numpy(packed))
            module.out_proj.bias.copy_(torch.from_numpy(state["out_proj.bias"]))
    return module


def projections_of(state):
    """The same parameters for the NumPy half, (in, out)."""
    names = {name: name.split(".") for name in state}
    return mha.Projections(**{f"{kind[0]}_{p[0]}": state[n].T for n, (p, kind) in names.items()})


def close(actual, expected, tol=1e-12):
    """Same shape, and every number within `tol`."""
    actual = actual.detach().double().numpy() if isinstance(actual, torch.Tensor) else actual
    expected = np.asarray(expected, dtype=np.float64)
    assert np.shape(actual) == expected.shape
    np.testing.assert_allclose(np.asarray(actual, np.float64), expected, rtol=0, atol=tol)


def check_attention(query, key, value, *, output=None, weights=None, tol=1e-12, **masks):
    """`attention`, and `torch_attention` on both paths."""
    found = [mha.attention(query, key, value, **masks)]
    qkv, given = [tensors(np.asarray(x)) for x in (query, key, value)], tensors(masks)
    for need_weights in (True, False):
        found.append(mha.torch_attention(*qkv, **given, need_weights=need_weights))
    assert found[-1][1] is None
    for out, w in found:
        if output is not None:
            close(out, output, tol)
        if weights is not None and w is not None:
            close(w, weights, tol)
    return found


MODES = {
    "train": contextlib.nullcontext,
    "eval": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
}


def check_layer(
    state, num_heads, *inputs, output=None, weights=None, tol=1e-12, dropout=0.0, **masks
):
    """`multi_head_attention`, and the layer in every mode on both paths."""
    found = [
        mha.multi_head_attention(
            *inputs, projections=projections_of(state), num_heads=num_heads, **masks
        )
    ]
    layer = layer_of(state, num_heads, dropout=dropout)
    for mode, context in MODES.items():
        layer.train(mode == "train" and not dropout)
        for need_weights in (True, False):
            with context():
                found.append(
                    layer(
                        *(tensors(np.asarray(x)) for x in inputs),
                        **tensors(masks),
                        need_weights=need_weights,
                    )
                )
            assert (found[-1][1] is None) == (not need_weights)
    for out, w in found:
        if output is not None:
            close(out, output, tol)
        if weights is not None and w is not None:
            close(w, weights, tol)
    return found


def run_python(*arguments):
    """What a fresh interpreter prints that finds `mha` where this one found it."""
    root = str(Path(mha.__file__).parents[1])
    path = os.pathsep.join([root, str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
