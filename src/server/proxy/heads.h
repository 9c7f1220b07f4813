// Writing message heads: the forwarded request, the passed-on answer, ration's own answers.
//
// Nothing is forwarded that ends at this hop, that Connection names, or that only ration may say.
// Thread rule: pure apart from the buffer written to.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/engine.h"
#include "net/buffer.h"
#include "server/gateway.h"
#include "server/http/head_parser.h"

namespace ration {

// What the upstream is told about the connection the request came over.
struct ClientFacts {
    std::string_view address;  // text, empty for a Unix socket
    Peer peer;
    bool tls = false;
};

struct ForwardHead {
    const Engine& engine;
    const Exchange& exchange;
    const http::RequestHead& head;
    const UpstreamOptions& upstream;
    const ClientFacts& client;
    // Not empty: instead of the request, a GET of this target that asks what became of its key. It
    // has the request's fields, save those about a body or a condition.
    std::string_view probe = {};
};
void write_request_head(net::Buffer& out, const ForwardHead& forward);

// How the answer's body goes out.
enum class BodyOut : std::uint8_t { none, length, chunked, until_close };

struct PassedHead {
    const Engine& engine;
    const Exchange& exchange;
    const http::ResponseHead& head;
    BodyOut body = BodyOut::none;
    bool keep_alive = true;
    int client_minor_version = 1;
    std::string_view date;
};
void write_response_head(net::Buffer& out, const PassedHead& passed);
// A 1xx answer, without what the final one will carry.
void write_interim_head(net::Buffer& out, const http::ResponseHead& head);

struct OwnAnswer {
    const Answer& answer;
    std::string_view server_name;
    std::string_view date;
    bool keep_alive = true;
    bool to_head = false;  // answers HEAD: no body
    int client_minor_version = 1;
};
void write_own_answer(net::Buffer& out, const OwnAnswer& own);

// One chunk around `content`, which is not empty.
void write_chunk(net::Buffer& out, std::string_view content);
void write_last_chunk(net::Buffer& out, std::string_view trailers);

}  // namespace ration
