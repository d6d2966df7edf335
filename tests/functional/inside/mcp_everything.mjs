// A client of the official SDK for Node that does whatever a server of the conformance suite offers: FOLDER URL. It calls
// each tool, and takes the defaults of what it is asked for.
import { createRequire } from "node:module";

const require = createRequire(process.argv[2] + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ElicitRequestSchema } = require("@modelcontextprotocol/sdk/types.js");

const client = new Client({ name: "durward-test", version: "1" }, { capabilities: { elicitation: { form: { applyDefaults: true } } } });
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: {} }));
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[3])));
for (const tool of (await client.listTools()).tools) {
  const names = Object.keys(tool.inputSchema.properties ?? {});
  await client.callTool({ name: tool.name, arguments: Object.fromEntries(names.map((n, i) => [n, 5 - 2 * i])) });
}
await client.close();
