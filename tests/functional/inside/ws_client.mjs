// A WebSocket client on `ws`: the same as ws_client.py. argv: URL BIG(bytes) MODULES.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createRequire } from 'node:module';

const [url, size, modules] = process.argv.slice(2);
const WebSocket = createRequire(modules + '/x.js')('ws');
const big = Number(size), block = Buffer.alloc(65536, 'durward'), out = {};

async function open(protocols = []) {
  const ws = new WebSocket(url, protocols, { maxPayload: 1 << 30 });
  const waiting = [], come = [];
  ws.on('message', (data, binary) => {
    const m = binary ? data : data.toString();
    if (waiting.length) waiting.shift()(m);
    else come.push(m);
  });
  ws.recv = () => come.length ? come.shift() : new Promise((take) => waiting.push(take));
  await once(ws, 'open');
  return ws;
}

async function basics() {
  const ws = await open(['chat.v0', 'chat.v1']);
  out.protocol = ws.protocol;
  out.extensions = ws.extensions || null;
  ws.send('zażółć gęślą jaźń');
  out.text = await ws.recv();
  ws.send(block);
  out.binary = block.equals(await ws.recv());
  ws.send('frag', { fin: false });
  ws.send('', { fin: false });
  ws.send('men', { fin: false });
  ws.send('ted \u20ac', { fin: true });
  out.fragmented = await ws.recv();
  ws.send('');
  out.empty = await ws.recv();
  ws.ping('are you there');
  out.pong = (await once(ws, 'pong'))[0].toString() === 'are you there';
  ws.send('ping here');
  out.pinged = await ws.recv();
  out.small = 0;
  for (let i = 0; i < 300; i++) {
    ws.send(String(i));
    out.small += (await ws.recv()) === String(i);
  }
  ws.close(4001, 'done here');
  const [code, reason] = await once(ws, 'close');
  out.closed = [code, reason.toString()];
}

async function closedByServer() {
  let ws = await open();
  out.no_protocol = ws.protocol || null;
  ws.send('close 4002 go away');
  const [code, reason] = await once(ws, 'close');
  out.server_closed = [code, reason.toString()];
  ws = await open();
  ws.on('error', () => {});
  ws.send('end');
  out.cut = (await once(ws, 'close'))[0] === 1006;
}

async function reflect() {
  const ws = await open();
  ws.send('reflect');
  out.reflected = await ws.recv();
  ws.close();
  await once(ws, 'close');
}

async function bulk() {
  const ws = await open(), hash = createHash('sha256');
  ws.send('sum');
  for (let left = big; left > 0; left -= block.length) {
    hash.update(block);
    await new Promise((sent) => ws.send(block, { fin: left <= block.length }, sent));
  }
  out.big_up = (await ws.recv()) === hash.digest('hex');
  ws.send('big ' + big);
  const got = await ws.recv();
  out.big_down = got.length === big && got.every((b) => b === 0xa5);
  ws.close();
  await once(ws, 'close');
}

async function one(n) {
  const ws = await open();
  for (let i = 0; i < 20; i++) {
    ws.send(n + '-' + i);
    if ((await ws.recv()) !== n + '-' + i) return 0;
  }
  ws.close();
  await once(ws, 'close');
  return 1;
}

await basics();
await closedByServer();
await reflect();
if (big) await bulk();
out.many = (await Promise.all([...Array(20).keys()].map(one))).reduce((a, b) => a + b);
console.log(JSON.stringify(out));
