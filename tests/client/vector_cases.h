// The cases of clients/vectors.json, which every client of this repository runs.
#pragma once

#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "client/decide.h"
#include "client/policy.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "ration/client.h"

namespace ration::client {

using Json = nlohmann::json;

inline const Json& vectors() {
    static const Json file = Json::parse(std::ifstream(RATION_SOURCE_DIR "/clients/vectors.json"));
    return file;
}

inline Nanos milliseconds(const Json& number) {
    return Nanos(std::llround(number.get<double>() * 1e6));
}

inline Wall wall_of(const Json& unix_ms) {
    return Wall(milliseconds(unix_ms));
}

inline Now start_of_cases() {
    return {Mono(std::chrono::hours(1)), wall_of(vectors()["reference_now_unix_ms"])};
}

// Runs `check` on the given and expected parts of each case of a kind.
template <typename Check>
void each_case(const std::string& kind, Check check) {
    int seen = 0;
    for (const Json& one : vectors()["cases"]) {
        if (one["kind"] == kind) {
            SCOPED_TRACE(one["name"].get<std::string>());
            check(one["given"], one["expect"]);
            ++seen;
        }
    }
    EXPECT_GT(seen, 0) << kind;
}

// Draws in a row, each 0 <= u < 1, the last one for ever.
class ScriptedRandom final : public RandomSource {
public:
    explicit ScriptedRandom(std::vector<double> draws) : draws_(std::move(draws)) {}
    [[nodiscard]] std::uint64_t bits() override {
        const double u = draws_[std::min(next_++, draws_.size() - 1)];
        return static_cast<std::uint64_t>(std::ldexp(u, 64));
    }

private:
    std::vector<double> draws_;
    std::size_t next_ = 0;
};

// SplitMix64: another row for each seed.
class SeededRandom final : public RandomSource {
public:
    explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
    [[nodiscard]] std::uint64_t bits() override {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31U);
    }

private:
    std::uint64_t state_;
};

inline std::optional<AttemptError> error_named(const std::string& text) {
    for (int i = 0; i <= static_cast<int>(AttemptError::protocol_error); ++i) {
        if (name(static_cast<AttemptError>(i)) == text) {
            return static_cast<AttemptError>(i);
        }
    }
    ADD_FAILURE() << "no such error: " << text;
    return std::nullopt;
}

inline HeaderLines header_lines(const Json& holder) {
    HeaderLines lines;
    if (holder.contains("headers")) {
        for (const auto& [field, value] : holder["headers"].items()) {
            lines.emplace_back(field, value.get<std::string>());
        }
    }
    return lines;
}

// {status, headers, body} or {error}, with what an Outcome points to.
struct Answer {
    Outcome outcome;
    HeaderLines headers;
    std::string body;

    explicit Answer(const Json& json) {
        if (json.contains("error")) {
            outcome.error = error_named(json["error"]);
            return;
        }
        outcome.status = json["status"];
        headers = header_lines(json);
        if (json.contains("body") && !json["body"].is_null()) {
            body = json["body"].is_string() ? json["body"].get<std::string>() : json["body"].dump();
        }
    }
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;

    [[nodiscard]] const Outcome& read() {
        outcome.headers = &headers;
        outcome.body = body;
        return outcome;
    }
};

// The defaults with a case's own fields over them.
RetryPolicy policy_of(const Json& fields);

inline RetryPolicy policy_given(const Json& given) {
    return policy_of(given.value("policy", Json::object()));
}

inline BodyKind body_kind_named(const std::string& text) {
    const std::map<std::string, BodyKind> kinds = {
        {"none", BodyKind::none},
        {"buffered", BodyKind::buffered},
        {"rewindable", BodyKind::rewindable},
        {"stream_once", BodyKind::stream_once},
        {"stream_once_consumed", BodyKind::stream_once_consumed}};
    return kinds.at(text);
}

inline bool within(Nanos time, const Json& bounds) {
    return time >= milliseconds(bounds["min"]) && time <= milliseconds(bounds["max"]);
}

}  // namespace ration::client
