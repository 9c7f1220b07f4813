// Lines of a stream, one at a time and of bounded length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>

namespace ration {

enum class LineRead : std::uint8_t { line, end, too_long };

// The next line without its end ("\n" or "\r\n"); `too_long` when it has more than `most` bytes.
[[nodiscard]] LineRead read_line(std::istream& in, std::size_t most, std::string& line);

}  // namespace ration
