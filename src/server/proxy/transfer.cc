// Beginning, ending and failing of a request; moving its bytes is in transfer_relay.cc.
#include "server/proxy/transfer.h"

#include <utility>

#include "server/proxy/client_connection.h"
#include "server/proxy/worker.h"

namespace ration {

namespace {

constexpr std::size_t largest_kept_text = 16 * 1024;  // of a head, between two requests

bool is_safe(std::string_view method) {
    return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE";
}

void clear_text(std::string& text) {
    text.clear();
    if (text.capacity() > largest_kept_text) {
        text.shrink_to_fit();
    }
}

}  // namespace

Transfer::Transfer(Worker& worker)
    : worker_(worker), wait_timer_(&Transfer::on_wait_timeout, this) {}

Transfer::~Transfer() = default;

void Transfer::open(ClientConnection& client) {
    client_ = &client;
    arrived_ = worker_.loop().now();
    worker_.write_request_id(id_);
}

http::ParseProblem Transfer::start(ClientConnection& client, std::string_view head_text) {
    open(client);
    head_text_.assign(head_text);
    const http::HeadLimits limits{worker_.options().max_header_bytes,
                                  worker_.options().max_headers};
    const http::ParseProblem problem = http::parse_request(head_text_, limits, head_);
    request_body_.start(head_.framing, head_.length);
    return problem;
}

bool Transfer::begin() {
    const RequestView view{.method = head_.method,
                           .target = head_.target,
                           .headers = head_.fields.fields,
                           .peer = client_->facts().peer,
                           .id = {id_.data(), id_.size()}};
    worker_.engine().arrive(exchange_, view, arrived_);
    begun_ = true;
    if (!Engine::needs_body(exchange_) || request_body_.done()) {
        return decide(arrived_);
    }
    if (head_.length > max_read_body_bytes) {
        fail(BuiltIn::payload_too_large, Ending::Kind::refused,
             "body larger than can be looked at");
        return false;
    }
    stage_ = Stage::collecting;
    undecided_ = true;
    return true;
}

void Transfer::answer_decision() {
    switch (exchange_.decision.kind) {
        case Decision::Kind::preflight:
            outcome_ = RequestOutcome::preflight;
            break;
        case Decision::Kind::replay:
            outcome_ = RequestOutcome::replayed;
            break;
        case Decision::Kind::admit:
        case Decision::Kind::refuse:
            outcome_ = RequestOutcome::refused;
            break;
    }
    put_answer(worker_.engine().answer(exchange_));
    settle(Ending::Kind::refused);
}

void Transfer::answer_malformed(BuiltIn which, std::string_view reason) {
    detail_ = reason;
    outcome_ = RequestOutcome::malformed;
    head_.keep_alive = false;
    put_answer(Engine::failure(*worker_.engine().rules()->policy, which, {id_.data(), id_.size()},
                               reason));
}

void Transfer::put_answer(const Answer& answer) {
    keep_alive_ = client_stays();
    status_ = answer.status;
    const bool to_head = head_.method == "HEAD";
    own_body_bytes_ = to_head ? 0 : answer.body.size();
    write_own_answer(client_->out(), {.answer = answer,
                                      .server_name = worker_.options().server_name,
                                      .date = worker_.date(),
                                      .keep_alive = keep_alive_,
                                      .to_head = to_head,
                                      .client_minor_version = head_.minor_version});
    complete_ = true;
}

bool Transfer::client_stays() const {
    return head_.keep_alive && !worker_.draining() &&
           (request_body_.done() || body_can_be_discarded());
}

// A client that waits for 100 may send its body or not: after a refusal nobody can tell what its
// next bytes are.
bool Transfer::body_can_be_discarded() const {
    return (!head_.expects_continue || continued_) && request_body_.left() <= max_discarded_body;
}

// ---- ends ----

void Transfer::settle(Ending::Kind kind) {
    settle_open_attempt(kind);
    if (stage_ == Stage::counting) {
        worker_.counters()->forget(*this);
        stage_ = Stage::plain;
    }
    if (begun_) {
        worker_.engine().finish(
            exchange_,
            {.kind = kind, .status = upstream_status_, .response_headers = response_.fields.fields},
            worker_.loop().now(), worker_.told_counters());
    }
}

void Transfer::fail(BuiltIn which, Ending::Kind kind, std::string_view detail) {
    if (answer_started_) {
        abort(kind, detail);
        return;
    }
    detail_ = detail;
    outcome_ = upstream_ != nullptr && upstream_->written() > 0 ? RequestOutcome::admitted
                                                                : RequestOutcome::refused;
    drop_upstream(false);
    put_answer(worker_.engine().failure(exchange_, which));
    settle(kind);
}

void Transfer::abort(Ending::Kind kind, std::string_view detail) {
    detail_ = detail;
    drop_upstream(false);
    settle(kind);
    aborted_ = true;
}

void Transfer::body_failed(BuiltIn which, std::string_view reason) {
    if (over()) {
        return;
    }
    head_.keep_alive = false;
    fail(which, Ending::Kind::client_gone, reason);
    outcome_ = RequestOutcome::malformed;
}

void Transfer::client_gone() {
    if (!over()) {
        drop_upstream(false);
        settle(Ending::Kind::client_gone);
        aborted_ = true;
    }
    // Without an exchange there is nothing else to call it: the engine never saw the request.
    outcome_ = begun_ ? RequestOutcome::client_gone : RequestOutcome::malformed;
    if (detail_.empty()) {
        detail_ = "the client left";
    }
    report();
}

void Transfer::upstream_failed() {
    if (try_again()) {
        return;
    }
    const std::string detail = upstream_->detail();
    if (upstream_->trouble() == UpstreamConnection::Trouble::timed_out) {
        fail(BuiltIn::gateway_timeout, Ending::Kind::timed_out, detail);
    } else {
        fail_upstream(detail);
    }
}

// A kept-alive connection that turns out to be closed proves nothing about the request: it is sent
// again, once, when the upstream cannot have acted on it or acting twice does no harm.
bool Transfer::try_again() {
    const bool stale = upstream_->reused() && !retried_ && response_text_.empty() &&
                       upstream_->in().empty() &&
                       upstream_->trouble() != UpstreamConnection::Trouble::timed_out;
    const bool untouched = upstream_->written() == 0;
    if (!stale || !(untouched || can_be_sent_twice())) {
        return false;
    }
    retried_ = true;
    if (untouched) {
        replay_.assign(upstream_->out().data());
    } else {
        head_written_ = false;
    }
    drop_upstream(false);
    acquire(UpstreamPool::Want::fresh);
    return true;
}

void Transfer::drop_upstream(bool reusable) {
    wait_timer_.disarm();
    if (in_line_) {
        worker_.upstream().leave_line(*this);
        in_line_ = false;
    }
    if (upstream_ != nullptr) {
        sent_any_ = sent_any_ || upstream_->written() > 0;
        worker_.upstream().release(*std::exchange(upstream_, nullptr), reusable);
    }
}

// ---- the upstream connection ----

void Transfer::forward() {
    asked_ = worker_.loop().now();
    if (stage_ == Stage::plain || stage_ == Stage::forwarding) {
        acquire(first_want());
    }
}

bool Transfer::can_be_sent_twice() const {
    return stage_ == Stage::probing ||
           (is_safe(head_.method) && head_.framing == http::Framing::none);
}

UpstreamPool::Want Transfer::first_want() const {
    return can_be_sent_twice() ? UpstreamPool::Want::any : UpstreamPool::Want::checked;
}

void Transfer::acquire(UpstreamPool::Want want) {
    switch (worker_.upstream().acquire(*this, want)) {
        case UpstreamPool::Request::given:
            break;
        case UpstreamPool::Request::queued:
            in_line_ = true;
            worker_.loop().timers().arm(wait_timer_,
                                        asked_.mono + worker_.options().upstream.connect_timeout);
            break;
        case UpstreamPool::Request::full:
            fail(BuiltIn::unavailable, Ending::Kind::lost, "too many requests for the upstream");
            break;
    }
}

void Transfer::upstream_given(UpstreamConnection& connection) {
    upstream_ = &connection;
    wait_timer_.disarm();
    if (!replay_.empty()) {
        connection.out().append(replay_);
        clear_text(replay_);
    }
    if (std::exchange(in_line_, false)) {
        worker_.loop().again(*client_);  // not now: the giver is in the middle of its own work
    }
}

void Transfer::upstream_changed() {
    client_->wake();
}

void Transfer::on_wait_timeout(void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    if (transfer.stage_ == Stage::settling || transfer.stage_ == Stage::found) {
        transfer.settled_too_late();
    } else if (transfer.stage_ == Stage::asking) {
        transfer.fail(BuiltIn::ledger_unavailable, Ending::Kind::refused,
                      "the ledger did not answer in time");
    } else {
        transfer.fail(BuiltIn::unavailable, Ending::Kind::lost,
                      "no upstream connection became free");
    }
    transfer.client_->wake();
}

// ---- the report ----

void Transfer::report() {
    if (std::exchange(reported_, true)) {
        return;
    }
    RequestRecord record;
    record.exchange = begun_ ? &exchange_ : nullptr;
    record.outcome = outcome_;
    record.id = {id_.data(), id_.size()};
    record.method = head_.method;
    record.target = head_.target;
    record.detail = detail_;
    record.status = status_;
    record.upstream_status = upstream_status_;
    record.request_bytes = request_body_.content_bytes();
    record.response_bytes = response_body_.content_bytes() + own_body_bytes_;
    record.at = arrived_.wall;
    record.total = worker_.loop().now().mono - arrived_.mono;
    record.upstream = upstream_time_;
    record.tls = client_->facts().tls;
    worker_.core().observer.on_request(record);
}

void Transfer::reset() {
    drop_upstream(false);
    settle(Ending::Kind::client_gone);  // nothing when it was settled, as it should be
    begun_ = false;
    stage_ = Stage::plain;
    durable_.reset();
    clear_text(body_);
    clear_text(kept_);
    sent_any_ = answer_started_ = collected_ = undecided_ = false;
    client_ = nullptr;
    clear_text(head_text_);
    clear_text(response_text_);
    clear_text(replay_);
    detail_.clear();
    head_.method = head_.target = {};
    head_.framing = http::Framing::none;
    head_.minor_version = 1;
    head_.keep_alive = true;
    head_.fields.clear();
    response_.fields.clear();
    request_body_.start(http::Framing::none, 0);
    response_body_.start(http::Framing::none, 0);
    response_scanner_.reset();
    body_out_ = BodyOut::none;
    head_written_ = request_sent_ = continued_ = response_head_done_ = false;
    complete_ = aborted_ = keep_alive_ = retried_ = reported_ = false;
    interim_ = status_ = upstream_status_ = 0;
    own_body_bytes_ = 0;
    upstream_time_ = Nanos{0};
    outcome_ = RequestOutcome::malformed;
}

}  // namespace ration
