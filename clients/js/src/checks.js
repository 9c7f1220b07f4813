// What settings may be. Each check throws a TypeError that names the setting; none shows its value, which may be a secret
// in the wrong place.

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/; // RFC 9110
const ROUTE = /^[!#$%&'*+\-.^_`|~0-9A-Z]+ (?:\/|\*\*)[^\s?#]*$/; // methods that get keys are in capitals

export const isText = (value) => typeof value === 'string';
export const isFunction = (value) => typeof value === 'function';
export const isToken = (value) => isText(value) && TOKEN.test(value);
export const isNumber = (value) => typeof value === 'number' && value >= 0;
export const isWhole = (value) => Number.isInteger(value) ? value >= 0 : value === Infinity;
export const isRefusal = (value) => Number.isInteger(value) && value >= 400 && value <= 599;
export const isRoute = (value) => isText(value) && ROUTE.test(value);
export const isRecord = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
export const isListOf = (value, isMember) => Array.isArray(value) && Array.from(value).every(isMember); // holes too

export function check(name, good, wanted) {
    if (!good) {
        throw new TypeError(`${name} must be ${wanted}`);
    }
}

// A misspelt option would be one that does nothing.
export function checkNames(name, given, known) {
    check(name, isRecord(given), 'an object');
    for (const own of Object.keys(given)) {
        if (!known.has(own)) {
            throw new TypeError(`${name}: there is no option ${own}`);
        }
    }
}
