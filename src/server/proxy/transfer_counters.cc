// A request whose limits are judged by counters elsewhere: it is suspended while they are asked,
// and the loop goes on. A client that leaves meanwhile ends its request when the answer is there,
// so that what was taken is known and settled like any other.
#include <utility>

#include "server/proxy/client_connection.h"
#include "server/proxy/transfer.h"
#include "server/proxy/worker.h"

namespace ration {

// True when the request goes on: to the counters, the upstream, or the ledger.
bool Transfer::decide(Now now) {
    if (exchange_.decision.kind != Decision::Kind::admit) {
        return decided();
    }
    RedisLink* link = worker_.counters();
    if (link == nullptr) {
        worker_.engine().decide(exchange_, body_, now);
        return decided();
    }
    if (batch_ == nullptr) {
        batch_ = std::make_unique<ChargeBatch>();
    }
    if (!worker_.engine().prepare(exchange_, body_, now, *batch_)) {
        return decided();
    }
    if (link->ask(batch_->asked(), now, batch_->answers(), *this)) {
        stage_ = Stage::counting;
        return true;
    }
    return take_levels();
}

bool Transfer::decided() {
    if (exchange_.decision.kind == Decision::Kind::admit) {
        return exchange_.durable == nullptr || begin_ledger();
    }
    answer_decision();
    return false;
}

bool Transfer::take_levels() {
    stage_ = Stage::plain;
    worker_.engine().judge_limits(exchange_, *batch_, exchange_.arrived);
    // Refused by none of the limits: ration's own answer is what an attempt counts by.
    if (exchange_.decision.kind != Decision::Kind::admit &&
        count_attempt(Engine::own_status(exchange_), Judged::own_answer)) {
        return true;
    }
    return decided();
}

void Transfer::counters_answered() {
    if (stage_ == Stage::counting) {
        const bool goes_on = take_levels();
        if (client_->orphaned() && stage_ != Stage::striking) {
            client_gone();
        } else if (goes_on && (stage_ == Stage::plain || stage_ == Stage::forwarding)) {
            asked_ = worker_.loop().now();
            acquire(first_want());
        }
        client_->wake();
    }
}

// True: the request waits until the attempt is counted. The engine has the exchange meanwhile.
bool Transfer::count_attempt(int status, Judged judged) {
    if (worker_.counters() == nullptr || !Engine::counts_attempt(exchange_)) {
        return false;
    }
    const Stage before = std::exchange(stage_, Stage::striking);
    const bool waits = worker_.core().steps->submit(
        [this, before, judged, status, mailbox = worker_.mailbox(), now = worker_.loop().now()] {
            worker_.engine().answered(exchange_, status, now);
            mailbox->post([this, before, judged] { attempt_counted(before, judged); });
        });
    if (!waits) {
        // Too many are in line. A failure counts all the same: a crowd must not guess for nothing.
        stage_ = before;
        if (Counters* told = worker_.told_counters(); told != nullptr) {
            worker_.engine().answered(exchange_, status, worker_.loop().now(), told);
        }
    }
    return waits;
}

void Transfer::attempt_counted(Stage before, Judged judged) {
    stage_ = before;
    if (client_->orphaned() && (durable_ == nullptr || !durable_->open())) {
        client_gone();
    } else if (judged == Judged::upstream_head) {
        head_counted();
    } else {
        static_cast<void>(decided());
    }
    client_->wake();
}

}  // namespace ration
