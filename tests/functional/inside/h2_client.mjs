// Node's HTTP/2 client: one session, many streams, slow and denied ones among them. argv: BASE
// PROXY ("" or host:port). Prints one JSON line.
import http2 from 'node:http2';
import http from 'node:http';
import tls from 'node:tls';
import fs from 'node:fs';

const [base, proxy] = process.argv.slice(2);
const url = new URL(base);

function tunnel() {
  const [host, port] = proxy.split(':');
  return new Promise((resolve, reject) => {
    http.request({ host, port, method: 'CONNECT', path: `${url.hostname}:443`,
      headers: { host: `${url.hostname}:443` } })
      .on('connect', (_, socket) => resolve(tls.connect({
        socket, servername: url.hostname, ALPNProtocols: ['h2'],
        ca: fs.readFileSync(process.env.NODE_EXTRA_CA_CERTS),
      })))
      .on('error', reject).end();
  });
}

const socket = proxy ? await tunnel() : null;
const session = http2.connect(base, socket ? { createConnection: () => socket } : {});
const started = Date.now();

function ask(headers, body) {
  return new Promise((resolve) => {
    const stream = session.request(headers, { endStream: body === undefined });
    const got = { status: 0, body: '', at: 0 };
    stream.on('response', (h) => { got.status = h[':status']; got.denied = h['durward-denied']; });
    stream.setEncoding('utf8');
    stream.on('data', (d) => { got.body += d; });
    stream.on('error', (e) => { got.error = e.code; });
    stream.on('close', () => { got.at = Date.now() - started; resolve(got); });
    if (body !== undefined) stream.end(body);
  });
}

const asked = [];
for (let i = 0; i < 100; i++) {
  const kind = i % 10 === 0 ? 'slow' : i % 10 === 5 ? 'denied' : 'quick';
  asked.push(ask({ ':path': `/${kind}/${i}` }).then((r) => ({ ...r, kind, i })));
}
const all = await Promise.all(asked);
const of = (kind) => all.filter((r) => r.kind === kind);
const up = await ask({ ':path': '/up', ':method': 'POST' }, Buffer.alloc(2 << 20, 7));
session.close();
console.log(JSON.stringify({
  quick: of('quick').filter((r) => r.status === 200 && JSON.parse(r.body).target === `/quick/${r.i}`).length,
  slow: of('slow').filter((r) => r.status === 200).length,
  denied: of('denied').filter((r) => r.status === 403 && r.body.endsWith(`\ndenied ${r.denied}\n`)).length,
  first_slow: Math.min(...of('slow').map((r) => r.at)),
  last_quick: Math.max(...of('quick').map((r) => r.at)),
  up: JSON.parse(up.body).length,
}));
