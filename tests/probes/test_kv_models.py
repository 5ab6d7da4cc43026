"""The formulas against the published table, and against a model that is not in it."""

import pytest

from probes.kv_models import BY_NAME, MODELS, KVModel, Layout, cost_ms, ranks_that_split, transfer, wire_floor_ms

KIB, MIB, GIB = 2**10, 2**20, 2**30

# kvprobe 1.1: B/token; piece at TP1 and at the TP given; MiB of 16 tokens; GiB at 8k, 32k, 128k; floor ms 8k, 32k
PUBLISHED = [
    ("llama-3.1-8b", 131_072, 32 * KIB, (8, 4 * KIB), 2.0, (1.0, 4, 16), (21, 86)),
    ("qwen3-8b", 147_456, 32 * KIB, (8, 4 * KIB), 2.25, (1.13, 4.5, 18), (24, 97)),
    ("qwen3-30b-a3b", 98_304, 16 * KIB, (4, 4 * KIB), 1.5, (0.75, 3, 12), (16, 64)),
    ("qwen3-32b", 262_144, 32 * KIB, (8, 4 * KIB), 4.0, (2.0, 8, 32), (43, 172)),
    ("llama-3.1-70b", 327_680, 32 * KIB, (8, 4 * KIB), 5.0, (2.5, 10, 40), (54, 215)),
    ("mistral-large-2407", 360_448, 32 * KIB, (8, 4 * KIB), 5.5, (2.75, 11, 44), (59, 236)),
    ("glm-4.6", 376_832, 32 * KIB, (8, 4 * KIB), 5.75, (2.88, 11.5, 46), (62, 247)),
    ("llama-3.1-405b", 516_096, 32 * KIB, (8, 4 * KIB), 7.9, (3.94, 15.8, 63), (85, 338)),
    ("qwen3-235b-a22b", 192_512, 16 * KIB, (4, 4 * KIB), 2.9, (1.47, 5.9, 23.5), (32, 126)),
    ("qwen3-coder-480b", 253_952, 32 * KIB, (8, 4 * KIB), 3.9, (1.94, 7.75, 31), (42, 166)),
    ("gpt-oss-120b", 73_728, 16 * KIB, (8, 2 * KIB), 1.1, (0.56, 2.25, 9), (12, 48)),
    ("deepseek-v3", 70_272, 18 * KIB, (8, 18 * KIB), 1.07, (0.54, 2.14, 8.6), (11.5, 46)),
]


@pytest.mark.parametrize(("name", "token", "piece", "split", "sixteen", "contexts", "floors"), PUBLISHED)
def test_the_published_table(name, token, piece, split, sixteen, contexts, floors):
    model = BY_NAME[name]
    assert model.bytes_per_token() == token
    assert transfer(model, tokens=16).piece_bytes == piece
    assert transfer(model, tokens=16, tensor_parallel=split[0]).piece_bytes == split[1]
    assert transfer(model, tokens=16).total_bytes / MIB == pytest.approx(sixteen, abs=0.06)
    for tokens, gib in zip((8192, 32_768, 131_072), contexts, strict=True):
        assert transfer(model, tokens=tokens).total_bytes / GIB == pytest.approx(gib, rel=0.012)
    for tokens, ms in zip((8192, 32_768), floors, strict=True):
        total = transfer(model, tokens=tokens).total_bytes
        assert wire_floor_ms(total_bytes=total, line_gbps=400) == pytest.approx(ms, abs=0.6)


def test_every_row_of_the_table_is_checked():
    assert {row[0] for row in PUBLISHED} | {"deepseek-v3-fp8"} == set(BY_NAME)
    assert BY_NAME["deepseek-v3-fp8"].bytes_per_token() == 35_136
    assert len(BY_NAME) == len(MODELS)


def test_a_model_that_is_not_in_the_table():
    # OPT-66B (DistServe): 64 layers, 72 heads of 128, MHA in fp16; "512 tokens are about 1.13 GB" (kvprobe 2.4)
    opt = KVModel(name="opt-66b", title="OPT-66B", layers=64, kv_heads=72, head_dim=128)
    assert transfer(opt, tokens=512).total_bytes / GIB == pytest.approx(1.13, abs=0.005)


def test_mooncakes_published_transfer():
    # Qwen3-8B, 32,768 tokens: 4.50 GB (GiB) in 31.65 ms are 142 GB/s... of 10^9, less the table's rounding
    total = transfer(BY_NAME["qwen3-8b"], tokens=32_768).total_bytes
    assert total / GIB == 4.5
    assert total / 31.65e-3 / 2**30 == pytest.approx(142, rel=0.005)


def test_pieces_as_vllm_counts_them():
    # kvprobe 1.2: 70B, TP8, 16-token blocks, 8k tokens: 81,920 pieces of 4 KiB a rank; DeepSeek-V3: 31,232 of 18 KiB
    llama, deepseek = BY_NAME["llama-3.1-70b"], BY_NAME["deepseek-v3"]
    moved = transfer(llama, tokens=8192, tensor_parallel=8)
    assert (moved.pieces, moved.piece_bytes) == (81_920, 4 * KIB)
    moved = transfer(deepseek, tokens=8192, tensor_parallel=8)
    assert (moved.pieces, moved.piece_bytes) == (31_232, 18 * KIB)
    whole = transfer(llama, tokens=8192, tensor_parallel=8, layout=Layout.CROSS_LAYER)
    assert (whole.pieces, whole.piece_bytes) == (512, 640 * KIB)
    whole = transfer(deepseek, tokens=16, layout=Layout.CROSS_LAYER)
    assert whole.piece_bytes / MIB == pytest.approx(1.07, abs=0.005)


def test_heads_are_replicated_beyond_their_number_and_mla_always():
    assert ranks_that_split(BY_NAME["qwen3-235b-a22b"], tensor_parallel=16) == 4
    assert ranks_that_split(BY_NAME["deepseek-v3"], tensor_parallel=8) == 1
    with pytest.raises(ValueError, match="ranks"):
        ranks_that_split(BY_NAME["qwen3-8b"], tensor_parallel=0)


def test_a_last_block_travels_whole():
    model = BY_NAME["llama-3.1-8b"]
    assert transfer(model, tokens=17) == transfer(model, tokens=32)
    with pytest.raises(ValueError, match="nothing"):
        transfer(model, tokens=0)


def test_cost_is_bytes_over_rate_and_a_price_a_piece():
    assert cost_ms(total_bytes=10**9, pieces=0, gbps=8) == pytest.approx(1000)
    assert cost_ms(total_bytes=10**9, pieces=1000, gbps=8, per_piece_ns=2000) == pytest.approx(1002)
    with pytest.raises(ValueError, match="rate"):
        cost_ms(total_bytes=1, pieces=1, gbps=0)
