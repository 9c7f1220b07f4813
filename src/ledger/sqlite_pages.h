// Whether all pages of a database stand in its file and its log, found out without opening them as
// a database.
//
// SQLite takes a missing file for a new one, the last page of a torn one for zeros, and throws away
// a log whose file is empty. So this is asked before it opens anything.
//
// Thread rule: any thread. Nothing is changed. It opens and closes the file, which would drop the
// locks of a connection of the same process: ask before SQLite has any.
//
//   if (absl::Status whole = check_pages(path, {application_id, false}); !whole.ok()) return whole;
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace ration {

// The first bytes of a database file: https://www.sqlite.org/fileformat2.html, section 1.3.
struct FileHead {
    static constexpr std::size_t bytes = 100;
    std::array<unsigned char, bytes> data{};

    [[nodiscard]] std::uint32_t number(std::size_t at, std::size_t size) const;
    [[nodiscard]] std::uint32_t page() const;  // bytes in one
    // How many it has; 0: the header does not know.
    [[nodiscard]] std::uint32_t pages() const;
    [[nodiscard]] std::uint32_t version() const { return number(60, 4); }
    [[nodiscard]] std::uint32_t application() const { return number(68, 4); }
};

struct PagesQuestion {
    std::uint32_t application = 0;  // whose pages are counted; of others nothing is said
    bool was_ledger = false;        // a ledger was opened here before: it cannot be empty
};

// A file that is there and has nothing in it.
[[nodiscard]] bool is_empty_file(const std::string& path);

// `path` is the file's own, not a link to it. FailedPrecondition with what is wrong, without the
// file's name; Unavailable when it cannot be read.
[[nodiscard]] absl::Status check_pages(const std::string& path, const PagesQuestion& question);

}  // namespace ration
