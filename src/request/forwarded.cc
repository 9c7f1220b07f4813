// A line is evidence only as a whole: where a client's part ends and a proxy's begins cannot be
// told once a quote is open. So the line is read from its start to its end first, keeping the last
// `max_hops` nodes in a ring, and handed out from the right afterwards.
#include "request/forwarded.h"

#include <algorithm>
#include <span>

#include "absl/strings/ascii.h"
#include "wire/token.h"

namespace ration {
namespace {

constexpr std::size_t max_node_bytes = 256;  // longer obfuscated names are nobody's address

bool is_obfuscated(std::string_view text) {
    return text.size() >= 2 && text.front() == '_' &&
           std::all_of(text.begin() + 1, text.end(), [](char c) {
               return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ||
                      c == '-';
           });
}

// RFC 7239 section 6. "unknown" and obfuscated nodes say no address, like anything unreadable.
std::optional<IpAddress> parse_node(std::string_view node) {
    std::string_view address = node;
    std::string_view port;
    bool has_port = false;
    if (node.starts_with('[')) {
        const std::size_t close = node.find(']');
        if (close == std::string_view::npos) {
            return std::nullopt;
        }
        address = node.substr(1, close - 1);
        port = node.substr(close + 1);
        has_port = !port.empty();
        if (has_port && port.front() != ':') {
            return std::nullopt;
        }
        port = port.substr(has_port ? 1 : 0);
    } else if (const std::size_t colon = node.find(':'); colon != std::string_view::npos) {
        address = node.substr(0, colon);
        port = node.substr(colon + 1);
        has_port = true;
    }
    const bool bracketed = node.starts_with('[');
    if ((has_port && !is_port(port) && !is_obfuscated(port)) ||
        bracketed != (address.find(':') != std::string_view::npos)) {
        return std::nullopt;
    }
    return IpAddress::parse(address);
}

class LineReader {
public:
    explicit LineReader(std::string_view line) : rest_(line) {}

    std::optional<ForwardedLine> read() {
        skip_blanks();
        while (!rest_.empty()) {
            if (!take(',') && !element()) {
                return std::nullopt;
            }
            skip_blanks();
        }
        return nearest_first();
    }

private:
    // What one element said so far.
    struct Element {
        std::array<std::string_view, max_forwarded_pairs> names;
        std::size_t count = 0;
        std::optional<IpAddress> node;
    };

    // Up to the next comma, which is left, or the end.
    bool element() {
        Element element;
        while (true) {
            skip_blanks();
            if (!at_end_of_pair() && !pair(element)) {
                return false;
            }
            skip_blanks();
            if (take(';')) {
                continue;
            }
            if (!rest_.empty() && rest_.front() != ',') {
                return false;
            }
            ring_[seen_++ % max_hops] = element.node;
            return true;
        }
    }

    bool pair(Element& element) {
        const std::string_view name = token();
        if (name.empty() || element.count == max_forwarded_pairs || !take('=')) {
            return false;
        }
        const auto names = std::span(element.names).first(element.count);
        if (std::any_of(names.begin(), names.end(), [name](std::string_view other) {
                return equal_ignoring_case(other, name);
            })) {
            return false;
        }
        element.names[element.count++] = name;
        const auto text = value();
        if (text && equal_ignoring_case(name, "for")) {
            element.node = parse_node(*text);
        }
        return text.has_value();
    }

    // A token or quoted-string with its escapes undone; good until the next call.
    std::optional<std::string_view> value() {
        if (!take('"')) {
            const std::string_view text = token();
            return text.empty() ? std::nullopt : std::optional(text);
        }
        std::size_t size = 0;
        while (!rest_.empty()) {
            char c = rest_.front();
            rest_.remove_prefix(1);
            if (c == '"') {
                // What does not fit is no address: an empty node says the same.
                return std::string_view(buffer_.data(), size > buffer_.size() ? 0 : size);
            }
            if (c == '\\') {
                if (rest_.empty()) {
                    return std::nullopt;
                }
                c = rest_.front();
                rest_.remove_prefix(1);
            }
            if (absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\t') {
                return std::nullopt;
            }
            if (size < buffer_.size()) {
                buffer_[size] = c;
            }
            ++size;
        }
        return std::nullopt;
    }

    std::string_view token() {
        const auto* end = std::find_if_not(rest_.begin(), rest_.end(), is_token_char);
        const std::string_view text =
            rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
        rest_.remove_prefix(text.size());
        return text;
    }

    [[nodiscard]] bool at_end_of_pair() const {
        return rest_.empty() || rest_.front() == ';' || rest_.front() == ',';
    }

    bool take(char c) {
        if (!rest_.starts_with(c)) {
            return false;
        }
        rest_.remove_prefix(1);
        return true;
    }

    void skip_blanks() {
        rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
    }

    [[nodiscard]] ForwardedLine nearest_first() const {
        ForwardedLine line;
        line.count = std::min(seen_, max_hops);
        for (std::size_t i = 0; i < line.count; ++i) {
            line.hops[i] = ring_[(seen_ - 1 - i) % max_hops];
        }
        return line;
    }

    std::string_view rest_;
    std::array<std::optional<IpAddress>, max_hops> ring_;
    std::size_t seen_ = 0;
    std::array<char, max_node_bytes> buffer_{};
};

}  // namespace

bool is_port(std::string_view text) {
    unsigned value = 0;
    for (const char c : text) {
        if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) {
            return false;
        }
        value = value * 10 + static_cast<unsigned>(c - '0');
    }
    return !text.empty() && text.size() <= 5 && value <= 65535;
}

std::optional<ForwardedLine> parse_forwarded(std::string_view line) {
    return LineReader(line).read();
}

}  // namespace ration
