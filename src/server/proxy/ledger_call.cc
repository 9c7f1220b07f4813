#include "server/proxy/ledger_call.h"

namespace ration {

void LoopMailbox::post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    if (loop_ != nullptr) {
        loop_->post(std::move(task));
    }
}

void LoopMailbox::close() {
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
}

bool LedgerCall::submit(LedgerWaiter* waiter) {
    waiter_ = waiter;
    return runner_.submit(shared_from_this());
}

void LedgerCall::detach() {
    waiter_ = nullptr;
    if (std::holds_alternative<Reserve>(request)) {
        // When this comes too late, `deliver` finds nobody waiting and gives the place back.
        static_cast<void>(abandon());
    }
}

void LedgerCall::done() {
    mailbox_->post([self = shared_from_this()] { self->deliver(); });
}

void LedgerCall::deliver() {
    if (waiter_ != nullptr) {
        std::exchange(waiter_, nullptr)->ledger_replied(reply);
        return;
    }
    if (std::holds_alternative<Reserve>(request) && reply.status.ok() &&
        reply.reserved.attempt != 0) {
        auto undo = std::make_shared<LedgerCall>(runner_, mailbox_, durable_);
        undo->request = Settle{reply.reserved.attempt, SettleKind::not_sent, nullptr, {}};
        static_cast<void>(undo->submit(nullptr));
    }
}

}  // namespace ration
