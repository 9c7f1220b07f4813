// Replay input of any bytes: either every request line has one answer line, which is JSON, or the
// first wrong line is named and what came before it is answered.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "workbench/json_cursor.h"
#include "workbench/line_reader.h"
#include "workbench/replay.h"
#include "workbench/replay_line.h"

namespace {

constexpr std::size_t max_input_bytes = 64 << 10;

constexpr std::string_view policy_text = R"(
policy: fuzzed
unmatched: forward
routes: {thing: GET /thing, slow: ANY /slow/**}
cors: {origins: ["*"], expose: [Retry-After]}
identify:
  address: {header: X-Forwarded-For, trusted: [127.0.0.0/8]}
limits:
  - {name: rate, routes: [thing], per: [address], token_bucket: 2/s, headers: x_ratelimit, store_down: closed}
  - {name: window, per: [method], fixed_window: {limit: 5, every: minute, count: attempts}}
  - {name: slots, routes: [slow], per: [], concurrency: 2, store_down: local}
)";

const ration::Rules& rules() {
    static const ration::Rules loaded = [] {
        ration::Problems problems;
        ration::Rules made{ration::Policy::parse("fuzzed.yaml", policy_text,
                                                 ration::process_environment, problems),
                           ration::empty_directory()};
        if (made.policy == nullptr) {
            std::abort();
        }
        return made;
    }();
    return loaded;
}

// Policy events would read files of the machine: such inputs are left alone.
bool names_a_file(const std::string& input, std::size_t& requests) {
    std::istringstream in(input);
    std::string line;
    while (ration::read_line(in, ration::max_replay_line_bytes, line) == ration::LineRead::line) {
        ration::LineError error;
        const auto parsed = ration::parse_replay_line(line, error);
        if (parsed && parsed->event && parsed->event->kind == ration::ReplayEvent::Kind::policy) {
            return true;
        }
        requests += parsed && !parsed->event ? 1U : 0U;
    }
    return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string input(reinterpret_cast<const char*>(data), std::min(size, max_input_bytes));
    std::size_t requests = 0;
    if (names_a_file(input, requests)) {
        return 0;
    }
    std::istringstream in(input);
    std::ostringstream out;
    std::ostringstream errors;
    const bool good = ration::replay({.rules = rules(), .counter_bytes = 1 << 20}, in, out, errors);
    std::istringstream answers(out.str());
    std::size_t answered = 0;
    for (std::string line; std::getline(answers, line); ++answered) {
        ration::JsonCursor cursor(line);
        const bool object = cursor.peek() == ration::JsonCursor::Kind::object;
        if (!object || line.back() != '}') {
            std::abort();
        }
    }
    if (answered > requests || (good && answered != requests) || good != errors.str().empty()) {
        std::abort();
    }
    return 0;
}
