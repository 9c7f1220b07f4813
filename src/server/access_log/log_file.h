// Where access log lines go: a file that is appended to, or standard output.
//
// Thread rule: one thread at a time. Ownership: a file is closed with its LogFile, standard output
// never. A pipe whose reader stalls can hold up `write` for `max_stall` at most.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ration {

struct LogTarget {
    enum class Kind : std::uint8_t { off, standard_output, file };
    Kind kind = Kind::off;
    std::string path;  // of a file

    friend bool operator==(const LogTarget&, const LogTarget&) = default;
};

inline constexpr int max_stall_ms = 1000;

class LogFile {
public:
    // Opens, creating a missing file readable by owner and group. InvalidArgument with path and
    // reason. `off` opens nothing and swallows what is written.
    [[nodiscard]] static absl::StatusOr<LogFile> open(const LogTarget& target);
    LogFile() = default;
    LogFile(LogFile&& other) noexcept;
    LogFile& operator=(LogFile&& other) noexcept;
    ~LogFile();

    // Writes whole lines. On failure `written` says how many bytes went out all the same; the line
    // that was torn by it is ended before the next write.
    [[nodiscard]] absl::Status write(std::string_view lines, std::size_t& written);

private:
    [[nodiscard]] absl::Status write_some(std::string_view text, std::size_t& written);

    int fd_ = -1;
    bool owned_ = false;
    bool regular_ = false;
    bool torn_ = false;
};

}  // namespace ration
