// The service behind the gateway: what it did, and how it answers or does not.
//
// Its table of effects is the truth that ceilings and keys are judged against. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ration/time.h"
#include "sim/random.h"

namespace ration::sim {

struct UpstreamRequest {
    std::string method;
    std::string path;
    std::string key;  // workspace and key, empty: none
    std::string body;
    std::size_t place = 0;  // what the judge calls the reservation that it stands on
};

// How one request will go. An answer that never comes ends in the gateway's timeout.
struct Fate {
    enum class End { answered, broken, never, unreachable } end = End::answered;
    Nanos effect{};  // when the service acts, after it was sent
    Nanos reply{};   // when its answer, or the break, reaches the gateway
    bool acts = true;
    int refuses_with = 0;  // a status other than 2xx: nothing is done
};

struct Effect {
    std::size_t place = 0;
    std::string key;
    std::string id;
};

class Upstream {
public:
    // `dedupes`: a repeated key gives the first result again instead of a second effect.
    Upstream(Random& random, bool dedupes) : random_(random), dedupes_(dedupes) {}

    [[nodiscard]] Fate fate(unsigned trouble_percent);
    struct Done {
        int status = 201;
        std::string body;
    };
    // Acts; what it would answer.
    Done act(const UpstreamRequest& request);

    // Looked up by key: 200 and what was said, 404, or 503 when it cannot tell yet.
    [[nodiscard]] Done probe(const std::string& key, bool still_to_come);

    [[nodiscard]] const std::vector<Effect>& effects() const { return effects_; }
    [[nodiscard]] const std::set<std::string>& calendars() const { return calendars_; }
    [[nodiscard]] bool dedupes() const { return dedupes_; }
    [[nodiscard]] std::string some_calendar();

private:
    Random& random_;
    bool dedupes_;
    std::uint64_t next_ = 1;
    std::vector<Effect> effects_;
    std::map<std::string, std::string> body_of_key_;
    std::set<std::string> calendars_;
};

}  // namespace ration::sim
