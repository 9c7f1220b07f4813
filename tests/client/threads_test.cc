// One client, many threads: what is shared, what cancelling ends, what is left afterwards.
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <thread>

#include "client_world.h"
#include "raw_server.h"

namespace ration::client {
namespace {

int entries_of(const char* folder) {
    int count = 0;
    if (DIR* open = opendir(folder)) {
        while (readdir(open)) {
            ++count;
        }
        closedir(open);
    }
    return count;
}

struct Left {
    int descriptors = entries_of("/proc/self/fd");
    int threads = entries_of("/proc/self/task");
    friend bool operator==(const Left&, const Left&) = default;
};

// Threads leave the table a moment after they were joined.
testing::AssertionResult nothing_left_of(const Left& before) {
    for (int i = 0; i < 200; ++i) {
        if (Left() == before) {
            return testing::AssertionSuccess();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    const Left after;
    return testing::AssertionFailure()
           << "descriptors " << before.descriptors << " to " << after.descriptors << ", threads "
           << before.threads << " to " << after.threads;
}

void serve_ok(RawConnection& peer) {
    while (peer.read_request()) {
        peer.answer(200, "", "ok");
    }
}

void in_threads(int count, const std::function<void(int)>& work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&work, i] { work(i); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

// A sanitizer's run time starts a thread of its own beside the program's first one, and keeps it:
// so a first thread comes and goes before anything is counted.
class Threads : public testing::Test {
protected:
    static void SetUpTestSuite() {
        std::filesystem::path first;
        std::thread([&] { first = "/proc/self/task/" + std::to_string(gettid()); }).join();
        while (std::filesystem::exists(first)) {
            std::this_thread::yield();
        }
    }
};

TEST_F(Threads, BlockingAndFutureCallsShareOneClient) {
    const Left before;
    {
        RawServer server(serve_ok);
        const auto client = make_client();
        std::atomic<int> good = 0;
        in_threads(8, [&](int) {
            std::vector<std::future<ClientResult>> futures;
            for (int i = 0; i < 10; ++i) {
                futures.push_back(client->start(get(server.url("/future"))));
                good += client->call(get(server.url("/blocking"))).ok() ? 1 : 0;
            }
            for (auto& future : futures) {
                good += future.get().ok() ? 1 : 0;
            }
        });
        EXPECT_EQ(good, 160);
        EXPECT_EQ(client->counters().sends, 160U);
        EXPECT_LE(server.connections(), 32 + 160)
            << "at most the connections that were open at once";
    }
    EXPECT_TRUE(nothing_left_of(before));
}

TEST_F(Threads, OneRefusalHoldsEverybodyBack) {
    using Clock = std::chrono::steady_clock;
    std::mutex mutex;
    std::vector<Clock::time_point> arrivals;
    std::optional<Clock::time_point> refused_at;
    RawServer server([&](RawConnection& peer) {
        while (peer.read_request()) {
            bool refuse = false;
            {
                const std::lock_guard lock(mutex);
                arrivals.push_back(Clock::now());
                refuse = !refused_at;
                refused_at = refused_at.value_or(Clock::now());
            }
            refuse ? peer.answer(429, "Retry-After: 1\r\n", "") : peer.answer(200, "", "ok");
        }
    });
    const auto client = make_client();
    std::future<ClientResult> first = client->start(get(server.url("/")));
    while (client->counters().retries.empty()) {
        std::this_thread::yield();  // until the first call knows of its refusal
    }
    in_threads(20, [&](int) { EXPECT_TRUE(client->call(get(server.url("/"))).ok()); });
    EXPECT_TRUE(first.get().ok());
    const std::lock_guard lock(mutex);
    EXPECT_EQ(arrivals.size(), 22U) << "one refusal for all";
    for (std::size_t i = 1; i < arrivals.size(); ++i) {
        EXPECT_GE(arrivals[i] - *refused_at, std::chrono::seconds(1));
    }
}

TEST_F(Threads, ToldNumbersBoundWhatIsInFlight) {
    std::atomic<int> in_flight = 0;
    std::atomic<int> most = 0;
    RawServer server([&](RawConnection& peer) {
        while (peer.read_request()) {
            const int now = ++in_flight;
            most = std::max<int>(most, now);
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            --in_flight;
            peer.answer(200, "X-RateLimit-Remaining: 3\r\nX-RateLimit-Reset: 3600\r\n", "");
        }
    });
    const auto client = make_client();
    EXPECT_TRUE(client->call(get(server.url("/"))).ok());
    in_threads(16, [&](int) { EXPECT_TRUE(client->call(get(server.url("/"))).ok()); });
    EXPECT_LE(most, 3);
}

TEST_F(Threads, CancellingEndsAWaitAHoldAndATransfer) {
    const Left before;
    {
        RawServer server([](RawConnection& peer) {
            while (peer.read_request()) {
                if (peer.request.target == "/silent") {
                    peer.wait_for_end();
                    return;
                }
                peer.answer(429, "Retry-After: 50\r\n", "");
            }
        });
        const auto client = make_client();
        const Cancellation cancellation;
        std::vector<std::future<ClientResult>> futures;
        for (const std::string path : {"/wait", "/wait", "/wait", "/silent"}) {
            ClientRequest request = get(server.url(path));
            request.cancellation = cancellation;
            futures.push_back(client->start(std::move(request)));
        }
        std::thread blocked([&] {
            ClientRequest request = get(server.url("/silent"));
            request.cancellation = cancellation;
            const ClientResult result = client->call(std::move(request));
            EXPECT_EQ(result.reason, StopReason::cancelled);
        });
        while (server.requests().size() < 3 || client->counters().retries.empty()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        cancellation.cancel("enough");
        cancellation.cancel("another reason");
        for (auto& future : futures) {
            const ClientResult result = future.get();
            EXPECT_EQ(result.reason, StopReason::cancelled);
            EXPECT_EQ(result.message, "enough");
            EXPECT_LE(result.attempts, 1U);
        }
        blocked.join();
        // Cancelled before it began: nothing is sent.
        ClientRequest late = get(server.url("/late"));
        late.cancellation = cancellation;
        EXPECT_EQ(client->call(std::move(late)).reason, StopReason::cancelled);
        for (const auto& request : server.requests()) {
            EXPECT_NE(request.target, "/late");
        }
    }
    EXPECT_TRUE(nothing_left_of(before));
}

TEST_F(Threads, TheClientsEndCancelsWhatItStarted) {
    const Left before;
    {
        RawServer server([](RawConnection& peer) {
            peer.read_request();
            peer.wait_for_end();
        });
        auto client = make_client();
        std::vector<std::future<ClientResult>> futures;
        for (int i = 0; i < 5; ++i) {
            futures.push_back(client->start(get(server.url("/"))));
        }
        client.reset();
        for (auto& future : futures) {
            const ClientResult result = future.get();
            EXPECT_EQ(result.reason, StopReason::cancelled);
            EXPECT_EQ(result.message, "the client was closed");
        }
    }
    EXPECT_TRUE(nothing_left_of(before));
}

TEST_F(Threads, CallsEndInAnyOrderUnderCancellation) {
    RawServer server([](RawConnection& peer) {
        while (peer.read_request()) {
            peer.answer(peer.request.target == "/busy" ? 503 : 200, "", "ok");
        }
    });
    const auto client = make_client();
    in_threads(8, [&](int number) {
        for (int i = 0; i < 15; ++i) {
            const Cancellation cancellation;
            ClientRequest request = get(server.url((number + i) % 3 == 0 ? "/busy" : "/"));
            request.cancellation = cancellation;
            auto future = client->start(request);
            if (i % 2 == 0) {
                cancellation.cancel();
            }
            if (i % 5 == 0) {
                static_cast<void>(client->call(get(server.url("/"))));
            }
            const ClientResult result = future.get();
            EXPECT_TRUE(result.status != 0 || result.reason == StopReason::cancelled);
        }
    });
    for (const GateState& gate : client->counters().gates) {
        EXPECT_EQ(gate.in_flight, 0U);
        EXPECT_EQ(gate.waiting, 0U);
    }
}

// Nobody waits within libcurl, where no gate would be asked again.
TEST_F(Threads, ASlowFirstAnswerHoldsNobodyUp) {
    std::promise<void> others_done;
    RawServer server([done = others_done.get_future().share()](RawConnection& peer) {
        while (peer.read_request()) {
            if (peer.request.target == "/slow") {
                done.wait();
            }
            peer.answer(200, "", "");
        }
    });
    const auto client = make_client();
    std::future<ClientResult> slow = client->start(get(server.url("/slow")));
    while (server.requests().empty()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::vector<std::future<ClientResult>> quick;
    for (int i = 0; i < 5; ++i) {
        quick.push_back(client->start(get(server.url(cat("/", i)))));
    }
    for (auto& future : quick) {
        EXPECT_EQ(future.get().status, 200);
    }
    others_done.set_value();
    EXPECT_EQ(slow.get().status, 200);
}

TEST_F(Threads, WhoWaitsForAConnectionAsksTheGateAgain) {
    std::atomic<int> seen = 0;
    std::atomic<std::int64_t> early = 0;
    const auto begun = std::chrono::steady_clock::now();
    std::atomic<std::int64_t> refused_at = 0;
    RawServer server([&](RawConnection& peer) {
        while (peer.read_request()) {
            const std::int64_t now = (std::chrono::steady_clock::now() - begun).count();
            if (seen++ < 2) {
                // Both are there, and the others stand in line.
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                refused_at = now;
                peer.answer(429, "Retry-After: 1\r\n", "");
                continue;
            }
            early += now - refused_at < 1'000'000'000 ? 1 : 0;
            peer.answer(200, "", "");
        }
    });
    ClientOptions options = quick_options();
    options.max_host_connections = 2;
    const auto client = make_client(options);
    std::vector<std::future<ClientResult>> calls;
    for (int i = 0; i < 10; ++i) {
        calls.push_back(client->start(get(server.url("/"))));
    }
    for (auto& call : calls) {
        EXPECT_EQ(call.get().status, 200);
    }
    EXPECT_EQ(early, 0) << "nothing is sent before the told moment";
    EXPECT_LE(server.connections(), 2);
    EXPECT_EQ(seen, 12);
}

}  // namespace
}  // namespace ration::client
