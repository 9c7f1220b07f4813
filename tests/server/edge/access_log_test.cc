#include "server/access_log/access_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "base/text.h"
#include "engine/harness.h"
#include "server/access_log/access_line.h"
#include "server/access_log/json_text.h"
#include "server/edge/rules.h"
#include "server/edge/support.h"

namespace ration {
namespace {

using nlohmann::json;
using testing::Ask;
using testing::Folder;
using testing::RecordingLog;
using testing::World;

std::string json_string(std::string_view text, std::size_t most = 100) {
    std::string out;
    append_json_string(out, text, most);
    return out;
}

TEST(JsonText, StringsAreValidWhateverTheBytes) {
    EXPECT_EQ(json_string("a\"b\\c\n\t\x01"), R"("a\"b\\c\n\t\u0001")");
    EXPECT_EQ(json_string("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
              "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
    EXPECT_EQ(json_string("\xff\xc3"), R"("\u00ff\u00c3")");
    EXPECT_EQ(json_string("12345", 5), R"("12345")");
    EXPECT_EQ(json_string("123456", 5), R"("12345...")");
    for (int a = 0; a < 256; ++a) {
        for (int b = 0; b < 256; b += 5) {
            const std::string bytes{static_cast<char>(a), static_cast<char>(b), 'x'};
            EXPECT_TRUE(json::accept(json_string(bytes))) << a << " " << b;
        }
    }
}

TEST(JsonText, TimesAndDecimals) {
    std::string out;
    append_json_time(out, Wall(std::chrono::milliseconds(1'800'000'000'007) + Nanos(999'999)));
    EXPECT_EQ(out, R"("2027-01-15T08:00:00.007Z")");
    out.clear();
    append_json_time(out, Wall(Nanos(0)));
    EXPECT_EQ(out, R"("1970-01-01T00:00:00.000Z")");
    const struct {
        Nanos value;
        const char* seconds;
        const char* millis;
    } cases[] = {{Nanos(0), "0", "0"},
                 {Nanos(1), "0.000000001", "0.000001"},
                 {std::chrono::microseconds(1500), "0.0015", "1.5"},
                 {std::chrono::seconds(90), "90", "90000"}};
    for (const auto& one : cases) {
        std::string seconds;
        std::string millis;
        append_json_seconds(seconds, one.value);
        append_json_millis(millis, one.value);
        EXPECT_EQ(seconds, one.seconds);
        EXPECT_EQ(millis, one.millis);
    }
}

// The line of a request that went through the engine.
std::string line_of(World& world, const Ask& ask, RequestRecord record = {}) {
    const auto flight = world.begin(ask);
    const Exchange& exchange = flight->exchange();
    const bool admitted = exchange.decision.kind == Decision::Kind::admit;
    record.exchange = &exchange;
    record.outcome = admitted ? RequestOutcome::admitted : RequestOutcome::refused;
    record.id = "req-1";
    record.method = exchange.request.method;
    record.target = exchange.request.target;
    record.status = admitted ? 200 : flight->reply().status;
    record.at = Wall(std::chrono::seconds(1'800'000'000));
    record.total = std::chrono::microseconds(2500);
    std::string line;
    append_access_line(line, record);
    world.end(*flight);
    EXPECT_TRUE(line.ends_with("}\n"));
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    return line;
}

TEST(AccessLine, SaysWhatWasDecidedAndWhy) {
    World world(testing::ping_policy, testing::ping_directory);
    const Ask ask{.path = "//v1/./ping?token=s3cret", .bearer = "sk_live_s3cret"};
    RequestRecord upstream;
    upstream.upstream_status = 200;
    upstream.upstream = std::chrono::microseconds(1000);
    upstream.response_bytes = 5;
    json line = json::parse(line_of(world, ask, upstream));
    EXPECT_EQ(line["time"], "2027-01-15T08:00:00.000Z");
    EXPECT_EQ(line["id"], "req-1");
    EXPECT_EQ(line["method"], "GET");
    EXPECT_EQ(line["path"], "/v1/ping");
    EXPECT_EQ(line["route"], "ping");
    EXPECT_EQ(line["outcome"], "admitted");
    EXPECT_EQ(line["status"], 200);
    EXPECT_EQ(line["upstream_status"], 200);
    EXPECT_EQ(line["credential"], "secret");
    EXPECT_EQ(line["fingerprint"].get<std::string>().size(), 12U);
    EXPECT_EQ(line["address"], "203.0.113.7");
    EXPECT_EQ(line["response_bytes"], 5);
    EXPECT_EQ(line["total_ms"], 2.5);
    EXPECT_EQ(line["upstream_ms"], 1);
    EXPECT_FALSE(line.contains("wait"));
    world.ask(ask, 9);
    line = json::parse(line_of(world, ask));
    EXPECT_EQ(line["outcome"], "refused");
    EXPECT_EQ(line["status"], 429);
    EXPECT_EQ(line["rule"], "pings");
    EXPECT_EQ(line["wait"], 360);
    EXPECT_EQ(line["limit"], 10);
    EXPECT_EQ(line["remaining"], 0);
    EXPECT_EQ(line["upstream_status"], nullptr);
    EXPECT_EQ(line["shadow_refused"], json::array({"in shadow"}));
}

TEST(AccessLine, NeverASecret) {
    World world(testing::ping_policy, testing::ping_directory);
    const Ask asks[] = {
        {.path = "/v1/ping?key=s3cret", .bearer = "sk_live_s3cret"},
        {.path = "/v1/ping", .bearer = "sk_unknown_s3cret"},
        {.path = "/v1/ping", .bearer = "other_s3cret"},
        {.path = "/v1/ping", .headers = {{"Cookie", "session=s3cret"}, {"X-Api-Key", "s3cret"}}},
        {.path = "http://me:s3cret@host/v1/ping"},
        {.path = "/../s3cret"},
        {.path = "s3cret"},
        {.path = "/v1/ping#s3cret"},
    };
    for (const Ask& ask : asks) {
        EXPECT_EQ(line_of(world, ask).find("s3cret"), std::string::npos) << ask.path;
    }
    const json unknown = json::parse(line_of(world, {.path = "/v1/ping", .bearer = "sk_nobody"}));
    EXPECT_EQ(unknown["credential"], "unknown");
    EXPECT_EQ(unknown["fingerprint"], nullptr);
}

TEST(AccessLine, ARequestThatCouldNotBeRead) {
    RequestRecord record;
    record.outcome = RequestOutcome::malformed;
    record.status = 400;
    record.target = "sk_live_s3cret";
    record.detail = "malformed request target";
    std::string line;
    append_access_line(line, record);
    const json parsed = json::parse(line);
    EXPECT_EQ(parsed["detail"], "malformed request target");
    EXPECT_EQ(parsed["method"], nullptr);
    EXPECT_FALSE(parsed.contains("path"));
    EXPECT_EQ(line.find("s3cret"), std::string::npos);
}

TEST(AccessLine, ALineIsBounded) {
    World world(testing::ping_policy, testing::ping_directory);
    const std::string path = cat("/v1/free/", std::string(8000, '"'));
    RequestRecord record;
    const std::string detail(100'000, '\x01');
    record.detail = detail;
    const std::string line = line_of(world, {.path = path}, record);
    EXPECT_LT(line.size(), max_line_bytes);
    EXPECT_TRUE(json::accept(line));
}

RequestRecord plain_record() {
    RequestRecord record;
    record.outcome = RequestOutcome::malformed;
    record.id = "r";
    record.status = 400;
    return record;
}

std::uint64_t lines_in(const std::string& text) {
    return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

LogTarget file_target(const std::string& path) {
    return {.kind = LogTarget::Kind::file, .path = path};
}

TEST(AccessLog, LinesOfAllThreadsReachTheFile) {
    const Folder folder;
    RecordingLog log;
    {
        auto access = AccessLog::open(file_target(folder.path("a.jsonl")), log,
                                      {.buffer_bytes = 1 << 20, .flush_every = Nanos(1'000'000)});
        ASSERT_TRUE(access.ok());
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 500; ++i) {
                    (*access)->on_request(plain_record());
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    }
    std::istringstream lines(folder.read("a.jsonl"));
    std::string line;
    int count = 0;
    while (std::getline(lines, line)) {
        EXPECT_TRUE(json::accept(line)) << line;
        ++count;
    }
    EXPECT_EQ(count, 2000);
    struct stat facts {};
    ASSERT_EQ(::stat(folder.path("a.jsonl").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07U, 0U);  // not for others
}

TEST(AccessLog, AFullBufferDropsAndCounts) {
    const Folder folder;
    RecordingLog log;
    std::string one;
    append_access_line(one, plain_record());
    // Room for exactly two lines, and nobody empties it.
    auto access =
        AccessLog::open(file_target(folder.path("a.jsonl")), log,
                        {.buffer_bytes = 2 * one.size(), .flush_every = std::chrono::hours(1)});
    ASSERT_TRUE(access.ok());
    static_cast<void>((*access)->retarget(file_target(folder.path("b.jsonl"))));
    (*access)->on_request(plain_record());
    EXPECT_EQ((*access)->stats().dropped, 0U);
    std::uint64_t sent = 1;
    // The second line wakes the writer; until it has run further lines find no room.
    while ((*access)->stats().dropped == 0 && sent < 1'000'000) {
        (*access)->on_request(plain_record());
        ++sent;
    }
    EXPECT_GT((*access)->stats().dropped, 0U);
    const std::uint64_t dropped = (*access)->stats().dropped;
    access->reset();
    EXPECT_EQ(lines_in(folder.read("b.jsonl")), sent - dropped);
}

TEST(AccessLog, AReaderThatStallsHoldsUpNoRequest) {
    const Folder folder;
    RecordingLog log;
    ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
    const int reader = ::open(folder.path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
    auto access = AccessLog::open(file_target(folder.path("pipe")), log,
                                  {.buffer_bytes = 4096, .flush_every = Nanos(1'000'000)});
    ASSERT_TRUE(access.ok());
    EXPECT_TRUE(testing::eventually([&] {
        for (int i = 0; i < 1000; ++i) {
            (*access)->on_request(plain_record());
        }
        return (*access)->stats().dropped > 0 && log.count("does not read") == 1;
    }));
    access->reset();
    EXPECT_EQ(log.count("does not read"), 1);
    ::close(reader);
}

TEST(AccessLog, AFullDiskIsWarnedAboutOnce) {
    RecordingLog log;
    {
        auto access = AccessLog::open(file_target("/dev/full"), log,
                                      {.buffer_bytes = 4096, .flush_every = Nanos(1'000'000)});
        ASSERT_TRUE(access.ok());
        for (std::uint64_t i = 1; i <= 3; ++i) {
            (*access)->on_request(plain_record());
            EXPECT_TRUE(testing::eventually([&] { return (*access)->stats().dropped == i; }));
        }
    }
    EXPECT_EQ(log.count("warning: access log: No space left on device"), 1);
}

TEST(AccessLog, ReopensAfterARotation) {
    const Folder folder;
    RecordingLog log;
    auto access = AccessLog::open(file_target(folder.path("a")), log,
                                  {.buffer_bytes = 4096, .flush_every = std::chrono::hours(1)});
    ASSERT_TRUE(access.ok());
    (*access)->on_request(plain_record());
    std::filesystem::rename(folder.path("a"), folder.path("a.1"));
    (*access)->reopen();
    (*access)->on_request(plain_record());
    (*access)->on_request(plain_record());
    access->reset();
    EXPECT_EQ(lines_in(folder.read("a.1")), 1U);
    EXPECT_EQ(lines_in(folder.read("a")), 2U);
}

TEST(AccessLog, AnotherTargetOrNone) {
    const Folder folder;
    RecordingLog log;
    auto access = AccessLog::open({}, log, {});
    ASSERT_TRUE(access.ok());
    (*access)->on_request(plain_record());  // off
    const auto refused = (*access)->retarget(file_target(folder.path("no/such/folder")));
    EXPECT_FALSE(refused.ok());
    EXPECT_NE(std::string(refused.message()).find("no/such/folder"), std::string::npos);
    EXPECT_TRUE((*access)->retarget(file_target(folder.path("a"))).ok());
    (*access)->on_request(plain_record());
    EXPECT_TRUE((*access)->retarget({}).ok());
    (*access)->on_request(plain_record());
    EXPECT_EQ(lines_in(folder.read("a")), 1U);
    EXPECT_EQ((*access)->stats().written, 1U);
    EXPECT_EQ((*access)->stats().dropped, 0U);
}

TEST(LogFile, ATornLineIsEndedBeforeTheNext) {
    const Folder folder;
    ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
    const int reader = ::open(folder.path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
    auto file = LogFile::open(file_target(folder.path("pipe")));
    ASSERT_TRUE(file.ok());
    // One line longer than the pipe holds: it tears when nobody reads.
    const std::string lines(1 << 20, 'x');
    std::size_t written = 0;
    EXPECT_FALSE(file->write(lines, written).ok());
    EXPECT_GT(written, 0U);
    EXPECT_LT(written, lines.size());
    std::string got(written, '\0');
    EXPECT_EQ(::read(reader, got.data(), got.size()), static_cast<ssize_t>(written));
    EXPECT_TRUE(file->write("next\n", written).ok());
    char after[16] = {};
    EXPECT_EQ(::read(reader, after, sizeof after), 6);
    EXPECT_STREQ(after, "\nnext\n");
    ::close(reader);
}

}  // namespace
}  // namespace ration
