"""Multi-head attention to read, run and copy: in NumPy, in torch, and held against torch's own."""

from typing import TYPE_CHECKING, Any

from .functions import (
    Projections,
    attention,
    merge_heads,
    multi_head_attention,
    softmax,
    split_heads,
    unpack_qkv,
)
from .report import Comparison, ParityReport, compare, parity

if TYPE_CHECKING:
    from .layer import MultiHeadAttention, masks_from_torch, torch_attention

__all__ = [
    "Comparison",
    "MultiHeadAttention",
    "ParityReport",
    "Projections",
    "attention",
    "compare",
    "masks_from_torch",
    "merge_heads",
    "multi_head_attention",
    "parity",
    "softmax",
    "split_heads",
    "torch_attention",
    "unpack_qkv",
]


def __getattr__(name: str) -> Any:
    """Load torch at the first use of a name that needs it (PEP 562)."""
    if name in ("MultiHeadAttention", "masks_from_torch", "torch_attention"):
        from . import layer

        return getattr(layer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
