#include "sim/simulation.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "engine/harness.h"
#include "sim/gateway.h"

namespace ration::sim {
namespace {

using namespace std::chrono_literals;

constexpr Wall morning{std::chrono::sys_days{std::chrono::year{2026} / 3 / 27} + 9h};
constexpr std::string_view zone_name = "America/New_York";
constexpr std::string_view anchor_text = "2026-02-28T09:30:00Z";  // a period ends in the first days

std::string policy_text(std::uint64_t per_day) {
    return cat(R"(policy: simulated
routes:
  book: POST /v1/bookings
  strict: POST /v1/strict
  probed: POST /v1/probed
  add: POST /v1/calendars
  drop: DELETE /v1/calendars/{id}
identify:
  address: {header: X-Forwarded-For, trusted: [127.0.0.0/8]}
  credentials: {publishable: {bearer: pk_*}}
  accepts: {else: [publishable]}
limits:
  - name: caller budget
    per: [address]
    token_bucket: 40/min
    headers: ratelimit_remaining_on_refusal
    refuse: rate_limited
ceilings:
  - {name: daily bookings, routes: [book, strict, probed], per: [workspace, address], at_most: )",
               std::to_string(per_day), R"( per day in workspace.timezone, refuse: daily}
  - {name: booking volume, routes: [book, strict, probed], per: [account], at_most: account.booking_volume per billing period, refuse: volume}
quotas:
  - {name: calendars, per: [account], at_most: account.plan.calendars, up: {add: body.id}, down: {drop: path.id}, refuse: plan_quota}
idempotency:
  - {routes: [book], scope: [workspace], keep: 24h, max_answer: 200}
  - {routes: [strict], scope: [workspace], keep: 24h, doubt: refuse}
  - {routes: [probed], scope: [workspace], keep: 24h, doubt: probe, probe: {path: "/v1/probed/{key}", status: 201}}
refusals:
  rate_limited: {status: 429, headers: {Retry-After: "{retry_after}"}, body: {error: {type: rate_limited}}}
  daily: {status: 429, headers: {Retry-After: "{retry_after}"}, body: {error: {type: daily_booking_limit}}}
  volume: {status: 429, headers: {}, body: {error: {type: booking_volume_refused}}}
error_shape: {error: {type: "{type}", message: "{message}"}}
)");
}

std::string directory_text(std::uint64_t volume) {
    return cat(
        "entities:\n  plan: {p: {calendars: 3}}\n  account: {acc: {plan: p, billing_anchor: \"",
        anchor_text, "\", booking_volume: ", std::to_string(volume),
        "}}\n  workspace:\n    ws_1: {account: acc, timezone: ", zone_name,
        "}\n    ws_2: {account: acc, timezone: ", zone_name,
        "}\ncredentials:\n  pk_1: {kind: publishable, workspace: ws_1}\n"
        "  pk_2: {kind: publishable, workspace: ws_2}\n");
}

// One folder for the claim file of every life of this process; the ledger itself is on the
// simulated disk. In memory where the system has such a place: each start writes the claim.
class ClaimFolder {
public:
    ClaimFolder() {
        const std::filesystem::path memory = "/dev/shm";
        const std::filesystem::path base =
            ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
        std::string pattern = (base / "ration-sim-XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    ~ClaimFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ClaimFolder(const ClaimFolder&) = delete;
    ClaimFolder& operator=(const ClaimFolder&) = delete;
    [[nodiscard]] std::string ledger() const { return path_ + "/ledger.db"; }

private:
    std::string path_;
};

const std::string& ledger_path() {
    static const ClaimFolder folder;
    static const std::string path = folder.ledger();
    return path;
}

class Simulation {
public:
    Simulation(std::uint64_t seed, const SimulationOptions& options);
    Outcome run();

private:
    void client_acts();
    void ask(const Asked& asked);
    Asked invent();
    void trouble();
    void operator_acts();
    void start();
    void crash(bool power);
    void recover_if_dead();
    void until(Mono end);
    void check_end();
    void check_levels();

    Random random_;
    Outcome outcome_;
    Journal journal_;
    Scheduler scheduler_{Now{Mono(1h), morning}};
    Disk disk_{random_};
    Upstream upstream_;
    std::shared_ptr<const Policy> policy_;
    std::shared_ptr<const Directory> directory_;
    Judge judge_;
    CheckedLedger ledger_;
    SimulationOptions options_;
    std::optional<Gateway> gateway_;
    std::vector<Asked> asked_;  // what may be tried again
    std::uint64_t next_key_ = 1;
    bool troubled_ = true;
};

Judge::Rules judged_rules(std::uint64_t per_day, std::uint64_t volume) {
    Judge::Rules rules{per_day, volume, {}, *parse_anchor(anchor_text)};
    static_cast<void>(absl::LoadTimeZone(std::string(zone_name), &rules.zone));
    return rules;
}

std::uint64_t hash(std::uint64_t before, std::string_view text) {
    for (const char c : text) {
        before = (before ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return before;
}

// The texts are few, so they are read once each.
std::shared_ptr<const Policy> policy_of(std::uint64_t per_day) {
    static std::map<std::uint64_t, std::shared_ptr<const Policy>> known;
    auto& policy = known[per_day];
    return policy != nullptr ? policy : policy = testing::read_policy(policy_text(per_day));
}

std::shared_ptr<const Directory> directory_of(std::uint64_t volume) {
    static std::map<std::uint64_t, std::shared_ptr<const Directory>> known;
    auto& directory = known[volume];
    return directory != nullptr ? directory
                                : directory = testing::read_directory(directory_text(volume));
}

Simulation::Simulation(std::uint64_t seed, const SimulationOptions& options)
    : random_(seed),
      upstream_(random_, seed % 2 == 0),
      policy_(policy_of(1 + seed % 5)),
      directory_(directory_of(4 + seed % 29)),
      judge_(journal_, upstream_, judged_rules(1 + seed % 5, 4 + seed % 29)),
      ledger_(disk_, journal_, {ledger_path(), options.compare, options.wrap}),
      options_(options) {
    disk_.lies_about_sync = options.lying_disk;
}

// ---- the process ----

void Simulation::start() {
    if (gateway_ || !journal_.good()) {
        return;
    }
    if (disk_.has_holes()) {
        // A disk that has lost a sync, a process killed before it could write again, and the power
        // gone before the next one has: three faults in a row are one too many for any log.
        disk_.fail_after(0, DiskFault::none);
    }
    if (!ledger_.is_open() && !ledger_.open()) {
        if (disk_.dead()) {
            disk_.restart();
        }
        return scheduler_.after(200ms, [this] { start(); });
    }
    disk_.fill_holes();
    gateway_.emplace(Gateway::Parts{scheduler_, ledger_, upstream_, judge_, journal_, random_},
                     GatewayOptions{policy_, directory_, troubled_ ? 25U : 0U, troubled_ ? 2U : 0U,
                                    options_.answers_first});
    journal_.note("started");
}

void Simulation::crash(bool power) {
    journal_.note(power ? "the power goes" : "the process is killed");
    ++outcome_.crashes;
    // SQLite's way out must not do what a killed process cannot: the disk is off meanwhile.
    const bool was_dead = disk_.dead();
    disk_.cut_power();
    gateway_.reset();
    ledger_.close();
    disk_.restart(power || was_dead);
    scheduler_.after(Nanos(random_.between(1, 3'000)) * 1'000'000, [this] { start(); });
}

void Simulation::recover_if_dead() {
    if (disk_.dead() && gateway_) {
        ++outcome_.torn_commits;
        crash(true);
    }
}

void Simulation::trouble() {
    if (!troubled_) {
        return;
    }
    scheduler_.after(Nanos(random_.between(50, 20'000)) * 1'000'000, [this] { trouble(); });
    switch (random_.below(8)) {
        case 0:
            return gateway_ ? crash(false) : void();
        case 1:
            return gateway_ ? crash(true) : void();
        case 2:
        case 3:
        case 4:
            return disk_.fail_after(random_.between(1, 25), DiskFault::power_cut);
        default:
            disk_.fail_after(random_.between(1, 25), static_cast<DiskFault>(random_.between(1, 4)));
    }
}

// A well-informed operator: settles what can no longer change, as it was.
void Simulation::operator_acts() {
    if (!troubled_) {
        return;
    }
    scheduler_.after(Nanos(random_.between(1, 60)) * 1'000'000'000, [this] { operator_acts(); });
    if (!gateway_ || disk_.dead()) {
        return;
    }
    for (const DoubtfulAttempt& doubt : ledger_.doubtful(0, 3)) {
        const Place* place = judge_.place_of(doubt.attempt);
        if (place == nullptr || place->started != doubt.started || place->pending > 0 ||
            place->calendar || !random_.chance(30)) {
            continue;
        }
        ++outcome_.settled_by_hand;
        gateway_->settle_doubt(doubt.attempt, place->effect);
        return;
    }
}

// ---- clients ----

Asked Simulation::invent() {
    Asked asked;
    const std::uint64_t who = random_.below(2) + 1;
    asked.credential = cat("pk_", std::to_string(who));
    asked.workspace = cat("ws_", std::to_string(who));
    asked.address = cat("203.0.113.", std::to_string(random_.between(1, 3)));
    const std::uint64_t number = next_key_++;
    asked.body = cat(R"({"slot":)", std::to_string(number), "}");
    if (random_.chance(5)) {
        asked.body = cat(R"({"slot":)", std::to_string(number), R"(,"note":")",
                         std::string(250, 'x'), R"("})");  // its answer will be too large to keep
    }
    switch (random_.below(10)) {
        case 0:
            asked.path = "/v1/calendars";
            return asked;
        case 1:
            asked.method = "DELETE";
            asked.path = "/v1/calendars/" + upstream_.some_calendar();
            return asked;
        case 2:
            return asked;  // no key
        case 3:
        case 4:
            asked.path = "/v1/strict";
            break;
        case 5:
        case 6:
            asked.path = "/v1/probed";
            break;
        default:
            break;
    }
    asked.key = cat("k", std::to_string(number));
    return asked;
}

void Simulation::client_acts() {
    if (!troubled_) {
        return;
    }
    const bool night = random_.chance(3);
    scheduler_.after(night ? Nanos(random_.between(60, 30'000)) * 1'000'000'000
                           : Nanos(random_.between(1, 1'500)) * 1'000'000,
                     [this] { client_acts(); });
    if (asked_.empty() || random_.chance(45)) {
        asked_.push_back(invent());
    }
    const std::size_t recent = std::min<std::size_t>(asked_.size(), random_.chance(80) ? 4 : 60);
    Asked asked = asked_[asked_.size() - 1 - random_.below(recent)];
    if (!asked.key.empty() && random_.chance(4)) {
        asked.body += " ,";  // another request under the same key
    }
    ask(asked);
    if (random_.chance(15)) {
        ask(asked);  // at once, twice
    }
}

void Simulation::ask(const Asked& asked) {
    if (!gateway_ || disk_.dead()) {
        return;  // connection refused
    }
    ++outcome_.requests;
    gateway_->request(asked, [this, asked](const Heard& heard) {
        outcome_.fingerprint = hash(outcome_.fingerprint, heard.body);
        outcome_.second_tries = judge_.second_tries();
        outcome_.replays += heard.field("Idempotent-Replayed") != nullptr ? 1U : 0U;
        outcome_.ceilings += heard.body.find("daily_booking_limit") != std::string::npos ? 1U : 0U;
        outcome_.contended += heard.body.find("contention") != std::string::npos ? 1U : 0U;
        journal_.note(cat(asked.method, " ", asked.path, " ", asked.identity(), " ", asked.address,
                          " -> ", std::to_string(heard.status), " ", heard.body.substr(0, 60)));
    });
}

// ---- the run ----

void Simulation::until(Mono end) {
    while (journal_.good() && scheduler_.step(end)) {
        journal_.at(scheduler_.now());
        recover_if_dead();
    }
}

Outcome Simulation::run() {
    start();
    client_acts();
    trouble();
    operator_acts();
    for (int request = 0; request < 40 && journal_.good(); ++request) {
        until(scheduler_.now().mono + 3s);
    }
    troubled_ = false;
    disk_.fail_after(0, DiskFault::none);
    until(scheduler_.now().mono + 2min);
    if (journal_.good()) {
        check_end();
    }
    gateway_.reset();
    ledger_.close();
    if (journal_.good() && options_.compare) {
        // The closed file, by the same check that operators run.
        const absl::Status sound = check_sqlite_ledger(ledger_path());
        if (!sound.ok()) {
            journal_.violated(std::string(sound.message()));
        }
    }
    outcome_.effects = upstream_.effects().size();
    outcome_.violation = journal_.violation();
    outcome_.text = journal_.text();
    return outcome_;
}

void Simulation::check_end() {
    if (!gateway_ || gateway_->in_flight() != 0) {
        return journal_.violated("requests are still in flight when all is over");
    }
    if (const std::uint64_t running = ledger_.stats().running; running != 0) {
        return journal_.violated(cat(std::to_string(running), " attempts run for ever"));
    }
    check_levels();
}

// What is counted is what was done, and at most what was in doubt beside it.
void Simulation::check_levels() {
    const Wall now = scheduler_.now().wall;
    for (const WatchedKeys::Window& window : ledger_.keys().windows) {
        const bool swept = window.window.start.value_or(Wall{}) < now - writes_kept &&
                           window.kind == CeilingKind::local_day;
        if (swept || window.window.end < now - writes_kept) {
            continue;
        }
        const std::uint64_t level = ledger_.level(window.use()).value_or(99'999);
        const Judge::Bounds bounds = judge_.bounds(window.key, window.window);
        if (level < bounds.least || level > bounds.most) {
            return journal_.violated(
                cat("at the end ", window.key, " counts ", std::to_string(level), ", done were ",
                    std::to_string(bounds.least), " to ", std::to_string(bounds.most)));
        }
    }
    if (judge_.quota_drift()) {
        return;
    }
    for (const std::string& key : ledger_.keys().quotas) {
        const auto members = ledger_.members(key, {}, 1'000).value_or(std::vector<std::string>{});
        if (!std::equal(members.begin(), members.end(), upstream_.calendars().begin(),
                        upstream_.calendars().end())) {
            journal_.violated("the quota's objects are not those that exist");
        }
    }
}

}  // namespace

Outcome& Outcome::operator+=(const Outcome& other) {
    requests += other.requests;
    effects += other.effects;
    replays += other.replays;
    second_tries += other.second_tries;
    ceilings += other.ceilings;
    contended += other.contended;
    crashes += other.crashes;
    torn_commits += other.torn_commits;
    failed_batches += other.failed_batches;
    settled_by_hand += other.settled_by_hand;
    return *this;
}

Outcome simulate(std::uint64_t seed, const SimulationOptions& options) {
    return Simulation(seed, options).run();
}

}  // namespace ration::sim
