// Structured field values (RFC 9651): a strict parser and the serialiser.
//
// A field that breaks the grammar anywhere is an error as a whole, as the RFC asks; nothing is
// repaired. What is written is the one canonical text of a value. Pure; the parser allocates,
// `write_sf_string` does not.
//
//   auto list = parse_sf_list("\"burst\";q=100;w=60, \"daily\";q=1000;w=86400");
//   if (!list.ok()) ignore_the_field();
//   serialize_sf_list(*list) == the same text
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace ration {

inline constexpr std::size_t max_sf_bytes = 65536;   // of one field value
inline constexpr std::size_t max_sf_members = 1024;  // of a list or dictionary (RFC 9651 3.1, 3.2)
inline constexpr std::size_t max_sf_parameters = 256;  // of one item, and items of an inner list
inline constexpr std::int64_t max_sf_integer = 999'999'999'999'999;

struct SfDecimal {
    std::int64_t thousandths = 0;
    friend bool operator==(const SfDecimal&, const SfDecimal&) = default;
};
struct SfToken {
    std::string text;
    friend bool operator==(const SfToken&, const SfToken&) = default;
};
struct SfBytes {
    std::string bytes;
    friend bool operator==(const SfBytes&, const SfBytes&) = default;
};
struct SfDate {
    std::int64_t seconds = 0;  // since the epoch
    friend bool operator==(const SfDate&, const SfDate&) = default;
};
struct SfDisplayString {
    std::string utf8;
    friend bool operator==(const SfDisplayString&, const SfDisplayString&) = default;
};
// A std::int64_t is an Integer, a std::string a String.
using SfBareItem = std::variant<std::int64_t, SfDecimal, std::string, SfToken, SfBytes, bool,
                                SfDate, SfDisplayString>;
using SfParameters = std::vector<std::pair<std::string, SfBareItem>>;  // in order, keys differ

struct SfItem {
    SfBareItem value;
    SfParameters parameters;
    friend bool operator==(const SfItem&, const SfItem&) = default;
};
struct SfInnerList {
    std::vector<SfItem> items;
    SfParameters parameters;
    friend bool operator==(const SfInnerList&, const SfInnerList&) = default;
};
using SfMember = std::variant<SfItem, SfInnerList>;
using SfList = std::vector<SfMember>;
using SfDictionary = std::vector<std::pair<std::string, SfMember>>;  // in order, keys differ

// InvalidArgument with the place and the reason. Of a key given twice the last value stands.
[[nodiscard]] absl::StatusOr<SfItem> parse_sf_item(std::string_view text);
[[nodiscard]] absl::StatusOr<SfList> parse_sf_list(std::string_view text);
[[nodiscard]] absl::StatusOr<SfDictionary> parse_sf_dictionary(std::string_view text);

// InvalidArgument when a value has no text: a number out of range, a character that a String, Token
// or key cannot hold. An empty list or dictionary gives "": such a field is not sent.
[[nodiscard]] absl::StatusOr<std::string> serialize_sf_item(const SfItem& item);
[[nodiscard]] absl::StatusOr<std::string> serialize_sf_list(const SfList& list);
[[nodiscard]] absl::StatusOr<std::string> serialize_sf_dictionary(const SfDictionary& dictionary);

// What the types can hold.
[[nodiscard]] bool is_sf_string(std::string_view text);  // printable ASCII
[[nodiscard]] bool is_sf_token(std::string_view text);
[[nodiscard]] bool is_sf_key(std::string_view text);

// `text`, for which `is_sf_string` holds, in quotes. `Out` has push_back.
template <typename Out>
void write_sf_string(Out& out, std::string_view text) {
    out.push_back('"');
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out.push_back('\\');
        }
        out.push_back(c);
    }
    out.push_back('"');
}

}  // namespace ration
