// Replies of a server that may be anything: the reader must stay inside the bytes, make progress,
// and read the same with and without what comes after; what it reads goes on to the script's
// decoder.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "counters/redis/call_codec.h"
#include "wire/resp.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const ration::RedisCodec codec{ration::RedisOptions{}};
    ration::RespReply reply;
    std::size_t used = 0;
    while (ration::parse_resp(bytes, reply, used) == ration::RespRead::complete) {
        if (used == 0 || used > bytes.size() || (!reply.array && reply.values.size() != 1)) {
            std::abort();
        }
        ration::RespReply alone;
        std::size_t used_alone = 0;
        const std::string copy(bytes.substr(0, used));
        if (ration::parse_resp(copy, alone, used_alone) != ration::RespRead::complete ||
            used_alone != used || alone.values.size() != reply.values.size()) {
            std::abort();
        }
        for (std::uint8_t charges = 0; charges <= ration::max_charges; ++charges) {
            ration::RedisCall call;
            call.charges = charges;
            ration::Outcome outcome;
            std::int64_t micros = 0;
            static_cast<void>(codec.decode(reply, call, outcome, micros));
        }
        bytes.remove_prefix(used);
    }
    return 0;
}
