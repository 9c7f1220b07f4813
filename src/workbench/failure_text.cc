#include "workbench/failure_text.h"

#include "base/text.h"
#include "workbench/instant.h"

namespace ration {

namespace {

std::string request_text(const StepFailure& failure) {
    const auto filled = fill_in(failure.step->request, failure.request);
    if (!filled.ok()) {
        return {};
    }
    std::string text = cat("    from ", failure.step->request.address);
    for (const auto& [name, value] : filled->headers) {
        text += cat(", ", name, ": ", value);
    }
    text += '\n';
    if (!filled->body.empty()) {
        text += cat("    body ", filled->body, "\n");
    }
    return text;
}

std::string level_text(const LevelLine& line) {
    const Level& level = line.level;
    std::string text = cat("    limit ", line.rule, " (", line.limit, "): ", level.remaining,
                           " left of ", level.limit, ", ", level.used, " in use");
    if (level.verdict == Verdict::never) {
        text += ", can never fit";
    } else if (level.verdict == Verdict::refused) {
        text += cat(", wait ", decimal_seconds(level.wait), " s");
    }
    return text + "\n";
}

}  // namespace

std::string failure_text(const TestFile& file, const TestCase& test, const StepFailure& failure) {
    const TestStep& step = *failure.step;
    const std::uint64_t before = failure.request == 0 ? 0 : failure.request - 1;
    const Nanos when = step.when + step.every * static_cast<std::int64_t>(before);
    std::string text = cat("case '", test.name, "', step ", failure.step_number, " at ",
                           decimal_seconds(when), " s: ", step.title);
    if (failure.request != 0 && step.times > 1) {
        text += cat(", request ", failure.request, " of ", step.times);
    }
    text = Problem{file.path, step.at, text}.text() + "\n";
    if (failure.request != 0) {
        text += request_text(failure);
    }
    for (const Mismatch& mismatch : failure.mismatches) {
        text += cat("    ", mismatch.what, "\n        expected  ", mismatch.expected,
                    "\n        got       ", mismatch.got, "\n");
    }
    for (const LevelLine& line : failure.levels) {
        text += level_text(line);
    }
    if (failure.others > 0) {
        text += cat("    ", failure.others, " more of the step's requests differ\n");
    }
    return text;
}

}  // namespace ration
