-- The second part of the script (script.lua).
--
-- What only the other kinds, changed numbers and units given back need.
local function more()
    local LOG_HEAD, RECORD, COMPACT = 65, 16, 64
    local RESTING = 315619200000000  -- the longest period, in microseconds
    local BUCKET, WINDOW, LOG, COUNTER, IN_FLIGHT = 1, 2, 3, 4, 5
    local min, max, sub, floor = math.min, math.max, string.sub, math.floor
    local no_lease = string.rep('\0', 8)
    local rare = {}

    local function record(s, j)
        if s.records then
            return unpack('<dd', s.records, RECORD * j + 1)
        end
        local at = LOG_HEAD + RECORD * j
        return unpack('<dd', call('GETRANGE', s.key, at, at + RECORD - 1))
    end

    -- The first record whose instant (`by` 1) or total (`by` 2) is at least `bound`, or count.
    local function seek(s, by, bound)
        local low, high = s.first, s.count
        while low < high do
            local mid = floor((low + high) / 2)
            local instant, total = record(s, mid)
            if (by == 1 and instant or total) >= bound then
                high = mid
            else
                low = mid + 1
            end
        end
        return low
    end

    -- Drops records that are a period old at `now`.
    local function expire(s, now)
        local alive = now - s.b + 1
        if s.first == s.count then
            return
        end
        if s.newest < alive then
            s.first, s.base = s.count, s.total
        elseif record(s, s.first) < alive then
            local first = seek(s, 1, alive)
            local _, base = record(s, first - 1)
            s.first, s.base = first, base
        end
    end

    local function replace_records(s, from, text)
        if s.records then
            s.records = sub(s.records, 1, RECORD * from) .. text
        else
            call('SETRANGE', s.key, LOG_HEAD + RECORD * from, text)
        end
    end

    -- Takes up to `units` off: from the record of `taken` on (`only`: of that record's own), else
    -- from the newest ones.
    local function remove_units(s, units, taken, only)
        local kept = s.total - min(units, s.total - s.base)
        local from = taken and seek(s, 1, taken) or seek(s, 2, kept + 1)
        local before, removed, out = s.base, 0, {}
        if from > s.first then
            before = select(2, record(s, from - 1))
        end
        if only then
            local instant, total = 0, 0
            if from < s.count then
                instant, total = record(s, from)
            end
            if instant ~= taken then
                return
            end
            units = min(units, total - before)
        end
        for j = from, s.count - 1 do
            local instant, total = record(s, j)
            if taken then
                removed = removed + min(units - removed, total - before)
                before = total
                total = total - removed
            else
                total = kept
            end
            out[#out + 1] = pack('<dd', instant, total)
            s.total = total
        end
        if #out > 0 then
            replace_records(s, from, table.concat(out))
        end
    end

    local function push(s, units)
        s.total = s.total + units
        if s.first < s.count and s.newest >= mono then
            replace_records(s, s.count - 1, pack('<dd', s.newest, s.total))
        else
            replace_records(s, s.count, pack('<dd', mono, s.total))
            s.count, s.newest = s.count + 1, mono
        end
    end

    local function window_start(at, period)
        return at - (at + 1577836800000000) % period
    end

    local function sync_counter(s, at)
        if s.u == 0 and s.v == 0 then
            s.t = window_start(at, s.b)
        elseif at - s.t >= 2 * s.b or at - s.t >= s.b and s.u == 0 then
            s.t, s.u, s.v = window_start(at, s.b), 0, 0
        elseif at - s.t >= s.b then
            s.t, s.u, s.v = s.t + s.b, 0, s.u
        end
        s.weighted = 0
        if s.v > 0 then
            local whole, rest = muldiv(s.v, min(s.b, s.t + s.b - at), s.b)
            s.weighted = whole + (rest > 0 and 1 or 0)
        end
    end

    -- Brings any use up to date; returns the units in use.
    local function sync(s, mono_at, wall_at)
        local k = s.k
        if k == BUCKET then
            local _, earned = sync_bucket(s, mono_at)
            return s.u - earned
        elseif k == WINDOW then
            if s.u == 0 or wall_at >= s.t + s.b then
                s.t, s.u = window_start(wall_at, s.b), 0
            end
        elseif k == LOG then
            expire(s, mono_at)
            return s.total - s.base + s.pending
        elseif k == COUNTER then
            sync_counter(s, wall_at)
            return s.u + s.weighted
        end
        return s.u
    end

    local function set_numbers(s, kind, a, b, c)
        s.kind, s.k, s.a, s.b, s.c = kind, kind % 8, a, b, c
    end

    local function empty(s)
        s.w = 0
        s.t, s.u, s.v, s.anonymous, s.pending, s.returned = 0, 0, 0, 0, 0, 0
        s.first, s.count, s.base, s.total, s.newest, s.records = 0, 0, 0, 0, 0, ''
    end

    -- The moment at which changed numbers took over a use, on the monotonic clock. Not before the
    -- last such moment: another gateway's numbers may be older, and the use may begin before it.
    local function moment_of_change(s, to_log)
        local at = min(max(mono - change_age, s.w or 0), mono)
        if s.k == BUCKET then
            return max(at, s.t)
        elseif s.k == LOG then
            return max(at, s.newest)
        end
        -- A window that began after the change was written under the old numbers all the same.
        local begun = s.t - (wall - mono)
        return not to_log and at < begun and min(begun, mono) or at
    end

    -- The part of a token that is earned stays that part of one, and a bucket that refills nothing
    -- keeps it in place of a time: -1 / RESTING tokens.
    local function carry_bucket(s, at, b, c)
        local parts, of = -s.t, RESTING
        if s.b > 0 then
            local elapsed = sync_bucket(s, at)
            local earned, rest = muldiv(s.b, elapsed, s.c)
            s.u, parts, of = s.u - earned, rest, s.c
        elseif parts < 0 or parts >= RESTING then
            parts = 0
        end
        if s.u == 0 then
            return 0, 0
        elseif b == 0 then
            return -muldiv(RESTING, parts, of), s.u
        end
        local earning = muldiv(c, parts, of)
        return at - (earning - earning % b) / b, s.u
    end

    -- Counts stay, and as much of the window is over as was.
    local function carry_counter(s, at, period)
        sync_counter(s, at)
        if s.u + s.weighted == 0 then
            return 0, 0, 0
        end
        local over = at - s.t
        return over > 0 and at - muldiv(period, over, s.b) or s.t, s.u, s.v
    end

    -- Within its kind; see limits/use.h.
    local function carry(s, kind, a, b, c)
        local at = moment_of_change(s)
        local t, u, v = 0, 0, 0
        if s.k == BUCKET then
            t, u = carry_bucket(s, at, b, c)
        else
            t, u, v = carry_counter(s, wall - (mono - at), b)
            s.converted = true
        end
        set_numbers(s, kind, a, b, c)
        empty(s)
        s.t, s.u, s.v, s.w = t, u, v, at
    end

    -- Units under the old numbers, all taken at one moment, become the use of the new ones.
    function rare.adopt(s, kind, a, b, c)
        local old, new, same_period = s.k, kind % 8, s.b == b
        local rewritten = old == LOG or old == COUNTER or new == LOG or new == COUNTER
        if old == IN_FLIGHT or new == IN_FLIGHT then
            if old ~= new then
                empty(s)
                s.converted = rewritten
            end
            return set_numbers(s, kind, a, b, c)
        elseif old == LOG and new == LOG then
            expire(s, min(mono - change_age, mono))
            s.converted = true
            return set_numbers(s, kind, a, b, c)
        elseif new ~= LOG and old == new and same_period and (old ~= BUCKET or s.c == c) then
            return set_numbers(s, kind, a, b, c)
        elseif old == new and old ~= WINDOW then
            return carry(s, kind, a, b, c)
        end
        local at = moment_of_change(s, new == LOG)
        local at_wall = wall - (mono - at)
        local units = sync(s, at, at_wall)
        if new ~= LOG and old ~= LOG and old ~= new and s.kind >= 8 then
            units = min(units, s.a)  -- attempts that were admitted; the rest was counted to refuse
        end
        s.converted = s.converted or rewritten
        set_numbers(s, kind, a, b, c)
        empty(s)
        if units > 0 and new == LOG then
            s.count, s.total, s.newest, s.records = 1, units, at, pack('<dd', at, units)
        elseif units > 0 then
            s.u, s.t, s.w = units, new == BUCKET and at or window_start(at_wall, b), at
        end
    end

    -- A lease holds one unit unless another number stands beside it.
    local function units_of(s, holder)
        return -(call('ZSCORE', s.key, holder .. 'u') or -1)
    end

    local function read_in_flight(key, total, a)
        local s = {key = key, found = 'zset'}
        empty(s)
        set_numbers(s, IN_FLIGHT, a, 0, 0)
        s.u, s.anonymous = -total, -(call('ZSCORE', key, '*') or 0)
        s.over = call('ZRANGEBYSCORE', key, 0, wall)
        for i = 1, #s.over do
            s.u = s.u - units_of(s, s.over[i])
        end
        return s
    end

    -- What this lease held before this transaction.
    local function held(s)
        if not s.held then
            local ends = s.found == 'zset' and call('ZSCORE', s.key, lease)
            s.held = ends and ends - wall > 0 and units_of(s, lease) or 0
        end
        return s.held
    end

    function rare.read(key, kind, a, b, c)
        local total = redis.pcall('ZSCORE', key, '=')
        if type(total) == 'string' then
            return read_in_flight(key, total, a)
        end
        if not total and call('EXISTS', key) == 1 then
            error('a sorted set that is no counter')
        end
        local value = total and call('GETRANGE', key, 0, LOG_HEAD - 1)
        local s = {key = key}
        empty(s)
        set_numbers(s, kind, a, b, c)
        if not value or value == '' then
            return s
        end
        s.found = 'string'
        s.kind, s.a, s.b, s.c, s.t, s.u = unpack('<Bddddd', value)
        s.k = s.kind % 8
        if s.kind > 12 or s.k < 1 or s.k > COUNTER then
            error('a value that is no counter')
        elseif s.k == COUNTER then
            s.v = unpack('<d', value, 42)
            s.w = #value >= 57 and unpack('<d', value, 50) or 0
        elseif s.k == LOG then
            s.first, s.count, s.base, s.total, s.newest = unpack('<ddddd', value, 26)
            s.t, s.u, s.records = 0, 0, nil
        elseif #value >= 49 then
            s.w = unpack('<d', value, 42)
        end
        return s
    end

    local function counter_wait(s, cost)
        local left = s.t + s.b - wall
        if s.u + cost <= s.a then
            local room = s.a - s.u - cost
            if s.v == 0 then
                return 0
            end
            return max(0, left - (room >= s.v and s.b or muldiv(s.b, room, s.v)))
        end
        local room = s.a - cost
        return left + s.b - (room >= s.u and s.b or muldiv(s.b, room, s.u))
    end

    local function log_wait(s, units)
        if units <= 0 then
            return 0
        elseif units > s.total - s.base then
            return s.b
        end
        local instant = record(s, seek(s, 2, s.base + units))
        return instant + s.b - mono
    end

    -- wait, next, reset of the kinds that are not judged in line.
    function rare.times(s, verdict, cost, used, left)
        local wait, following, reset = 0, 0, 0
        if s.k == LOG then
            wait = verdict == 1 and log_wait(s, used + cost - s.a) or 0
            if used ~= 0 then
                following = s.a == 0 and 0 or log_wait(s, used + left + 1 - s.a)
                reset = s.pending ~= 0 and s.b or s.newest + s.b - mono
            end
        elseif s.k == COUNTER then
            wait = verdict == 1 and counter_wait(s, cost) or 0
            following = used ~= 0 and left < s.a and counter_wait(s, left + 1) or 0
            local window_end = s.t + s.b - wall
            reset = s.u ~= 0 and window_end + s.b or s.v ~= 0 and window_end or 0
        end
        return wait, following, reset
    end

    function rare.add(s, cost)
        if s.k == LOG then
            s.pending = s.pending + cost
            return
        elseif s.k == IN_FLIGHT and lease == no_lease then
            s.anonymous = s.anonymous + cost
        elseif s.k == IN_FLIGHT then
            s.pending = s.pending + cost
        end
        s.u = min(s.u + cost, 4294967295)
        s.changed = true
    end

    local function free_slots(s, cost)
        if lease == no_lease then
            local returned = min(s.anonymous, cost)
            s.anonymous, s.u = s.anonymous - returned, s.u - returned
            return
        end
        local unborn = min(s.pending, cost)
        local returned = min(held(s) - s.returned, cost - unborn)
        s.pending, s.returned = s.pending - unborn, s.returned + returned
        s.u = s.u - unborn - returned
    end

    function rare.give(s, cost, kind, taken_mono, taken_wall, only)
        local k = s.k
        if (k == IN_FLIGHT) ~= (kind % 8 == IN_FLIGHT) then
            cost = 0
        end
        if k == LOG then
            if s.first < s.count then
                if not taken_mono or mono - taken_mono < s.b then
                    remove_units(s, cost, taken_mono, only)
                end
                s.changed = true
            end
            return
        elseif cost == 0 then
            return
        end
        s.changed = true
        if k == BUCKET then
            s.u = sync(s, mono, wall) <= cost and 0 or s.u - cost
        elseif k == IN_FLIGHT then
            free_slots(s, cost)
        elseif not taken_wall or taken_wall >= s.t then
            s.u = s.u - min(s.u, cost)
        elseif k == COUNTER and taken_wall >= s.t - s.b then
            s.v = s.v - min(s.v, cost)
        end
    end

    local function set(s, value, ends_in)
        if explicit == 1 then
            call('SET', s.key, value, 'EX', rare.seconds(ends_in))
        else
            call('SET', s.key, value)
        end
    end

    local function set_end(s, ends_in)
        if explicit == 1 then
            call('EXPIRE', s.key, rare.seconds(ends_in))
        end
    end

    -- As in script_run.lua.
    function rare.seconds(us)
        return string.format('%d', min(floor(us / 1000000 + 1.05), 10000000000))
    end

    local function log_head(s)
        return pack('<Bdddddddd', s.kind, s.a, s.b, s.c, s.first, s.count, s.base, s.total,
            s.newest)
    end

    local function store_log(s)
        if s.pending > 0 then
            push(s, s.pending)
        end
        local ends_in = s.newest + s.b - mono
        if s.total == s.base then
            if s.found then
                call('DEL', s.key)
            end
        elseif s.records then
            set(s, log_head(s) .. s.records, ends_in)
        elseif s.first >= COMPACT and s.first * 2 >= s.count then
            local rest = call('GETRANGE', s.key, LOG_HEAD + RECORD * s.first, -1)
            s.first, s.count = 0, s.count - s.first
            set(s, log_head(s) .. rest, ends_in)
        else
            call('SETRANGE', s.key, 0, log_head(s))
            set_end(s, ends_in)
        end
    end

    local function store_lease(s)
        local units = held(s) - s.returned + s.pending
        if units == 0 then
            call('ZREM', s.key, lease, lease .. 'u')
            return
        end
        if s.pending > 0 then
            call('ZADD', s.key, wall + lease_length, lease)
        end
        if units > 1 then
            call('ZADD', s.key, -units, lease .. 'u')
        else
            call('ZREM', s.key, lease .. 'u')
        end
    end

    local function store_in_flight(s)
        if s.found == 'string' or s.u <= 0 then
            call('DEL', s.key)
            if s.u <= 0 then
                return
            end
        end
        for i = 1, s.over and #s.over or 0 do
            call('ZREM', s.key, s.over[i], s.over[i] .. 'u')
        end
        if s.pending > 0 or s.returned > 0 then
            store_lease(s)
        end
        call('ZADD', s.key, -s.u, '=')
        if s.anonymous > 0 then
            call('ZADD', s.key, -s.anonymous, '*')
        elseif s.found == 'zset' then
            call('ZREM', s.key, '*')
        end
        set_end(s, lease_length)
    end

    -- What a value ends with while its use begins before the last change of its numbers.
    function rare.changed(s)
        local begun = s.k == BUCKET and s.t or s.t - (wall - mono)
        return s.w > begun and pack('<d', s.w) or ''
    end

    function rare.store(s)
        if s.k == LOG then
            store_log(s)
        elseif s.k == IN_FLIGHT then
            store_in_flight(s)
        elseif s.u ~= 0 or s.v ~= 0 then
            set(s, pack('<Bdddddd', s.kind, s.a, s.b, s.c, s.t, s.u, s.v) .. rare.changed(s),
                s.t + (s.u ~= 0 and 2 or 1) * s.b - wall)
        elseif s.found then
            call('DEL', s.key)
        end
    end

    rare.sync = sync
    return rare
end

