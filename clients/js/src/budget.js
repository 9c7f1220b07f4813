// Retries per origin are paid for by successes, so that an outage is not answered by a storm.

export class Budget {
    constructor(policy) {
        this.policy = policy;
        this.left = policy.budgetCapacity;
        this.lastRetryAt = -Infinity;
    }

    // What a decision may count on. A quiet client always has one retry every `budgetFloorMs`.
    tokens(now) {
        const {budgetRetryCost, budgetFloorMs} = this.policy;
        const floor = now - this.lastRetryAt >= budgetFloorMs ? budgetRetryCost : 0;
        return Math.max(this.left, floor);
    }

    retry(now) {
        this.left = Math.max(0, this.left - this.policy.budgetRetryCost);
        this.lastRetryAt = now;
    }

    success() {
        this.left = Math.min(this.policy.budgetCapacity, this.left + this.policy.budgetSuccessDeposit);
    }
}
