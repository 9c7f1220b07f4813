#include "cli/call/arguments.h"

#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "CLI/CLI.hpp"
#include "base/text.h"
#include "policy/rate.h"
#include "workbench/instant.h"

namespace ration {
namespace {

constexpr Nanos shortest_timeout = std::chrono::milliseconds(1);

absl::Status wrong(std::string_view option, std::string_view why) {
    return absl::InvalidArgumentError(cat(option, ": ", why));
}

absl::Status read_span(std::string_view option, const std::string& text, Nanos least, Nanos& into) {
    if (text.empty()) {
        return absl::OkStatus();
    }
    const auto span = parse_span(text);
    if (!span.ok() || *span < Nanos(0)) {
        return wrong(option, cat("not a span of time: ", text));
    }
    if (*span < least) {
        return wrong(option, cat("leaves no time to ask: ", text));
    }
    into = *span;
    return absl::OkStatus();
}

absl::Status read_pace(const CallArguments& arguments, ClientOptions& options) {
    if (arguments.each.empty() && arguments.rate.empty()) {
        return absl::OkStatus();
    }
    PaceOptions& pace = options.pace.emplace();
    pace.by_answers = !arguments.each.empty();
    pace.burst = arguments.burst;
    if (arguments.rate.empty()) {
        return absl::OkStatus();
    }
    Rate rate;
    if (const auto problem = parse_rate(arguments.rate, rate)) {
        return wrong("--rate", problem->reason);
    }
    if (!rate.attribute.empty() || rate.amount == 0 || rate.amount > UINT32_MAX) {
        return wrong("--rate", "an amount from 1, as in 60/min");
    }
    pace.amount = static_cast<std::uint32_t>(rate.amount);
    pace.every = rate.period;
    return absl::OkStatus();
}

absl::StatusOr<std::string> data_of(const std::string& data) {
    if (!data.starts_with('@')) {
        return data;
    }
    if (data == "@-") {
        return std::string(std::istreambuf_iterator<char>(std::cin), {});
    }
    const std::string path = data.substr(1);
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    if (file && file.peek() != std::ifstream::traits_type::eof()) {
        text << file.rdbuf();
    }
    if (!file.is_open() || file.bad() || text.bad()) {  // bad: a folder, or a failing disk
        return absl::InvalidArgumentError(cat(path, ": cannot be read"));
    }
    return text.str();
}

void add_request_options(CLI::App& command, CallArguments& arguments) {
    command.add_option("URL", arguments.url, "What to ask; with --each: where relative URLs begin");
    command.add_option("-X,--request", arguments.method, "Method; left out: GET, with -d POST");
    command
        .add_option("-H,--header", arguments.headers, "\"Name: value\"; may be given several times")
        ->allow_extra_args(false);
    command.add_option("-d,--data", arguments.data,
                       "Body; @file is read from a file, @- from stdin");
    command.add_option("--idempotency-key", arguments.key,
                       "The key of a POST or PATCH, which makes it repeatable; auto: a new one");
    command.add_flag("--follow-to-get", arguments.follow_to_get,
                     "Follow redirects that turn a POST into a GET");
    command.add_option("--proxy", arguments.proxy,
                       "Proxy; left out: as the environment says; \"\": none");
    command.add_option("--cacert", arguments.ca_file, "File of the authorities to trust");
    command.add_option("--cert", arguments.certificate, "The client's own certificate")
        ->needs(command.add_option("--key", arguments.certificate_key, "Its private key"));
    command.add_flag("--http1.1", arguments.http1, "Do not use HTTP/2");
}

void add_wait_options(CLI::App& command, CallArguments& arguments) {
    command.add_option("--max-wait", arguments.max_wait,
                       "The longest wait that a server may ask for (60s; with --each 10min)");
    command.add_option("--deadline", arguments.deadline,
                       "For all sends and waits of a call (2min; with --each 1h)");
    command.add_option("--timeout", arguments.timeout, "For each attempt (30s)");
    command.add_option("--retries", arguments.retries,
                       "At most so many retries (5; with --each 20)");
    command
        .add_option("--retry-status", arguments.retry_statuses,
                    "Also repeat answers of these statuses, besides 429 and 503")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::Range(400, 599));
    command
        .add_option("--retry-type", arguments.retry_types,
                    "Also repeat answers whose error has one of these types")
        ->delimiter(',')
        ->allow_extra_args(false);
    command
        .add_option("--bucket", arguments.bucket,
                    "What shares a limit: each method and path, or all of the origin")
        ->check(CLI::IsMember({"path", "origin"}));
}

void add_output_options(CLI::App& command, CallArguments& arguments) {
    CLI::Option* include = command.add_flag("-i,--include", arguments.include,
                                            "Write status and headers before the body");
    command.add_option("-o,--output", arguments.output, "Write the body to this file");
    command
        .add_flag("--stream", arguments.stream,
                  "Write a success's body as it comes; a call that breaks off then is not repeated")
        ->excludes(include);
    command.add_flag("-v,--verbose", arguments.verbose, "Tell on stderr what happens, and when");
}

void add_list_options(CLI::App& command, CallArguments& arguments) {
    CLI::Option* each = command.add_option(
        "--each", arguments.each,
        "Send the jobs of this list, one a line: a URL, or JSON with url, method, "
        "headers, body, id, idempotency_key");
    for (const char* single : {"--output", "--include", "--stream"}) {
        each->excludes(command.get_option(single));
    }
    command
        .add_option("--results", arguments.results,
                    "Write results here instead of stdout; run again with the same file to go on")
        ->needs(each);
    command.add_option("--parallel", arguments.parallel, "So many jobs at a time (8)")
        ->check(CLI::Range(1U, max_parallel))
        ->needs(each);
    CLI::Option* rate =
        command.add_option("--rate", arguments.rate, "At most so many sends, as in 60/min");
    command.add_option("--burst", arguments.burst, "So many of them at once (1)")
        ->check(CLI::Range(1U, 1'000'000U))
        ->needs(rate);
}

}  // namespace

void add_call_options(CLI::App& command, CallArguments& arguments) {
    add_request_options(command, arguments);
    add_wait_options(command, arguments);
    add_output_options(command, arguments);
    add_list_options(command, arguments);
}

absl::StatusOr<ClientOptions> client_options(const CallArguments& arguments) {
    ClientOptions options;
    RetryPolicy& policy = options.policy;
    if (!arguments.each.empty()) {
        policy.max_server_wait = std::chrono::minutes(10);
        policy.total_deadline = std::chrono::hours(1);
        policy.max_retries = 20;
    }
    for (const absl::Status& status :
         {read_span("--max-wait", arguments.max_wait, Nanos(0), policy.max_server_wait),
          read_span("--deadline", arguments.deadline, policy.min_attempt, policy.total_deadline),
          read_span("--timeout", arguments.timeout, shortest_timeout, policy.attempt_timeout),
          read_pace(arguments, options)}) {
        if (!status.ok()) {
            return status;
        }
    }
    policy.max_retries = arguments.retries.value_or(policy.max_retries);
    policy.retry_statuses.insert(policy.retry_statuses.end(), arguments.retry_statuses.begin(),
                                 arguments.retry_statuses.end());
    policy.retry_types = arguments.retry_types;
    policy.redirect_to_get = arguments.follow_to_get;
    policy.key_making = arguments.key == "auto" ? KeyMaking::automatic : KeyMaking::caller;
    options.user_agent = "ration/" RATION_VERSION;
    options.proxy = arguments.proxy;
    options.ca_file = arguments.ca_file;
    options.client_certificate = arguments.certificate;
    options.client_key = arguments.certificate_key;
    options.http_version = arguments.http1 ? HttpVersion::http1 : HttpVersion::http2_over_tls;
    options.max_host_connections = std::max(options.max_host_connections, arguments.parallel);
    options.max_connections = std::max(options.max_connections, arguments.parallel);
    return options;
}

void set_body(ClientRequest& request, std::string bytes) {
    const std::size_t first = bytes.find_first_not_of(" \t\r\n");
    const bool json = first != std::string::npos && (bytes[first] == '{' || bytes[first] == '[');
    if (!find_header(request.headers, "content-type")) {
        request.headers.emplace_back(
            "Content-Type", json ? "application/json" : "application/x-www-form-urlencoded");
    }
    request.body = RequestBody::text(std::move(bytes));
}

absl::StatusOr<ClientRequest> base_request(const CallArguments& arguments) {
    ClientRequest request;
    request.url = arguments.url;
    request.method = !arguments.method.empty() ? arguments.method : arguments.data ? "POST" : "GET";
    for (const std::string& line : arguments.headers) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) {
            return wrong("-H", "no colon; \"Name: value\" is what it takes");  // it may be a secret
        }
        const std::size_t value = line.find_first_not_of(' ', colon + 1);
        request.headers.emplace_back(line.substr(0, colon),
                                     value == std::string::npos ? "" : line.substr(value));
    }
    if (arguments.data == "@-" && arguments.each == "-") {
        return wrong("-d", "stdin is already the list of jobs");
    }
    if (arguments.data) {
        auto data = data_of(*arguments.data);
        if (!data.ok()) {
            return data.status();
        }
        set_body(request, *std::move(data));
    }
    if (arguments.key != "auto") {
        if (!arguments.each.empty() && !arguments.key.empty()) {
            return wrong("--idempotency-key",
                         "with --each auto, or a key in each job: jobs that "
                         "share one are answered as the first of them was");
        }
        request.idempotency_key = arguments.key;
    }
    if (arguments.bucket == "origin") {
        request.bucket = "";
    }
    return request;
}

}  // namespace ration
