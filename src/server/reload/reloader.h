// Puts changed files into force while requests go on: on a signal, on a file's change, on request.
//
// Everything is read and checked first; one problem anywhere and nothing changes. Then policy and
// directory are swapped as one (use so far stays used), the access log is opened again, listeners'
// certificates are read again, and what of serve.yaml can change in a running process does; the
// rest is named as needing a restart. Thread rule: any thread may call anything; reloads run one
// after another. Ownership: what `ReloadParts` refers to must outlive the reloader. Errors: in the
// result and in the log, as `file:line:column: reason`.
//
//   ration::ReloadResult result = reloader.reload(ration::ReloadCause::signal);
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "ration/time.h"
#include "server/access_log/access_log.h"
#include "server/config/serve_config.h"
#include "server/metrics/exposition.h"
#include "server/metrics/metrics.h"
#include "server/process/log.h"
#include "server/reload/file_watch.h"
#include "server/reload/rules.h"

namespace ration {

enum class ReloadCause : std::uint8_t { signal, file_change, admin };

struct ReloadResult {
    bool ok = false;
    bool changed = false;        // the rules in force are other ones now
    Problems problems;           // errors when not ok; warnings always
    std::string restart_needed;  // settings of serve.yaml that stay as they were
};

struct ReloadParts {
    Engine& engine;
    Metrics& metrics;
    AccessLog& access_log;
    const Clock& clock;
    Log& log;
    Policy::Environment environment;
};

// What is in force, for whoever shows it.
struct InForce {
    ServeConfig config;  // as last read well
    LoadedRules rules;
    Wall loaded_at{};  // when these rules came into force
    ReloadFacts facts;
};

class Reloader {
public:
    // `rules` are in force in the engine already.
    Reloader(const ReloadParts& parts, const ServeConfig& config, const LoadedRules& rules);

    // From here on a reload renews this gateway's certificates too; it must outlive the reloads.
    void serve(Gateway& gateway);

    ReloadResult reload(ReloadCause cause);
    // Looks at the files once; reloads when they have changed and come to rest. Called every second
    // or so by one thread.
    void poll();
    [[nodiscard]] InForce in_force() const;

private:
    // The texts of all files of one attempt, as digests: equal attempts need not be repeated.
    [[nodiscard]] std::string fingerprint() const;
    [[nodiscard]] ReloadResult attempt();
    void report(ReloadCause cause, const ReloadResult& result);
    [[nodiscard]] std::vector<std::string> watched() const;

    const ReloadParts parts_;
    const ServeConfig started_with_;
    std::mutex reloading_;  // held through a whole reload; guards the next three
    Gateway* gateway_ = nullptr;
    ServeConfig read_last_;  // as last read without a problem of its own: its files are watched
    std::string last_attempt_;
    mutable std::mutex mutex_;  // guards in_force_ and watch_
    InForce in_force_;
    FileWatch watch_;
};

}  // namespace ration
