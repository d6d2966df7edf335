/** The daemon. */
import { type Access, Where } from "./address.js";
import { type Archive, exported, imported } from "./archive.js";
import {
  readApproval, readDecision, readFleet, readInfo, readSnapshot, readTemplate, readVolume, type Approval, type DaemonEvent, type Decision,
  type Explanation, type Fleet, type Json, type LogConditions,
  type OnIdle, type OnSoftTtl, type Proposal, type SandboxInfo, type SandboxState, type Snapshot, type Suppression, type SuppressOptions,
  type Template, type Verification, type Volume,
} from "./models.js";
import { createBody, json, Sandbox } from "./sandbox.js";
import { archiveTarget, query, quoted, SANDBOXES, sandboxTarget, volumeTarget } from "./target.js";
import { ask, lines, open } from "./transport.js";

/** What a sandbox is made with. Times are seconds. */
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
  /** What happens then (default delete). */
  readonly onIdle?: OnIdle;
  /** Seconds that it runs at a stretch, whatever it does (default: for ever). */
  readonly softTtl?: number;
  /** What happens then (default stop); its files stay. */
  readonly onSoftTtl?: OnSoftTtl;
  /** A command or a file operation resumes it when it sleeps (default true). */
  readonly autoResume?: boolean;
  /** Its root, if not as the policy says. */
  readonly image?: string;
  /** What makes it, if not as the policy says. */
  readonly backend?: "bwrap" | "docker" | "gvisor" | "kubernetes" | "microvm";
  /** Begin with this snapshot's files. */
  readonly snapshot?: string;
  /** One of the configuration's templates, out of its pool if that has one; then neither image, backend, snapshot nor
   * volumes. */
  readonly template?: string;
  /** Volumes of its policy: `NAME:/path`, or `NAME:/path:ro` for reading only. */
  readonly volumes?: readonly string[];
  /** Ports inside that are reached at addresses of the daemon's host for as long as it is there; `info.published`
   * has them. address: ADDRESS:PORT, 127.0.0.1:0 by default, where 0 is any free port. */
  readonly publish?: readonly (number | { readonly port: number; readonly address?: string })[];
}

/** The same, with the labels that it is found by. */
export interface GetOrCreateOptions extends CreateOptions {
  readonly labels: Readonly<Record<string, string>>;
}

/** What a volume is made with. */
export interface VolumeOptions {
  /** Whose sandboxes may have it; may be left out where there is one, or of a clone. */
  readonly policy?: string;
  /** Bytes that it may hold (default 1 GiB; a clone's as its original's). */
  readonly size?: number;
  /** How many sandboxes may write at a time (default one). */
  readonly access?: "one" | "many";
  readonly labels?: Readonly<Record<string, string>>;
  /** Begin with the files of this volume or snapshot. */
  readonly cloneOf?: string;
  /** Take the one of this name if there is one. */
  readonly getOrCreate?: boolean;
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
  /** Its name in a directory of certificates, as OpenSSL looks for it. */
  readonly caHashed: Readonly<Record<string, string>>;
  readonly trustDir: string;
  /** What the policy sets beside the proxy's variables: placeholders. */
  readonly env: Readonly<Record<string, string>>;
}

/** A daemon. Without a path or URL: $DURWARD_URL, $DURWARD_SOCKET, else this user's daemon. Nothing is opened before
 * the first call, and nothing stays open after one. */
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

  async #json(method: "GET" | "POST" | "DELETE", target: string, body?: Record<string, unknown>, wait?: number, again = false) {
    const b = await ask(this.where, { method, target, body: body && json(body), wait, again });
    return b.length ? JSON.parse(b.toString("utf8")) : null;
  }

  /** Of the daemon; Unavailable when there is none. */
  async version(): Promise<string> {
    return (await this.#json("GET", "/v1/health")).version;
  }

  /** Roles, listeners and sandboxes, as the API's document has them. */
  async status(): Promise<Readonly<Record<string, unknown>>> {
    return this.#json("GET", "/v1/status");
  }

  /** All hosts of the fleet, as this one knows them. `host` null: its configuration has none. */
  async fleet(): Promise<Fleet> {
    return readFleet(await this.#json("GET", "/v1/fleet"));
  }

  /** Read the configuration again; BadRequest with what is wrong in it, and nothing is changed. */
  async reload(): Promise<void> {
    await this.#json("POST", "/v1/reload");
  }

  /** In Prometheus' text format. */
  async metrics(): Promise<string> {
    return (await ask(this.where, { method: "GET", target: "/metrics" })).toString("utf8");
  }

  /** A link that logs into the console, once. */
  async consoleUrl(): Promise<string> {
    return (await this.#json("POST", "/v1/console")).url;
  }

  /** Rules of a policy with presets expanded; secrets are names. */
  async policy(name?: string): Promise<Readonly<Record<string, unknown>>> {
    return (await this.#json("GET", "/v1/policy" + query([["name", name]]))).policy;
  }

  /** What a policy would say to a request; nothing is sent. `text`: of ssh:// the command, the target or the file, of smtp://
   * recipients, of imap:// a folder, as durward(1) says of `explain`. */
  async explain(method: string, url: string, policy?: string, text?: string): Promise<Explanation> {
    return this.#json("POST", "/v1/explain", { method, url, policy, text });
  }

  /** Records of the audit log that match, oldest first; the newest `limit` (1000) of them. */
  async queryLog(o: LogConditions = {}): Promise<Json[]> {
    return (await this.#json("GET", "/v1/audit/query" + query(Object.entries(o).map(([k, v]) => [k, String(v)])), undefined, 180)).records;
  }

  /** The same with the proofs that they stand in the log: what `durward audit verify --case` checks, as JSON. */
  async exportCase(o: LogConditions = {}): Promise<Json> {
    return this.#json("GET", "/v1/audit/case" + query(Object.entries(o).map(([k, v]) => [k, String(v)])), undefined, 180);
  }

  /** What codes of records mean, and how bad they are. */
  async codes(): Promise<Json> {
    return this.#json("GET", "/v1/codes");
  }

  /** The whole audit log, read anew: `ok`, `records`, `files`, and where it breaks, `problem`. */
  async verifyLog(): Promise<Verification> {
    return this.#json("POST", "/v1/audit/verify", undefined, 300);
  }

  /** Records of the audit log, those that were just written first, without an end; leaving the loop ends it. */
  async *audit(): AsyncGenerator<Readonly<Record<string, unknown>>, void> {
    const answer = await open(this.where, { method: "GET", target: "/v1/audit/stream", wait: 0 });
    for await (const line of lines(this.where, answer)) {
      if (!/^data: ?./.test(line)) continue;
      const v: Json = JSON.parse(line.slice(5));
      if (v && typeof v === "object" && "kind" in v) yield v;
    }
  }

  // ---- requests that an `ask` rule holds ----

  /** Those that wait. after: only later ones (`sequence`). wait: seconds to wait for one, 60 at most. */
  async approvals(o: { readonly after?: number; readonly wait?: number } = {}): Promise<Approval[]> {
    const wait = o.wait ?? 0;
    const target = `/v1/approvals?after=${o.after ?? 0}&wait=${wait}`;
    return (await this.#json("GET", target, undefined, 60 + wait)).approvals.map(readApproval);
  }

  /** One that waits; NotFound when it was decided or ended. */
  async approval(id: string): Promise<Approval> {
    return readApproval(await this.#json("GET", "/v1/approvals/" + quoted(id)));
  }

  /** The audit log names who said so. NotFound when somebody was faster, or it ended. Of another host's (`host`): Conflict
   * when it was answered otherwise; `taken` false when that host has not taken the answer yet. */
  async allow(id: string): Promise<Decision> {
    return readDecision(await this.#json("POST", `/v1/approvals/${quoted(id)}/allow`));
  }

  /** Its client is answered 403. The rest as `allow`. */
  async deny(id: string): Promise<Decision> {
    return readDecision(await this.#json("POST", `/v1/approvals/${quoted(id)}/deny`));
  }

  // ---- what was proposed to be allowed ----

  /** Oldest first. A sandbox's `reason` is its own words, which may say anything. */
  async proposals(): Promise<Proposal[]> {
    return (await this.#json("GET", "/v1/proposals")).proposals;
  }

  /** With the rule it would become (`diff`), and what that changes (`before`, `after`). */
  async proposal(id: string): Promise<Proposal> {
    return this.#json("GET", "/v1/proposals/" + quoted(id));
  }

  /** Nothing is allowed by it. The url's path may hold `*` and `**`. */
  async propose(o: { readonly method: string; readonly url: string; readonly policy?: string; readonly sandbox?: string; readonly reason?: string }): Promise<Proposal> {
    return this.#json("POST", "/v1/proposals", o);
  }

  /** Changes no policy: whoever may write the configuration puts the rule there. */
  async acceptProposal(id: string): Promise<Proposal> {
    return this.#json("POST", `/v1/proposals/${quoted(id)}/accept`);
  }

  /** Conflict when it was accepted. */
  async rejectProposal(id: string): Promise<Proposal> {
    return this.#json("POST", `/v1/proposals/${quoted(id)}/reject`);
  }

  // ---- findings that were looked at ----

  /** Oldest first, those that ended for a while. */
  async suppressions(): Promise<Suppression[]> {
    return (await this.#json("GET", "/v1/suppressions")).suppressions;
  }

  /** One of them; NotFound when there is none. */
  async suppression(id: string): Promise<Suppression> {
    return this.#json("GET", "/v1/suppressions/" + quoted(id));
  }

  /** Hides nothing before it is accepted; then notices leave such findings out until it ends. */
  async suppress(o: SuppressOptions): Promise<Suppression> {
    return this.#json("POST", "/v1/suppressions", { ...o });
  }

  /** Not by the token that wrote it. */
  async acceptSuppression(id: string): Promise<Suppression> {
    return this.#json("POST", `/v1/suppressions/${quoted(id)}/accept`);
  }

  /** It ends now; one that is open is withdrawn. */
  async liftSuppression(id: string): Promise<Suppression> {
    return this.#json("DELETE", "/v1/suppressions/" + quoted(id));
  }

  // ---- snapshots ----

  /** Oldest first. */
  async snapshots(): Promise<Snapshot[]> {
    return (await this.#json("GET", "/v1/snapshots")).snapshots.map(readSnapshot);
  }

  /** NotFound when there is none of this name. */
  async snapshot(name: string): Promise<Snapshot> {
    return readSnapshot(await this.#json("GET", "/v1/snapshots/" + quoted(name)));
  }

  /** Idempotent. Sandboxes made of it stay. */
  async deleteSnapshot(name: string): Promise<void> {
    await this.#json("DELETE", "/v1/snapshots/" + quoted(name), undefined, 300, true);
  }

  /** A snapshot as a tar archive of any size, piece by piece: whole when the loop ends without an error. */
  exportSnapshot(name: string): AsyncGenerator<Uint8Array, void> {
    return exported(this.where, archiveTarget(name, "export"));
  }

  /** A snapshot from such an archive (a stream of a file, pieces, another daemon's export): whole, or not at all.
   * Conflict where there is one of this name; its image must be known there. */
  importSnapshot(name: string, archive: Archive): Promise<Snapshot> {
    return imported(this.where, archiveTarget(name, "import"), archive);
  }

  // ---- templates ----

  /** What `create({ template })` takes, and how many are ready. */
  async templates(): Promise<Template[]> {
    return (await this.#json("GET", "/v1/templates")).templates.map(readTemplate);
  }

  /** NotFound when there is none that this token sees. */
  async template(name: string): Promise<Template> {
    return readTemplate(await this.#json("GET", "/v1/templates/" + quoted(name)));
  }

  // ---- volumes ----

  /** Files that outlive the sandboxes of its policy which mount them. */
  async createVolume(name: string, o: VolumeOptions = {}): Promise<Volume> {
    return readVolume(await this.#json("POST", "/v1/volumes", {
      name, policy: o.policy, size: o.size, access: o.access, labels: o.labels, from: o.cloneOf,
      get_or_create: o.getOrCreate || undefined,
    }, 300, o.getOrCreate));
  }

  /** With snapshots of volumes; oldest first. */
  async volumes(): Promise<Volume[]> {
    return (await this.#json("GET", "/v1/volumes")).volumes.map(readVolume);
  }

  /** With what of it is used, in bytes; NotFound when there is none of this name. */
  async volume(name: string): Promise<Volume> {
    return readVolume(await this.#json("GET", volumeTarget(name)));
  }

  /** Idempotent. Conflict while a sandbox has it. */
  async deleteVolume(name: string): Promise<void> {
    await this.#json("DELETE", volumeTarget(name), undefined, 300, true);
  }

  /** A copy of its files, each as it is just then, as the volume `snapshot`, which nobody mounts. */
  async snapshotVolume(name: string, snapshot: string): Promise<Volume> {
    return readVolume(await this.#json("POST", volumeTarget(name, "/snapshot"), { name: snapshot }, 300));
  }

  /** A snapshot's files in place of its own. Conflict while a sandbox that runs has it. */
  async restoreVolume(name: string, snapshot: string): Promise<Volume> {
    return readVolume(await this.#json("POST", volumeTarget(name, "/restore"), { snapshot }, 300));
  }

  /** As a tar archive of any size, its files below root/: whole when the loop ends without an error. */
  exportVolume(name: string): AsyncGenerator<Uint8Array, void> {
    return exported(this.where, volumeTarget(name, "/export"));
  }

  /** Names of the configuration's policies that this caller sees. */
  async policies(): Promise<string[]> {
    return (await this.#json("GET", "/v1/policies")).policies.map((p: { name: string }) => p.name);
  }

  /** What happened to sandboxes, after this sequence number. */
  async events(o: { readonly after?: number; readonly limit?: number } = {}): Promise<DaemonEvent[]> {
    return (await this.#json("GET", `/v1/events?after=${o.after ?? 0}&limit=${o.limit ?? 100}`)).events;
  }

  // ---- identities of remote sandboxes ----

  /** ttl: seconds, at most 3600. remote: it is on another host, so that the listener is one that can be reached from
   * there, in TLS if there is one. */
  async issueIdentity(
    o: { readonly policy?: string; readonly ttl?: number; readonly remote?: boolean } = {},
  ): Promise<Identity> {
    const v = await this.#json("POST", "/v1/identities", { policy: o.policy, ttl: o.ttl, remote: o.remote || undefined });
    return {
      id: v.id, policy: v.policy, token: v.token ?? null, expires: v.expires ?? null, proxy: v.proxy,
      ca: v.ca, caHashed: { ...v.ca_hashed }, trustDir: v.trust_dir, env: { ...v.env },
    };
  }

  /** NotFound when it is unknown or revoked. */
  async revokeIdentity(id: string): Promise<void> {
    await this.#json("DELETE", "/v1/identities/" + quoted(id));
  }

  // ---- sandboxes ----

  async #create(o: CreateOptions, reuse: boolean): Promise<Sandbox> {
    const v = await this.#json("POST", SANDBOXES, {
      ...createBody(o), policy: o.policy, image: o.image, backend: o.backend, snapshot: o.snapshot,
      volumes: o.volumes, template: o.template,
      publish: o.publish?.map((p) => (typeof p === "number" ? { port: p } : p)), get_or_create: reuse || undefined,
    }, 300, reuse);
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

  /** Oldest first, page by page: only those that have all these labels, or are in this state. pageSize: how many are asked
   * for at a time (1 to 1000, default 100). */
  async *sandboxes(o: { readonly labels?: Readonly<Record<string, string>>; readonly state?: SandboxState; readonly pageSize?: number } = {}):
      AsyncGenerator<SandboxInfo, void> {
    const labels = Object.entries(o.labels ?? {}).map(([k, v]) => ["label", `${k}=${v}`] as const);
    let after: string | undefined;
    do {
      const page = await this.#json("GET", SANDBOXES + query([...labels, ["state", o.state], ["after", after], ["limit", String(o.pageSize ?? 100)]]));
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
    await this.#json("DELETE", sandboxTarget(id), undefined, undefined, true);
  }
}
