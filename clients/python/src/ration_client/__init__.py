"""httpx and requests that behave well against rate limits.

    import httpx
    from ration_client.httpx import Transport

    client = httpx.Client(transport=Transport())
    answer = client.get("https://api.example/v1/quote")
    answer.extensions["ration"]  # CallInfo(attempts=..., reason=..., retry_at=...)

All calls of one transport share what answers told: make one client and keep it. The decision core
(`ration_client.core`) has no dependencies and does no I/O.
"""

from .drive import CancelToken
from .plain import CallInfo
from .policy import Policy

__all__ = ["CallInfo", "CancelToken", "Policy"]
