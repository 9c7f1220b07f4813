// Keyed creates through the ledger beside a bare SQLite program that writes the same rows.
//
// 64 callers, each with one create in flight: a reservation (durable), then at once its settlement
// (durable), then the next create. The callers are one event loop, as in the gateway; the ledger
// has its own thread and commits what has queued. The bare program has no queue, no thread, no
// lookups and no answers: it puts 64 reservations into one commit and their 64 settlements into the
// next, with the same statements on the same schema.
//
//   ledger_bench FOLDER ROUNDS SECONDS
//
// Rounds alternate. One JSON object to stdout: {"ration": {"rate": ..., "p99_ms": ...},
// "bare": {...}}; medians over the rounds.
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ledger/runner.h"
#include "ledger/sqlite_file.h"
#include "ledger/sqlite_statements.h"
#include "ration/ledger.h"

namespace ration {
namespace {

constexpr std::size_t callers = 64;
constexpr std::size_t addresses = 5'000;
constexpr std::uint64_t no_limit = 1'000'000'000;

struct Round {
    double rate = 0;
    double p99_ms = 0;
    double cpu_us = 0;  // for each create, of the thread that writes
};

double cpu_seconds(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Of the ledger's thread, asked from the only other one.
double other_thread_seconds() {
    return cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
}

double seconds(Nanos span) {
    return std::chrono::duration<double>(span).count();
}

Mono now() {
    return SystemClock().now().mono;
}

[[noreturn]] void stop(std::string_view why) {
    std::fprintf(stderr, "ledger_bench: %.*s\n", static_cast<int>(why.size()), why.data());
    std::exit(1);
}

// A key as clients make them: no two neighbours in an index are near in time.
std::string scattered(std::uint64_t n) {
    std::array<char, 40> text{};
    const std::uint64_t mixed = (n + 1) * 0x9e3779b97f4a7c15;
    std::snprintf(text.data(), text.size(), "%016llx-%016llx",
                  static_cast<unsigned long long>(mixed ^ (mixed >> 29)),
                  static_cast<unsigned long long>(n));
    return text.data();
}

// What create number `n` writes; both sides take it from here.
struct Create {
    explicit Create(std::uint64_t n)
        : identity("key|idempotency|ws_lisbon|publishable|" + scattered(n)),
          day_key("daily bookings|ws_lisbon|" + std::to_string(n % addresses)) {
        response.status = 201;
        response.headers = {{"Content-Type", "application/json"},
                            {"Location", "/v1/bookings/bkg_" + std::to_string(n)}};
        response.body = R"({"id":"bkg_)" + std::to_string(n) +
                        R"(","slot":"2026-12-01T09:30","customer":{"name":"ana","email":)"
                        R"("ana@example.org"},"extras":[],"price":4000,"status":"confirmed"})";
        fingerprint.fill(static_cast<std::uint8_t>(n));
    }
    std::string identity;
    std::string day_key;
    std::string period_key = "booking volume|acc_one";
    Fingerprint fingerprint{};
    StoredResponse response;
};

CalendarWindow window(Wall start, Nanos length) {
    return {start, start + length};
}

const Wall today = std::chrono::floor<std::chrono::days>(SystemClock().now().wall);

// ---- through the ledger ----

class Callers;

class Caller final : public LedgerJob, public std::enable_shared_from_this<Caller> {
public:
    explicit Caller(Callers& all) : all_(all) {}
    void begin(std::uint64_t n);
    void settle();
    void done() override;

    Mono begun{};
    bool settling = false;

private:
    Callers& all_;
    std::unique_ptr<Create> create_;
    std::vector<CeilingUse> ceilings_;
    friend class Callers;
};

// The loop: takes what the ledger answered and asks the next thing.
class Callers {
public:
    explicit Callers(LedgerRunner& runner) : runner_(runner) {}

    Round run(Nanos length);
    [[nodiscard]] std::uint64_t created() const { return number_; }
    void answered(std::shared_ptr<Caller> caller) {
        bool first = false;
        {
            const std::lock_guard lock(mutex_);
            first = ready_.empty();
            ready_.push_back(std::move(caller));
        }
        if (first) {  // a loop that is awake finds the others by itself
            wake_.notify_one();
        }
    }
    void submit(std::shared_ptr<Caller> caller) {
        if (!runner_.submit(std::move(caller))) {
            stop("the ledger takes no more");
        }
    }

private:
    std::shared_ptr<Caller> next_job(const Caller& before);

    LedgerRunner& runner_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<std::shared_ptr<Caller>> ready_;
    std::uint64_t number_ = 0;
    std::vector<Nanos> took_;
};

void Caller::begin(std::uint64_t n) {
    begun = now();
    create_ = std::make_unique<Create>(n);
    ceilings_ = {
        {create_->day_key, CeilingKind::local_day, no_limit, window(today, std::chrono::hours(24))},
        {create_->period_key, CeilingKind::billing_period, no_limit,
         window(today, std::chrono::hours(720))}};
    IdempotencyKey key;
    key.identity = create_->identity;
    key.fingerprint = create_->fingerprint;
    request = Reserve{key, ceilings_, {}};
    all_.submit(shared_from_this());
}

void Caller::done() {
    if (!reply.status.ok()) {
        stop(reply.status.ToString());
    }
    all_.answered(shared_from_this());
}

// A job is asked once, so the settlement is another one.
void Caller::settle() {
    auto job = std::make_shared<Caller>(all_);
    job->begun = begun;
    job->settling = true;
    job->create_ = std::move(create_);
    job->request = Settle{reply.reserved.attempt, SettleKind::written, &job->create_->response, {}};
    all_.submit(std::move(job));
}

Round Callers::run(Nanos length) {
    took_.clear();
    const double cpu = other_thread_seconds();
    const Mono start = now();
    for (std::size_t i = 0; i < callers; ++i) {
        std::make_shared<Caller>(*this)->begin(number_++);
    }
    std::size_t flying = callers;
    std::vector<std::shared_ptr<Caller>> batch;
    while (flying > 0) {
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return !ready_.empty(); });
            batch.swap(ready_);
        }
        for (const std::shared_ptr<Caller>& caller : batch) {
            if (!caller->settling) {
                caller->settle();
                continue;
            }
            took_.push_back(now() - caller->begun);
            if (now() - start < length) {
                std::make_shared<Caller>(*this)->begin(number_++);
            } else {
                --flying;
            }
        }
        batch.clear();
    }
    const double passed = seconds(now() - start);
    std::sort(took_.begin(), took_.end());
    const auto created = static_cast<double>(took_.size());
    return {created / passed, 1000 * seconds(took_[took_.size() * 99 / 100]),
            1e6 * (other_thread_seconds() - cpu) / created};
}

// ---- bare ----

class Bare {
public:
    explicit Bare(const std::string& path) {
        auto file = open_ledger_file(path);
        if (!file.ok()) {
            stop(file.status().ToString());
        }
        file_ = std::make_unique<LedgerFile>(*std::move(file));
        auto statements = SqliteStatements::prepare(file_->database);
        if (!statements.ok()) {
            stop(statements.status().ToString());
        }
        statements_ = *std::move(statements);
    }

    Round run(Nanos length) {
        const double cpu = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
        const Mono start = now();
        std::vector<Nanos> took;
        std::uint64_t done = 0;
        while (now() - start < length) {
            const Mono begun = now();
            std::vector<Create> creates;
            for (std::size_t i = 0; i < callers; ++i) {
                creates.emplace_back(number_ + i);
            }
            in_one_commit([&] {
                for (std::size_t i = 0; i < callers; ++i) {
                    reserve(creates[i], static_cast<std::int64_t>(number_ + i + 1));
                }
            });
            in_one_commit([&] {
                for (std::size_t i = 0; i < callers; ++i) {
                    settle(creates[i], static_cast<std::int64_t>(number_ + i + 1));
                }
            });
            number_ += callers;
            done += callers;
            took.push_back(now() - begun);
        }
        const double passed = seconds(now() - start);
        std::sort(took.begin(), took.end());
        const auto created = static_cast<double>(done);
        return {created / passed, 1000 * seconds(took[took.size() * 99 / 100]),
                1e6 * (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - cpu) / created};
    }

private:
    static void must(const absl::Status& status) {
        if (!status.ok()) {
            stop(status.ToString());
        }
    }
    template <typename Work>
    void in_one_commit(Work work) {
        must(statements_.begin.run());
        work();
        must(statements_.commit.run());
    }
    static std::string_view bytes(const Fingerprint& fingerprint) {
        return {reinterpret_cast<const char*>(fingerprint.data()), fingerprint.size()};
    }
    void reserve(const Create& create, std::int64_t id) {
        const std::string places =
            "1:0" + create.day_key + "19:176459040000000000019:1764676800000000000" +
            create.period_key + "19:176459040000000000019:1767182400000000000";
        SqliteStatement& insert = statements_.insert_attempt;
        insert.bind(1, id).bind(2, 1).bind_blob(3, create.identity);
        insert.bind_blob(4, bytes(create.fingerprint)).bind(5, id).bind(6, 1LL << 62);
        insert.bind(7, 86'400'000'000'000).bind_text(8, places).bind(9, 0);
        must(insert.run());
    }
    void settle(const Create& create, std::int64_t id) {
        must(statements_.insert_write.bind_text(1, create.day_key).bind(2, id).bind(3, id).run());
        must(statements_.add_period.bind_text(1, create.period_key).bind(2, 1).bind(3, 2).run());
        std::string headers;
        for (const auto& [name, value] : create.response.headers) {
            headers += name + ":" + value + ":";
        }
        SqliteStatement& finish = statements_.finish_attempt;
        finish.bind(1, id).bind(2, 1LL << 61).bind(3, 201).bind_text(4, headers);
        finish.bind_blob(5, create.response.body);
        must(finish.run());
    }

    std::unique_ptr<LedgerFile> file_;
    SqliteStatements statements_;
    std::uint64_t number_ = 0;
};

double median(std::vector<double> numbers) {
    std::sort(numbers.begin(), numbers.end());
    return numbers[numbers.size() / 2];
}

void print(const char* name, const std::vector<Round>& rounds, const char* end) {
    std::vector<double> rates;
    std::vector<double> tails;
    std::vector<double> costs;
    for (const Round& round : rounds) {
        rates.push_back(round.rate);
        tails.push_back(round.p99_ms);
        costs.push_back(round.cpu_us);
    }
    std::printf("\"%s\": {\"rate\": %.0f, \"p99_ms\": %.3f, \"cpu_us\": %.2f}%s", name,
                median(rates), median(tails), median(costs), end);
}

}  // namespace
}  // namespace ration

int main(int count, char** words) {
    using namespace ration;
    if (count != 4) {
        stop("use: ledger_bench FOLDER ROUNDS SECONDS");
    }
    const std::filesystem::path folder(words[1]);
    const Nanos length =
        std::chrono::milliseconds(static_cast<std::int64_t>(1000 * std::strtod(words[3], nullptr)));
    const SystemClock clock;
    auto ledger = open_sqlite_ledger({(folder / "ration.db").string(), {}});
    if (!ledger.ok()) {
        stop(ledger.status().ToString());
    }
    LedgerRunner runner(**ledger, clock);
    Callers through(runner);
    Bare bare((folder / "bare.db").string());
    std::vector<Round> ours;
    std::vector<Round> theirs;
    for (long round = 0; round < std::strtol(words[2], nullptr, 10); ++round) {
        ours.push_back(through.run(length));
        theirs.push_back(bare.run(length));
    }
    const LedgerStats stats = (*ledger)->stats();
    std::fprintf(stderr, "%.1f requests in a commit\n",
                 2.0 * static_cast<double>(through.created()) / static_cast<double>(stats.commits));
    std::printf("{");
    print("ration", ours, ", ");
    print("bare", theirs, "}\n");
    return 0;
}
