// The inside of the public value types, for the client's own files.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "client/decide.h"
#include "ration/client.h"

namespace ration {

struct BodyAccess {
    [[nodiscard]] static const std::string& bytes(const RequestBody& body) { return body.bytes_; }
    [[nodiscard]] static const RequestBody::Read& read(const RequestBody& body) {
        return body.read_;
    }
    [[nodiscard]] static const RequestBody::ReadAt& read_at(const RequestBody& body) {
        return body.read_at_;
    }
    // Its bytes are read while they are sent.
    [[nodiscard]] static bool is_read(const RequestBody& body) {
        return body.read_ || body.read_at_;
    }
    static void begin(const RequestBody& body) {
        if (body.begun_) {
            *body.begun_ = true;
        }
    }
    // Read before, maybe by another call.
    [[nodiscard]] static bool begun(const RequestBody& body) { return body.begun_ && *body.begun_; }
    [[nodiscard]] static const RequestBody::Rewind& rewind(const RequestBody& body) {
        return body.rewind_;
    }
    [[nodiscard]] static std::optional<std::uint64_t> size(const RequestBody& body) {
        return body.size_;
    }
    [[nodiscard]] static client::BodyKind kind(const RequestBody& body) {
        if (body.read_at_) {
            return client::BodyKind::rewindable;
        }
        if (body.read_) {
            return body.rewind_ ? client::BodyKind::rewindable : client::BodyKind::stream_once;
        }
        return body.empty() ? client::BodyKind::none : client::BodyKind::buffered;
    }
};

struct Cancellation::State {
    std::mutex mutex;
    bool cancelled = false;
    std::string reason;
    std::vector<std::pair<std::uint64_t, std::function<void()>>> watchers;
    std::uint64_t next = 1;
};

struct CancellationAccess {
    // Calls `watcher` once when it is cancelled, at once if it is already. It may not unwatch.
    static std::uint64_t watch(const Cancellation& cancellation, std::function<void()> watcher);
    // After it no watcher of that number runs.
    static void unwatch(const Cancellation& cancellation, std::uint64_t number);
};

}  // namespace ration
