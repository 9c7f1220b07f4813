#include "workbench/json_cursor.h"

#include <gtest/gtest.h>

namespace ration {
namespace {

// Reads any JSON value, to see what the cursor takes.
bool walk(JsonCursor& cursor, int depth = 0) {
    std::string_view raw;
    switch (cursor.peek()) {
        case JsonCursor::Kind::object:
            return cursor.object(
                [&](const std::string&) { return depth < 20 && walk(cursor, depth + 1); });
        case JsonCursor::Kind::array:
            return cursor.array([&] { return depth < 20 && walk(cursor, depth + 1); });
        default:
            return cursor.scalar(raw);
    }
}

bool accepts(std::string_view text) {
    JsonCursor cursor(text);
    return walk(cursor) && cursor.end();
}

TEST(JsonCursor, TakesJson) {
    for (const char* text :
         {"{}", "[]", "[1,-2.5e3,0,\"x\",true,false,null]", "{\"a\":{\"b\":[{}]}}", " \t{ }\r\n",
          R"("\"\\\/\b\f\n\r\t\u0041\ud83d\ude00")", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""}) {
        EXPECT_TRUE(accepts(text)) << text;
    }
}

TEST(JsonCursor, TakesNothingElse) {
    for (const char* text : {"",
                             "{",
                             "[1,]",
                             "{\"a\":1,}",
                             "{a:1}",
                             "{'a':1}",
                             "[01]",
                             "[1.]",
                             "[.5]",
                             "[+1]",
                             "[nul]",
                             "{\"a\" 1}",
                             "{\"a\":1 \"b\":2}",
                             "{} {}",
                             "[1] x",
                             "\"\\x\"",
                             "\"\\u12\"",
                             "\"\\ud800\"",
                             "\"\\udc00\"",
                             "\"\\ud800\\u0041\"",
                             "\"tab\there\"",
                             "\"\xff\"",
                             "\"\xc0\xaf\"",
                             "\"\xed\xa0\x80\"",
                             "\"\xf5\x80\x80\x80\"",
                             "\"open",
                             "{\"a\":1,\"a\":2}"}) {
        EXPECT_FALSE(accepts(text)) << text;
    }
}

TEST(JsonCursor, HandsNumbersOverAsWritten) {
    JsonCursor cursor("[1700000000.123456789, 1E2]");
    std::vector<std::string> seen;
    ASSERT_TRUE(cursor.array([&] {
        std::string_view raw;
        const bool good = cursor.number(raw);
        seen.emplace_back(raw);
        return good;
    }));
    EXPECT_EQ(seen, (std::vector<std::string>{"1700000000.123456789", "1E2"}));
}

TEST(JsonCursor, DecodesStrings) {
    JsonCursor cursor(R"("a\n\u00e9\ud83d\ude00")");
    std::string text;
    ASSERT_TRUE(cursor.string(text));
    EXPECT_EQ(text, "a\n\xc3\xa9\xf0\x9f\x98\x80");
}

TEST(JsonCursor, FirstFailureKeepsItsColumn) {
    JsonCursor cursor(R"({"a": 1, "b": tru})");
    EXPECT_FALSE(walk(cursor));
    EXPECT_EQ(cursor.column(), 15);
    EXPECT_EQ(cursor.reason(), "expected a string, a number, true, false or null");
    EXPECT_FALSE(cursor.end());
}

TEST(JsonQuoted, IsJsonWhateverTheBytes) {
    EXPECT_EQ(json_quoted("a\"\\\n\x01\xff z"), "\"a\\\"\\\\\\n\\u0001\xEF\xBF\xBD z\"");
    EXPECT_TRUE(accepts(json_quoted(std::string("\x00\x1f\x7f\xc0\x80", 5))));
}

}  // namespace
}  // namespace ration
