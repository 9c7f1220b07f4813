// A ledger that hands everything on to another one: tests override what they want to see or spoil.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ration/ledger.h"

namespace ration {

class LedgerWrapper : public Ledger {
public:
    // `inner` must outlive the wrapper.
    explicit LedgerWrapper(Ledger& inner) : inner_(inner) {}

    void apply(std::span<const LedgerRequest> requests, Wall now,
               std::span<LedgerReply> replies) override {
        inner_.apply(requests, now, replies);
    }
    void disown() override { inner_.disown(); }
    absl::StatusOr<bool> sweep(Wall now, std::size_t budget) override {
        return inner_.sweep(now, budget);
    }
    [[nodiscard]] LedgerStats stats() const override { return inner_.stats(); }
    [[nodiscard]] absl::StatusOr<std::uint64_t> level(const CeilingUse& use) override {
        return inner_.level(use);
    }
    [[nodiscard]] absl::StatusOr<std::uint64_t> level(const QuotaUse& use) override {
        return inner_.level(use);
    }
    [[nodiscard]] absl::StatusOr<LedgerRows> rows() override { return inner_.rows(); }
    [[nodiscard]] absl::StatusOr<std::vector<std::string>> members(std::string_view key,
                                                                   std::string_view after,
                                                                   std::size_t limit) override {
        return inner_.members(key, after, limit);
    }
    [[nodiscard]] std::vector<DoubtfulAttempt> doubtful(AttemptId after,
                                                        std::size_t limit) const override {
        return inner_.doubtful(after, limit);
    }
    [[nodiscard]] absl::StatusOr<std::vector<Block>> blocks() override { return inner_.blocks(); }
    [[nodiscard]] absl::StatusOr<std::vector<IssuedToken>> tokens() override {
        return inner_.tokens();
    }

protected:
    [[nodiscard]] Ledger& inner() { return inner_; }

private:
    Ledger& inner_;
};

}  // namespace ration
