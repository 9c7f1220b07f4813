#include "engine/harness.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "policy/problems.h"

namespace ration::testing {
namespace {

const char* no_environment(const char*) {
    return nullptr;
}

void insist(const Problems& problems) {
    if (!problems.ok()) {
        std::fprintf(stderr, "%s\n", problems.status().ToString().c_str());
        std::abort();
    }
}

std::unique_ptr<Counters> memory_counters() {
    auto counters = open_memory_counters({.max_bytes = 4 << 20});
    if (!counters.ok()) {
        std::fprintf(stderr, "%s\n", counters.status().ToString().c_str());
        std::abort();
    }
    return *std::move(counters);
}

Peer peer_of(const std::string& text) {
    return text == "unix" ? Peer{} : Peer{IpAddress::parse(text)};
}

}  // namespace

std::string Reply::header(std::string_view name) const {
    std::string value;
    int seen = 0;
    for (const auto& [field, text] : headers) {
        if (equal_ignoring_case(field, name)) {
            value = text;
            ++seen;
        }
    }
    EXPECT_LE(seen, 1) << name;
    return value;
}

bool Reply::has(std::string_view name) const {
    for (const auto& [field, text] : headers) {
        if (equal_ignoring_case(field, name)) {
            return true;
        }
    }
    return false;
}

std::optional<int> Reply::retry_after() const {
    return has("Retry-After") ? std::optional(std::stoi(header("Retry-After"))) : std::nullopt;
}

void FaultyCounters::apply(std::span<const Transaction> transactions, Now now,
                           std::span<Outcome> outcomes) {
    ++calls;
    if (down) {
        for (Outcome& outcome : outcomes) {
            outcome = {};
            outcome.status = absl::StatusCode::kUnavailable;
        }
        return;
    }
    behind_.apply(transactions, now, outcomes);
    if (nonsense) {
        for (Outcome& outcome : outcomes) {
            outcome.admitted = !outcome.admitted;
        }
    }
}

Flight::Flight(Engine& engine, Ask ask, std::string id, Now now)
    : engine_(engine), ask_(std::move(ask)), id_(std::move(id)) {
    if (!ask_.bearer.empty()) {
        ask_.headers.emplace_back("Authorization", "Bearer " + ask_.bearer);
    }
    for (const auto& [name, value] : ask_.headers) {
        headers_.push_back({name, value});
    }
    engine_.begin(exchange_,
                  {.method = ask_.method,
                   .target = ask_.path,
                   .headers = headers_,
                   .peer = peer_of(ask_.peer),
                   .id = id_},
                  now);
}

Reply Flight::reply() const {
    Reply reply;
    reply.decision = exchange_.decision;
    reply.admitted = exchange_.decision.kind == Decision::Kind::admit;
    if (const LimitRule* rule = exchange_.binding_rule()) {
        reply.rule = rule->name;
    }
    if (reply.admitted) {
        reply.status = 200;
        engine_.response_fields(exchange_, [&](std::string_view name, std::string_view value) {
            reply.headers.emplace_back(name, value);
        });
    } else {
        Answer answer = engine_.answer(exchange_);
        reply.status = answer.status;
        reply.headers = std::move(answer.headers);
        reply.body = std::move(answer.body);
    }
    return reply;
}

World::World(std::string_view policy, std::string_view directory, WorldOptions options)
    : clock(options.start),
      memory_(memory_counters()),
      local_(options.with_local ? memory_counters() : nullptr),
      faulty_(std::make_unique<FaultyCounters>(*memory_)),
      environment_(options.environment) {
    engine_ =
        std::make_unique<Engine>(*faulty_,
                                 Snapshot::prepare(read_policy(policy, environment_),
                                                   read_directory(directory), options.start.mono),
                                 local_.get(), options.replicas);
}

std::string World::next_id() {
    return "req-" + std::to_string(++sent_);
}

std::unique_ptr<Flight> World::begin(const Ask& ask) {
    return std::make_unique<Flight>(*engine_, ask, next_id(), clock.now());
}

void World::end(Flight& flight, int status, const Fields& response_headers) {
    std::vector<Header> headers;
    for (const auto& [name, value] : response_headers) {
        headers.push_back({name, value});
    }
    flight.finish({Ending::Kind::answered, status, headers}, clock.now());
}

Reply World::ask(const Ask& ask) {
    const auto flight = begin(ask);
    Reply reply = flight->reply();
    if (reply.admitted) {
        end(*flight);
    } else {
        flight->finish({Ending::Kind::refused}, clock.now());
    }
    return reply;
}

Reply World::ask(const Ask& ask_, int times) {
    Reply last;
    for (int i = 0; i < times; ++i) {
        last = ask(ask_);
    }
    return last;
}

int World::admitted(const Ask& ask_, int times) {
    int count = 0;
    for (int i = 0; i < times; ++i) {
        count += ask(ask_).admitted ? 1 : 0;
    }
    return count;
}

void World::reload(std::string_view policy, std::string_view directory) {
    engine_->swap_rules(read_policy(policy, environment_), read_directory(directory), clock.now());
}

std::shared_ptr<const Policy> read_policy(std::string_view text, Policy::Environment environment) {
    Problems problems;
    auto policy = Policy::parse("policy.yaml", text,
                                environment == nullptr ? no_environment : environment, problems);
    insist(problems);
    return policy;
}

std::shared_ptr<const Directory> read_directory(std::string_view text) {
    Problems problems;
    auto directory =
        Directory::parse("directory.yaml", text.empty() ? "credentials: {}" : text, problems);
    insist(problems);
    return directory;
}

std::string source_file(std::string_view path) {
    std::ifstream in(std::string(RATION_SOURCE_DIR) + "/" + std::string(path));
    EXPECT_TRUE(in.good()) << path;
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

}  // namespace ration::testing
