// Numbers travel packed as little-endian doubles in one argument: reading them is one call in Lua,
// where each further argument would cost a string and a conversion.
#include "counters/redis/call_codec.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <system_error>

#include "counters/redis/numbers.h"
#include "counters/redis/script.h"
#include "limits/arithmetic.h"

namespace ration {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::int64_t nanos_per_micro = 1000;
constexpr std::int64_t epoch_micros = 1'577'836'800'000'000;  // 2020-01-01T00:00:00Z
constexpr std::int64_t for_ever = std::int64_t{1} << 53;
constexpr std::size_t digest_bytes = 16;
constexpr std::size_t digest_digits = 22;
constexpr std::size_t not_after_offset = 1 + 8 + 8;  // in the header
constexpr std::size_t header_bytes = 1 + 4 * 8 + 8;
constexpr std::size_t charge_bytes = 1 + 8 + 1 + 6 * 8;
constexpr std::size_t values_per_charge = 6;

enum class ScriptOp : std::uint8_t {
    take = 1,
    give_back,
    observe,
    force,
    give_back_taken,
    require,
    give_back_own
};

std::int64_t floor_micros(std::int64_t nanos) {
    return floor_to(nanos, nanos_per_micro) / nanos_per_micro;
}

void append_byte(std::string& out, std::uint8_t byte) {
    out += static_cast<char>(byte);
}

void append_double(std::string& out, double number) {
    std::array<char, sizeof number> bytes;
    std::memcpy(bytes.data(), &number, sizeof number);
    out.append(bytes.data(), bytes.size());
}

void append_micros(std::string& out, std::int64_t micros) {
    append_double(out, static_cast<double>(micros));
}

ScriptOp op_of(const Charge& charge) {
    switch (charge.op) {
        case ChargeOp::take:
            return ScriptOp::take;
        case ChargeOp::give_back:
            return charge.taken ? ScriptOp::give_back_taken : ScriptOp::give_back;
        case ChargeOp::observe:
            return ScriptOp::observe;
        case ChargeOp::force:
            return ScriptOp::force;
        case ChargeOp::require:
            return ScriptOp::require;
    }
    return ScriptOp::observe;
}

Nanos nanos_of(std::int64_t micros) {
    if (micros >= for_ever || micros > int64_max / nanos_per_micro) {
        return Nanos(int64_max);
    }
    return Nanos(micros * nanos_per_micro);
}

// What the script can count with.
bool is_number(std::int64_t number) {
    return number >= 0 && number <= for_ever;
}

bool read_level(const RespValue* values, Level& level) {
    for (std::size_t i = 0; i < values_per_charge; ++i) {
        if (values[i].kind != RespValue::Kind::integer || !is_number(values[i].integer)) {
            return false;
        }
    }
    if (values[0].integer > static_cast<std::int64_t>(Verdict::never)) {
        return false;
    }
    level.verdict = static_cast<Verdict>(values[0].integer);
    level.limit = static_cast<std::uint64_t>(values[1].integer);
    level.used = static_cast<std::uint64_t>(values[2].integer);
    level.remaining = level.used < level.limit ? level.limit - level.used : 0;
    level.wait = nanos_of(values[3].integer);
    level.next = nanos_of(values[4].integer);
    level.reset = nanos_of(values[5].integer);
    return true;
}

// What it returns has a name: the lease, or the very moment at which a sliding window recorded it.
bool returns_its_own(const Charge& charge, std::uint64_t lease) {
    return charge.op == ChargeOp::give_back &&
           ((charge.limit->kind == LimitKind::concurrency && lease != 0) ||
            (charge.limit->kind == LimitKind::sliding_window && charge.taken.has_value()));
}

bool takes_slot(const Charge& charge) {
    return charge.op == ChargeOp::take && charge.limit->kind == LimitKind::concurrency;
}

}  // namespace

RedisCodec::RedisCodec(const RedisOptions& options)
    : prefix_(options.prefix),
      lease_micros_(static_cast<double>(floor_micros(options.lease.count()))),
      time_from_calls_(options.time_from_calls) {}

std::string RedisCodec::redis_key(std::string_view key, std::size_t rule_bytes) const {
    std::string made = prefix_;
    std::string_view rule = key.substr(0, rule_bytes);
    if (!rule.empty() && static_cast<unsigned char>(rule.front()) == rule.size() - 1) {
        rule.remove_prefix(1);  // the length in front of a policy's limit name
    }
    // For people who look at the keys; the digest alone tells keys apart.
    for (const char c : rule) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '.';
        made += plain ? c : '_';
    }
    made += ':';
    std::array<unsigned char, digest_bytes> digest;
    crypto_generichash(digest.data(), digest.size(),
                       reinterpret_cast<const unsigned char*>(key.data()), key.size(), nullptr, 0);
    std::array<char, digest_digits + 1> digits;
    sodium_bin2base64(digits.data(), digits.size(), digest.data(), digest.size(),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return made.append(digits.data(), digest_digits);
}

void RedisCodec::append_header(const Transaction& transaction, Now now, std::string& blob) const {
    const std::int64_t mono = now.mono.time_since_epoch().count();
    append_byte(blob, time_from_calls_ ? 2 : 1);
    append_micros(blob, floor_micros(mono));
    append_micros(blob, floor_micros(now.wall.time_since_epoch().count()) - epoch_micros);
    append_double(blob, 0);
    append_double(blob, lease_micros_);
    std::array<char, 8> lease;
    std::memcpy(lease.data(), &transaction.lease, lease.size());
    blob.append(lease.data(), lease.size());
}

void RedisCodec::append_charge(const Charge& charge, Now now, std::string& blob, bool& ok) const {
    const std::optional<RedisNumbers> numbers = redis_numbers(charge.limit.entry());
    if (!numbers) {
        ok = false;
        return;
    }
    append_byte(blob, static_cast<std::uint8_t>(op_of(charge)));
    append_double(blob, charge.cost);
    append_byte(blob, numbers->kind);
    append_double(blob, numbers->a);
    append_double(blob, numbers->b);
    append_double(blob, numbers->c);
    const Now taken = charge.taken.value_or(Now{});
    append_micros(blob, floor_micros(taken.mono.time_since_epoch().count()) -
                            (time_from_calls_ ? 0 : epoch_micros));
    append_micros(blob, floor_micros(taken.wall.time_since_epoch().count()) - epoch_micros);
    const std::int64_t mono = floor_micros(now.mono.time_since_epoch().count());
    const std::int64_t since = floor_micros(charge.numbers_since.time_since_epoch().count());
    append_micros(blob, mono - std::min(mono, since));
}

bool RedisCodec::encode(const Transaction& transaction, Now now, RedisCall& call) const {
    const std::span<const Charge> charges = transaction.charges;
    call.command.clear();
    call.undo.clear();
    const bool valid = charges.size() <= max_charges &&
                       std::all_of(charges.begin(), charges.end(), [](const Charge& charge) {
                           return charge.limit && charge.key.size() <= max_key_bytes &&
                                  charge.rule_bytes <= charge.key.size();
                       });
    if (!valid) {
        return false;
    }
    append_resp_count(call.command, charges.size() + 4);
    append_resp_word(call.command, "EVALSHA");
    append_resp_word(call.command, redis_script_sha());
    append_resp_word(call.command, std::to_string(charges.size()));
    std::string blob;
    append_header(transaction, now, blob);
    bool ok = true;
    for (const Charge& charge : charges) {
        append_resp_word(call.command, redis_key(charge.key, charge.rule_bytes));
        append_charge(charge, now, blob, ok);
    }
    append_resp_word(call.command, blob);
    call.not_after_at = call.command.size() - 2 - blob.size() + not_after_offset;
    call.charges = static_cast<std::uint8_t>(charges.size());
    call.asked = now;
    call.repeatable =
        !charges.empty() && std::all_of(charges.begin(), charges.end(), [&](const Charge& charge) {
            return returns_its_own(charge, transaction.lease);
        });
    if (ok && transaction.lease != 0 && std::any_of(charges.begin(), charges.end(), takes_slot)) {
        append_undo(transaction, now, call);
    }
    return ok;
}

void RedisCodec::append_undo(const Transaction& transaction, Now now, RedisCall& call) const {
    std::array<Charge, max_charges> slots;
    std::size_t count = 0;
    for (const Charge& charge : transaction.charges) {
        if (takes_slot(charge)) {
            slots[count] = charge;
            slots[count++].op = ChargeOp::give_back;
        }
    }
    RedisCall undo;
    static_cast<void>(
        encode({.charges = std::span(slots).first(count), .lease = transaction.lease}, now, undo));
    call.undo = std::move(undo.command);
}

void RedisCodec::set_last_moment(RedisCall& call, std::optional<std::int64_t> server_micros) const {
    const double moment =
        server_micros && !time_from_calls_ ? static_cast<double>(*server_micros) : 0;
    std::memcpy(call.command.data() + call.not_after_at, &moment, sizeof moment);
}

void RedisCodec::set_owed(RedisCall& call) const {
    set_last_moment(call, std::nullopt);
    const std::size_t first = call.not_after_at - not_after_offset + header_bytes;
    for (std::size_t i = 0; i < call.charges; ++i) {
        char& op = call.command[first + i * charge_bytes];
        if (op == static_cast<char>(ScriptOp::give_back_taken)) {
            op = static_cast<char>(ScriptOp::give_back_own);
        }
    }
}

RedisCodec::Answer RedisCodec::decode(const RespReply& reply, const RedisCall& call,
                                      Outcome& outcome, std::int64_t& server_micros) const {
    const std::vector<RespValue>& values = reply.values;
    if (!reply.array || values.size() < 2 || values[0].kind != RespValue::Kind::integer ||
        values[1].kind != RespValue::Kind::integer) {
        return Answer::nonsense;
    }
    server_micros = values[1].integer;
    if (!is_number(server_micros) && !time_from_calls_) {
        return Answer::nonsense;
    }
    if (values[0].integer == -1) {
        return Answer::too_late;
    }
    if (values.size() < 2 + values_per_charge * call.charges) {
        return Answer::nonsense;
    }
    for (std::size_t i = 0; i < call.charges; ++i) {
        if (!read_level(&values[2 + values_per_charge * i], outcome.levels[i])) {
            return Answer::nonsense;
        }
    }
    outcome.status = absl::StatusCode::kOk;
    outcome.admitted = values[0].integer == 1;
    outcome.count = call.charges;
    outcome.shared = 0;
    if (time_from_calls_) {
        outcome.at = call.asked;
    } else {
        const Nanos unix_time = nanos_of(server_micros + epoch_micros);
        outcome.at = {Mono(unix_time), Wall(unix_time)};
    }
    return Answer::outcome;
}

std::optional<std::int64_t> RedisCodec::micros_of_time(const RespReply& reply) {
    std::array<std::int64_t, 2> numbers{};
    if (!reply.array || reply.values.size() != numbers.size()) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::string_view text = reply.values[i].text;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), numbers[i]);
        if (read.ec != std::errc{} || numbers[i] < 0 || numbers[i] > int64_max / 4'000'000) {
            return std::nullopt;
        }
    }
    return numbers[0] * 1'000'000 + numbers[1] - epoch_micros;
}

}  // namespace ration
