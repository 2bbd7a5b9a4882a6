"""The dashboard: one page that shows a running query, live. It reads; it decides and changes nothing."""

from joinery.adapters.dashboard.frames import Change, Film, Other, Sight
from joinery.adapters.dashboard.serving import Dashboard

__all__ = ["Change", "Dashboard", "Film", "Other", "Sight"]
