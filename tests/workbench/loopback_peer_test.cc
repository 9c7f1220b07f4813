#include "workbench/loopback_peer.h"

#include <gtest/gtest.h>

namespace ration {
namespace {

// A file with one case whose policy has this `identify:` and whose steps are these.
TestCase make_case(std::string_view identify, std::string_view steps) {
    const std::string text = "policy:\n  policy: p\n  routes: {thing: GET /thing}\n  identify: " +
                             std::string(identify) +
                             "\n  limits:\n    - {name: l, per: [address], token_bucket: 1/s}\n"
                             "cases:\n  - {name: c, steps: [" +
                             std::string(steps) + "]}\n";
    Problems problems;
    auto file = parse_test_file("t.yaml", text, problems);
    EXPECT_TRUE(file) << problems.status();
    return file ? file->cases.at(0) : TestCase{};
}

constexpr std::string_view reads_header =
    "{address: {header: X-Forwarded-For, trusted: [127.0.0.0/8]}}";
constexpr std::string_view peers_only = "{address: {header: none}}";
constexpr std::string_view one = "{request: GET /thing, address: 198.51.100.1}";
constexpr std::string_view two = "{request: GET /thing, address: 198.51.100.2}";

TEST(LoopbackPeer, SeveralPeersNeedAHeaderThatIsRead) {
    const std::string both = std::string(one) + ", " + std::string(two);
    EXPECT_EQ(why_not_over_loopback(make_case(reads_header, both)), "");
    EXPECT_NE(why_not_over_loopback(make_case(peers_only, both)), "");
    EXPECT_EQ(why_not_over_loopback(make_case(peers_only, one)), "");
    EXPECT_NE(why_not_over_loopback(make_case(
                  peers_only, "{request: GET /thing, address: '198.51.100.{n}', times: 2}")),
              "");
}

TEST(LoopbackPeer, APeerThatIsLookedAtCannotBeAnother) {
    const char* looks =
        "{request: GET /thing, expect: {sent: {headers: {Ration-Address: 192.0.2.1}}}}";
    EXPECT_NE(why_not_over_loopback(make_case(peers_only, looks)), "");
    EXPECT_EQ(why_not_over_loopback(make_case(reads_header, looks)), "");
    EXPECT_NE(
        why_not_over_loopback(make_case("{address: {header: X-Forwarded-For, trusted: [10.0.0.5]}}",
                                        "{request: GET /thing, address: 10.0.0.5}")),
        "");
}

TEST(LoopbackPeer, VirtualTimeOfAnUpstreamNeedsTheEngineInProcess) {
    for (const char* takes : {"1s", "never"}) {
        const std::string step =
            "{request: GET /thing, upstream: {takes: " + std::string(takes) + "}}";
        EXPECT_NE(why_not_over_loopback(make_case(reads_header, step)), "") << takes;
    }
}

TEST(LoopbackPeer, ThePeerIsAppendedAsAProxyWould) {
    const TestCase test = make_case(reads_header, one);
    ServiceRequest request;
    request.peer.address = IpAddress::parse("2001:db8::7");
    request.headers = {{"X-Forwarded-For", "9.9.9.9"}, {"x-forwarded-for", "8.8.8.8"}};
    stand_in_for_peer(*test.rules.policy, request);
    const Fields expected = {{"X-Forwarded-For", "9.9.9.9, 8.8.8.8, 2001:db8::7"}};
    EXPECT_EQ(request.headers, expected);

    const TestCase other = make_case(peers_only, one);
    ServiceRequest untouched;
    untouched.peer.address = IpAddress::parse("198.51.100.1");
    stand_in_for_peer(*other.rules.policy, untouched);
    EXPECT_TRUE(untouched.headers.empty());
}

}  // namespace
}  // namespace ration
