"""The settings of a scope as a form; what is allowed is decided by `probes.settings_of_scope`."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.utils.functional import lazy

from people.said import said
from probes.errors import InvalidSettings
from probes.judgement import Thresholds
from probes.models import ProbeScope
from probes.schedule import LoadMode
from probes.settings_of_scope import MIB, ScopeSettings

# Django writes the choices of a list itself, so they are put into the reader's language when it does.
_told: Callable[[str], Any] = lazy(lambda words: str(said(words)), str)


class SettingsForm(forms.Form):
    """One field for each setting, in the units that people use."""

    is_enabled = forms.BooleanField(required=False, label="Probe on schedule")
    profiles = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}), label="Profiles", help_text="One a line; see the list beside."
    )
    interval_s = forms.IntegerField(label="Interval", help_text="Seconds from one tick to the next.")
    budget = forms.IntegerField(label="Pairs a tick", help_text="Each is probed with every profile.")
    mib_per_run = forms.IntegerField(label="MiB a run", help_text="1024 MiB are 21 ms on a 400 Gb/s line.")
    mode = forms.ChoiceField(
        choices=[
            (LoadMode.QUIET.value, _told("quiet: at most two pairs at once")),
            (LoadMode.LOADED.value, _told("loaded: as many as may be")),
        ],
        label="Load",
    )
    has_all_rails = forms.BooleanField(required=False, label="All ports of each server in turn")
    windows = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Blackout windows (UTC)",
        help_text="One a line, for example Mon-Fri 09:00-17:30. No probe begins in one.",
    )
    ttft_budget_ms = forms.IntegerField(label="Budget of the time to the first token", help_text="Milliseconds.")
    tcp_interface = forms.CharField(
        required=False, label="Interface of the TCP baseline", help_text="Empty: none. It is a series of its own."
    )
    service_level = forms.IntegerField(label="Service level (SL)")
    is_patient = forms.BooleanField(required=False, label="Its servers are emulated or very slow: wait longer for them")
    busy_pct = forms.IntegerField(
        label="Put off above this share of the line, %",
        help_text="What others send through a port in the second before a run. 100: never put off.",
    )
    line_bad_pct = forms.FloatField(label="Bad below this share of the line, %", help_text="Profile link only.")
    peers_warn_pct = forms.FloatField(label="Warn below this share of the best peer, %")
    peers_latency_factor = forms.FloatField(label="Warn above this many times the quickest peer")
    history_warn_pct = forms.FloatField(label="Warn when worse than its own median by, %")
    history_bad_pct = forms.FloatField(label="Bad when worse than its own median by, %")
    reason = forms.CharField(required=False, max_length=500, label="Reason, for the audit trail")

    @classmethod
    def of(cls, scope: ProbeScope) -> "SettingsForm":
        """The form filled with what is so now."""
        settings = ScopeSettings.of(scope)
        values: dict[str, Any] = settings.to_columns() | settings.thresholds.to_json()
        values |= {"profiles": "\n".join(settings.profiles), "mib_per_run": settings.bytes_per_run // MIB}
        return cls(initial=values)

    def settings(self) -> ScopeSettings | None:
        """The checked settings; None when a field is wrong, which then says what."""
        if not self.is_valid():
            return None
        given = self.cleaned_data
        thresholds = {name: given[name] for name in Thresholds().to_json()}
        try:
            made = Thresholds.from_json(thresholds)
        except (ValueError, TypeError) as error:
            self.add_error("history_bad_pct" if "drop" in str(error) else "line_bad_pct", str(error))
            return None
        try:
            return ScopeSettings(
                is_enabled=given["is_enabled"],
                profiles=tuple(given["profiles"].split()),
                interval_s=given["interval_s"],
                budget=given["budget"],
                bytes_per_run=given["mib_per_run"] * MIB,
                mode=LoadMode(given["mode"]),
                has_all_rails=given["has_all_rails"],
                windows=given["windows"],
                thresholds=made,
                ttft_budget_ms=given["ttft_budget_ms"],
                tcp_interface=given["tcp_interface"].strip(),
                service_level=given["service_level"],
                is_patient=given["is_patient"],
                busy_pct=given["busy_pct"],
            )
        except InvalidSettings as error:
            field = "mib_per_run" if error.field == "bytes_per_run" else error.field
            self.add_error(field, str(error))
            return None
