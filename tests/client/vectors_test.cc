// The cases of clients/vectors.json that ask one function of the core at a time.
#include <set>

#include "client/gate.h"
#include "client/hints.h"
#include "client/limit_fields.h"
#include "client/origin.h"
#include "client/pacer.h"
#include "client/redirect.h"
#include "vector_cases.h"

namespace ration::client {
namespace {

// Each kind has a test here or in flow_vectors_test.cc.
const std::set<std::string> known_kinds = {
    "decide", "retry_after", "limit_headers", "error_body", "backoff", "spread",
    "gate",   "in_flight",   "herd",          "call",       "budget",  "local_refusal",
    "pace",   "redirect",    "concurrency",   "breaker"};

TEST(Vectors, EveryKindIsRunAndTheDefaultsAreOurs) {
    for (const Json& one : vectors()["cases"]) {
        EXPECT_TRUE(known_kinds.count(one["kind"])) << one["name"];
    }
    const RetryPolicy told = policy_of(vectors()["defaults"]);
    const RetryPolicy ours;
    EXPECT_EQ(told.max_retries, ours.max_retries);
    EXPECT_EQ(told.backoff_base, ours.backoff_base);
    EXPECT_EQ(told.backoff_factor, ours.backoff_factor);
    EXPECT_EQ(told.backoff_cap, ours.backoff_cap);
    EXPECT_EQ(told.retry_after_extra, ours.retry_after_extra);
    EXPECT_EQ(told.max_server_wait, ours.max_server_wait);
    EXPECT_EQ(told.total_deadline, ours.total_deadline);
    EXPECT_EQ(told.attempt_timeout, ours.attempt_timeout);
    EXPECT_EQ(told.min_attempt, ours.min_attempt);
    EXPECT_EQ(told.gate_guard, ours.gate_guard);
    EXPECT_EQ(told.retry_statuses, ours.retry_statuses);
    EXPECT_EQ(told.retry_types, ours.retry_types);
    EXPECT_EQ(told.never_retry_types, ours.never_retry_types);
    EXPECT_EQ(told.narrow_types, ours.narrow_types);
    EXPECT_EQ(told.safe_methods, ours.safe_methods);
    EXPECT_EQ(told.retry_errors, ours.retry_errors);
    EXPECT_EQ(told.key_making, ours.key_making);
    EXPECT_EQ(told.key_header, ours.key_header);
    EXPECT_EQ(told.budget_capacity, ours.budget_capacity);
    EXPECT_EQ(told.budget_retry_cost, ours.budget_retry_cost);
    EXPECT_EQ(told.budget_success_deposit, ours.budget_success_deposit);
    EXPECT_EQ(told.budget_floor, ours.budget_floor);
    EXPECT_EQ(told.max_redirects, ours.max_redirects);
    EXPECT_EQ(told.redirect_to_get, ours.redirect_to_get);
}

Verdict verdict_of(const Json& given, RandomSource& random) {
    const RetryPolicy policy = policy_given(given);
    Answer answer(given["outcome"]);
    const HeaderLines headers = header_lines(given);
    const Wall now = start_of_cases().wall;
    const Told told = read_answer(answer.read(), now);
    return decide(
        {.policy = policy,
         .method = given["method"].get_ref<const std::string&>(),
         .keyed = find_header(headers, policy.key_header) != nullptr,
         .body = body_kind_named(given.value("body", "none")),
         .attempts_made = given["attempts_made"],
         .elapsed = milliseconds(given["elapsed_ms"]),
         .outcome = answer.outcome,
         .told = told,
         .retry_tokens = static_cast<std::uint32_t>(given.value("retry_tokens", 50.0) * 1000),
         .cancelled = given.value("cancelled", false),
         .now = now},
        random);
}

void check_verdict(const Verdict& verdict, const Json& expect) {
    EXPECT_EQ(verdict.retry, expect["action"] == "retry");
    if (!verdict.retry) {
        EXPECT_EQ(name(verdict.reason), expect.value("reason", ""));
    } else if (expect.contains("wait_ms")) {
        EXPECT_TRUE(within(verdict.wait, expect["wait_ms"])) << verdict.wait.count();
    }
    if (expect.contains("retry_at_unix_ms")) {
        const Json& at = expect["retry_at_unix_ms"];
        EXPECT_EQ(verdict.retry_at, at.is_null() ? std::nullopt : std::optional(wall_of(at)));
    }
}

TEST(Vectors, Decide) {
    each_case("decide", [](const Json& given, const Json& expect) {
        std::vector<std::vector<double>> rows = {{0.0}, {0.5}, {std::nextafter(1.0, 0.0)}};
        if (given.contains("draws")) {
            rows = {given["draws"].get<std::vector<double>>()};
        }
        for (const auto& row : rows) {
            ScriptedRandom random(row);
            const Verdict verdict = verdict_of(given, random);
            check_verdict(verdict, expect);
            if (expect.contains("wait_ms_exact")) {
                EXPECT_NEAR(static_cast<double>(verdict.wait.count()),
                            expect["wait_ms_exact"].get<double>() * 1e6, 2);
            }
        }
        if (expect.contains("error_type")) {
            Answer answer(given["outcome"]);
            const std::string type = read_answer(answer.read(), start_of_cases().wall).error_type;
            EXPECT_EQ(type, expect["error_type"].is_null()
                                ? ""
                                : expect["error_type"].get<std::string>());
        }
    });
}

TEST(Vectors, RetryAfter) {
    each_case("retry_after", [](const Json& given, const Json& expect) {
        std::optional<std::string> date;
        if (given.contains("date") && !given["date"].is_null()) {
            date = given["date"].get<std::string>();
        }
        const auto wait = parse_retry_after(given["value"].get_ref<const std::string&>(),
                                            server_now(date, wall_of(given["now_unix_ms"])));
        ASSERT_EQ(wait.has_value(), !expect["wait_ms"].is_null());
        if (wait) {
            EXPECT_EQ(std::chrono::ceil<std::chrono::milliseconds>(*wait),
                      milliseconds(expect["wait_ms"]));
        }
    });
}

TEST(Vectors, LimitHeaders) {
    each_case("limit_headers", [](const Json& given, const Json& expect) {
        const HeaderLines headers = header_lines(given);
        const auto limits =
            parse_limit_fields([&](std::string_view field) { return joined_field(headers, field); },
                               wall_of(given["now_unix_ms"]));
        ASSERT_EQ(limits.size(), expect["limits"].size());
        for (std::size_t i = 0; i < limits.size(); ++i) {
            const Json& limit = expect["limits"][i];
            EXPECT_EQ(limits[i].name, limit["name"].get<std::string>());
            EXPECT_EQ(limits[i].remaining, limit["remaining"].get<std::uint64_t>());
            EXPECT_EQ(limits[i].reset_in, limit["reset_in_ms"].is_null()
                                              ? std::nullopt
                                              : std::optional(milliseconds(limit["reset_in_ms"])));
        }
    });
}

// Each character of U+0080 to U+00FF, two bytes here, as one.
std::string latin1(std::string_view text) {
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const bool two = byte >= 0x80;
        const unsigned low = two ? static_cast<unsigned char>(text[++i]) & 0x3fU : 0U;
        bytes += static_cast<char>(two ? ((byte & 0x03U) << 6U) | low : byte);
    }
    return bytes;
}

TEST(Vectors, ErrorBody) {
    each_case("error_body", [](const Json& given, const Json& expect) {
        const std::size_t blanks = given.value("blanks", std::size_t{0});
        const std::string text = given["text"].get<std::string>() + std::string(blanks, ' ');
        const ErrorBody body =
            read_error_body(given.value("encoding", "") == "latin1" ? latin1(text) : text);
        EXPECT_EQ(body.type, expect["type"].is_null() ? "" : expect["type"].get<std::string>());
        ASSERT_EQ(body.wait.has_value(), !expect["wait_ms"].is_null());
        if (body.wait) {
            EXPECT_EQ(std::chrono::ceil<std::chrono::milliseconds>(*body.wait),
                      milliseconds(expect["wait_ms"]));
        }
    });
}

TEST(Vectors, Backoff) {
    each_case("backoff", [](const Json& given, const Json& expect) {
        const RetryPolicy policy = policy_given(given);
        for (std::size_t i = 0; i < given["retries"].size(); ++i) {
            EXPECT_EQ(backoff_bound(policy, given["retries"][i]),
                      milliseconds(expect["bound_ms"][i]));
        }
    });
}

TEST(Vectors, Spread) {
    each_case("spread", [](const Json& given, const Json& expect) {
        const int clients = given["clients"];
        std::set<Nanos> distinct;
        Nanos sum{0};
        for (int client = 0; client < clients; ++client) {
            SeededRandom random(static_cast<std::uint64_t>(client));
            const Json attempt = {{"method", "GET"},
                                  {"attempts_made", 1},
                                  {"elapsed_ms", 0},
                                  {"outcome", given["answer"]},
                                  {"policy", given.value("policy", Json::object())}};
            const Nanos wait = verdict_of(attempt, random).wait;
            EXPECT_TRUE(within(wait, expect["wait_ms"]));
            distinct.insert(wait);
            sum += wait;
        }
        EXPECT_TRUE(within(sum / clients, expect["mean_ms"])) << (sum / clients).count();
        EXPECT_GE(distinct.size(), expect["distinct"].get<std::size_t>());
    });
}

TEST(Vectors, Budget) {
    each_case("budget", [](const Json& given, const Json& expect) {
        const RetryPolicy policy = policy_given(given);
        Budget budget(policy);
        Mono now = start_of_cases().mono;
        for (std::size_t i = 0; i < given["steps"].size(); ++i) {
            const Json& step = given["steps"][i];
            for (int n = step.value("retries", 0); n > 0; --n) {
                budget.retry(now);
            }
            for (int n = step.value("successes", 0); n > 0; --n) {
                budget.success();
            }
            now += milliseconds(step.value("idle_ms", Json(0)));
            EXPECT_NEAR(budget.left() / 1000.0, expect["tokens"][i].get<double>(), 1e-9);
            EXPECT_EQ(budget.tokens(now) >= policy.budget_retry_cost,
                      expect["allowed"][i].get<bool>());
        }
    });
}

TEST(Vectors, LocalRefusal) {
    each_case("local_refusal", [](const Json& given, const Json& expect) {
        const std::uint64_t requests = given["requests"];
        const std::uint64_t accepts = given["accepts"];
        const std::uint32_t k = given["k"];
        EXPECT_NEAR(reject_ppm(requests, accepts, k), expect["probability"].get<double>() * 1e6,
                    1.5);
        Throttle throttle({.k = k});
        const Mono now = start_of_cases().mono;
        for (std::uint64_t i = 0; i < requests; ++i) {
            throttle.sent(now);
        }
        for (std::uint64_t i = 0; i < accepts; ++i) {
            throttle.answered(now, true);
        }
        ScriptedRandom random({given["draw"].get<double>()});
        EXPECT_EQ(throttle.rejects(now, random), expect["action"] == "reject");
        ScriptedRandom lowest({0.0});
        EXPECT_FALSE(throttle.rejects(now + std::chrono::seconds(121), lowest));
    });
}

TEST(Vectors, Redirect) {
    each_case("redirect", [](const Json& given, const Json& expect) {
        std::optional<std::string> location;
        if (!given["to"].is_null()) {
            location = given["to"].get<std::string>();
        }
        const Redirection got = decide_redirect(
            policy_given(given),
            {given["method"].get_ref<const std::string&>(), given["status"],
             given["from"].get_ref<const std::string&>(), location, given.value("followed", 0U)});
        if (expect["action"] == "stop") {
            ASSERT_TRUE(got.stop.has_value());
            EXPECT_EQ(name(*got.stop), expect["reason"].get<std::string>());
            return;
        }
        ASSERT_FALSE(got.stop.has_value()) << name(*got.stop);
        EXPECT_EQ(got.url, expect["url"].get<std::string>());
        EXPECT_EQ(got.method, expect["method"].get<std::string>());
        // Which fields stay behind is the wire's to say; here only whether secrets do.
        EXPECT_EQ(got.drop_secrets && !given["headers"].empty(),
                  expect["headers_kept"].size() < given["headers"].size());
    });
}

TEST(Vectors, Pace) {
    each_case("pace", [](const Json& given, const Json& expect) {
        Pacer pacer(given["rate_per_min"], std::chrono::minutes(1), given["burst"]);
        const Mono start = start_of_cases().mono;
        for (std::size_t i = 0; i < given["offered_at_ms"].size(); ++i) {
            EXPECT_EQ(pacer.reserve(start + milliseconds(given["offered_at_ms"][i])) - start,
                      milliseconds(expect["send_at_ms"][i]));
        }
    });
}

TEST(Vectors, Concurrency) {
    each_case("concurrency", [](const Json& given, const Json& expect) {
        ConcurrencyOptions options;
        options.initial = given["initial"];
        options.min = given["min"];
        options.max = given["max"];
        options.increase = given["increase_per_window"];
        options.decrease_percent =
            static_cast<std::uint32_t>(std::lround(given["decrease_factor"].get<double>() * 100));
        options.decrease_every = milliseconds(given["decrease_at_most_every_ms"]);
        InFlightLimit limit(options);
        for (const Json& step : given["steps"]) {
            if (step["signal"] == "throttled") {
                limit.throttled(start_of_cases().mono + milliseconds(step["at_ms"]));
            } else {
                limit.window_ok(step["limit_was_reached"]);
            }
        }
        EXPECT_EQ(limit.limit(), expect["limit"].get<std::uint32_t>());
    });
}

TEST(Vectors, Breaker) {
    each_case("breaker", [](const Json& given, const Json& expect) {
        std::optional<Breaker> breaker;
        if (given["enabled"]) {
            breaker.emplace(BreakerOptions{
                milliseconds(given["window_ms"]), given["min_outcomes"],
                static_cast<std::uint32_t>(std::lround(given["failure_ratio"].get<double>() * 100)),
                milliseconds(given["open_ms"])});
        }
        const Mono start = start_of_cases().mono;
        const auto failed = [](const Json& outcome) {
            return outcome != "ok" && outcome != "http_429";
        };
        for (const Json& outcome : given["outcomes"]) {
            if (breaker) {
                breaker->outcome(start, failed(outcome));
            }
        }
        for (std::size_t i = 0; i < given["asks"].size(); ++i) {
            const Json& ask = given["asks"][i];
            const Mono at = start + milliseconds(ask["at_ms"]);
            const bool allowed = !breaker || breaker->allows(at);
            EXPECT_EQ(allowed ? "send" : "reject", expect["actions"][i].get<std::string>());
            if (breaker && allowed && ask.contains("then")) {
                breaker->outcome(at, failed(ask["then"]));
            }
        }
    });
}

TEST(Vectors, InFlight) {
    each_case("in_flight", [](const Json& given, const Json&) {
        const RetryPolicy policy;
        ScriptedRandom random({0.0});
        Gate gate(policy, random, false);
        std::map<std::string, GateTicket> tickets;
        Woken woken;
        for (const Json& step : given["steps"]) {
            const Mono now = start_of_cases().mono + milliseconds(step["at_ms"]);
            if (step.contains("ask")) {
                GateTicket& ticket = tickets[step["ask"].get<std::string>()];
                ticket.max_wait = policy.max_server_wait;
                const bool go = gate.ask(ticket, now, woken).what == Gate::Asked::What::go;
                EXPECT_EQ(go ? "go" : "hold", step["expect"].get<std::string>()) << step;
            } else if (step.contains("leave")) {
                gate.leave(tickets[step["leave"].get<std::string>()], now, woken);
            } else if (step.contains("lost")) {
                gate.done(tickets[step["lost"].get<std::string>()], {}, now, woken);
            } else {
                Answer answer(step);
                const Told told = read_answer(
                    answer.read(), later(start_of_cases(), milliseconds(step["at_ms"])).wall);
                gate.done(tickets[step["answer"].get<std::string>()],
                          {&told, lists(policy.retry_statuses, step["status"].get<int>())}, now,
                          woken);
            }
        }
    });
}

}  // namespace
}  // namespace ration::client
