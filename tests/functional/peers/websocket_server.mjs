// A WebSocket server on `ws`: says and obeys the same as websocket_server.py. argv: MODULES CERT KEY.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createRequire } from 'node:module';

const [modules, cert, key] = process.argv.slice(2);
const { WebSocketServer } = createRequire(modules + '/x.js')('ws');
const say = (line) => process.stdout.write(JSON.stringify(line) + '\n');
const https = createServer({ cert: readFileSync(cert), key: readFileSync(key) });
const server = new WebSocketServer({
  server: https, maxPayload: 1 << 30, perMessageDeflate: true,
  handleProtocols: (offered) => ['chat.v2', 'chat.v1'].find((p) => offered.has(p)) ?? false,
});

function big(ws, size) {
  const part = Buffer.alloc(65536, 0xa5);
  for (let left = size; left > 0; left -= part.length)
    ws.send(part, { binary: true, fin: left <= part.length });
}

function fragments(ws, text) {
  for (let i = 0; i < text.length; i += 5)
    ws.send(text.slice(i, i + 5), { binary: false, fin: i + 5 >= text.length });
}

server.on('connection', (ws, req) => {
  let sum = false;
  say({ event: 'open', path: req.url, authorization: req.headers.authorization ?? null,
    offered: req.headers['sec-websocket-extensions'] ?? null, protocol: ws.protocol || null,
    key: req.headers['sec-websocket-key'] });
  ws.on('pong', () => ws.send('ponged'));
  ws.on('close', (code, reason) => say({ event: 'close', code, reason: reason.toString() }));
  ws.on('error', () => {});
  ws.on('message', (data, binary) => {
    const [word, ...rest] = binary ? [] : data.toString().split(' ');
    if (sum) ws.send(createHash('sha256').update(data).digest('hex'));
    if (sum || word === 'sum') sum = !sum;
    else if (word === 'big') big(ws, Number(rest[0]));
    else if (word === 'close') ws.close(Number(rest[0]), rest.slice(1).join(' '));
    else if (word === 'ping') ws.ping(rest.join(' '));
    else if (word === 'reflect') fragments(ws, req.headers.authorization ?? 'none');
    else if (word === 'end') ws.terminate();
    else ws.send(data, { binary });
  });
});
https.listen(0, '127.0.0.1', () => say({ port: https.address().port }));
