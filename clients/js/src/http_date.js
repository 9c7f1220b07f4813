// HTTP-date in its three forms (RFC 9110, section 5.6.7):
//   Mon, 30 Nov 2026 00:00:45 GMT      Monday, 30-Nov-26 00:00:45 GMT      Mon Nov 30 00:00:45 2026
// Names compare without case. The day's name must be one, but is not held against the date.

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAY = '(?:mon|tue|wed|thu|fri|sat|sun)';
const LONG_DAY = '(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)';
const TIME = '(\\d{2}):(\\d{2}):(\\d{2})';
const FIXED = new RegExp(`^${DAY}, (\\d{2}) ([a-z]{3}) (\\d{4}) ${TIME} gmt$`, 'i');
const RFC_850 = new RegExp(`^${LONG_DAY}, (\\d{2})-([a-z]{3})-(\\d{2}) ${TIME} gmt$`, 'i');
const ASCTIME = new RegExp(`^${DAY} ([a-z]{3}) (\\d{2}| \\d) ${TIME} (\\d{4})$`, 'i');
const MAX_CHARACTERS = 40;

// Unix milliseconds, or null when `text` is no HTTP-date. `nowUnixMs` gives two-digit years their
// century: what would lie more than 50 years ahead is past.
export function parseHttpDate(text, nowUnixMs) {
    if (text.length > MAX_CHARACTERS) {
        return null;
    }
    let match = FIXED.exec(text);
    if (match) {
        return moment(+match[3], match[2], +match[1], match.slice(4));
    }
    match = ASCTIME.exec(text);
    if (match) {
        return moment(+match[6], match[1], +match[2], match.slice(3, 6));
    }
    match = RFC_850.exec(text);
    if (!match) {
        return null;
    }
    const thisYear = new Date(nowUnixMs).getUTCFullYear();
    let year = thisYear - (thisYear % 100) + Number(match[3]);
    if (year > thisYear + 50) {
        year -= 100;
    }
    return moment(year, match[2], +match[1], match.slice(4));
}

function moment(year, monthName, day, [hour, minute, second]) {
    const month = MONTHS.indexOf(monthName.toLowerCase());
    if (month < 0 || hour > 23 || minute > 59 || second > 60) {
        return null;
    }
    const date = new Date(0);
    date.setUTCFullYear(year, month, day);
    if (date.getUTCMonth() !== month || date.getUTCDate() !== day) {
        return null;
    }
    return date.getTime() + ((hour * 60 + +minute) * 60 + +second) * 1000;
}
