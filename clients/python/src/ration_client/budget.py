"""Retries per origin are paid for by successes, so that an outage is not answered by a storm."""

from __future__ import annotations

import math

from .policy import Policy


class Budget:
    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.left = policy.budget_capacity
        self._last_retry_at = -math.inf

    def tokens(self, now: float) -> float:
        """What a decision may count on; a quiet client has one retry every `budget_floor_ms`."""
        quiet = now - self._last_retry_at >= self._policy.budget_floor_ms
        return max(self.left, self._policy.budget_retry_cost if quiet else 0)

    def retry(self, now: float) -> None:
        self.left = max(0, self.left - self._policy.budget_retry_cost)
        self._last_retry_at = now

    def success(self) -> None:
        most = self._policy.budget_capacity
        if self.left < most:
            self.left = min(most, self.left + self._policy.budget_success_deposit)
