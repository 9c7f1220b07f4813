// Properties: addresses against the C library's reading of them, paths against themselves.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "request/address.h"
#include "request/path.h"

namespace ration {
namespace {

rc::Gen<std::string> text_of(std::string alphabet) {
    return rc::gen::container<std::string>(rc::gen::elementOf(std::move(alphabet)));
}

// Pieces from which most spellings of a path can be put together; nearly all of them are let in.
rc::Gen<std::string> target_like() {
    const auto piece = rc::gen::weightedElement<std::string>(
        {{8, "/"},      {2, "//"},  {3, "."},   {1, "/.."}, {3, "a"},   {2, "b"},   {2, "/x/y"},
         {1, "%2e"},    {1, "%2E"}, {1, "%25"}, {1, "%41"}, {1, "%7e"}, {1, "%3A"}, {1, ":"},
         {1, "%c3%a9"}, {1, "|"},   {1, "{"},   {1, "~"},   {1, "?"},   {1, "%20"}});
    return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                        [](const std::vector<std::string>& pieces) {
                            std::string target = "/p/q/r/s";
                            for (const std::string& part : pieces) {
                                target += part;
                            }
                            return target;
                        });
}

RC_GTEST_PROP(PathProperty, NormalisingTwiceChangesNothing, ()) {
    const std::string target = *target_like();
    std::array<char, max_target_bytes> first_buffer;
    const auto first = normal_target(target, first_buffer);
    RC_PRE(first.ok());
    std::array<char, max_target_bytes> second_buffer;
    const auto second = normal_target(first->path, second_buffer);
    RC_ASSERT(second.ok());
    RC_ASSERT(second->path == first->path);
}

RC_GTEST_PROP(PathProperty, NormalPathsHaveNoRoomForDoubt, ()) {
    const std::string target = *target_like();
    std::array<char, max_target_bytes> buffer;
    const auto result = normal_target(target, buffer);
    RC_PRE(result.ok());
    const std::string path(result->path);
    RC_ASSERT(path.front() == '/');
    RC_ASSERT(path.find("//") == std::string::npos);
    for (const char* dots : {"/./", "/../"}) {
        RC_ASSERT((path + "/").find(dots) == std::string::npos);
    }
    // What one decoding reads out of it has the same segments.
    std::array<char, max_target_bytes> decoded_buffer;
    const std::string_view decoded = percent_decoded(path, decoded_buffer);
    RC_ASSERT(std::count(decoded.begin(), decoded.end(), '/') ==
              std::count(path.begin(), path.end(), '/'));
    RC_ASSERT(decoded.find('\\') == std::string_view::npos);
}

RC_GTEST_PROP(PathProperty, EscapingALetterMakesNoOtherPath, ()) {
    const std::string plain = *text_of("abcxyz019-._~/");
    std::string escaped;
    for (const char c : plain) {
        constexpr char digits[] = "0123456789abcdef";
        if (c != '/' && *rc::gen::arbitrary<bool>()) {
            const auto byte = static_cast<unsigned char>(c);
            escaped += {'%', digits[byte >> 4], digits[byte & 15]};
        } else {
            escaped += c;
        }
    }
    std::array<char, max_target_bytes> a;
    std::array<char, max_target_bytes> b;
    const auto one = normal_target("/" + plain, a);
    const auto other = normal_target("/" + escaped, b);
    RC_ASSERT(one.ok() == other.ok());
    if (one.ok()) {  // the macro would read both sides of an `||`
        RC_ASSERT(one->path == other->path);
    }
}

RC_GTEST_PROP(AddressProperty, V4IsReadAsTheCLibraryReadsIt, ()) {
    const std::string text = *text_of("0122569..");
    in_addr expected{};
    const bool good = inet_pton(AF_INET, text.c_str(), &expected) == 1;
    RC_ASSERT(IpAddress::parse(text).has_value() == good);
}

RC_GTEST_PROP(AddressProperty, V6IsReadAsTheCLibraryReadsIt, ()) {
    const std::string text =
        ":" + *text_of("0012:::::af.") +
        *rc::gen::elementOf(std::vector<std::string>{"", "::", ":1:2", "1.2.3.4", ":1.2.3.4"});
    in6_addr expected{};
    const bool good = inet_pton(AF_INET6, text.c_str(), &expected) == 1;
    const auto read = IpAddress::parse(text);
    RC_ASSERT(read.has_value() == good);
    if (good && !read->v4) {
        RC_ASSERT(std::equal(read->bytes.begin(), read->bytes.end(), expected.s6_addr));
    }
}

RC_GTEST_PROP(AddressProperty, V6IsWrittenAsTheCLibraryWritesIt, ()) {
    std::array<std::uint8_t, 16> bytes{};
    for (std::uint8_t& byte : bytes) {
        byte = *rc::gen::weightedOneOf<std::uint8_t>(
            {{3, rc::gen::just<std::uint8_t>(0)}, {1, rc::gen::arbitrary<std::uint8_t>()}});
    }
    const IpAddress address = IpAddress::from_v6(bytes);
    // The library writes the long obsolete ::1.2.3.4 in dots; RFC 5952 keeps dots for known
    // prefixes.
    RC_PRE(!address.v4 && std::any_of(bytes.begin(), bytes.begin() + 12,
                                      [](std::uint8_t byte) { return byte != 0; }));
    std::array<char, 48> buffer;
    char expected[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, bytes.data(), expected, sizeof expected);
    RC_ASSERT(address.text(buffer) == expected);
    RC_ASSERT(IpAddress::parse(expected) == address);
}

RC_GTEST_PROP(AddressProperty, CuttingKeepsExactlyThePrefix, (std::array<std::uint8_t, 16> bytes)) {
    const auto prefix = static_cast<std::uint8_t>(*rc::gen::inRange(0, 129));
    const IpAddress cut = IpAddress{bytes, false}.cut(prefix);
    for (std::size_t bit = 0; bit < 128; ++bit) {
        const int mask = 0x80 >> (bit % 8);
        const int expected = bit < prefix ? bytes[bit / 8] & mask : 0;
        RC_ASSERT((cut.bytes[bit / 8] & mask) == expected);
    }
}

}  // namespace
}  // namespace ration
