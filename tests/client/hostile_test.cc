// Servers that break rules, lie, stall or hang up.
#include <sys/socket.h>

#include "client_world.h"
#include "gmock/gmock.h"
#include "raw_server.h"

namespace ration::client {
namespace {

using testing::HasSubstr;

// Refuses once with the given fields, then admits.
RawServer::Serve refuse_once(std::string fields, std::string body = "") {
    const auto refused = std::make_shared<std::atomic<bool>>(false);
    return [=](RawConnection& peer) {
        while (peer.read_request()) {
            peer.answer(refused->exchange(true) ? 200 : 429, fields, body);
        }
    };
}

TEST(Hostile, RetryAfterThatSaysNothingIsBackedOffFrom) {
    for (const std::string value : {"0", "-5", "soon", "1e30", "", "3, 5",
                                    "Sun, 29 Nov 2020 23:59:00 GMT", "\x01\x02", "0x10", "99:99"}) {
        RawServer server(refuse_once(cat("Retry-After: ", value, "\r\n")));
        Diary diary;
        ClientOptions options = quick_options();
        options.hooks = diary.hooks();
        const ClientResult result = make_client(options)->call(get(server.url("/")));
        EXPECT_EQ(result.status, 200) << value;
        EXPECT_THAT(diary.lines(), testing::Contains("wait backoff 429")) << value;
    }
}

TEST(Hostile, RetryAfterOfAgesEndsTheCall) {
    for (const std::string value : {"1000000000000000000000000000000", "9999999999", "86400",
                                    "Fri, 31 Dec 9999 23:59:59 GMT"}) {
        RawServer server(refuse_once(cat("Retry-After: ", value, "\r\n")));
        const auto client = make_client();
        const ClientResult result = client->call(get(server.url("/")));
        EXPECT_EQ(result.reason, StopReason::server_wait_too_long) << value;
        EXPECT_EQ(result.status, 429);
        ASSERT_TRUE(result.retry_at);
        EXPECT_EQ(server.requests().size(), 1U);
        // The next call of the bucket is not even sent.
        const ClientResult next = client->call(get(server.url("/")));
        EXPECT_EQ(next.reason, StopReason::gate_closed);
        EXPECT_EQ(next.status, 0);
        EXPECT_TRUE(next.retry_at);
        EXPECT_EQ(server.requests().size(), 1U);
    }
}

TEST(Hostile, DatesAreReadByTheServersOwnClock) {
    // The server's clock stands in 2019, and each date is a second ahead of it.
    const std::string now = "Date: Tue, 01 Jan 2019 00:00:00 GMT\r\n";
    const std::string dates[] = {"Tue, 01 Jan 2019 00:00:01 GMT", "Tuesday, 01-Jan-19 00:00:01 GMT",
                                 "Tue Jan  1 00:00:01 2019"};
    std::vector<std::unique_ptr<RawServer>> servers;
    std::vector<std::future<ClientResult>> results;
    const auto client = make_client();
    for (const std::string& date : dates) {
        servers.push_back(
            std::make_unique<RawServer>(refuse_once(cat(now, "Retry-After: ", date, "\r\n"))));
        results.push_back(client->start(get(servers.back()->url("/"))));
    }
    for (auto& future : results) {
        const ClientResult result = future.get();
        EXPECT_EQ(result.status, 200);
        EXPECT_EQ(result.attempts, 2U);
        EXPECT_GE(result.waited, std::chrono::seconds(1));
    }
}

TEST(Hostile, AnEndlessOrCutErrorBodyIsJudgedByItsHead) {
    const auto fields = "HTTP/1.1 429 X\r\nRetry-After: 7200\r\n";
    for (const int how : {0, 1, 2}) {
        RawServer server([&](RawConnection& peer) {
            if (!peer.read_request()) {
                return;
            }
            if (how == 0) {  // endless
                peer.send(cat(fields, "Transfer-Encoding: chunked\r\n\r\n"));
                while (peer.send("4000\r\n" + std::string(0x4000, 'x') + "\r\n")) {
                }
            } else if (how == 1) {  // cut half-way
                peer.send(cat(fields, "Content-Length: 100\r\n\r\n{\"error\":"));
            } else {  // silent
                peer.send(cat(fields, "Content-Length: 100\r\n\r\n{\"error\":"));
                peer.wait_for_end();
            }
        });
        ClientOptions options = quick_options();
        options.error_body_time = std::chrono::milliseconds(100);
        const ClientResult result = make_client(options)->call(get(server.url("/")));
        EXPECT_EQ(result.status, 429) << how;
        EXPECT_EQ(result.reason, StopReason::server_wait_too_long);
        EXPECT_FALSE(result.body_complete);
        EXPECT_LE(result.body.size(), options.max_error_bytes);
    }
}

TEST(Hostile, BoundsOfAnswers) {
    RawServer server([](RawConnection& peer) {
        while (peer.read_request()) {
            const std::size_t bytes = std::strtoul(peer.request.target.c_str() + 1, nullptr, 10);
            peer.answer(200, "", std::string(bytes, 'x'));
        }
    });
    ClientOptions options = quick_options();
    options.max_answer_bytes = 1000;
    const auto client = make_client(options);
    EXPECT_EQ(client->call(get(server.url("/1000"))).body.size(), 1000U);
    const ClientResult over = client->call(get(server.url("/1001")));
    EXPECT_EQ(over.error, AttemptError::protocol_error);
    EXPECT_EQ(over.attempts, 1U);
    EXPECT_THAT(over.message, HasSubstr("larger"));
}

TEST(Hostile, ASuccessCutHalfWayIsLost) {
    RawServer server([](RawConnection& peer) {
        if (!peer.read_request()) {
            return;
        }
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
        peer.send(peer.number < 3 ? "half" : "whole body");
        if (peer.number >= 3) {
            peer.wait_for_end();
        }
    });
    const auto client = make_client();
    const ClientResult result = client->call(get(server.url("/")));
    EXPECT_EQ(result.body, "whole body");
    EXPECT_EQ(result.attempts, 3U);
}

TEST(Hostile, WhatWasHandedOnIsNotRepeated) {
    RawServer server([](RawConnection& peer) {
        if (peer.read_request()) {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        }
    });
    std::string read;
    ClientRequest request = get(server.url("/"));
    request.on_body = [&](std::string_view bytes) {
        read += bytes;
        return true;
    };
    const ClientResult result = make_client()->call(std::move(request));
    EXPECT_EQ(result.reason, StopReason::body_not_replayable);
    EXPECT_EQ(result.error, AttemptError::connection_lost);
    EXPECT_EQ(read, "half");
    EXPECT_EQ(server.requests().size(), 1U);
}

// How a connection ends before an answer.
enum class Ending { closed_at_once, reset_at_once, closed_after, reset_after };

RawServer::Serve lose(Ending ending) {
    return [=](RawConnection& peer) {
        const bool after = ending == Ending::closed_after || ending == Ending::reset_after;
        if (after && !peer.read_request()) {
            return;
        }
        if (ending == Ending::reset_at_once || ending == Ending::reset_after) {
            peer.reset();
        }
    };
}

TEST(Hostile, LostConnectionsAreRepeatedOnlyWhereThatIsSafe) {
    for (const Ending ending : {Ending::closed_after, Ending::reset_after, Ending::closed_at_once,
                                Ending::reset_at_once}) {
        RawServer server(lose(ending));
        ClientOptions options = quick_options();
        options.policy.max_retries = 2;
        const auto client = make_client(options);
        const ClientResult unsafe = client->call(post(server.url("/"), "x"));
        EXPECT_EQ(unsafe.reason, StopReason::unsafe_method);
        EXPECT_EQ(unsafe.error, AttemptError::connection_lost);
        EXPECT_EQ(unsafe.attempts, 1U);
        EXPECT_EQ(client->call(get(server.url("/"))).attempts, 3U);
        ClientRequest keyed = post(server.url("/"), "x");
        keyed.idempotency_key = "k";
        EXPECT_EQ(client->call(keyed).attempts, 3U);
    }
}

TEST(Hostile, AKeptConnectionThatDiesGetsAnUnsafeRequestOnce) {
    for (const bool has_body : {true, false}) {
        RawServer server([](RawConnection& peer) {
            // The second request on a connection is read, done and never answered.
            if (peer.read_request()) {
                peer.answer(200, "", "first");
                peer.read_request();
            }
        });
        const auto client = make_client();
        EXPECT_TRUE(client->call(get(server.url("/warm"))).ok());
        ClientRequest request = post(server.url("/create"), "x");
        if (!has_body) {
            request.body = {};
        }
        const ClientResult result = client->call(std::move(request));
        EXPECT_EQ(result.reason, StopReason::unsafe_method);
        EXPECT_EQ(result.error, AttemptError::connection_lost);
        int creates = 0;
        for (const RawRequest& seen : server.requests()) {
            creates += seen.target == "/create" ? 1 : 0;
        }
        EXPECT_EQ(creates, 1);
        // A safe request in its place goes out again at once.
        EXPECT_TRUE(client->call(get(server.url("/warm"))).ok());
        EXPECT_TRUE(client->call(get(server.url("/again"))).ok());
    }
}

// libcurl repeats on a fresh connection what a kept one took along when it died. That the fresh one
// cannot be made does not undo what was sent on the first.
TEST(Hostile, NorIsItRepeatedWhenTheNextConnectionFails) {
    const RawTls tls;
    for (const bool over_tls : {false, true}) {
        for (const bool redirected : {false, true}) {
            SCOPED_TRACE(cat(over_tls ? "TLS" : "", redirected ? " after a redirect" : ""));
            RawServer* self = nullptr;
            RawServer server(
                [&](RawConnection& peer) {
                    while (peer.read_request()) {
                        if (peer.request.target == "/create") {
                            over_tls ? self->break_from(2) : self->stop_listening();
                            return;
                        }
                        peer.answer(redirected ? 307 : 200, "Location: /create\r\n", "first");
                    }
                },
                over_tls ? &tls : nullptr);
            self = &server;
            ClientOptions options = quick_options();
            options.ca_file = tls.certificate_file();
            options.http_version = HttpVersion::http1;
            options.policy.max_retries = 2;
            const auto client = make_client(options);
            const auto url = [&](std::string_view path) { return server.url(path, "localhost"); };
            if (!redirected) {
                EXPECT_TRUE(client->call(get(url("/warm"))).ok());
            }
            const ClientResult lost =
                client->call(post(url(redirected ? "/start" : "/create"), "x"));
            EXPECT_EQ(lost.error, AttemptError::connection_lost);
            EXPECT_EQ(lost.reason, StopReason::unsafe_method);
            EXPECT_EQ(lost.attempts, 1U);
            EXPECT_EQ(server.requests().size(), 2U);
        }
    }
}

// Whoever answers with a redirect was asked, wherever it led.
TEST(Hostile, ARedirectThatLeadsToNobodyIsNotFollowedTwiceByAnUnsafeCall) {
    int nobody = 0;
    {
        const RawServer gone([](RawConnection&) {});
        nobody = gone.port();
    }
    RawServer server([&](RawConnection& peer) {
        while (peer.read_request()) {
            peer.answer(307, cat("Location: http://127.0.0.1:", nobody, "/\r\n"), "");
        }
    });
    ClientOptions options = quick_options();
    options.policy.max_retries = 1;
    const auto client = make_client(options);
    const ClientResult lost = client->call(post(server.url("/"), "x"));
    EXPECT_EQ(lost.reason, StopReason::unsafe_method);
    EXPECT_EQ(server.requests().size(), 1U);
    EXPECT_EQ(client->call(get(server.url("/"))).attempts, 2U);
}

TEST(Hostile, AnAnswerThatIsCutInItsHeadIsNone) {
    for (const std::string head :
         {"HTTP/1.1 20", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Le",
          "HTTP/1.1 201 Created\r\nContent-Length: 5\r\nX-A", "HTTP/1.1 429 No\r\nRetry-After: 6",
          "HTTP/1.1 307 There\r\nLocation: /oth",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"}) {
        SCOPED_TRACE(head);
        RawServer server([&](RawConnection& peer) {
            while (peer.read_request()) {
                if (peer.number == 1 || peer.request.method == "POST") {
                    peer.send(head);
                    return;
                }
                peer.answer(200, "", "whole");
            }
        });
        const auto client = make_client();
        const ClientResult good = client->call(get(server.url("/")));
        EXPECT_EQ(good.body, "whole") << good.message;
        EXPECT_EQ(good.attempts, 2U);
        const ClientResult lost = client->call(post(server.url("/"), "x"));
        EXPECT_EQ(lost.error, AttemptError::connection_lost) << lost.message;
        EXPECT_EQ(lost.attempts, 1U);
    }
}

// What comes behind a refusal's body does not make it a lost answer.
TEST(Hostile, ATrailerWithoutEndLeavesTheRefusal) {
    for (const int status : {429, 200}) {
        RawServer server([&](RawConnection& peer) {
            if (!peer.read_request()) {
                return;
            }
            peer.send(cat("HTTP/1.1 ", status, " X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"));
            const std::string line = cat("X-A: ", std::string(1000, 'x'), "\r\n");
            for (int i = 0; i < 1000 && peer.send(line); ++i) {
            }
        });
        ClientOptions options = quick_options();
        options.policy.max_retries = 0;
        const ClientResult result = make_client(options)->call(get(server.url("/")));
        EXPECT_EQ(result.status, status == 429 ? 429 : 0);
        EXPECT_EQ(result.error.has_value(), status == 200);
    }
}

TEST(Hostile, ASlowDripEndsWithTheDeadline) {
    RawServer server([](RawConnection& peer) {
        if (!peer.read_request()) {
            return;
        }
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        while (peer.send("x")) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    });
    ClientRequest request = get(server.url("/"));
    request.total_deadline = std::chrono::milliseconds(300);
    const ClientResult result = make_client()->call(std::move(request));
    EXPECT_EQ(result.reason, StopReason::deadline);
    EXPECT_EQ(result.error, AttemptError::attempt_timeout);
    EXPECT_EQ(result.attempts, 1U);
}

TEST(Hostile, EachAttemptHasItsOwnTime) {
    RawServer server([](RawConnection& peer) {
        if (peer.read_request() && peer.number == 1) {
            peer.wait_for_end();
        } else {
            peer.answer(200, "", "in time");
        }
    });
    ClientRequest request = get(server.url("/"));
    request.attempt_timeout = std::chrono::milliseconds(200);
    request.total_deadline = std::chrono::minutes(5);
    const ClientResult result = make_client()->call(std::move(request));
    EXPECT_EQ(result.body, "in time");
    EXPECT_EQ(result.attempts, 2U);
}

TEST(Hostile, InformationalAnswersAreNotTheAnswer) {
    RawServer server([](RawConnection& peer) {
        while (peer.read_request()) {
            peer.send(
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nRetry-After: 3600\r\n"
                "X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 3600\r\n\r\n");
            peer.answer(200, "X-Final: 1\r\n", "ok");
        }
    });
    const auto client = make_client();
    for (int i = 0; i < 2; ++i) {
        const ClientResult result = client->call(get(server.url("/")));
        EXPECT_EQ(result.status, 200);
        EXPECT_EQ(result.body, "ok");
        EXPECT_EQ(find_header(result.headers, "retry-after"), nullptr);
        EXPECT_NE(find_header(result.headers, "x-final"), nullptr);
    }
}

TEST(Hostile, EndlessInformationalAnswersEnd) {
    RawServer server([](RawConnection& peer) {
        if (peer.read_request()) {
            while (peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n")) {
            }
        }
    });
    const ClientResult result = make_client()->call(get(server.url("/")));
    EXPECT_EQ(result.error, AttemptError::protocol_error);
    EXPECT_EQ(result.attempts, 1U);
}

// An unasked 101 ends HTTP on that connection, so waiting for the answer is waiting for nothing.
TEST(Hostile, SwitchedProtocolsAreABrokenAnswerAtOnce) {
    const std::string head =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    ClientOptions options = quick_options();
    options.policy.attempt_timeout = std::chrono::hours(1);
    const auto client = make_client(options);
    for (const std::string& sent :
         {head, head + "\x81\x05hello", head + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 103 Early Hints\r\n\r\n" + head,
          std::string("HTTP/1.1 101 Switching Protocols\r\n\r\n")}) {
        for (const bool stays : {true, false}) {
            RawServer server([&](RawConnection& peer) {
                if (peer.read_request() && peer.send(sent) && stays) {
                    peer.wait_for_end();
                }
            });
            ClientRequest keyed = post(server.url("/"), "x");
            keyed.idempotency_key = "k";
            ClientRequest asked = get(server.url("/"));
            asked.headers.emplace_back("Upgrade", "websocket");
            int requests = 0;
            for (const ClientRequest& request :
                 {get(server.url("/")), post(server.url("/"), "x"), keyed, asked}) {
                const ClientResult result = client->call(request);
                EXPECT_EQ(result.error, AttemptError::protocol_error) << sent << result.message;
                EXPECT_EQ(result.status, 0);
                EXPECT_EQ(result.attempts, 1U);
                EXPECT_THAT(result.message, HasSubstr("switched protocols"));
                EXPECT_EQ(server.connections(), ++requests) << "such a connection is not kept";
            }
            EXPECT_EQ(server.requests().size(), 4U);
        }
    }
}

// As with no answer at all.
TEST(Hostile, OnlyInformationalAnswersAreALostConnection) {
    RawServer server([](RawConnection& peer) {
        if (peer.read_request()) {
            peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        }
    });
    const auto client = make_client();
    const ClientResult safe = client->call(get(server.url("/")));
    EXPECT_EQ(safe.error, AttemptError::connection_lost) << safe.message << safe.status;
    EXPECT_GT(safe.attempts, 1U);
    const ClientResult unsafe = client->call(post(server.url("/"), "x"));
    EXPECT_EQ(unsafe.error, AttemptError::connection_lost) << unsafe.message << unsafe.status;
    EXPECT_EQ(unsafe.attempts, 1U);
}

TEST(Hostile, NotHttpIsNotRepeated) {
    for (const std::string text :
         {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 9999 X\r\n\r\n", "<html>\r\n\r\n"}) {
        RawServer server([&](RawConnection& peer) {
            if (peer.read_request()) {
                peer.send(text);
            }
        });
        const ClientResult result = make_client()->call(get(server.url("/")));
        EXPECT_EQ(result.error, AttemptError::protocol_error) << text << result.message;
        EXPECT_EQ(result.attempts, 1U) << text;
    }
}

TEST(Hostile, RedirectsLoopOnlySoFar) {
    RawServer server([](RawConnection& peer) {
        while (peer.read_request()) {
            peer.answer(302, "Location: /loop\r\n", std::string(100, 'x'));
        }
    });
    const ClientResult result = make_client()->call(get(server.url("/loop")));
    EXPECT_EQ(result.reason, StopReason::too_many_redirects);
    EXPECT_EQ(result.status, 302);
    EXPECT_EQ(result.attempts, 1U);
    EXPECT_EQ(server.requests().size(), 6U);
    EXPECT_EQ(server.connections(), 1);
}

TEST(Hostile, OtherOriginsDoNotSeeSecrets) {
    RawServer other([](RawConnection& peer) {
        while (peer.read_request()) {
            peer.answer(429, "Retry-After: 3600\r\n", "");
        }
    });
    RawServer server([&](RawConnection& peer) {
        while (peer.read_request()) {
            peer.answer(307, cat("Location: ", other.url("/caught", "localhost"), "\r\n"), "");
        }
    });
    const auto client = make_client();
    ClientRequest request = post(server.url("/"), "text");
    request.headers = {
        {"Authorization", "Bearer s"}, {"cookie", "s=1"},        {"X-Api-Key", "s"},
        {"Host", "api.example"},       {"Accept", "text/plain"}, {"Content-Type", "a/b"}};
    request.idempotency_key = "s";
    const ClientResult result = client->call(request);
    EXPECT_EQ(result.status, 429);
    EXPECT_EQ(result.url, other.url("/caught", "localhost"));
    ASSERT_EQ(other.requests().size(), 1U);
    const RawRequest seen = other.requests()[0];
    for (const std::string secret : {"authorization", "cookie", "x-api-key", "idempotency-key"}) {
        EXPECT_EQ(seen.header(secret), "") << secret;
    }
    EXPECT_EQ(seen.header("host"), cat("localhost:", other.port()));
    EXPECT_EQ(seen.header("accept"), "text/plain");
    EXPECT_EQ(seen.header("content-type"), "a/b");
    EXPECT_EQ(seen.body, "text");
    EXPECT_EQ(server.requests()[0].header("authorization"), "Bearer s");
    EXPECT_EQ(server.requests()[0].header("host"), "api.example");
    // What the other server asked for does not close this one's gate.
    EXPECT_EQ(client->call(request).reason, StopReason::unsafe_method);
    EXPECT_EQ(server.requests().size(), 2U);
}

TEST(Hostile, WithoutItsKeyAPostIsSentToAnotherOriginOnce) {
    for (const bool lost : {true, false}) {
        RawServer other([&](RawConnection& peer) {
            while (peer.read_request() && !lost) {
                peer.answer(503, "", "");
            }
        });
        RawServer server([&](RawConnection& peer) {
            while (peer.read_request()) {
                peer.answer(307, cat("Location: ", other.url("/", "localhost"), "\r\n"), "");
            }
        });
        ClientRequest request = post(server.url("/"), "x");
        request.idempotency_key = "k";
        const auto client = make_client();
        const ClientResult result = client->call(request);
        EXPECT_EQ(result.reason, StopReason::unsafe_method);
        EXPECT_EQ(result.attempts, 1U);
        EXPECT_EQ(other.requests().size(), 1U);
        request.method = "PUT";  // safe without a key
        EXPECT_EQ(client->call(request).attempts, quick_options().policy.max_retries + 1);
    }
}

TEST(Hostile, APostIsNotTurnedIntoAGetUnlessAskedFor) {
    RawServer server([](RawConnection& peer) {
        while (peer.read_request()) {
            peer.request.target == "/done" ? peer.answer(200, "", "done")
                                           : peer.answer(303, "Location: /done\r\n", "");
        }
    });
    const ClientResult kept = make_client()->call(post(server.url("/"), "x"));
    EXPECT_EQ(kept.reason, StopReason::redirect_would_change_method);
    EXPECT_EQ(kept.status, 303);
    ClientOptions options = quick_options();
    options.policy.redirect_to_get = true;
    ClientRequest request = post(server.url("/"), "x");
    request.headers = {{"Content-Type", "a/b"}};
    EXPECT_EQ(make_client(options)->call(request).body, "done");
    const RawRequest last = server.requests().back();
    EXPECT_EQ(last.method, "GET");
    EXPECT_EQ(last.body, "");
    EXPECT_EQ(last.header("content-type"), "");
}

}  // namespace
}  // namespace ration::client
