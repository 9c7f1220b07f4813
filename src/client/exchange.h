// One attempt on the wire: sends the request, follows redirects, keeps what came back. The owner
// adds its handle to libcurl's multi handle, moves that, and reports how each transfer ended.
//
// Thread rule: whoever moves the client's sockets. Ownership: what `Setup` points to must outlive
// the attempt. The last attempt's answer stays until the next begins.
#pragma once

#include <curl/curl.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "client/decide.h"
#include "client/redirect.h"
#include "client/request_lines.h"
#include "client/url.h"
#include "ration/client.h"

namespace ration::client {

class Exchange {
public:
    struct Setup {
        const ClientOptions* options = nullptr;
        const Clock* clock = nullptr;
        const RetryPolicy* policy = nullptr;
        const ClientRequest* request = nullptr;
        const Url* url = nullptr;
        std::string_view key;  // sent in the policy's key header unless the request has it
        unsigned attempt = 1;
        Mono until{};  // when the attempt's time is over
    };
    Exchange() = default;
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    // False: the request cannot be sent as it is; `outcome` says why.
    [[nodiscard]] bool begin(CURL* handle, const Setup& setup);
    // The transfer ended. True: another must follow with the same handle, to where a redirect led.
    [[nodiscard]] bool finished(CURLcode code);
    // Its time is over.
    void expired();
    // The caller wants it no more: nothing of it is kept.
    void abandon();

    [[nodiscard]] CURL* handle() const { return handle_; }
    // Gives the handle up; it must be in no multi handle any more.
    [[nodiscard]] CURL* release();
    [[nodiscard]] Mono until() const { return until_; }

    [[nodiscard]] Outcome outcome() const;
    // Of the request's body, for another attempt; after a failure it is at its beginning again.
    // What went to the request's `on_body` is not asked for again.
    [[nodiscard]] BodyKind kind_for_repeat();
    // Moves the answer, and what is known of its failure, into `result`.
    void move_into(ClientResult& result);

private:
    struct Answer {
        int status = 0;
        HeaderLines headers;
        std::string body;
        std::size_t header_bytes = 0;
        std::size_t skipped = 0;
        bool head_complete = false;
        bool cut = false;
    };

    [[nodiscard]] bool prepare_hop();
    void add_headers();
    [[nodiscard]] bool left_behind(std::string_view name) const;
    // Of the body that this hop sends.
    [[nodiscard]] BodyKind kind_to_send() const;
    [[nodiscard]] bool tells_length() const;
    void set_method();
    void set_callbacks();
    void show_certificate();
    [[nodiscard]] bool rewind_body();
    [[nodiscard]] std::ptrdiff_t read_body(std::span<char> into) const;
    [[nodiscard]] bool as_announced(std::size_t got);
    void head_ended();
    [[nodiscard]] bool refused() const { return answer_.head_complete && answer_.status >= 400; }
    void fail(AttemptError error, std::string_view message);
    [[nodiscard]] bool take_body(std::string_view bytes);

    static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t on_data(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t on_read(char* data, std::size_t size, std::size_t count, void* self);
    static int on_seek(void* self, curl_off_t offset, int origin);
    static int on_request(void* self, char*, char*, int, int);

    Setup setup_;
    CURL* handle_ = nullptr;
    RequestLines lines_;
    std::string url_;  // of this hop
    std::string method_;
    unsigned followed_ = 0;
    bool drop_body_ = false;
    bool drop_secrets_ = false;
    bool multiplexed_ = false;
    BodyKind body_kind_ = BodyKind::none;
    bool body_touched_ = false;
    std::uint64_t body_read_ = 0;  // bytes, since its beginning
    unsigned requests_begun_ = 0;  // of this hop
    bool sent_ = false;            // of any hop
    bool delivered_ = false;
    bool stopped_by_reader_ = false;
    bool announcement_refused_ = false;
    std::optional<AttemptError> error_;
    std::string message_;
    std::optional<Redirection> redirection_;
    std::optional<StopReason> redirect_stop_;
    Mono until_{};
    Answer answer_;
    char curl_error_[CURL_ERROR_SIZE] = {};
};

}  // namespace ration::client
