// A JSON text's value in one spelling: members sorted by name, no blanks, strings escaped one way,
// numbers as sign, digits without outer zeros and a power of ten. Two texts have the same spelling
// exactly when they have the same value.
//
// The parser's events write the spelling into one text. Members are put in order when their object
// ends; nothing is copied while they come in order. Numbers are taken out of the text before the
// parser sees it, each replaced by a 0: it would make doubles of them, in which different numbers
// are equal and large ones have no place.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "request/idempotency.h"

namespace ration {

namespace {

// RFC 8259 section 6: -? whole (. digits)? ([eE] [+-]? digits)?
bool is_number(std::string_view text) {
    const auto digits = [&] {
        const std::size_t size = std::min(text.find_first_not_of("0123456789"), text.size());
        text.remove_prefix(size);
        return size;
    };
    text.remove_prefix(text.starts_with('-') ? 1 : 0);
    const bool zero = text.starts_with('0');
    const std::size_t whole = digits();
    if (whole == 0 || (zero && whole > 1)) {
        return false;
    }
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        if (digits() == 0) {
            return false;
        }
    }
    if (text.starts_with('e') || text.starts_with('E')) {
        text.remove_prefix(1);
        text.remove_prefix(text.starts_with('+') || text.starts_with('-') ? 1 : 0);
        if (digits() == 0) {
            return false;
        }
    }
    return text.empty();
}

// The value of a number: [-]digits e exponent, digits without outer zeros; "0" for zero.
std::optional<std::string> canonical_number(std::string_view text) {
    if (!is_number(text)) {
        return std::nullopt;
    }
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

// A text with a 0 in the place of each number, and what stood there, in order: perhaps no numbers.
struct WithoutNumbers {
    std::string text;
    std::vector<std::string_view> numbers;
};

WithoutNumbers take_numbers(std::string_view text) {
    WithoutNumbers rest;
    rest.text.reserve(text.size());
    bool quoted = false;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (!quoted && (c == '-' || (c >= '0' && c <= '9'))) {
            const std::size_t end =
                std::min(text.find_first_not_of("+-.0123456789eE", i), text.size());
            rest.numbers.push_back(text.substr(i, end - i));
            rest.text += '0';
            i = end;
            continue;
        }
        const std::size_t size =
            quoted && c == '\\' ? std::min<std::size_t>(2, text.size() - i) : 1;
        rest.text.append(text, i, size);
        i += size;
        quoted = quoted != (c == '"');
    }
    return rest;
}

class Canonicaliser : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit Canonicaliser(std::vector<std::string_view> numbers) : numbers_(std::move(numbers)) {}

    bool null() override { return value("null"); }
    bool boolean(bool b) override { return value(b ? "true" : "false"); }
    bool number_integer(number_integer_t) override { return number(); }
    bool number_unsigned(number_unsigned_t) override { return number(); }
    bool number_float(number_float_t, const string_t&) override { return number(); }
    bool string(string_t& text) override {
        begin_value();
        put_string(text);
        return true;
    }
    bool binary(binary_t&) override { return false; }
    bool key(string_t& name) override {
        Open& object = open_.back();
        if (!object.members.empty()) {
            out_ += ',';
        }
        object.members.push_back({out_.size(), 0});
        put_string(name);
        object.members.back().name_end = out_.size();
        out_ += ':';
        return true;
    }
    bool start_object(std::size_t) override { return start('{'); }
    bool start_array(std::size_t) override { return start('['); }
    bool end_object() override {
        const Open object = std::move(open_.back());
        open_.pop_back();
        const bool distinct = put_in_order(object);
        out_ += '}';
        return distinct;
    }
    bool end_array() override {
        open_.pop_back();
        out_ += ']';
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
        return false;
    }

    std::string take() { return std::move(out_); }

private:
    struct Member {
        std::size_t begin = 0;  // of its name in `out_`
        std::size_t name_end = 0;
    };
    struct Open {
        bool object = false;
        bool any = false;  // arrays: an element is there
        std::vector<Member> members;
    };

    bool start(char bracket) {
        begin_value();
        open_.push_back({bracket == '{', false, {}});
        out_ += bracket;
        return open_.size() <= max_json_depth;
    }
    void begin_value() {
        if (!open_.empty() && !open_.back().object && std::exchange(open_.back().any, true)) {
            out_ += ',';
        }
    }
    bool value(std::string_view text) {
        begin_value();
        out_ += text;
        return true;
    }
    bool number() {
        if (next_number_ == numbers_.size()) {
            return false;
        }
        const std::optional<std::string> canonical = canonical_number(numbers_[next_number_++]);
        return canonical && value(*canonical);
    }
    void put_string(std::string_view text) {
        out_ += '"';
        for (const char c : text) {
            if (c == '"' || c == '\\') {
                out_ += '\\';
            }
            out_ += c;  // control characters stand as they are: this spelling is only compared
        }
        out_ += '"';
    }
    // Of an object that is complete but for its bracket. False: a name is there twice.
    bool put_in_order(const Open& object) {
        const std::vector<Member>& members = object.members;
        const auto name = [&](std::size_t i) {
            return std::string_view(out_).substr(members[i].begin,
                                                 members[i].name_end - members[i].begin);
        };
        std::vector<std::size_t> order(members.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const auto before = [&](std::size_t a, std::size_t b) { return name(a) < name(b); };
        const bool ordered = std::is_sorted(order.begin(), order.end(), before);
        if (!ordered) {
            std::sort(order.begin(), order.end(), before);
        }
        for (std::size_t i = 1; i < order.size(); ++i) {
            if (name(order[i - 1]) == name(order[i])) {
                return false;
            }
        }
        if (ordered) {
            return true;
        }
        std::string sorted;
        sorted.reserve(out_.size() - members.front().begin);
        for (const std::size_t i : order) {
            const std::size_t end = i + 1 < members.size() ? members[i + 1].begin - 1 : out_.size();
            sorted.append(sorted.empty() ? "" : ",");
            sorted.append(out_, members[i].begin, end - members[i].begin);
        }
        out_.replace(members.front().begin, std::string::npos, sorted);
        return true;
    }

    std::vector<std::string_view> numbers_;
    std::size_t next_number_ = 0;
    std::string out_;
    std::vector<Open> open_;
};

}  // namespace

std::optional<std::string> canonical_json(std::string_view text) {
    WithoutNumbers rest = take_numbers(text);
    Canonicaliser canonicaliser(std::move(rest.numbers));
    if (!nlohmann::json::sax_parse(rest.text, &canonicaliser)) {
        return std::nullopt;
    }
    return canonicaliser.take();
}

}  // namespace ration
