"""What is pasted, from devices and indexes: no rows, no Django."""

from portal.pasting import Place, settings_for


def test_nccl_takes_the_index_and_ucx_the_value():
    places = [Place("mlx5_1", 1, 2), Place("mlx5_0", 1, 2)]
    paste = settings_for(places=places, pkey="0x2c41", is_limited=False)
    assert paste.nccl == "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\nNCCL_IB_PKEY=2\n"
    assert paste.ucx == "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1\nUCX_IB_PKEY=0x2c41\n"
    assert paste.left_out == ()


def test_a_device_with_another_index_is_left_out_of_nccl_and_told():
    places = [Place("mlx5_0", 1, 1), Place("mlx5_1", 1, 3), Place("mlx5_2", 2, 3)]
    paste = settings_for(places=places, pkey="0x0100", is_limited=True)
    assert paste.nccl == "NCCL_IB_HCA==mlx5_1:1,mlx5_2:2\nNCCL_IB_PKEY=3\n"
    assert paste.left_out == ("mlx5_0:1",)
    assert "mlx5_0:1,mlx5_1:1,mlx5_2:2" in paste.ucx
    assert paste.is_limited


def test_nothing_is_pasted_of_a_port_that_was_not_read():
    assert settings_for(places=[Place("mlx5_0", 1, None)], pkey="0x2c41", is_limited=False).is_empty
    one = settings_for(places=[Place("mlx5_0", 1, None), Place("mlx5_1", 1, 1)], pkey="0x2c41", is_limited=False)
    assert "mlx5_0" not in one.nccl + one.ucx


def test_index_zero_is_an_index():
    assert "NCCL_IB_PKEY=0\n" in settings_for(places=[Place("mlx5_0", 1, 0)], pkey="0x2c41", is_limited=False).nccl
