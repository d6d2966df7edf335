// Node's fetch (h1) and its HTTP/2 with targets as people write them. Arguments: VERSION BASE; stdin: a JSON
// list of targets. Prints a JSON list: for each [status, what the origin was asked for].
import http2 from 'node:http2';
import { text } from 'node:stream/consumers';

const [version, base] = process.argv.slice(2);
const said = (status, body, mark) => {
  try {
    return [status, JSON.parse(body).target];
  } catch {
    return [status, mark];
  }
};

async function fetched(target) {
  const r = await fetch(base + target);
  return said(r.status, await r.text(), r.headers.get('durward-denied'));
}

const session = version === 'h2' ? http2.connect(base) : null;

async function streamed(target) {
  // Node writes fields as Latin-1
  const r = session.request({ ':path': Buffer.from(target).toString('latin1') });
  const head = new Promise((ok, bad) => r.on('response', ok).on('error', bad));
  const [h, body] = await Promise.all([head, text(r)]);
  return said(h[':status'], body, h['durward-denied']);
}

const out = [];
for (const target of JSON.parse(await text(process.stdin))) {
  out.push(await (session ? streamed : fetched)(target));
}
session?.close();
console.log(JSON.stringify(out));
