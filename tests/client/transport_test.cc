// The client over real sockets: what it sends, what it gives back, what it shares.

#include "base/same_word.h"
#include "client_world.h"
#include "gmock/gmock.h"
#include "raw_server.h"

namespace ration::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Transport, GivesBackTheAnswerAndKeepsTheConnection) {
    RawServer server(serve_ok);
    const auto client = make_client();
    for (int i = 0; i < 5; ++i) {
        const ClientResult result = client->call(get(server.url("/thing?q=1#part")));
        EXPECT_TRUE(result.ok());
        EXPECT_EQ(result.status, 200);
        EXPECT_EQ(result.body, "ok");
        EXPECT_EQ(*find_header(result.headers, "x-NOTE"), "hello");
        EXPECT_EQ(result.attempts, 1U);
        EXPECT_EQ(result.url, server.url("/thing?q=1"));
        EXPECT_FALSE(result.error);
    }
    EXPECT_EQ(server.connections(), 1);
    EXPECT_EQ(server.requests()[0].target, "/thing?q=1");
    EXPECT_EQ(client->counters().calls, 5U);
    EXPECT_EQ(client->counters().sends, 5U);
}

TEST(Transport, EveryMethodIsSentAsItIs) {
    RawServer server(serve_ok);
    const auto client = make_client();
    for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"}) {
        for (const bool with_body : {false, true}) {
            ClientRequest request = get(server.url("/"));
            request.method = method;
            if (with_body) {
                request.body = RequestBody::text("{}");
            }
            EXPECT_TRUE(client->call(std::move(request)).ok());
            const RawRequest seen = server.requests().back();
            EXPECT_EQ(seen.method, method);
            EXPECT_EQ(seen.body, with_body ? "{}" : "");
            EXPECT_EQ(seen.header("content-type"), "");
            const bool says_length =
                with_body || method == "POST" || method == "PUT" || method == "PATCH";
            EXPECT_EQ(seen.header("content-length"), !says_length ? ""
                                                     : with_body  ? "2"
                                                                  : "0")
                << method;
        }
    }
}

TEST(Transport, HeadHasNoBodyAndLeavesTheConnectionGood) {
    RawServer server([](RawConnection& peer) {
        while (peer.read_request()) {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
            if (peer.request.method != "HEAD") {
                peer.send("hello");
            }
        }
    });
    const auto client = make_client();
    ClientRequest head = get(server.url("/"));
    head.method = "HEAD";
    EXPECT_EQ(client->call(head).body, "");
    EXPECT_EQ(client->call(get(server.url("/"))).body, "hello");
    EXPECT_EQ(server.connections(), 1);
}

TEST(Transport, RepeatsWithTheSameKeyAndCountsForTheServer) {
    RawServer server(serve_statuses({503, 503, 201}));
    const auto client = make_client();
    ClientRequest request = post(server.url("/v1/bookings"), "{\"slot\":1}");
    request.key_making = KeyMaking::automatic;
    const ClientResult result = client->call(std::move(request));
    EXPECT_EQ(result.status, 201);
    EXPECT_EQ(result.attempts, 3U);
    const auto seen = server.requests();
    ASSERT_EQ(seen.size(), 3U);
    EXPECT_EQ(result.idempotency_key.size(), 36U);
    for (const RawRequest& one : seen) {
        EXPECT_EQ(one.header("idempotency-key"), result.idempotency_key);
        EXPECT_EQ(one.body, "{\"slot\":1}");
    }
    EXPECT_EQ(seen[0].header("retry-attempt"), "");
    EXPECT_EQ(seen[1].header("retry-attempt"), "2");
    EXPECT_EQ(seen[2].header("retry-attempt"), "3");
}

TEST(Transport, TheCallersOwnKeyIsNeverReplaced) {
    RawServer server(serve_statuses({503, 201}));
    const auto client = make_client();
    ClientRequest request = post(server.url("/"), "x");
    request.key_making = KeyMaking::automatic;
    request.headers = {{"idempotency-key", "order-42"}};
    EXPECT_EQ(client->call(std::move(request)).idempotency_key, "order-42");
    ASSERT_EQ(server.requests().size(), 2U);
    for (const RawRequest& seen : server.requests()) {
        EXPECT_EQ(seen.header("Idempotency-Key"), "order-42");
    }
}

TEST(Transport, AKeyOnSeveralLinesIsOneValue) {
    RawServer server(serve_statuses({201}));
    const auto client = make_client();
    ClientRequest request = post(server.url("/"), "x");
    request.headers = {{"idempotency-key", " a"}, {"X-Note", "n"}, {"Idempotency-Key", "b "}};
    EXPECT_EQ(client->call(std::move(request)).idempotency_key, "a, b");
    const auto seen = server.requests();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(
        std::count_if(seen[0].headers.begin(), seen[0].headers.end(),
                      [](const auto& line) { return same_word(line.first, "idempotency-key"); }),
        2);
}

TEST(Transport, AnEmptyKeyIsNoneAndNoneIsMadeInItsPlace) {
    for (const std::string key : {"", " ", "\t "}) {
        RawServer server(serve_statuses({503, 201}));
        const auto client = make_client();
        ClientRequest request = post(server.url("/"), "x");
        request.key_making = KeyMaking::automatic;
        request.headers = {{"Idempotency-Key", key}};
        const ClientResult result = client->call(std::move(request));
        EXPECT_EQ(result.status, 503);
        EXPECT_EQ(result.idempotency_key, "");
        EXPECT_EQ(server.requests().size(), 1U);
    }
}

TEST(Transport, NestedClientsDoNotRetry) {
    RawServer server(serve_statuses({503}));
    ClientOptions options = quick_options();
    options.nested = true;
    const ClientResult result = make_client(options)->call(get(server.url("/")));
    EXPECT_EQ(result.reason, StopReason::attempts_exhausted);
    EXPECT_EQ(result.body, "body");
    EXPECT_EQ(server.requests().size(), 1U);
}

TEST(Transport, AConnectionsNextRequestIsItsOwn) {
    RawServer server(serve_ok);
    const auto client = make_client();
    const auto send = [&](const std::string& method, RequestBody body) {
        ClientRequest request = get(server.url("/"));
        request.method = method;
        request.body = std::move(body);
        EXPECT_TRUE(client->call(std::move(request)).ok()) << method;
    };
    const std::string streamed = long_text(3000);
    send("PUT", reading(streamed, true, true));
    send("POST", RequestBody::text("text"));
    send("POST", reading(streamed, true, false));
    send("POST", RequestBody::text(""));
    send("POST", RequestBody());
    send("PUT", reading(streamed, false, true));
    send("GET", RequestBody());
    send("HEAD", RequestBody());
    send("POST", RequestBody::text("more"));
    send("PUT", reading(streamed, false, true));
    const auto seen = server.requests();
    ASSERT_EQ(seen.size(), 10U);
    const std::string bodies[] = {streamed, "text", streamed, "",     "",
                                  streamed, "",     "",       "more", streamed};
    for (std::size_t i = 0; i < seen.size(); ++i) {
        EXPECT_EQ(seen[i].body, bodies[i]) << i;
        const bool chunked = i == 2;
        EXPECT_EQ(seen[i].header("transfer-encoding"), chunked ? "chunked" : "") << i;
        const bool bodiless = seen[i].method == "GET" || seen[i].method == "HEAD";
        EXPECT_EQ(seen[i].header("content-length"),
                  chunked || bodiless ? "" : cat(bodies[i].size()))
            << i;
    }
    EXPECT_EQ(server.connections(), 1);
}

// Handles keep what they were told: a redirect's place, another server, the URL before.
TEST(Transport, AHandleUsedAgainAsksForWhatItsCallNames) {
    RawServer other(serve_ok);
    RawServer server([&](RawConnection& peer) {
        while (peer.read_request()) {
            const bool moved = peer.request.target.starts_with("/moved");
            peer.answer(moved ? 302 : 200,
                        moved ? cat("Location: ", other.url("/new"), "\r\n") : "", "ok");
        }
    });
    const auto client = make_client();
    for (int i = 0; i < 3; ++i) {
        for (const auto& [url, ends_at] :
             {std::pair(server.url("/first?a=1"), server.url("/first?a=1")),
              std::pair(server.url("/moved"), other.url("/new")),
              std::pair(other.url("/second"), other.url("/second")),
              std::pair(cat("HTTP", server.url("/a/../third").substr(4)), server.url("/third"))}) {
            const ClientResult result = client->call(get(url));
            EXPECT_TRUE(result.ok()) << url;
            EXPECT_EQ(result.url, ends_at);
        }
    }
    std::vector<std::string> asked;
    for (const RawRequest& request : server.requests()) {
        asked.push_back(request.target);
        EXPECT_EQ(request.header("host"), cat("127.0.0.1:", server.port()));
    }
    EXPECT_THAT(asked, ElementsAre("/first?a=1", "/moved", "/third", "/first?a=1", "/moved",
                                   "/third", "/first?a=1", "/moved", "/third"));
    EXPECT_EQ(other.requests().size(), 6U);
    EXPECT_EQ(other.requests()[0].target, "/new");
}

TEST(Transport, WhoeverCancelsBeforeTheSendSendsNothing) {
    RawServer server(serve_ok);
    const Cancellation cancellation;
    ClientOptions options = quick_options();
    options.hooks.on_send = [&](const ClientHooks::Send&) { cancellation.cancel("no"); };
    const auto client = make_client(options);
    ClientRequest request = post(server.url("/"), "x");
    request.cancellation = cancellation;
    EXPECT_EQ(client->call(request).reason, StopReason::cancelled);
    EXPECT_EQ(client->start(request).get().reason, StopReason::cancelled);
    EXPECT_EQ(server.connections(), 0);
}

TEST(Transport, FunctionsOfARequestThatThrowEndTheCall) {
    RawServer server(serve_ok);
    const auto client = make_client();
    ClientRequest reading = get(server.url("/"));
    reading.on_body = [](std::string_view) -> bool { throw 1; };
    EXPECT_EQ(client->call(std::move(reading)).reason, StopReason::error_not_retryable);
    ClientRequest writing = get(server.url("/"));
    writing.method = "PUT";
    writing.body = RequestBody::stream([](std::span<char>) -> std::ptrdiff_t { throw 1; }, 10);
    EXPECT_EQ(client->call(std::move(writing)).error, AttemptError::bad_request);
}

TEST(Transport, AnswersCanBeReadAsTheyCome) {
    RawServer server(serve_statuses({503, 200}));
    std::string read;
    ClientRequest request = get(server.url("/"));
    request.on_body = [&](std::string_view bytes) {
        read += bytes;
        return true;
    };
    const ClientResult result = make_client()->call(std::move(request));
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(read, "body") << "only the success's";
    EXPECT_EQ(result.body, "");
}

TEST(Transport, WhatCannotBeSentIsNotSent) {
    RawServer server(serve_ok);
    const auto client = make_client();
    const auto outcome = [&](ClientRequest request) {
        const ClientResult result = client->call(std::move(request));
        EXPECT_EQ(result.reason, StopReason::error_not_retryable);
        EXPECT_FALSE(result.message.empty());
        EXPECT_EQ(result.attempts, 0U);
        return result.error;
    };
    ClientRequest bad_key = post(server.url("/"), "body");
    bad_key.idempotency_key = "key\nX-Evil: 1";
    EXPECT_EQ(outcome(std::move(bad_key)), AttemptError::bad_request);
    ClientRequest bad_value = get(server.url("/"));
    bad_value.headers = {{"X-A", "b\r\nX-Evil: 1"}};
    ClientRequest bad_name = get(server.url("/"));
    bad_name.headers = {{"X A", "b"}};
    ClientRequest bad_method = get(server.url("/"));
    bad_method.method = "GET /evil HTTP/1.1\r\nX:";
    ClientRequest head_with_body = post(server.url("/"), "body");
    head_with_body.method = "HEAD";
    EXPECT_EQ(outcome(bad_value), AttemptError::bad_request);
    EXPECT_EQ(outcome(std::move(head_with_body)), AttemptError::bad_request);
    EXPECT_EQ(outcome(bad_name), AttemptError::bad_request);
    EXPECT_EQ(outcome(bad_method), AttemptError::bad_request);
    for (const std::string url : {"", "ftp://127.0.0.1/", "http://", "http://u:p@127.0.0.1/",
                                  "nonsense", "file:///etc/passwd"}) {
        EXPECT_EQ(outcome(get(url)), AttemptError::bad_request) << url;
    }
    EXPECT_EQ(outcome(get("http://127.0.0.1/" + std::string(max_url_bytes, 'x'))),
              AttemptError::bad_request);
    EXPECT_EQ(server.connections(), 0);
    EXPECT_EQ(client->counters().sends, 0U);
}

TEST(Transport, NobodyListensIsSafeToRepeat) {
    int port = 0;
    {
        const RawServer server(serve_ok);
        port = server.port();
    }
    ClientOptions options = quick_options();
    options.policy.max_retries = 2;
    const ClientResult result =
        make_client(options)->call(post(cat("http://127.0.0.1:", port, "/"), "x"));
    EXPECT_EQ(result.error, AttemptError::connect_failed);
    EXPECT_EQ(result.reason, StopReason::attempts_exhausted);
    EXPECT_EQ(result.attempts, 3U);
    EXPECT_EQ(result.status, 0);
}

TEST(Transport, HooksAndCountersTellEverythingButSecrets) {
    RawServer server(serve_statuses({503, 429, 200}));
    Diary diary;
    ClientOptions options = quick_options();
    options.hooks = diary.hooks();
    const auto client = make_client(options);
    ClientRequest request = post(server.url("/path"), "x");
    request.idempotency_key = "key-secret";
    request.headers = {{"Authorization", "Bearer token-secret"}};
    EXPECT_TRUE(client->call(std::move(request)).ok());
    EXPECT_THAT(diary.lines(),
                ElementsAre(HasSubstr("send 1 POST http"), "answer 503", "wait backoff 503",
                            HasSubstr("send 2 POST"), "answer 429", "wait backoff 429",
                            HasSubstr("send 3"), "answer 200", "end success"));
    for (const std::string& line : diary.lines()) {
        EXPECT_THAT(line, Not(HasSubstr("secret")));
    }
    const ClientCounters counters = client->counters();
    EXPECT_EQ(counters.sends, 3U);
    EXPECT_EQ(counters.retries.at("503"), 1U);
    EXPECT_EQ(counters.retries.at("429"), 1U);
    EXPECT_EQ(counters.budgets.begin()->second, 48'200U);
    ASSERT_EQ(counters.gates.size(), 1U);
    EXPECT_EQ(counters.gates[0].bucket, "POST /path");
    EXPECT_THAT(counters.gates[0].origin,
                AllOf(HasSubstr("http://127.0.0.1:"), Not(HasSubstr("secret"))));
}

TEST(Transport, AHookThatThrowsIsItsOwnMatter) {
    RawServer server(serve_ok);
    ClientOptions options = quick_options();
    options.hooks.on_send = [](const ClientHooks::Send&) { throw 1; };
    options.hooks.on_end = [](std::uint64_t, const ClientResult&) { throw 1; };
    EXPECT_TRUE(make_client(options)->call(get(server.url("/"))).ok());
}

TEST(Transport, OptionsThatCannotBeMeantAreRefused) {
    const auto refused = [](auto change) {
        ClientOptions options = quick_options();
        change(options);
        return Client::create(std::move(options)).status().code() ==
               absl::StatusCode::kInvalidArgument;
    };
    EXPECT_TRUE(refused([](ClientOptions& o) { o.policy.backoff_base = Nanos(-1); }));
    EXPECT_TRUE(refused([](ClientOptions& o) { o.policy.backoff_factor = 0; }));
    EXPECT_TRUE(refused([](ClientOptions& o) { o.policy.key_header = "a b"; }));
    EXPECT_TRUE(refused([](ClientOptions& o) { o.attempt_header = "a:"; }));
    EXPECT_TRUE(refused([](ClientOptions& o) { o.pace = {.amount = 1, .burst = 0}; }));
    EXPECT_TRUE(refused([](ClientOptions& o) { o.concurrency = {.initial = 1, .min = 2}; }));
    EXPECT_TRUE(refused([](ClientOptions& o) { o.breaker = {.min_outcomes = 0}; }));
    EXPECT_TRUE(
        refused([](ClientOptions& o) { o.policy.retry_types.resize(max_policy_entries + 1); }));
    EXPECT_FALSE(
        refused([](ClientOptions& o) { o.policy.retry_types.resize(max_policy_entries); }));
    EXPECT_FALSE(refused([](ClientOptions& o) { o.policy.total_deadline = Nanos::max(); }));
}

}  // namespace
}  // namespace ration::client
