// Properties: what is written is read back as the same thing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>

#include "wire/decimal.h"
#include "wire/structured_field.h"

namespace ration {
namespace {

Nanos any_nanos() {
    // Of every size: all 64 bits at random, then some of them dropped.
    const auto bits = *rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::int64_t>());
    return Nanos(bits >> *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 64)));
}

RC_GTEST_PROP(DecimalProperty, IsReadBackExactly, ()) {
    const Nanos value = any_nanos();
    std::array<char, max_decimal_bytes> buffer;
    RC_ASSERT(parse_decimal_seconds(decimal_seconds(value, buffer)).value() == value);
}

RC_GTEST_PROP(InstantProperty, IsReadBackExactly, ()) {
    const Wall at{any_nanos()};
    std::array<char, max_decimal_bytes> buffer;
    RC_ASSERT(parse_instant(rfc3339(at, buffer)).value() == at);
}

RC_GTEST_PROP(InstantProperty, IsTheSameInEveryOffset, ()) {
    // Years 1970 to 2200, so that no offset leaves the range.
    const auto epoch =
        *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(0, 7'258'118'400));
    const int offset = *rc::gen::inRange(-1439, 1440);
    std::array<char, max_decimal_bytes> buffer;
    std::string text(rfc3339(Wall(std::chrono::seconds(epoch + offset * 60)), buffer));
    text.back() = offset < 0 ? '-' : '+';
    const int size = std::abs(offset);
    for (const int part : {size / 60, size % 60}) {
        text += static_cast<char>('0' + part / 10);
        text += static_cast<char>('0' + part % 10);
        text += ':';
    }
    text.pop_back();
    RC_ASSERT(parse_instant(text).value() == Wall(std::chrono::seconds(epoch)));
}

RC_GTEST_PROP(WholeSecondsProperty, AreTheLeastThatIsNotShorter, ()) {
    const auto wait = Nanos(*rc::gen::inRange<std::int64_t>(0, 4'000'000'000'000));
    const std::chrono::seconds told(static_cast<std::int64_t>(seconds_rounded_up(wait)));
    RC_ASSERT(told >= wait);
    RC_ASSERT(told - wait < std::chrono::seconds(1));
}

rc::Gen<std::string> characters(char first, char last) {
    return rc::gen::container<std::string>(rc::gen::map(
        rc::gen::inRange<int>(first, last + 1), [](int c) { return static_cast<char>(c); }));
}

SfBareItem any_value() {
    switch (*rc::gen::inRange(0, 7)) {
        case 0:
            return *rc::gen::inRange<std::int64_t>(-max_sf_integer, max_sf_integer + 1);
        case 1:
            return SfDecimal{*rc::gen::inRange<std::int64_t>(-max_sf_integer, max_sf_integer + 1)};
        case 2:
            return *characters(0x20, 0x7e);
        case 3:
            return SfToken{"t" + *characters('a', 'z')};
        case 4:
            return SfBytes{*rc::gen::arbitrary<std::string>()};
        case 5:
            return *rc::gen::arbitrary<bool>();
        default:
            return SfDate{*rc::gen::inRange<std::int64_t>(-max_sf_integer, max_sf_integer + 1)};
    }
}

SfItem any_item() {
    SfItem item{any_value(), {}};
    const int count = *rc::gen::inRange(0, 4);
    for (int i = 0; i < count; ++i) {
        item.parameters.emplace_back("k" + std::to_string(i), any_value());
    }
    return item;
}

RC_GTEST_PROP(StructuredFieldProperty, IsReadBackExactly, ()) {
    SfList list;
    const int members = *rc::gen::inRange(0, 5);
    for (int i = 0; i < members; ++i) {
        if (*rc::gen::arbitrary<bool>()) {
            list.emplace_back(any_item());
        } else {
            list.emplace_back(SfInnerList{{any_item(), any_item()}, any_item().parameters});
        }
    }
    const std::string text = serialize_sf_list(list).value();
    RC_ASSERT(parse_sf_list(text).value() == list);
}

}  // namespace
}  // namespace ration
