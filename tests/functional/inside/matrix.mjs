// A client of the matrix for Node, Bun or Deno: as matrix.py. argv: CLIENT MARK MODULES, CLIENT one of
// fetch, openai.
import { createRequire } from 'node:module';
import process from 'node:process';

const [client, mark, modules] = process.argv.slice(2);
const H1 = 'https://h1.example.com', STREAM = 'https://stream.example.com';
const WS = 'wss://socket.example.com', out = {};
const ask = { model: 'm', stream: true, messages: [{ role: 'user', content: 'What?' }] };

async function echo(socket) {
  return new Promise((resolve, reject) => {
    socket.onopen = () => socket.send('octo');
    socket.onerror = (e) => reject(new Error(e.message ?? 'socket'));
    socket.onmessage = (e) => { socket.close(); resolve(['', e.data, 0]); };
  });
}

if (client === 'fetch') {
  const r = await fetch(`${H1}/who?cell=${mark}-h1`);
  out.h1 = ['', (await r.json()).login, 0];
  if (typeof Deno !== 'undefined') { // which can be told to speak nothing else
    const h2 = await fetch(`https://h2.example.com/who?cell=${mark}-h2`,
      { client: Deno.createHttpClient({ http1: false }) });
    out.h2 = ['HTTP/2', (await h2.json()).login, 0];
  }
  const times = [], words = [];
  const s = await fetch(`${STREAM}/v1/chat/completions?cell=${mark}-sse`,
    { method: 'POST', body: JSON.stringify(ask), headers: { 'content-type': 'application/json' } });
  let text = '';
  for await (const part of s.body.pipeThrough(new TextDecoderStream())) {
    times.push(Date.now());
    text += part;
  }
  for (const line of text.split('\n')) {
    if (line.startsWith('data: ') && !line.includes('[DONE]'))
      words.push(JSON.parse(line.slice(6)).choices[0].delta.content ?? '');
  }
  out.sse = ['', words.join(''), (times.at(-1) - times[0]) / 1000];
  out.ws = await echo(new WebSocket(`${WS}/?cell=${mark}-ws`)); // --experimental-websocket
} else {
  const require = createRequire(modules + '/x.js');
  const { OpenAI } = require('openai');
  const { OpenAIRealtimeWS } = require('openai/beta/realtime/ws');
  const make = (base, name) => new OpenAI({ baseURL: base + '/v1', apiKey: process.env.OPENAI_API_KEY,
    maxRetries: 0, timeout: 20000, defaultQuery: { cell: `${mark}-${name}` } });
  out.h1 = ['', (await make(H1, 'h1').models.list()).data[0].id, 0];
  const times = [];
  let words = '';
  for await (const e of await make(STREAM, 'sse').chat.completions.create(ask)) {
    times.push(Date.now());
    words += e.choices[0].delta.content ?? '';
  }
  out.sse = ['', words, (times.at(-1) - times[0]) / 1000];
  const live = new OpenAIRealtimeWS({ model: `${mark}-ws` },
    make('https://socket.example.com', 'ws'));
  live.on('error', (e) => { throw e; });
  out.ws = await new Promise((resolve) => {
    live.socket.on('open', () => live.send({ type: 'response.create', event_id: 'octo' }));
    live.on('event', (e) => { live.close(); resolve(['', e.event_id, 0]); });
  });
}
console.log(JSON.stringify(out));
