// The connection to the daemon: the session, questions, and the stream of audit lines.

const KEY = "durward-session";

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const isLink = () => /^#[0-9a-f]{64}$/.test(location.hash);

// The token behind '#' is taken off the address at once and traded for a session of this tab.
export async function login() {
  if (isLink()) {
    const token = location.hash.slice(1);
    history.replaceState(null, "", "/");
    const r = await fetch("/login", { method: "POST", body: JSON.stringify({ token }) });
    if (r.ok) sessionStorage.setItem(KEY, (await r.json()).session);
  }
  return sessionStorage.getItem(KEY) !== null;
}

export const logout = () => sessionStorage.removeItem(KEY);

const headers = () => ({ Authorization: "Bearer " + sessionStorage.getItem(KEY) });

async function answer(path, body, method) {
  const r = await fetch(path, {
    method: method || (body ? "POST" : "GET"),
    headers: headers(),
    body: body && JSON.stringify(body),
  });
  const said = await r.text();
  if (r.ok) return said;
  let e = {};
  try {
    e = JSON.parse(said).error;
  } catch {
    // it is no JSON
  }
  throw new Refused(r.status, e.code || "error", e.message || r.statusText);
}

export async function ask(path, body, method) {
  const said = await answer(path, body, method);
  return said ? JSON.parse(said) : {};
}

// The answer as a file of the browser's, byte for byte; also what it says.
export async function download(path, name) {
  const said = await answer(path);
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([said], { type: "application/json" }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
  return JSON.parse(said);
}

// Calls on(event, data lines) for each event; begins again when the stream ends. Returns a stop.
export function watch(on) {
  const stop = new AbortController();
  (async () => {
    for (let wait = 500; !stop.signal.aborted; wait = Math.min(wait * 2, 10000)) {
      try {
        const r = await fetch("/v1/audit/stream", { headers: headers(), signal: stop.signal });
        if (r.status === 401) return on("login", []);
        if (r.ok) {
          wait = 500;
          on("open", []);
          await events(r.body, on);
        }
      } catch (e) {
        if (stop.signal.aborted) return;
      }
      on("closed", []);
      await new Promise((done) => setTimeout(done, wait));
    }
  })();
  return () => stop.abort();
}

async function events(body, on) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", event = "", data = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (event) on(event, data);
        event = "";
        data = [];
      } else if (line.startsWith("data: ")) {
        data.push(line.slice(6));
      } else if (line.startsWith("event: ")) {
        event = line.slice(7);
      }
    }
  }
}
