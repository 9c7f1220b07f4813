// Bytes on their way through a connection: a flat buffer that grows, and a pool of the blocks most
// of them never outgrow, so that an idle connection holds no memory.
//
// Bounds are the callers' matter: a buffer grows to whatever is put into it, and everyone who fills
// one looks at `size()` first. Thread rule: one thread; a pool must outlive its buffers.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace ration::net {

inline constexpr std::size_t block_bytes = 8 * 1024;
inline constexpr std::size_t max_pooled_blocks = 512;  // kept by one thread: 4 MiB

class BlockPool {
public:
    [[nodiscard]] std::unique_ptr<char[]> take();
    void give(std::unique_ptr<char[]> block);

private:
    std::vector<std::unique_ptr<char[]>> free_;
};

class Buffer {
public:
    explicit Buffer(BlockPool& pool) : pool_(pool) {}
    ~Buffer() { release(); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    [[nodiscard]] std::string_view data() const { return {bytes_.get() + begin_, end_ - begin_}; }
    [[nodiscard]] std::size_t size() const { return end_ - begin_; }
    [[nodiscard]] bool empty() const { return begin_ == end_; }

    // Room for at least `least` more bytes; `commit` says how many were really written.
    [[nodiscard]] std::span<char> room(std::size_t least) {
        if (capacity_ - end_ < least) {
            make_room(least);
        }
        return {bytes_.get() + end_, capacity_ - end_};
    }
    void commit(std::size_t written) { end_ += written; }
    void consume(std::size_t count) {
        begin_ += count;
        if (begin_ == end_) {
            begin_ = end_ = 0;
        }
    }
    void append(std::string_view text) {
        if (capacity_ - end_ < text.size()) {
            make_room(text.size());
        }
        if (!text.empty()) {
            std::memcpy(bytes_.get() + end_, text.data(), text.size());
        }
        end_ += text.size();
    }
    // Drops the bytes after the first `size`.
    void truncate(std::size_t size) { end_ = begin_ + size; }
    void clear() { begin_ = end_ = 0; }
    // Gives the memory back; the content is lost.
    void release();

private:
    void make_room(std::size_t least);

    BlockPool& pool_;
    std::unique_ptr<char[]> bytes_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace ration::net
