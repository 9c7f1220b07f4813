// RFC 9651, by table: what is read, how it is written, and what is refused whole.
#include "wire/structured_field.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/text.h"

namespace ration {
namespace {

enum class Top { item, list, dictionary };

// The canonical text of what was read, or "refused".
std::string rewritten(Top top, std::string_view text) {
    absl::StatusOr<std::string> out;
    if (top == Top::item) {
        const auto read = parse_sf_item(text);
        out = read.ok() ? serialize_sf_item(*read) : read.status();
    } else if (top == Top::list) {
        const auto read = parse_sf_list(text);
        out = read.ok() ? serialize_sf_list(*read) : read.status();
    } else {
        const auto read = parse_sf_dictionary(text);
        out = read.ok() ? serialize_sf_dictionary(*read) : read.status();
    }
    return out.ok() ? *out : "refused";
}

struct Case {
    Top top;
    const char* text;
    const char* expected;  // nullptr: the text itself
};

TEST(StructuredField, IsReadAndWrittenInOneForm) {
    const Case cases[] = {
        // Numbers.
        {Top::item, "0", nullptr},
        {Top::item, "-0", "0"},
        {Top::item, "42", nullptr},
        {Top::item, "-42", nullptr},
        {Top::item, "042", "42"},
        {Top::item, "999999999999999", nullptr},
        {Top::item, "-999999999999999", nullptr},
        {Top::item, "1.5", nullptr},
        {Top::item, "-1.50", "-1.5"},
        {Top::item, "1.000", "1.0"},
        {Top::item, "0.001", nullptr},
        {Top::item, "-0.5", nullptr},
        {Top::item, "999999999999.999", nullptr},
        // Strings, tokens, bytes, booleans, dates, display strings.
        {Top::item, "\"\"", nullptr},
        {Top::item, "\"a b;c,d\"", nullptr},
        {Top::item, "\"\\\"\\\\\"", nullptr},
        {Top::item, "foo123/456", nullptr},
        {Top::item, "*a:b", nullptr},
        {Top::item, "Foo", nullptr},
        {Top::item, "::", nullptr},
        {Top::item, ":aGVsbG8=:", nullptr},
        {Top::item, ":aGVsbG8:", ":aGVsbG8=:"},
        {Top::item, ":+/+/:", nullptr},
        {Top::item, "?1", nullptr},
        {Top::item, "?0", nullptr},
        {Top::item, "@1659578233", nullptr},
        {Top::item, "@-1", nullptr},
        {Top::item, "%\"caf%c3%a9 %25 %22\"", nullptr},
        {Top::item, "%\"\"", nullptr},
        // Parameters.
        {Top::item, "a;b;c=1", nullptr},
        {Top::item, "a;b=?1", "a;b"},
        {Top::item, "a;b=?0", nullptr},
        {Top::item, "a;  b=1", "a;b=1"},
        {Top::item, "a;b=1;c=2;b=3", "a;b=3;c=2"},
        {Top::item, "a;*x-_.y9=1", nullptr},
        {Top::item, "  a  ", "a"},
        // Lists.
        {Top::list, "", nullptr},
        {Top::list, "a,b , c\t,\td", "a, b, c, d"},
        {Top::list, "\"burst\";q=100;w=60, \"daily\";q=1000;w=86400", nullptr},
        {Top::list, "()", nullptr},
        {Top::list, "(a  b );x, ( c)", "(a b);x, (c)"},
        {Top::list, "(\"a\";p=1 2);q=:AQ==:", nullptr},
        // Dictionaries.
        {Top::dictionary, "", nullptr},
        {Top::dictionary, "limit=100, remaining=50, reset=5", nullptr},
        {Top::dictionary, "a, b;x=1, c=?0", nullptr},
        {Top::dictionary, "a=?1;x", "a;x"},
        {Top::dictionary, "a=(1 2);y, b", nullptr},
        {Top::dictionary, "a=1,b=2,a=3", "a=3, b=2"},
        {Top::dictionary, "a=1;x, a", "a"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(rewritten(c.top, c.text), c.expected != nullptr ? c.expected : c.text) << c.text;
    }
}

TEST(StructuredField, IsRefusedWhole) {
    const Case cases[] = {
        {Top::item, "", ""},
        {Top::item, "-", ""},
        {Top::item, "--1", ""},
        {Top::item, "+1", ""},
        {Top::item, "1.", ""},
        {Top::item, "1.2345", ""},
        {Top::item, ".5", ""},
        {Top::item, "1.2.3", ""},
        {Top::item, "1000000000000000", ""},
        {Top::item, "0000000000000001", ""},
        {Top::item, "1000000000000.0", ""},
        {Top::item, "1e5", ""},
        {Top::item, "\"a", ""},
        {Top::item, "\"a\\\"", ""},
        {Top::item, "\"\\a\"", ""},
        {Top::item, "\"\\", ""},
        {Top::item, "\"caf\xc3\xa9\"", ""},
        {Top::item, "\"a\tb\"", ""},
        {Top::item, "'a'", ""},
        {Top::item, "a b", ""},
        {Top::item, "a, b", ""},
        {Top::item, "a\t", ""},
        {Top::item, "(a)", ""},
        {Top::item, ":a", ""},
        {Top::item, ":a:", ""},
        {Top::item, ":aGVs=bG8=:", ""},
        {Top::item, ":aGVs bG8:", ""},
        {Top::item, ":aG-_:", ""},
        {Top::item, ":aGVsbG8===:", ""},
        {Top::item, "?", ""},
        {Top::item, "?2", ""},
        {Top::item, "?true", ""},
        {Top::item, "@", ""},
        {Top::item, "@1.5", ""},
        {Top::item, "@a", ""},
        {Top::item, "%", ""},
        {Top::item, "%\"a", ""},
        {Top::item, "%\"%C3%A9\"", ""},
        {Top::item, "%\"%c3\"", ""},
        {Top::item, "%\"%g0\"", ""},
        {Top::item, "%\"%c", ""},
        {Top::item, "%\"caf\xc3\xa9\"", ""},
        {Top::item, "a;", ""},
        {Top::item, "a;B=1", ""},
        {Top::item, "a ;b", ""},
        {Top::item, "a;b =1", ""},
        {Top::item, "a;b= 1", ""},
        {Top::item, "a;b=", ""},
        {Top::item, "a;1=2", ""},
        {Top::list, "a,", ""},
        {Top::list, ",a", ""},
        {Top::list, "a,,b", ""},
        {Top::list, "a b", ""},
        {Top::list, "(a", ""},
        {Top::list, "(a,b)", ""},
        {Top::list, "(a\tb)", ""},
        {Top::list, "(a(b))", ""},
        {Top::list, "(a\"b\")", ""},
        {Top::list, "\ta", ""},
        {Top::list, "\"a\";q=1, ", ""},
        {Top::dictionary, "A=1", ""},
        {Top::dictionary, "a=1,", ""},
        {Top::dictionary, "a=", ""},
        {Top::dictionary, "a =1", ""},
        {Top::dictionary, "=1", ""},
        {Top::dictionary, "\"a\"=1", ""},
        {Top::dictionary, "a=1 b=2", ""},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(rewritten(c.top, c.text), "refused") << c.text;
    }
}

TEST(StructuredField, SaysWhereItBreaks) {
    EXPECT_EQ(parse_sf_list("\"a\";q=1, ").status().message(),
              "structured field, character 10: nothing follows the comma");
    EXPECT_EQ(parse_sf_item("\"a").status().message(),
              "structured field, character 3: a string is not closed");
}

TEST(StructuredField, IsNotWrittenWhereItHasNoText) {
    const SfBareItem bad[] = {
        SfBareItem(max_sf_integer + 1),
        SfBareItem(-max_sf_integer - 1),
        SfBareItem(SfDecimal{max_sf_integer + 1}),
        SfBareItem(std::string("caf\xc3\xa9")),
        SfBareItem(std::string("a\n")),
        SfBareItem(SfToken{""}),
        SfBareItem(SfToken{"1a"}),
        SfBareItem(SfToken{"a b"}),
        SfBareItem(SfDate{max_sf_integer + 1}),
        SfBareItem(SfDisplayString{"\xff"}),
    };
    for (const SfBareItem& value : bad) {
        EXPECT_FALSE(serialize_sf_item({value, {}}).ok()) << value.index();
        EXPECT_FALSE(serialize_sf_list({SfInnerList{{{value, {}}}, {}}}).ok()) << value.index();
        EXPECT_FALSE(serialize_sf_item({true, {{"p", value}}}).ok()) << value.index();
    }
    for (const char* key : {"", "A", "1a", "a b", "a="}) {
        EXPECT_FALSE(serialize_sf_item({true, {{key, true}}}).ok()) << key;
        EXPECT_FALSE(serialize_sf_dictionary({{key, SfItem{true, {}}}}).ok()) << key;
    }
}

std::string joined(std::size_t count, const std::string& separator, bool numbered) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        append(text, i == 0 ? std::string() : separator);
        text += 'a';
        if (numbered) {
            append(text, i);
        }
    }
    return text;
}

TEST(StructuredField, IsBounded) {
    EXPECT_TRUE(parse_sf_list(joined(max_sf_members, ",", false)).ok());
    EXPECT_FALSE(parse_sf_list(joined(max_sf_members + 1, ",", false)).ok());
    EXPECT_TRUE(parse_sf_dictionary(joined(max_sf_members, ",", true)).ok());
    EXPECT_FALSE(parse_sf_dictionary(joined(max_sf_members + 1, ",", true)).ok());
    EXPECT_TRUE(parse_sf_list("(" + joined(max_sf_parameters, " ", false) + ")").ok());
    EXPECT_FALSE(parse_sf_list("(" + joined(max_sf_parameters + 1, " ", false) + ")").ok());
    EXPECT_TRUE(parse_sf_item("x;" + joined(max_sf_parameters, ";", true)).ok());
    EXPECT_FALSE(parse_sf_item("x;" + joined(max_sf_parameters + 1, ";", true)).ok());
    EXPECT_TRUE(parse_sf_item('"' + std::string(max_sf_bytes - 2, 'a') + '"').ok());
    EXPECT_FALSE(parse_sf_item('"' + std::string(max_sf_bytes - 1, 'a') + '"').ok());
}

}  // namespace
}  // namespace ration
