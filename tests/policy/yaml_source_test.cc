// The tree of a YAML text: places, and every bound at it and one past it.
#include "policy/yaml_source.h"

#include <gtest/gtest.h>

#include <string>

namespace ration {
namespace {

std::string error_of(const std::string& text) {
    Problems problems;
    const auto document = YamlDocument::parse("f", text, problems);
    EXPECT_EQ(document == nullptr, !problems.ok());
    return problems.ok() ? "" : problems.errors()[0].text();
}

TEST(YamlSource, EveryNodeKnowsItsPlace) {
    Problems problems;
    const auto document =
        YamlDocument::parse("f", "a: 1\nb:\n  - x\n  - {k: \"v\"}\nc:\n", problems);
    ASSERT_NE(document, nullptr);
    const YamlNode& root = document->root();
    ASSERT_EQ(root.entries.size(), 3U);
    const YamlNode* list = root.find("b");
    ASSERT_TRUE(list != nullptr && list->is_sequence());
    EXPECT_EQ(list->items[0]->at.line, 3);
    EXPECT_EQ(list->items[0]->at.column, 5);
    const YamlNode* value = list->items[1]->find("k");
    EXPECT_EQ(value->at.column, 9);
    EXPECT_TRUE(value->quoted);
    EXPECT_FALSE(root.find("a")->quoted);
    EXPECT_EQ(root.find("c")->kind, YamlNode::Kind::null);
    EXPECT_EQ(root.find("d"), nullptr);
}

TEST(YamlSource, AliasesStandForTheirNode) {
    Problems problems;
    const auto document = YamlDocument::parse("f", "a: &x [1, 2]\nb: *x\n", problems);
    ASSERT_NE(document, nullptr);
    EXPECT_EQ(document->root().find("a"), document->root().find("b"));
}

TEST(YamlSource, RefusesBytesThatAreNotUtf8) {
    EXPECT_EQ(error_of(std::string("a: b\nc: \xff\n")), "f:2:4: the text is not UTF-8");
    EXPECT_EQ(error_of(std::string("a: \xc0\x80\n")), "f:1:4: the text is not UTF-8");
    EXPECT_EQ(error_of(std::string("a: \xed\xa0\x80\n")), "f:1:4: the text is not UTF-8");
    EXPECT_EQ(error_of(std::string("a: \xe2\x82")), "f:1:4: the text is not UTF-8");
    EXPECT_EQ(error_of(std::string("a: \0\n", 5)), "f:1:4: a NUL byte");
    EXPECT_EQ(error_of("a: \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\n"), "");
}

TEST(YamlSource, OneFileHoldsOneDocument) {
    EXPECT_EQ(error_of("a: b\n---\nc: d\n"), "f:2:1: a second document; one file holds one");
}

TEST(YamlSource, AKeyIsText) {
    EXPECT_EQ(error_of("{[a]: b}\n"), "f:1:2: a key must be plain text");
    EXPECT_EQ(error_of("? {a: b}\n: c\n"), "f:1:3: a key must be plain text");
    EXPECT_EQ(error_of("~: b\n"), "f:1:1: a key must be plain text");
}

std::string nested(std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
}

TEST(YamlSource, DepthIsBounded) {
    EXPECT_EQ(error_of(nested(max_yaml_depth)), "");
    EXPECT_EQ(error_of(nested(max_yaml_depth + 1)), "f:1:33: nested deeper than 32 levels");
    EXPECT_NE(error_of(nested(100000)), "");
}

TEST(YamlSource, SizeIsBounded) {
    const std::string text = "a: b #";
    EXPECT_EQ(error_of(text + std::string(max_yaml_bytes - text.size(), 'x')), "");
    EXPECT_EQ(error_of(text + std::string(max_yaml_bytes - text.size() + 1, 'x')),
              "f: the file is larger than 4 MiB");
}

// Nodes of "- *x" lists double with every level; 2^20 of them is the bound.
std::string doubling(int levels, int more) {
    std::string text = "l0: &l0 [a]\n";
    for (int i = 1; i <= levels; ++i) {
        const std::string before = "*l" + std::to_string(i - 1);
        text += "l" + std::to_string(i) + ": &l" + std::to_string(i) + " [" + before + ", " +
                before + "]\n";
    }
    for (int i = 0; i < more; ++i) {
        text += "m" + std::to_string(i) + ": a\n";
    }
    return text;
}

TEST(YamlSource, AliasesCountInFull) {
    // Level n holds 3 * 2^n - 1 nodes; all levels to n together 3 * 2^(n+1) - 3 - (n+1), and the
    // root.
    constexpr int levels = 17;
    constexpr int below = (3 << (levels + 1)) - 3 - (levels + 1) + 1;
    constexpr int room = static_cast<int>(max_yaml_nodes) - below;
    static_assert(room > 0);
    EXPECT_EQ(error_of(doubling(levels, 0)), "");
    EXPECT_NE(error_of(doubling(levels + 1, 0)).find("more than 1048576 values"),
              std::string::npos);
    EXPECT_NE(error_of(doubling(40, 0)).find("more than 1048576 values"), std::string::npos);
}

TEST(YamlSource, AFileThatCannotBeRead) {
    Problems problems;
    std::string text;
    EXPECT_FALSE(read_file("/does/not/exist.yaml", text, problems));
    EXPECT_EQ(problems.errors()[0].text(), "/does/not/exist.yaml: cannot be opened for reading");
    EXPECT_FALSE(read_file("/", text, problems));
}

TEST(Problems, AreBounded) {
    std::string text;
    for (int i = 0; i < 300; ++i) {
        text += "- a\n";
    }
    Problems problems;
    for (std::size_t i = 0; i < max_problems + 5; ++i) {
        problems.error("f", {1, 1}, "x");
    }
    ASSERT_EQ(problems.errors().size(), max_problems + 1);
    EXPECT_EQ(problems.errors().back().reason, "more problems follow; these come first");
}

TEST(NearestWord, TakesTheClosestWithinAThird) {
    const std::vector<std::string_view> known = {"token_bucket", "fixed_window", "limits", "per"};
    EXPECT_EQ(nearest_word("tokenbucket", known), "token_bucket");
    EXPECT_EQ(nearest_word("limist", known), "limits");
    EXPECT_EQ(nearest_word("LIMITS", known), "limits");
    EXPECT_EQ(nearest_word("prr", known), "per");
    EXPECT_EQ(nearest_word("xyz", known), "");
    EXPECT_EQ(nearest_word("", known), "");
    EXPECT_EQ(nearest_word(std::string(65, 'a'), {std::string_view("a")}), "");
}

}  // namespace
}  // namespace ration
