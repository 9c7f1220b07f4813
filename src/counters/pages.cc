#include "counters/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace ration {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

void* map(std::size_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
}

// Mapped with a huge page more than asked for, cut to begin on a huge page.
void* map_for_huge_pages(std::size_t bytes) {
    auto* raw = static_cast<std::byte*>(map(bytes + huge_page));
    if (raw == nullptr) {
        return nullptr;
    }
    const std::size_t before =
        (huge_page - reinterpret_cast<std::uintptr_t>(raw) % huge_page) % huge_page;
    if (before != 0) {
        munmap(raw, before);
    }
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t kept = (bytes + page - 1) / page * page;
    if (before + kept < bytes + huge_page) {
        munmap(raw + before + kept, bytes + huge_page - before - kept);
    }
    madvise(raw + before, bytes, MADV_HUGEPAGE);  // advice: without it only the speed is less
    return raw + before;
}

}  // namespace

absl::StatusOr<Pages> Pages::reserve(std::size_t bytes) {
    void* data = bytes >= least_for_huge_pages ? map_for_huge_pages(bytes) : map(bytes);
    if (data == nullptr) {
        return absl::ResourceExhaustedError(absl::StrCat("cannot reserve ", bytes, " bytes"));
    }
    Pages pages;
    pages.data_ = data;
    pages.bytes_ = bytes;
    return pages;
}

Pages::~Pages() {
    if (data_ != nullptr) {
        munmap(data_, bytes_);
    }
}

}  // namespace ration
