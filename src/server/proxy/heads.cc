#include "server/proxy/heads.h"

#include <charconv>

#include "request/header.h"

namespace ration {

namespace {

using http::FieldId;

void append_number(net::Buffer& out, std::uint64_t number, int base = 10) {
    std::array<char, 24> text;
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number, base);
    out.append({text.data(), static_cast<std::size_t>(end - text.data())});
}

void append_field(net::Buffer& out, std::string_view name, std::string_view value) {
    const std::size_t size = name.size() + value.size() + 4;
    char* at = out.room(size).data();
    at = std::copy(name.begin(), name.end(), at);
    *at++ = ':';
    *at++ = ' ';
    at = std::copy(value.begin(), value.end(), at);
    *at++ = '\r';
    *at = '\n';
    out.commit(size);
}

bool is_trusted(const AddressRules& rules, const Peer& peer) {
    if (!peer.address) {
        return rules.trust_unix;
    }
    for (const Cidr& network : rules.trusted) {
        if (network.contains(*peer.address)) {
            return true;
        }
    }
    return false;
}

void write_host(net::Buffer& out, const ForwardHead& forward) {
    const http::RequestHead& head = forward.head;
    if (!forward.upstream.host_header.empty()) {
        append_field(out, "Host", forward.upstream.host_header);
    } else if (!head.authority.empty()) {
        append_field(out, "Host", head.authority);
    } else if (const Header* host = head.fields.find(FieldId::host)) {
        append_field(out, "Host", host->value);
    } else {
        out.append("Host: ");
        out.append(forward.upstream.host);
        out.append(":");
        append_number(out, forward.upstream.port);
        out.append("\r\n");
    }
}

void write_forwarded_for(net::Buffer& out, const ForwardHead& forward) {
    const http::FieldList& list = forward.head.fields;
    bool first = true;
    const auto add = [&](std::string_view text) {
        if (text.empty()) {
            return;
        }
        out.append(first ? "X-Forwarded-For: " : ", ");
        out.append(text);
        first = false;
    };
    for (std::size_t i = 0; i < list.ids.size(); ++i) {
        if (list.ids[i] == FieldId::x_forwarded_for) {
            add(list.fields[i].value);
        }
    }
    add(forward.client.address);
    if (!first) {
        out.append("\r\n");
    }
}

void write_forwarded_proto(net::Buffer& out, const ForwardHead& forward) {
    const Header* told = forward.head.fields.find(FieldId::x_forwarded_proto);
    if (told != nullptr && is_trusted(forward.exchange.policy().address, forward.client.peer)) {
        append_field(out, "X-Forwarded-Proto", told->value);
    } else {
        out.append(forward.client.tls ? "X-Forwarded-Proto: https\r\n"
                                      : "X-Forwarded-Proto: http\r\n");
    }
}

// Fields of the client's head that go on to the upstream as they are.
bool goes_to_upstream(const http::RequestHead& head, std::size_t i) {
    const FieldId id = head.fields.ids[i];
    if (http::is_hop_by_hop(id)) {
        return false;
    }
    switch (id) {
        case FieldId::trailer:
            return head.framing == http::Framing::chunked;
        case FieldId::content_length:
        case FieldId::expect:
        case FieldId::host:
        case FieldId::x_forwarded_for:
        case FieldId::x_forwarded_proto:
            return false;
        default:
            break;
    }
    const std::string_view name = head.fields.fields[i].name;
    return !Engine::drops_request_field(name) &&
           !(head.drops_named_fields && http::named_by_connection(head.fields, name));
}

// Of the request's fields, those that would change what the answer to a probe means.
bool goes_to_probe(std::string_view name) {
    constexpr std::string_view groups[] = {"Content-", "If-"};
    for (const std::string_view group : groups) {
        if (equal_ignoring_case(name.substr(0, group.size()), group)) {
            return false;
        }
    }
    return !equal_ignoring_case(name, "Range") && !equal_ignoring_case(name, "Trailer");
}

void write_request_line(net::Buffer& out, const ForwardHead& forward) {
    if (!forward.probe.empty()) {
        out.append("GET ");
        out.append(forward.probe);
    } else {
        const NormalTarget& target = forward.exchange.target;
        out.append(forward.head.method);
        out.append(" ");
        out.append(target.path);
        if (target.has_query) {
            out.append("?");
            out.append(target.query);
        }
    }
    out.append(" HTTP/1.1\r\n");
}

// Fields of the upstream's answer that go on to the client as they are.
bool goes_to_client(const PassedHead& passed, std::size_t i) {
    const http::ResponseHead& head = passed.head;
    const FieldId id = head.fields.ids[i];
    if (http::is_hop_by_hop(id) || id == FieldId::content_length ||
        (id == FieldId::trailer && passed.body != BodyOut::chunked)) {
        return false;
    }
    const auto& [name, value] = head.fields.fields[i];
    return !passed.engine.drops_response_field(passed.exchange, name, value) &&
           !(head.drops_named_fields && http::named_by_connection(head.fields, name));
}

void write_status_line(net::Buffer& out, int status, std::string_view reason) {
    out.append("HTTP/1.1 ");
    append_number(out, static_cast<std::uint64_t>(status));
    out.append(" ");
    out.append(reason);
    out.append("\r\n");
}

void write_connection(net::Buffer& out, bool keep_alive, int client_minor_version) {
    if (!keep_alive) {
        out.append("Connection: close\r\n");
    } else if (client_minor_version == 0) {
        out.append("Connection: keep-alive\r\n");
    }
}

}  // namespace

void write_request_head(net::Buffer& out, const ForwardHead& forward) {
    const http::RequestHead& head = forward.head;
    const bool probe = !forward.probe.empty();
    write_request_line(out, forward);
    write_host(out, forward);
    for (std::size_t i = 0; i < head.fields.ids.size(); ++i) {
        if (goes_to_upstream(head, i) && (!probe || goes_to_probe(head.fields.fields[i].name))) {
            append_field(out, head.fields.fields[i].name, head.fields.fields[i].value);
        }
    }
    write_forwarded_for(out, forward);
    write_forwarded_proto(out, forward);
    forward.engine.request_fields(
        forward.exchange,
        [&out](std::string_view name, std::string_view value) { append_field(out, name, value); });
    if (probe) {
        out.append("Ration-Probe: true\r\n\r\n");
        return;
    }
    if (head.accepts_trailers) {
        out.append("TE: trailers\r\nConnection: TE\r\n");
    }
    if (head.framing == http::Framing::chunked) {
        out.append("Transfer-Encoding: chunked\r\n");
    } else if (head.framing == http::Framing::length) {
        out.append("Content-Length: ");
        append_number(out, head.length);
        out.append("\r\n");
    }
    out.append("\r\n");
}

void write_response_head(net::Buffer& out, const PassedHead& passed) {
    const http::ResponseHead& head = passed.head;
    write_status_line(out, head.status, head.reason);
    bool has_date = false;
    for (std::size_t i = 0; i < head.fields.ids.size(); ++i) {
        if (goes_to_client(passed, i)) {
            has_date |= head.fields.ids[i] == FieldId::date;
            append_field(out, head.fields.fields[i].name, head.fields.fields[i].value);
        }
    }
    passed.engine.response_fields(
        passed.exchange,
        [&out](std::string_view name, std::string_view value) { append_field(out, name, value); });
    if (!has_date) {
        append_field(out, "Date", passed.date);
    }
    if (passed.body == BodyOut::chunked) {
        out.append("Transfer-Encoding: chunked\r\n");
    } else if (head.has_length && passed.body != BodyOut::until_close && head.status != 204) {
        out.append("Content-Length: ");
        append_number(out, head.length);
        out.append("\r\n");
    }
    write_connection(out, passed.keep_alive, passed.client_minor_version);
    out.append("\r\n");
}

void write_interim_head(net::Buffer& out, const http::ResponseHead& head) {
    write_status_line(out, head.status, head.reason);
    for (std::size_t i = 0; i < head.fields.ids.size(); ++i) {
        const FieldId id = head.fields.ids[i];
        if (!http::is_hop_by_hop(head.fields.ids[i]) && id != FieldId::content_length) {
            append_field(out, head.fields.fields[i].name, head.fields.fields[i].value);
        }
    }
    out.append("\r\n");
}

void write_own_answer(net::Buffer& out, const OwnAnswer& own) {
    const Answer& answer = own.answer;
    write_status_line(out, answer.status, http::reason_phrase(answer.status));
    for (const auto& [name, value] : answer.headers) {
        append_field(out, name, value);
    }
    if (!own.server_name.empty()) {
        append_field(out, "Server", own.server_name);
    }
    append_field(out, "Date", own.date);
    const bool bodiless = answer.status == 204 || answer.status == 304;
    if (!bodiless) {
        out.append("Content-Length: ");
        append_number(out, answer.body.size());
        out.append("\r\n");
    }
    write_connection(out, own.keep_alive, own.client_minor_version);
    out.append("\r\n");
    if (!bodiless && !own.to_head) {
        out.append(answer.body);
    }
}

void write_chunk(net::Buffer& out, std::string_view content) {
    append_number(out, content.size(), 16);
    out.append("\r\n");
    out.append(content);
    out.append("\r\n");
}

void write_last_chunk(net::Buffer& out, std::string_view trailers) {
    out.append("0\r\n");
    out.append(trailers);
    out.append("\r\n");
}

}  // namespace ration
