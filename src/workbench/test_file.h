// A test file: cases in YAML, each a fresh service, steps at given instants, and what is expected.
//
// The language is docs/testing.md. Everything is resolved here (files loaded, spans parsed), so
// that running a case cannot fail for a reason that reading could have told. Errors are Problems
// with positions, several at once. Thread rule: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/problems.h"
#include "workbench/expectation.h"
#include "workbench/message.h"
#include "workbench/rules_loader.h"

namespace ration {

inline constexpr std::size_t max_test_cases = 10'000;                  // of one file
inline constexpr std::size_t max_test_steps = 10'000;                  // of one case
inline constexpr std::uint64_t max_test_times = 100'000;               // requests of one step
inline constexpr Nanos max_test_takes = std::chrono::hours(24 * 366);  // of an upstream

// A request whose texts may hold `{n}`: the number of the request within its step, from 1.
struct TestRequest {
    std::string method;
    std::string target;
    Fields headers;       // the key's Authorization field included
    std::string address;  // of the peer
    std::string body;
    ScriptedAnswer upstream;
};

struct TestStep {
    enum class Kind : std::uint8_t {
        request,
        reload,
        counters_down,
        counters_up,
        restart,
        step_wall,
        nothing  // `restart: false`
    };
    Kind kind = Kind::request;
    Position at;
    std::string title;  // "GET /v1/quote", "reload": for people
    Nanos when{0};      // since the case's start
    TestRequest request;
    std::uint64_t times = 1;
    Nanos every{0};  // between two of them
    Expectation expect;
    Rules rules;  // reload
    Nanos by{0};  // step_wall
};

struct TestCase {
    std::string name;
    Position at;
    Wall start{};
    Rules rules;
    std::vector<TestStep> steps;
};

struct TestFile {
    std::string path;
    std::vector<TestCase> cases;
};

// nullopt when `problems` got an error.
[[nodiscard]] std::optional<TestFile> load_test_file(const std::string& path, Problems& problems);
[[nodiscard]] std::optional<TestFile> parse_test_file(const std::string& path,
                                                      std::string_view text, Problems& problems);

// The address with `{n}` filled in. InvalidArgument when it is not one then.
[[nodiscard]] absl::StatusOr<IpAddress> address_of(std::string address, std::uint64_t n);

// Request `n` (from 1) of a step, with every `{n}` filled in. InvalidArgument when the address is
// not one then.
[[nodiscard]] absl::StatusOr<ServiceRequest> fill_in(const TestRequest& request, std::uint64_t n);

}  // namespace ration
