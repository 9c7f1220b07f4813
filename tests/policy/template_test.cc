// Holes filled, holes missing, and nothing that a value could break out of.
#include "policy/template.h"

#include <gtest/gtest.h>

#include <string>

namespace ration {
namespace {

HoleValues full() {
    HoleValues values;
    values.limit = 60;
    values.remaining = 0;
    values.count = 61;
    values.retry_after = 12;
    values.reset_epoch = 1700000040;
    values.reset_after = 13;
    values.wait = "11.5";
    values.rule = "personal token";
    values.type = "rate_limited";
    values.message = "Too many requests.";
    values.request_id = "r-1";
    return values;
}

// The text, or "(absent)", or "error: ...".
std::string text_of(std::string_view source, const HoleValues& values) {
    std::string error;
    const Template made = Template::text(source, error);
    if (!error.empty()) {
        return "error: " + error;
    }
    std::string out = "<";
    const bool there = made.append_to(out, values);
    return there ? out + ">" : out == "<" ? "(absent)" : "(left something behind)";
}

std::string scalar_of(std::string_view source, const HoleValues& values) {
    std::string error;
    const Template made = Template::json(Template::json_scalar(source, error));
    if (!error.empty()) {
        return "error: " + error;
    }
    std::string out;
    return made.append_to(out, values) ? out : "(absent)";
}

TEST(Template, FillsHoles) {
    const std::pair<const char*, const char*> cases[] = {
        {"", "<>"},
        {"plain", "<plain>"},
        {"{retry_after}", "<12>"},
        {"Wait {retry_after} s", "<Wait 12 s>"},
        {"{limit}/{remaining}/{count}", "<60/0/61>"},
        {"{reset_epoch} {reset_after} {wait}", "<1700000040 13 11.5>"},
        {"{rule}: {type}, {message} ({request_id})",
         "<personal token: rate_limited, Too many requests. (r-1)>"},
        {"{{}}", "<{}>"},
        {"{{{limit}}}", "<{60}>"},
        {"a }} b {{ c", "<a } b { c>"},
        {"{{limit}}", "<{limit}>"},
    };
    for (const auto& [source, expected] : cases) {
        EXPECT_EQ(text_of(source, full()), expected) << source;
    }
}

TEST(Template, SaysWhatIsWrong) {
    const std::pair<const char*, const char*> cases[] = {
        {"{retryafter}", "unknown hole {retryafter}; did you mean {retry_after}?"},
        {"{remainin}", "unknown hole {remainin}; did you mean {remaining}?"},
        {"{}", "unknown hole {}; known are limit, remaining,"},
        {"{ limit }", "unknown hole { limit }"},
        {"{limit", "a '{' without its partner"},
        {"limit}", "a '}' without its partner"},
        {"{li{mit}", "a '{' without its partner"},
        {"{", "a '{' without its partner"},
        {"{{}", "a '}' without its partner"},
    };
    for (const auto& [source, reason] : cases) {
        const std::string result = text_of(source, full());
        EXPECT_TRUE(result.starts_with("error: ")) << source;
        EXPECT_NE(result.find(reason), std::string::npos) << result;
    }
}

TEST(Template, AHoleWithoutAValueTakesItsHeaderAway) {
    HoleValues none;
    for (const char* hole : {"{limit}", "{remaining}", "{count}", "{retry_after}", "{wait}",
                             "{reset_epoch}", "{reset_after}", "{rule}", "{type}", "{message}",
                             "{request_id}", "Wait {retry_after} s"}) {
        EXPECT_EQ(text_of(hole, none), "(absent)") << hole;
    }
    EXPECT_EQ(text_of("no hole", none), "<no hole>");
}

TEST(Template, NoValueCanEndAHeaderLine) {
    HoleValues values;
    values.rule = "a\r\nSet-Cookie: b\x01\x7f";
    values.message = std::string_view("x\0y", 3);
    EXPECT_EQ(text_of("{rule}", values), "<a  Set-Cookie: b  >");
    EXPECT_EQ(text_of("{message}", values), "<x y>");
    for (const std::string_view source : {std::string_view("a\r\nb: c"), std::string_view("a\nb"),
                                          std::string_view("a\0", 2), std::string_view("\x7f")}) {
        EXPECT_TRUE(text_of(source, values).starts_with("error: a line break"));
    }
    EXPECT_EQ(text_of("a\tb", values), "<a\tb>");
    std::string error;
    std::string out;
    EXPECT_TRUE(Template::lines("a\n{rule}\n", error).append_to(out, full()));
    EXPECT_EQ(out, "a\npersonal token\n");
}

TEST(Template, JsonNumbersAreNumbersAndTextIsText) {
    const std::pair<const char*, const char*> cases[] = {
        {"{retry_after}", "12"},
        {"{wait}", "11.5"},
        {"{remaining}", "0"},
        {"{rule}", "\"personal token\""},
        {"{limit} ", "\"60 \""},
        {"{limit}{count}", "\"6061\""},
        {"in {retry_after} s", "\"in 12 s\""},
        {"{type}: {message}", "\"rate_limited: Too many requests.\""},
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"say \"no\" \\ {{}}", "\"say \\\"no\\\" \\\\ {}\""},
        {"a\nb\tc\x01", "\"a\\nb\\tc\\u0001\""},
    };
    for (const auto& [source, expected] : cases) {
        EXPECT_EQ(scalar_of(source, full()), expected) << source;
    }
    HoleValues values;
    values.message = "\"},\"admin\":true,{\"\\\r\n";
    EXPECT_EQ(scalar_of("{message}", values), R"("\"},\"admin\":true,{\"\\\r\n")");
    EXPECT_EQ(scalar_of("{retry_after}", values), "(absent)");
    EXPECT_TRUE(scalar_of("{nope}", values).starts_with("error: unknown hole"));
}

Template::Node scalar(std::string_view source) {
    std::string error;
    Template::Node node = Template::json_scalar(source, error);
    EXPECT_EQ(error, "");
    return node;
}

Template::Node object(std::vector<std::pair<std::string, Template::Node>> members) {
    Template::Node node;
    node.kind = Template::Node::Kind::object;
    for (auto& [name, child] : members) {
        node.names.push_back(Template::json_member_name(name));
        node.children.push_back(std::move(child));
    }
    return node;
}

TEST(Template, MembersWithoutAValueGoWithTheirComma) {
    Template::Node list;
    list.kind = Template::Node::Kind::array;
    list.children = {scalar("{rule}"), scalar("{limit}"), Template::json_literal("true")};
    const Template made = Template::json(object({
        {"error", object({{"type", scalar("{type}")}, {"wait", scalar("{wait}")}})},
        {"retry_after", scalar("{retry_after}")},
        {"a \"b\"", scalar("in {retry_after} s")},
        {"list", std::move(list)},
        {"count", scalar("{count}")},
    }));
    std::string out;
    ASSERT_TRUE(made.append_to(out, full()));
    EXPECT_EQ(
        out, R"({"error":{"type":"rate_limited","wait":11.5},"retry_after":12,"a \"b\"":"in 12 s",)"
             R"("list":["personal token",60,true],"count":61})");
    HoleValues some;
    some.wait = "0.8";
    some.count = 3;
    out = "before ";
    ASSERT_TRUE(made.append_to(out, some));
    EXPECT_EQ(out, R"(before {"error":{"wait":0.8},"list":[true],"count":3})");
    out.clear();
    ASSERT_TRUE(made.append_to(out, {}));
    EXPECT_EQ(out, R"({"error":{},"list":[true]})");
}

TEST(Template, ABodyToTheLetter) {
    const Template made = Template::json(object({{"error", scalar("rate_limited")},
                                                 {"limit", scalar("{limit}")},
                                                 {"count", scalar("{count}")},
                                                 {"retry_after", scalar("{retry_after}")}}));
    std::string out;
    ASSERT_TRUE(made.append_to(out, full()));
    EXPECT_EQ(out, R"({"error":"rate_limited","limit":60,"count":61,"retry_after":12})");
    EXPECT_FALSE(made.empty());
    EXPECT_TRUE(Template().empty());
}

TEST(Template, IsBounded) {
    HoleValues none;
    EXPECT_EQ(text_of(std::string(max_template_bytes, 'x'), none).size(), max_template_bytes + 2);
    EXPECT_EQ(text_of(std::string(max_template_bytes + 1, 'x'), none),
              "error: a text of more than 16384 bytes");
}

TEST(JsonEscaped, KeepsUtf8AndReplacesWhatIsNot) {
    const std::pair<std::string, std::string> cases[] = {
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82"},
        {"\xe9t\xe9", "\xef\xbf\xbdt\xef\xbf\xbd"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xc3\"", "\xef\xbf\xbd\\\""},
        {"\x1f\x7f", "\\u001f\\u007f"},
    };
    for (const auto& [text, expected] : cases) {
        std::string out;
        append_json_escaped(out, text);
        EXPECT_EQ(out, expected);
    }
}

}  // namespace
}  // namespace ration
