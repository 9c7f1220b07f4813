// A page is there when it stands whole in the file or in a committed frame of the log.
//
// Without a log the file has exactly the pages that its header counts: growing is done in the log,
// and a checkpoint ends by giving the file its size and syncing it, before the log is used again.
// With one, a crash in the middle of a checkpoint may have left the file at any length, but all
// pages past its old end are in the log still (SQLite writes every page that it adds). What stands
// past the last page is then no damage either: a VACUUM may have made the database smaller.
//
// A log beside a missing or empty file is never what a crash leaves: the first page is written and
// synced under a rollback journal, with the folder, before the log is made.
#include "ledger/sqlite_pages.h"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/errno_status.h"
#include "base/text.h"

namespace ration {

namespace {

using Bytes = std::span<const unsigned char>;

std::uint32_t big_endian(Bytes bytes) {
    std::uint32_t value = 0;
    for (const unsigned char byte : bytes) {
        value = value << 8 | byte;
    }
    return value;
}

// A file that is read only, through SQLite's own file system: where SQLite would look for it.
class Reader {
public:
    explicit Reader(const std::string& path)
        : system_(sqlite3_vfs_find(nullptr)),
          name_(sqlite3_create_filename(path.c_str(), "", "", 0, nullptr)),
          memory_(static_cast<std::size_t>(system_->szOsFile) / sizeof(std::max_align_t) + 1) {
        constexpr int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
        sqlite3_int64 size = 0;
        if (system_->xOpen(system_, name_, file(), flags, nullptr) != SQLITE_OK) {
            note_error();
            close();
            int there = 0;
            const int code = system_->xAccess(system_, name_, SQLITE_ACCESS_EXISTS, &there);
            // An empty file that may not be read is not there either for the system's question.
            missing_ = code == SQLITE_OK && there == 0 && error_ != EACCES;
        } else if (file()->pMethods->xFileSize(file(), &size) != SQLITE_OK) {
            note_error();
            close();
        }
        size_ = static_cast<std::uint64_t>(size);
    }
    ~Reader() {
        close();
        sqlite3_free_filename(name_);
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    [[nodiscard]] bool is_open() { return file()->pMethods != nullptr; }
    [[nodiscard]] bool is_missing() const { return missing_; }
    [[nodiscard]] int error() const { return error_; }
    [[nodiscard]] std::uint64_t size() const { return size_; }

    // False at an error, or when there are fewer.
    bool read(std::uint64_t at, std::span<unsigned char> bytes) {
        if (!is_open()) {
            return false;
        }
        const int code = file()->pMethods->xRead(
            file(), bytes.data(), static_cast<int>(bytes.size()), static_cast<sqlite3_int64>(at));
        error_ = 0;
        if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) {
            note_error();
        }
        return code == SQLITE_OK;
    }

private:
    sqlite3_file* file() { return reinterpret_cast<sqlite3_file*>(memory_.data()); }
    void close() {
        if (is_open()) {
            file()->pMethods->xClose(file());
            file()->pMethods = nullptr;
        }
    }
    void note_error() {
        const int told = system_->xGetLastError(system_, 0, nullptr);
        error_ = told != 0 ? told : EIO;
    }

    sqlite3_vfs* system_;
    const char* name_;
    std::vector<std::max_align_t> memory_;  // for the system's own fields
    bool missing_ = false;
    int error_ = 0;
    std::uint64_t size_ = 0;
};

// What the log has committed: https://www.sqlite.org/fileformat2.html, section 4.
struct Log {
    std::uint32_t pages = 0;           // of the database; 0: nothing is committed in it
    std::uint32_t page = 0;            // bytes in one
    std::vector<std::uint32_t> found;  // numbers of the pages asked for
    std::optional<FileHead> head;
};

class Checksum {
public:
    explicit Checksum(bool big_endian) : big_endian_(big_endian) {}
    void add(Bytes bytes) {
        for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
            first_ += word(bytes.subspan(i, 4)) + second_;
            second_ += word(bytes.subspan(i + 4, 4)) + first_;
        }
    }
    [[nodiscard]] bool is(Bytes stored) const {
        return ration::big_endian(stored.first(4)) == first_ &&
               ration::big_endian(stored.subspan(4, 4)) == second_;
    }

private:
    [[nodiscard]] std::uint32_t word(Bytes bytes) const {
        const std::uint32_t value = ration::big_endian(bytes);
        return big_endian_ ? value : __builtin_bswap32(value);
    }
    bool big_endian_;
    std::uint32_t first_ = 0;
    std::uint32_t second_ = 0;
};

constexpr std::size_t log_head = 32;
constexpr std::size_t frame_head = 24;

bool is_page_size(std::uint32_t size) {
    return size >= 512 && size <= 65536 && (size & (size - 1)) == 0;
}

// Reads frames up to the first one that is not of this log, as SQLite's own recovery does. Notes
// the committed pages with a number above `above`.
Log read_log(Reader& file, std::uint64_t above) {
    Log log;
    std::array<unsigned char, log_head> head{};
    if (!file.read(0, head)) {
        return log;
    }
    const Bytes begin(head);
    const std::uint32_t magic = big_endian(begin.first(4));
    log.page = big_endian(begin.subspan(8, 4));
    Checksum sum((magic & 1) != 0);
    sum.add(begin.first(24));
    if ((magic & ~1U) != 0x377f0682 || !is_page_size(log.page) || !sum.is(begin.subspan(24, 8))) {
        return log;
    }
    std::vector<unsigned char> frame(frame_head + log.page);
    std::size_t committed = 0;
    std::optional<FileHead> first_page;
    for (std::uint64_t at = log_head; file.read(at, frame); at += frame.size()) {
        const Bytes bytes(frame);
        sum.add(bytes.first(8));
        sum.add(bytes.subspan(frame_head));
        const std::uint32_t number = big_endian(bytes.first(4));
        if (!std::ranges::equal(bytes.subspan(8, 8), begin.subspan(16, 8)) || number == 0 ||
            !sum.is(bytes.subspan(16, 8))) {
            break;
        }
        if (number == 1) {
            first_page.emplace();
            std::ranges::copy(bytes.subspan(frame_head, FileHead::bytes), first_page->data.begin());
        }
        if (number > above) {
            log.found.push_back(number);
        }
        if (const std::uint32_t pages = big_endian(bytes.subspan(4, 4)); pages != 0) {
            log.pages = pages;
            log.head = first_page;
            committed = log.found.size();
        }
    }
    log.found.resize(committed);
    return log;
}

absl::Status damaged(std::string_view how) {
    return absl::FailedPreconditionError(cat("damaged: ", how));
}

absl::Status unreadable(const Reader& file) {
    return absl::UnavailableError(cat("cannot be read: ", errno_text(file.error())));
}

absl::Status check_empty(bool missing, bool was_ledger, const std::string& log_path,
                         const Reader& log) {
    if (log.size() > 0) {
        return damaged(cat(missing ? "it is missing" : "it is empty", ", but its log ", log_path,
                           " is not: put the file back beside its log, or move the log away to "
                           "begin a new ledger"));
    }
    if (!missing && was_ledger) {
        return damaged(
            "it is empty, and was a ledger: put it back, or remove it to begin a new one");
    }
    return absl::OkStatus();
}

absl::Status check_alone(const FileHead& head, std::uint64_t size) {
    const std::uint32_t pages = head.pages();
    if (pages == 0) {
        return damaged("its header does not say how many pages it has");
    }
    const std::uint64_t whole = std::uint64_t{pages} * head.page();
    if (size != whole) {
        return damaged(cat("it is ", size < whole ? "torn" : "longer than it may be", ": it has ",
                           size, " bytes, and its ", pages, " pages are ", whole));
    }
    return absl::OkStatus();
}

absl::Status check_beside_log(std::uint64_t whole, Log log) {
    // The page at this offset is the one for SQLite's locks, and never written.
    const std::uint64_t lock_page = 0x40000000 / log.page + 1;
    if (whole < lock_page) {
        log.found.push_back(static_cast<std::uint32_t>(lock_page));
    }
    std::ranges::sort(log.found);
    const auto repeated = std::ranges::unique(log.found);
    log.found.erase(repeated.begin(), repeated.end());
    const auto end = std::ranges::upper_bound(log.found, log.pages);
    const auto there = static_cast<std::uint64_t>(end - log.found.begin());
    if (whole + there >= log.pages) {
        return absl::OkStatus();
    }
    return damaged(cat("it is torn: of its ", log.pages, " pages ", log.pages - whole - there,
                       " are neither in the file nor in its log"));
}

}  // namespace

std::uint32_t FileHead::number(std::size_t at, std::size_t size) const {
    return big_endian(Bytes(data).subspan(at, size));
}

std::uint32_t FileHead::page() const {
    const std::uint32_t size = number(16, 2);
    return size == 1 ? 65536 : size;
}

std::uint32_t FileHead::pages() const {
    return number(24, 4) == number(92, 4) ? number(28, 4) : 0;
}

bool is_empty_file(const std::string& path) {
    Reader file(path);
    return file.is_open() && file.size() == 0;
}

absl::Status check_pages(const std::string& path, const PagesQuestion& question) {
    Reader file(path);
    const std::string log_path = path + "-wal";
    Reader log_file(log_path);
    if (!file.is_open() && !file.is_missing()) {
        return unreadable(file);
    }
    if (!log_file.is_open() && !log_file.is_missing()) {
        return absl::UnavailableError(
            cat("its log ", log_path, " cannot be read: ", errno_text(log_file.error())));
    }
    if (file.size() == 0) {
        return check_empty(file.is_missing(), question.was_ledger, log_path, log_file);
    }
    FileHead head;
    if (!file.read(0, head.data)) {
        return file.error() != 0 ? unreadable(file) : damaged("it ends within its first page");
    }
    // A rollback journal is there only while the first page is written: SQLite takes it back.
    if (Reader(path + "-journal").size() > 0) {
        return absl::OkStatus();
    }
    const std::uint64_t whole = is_page_size(head.page()) ? file.size() / head.page() : 0;
    Log log = read_log(log_file, whole);
    if (log.pages != 0 && log.head) {
        head = *log.head;
    }
    if (head.application() != question.application) {
        return absl::OkStatus();
    }
    if (!is_page_size(head.page())) {
        return damaged(cat("its header says pages of ", head.page(), " bytes"));
    }
    if (log.pages == 0) {
        return check_alone(head, file.size());
    }
    if (log.page != head.page()) {
        return damaged("its log has pages of another size");
    }
    return check_beside_log(whole, std::move(log));
}

}  // namespace ration
