#include "wire/resp.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ration {
namespace {

using Kind = RespValue::Kind;

struct Row {
    std::string bytes;
    bool array;
    std::vector<RespValue> values;
};

std::vector<Row> good() {
    return {
        {"+OK\r\n", false, {{Kind::status, "OK", 0}}},
        {"+\r\n", false, {{Kind::status, "", 0}}},
        {"-ERR no\r\n", false, {{Kind::error, "ERR no", 0}}},
        {":0\r\n", false, {{Kind::integer, "", 0}}},
        {":-9223372036854775808\r\n", false, {{Kind::integer, "", INT64_MIN}}},
        {"$0\r\n\r\n", false, {{Kind::bulk, "", 0}}},
        {std::string("$4\r\n\r\n\0x\r\n", 10),
         false,
         {{Kind::bulk, std::string_view("\r\n\0x", 4), 4}}},
        {"$-1\r\n", false, {{Kind::null, "", -1}}},
        {"*-1\r\n", false, {{Kind::null, "", 0}}},
        {"*0\r\n", true, {}},
        {"*3\r\n:1\r\n$2\r\nab\r\n$-1\r\n",
         true,
         {{Kind::integer, "", 1}, {Kind::bulk, "ab", 2}, {Kind::null, "", -1}}},
        {"*2\r\n-no\r\n+yes\r\n", true, {{Kind::error, "no", 0}, {Kind::status, "yes", 0}}},
    };
}

TEST(Resp, ReadsEveryKindOfReply) {
    for (const Row& row : good()) {
        SCOPED_TRACE(row.bytes);
        RespReply reply;
        std::size_t used = 0;
        const std::string bytes = row.bytes + "+next\r\n";
        ASSERT_EQ(parse_resp(bytes, reply, used), RespRead::complete);
        EXPECT_EQ(used, row.bytes.size());
        EXPECT_EQ(reply.array, row.array);
        ASSERT_EQ(reply.values.size(), row.values.size());
        for (std::size_t i = 0; i < row.values.size(); ++i) {
            EXPECT_EQ(reply.values[i].kind, row.values[i].kind);
            EXPECT_EQ(reply.values[i].text, row.values[i].text);
            if (row.values[i].kind == Kind::integer) {
                EXPECT_EQ(reply.values[i].integer, row.values[i].integer);
            }
        }
    }
}

TEST(Resp, WaitsForTheWholeOfIt) {
    for (const Row& row : good()) {
        SCOPED_TRACE(row.bytes);
        for (std::size_t size = 0; size < row.bytes.size(); ++size) {
            RespReply reply;
            std::size_t used = 7;
            EXPECT_EQ(parse_resp(row.bytes.substr(0, size), reply, used), RespRead::more) << size;
            EXPECT_EQ(used, 0U);
        }
    }
}

TEST(Resp, RefusesWhatIsNoReply) {
    for (const std::string& bytes : std::vector<std::string>{
             "\r\n", "OK\r\n", "HTTP/1.1 400\r\n", ":\r\n", ":x\r\n", ":1x\r\n", ": 1\r\n",
             ":+1\r\n", ":9223372036854775808\r\n", "$-2\r\n", "$x\r\n", "$2\r\nabc\r\n",
             "$1\r\na\rx", "*-2\r\n", "*1\r\n*0\r\n", "*1\r\n?\r\n", "+a\rb\r\n",
             "*99999999999999999999\r\n"}) {
        RespReply reply;
        std::size_t used = 7;
        EXPECT_EQ(parse_resp(bytes, reply, used), RespRead::malformed) << bytes;
        EXPECT_EQ(used, 0U);
    }
}

TEST(Resp, EverythingHasABound) {
    const auto read = [](const std::string& bytes) {
        RespReply reply;
        std::size_t used = 0;
        return parse_resp(bytes, reply, used);
    };
    const std::string bulk(max_resp_bulk, 'x');
    EXPECT_EQ(read("$" + std::to_string(max_resp_bulk) + "\r\n" + bulk + "\r\n"),
              RespRead::complete);
    EXPECT_EQ(read("$" + std::to_string(max_resp_bulk + 1) + "\r\n"), RespRead::malformed);
    std::string array = "*" + std::to_string(max_resp_elements) + "\r\n";
    for (std::int64_t i = 0; i < max_resp_elements; ++i) {
        array += ":1\r\n";
    }
    EXPECT_EQ(read(array), RespRead::complete);
    EXPECT_EQ(read("*" + std::to_string(max_resp_elements + 1) + "\r\n"), RespRead::malformed);
    EXPECT_EQ(read("+" + std::string(max_resp_line - 1, 'x') + "\r\n"), RespRead::complete);
    EXPECT_EQ(read("+" + std::string(max_resp_line, 'x') + "\r\n"), RespRead::malformed);
    EXPECT_EQ(read("+" + std::string(max_resp_line, 'x')), RespRead::malformed);
}

TEST(Resp, WritesCommandsThatItCanRead) {
    std::string out;
    append_resp_command(out, {"SET", "key", std::string_view("a\r\n\0b", 5), ""});
    EXPECT_EQ(out, std::string("*4\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\na\r\n\0b\r\n$0\r\n\r\n", 39));
    RespReply reply;
    std::size_t used = 0;
    ASSERT_EQ(parse_resp(out, reply, used), RespRead::complete);
    EXPECT_EQ(used, out.size());
    EXPECT_EQ(reply.values[2].text, std::string_view("a\r\n\0b", 5));
}

}  // namespace
}  // namespace ration
