// The process's own log: started, stopped, reloaded, what is wrong. Not for requests.
//
// Thread rule: any thread may write; a line may wait for the terminal, so I/O threads don't.
// Lines are for people, one sentence each, and hold no secret.
//
//   std::unique_ptr<ration::Log> log = ration::open_process_log();
//   log->warning("the counters gave no answer");
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace ration {

enum class LogLevel : std::uint8_t { info, warning, error };

class Log {
public:
    virtual ~Log() = default;
    virtual void write(LogLevel level, std::string_view line) = 0;

    void info(std::string_view line) { write(LogLevel::info, line); }
    void warning(std::string_view line) { write(LogLevel::warning, line); }
    void error(std::string_view line) { write(LogLevel::error, line); }
};

// Lines on standard error, each with time (UTC) and level.
[[nodiscard]] std::unique_ptr<Log> open_process_log();

}  // namespace ration
