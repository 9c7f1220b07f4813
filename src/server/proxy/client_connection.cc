// The connection's state machine. One `step` does, in this order: the phase's work on what is
// buffered, one flush, one read when more input is wanted. `drive` repeats it while anything moved,
// so nothing here recurses and a burst of pipelined requests is answered with few system calls.
#include "server/proxy/client_connection.h"

#include <utility>

#include "request/path.h"
#include "server/proxy/transfer.h"
#include "server/proxy/worker.h"

namespace ration {

namespace {

constexpr std::string_view target_too_long = "request target too long";

Peer peer_of(const net::Endpoint& endpoint) {
    Peer peer;
    const std::string text = endpoint.host();
    if (!text.empty()) {
        peer.address = IpAddress::parse(text);
    }
    return peer;
}

}  // namespace

ClientConnection::ClientConnection(Worker& worker, net::Stream stream, const net::Endpoint& peer)
    : worker_(worker),
      stream_(std::move(stream)),
      in_(worker.blocks()),
      out_(worker.blocks()),
      read_timer_(&ClientConnection::on_read_timeout, this),
      write_timer_(&ClientConnection::on_write_timeout, this),
      address_text_(peer.host()) {
    facts_.address = address_text_;
    facts_.peer = peer_of(peer);
    facts_.tls = stream_.tls();
    phase_ = facts_.tls ? Phase::handshake : Phase::head;
}

ClientConnection::~ClientConnection() = default;

void ClientConnection::start() {
    readable_ = true;
    drive();
}

void ClientConnection::on_ready(std::uint32_t events) {
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        readable_ = true;
        hangup_ |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    }
    writable_ |= (events & EPOLLOUT) != 0;
    drive();
}

void ClientConnection::wake() {
    if (driving_) {
        again_ = true;
    } else {
        drive();
    }
}

void ClientConnection::drain() {
    readable_ = true;  // a request may just have come
    drive();
}

void ClientConnection::abandon() {
    if (transfer_ != nullptr) {
        transfer_->client_gone();
    }
    close();
    worker_.closed(*this);
}

void ClientConnection::drive() {
    driving_ = true;
    int rounds = 0;
    do {
        again_ = false;
        step();
    } while (again_ && phase_ != Phase::closed && ++rounds < max_rounds_per_event);
    driving_ = false;
    if (phase_ == Phase::closed) {
        worker_.closed(*this);
        return;
    }
    if (again_) {
        worker_.loop().again(*this);
    }
    update_timers();
}

void ClientConnection::step() {
    if (phase_ == Phase::handshake) {
        step_handshake();
    } else if (phase_ == Phase::head) {
        read_heads();
    } else if (phase_ == Phase::first_chunk) {
        read_first_chunk();
    } else if (phase_ == Phase::relay) {
        relay();
    } else if (phase_ == Phase::orphan) {
        carry_on();
        return;
    } else if (phase_ == Phase::discard) {
        discard();
    } else if (phase_ == Phase::linger) {
        linger();
    }
    if (phase_ == Phase::closed || phase_ == Phase::handshake) {
        return;
    }
    const bool was_full = out_.size() >= worker_.options().stream_buffer_bytes;
    flush();
    if (phase_ == Phase::closed || phase_ == Phase::orphan) {
        return;
    }
    again_ |= was_full && out_.size() < worker_.options().stream_buffer_bytes;
    if (phase_ == Phase::relay && transfer_->complete() && out_.empty()) {
        finish_request();
        again_ = true;
    } else if (phase_ == Phase::linger && out_.empty() && !finished_writing_) {
        again_ = true;
    }
    if (!again_ && wants_input() && readable_) {
        again_ = read_input();
    }
    // Nothing is begun and nothing more comes (or may come): the connection has done its work.
    if (!again_ && phase_ == Phase::head && out_.empty() &&
        (eof_ || (worker_.draining() && in_.empty()))) {
        close();
    }
}

void ClientConnection::step_handshake() {
    const net::IoResult result = stream_.handshake();
    if (result.status == net::Io::done) {
        phase_ = Phase::head;
        readable_ = writable_ = true;
        again_ = true;
    } else if (result.status != net::Io::would_block) {
        close();
    }
}

// ---- heads ----

void ClientConnection::read_heads() {
    while (phase_ == Phase::head && !in_.empty() &&
           out_.size() < worker_.options().stream_buffer_bytes) {
        if (!skip_empty_lines()) {
            return;
        }
        const std::size_t most = worker_.options().max_header_bytes;
        switch (scanner_.scan(in_.data())) {
            case http::HeadScanner::Result::complete:
                if (scanner_.head_bytes() > most) {
                    refuse_large_head();
                    return;
                }
                take_request(scanner_.head_bytes());
                break;
            case http::HeadScanner::Result::more:
                if (in_.size() >= most) {
                    refuse_large_head();
                }
                return;
            case http::HeadScanner::Result::bare_line_feed:
                refuse_malformed(BuiltIn::bad_request, "bare line feed in a message head");
                return;
            case http::HeadScanner::Result::folded:
                refuse_malformed(BuiltIn::bad_request, "folded header line");
                return;
        }
    }
}

// RFC 9112 2.2: an empty line before a request line is ignored. False: wait for more.
bool ClientConnection::skip_empty_lines() {
    while (in_.data().starts_with("\r\n") && empty_lines_ < http::max_leading_empty_lines) {
        in_.consume(2);
        scanner_.reset();
        ++empty_lines_;
    }
    return !in_.empty() && in_.data() != "\r";
}

void ClientConnection::take_request(std::size_t head_bytes) {
    wait_ = Wait::none;
    transfer_ = worker_.take_transfer();
    const http::ParseProblem problem = transfer_->start(*this, in_.data().substr(0, head_bytes));
    in_.consume(head_bytes);
    scanner_.reset();
    empty_lines_ = 0;
    if ((!problem || problem.too_large) && transfer_->head().target.size() > max_target_bytes) {
        refuse_malformed(BuiltIn::uri_too_long, target_too_long);
        return;
    }
    if (problem) {
        refuse_malformed(problem.too_large ? BuiltIn::headers_too_large : BuiltIn::bad_request,
                         problem.reason);
        return;
    }
    const http::RequestHead& head = transfer_->head();
    if (head.length > worker_.options().max_body_bytes) {
        refuse_malformed(BuiltIn::payload_too_large, "body larger than allowed");
    } else if (head.other_expectation) {
        refuse_malformed(BuiltIn::expectation_failed, "unknown expectation");
    } else if (head.wants_upgrade || head.method == "CONNECT") {
        refuse_malformed(BuiltIn::upgrade_refused, "no upgrades and no tunnels");
    } else if (head.framing == http::Framing::chunked && !head.expects_continue) {
        phase_ = Phase::first_chunk;
        read_first_chunk();
    } else {
        admit_request();
    }
}

// A body that is broken from its first line on must reach neither the limits nor the upstream.
void ClientConnection::read_first_chunk() {
    http::BodyDecoder& body = transfer_->request_body();
    const http::BodyDecoder::Step step = body.next(in_.data());
    if (step.state == http::BodyDecoder::State::error) {
        refuse_malformed(BuiltIn::bad_request, body.reason());
    } else if (!body.at_first_chunk()) {
        in_.consume(step.used);
        admit_request();
    } else if (eof_) {
        gone();
    }
}

void ClientConnection::admit_request() {
    if (!transfer_->begin()) {
        finish_request();
        return;
    }
    phase_ = Phase::relay;
    transfer_->forward();
    again_ = true;
}

void ClientConnection::refuse_large_head() {
    if (http::target_too_long(in_.data(), worker_.options().max_header_bytes)) {
        refuse_malformed(BuiltIn::uri_too_long, target_too_long);
    } else {
        refuse_malformed(BuiltIn::headers_too_large, "header section too large");
    }
}

void ClientConnection::refuse_malformed(BuiltIn which, std::string_view reason) {
    if (transfer_ == nullptr) {
        transfer_ = worker_.take_transfer();
        transfer_->open(*this);
    }
    transfer_->answer_malformed(which, reason);
    transfer_->report();
    close_after_answer(true);
}

// ---- a request that was admitted, or answered ----

void ClientConnection::relay() {
    // A client that has sent its request and hangs up does not wait for the answer. Nor does one
    // whose request still waits for its turn, though its body is not read before that.
    if (hangup_ && !transfer_->complete() &&
        (transfer_->request_body().done() || transfer_->waits_its_turn())) {
        gone();
        return;
    }
    transfer_->advance();
    if (transfer_->aborted()) {
        transfer_->report();
        stream_.reset_connection();
        close();
    } else if (eof_ && transfer_->wants_request_body()) {
        gone();
    }
}

void ClientConnection::finish_request() {
    transfer_->report();
    if (!transfer_->keep_alive()) {
        close_after_answer(!transfer_->request_body().done());
    } else if (!transfer_->request_body().done()) {
        phase_ = Phase::discard;
        discarded_ = 0;
        again_ = true;
    } else {
        release_transfer();
        phase_ = Phase::head;
        if (in_.empty()) {
            in_.release();
        }
        if (out_.empty()) {
            out_.release();
        }
    }
}

void ClientConnection::release_transfer() {
    if (transfer_ != nullptr) {
        transfer_->reset();
        worker_.give_back(std::move(transfer_));
    }
}

// Reads the rest of a refused request away, so that what follows is read as what it is.
void ClientConnection::discard() {
    http::BodyDecoder& body = transfer_->request_body();
    while (!body.done()) {
        const http::BodyDecoder::Step step = body.next(in_.data());
        discarded_ += step.used;
        if (step.state == http::BodyDecoder::State::error || discarded_ > max_discarded_body) {
            close_after_answer(true);
            return;
        }
        in_.consume(step.used);
        if (step.used == 0) {
            break;
        }
    }
    if (body.done()) {
        release_transfer();
        phase_ = Phase::head;
        again_ = true;
    } else if (eof_) {
        close();
    }
}

void ClientConnection::close_after_answer(bool client_may_be_sending) {
    release_transfer();
    quiet_ = !client_may_be_sending && in_.empty();
    phase_ = Phase::linger;
    discarded_ = 0;
    again_ = true;
}

// Closing with unread input would reset the connection and could take the answer with it, so the
// client is told that this was all and listened to for a while.
void ClientConnection::linger() {
    discarded_ += in_.size();
    in_.clear();
    if (!out_.empty()) {
        return;
    }
    if (!finished_writing_) {
        finished_writing_ = true;
        stream_.finish_writing();
    }
    if (eof_ || (quiet_ && !readable_) || discarded_ > max_lingered_bytes) {
        close();
    }
}

// ---- bytes ----

bool ClientConnection::wants_input() const {
    if (eof_) {
        return false;
    }
    if (phase_ == Phase::relay) {
        return transfer_->wants_request_body() &&
               in_.size() < worker_.options().stream_buffer_bytes;
    }
    return phase_ != Phase::head || out_.size() < worker_.options().stream_buffer_bytes;
}

bool ClientConnection::read_input() {
    std::size_t least = 1;
    if (phase_ == Phase::relay) {
        const http::BodyDecoder& body = transfer_->request_body();
        if (body.framing() == http::Framing::chunked || body.left() > net::block_bytes) {
            least = worker_.options().stream_buffer_bytes - in_.size();
        }
    }
    const std::span<char> room = in_.room(least);
    const net::IoResult result = stream_.read(room);
    if (result.status == net::Io::done) {
        in_.commit(result.bytes);
        read_moved_ = true;
        readable_ = hangup_ || !stream_.ran_dry(result.bytes, room.size());
        return true;
    }
    readable_ = false;
    if (result.status == net::Io::would_block) {
        return false;
    }
    eof_ = hangup_ = true;
    return true;
}

void ClientConnection::flush() {
    while (!out_.empty() && writable_) {
        const net::IoResult result = stream_.write(out_.data());
        if (result.status == net::Io::done) {
            out_.consume(result.bytes);
            write_moved_ = true;
        } else if (result.status == net::Io::would_block) {
            writable_ = false;
        } else {
            gone();
            return;
        }
    }
}

// The client left in the middle of an attempt whose outcome the ledger waits for: what would go to
// it is thrown away, everything else goes on.
void ClientConnection::carry_on() {
    transfer_->advance();
    out_.clear();
    if (transfer_->complete() || transfer_->aborted()) {
        transfer_->client_gone();
        close();
    }
}

void ClientConnection::gone() {
    if (transfer_ != nullptr && transfer_->must_finish() && phase_ != Phase::orphan) {
        phase_ = Phase::orphan;
        stream_.close();
        in_.clear();
        out_.clear();
        readable_ = false;
        eof_ = hangup_ = true;
        again_ = true;
        return;
    }
    if (transfer_ != nullptr) {
        transfer_->client_gone();
        release_transfer();
    }
    close();
}

void ClientConnection::close() {
    release_transfer();
    read_timer_.disarm();
    write_timer_.disarm();
    stream_.close();
    phase_ = Phase::closed;
}

// ---- time ----

void ClientConnection::update_timers() {
    switch (phase_) {
        case Phase::handshake:
            set_wait(Wait::handshake, false);
            break;
        case Phase::head:
            // With answers waiting to be taken it is the client's reading that counts.
            set_wait(!out_.empty() ? Wait::none : in_.empty() ? Wait::idle : Wait::head, false);
            break;
        case Phase::relay:
            set_wait(transfer_->wants_request_body() ? Wait::body : Wait::none, read_moved_);
            break;
        case Phase::first_chunk:
        case Phase::discard:
            set_wait(Wait::body, read_moved_);
            break;
        case Phase::linger:
            set_wait(Wait::linger, false);
            break;
        case Phase::orphan:
            set_wait(Wait::none, false);
            break;
        case Phase::closed:
            break;
    }
    read_moved_ = false;
    if (out_.empty()) {
        write_timer_.disarm();
    } else if (write_moved_ || !write_timer_.armed()) {
        worker_.loop().timers().arm(write_timer_,
                                    worker_.loop().now().mono + worker_.options().write_timeout);
    }
    write_moved_ = false;
}

void ClientConnection::set_wait(Wait wait, bool refresh) {
    if (wait == wait_ && !refresh) {
        return;
    }
    wait_ = wait;
    Nanos length{0};
    switch (wait) {
        case Wait::none:
            read_timer_.disarm();
            return;
        case Wait::handshake:
        case Wait::head:
            length = worker_.options().header_timeout;
            break;
        case Wait::idle:
            length = worker_.options().idle_timeout;
            break;
        case Wait::body:
            length = worker_.options().body_timeout;
            break;
        case Wait::linger:
            length = linger_time;
            break;
    }
    worker_.loop().timers().arm(read_timer_, worker_.loop().now().mono + length);
}

void ClientConnection::on_read_timeout(void* self) {
    auto& connection = *static_cast<ClientConnection*>(self);
    const Wait wait = std::exchange(connection.wait_, Wait::none);
    const Phase phase = connection.phase_;
    if (wait == Wait::head || (wait == Wait::body && phase == Phase::first_chunk)) {
        connection.refuse_malformed(BuiltIn::request_timeout, "request not complete in time");
    } else if (wait == Wait::body && phase == Phase::relay) {
        connection.transfer_->body_failed(BuiltIn::request_timeout, "body not complete in time");
    } else {
        connection.close();
    }
    connection.drive();
}

void ClientConnection::on_write_timeout(void* self) {
    auto& connection = *static_cast<ClientConnection*>(self);
    connection.stream_.reset_connection();
    connection.gone();
    connection.drive();
}

}  // namespace ration
