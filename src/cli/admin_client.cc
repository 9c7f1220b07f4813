#include "cli/admin_client.h"

#include <curl/curl.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "CLI/CLI.hpp"
#include "base/text.h"

namespace ration {

namespace {

constexpr long connect_seconds = 5;
constexpr long whole_seconds = 30;
constexpr std::size_t max_reply_bytes = 64U << 20;

struct FreeHandle {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Handle = std::unique_ptr<CURL, FreeHandle>;
using FieldLines = std::unique_ptr<curl_slist, FreeList>;

std::size_t take_piece(char* data, std::size_t size, std::size_t count, void* into) {
    auto& body = *static_cast<std::string*>(into);
    if (body.size() + size * count > max_reply_bytes) {
        return 0;
    }
    body.append(data, size * count);
    return size * count;
}

absl::StatusOr<std::string> token_of(const AdminOptions& options) {
    std::string token;
    if (!options.token_env.empty()) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
        const char* value = std::getenv(options.token_env.c_str());
        if (value == nullptr) {
            return absl::InvalidArgumentError(
                cat("the environment has no ", options.token_env, " for the token"));
        }
        token = value;
    } else if (!options.token_file.empty()) {
        std::ifstream file(options.token_file);
        if (!std::getline(file, token)) {
            return absl::InvalidArgumentError(
                cat(options.token_file, ": the token cannot be read"));
        }
    }
    return token;
}

void add_field(FieldLines& fields, const std::string& line) {
    fields.reset(curl_slist_append(fields.release(), line.c_str()));
}

}  // namespace

void add_admin_options(CLI::App& command, AdminOptions& options) {
    command.add_option("--admin", options.url, "The server's admin listener")
        ->capture_default_str();
    CLI::Option* file =
        command.add_option("--token-file", options.token_file, "File that holds its token");
    command.add_option("--token-env", options.token_env, "Environment variable that holds it")
        ->excludes(file);
}

absl::StatusOr<AdminReply> ask_admin(const AdminOptions& options, const AdminQuestion& question) {
    const absl::StatusOr<std::string> token = token_of(options);
    if (!token.ok()) {
        return token.status();
    }
    const Handle handle(curl_easy_init());
    if (handle == nullptr) {
        return absl::UnavailableError("libcurl could not start");
    }
    std::string url = options.url;
    while (url.ends_with('/')) {
        url.pop_back();
    }
    url += question.path;
    AdminReply reply;
    FieldLines fields;
    add_field(fields, "Content-Type: application/json");
    if (!token->empty()) {
        add_field(fields, cat("Authorization: Bearer ", *token));
    }
    CURL* curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, question.method.c_str());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields.get());
    if (question.method != "GET") {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, question.body.c_str());
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                         static_cast<curl_off_t>(question.body.size()));
    }
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, connect_seconds);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, whole_seconds);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &take_piece);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply.body);
    if (const CURLcode code = curl_easy_perform(curl); code != CURLE_OK) {
        return absl::UnavailableError(cat(options.url, ": ", curl_easy_strerror(code)));
    }
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    reply.status = static_cast<int>(status);
    return reply;
}

std::string query_text(const std::string& text) {
    const std::unique_ptr<char, decltype(&curl_free)> escaped(
        curl_easy_escape(nullptr, text.c_str(), static_cast<int>(text.size())), &curl_free);
    return escaped == nullptr ? std::string() : escaped.get();
}

}  // namespace ration
