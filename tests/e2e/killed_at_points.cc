// Beside the objects of the `ration` command this makes the command that dies on demand:
// RATION_SYNC_POINT=name:n ends it by SIGKILL when the named point is met for the n-th time.
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/sync_point.h"

namespace ration {
namespace {

struct DeathWish {
    std::string point;
    std::atomic<long> left{0};
};

DeathWish& wish() {
    static DeathWish wish;
    return wish;
}

void meet(std::string_view name) {
    if (name == wish().point && wish().left.fetch_sub(1) == 1) {
        static_cast<void>(std::raise(SIGKILL));
    }
}

[[maybe_unused]] const bool hooked = [] {
    const char* text = std::getenv("RATION_SYNC_POINT");
    const std::string_view wanted = text == nullptr ? "" : text;
    const std::size_t colon = wanted.rfind(':');
    if (colon == std::string_view::npos) {
        return false;
    }
    wish().point = wanted.substr(0, colon);
    wish().left = std::strtol(std::string(wanted.substr(colon + 1)).c_str(), nullptr, 10);
    sync_point_hook = meet;
    return true;
}();

}  // namespace
}  // namespace ration
