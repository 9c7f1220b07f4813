// A raw, blocking socket for tests, and a plain reader of HTTP messages that shares no code with
// the gateway. Every wait ends after `patience`, so a test that would hang fails instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ration::testing {

inline constexpr int patience_ms = 20'000;

// One HTTP message as it stood on the wire, body decoded.
struct Message {
    std::string start_line;
    std::vector<std::pair<std::string, std::string>> fields;
    std::string body;
    std::vector<std::pair<std::string, std::string>> trailers;
    bool chunked = false;
    bool whole = false;  // false: the connection ended in the middle

    [[nodiscard]] int status() const;
    [[nodiscard]] std::string method() const;
    [[nodiscard]] std::string target() const;
    // The value of the one field of that name; "" when absent; "(twice)" when repeated.
    [[nodiscard]] std::string field(std::string_view name) const;
    [[nodiscard]] bool has(std::string_view name) const;
};

// Where bytes come from and go to: a socket, or a TLS session over it.
class Transport {
public:
    virtual ~Transport() = default;
    virtual long read(char* into, std::size_t size) = 0;  // 0: end, < 0: failure or no patience
    virtual long write(const char* from, std::size_t size) = 0;
};

class Conn {
public:
    explicit Conn(int fd);
    Conn(int fd, std::unique_ptr<Transport> transport);
    Conn(Conn&& other) noexcept;
    Conn& operator=(Conn&&) = delete;
    ~Conn();

    static Conn to_port(std::uint16_t port);
    static Conn to_unix(const std::string& path);

    // False when the other side does not take it.
    bool send(std::string_view bytes);
    // One byte after the other, each in a segment of its own as far as the system allows.
    bool send_slowly(std::string_view bytes);
    // The next message; nullopt at the end of the connection. `to_head`: an answer without a body.
    std::optional<Message> read(bool to_head = false);
    // Whatever comes until the other side ends the connection.
    std::string read_to_end();
    // True when the other side ended or broke the connection and sent nothing before.
    bool ended();
    // Input (or the end) is there within so many milliseconds.
    [[nodiscard]] bool readable(int milliseconds) const;
    bool more();  // reads what is there; false at the end
    std::string& buffer() { return buffer_; }
    [[nodiscard]] std::uint64_t received() const { return received_; }
    void shutdown_write() const;
    void shutdown_both() const;
    void reset();  // closes with a reset
    void close();
    [[nodiscard]] int fd() const { return fd_; }

private:
    bool read_head(Message& message);
    bool read_body(Message& message, bool request, bool to_head);
    bool read_chunks(Message& message);
    bool take(std::size_t count, std::string& into);
    bool take_line(std::string& line);

    int fd_;
    std::unique_ptr<Transport> transport_;
    std::string buffer_;
    std::uint64_t received_ = 0;
};

}  // namespace ration::testing
