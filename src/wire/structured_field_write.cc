#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "base/text.h"
#include "base/utf8.h"
#include "wire/structured_field.h"

namespace ration {
namespace {

absl::Status no_text(std::string_view why) {
    return absl::InvalidArgumentError(cat("structured field: ", why));
}

bool in_range(std::int64_t value) {
    return value >= -max_sf_integer && value <= max_sf_integer;
}

// One overload for each type of a bare item.
class Writer {
public:
    explicit Writer(std::string& out) : out_(out) {}

    absl::Status operator()(std::int64_t value) {
        if (!in_range(value)) {
            return no_text("an integer has at most 15 digits");
        }
        append(out_, value);
        return absl::OkStatus();
    }

    absl::Status operator()(const SfDecimal& value) {
        if (!in_range(value.thousandths)) {
            return no_text("a decimal has at most 12 digits before its point");
        }
        std::int64_t size = value.thousandths;
        if (size < 0) {
            out_ += '-';
            size = -size;
        }
        append(out_, size / 1000);
        std::string fraction = std::to_string(1000 + size % 1000);
        fraction[0] = '.';
        while (fraction.size() > 2 && fraction.back() == '0') {
            fraction.pop_back();
        }
        out_ += fraction;
        return absl::OkStatus();
    }

    absl::Status operator()(const std::string& value) {
        if (!is_sf_string(value)) {
            return no_text("a string is printable ASCII");
        }
        write_sf_string(out_, value);
        return absl::OkStatus();
    }

    absl::Status operator()(const SfToken& value) {
        if (!is_sf_token(value.text)) {
            return no_text("not a token");
        }
        out_ += value.text;
        return absl::OkStatus();
    }

    absl::Status operator()(const SfBytes& value) {
        append(out_, cat(':', absl::Base64Escape(value.bytes), ':'));
        return absl::OkStatus();
    }

    absl::Status operator()(bool value) {
        out_ += value ? "?1" : "?0";
        return absl::OkStatus();
    }

    absl::Status operator()(const SfDate& value) {
        out_ += '@';
        return (*this)(value.seconds);
    }

    absl::Status operator()(const SfDisplayString& value) {
        if (!is_utf8(value.utf8)) {
            return no_text("a display string is UTF-8");
        }
        out_ += "%\"";
        for (const char c : value.utf8) {
            constexpr std::string_view digits = "0123456789abcdef";
            const auto byte = static_cast<unsigned char>(c);
            if (c == '%' || c == '"' || byte < 0x20 || byte > 0x7e) {
                out_ += {'%', digits[byte >> 4], digits[byte & 15]};
            } else {
                out_ += c;
            }
        }
        out_ += '"';
        return absl::OkStatus();
    }

    absl::Status key(std::string_view name) {
        if (!is_sf_key(name)) {
            return no_text(cat("'", name, "' is not a key"));
        }
        out_ += name;
        return absl::OkStatus();
    }

    absl::Status parameters(const SfParameters& parameters) {
        for (const auto& [name, value] : parameters) {
            out_ += ';';
            if (absl::Status status = key(name); !status.ok()) {
                return status;
            }
            if (value == SfBareItem(true)) {
                continue;
            }
            out_ += '=';
            if (absl::Status status = std::visit(*this, value); !status.ok()) {
                return status;
            }
        }
        return absl::OkStatus();
    }

    absl::Status operator()(const SfItem& item) {
        if (absl::Status status = std::visit(*this, item.value); !status.ok()) {
            return status;
        }
        return parameters(item.parameters);
    }

    absl::Status operator()(const SfInnerList& list) {
        out_ += '(';
        for (const SfItem& item : list.items) {
            out_ += &item == list.items.data() ? "" : " ";
            if (absl::Status status = (*this)(item); !status.ok()) {
                return status;
            }
        }
        out_ += ')';
        return parameters(list.parameters);
    }

private:
    std::string& out_;
};

}  // namespace

bool is_sf_string(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
}

absl::StatusOr<std::string> serialize_sf_item(const SfItem& item) {
    std::string out;
    absl::Status status = Writer(out)(item);
    return status.ok() ? absl::StatusOr<std::string>(std::move(out)) : status;
}

absl::StatusOr<std::string> serialize_sf_list(const SfList& list) {
    std::string out;
    Writer writer(out);
    for (const SfMember& member : list) {
        out += out.empty() ? "" : ", ";
        if (absl::Status status = std::visit(writer, member); !status.ok()) {
            return status;
        }
    }
    return out;
}

absl::StatusOr<std::string> serialize_sf_dictionary(const SfDictionary& dictionary) {
    std::string out;
    Writer writer(out);
    for (const auto& [name, member] : dictionary) {
        out += out.empty() ? "" : ", ";
        if (absl::Status status = writer.key(name); !status.ok()) {
            return status;
        }
        // A true item is its key alone.
        const auto* item = std::get_if<SfItem>(&member);
        const bool bare = item != nullptr && item->value == SfBareItem(true);
        out += bare ? "" : "=";
        absl::Status status =
            bare ? writer.parameters(item->parameters) : std::visit(writer, member);
        if (!status.ok()) {
            return status;
        }
    }
    return out;
}

}  // namespace ration
