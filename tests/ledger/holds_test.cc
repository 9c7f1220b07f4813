#include "ledger/holds.h"

#include <gtest/gtest.h>

#include "ledger/stored_response.h"

namespace ration {
namespace {

TEST(Holds, CountInsideTheWindowByState) {
    Holds holds;
    const std::vector<Place> early = {{PlaceKind::day, "k", 10, 100}};
    const std::vector<Place> late = {{PlaceKind::day, "k", 100, 200}};
    holds.add(1, early, false);
    holds.add(2, late, true);
    EXPECT_EQ(holds.held("k", 0, 100).reserved, 1U);
    EXPECT_EQ(holds.held("k", 0, 100).doubtful, 0U);
    EXPECT_EQ(holds.held("k", 0, 101).doubtful, 1U);
    holds.set_doubtful(1, early);
    EXPECT_EQ(holds.held("k", 0, 101).doubtful, 2U);
    holds.remove(1, early);
    holds.remove(2, late);
    EXPECT_TRUE(holds.empty());
}

TEST(StoredFields, ComeBackAsTheyWereAndRefuseDamage) {
    const HeaderList headers = {{"Location", "/a:b"}, {"X", ""}, {"Y", std::string("\0\n:9", 4)}};
    const std::string packed = pack_headers(headers);
    EXPECT_EQ(unpack_headers(packed), headers);
    for (std::size_t cut = 1; cut < packed.size(); ++cut) {
        const auto part = unpack_headers(std::string_view(packed).substr(0, cut));
        EXPECT_TRUE(!part || part->size() < headers.size()) << cut;
    }
    const std::vector<Place> places = {{PlaceKind::day, "a", -5, 7}, {PlaceKind::quota, "", 0, 0}};
    EXPECT_EQ(unpack_places(pack_places(places)), places);
    EXPECT_FALSE(unpack_places("1:9"));
    EXPECT_FALSE(unpack_places("99999999999999999999:x"));
}

}  // namespace
}  // namespace ration
