#include "server/process/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

namespace ration {

namespace {

spdlog::level::level_enum level_of(LogLevel level) {
    switch (level) {
        case LogLevel::info:
            return spdlog::level::info;
        case LogLevel::warning:
            return spdlog::level::warn;
        case LogLevel::error:
            return spdlog::level::err;
    }
    return spdlog::level::info;
}

class ProcessLog final : public Log {
public:
    ProcessLog() : logger_("ration", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
        logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
            "%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc));
        logger_.flush_on(spdlog::level::info);
        logger_.set_error_handler([](const std::string&) {});
    }

    void write(LogLevel level, std::string_view line) override {
        logger_.log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
    }

private:
    spdlog::logger logger_;
};

}  // namespace

std::unique_ptr<Log> open_process_log() {
    return std::make_unique<ProcessLog>();
}

}  // namespace ration
