#include "workbench/test_run.h"

#include <utility>
#include <vector>

#include "base/text.h"
#include "workbench/failure_text.h"
#include "workbench/virtual_service.h"

namespace ration {

namespace {

constexpr std::size_t max_shown_failures = 5;  // of one case
constexpr std::uint64_t test_counter_bytes = 16ULL << 20;

// One case on its way: what was asked, in order, and what came back.
class CaseRun {
public:
    CaseRun(const TestFile& file, const TestCase& test) : file_(file), test_(test) {}

    // Empty, or what differed.
    std::string run(const TestBedKind& kind);

private:
    absl::Status take_step(const TestStep& step);
    absl::Status take_requests(const TestStep& step);
    void judge_step(std::size_t number, const TestStep& step, std::size_t first_ticket);
    void judge_counts(StepFailure& failure, std::size_t first_ticket) const;
    void judge_requests(StepFailure& failure, std::size_t first_ticket) const;
    void report(const StepFailure& failure);

    const TestFile& file_;
    const TestCase& test_;
    std::vector<ServiceAnswer> answers_;
    std::unique_ptr<TestBed> service_;
    std::string text_;
    std::size_t failures_ = 0;
};

absl::Status CaseRun::take_requests(const TestStep& step) {
    for (std::uint64_t n = 1; n <= step.times; ++n) {
        auto request = fill_in(step.request, n);
        if (!request.ok()) {
            return request.status();
        }
        const Mono at = first_mono + step.when + step.every * static_cast<std::int64_t>(n - 1);
        const std::size_t ticket = answers_.size();
        answers_.emplace_back();
        absl::Status asked = service_->request(at, *std::move(request), ticket);
        if (!asked.ok()) {
            return asked;
        }
    }
    return absl::OkStatus();
}

absl::Status CaseRun::take_step(const TestStep& step) {
    const Mono at = first_mono + step.when;
    switch (step.kind) {
        case TestStep::Kind::request:
            return take_requests(step);
        case TestStep::Kind::reload:
            service_->reload(at, step.rules);
            break;
        case TestStep::Kind::counters_down:
        case TestStep::Kind::counters_up:
            service_->set_counters(at, step.kind == TestStep::Kind::counters_up);
            break;
        case TestStep::Kind::restart:
            return service_->restart(at);
        case TestStep::Kind::step_wall:
            service_->step_wall(at, step.by);
            break;
        case TestStep::Kind::nothing:
            break;
    }
    return absl::OkStatus();
}

std::string CaseRun::run(const TestBedKind& kind) {
    auto service = kind.start(test_, [this](std::uint64_t ticket, ServiceAnswer answer) {
        answers_[ticket] = std::move(answer);
    });
    if (!service.ok()) {
        return Problem{file_.path, test_.at, std::string(service.status().message())}.text() + "\n";
    }
    service_ = *std::move(service);
    for (const TestStep& step : test_.steps) {
        const absl::Status taken = take_step(step);
        if (!taken.ok()) {
            return Problem{file_.path, step.at, std::string(taken.message())}.text() + "\n";
        }
    }
    service_->run_out();
    std::size_t ticket = 0;
    for (std::size_t i = 0; i < test_.steps.size(); ++i) {
        if (test_.steps[i].kind == TestStep::Kind::request) {
            judge_step(i + 1, test_.steps[i], ticket);
            ticket += test_.steps[i].times;
        }
    }
    if (failures_ > max_shown_failures) {
        text_ += cat("    ", failures_ - max_shown_failures, " more differences in this case\n");
    }
    return std::move(text_);
}

void CaseRun::report(const StepFailure& failure) {
    if (!failure.mismatches.empty() && ++failures_ <= max_shown_failures) {
        text_ += failure_text(file_, test_, failure);
    }
}

void CaseRun::judge_step(std::size_t number, const TestStep& step, std::size_t first_ticket) {
    StepFailure single{.step = &step, .step_number = number, .mismatches = {}, .levels = {}};
    judge_requests(single, first_ticket);
    report(single);
    StepFailure whole{.step = &step, .step_number = number, .mismatches = {}, .levels = {}};
    judge_counts(whole, first_ticket);
    report(whole);
}

void CaseRun::judge_requests(StepFailure& failure, std::size_t first_ticket) const {
    const TestStep& step = *failure.step;
    for (std::uint64_t n = 1; n <= step.times; ++n) {
        const ServiceAnswer& answer = answers_[first_ticket + n - 1];
        std::vector<Mismatch> found;
        for (const ExpectedValue& expected : step.expect.values) {
            if (auto mismatch = compare(expected, n - 1, answer)) {
                found.push_back(*std::move(mismatch));
            }
        }
        if (found.empty()) {
            continue;
        }
        if (failure.request == 0) {
            failure.request = n;
            failure.mismatches = std::move(found);
            failure.levels = answer.levels;
        } else {
            ++failure.others;
        }
    }
}

void CaseRun::judge_counts(StepFailure& failure, std::size_t first_ticket) const {
    const TestStep& step = *failure.step;
    for (const ExpectedCount& expected : step.expect.counts) {
        std::uint64_t count = 0;
        for (std::uint64_t i = 0; i < step.times; ++i) {
            count += answers_[first_ticket + i].outcome == expected.outcome ? 1U : 0U;
        }
        if (count != expected.count) {
            failure.mismatches.push_back(
                {cat("how many of ", step.times, " were ", to_string(expected.outcome)),
                 cat(expected.count), cat(count)});
            failure.levels = answers_[first_ticket + step.times - 1].levels;
        }
    }
}

}  // namespace

TestBedKind in_process() {
    TestBedKind kind;
    kind.cannot_run = [](const TestCase&) { return std::string(); };
    kind.start = [](const TestCase& test,
                    TestBed::Sink sink) -> absl::StatusOr<std::unique_ptr<TestBed>> {
        return VirtualService::create({.rules = test.rules,
                                       .start = {first_mono, test.start},
                                       .counter_bytes = test_counter_bytes},
                                      std::move(sink));
    };
    return kind;
}

TestTally run_test_file(const TestFile& file, const TestBedKind& kind, std::ostream& report) {
    TestTally tally;
    for (const TestCase& test : file.cases) {
        if (const std::string reason = kind.cannot_run(test); !reason.empty()) {
            ++tally.skipped;
            report << Problem{file.path, test.at, cat("skipped: case '", test.name, "': ", reason)}
                          .text()
                   << '\n';
            continue;
        }
        const std::string text = CaseRun(file, test).run(kind);
        text.empty() ? ++tally.passed : ++tally.failed;
        report << text;
    }
    return tally;
}

std::string summary(const TestTally& tally) {
    return cat(tally.passed, " passed, ", tally.failed, " failed",
               tally.skipped > 0 ? cat(", ", tally.skipped, " skipped") : std::string());
}

}  // namespace ration
