// The cases of clients/vectors.json in which calls live through time: gates, herds, whole calls.
// Each runs with the least draws, the most, and two seeded rows.
#include <set>

#include "base/text.h"
#include "client/access.h"
#include "client/random.h"
#include "virtual_client.h"

namespace ration::client {
namespace {

template <typename Run>
void with_random_sources(Run run) {
    ScriptedRandom least({0.0});
    ScriptedRandom most({std::nextafter(1.0, 0.0)});
    SeededRandom seven(7);
    SeededRandom eight(8);
    for (RandomSource* random :
         std::initializer_list<RandomSource*>{&least, &most, &seven, &eight}) {
        run(*random);
    }
}

void place(Call& call, const Json& on) {
    const std::string bucket = on["bucket"];
    const std::string operation = on.value("operation", bucket);
    const std::size_t blank = operation.find(' ');
    call.method = operation.substr(0, blank);
    call.path = operation.substr(blank + 1);
    call.credential = on["credential"];
    call.bucket = bucket;
}

const Json good = {{"status", 200}};

void check_gate(const Json& given, const Json& expect, RandomSource& random) {
    VirtualClient world({}, random);
    RetryPolicy once;
    once.max_retries = 0;
    std::map<const VirtualClient::Asked*, const Json*> answers;
    world.server = [&](VirtualClient::Sent& sent) {
        const auto found = answers.find(sent.asked);
        const Json* step = found == answers.end() ? nullptr : found->second;
        if (!step) {
            world.answer(sent, Nanos(0), good);
        } else if (step->contains("lost")) {
            world.answer(sent, Nanos(0), {{"error", "connection_lost"}});
        } else {
            world.answer(sent, milliseconds((*step)["at_ms"]), (*step)["answer"]);
        }
    };
    for (const Json& step : given["steps"]) {
        answers[&world.ask(once, [&](Call& call) { place(call, step["on"]); })] = &step;
    }
    const Json& next = given["next"];
    const bool doubt = next.value("key_in_doubt", false);
    const Json lost = {{"lost", true}};
    const auto set = [&](Call& call) {
        place(call, next["on"]);
        call.key = doubt ? "in-doubt" : "";
    };
    if (doubt) {
        answers[&world.ask(once, set)] = &lost;
    }
    world.run(milliseconds(next["at_ms"]));
    const VirtualClient::Asked& asked = world.ask(once, set);
    world.run();
    if (expect["action"] == "reject") {
        EXPECT_TRUE(asked.sends.empty());
        EXPECT_EQ(name(*asked.ended), expect["reason"].get<std::string>());
        EXPECT_EQ(asked.retry_at, start_of_cases().wall + milliseconds(expect["retry_at_ms"]));
        return;
    }
    ASSERT_EQ(asked.sends.size(), 1U) << name(*asked.ended);
    EXPECT_TRUE(within(asked.sends[0] - start_of_cases().mono, expect["send_at_ms"]))
        << (asked.sends[0] - start_of_cases().mono).count();
}

TEST(Vectors, Gate) {
    each_case("gate", [](const Json& given, const Json& expect) {
        with_random_sources([&](RandomSource& random) { check_gate(given, expect, random); });
    });
}

// Windows of the wall clock, told by X-RateLimit-Remaining and -Reset.
struct WindowServer {
    std::uint64_t limit;
    std::int64_t every_ms;
    Nanos latency;
    std::map<std::int64_t, std::uint64_t> used, refused;

    void serve(VirtualClient& world, VirtualClient::Sent& sent) {
        world.at(world.since_start() + latency / 2, [this, &world, &sent] {
            const auto unix_ms =
                std::chrono::floor<std::chrono::milliseconds>(world.now().wall).time_since_epoch();
            const std::int64_t window = unix_ms.count() / every_ms;
            const std::uint64_t count = ++used[window];
            Json reply = {{"status", count <= limit ? 200 : 429},
                          {"headers",
                           {{"X-RateLimit-Remaining", cat(limit - std::min(limit, count))},
                            {"X-RateLimit-Reset", cat((window + 1) * every_ms / 1000)}}}};
            if (count > limit) {
                ++refused[window];
                reply["headers"]["Retry-After"] = "1";
            }
            world.answer(sent, latency / 2, reply);
        });
    }
};

struct Herd {
    const Json& given;
    const Json& expect;
    VirtualClient world;
    WindowServer window{0, 1, Nanos(0), {}, {}};
    std::vector<VirtualClient::Asked*> calls = {};
    std::size_t sends_before = 0;

    void serve(VirtualClient::Sent& sent) {
        if (given.contains("window")) {
            window.serve(world, sent);
            return;
        }
        for (const Json& phase : given["server"]) {
            if (phase["until_ms"].is_null() ||
                world.since_start() < milliseconds(phase["until_ms"])) {
                world.answer(sent, milliseconds(phase["latency_ms"]), phase["reply"]);
                return;
            }
        }
    }
    void run();
    void check() const;
    void check_probe() const;
};

void Herd::run() {
    const Json on = {{"credential", "tok-A"}, {"bucket", "GET /v1/availability"}};
    RetryPolicy once;
    once.max_retries = 0;
    world.timer_error = milliseconds(given.value("timer_error_ms", Json(0)));
    if (given.contains("window")) {
        const Json& told = given["window"];
        window = {told["limit"], told["every_ms"], milliseconds(told["latency_ms"]), {}, {}};
    }
    const Json before = given.value("steps_before", Json::array());
    for (const Json& step : before) {
        world.server = [&](VirtualClient::Sent& sent) {
            world.answer(sent, Nanos(0), step["answer"]);
        };
        world.ask(once, [&](Call& call) { place(call, step["on"]); });
        world.run(milliseconds(step["at_ms"]));
    }
    sends_before = world.sends().size();
    world.server = [this](VirtualClient::Sent& sent) { serve(sent); };
    if (given["start_ms"].get<int>() > 0) {
        world.run(milliseconds(given["start_ms"]));
    }
    if (given.contains("wall_clock_jump")) {
        const Json& jump = given["wall_clock_jump"];
        world.at(milliseconds(jump["at_ms"]),
                 [this, jump] { world.wall_jump = milliseconds(jump["by_ms"]); });
    }
    for (int i = given["calls"]; i > 0; --i) {
        calls.push_back(&world.ask(policy_given(given), [&](Call& call) { place(call, on); }));
    }
    if (given.contains("cancel_at_ms")) {
        world.at(milliseconds(given["cancel_at_ms"]), [this] {
            for (VirtualClient::Asked* asked : calls) {
                world.cancel(*asked);
            }
        });
    }
    world.run();
}

// After the first quiet second one send goes alone until it has its reply.
void Herd::check_probe() const {
    const auto& sends = world.sends();
    const Mono started = start_of_cases().mono + milliseconds(given["start_ms"]);
    for (std::size_t i = sends_before; i < sends.size(); ++i) {
        const Mono before = i > sends_before ? sends[i - 1].at : started - std::chrono::seconds(1);
        if (sends[i].at <= started || sends[i].at - before < std::chrono::seconds(1)) {
            continue;
        }
        int early = 0;
        for (const auto& sent : sends) {
            early += sent.at >= sends[i].at && sent.at < *sends[i].replied ? 1 : 0;
        }
        EXPECT_EQ(early, expect["probes_before_first_reply"].get<int>());
        return;
    }
    ADD_FAILURE() << "no quiet second";
}

void Herd::check() const {
    const Mono start = start_of_cases().mono;
    const Json spans = expect.value("sends_between_ms", Json::array());
    for (const Json& span : spans) {
        int count = 0;
        for (std::size_t i = sends_before; i < world.sends().size(); ++i) {
            const Nanos at = world.sends()[i].at - start;
            count += at >= milliseconds(span["from"]) && at < milliseconds(span["to"]) ? 1 : 0;
        }
        EXPECT_LE(count, span["max"].get<int>()) << span;
    }
    if (expect.contains("probes_before_first_reply")) {
        check_probe();
    }
    for (const VirtualClient::Asked* asked : calls) {
        if (expect.value("all_succeed", false)) {
            EXPECT_EQ(asked->result(), "200") << name(*asked->ended);
        }
        if (expect.contains("sends_per_call_max")) {
            EXPECT_LE(asked->sends.size(), expect["sends_per_call_max"].get<std::size_t>());
        }
        if (expect.contains("result")) {
            EXPECT_EQ(name(*asked->ended), expect["result"].get<std::string>());
            EXPECT_TRUE(within(asked->ended_at - start, expect["ends_ms"]));
        }
    }
    if (expect.contains("last_send_before_ms")) {
        EXPECT_LT(world.sends().back().at - start, milliseconds(expect["last_send_before_ms"]));
    }
    if (expect.contains("sends_total")) {
        EXPECT_EQ(world.sends().size() - sends_before, expect["sends_total"].get<std::size_t>());
    }
    if (expect.contains("refused_per_later_window_max")) {
        const std::int64_t first = window.used.begin()->first;
        for (const auto& [number, count] : window.refused) {
            EXPECT_TRUE(number == first ||
                        count <= expect["refused_per_later_window_max"].get<std::uint64_t>())
                << count << " refused in window " << number - first;
        }
    }
    EXPECT_FALSE(world.timers_left());
}

TEST(Vectors, Herd) {
    each_case("herd", [](const Json& given, const Json& expect) {
        with_random_sources([&](RandomSource& random) {
            ClientOptions options;
            options.policy = policy_given(given);
            Herd herd{given, expect, VirtualClient(options, random)};
            herd.run();
            herd.check();
        });
    });
}

RequestBody body_of(const Json& body) {
    std::string bytes;
    for (int i = 0; i < body["bytes"].get<int>(); ++i) {
        bytes += static_cast<char>(i % 251);
    }
    if (body["source"] == "buffered") {
        return RequestBody::text(bytes);
    }
    const auto at = std::make_shared<std::size_t>(0);
    const auto read = [bytes, at](std::span<char> into) {
        const std::size_t count = bytes.copy(into.data(), into.size(), *at);
        *at += count;
        return static_cast<std::ptrdiff_t>(count);
    };
    if (body["source"] == "once") {
        return RequestBody::stream(read, bytes.size());
    }
    return RequestBody::rewindable(
        read,
        [at] {
            *at = 0;
            return true;
        },
        bytes.size());
}

// What one attempt would put on the wire.
std::string sent_bytes(const RequestBody& body, BodyKind& kind) {
    if (kind == BodyKind::none || kind == BodyKind::buffered) {
        return BodyAccess::bytes(body);
    }
    if (kind == BodyKind::rewindable) {
        EXPECT_TRUE(BodyAccess::rewind(body)());
    }
    kind = kind == BodyKind::stream_once ? BodyKind::stream_once_consumed : kind;
    std::string bytes;
    char buffer[999];
    for (std::ptrdiff_t got = 1; got > 0;) {
        got = BodyAccess::read(body)(buffer);
        bytes.append(buffer, static_cast<std::size_t>(std::max<std::ptrdiff_t>(got, 0)));
    }
    return bytes;
}

struct Whole {
    const Json& given;
    const Json& expect;
    VirtualClient world;
    std::set<std::string> keys = {};
    std::set<std::string> bodies = {};
    SeededRandom key_bits{1};

    void run();
    void check_one(const VirtualClient::Asked& asked, std::size_t index) const;
};

void Whole::run() {
    for (std::size_t index = 0; index < given["answers"].size(); ++index) {
        ClientRequest request;
        request.method = given["method"];
        request.headers = header_lines(given);
        if (given.contains("body") && given["body"] != "none") {
            request.body = body_of(given["body"]);
        }
        const Json& answers = given["answers"][index];
        std::size_t next = 0;
        world.on_send = [&](VirtualClient::Asked& asked) {
            bodies.insert(sent_bytes(request.body, asked.call.body));
            keys.insert(asked.call.key);
        };
        world.server = [&](VirtualClient::Sent& sent) {
            ASSERT_LT(next, answers.size());
            const Json& answer = answers[next++];
            if (answer.value("error", "") == "never_answers") {
                world.never_answer(sent);
            } else {
                world.answer(sent, milliseconds(answer.value("takes_ms", Json(0))), answer);
            }
        };
        const RetryPolicy policy = policy_given(given);
        const VirtualClient::Asked& asked = world.ask(policy, [&](Call& call) {
            call.method = request.method;
            call.path = "/v1/thing";
            call.bucket = "thing";
            call.key = key_for(request, policy, key_bits);
            call.body = BodyAccess::kind(request.body);
        });
        world.run();
        check_one(asked, index);
    }
    keys.erase("");
    if (expect.contains("keys_distinct")) {
        EXPECT_EQ(keys.size(), expect["keys_distinct"].get<std::size_t>());
    }
    if (expect.contains("keys")) {
        EXPECT_EQ(keys, expect["keys"].get<std::set<std::string>>());
    }
    if (expect.contains("bodies_distinct")) {
        EXPECT_EQ(bodies.size(), expect["bodies_distinct"].get<std::size_t>());
        EXPECT_EQ(bodies.begin()->size(), expect["content_length"].get<std::size_t>());
    }
    if (expect.contains("events")) {
        EXPECT_EQ(world.asked().front().events, expect["events"].get<std::vector<std::string>>());
    }
    if (expect.contains("ends_ms")) {
        EXPECT_TRUE(
            within(world.asked().back().ended_at - start_of_cases().mono, expect["ends_ms"]));
    }
    EXPECT_FALSE(world.timers_left());
}

void Whole::check_one(const VirtualClient::Asked& asked, std::size_t index) const {
    EXPECT_EQ(asked.sends.size(), expect["sends"][index].get<std::size_t>());
    const Json& result = expect["result"][index];
    EXPECT_EQ(asked.result(),
              result.is_number() ? cat(result.get<int>()) : result.get<std::string>());
    if (!expect.contains("waits")) {
        return;
    }
    const Json& waits = expect["waits"][index];
    ASSERT_EQ(asked.waits.size(), waits.size());
    for (std::size_t i = 0; i < waits.size(); ++i) {
        EXPECT_EQ(asked.waits[i].first, waits[i]["source"].get<std::string>());
        EXPECT_TRUE(within(asked.waits[i].second, waits[i])) << asked.waits[i].second.count();
    }
}

TEST(Vectors, Call) {
    each_case("call", [](const Json& given, const Json& expect) {
        with_random_sources([&](RandomSource& random) {
            ClientOptions options;
            options.policy = policy_given(given);
            Whole whole{given, expect, VirtualClient(options, random)};
            whole.run();
        });
    });
}

}  // namespace
}  // namespace ration::client
