// Moving a request's body to the upstream and the answer to the client. Each side is read only
// while the buffer towards the other has room; what is read is decoded and framed anew, so the two
// connections agree on where a message ends whatever was sent.
#include <algorithm>
#include <utility>

#include "base/sync_point.h"
#include "server/proxy/client_connection.h"
#include "server/proxy/transfer.h"
#include "server/proxy/worker.h"

namespace ration {

namespace {
constexpr std::string_view continue_head = "HTTP/1.1 100 Continue\r\n\r\n";
}  // namespace

void Transfer::advance() {
    bool moved_ever = false;
    if (stage_ == Stage::collecting) {
        collect_body();
    }
    while (!over() && upstream_ != nullptr) {
        // The answer is there: what becomes of the connection changes nothing. Or an attempt is
        // counted: the exchange is not ours, so nothing may end the request.
        if (settling()) {
            return;
        }
        if (upstream_->state() == UpstreamConnection::State::failed) {
            upstream_failed();
            continue;
        }
        if (upstream_->state() != UpstreamConnection::State::ready) {
            return;
        }
        if (!move()) {
            break;
        }
        moved_ever = true;
    }
    if (!over() && upstream_ != nullptr && stage_ != Stage::striking) {
        update_timer(moved_ever);
    }
}

bool Transfer::move() {
    if (!head_written_) {
        write_forward_head();
    }
    bool moved = move_request_body();
    if (over()) {
        return true;
    }
    moved |= upstream_->flush();
    if (request_sent_ && upstream_->out().empty()) {
        sync_point("gateway.after_send");
    }
    if (room_for_client()) {
        moved |= upstream_->fill(wanted_bytes());
    }
    moved |= move_response();
    return moved;
}

bool Transfer::room_for_client() const {
    return client_->out().size() < worker_.options().stream_buffer_bytes;
}

bool Transfer::wants_request_body() const {
    if (stage_ == Stage::collecting) {
        return !over() && !request_body_.done();
    }
    return !over() && stage_ != Stage::striking && !request_body_.done() && upstream_ != nullptr &&
           upstream_->state() == UpstreamConnection::State::ready &&
           upstream_->out().size() < worker_.options().stream_buffer_bytes;
}

void Transfer::update_timer(bool moved) {
    if (upstream_->state() != UpstreamConnection::State::ready) {
        return;
    }
    const bool upstream_has_to_move =
        !upstream_->out().empty() || (request_sent_ && room_for_client());
    if (!upstream_has_to_move) {
        upstream_->expect_nothing();
    } else if (moved || !upstream_->expects_progress()) {
        upstream_->expect_progress_by(worker_.loop().now().mono +
                                      worker_.options().upstream.answer_timeout);
    }
}

// ---- the request ----

void Transfer::write_forward_head() {
    head_written_ = true;
    if (!upstream_->out().empty()) {
        return;  // a replay: head and all are there
    }
    write_request_head(upstream_->out(), {.engine = worker_.engine(),
                                          .exchange = exchange_,
                                          .head = head_,
                                          .upstream = worker_.options().upstream,
                                          .client = client_->facts(),
                                          .probe = stage_ == Stage::probing ? probe_ : ""});
    request_sent_ = stage_ == Stage::probing || head_.framing == http::Framing::none ||
                    (head_.framing == http::Framing::length && head_.length == 0);
}

bool Transfer::move_request_body() {
    if (collected_) {
        const bool send = !request_sent_;
        if (send) {
            send_collected_body();
        }
        return send;
    }
    bool moved = false;
    while (!over() && !request_sent_ &&
           upstream_->out().size() < worker_.options().stream_buffer_bytes &&
           take_request_piece()) {
        moved = true;
    }
    return moved;
}

void Transfer::send_continue() {
    continued_ = true;
    client_->out().append(continue_head);
}

bool Transfer::take_request_piece() {
    net::Buffer& in = client_->in();
    if (in.empty() && head_.expects_continue && !continued_ && !request_body_.done()) {
        send_continue();
    }
    const http::BodyDecoder::Step step = request_body_.next(in.data());
    if (step.state == http::BodyDecoder::State::error) {
        body_failed(BuiltIn::bad_request, request_body_.reason());
        return false;
    }
    if (request_body_.content_bytes() > worker_.options().max_body_bytes) {
        body_failed(BuiltIn::payload_too_large, "body larger than allowed");
        return false;
    }
    const bool chunked = head_.framing == http::Framing::chunked;
    if (!step.content.empty()) {
        if (chunked) {
            write_chunk(upstream_->out(), step.content);
        } else {
            upstream_->out().append(step.content);
        }
    }
    in.consume(step.used);
    if (request_body_.done()) {
        request_sent_ = true;
        if (chunked) {
            write_last_chunk(upstream_->out(), request_body_.trailers());
        }
    }
    return step.used > 0;
}

// ---- the answer ----

std::size_t Transfer::wanted_bytes() const {
    const bool large = response_head_done_ && (response_body_.framing() != http::Framing::length ||
                                               response_body_.left() > net::block_bytes);
    const std::size_t most = worker_.options().stream_buffer_bytes;
    return large ? most - std::min(most, upstream_->in().size()) : 1;
}

bool Transfer::move_response() {
    bool moved = false;
    while (!over() && upstream_ != nullptr && room_for_client() && !settling()) {
        if (!(response_head_done_ ? take_response_piece() : read_response_head())) {
            break;
        }
        moved = true;
    }
    if (!moved && !over() && upstream_ != nullptr && upstream_->ended() && room_for_client() &&
        !settling() && upstream_->state() != UpstreamConnection::State::failed) {
        upstream_ended();
        return true;
    }
    return moved;
}

bool Transfer::read_response_head() {
    net::Buffer& in = upstream_->in();
    switch (response_scanner_.scan(in.data())) {
        case http::HeadScanner::Result::complete:
            break;
        case http::HeadScanner::Result::more:
            if (in.size() > worker_.options().max_header_bytes) {
                fail_upstream("the upstream's header section is too large");
                return true;
            }
            return false;
        case http::HeadScanner::Result::bare_line_feed:
        case http::HeadScanner::Result::folded:
            fail_upstream("malformed line in the upstream's head");
            return true;
    }
    const std::size_t size = response_scanner_.head_bytes();
    response_text_.assign(in.data().substr(0, size));
    response_scanner_.reset();
    in.consume(size);
    take_response_head();
    return true;
}

void Transfer::take_response_head() {
    const http::HeadLimits limits{worker_.options().max_header_bytes,
                                  worker_.options().max_headers};
    if (const http::ParseProblem problem =
            http::parse_response(response_text_, limits,
                                 head_.method == "HEAD" && stage_ != Stage::probing, response_)) {
        fail_upstream(std::string("upstream: ") + problem.reason);
    } else if (response_.status == 101) {
        fail_upstream("the upstream switched protocols unasked");
    } else if (response_.status >= 200) {
        take_final_head();
    } else if (++interim_ > max_interim_answers) {
        fail_upstream("too many interim answers from the upstream");
    } else if (response_.status != 100 && head_.minor_version == 1 && stage_ != Stage::probing) {
        write_interim_head(client_->out(), response_);
    }
}

void Transfer::take_final_head() {
    upstream_status_ = status_ = response_.status;
    upstream_time_ = worker_.loop().now().mono - asked_.mono;
    outcome_ = RequestOutcome::admitted;
    if (stage_ == Stage::probing) {
        return head_counted();  // ration's own question: its answer is nobody's attempt
    }
    if (count_attempt(response_.status, Judged::upstream_head)) {
        upstream_->expect_nothing();
        return;
    }
    if (worker_.counters() == nullptr) {
        worker_.engine().answered(exchange_, response_.status, worker_.loop().now());
    }
    head_counted();
}

void Transfer::head_counted() {
    response_body_.start(response_.framing, response_.length);
    switch (response_.framing) {
        case http::Framing::none:
            body_out_ = BodyOut::none;
            break;
        case http::Framing::length:
            body_out_ = BodyOut::length;
            break;
        case http::Framing::chunked:
        case http::Framing::until_close:
            body_out_ = head_.minor_version == 1 ? BodyOut::chunked : BodyOut::until_close;
            break;
    }
    response_head_done_ = true;
    if (stage_ == Stage::probing) {
        if (response_body_.done()) {
            probe_answered(true);
        }
        return;
    }
    if (keeps_answer()) {
        return;
    }
    start_answer();
    if (response_body_.done()) {
        response_done();
    }
}

void Transfer::start_answer() {
    answer_started_ = true;
    status_ = response_.status;
    keep_alive_ = client_stays() && body_out_ != BodyOut::until_close;
    write_response_head(client_->out(), {.engine = worker_.engine(),
                                         .exchange = exchange_,
                                         .head = response_,
                                         .body = body_out_,
                                         .keep_alive = keep_alive_,
                                         .client_minor_version = head_.minor_version,
                                         .date = worker_.date()});
}

bool Transfer::take_response_piece() {
    net::Buffer& in = upstream_->in();
    const http::BodyDecoder::Step step = response_body_.next(in.data());
    if (step.state == http::BodyDecoder::State::error) {
        fail_upstream(std::string("upstream: ") + response_body_.reason());
        return true;
    }
    if (stage_ == Stage::keeping || stage_ == Stage::probing) {
        const bool moved = step.used > 0;
        keep_piece(step.content);
        in.consume(step.used);
        if (kept_.size() > durable_->max_answer()) {
            answer_kept(false);
        } else if (response_body_.done()) {
            answer_kept(true);
        }
        return moved || over();
    }
    if (!step.content.empty()) {
        if (body_out_ == BodyOut::chunked) {
            write_chunk(client_->out(), step.content);
        } else {
            client_->out().append(step.content);
        }
    }
    in.consume(step.used);
    if (response_body_.done()) {
        response_done();
    }
    return step.used > 0 || over();
}

void Transfer::upstream_ended() {
    if (!response_head_done_) {
        if (response_text_.empty() && upstream_->in().empty() && try_again()) {
            return;
        }
        fail_upstream("the upstream closed without a whole answer");
    } else if (response_body_.end_of_input()) {
        if (stage_ == Stage::keeping || stage_ == Stage::probing) {
            answer_kept(true);
        } else {
            response_done();
        }
    } else {
        fail_upstream("the upstream broke off in the middle of its answer");
    }
}

void Transfer::response_done() {
    if (body_out_ == BodyOut::chunked) {
        write_last_chunk(client_->out(), response_body_.trailers());
    }
    complete_ = true;
    settle(Ending::Kind::answered);
    drop_upstream(response_.keep_alive && request_sent_);
}

}  // namespace ration
