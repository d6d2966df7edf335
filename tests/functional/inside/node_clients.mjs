// Node clients: fetch and openai (plain and streamed). argv: GITHUB_BASE OPENAI_BASE MODULES.
// Prints one JSON line.
import { createRequire } from 'node:module';

const [github, ai, modules] = process.argv.slice(2);
const require = createRequire(modules + '/x.js');
const { OpenAI } = require('openai');
const out = {};

const user = await fetch(github + '/user');
out.fetch = [user.status, (await user.json()).login];
const issue = await fetch(github + '/repos/acme/x/issues', {
  method: 'POST',
  headers: {
    authorization: 'Bearer ' + (process.env.GITHUB_TOKEN ?? 'none'),
    'content-type': 'application/json',
  },
  body: JSON.stringify({ title: 'by fetch' }),
});
out.post = [issue.status, (await issue.json()).title];

const client = new OpenAI({
  baseURL: ai + '/v1', apiKey: process.env.OPENAI_API_KEY ?? 'none', maxRetries: 0, timeout: 20000,
});
const messages = [{ role: 'user', content: 'What?' }];
const reply = await client.chat.completions.create({ model: 'gpt-test', messages });
out.openai = reply.choices[0].message.content;
const times = [];
out.stream = '';
for await (const event of await client.chat.completions.create(
  { model: 'gpt-test', messages, stream: true })) {
  times.push(Date.now());
  out.stream += event.choices[0].delta.content ?? '';
}
out.spread = (times.at(-1) - times[0]) / 1000;
console.log(JSON.stringify(out));
