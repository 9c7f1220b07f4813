// What an answer says about waiting, in any bytes: every wait is within its bounds, and reading
// never fails. The first line of the input is a field's value, the rest a body.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "client/decide.h"
#include "client/hints.h"
#include "wire/http_date.h"

namespace {

void check(bool good) {
    if (!good) {
        std::abort();
    }
}

bool good_wait(const std::optional<ration::Nanos>& wait) {
    return !wait || (*wait >= ration::Nanos(0) && *wait <= ration::client::longest_hint);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::size_t end = text.find('\n');
    const std::string value(text.substr(0, end));
    const std::string_view body =
        end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const ration::Wall now{std::chrono::seconds(1'795'996'800)};
    check(good_wait(ration::client::parse_retry_after(value, now)));
    static_cast<void>(ration::parse_http_date(value, now));
    check(good_wait(ration::client::read_error_body(body).wait));
    const ration::HeaderLines headers = {{"RateLimit", value},
                                         {"RateLimit-Remaining", value},
                                         {"RateLimit-Reset", value},
                                         {"X-RateLimit-Remaining", "0"},
                                         {"X-RateLimit-Reset", value},
                                         {"Retry-After", value},
                                         {"Date", value}};
    ration::client::Outcome outcome;
    outcome.status = 429;
    outcome.headers = &headers;
    outcome.body = body;
    const ration::client::Told told = ration::client::read_answer(outcome, now);
    check(good_wait(told.floor) && told.floor != ration::Nanos(0));
    for (const ration::client::ToldLimit& limit : told.limits) {
        check(good_wait(limit.reset_in));
    }
    return 0;
}
