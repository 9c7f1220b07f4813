// RESP2, the Redis protocol: commands written, replies read.
//
// A reply is one value, or a flat array of values; anything deeper is malformed for us. Reading is
// incremental: give it all bytes that are there, and it says whether a whole reply is among them.
// Pure; thread rule: share nothing, call from anywhere. Ownership: views of a reply point into the
// bytes given. Bounds: max_resp_bulk and max_resp_elements; past them a reply is malformed.
//
//   std::string out;
//   append_resp_command(out, {"GET", "key"});
//   RespReply reply;
//   if (parse_resp(in, reply, used) == RespRead::complete) { ...; in.remove_prefix(used); }
//
// Source: "Redis serialization protocol specification" (redis.io).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace ration {

inline constexpr std::int64_t max_resp_bulk = 1 << 20;      // bytes
inline constexpr std::int64_t max_resp_elements = 1 << 12;  // of an array
inline constexpr std::size_t max_resp_line = 1 << 16;       // bytes of a status, error or number

struct RespValue {
    enum class Kind : std::uint8_t { status, error, integer, bulk, null };
    Kind kind = Kind::null;
    std::string_view text;     // status, error (without the sign), bulk
    std::int64_t integer = 0;  // integer
};

struct RespReply {
    bool array = false;
    std::vector<RespValue> values;  // exactly one unless it is an array

    [[nodiscard]] bool is(RespValue::Kind kind) const {
        return !array && values.size() == 1 && values.front().kind == kind;
    }
    [[nodiscard]] bool is_error() const { return is(RespValue::Kind::error); }
};

enum class RespRead : std::uint8_t { complete, more, malformed };

// `complete`: `reply` is the first reply and `used` its length. Else `used` is 0.
[[nodiscard]] RespRead parse_resp(std::string_view bytes, RespReply& reply, std::size_t& used);

// "*N\r\n" of a command of N words, and one word of it.
void append_resp_count(std::string& out, std::size_t words);
void append_resp_word(std::string& out, std::string_view word);
void append_resp_command(std::string& out, std::initializer_list<std::string_view> words);

}  // namespace ration
