// What counts as a credential, and what leaves room for doubt.
#include "request/credential.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ration {
namespace {

using Fields = std::vector<Header>;

const std::vector<CredentialRule>& rules() {
    static const std::vector<CredentialRule> all = {
        {"session", CredentialSource::cookie, "axuz_session", ""},
        {"publishable", CredentialSource::bearer, "", "pk_"},
        {"secret", CredentialSource::bearer, "", "sk_"},
        {"test_secret", CredentialSource::bearer, "", "sk_test_"},
        {"key", CredentialSource::header, "X-Api-Key", "key_"},
        {"signed_cookie", CredentialSource::cookie, "login", "s."},
    };
    return all;
}

// "nothing", "unrecognised", or "kind=secret".
std::string found(const std::vector<CredentialRule>& with, const Fields& fields) {
    const PresentedCredential result = find_credential(with, fields);
    switch (result.state) {
        case Presented::nothing:
            return "nothing";
        case Presented::unrecognised:
            return "unrecognised";
        case Presented::recognised:
            break;
    }
    return with[result.rule].kind + "=" + std::string(result.secret);
}

struct Case {
    Fields fields;
    const char* expected;
};

TEST(Credential, BearerTokens) {
    const Case cases[] = {
        {{}, "nothing"},
        {{{"Authorization", "Bearer pk_live_a"}}, "publishable=pk_live_a"},
        {{{"authorization", "bearer pk_live_a"}}, "publishable=pk_live_a"},
        {{{"AUTHORIZATION", "BEARER pk_live_a"}}, "publishable=pk_live_a"},
        {{{"Authorization", "Bearer   pk_live_a"}}, "publishable=pk_live_a"},
        {{{"Authorization", "Bearer sk_live_a"}}, "secret=sk_live_a"},
        {{{"Authorization", "Bearer sk_test_a"}}, "test_secret=sk_test_a"},
        {{{"Authorization", "Bearer pk_a-b._~+/9=="}}, "publishable=pk_a-b._~+/9=="},
        {{{"Authorization", "Bearer pk_"}}, "publishable=pk_"},
        {{{"Authorization", "x Bearer pk_live_a"}}, "unrecognised"},
        {{{"Authorization", "Bearer"}}, "unrecognised"},
        {{{"Authorization", "Bearer "}}, "unrecognised"},
        {{{"Authorization", ""}}, "unrecognised"},
        {{{"Authorization", "pk_live_a"}}, "unrecognised"},
        {{{"Authorization", "Bearerpk_live_a"}}, "unrecognised"},
        {{{"Authorization", "Bearer\tpk_live_a"}}, "unrecognised"},
        {{{"Authorization", "Bearer:pk_live_a"}}, "unrecognised"},
        {{{"Authorization", "Bearer pk_live_a extra"}}, "unrecognised"},
        {{{"Authorization", "Bearer pk_live_a, Bearer pk_live_b"}}, "unrecognised"},
        {{{"Authorization", "Bearer \"pk_live_a\""}}, "unrecognised"},
        {{{"Authorization", "Bearer pk_a=b"}}, "unrecognised"},
        {{{"Authorization", "Bearer =="}}, "unrecognised"},
        {{{"Authorization", "Bearer pk_\xc3\xbc"}}, "unrecognised"},
        {{{"Authorization", "Bearer other"}}, "unrecognised"},
        {{{"Authorization", "Bearer PK_live_a"}}, "unrecognised"},
        {{{"Authorization", "Basic cGtfOg=="}}, "unrecognised"},
        {{{"Authorization", "Bearer pk_a"}, {"Authorization", "Bearer pk_a"}}, "unrecognised"},
        {{{"Authorization", "Bearer pk_a"}, {"authorization", ""}}, "unrecognised"},
        {{{"Proxy-Authorization", "Bearer pk_a"}}, "nothing"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(found(rules(), c.fields), c.expected)
            << (c.fields.empty() ? std::string_view() : c.fields[0].value);
    }
}

TEST(Credential, KeysInAFieldOfTheirOwn) {
    const Case cases[] = {
        {{{"X-Api-Key", "key_1"}}, "key=key_1"},
        {{{"x-api-key", "key_1"}}, "key=key_1"},
        {{{"X-Api-Key", "key_!#$"}}, "key=key_!#$"},
        {{{"X-Api-Key", ""}}, "unrecognised"},
        {{{"X-Api-Key", "other"}}, "unrecognised"},
        {{{"X-Api-Key", "key_1 key_2"}}, "unrecognised"},
        {{{"X-Api-Key", "key_\xc3\xbc"}}, "unrecognised"},
        {{{"X-Api-Key", "key_1"}, {"X-Api-Key", "key_1"}}, "unrecognised"},
        {{{"X-Api-Key", "key_1"}, {"x-api-key", "key_2"}}, "unrecognised"},
        {{{"X-Api-Key2", "key_1"}}, "nothing"},
        // Two places filled: who is calling?
        {{{"X-Api-Key", "key_1"}, {"Authorization", "Bearer pk_a"}}, "unrecognised"},
        {{{"X-Api-Key", "key_1"}, {"Authorization", "Basic YTpi"}}, "unrecognised"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(found(rules(), c.fields), c.expected) << c.fields[0].value;
    }
}

TEST(Credential, Cookies) {
    const Case cases[] = {
        {{{"Cookie", "axuz_session=abc"}}, "session=abc"},
        {{{"cookie", "a=1; axuz_session=abc; b=2"}}, "session=abc"},
        {{{"Cookie", "a=1"}, {"Cookie", "axuz_session=abc"}}, "session=abc"},
        {{{"Cookie", "axuz_session=abc"}, {"Cookie", "a=1"}}, "session=abc"},
        {{{"Cookie", "axuz_session=\"abc\""}}, "session=abc"},
        {{{"Cookie", "axuz_session=a=b=="}}, "session=a=b=="},
        {{{"Cookie", "axuz_session=abc;"}}, "session=abc"},
        {{{"Cookie", ";;axuz_session=abc"}}, "session=abc"},
        {{{"Cookie", "a=1;axuz_session=abc"}}, "session=abc"},
        {{{"Cookie", " axuz_session = abc "}}, "session=abc"},
        {{{"Cookie", "axuz_session=abc; axuz_session=abc"}}, "session=abc"},
        {{{"Cookie", "a=1; b=2"}}, "nothing"},
        {{{"Cookie", ""}}, "nothing"},
        {{{"Cookie", "axuz_session"}}, "nothing"},
        {{{"Cookie", "axuz_session="}}, "nothing"},
        {{{"Cookie", "axuz_session=\"\""}}, "nothing"},
        {{{"Cookie", "AXUZ_SESSION=abc"}}, "nothing"},
        {{{"Cookie", "xaxuz_session=abc"}}, "nothing"},
        {{{"Cookie", "a=axuz_session=abc"}}, "nothing"},
        {{{"Set-Cookie", "axuz_session=abc"}}, "nothing"},
        {{{"Cookie", "axuz_session=abc; axuz_session=def"}}, "unrecognised"},
        {{{"Cookie", "axuz_session=abc"}, {"Cookie", "axuz_session=def"}}, "unrecognised"},
        {{{"Cookie", "axuz_session=abc; axuz_session="}}, "unrecognised"},
        {{{"Cookie", "axuz_session=abc def"}}, "unrecognised"},
        {{{"Cookie", "axuz_session=abc,def"}}, "unrecognised"},
        {{{"Cookie", "axuz_session=\"abc"}}, "unrecognised"},
        {{{"Cookie", "axuz_session=a\\b"}}, "unrecognised"},
        {{{"Cookie", "login=s.1"}}, "signed_cookie=s.1"},
        {{{"Cookie", "login=other"}}, "nothing"},
        {{{"Cookie", "login=s.1; axuz_session=abc"}}, "session=abc"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(found(rules(), c.fields), c.expected) << c.fields[0].value;
    }
}

TEST(Credential, TokensComeBeforeCookiesWhateverTheOrderOfTheRules) {
    const Case cases[] = {
        {{{"Cookie", "axuz_session=abc"}, {"Authorization", "Bearer pk_a"}}, "publishable=pk_a"},
        {{{"Cookie", "axuz_session=abc"}, {"X-Api-Key", "key_1"}}, "key=key_1"},
        {{{"Cookie", "axuz_session=abc"}, {"Authorization", "Bearer other"}}, "unrecognised"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(found(rules(), c.fields), c.expected);
    }
}

TEST(Credential, FieldsThatNoRuleReadsAreNotLookedAt) {
    const std::vector<CredentialRule> cookie_only = {
        {"session", CredentialSource::cookie, "sid", ""}};
    EXPECT_EQ(found(cookie_only, {{"Authorization", "Basic YTpi"}, {"Cookie", "sid=1"}}),
              "session=1");
    EXPECT_EQ(found({}, {{"Authorization", "Bearer pk_a"}}), "nothing");
}

TEST(Credential, ARuleMayReadTheWholeAuthorizationField) {
    const std::vector<CredentialRule> with = {
        {"bearer", CredentialSource::bearer, "", "pk_"},
        {"bare", CredentialSource::header, "authorization", "lin_"},
    };
    EXPECT_EQ(found(with, {{"Authorization", "lin_1"}}), "bare=lin_1");
    EXPECT_EQ(found(with, {{"Authorization", "Bearer pk_1"}}), "bearer=pk_1");
    EXPECT_EQ(found(with, {{"Authorization", "Bearer lin_1"}}), "unrecognised");
}

}  // namespace
}  // namespace ration
