// Which fields end at a hop.
#include "wire/hop_fields.h"

#include <gtest/gtest.h>

#include <string>

namespace ration {
namespace {

TEST(HopFields, IdsAreKnownWhateverTheCase) {
    EXPECT_EQ(field_id("CONTENT-length"), FieldId::content_length);
    EXPECT_EQ(field_id("te"), FieldId::te);
    EXPECT_EQ(field_id("TE2"), FieldId::other);
    EXPECT_EQ(field_id("x-forwarded-proto"), FieldId::x_forwarded_proto);
    EXPECT_EQ(field_id("x-forwarded-prota"), FieldId::other);
    EXPECT_EQ(field_id(std::string(500, 'x')), FieldId::other);
}

TEST(HopFields, Lists) {
    EXPECT_TRUE(list_has(" a , ,Close", "close"));
    EXPECT_FALSE(list_has("closed, xclose", "close"));
    EXPECT_FALSE(list_has("", "close"));
}

TEST(HopFields, EndByThemselves) {
    for (const char* name :
         {"Connection", "keep-alive", "Proxy-Authenticate", "TE", "UPGRADE", "Proxy-Authorization",
          "Proxy-Connection", "Transfer-Encoding", "HTTP2-Settings"}) {
        EXPECT_TRUE(is_hop_by_hop(field_id(name))) << name;
    }
    for (const char* name : {"Content-Length", "Date", "Expect", "Host", "Trailer", "Connections",
                             "X-Forwarded-For", "X-Any", ""}) {
        EXPECT_FALSE(is_hop_by_hop(field_id(name))) << name;
    }
}

TEST(HopFields, EndWhereConnectionNamesThem) {
    EXPECT_TRUE(ends_by_connection("close, X-Hop", "x-hop"));
    EXPECT_TRUE(ends_by_connection(",\tX-Hop ,", "X-HOP"));
    EXPECT_FALSE(ends_by_connection("X-Hop", "X-Ho"));
    EXPECT_FALSE(ends_by_connection("X-Hop", ""));
    EXPECT_FALSE(ends_by_connection("", "X-Hop"));
    for (const char* name : {"Host", "content-type", "Authorization", "Idempotency-Key",
                             "X-Forwarded-For", "X-Forwarded-Any", "Ration-Workspace", "Date"}) {
        EXPECT_FALSE(ends_by_connection(name, name)) << name << " cannot be taken away";
    }
}

}  // namespace
}  // namespace ration
