#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/text.h"
#include "server/config/address_text.h"
#include "server/config/serve_config.h"
#include "server/config/units.h"
#include "server/edge/support.h"

namespace ration {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Folder;

const char* environment(const char* name) {
    if (std::strcmp(name, "GOOD_TOKEN") == 0) {
        return "0123456789abcdef";
    }
    return std::strcmp(name, "SHORT_TOKEN") == 0 ? "0123456789abcde" : nullptr;
}

constexpr std::string_view least = "policy: p.yaml\nupstream: http://127.0.0.1:90\n";

std::optional<ServeConfig> parse(std::string_view text, std::string& errors,
                                 const std::string& path = "serve.yaml") {
    Problems problems;
    auto config = ServeConfig::parse(path, text, environment, problems);
    for (const Problem& problem : problems.errors()) {
        errors += cat(errors.empty() ? "" : "\n", problem.text());
    }
    EXPECT_EQ(config.has_value(), errors.empty());
    return config;
}

ServeConfig good(std::string_view text, const std::string& path = "serve.yaml") {
    std::string errors;
    auto config = parse(text, errors, path);
    EXPECT_EQ(errors, "");
    return config.value_or(ServeConfig{});
}

TEST(ServeConfig, TwoLinesAreEnough) {
    const ServeConfig config = good(least);
    EXPECT_EQ(config.policy, "p.yaml");
    EXPECT_EQ(config.directory, "");
    ASSERT_EQ(config.gateway.listeners.size(), 1U);
    EXPECT_EQ(config.gateway.listeners[0].address, "127.0.0.1");
    EXPECT_EQ(config.gateway.listeners[0].port, 8080);
    EXPECT_EQ(config.gateway.upstream.port, 90);
    EXPECT_FALSE(config.gateway.upstream.tls);
    EXPECT_EQ(config.admin, AdminConfig{});
    EXPECT_EQ(config.counters_bytes, 256ULL << 20);
    EXPECT_EQ(config.access_log.kind, LogTarget::Kind::standard_output);
    EXPECT_EQ(config.drain, seconds(30));
}

TEST(ServeConfig, TheShippedExampleLoads) {
    Problems problems;
    const std::string path = cat(RATION_SOURCE_DIR, "/examples/booking/serve.yaml");
    const auto config = ServeConfig::load(path, environment, problems);
    ASSERT_TRUE(config.has_value()) << problems.status();
    EXPECT_EQ(config->policy, cat(RATION_SOURCE_DIR, "/examples/booking/policy.yaml"));
    EXPECT_EQ(config->gateway.listeners[0].port, 8080);
    EXPECT_EQ(config->admin.port, 8081);
    EXPECT_EQ(config->gateway.upstream.port, 8090);
}

// A file with every setting, in a folder that has the files it names.
class FullConfig : public ::testing::Test {
protected:
    FullConfig() {
        for (const char* name : {"cert.pem", "key.pem", "ca.pem"}) {
            folder_.write(name, "x");
        }
        folder_.write("token", "a-token-of-some-length\n");
        config_ = good(R"(
policy: rules/policy.yaml
directory: /etc/ration/directory.yaml
listeners:
  - 0.0.0.0:80
  - {address: "[::1]:8443", tls: {certificate: cert.pem, key: key.pem}}
  - unix:run/gateway.sock
upstream:
  url: https://api.internal
  ca: ca.pem
  verify: false
  host: api.example.com
  connections: 7
  idle_connections: 3
  waiting: 11
  timeouts: {connect: 1s, answer: 2min, idle: 500ms}
admin: {listen: "0.0.0.0:9000", token_file: token}
counters: {memory: 64MiB}
threads: 3
limits: {header: 16KiB, headers: 50, body: 1GiB, buffer: 128KiB, connections: 99}
timeouts: {header: 1s, body: 2s, idle: 3s, write: 4s}
access_log: logs/access.jsonl
drain: 5s
server_name: shop
)",
                       folder_.path("serve.yaml"));
    }

    Folder folder_;
    ServeConfig config_;
};

TEST_F(FullConfig, PathsAndPlaces) {
    const GatewayOptions& gateway = config_.gateway;
    EXPECT_EQ(config_.policy, folder_.path("rules/policy.yaml"));
    EXPECT_EQ(config_.directory, "/etc/ration/directory.yaml");
    ASSERT_EQ(gateway.listeners.size(), 3U);
    EXPECT_EQ(gateway.listeners[0].address, "0.0.0.0");
    EXPECT_EQ(gateway.listeners[0].port, 80);
    EXPECT_EQ(gateway.listeners[1].address, "::1");
    EXPECT_EQ(gateway.listeners[1].port, 8443);
    ASSERT_TRUE(gateway.listeners[1].tls.has_value());
    EXPECT_EQ(gateway.listeners[1].tls->certificate_file, folder_.path("cert.pem"));
    EXPECT_EQ(gateway.listeners[1].tls->key_file, folder_.path("key.pem"));
    EXPECT_EQ(gateway.listeners[2].address, cat("unix:", folder_.path("run/gateway.sock")));
    EXPECT_EQ(config_.admin.address, "0.0.0.0");
    EXPECT_EQ(config_.admin.port, 9000);
    EXPECT_EQ(config_.admin.token, "a-token-of-some-length");
    EXPECT_EQ(config_.access_log.kind, LogTarget::Kind::file);
    EXPECT_EQ(config_.access_log.path, folder_.path("logs/access.jsonl"));
}

TEST_F(FullConfig, Numbers) {
    const GatewayOptions& gateway = config_.gateway;
    EXPECT_EQ(config_.counters_bytes, 64ULL << 20);
    EXPECT_EQ(gateway.threads, 3U);
    EXPECT_EQ(gateway.max_header_bytes, 16U << 10);
    EXPECT_EQ(gateway.max_headers, 50U);
    EXPECT_EQ(gateway.max_body_bytes, 1ULL << 30);
    EXPECT_EQ(gateway.stream_buffer_bytes, 128U << 10);
    EXPECT_EQ(gateway.max_connections, 99U);
    EXPECT_EQ(gateway.header_timeout, seconds(1));
    EXPECT_EQ(gateway.body_timeout, seconds(2));
    EXPECT_EQ(gateway.idle_timeout, seconds(3));
    EXPECT_EQ(gateway.write_timeout, seconds(4));
    EXPECT_EQ(config_.drain, seconds(5));
    EXPECT_EQ(gateway.server_name, "shop");
}

TEST_F(FullConfig, Upstream) {
    const UpstreamOptions& upstream = config_.gateway.upstream;
    EXPECT_EQ(upstream.host, "api.internal");
    EXPECT_EQ(upstream.port, 443);
    EXPECT_TRUE(upstream.tls);
    EXPECT_EQ(upstream.ca_file, folder_.path("ca.pem"));
    EXPECT_FALSE(upstream.verify);
    EXPECT_EQ(upstream.host_header, "api.example.com");
    EXPECT_EQ(upstream.max_connections, 7U);
    EXPECT_EQ(upstream.max_idle, 3U);
    EXPECT_EQ(upstream.max_waiting, 11U);
    EXPECT_EQ(upstream.connect_timeout, seconds(1));
    EXPECT_EQ(upstream.answer_timeout, seconds(120));
    EXPECT_EQ(upstream.idle_timeout, milliseconds(500));
}

TEST(ServeConfig, WordsForNothing) {
    const ServeConfig config = good(cat(least, "admin: off\naccess_log: off\n"));
    EXPECT_FALSE(config.admin.enabled);
    EXPECT_EQ(config.access_log.kind, LogTarget::Kind::off);
}

struct BadCase {
    std::string_view text;  // after the two needed lines, unless it has its own
    std::string_view error;
};

TEST(ServeConfig, EachFaultIsToldWithItsPlace) {
    const BadCase cases[] = {
        {"thraeds: 2\n",
         "serve.yaml:3:1: unknown key of serve.yaml 'thraeds'; did you mean 'threads'?"},
        {"threads: 257\n", "serve.yaml:3:10: threads is a whole number from 0 to 256, not '257'"},
        {"threads: two\n", "serve.yaml:3:10: threads is a whole number from 0 to 256, not 'two'"},
        {"drain: 2h\n", "serve.yaml:3:8: drain is from 0ns to 1h, not '2h'"},
        {"limits: {header: 1023}\n",
         "serve.yaml:3:18: header is a size from 1KiB to 1MiB, like 64KiB, not '1023'"},
        {"limits: {header: 1.5KiB}\n",
         "serve.yaml:3:18: header is a size from 1KiB to 1MiB, like 64KiB, not '1.5KiB'"},
        {"limits: [1]\n", "serve.yaml:3:9: limits is a mapping, not a list"},
        {"limits: {heder: 1KiB}\n",
         "serve.yaml:3:10: unknown key of limits 'heder'; did you mean 'header'?"},
        {"timeouts: {idle: 9ms}\n", "serve.yaml:3:18: idle is from 10ms to 1h, not '9ms'"},
        {"counters: {memory: 65535}\n",
         "serve.yaml:3:20: memory is a size from 64KiB to 256GiB, like 64KiB, not '65535'"},
        {"listeners: 8080\n",
         "serve.yaml:3:12: '8080' is not HOST:PORT ('127.0.0.1:8080', '[::1]:8080')"},
        {"listeners: 127.0.0.1:65536\n",
         "serve.yaml:3:12: '127.0.0.1:65536' is not HOST:PORT ('127.0.0.1:8080', '[::1]:8080')"},
        {"listeners: [\"localhost:80\"]\n",
         "serve.yaml:3:13: listen on an address, not on the name 'localhost'"},
        {"listeners: []\n", "serve.yaml:3:12: listeners are 1 to 16, not 0"},
        {"listeners:\n  - {tls: {certificate: /etc/hostname}}\n",
         "serve.yaml:4:5: a listener needs an 'address' (HOST:PORT)\n"
         "serve.yaml:4:11: tls needs 'certificate' and 'key'"},
        {"listeners: {address: \"[::1]:1\", tls: {certificate: nowhere.pem, key: /etc/hostname}}\n",
         "serve.yaml:3:52: certificate 'nowhere.pem' cannot be read"},
        {"listeners: {address: \"[::1]:1\", tls: {certificate: /dev/null, key: /tmp}}\n",
         "serve.yaml:3:52: certificate '/dev/null' is a pipe, a socket or a device, not a file\n"
         "serve.yaml:3:68: key '/tmp' is a directory, not a file"},
        {"threads:\ndrain:\n",
         "serve.yaml:3:1: threads is a whole number from 0 to 256, not nothing\n"
         "serve.yaml:4:1: drain is text, not nothing"},
        {"admin: 0.0.0.0:8081\n",
         "serve.yaml:3:8: the admin listener on 0.0.0.0 can be reached by others: it needs a "
         "'token' or a 'token_file'"},
        {"admin: {listen: \"[::]:8081\"}\n",
         "serve.yaml:3:8: the admin listener on :: can be reached by others: it needs a 'token' or "
         "a 'token_file'"},
        {"admin: {token: hunter2hunter2hunter2}\n",
         "serve.yaml:3:16: a token does not stand in this file: write env.NAME, or use "
         "'token_file'"},
        {"admin: {token: env.NOWHERE}\n", "serve.yaml:3:16: the environment has no NOWHERE"},
        {"admin: {token: env.SHORT_TOKEN}\n",
         "serve.yaml:3:16: a token is 16 to 512 visible ASCII characters; this one is not"},
        {"admin: {token_file: nowhere}\n", "serve.yaml:3:21: token_file 'nowhere' cannot be read"},
        {"admin: {token: env.GOOD_TOKEN, token_file: x}\n",
         "serve.yaml:3:44: 'token' and 'token_file' exclude one another"},
        {"admin: unix:/run/x\n", "serve.yaml:3:8: the admin listener has an address and a port"},
        {"access_log: \"\"\n", "serve.yaml:3:13: access_log is empty"},
        {"server_name: \"a b\"\n",
         "serve.yaml:3:14: server_name is at most 64 visible ASCII characters"},
        {"threads: 1\nthreads: 2\n", "serve.yaml:4:1: this key is there already, on line 3"},
    };
    for (const BadCase& one : cases) {
        std::string errors;
        static_cast<void>(parse(cat(least, one.text), errors));
        EXPECT_EQ(errors, one.error) << one.text;
    }
}

TEST(ServeConfig, FaultsOfTheUpstream) {
    const BadCase cases[] = {
        {"upstream: 127.0.0.1:90\n",
         "serve.yaml:1:11: '127.0.0.1:90' is not http://HOST:PORT or https://HOST:PORT"},
        {"upstream: http://127.0.0.1:90/v1\n",
         "serve.yaml:1:11: 'http://127.0.0.1:90/v1' has more than scheme, host and port; requests "
         "keep their own paths"},
        {"upstream: http://me:secret@host\n",
         "serve.yaml:1:11: 'http://me:secret@host' has more than scheme, host and port; requests "
         "keep their own paths"},
        {"upstream: http://host:0\n",
         "serve.yaml:1:11: 'http://host:0' is not http://HOST:PORT or https://HOST:PORT"},
        {"upstream: {connections: 5}\n",
         "serve.yaml:1:11: upstream needs a 'url' (http://HOST:PORT)"},
        {"upstream: {url: \"http://h\", verify: false}\n",
         "serve.yaml:1:37: verify is for https, and the url is http"},
        {"upstream: {url: \"http://h\", connections: 0}\n",
         "serve.yaml:1:42: connections is a whole number from 1 to 65536, not '0'"},
        {"{}\n",
         "serve.yaml:1:1: a 'policy' is needed (the policy file's path)\n"
         "serve.yaml:1:1: an 'upstream' is needed (http://HOST:PORT)"},
        {"- a\n", "serve.yaml:1:1: serve.yaml is a mapping, not a list"},
        {"", "serve.yaml:1:1: the file is empty"},
    };
    for (const BadCase& one : cases) {
        std::string errors;
        const bool needs_policy = one.text.starts_with("upstream");
        static_cast<void>(parse(cat(one.text, needs_policy ? "policy: p\n" : ""), errors));
        EXPECT_EQ(errors, one.error) << one.text;
    }
}

TEST(ServeConfig, AllFaultsAtOnce) {
    std::string errors;
    static_cast<void>(parse("threads: x\nlimits: {body: y}\ndrain: z\n", errors));
    std::size_t before = 0;  // in the order of the file, whatever was read first
    for (const char* place : {":1:1:", ":1:10:", ":2:16:", ":3:8:"}) {
        const std::size_t at = errors.find(place, before);
        EXPECT_NE(at, std::string::npos) << place << " in\n" << errors;
        before = at == std::string::npos ? before : at;
    }
}

TEST(ServeConfig, NoSecretInAMessage) {
    const Folder folder;
    folder.write("token", "tooshort-s3cret");
    std::string errors;
    static_cast<void>(
        parse(cat(least, "admin: {token_file: token}\n"), errors, folder.path("serve.yaml")));
    EXPECT_NE(errors, "");
    EXPECT_EQ(errors.find("s3cret"), std::string::npos);
}

TEST(ServeConfig, ListenersAtTheBoundAndPastIt) {
    std::string list;
    for (std::size_t i = 0; i < max_listeners; ++i) {
        list += cat("  - 127.0.0.1:", 9000 + i, "\n");
    }
    EXPECT_EQ(good(cat(least, "listeners:\n", list)).gateway.listeners.size(), max_listeners);
    std::string errors;
    static_cast<void>(parse(cat(least, "listeners:\n", list, "  - 127.0.0.1:1\n"), errors));
    EXPECT_EQ(errors, "serve.yaml:4:3: listeners are 1 to 16, not 17");
}

TEST(ServeConfig, NoTwoListenersShareConnections) {
    const struct {
        std::string_view text;
        std::string_view error;  // empty: they are apart
    } cases[] = {
        {"listeners: [127.0.0.1:80, 127.0.0.1:80]\nadmin: off\n",
         ":3:27: 127.0.0.1:80 and the listener 127.0.0.1:80 would share their connections"},
        {"listeners: [127.0.0.1:80, 0.0.0.0:80]\n",
         ":3:27: 0.0.0.0:80 and the listener 127.0.0.1:80 would share their connections"},
        {"listeners: [\"[::]:80\", \"[::1]:80\"]\n",
         ":3:24: [::1]:80 and the listener [::]:80 would share their connections"},
        {"listeners: [\"[::1]:80\", \"[0:0::1]:80\"]\n", ":3:25: "},
        {"listeners: [unix:a, unix:b, unix:a]\n",
         ":3:29: unix:a and the listener unix:a would share their connections"},
        {"listeners: 127.0.0.1:80\nadmin: 127.0.0.1:80\n",
         ":4:8: the admin listener 127.0.0.1:80 and the listener 127.0.0.1:80 would share their "
         "connections"},
        {"listeners: 0.0.0.0:80\nadmin: {listen: \"127.0.0.1:80\"}\n", ":4:8: "},
        {"admin: 127.0.0.1:8080\n", ":3:8: "},
        {"listeners: [127.0.0.1:80, 0.0.0.0:8081]\n",
         ":3:27: the admin listener 127.0.0.1:8081 and the listener 0.0.0.0:8081 would share "
         "their connections"},
        {"listeners: 127.0.0.1:8081\nadmin: off\n", ""},
        {"listeners: [127.0.0.1:80, 127.0.0.2:80, \"[::1]:80\", 127.0.0.1:81]\n", ""},
        {"listeners: [0.0.0.0:80, \"[::]:80\"]\n", ""},
        {"listeners: [127.0.0.1:0, 127.0.0.1:0]\nadmin: 127.0.0.1:0\n", ""},
    };
    for (const auto& one : cases) {
        std::string errors;
        static_cast<void>(parse(cat(least, one.text), errors));
        if (one.error.empty()) {
            EXPECT_EQ(errors, "") << one.text;
        } else {
            EXPECT_NE(errors.find(one.error), std::string::npos) << one.text << errors;
            EXPECT_EQ(errors.find('\n'), std::string::npos) << errors;
        }
    }
}

// What serve.yaml takes is what the counters take.
TEST(ServeConfig, MemoryAtTheCountersOwnBoundsAndPastThem) {
    EXPECT_EQ(good(cat(least, "counters: {memory: 64KiB}\n")).counters_bytes, min_counter_bytes);
    EXPECT_EQ(good(cat(least, "counters: {memory: 256GiB}\n")).counters_bytes, max_counter_bytes);
    for (const std::string_view past : {"65535B", "257GiB"}) {
        std::string errors;
        static_cast<void>(parse(cat(least, "counters: {memory: ", past, "}\n"), errors));
        EXPECT_EQ(errors,
                  cat("serve.yaml:3:20: memory is a size from 64KiB to 256GiB, like 64KiB, not '",
                      past, "'"));
    }
}

TEST(ServeConfig, WhatNeedsARestart) {
    const std::string_view before = least;
    const struct {
        std::string_view after;
        std::string_view needed;
    } cases[] = {
        {"directory: d.yaml\naccess_log: off\ndrain: 1s\nadmin: {token: env.GOOD_TOKEN}\n", ""},
        {"listeners: 127.0.0.1:81\n", "listeners"},
        {"admin: off\n", "admin"},
        {"counters: {memory: 1MiB}\nthreads: 2\n", "counters, threads"},
        {"limits: {body: 1}\ntimeouts: {idle: 1s}\nserver_name: x\n",
         "limits, timeouts, server_name"},
    };
    for (const auto& one : cases) {
        EXPECT_EQ(restart_needed(good(before), good(cat(before, one.after))), one.needed)
            << one.after;
    }
    EXPECT_EQ(restart_needed(good(before), good("policy: q.yaml\nupstream: http://other:90\n")),
              "upstream");
}

TEST(Units, Sizes) {
    const struct {
        std::string_view text;
        std::optional<std::uint64_t> bytes;
    } cases[] = {
        {"0", 0},
        {"17", 17},
        {"17B", 17},
        {"64KiB", 65536},
        {"3MiB", 3 << 20},
        {"1GiB", 1ULL << 30},
        {"", {}},
        {"KiB", {}},
        {"-1", {}},
        {"1.5KiB", {}},
        {"1 KiB", {}},
        {"1KB", {}},
        {"1kib", {}},
        {"8589934591GiB", 8589934591ULL << 30},
        {"8589934592GiB", {}},
        {"99999999999999999999", {}},
    };
    for (const auto& one : cases) {
        EXPECT_EQ(parse_size(one.text), one.bytes) << one.text;
    }
    EXPECT_EQ(size_text(65536), "64KiB");
    EXPECT_EQ(size_text(65537), "65537B");
    EXPECT_EQ(size_text(0), "0B");
    EXPECT_EQ(duration_text(seconds(90)), "90s");
    EXPECT_EQ(duration_text(seconds(120)), "2min");
    EXPECT_EQ(duration_text(milliseconds(1500)), "1500ms");
}

TEST(AddressText, Loopback) {
    for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"}) {
        EXPECT_TRUE(is_loopback(host)) << host;
    }
    for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "example.com", ""}) {
        EXPECT_FALSE(is_loopback(host)) << host;
    }
}

TEST(AddressText, Urls) {
    const auto plain = parse_upstream_url("http://api.internal/");
    ASSERT_TRUE(plain.ok());
    EXPECT_EQ(plain->endpoint.host, "api.internal");
    EXPECT_EQ(plain->endpoint.port, 80);
    const auto six = parse_upstream_url("https://[2001:db8::1]:8443");
    ASSERT_TRUE(six.ok());
    EXPECT_EQ(six->endpoint.host, "2001:db8::1");
    EXPECT_TRUE(six->tls);
    EXPECT_EQ(endpoint_text("2001:db8::1", 8443), "[2001:db8::1]:8443");
    for (const char* bad : {"", "http://", "ftp://h", "http://[::1", "http://[127.0.0.1]:1",
                            "http://h:", "http://h:x", "http://h h", "http://h?x", "http://h#x"}) {
        EXPECT_FALSE(parse_upstream_url(bad).ok()) << bad;
    }
}

}  // namespace
}  // namespace ration
