"""`manage.py` of a broker that handles sends and pulls however late they come: `python -m tests.support.patient_broker
runbroker …`. A test machine that is busy for a moment is no overload; Apache's brokers are told the same."""

from __future__ import annotations

import sys

from broker.engine.serving import overload
from mqadmin.command import main

if __name__ == "__main__":
    overload.WAIT_MS_MAX.clear()
    sys.exit(main())
