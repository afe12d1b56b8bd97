from __future__ import annotations

from django.apps import AppConfig


class PatientBroker(AppConfig):
    name = "tests.support.patient_broker"

    def ready(self) -> None:
        """A test machine that is busy for a moment is no overload; Apache's brokers are told the same."""
        from broker.engine.serving import overload  # once all apps are there

        overload.WAIT_MS_MAX.clear()
