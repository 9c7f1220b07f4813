// A request that the ledger is asked about: its body is read whole where a key makes it count, a
// place is reserved before anything goes upstream, and the outcome is written down before the first
// byte of the answer goes to the client. The client may leave in between; the attempt may not.
#include <utility>

#include "base/text.h"
#include "server/proxy/client_connection.h"
#include "server/proxy/transfer.h"
#include "server/proxy/worker.h"

namespace ration {

std::shared_ptr<LedgerCall> Transfer::new_call() const {
    return std::make_shared<LedgerCall>(*worker_.options().ledger, worker_.mailbox(), durable_);
}

bool Transfer::must_finish() const {
    const bool counted = stage_ == Stage::counting || stage_ == Stage::striking;
    const bool has_outcome = request_body_.done() || response_head_done_;
    return !over() && (counted || (durable_ != nullptr && durable_->open() && has_outcome));
}

bool Transfer::begin_ledger() {
    durable_ = exchange_.durable;
    if (worker_.options().ledger == nullptr) {
        fail(BuiltIn::ledger_unavailable, Ending::Kind::refused, "there is no ledger");
        return false;
    }
    if (!durable_->needs_body()) {
        return ask_ledger();
    }
    if (head_.length > durable_->max_body() || body_.size() > durable_->max_body()) {
        fail(BuiltIn::payload_too_large, Ending::Kind::refused, "body larger than a key allows");
        return false;
    }
    if (collected_) {
        return ask_ledger();
    }
    stage_ = Stage::collecting;
    return true;
}

void Transfer::collect_body() {
    net::Buffer& in = client_->in();
    while (!over() && !request_body_.done()) {
        if (in.empty() && head_.expects_continue && !continued_) {
            send_continue();
        }
        const http::BodyDecoder::Step step = request_body_.next(in.data());
        if (step.state == http::BodyDecoder::State::error) {
            return body_failed(BuiltIn::bad_request, request_body_.reason());
        }
        body_.append(step.content);
        in.consume(step.used);
        if (body_.size() > (undecided_ ? max_read_body_bytes : durable_->max_body())) {
            return body_failed(BuiltIn::payload_too_large, "body larger than can be looked at");
        }
        if (step.used == 0 && !request_body_.done()) {
            return;
        }
    }
    if (!over()) {
        collected_ = true;
        body_collected();
    }
}

void Transfer::body_collected() {
    asked_ = worker_.loop().now();
    bool goes_on = false;
    if (std::exchange(undecided_, false)) {
        stage_ = Stage::plain;
        goes_on = decide(asked_);
    } else {
        goes_on = ask_ledger();
    }
    if (goes_on && (stage_ == Stage::plain || stage_ == Stage::forwarding)) {
        acquire(first_want());
    }
}

void Transfer::send_collected_body() {
    net::Buffer& out = upstream_->out();
    if (head_.framing == http::Framing::chunked) {
        if (!body_.empty()) {
            write_chunk(out, body_);
        }
        write_last_chunk(out, request_body_.trailers());
    } else {
        out.append(body_);
    }
    request_sent_ = true;
}

// True when the request goes on (at once, or after the ledger's answer).
bool Transfer::ask_ledger() {
    if (!worker_.engine().ask(exchange_, body_)) {
        answer_decision();
        return false;
    }
    if (durable_->only_settles()) {
        stage_ = Stage::forwarding;
        return true;
    }
    return reserve();
}

// False: refused already, else the ledger's answer is waited for.
bool Transfer::reserve() {
    call_ = new_call();
    call_->request = durable_->reserve();
    const Mono now = worker_.loop().now().mono;
    call_->hold_until = now + worker_.options().hold;
    stage_ = Stage::asking;
    if (!call_->submit(this)) {
        call_.reset();
        fail(BuiltIn::ledger_unavailable, Ending::Kind::refused, "the ledger's queue is full");
        return false;
    }
    worker_.loop().timers().arm(wait_timer_,
                                now + worker_.options().hold + worker_.options().ledger_timeout);
    return true;
}

void Transfer::ledger_replied(const LedgerReply& reply) {
    call_.reset();
    wait_timer_.disarm();
    if (stage_ == Stage::asking) {
        take_verdict(reply);
        client_->wake();
        return;
    }
    if (!reply.status.ok()) {
        // The client gets its answer; the key is in doubt, and the log says so.
        detail_ =
            cat("the outcome could not be written down: ", std::string(reply.status.message()));
    }
    release_answer();
    client_->wake();
}

// A slow ledger is a failed one: the client gets its answer, and the settlement goes on.
void Transfer::settled_too_late() {
    std::exchange(call_, nullptr)->detach();
    detail_ = "the outcome could not be written down in time";
    release_answer();
}

// Answers when it is written down, or at its deadline.
void Transfer::submit_settlement(const Settle& settle) {
    call_ = new_call();
    call_->request = settle;
    if (call_->submit(this)) {
        worker_.loop().timers().arm(wait_timer_,
                                    worker_.loop().now().mono + worker_.options().ledger_timeout);
        return;
    }
    call_.reset();
    detail_ = "the outcome could not be written down: the ledger takes no more";
    release_answer();
}

void Transfer::take_verdict(const LedgerReply& reply) {
    if (!reply.status.ok()) {
        detail_ = std::string(reply.status.message());
    }
    worker_.engine().judge(exchange_, reply);
    if (exchange_.decision.kind != Decision::Kind::admit) {
        answer_decision();
        return;
    }
    if (durable_->probing()) {
        return begin_probe();
    }
    stage_ = Stage::forwarding;
    asked_ = worker_.loop().now();
    acquire(first_want());
}

// ---- what became of a key ----

void Transfer::begin_probe() {
    stage_ = Stage::probing;
    probe_ = durable_->probe_target(exchange_);
    asked_ = worker_.loop().now();
    acquire(UpstreamPool::Want::any);
}

// `response_` and `kept_` are the upstream's answer. Found: it is kept and replayed. Nothing there:
// the request begins anew. Anything else tells nothing, and the key stays in doubt.
void Transfer::probe_answered(bool whole) {
    const CompleteAnswer answer{response_.status, response_.fields.fields, kept_, whole};
    const Durable::Probe meaning = Durable::probed(answer.status);
    if (meaning == Durable::Probe::unknown) {
        return fail_upstream(cat("the probe was answered ", answer.status));
    }
    const std::optional<Settle> settle = durable_->settle_probed(exchange_, answer);
    drop_upstream(whole && response_.keep_alive);
    sent_any_ = false;
    if (meaning == Durable::Probe::found) {
        stage_ = Stage::found;
        return submit_settlement(*settle);
    }
    // The queue is in order: the place is given back before it is asked for again.
    const std::shared_ptr<LedgerCall> call = new_call();
    call->request = *settle;
    static_cast<void>(call->submit(nullptr));
    forget_answer();
    static_cast<void>(reserve());
}

// Of the probe, before the request itself is sent.
void Transfer::forget_answer() {
    kept_.clear();
    response_text_.clear();
    response_.fields.clear();
    response_scanner_.reset();
    response_body_.start(http::Framing::none, 0);
    body_out_ = BodyOut::none;
    head_written_ = request_sent_ = response_head_done_ = retried_ = false;
    interim_ = status_ = upstream_status_ = 0;
    upstream_time_ = Nanos{0};
}

// ---- the answer ----

// True when the answer waits for the ledger; its head is known.
bool Transfer::keeps_answer() {
    if (durable_ == nullptr || stage_ != Stage::forwarding) {
        return false;
    }
    stage_ = Stage::keeping;
    if (!durable_->needs_answer() || response_body_.done()) {
        settle_answer(true);
    }
    return true;
}

void Transfer::keep_piece(std::string_view content) {
    kept_.append(content);
}

void Transfer::answer_kept(bool whole) {
    if (stage_ == Stage::probing) {
        probe_answered(whole);
    } else {
        settle_answer(whole);
    }
}

void Transfer::settle_answer(bool whole) {
    const bool written = response_.status >= 200 && response_.status < 300;
    const std::optional<Settle> settle =
        durable_->settle(written ? SettleKind::written : SettleKind::failed,
                         {response_.status, response_.fields.fields, kept_, whole});
    stage_ = Stage::settling;
    if (settle) {
        submit_settlement(*settle);
    } else {
        release_answer();
    }
}

void Transfer::release_answer() {
    if (std::exchange(stage_, Stage::plain) == Stage::found) {
        return answer_decision();
    }
    start_answer();
    if (!kept_.empty()) {
        if (body_out_ == BodyOut::chunked) {
            write_chunk(client_->out(), kept_);
        } else {
            client_->out().append(kept_);
        }
    }
    if (response_body_.done()) {
        response_done();
    }
}

// What becomes of an attempt that ends without a complete answer.
void Transfer::settle_open_attempt(Ending::Kind kind) {
    if (call_ != nullptr) {
        std::exchange(call_, nullptr)->detach();
    }
    if (durable_ == nullptr || !durable_->open()) {
        return;
    }
    const bool sent = sent_any_ || (upstream_ != nullptr && upstream_->written() > 0);
    const SettleKind outcome =
        sent && kind != Ending::Kind::refused ? SettleKind::doubt : SettleKind::not_sent;
    if (const std::optional<Settle> settle = durable_->settle(outcome, {})) {
        const std::shared_ptr<LedgerCall> call = new_call();
        call->request = *settle;
        static_cast<void>(call->submit(nullptr));
    }
}

}  // namespace ration
