// Starts tests/clients/hostile_server.py of this repository and tells it what to do.

import {execFileSync, spawn} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';

const PROGRAM = process.env.RATION_HOSTILE_SERVER ??
    fileURLToPath(new URL('../../../tests/clients/hostile_server.py', import.meta.url));

export class HostileServer {
    static async start() {
        const server = new HostileServer();
        server.folder = mkdtempSync(join(tmpdir(), 'ration-hostile-'));
        const [certificate, key] = ['cert.pem', 'key.pem'].map((name) => join(server.folder, name));
        execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
            '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '2',
            '-out', certificate, '-keyout', key], {stdio: 'ignore'});
        server.child = spawn('python3', ['-B', PROGRAM, '--certificate', certificate, '--key', key],
            {stdio: ['pipe', 'pipe', 'inherit']});
        process.once('exit', () => server.child.kill());
        const line = await new Promise((resolve) => server.child.stdout.once('data', resolve));
        server.ports = JSON.parse(line);
        server.origin = `http://localhost:${server.ports.http}`;
        server.names = 0;
        return server;
    }

    async stop() {
        const gone = new Promise((resolve) => this.child.once('exit', resolve));
        this.child.stdin.end();
        await gone;
        rmSync(this.folder, {recursive: true});
    }

    // A new name whose requests are answered by these steps; text is a step that only replies.
    async script(steps, {skew = 0, listener = 'http'} = {}) {
        this.names += 1;
        const name = `s${this.names}`;
        const all = steps.map((step) => (typeof step === 'string' ? {reply: step} : step));
        await fetch(`${this.origin}/script`, {
            method: 'POST', body: JSON.stringify({name, steps: all, skew_s: skew}), headers: {Connection: 'close'},
        });
        const scheme = listener === 'https' ? 'https' : 'http';
        return {
            url: `${scheme}://localhost:${this.ports[listener]}/${name}`,
            log: async () => (await fetch(`${this.origin}/log/${name}`, {headers: {Connection: 'close'}})).json(),
        };
    }
}

export const reply = (status, headers = {}, body = '') => [
    `HTTP/1.1 ${status} Told`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${body.length}`, '', body,
].join('\n');
