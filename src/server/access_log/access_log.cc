#include "server/access_log/access_log.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "server/access_log/access_line.h"
#include "server/metrics/thread_number.h"

namespace ration {

absl::StatusOr<std::unique_ptr<AccessLog>> AccessLog::open(const LogTarget& target, Log& log,
                                                           const AccessLogOptions& options) {
    auto file = LogFile::open(target);
    if (!file.ok()) {
        return file.status();
    }
    return std::unique_ptr<AccessLog>(new AccessLog(target, *std::move(file), log, options));
}

AccessLog::AccessLog(const LogTarget& target, LogFile file, Log& log,
                     const AccessLogOptions& options)
    : log_(log),
      options_(options),
      on_(target.kind != LogTarget::Kind::off),
      target_(target),
      file_(std::move(file)),
      writer_([this] { run(); }) {}

AccessLog::~AccessLog() {
    {
        const std::lock_guard lock(wake_mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    writer_.join();
}

void AccessLog::on_request(const RequestRecord& record) {
    if (!on_.load(std::memory_order_relaxed)) {
        return;
    }
    thread_local std::string line;
    line.clear();
    append_access_line(line, record);
    Buffer& buffer = buffers_[thread_number() % buffer_count];
    bool wake = false;
    {
        const std::lock_guard lock(buffer.mutex);
        const std::size_t before = buffer.lines.size();
        if (before + line.size() > options_.buffer_bytes) {
            dropped_.fetch_add(1, std::memory_order_relaxed);
            return;
        }
        buffer.lines += line;
        ++buffer.count;
        const std::size_t half = options_.buffer_bytes / 2;
        wake = before <= half && buffer.lines.size() > half;
    }
    if (wake) {
        const std::lock_guard lock(wake_mutex_);
        full_ = true;
        wake_.notify_one();
    }
}

void AccessLog::run() {
    for (bool last = false; !last;) {
        {
            std::unique_lock lock(wake_mutex_);
            wake_.wait_for(lock, options_.flush_every, [this] { return full_ || stop_; });
            full_ = false;
            last = stop_;
        }
        const std::lock_guard lock(file_mutex_);
        drain_buffers();
    }
}

// With the file locked throughout, so that lines taken out are in it before it is another.
void AccessLog::drain_buffers() {
    std::string lines;
    for (Buffer& buffer : buffers_) {
        std::uint64_t count = 0;
        lines.clear();
        {
            const std::lock_guard lock(buffer.mutex);
            std::swap(lines, buffer.lines);
            count = std::exchange(buffer.count, 0);
        }
        if (count > 0) {
            write_out(lines, count);
        }
    }
}

void AccessLog::write_out(std::string_view lines, std::uint64_t count) {
    std::size_t written = 0;
    const absl::Status status = file_.write(lines, written);
    const auto good =
        status.ok()
            ? count
            : static_cast<std::uint64_t>(std::count(
                  lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(written), '\n'));
    written_.fetch_add(good, std::memory_order_relaxed);
    dropped_.fetch_add(count - good, std::memory_order_relaxed);
    if (!status.ok() && !failing_) {
        log_.warning(
            cat(std::string(status.message()), "; lines are dropped until it works again"));
    } else if (status.ok() && failing_) {
        log_.info("access log: writing works again");
    }
    failing_ = !status.ok();
}

void AccessLog::reopen() {
    LogTarget target;
    {
        const std::lock_guard lock(file_mutex_);
        target = target_;
    }
    if (const auto status = retarget(target); !status.ok()) {
        log_.error(cat(std::string(status.message()), "; the old file stays in use"));
    }
}

absl::Status AccessLog::retarget(const LogTarget& target) {
    auto file = LogFile::open(target);
    if (!file.ok()) {
        return file.status();
    }
    const std::lock_guard lock(file_mutex_);
    drain_buffers();  // what was logged before belongs to the old file
    target_ = target;
    std::swap(file_, *file);
    on_.store(target.kind != LogTarget::Kind::off, std::memory_order_relaxed);
    return absl::OkStatus();
}

AccessLogStats AccessLog::stats() const {
    return {.written = written_.load(std::memory_order_relaxed),
            .dropped = dropped_.load(std::memory_order_relaxed)};
}

}  // namespace ration
