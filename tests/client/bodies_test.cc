// Bodies of requests: the same bytes on every attempt, as long as announced, and each for the calls
// that may have it.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "base/same_word.h"
#include "client_world.h"
#include "gmock/gmock.h"

namespace ration::client {
namespace {

using testing::HasSubstr;

TEST(Bodies, BodiesAreTheSameOnEveryAttempt) {
    const std::string text = long_text(70'000);
    for (const bool sized : {true, false}) {
        RawServer server(serve_statuses({503, 429, 200}));
        const auto client = make_client();
        ClientRequest request = get(server.url("/"));
        request.method = "PUT";
        request.body = reading(text, true, sized);
        EXPECT_EQ(client->call(std::move(request)).status, 200);
        const auto seen = server.requests();
        ASSERT_EQ(seen.size(), 3U);
        for (const RawRequest& one : seen) {
            EXPECT_EQ(one.body, text);
            EXPECT_EQ(one.header("content-length"), sized ? "70000" : "");
        }
    }
}

TEST(Bodies, AOneShotBodyIsSentOnceAndTheAnswerGoesBack) {
    RawServer server(serve_statuses({503, 200}));
    const auto client = make_client();
    ClientRequest request = get(server.url("/"));
    request.method = "PUT";
    request.body = reading("once", false, false);
    const ClientResult result = client->call(std::move(request));
    EXPECT_EQ(result.status, 503);
    EXPECT_EQ(result.reason, StopReason::body_not_replayable);
    ASSERT_EQ(server.requests().size(), 1U);
    EXPECT_EQ(server.requests()[0].body, "once");
}

TEST(Bodies, AOneShotBodyIsOfOneCall) {
    RawServer server(serve_ok);
    const auto client = make_client();
    for (const bool sized : {true, false}) {
        ClientRequest request = get(server.url("/"));
        request.method = "PUT";
        request.body = reading("once", false, sized);
        EXPECT_EQ(client->call(request).status, 200);
        const ClientResult again = client->call(request);
        EXPECT_EQ(again.error, AttemptError::bad_request);
        EXPECT_THAT(again.message, HasSubstr("read before"));
    }
    EXPECT_EQ(server.requests().size(), 2U);
}

TEST(Bodies, AOneShotBodyThatWasNotAskedForIsStillThere) {
    RawServer server([](RawConnection& peer) {
        peer.asks_for_bodies = peer.number > 1;
        while (peer.read_request()) {
            peer.asks_for_bodies ? peer.answer(200, "", "")
                                 : peer.answer(503, "Connection: close\r\n", "");
            if (!peer.asks_for_bodies) {
                return;
            }
        }
    });
    ClientRequest request = get(server.url("/"));
    request.method = "PUT";
    request.body = reading("once", false, false);
    EXPECT_EQ(make_client()->call(std::move(request)).status, 200);
    ASSERT_EQ(server.requests().size(), 2U);
    EXPECT_EQ(server.requests()[0].body, "");
    EXPECT_EQ(server.requests()[1].body, "once");
}

TEST(Bodies, FilesAreBodiesToo) {
    const auto path = std::filesystem::temp_directory_path() / cat("ration-body-", getpid());
    std::ofstream(path) << long_text(5000);
    RawServer server(serve_statuses({503, 200}));
    const auto client = make_client();
    ClientRequest request = get(server.url("/"));
    request.method = "PUT";
    request.body = RequestBody::file(path.string()).value();
    EXPECT_EQ(client->call(std::move(request)).status, 200);
    ASSERT_EQ(server.requests().size(), 2U);
    EXPECT_EQ(server.requests()[1].body, long_text(5000));
    ClientRequest again = get(server.url("/"));  // one body, two calls
    again.method = "PUT";
    again.body = RequestBody::file(path.string()).value();
    EXPECT_EQ(client->call(again).status, 200);
    EXPECT_EQ(client->call(again).status, 200);
    EXPECT_EQ(server.requests().back().body, long_text(5000));
    std::ofstream(path).close();  // it is empty now
    again.body = RequestBody::file(path.string()).value();
    EXPECT_EQ(client->call(again).status, 200);
    EXPECT_EQ(server.requests().back().header("content-length"), "0");
    again.body = RequestBody::file("/proc/self/stat").value();  // its size is 0, but it has bytes
    EXPECT_EQ(client->call(again).status, 200);
    EXPECT_THAT(server.requests().back().body, HasSubstr("("));
    EXPECT_THAT(RequestBody::file("/dev/zero").status().ToString(), HasSubstr("no size"));
    std::filesystem::remove(path);
    EXPECT_TRUE(absl::IsNotFound(RequestBody::file(path.string()).status()));
    const absl::Status folder = RequestBody::file(path.parent_path().string()).status();
    EXPECT_THAT(std::string(folder.message()), HasSubstr(path.parent_path().string()));
}

TEST(Bodies, ABodyThatCannotBeReadEndsTheCall) {
    RawServer server(serve_ok);
    ClientRequest request = get(server.url("/"));
    request.method = "PUT";
    request.body = RequestBody::stream([](std::span<char>) { return std::ptrdiff_t{-1}; }, 10);
    const ClientResult result = make_client()->call(std::move(request));
    EXPECT_EQ(result.error, AttemptError::bad_request);
    EXPECT_THAT(result.message, HasSubstr("could not be read"));
}

TEST(Bodies, ABodyThatCannotBeRewoundIsSentOnceAndTheAnswerGoesBack) {
    RawServer server(serve_statuses({503, 200}));
    ClientRequest request = get(server.url("/"));
    request.method = "PUT";
    request.body = RequestBody::rewindable(
        [left = 4](std::span<char> into) mutable {
            into[0] = 'x';
            return std::ptrdiff_t{left-- > 0 ? 1 : 0};
        },
        [] { return false; }, 4);
    const ClientResult result = make_client()->call(std::move(request));
    EXPECT_EQ(result.status, 503);
    EXPECT_EQ(result.reason, StopReason::body_not_replayable);
    EXPECT_EQ(result.attempts, 1U);
}

// Each call reads it from its own place.
TEST(Bodies, OneFileIsTheBodyOfManyCallsAtOnce) {
    const auto path = std::filesystem::temp_directory_path() / cat("ration-shared-", getpid());
    const std::string text = long_text(300'000);
    std::ofstream(path) << text;
    RawServer server(serve_statuses({503, 429, 503, 200}));
    const auto client = make_client();
    ClientRequest request = get(server.url("/"));
    request.method = "PUT";
    request.body = RequestBody::file(path.string()).value();
    std::vector<std::future<ClientResult>> calls;
    for (int i = 0; i < 20; ++i) {
        calls.push_back(client->start(request));
    }
    for (auto& call : calls) {
        EXPECT_EQ(call.get().status, 200);
    }
    EXPECT_EQ(server.requests().size(), 23U);
    for (const RawRequest& seen : server.requests()) {
        EXPECT_TRUE(seen.body == text);
    }
    std::filesystem::remove(path);
}

// A shorter one would leave the server waiting, of a longer one nobody would know that it was cut.
TEST(Bodies, ABodyIsAsLongAsAnnounced) {
    RawServer server(serve_ok);
    const auto client = make_client();
    const auto send = [&](std::size_t bytes, std::uint64_t announced, bool rewindable) {
        ClientRequest request = get(server.url("/"));
        request.method = "PUT";
        auto left = std::make_shared<std::size_t>(bytes);
        const auto read = [left](std::span<char> into) {
            const std::size_t now = std::min({*left, into.size(), std::size_t{1000}});
            std::fill_n(into.begin(), now, 'x');
            *left -= now;
            return static_cast<std::ptrdiff_t>(now);
        };
        const auto rewind = [left, bytes] {
            *left = bytes;
            return true;
        };
        request.body = rewindable ? RequestBody::rewindable(read, rewind, announced)
                                  : RequestBody::stream(read, announced);
        return client->call(std::move(request));
    };
    for (const bool rewindable : {false, true}) {
        EXPECT_EQ(send(0, 0, rewindable).status, 200);
        EXPECT_THAT(send(1, 0, rewindable).message, HasSubstr("longer than the 0 bytes"));
        for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{2'500'000}}) {
            SCOPED_TRACE(cat(size, rewindable ? " rewindable" : ""));
            EXPECT_EQ(send(size, size, rewindable).status, 200);
            const ClientResult shorter = send(size - 1, size, rewindable);
            EXPECT_EQ(shorter.error, AttemptError::bad_request);
            EXPECT_EQ(shorter.reason, StopReason::error_not_retryable);
            EXPECT_THAT(shorter.message, HasSubstr(cat("shorter than the ", size, " bytes")));
            const ClientResult longer = send(size + 1, size, rewindable);
            EXPECT_EQ(longer.error, AttemptError::bad_request);
            EXPECT_THAT(longer.message, HasSubstr(cat("longer than the ", size, " bytes")));
        }
    }
}

// Nothing of the body was sent when its announcement is refused (RFC 9110 15.5.18).
TEST(Bodies, ABodyWhoseAnnouncementIsRefusedIsSentWithoutOne) {
    RawServer server([](RawConnection& peer) {
        peer.asks_for_bodies = false;
        while (peer.read_request()) {
            const bool announced = !peer.request.header("expect").empty();
            peer.answer(announced ? 417 : 201, "", "");
        }
    });
    const auto client = make_client();
    for (const bool keyed : {false, true}) {
        ClientRequest request = post(server.url("/"), std::string(2U << 20U, 'x'));
        request.body = RequestBody::stream([left = 2](std::span<char> into) mutable {
            into[0] = 'x';
            return std::ptrdiff_t{left-- > 0 ? 1 : 0};
        });
        request.idempotency_key = keyed ? "k" : "";
        const ClientResult result = client->call(std::move(request));
        EXPECT_EQ(result.status, 201) << result.message;
        EXPECT_EQ(result.attempts, 1U);
        EXPECT_EQ(server.requests().back().body, "xx");
    }
}

// libcurl's handle would not announce another body.
TEST(Bodies, ARefusedAnnouncementIsOfOneServerAndOneRequest) {
    RawServer refuses([](RawConnection& peer) {
        peer.asks_for_bodies = false;
        while (peer.read_request()) {
            peer.answer(peer.request.header("expect").empty() ? 200 : 417, "", "");
        }
    });
    RawServer other([](RawConnection& peer) {
        peer.asks_for_bodies = peer.number > 1;
        while (peer.read_request()) {
            peer.answer(peer.asks_for_bodies ? 200 : 503, "Connection: close\r\n", "");
            return;
        }
    });
    const auto client = make_client();
    for (const std::string& url : {refuses.url("/"), other.url("/")}) {
        ClientRequest request = get(url);
        request.method = "PUT";
        request.body = RequestBody::stream([left = 1](std::span<char> into) mutable {
            into[0] = 'x';
            return std::ptrdiff_t{left-- > 0 ? 1 : 0};
        });
        EXPECT_EQ(client->call(std::move(request)).status, 200);
    }
    ASSERT_EQ(other.requests().size(), 2U);
    EXPECT_EQ(other.requests()[0].header("expect"), "100-continue");
}

}  // namespace
}  // namespace ration::client
