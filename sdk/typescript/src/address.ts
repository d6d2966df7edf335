/** Where the daemon's API is. */
import { isAbsolute, join } from "node:path";

/** $DURWARD_SOCKET, else where the daemon of this user puts it. */
export function defaultSocket(): string {
  const told = process.env["DURWARD_SOCKET"];
  if (told) return told;
  const uid = process.geteuid?.() ?? 0;
  if (uid === 0) return "/run/durward/api.sock";
  const runtime = process.env["XDG_RUNTIME_DIR"] ?? "";
  if (runtime.startsWith("/")) return join(runtime, "durward", "api.sock");
  return `/tmp/durward-${uid}/api.sock`;
}

/** An absolute path; TypeError for what is none. */
export function socketPath(given?: string): string {
  const path = given ?? defaultSocket();
  if (path.includes("://"))
    throw new TypeError(
      `${path}: this version speaks to a daemon over its unix socket only; give the socket's path`,
    );
  if (!isAbsolute(path))
    throw new TypeError(`the daemon's socket must be an absolute path: ${JSON.stringify(path)}`);
  return path;
}
