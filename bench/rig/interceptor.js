// The least an intercepting proxy can be with Node's own modules: what rivals in Node are built on.
// usage: interceptor.js PORT CA-BUNDLE.pem CA.key ORIGIN-CA.pem VALUE LEAF.pem LEAF.key
// Node cannot sign certificates: one leaf with a wildcard stands for all names, so there is no figure of new host names.
import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import tls from "node:tls";

const [port, , , originCa, value, leaf, leafKey] = process.argv.slice(2);
const agent = new https.Agent({ keepAlive: true, maxSockets: 4096, ca: fs.readFileSync(originCa) });
const context = tls.createSecureContext({ cert: fs.readFileSync(leaf), key: fs.readFileSync(leafKey) });

const inner = http.createServer((request, reply) => {
  const [host, toPort] = request.socket.authority.split(":");
  const headers = { ...request.headers, authorization: value };
  const out = https.request({ agent, host, port: toPort, path: request.url, method: request.method, headers }, (got) => {
    reply.writeHead(got.statusCode, got.headers);
    got.pipe(reply);
  });
  out.on("error", () => {
    if (!reply.headersSent) reply.writeHead(502, { "content-length": 0 });
    reply.end();
  });
  request.pipe(out);
});

const outer = http.createServer((request, reply) => reply.writeHead(405).end());
outer.on("connect", (request, socket) => {
  socket.setNoDelay(true);
  socket.write("HTTP/1.1 200 OK\r\n\r\n");
  const secure = new tls.TLSSocket(socket, { isServer: true, secureContext: context });
  secure.authority = request.url;
  secure.on("error", () => socket.destroy());
  socket.on("error", () => secure.destroy());
  inner.emit("connection", secure);
});
outer.listen(Number(port), "127.0.0.1");
