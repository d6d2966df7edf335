// The official SDK for Node as a client: FOLDER URL [MODE]. What came of each step, as JSON. With a MODE it is that of
// version 2 (a package of its own): legacy, or the version of the protocol that is pinned.
import { createRequire } from "node:module";

const require = createRequire(process.argv[2] + "/");
const mode = process.argv[4];
const { Client, StreamableHTTPClientTransport, SSEClientTransport } = mode ? require("@modelcontextprotocol/client") : {
  ...require("@modelcontextprotocol/sdk/client/index.js"), ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
  ...require("@modelcontextprotocol/sdk/client/sse.js") };

const said = {};
async function step(name, fn) {
  try {
    said[name] = await fn();
  } catch (e) {
    said[name] = `${e.constructor.name}: ${e.message}`;
  }
}

const pinned = mode && mode !== "legacy" ? { versionNegotiation: { mode: { pin: mode } } } : {};
const client = new Client({ name: "durward-test", version: "1" }, pinned);
const url = new URL(process.argv[3]);
const older = url.pathname === "/sse";
const transport = older ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url);
await client.connect(transport);
const call = async (name, args, options) => {
  const r = await client.callTool({ name, arguments: args }, ...(mode ? [options] : [undefined, options]));
  return [r.isError ?? false, r.content[0].text];
};
await step("tools", async () => (await client.listTools()).tools.map((x) => x.name).sort());
await step("add", () => call("add", { a: 2, b: 3 }));
await step("remove", () => call("remove", { path: "/x" }));
await step("again", () => call("add", { a: 20, b: 3 }));
await step("deploy", () => call("deploy", { where: "there" }));
let heard = 0;
await step("slow", async () => [(await call("slow", { steps: 5 }, { onprogress: () => heard++ }))[1], older || heard]); // by chance there
await step("read", async () => (await client.readResource({ uri: "docs://one" })).contents[0].text);
await step("count", () => call("count", {}));
if (!older) await step("end", () => transport.terminateSession());
await client.close();
console.log(JSON.stringify(said));
