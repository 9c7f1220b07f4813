// What a request asks of the ledger, what the ledger said, and what is settled at the end.
//
// Made for the few routes that a ceiling, a quota or an idempotency rule speaks about; it owns the
// bytes that its ledger requests view, so it may outlive the exchange (a client that leaves does
// not cancel the attempt). Pure: no I/O. Thread rule: one thread at a time; the exchange's thread
// and the ledger's take turns.
//
//   auto durable = plan_durable(exchange);             // nullptr: the ledger is not asked
//   if (durable->needs_body()) read the body whole, at most durable->max_body()
//   if (!ask(exchange, *durable, body)) answer;        // a malformed key: 400
//   reply = ledger(durable->reserve());
//   judge(exchange, *durable, reply);                  // sets exchange.decision
//   if (durable->probing()) ask the upstream for durable->probe_target(): found, absent or neither
//   ... forward ...
//   ledger(durable->settle(kind, answer));             // before the first byte to the client
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exchange.h"
#include "ration/ledger.h"

namespace ration {

inline constexpr std::size_t max_object_id_bytes = 256;  // of a quota's object

// The upstream's complete answer, as far as it is kept.
struct CompleteAnswer {
    int status = 0;
    std::span<const Header> headers;
    std::string_view body;
    bool whole = true;  // false: larger than `max_answer`, or ended before its end
};

class Durable {
public:
    explicit Durable(std::shared_ptr<const Snapshot> rules) : rules_(std::move(rules)) {}

    [[nodiscard]] bool keyed() const { return rule_ != nullptr; }
    // The request's body is part of the fingerprint; a larger one than `max_body` is refused (413).
    [[nodiscard]] bool needs_body() const { return keyed(); }
    [[nodiscard]] std::size_t max_body() const { return rule_->max_body; }
    // The answer is kept or looked into; it is buffered up to that size before its first byte.
    [[nodiscard]] bool needs_answer() const { return keyed() || reads_answer_; }
    [[nodiscard]] std::size_t max_answer() const;
    // Nothing is asked before forwarding, something is settled after: a delete that lowers a quota.
    [[nodiscard]] bool only_settles() const {
        return !keyed() && ceilings_.empty() && quotas_.empty();
    }
    [[nodiscard]] const IdempotencyRule* rule() const { return rule_; }
    [[nodiscard]] std::string_view key() const { return key_; }
    [[nodiscard]] AttemptId attempt() const { return attempt_; }
    [[nodiscard]] bool second_try() const { return second_try_; }
    // True once: the attempt was started and has not been settled yet.
    [[nodiscard]] bool open() const { return open_; }

    // Views into this object, good as long as it lives.
    [[nodiscard]] Reserve reserve() const;
    // What ends the attempt; `answer` is read during the call only. For an attempt that is not open
    // and changes no quota: nullopt.
    [[nodiscard]] std::optional<Settle> settle(SettleKind kind, const CompleteAnswer& answer);

    // The key's outcome is unknown and the upstream is to be asked for it before anything else.
    [[nodiscard]] bool probing() const { return probing_; }
    // The target of that GET.
    [[nodiscard]] std::string probe_target(const Exchange& exchange) const;
    // What the upstream's answer to it means.
    enum class Probe : std::uint8_t {
        found,    // `settle_probed`, then the decision replays what was found
        absent,   // `settle_probed`, then `reserve` once more
        unknown,  // the key stays in doubt
    };
    [[nodiscard]] static Probe probed(int status);
    [[nodiscard]] std::optional<Settle> settle_probed(Exchange& exchange,
                                                      const CompleteAnswer& answer);

    // What a replay sends.
    [[nodiscard]] const StoredResponse& kept() const { return response_; }
    // The ledger let the request pass: these rules judged it and had a place for it. Good as long
    // as the policy of the exchange.
    [[nodiscard]] bool passed() const { return attempt_ != 0; }
    [[nodiscard]] std::span<const CeilingRule* const> ceilings() const { return ceiling_rules_; }
    [[nodiscard]] std::span<const QuotaRule* const> quotas() const { return quota_rules_; }

    // For the refusal's text and numbers.
    [[nodiscard]] std::string_view refused_by() const { return refused_by_; }
    [[nodiscard]] std::string_view detail() const { return detail_; }  // else the refusal's message
    [[nodiscard]] std::optional<std::uint64_t> limit() const { return limit_; }
    [[nodiscard]] std::uint64_t level() const { return level_; }

private:
    friend std::shared_ptr<Durable> plan_durable(const Exchange& exchange);
    friend bool ask(Exchange& exchange, Durable& durable, std::string_view body);
    friend void judge(Exchange& exchange, Durable& durable, const LedgerReply& reply);

    // A quota that a 2xx changes.
    struct Change {
        std::string key;
        const ObjectId* object = nullptr;
        std::string id;  // of the path, or found in the answer
        bool up = true;
    };

    void refuse_key(Exchange& exchange, BuiltIn which);
    void refuse_count(Exchange& exchange, const DurableScope& rule, std::uint64_t limit);
    void refuse_place(Exchange& exchange, const Reserved& reserved);
    void find_rule(const Exchange& exchange);
    void add_ceilings(const Exchange& exchange);
    void add_quotas(const Exchange& exchange);
    void add_change(const Exchange& exchange, const QuotaRule& rule, const ObjectId& object,
                    bool up);
    void keep(const CompleteAnswer& answer);
    void read_ids(const CompleteAnswer& answer);
    [[nodiscard]] std::string key_of(const Exchange& exchange, const DurableScope& rule) const;

    std::shared_ptr<const Snapshot> rules_;
    const IdempotencyRule* rule_ = nullptr;
    std::string key_;  // as the caller sent it, unquoted
    std::string identity_;
    Fingerprint fingerprint_{};
    std::vector<std::string> ceiling_keys_;
    std::vector<CeilingUse> ceilings_;
    std::vector<const CeilingRule*> ceiling_rules_;
    std::vector<std::string> quota_keys_;
    std::vector<QuotaUse> quotas_;
    std::vector<const QuotaRule*> quota_rules_;
    std::vector<Change> changes_;
    std::vector<QuotaChange> settled_changes_;
    bool reads_answer_ = false;

    AttemptId attempt_ = 0;
    bool second_try_ = false;
    bool open_ = false;
    bool probing_ = false;
    bool probed_ = false;  // once is enough
    StoredResponse response_;
    std::string_view refused_by_;  // name of the rule that refused or replayed
    std::string detail_;
    std::optional<std::uint64_t> limit_;
    std::uint64_t level_ = 0;
};

// nullptr: no durable rule speaks about this (admitted) request.
[[nodiscard]] std::shared_ptr<Durable> plan_durable(const Exchange& exchange);

// Completes it with the body, which counts for keyed requests. False: the key is malformed or
// missing where it is required, and the exchange's decision is the refusal.
[[nodiscard]] bool ask(Exchange& exchange, Durable& durable, std::string_view body);

// What the ledger's answer to `reserve()` means for the request: admit, replay, or a refusal. A
// reply whose status is not OK is the ledger being out of reach: 503, nothing forwarded.
void judge(Exchange& exchange, Durable& durable, const LedgerReply& reply);

}  // namespace ration
