// The official SDK for Node as a client: FOLDER URL. What came of each step, as JSON.
import { createRequire } from "node:module";

const require = createRequire(process.argv[2] + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const said = {};
async function step(name, fn) {
  try {
    said[name] = await fn();
  } catch (e) {
    said[name] = `${e.constructor.name}: ${e.message}`;
  }
}

const client = new Client({ name: "durward-test", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(process.argv[3]));
await client.connect(transport);
const call = async (name, args, options) => {
  const r = await client.callTool({ name, arguments: args }, undefined, options);
  return [r.isError ?? false, r.content[0].text];
};
await step("tools", async () => (await client.listTools()).tools.map((x) => x.name).sort());
await step("add", () => call("add", { a: 2, b: 3 }));
await step("remove", () => call("remove", { path: "/x" }));
await step("again", () => call("add", { a: 20, b: 3 }));
await step("deploy", () => call("deploy", { where: "there" }));
let heard = 0;
await step("slow", async () => [(await call("slow", { steps: 5 }, { onprogress: () => heard++ }))[1], heard]);
await step("read", async () => (await client.readResource({ uri: "docs://one" })).contents[0].text);
await step("count", () => call("count", {}));
await step("end", () => transport.terminateSession());
await client.close();
console.log(JSON.stringify(said));
