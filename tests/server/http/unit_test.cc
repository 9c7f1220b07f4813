// The parts below the sockets: timer wheel, buffer, body decoder, dates, small syntax.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "net/buffer.h"
#include "net/timer_wheel.h"
#include "server/http/body_decoder.h"
#include "server/http/date.h"
#include "server/http/fields.h"
#include "server/http/head_parser.h"

namespace ration {
namespace {

struct Probe {
    explicit Probe(net::TimerWheel& w) : wheel(w), timer(&Probe::fire, this) {}
    static void fire(void* self) { ++static_cast<Probe*>(self)->fired; }
    net::TimerWheel& wheel;
    net::Timer timer;
    int fired = 0;
};

TEST(TimerWheel, FiresOnceNeverEarlyAndAtMostATickLate) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 300; ++round) {
        const Mono start{Nanos(static_cast<std::int64_t>(random() % 1'000'000'000'000ULL))};
        net::TimerWheel wheel(start);
        Probe probe(wheel);
        const Nanos length(static_cast<std::int64_t>(random() % 120'000'000'000ULL));
        wheel.arm(probe.timer, start + length);
        Mono now = start;
        while (probe.fired == 0) {
            now += Nanos(static_cast<std::int64_t>(random() % 20'000'000ULL));
            wheel.advance(now);
            ASSERT_TRUE(probe.fired == 0 || now >= start + length);
            ASSERT_LT(now, start + length + 3 * net::timer_tick);
        }
        wheel.advance(now + std::chrono::hours(1));
        EXPECT_EQ(probe.fired, 1);
    }
}

TEST(TimerWheel, MovedDeadlinesCount) {
    const Mono start{std::chrono::hours(5)};
    net::TimerWheel wheel(start);
    Probe later(wheel);
    Probe sooner(wheel);
    Probe off(wheel);
    wheel.arm(later.timer, start + std::chrono::seconds(1));
    wheel.arm(later.timer, start + std::chrono::seconds(10));
    wheel.arm(sooner.timer, start + std::chrono::seconds(10));
    wheel.arm(sooner.timer, start + std::chrono::seconds(1));
    wheel.arm(off.timer, start + std::chrono::seconds(1));
    off.timer.disarm();
    wheel.advance(start + std::chrono::seconds(2));
    EXPECT_EQ(later.fired, 0);
    EXPECT_EQ(sooner.fired, 1);
    EXPECT_EQ(off.fired, 0);
    wheel.advance(start + std::chrono::seconds(11));
    EXPECT_EQ(later.fired, 1);
    // A jump over the whole wheel, with a deadline beyond its span.
    wheel.arm(later.timer, start + std::chrono::hours(2));
    wheel.advance(start + std::chrono::hours(1));
    EXPECT_EQ(later.fired, 1);
    wheel.advance(start + std::chrono::hours(3));
    EXPECT_EQ(later.fired, 2);
}

TEST(TimerWheel, ATimerMayEndAnotherFromItsCallback) {
    const Mono start{};
    net::TimerWheel wheel(start);
    struct Killer {
        std::unique_ptr<Probe> victim;
        net::Timer timer{[](void* self) { static_cast<Killer*>(self)->victim.reset(); }, this};
    } killer;
    killer.victim = std::make_unique<Probe>(wheel);
    wheel.arm(killer.timer, start + std::chrono::seconds(1));
    wheel.arm(killer.victim->timer, start + std::chrono::seconds(1));
    wheel.advance(start + std::chrono::seconds(2));
    EXPECT_EQ(killer.victim, nullptr);
}

TEST(Buffer, BehavesLikeAString) {
    std::mt19937 random(3);
    net::BlockPool pool;
    net::Buffer buffer(pool);
    std::string model;
    for (int i = 0; i < 20'000; ++i) {
        const std::size_t count = random() % 3000;
        switch (random() % 4) {
            case 0: {
                const std::string text(count, static_cast<char>('a' + i % 26));
                buffer.append(text);
                model += text;
                break;
            }
            case 1: {
                const std::span<char> room = buffer.room(count);
                ASSERT_GE(room.size(), count);
                std::fill_n(room.begin(), count, 'z');
                buffer.commit(count);
                model.append(count, 'z');
                break;
            }
            case 2: {
                const std::size_t gone = std::min(count * 2, model.size());
                buffer.consume(gone);
                model.erase(0, gone);
                break;
            }
            default:
                if (i % 50 == 0) {
                    buffer.release();
                    model.clear();
                }
        }
        ASSERT_TRUE(buffer.data() == model);
    }
}

// ---- bodies ----

struct Decoded {
    std::string content;
    std::string trailers;
    std::string left;
    bool done = false;
    bool error = false;
};

// Feeds `bytes` in pieces of `step`.
Decoded decode(http::Framing framing, std::uint64_t length, std::string_view bytes,
               std::size_t step) {
    http::BodyDecoder decoder;
    decoder.start(framing, length);
    Decoded result;
    std::string pending;
    std::size_t at = 0;
    for (;;) {
        const http::BodyDecoder::Step got = decoder.next(pending);
        result.content += got.content;
        pending.erase(0, got.used);
        if (got.state == http::BodyDecoder::State::error) {
            result.error = true;
            break;
        }
        if (decoder.done()) {
            result.done = true;
            break;
        }
        if (got.state == http::BodyDecoder::State::more) {
            if (at == bytes.size()) {
                break;
            }
            pending += bytes.substr(at, step);
            at += std::min(step, bytes.size() - at);
        }
    }
    result.trailers = decoder.trailers();
    result.left = pending + std::string(bytes.substr(std::min(at, bytes.size())));
    return result;
}

TEST(BodyDecoder, TheSameInAnyPieces) {
    const std::string chunked =
        "5\r\nhello\r\n00006;a=\"b;c\" ; d\r\n world\r\n0\r\nA: 1\r\nHost: x\r\nB:2\r\n\r\nrest";
    for (std::size_t step = 1; step <= chunked.size(); ++step) {
        const Decoded got = decode(http::Framing::chunked, 0, chunked, step);
        EXPECT_TRUE(got.done) << step;
        EXPECT_EQ(got.content, "hello world") << step;
        EXPECT_EQ(got.trailers, "A: 1\r\nB:2\r\n") << step;
        EXPECT_EQ(got.left, "rest") << step;
        const Decoded sized = decode(http::Framing::length, 5, "hellorest", step);
        EXPECT_TRUE(sized.done);
        EXPECT_EQ(sized.content, "hello");
        EXPECT_EQ(sized.left, "rest");
    }
}

TEST(BodyDecoder, BoundsOfAChunkLineAndOfTrailers) {
    const auto with_extension = [](std::size_t size) {
        return "1;" + std::string(size, 'x') + "\r\na\r\n0\r\n\r\n";
    };
    EXPECT_TRUE(
        decode(http::Framing::chunked, 0, with_extension(http::max_chunk_line - 4), 7).done);
    EXPECT_TRUE(
        decode(http::Framing::chunked, 0, with_extension(http::max_chunk_line - 3), 7).error);
    const auto with_trailers = [](std::size_t count) {
        std::string text = "0\r\n";
        for (std::size_t i = 0; i < count; ++i) {
            text += "T: 1\r\n";
        }
        return text + "\r\n";
    };
    EXPECT_TRUE(decode(http::Framing::chunked, 0, with_trailers(http::max_trailer_fields), 9).done);
    EXPECT_TRUE(
        decode(http::Framing::chunked, 0, with_trailers(http::max_trailer_fields + 1), 9).error);
    const auto with_bytes = [](std::size_t size) {
        return "0\r\nT:" + std::string(size - 6, 'x') + "\r\n\r\n";
    };
    EXPECT_TRUE(decode(http::Framing::chunked, 0, with_bytes(http::max_trailer_bytes), 999).done);
    EXPECT_TRUE(
        decode(http::Framing::chunked, 0, with_bytes(http::max_trailer_bytes + 1), 999).error);
}

TEST(BodyDecoder, EndsOfInput) {
    http::BodyDecoder decoder;
    decoder.start(http::Framing::until_close, 0);
    EXPECT_EQ(decoder.next("abc").content, "abc");
    EXPECT_TRUE(decoder.end_of_input());
    decoder.start(http::Framing::length, 3);
    EXPECT_FALSE(decoder.end_of_input());
    decoder.start(http::Framing::chunked, 0);
    EXPECT_FALSE(decoder.end_of_input());
    decoder.start(http::Framing::length, 0);
    EXPECT_TRUE(decoder.done());
}

// ---- small syntax ----

TEST(Fields, Authorities) {
    for (const char* good :
         {"a", "a.b:80", "a:", "127.0.0.1:8080", "[::1]", "[::1]:80", "a_b", "%41"}) {
        EXPECT_TRUE(http::is_authority(good)) << good;
    }
    for (const char* bad : {"", ":80", "a:b", "a:123456", "[]", "[::1", "[::1]x", "[g]", "a b",
                            "a@b", "a/b", "a?b", "a:80:90", "\x80"}) {
        EXPECT_FALSE(http::is_authority(bad)) << bad;
    }
}

TEST(Dates, AreWrittenOnceASecond) {
    http::DateCache cache;
    const auto at = [](std::int64_t seconds) { return Wall(std::chrono::seconds(seconds)); };
    EXPECT_EQ(cache.text(at(0)), "Thu, 01 Jan 1970 00:00:00 GMT");
    EXPECT_EQ(cache.text(Wall(std::chrono::milliseconds(1999))), "Thu, 01 Jan 1970 00:00:01 GMT");
    const std::string_view kept = cache.text(at(784111777));
    EXPECT_EQ(kept, "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(cache.text(at(784111777)).data(), kept.data());
    EXPECT_EQ(cache.text(at(951782400)), "Tue, 29 Feb 2000 00:00:00 GMT");
}

}  // namespace
}  // namespace ration
