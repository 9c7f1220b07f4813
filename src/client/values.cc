// The client's value types: bodies, cancellations, keys.
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "base/errno_status.h"
#include "base/same_word.h"
#include "base/text.h"
#include "client/access.h"
#include "client/decide.h"
#include "client/random.h"
#include "wire/hop_fields.h"

namespace ration {

RequestBody RequestBody::text(std::string bytes) {
    RequestBody body;
    body.bytes_ = std::move(bytes);
    body.given_ = true;
    return body;
}

RequestBody RequestBody::stream(Read read, std::optional<std::uint64_t> size) {
    RequestBody body;
    body.read_ = std::move(read);
    body.begun_ = std::make_shared<std::atomic<bool>>(false);
    body.size_ = size;
    return body;
}

RequestBody RequestBody::rewindable(Read read, Rewind rewind, std::optional<std::uint64_t> size) {
    RequestBody body = stream(std::move(read), size);
    body.rewind_ = std::move(rewind);
    return body;
}

namespace {

// An empty file, or one that says so and has something to read all the same (/proc).
absl::StatusOr<RequestBody> without_size(const std::string& path, std::FILE& file) {
    constexpr std::size_t most = std::size_t{1} << 20U;
    std::string bytes(most + 1, '\0');
    bytes.resize(std::fread(bytes.data(), 1, bytes.size(), &file));
    if (std::ferror(&file)) {
        return errno_status(errno, path);
    }
    if (bytes.size() > most) {
        return absl::InvalidArgumentError(
            cat(path, ": it has no size, and more than 1 MiB to read"));
    }
    return RequestBody::text(std::move(bytes));
}

}  // namespace

absl::StatusOr<RequestBody> RequestBody::file(const std::string& path) {
    const std::shared_ptr<std::FILE> file(std::fopen(path.c_str(), "rbe"), [](std::FILE* open) {
        if (open) {
            std::fclose(open);
        }
    });
    if (!file) {
        return errno_status(errno, path);
    }
    struct stat status {};
    if (fstat(fileno(file.get()), &status) == 0 && S_ISDIR(status.st_mode)) {
        return errno_status(EISDIR, path);  // it can be opened, but not read
    }
    if (std::fseek(file.get(), 0, SEEK_END) != 0) {
        return stream([file](std::span<char> into) -> std::ptrdiff_t {  // a pipe
            const std::size_t got = std::fread(into.data(), 1, into.size(), file.get());
            return std::ferror(file.get()) ? -1 : static_cast<std::ptrdiff_t>(got);
        });
    }
    const long size = std::ftell(file.get());
    std::rewind(file.get());
    if (size <= 0) {
        return without_size(path, *file);
    }
    RequestBody body;
    body.size_ = static_cast<std::uint64_t>(size);
    body.read_at_ = [file](std::span<char> into, std::uint64_t offset) -> std::ptrdiff_t {
        return pread(fileno(file.get()), into.data(), into.size(), static_cast<off_t>(offset));
    };
    return body;
}

Cancellation::Cancellation() : state_(std::make_shared<State>()) {}

void Cancellation::cancel(std::string_view reason) const {
    const std::lock_guard lock(state_->mutex);
    if (state_->cancelled) {
        return;
    }
    state_->cancelled = true;
    state_->reason = reason;
    for (const auto& [number, watcher] : state_->watchers) {
        watcher();
    }
    state_->watchers.clear();
}

bool Cancellation::cancelled() const {
    const std::lock_guard lock(state_->mutex);
    return state_->cancelled;
}

std::string Cancellation::reason() const {
    const std::lock_guard lock(state_->mutex);
    return state_->reason;
}

std::uint64_t CancellationAccess::watch(const Cancellation& cancellation,
                                        std::function<void()> watcher) {
    auto& state = *cancellation.state_;
    const std::lock_guard lock(state.mutex);
    if (state.cancelled) {
        watcher();
        return 0;
    }
    state.watchers.emplace_back(state.next, std::move(watcher));
    return state.next++;
}

void CancellationAccess::unwatch(const Cancellation& cancellation, std::uint64_t number) {
    auto& state = *cancellation.state_;
    const std::lock_guard lock(state.mutex);
    std::erase_if(state.watchers, [&](const auto& watcher) { return watcher.first == number; });
}

const std::string* find_header(const HeaderLines& headers, std::string_view name) {
    for (const auto& [field, value] : headers) {
        if (same_word(field, name)) {
            return &value;
        }
    }
    return nullptr;
}

std::string new_idempotency_key() {
    client::SystemRandom random;
    return client::make_key(random);
}

namespace client {

std::uint64_t SystemRandom::bits() {
    std::uint64_t value = 0;
    while (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    }
    return value;
}

std::string make_key(RandomSource& random) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::array<std::uint64_t, 2> bits = {random.bits(), random.bits()};
    bits[0] = (bits[0] & ~std::uint64_t{0xf000}) | 0x4000;  // version 4
    bits[1] = (bits[1] & ~(std::uint64_t{3} << 62U)) | std::uint64_t{2}
                                                           << 62U;  // the RFC's variant
    std::string key;
    for (std::size_t i = 0; i < 32; ++i) {
        if (i == 8 || i == 12 || i == 16 || i == 20) {
            key += '-';
        }
        key += digits[(bits[i / 16] >> (60 - 4 * (i % 16))) & 0xfU];
    }
    return key;
}

std::string key_for(const ClientRequest& request, const RetryPolicy& policy, RandomSource& random) {
    if (const auto given = joined_field(request.headers, policy.key_header)) {
        return std::string(trimmed(*given));
    }
    std::string key(trimmed(request.idempotency_key));
    const bool automatic = request.key_making.value_or(policy.key_making) == KeyMaking::automatic;
    const bool unsafe = request.method == "POST" || request.method == "PATCH";
    return key.empty() && automatic && unsafe ? make_key(random) : key;
}

}  // namespace client

}  // namespace ration
