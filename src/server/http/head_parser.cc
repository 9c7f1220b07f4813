// The parser is Beast's, given the whole head at once; it costs little and is strict on tokens and
// bytes. What it lets through and a proxy must not: codings it does not know (it then sees no body
// at all), a missing or repeated Host, several lengths that agree, lengths with a sign, versions
// other than 1.0 and 1.1, folded lines (refused earlier, by the scanner). Those are checked here.
#include "server/http/head_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <charconv>
#include <cstring>

#include "request/path.h"

namespace ration::http {

namespace {

namespace beast = boost::beast;

std::string_view view(beast::string_view text) {
    return {text.data(), text.size()};
}

constexpr const char* too_many_fields = "too many header fields";

// Collects what the parser reports into a head.
template <bool is_request, typename Head>
class Collector final : public beast::http::basic_parser<is_request> {
public:
    Collector(Head& head, const HeadLimits& limits) : head_(head), limits_(limits) {
        this->header_limit(static_cast<std::uint32_t>(limits.bytes + 1));
        this->skip(true);
    }
    [[nodiscard]] bool too_many() const { return too_many_; }

private:
    // NOLINTNEXTLINE(readability-function-size): Beast's signature
    void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                         int version, beast::error_code& ec) override {
        if constexpr (is_request) {
            head_.method = view(method);
            head_.target = view(target);
        }
        take_version(version, ec);
    }
    void on_response_impl(int status, beast::string_view reason, int version,
                          beast::error_code& ec) override {
        if constexpr (!is_request) {
            head_.status = status;
            head_.reason = view(reason);
        }
        take_version(version, ec);
    }
    void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                       beast::error_code& ec) override {
        if (head_.fields.fields.size() >= limits_.fields) {
            too_many_ = true;
            ec = beast::http::error::header_limit;
            return;
        }
        const std::string_view field_name = view(name);
        head_.fields.add(field_id(field_name), {field_name, view(value)});
    }
    void on_header_impl(beast::error_code&) override {}
    void on_body_init_impl(const boost::optional<std::uint64_t>&, beast::error_code&) override {}
    std::size_t on_body_impl(beast::string_view, beast::error_code&) override { return 0; }
    void on_chunk_header_impl(std::uint64_t, beast::string_view, beast::error_code&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view, beast::error_code&) override {
        return 0;
    }
    void on_finish_impl(beast::error_code&) override {}

    void take_version(int version, beast::error_code& ec) {
        if (version != 10 && version != 11) {
            ec = beast::http::error::bad_version;
            return;
        }
        head_.minor_version = version - 10;
    }

    Head& head_;
    const HeadLimits& limits_;
    bool too_many_ = false;
};

const char* reason_of(const beast::error_code& ec) {
    using beast::http::error;
    const auto code = static_cast<error>(ec.value());
    if (ec.category() != beast::error_code(error::bad_method).category()) {
        return "malformed message";
    }
    if (code == error::bad_method) {
        return "malformed method";
    }
    if (code == error::bad_target) {
        return "malformed request target";
    }
    if (code == error::bad_version) {
        return "unsupported or malformed HTTP version";
    }
    if (code == error::bad_status || code == error::bad_reason) {
        return "malformed status line";
    }
    if (code == error::bad_field) {
        return "malformed field name";
    }
    if (code == error::bad_value) {
        return "malformed field value";
    }
    if (code == error::bad_content_length || code == error::multiple_content_length) {
        return "malformed or repeated Content-Length";
    }
    if (code == error::bad_transfer_encoding) {
        return "Transfer-Encoding repeated or beside Content-Length";
    }
    return "malformed message head";
}

template <bool is_request, typename Head>
ParseProblem run_parser(std::string_view text, const HeadLimits& limits, Head& head) {
    head.fields.clear();
    Collector<is_request, Head> parser(head, limits);
    beast::error_code ec;
    const std::size_t used = parser.put(boost::asio::const_buffer(text.data(), text.size()), ec);
    if (parser.too_many() || ec == beast::http::error::header_limit) {
        return {parser.too_many() ? too_many_fields : "header section too large", true};
    }
    if (ec) {
        return {reason_of(ec)};
    }
    if (!parser.is_header_done() || used != text.size()) {
        return {"malformed message head"};
    }
    return {};
}

// 1*DIGIT and nothing else; the parser would take "5, 5".
bool parse_length(std::string_view text, std::uint64_t& length) {
    if (text.empty() || text.size() > 19) {
        return false;
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    return error == std::errc() && end == text.data() + text.size() && text.front() != '-';
}

// What the fields say about framing and the connection, requests and responses alike.
struct Facts {
    const Header* length = nullptr;
    const Header* coding = nullptr;
    bool close = false;
    bool keep_alive = false;
    bool upgrade = false;
    bool names_fields = false;
    bool te_named = false;
};

void read_connection(std::string_view value, Facts& facts) {
    std::string_view item;
    while (next_list_item(value, item)) {
        if (equal_ignoring_case(item, "close")) {
            facts.close = true;
        } else if (equal_ignoring_case(item, "keep-alive")) {
            facts.keep_alive = true;
        } else if (equal_ignoring_case(item, "upgrade")) {
            facts.upgrade = true;
        } else if (equal_ignoring_case(item, "te")) {
            facts.te_named = true;
        } else {
            facts.names_fields = true;
        }
    }
}

const char* framing_facts(FieldId id, const Header& field, Facts& facts) {
    if (id == FieldId::content_length) {
        if (facts.length != nullptr) {
            return "more than one Content-Length";
        }
        facts.length = &field;
    } else if (id == FieldId::transfer_encoding) {
        if (facts.coding != nullptr) {
            return "more than one Transfer-Encoding";
        }
        facts.coding = &field;
    } else if (id == FieldId::connection) {
        read_connection(field.value, facts);
    }
    return nullptr;
}

const char* decide_framing(const Facts& facts, int minor_version, Framing& framing,
                           std::uint64_t& length) {
    framing = Framing::none;
    length = 0;
    if (facts.coding != nullptr) {
        if (facts.length != nullptr) {
            return "Transfer-Encoding beside Content-Length";
        }
        if (minor_version == 0) {
            return "Transfer-Encoding in HTTP/1.0";
        }
        if (!equal_ignoring_case(facts.coding->value, "chunked")) {
            return "unsupported Transfer-Encoding";
        }
        framing = Framing::chunked;
    } else if (facts.length != nullptr) {
        if (!parse_length(facts.length->value, length)) {
            return "malformed Content-Length";
        }
        framing = Framing::length;
    }
    return nullptr;
}

bool connection_stays(const Facts& facts, int minor_version) {
    return !facts.close && (minor_version == 1 || facts.keep_alive);
}

// The authority of "http://host/path"; false when the target is absolute and it is not right.
bool find_authority(std::string_view target, std::string_view& authority) {
    authority = {};
    if (target.starts_with('/') || target == "*") {
        return true;
    }
    const std::size_t scheme = target.find("://");
    if (scheme == std::string_view::npos) {
        return true;  // judged as a path later, and refused there
    }
    const std::size_t begin = scheme + 3;
    authority = target.substr(begin, target.find_first_of("/?#", begin) - begin);
    return is_authority(authority);
}

struct RequestFacts {
    int hosts = 0;
    const Header* host = nullptr;
    bool upgrade_beyond_h2c = false;
};

void read_request_field(FieldId id, const Header& field, RequestHead& head, RequestFacts& facts) {
    if (id == FieldId::host) {
        ++facts.hosts;
        facts.host = &field;
    } else if (id == FieldId::expect) {
        if (equal_ignoring_case(field.value, "100-continue")) {
            head.expects_continue = head.minor_version == 1;
        } else {
            head.other_expectation = true;
        }
    } else if (id == FieldId::upgrade) {
        std::string_view list = field.value;
        std::string_view item;
        while (next_list_item(list, item)) {
            facts.upgrade_beyond_h2c |= !equal_ignoring_case(item, "h2c");
        }
    } else if (id == FieldId::te) {
        head.accepts_trailers |= list_has(field.value, "trailers");
    }
}

}  // namespace

const Header* FieldList::find(FieldId id) const {
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] == id) {
            return &fields[i];
        }
    }
    return nullptr;
}

HeadScanner::Result HeadScanner::scan(std::string_view bytes) {
    while (at_ < bytes.size()) {
        if (at_ == line_start_ && at_ > 0 && (bytes[at_] == ' ' || bytes[at_] == '\t')) {
            return Result::folded;
        }
        const char* begin = bytes.data() + at_;
        const void* found = std::memchr(begin, '\n', bytes.size() - at_);
        if (found == nullptr) {
            at_ = bytes.size();
            return Result::more;
        }
        const auto feed = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
        if (feed == line_start_ || bytes[feed - 1] != '\r') {
            return Result::bare_line_feed;
        }
        const bool empty = feed == line_start_ + 1;
        at_ = line_start_ = feed + 1;
        if (empty) {
            return Result::complete;
        }
    }
    return Result::more;
}

bool target_too_long(std::string_view bytes, std::size_t most) {
    bytes = bytes.substr(0, most);
    const std::size_t end = bytes.find("\r\n");
    const std::string_view line = bytes.substr(0, end);
    const std::size_t begin = line.find(' ');
    if (begin == std::string_view::npos) {
        return false;
    }
    const std::string_view rest = line.substr(begin + 1);
    return end == std::string_view::npos ||
           rest.substr(0, rest.find(' ')).size() > max_target_bytes;
}

ParseProblem parse_request(std::string_view text, const HeadLimits& limits, RequestHead& head) {
    head.expects_continue = head.other_expectation = head.accepts_trailers = false;
    if (ParseProblem problem = run_parser<true>(text, limits, head)) {
        return problem;
    }
    Facts facts;
    RequestFacts request;
    for (std::size_t i = 0; i < head.fields.ids.size(); ++i) {
        const FieldId id = head.fields.ids[i];
        if (id == FieldId::other) {
            continue;
        }
        if (const char* reason = framing_facts(id, head.fields.fields[i], facts)) {
            return {reason};
        }
        read_request_field(id, head.fields.fields[i], head, request);
    }
    if (const char* reason = decide_framing(facts, head.minor_version, head.framing, head.length)) {
        return {reason};
    }
    if (request.hosts > 1 || (request.hosts == 0 && head.minor_version == 1)) {
        return {request.hosts == 0 ? "no Host" : "more than one Host"};
    }
    if (request.host != nullptr && !is_authority(request.host->value)) {
        return {"malformed Host"};
    }
    if (head.method != "CONNECT" && !find_authority(head.target, head.authority)) {
        return {"malformed authority in the request target"};
    }
    head.keep_alive = connection_stays(facts, head.minor_version);
    head.wants_upgrade = facts.upgrade && request.upgrade_beyond_h2c;
    head.accepts_trailers &= facts.te_named;
    head.drops_named_fields = facts.names_fields;
    return {};
}

ParseProblem parse_response(std::string_view text, const HeadLimits& limits, bool to_head,
                            ResponseHead& head) {
    if (ParseProblem problem = run_parser<false>(text, limits, head)) {
        return problem;
    }
    Facts facts;
    for (std::size_t i = 0; i < head.fields.ids.size(); ++i) {
        if (head.fields.ids[i] == FieldId::other) {
            continue;
        }
        if (const char* reason = framing_facts(head.fields.ids[i], head.fields.fields[i], facts)) {
            return {reason};
        }
    }
    if (const char* reason = decide_framing(facts, head.minor_version, head.framing, head.length)) {
        return {reason};
    }
    if (head.status < 100) {
        return {"malformed status line"};
    }
    head.has_length = head.framing == Framing::length;
    head.keep_alive = connection_stays(facts, head.minor_version);
    head.drops_named_fields = facts.names_fields;
    if (to_head || head.status < 200 || head.status == 204 || head.status == 304) {
        head.framing = Framing::none;
    } else if (head.framing == Framing::none) {
        head.framing = Framing::until_close;
        head.keep_alive = false;
    }
    return {};
}

bool named_by_connection(const FieldList& fields, std::string_view name) {
    for (std::size_t i = 0; i < fields.ids.size(); ++i) {
        if (fields.ids[i] == FieldId::connection &&
            ends_by_connection(fields.fields[i].value, name)) {
            return true;
        }
    }
    return false;
}

}  // namespace ration::http
