// An attempt is a row of transfers: one, and one more for each redirect followed. libcurl would
// follow redirects and repeat requests by itself; both are kept from it, since credentials must not
// follow to another origin and an unsafe request must not be sent twice unseen. The callbacks that
// take the answer in are in exchange_answer.cc.
#include "client/exchange.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/match.h"
#include "base/same_word.h"
#include "base/text.h"
#include "client/access.h"
#include "client/easy_pool.h"
#include "client/policy.h"

namespace ration::client {
namespace {

// A larger or unbounded body is announced first, so that a refusal leaves it unread. libcurl waits
// a second for the server's word, which a small body is not worth.
constexpr std::uint64_t announced_from = 1U << 20U;

bool rewound(const RequestBody::Rewind& rewind) {
    try {
        return rewind();
    } catch (...) {
        return false;
    }
}

}  // namespace

Exchange::~Exchange() {
    if (handle_) {
        curl_easy_cleanup(handle_);
    }
}

bool Exchange::begin(CURL* handle, const Setup& setup) {
    setup_ = setup;
    handle_ = handle;
    url_ = setup.url->url;
    method_ = setup.request->method;
    followed_ = 0;
    drop_body_ = drop_secrets_ = false;
    sent_ = delivered_ = stopped_by_reader_ = announcement_refused_ = false;
    error_.reset();
    message_.clear();
    redirect_stop_.reset();
    until_ = setup.until;
    if (body_kind_ != BodyKind::stream_once_consumed) {
        body_kind_ = BodyAccess::kind(setup.request->body);
    }
    if (!handle_) {
        fail(AttemptError::bad_request, "libcurl gives no handle");
        return false;
    }
    if (body_kind_ == BodyKind::stream_once && BodyAccess::begun(setup.request->body)) {
        fail(AttemptError::bad_request, "the body was read before, and can be read once");
        return false;
    }
    if (const auto& rewind = BodyAccess::rewind(setup.request->body);
        rewind && setup.attempt == 1) {
        rewound(rewind);  // another call may have read it
    }
    return prepare_hop();
}

bool Exchange::prepare_hop() {
    answer_ = {};
    redirection_.reset();
    requests_begun_ = 0;
    curl_error_[0] = '\0';
    if (!rewind_body()) {
        fail(AttemptError::bad_request, "the body cannot be read from its beginning again");
        return false;
    }
    if (kind_to_send() != BodyKind::none && BodyAccess::size(setup_.request->body) == 0U &&
        !as_announced(0)) {  // libcurl asks for nothing then
        return false;
    }
    lines_.clear();
    add_headers();
    curl_easy_setopt(handle_, CURLOPT_URL, url_.c_str());
    // Only a TLS handshake tells of HTTP/2; without one it would be waited for a first answer.
    curl_easy_setopt(handle_, CURLOPT_PIPEWAIT, url_.starts_with("https:") ? 1L : 0L);
    curl_easy_setopt(handle_, CURLOPT_CURLU, followed_ == 0 ? setup_.url->parsed.get() : nullptr);
    set_method();
    curl_easy_setopt(handle_, CURLOPT_HTTPHEADER, lines_.list());
    show_certificate();
    set_callbacks();
    return true;
}

bool Exchange::rewind_body() {
    if (drop_body_ || !body_touched_) {
        return true;
    }
    const auto& rewind = BodyAccess::rewind(setup_.request->body);
    body_touched_ = false;
    body_read_ = 0;
    if (BodyAccess::read_at(setup_.request->body)) {
        return true;
    }
    return rewind ? rewound(rewind) : body_kind_ != BodyKind::stream_once_consumed;
}

BodyKind Exchange::kind_for_repeat() {
    if (delivered_) {
        return BodyKind::stream_once_consumed;
    }
    const bool again = error_ || answer_.status >= 400;
    return !again || rewind_body() ? body_kind_ : BodyKind::stream_once_consumed;
}

bool Exchange::left_behind(std::string_view name) const {
    if (same_word(name, "content-length") || same_word(name, "transfer-encoding")) {
        return true;  // the body says
    }
    if (drop_body_ && (absl::StartsWithIgnoreCase({name.data(), name.size()}, "content-"))) {
        return true;
    }
    if (!drop_secrets_) {
        return false;
    }
    const auto& secrets = setup_.options->secret_headers;
    return same_word(name, "authorization") || same_word(name, "cookie") ||
           same_word(name, "proxy-authorization") || same_word(name, "host") ||
           same_word(name, setup_.policy->key_header) ||
           std::any_of(secrets.begin(), secrets.end(),
                       [&](const std::string& secret) { return same_word(name, secret); });
}

BodyKind Exchange::kind_to_send() const {
    return drop_body_ ? BodyKind::none : body_kind_;
}

bool Exchange::tells_length() const {
    return kind_to_send() != BodyKind::none || method_ == "POST" || method_ == "PUT" ||
           method_ == "PATCH";
}

void Exchange::add_headers() {
    const ClientRequest& request = *setup_.request;
    bool typed = false;
    bool keyed = setup_.key.empty();
    for (const auto& [name, value] : request.headers) {
        typed = typed || same_word(name, "content-type");
        keyed = keyed || same_word(name, setup_.policy->key_header);
        if (!left_behind(name)) {
            lines_.add(name, value);
        }
    }
    if (!keyed && !drop_secrets_) {
        lines_.add(setup_.policy->key_header, setup_.key);
    }
    const std::string& attempt = setup_.options->attempt_header;
    if (setup_.attempt > 1 && !attempt.empty()) {
        lines_.add(attempt, cat(setup_.attempt));
    }
    if (!tells_length()) {
        return;
    }
    const auto size = BodyAccess::size(request.body);
    const bool announced = BodyAccess::is_read(request.body) && (!size || *size >= announced_from);
    if (!announced && !find_header(request.headers, "expect")) {
        lines_.leave_out("Expect");
    }
    if (!typed) {
        lines_.leave_out("Content-Type");  // libcurl has an opinion of its own
    }
}

void Exchange::set_method() {
    const RequestBody& body = setup_.request->body;
    const BodyKind kind = kind_to_send();
    if (!tells_length()) {
        curl_easy_setopt(handle_, CURLOPT_HTTPGET, 1L);
        if (method_ == "HEAD") {
            curl_easy_setopt(handle_, CURLOPT_NOBODY, 1L);
        }
    } else if (kind == BodyKind::none || kind == BodyKind::buffered) {
        const std::string& bytes = BodyAccess::bytes(body);
        curl_easy_setopt(handle_, CURLOPT_POST, 1L);
        curl_easy_setopt(handle_, CURLOPT_POSTFIELDS, kind == BodyKind::none ? "" : bytes.c_str());
        curl_easy_setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE,
                         static_cast<curl_off_t>(kind == BodyKind::none ? 0 : bytes.size()));
    } else {
        const auto size = BodyAccess::size(body);
        curl_easy_setopt(handle_, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(handle_, CURLOPT_INFILESIZE_LARGE,
                         size ? static_cast<curl_off_t>(*size) : curl_off_t{-1});
    }
    curl_easy_setopt(handle_, CURLOPT_CUSTOMREQUEST, method_.c_str());
}

// Who the caller is: for its own origin only.
void Exchange::show_certificate() {
    const auto& [file, key] =
        std::tie(setup_.options->client_certificate, setup_.options->client_key);
    if (!file.empty()) {
        curl_easy_setopt(handle_, CURLOPT_SSLCERT, drop_secrets_ ? nullptr : file.c_str());
        curl_easy_setopt(handle_, CURLOPT_SSLKEY, drop_secrets_ ? nullptr : key.c_str());
    }
}

void Exchange::set_callbacks() {
    curl_easy_setopt(handle_, CURLOPT_HEADERFUNCTION, &Exchange::on_header);
    curl_easy_setopt(handle_, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(handle_, CURLOPT_WRITEFUNCTION, &Exchange::on_data);
    curl_easy_setopt(handle_, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(handle_, CURLOPT_READFUNCTION, &Exchange::on_read);
    curl_easy_setopt(handle_, CURLOPT_READDATA, this);
    curl_easy_setopt(handle_, CURLOPT_SEEKFUNCTION, &Exchange::on_seek);
    curl_easy_setopt(handle_, CURLOPT_SEEKDATA, this);
    curl_easy_setopt(handle_, CURLOPT_PREREQFUNCTION, &Exchange::on_request);
    curl_easy_setopt(handle_, CURLOPT_PREREQDATA, this);
    curl_easy_setopt(handle_, CURLOPT_ERRORBUFFER, curl_error_);
}

CURL* Exchange::release() {
    CURL* handle = std::exchange(handle_, nullptr);
    if (announcement_refused_) {  // libcurl's handle would never announce a body again
        curl_easy_cleanup(std::exchange(handle, nullptr));
    }
    return handle;
}

bool Exchange::finished(CURLcode code) {
    long version = 0;
    curl_easy_getinfo(handle_, CURLINFO_HTTP_VERSION, &version);
    multiplexed_ = version == CURL_HTTP_VERSION_2_0;
    if (redirection_ && !redirection_->stop) {
        url_ = redirection_->url;
        method_ = redirection_->method;
        drop_body_ = drop_body_ || redirection_->drop_body;
        drop_secrets_ = drop_secrets_ || redirection_->drop_secrets;
        ++followed_;
        return prepare_hop();
    }
    if (code == CURLE_OK) {
        if (answer_.status == 0) {
            fail(AttemptError::protocol_error, "the answer has no status");
        } else if (!answer_.head_complete) {
            fail(AttemptError::connection_lost,
                 "the connection ended before the answer's head did");
        }
    } else if (refused()) {
        answer_.cut = true;  // why it was refused is known well enough
    } else if (!error_) {
        const char* text = curl_error_[0] ? curl_error_ : curl_easy_strerror(code);
        fail(error_of(code, sent_), text);
    }
    return false;
}

void Exchange::expired() {
    if (refused()) {
        answer_.cut = true;
        return;
    }
    if (sent_) {
        fail(AttemptError::attempt_timeout, "no whole answer in time");
    } else {
        fail(AttemptError::connect_failed, "not connected in time");
    }
}

void Exchange::abandon() {
    answer_ = {};
    error_.reset();
    message_.clear();
}

void Exchange::fail(AttemptError error, std::string_view message) {
    error_ = error;
    message_ = message;
}

Outcome Exchange::outcome() const {
    Outcome outcome;
    outcome.error = error_;
    outcome.other_origin = drop_secrets_;
    outcome.multiplexed = multiplexed_;
    outcome.redirect = redirect_stop_;
    if (!error_) {
        outcome.status = answer_.status;
        outcome.headers = &answer_.headers;
        if (!answer_.cut) {
            outcome.body = answer_.body;
        }
    }
    return outcome;
}

void Exchange::move_into(ClientResult& result) {
    result.error = error_;
    result.without_secrets = drop_secrets_;
    result.message = std::move(message_);
    result.url = std::move(url_);
    if (!error_) {
        result.status = answer_.status;
        result.headers = std::move(answer_.headers);
        result.body = std::move(answer_.body);
        result.body_complete = !answer_.cut;
    }
}

}  // namespace ration::client
