// Reload on change must be safe to leave on in production: a half-written file, an editor that
// renames, a syntax error at 3 a.m. So a change is acted on only when the files are at rest, one
// text is tried once, and the swap happens after every check has passed.
#include "server/reload/reloader.h"

#include <utility>

#include "base/text.h"
#include "policy/yaml_source.h"

namespace ration {

namespace {

std::string_view cause_text(ReloadCause cause) {
    switch (cause) {
        case ReloadCause::signal:
            return "SIGHUP";
        case ReloadCause::file_change:
            return "file change";
        case ReloadCause::admin:
            return "admin request";
    }
    return "";
}

std::string digest_of(const std::string& path) {
    Problems unread;
    std::string text;
    return !path.empty() && read_file(path, text, unread) ? text_digest(text) : std::string("-");
}

}  // namespace

Reloader::Reloader(const ReloadParts& parts, const ServeConfig& config, const LoadedRules& rules)
    : parts_(parts),
      started_with_(config),
      read_last_(config),
      in_force_{.config = config, .rules = rules, .loaded_at = parts.clock.now().wall, .facts = {}},
      watch_(watched()) {
    in_force_.facts.last_success = in_force_.loaded_at;
    parts_.metrics.announce(rules.policy);
    last_attempt_ = fingerprint();
}

std::vector<std::string> Reloader::watched() const {
    const ServeConfig& config = read_last_;
    std::vector<std::string> paths{config.file, config.policy};
    for (const std::string* path : {&config.directory, &config.admin.token_file}) {
        if (!path->empty()) {
            paths.push_back(*path);
        }
    }
    for (const ListenerOptions& listener : started_with_.gateway.listeners) {
        if (listener.tls) {
            paths.push_back(listener.tls->certificate_file);
            paths.push_back(listener.tls->key_file);
        }
    }
    return paths;
}

std::string Reloader::fingerprint() const {
    std::string all;
    for (const std::string& path : watched()) {
        all += cat(digest_of(path), " ");
    }
    return all;
}

void Reloader::serve(Gateway& gateway) {
    const std::lock_guard one_at_a_time(reloading_);
    gateway_ = &gateway;
}

ReloadResult Reloader::reload(ReloadCause cause) {
    const std::lock_guard one_at_a_time(reloading_);
    if (const std::string now = fingerprint(); cause == ReloadCause::file_change) {
        if (now == std::exchange(last_attempt_, now)) {
            return {.ok = true, .changed = false, .problems = {}, .restart_needed = {}};
        }
    } else {
        last_attempt_ = now;
    }
    ReloadResult result = attempt();
    {
        const std::lock_guard lock(mutex_);
        ReloadFacts& facts = in_force_.facts;
        ++(result.ok ? facts.succeeded : facts.failed);
        facts.last_succeeded = result.ok;
        if (result.ok) {
            facts.last_success = parts_.clock.now().wall;
        }
        watch_.watch(watched());
    }
    report(cause, result);
    return result;
}

ReloadResult Reloader::attempt() {
    ReloadResult result;
    auto config = ServeConfig::load(started_with_.file, parts_.environment, result.problems);
    if (!config.has_value()) {
        return result;
    }
    if (started_with_.ledger_given) {
        config->ledger = started_with_.ledger;
        config->ledger_given = true;
    }
    read_last_ = *config;
    const auto rules = load_rule_files({.policy = config->policy,
                                        .directory = config->directory,
                                        .ledger = !started_with_.ledger.empty(),
                                        .redis = started_with_.redis.has_value()},
                                       parts_.environment, result.problems);
    if (!rules.has_value()) {
        return result;
    }
    if (const auto fault =
            gateway_ != nullptr ? gateway_->read_certificates() : std::optional<ListenerFault>()) {
        const auto& listeners = config->gateway.listeners;
        result.problems.error(
            config->file,
            fault->listener < listeners.size() ? listeners[fault->listener].at : Position{},
            fault->reason);
        return result;
    }
    if (const auto status = parts_.access_log.retarget(config->access_log); !status.ok()) {
        result.problems.error(config->file, config->places.access_log,
                              std::string(status.message()));
        return result;
    }
    if (gateway_ != nullptr) {
        gateway_->use_certificates();
    }
    result.ok = true;
    result.restart_needed = restart_needed(started_with_, *config);
    const Now now = parts_.clock.now();
    const std::lock_guard lock(mutex_);
    LoadedRules& old = in_force_.rules;
    result.changed = old.policy_digest != rules->policy_digest ||
                     old.directory_digest != rules->directory_digest ||
                     in_force_.config.policy != config->policy ||
                     in_force_.config.directory != config->directory;
    if (result.changed) {
        parts_.engine.swap_rules(rules->policy, rules->directory, now);
        parts_.metrics.announce(rules->policy);
        old = *rules;
        in_force_.loaded_at = now.wall;
    }
    in_force_.config = *std::move(config);
    return result;
}

void Reloader::report(ReloadCause cause, const ReloadResult& result) {
    for (const Problem& problem : result.problems.errors()) {
        parts_.log.error(problem.text());
    }
    for (const Problem& problem : result.problems.warnings()) {
        parts_.log.warning(problem.text());
    }
    if (!result.ok) {
        parts_.log.error(
            cat("reload (", cause_text(cause), ") failed; what was in force stays in force"));
        return;
    }
    parts_.log.info(cat("reload (", cause_text(cause), "): ",
                        result.changed ? "new rules are in force" : "the rules are the same"));
    if (!result.restart_needed.empty()) {
        parts_.log.warning(cat("changed in ", started_with_.file,
                               " but in force only after a restart: ", result.restart_needed));
    }
}

void Reloader::poll() {
    bool changed = false;
    {
        const std::lock_guard lock(mutex_);
        changed = watch_.changed();
    }
    if (changed) {
        static_cast<void>(reload(ReloadCause::file_change));
    }
}

InForce Reloader::in_force() const {
    const std::lock_guard lock(mutex_);
    return in_force_;
}

}  // namespace ration
