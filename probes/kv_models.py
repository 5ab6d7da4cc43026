"""How many bytes and pieces a KV cache is: the formulas, and the models whose configuration is published.

Formulas as kvbench and vLLM use them (ground truth: kvprobe 1.1 and 1.2), KiB and GiB as powers of two. What they do
not know, and the page says: sliding-window and state-space layers stop growing at their window, so for such a
model a long context costs less than is shown (`overstates`).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Layout(StrEnum):
    """How a paged KV cache lies in memory, which decides the number of pieces."""

    PER_LAYER = "per-layer"  # K and V of each layer are regions of their own (vLLM's default)
    CROSS_LAYER = "cross-layer"  # a block is contiguous over all layers: one piece a block


@dataclass(frozen=True, slots=True, kw_only=True)
class KVModel:
    """One model's published configuration, as far as its KV cache depends on it."""

    name: str  # stands in a profile, `model:<name>@<tokens>`: lower case, no blanks
    title: str
    layers: int
    kv_heads: int = 0  # MHA, GQA, MQA
    head_dim: int = 0
    latent_dim: int = 0  # MLA: kv_lora_rank + qk_rope_head_dim; then there are no heads, and K and V are one
    dtype_bytes: int = 2  # fp16, bf16: 2; fp8, int8: 1
    overstates: bool = False  # some layers look at a window only

    @property
    def is_mla(self) -> bool:
        """Whether keys and values are one latent vector, which every tensor-parallel rank holds whole."""
        return self.latent_dim > 0

    def bytes_per_token(self) -> int:
        """Bytes of one token over all layers and heads: what leaves all ranks together (MLA: one rank)."""
        if self.is_mla:
            return self.layers * self.latent_dim * self.dtype_bytes
        return 2 * self.layers * self.kv_heads * self.head_dim * self.dtype_bytes


@dataclass(frozen=True, slots=True)
class Transfer:
    """What one tensor-parallel rank sends to its peer."""

    total_bytes: int
    piece_bytes: int
    pieces: int


# Config values: LMCache kv_cache_calculator and kvbench; Kimi-K2 from two public reports (kvprobe 1.1).
MODELS: Final[tuple[KVModel, ...]] = (
    KVModel(name="llama-3.1-8b", title="Llama-3.1-8B", layers=32, kv_heads=8, head_dim=128),
    KVModel(name="qwen3-8b", title="Qwen3-8B", layers=36, kv_heads=8, head_dim=128),
    KVModel(name="qwen3-30b-a3b", title="Qwen3-30B-A3B", layers=48, kv_heads=4, head_dim=128),
    KVModel(name="qwen3-32b", title="Qwen3-32B", layers=64, kv_heads=8, head_dim=128),
    KVModel(name="llama-3.1-70b", title="Llama-3.1-70B", layers=80, kv_heads=8, head_dim=128),
    KVModel(name="mistral-large-2407", title="Mistral-Large-2407", layers=88, kv_heads=8, head_dim=128),
    KVModel(name="glm-4.6", title="GLM-4.5/4.6", layers=92, kv_heads=8, head_dim=128),
    KVModel(name="llama-3.1-405b", title="Llama-3.1-405B", layers=126, kv_heads=8, head_dim=128),
    KVModel(name="qwen3-235b-a22b", title="Qwen3-235B-A22B", layers=94, kv_heads=4, head_dim=128),
    KVModel(name="qwen3-coder-480b", title="Qwen3-Coder-480B", layers=62, kv_heads=8, head_dim=128),
    KVModel(name="gpt-oss-120b", title="gpt-oss-120b", layers=36, kv_heads=8, head_dim=64, overstates=True),
    KVModel(name="deepseek-v3", title="DeepSeek-V3/R1, Kimi-K2 (MLA)", layers=61, latent_dim=576),
    KVModel(name="deepseek-v3-fp8", title="DeepSeek-V3/R1 in fp8", layers=61, latent_dim=576, dtype_bytes=1),
)
BY_NAME: Final = {model.name: model for model in MODELS}


def ranks_that_split(model: KVModel, *, tensor_parallel: int) -> int:
    """Over how many ranks the bytes of a token are divided: beyond the KV heads they are replicated, MLA always is."""
    if tensor_parallel < 1:
        raise ValueError(f"Tensor parallelism of {tensor_parallel} is no number of ranks.")
    return 1 if model.is_mla else min(tensor_parallel, model.kv_heads)


def transfer(
    model: KVModel, *, tokens: int, tensor_parallel: int = 1, block_tokens: int = 16, layout: Layout = Layout.PER_LAYER
) -> Transfer:
    """What one rank moves for a prompt of `tokens`; whole blocks travel, so the last one may be partly empty.

    PER_LAYER pieces = 2 (K and V; MLA 1) x layers x blocks; piece = block x heads of a rank x head_dim x dtype.
    """
    if tokens < 1 or block_tokens < 1:
        raise ValueError(f"{tokens} tokens in blocks of {block_tokens} are nothing that could be moved.")
    blocks = -(-tokens // block_tokens)
    per_block = block_tokens * model.bytes_per_token() // ranks_that_split(model, tensor_parallel=tensor_parallel)
    pieces_of_a_block = 1 if layout is Layout.CROSS_LAYER else model.layers * (1 if model.is_mla else 2)
    return Transfer(blocks * per_block, per_block // pieces_of_a_block, blocks * pieces_of_a_block)


def wire_floor_ms(*, total_bytes: int, line_gbps: float) -> float:
    """The least time on a line of that rate (10^9 bit/s): every byte once, nothing else."""
    return total_bytes * 8 / (line_gbps * 1e9) * 1e3


def cost_ms(*, total_bytes: int, pieces: int, gbps: float, per_piece_ns: float = 0.0) -> float:
    """T(N) = bytes / measured rate + pieces x cost of a piece (kvprobe 2.2), in ms.

    With a rate measured at the same piece size `per_piece_ns` is 0: its cost is in the rate already.
    """
    if gbps <= 0:
        raise ValueError("A cost needs a measured rate above 0.")
    return total_bytes * 8 / (gbps * 1e9) * 1e3 + pieces * per_piece_ns / 1e6
