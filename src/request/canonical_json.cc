// A JSON text's value in one spelling: members sorted by name, no blanks, strings escaped one way,
// numbers as sign, digits without outer zeros and a power of ten. Two texts have the same spelling
// exactly when they have the same value.
//
// The parser's events build the spelling from the inside out; numbers are taken from their text,
// since a double would make different numbers equal.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "request/idempotency.h"

namespace ration {

namespace {

// A decimal number's value: [-]digits e exponent, digits without outer zeros; "0" for zero.
std::optional<std::string> canonical_number(std::string_view text) {
    const bool negative = text.starts_with('-');
    text.remove_prefix(negative ? 1 : 0);
    std::int64_t exponent = 0;
    const std::size_t mark = text.find_first_of("eE");
    if (mark != std::string_view::npos) {
        std::string_view power = text.substr(mark + 1);
        power.remove_prefix(power.starts_with('+') ? 1 : 0);
        const auto [end, error] =
            std::from_chars(power.data(), power.data() + power.size(), exponent);
        if (error != std::errc() || exponent > 1'000'000'000'000'000 ||
            exponent < -1'000'000'000'000'000) {
            return std::nullopt;
        }
        text = text.substr(0, mark);
    }
    std::string digits(text);
    const std::size_t dot = digits.find('.');
    if (dot != std::string::npos) {
        exponent -= static_cast<std::int64_t>(digits.size() - dot - 1);
        digits.erase(dot, 1);
    }
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
    while (digits.ends_with('0')) {
        digits.pop_back();
        ++exponent;
    }
    if (digits.empty()) {
        return "0";
    }
    return (negative ? "-" : "") + digits + "e" + std::to_string(exponent);
}

std::string canonical_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += c;  // control characters stand as they are: this spelling is only compared
    }
    return out + "\"";
}

class Canonicaliser : public nlohmann::json_sax<nlohmann::json> {
public:
    bool null() override { return value("null"); }
    bool boolean(bool b) override { return value(b ? "true" : "false"); }
    bool number_integer(number_integer_t n) override { return number(std::to_string(n)); }
    bool number_unsigned(number_unsigned_t n) override { return number(std::to_string(n)); }
    bool number_float(number_float_t, const string_t& text) override { return number(text); }
    bool string(string_t& text) override { return value(canonical_string(text)); }
    bool binary(binary_t&) override { return false; }
    bool key(string_t& name) override {
        open_.back().members.emplace_back(canonical_string(name), "");
        return true;
    }
    bool start_object(std::size_t) override { return start(true); }
    bool start_array(std::size_t) override { return start(false); }
    bool end_object() override {
        std::vector<std::pair<std::string, std::string>>& members = open_.back().members;
        std::sort(members.begin(), members.end());
        const auto repeated =
            std::adjacent_find(members.begin(), members.end(),
                               [](const auto& a, const auto& b) { return a.first == b.first; });
        if (repeated != members.end()) {
            return false;
        }
        std::string text = "{";
        for (const auto& [name, member] : members) {
            text.append(text.size() > 1 ? "," : "").append(name).append(":").append(member);
        }
        return end(text + "}");
    }
    bool end_array() override {
        std::string text = "[";
        for (const auto& [name, element] : open_.back().members) {
            text.append(text.size() > 1 ? "," : "").append(element);
        }
        return end(text + "]");
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
        return false;
    }

    std::string result;

private:
    struct Open {
        bool object = false;
        std::vector<std::pair<std::string, std::string>> members;  // arrays: empty names
    };

    bool start(bool object) {
        open_.push_back({object, {}});
        return open_.size() <= max_json_depth;
    }
    bool end(std::string text) {
        open_.pop_back();
        return value(std::move(text));
    }
    bool number(std::string_view text) {
        std::optional<std::string> canonical = canonical_number(text);
        return canonical && value(std::move(*canonical));
    }
    bool value(std::string text) {
        if (open_.empty()) {
            result = std::move(text);
        } else if (open_.back().object) {
            open_.back().members.back().second = std::move(text);
        } else {
            open_.back().members.emplace_back("", std::move(text));
        }
        return true;
    }

    std::vector<Open> open_;
};

}  // namespace

std::optional<std::string> canonical_json(std::string_view text) {
    Canonicaliser canonicaliser;
    if (!nlohmann::json::sax_parse(text, &canonicaliser)) {
        return std::nullopt;
    }
    return std::move(canonicaliser.result);
}

}  // namespace ration
