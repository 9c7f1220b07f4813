// Callers by address: the table in tests/data/address_vectors.csv, prefixes, networks, bounds.
#include "request/address.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "request/forwarded.h"

namespace ration {
namespace {

std::vector<std::string> split(std::string line, const std::string& separator) {
    std::vector<std::string> parts;
    std::size_t at = 0;
    while ((at = line.find(separator)) != std::string::npos) {
        parts.push_back(line.substr(0, at));
        line.erase(0, at + separator.size());
    }
    parts.push_back(line);
    return parts;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what)) {
        text.replace(at, what.size(), with);
    }
    return text;
}

AddressRules rules_of(const std::string& rule, const std::string& trusted,
                      const std::string& peer) {
    AddressRules rules;
    if (rule == "xff") {
        rules.header = ForwardingHeader::x_forwarded_for;
    } else if (rule == "fwd") {
        rules.header = ForwardingHeader::forwarded;
    } else if (rule.starts_with("single:")) {
        rules.header = ForwardingHeader::single;
        rules.header_name = rule.substr(7);
    } else {
        EXPECT_EQ(rule, "off");
    }
    for (const std::string& network : split(trusted, " ")) {
        if (!network.empty()) {
            const auto cidr = Cidr::parse(network);
            EXPECT_TRUE(cidr.has_value()) << network;
            rules.trusted.push_back(cidr.value_or(Cidr{}));
        }
    }
    rules.trust_unix = peer == "unix!";
    return rules;
}

std::string key_of(const AddressRules& rules, const std::string& peer,
                   const std::vector<Header>& headers) {
    std::array<char, 64> buffer;
    return std::string(caller_address(rules, {IpAddress::parse(peer)}, headers).text(buffer));
}

TEST(CallerAddress, IsWhatTheTableSays) {
    std::ifstream file(std::string(RATION_SOURCE_DIR) + "/tests/data/address_vectors.csv");
    ASSERT_TRUE(file.is_open());
    std::string line;
    int cases = 0;
    for (int number = 1; std::getline(file, line); ++number) {
        if (line.empty() || line[0] == '#') {
            continue;
        }
        line = replaced(replaced(line, "<TAB>", "\t"), "<LONG>", std::string(300, 'x'));
        const std::vector<std::string> columns = split(line, " | ");
        ASSERT_GE(columns.size(), 5U) << "line " << number;
        std::vector<Header> headers;
        for (std::size_t i = 5; i < columns.size(); ++i) {
            const std::string_view field = columns[i];
            const std::size_t colon = field.find(':');
            ASSERT_NE(colon, std::string_view::npos) << "line " << number;
            headers.push_back({field.substr(0, colon), without_blanks(field.substr(colon + 1))});
        }
        const std::string trusted = columns[1];
        const AddressRules rules = rules_of(columns[0], trusted, columns[2]);
        EXPECT_EQ(key_of(rules, columns[2], headers), columns[3])
            << "line " << number << ": " << columns[4];
        ++cases;
    }
    EXPECT_GE(cases, 200);
}

TEST(CallerAddress, IsCutToThePrefixesOfTheRules) {
    struct Case {
        int v4, v6;
        const char* peer;
        const char* key;
    };
    const Case cases[] = {
        {24, 64, "203.0.113.7", "203.0.113.0/24"},
        {32, 64, "203.0.113.7", "203.0.113.7"},
        {31, 64, "203.0.113.7", "203.0.113.6/31"},
        {0, 64, "203.0.113.7", "0.0.0.0/0"},
        {32, 48, "2001:db8:1:2::7", "2001:db8:1::/48"},
        {32, 56, "2001:db8:1:1ff::7", "2001:db8:1:100::/56"},
        {32, 127, "2001:db8::7", "2001:db8::6/127"},
        {32, 128, "2001:db8::7", "2001:db8::7"},
        {32, 0, "2001:db8::7", "::/0"},
        {24, 48, "::ffff:203.0.113.7", "203.0.113.0/24"},
    };
    for (const Case& c : cases) {
        AddressRules rules;
        rules.ipv4_prefix = static_cast<std::uint8_t>(c.v4);
        rules.ipv6_prefix = static_cast<std::uint8_t>(c.v6);
        EXPECT_EQ(key_of(rules, c.peer, {}), c.key) << c.peer;
    }
}

TEST(CallerAddress, KeepsTheWholeAddressForLogsAndBlocks) {
    const AddressRules rules = rules_of("xff", "10.0.0.0/8", "10.1.2.3");
    const std::vector<Header> headers = {{"X-Forwarded-For", "2001:db8::7"}};
    const auto hop = caller_hop(rules, {IpAddress::parse("10.1.2.3")}, headers);
    EXPECT_EQ(hop, IpAddress::parse("2001:db8::7"));
    EXPECT_EQ(caller_hop(rules, {}, headers), std::nullopt);
}

// `count` trusted hops with a caller before them.
std::string chain(const std::string& caller, const std::string& hop, std::size_t count) {
    std::string list = caller;
    for (std::size_t i = 0; i < count; ++i) {
        list += ", " + hop;
    }
    return list;
}

TEST(CallerAddress, LooksAtSoManyHopsAndNoMore) {
    struct Case {
        std::size_t hops;
        const char* key;
    };
    for (const Case& c : {Case{max_hops - 1, "198.51.100.1"}, Case{max_hops, "10.9.9.9"},
                          Case{max_hops + 8, "10.9.9.9"}}) {
        const std::string xff = chain("6.6.6.6, 198.51.100.1", "10.9.9.9", c.hops);
        EXPECT_EQ(key_of(rules_of("xff", "10.0.0.0/8", ""), "10.1.2.3", {{"X-Forwarded-For", xff}}),
                  c.key)
            << c.hops;
        const std::string fwd = chain("for=6.6.6.6, for=198.51.100.1", "for=10.9.9.9", c.hops);
        EXPECT_EQ(key_of(rules_of("fwd", "10.0.0.0/8", ""), "10.1.2.3", {{"Forwarded", fwd}}),
                  c.key)
            << c.hops;
        // The count goes on over the lines.
        const std::string near = chain("10.9.9.9", "10.9.9.9", c.hops - 2);
        EXPECT_EQ(
            key_of(rules_of("xff", "10.0.0.0/8", ""), "10.1.2.3",
                   {{"X-Forwarded-For", "198.51.100.1, 10.9.9.9"}, {"X-Forwarded-For", near}}),
            c.key)
            << c.hops;
    }
}

TEST(Forwarded, TakesSoManyPairsInAnElementAndNoMore) {
    std::string element = "for=198.51.100.1";
    for (std::size_t i = 1; i < max_forwarded_pairs; ++i) {
        element += ";p" + std::to_string(i) + "=x";
    }
    const AddressRules rules = rules_of("fwd", "10.0.0.0/8", "");
    EXPECT_EQ(key_of(rules, "10.1.2.3", {{"Forwarded", element}}), "198.51.100.1");
    EXPECT_EQ(key_of(rules, "10.1.2.3", {{"Forwarded", element + ";one=more"}}), "10.1.2.3");
}

TEST(Forwarded, RefusesControlCharactersInQuotes) {
    for (const std::string_view line :
         {std::string_view("for=\"198.51.100.1\";host=\"a\x01\""),
          std::string_view("for=\"198.51.100.1\";host=\"a\\\x7f\""),
          std::string_view("for=\"198.51.100.1\";host=\"a\0\"", 29)}) {
        EXPECT_FALSE(parse_forwarded(line).has_value());
    }
    EXPECT_TRUE(parse_forwarded("for=198.51.100.1;host=\"a\tb\"").has_value());
}

TEST(Cidr, TakesNetworksAndNothingElse) {
    struct Case {
        const char* text;
        bool good;
    };
    const Case cases[] = {
        {"10.0.0.0/8", true},
        {"0.0.0.0/0", true},
        {"10.0.0.1", true},
        {"::/0", true},
        {"2001:db8::/32", true},
        {"::1", true},
        {"::1/128", true},
        {"::ffff:10.0.0.0/96", true},
        {"64:ff9b::/96", true},
        {"10.0.0.0/33", false},
        {"::1/129", false},
        {"10.0.0.0/", false},
        {"10.0.0.0/08", false},
        {"10.0.0.0/+8", false},
        {"10.0.0.0/8 ", false},
        {"10.0.0.0/8/8", false},
        {"10.0.0.0/255.0.0.0", false},
        {"10.0.0/8", false},
        {"/8", false},
        {"", false},
        {"any", false},
        {"fe80::1%eth0/64", false},
        {"::ffff:10.0.0.0/95", false},
        {"::ffff:10.0.0.0/8", false},
        {"[::1]/128", false},
        {"10.0.0.0/4294967304", false},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(Cidr::parse(c.text).has_value(), c.good) << c.text;
    }
}

TEST(Cidr, HoldsWhatItsPrefixCovers) {
    struct Case {
        const char* network;
        const char* address;
        bool inside;
    };
    const Case cases[] = {
        {"10.0.0.0/8", "10.255.255.255", true},     {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/9", "10.128.0.0", false},        {"10.0.0.0/8", "::ffff:10.1.1.1", true},
        {"10.0.0.0/8", "::10.1.1.1", false},        {"::ffff:0:0/96", "1.2.3.4", true},
        {"2001:db8::/33", "2001:db8:7fff::", true}, {"2001:db8::/33", "2001:db8:8000::", false},
        {"fe80::/10", "febf::1%eth0", true},        {"fe80::/10", "fec0::1", false},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(Cidr::parse(c.network)->contains(*IpAddress::parse(c.address)), c.inside)
            << c.network << ' ' << c.address;
    }
}

}  // namespace
}  // namespace ration
