// Zeroed memory straight from the operating system: reserved whole, paid for page by page as it is
// first touched. Large reservations ask for huge pages (2 MiB): keys lie scattered, and with small
// pages nearly every look at one would first miss in the processor's page cache.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"

namespace ration {

class Pages {
public:
    static constexpr std::size_t least_for_huge_pages = std::size_t{16} << 20;

    // ResourceExhausted when the address space cannot be reserved.
    [[nodiscard]] static absl::StatusOr<Pages> reserve(std::size_t bytes);
    Pages() = default;
    ~Pages();
    Pages(Pages&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Pages& operator=(Pages&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }

    [[nodiscard]] void* data() const { return data_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace ration
