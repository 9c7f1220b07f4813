#include "workbench/replay_line.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policy/problems.h"
#include "server/http/fields.h"
#include "workbench/instant.h"
#include "workbench/json_cursor.h"
#include "workbench/message_check.h"

namespace ration {

namespace {

using Kind = JsonCursor::Kind;

const std::vector<std::string_view> line_fields = {
    "at", "method", "path", "headers", "peer", "body", "response", "id", "event", "file", "state"};
const std::vector<std::string_view> response_fields = {"status", "headers", "body", "takes",
                                                       "probe"};

bool unknown(JsonCursor& cursor, std::string_view name,
             const std::vector<std::string_view>& known) {
    std::string reason = cat("unknown field ", json_quoted(name));
    if (const std::string_view near = nearest_word(name, known); !near.empty()) {
        reason += cat(", did you mean \"", near, "\"?");
    }
    return cursor.fail(std::move(reason));
}

bool read_at(JsonCursor& cursor, ReplayLine& line) {
    std::string text;
    std::string_view raw;
    const bool is_string = cursor.peek() == Kind::string;
    if (!is_string && cursor.peek() != Kind::number) {
        return cursor.fail("\"at\" must be a date in a string, or a number of seconds");
    }
    if (is_string) {
        if (!cursor.string(text)) {
            return false;
        }
        line.at_text = json_quoted(text);
    } else {
        if (!cursor.number(raw)) {
            return false;
        }
        text = line.at_text = std::string(raw);
    }
    if (is_string && parse_seconds(text).ok()) {
        return cursor.fail("\"at\" in a string must be a date; write seconds as a number");
    }
    const auto at = read_instant(text);
    if (!at.ok()) {
        return cursor.fail(std::string(at.status().message()));
    }
    line.at = *at;
    line.at_column = cursor.token_column();
    return true;
}

bool read_field_value(JsonCursor& cursor, const std::string& name, Fields& fields) {
    std::string value;
    if (!cursor.string(value)) {
        return false;
    }
    if (const std::string wrong = wrong_field(name, value); !wrong.empty()) {
        return cursor.fail(wrong);
    }
    fields.emplace_back(name, http::trimmed(value));
    return true;
}

bool read_headers(JsonCursor& cursor, Fields& fields) {
    return cursor.object([&](const std::string& name) {
        if (cursor.peek() == Kind::array) {
            return cursor.array([&] { return read_field_value(cursor, name, fields); });
        }
        return cursor.peek() == Kind::string
                   ? read_field_value(cursor, name, fields)
                   : cursor.fail("a header is a string, or a list of strings");
    });
}

bool read_takes(JsonCursor& cursor, std::optional<Nanos>& takes) {
    if (cursor.peek() == Kind::string) {
        std::string word;
        takes.reset();
        return cursor.string(word) &&
               (word == "never" || cursor.fail("\"takes\" is a number of seconds or \"never\""));
    }
    std::string_view raw;
    if (!cursor.number(raw)) {
        return false;
    }
    const auto span = parse_seconds(raw);
    if (!span.ok() || *span < Nanos(0)) {
        return cursor.fail(span.ok() ? "\"takes\" is below 0"
                                     : std::string(span.status().message()));
    }
    takes = *span;
    return true;
}

bool read_status(JsonCursor& cursor, int& status) {
    std::string_view raw;
    if (!cursor.number(raw)) {
        return false;
    }
    return (std::from_chars(raw.data(), raw.data() + raw.size(), status).ptr ==
                raw.data() + raw.size() &&
            status >= 200 && status <= 599) ||
           cursor.fail("the status of a final answer is a whole number from 200 to 599");
}

bool read_response(JsonCursor& cursor, ScriptedAnswer& answer, bool of_probe = false) {
    return cursor.object([&](const std::string& name) {
        if (name == "status") {
            return read_status(cursor, answer.status);
        }
        if (name == "headers") {
            return read_headers(cursor, answer.headers);
        }
        if (name == "body") {
            return cursor.string(answer.body);
        }
        if (name == "takes") {
            return read_takes(cursor, answer.takes);
        }
        if (name == "probe" && !of_probe) {
            return read_response(cursor, answer.probe.emplace_back(), true);
        }
        return name == "probe" ? cursor.fail("an answer to a probe has no probe of its own")
                               : unknown(cursor, name, response_fields);
    });
}

bool read_peer(JsonCursor& cursor, Peer& peer) {
    std::string text;
    if (!cursor.string(text)) {
        return false;
    }
    peer.address = IpAddress::parse(text);
    return peer.address.has_value() || cursor.fail(cat(json_quoted(text), " is not an IP address"));
}

bool read_method(JsonCursor& cursor, std::string& method) {
    return cursor.string(method) &&
           (http::is_token(method) ||
            cursor.fail(cat(json_quoted(method), " is not a request method")));
}

// What the line said besides a request, put together when the whole line is read.
struct Said {
    std::vector<std::string> names;
    std::string event;
    std::string state;
    std::string file;

    [[nodiscard]] bool has(std::string_view name) const {
        return std::find(names.begin(), names.end(), name) != names.end();
    }
};

bool read_member(JsonCursor& cursor, const std::string& name, ReplayLine& line, Said& said) {
    said.names.push_back(name);
    ServiceRequest& request = line.request;
    if (name == "at") {
        return read_at(cursor, line);
    }
    if (name == "method") {
        return read_method(cursor, request.method);
    }
    if (name == "path") {
        return cursor.string(request.target);
    }
    if (name == "headers") {
        return read_headers(cursor, request.headers);
    }
    if (name == "peer") {
        return read_peer(cursor, request.peer);
    }
    if (name == "body") {
        return cursor.string(request.body);
    }
    if (name == "response") {
        return read_response(cursor, request.upstream);
    }
    if (name == "id") {
        std::string_view raw;
        const bool good = cursor.scalar(raw);
        line.id_text = std::string(raw);
        return good;
    }
    if (name == "event") {
        return cursor.string(said.event);
    }
    if (name == "file") {
        return cursor.string(said.file);
    }
    return name == "state" ? cursor.string(said.state) : unknown(cursor, name, line_fields);
}

// Empty, or what is wrong with the members of an event line.
std::string finish_event(const Said& said, ReplayLine& line) {
    static const std::vector<std::string_view> events = {"restart", "policy", "counters"};
    std::vector<std::string_view> allowed = {"at", "event"};
    ReplayEvent event;
    if (said.event == "restart") {
        event.kind = ReplayEvent::Kind::restart;
    } else if (said.event == "policy") {
        event.kind = ReplayEvent::Kind::policy;
        event.file = said.file;
        allowed.push_back("file");
        if (said.file.empty()) {
            return "the event \"policy\" needs \"file\"";
        }
    } else if (said.event == "counters") {
        allowed.push_back("state");
        if (said.state != "down" && said.state != "up") {
            return "the event \"counters\" needs \"state\", which is \"down\" or \"up\"";
        }
        event.kind = said.state == "down" ? ReplayEvent::Kind::counters_down
                                          : ReplayEvent::Kind::counters_up;
    } else {
        std::string reason = cat("unknown event ", json_quoted(said.event));
        const std::string_view near = nearest_word(said.event, events);
        return near.empty() ? reason : cat(reason, ", did you mean \"", near, "\"?");
    }
    for (const std::string& name : said.names) {
        if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
            return cat("the event \"", said.event, "\" has no field ", json_quoted(name));
        }
    }
    line.event = std::move(event);
    return {};
}

// Empty, or what is missing from (or too much in) the line as a whole.
std::string finish_line(const Said& said, ReplayLine& line) {
    if (!said.has("at")) {
        return "\"at\" is missing";
    }
    if (said.has("event")) {
        return finish_event(said, line);
    }
    for (const std::string_view name : {"method", "path"}) {
        if (!said.has(name)) {
            return cat("\"", name, "\" is missing");
        }
    }
    for (const std::string_view name : {"file", "state"}) {
        if (said.has(name)) {
            return cat("\"", name, "\" belongs to an event, and the line has none");
        }
    }
    return {};
}

}  // namespace

std::optional<ReplayLine> parse_replay_line(std::string_view text, LineError& error) {
    ReplayLine line;
    line.request.peer.address = IpAddress::parse("127.0.0.1");
    Said said;
    JsonCursor cursor(text);
    const bool read = cursor.object(
        [&](const std::string& name) { return read_member(cursor, name, line, said); });
    if (!read || !cursor.end()) {
        error = {cursor.column(), cursor.reason()};
        return std::nullopt;
    }
    if (std::string wrong = finish_line(said, line); !wrong.empty()) {
        error = {1, std::move(wrong)};
        return std::nullopt;
    }
    return line;
}

}  // namespace ration
