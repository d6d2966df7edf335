// A server of the official SDK for Node with what the conformance suite looks for: FOLDER [stdio]. Over HTTP it prints
// its port; with "stdio" it speaks over its standard input and output.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [folder, how] = process.argv.slice(2);
const sdk = (name) => import(pathToFileURL(`${folder}/node_modules/@modelcontextprotocol/sdk/dist/esm/${name}.js`));
const { Server } = await sdk("server/index");
const { StreamableHTTPServerTransport } = await sdk("server/streamableHttp");
const { StdioServerTransport } = await sdk("server/stdio");
const t = await sdk("types");

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const text = (s) => ({ type: "text", text: s });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const embedded = (uri) => ({ type: "resource", resource: { uri, mimeType: "text/plain", text: "This is an embedded resource content." } });
const pause = () => new Promise((done) => setTimeout(done, 50));
const names = { type: "object", properties: {} };
const enums = {
  untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
  titledSingle: { type: "string", oneOf: ["1", "2", "3"].map((n) => ({ const: "value" + n, title: "Option " + n })) },
  legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
  untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
  titledMulti: { type: "array", items: { anyOf: ["1", "2", "3"].map((n) => ({ const: "value" + n, title: "Choice " + n })) } },
};
const defaults = {
  name: { type: "string", default: "John Doe" }, age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 }, verified: { type: "boolean", default: true },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
};

async function ask(extra, message, properties, required = []) {
  const said = await extra.sendRequest({ method: "elicitation/create", params: {
    message, requestedSchema: { type: "object", properties, required } } }, t.ElicitResultSchema);
  return [text(`Elicitation completed: action=${said.action}, content=${JSON.stringify(said.content ?? {})}`)];
}

const tools = {
  test_simple_text: async () => [text("This is a simple text response for testing.")],
  test_image_content: async () => [image],
  test_audio_content: async () => [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
  test_embedded_resource: async () => [embedded("test://embedded-resource")],
  test_multiple_content_types: async () => [text("Multiple content types test:"), image,
    { type: "resource", resource: { uri: "test://mixed-content-resource", mimeType: "application/json", text: '{"test":"data","value":123}' } }],
  test_tool_with_logging: async (a, extra) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await extra.sendNotification({ method: "notifications/message", params: { level: "info", data } });
      await pause();
    }
    return [text("Tool with logging executed successfully")];
  },
  test_tool_with_progress: async (a, extra) => {
    for (const progress of [0, 50, 100]) {
      await extra.sendNotification({ method: "notifications/progress", params: {
        progressToken: extra._meta?.progressToken ?? 0, progress, total: 100, message: `Completed step ${progress} of 100` } });
      await pause();
    }
    return [text(String(extra._meta?.progressToken ?? 0))];
  },
  test_error_handling: async () => { throw new Error("This tool intentionally returns an error for testing"); },
  test_sampling: async (a, extra) => {
    const said = await extra.sendRequest({ method: "sampling/createMessage", params: {
      messages: [{ role: "user", content: text(a.prompt) }], maxTokens: 100 } }, t.CreateMessageResultSchema);
    return [text(`LLM response: ${said.content.text}`)];
  },
  test_elicitation: (a, extra) => ask(extra, a.message, {
    username: { type: "string", description: "User's response" }, email: { type: "string", description: "User's email address" },
  }, ["username", "email"]),
  test_elicitation_sep1034_defaults: (a, extra) => ask(extra, "Please review and update the form fields with defaults", defaults),
  test_elicitation_sep1330_enums: (a, extra) => ask(extra, "Please select options from the enum fields", enums),
  json_schema_2020_12_tool: async (a) => [text(JSON.stringify(a))],
};
const schemas = {
  test_sampling: { type: "object", properties: { prompt: { type: "string" } }, required: ["prompt"] },
  test_elicitation: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
  json_schema_2020_12_tool: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object", $defs: {
    address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
  properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } }, additionalProperties: false },
};
const prompts = {
  test_simple_prompt: [[], () => [text("This is a simple prompt for testing.")]],
  test_prompt_with_arguments: [["arg1", "arg2"], (a) => [text(`Prompt with arguments: arg1='${a.arg1}', arg2='${a.arg2}'`)]],
  test_prompt_with_embedded_resource: [["resourceUri"], (a) => [embedded(a.resourceUri), text("Please process the embedded resource above.")]],
  test_prompt_with_image: [[], () => [image, text("Please analyze the image above.")]],
};
const resources = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched resource content" },
};

function make() {
  const s = new Server({ name: "conformance", version: "1.0.0" }, { capabilities: {
    tools: {}, logging: {}, completions: {}, prompts: {}, resources: { subscribe: true } } });
  s.setRequestHandler(t.ListToolsRequestSchema, () => ({ tools: Object.keys(tools).map((name) => ({
    name, description: "Tests " + name, inputSchema: schemas[name] ?? names })) }));
  s.setRequestHandler(t.CallToolRequestSchema, async (r, extra) => {
    try {
      return { content: await tools[r.params.name](r.params.arguments ?? {}, extra) };
    } catch (e) {
      return { isError: true, content: [text(e.message)] };
    }
  });
  s.setRequestHandler(t.ListPromptsRequestSchema, () => ({ prompts: Object.entries(prompts).map(([name, [list]]) => ({
    name, description: "Tests " + name, arguments: list.map((n) => ({ name: n, description: n, required: true })) })) }));
  s.setRequestHandler(t.GetPromptRequestSchema, (r) => ({ messages: prompts[r.params.name][1](r.params.arguments ?? {})
    .map((content) => ({ role: "user", content })) }));
  s.setRequestHandler(t.ListResourcesRequestSchema, () => ({ resources: Object.entries(resources).map(([uri, x]) => ({
    uri, name: uri.slice(7), description: "Tests " + uri, mimeType: x.mimeType })) }));
  s.setRequestHandler(t.ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [{
    uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" }] }));
  s.setRequestHandler(t.ReadResourceRequestSchema, (r) => {
    const id = r.params.uri.match(/^test:\/\/template\/([^/]+)\/data$/)?.[1];
    const x = id ? { mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }
      : resources[r.params.uri];
    if (!x) throw new t.McpError(-32002, "no such resource");
    return { contents: [{ uri: r.params.uri, ...x }] };
  });
  for (const kind of ["SubscribeRequestSchema", "UnsubscribeRequestSchema", "SetLevelRequestSchema"])
    s.setRequestHandler(t[kind], () => ({}));
  s.setRequestHandler(t.CompleteRequestSchema, () => ({ completion: { values: [], total: 0, hasMore: false } }));
  return s;
}

if (how === "stdio") {
  await make().connect(new StdioServerTransport());
} else {
  const sessions = {};
  createServer(async (req, res) => {
    const chunks = [];
    for await (const c of req) chunks.push(c);
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
    let transport = sessions[req.headers["mcp-session-id"]];
    if (!transport && body?.method === "initialize") {
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => { sessions[id] = transport; } });
      await make().connect(transport);
    }
    if (!transport) return res.writeHead(400).end();
    await transport.handleRequest(req, res, body);
  }).listen(0, "127.0.0.1", function () { console.log(this.address().port); });
}
