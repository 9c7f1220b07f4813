"""The pure core: decisions without clock, socket or timer. For tests, and for other transports."""

from .budget import Budget
from .call import Call, Ending, Wait
from .decide import CallState, Decision, Outcome, Told, decide, read_answer
from .extras import Breaker, Concurrency, Pacer, Throttle, reject_probability
from .gate import Gate, GateBook, Ticket
from .hints import MAX_BODY_BYTES, MAX_WAIT_MS, parse_retry_after, read_error_body, server_now
from .http_date import parse_http_date
from .limits import Limit, parse_limits
from .plain import CallInfo, Plain
from .policy import Policy, backoff_bound, make_policy
from .redirect import RedirectDecision, decide_redirect
from .shared import RequestFacts, Send, Settings, Shared, make_settings

__all__ = [name for name in dir() if not name.startswith("_")]
