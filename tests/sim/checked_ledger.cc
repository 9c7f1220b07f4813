#include "sim/checked_ledger.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace ration::sim {
namespace {

constexpr std::size_t everything = 10'000;

bool same(const Reserved& a, const Reserved& b) {
    return a.verdict == b.verdict && a.second_try == b.second_try && a.index == b.index &&
           a.quota == b.quota && a.level == b.level && a.response.status == b.response.status &&
           a.response.headers == b.response.headers && a.response.body == b.response.body;
}

std::string text_of(const LedgerReply& reply) {
    return cat("verdict ", std::to_string(static_cast<int>(reply.reserved.verdict)), " index ",
               std::to_string(reply.reserved.index), " level ",
               std::to_string(reply.reserved.level), reply.reserved.second_try ? " second" : "",
               reply.found ? "" : " not found", " body ", reply.reserved.response.body);
}

}  // namespace

CheckedLedger::CheckedLedger(Disk& disk, Journal& journal, CheckedLedgerOptions options)
    : disk_(disk), journal_(journal), options_(std::move(options)) {}

bool CheckedLedger::open() {
    auto opened = open_sqlite_ledger({options_.path, {}});
    if (!opened.ok()) {
        if (!disk_.dead() && !disk_.take_failed()) {
            journal_.violated(cat("cannot open: ", std::string(opened.status().message())));
        }
        return false;
    }
    disk_.forget_failure();
    ledger_ = options_.wrap ? options_.wrap(*std::move(opened)) : *std::move(opened);
    if (!options_.compare) {
        return true;
    }
    torn_.insert(torn_.begin(), std::move(model_));
    const LedgerView found = view();
    for (ModelLedger& candidate : torn_) {
        candidate.restart();
        if (candidate.view(keys_) == found) {
            model_ = std::move(candidate);
            torn_.clear();
            model_.adopt(ledger_->doubtful(0, everything));
            return true;
        }
    }
    journal_.violated(cat("after a restart the ledger holds\n    ", to_string(found),
                          "\n  instead of\n    ", to_string(torn_.front().view(keys_))));
    return true;
}

void CheckedLedger::close() {
    ledger_.reset();
}

void CheckedLedger::apply(std::span<const LedgerRequest> requests, Wall now,
                          std::span<LedgerReply> replies) {
    for (const LedgerRequest& request : requests) {
        if (const Reserve* reserve = std::get_if<Reserve>(&request)) {
            keys_.watch(*reserve);
        }
    }
    ModelLedger would_be = model_;
    const std::vector<LedgerReply> expected = would_be.apply(requests, now);
    const std::uint64_t syncs = disk_.syncs();
    ledger_->apply(requests, now, replies);
    if (!replies.empty() && !replies.front().status.ok()) {
        return settle_failure(requests, std::move(would_be));
    }
    disk_.forget_failure();  // met where SQLite could do without
    if (options_.compare) {
        compare_replies(expected, replies);
        would_be.adopt(expected, replies);
        model_ = std::move(would_be);
        forget_torn(syncs);
        compare("after a batch");
    }
}

void CheckedLedger::settle_failure(std::span<const LedgerRequest> requests, ModelLedger would_be) {
    const bool failed = disk_.take_failed();
    if (!failed && !disk_.dead()) {
        journal_.violated("a batch failed on a good disk");
    }
    torn_.push_back(std::move(would_be));
    model_.fail(requests);
    if (!disk_.dead()) {
        compare("after a failed batch");
    }
}

absl::StatusOr<bool> CheckedLedger::sweep(Wall now, std::size_t budget) {
    ModelLedger would_be = model_;
    would_be.sweep(now);
    const std::uint64_t syncs = disk_.syncs();
    absl::StatusOr<bool> more = ledger_->sweep(now, budget);
    if (!more.ok()) {
        settle_failure({}, std::move(would_be));
        return more;
    }
    disk_.forget_failure();
    model_ = std::move(would_be);
    forget_torn(syncs);
    compare("after a sweep");
    return more;
}

// What a failed batch has left in the log is overwritten by the next one that writes at all.
void CheckedLedger::forget_torn(std::uint64_t syncs_before) {
    if (disk_.syncs() != syncs_before) {
        torn_.clear();
    }
}

void CheckedLedger::compare_replies(std::span<const LedgerReply> expected,
                                    std::span<const LedgerReply> real) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (!same(expected[i].reserved, real[i].reserved) || expected[i].found != real[i].found) {
            journal_.violated(cat("request ", std::to_string(i), " of a batch was answered ",
                                  text_of(real[i]), " instead of ", text_of(expected[i])));
        }
    }
}

void CheckedLedger::compare(std::string_view when) {
    if (!options_.compare || !journal_.good()) {
        return;
    }
    if (const std::string passed = model_.passed_ceiling(keys_); !passed.empty()) {
        journal_.violated(cat("a ceiling is passed ", when, ": ", passed));
    }
    const LedgerView found = view();
    const LedgerView expected = model_.view(keys_);
    if (!(found == expected) && !disk_.dead() && !disk_.take_failed()) {
        journal_.violated(cat(when, " the ledger holds\n    ", to_string(found),
                              "\n  instead of\n    ", to_string(expected)));
    }
}

LedgerView CheckedLedger::view() const {
    LedgerView view;
    disk_.pause(true);
    for (const DoubtfulAttempt& doubt : ledger_->doubtful(0, everything)) {
        view.doubts.emplace_back(doubt.identity, doubt.started, doubt.expires, doubt.keys);
    }
    std::sort(view.doubts.begin(), view.doubts.end());
    const LedgerStats stats = ledger_->stats();
    view.running = stats.running;
    view.records = ledger_->rows().value_or(LedgerRows{}).attempts;
    for (const WatchedKeys::Window& window : keys_.windows) {
        view.levels.push_back(ledger_->level(window.use()).value_or(99'999));
    }
    for (const std::string& key : keys_.quotas) {
        view.members.push_back(
            ledger_->members(key, {}, everything).value_or(std::vector<std::string>{"?"}));
    }
    disk_.pause(false);
    return view;
}

}  // namespace ration::sim
