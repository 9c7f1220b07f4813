// What the admin listener answers: health, metrics, what is in force, reload; and whatever sections
// are added to it, such as the ledger's.
//
// Knows nothing of sockets: a request in, a response out. With a token every request needs
// `Authorization: Bearer TOKEN`, compared in constant time. Thread rule: `handle` may be called
// from any thread. Ownership: the backend and the sections must outlive the api. Errors are
// responses, as
// {"error": {"type", "message"}}.
//
//   ration::AdminApi api(backend);
//   ration::AdminResponse response = api.handle({.method = "GET", .path = "/healthz"});
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/metrics/exposition.h"
#include "server/reload/reloader.h"

namespace ration {

struct AdminRequest {
    std::string_view method;
    std::string_view path;                // without the query
    std::string_view authorization = {};  // the field's value, empty when absent or given twice
    std::string_view query = {};          // without the '?', as it was sent
    std::string_view body = {};           // decoded and whole
};

struct AdminResponse {
    int status = 200;
    std::string content_type = "application/json";
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
};

// The running service, as seen from here.
class AdminBackend {
public:
    virtual ~AdminBackend() = default;
    [[nodiscard]] virtual std::string token() const = 0;  // empty: none is asked for
    [[nodiscard]] virtual bool counters_answer() = 0;     // asks them
    [[nodiscard]] virtual ProcessFacts facts() const = 0;
    [[nodiscard]] virtual InForce in_force() const = 0;
    virtual ReloadResult reload() = 0;
};

// A family of paths of its own. Asked for what the api itself does not know, after the token.
class AdminSection {
public:
    virtual ~AdminSection() = default;
    // nullopt: none of its paths.
    [[nodiscard]] virtual std::optional<AdminResponse> handle(const AdminRequest& request) = 0;
};

class AdminApi {
public:
    explicit AdminApi(AdminBackend& backend) : backend_(backend) {}

    // Before the first request.
    void add(AdminSection& section) { sections_.push_back(&section); }

    [[nodiscard]] AdminResponse handle(const AdminRequest& request);

private:
    using Handler = AdminResponse (AdminApi::*)();
    struct Endpoint {
        std::string_view path;
        std::string_view method;
        Handler handler;
    };

    [[nodiscard]] AdminResponse healthz();
    [[nodiscard]] AdminResponse readyz();
    [[nodiscard]] AdminResponse metrics();
    [[nodiscard]] AdminResponse policy();
    [[nodiscard]] AdminResponse reload();
    [[nodiscard]] bool may_enter(std::string_view authorization) const;

    static const Endpoint endpoints[];
    AdminBackend& backend_;
    std::vector<AdminSection*> sections_;
};

// {"error": {"type": type, "message": message}}
[[nodiscard]] AdminResponse admin_error(int status, std::string_view type,
                                        std::string_view message);
// 405, with the methods that the path takes: "GET, HEAD".
[[nodiscard]] AdminResponse admin_method_error(std::string_view allowed);
// Indented; text that is not UTF-8 is replaced.
[[nodiscard]] AdminResponse admin_json(int status, const nlohmann::ordered_json& body);

}  // namespace ration
