"""What this project calls its own on a box."""

from __future__ import annotations

from winfleet.owner import Owner

OWNER = Owner(name="NInferFleet", prefix="ninfer-fleet-", description="Managed by ninfer-fleet")
