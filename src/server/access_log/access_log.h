// The access log: one line of JSON for each finished request, written by a thread of its own.
//
// An I/O thread formats its line into a bounded buffer and goes on; the writer takes the buffers
// away at least every `flush_every`. When the disk is slower than the requests the buffers fill
// and further lines are dropped and counted; no request ever waits for the log.
//
// Thread rule: any thread may call anything. Ownership: `log` must outlive this. Errors: `open` and
// `retarget` say why a file can't be opened; a write that fails later is warned about once until
// writing works again. The destructor writes what is buffered, within about a second.
//
//   auto access = ration::AccessLog::open({.kind = LogTarget::Kind::standard_output}, log, {});
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "server/access_log/log_file.h"
#include "server/process/log.h"
#include "server/request_record.h"

namespace ration {

struct AccessLogOptions {
    std::size_t buffer_bytes = 1U << 20;  // per thread
    Nanos flush_every = std::chrono::milliseconds(200);
};

struct AccessLogStats {
    std::uint64_t written = 0;  // lines
    std::uint64_t dropped = 0;
};

class AccessLog final : public RequestObserver {
public:
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<AccessLog>> open(
        const LogTarget& target, Log& log, const AccessLogOptions& options);
    ~AccessLog() override;

    void on_request(const RequestRecord& record) override;

    // Opens the same file again, as after a log rotation.
    void reopen();
    // Lines go to `target` from now on. On failure the old target stays.
    [[nodiscard]] absl::Status retarget(const LogTarget& target);
    [[nodiscard]] AccessLogStats stats() const;

private:
    // What threads with one number share: lines waiting for the writer.
    struct Buffer {
        std::mutex mutex;
        std::string lines;
        std::uint64_t count = 0;
    };
    static constexpr std::size_t buffer_count = 64;

    AccessLog(const LogTarget& target, LogFile file, Log& log, const AccessLogOptions& options);
    void run();
    void drain_buffers();
    void write_out(std::string_view lines, std::uint64_t count);

    Log& log_;
    const AccessLogOptions options_;
    std::array<Buffer, buffer_count> buffers_;
    std::atomic<bool> on_;
    std::atomic<std::uint64_t> written_{0};
    std::atomic<std::uint64_t> dropped_{0};

    std::mutex file_mutex_;  // the writer holds it while writing
    LogTarget target_;
    LogFile file_;
    bool failing_ = false;

    std::mutex wake_mutex_;
    std::condition_variable wake_;
    bool full_ = false;
    bool stop_ = false;
    std::thread writer_;
};

}  // namespace ration
