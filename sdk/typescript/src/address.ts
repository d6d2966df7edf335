/** Where the daemon's API is, and who asks: a unix socket's path, or https://HOST[:PORT] with a token. */
import { readFileSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";

/** Who asks a daemon elsewhere, and how patiently. */
export interface Access {
  /** Of `durward token create`. Default: $DURWARD_TOKEN, else the file $DURWARD_TOKEN_FILE. */
  readonly token?: string;
  /** A file with the daemon's CA, PEM. Default: $DURWARD_CA, else the runtime's roots. */
  readonly ca?: string;
  /** How often more a call is tried that no answer came to (the daemon is being started anew), or 503, after 0.1, 0.4, 1.6
   * seconds and so on (default 2): what only reads, deletes a sandbox, volume or snapshot, writes a whole file, or gets or
   * creates. Others, commands among them, are sent once. */
  readonly retries?: number;
  /** Seconds until an answer must begin (default 60), else Unavailable (`timeout`), which is not tried again. Commands have
   * a timeout of their own; what takes long by itself (archives, approvals, verifying the log) has as long as it takes. */
  readonly timeout?: number;
}

/** $DURWARD_URL, $DURWARD_SOCKET, else where the daemon of this user puts it. */
export function defaultSocket(): string {
  const told = process.env["DURWARD_URL"] || process.env["DURWARD_SOCKET"];
  if (told) return told;
  const uid = process.geteuid?.() ?? 0;
  if (uid === 0) return "/run/durward/api.sock";
  const runtime = process.env["XDG_RUNTIME_DIR"] ?? "";
  if (runtime.startsWith("/")) return join(runtime, "durward", "api.sock");
  return `/tmp/durward-${uid}/api.sock`;
}

function ownToken(): string {
  const said = process.env["DURWARD_TOKEN"];
  const path = process.env["DURWARD_TOKEN_FILE"];
  if (said) return said;
  if (!path)
    throw new TypeError(
      "a daemon elsewhere wants a token: give one, or set DURWARD_TOKEN_FILE or DURWARD_TOKEN " +
        "(`durward token create` makes one)");
  if (statSync(path).mode & 0o077) throw new TypeError(`${path} can be read by others; chmod 600 it`);
  return readFileSync(path, "ascii").split("\n", 1)[0]!.trim();
}

/** Resolved once; `text` may be shown, the token is not part of it. */
export class Where {
  /** The path or URL. */
  readonly text: string;
  readonly url: URL | undefined;
  readonly retries: number;
  readonly timeout: number;
  readonly #token: string;
  readonly #ca: Buffer | undefined;

  constructor(given?: string, access: Access = {}) {
    this.text = given ?? defaultSocket();
    this.#token = "";
    this.retries = access.retries ?? 2;
    this.timeout = access.timeout ?? 60;
    if (this.text.startsWith("https://")) {
      const url = new URL(this.text);
      if ((url.pathname !== "/" && url.pathname !== "") || url.search || url.username || url.password)
        throw new TypeError(`${this.text} is not https://HOST[:PORT]`);
      this.url = url;
      this.#token = access.token ?? ownToken();
      if (!/^[A-Za-z0-9._~-]+$/.test(this.#token)) throw new TypeError("that is no token");
      const ca = access.ca ?? process.env["DURWARD_CA"];
      this.#ca = ca ? readFileSync(ca) : undefined;
    } else if (this.text.includes("://")) {
      throw new TypeError(
        `${this.text}: the daemon's API is spoken over a unix socket or https only, never in clear. Say the socket's ` +
          "path, or https://HOST[:PORT] where the daemon's configuration has controller.https (then a token is " +
          "needed, too: `durward token create`)");
    } else if (!isAbsolute(this.text)) {
      throw new TypeError(
        `the daemon's socket must be an absolute path: ${JSON.stringify(this.text)}`);
    }
  }

  /** What a client was given: itself, or where it is. */
  static of(given: string | Where | undefined, access?: Access): Where {
    return given instanceof Where ? given : new Where(given, access);
  }

  /** What a request needs to get there. */
  options(): Record<string, unknown> {
    if (!this.url) return { socketPath: this.text };
    return {
      host: this.url.hostname.replace(/^\[|\]$/g, ""),
      port: this.url.port || 443,
      ...(this.#ca ? { ca: this.#ca } : {}),
    };
  }

  /** With the token, where there is one. */
  headers(): Record<string, string> {
    return this.url ? { host: this.url.host, authorization: `Bearer ${this.#token}` }
                    : { host: "durward" };
  }

  /** Without the token. */
  toString(): string {
    return this.text;
  }
}
