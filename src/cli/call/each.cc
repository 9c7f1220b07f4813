#include "cli/call/each.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iostream>
#include <optional>
#include <thread>

#include "base/text.h"
#include "cli/call/ending.h"
#include "cli/call/job_list.h"
#include "cli/call/shown.h"
#include "cli/call/story.h"
#include "wire/decimal.h"

namespace ration {
namespace {

JobState state_of(int code) {
    switch (code) {
        case exit_good:
            return JobState::done;
        case exit_refused:
        case exit_wrong_use:
            return JobState::failed;
        case exit_unknown:
            return JobState::unknown;
        default:
            return JobState::open;
    }
}

void raise_to(std::atomic<int>& value, int least) {
    int seen = value;
    while (least > seen && !value.compare_exchange_weak(seen, least)) {
    }
}

struct Tally {
    std::size_t all = 0;
    std::atomic<std::size_t> before = 0;
    std::array<std::atomic<std::size_t>, 4> ended = {};  // by state
    std::atomic<int> worst = exit_good;
    std::mutex mutex;
    std::optional<Wall> retry_at;  // the earliest that an open job was told

    void add(JobState state, int code) {
        ++ended[static_cast<std::size_t>(state)];
        // Interrupted is worst, then what is unknown, down to a plain refusal.
        raise_to(worst, code == exit_wrong_use ? exit_refused : code);
    }
    [[nodiscard]] std::size_t of(JobState state) const {
        return ended[static_cast<std::size_t>(state)];
    }
    [[nodiscard]] std::size_t finished() const {
        return of(JobState::done) + of(JobState::failed) + of(JobState::unknown) +
               of(JobState::open);
    }
};

// The code with which an earlier run counted a job that ended so.
int code_of(JobState state) {
    return state == JobState::done     ? exit_good
           : state == JobState::failed ? exit_refused
                                       : exit_unknown;
}

class Run {
public:
    Run(const CallArguments& arguments, ClientRequest base, std::vector<Job> jobs,
        std::unique_ptr<ResultLog> log)
        : arguments_(arguments),
          base_(std::move(base)),
          jobs_(std::move(jobs)),
          log_(std::move(log)),
          story_(terminal_, arguments.verbose) {}

    [[nodiscard]] int run(ClientOptions options);

private:
    void work(Client& client);
    void do_job(Client& client, const Job& job);
    void finish(const Job& job, const ClientResult& result, std::string_view method);
    void show();
    void sum_up(const ClientCounters& counters);

    const CallArguments& arguments_;
    ClientRequest base_;
    std::vector<Job> jobs_;
    std::unique_ptr<ResultLog> log_;
    Terminal terminal_;
    Story story_;
    Cancellation cancellation_;
    std::atomic<std::size_t> next_ = 0;
    std::atomic<int> lost_ = exit_good;  // of results that could not be written
    Tally tally_;
};

int Run::run(ClientOptions options) {
    tally_.all = jobs_.size();
    options.hooks = story_.hooks();
    const Interrupts interrupts(cancellation_, [this] { show(); });
    auto client = Client::create(std::move(options));
    if (!client.ok()) {
        std::cerr << "ration call: " << client.status().message() << '\n';
        return exit_wrong_use;
    }
    std::vector<std::thread> workers;
    const std::size_t count = std::min<std::size_t>(arguments_.parallel, jobs_.size());
    for (std::size_t i = 0; i < count; ++i) {
        workers.emplace_back([this, &client] { work(**client); });
    }
    for (std::thread& worker : workers) {
        worker.join();
    }
    sum_up((*client)->counters());
    if (lost_ != exit_good) {
        std::cerr << "ration call: results cannot be written; stopped\n";
        return lost_;
    }
    return cancellation_.cancelled() ? exit_interrupted : tally_.worst.load();
}

void Run::work(Client& client) {
    while (!cancellation_.cancelled()) {
        const std::size_t index = next_++;
        if (index >= jobs_.size()) {
            return;
        }
        if (const auto state = log_->before(jobs_[index])) {
            ++tally_.before;
            tally_.add(*state, code_of(*state));
        } else {
            do_job(client, jobs_[index]);
        }
    }
}

void Run::do_job(Client& client, const Job& job) {
    auto request = job_request(job, base_);
    if (!request.ok()) {
        ClientResult wrong;
        wrong.reason = StopReason::error_not_retryable;
        wrong.error = AttemptError::bad_request;
        wrong.message = std::string(request.status().message());
        finish(job, wrong, "");
        return;
    }
    const bool unsafe = request->method == "POST" || request->method == "PATCH";
    if (arguments_.key == "auto" && unsafe && request->idempotency_key.empty()) {
        request->idempotency_key = log_->key_of(job, *request);
    }
    request->cancellation = cancellation_;
    const std::string method = request->method;
    finish(job, client.call(*std::move(request)), method);
}

void Run::finish(const Job& job, const ClientResult& result, std::string_view method) {
    const int code = exit_code_of(result, method);
    const JobState state = may_have_been_done(result, method) ? JobState::unknown : state_of(code);
    tally_.add(state, code);
    if (code == exit_wrong_use) {
        terminal_.line(
            cat(arguments_.each, ":", job.line, ": ", printable(shown_text(result.message))));
    }
    if (state == JobState::open && result.retry_at) {
        const std::lock_guard lock(tally_.mutex);
        tally_.retry_at = std::min(tally_.retry_at.value_or(*result.retry_at), *result.retry_at);
    }
    if (state == JobState::open && result.attempts == 0) {
        return;  // nothing was sent: as if it had not been begun
    }
    bool written = false;
    terminal_.beside([&] { written = log_->write(job, state, result); });
    if (!written) {
        const bool blind = exit_code_of_lost(result, method) == exit_unknown;
        raise_to(lost_, state == JobState::unknown || blind ? exit_unknown : exit_no_answer);
        cancellation_.cancel("results cannot be written");
    }
}

void Run::show() {
    if (!terminal_.has_live_line()) {
        return;
    }
    constexpr std::size_t width = 20;
    const std::size_t finished = tally_.finished();
    const std::size_t filled = tally_.all == 0 ? width : finished * width / tally_.all;
    std::string text = cat('[', std::string(filled, '#'), std::string(width - filled, '.'), "] ",
                           finished, '/', tally_.all);
    if (const std::size_t failed = tally_.of(JobState::failed); failed > 0) {
        text += cat("  ", failed, " failed");
    }
    if (const std::string waiting = story_.waiting(); !waiting.empty()) {
        text += "  " + waiting;
    }
    terminal_.live(text);
}

void Run::sum_up(const ClientCounters& counters) {
    const std::size_t done = tally_.of(JobState::done);
    const std::size_t failed = tally_.of(JobState::failed);
    const std::size_t unknown = tally_.of(JobState::unknown);
    const std::size_t left = tally_.all - done - failed - unknown;
    std::uint64_t retries = 0;
    for (const auto& [reason, count] : counters.retries) {
        retries += count;
    }
    std::string text =
        cat(tally_.all, " jobs: ", done, " done, ", failed, " failed, ", left, " open");
    if (unknown > 0) {
        text += cat(", ", unknown, " unknown: look before they are repeated");
    }
    if (tally_.before > 0) {
        text += cat(" (", tally_.before.load(), " of them in an earlier run)");
    }
    text += cat("; ", counters.sends, " sends, ", retries, " retries; ",
                seconds_text(story_.elapsed()));
    if (left > 0 && tally_.retry_at) {
        char moment[max_decimal_bytes];
        text += cat("; try again from ",
                    rfc3339(std::chrono::ceil<std::chrono::seconds>(*tally_.retry_at), moment));
    }
    terminal_.line(text);
    if (left > 0 && !arguments_.results.empty()) {
        terminal_.line(cat("run it again with --results ", arguments_.results, " to go on"));
    }
}

}  // namespace

int call_each(const CallArguments& arguments) {
    auto options = client_options(arguments);
    auto base = base_request(arguments);
    auto jobs = read_jobs(arguments.each);
    for (const absl::Status& status : {options.status(), base.status(), jobs.status()}) {
        if (!status.ok()) {
            std::cerr << "ration call: " << status.message() << '\n';
            return exit_wrong_use;
        }
    }
    auto log = ResultLog::open(arguments.results);
    if (!log.ok()) {
        std::cerr << "ration call: " << log.status().message() << '\n';
        return exit_wrong_use;
    }
    Run run(arguments, *std::move(base), *std::move(jobs), *std::move(log));
    return run.run(*std::move(options));
}

}  // namespace ration
