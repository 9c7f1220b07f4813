#include "counters/pages.h"

#include <sys/mman.h>

#include "absl/strings/str_cat.h"

namespace ration {

absl::StatusOr<Pages> Pages::reserve(std::size_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
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
