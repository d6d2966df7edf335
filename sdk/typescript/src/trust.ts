/** What pairs a client with the proxy: the variables that `durward env` prints, and the files they name. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { rootCertificates } from "node:tls";

import type { Identity } from "./client.js";

const WHOLE = "ca-certificates.crt";
const EXTRA = "durward-ca.pem";
const JAVA = "cacerts.p12";
const LOCAL = "localhost,127.0.0.1,::1";
const WHOLE_NAMES = [
  "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_PROXY_SSL_CAINFO", "PIP_CERT",
  "CARGO_HTTP_CAINFO", "CARGO_HTTP_PROXY_CAINFO", "NIX_SSL_CERT_FILE", "npm_config_cafile", "YARN_HTTPS_CA_FILE_PATH",
  "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "HTTPLIB2_CA_CERTS", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "BUNDLE_SSL_CA_CERT",
  "PERL_LWP_SSL_CA_FILE", "COMPOSER_CAFILE", "HEX_CACERTS_PATH", "JULIA_SSL_CA_ROOTS_PATH",
];

export interface Elsewhere {
  /** Where the trust files lie for that client, if not where they lie here. */
  readonly trustDir?: string | undefined;
  /** HOST or HOST:PORT at which that client reaches the listener, with http:// or https:// before it for another one
   * than the daemon says. */
  readonly proxyHost?: string | undefined;
}

/** An absolute path that needs no quoting in a list of words; TypeError for others. */
export function plainPath(path: string, what: string): string {
  if (!path.startsWith("/") || /[\s\0]/.test(path))
    throw new TypeError(`${what} must be an absolute path without white space: ${JSON.stringify(path)}`);
  return path;
}

/** Everything a client needs. */
export function variables(identity: Identity, o: Elsewhere = {}): Record<string, string> {
  const where = plainPath(o.trustDir ?? identity.trustDir, "trustDir");
  const proxy = reachedAt(identity.proxy, o.proxyHost);
  const env: Record<string, string> = {};
  for (const name of ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"]) env[name] = proxy;
  for (const name of ["NO_PROXY", "no_proxy"]) env[name] = LOCAL;
  env["NODE_USE_ENV_PROXY"] = "1";
  for (const name of WHOLE_NAMES) env[name] = `${where}/${WHOLE}`;
  // curl verifies a proxy in TLS by SSL_CERT_DIR, if this one is not set or empty.
  env["CURL_CA_BUNDLE"] = proxy.startsWith("https:") ? "" : `${where}/${WHOLE}`;
  env["SSL_CERT_DIR"] = `${where}/certs`;
  env["NODE_EXTRA_CA_CERTS"] = env["DENO_CERT"] = `${where}/${EXTRA}`;
  env["JAVA_TOOL_OPTIONS"] =
    `-Djavax.net.ssl.trustStore=${where}/${JAVA} -Djavax.net.ssl.trustStoreType=PKCS12 ` +
    "-Djavax.net.ssl.trustStorePassword=changeit";
  return { ...env, ...identity.env };
}

/** The proxy's address with another host, its token kept. */
export function reachedAt(proxy: string, host?: string): string {
  if (host === undefined) return proxy;
  const m = /^(https?:\/\/)([^@/]*@)?(\[[^\]]*\]|[^:/@]*)(:\d+)?(\/.*)?$/.exec(proxy);
  if (!m || !/^(https?:\/\/)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?$/.test(host))
    throw new TypeError(`proxyHost must be HOST or HOST:PORT: ${JSON.stringify(host)}`);
  const scheme = /^https?:\/\//.exec(host)?.[0] ?? "";
  const port = /:\d+$/.test(host) ? "" : (m[4] ?? "");
  return `${scheme || m[1]}${m[2] ?? ""}${host.slice(scheme.length)}${port}${m[5] ?? ""}`;
}

/** The files below trustDir, by name. From the daemon's own directory if this is its host, else made here (without
 * the Java store): Node's roots and the proxy's certificate. */
export function trustFiles(identity: Identity): Map<string, Uint8Array> {
  const found = new Map<string, Uint8Array>();
  try {
    for (const e of readdirSync(identity.trustDir, { recursive: true, withFileTypes: true })) {
      const path = join(e.parentPath, e.name);
      if (!e.isDirectory()) found.set(relative(identity.trustDir, path), readFileSync(path));
    }
  } catch {
    found.clear();
  }
  const ca = Buffer.from(identity.ca, "utf8");
  const kept = found.get(EXTRA);
  if (kept && found.has(WHOLE) && Buffer.from(kept).toString("utf8").trim() === identity.ca.trim()) return found;
  const whole = Buffer.from([...rootCertificates, identity.ca].join("\n"), "utf8");
  const made = new Map<string, Uint8Array>([[WHOLE, whole], [EXTRA, ca], ["certs/" + WHOLE, whole]]);
  for (const [name, pem] of Object.entries(identity.caHashed)) made.set("certs/" + name, Buffer.from(pem, "utf8"));
  return made;
}
