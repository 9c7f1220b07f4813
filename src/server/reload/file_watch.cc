#include "server/reload/file_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace ration {

FileWatch::FileWatch(std::vector<std::string> paths)
    : paths_(std::move(paths)), known_(look()), last_(known_) {}

void FileWatch::watch(std::vector<std::string> paths) {
    if (paths == paths_) {
        return;
    }
    paths_ = std::move(paths);
    known_ = look();
    last_ = known_;
}

bool FileWatch::changed() {
    std::vector<Look> now = look();
    const bool at_rest = now == last_ && std::all_of(now.begin(), now.end(),
                                                     [](const Look& one) { return one.present; });
    last_ = std::move(now);
    if (!at_rest || last_ == known_) {
        return false;
    }
    known_ = last_;
    return true;
}

FileWatch::Look FileWatch::look_at(const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) {
        return {};
    }
    const auto nanos = [](const timespec& time) {
        return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    };
    return {.present = true,
            .device = facts.st_dev,
            .inode = facts.st_ino,
            .size = facts.st_size,
            .modified = nanos(facts.st_mtim),
            .changed = nanos(facts.st_ctim)};
}

std::vector<FileWatch::Look> FileWatch::look() const {
    std::vector<Look> looks;
    looks.reserve(paths_.size());
    for (const std::string& path : paths_) {
        looks.push_back(look_at(path));
    }
    return looks;
}

}  // namespace ration
