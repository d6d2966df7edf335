// For vitest, beside the tests of MCP's SDK for TypeScript: their servers listen on loopback within the test's process, and
// their clients call them by fetch. With MCP_WIRE=inside fetch goes to https://a0.suite.example.com instead, which somebody
// outside leads back to the port that X-Suite-To names (mcp_hub.py). Each request is written into MCP_WIRE_DIR.
import fs from "node:fs";
import path from "node:path";

const own = globalThis.fetch;
const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

function note(...words) {
    const { testPath, currentTestName } = globalThis.expect.getState();
    fs.appendFileSync(path.join(process.env.MCP_WIRE_DIR, `asked-${process.pid}`),
        JSON.stringify([testPath ?? "", currentTestName ?? "", ...words]) + "\n");
}

globalThis.fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (!LOOPBACK.includes(url.hostname)) return own(input, init);
    note("");
    if (process.env.MCP_WIRE !== "inside") return own(input, init);
    const given = init?.headers ?? (input instanceof Request ? input.headers : {});
    // Headers has its fields in an order of its own
    const headers = given instanceof Headers || Array.isArray(given) ? new Headers(given) : { ...given, "X-Suite-To": url.host };
    if (headers instanceof Headers) headers.set("X-Suite-To", url.host);
    const to = "https://a0.suite.example.com" + url.pathname + url.search;
    const response = await (input instanceof Request ? own(new Request(to, input), { ...init, headers }) : own(to, { ...init, headers }));
    const denied = response.headers.get("durward-denied");
    if (denied) note(denied.split(" ")[0]);
    Object.defineProperty(response, "url", { value: url.href });
    return response;
};
