// Structured fields of any bytes: what is read is written in a form that is read as the same, and
// written the same again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "wire/structured_field.h"

namespace {

template <typename Value, typename Parse, typename Serialize>
void check(std::string_view text, Parse parse, Serialize serialize) {
    const absl::StatusOr<Value> value = parse(text);
    if (!value.ok()) {
        return;
    }
    const auto written = serialize(*value);
    const absl::StatusOr<Value> again = written.ok() ? parse(*written) : written.status();
    if (!again.ok() || !(*again == *value) || serialize(*again).value() != *written) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check<ration::SfItem>(text, ration::parse_sf_item, ration::serialize_sf_item);
    check<ration::SfList>(text, ration::parse_sf_list, ration::serialize_sf_list);
    check<ration::SfDictionary>(text, ration::parse_sf_dictionary, ration::serialize_sf_dictionary);
    return 0;
}
