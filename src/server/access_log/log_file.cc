#include "server/access_log/log_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/errno_status.h"
#include "base/text.h"

namespace ration {

absl::StatusOr<LogFile> LogFile::open(const LogTarget& target) {
    LogFile file;
    if (target.kind == LogTarget::Kind::off) {
        return file;
    }
    file.fd_ = STDOUT_FILENO;
    if (target.kind == LogTarget::Kind::file) {
        file.fd_ = ::open(target.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
        if (file.fd_ < 0) {
            return absl::InvalidArgumentError(
                cat("access log ", target.path, ": ", errno_text(errno)));
        }
        file.owned_ = true;
    }
    struct stat facts {};
    file.regular_ = ::fstat(file.fd_, &facts) == 0 && S_ISREG(facts.st_mode);
    return file;
}

LogFile::LogFile(LogFile&& other) noexcept {
    *this = std::move(other);
}

LogFile& LogFile::operator=(LogFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(owned_, other.owned_);
    std::swap(regular_, other.regular_);
    std::swap(torn_, other.torn_);
    return *this;
}

LogFile::~LogFile() {
    if (owned_) {
        ::close(fd_);
    }
}

absl::Status LogFile::write(std::string_view lines, std::size_t& written) {
    written = 0;
    if (fd_ < 0) {
        written = lines.size();
        return absl::OkStatus();
    }
    if (torn_) {
        std::size_t ended = 0;
        if (auto status = write_some("\n", ended); !status.ok()) {
            return status;
        }
        torn_ = false;
    }
    while (written < lines.size()) {
        std::size_t some = 0;
        if (auto status = write_some(lines.substr(written), some); !status.ok()) {
            torn_ = written > 0 && lines[written - 1] != '\n';
            return status;
        }
        written += some;
    }
    return absl::OkStatus();
}

// A pipe that polls writable takes PIPE_BUF bytes without blocking; a regular file never blocks in
// the sense of poll.
absl::Status LogFile::write_some(std::string_view text, std::size_t& written) {
    if (!regular_) {
        pollfd waiting{.fd = fd_, .events = POLLOUT, .revents = 0};
        const int ready = ::poll(&waiting, 1, max_stall_ms);
        if (ready == 0) {
            return absl::DeadlineExceededError("access log: its reader does not read");
        }
        text = text.substr(0, std::min<std::size_t>(text.size(), PIPE_BUF));
    }
    const ssize_t count = ::write(fd_, text.data(), text.size());
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
        return absl::UnavailableError(cat("access log: ", errno_text(errno)));
    }
    written = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    return absl::OkStatus();
}

}  // namespace ration
