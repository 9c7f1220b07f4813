// What to do with one redirect (RFC 9110, section 15.4). Pure.

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

export function isRedirect(status) {
    return REDIRECTS.has(status);
}

// `hop`: {method, status, from, location, followed}; `followed` counts the redirects before this.
// Gives {action: 'follow', url, method, dropBody, dropSecrets} or {action: 'stop', reason}.
// `dropSecrets`: the new place is another origin; Authorization, Cookie and the key stay behind.
export function decideRedirect(policy, {method, status, from, location, followed}) {
    if (followed >= policy.maxRedirects) {
        return stop('too_many_redirects');
    }
    const old = new URL(from);
    const url = resolved(location, old);
    if (!url) {
        return stop('bad_location');
    }
    if (old.protocol === 'https:' && url.protocol === 'http:') {
        return stop('redirect_to_insecure');
    }
    const becomesGet = status === 303 ? method !== 'GET' && method !== 'HEAD'
        : (status === 301 || status === 302) && method === 'POST';
    if (becomesGet && !policy.redirectToGet) {
        return stop('redirect_would_change_method');
    }
    return {
        action: 'follow',
        url: url.href,
        method: becomesGet ? 'GET' : method,
        dropBody: becomesGet,
        dropSecrets: url.origin !== old.origin,
    };
}

function resolved(location, base) {
    if (typeof location !== 'string' || location === '') {
        return null;
    }
    try {
        const url = new URL(location, base);
        const usable = (url.protocol === 'http:' || url.protocol === 'https:') && !url.username && !url.password;
        return usable ? url : null;
    } catch {
        return null;
    }
}

function stop(reason) {
    return {action: 'stop', reason};
}
