// Ledgers with one fault each, to see that the simulation finds it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/checked_ledger.h"

namespace ration::sim {

enum class Mutant {
    drops_releases,     // a failed attempt keeps its place
    doubles_commits,    // what was written counts twice
    forgets_writes,     // what was written does not count
    frees_doubts,       // an attempt whose outcome is unknown is treated as never sent
    forgets_keys,       // a finished key is not known any more
    one_place_too_many  // of every ceiling
};

inline constexpr std::array all_mutants = {Mutant::drops_releases, Mutant::doubles_commits,
                                           Mutant::forgets_writes, Mutant::frees_doubts,
                                           Mutant::forgets_keys,   Mutant::one_place_too_many};

inline std::string to_string(Mutant mutant) {
    constexpr std::array names = {"DropsReleases", "DoublesCommits", "ForgetsWrites",
                                  "FreesDoubts",   "ForgetsKeys",    "OnePlaceTooMany"};
    return names.at(static_cast<std::size_t>(mutant));
}

class MutantLedger final : public Ledger {
public:
    MutantLedger(std::unique_ptr<Ledger> real, Mutant mutant)
        : real_(std::move(real)), mutant_(mutant) {}

    void apply(std::span<const LedgerRequest> requests, Wall now,
               std::span<LedgerReply> replies) override {
        std::vector<LedgerRequest> changed(requests.begin(), requests.end());
        ceilings_.clear();
        ceilings_.reserve(changed.size());
        for (LedgerRequest& request : changed) {
            std::visit([this](auto& what) { change(what); }, request);
        }
        real_->apply(changed, now, replies);
        if (mutant_ == Mutant::doubles_commits) {
            count_again(requests, now, replies);
        }
    }
    void disown() override { real_->disown(); }
    absl::StatusOr<bool> sweep(Wall now, std::size_t budget) override {
        return real_->sweep(now, budget);
    }
    [[nodiscard]] LedgerStats stats() const override { return real_->stats(); }
    [[nodiscard]] absl::StatusOr<std::uint64_t> level(const CeilingUse& use) override {
        return real_->level(use);
    }
    [[nodiscard]] absl::StatusOr<std::uint64_t> level(const QuotaUse& use) override {
        return real_->level(use);
    }
    [[nodiscard]] absl::StatusOr<LedgerRows> rows() override { return real_->rows(); }
    [[nodiscard]] absl::StatusOr<std::vector<std::string>> members(std::string_view key,
                                                                   std::string_view after,
                                                                   std::size_t limit) override {
        return real_->members(key, after, limit);
    }
    [[nodiscard]] std::vector<DoubtfulAttempt> doubtful(AttemptId after,
                                                        std::size_t limit) const override {
        return real_->doubtful(after, limit);
    }
    [[nodiscard]] absl::StatusOr<std::vector<Block>> blocks() override { return real_->blocks(); }
    [[nodiscard]] absl::StatusOr<std::vector<IssuedToken>> tokens() override {
        return real_->tokens();
    }

private:
    void change(Reserve& reserve) {
        if (mutant_ == Mutant::one_place_too_many) {
            ceilings_.emplace_back(reserve.ceilings.begin(), reserve.ceilings.end());
            for (CeilingUse& use : ceilings_.back()) {
                ++use.at_most;
            }
            reserve.ceilings = ceilings_.back();
        }
        if (mutant_ == Mutant::forgets_keys && reserve.key) {
            reserve.key->keep = Nanos(1);
        }
    }
    void change(Settle& settle) {
        if (mutant_ == Mutant::drops_releases && settle.kind == SettleKind::failed) {
            settle.attempt = 0;
        }
        if (mutant_ == Mutant::forgets_writes && settle.kind == SettleKind::written) {
            settle.kind = SettleKind::failed;
        }
        if (mutant_ == Mutant::frees_doubts && settle.kind == SettleKind::doubt) {
            settle.kind = SettleKind::failed;
        }
    }
    template <typename Other>
    void change(Other&) {}

    // For each attempt that the batch has written, one more in the same places.
    void count_again(std::span<const LedgerRequest> requests, Wall now,
                     std::span<const LedgerReply> replies) {
        for (std::size_t i = 0; i < requests.size(); ++i) {
            if (!replies[i].status.ok()) {
                return;
            }
            if (const Reserve* reserve = std::get_if<Reserve>(&requests[i])) {
                if (replies[i].reserved.attempt != 0) {
                    remember(replies[i].reserved.attempt, *reserve);
                }
                continue;
            }
            const Settle* settle = std::get_if<Settle>(&requests[i]);
            const auto found = settle == nullptr ? places_.end() : places_.find(settle->attempt);
            if (found != places_.end() && settle->kind == SettleKind::written) {
                std::vector<CeilingUse> uses;
                for (const WatchedKeys::Window& window : found->second.windows) {
                    uses.push_back(window.use());
                    uses.back().at_most = 1'000;
                }
                const LedgerReply more = real_->apply_one(Reserve{{}, uses, {}}, now);
                static_cast<void>(real_->apply_one(
                    Settle{more.reserved.attempt, SettleKind::written, nullptr, {}}, now));
            }
        }
    }
    void remember(AttemptId attempt, const Reserve& reserve) { places_[attempt].watch(reserve); }

    std::unique_ptr<Ledger> real_;
    Mutant mutant_;
    std::vector<std::vector<CeilingUse>> ceilings_;
    std::map<AttemptId, WatchedKeys> places_;
};

inline WrapLedger mutant(Mutant which) {
    return [which](std::unique_ptr<Ledger> real) {
        return std::make_unique<MutantLedger>(std::move(real), which);
    };
}

}  // namespace ration::sim
