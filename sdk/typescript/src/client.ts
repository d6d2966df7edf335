/** The daemon. */
import { type Access, Where } from "./address.js";
import { readInfo, type DaemonEvent, type SandboxInfo, type SandboxState } from "./models.js";
import { json, Sandbox } from "./sandbox.js";
import { query, quoted, SANDBOXES, sandboxTarget } from "./target.js";
import { ask } from "./transport.js";

export interface CreateOptions {
  /** May be left out where the configuration has one only. */
  readonly policy?: string;
  /** Unique among sandboxes that are not stopped. */
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Seconds to its end whatever it does (default a day). */
  readonly ttl?: number;
  /** Seconds to its end without a command (default an hour; 0: never). */
  readonly idleTtl?: number;
}

export interface GetOrCreateOptions extends CreateOptions {
  readonly labels: Readonly<Record<string, string>>;
}

/** A token for a sandbox that is not this daemon's. Its token is a secret of that sandbox. */
export interface Identity {
  readonly id: string;
  readonly policy: string;
  /** null: the listener is bound to the policy and wants none. */
  readonly token: string | null;
  /** Seconds since 1970. */
  readonly expires: number | null;
  /** The URL of the proxy, with the token in it. */
  readonly proxy: string;
  /** The proxy's certificate, PEM. */
  readonly ca: string;
  readonly trustDir: string;
  /** What the policy sets beside the proxy's variables: placeholders. */
  readonly env: Readonly<Record<string, string>>;
}

/** A daemon. Without a path or URL: $DURWARD_URL, $DURWARD_SOCKET, else this user's daemon. Nothing is opened before the first
 * call, and nothing stays open after one. */
export class Durward {
  readonly where: Where;

  /** @param socket its path, or https://HOST[:PORT] with `access`. */
  constructor(socket?: string | Where, access?: Access) {
    this.where = Where.of(socket, access);
  }

  /** The path or URL. */
  get socket(): string {
    return this.where.text;
  }

  async #json(method: "GET" | "POST" | "DELETE", target: string, body?: Record<string, unknown>, wait?: number) {
    const b = await ask(this.where, { method, target, body: body && json(body), wait });
    return b.length ? JSON.parse(b.toString("utf8")) : null;
  }

  /** Of the daemon; Unavailable when there is none. */
  async version(): Promise<string> {
    return (await this.#json("GET", "/v1/health")).version;
  }

  async policies(): Promise<string[]> {
    return (await this.#json("GET", "/v1/policies")).policies.map((p: { name: string }) => p.name);
  }

  /** What happened to sandboxes, after this sequence number. */
  async events(o: { readonly after?: number; readonly limit?: number } = {}): Promise<DaemonEvent[]> {
    return (await this.#json("GET", `/v1/events?after=${o.after ?? 0}&limit=${o.limit ?? 100}`)).events;
  }

  // ---- identities of remote sandboxes ----

  /** ttl: seconds, at most 3600. */
  async issueIdentity(o: { readonly policy?: string; readonly ttl?: number } = {}): Promise<Identity> {
    const v = await this.#json("POST", "/v1/identities", { policy: o.policy, ttl: o.ttl });
    return {
      id: v.id, policy: v.policy, token: v.token ?? null, expires: v.expires ?? null, proxy: v.proxy,
      ca: v.ca, trustDir: v.trust_dir, env: { ...v.env },
    };
  }

  /** NotFound when it is unknown or revoked. */
  async revokeIdentity(id: string): Promise<void> {
    await this.#json("DELETE", "/v1/identities/" + quoted(id));
  }

  // ---- sandboxes ----

  async #create(o: CreateOptions, reuse: boolean): Promise<Sandbox> {
    const v = await this.#json("POST", SANDBOXES, {
      policy: o.policy, name: o.name, labels: o.labels, env: o.env, ttl: o.ttl, idle_ttl: o.idleTtl,
      get_or_create: reuse || undefined,
    }, 300);
    return new Sandbox(this.where, readInfo(v));
  }

  /** A sandbox that runs. */
  create(o: CreateOptions = {}): Promise<Sandbox> {
    return this.#create(o, false);
  }

  /** The sandbox that has all these labels, else a new one; atomic. */
  getOrCreate(o: GetOrCreateOptions): Promise<Sandbox> {
    return this.#create(o, true);
  }

  /** Oldest first, page by page. */
  async *sandboxes(o: { readonly labels?: Readonly<Record<string, string>>; readonly state?: SandboxState } = {}):
      AsyncGenerator<SandboxInfo, void> {
    const labels = Object.entries(o.labels ?? {}).map(([k, v]) => ["label", `${k}=${v}`] as const);
    let after: string | undefined;
    do {
      const page = await this.#json("GET", SANDBOXES + query([...labels, ["state", o.state], ["after", after]]));
      for (const row of page.sandboxes) yield readInfo(row);
      after = page.next ?? undefined;
    } while (after !== undefined);
  }

  /** NotFound when there is none. */
  async get(id: string): Promise<Sandbox> {
    return new Sandbox(this.where, readInfo(await this.#json("GET", sandboxTarget(id))));
  }

  /** Idempotent; answers when nothing of it is left. */
  async delete(id: string): Promise<void> {
    await this.#json("DELETE", sandboxTarget(id));
  }
}
