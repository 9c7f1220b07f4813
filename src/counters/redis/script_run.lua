-- The last part of the script (script.lua): the transaction itself.

-- ---- reading ----

local rare
local states = {}
for i = 1, count do
    local key = KEYS[i]
    local op, _, kind, a, b, c = unpack('<BdBddd', args, 58 * i - 16)
    local s
    for j = 1, i - 1 do
        if KEYS[j] == key then
            s = states[j]
            break
        end
    end
    if not s then
        local k = kind % 8
        local value = k <= 2 and redis.pcall('GET', key)
        if k <= 2 and not value then
            s = {key = key, a = a, b = b, c = c, t = 0, u = 0, v = 0, pending = 0}
            s.kind, s.k = kind, k
        elseif value and #value == 41 then
            s = {key = key, v = 0, pending = 0, found = 'string'}
            s.kind, s.a, s.b, s.c, s.t, s.u = unpack('<Bddddd', value)
            s.k = s.kind % 8
            if s.k < 1 or s.k > 2 or s.kind > 10 then
                error('a value that is no counter')
            end
        else
            rare = rare or more()
            s = rare.read(key, kind, a, b, c)
        end
    end
    if (s.a ~= a or s.b ~= b or s.c ~= c or s.kind ~= kind) and op ~= 2 and op ~= 5 then
        rare = rare or more()
        change_age = unpack('<d', args, 58 * i + 34)
        rare.adopt(s, kind, a, b, c)
    end
    states[i] = s
end

-- ---- judging ----

-- As if every charge were admitted, each seeing what the ones before it did. When one is refused,
-- a second pass starts from the uses as they were and does only what holds regardless.
local reply = {1, mono, 0, 0, 0, 0, 0, 0}
if count > 1 then
    reply = {1, mono, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}  -- the size of the commonest, at once
    for i = 1, count do
        local s = states[i]
        s.t0, s.u0, s.v0, s.anonymous0 = s.t, s.u, s.v, s.anonymous
    end
end
for pass = 1, 2 do
    for i = 1, count do
        local s = states[i]
        local op, cost, kind, _, _, _, taken_mono, taken_wall = unpack('<BdBddddd', args, 58 * i - 16)
        local k, verdict = s.k, 0
        local gives = op == 2 or op >= 5 and op ~= 6
        local looks = op == 3 or op == 6
        local charges = not looks and cost > 0
        if pass == 2 then
            charges = charges and (op == 4 or op == 1 and s.kind >= 8 or gives and k ~= 3)
        end
        if gives and charges then
            rare = rare or more()
            rare.sync(s, mono, wall)
            rare.give(s, cost, kind, op ~= 2 and taken_mono, op ~= 2 and taken_wall, op == 7)
        end
        local elapsed, used = 0
        if k == 1 then
            local earned
            elapsed, earned = sync_bucket(s, mono)
            used = s.u - earned
        elseif k == 2 then
            if s.u == 0 or wall >= s.t + s.b then
                s.t, s.u = wall - (wall + 1577836800000000) % s.b, 0
            end
            used = s.u
        else
            used = rare.sync(s, mono, wall)
        end
        if not gives and op ~= 4 and cost > 0 and used + cost > s.a then
            verdict = cost > s.a and 2 or 1
        end
        if charges and not gives and (verdict == 0 or verdict == 1 and s.kind >= 8) then
            -- Forced units beyond a sliding window's amount leave at the same instant: no effect.
            local units = op == 4 and k == 3 and math.min(cost, s.a) or cost
            if k <= 2 then
                if k == 1 and s.u == 0 then
                    s.t, elapsed = mono, 0
                end
                s.u = math.min(s.u + units, 4294967295)
                s.changed = true
            else
                rare.add(s, units)
            end
            used = k == 1 and used + units or k == 2 and s.u or rare.sync(s, mono, wall)
        end
        if op ~= 1 and not looks then
            cost = 0
        end
        local a = s.a
        local left = used < a and a - used or 0
        local wait, following, reset = 0, 0, 0
        if k == 1 then
            if verdict == 1 then
                wait = until_earned(s, s.u + cost - a, elapsed)
            end
            if s.u ~= 0 then
                following = a == 0 and 0 or until_earned(s, s.u + left + 1 - a, elapsed)
                reset = until_earned(s, s.u, elapsed)
            end
        elseif k == 2 then
            reset = s.t + s.b - wall
            wait = verdict == 1 and reset or 0
            following = used ~= 0 and reset or 0
        else
            wait, following, reset = rare.times(s, verdict, cost, used, left)
        end
        s.ends_in = reset
        local at = 6 * i - 3
        if pass == 1 then
            reply[at], reply[at + 3] = verdict, wait
        end
        reply[at + 1], reply[at + 2], reply[at + 4], reply[at + 5] = a, used, following, reset
        if verdict ~= 0 and op ~= 3 and pass == 1 then
            reply[1] = 0
        end
    end
    if reply[1] == 1 or count == 1 then
        break
    end
    if pass == 1 then
        for i = 1, count do
            local s = states[i]
            s.t, s.u, s.v, s.anonymous = s.t0, s.u0, s.v0, s.anonymous0
            s.pending, s.returned = 0, 0
            s.changed = s.changed and s.k == 3
        end
    end
end

-- ---- writing ----

for i = 1, count do
    local s = states[i]
    if s.changed or s.converted or s.pending > 0 then
        if s.k > 2 then
            rare.store(s)
        elseif s.u == 0 then
            if s.found then
                call('DEL', s.key)
            end
        else
            local value = pack('<Bddddd', s.kind, s.a, s.b, s.c, s.t, s.u)
            if s.w then
                value = value .. rare.changed(s)
            end
            if explicit == 1 then
                -- Whole seconds, for Redis ends those at less cost. Its clock for that stands still
                -- while it works, so it gets some milliseconds more.
                local seconds = math.min(math.floor(s.ends_in / 1000000 + 1.05), 10000000000)
                call('SET', s.key, value, 'EX', string.format('%d', seconds))
            else
                call('SET', s.key, value)
            end
        end
        s.changed, s.converted, s.pending = false, false, 0
    end
end
return reply
