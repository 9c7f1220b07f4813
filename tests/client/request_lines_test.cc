// A request's header as libcurl reads it, and words that differ in nothing but case.
#include "client/request_lines.h"

#include "base/same_word.h"
#include "base/text.h"
#include "gtest/gtest.h"

namespace ration::client {
namespace {

std::vector<std::string> read(RequestLines& lines) {
    std::vector<std::string> seen;
    for (const curl_slist* line = lines.list(); line; line = line->next) {
        seen.emplace_back(line->data);
    }
    return seen;
}

TEST(RequestLines, AreAsLibcurlWantsThem) {
    RequestLines lines;
    EXPECT_EQ(lines.list(), nullptr);
    lines.add("Accept", "text/plain");
    lines.add("X-Empty", "");
    lines.leave_out("Expect");
    EXPECT_EQ(read(lines), (std::vector<std::string>{"Accept: text/plain", "X-Empty;", "Expect:"}));
    lines.clear();
    EXPECT_EQ(lines.list(), nullptr);
}

TEST(RequestLines, AnyNumberOfAnyLength) {
    RequestLines lines;
    std::vector<std::string> expected;
    for (std::size_t i = 0; i < 40; ++i) {
        const std::string value(i * 50 + 1, 'v');
        lines.add(cat("X-", i), value);
        expected.push_back(cat("X-", i, ": ", value));
        EXPECT_EQ(read(lines), expected);
    }
}

TEST(SameWord, ComparesWithoutTheCaseOfAsciiLetters) {
    EXPECT_TRUE(same_word("", ""));
    EXPECT_TRUE(same_word("Retry-After", "retry-AFTER"));
    EXPECT_FALSE(same_word("retry", "retry-after"));
    EXPECT_FALSE(same_word("a[b", "a{b"));  // these differ in the bit that letters' cases do
    EXPECT_FALSE(same_word("x@", "x`"));
    EXPECT_FALSE(same_word("\xC4", "\xE4"));
}

}  // namespace
}  // namespace ration::client
