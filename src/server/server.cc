// Composition root: everything is made here, in the order in which it depends on one another, and
// ends in the reverse of it. The order of the members is the lifetime rule.
#include "server/server.h"

#include <sodium.h>
#include "server/admin/block_admin.h"
#include "server/admin/token_admin.h"
#include "server/process/block_keeper.h"
#include "server/process/token_uses.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/sync_point.h"
#include "base/text.h"
#include "counters/redis/redis_counters.h"
#include "ledger/runner.h"
#include "server/admin/admin_api.h"
#include "server/admin/admin_server.h"
#include "server/admin/ledger_admin.h"
#include "server/config/address_text.h"
#include "server/process/ledger_watch.h"
#include "server/process/port_check.h"
#include "server/process/store_watch.h"
#include "server/process/ticker.h"

namespace ration {

namespace {

// A full pass over the counters takes this many ticks.
constexpr std::uint64_t ticks_per_sweep = 64;
constexpr std::uint64_t least_sweep = 1024;

// Metrics and access log both hear of every request.
class Observers final : public RequestObserver {
public:
    Observers(Metrics& metrics, AccessLog& access_log)
        : metrics_(metrics), access_log_(access_log) {}
    void on_request(const RequestRecord& record) override {
        metrics_.on_request(record);
        access_log_.on_request(record);
    }

private:
    Metrics& metrics_;
    AccessLog& access_log_;
};

class ServerImpl final : public Server, private AdminBackend {
public:
    ServerImpl(const ServeConfig& config, const ServerParts& parts)
        : config_(config),
          parts_(parts),
          store_watch_(parts.log),
          ledger_watch_(parts.log),
          api_(*this) {}

    ~ServerImpl() override;
    [[nodiscard]] absl::Status open();

    [[nodiscard]] std::uint16_t gateway_port(std::size_t listener) const override {
        return gateway_->port(listener);
    }
    [[nodiscard]] std::uint16_t admin_port() const override {
        return admin_ == nullptr ? std::uint16_t{0} : admin_->port();
    }
    ReloadResult reload(ReloadCause cause) override { return reloader_->reload(cause); }
    void reopen_logs() override { access_log_->reopen(); }
    bool drain() override;

private:
    [[nodiscard]] absl::Status open_counters();
    [[nodiscard]] absl::Status open_redis();
    [[nodiscard]] absl::Status at(Position place, const absl::Status& status) const;
    [[nodiscard]] absl::Status check_ports() const;
    [[nodiscard]] absl::Status open_ledger();
    [[nodiscard]] absl::Status open_rules();
    [[nodiscard]] absl::Status open_blocks();
    [[nodiscard]] absl::Status open_tokens();
    void add_admin_sections();
    [[nodiscard]] absl::Status open_listeners();
    void say_ready();
    void watch_for_loss();
    void tick();

    // What the admin listener asks for.
    [[nodiscard]] std::string token() const override {
        return reloader_->in_force().config.admin.token;
    }
    [[nodiscard]] bool counters_answer() override;
    [[nodiscard]] bool look_at_store();
    [[nodiscard]] bool ask_store();
    [[nodiscard]] std::string store_trouble() const;
    [[nodiscard]] bool count_keys();
    [[nodiscard]] CounterStats counter_stats() const;
    [[nodiscard]] ProcessFacts facts() const override;
    [[nodiscard]] LedgerTotals ledger_totals() const;
    [[nodiscard]] InForce in_force() const override { return reloader_->in_force(); }
    ReloadResult reload() override { return reload(ReloadCause::admin); }

    const ServeConfig config_;
    const ServerParts parts_;
    const Wall started_ = parts_.clock.now().wall;
    std::atomic<bool> draining_{false};
    Metrics metrics_;
    std::mutex store_watch_mutex_;  // held from the question until its answer is noted
    StoreWatch store_watch_;
    LedgerMeter ledger_meter_;
    LedgerWatch ledger_watch_;
    std::unique_ptr<Counters> own_counters_;
    std::shared_ptr<RedisStore> redis_;
    std::unique_ptr<RedisCounters> redis_counters_;
    Counters* counters_ = nullptr;
    mutable std::mutex counter_stats_mutex_;
    CounterStats counter_stats_;  // of Redis, as of the last tick
    Counters* local_ = nullptr;   // stand in while Redis is out of reach
    std::string marker_;          // of what Redis held at the last look; empty: not known
    std::unique_ptr<Ledger> own_ledger_;
    Ledger* ledger_ = nullptr;                     // null: there is none
    std::unique_ptr<LedgerRunner> ledger_runner_;  // ends after the gateway's last question
    std::unique_ptr<BlockKeeper> block_keeper_;
    TokenTable tokens_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<BlockBook> blocks_;
    std::unique_ptr<AccessLog> access_log_;
    std::unique_ptr<Observers> observers_;
    std::unique_ptr<Reloader> reloader_;
    std::unique_ptr<Gateway> gateway_;
    AdminApi api_;
    std::unique_ptr<LedgerAdmin> ledger_admin_;
    std::unique_ptr<TokenAdmin> token_admin_;
    std::unique_ptr<BlockAdmin> block_admin_;
    std::unique_ptr<AdminServer> admin_;
    std::unique_ptr<Ticker> ticker_;
    std::unique_ptr<Ticker> recovery_ticker_;  // asks more often while the counters are down
};

ServerImpl::~ServerImpl() {
    recovery_ticker_.reset();
    ticker_.reset();
    admin_.reset();
    gateway_.reset();
    if (ledger_runner_ != nullptr) {
        write_down_uses(tokens_, *ledger_runner_);
    }
}

absl::Status ServerImpl::open() {
    if (absl::Status status = check_ports(); !status.ok()) {
        return status;
    }
    for (const auto step :
         {&ServerImpl::open_counters, &ServerImpl::open_ledger, &ServerImpl::open_rules,
          &ServerImpl::open_blocks, &ServerImpl::open_tokens, &ServerImpl::open_listeners}) {
        if (auto status = (this->*step)(); !status.ok()) {
            return status;
        }
    }
    ticker_ = std::make_unique<Ticker>(parts_.tick, [this] { tick(); });
    recovery_ticker_ = std::make_unique<Ticker>(parts_.recheck, [this] {
        if (store_watch_.down()) {
            static_cast<void>(counters_answer());
        }
    });
    say_ready();
    return absl::OkStatus();
}

// What is wrong with a setting, at its place in serve.yaml.
absl::Status ServerImpl::at(Position place, const absl::Status& status) const {
    return status.ok() || config_.file.empty()
               ? status
               : absl::Status(status.code(),
                              Problem{config_.file, place, std::string(status.message())}.text());
}

absl::Status ServerImpl::open_counters() {
    counters_ = parts_.counters;
    if (counters_ == nullptr) {
        auto opened = open_memory_counters({.max_bytes = config_.counters_bytes});
        if (!opened.ok()) {
            return opened.status();
        }
        own_counters_ = *std::move(opened);
        counters_ = own_counters_.get();
    }
    return config_.redis.has_value() ? open_redis() : absl::OkStatus();
}

// The counters in memory stay, for what is counted `local` while Redis is out of reach.
absl::Status ServerImpl::open_redis() {
    auto store = RedisStore::open(*config_.redis);
    if (!store.ok()) {
        return at(config_.places.redis,
                  absl::Status(store.status().code(),
                               cat("counters: redis: ", std::string(store.status().message()))));
    }
    redis_ = *std::move(store);
    auto opened = RedisCounters::open(redis_);
    if (!opened.ok()) {
        return opened.status();
    }
    redis_counters_ = *std::move(opened);
    local_ = std::exchange(counters_, redis_counters_.get());
    return absl::OkStatus();
}

absl::Status ServerImpl::open_ledger() {
    ledger_ = parts_.ledger;
    if (ledger_ == nullptr && !config_.ledger.empty()) {
        auto opened =
            open_sqlite_ledger({.path = config_.ledger, .sync_point = sync_point_hook.load()});
        if (!opened.ok()) {
            return config_.ledger_given ? opened.status()
                                        : at(config_.places.ledger, opened.status());
        }
        own_ledger_ = *std::move(opened);
        ledger_ = own_ledger_.get();
    }
    if (ledger_ != nullptr) {
        LedgerRunnerOptions options;
        options.observer = &ledger_meter_;
        ledger_runner_ = std::make_unique<LedgerRunner>(*ledger_, parts_.clock, options);
    }
    return absl::OkStatus();
}

absl::Status ServerImpl::open_rules() {
    Problems problems;
    const auto rules = load_rule_files({.policy = config_.policy,
                                        .directory = config_.directory,
                                        .ledger = ledger_ != nullptr,
                                        .redis = config_.redis.has_value()},
                                       parts_.environment, problems);
    for (const Problem& warning : problems.warnings()) {
        parts_.log.warning(warning.text());
    }
    if (!rules.has_value()) {
        return problems.status();
    }
    engine_ = std::make_unique<Engine>(
        *counters_, Snapshot::prepare(rules->policy, rules->directory, parts_.clock.now().mono),
        local_, config_.replicas);
    auto access_log = AccessLog::open(config_.access_log, parts_.log, {});
    if (!access_log.ok()) {
        return at(config_.places.access_log, access_log.status());
    }
    access_log_ = *std::move(access_log);
    observers_ = std::make_unique<Observers>(metrics_, *access_log_);
    reloader_ = std::make_unique<Reloader>(ReloadParts{.engine = *engine_,
                                                       .metrics = metrics_,
                                                       .access_log = *access_log_,
                                                       .clock = parts_.clock,
                                                       .log = parts_.log,
                                                       .environment = parts_.environment},
                                           config_, *rules);
    return absl::OkStatus();
}

// Blocks that were in force when the process before this one ended are in force again.
absl::Status ServerImpl::open_blocks() {
    if (ledger_runner_ != nullptr) {
        block_keeper_ = std::make_unique<BlockKeeper>(*ledger_runner_);
    }
    blocks_ = std::make_unique<BlockBook>(*engine_, block_keeper_.get());
    engine_->watch_blocks(blocks_.get());
    if (redis_counters_ != nullptr) {
        marker_ = redis_counters_->marker().value_or("");
    }
    if (ledger_ == nullptr) {
        return absl::OkStatus();
    }
    const auto kept = ledger_->blocks();
    if (!kept.ok()) {
        return kept.status();
    }
    if (!blocks_->restore(*kept, parts_.clock.now())) {
        marker_.clear();
    }
    return absl::OkStatus();
}

// A Redis that lost what it held has lost the blocks too, though the ledger keeps them: they are
// put back. So they are when it is reached for the first time.
void ServerImpl::watch_for_loss() {
    const std::optional<std::string> found = redis_counters_->marker();
    if (!found || *found == marker_) {
        return;
    }
    const auto kept = ledger_ != nullptr ? ledger_->blocks() : blocks_->known();
    const auto put = kept.ok() ? blocks_->restore(*kept, parts_.clock.now()) : std::nullopt;
    if (!put) {
        return;  // again at the next tick
    }
    if (!std::exchange(marker_, *found).empty()) {
        parts_.log.info(cat("the counters have lost what they held; blocks put back: ", *put));
    }
}

absl::Status ServerImpl::open_tokens() {
    engine_->use_issued(&tokens_);
    if (ledger_ == nullptr) {
        return absl::OkStatus();
    }
    auto kept = ledger_->tokens();
    if (!kept.ok()) {
        return kept.status();
    }
    if (!tokens_.load(*std::move(kept))) {
        return absl::ResourceExhaustedError(
            cat(config_.ledger, ": more than ", max_issued_tokens, " issued tokens"));
    }
    return absl::OkStatus();
}

void ServerImpl::add_admin_sections() {
    token_admin_ = std::make_unique<TokenAdmin>(TokenAdminParts{
        .table = tokens_,
        .runner = ledger_runner_.get(),
        .clock = parts_.clock,
        .random = [](std::span<std::uint8_t> out) { randombytes_buf(out.data(), out.size()); },
        .rules = [this] { return engine_->rules(); }});
    block_admin_ = std::make_unique<BlockAdmin>(*blocks_, parts_.clock);
    api_.add(*token_admin_);
    api_.add(*block_admin_);
}

// Before anything is opened: whoever started it twice is told so by the port.
absl::Status ServerImpl::check_ports() const {
    for (const ListenerOptions& listener : config_.gateway.listeners) {
        if (auto status = check_port_free(listener.address, listener.port); !status.ok()) {
            return at(listener.at, status);
        }
    }
    if (config_.admin.enabled) {
        if (auto status = check_port_free(config_.admin.address, config_.admin.port);
            !status.ok()) {
            return at(config_.places.admin, status);
        }
    }
    return absl::OkStatus();
}

absl::Status ServerImpl::open_listeners() {
    GatewayOptions options = config_.gateway;
    options.ledger = ledger_runner_.get();
    options.redis = redis_;
    auto gateway = Gateway::start(options, *engine_, parts_.clock, *observers_);
    if (!gateway.ok()) {
        return gateway.status();
    }
    gateway_ = *std::move(gateway);
    reloader_->serve(*gateway_);
    if (!config_.admin.enabled) {
        return absl::OkStatus();
    }
    ledger_admin_ = std::make_unique<LedgerAdmin>(
        LedgerAdminParts{.ledger = ledger_,
                         .runner = ledger_runner_.get(),
                         .rules = [this] { return engine_->rules(); },
                         .totals = [this] { return ledger_totals(); }});
    api_.add(*ledger_admin_);
    add_admin_sections();
    auto admin = AdminServer::start(
        {.address = config_.admin.address, .port = config_.admin.port}, parts_.clock,
        [this](const AdminRequest& request) { return api_.handle(request); });
    if (!admin.ok()) {
        return at(config_.places.admin, admin.status());
    }
    admin_ = *std::move(admin);
    return absl::OkStatus();
}

void ServerImpl::say_ready() {
    const UpstreamOptions& upstream = config_.gateway.upstream;
    const std::string to =
        cat(upstream.tls ? "https://" : "http://", endpoint_text(upstream.host, upstream.port));
    for (std::size_t i = 0; i < config_.gateway.listeners.size(); ++i) {
        const ListenerOptions& listener = config_.gateway.listeners[i];
        const std::string from = listener.address.starts_with("unix:")
                                     ? listener.address
                                     : cat(listener.tls.has_value() ? "https://" : "http://",
                                           endpoint_text(listener.address, gateway_->port(i)));
        parts_.log.info(cat("gateway ", from, " → ", to));
    }
    if (admin_ != nullptr) {
        parts_.log.info(cat("admin http://", endpoint_text(config_.admin.address, admin_->port())));
    }
}

void ServerImpl::tick() {
    Counters& swept = local_ != nullptr ? *local_ : *counters_;
    const std::uint64_t budget = std::max(swept.stats().capacity / ticks_per_sweep, least_sweep);
    swept.sweep(parts_.clock.now(), budget);
    if (look_at_store() && redis_counters_ != nullptr) {
        watch_for_loss();
    }
    ledger_watch_.look(ledger_meter_.totals());
    if (ledger_runner_ != nullptr) {
        write_down_uses(tokens_, *ledger_runner_);
    }
    reloader_->poll();
}

// False: nobody answered.
bool ServerImpl::look_at_store() {
    const std::lock_guard lock(store_watch_mutex_);
    const bool reached = count_keys();
    const MetricsTotals totals = metrics_.totals();
    const bool asked = store_watch_.in_doubt(totals.store_failures);
    store_watch_.look({.answers = reached && (!asked || ask_store()),
                       .judged = totals.store_answers,
                       .failed = totals.store_failures,
                       .trouble = store_trouble()});
    return reached;
}

// What /readyz finds is noted, so that the metric and the log say the same. An outage ends at the
// second answer in a row, which is asked for at once.
bool ServerImpl::counters_answer() {
    const std::lock_guard lock(store_watch_mutex_);
    const bool was_down = store_watch_.down();
    bool answers = ask_store();
    bool up = store_watch_.note(answers, store_trouble());
    if (was_down && answers && !up) {
        answers = ask_store();
        up = store_watch_.note(answers, store_trouble());
    }
    return up;
}

std::string ServerImpl::store_trouble() const {
    return redis_ != nullptr ? redis_->monitor().stats().trouble : std::string();
}

// False: nobody answered.
bool ServerImpl::count_keys() {
    if (redis_counters_ == nullptr) {
        return true;
    }
    const std::optional<std::uint64_t> keys = redis_counters_->count_keys();
    const std::lock_guard lock(counter_stats_mutex_);
    counter_stats_ = {.keys = keys.value_or(0)};
    return keys.has_value();
}

LedgerTotals ServerImpl::ledger_totals() const {
    LedgerTotals totals = ledger_meter_.totals();
    totals.queued = ledger_runner_->queued();
    totals.holding = ledger_runner_->held();
    return totals;
}

// Of a store of its own it is asked whether something can be written: one that is full, or only a
// replica, answers and counts nothing.
bool ServerImpl::ask_store() {
    static const auto one = LimitRef::of(token_bucket(1000, std::chrono::seconds(1)));
    constexpr std::string_view key = "ration readiness";
    const Charge look{.key = key,
                      .rule_bytes = static_cast<std::uint16_t>(key.size()),
                      .op = redis_ != nullptr ? ChargeOp::force : ChargeOp::observe,
                      .limit = *one};
    const Outcome outcome =
        counters_->apply_one({.charges = std::span(&look, 1)}, parts_.clock.now());
    return outcome.status == absl::StatusCode::kOk;
}

// Whoever scrapes does not wait for a Redis out of reach.
CounterStats ServerImpl::counter_stats() const {
    if (redis_ == nullptr) {
        return counters_->stats();
    }
    const std::lock_guard lock(counter_stats_mutex_);
    return counter_stats_;
}

ProcessFacts ServerImpl::facts() const {
    const AccessLogStats lines = access_log_->stats();
    std::optional<RedisStats> redis;
    if (redis_ != nullptr) {
        redis = redis_->monitor().stats();
    }
    return {.totals = metrics_.totals(),
            .counters = counter_stats(),
            .redis = std::move(redis),
            .gateway = gateway_->stats(),
            .ledger = ledger_ == nullptr ? std::nullopt : std::optional(ledger_totals()),
            .reload = reloader_->in_force().facts,
            .log_lines_written = lines.written,
            .log_lines_dropped = lines.dropped,
            .draining = draining_.load(std::memory_order_relaxed),
            .counters_up = !store_watch_.down(),
            .started = started_,
            .version = parts_.version};
}

bool ServerImpl::drain() {
    draining_.store(true, std::memory_order_relaxed);
    return gateway_->drain(reloader_->in_force().config.drain);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::start(const ServeConfig& config,
                                                      const ServerParts& parts) {
    auto server = std::make_unique<ServerImpl>(config, parts);
    if (auto status = server->open(); !status.ok()) {
        return status;
    }
    return server;
}

}  // namespace ration
