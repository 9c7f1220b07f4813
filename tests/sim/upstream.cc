#include "sim/upstream.h"

#include <chrono>
#include <iterator>

#include "base/text.h"

namespace ration::sim {

using namespace std::chrono_literals;

Fate Upstream::fate(unsigned trouble_percent) {
    Fate fate;
    fate.effect = Nanos(random_.between(100'000, 40'000'000));
    fate.reply = fate.effect + Nanos(random_.between(100'000, 40'000'000));
    if (!random_.chance(trouble_percent)) {
        return fate;
    }
    switch (random_.below(7)) {
        case 0:
            fate.refuses_with = random_.chance(50) ? 409 : 400;
            break;
        case 1:
            fate.refuses_with = random_.chance(50) ? 500 : 503;
            break;
        case 2:  // late: it acts when the gateway has long given up
            fate.end = Fate::End::never;
            fate.effect = std::chrono::seconds(random_.between(11, 40));
            break;
        case 3:
            fate.end = Fate::End::never;
            fate.acts = random_.chance(50);
            break;
        case 4:
        case 5:
            fate.end = Fate::End::broken;
            fate.acts = random_.chance(60);
            break;
        default:
            fate.end = Fate::End::unreachable;
            fate.acts = false;
    }
    return fate;
}

Upstream::Done Upstream::act(const UpstreamRequest& request) {
    if (request.method == "DELETE") {
        const std::string id = request.path.substr(request.path.rfind('/') + 1);
        return calendars_.erase(id) != 0 ? Done{204, ""} : Done{404, R"({"error":"gone"})"};
    }
    if (dedupes_ && !request.key.empty()) {
        const auto known = body_of_key_.find(request.key);
        if (known != body_of_key_.end()) {
            return {201, known->second};
        }
    }
    const bool calendar = request.path == "/v1/calendars";
    const std::string id = cat(calendar ? "cal_" : "bkg_", std::to_string(next_++));
    std::string body = cat(R"({"id":")", id, R"(","asked":)", request.body, "}");
    if (calendar) {
        calendars_.insert(id);
    }
    if (!request.key.empty()) {
        body_of_key_.emplace(request.key, body);
    }
    effects_.push_back({request.place, request.key, id});
    return {201, body};
}

Upstream::Done Upstream::probe(const std::string& key, bool still_to_come) {
    if (still_to_come || random_.chance(15)) {
        return {503, ""};
    }
    const auto known = body_of_key_.find(key);
    return known == body_of_key_.end() ? Done{404, ""} : Done{200, known->second};
}

std::string Upstream::some_calendar() {
    if (calendars_.empty() || random_.chance(15)) {
        return "cal_0";
    }
    return *std::next(calendars_.begin(), static_cast<long>(random_.below(calendars_.size())));
}

}  // namespace ration::sim
