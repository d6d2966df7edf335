// What one client for Node tells its caller of a request that ends badly. argv: CLIENT HOST MODULES [once];
// once: it does not try again, where it would.
import { createRequire } from 'node:module';

const [client, host, modules, once] = process.argv.slice(2);

async function ask() {
  if (client === 'fetch') {
    const r = await fetch(`https://${host}/v1/x`);
    throw new Error(`${r.status} ${r.statusText}\n${await r.text()}`);
  }
  if (client === 'mcp') {
    const require = createRequire(`${modules}/x.js`);
    const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
    await new Client({ name: 'durward-test', version: '1' }).connect(new StreamableHTTPClientTransport(new URL(`https://${host}/mcp`)));
    return;
  }
  const { default: OpenAI } = createRequire(`${modules}/x.js`)('openai');
  const api = new OpenAI({ apiKey: 'none', baseURL: `https://${host}/v1`, ...(once && { maxRetries: 0 }) });
  await api.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'hello' }] });
}

try {
  await ask();
  console.log('there was an answer');
} catch (e) {
  console.log(`${e.name}: ${e.message}${e.cause ? ` (${e.cause.message})` : ''}`);
}
