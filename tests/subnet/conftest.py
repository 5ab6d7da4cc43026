"""Hypothesis must not fail a property because a busy machine was slow; `./run test --long` looks ten times as long."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "busy machine",
    max_examples=500 if os.environ.get("FABRICUI_TEST_LONG") else 50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("busy machine")
