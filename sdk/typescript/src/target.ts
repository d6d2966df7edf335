/** Paths and queries of the API, written so that nothing in a value is syntax. */
import { FileError } from "./errors.js";
import type { Path } from "./models.js";

const BASE = "/v1/sandboxes";

/** A value in a path or a query. Half a surrogate pair would become another name: refused. */
export function quoted(value: Path): string {
  if (typeof value === "string") {
    try {
      return encodeURIComponent(value);
    } catch {
      throw new FileError(`${JSON.stringify(value)} is no text (invalid_path)`, "invalid_path");
    }
  }
  let text = "";
  for (const byte of value) text += "%" + byte.toString(16).padStart(2, "0");
  return text;
}

export function query(pairs: Iterable<readonly [string, Path | undefined]>): string {
  const parts: string[] = [];
  for (const [key, value] of pairs)
    if (value !== undefined) parts.push(`${key}=${quoted(value)}`);
  return parts.length ? "?" + parts.join("&") : "";
}

/** An id is one segment whatever is in it: "." and ".." would be taken for others on the way. */
export function sandboxTarget(id: string, tail = "", pairs: Iterable<readonly [string, Path | undefined]> = []): string {
  const segment = /^\.{1,2}$/.test(id) ? id.replaceAll(".", "%2e") : quoted(id);
  return `${BASE}/${segment}${tail}${query(pairs)}`;
}

export const SANDBOXES = BASE;

export function volumeTarget(name: string, tail = ""): string {
  return `/v1/volumes/${quoted(name)}${tail}`;
}

export function archiveTarget(name: string, verb: "export" | "import"): string {
  return `/v1/snapshots/${quoted(name)}/${verb}`;
}
