// A kept key is the rule's name and each part, separated by tabs; a tab, a percent sign and every
// other control character of a part is percent-encoded, so the parts can be told apart again.
#include "engine/block_book.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "policy/key.h"
#include "policy/reader.h"
#include "request/address.h"

namespace ration {

namespace {

constexpr std::string_view hex = "0123456789ABCDEF";

std::string encoded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte >= 0x7f || c == '%') {
            out += {'%', hex[byte >> 4], hex[byte & 15]};
        } else {
            out += c;
        }
    }
    return out;
}

std::string decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::size_t high = i + 2 < text.size() ? hex.find(text[i + 1]) : hex.npos;
        const std::size_t low = i + 2 < text.size() ? hex.find(text[i + 2]) : hex.npos;
        if (text[i] == '%' && high != hex.npos && low != hex.npos) {
            out += static_cast<char>(high * 16 + low);
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

const StrikeRule* rule_named(const Policy& policy, std::string_view name) {
    const auto found = std::find_if(policy.strikes.begin(), policy.strikes.end(),
                                    [&](const StrikeRule& rule) { return rule.name == name; });
    return found == policy.strikes.end() ? nullptr : &*found;
}

// The state of a subject, when it has as many values as the rule's key has parts.
std::optional<StrikeKeys> keys_of(const Policy& policy, const StrikeRule& rule,
                                  const std::vector<std::string>& subject) {
    const std::vector<Selector>& key = policy.limits[rule.block].key;
    if (key.size() != subject.size()) {
        return std::nullopt;
    }
    std::vector<std::string> values;
    for (std::size_t i = 0; i < key.size(); ++i) {
        values.push_back(part_value(policy, key[i], subject[i]));
    }
    const std::vector<std::string_view> parts(values.begin(), values.end());
    return StrikeKeys(policy, rule, parts);
}

}  // namespace

std::string part_text(const Selector& selector, std::string_view value) {
    if (selector.source != Selector::Source::address) {
        return encoded(value);
    }
    IpAddress address;
    if (value.size() != 4 && value.size() != address.bytes.size()) {
        return "unix";
    }
    address.v4 = value.size() == 4;
    std::copy(value.begin(), value.end(), address.bytes.begin());
    std::array<char, 48> buffer;
    return std::string(address.text(buffer));
}

std::string part_value(const Policy& policy, const Selector& selector, std::string_view text) {
    if (selector.source != Selector::Source::address) {
        return decoded(text);
    }
    const auto parsed = IpAddress::parse(text.substr(0, text.find('/')));
    if (!parsed.has_value()) {
        return {};
    }
    const IpAddress cut =
        parsed->cut(parsed->v4 ? policy.address.ipv4_prefix : policy.address.ipv6_prefix);
    const std::size_t size = cut.v4 ? 4 : cut.bytes.size();
    return {cut.bytes.begin(), cut.bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}

void BlockBook::block_begun(const BlockBegun& begun) {
    ListedBlock block{.rule = begun.rule.name,
                      .subject = {},
                      .level = begun.level,
                      .until = begun.until,
                      .forget_at = begun.forget_at};
    for (std::size_t i = 0; i < begun.parts.size(); ++i) {
        block.subject.push_back(part_text(begun.limit.key[i], begun.parts[i]));
    }
    write_down(block, begun.at.wall);
    if (store_ != nullptr) {
        store_->keep({kept_key(block), block.until, block.level, block.forget_at});
    }
}

std::string BlockBook::kept_key(const ListedBlock& block) {
    std::string key = block.rule;
    for (const std::string& part : block.subject) {
        key += cat("\t", part);
    }
    return key;
}

ListedBlock BlockBook::read(const Block& kept) {
    const std::vector<std::string_view> pieces = split_text(kept.key, '\t');
    return {.rule = std::string(pieces[0]),
            .subject = {pieces.begin() + 1, pieces.end()},
            .level = kept.level,
            .until = kept.until,
            .forget_at = kept.forget_at};
}

void BlockBook::write_down(const ListedBlock& block, Wall now) {
    const std::lock_guard lock(mutex_);
    if (blocks_.size() >= most_) {
        std::erase_if(blocks_, [&](const auto& entry) { return entry.second.until <= now; });
    }
    if (blocks_.size() < most_) {
        blocks_[kept_key(block)] = block;
    }
}

std::optional<std::size_t> BlockBook::restore(std::span<const Block> kept, Now now) {
    const std::shared_ptr<const Snapshot> rules = engine_.rules();
    std::vector<KeptBlock> batch;
    std::size_t lacked = 0;
    bool answered = true;
    const auto put = [&] {
        const std::optional<std::size_t> some = put_back(engine_.counters(), batch, now);
        answered = answered && some.has_value();
        lacked += some.value_or(0);
        batch.clear();
    };
    for (const Block& one : kept) {
        const ListedBlock block = read(one);
        const StrikeRule* rule = rule_named(*rules->policy, block.rule);
        const auto keys =
            rule != nullptr ? keys_of(*rules->policy, *rule, block.subject) : std::nullopt;
        if (!keys || block.forget_at <= now.wall) {
            continue;
        }
        if (block.until > now.wall) {
            write_down(block, now.wall);
        }
        batch.push_back({*keys, block.level, block.until, block.forget_at});
        if (batch.size() == max_put_back) {
            put();
        }
    }
    put();
    return answered ? std::optional(lacked) : std::nullopt;
}

std::vector<Block> BlockBook::known() const {
    const std::lock_guard lock(mutex_);
    std::vector<Block> blocks;
    for (const auto& [key, block] : blocks_) {
        blocks.push_back({key, block.until, block.level, block.forget_at});
    }
    return blocks;
}

std::vector<ListedBlock> BlockBook::list(std::size_t limit, Wall now) const {
    const std::lock_guard lock(mutex_);
    std::vector<ListedBlock> listed;
    for (const auto& [key, block] : blocks_) {
        if (block.until > now && listed.size() < limit) {
            listed.push_back(block);
        }
    }
    return listed;
}

std::optional<std::size_t> BlockBook::lift(std::string_view subject, std::string_view rule,
                                           Now now) {
    const std::shared_ptr<const Snapshot> rules = engine_.rules();
    std::size_t lifted = 0;
    for (const StrikeRule& one : rules->policy->strikes) {
        if (!rule.empty() && one.name != rule) {
            continue;
        }
        for (const auto& [kept, block] : named(*rules->policy, one, subject)) {
            if (const auto keys = keys_of(*rules->policy, one, block.subject)) {
                const bool blocked = keys->blocked(engine_.counters(), now) > Nanos(0);
                if (!keys->lift(engine_.counters(), now)) {
                    return std::nullopt;
                }
                lifted += blocked ? 1U : 0U;
                strike_off(kept);
            }
        }
    }
    return lifted;
}

// The subject by itself, where it is the whole key, and every listed block that names it.
BlockBook::Named BlockBook::named(const Policy& policy, const StrikeRule& rule,
                                  std::string_view subject) const {
    const std::vector<Selector>& key = policy.limits[rule.block].key;
    Named found;
    for (std::size_t i = 0; i < key.size(); ++i) {
        const bool address = key[i].source == Selector::Source::address;
        const std::string text = part_text(
            key[i], part_value(policy, key[i], address ? std::string(subject) : encoded(subject)));
        if (key.size() == 1) {
            ListedBlock whole{.rule = rule.name, .subject = {text}};
            found.emplace(kept_key(whole), whole);
        }
        const std::lock_guard lock(mutex_);
        for (const auto& [kept, block] : blocks_) {
            if (block.rule == rule.name && block.subject.size() == key.size() &&
                block.subject[i] == text) {
                found.emplace(kept, block);
            }
        }
    }
    return found;
}

void BlockBook::strike_off(const std::string& key) {
    {
        const std::lock_guard lock(mutex_);
        blocks_.erase(key);
    }
    if (store_ != nullptr) {
        store_->drop(key);
    }
}

}  // namespace ration
