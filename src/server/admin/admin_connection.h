// One connection of the admin listener: reads a request, answers it, and again.
//
// Thread rule: the loop's thread. Ownership: held by `AdminConnections`, which it asks for its own
// end. Private to src/server/admin.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "net/loop.h"
#include "net/stream.h"
#include "server/admin/admin_server.h"
#include "server/http/body_decoder.h"
#include "server/http/head_parser.h"

namespace ration {

class AdminConnection;

// What all connections share.
struct AdminConnections {
    net::Loop& loop;
    const AdminServerOptions options;
    AdminServer::Handler handler;
    std::unordered_map<AdminConnection*, std::unique_ptr<AdminConnection>> open = {};

    void close(AdminConnection& connection);
};

class AdminConnection final : public net::Watch {
public:
    AdminConnection(AdminConnections& all, net::Fd fd);
    // False when the loop refused it.
    [[nodiscard]] bool start();
    void on_ready(std::uint32_t events) override;

private:
    enum class Phase : std::uint8_t { head, body, answer, closing };

    // Each does what can be done without waiting; false: the connection is closed.
    bool step();
    [[nodiscard]] bool read_more();
    [[nodiscard]] bool head();
    [[nodiscard]] bool body();
    [[nodiscard]] bool write_out();
    [[nodiscard]] bool swallow();

    void answer_now();
    void refuse_large_head();
    void refuse(int status, std::string_view message);
    void put(const AdminResponse& response, bool with_body);
    void expect(Nanos within);

    AdminConnections& all_;
    net::Stream stream_;
    net::Timer deadline_;
    Phase phase_ = Phase::head;
    bool keep_alive_ = true;
    bool blocked_ = false;  // nothing more to read before the next edge
    std::string in_;
    std::string out_;
    std::size_t out_at_ = 0;
    http::HeadScanner scanner_;
    http::RequestHead request_;  // views into head_
    std::string head_;
    http::BodyDecoder body_;
    std::string content_;  // of the body, decoded
};

}  // namespace ration
