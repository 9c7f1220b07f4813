// One field of a request's body, as a name to count by: the e-mail address of a sign-in.
//
// JSON: a member of the top level whose value is a string or a number. Forms (RFC 1866,
// application/x-www-form-urlencoded): a field. A body that is a JSON object is read as one whatever
// its Content-Type says, since servers do so too. The value is compared without blanks around it
// and without ASCII case, so spellings of one name are one name.
//
// Pure; allocates while parsing. Thread rule: call from anywhere. The view points into `room`.
//
//   std::array<char, ration::max_body_field_bytes> room;
//   const auto email = ration::body_field({.body = body, .content_type = type}, "email", room);
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace ration {

inline constexpr std::size_t max_body_field_bytes = 256;

// What stands for every value that nobody can be sure of: a body that cannot be read, the same
// field twice, a list or an object, more than `max_body_field_bytes`. One value for all of them, so
// that nobody gets a name of their own by spelling in a way that only the API understands.
inline constexpr std::string_view unclear_field = "\xff unclear";

struct BodyView {
    std::string_view body;
    std::string_view content_type;  // empty: none was sent
};

// nullopt: the body is empty or can be read and has no such field. `room` is at least
// max_body_field_bytes long.
[[nodiscard]] std::optional<std::string_view> body_field(const BodyView& body,
                                                         std::string_view name,
                                                         std::span<char> room);

}  // namespace ration
