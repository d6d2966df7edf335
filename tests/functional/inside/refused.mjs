// What one client for Node tells its caller of a request that ends badly. argv: CLIENT HOST MODULES
import { createRequire } from 'node:module';

const [client, host, modules] = process.argv.slice(2);

async function ask() {
  if (client === 'fetch') {
    const r = await fetch(`https://${host}/v1/x`);
    throw new Error(`${r.status} ${r.statusText}\n${await r.text()}`);
  }
  const { default: OpenAI } = createRequire(`${modules}/x.js`)('openai');
  const api = new OpenAI({ apiKey: 'none', baseURL: `https://${host}/v1`, maxRetries: 0 });
  await api.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'hello' }] });
}

try {
  await ask();
  console.log('there was an answer');
} catch (e) {
  console.log(`${e.name}: ${e.message}${e.cause ? ` (${e.cause.message})` : ''}`);
}
