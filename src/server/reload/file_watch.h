// Notices that files were changed, whatever way an editor does it, and waits until they are whole.
//
// Looks at device, inode, size and times of each file; the caller looks again every second or so. A
// change is reported once nothing moved between two looks and every file is there, so a file that
// is being written, or is missing for a moment while an editor renames its new text into place, is
// left alone. Thread rule: one thread at a time. Nothing fails: a missing file is not a change yet.
//
//   ration::FileWatch watch({"policy.yaml", "directory.yaml"});
//   if (watch.changed()) reload();      // called again and again
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ration {

class FileWatch {
public:
    // What is there now counts as known.
    explicit FileWatch(std::vector<std::string> paths);

    // True once for each change, when it has come to rest.
    [[nodiscard]] bool changed();
    // Watches these instead; what is there now counts as known where the paths differ.
    void watch(std::vector<std::string> paths);

private:
    struct Look {
        bool present = false;
        std::uint64_t device = 0;
        std::uint64_t inode = 0;
        std::int64_t size = 0;
        std::int64_t modified = 0;  // nanoseconds
        std::int64_t changed = 0;
        friend bool operator==(const Look&, const Look&) = default;
    };
    [[nodiscard]] static Look look_at(const std::string& path);
    [[nodiscard]] std::vector<Look> look() const;

    std::vector<std::string> paths_;
    std::vector<Look> known_;
    std::vector<Look> last_;
};

}  // namespace ration
