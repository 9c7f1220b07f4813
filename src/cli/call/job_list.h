// A list of jobs for `ration call --each`, and the file that says which of them are over.
//
// A list has one job a line: a URL, or a JSON object with url, method, headers, body, id and
// idempotency_key, each of which stands over what the command line says. Blank lines and lines that
// begin with # are no jobs. A job is known again by its line's number and text.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ration/client.h"

namespace ration {

inline constexpr std::size_t max_jobs = 1'000'000;
inline constexpr std::size_t max_job_bytes = 1U << 20U;       // of a line
inline constexpr std::size_t max_result_body_bytes = 65'536;  // kept of an answer's body

struct Job {
    std::uint64_t line = 0;  // in the list, from 1
    std::string text;
};

// Errors say `file:line: reason`.
[[nodiscard]] absl::StatusOr<std::vector<Job>> read_jobs(const std::string& path);

// The job's request over `base`. InvalidArgument: what is wrong with the line.
[[nodiscard]] absl::StatusOr<ClientRequest> job_request(const Job& job, const ClientRequest& base);

// `unknown`: it may have been carried out, and has no key under which it may be asked again.
enum class JobState : std::uint8_t { done, failed, unknown, open };

// Where results go, one JSON line each: to a file that remembers what is over, or to stdout.
class ResultLog {
public:
    ~ResultLog();
    // Reads what the file already says, and holds it until the end. FailedPrecondition: it is not
    // of such a run, or another run holds it.
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<ResultLog>> open(const std::string& path);

    // How an earlier run ended the job; nullopt: it is to be done.
    [[nodiscard]] std::optional<JobState> before(const Job& job) const;
    // The key of a job whose keys are made: the same in each run with this file, and another once
    // what is asked for has changed.
    [[nodiscard]] std::string key_of(const Job& job, const ClientRequest& request) const;
    // Thread rule: any thread. False when it could not be written.
    bool write(const Job& job, JobState state, const ClientResult& result);

private:
    ResultLog() = default;
    [[nodiscard]] absl::Status hold(const std::string& path);
    [[nodiscard]] absl::Status read(const std::string& path);

    int held_ = -1;
    std::string run_;
    struct Over {
        std::string hash;  // of the job's text
        JobState state;
    };
    std::map<std::uint64_t, Over> over_;  // by line
    std::mutex mutex_;
    std::ofstream file_;
    bool to_file_ = false;
    bool cut_ = false;  // its last line has no end
};

}  // namespace ration
