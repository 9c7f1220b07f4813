// HTTP/2 against a server of a few frames: streams share a connection, and a server that goes away
// loses nothing that may be repeated. And what certificates and redirects from https mean.
#include "client_world.h"
#include "gmock/gmock.h"
#include "raw_server.h"

namespace ration::client {
namespace {

constexpr char data_type = 0, headers_type = 1, rst_stream_type = 3, settings_type = 4,
               ping_type = 6, goaway_type = 7;
constexpr std::uint32_t refused_stream = 7;
constexpr char end_stream = 1, ack = 1, end_headers = 4;

std::string number(std::uint32_t value, int bytes) {
    std::string text;
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
        text += static_cast<char>(value >> static_cast<unsigned>(shift));
    }
    return text;
}

std::string frame(char type, char flags, std::uint32_t stream, const std::string& payload) {
    return number(static_cast<std::uint32_t>(payload.size()), 3) + type + flags +
           number(stream, 4) + payload;
}

// HPACK: a field without indexing (RFC 7541 6.2.2); `name` empty: ":status".
std::string field(const std::string& name, const std::string& value) {
    const std::string head = name.empty()
                                 ? std::string(1, '\x08')
                                 : std::string(1, '\0') + static_cast<char>(name.size()) + name;
    return head + static_cast<char>(value.size()) + value;
}

struct H2Peer {
    RawConnection& raw;
    std::uint32_t stream = 0;

    // The next whole request's stream; false when the peer is gone.
    bool next_request() {
        std::string head;
        std::string payload;
        while (raw.read_bytes(9, head)) {
            const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(head[i]); };
            const std::size_t length =
                std::size_t{byte(0)} << 16U | std::size_t{byte(1)} << 8U | byte(2);
            if (!raw.read_bytes(length, payload)) {
                return false;
            }
            const bool acknowledged = head[4] & ack;
            if (head[3] == settings_type && !acknowledged) {
                raw.send(frame(settings_type, ack, 0, ""));
            } else if (head[3] == ping_type && !acknowledged) {
                raw.send(frame(ping_type, ack, 0, payload));
            } else if ((head[3] == headers_type || head[3] == data_type) &&
                       (head[4] & end_stream)) {
                stream = std::uint32_t{byte(5) & 0x7FU} << 24U | std::uint32_t{byte(6)} << 16U |
                         std::uint32_t{byte(7)} << 8U | byte(8);
                return true;
            }
        }
        return false;
    }
    bool open() {
        std::string preface;
        return raw.read_bytes(24, preface) && raw.send(frame(settings_type, 0, 0, ""));
    }
    void answer(const std::string& fields) const {
        raw.send(frame(headers_type, end_headers | end_stream, stream, fields));
    }
    void refuse_stream() const {
        raw.send(frame(rst_stream_type, 0, stream, number(refused_stream, 4)));
    }
    void go_away(std::uint32_t last_stream) const {
        raw.send(frame(goaway_type, 0, 0, number(last_stream, 4) + number(0, 4)));
    }
};

const RawTls& right_certificate() {
    static const RawTls tls;
    return tls;
}

ClientOptions http2_options() {
    ClientOptions options = quick_options();
    options.ca_file = right_certificate().certificate_file();
    return options;
}

TEST(Http2, StreamsShareAConnection) {
    std::atomic<int> answered = 0;
    RawServer server(
        [&](RawConnection& raw) {
            H2Peer peer{raw};
            for (bool open = peer.open(); open && peer.next_request();) {
                ++answered;
                peer.answer(field("", "200"));
            }
        },
        &right_certificate());
    const auto client = make_client(http2_options());
    EXPECT_EQ(client->call(get(server.url("/"))).status, 200);
    std::vector<std::future<ClientResult>> futures;
    for (int i = 0; i < 20; ++i) {
        futures.push_back(client->start(get(server.url("/"))));
    }
    for (auto& future : futures) {
        const ClientResult result = future.get();
        EXPECT_EQ(result.status, 200) << result.message;
    }
    EXPECT_EQ(answered, 21);
    EXPECT_EQ(server.connections(), 1);
}

TEST(Http2, RefusalsAreReadAsOverHttp1) {
    std::atomic<int> answered = 0;
    RawServer server(
        [&](RawConnection& raw) {
            H2Peer peer{raw};
            for (bool open = peer.open(); open && peer.next_request();) {
                peer.answer(++answered == 1 ? field("", "429") + field("retry-after", "1")
                                            : field("", "200"));
            }
        },
        &right_certificate());
    const ClientResult result = make_client(http2_options())->call(get(server.url("/")));
    EXPECT_EQ(result.status, 200);
    EXPECT_EQ(result.attempts, 2U);
    EXPECT_GE(result.waited, std::chrono::seconds(1));
}

TEST(Http2, AServerThatGoesAwayLosesNoSafeCall) {
    RawServer server(
        [](RawConnection& raw) {
            H2Peer peer{raw};
            if (!peer.open() || !peer.next_request()) {
                return;
            }
            if (raw.number == 1) {  // it took nothing, and says so
                peer.go_away(0);
                return;
            }
            peer.answer(field("", "200"));
            raw.wait_for_end();
        },
        &right_certificate());
    const ClientResult result = make_client(http2_options())->call(get(server.url("/")));
    EXPECT_EQ(result.status, 200) << result.message;
    EXPECT_GE(server.connections(), 2);
}

TEST(Http2, AnAnswerBeforeGoingAwayIsAnAnswer) {
    RawServer server(
        [](RawConnection& raw) {
            H2Peer peer{raw};
            if (peer.open() && peer.next_request()) {
                peer.go_away(peer.stream);
                peer.answer(field("", "200"));
                raw.wait_for_end();  // a close with unread bytes would be a reset, and lose the
                                     // answer
            }
        },
        &right_certificate());
    const auto client = make_client(http2_options());
    for (int i = 1; i <= 3; ++i) {
        EXPECT_EQ(client->call(get(server.url("/"))).status, 200);
        EXPECT_EQ(server.connections(), i);
    }
}

TEST(Http2, AnUnsafeCallIsSentToOneConnectionOnly) {
    std::atomic<int> seen = 0;
    RawServer server(
        [&](RawConnection& raw) {
            H2Peer peer{raw};
            if (peer.open() && peer.next_request()) {
                ++seen;
                peer.go_away(peer.stream);
            }
        },
        &right_certificate());
    const ClientResult result = make_client(http2_options())->call(post(server.url("/"), "x"));
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.reason, StopReason::unsafe_method);
    EXPECT_EQ(seen, 1);
}

// libcurl would repeat by itself, at once and five times; who counts is this client.
TEST(Http2, RefusedStreamsAreRepeatedByThePolicyAlone) {
    std::atomic<int> seen = 0;
    RawServer server(
        [&](RawConnection& raw) {
            H2Peer peer{raw};
            for (bool open = peer.open(); open && peer.next_request();) {
                ++seen;
                peer.refuse_stream();
            }
        },
        &right_certificate());
    for (const unsigned retries : {0U, 2U}) {
        ClientOptions options = http2_options();
        options.policy.max_retries = retries;
        const auto client = make_client(options);
        seen = 0;
        ClientRequest keyed = post(server.url("/"), "x");
        keyed.idempotency_key = "k";
        for (ClientRequest request : {get(server.url("/")), keyed}) {
            const ClientResult result = client->call(std::move(request));
            EXPECT_EQ(result.error, AttemptError::connection_lost);
            EXPECT_EQ(result.attempts, retries + 1);
        }
        EXPECT_EQ(seen, 2 * static_cast<int>(retries + 1));
        EXPECT_EQ(client->counters().sends, static_cast<std::uint64_t>(seen));
    }
}

// Only as many connections as allowed make a queue; streams of one connection do not.
TEST(Http2, StreamsAreNotHeldForConnections) {
    std::atomic<int> waiting = 0;
    RawServer server(
        [&](RawConnection& raw) {
            H2Peer peer{raw};
            std::vector<std::uint32_t> held;
            for (bool open = peer.open(); open && peer.next_request();) {
                if (raw.number == 1 && peer.stream == 1) {
                    peer.answer(field("", "200"));
                    continue;
                }
                held.push_back(peer.stream);
                for (++waiting; waiting == 8 && !held.empty(); held.pop_back()) {
                    peer.stream = held.back();
                    peer.answer(field("", "200"));
                }
            }
        },
        &right_certificate());
    ClientOptions options = http2_options();
    options.max_host_connections = 1;
    const auto client = make_client(options);
    EXPECT_EQ(client->call(get(server.url("/"))).status, 200);
    std::vector<std::future<ClientResult>> futures;
    for (int i = 0; i < 8; ++i) {
        futures.push_back(client->start(get(server.url("/"))));
    }
    for (auto& future : futures) {
        EXPECT_EQ(future.get().status, 200) << "all are in flight before one is answered";
    }
    EXPECT_EQ(server.connections(), 1);
}

TEST(Tls, Http1IsSpokenWhereItIsAskedFor) {
    RawServer server(
        [](RawConnection& peer) {
            while (peer.read_request()) {
                peer.answer(200, "", "one");
            }
        },
        &right_certificate());
    ClientOptions options = http2_options();
    options.http_version = HttpVersion::http1;
    EXPECT_EQ(make_client(options)->call(get(server.url("/"))).body, "one");
}

TEST(Tls, AWrongNameOrAnUnknownAuthorityIsNotRepeated) {
    const RawTls wrong(false);
    for (const RawTls* tls : {&wrong, &right_certificate()}) {
        RawServer server([](RawConnection& peer) { peer.wait_for_end(); }, tls);
        ClientOptions options = quick_options();
        if (tls == &wrong) {
            options.ca_file = wrong.certificate_file();  // trusted, but of another host
        }
        const ClientResult result = make_client(options)->call(get(server.url("/")));
        EXPECT_EQ(result.error, AttemptError::tls_certificate) << result.message;
        EXPECT_EQ(result.reason, StopReason::error_not_retryable);
        EXPECT_EQ(result.attempts, 1U);
    }
}

TEST(Tls, RedirectsDoNotLeaveIt) {
    RawServer server(
        [](RawConnection& peer) {
            while (peer.read_request()) {
                peer.answer(302, "Location: http://127.0.0.1:1/\r\n", "");
            }
        },
        &right_certificate());
    ClientOptions options = http2_options();
    options.http_version = HttpVersion::http1;
    const ClientResult result = make_client(options)->call(get(server.url("/")));
    EXPECT_EQ(result.reason, StopReason::redirect_to_insecure);
    EXPECT_EQ(result.status, 302);
}

}  // namespace
}  // namespace ration::client
