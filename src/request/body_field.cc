#include "request/body_field.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "request/header.h"

namespace ration {

namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::string_view form_type = "application/x-www-form-urlencoded";

std::string_view unpadded(std::string_view text) {
    const std::size_t first = text.find_first_not_of(blanks);
    return first == std::string_view::npos
               ? std::string_view()
               : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// What was found under the name.
struct Found {
    int times = 0;
    bool unclear = false;
    std::string value;
};

// Listens for one member of the top level.
class MemberListener : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit MemberListener(std::string_view name) : name_(name) {}

    bool null() override { return skip(false); }
    bool boolean(bool) override { return skip(true); }
    bool number_integer(number_integer_t n) override { return take(std::to_string(n)); }
    bool number_unsigned(number_unsigned_t n) override { return take(std::to_string(n)); }
    bool number_float(number_float_t, const string_t& text) override { return take(text); }
    bool string(string_t& text) override { return take(text); }
    bool binary(binary_t&) override { return false; }
    bool key(string_t& name) override {
        wanted_ = depth_ == 1 && name == name_;
        return true;
    }
    bool start_object(std::size_t) override { return open(); }
    bool start_array(std::size_t) override { return depth_ != 0 && open(); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
        return false;
    }

    Found found;

private:
    bool take(std::string text) {
        if (wanted_) {
            ++found.times;
            found.value = std::move(text);
            wanted_ = false;
        }
        return depth_ != 0;
    }
    bool skip(bool unclear) {
        found.unclear = found.unclear || (wanted_ && unclear);
        wanted_ = false;
        return depth_ != 0;
    }
    bool open() {
        skip(true);
        ++depth_;
        return true;
    }
    bool close() {
        --depth_;
        return true;
    }

    std::string_view name_;
    std::size_t depth_ = 0;
    bool wanted_ = false;
};

int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

std::string form_decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escape = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                            hex_digit(text[i + 2]) >= 0;
        if (escape) {
            out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        } else {
            out += text[i] == '+' ? ' ' : text[i];
        }
    }
    return out;
}

Found in_form(std::string_view body, std::string_view name) {
    Found found;
    while (!body.empty()) {
        const std::size_t end = body.find('&');
        const std::string_view pair = body.substr(0, end);
        body.remove_prefix(end == std::string_view::npos ? body.size() : end + 1);
        const std::size_t equals = pair.find('=');
        if (form_decoded(pair.substr(0, equals)) == name) {
            ++found.times;
            found.value = equals == std::string_view::npos ? std::string()
                                                           : form_decoded(pair.substr(equals + 1));
        }
    }
    return found;
}

bool is_form(std::string_view content_type) {
    return equal_ignoring_case(unpadded(content_type.substr(0, content_type.find(';'))), form_type);
}

}  // namespace

std::optional<std::string_view> body_field(const BodyView& body, std::string_view name,
                                           std::span<char> room) {
    const std::string_view text = unpadded(body.body);
    if (text.empty()) {
        return std::nullopt;
    }
    MemberListener members(name);
    Found found;
    if (nlohmann::json::sax_parse(text, &members)) {
        found = std::move(members.found);
    } else if (is_form(body.content_type)) {
        found = in_form(text, name);
    } else {
        return unclear_field;
    }
    if (found.times == 0 && !found.unclear) {
        return std::nullopt;
    }
    const std::string_view value = unpadded(found.value);
    if (found.unclear || found.times > 1 || value.size() > max_body_field_bytes) {
        return unclear_field;
    }
    std::transform(value.begin(), value.end(), room.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return std::string_view(room.data(), value.size());
}

}  // namespace ration
