#include "request/body_field.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace ration {
namespace {

constexpr const char* json = "application/json";
constexpr const char* form = "application/x-www-form-urlencoded";

std::string field(std::string_view body, std::string_view type, std::string_view name = "email") {
    std::array<char, max_body_field_bytes> room{};
    const auto value = body_field({body, type}, name, room);
    return value ? std::string(*value) : "(none)";
}

struct FieldCase {
    const char* body;
    const char* type;
    std::string expected;
};

const std::string unclear{unclear_field};

TEST(BodyField, IsFoundWhereTheApiWouldLook) {
    const std::vector<FieldCase> cases = {
        {R"({"email":"ana@example.org"})", json, "ana@example.org"},
        {R"( {"a":{"email":"x"},"email":"Ana@Example.ORG","b":[{"email":"y"}]} )", json,
         "ana@example.org"},
        {R"({"em\u0061il":" ana@example.org\t"})", json, "ana@example.org"},
        {R"({"email":12})", json, "12"},
        {R"({"email":-1.50})", json, "-1.50"},
        {R"({"email":""})", json, ""},
        {R"({"email":"ana@example.org"})", form, "ana@example.org"},
        {R"({"email":"ana@example.org"})", "", "ana@example.org"},
        {R"({"email":"ana@example.org"})", "text/plain; charset=utf-8", "ana@example.org"},
        {"a=b&email=Ana%40example.org", form, "ana@example.org"},
        {"em%61il=+ana@example.org", "Application/X-WWW-Form-Urlencoded ; charset=utf-8",
         "ana@example.org"},
        {"email", form, ""},
        {"email=%zz%4", form, "%zz%4"},
        {"", json, "(none)"},
        {" \r\n", json, "(none)"},
        {"{}", json, "(none)"},
        {R"({"email":null})", json, "(none)"},
        {R"({"Email":"ana@example.org"})", json, "(none)"},
        {R"({"a":{"email":"x"}})", json, "(none)"},
        {"a=b", form, "(none)"},
    };
    for (const FieldCase& c : cases) {
        EXPECT_EQ(field(c.body, c.type), c.expected) << c.body << " as " << c.type;
    }
}

TEST(BodyField, WhatCouldBeReadInAnotherWayIsOneValue) {
    const std::vector<std::pair<std::string, const char*>> cases = {
        {R"({"email":"a","email":"b"})", json},
        {R"({"email":"a","email":"a"})", json},
        {R"({"email":"a","em\u0061il":"b"})", json},
        {R"({"email":["a"]})", json},
        {R"({"email":{"a":"b"}})", json},
        {R"({"email":true})", json},
        {R"({"email":null,"email":["b"]})", json},
        {R"({email: "a"})", json},
        {R"({"email":"a"} trailing)", json},
        {R"({"email":"a",})", json},
        {R"([{"email":"a"}])", json},
        {R"("email")", json},
        {"email=a", json},
        {"email=a", "multipart/form-data; boundary=x"},
        {"email=a&email=b", form},
        {std::string("{\"email\":\"\xff\"}"), json},
        {std::string("\x1f\x8b\x08 compressed"), json},
    };
    for (const auto& [body, type] : cases) {
        EXPECT_EQ(field(body, type), unclear) << body << " as " << type;
    }
}

TEST(BodyField, HoldsAtTheBoundAndNotOnePastIt) {
    const std::string most(max_body_field_bytes, 'a');
    EXPECT_EQ(field("{\"email\":\"" + most + "\"}", json), most);
    EXPECT_EQ(field("{\"email\":\"" + most + "a\"}", json), unclear);
    EXPECT_EQ(field("email=" + most, form), most);
    EXPECT_EQ(field("email=" + most + "a", form), unclear);
}

TEST(BodyField, DeepNestingIsNoTrouble) {
    const std::string deep(30'000, '[');
    EXPECT_EQ(field("{\"a\":" + deep, json), unclear);
    EXPECT_EQ(field("{\"a\":" + deep + std::string(30'000, ']') + ",\"email\":\"x\"}", json), "x");
}

}  // namespace
}  // namespace ration
