// Requests whose end two servers could see in different places: 400, the connection closed, nothing
// of them at the upstream (RFC 9112 sections 2.2, 3.2, 5, 6 and 11.2).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/http/harness.h"

namespace ration::testing {
namespace {

using namespace std::string_literals;

struct Probe {
    std::string what;
    std::string bytes;
};

std::string post_with(const std::string& fields, const std::string& rest = "hello") {
    return "POST /x HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + rest;
}

std::string chunked(const std::string& body) {
    return post_with("Transfer-Encoding: chunked\r\n", body);
}

const std::vector<Probe>& probes() {
    static const std::vector<Probe> all = {
        // lengths
        {"length beside coding",
         post_with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        {"coding beside length",
         post_with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n")},
        {"two lengths", post_with("Content-Length: 5\r\nContent-Length: 50\r\n")},
        {"one length twice", post_with("Content-Length: 5\r\nContent-Length: 5\r\n")},
        {"a list of lengths", post_with("Content-Length: 5, 50\r\n")},
        {"a list of equal lengths", post_with("Content-Length: 5, 5\r\n")},
        {"plus", post_with("Content-Length: +5\r\n")},
        {"minus", post_with("Content-Length: -5\r\n")},
        {"hexadecimal", post_with("Content-Length: 0x5\r\n")},
        {"a fraction", post_with("Content-Length: 5.0\r\n")},
        {"empty", post_with("Content-Length: \r\n")},
        {"blank inside", post_with("Content-Length: 5 0\r\n")},
        {"too many digits", post_with("Content-Length: 99999999999999999999\r\n")},
        {"letters after", post_with("Content-Length: 5a\r\n")},
        // codings
        {"xchunked", post_with("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")},
        {"chunked, identity", post_with("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n")},
        {"identity", post_with("Transfer-Encoding: identity\r\n")},
        {"gzip, chunked", post_with("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")},
        {"chunked twice in a list",
         post_with("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n")},
        {"two codings",
         post_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        {"two codings, one unknown",
         post_with("Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        {"empty coding", post_with("Transfer-Encoding:\r\n", "0\r\n\r\n")},
        {"quoted", post_with("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n")},
        {"parameter", post_with("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n")},
        {"vertical tab", post_with("Transfer-Encoding: \x0b"
                                   "chunked\r\n",
                                   "0\r\n\r\n")},
        {"coding in 1.0",
         "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        // lines and names
        {"blank before the colon", post_with("Content-Length : 5\r\n")},
        {"blank before Host's colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
        {"tab before the colon", post_with("Content-Length\t: 5\r\n")},
        {"blank before a name", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
        {"folded line", "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"},
        {"folded by a tab", "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n"},
        {"folded coding", post_with("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n")},
        {"bare line feeds", "GET / HTTP/1.1\nHost: a\n\n"},
        {"one bare line feed", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
        {"line feed before the end", "GET / HTTP/1.1\r\nHost: a\r\n\n"},
        {"bare carriage return", "GET / HTTP/1.1\r\nHost: a\r\nX: b\rY: c\r\n\r\n"},
        {"doubled carriage return", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"},
        {"NUL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"s},
        {"NUL in a name", "GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n"s},
        {"control in a value",
         "GET / HTTP/1.1\r\nHost: a\r\nX: a\x01"
         "b\r\n\r\n"},
        {"no colon", "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"},
        {"empty name", "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n"},
        {"bracket in a name", "GET / HTTP/1.1\r\nHost: a\r\nX[]: x\r\n\r\n"},
        {"high byte in a name", "GET / HTTP/1.1\r\nHost: a\r\nX\xc4\xb0: x\r\n\r\n"},
        // Host
        {"no Host", "GET / HTTP/1.1\r\n\r\n"},
        {"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
        {"one Host twice", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},
        {"two Hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"},
        {"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
        {"list in Host", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"},
        {"path in Host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
        {"user in Host", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"},
        {"port out of range", "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"},
        {"port in words", "GET / HTTP/1.1\r\nHost: a:http\r\n\r\n"},
        {"user in the target", "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {"no host in the target", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"},
        // request line
        {"no version", "GET /\r\nHost: a\r\n\r\n"},
        {"version 2", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
        {"version 1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"},
        {"version 0.9", "GET / HTTP/0.9\r\nHost: a\r\n\r\n"},
        {"lower case version", "GET / http/1.1\r\nHost: a\r\n\r\n"},
        {"two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {"tab", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {"blank in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"},
        {"blank before the method", " GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {"method is no token", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {"blank after the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
        {"not HTTP at all", "\x16\x03\x01\x02\r\n\r\n"},
        // chunks
        {"line feed in an extension", chunked("5;a\nb\r\nhello\r\n0\r\n\r\n")},
        {"size line ended by a line feed", chunked("5\nhello\r\n0\r\n\r\n")},
        {"bare carriage return in a size line", chunked("5\rX\r\nhello\r\n0\r\n\r\n")},
        {"size overflow", chunked("fffffffffffffffff\r\nhello\r\n0\r\n\r\n")},
        {"size past 2^64", chunked("10000000000000005\r\nhello\r\n0\r\n\r\n")},
        {"0x in a size", chunked("0x5\r\nhello\r\n0\r\n\r\n")},
        {"plus in a size", chunked("+5\r\nhello\r\n0\r\n\r\n")},
        {"minus in a size", chunked("-5\r\nhello\r\n0\r\n\r\n")},
        {"blank before a size", chunked(" 5\r\nhello\r\n0\r\n\r\n")},
        {"blank after a size", chunked("5 \r\nhello\r\n0\r\n\r\n")},
        {"no size", chunked("\r\nhello\r\n0\r\n\r\n")},
        {"no number", chunked("g\r\nhello\r\n0\r\n\r\n")},
        {"NUL in an extension", chunked("5;a\0b\r\nhello\r\n0\r\n\r\n"s)},
        {"word after a size", chunked("5 x\r\nhello\r\n0\r\n\r\n")},
        {"endless size line", chunked("5;" + std::string(2000, 'a'))},
    };
    return all;
}

class Strictness : public ::testing::Test {
protected:
    // Anything that arrives there is one of the answers' undoing.
    std::unique_ptr<ScriptedUpstream> upstream = ScriptedUpstream::raw([](Conn& connection) {
        while (connection.more()) {
        }
    });
    GatewayWorld world{upstream->port()};

    void expect_refused(const Probe& probe, Conn& client) {
        const std::optional<Message> answer = client.read();
        ASSERT_TRUE(answer.has_value()) << probe.what;
        EXPECT_EQ(answer->status(), 400) << probe.what;
        EXPECT_EQ(answer->field("Connection"), "close") << probe.what;
        EXPECT_EQ(answer->field("Cache-Control"), "no-store") << probe.what;
        EXPECT_TRUE(client.ended()) << probe.what;
        EXPECT_EQ(upstream->connections(), 0U) << probe.what;
    }
};

TEST_F(Strictness, AmbiguousRequestsAreRefusedAndClosed) {
    for (const Probe& probe : probes()) {
        Conn client = world.connect();
        // A second request right behind: it must not be answered, whoever it is seen as.
        client.send(probe.bytes + "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n");
        expect_refused(probe, client);
    }
    const std::vector<Seen> seen = world.recorder.wait_for(probes().size());
    ASSERT_EQ(seen.size(), probes().size());
    for (std::size_t i = 0; i < seen.size(); ++i) {
        EXPECT_EQ(seen[i].outcome, RequestOutcome::malformed) << probes()[i].what;
        EXPECT_FALSE(seen[i].has_exchange) << probes()[i].what;
        EXPECT_FALSE(seen[i].detail.empty()) << probes()[i].what;
    }
}

TEST_F(Strictness, AlsoByteByByte) {
    for (const Probe& probe : probes()) {
        Conn client = world.connect();
        client.send_slowly(probe.bytes);
        expect_refused(probe, client);
    }
}

TEST_F(Strictness, AlsoCutInTwo) {
    for (const Probe& probe : probes()) {
        if (probe.bytes.size() > 200) {
            continue;
        }
        for (std::size_t cut = 1; cut < probe.bytes.size(); cut += 3) {
            Conn client = world.connect();
            client.send(std::string_view(probe.bytes).substr(0, cut));
            client.send(std::string_view(probe.bytes).substr(cut));
            expect_refused(probe, client);
        }
    }
}

// A body that goes wrong after it went on: the upstream never sees a whole request.
TEST(StrictnessInBodies, BrokenChunksEndTheRequest) {
    for (const std::string broken :
         {"5\r\nhello\r\n5\nworld\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n",
          "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n0\r\nBad Name: 1\r\n\r\n",
          "5\r\nhello\r\n0\r\n folded\r\n\r\n", "5\r\nhello\r\n0\r\nno colon\r\n\r\n"}) {
        ScriptedUpstream upstream(answer_with("should not happen"));
        GatewayWorld world(upstream.port());
        Conn client = world.connect();
        client.send(chunked(broken) + get("/hidden"));
        const Message answer = *client.read();
        EXPECT_EQ(answer.status(), 400) << broken;
        EXPECT_EQ(answer.field("Connection"), "close") << broken;
        EXPECT_TRUE(client.ended()) << broken;
        EXPECT_EQ(upstream.requests().size(), 0U) << broken;
        EXPECT_EQ(world.recorder.wait_for(1).at(0).outcome, RequestOutcome::malformed);
    }
}

// ---- limits, at the bound and one past it ----

TEST(StrictnessLimits, HeaderBytes) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorldOptions options;
    options.gateway.max_header_bytes = 1000;
    GatewayWorld world(upstream.port(), options);
    const std::size_t fixed = get("/", "X: \r\n").size();
    EXPECT_EQ(world.ask(get("/", "X: " + std::string(1000 - fixed, 'a') + "\r\n")).status(), 200);
    EXPECT_EQ(world.ask(get("/", "X: " + std::string(1001 - fixed, 'a') + "\r\n")).status(), 431);
    Conn client = world.connect();
    client.send("GET / HTTP/1.1\r\nX: " + std::string(100'000, 'a'));
    EXPECT_EQ(client.read()->status(), 431);
    EXPECT_EQ(world.recorder.wait_for(3).at(2).outcome, RequestOutcome::malformed);
}

std::string get_target(const std::string& target, const std::string& fields = "") {
    return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

// RFC 9110 15.5.15. The bound is the same in every form of a target, and wherever it is long.
TEST(StrictnessLimits, TargetBytes) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    std::size_t finished = 0;
    for (const std::string begin : {"/?q=", "/", "/a/", "http://a/?q=", "http://a/", "http://a?"}) {
        const std::string fits = begin + std::string(max_target_bytes - begin.size(), 'a');
        Conn client = world.connect();
        client.send(get_target(fits));
        EXPECT_EQ(client.read()->status(), 200) << begin;
        client.send(get_target(fits + "a"));
        const auto answer = client.read();
        EXPECT_EQ(answer->status(), 414) << begin;
        EXPECT_EQ(answer->field("Connection"), "close") << begin;
        EXPECT_NE(answer->body.find("uri_too_long"), std::string::npos) << answer->body;
        EXPECT_TRUE(client.ended()) << begin;
        finished += 2;
        const auto records = world.recorder.wait_for(finished);
        EXPECT_EQ(records.at(finished - 1).outcome, RequestOutcome::malformed) << begin;
    }
    EXPECT_EQ(upstream.requests().size(), finished / 2);
    // A path that only its escapes make too long can be answered like any other request.
    Conn client = world.connect();
    client.send(get_target("/" + std::string(max_target_bytes / 3, '{')));
    EXPECT_EQ(client.read()->status(), 200);
    client.send(get_target("/" + std::string(max_target_bytes / 3 + 1, '{')));
    EXPECT_EQ(client.read()->status(), 414);
    client.send(get_target("/"));
    EXPECT_EQ(client.read()->status(), 200);
}

// What makes the head too large is told: its request line, or its fields.
TEST(StrictnessLimits, ATargetLongerThanAHead) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorldOptions options;
    options.gateway.max_header_bytes = 16'000;
    options.gateway.max_headers = 10;
    GatewayWorld world(upstream.port(), options);
    const std::string too_long = "/" + std::string(max_target_bytes, 'a');
    const std::string fits = too_long.substr(0, max_target_bytes);
    const std::string field = "X: " + std::string(10'000, 'a') + "\r\n";
    EXPECT_EQ(world.ask(get_target(too_long, field)).status(), 414);
    EXPECT_EQ(world.ask(get_target(fits, field)).status(), 431);
    EXPECT_EQ(world.ask(get_target("/" + std::string(20'000, 'a'))).status(), 414);
    std::string fields;
    for (int i = 0; i < 11; ++i) {
        fields += "X-" + std::to_string(i) + ": 1\r\n";
    }
    EXPECT_EQ(world.ask(get_target(too_long, fields)).status(), 414);
    EXPECT_EQ(world.ask(get_target("/", fields)).status(), 431);
    for (const auto& [unended, status] :
         {std::pair("GET /" + std::string(100'000, 'a'), 414),
          std::pair("GET / HTTP/1.1\r\nX: " + std::string(100'000, 'a'), 431),
          std::pair(std::string(100'000, 'A'), 431)}) {
        Conn client = world.connect();
        client.send(unended);
        EXPECT_EQ(client.read()->status(), status);
    }
    EXPECT_TRUE(upstream.requests().empty());
}

TEST(StrictnessLimits, HeaderCount) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorldOptions options;
    options.gateway.max_headers = 10;
    GatewayWorld world(upstream.port(), options);
    std::string fields;
    for (int i = 0; i < 9; ++i) {
        fields += "X-" + std::to_string(i) + ": 1\r\n";
    }
    EXPECT_EQ(world.ask(get("/", fields)).status(), 200);
    EXPECT_EQ(world.ask(get("/", fields + "Y: 1\r\n")).status(), 431);
}

TEST(StrictnessLimits, BodyBytes) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorldOptions options;
    options.gateway.max_body_bytes = 10;
    GatewayWorld world(upstream.port(), options);
    EXPECT_EQ(world.ask(post("/", "0123456789")).status(), 200);
    const Message answer = world.ask(post("/", "0123456789a"));
    EXPECT_EQ(answer.status(), 413);
    EXPECT_EQ(answer.field("Connection"), "close");
    EXPECT_EQ(world.ask(chunked("a\r\n0123456789\r\n0\r\n\r\n")).status(), 200);
    EXPECT_EQ(world.ask(chunked("a\r\n0123456789\r\n1\r\na\r\n0\r\n\r\n")).status(), 413);
    EXPECT_EQ(upstream.requests().size(), 2U);
}

TEST(StrictnessLimits, TrailerBytes) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    EXPECT_EQ(world.ask(chunked("0\r\nT: " + std::string(8000, 'a') + "\r\n\r\n")).status(), 200);
    EXPECT_EQ(world.ask(chunked("0\r\nT: " + std::string(9000, 'a') + "\r\n\r\n")).status(), 400);
}

// ---- good requests, cut anywhere ----

TEST(StrictnessProperty, GoodRequestsMayArriveInAnyPieces) {
    ScriptedUpstream upstream([](Conn& connection, const Message& request) {
        return connection.send("HTTP/1.1 200 OK\r\nContent-Length: " +
                               std::to_string(request.body.size()) + "\r\n\r\n" + request.body);
    });
    GatewayWorld world(upstream.port());
    const std::string good[] = {
        "\r\n" + get("/a?b=c"),
        post("/p", "hello world"),
        chunked("5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nT: 1\r\n\r\n"),
        "GET http://a.test/x HTTP/1.1\r\nHost: b\r\n\r\n",
    };
    std::size_t expected = 0;
    for (const std::string& request : good) {
        for (std::size_t cut = 1; cut < request.size(); ++cut) {
            Conn client = world.connect();
            client.send(std::string_view(request).substr(0, cut));
            client.send(std::string_view(request).substr(cut));
            const std::optional<Message> answer = client.read();
            ASSERT_TRUE(answer) << request << " cut at " << cut;
            ASSERT_EQ(answer->status(), 200) << request << " cut at " << cut;
            if (request.starts_with("POST")) {
                ASSERT_EQ(answer->body, "hello world") << "cut at " << cut;
            }
            ++expected;
        }
        Conn client = world.connect();
        client.send_slowly(request);
        ASSERT_EQ(client.read()->status(), 200) << request;
        ++expected;
    }
    EXPECT_EQ(upstream.requests().size(), expected);
}

}  // namespace
}  // namespace ration::testing
