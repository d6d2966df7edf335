'use strict';
// Node's own HTTP parser (llhttp, strict) as a second reading. argv: program, corpus folder, how many
// mutations, seed. Every message that our code accepts must be accepted here and read the same:
// method, target, version, field names and values, framing, body. Prints JSON: counts and findings.
process.removeAllListeners('warning');
process.on('warning', () => {});
const { HTTPParser, allMethods: METHODS } = process.binding('http_parser');
const { spawn } = require('child_process');
const fs = require('fs');
const path = require('path');

const [program, corpus, count, seed] = [process.argv[2], process.argv[3], Number(process.argv[4]),
  Number(process.argv[5])];
const MAX_HEAD = 1 << 20;

// ---- the messages ----

const CHUNKED = Buffer.from('POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n');
const REPLY = Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');

function load(name, kind, fn) {
  const dir = path.join(corpus, name);
  return fs.readdirSync(dir).sort().flatMap((f) =>
    fn(fs.readFileSync(path.join(dir, f))).map((data) => ({ kind, data, name: `${name}/${f}` })));
}

const SEEDS = [
  ...load('request_head', 'q', (d) => [d]),
  ...load('reply_head', 'r', (d) => [d.subarray(1)]),
  ...load('chunks', 'q', (d) => [Buffer.concat([CHUNKED, d.subarray(2)])]),
  ...load('chunks', 'r', (d) => [Buffer.concat([REPLY, d.subarray(2)])]),
];

// What a mutation puts in: bytes that readers differ over, and whole fields.
const PIECES = ['\r', '\n', '\r\n', '\r\n\r\n', '\0', ' ', '\t', '\v', ':', ',', ';', '=', '\x7f', '\x80',
  '\xff', '"', '0', '1', 'a', 'F', '+', '-', 'x', '/', '?', '#', '%', '\r\n ', '\r\n\t', ' \r\n', '\n\n',
  'Transfer-Encoding: chunked\r\n', 'Transfer-Encoding: identity\r\n', 'Content-Length: 5\r\n',
  'Content-Length: 0\r\n', 'transfer-encoding:chunked\r\n', 'Transfer-Encoding:\tchunked \r\n',
  'Host: h\r\n', 'Connection: close\r\n', 'Connection: upgrade\r\n', 'Upgrade: h2c\r\n',
  'Expect: 100-continue\r\n', 'HTTP/1.0', 'HTTP/1.1', 'http://h/', '0\r\n\r\n', '5\r\nhello\r\n', '5;a=b\r\n',
  '00000005\r\n', 'X: \r\n', 'X:\r\n', 'GET', 'CONNECT', 'PRI * HTTP/2.0', 'Transfer-Encoding: chunked, x',
  '{', '|', '^', '`', '\\', '<', '>', '\xc3\xa9', 'Content-Length: 5, 5\r\n', 'Content-Length : 5\r\n', 'Trailer: a\r\n', 'a: b\r\n', 'hello']
  .map((s) => Buffer.from(s, 'latin1'));

let state = (seed >>> 0) || 1;
function rand(n) { // xorshift32: the same sequence everywhere
  state ^= state << 13; state >>>= 0;
  state ^= state >>> 17;
  state ^= state << 5; state >>>= 0;
  return state % n;
}

function mutate(data) {
  let d = data;
  for (let k = 1 + rand(4); k > 0; k--) {
    const at = rand(d.length + 1);
    const n = rand(8) === 0 ? rand(40) : rand(3);
    const piece = PIECES[rand(PIECES.length)];
    const flip = Buffer.from(d);
    switch (rand(6)) {
      case 0: d = Buffer.concat([d.subarray(0, at), piece, d.subarray(at)]); break;
      case 1: d = Buffer.concat([d.subarray(0, at), d.subarray(at + n + 1)]); break;
      case 2: d = Buffer.concat([d.subarray(0, at), piece, d.subarray(at + piece.length)]); break;
      case 3: if (at < d.length) { flip[at] = rand(256); d = flip; } break;
      case 4: { // a line again, or at another place
        const lines = d.toString('latin1').split('\r\n');
        lines.splice(rand(lines.length), 0, lines[rand(lines.length)]);
        d = Buffer.from(lines.join('\r\n'), 'latin1');
        break;
      }
      default: { // a piece at the beginning of a line
        const lines = d.toString('latin1').split('\r\n');
        const i = rand(lines.length);
        lines[i] = piece.toString('latin1') + lines[i];
        d = Buffer.from(lines.join('\r\n'), 'latin1');
      }
    }
  }
  return d.subarray(0, 60000);
}

// ---- their reading ----

function theirs(kind, data) {
  const r = { headers: false, complete: false, fields: [], body: [] };
  const p = new HTTPParser();
  p.initialize(kind === 'q' ? HTTPParser.REQUEST : HTTPParser.RESPONSE, {}, MAX_HEAD, 0);
  p[HTTPParser.kOnHeaders | 0] = (fields) => {
    if (!r.headers) r.fields.push(...fields);
  };
  p[HTTPParser.kOnHeadersComplete | 0] = (major, minor, fields, method, url, status, _message, upgrade,
    keep) => {
    if (r.headers) return 0;
    Object.assign(r, { headers: true, major, minor, status, upgrade, keep, url,
      method: METHODS[method] });
    if (fields) r.fields.push(...fields);
    return 0;
  };
  p[HTTPParser.kOnBody | 0] = (b, at, len) => {
    if (!r.complete) r.body.push(at === undefined ? Buffer.from(b) : Buffer.from(b.subarray(at, at + len)));
  };
  p[HTTPParser.kOnMessageComplete | 0] = () => { r.complete = true; };
  const end = p.execute(data);
  if (end instanceof Error) Object.assign(r, { error: end.code || end.reason, at: end.bytesParsed });
  p.free?.();
  r.body = Buffer.concat(r.body).toString('hex');
  return r;
}

// ---- the comparison ----

const text = (hex) => Buffer.from(hex, 'hex').toString('latin1');

// llhttp takes no raw UTF-8 in a target. Nobody is sent any: it goes out percent-encoded (target.h).
const encoded = (line) => line.replace(/[\x80-\xff]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
function asSent(m) {
  const end = m.kind === 'q' ? m.data.indexOf('\r\n') : 0;
  return end <= 0 ? m.data : Buffer.concat([
    Buffer.from(encoded(m.data.subarray(0, end).toString('latin1')), 'latin1'), m.data.subarray(end)]);
}

function onlyOffers(fields) {
  const values = fields.filter((_, i) => i % 2 && fields[i - 1].toLowerCase() === 'upgrade');
  return values.length > 0 && values.join(',').split(',').every((v) => /^\s*(h2c|tls\/.*)\s*$/i.test(v));
}

function differs(m, ours) {
  const t = theirs(m.kind, asSent(m));
  if (!t.headers) return `refused: ${t.error || 'no head'}`;
  if (t.major !== 1 || t.minor !== ours.minor) return `version 1.${t.minor}`;
  if (m.kind === 'q') {
    if (t.method !== text(ours.method)) return `method ${t.method}`;
    if (t.url !== encoded(text(ours.target))) return `target ${JSON.stringify(t.url)}`;
  } else if (t.status !== ours.status) {
    return `status ${t.status}`;
  }
  if (t.fields.length !== 2 * ours.fields.length) return `${t.fields.length / 2} fields`;
  for (let i = 0; i < ours.fields.length; i++) {
    const [name, value] = [t.fields[2 * i].toLowerCase(), t.fields[2 * i + 1]];
    if (name !== text(ours.fields[i].name)) return `field name ${JSON.stringify(name)}`;
    if (value !== text(ours.fields[i].value)) return `value ${JSON.stringify(value)}`;
  }
  // a WebSocket handshake is an upgrade to both; an offer that we pass over goes nowhere (B17); whatever else is one to llhttp
  // alone is a finding
  if (m.kind === 'q' && t.upgrade && !ours.upgrade && onlyOffers(t.fields)) return null;
  if (t.upgrade || ours.upgrade)
    return m.kind === 'q' && (t.method === 'CONNECT' || (t.upgrade && ours.upgrade)) ? null : 'upgrade';
  if (ours.failed) return null; // we refuse it in the body
  if (ours.done && !t.complete) return `body not done: ${t.error || 'more wanted'}`;
  if (!ours.done && t.complete) return 'body done too early';
  // trailers are judged when they are whole
  if (!t.complete && t.error && !ours.trailers) return `body refused: ${t.error}`;
  if (t.body !== ours.body) return `body ${t.body.slice(0, 80)} for ${ours.body.slice(0, 80)}`;
  return null;
}

async function ask(messages) {
  const p = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] });
  const out = [];
  p.stdout.on('data', (b) => out.push(b));
  const over = new Promise((ok) => p.on('close', ok));
  p.stdin.on('error', () => {});
  for (const m of messages) {
    const head = Buffer.alloc(5);
    head.write(m.kind, 0);
    head.writeUInt32BE(m.data.length, 1);
    if (!p.stdin.write(Buffer.concat([head, m.data]))) await new Promise((ok) => p.stdin.once('drain', ok));
  }
  p.stdin.end();
  const status = await over;
  const lines = Buffer.concat(out).toString().split('\n').filter(Boolean);
  if (status !== 0 || lines.length !== messages.length) {
    throw new Error(`our side: status ${status}, ${lines.length} of ${messages.length} answers`);
  }
  return lines.map((l) => JSON.parse(l));
}

async function main() {
  const messages = [...SEEDS];
  for (let i = 0; i < count; i++) {
    const from = SEEDS[rand(SEEDS.length)];
    messages.push({ kind: from.kind, data: mutate(from.data), name: `${from.name} mutation ${i}` });
  }
  const readings = await ask(messages);
  const result = { llhttp: process.versions.llhttp, tried: messages.length, accepted: 0, bodies: 0,
    findings: [] };
  messages.forEach((m, i) => {
    if (!readings[i].ok) return;
    result.accepted++;
    result.bodies += readings[i].body.length > 0;
    const why = differs(m, readings[i]);
    if (why) result.findings.push({ name: m.name, why, data: JSON.stringify(m.data.toString('latin1')) });
  });
  console.log(JSON.stringify(result));
}

main();
