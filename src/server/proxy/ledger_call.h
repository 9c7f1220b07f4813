// One question to the ledger, from an event loop: asked on the loop's thread, answered there.
//
// The ledger's runner answers on its own thread; the call posts itself to the loop through a
// mailbox that outlives the loop, so an answer that comes after the worker's end goes nowhere. A
// waiter that leaves detaches; a reservation that then turns out to have been made is settled as
// not sent. Thread rule: as stated at each member. Ownership: shared by the waiter, the runner and
// the mailbox.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/durable.h"
#include "ledger/runner.h"
#include "net/loop.h"

namespace ration {

// A loop's address that can be written to after the loop is gone.
class LoopMailbox {
public:
    explicit LoopMailbox(net::Loop& loop) : loop_(&loop) {}
    void post(std::function<void()> task);  // any thread
    void close();                           // before the loop dies

private:
    std::mutex mutex_;
    net::Loop* loop_;
};

class LedgerWaiter {
public:
    virtual ~LedgerWaiter() = default;
    virtual void ledger_replied(const LedgerReply& reply) = 0;  // on the loop's thread
};

class LedgerCall final : public LedgerJob, public std::enable_shared_from_this<LedgerCall> {
public:
    LedgerCall(LedgerRunner& runner, std::shared_ptr<LoopMailbox> mailbox,
               std::shared_ptr<Durable> durable)
        : runner_(runner), mailbox_(std::move(mailbox)), durable_(std::move(durable)) {}

    // Loop's thread. False: the runner takes no more.
    [[nodiscard]] bool submit(LedgerWaiter* waiter);
    // Loop's thread: the waiter hears no more of it. A reservation is given back.
    void detach();

    void done() override;  // runner's thread

private:
    void deliver();

    LedgerRunner& runner_;
    std::shared_ptr<LoopMailbox> mailbox_;
    std::shared_ptr<Durable> durable_;  // owns what the request views
    LedgerWaiter* waiter_ = nullptr;
};

}  // namespace ration
