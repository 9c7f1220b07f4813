#include "workbench/replay_line.h"

#include <gtest/gtest.h>

namespace ration {
namespace {

using namespace std::chrono_literals;

TEST(ReplayLine, ReadsEveryField) {
    LineError error;
    const auto line = parse_replay_line(
        R"({"id":"a1","at":"2026-03-01T12:00:00.5Z","method":"POST","path":"/v1/x?y=1",)"
        R"("headers":{"Accept":" text/plain ","X-Two":["1","2"]},"peer":"2001:db8::1","body":"{}",)"
        R"("response":{"status":201,"headers":{"Location":"/1"},"body":"ok","takes":0.25}})",
        error);
    ASSERT_TRUE(line) << error.reason;
    EXPECT_EQ(line->id_text, "\"a1\"");
    EXPECT_EQ(line->at_text, "\"2026-03-01T12:00:00.5Z\"");
    EXPECT_EQ(line->at.time_since_epoch(), 1772366400s + 500ms);
    EXPECT_FALSE(line->event);
    EXPECT_EQ(line->request.method, "POST");
    EXPECT_EQ(line->request.target, "/v1/x?y=1");
    const Fields headers = {{"Accept", "text/plain"}, {"X-Two", "1"}, {"X-Two", "2"}};
    EXPECT_EQ(line->request.headers, headers);
    EXPECT_EQ(line->request.peer.address, IpAddress::parse("2001:db8::1"));
    EXPECT_EQ(line->request.body, "{}");
    EXPECT_EQ(line->request.upstream.status, 201);
    EXPECT_EQ(line->request.upstream.takes, 250ms);
    EXPECT_EQ(line->request.upstream.body, "ok");
}

TEST(ReplayLine, HasDefaults) {
    LineError error;
    const auto line = parse_replay_line(R"({"at":0,"method":"GET","path":"/"})", error);
    ASSERT_TRUE(line) << error.reason;
    EXPECT_EQ(line->id_text, "null");
    EXPECT_EQ(line->at_text, "0");
    EXPECT_EQ(line->request.peer.address, IpAddress::parse("127.0.0.1"));
    EXPECT_EQ(line->request.upstream.status, 200);
    EXPECT_EQ(line->request.upstream.takes, 0ns);
}

TEST(ReplayLine, ReadsEvents) {
    LineError error;
    const auto event = [&](const char* text) {
        const auto line = parse_replay_line(text, error);
        return line && line->event ? std::optional(*line->event) : std::nullopt;
    };
    EXPECT_EQ(event(R"({"at":1,"event":"restart"})")->kind, ReplayEvent::Kind::restart);
    EXPECT_EQ(event(R"({"at":1,"event":"policy","file":"p.yaml"})")->file, "p.yaml");
    EXPECT_EQ(event(R"({"state":"down","at":1,"event":"counters"})")->kind,
              ReplayEvent::Kind::counters_down);
    EXPECT_EQ(event(R"({"at":1,"event":"counters","state":"up"})")->kind,
              ReplayEvent::Kind::counters_up);
}

struct WrongRow {
    const char* text;
    int column;
    const char* reason;
};

void PrintTo(const WrongRow& row, std::ostream* out) {
    *out << row.reason;
}

class WrongLineTest : public ::testing::TestWithParam<WrongRow> {};

TEST_P(WrongLineTest, IsNamedWithItsColumn) {
    LineError error;
    EXPECT_FALSE(parse_replay_line(GetParam().text, error));
    EXPECT_EQ(error.column, GetParam().column);
    EXPECT_EQ(error.reason, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, WrongLineTest,
    ::testing::Values(
        WrongRow{"not json", 1, "expected a JSON object"},
        WrongRow{R"({"at":0,"method":"GET","paht":"/"})", 24,
                 "unknown field \"paht\", did you mean \"path\"?"},
        WrongRow{R"({"at":0,"method":"GET","path":"/","response":{"stauts":200}})", 47,
                 "unknown field \"stauts\", did you mean \"status\"?"},
        WrongRow{R"({"method":"GET","path":"/"})", 1, "\"at\" is missing"},
        WrongRow{R"({"at":0,"path":"/"})", 1, "\"method\" is missing"},
        WrongRow{R"({"at":0,"method":"GET"})", 1, "\"path\" is missing"},
        WrongRow{R"({"at":"12","method":"GET","path":"/"})", 7,
                 "\"at\" in a string must be a date; write seconds as a number"},
        WrongRow{R"({"at":true,"method":"GET","path":"/"})", 7,
                 "\"at\" must be a date in a string, or a number of seconds"},
        WrongRow{R"({"at":0,"method":"G T","path":"/"})", 18, "\"G T\" is not a request method"},
        WrongRow{R"({"at":0,"method":"GET","path":"/","peer":"me"})", 42,
                 "\"me\" is not an IP address"},
        WrongRow{R"({"at":0,"method":"GET","path":"/","headers":{"A":1}})", 50,
                 "a header is a string, or a list of strings"},
        WrongRow{R"({"at":0,"method":"GET","path":"/","headers":{"A":"x\ny"}})", 50,
                 "the header A has a control character"},
        WrongRow{R"({"at":0,"method":"GET","path":"/","headers":{"A b":"x"}})", 52,
                 "\"A b\" is not the name of a header"},
        WrongRow{R"({"at":0,"method":"GET","path":"/","response":{"status":100}})", 56,
                 "the status of a final answer is a whole number from 200 to 599"},
        WrongRow{R"({"at":0,"method":"GET","path":"/","response":{"takes":-1}})", 55,
                 "\"takes\" is below 0"},
        WrongRow{R"({"at":0,"method":"GET","path":"/","response":{"probe":{"probe":{}}}})", 56,
                 "an answer to a probe has no probe of its own"},
        WrongRow{R"({"at":0,"method":"GET","path":"/","response":{"takes":"soon"}})", 55,
                 "\"takes\" is a number of seconds or \"never\""},
        WrongRow{R"({"at":0,"event":"restrat"})", 1,
                 "unknown event \"restrat\", did you mean \"restart\"?"},
        WrongRow{R"({"at":0,"event":"restart","path":"/"})", 1,
                 "the event \"restart\" has no field \"path\""},
        WrongRow{R"({"at":0,"event":"policy"})", 1, "the event \"policy\" needs \"file\""},
        WrongRow{R"({"at":0,"event":"counters","state":"off"})", 1,
                 "the event \"counters\" needs \"state\", which is \"down\" or \"up\""},
        WrongRow{R"({"at":0,"method":"GET","path":"/","file":"x"})", 1,
                 "\"file\" belongs to an event, and the line has none"},
        WrongRow{R"({"at":0,"at":0,"method":"GET","path":"/"})", 9, "\"at\" stands twice"},
        WrongRow{R"({"at":0,"method":"GET","path":"/"} x)", 36,
                 "nothing can stand after the object"}));

}  // namespace
}  // namespace ration
