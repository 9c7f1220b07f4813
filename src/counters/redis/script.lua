-- One transaction on Redis: every charge of a request, judged and stored in one step.
--
-- The arithmetic is that of src/limits, in whole microseconds. Redis's numbers are doubles, exact
-- up to 2^53, so time counts from 2020 and products that would pass 2^53 are divided digit by digit
-- (`muldiv`). Everything is read before anything is written: an error leaves nothing half done.
-- Buckets and fixed windows are judged in line; what the other kinds need is made when one of them
-- comes up (`more`), because Lua pays for every function each time the script runs. The script is
-- this file, script_more.lua and script_run.lua, one after the other.
--
-- KEYS     one for each charge; the same key may come twice
-- ARGV[1]  packed, little endian (call_codec.cc writes it): the header, then each charge
--   header <BddddC8: explicit, mono, wall, not_after, lease_length, lease
--          explicit 1: the server's clock decides, 2: mono and wall do. not_after above 0: later
--          than that nothing is done, for nobody waits any more.
--   charge <BdBdddddd: op, cost, kind, a, b, c, taken mono, taken wall, change_age (since the
--          numbers last changed)
--          op 1 take, 2 give back, 3 observe, 4 force, 5 give back what was taken at a time,
--          6 require: refuse as a take would, charge nothing, 7 as 5, but off a sliding window only
--          what was taken at that very time: doing it twice is doing it once
--          kind 1 token bucket (a capacity, b tokens per c us), 2 fixed window, 3 sliding window,
--          4 sliding counter (a amount, b period), 5 concurrency (a amount); 8 more: attempts count
-- Reply    {1 admitted, 0 refused or -1 too late; the time used; and for each charge: verdict (0
--          admitted, 1 refused, 2 never), limit, used, wait, next, reset}
--
-- A value in Redis: kind, a, b, c as above, then the use: <d as_of, <d used, for sliding counters
-- <d before, and for either, while the use begins before the last change of its numbers, <d when
-- that was (monotonic). A sliding window has <ddddd first, count, base, total, newest and then records of <dd
-- (instant, units up to and with this one). In-flight slots are a sorted set of leases by their
-- end; beside a lease of more than one unit stands LEASEu with their number, and there are `=` for
-- all units and `*` for those without a lease: numbers are negative, so they are never the oldest.
local call, unpack, pack = redis.call, struct.unpack, struct.pack
local args, count = ARGV[1], #KEYS
local explicit, mono, wall, not_after, lease_length, lease = unpack('<Bddddc8', args)
local change_age
if explicit == 1 then
    local time = call('TIME')
    mono = (time[1] - 1577836800) * 1000000 + time[2]
    wall = mono
    if not_after > 0 and mono > not_after then
        return {-1, mono}
    end
end

-- floor(a * b / c) and the remainder; b is at most c, c below 2^49.
local function muldiv(a, b, c)
    local product = a * b
    if product < 9007199254740992 then
        local rest = product % c
        return (product - rest) / c, rest
    end
    local digit, quotient, rest = 1, 0, 0
    while digit * 8 <= a do
        digit = digit * 8
    end
    while digit >= 1 do
        local d = math.floor(a / digit)
        a = a - d * digit
        local part = rest * 8 + d * b
        rest = part % c
        quotient = quotient * 8 + (part - rest) / c
        digit = digit / 8
    end
    return quotient, rest
end

-- From `elapsed` on until a bucket has earned `tokens`; whole steps of the rate are taken apart.
local function until_earned(s, tokens, elapsed)
    if s.b == 0 then
        return 9007199254740992
    end
    local part = tokens % s.b
    local wait = (tokens - part) / s.b * s.c - elapsed
    if part > 0 then
        local whole, rest = muldiv(s.c, part, s.b)
        wait = wait + whole + (rest > 0 and 1 or 0)
    end
    return math.min(wait, 9007199254740992)
end

-- Brings a bucket's use up to date; returns what has passed and been earned since as_of.
local function sync_bucket(s, now)
    local elapsed, step, earned = now - s.t, s.c, 0
    if s.u == 0 or s.b == 0 then
        return 0, 0
    end
    if elapsed >= step then
        local steps = math.floor(elapsed / step)
        local whole = steps * s.b
        if whole >= s.u then
            s.t, s.u = 0, 0
            return 0, 0
        end
        s.u, s.t, elapsed = s.u - whole, s.t + steps * step, elapsed - steps * step
    end
    if elapsed > 0 and s.b > 1 then
        earned = muldiv(s.b, elapsed, step)
        if earned >= s.u then
            s.t, s.u = 0, 0
            return 0, 0
        end
    end
    return elapsed, earned
end

